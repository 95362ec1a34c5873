//! OPTIONAL, EXISTS and MINUS of one triple pattern: a look-up for the rows of the left, without a
//! plan that is run for each batch.

use super::{Result, Subplan, Want};
use crate::algebra::{ExistsKind, Expression, Node, Pattern, Var};
use crate::optimise::access::{Visit, visits};
use crate::optimise::{Estimate, Planner};
use crate::plan::{Access, Copies, Finds, JoinKind, Op};

/// A pattern that is looked up for the rows of a left side.
pub(super) struct SoughtPattern<'a> {
    pattern: &'a Pattern,
    /// on its own variables
    conditions: Vec<Expression>,
}

/// The pattern of a right side, if it is one with conditions that only read what it binds itself.
pub(super) fn sought<'a>(
    left: &Subplan,
    right: &'a Node,
    conditions: &[Expression],
) -> Option<SoughtPattern<'a>> {
    let (pattern, own) = match right {
        Node::Pattern(pattern) => (pattern, &[][..]),
        Node::Filter { inner, conditions } => match &**inner {
            Node::Pattern(pattern) => (pattern, &conditions[..]),
            _ => return None,
        },
        _ => return None,
    };
    let conditions: Vec<Expression> = own.iter().chain(conditions).cloned().collect();
    let (of_left, of_pattern) = (left.vars(), pattern.vars());
    let shared = of_left.intersection(&of_pattern);
    let new = of_pattern.minus(&of_left);
    let is_own = |condition: &Expression| condition.vars().is_subset(&new);
    let fits = !shared.is_empty() && shared.is_subset(&left.certain) && conditions.iter().all(is_own);
    fits.then_some(SoughtPattern { pattern, conditions })
}

impl SoughtPattern<'_> {
    fn node(&self) -> Node {
        Node::Pattern(self.pattern.clone())
    }
}

impl Planner<'_> {
    /// OPTIONAL of a pattern by one visit to an index; the left side again where it takes more.
    pub(super) fn optional_lookup(
        &mut self,
        left: Subplan,
        right: &SoughtPattern<'_>,
        want: &Want,
    ) -> Result<std::result::Result<Subplan, Subplan>> {
        let reads = self.reads(&right.conditions);
        let wanted = want.with(&reads);
        let Some(visit) = self.one_visit(&left, right, &wanted) else { return Ok(Err(left)) };
        let pattern = self.pattern(right.pattern)?;
        let Some((mut access, new)) = visit.number(&left.node.vars, &wanted.vars, &self.scope, None) else {
            return Ok(Ok(self.unmatched(left, JoinKind::Left, &want.vars)));
        };
        let keep = left.kept(&want.vars);
        let mut vars = left.pick(&keep);
        let emit: Vec<u16> =
            (0..new.len() as u16).filter(|c| want.vars.contains(new[usize::from(*c)])).collect();
        vars.extend(emit.iter().map(|c| new[usize::from(*c)]));
        self.fold(&visit, &wanted, &left.vars(), &mut access, &mut vars);
        let estimate = match right.conditions.is_empty() {
            // each row comes once, with how many it found
            true if access.copies != Copies::Count && access.new.is_empty() => left.estimate.clone(),
            true => self.left_joined(&left.estimate, right.pattern, &pattern)?,
            false => left.estimate.left_join(&pattern),
        };
        let found = Found { access, finds: Finds::Optional, keep, new, emit };
        Ok(Ok(self.found(left, right, found, vars, estimate)?))
    }

    /// A semi-, anti- or marking join with a pattern by one visit to an index; the left side again
    /// where it takes more.
    pub(super) fn whether_lookup(
        &mut self,
        left: Subplan,
        right: &SoughtPattern<'_>,
        kind: ExistsKind,
        want: &Want,
    ) -> Result<std::result::Result<Subplan, Subplan>> {
        let inside = Want::new(self.reads(&right.conditions), self.copies(Copies::Merge));
        let Some(visit) = self.one_visit(&left, right, &inside) else { return Ok(Err(left)) };
        let Some((mut access, mut new)) = visit.number(&left.node.vars, &inside.vars, &self.scope, None)
        else {
            return Ok(Ok(self.unmatched(left, JoinKind::Exists(kind), &want.vars)));
        };
        self.fold(&visit, &inside, &left.vars(), &mut access, &mut new);
        let keep = left.kept(&want.vars);
        let mut vars = left.pick(&keep);
        if let ExistsKind::Mark(mark) = kind {
            vars.push(mark);
        }
        let estimate = self.existing(&left.estimate, &right.node(), &right.conditions, kind)?;
        let finds = Finds::Whether(kind);
        let found = Found { access, finds, keep, new, emit: Vec::new() };
        Ok(Ok(self.found(left, right, found, vars, estimate)?))
    }

    /// The one visit that finds a pattern for the rows of a left side; `None`: it takes several.
    fn one_visit(&self, left: &Subplan, right: &SoughtPattern<'_>, want: &Want) -> Option<Visit> {
        let bound = left.vars();
        let folded = self.folded(right.pattern, want, &bound);
        folded.or_else(|| {
            let mut list = visits(right.pattern, &bound);
            if list.len() == 1 { list.pop() } else { None }
        })
    }

    fn found(
        &mut self,
        left: Subplan,
        right: &SoughtPattern<'_>,
        found: Found,
        vars: Vec<Var>,
        estimate: Estimate,
    ) -> Result<Subplan> {
        let pattern = self.pattern(right.pattern)?;
        let reach = self.reach(right.pattern, &left.vars())?;
        let keys = left.estimate.rows;
        let cost = left.node.cost + self.costs.lookup(keys, pattern.rows, estimate.rows, reach);
        let mut certain = left.certain.clone();
        if let Finds::Whether(ExistsKind::Mark(mark)) = found.finds {
            certain.insert(mark);
        }
        let op = Op::Lookup {
            input: Box::new(left.node),
            access: found.access,
            finds: found.finds,
            keep: found.keep,
            conditions: right.conditions.clone(),
            new: found.new,
            emit: found.emit,
            star: Vec::new(),
        };
        Ok(self.make(op, vars, estimate, certain, cost))
    }
}

/// The parts of a look-up.
struct Found {
    access: Access,
    finds: Finds,
    keep: Vec<u16>,
    new: Vec<Var>,
    emit: Vec<u16>,
}
