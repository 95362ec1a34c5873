//! OPTIONAL and EXISTS: the right side is run once per batch of the left, whose rows are its
//! seed.

use snowmelt_graph::Index;

use super::found::sought;
use super::leaf::expect;
use super::{Result, Subplan, Want, flows};
use crate::algebra::translate::join;
use crate::algebra::{ExistsKind, Expression, Node, Var, VarSet};
use crate::optimise::device_time::Reach;
use crate::optimise::guess::HAS_MATCH;
use crate::optimise::{OfVariable, Planner};
use crate::plan::{Copies, JoinKind, Op};

/// Running the right side for a batch costs so many times the look-ups that it cannot do
/// without.
const NESTED_LOOKUPS: f64 = 2.0;

/// How the left rows enter a right side, and how its rows find back to them.
pub(super) struct Seeding {
    /// columns of the left side that enter
    pub seed: Vec<u16>,
    /// the right side's column of row numbers
    pub row: u16,
    /// their variable
    pub row_var: Var,
    /// the variable of the context that the left rows are, if they are one
    pub context: Option<Var>,
}

/// Demands on a right side: of OPTIONAL each row, elsewhere whether there is one.
pub(super) fn want_of_right(vars: VarSet, kind: JoinKind, above: &Want) -> Want {
    let copies = if kind == JoinKind::Left { above.copies } else { Copies::Merge };
    Want::new(vars, copies)
}

/// The variables of an OPTIONAL that come from its right side: those that the left does not
/// have, or may leave open, where there is a match.
pub(super) fn from_right(left: &Subplan, right: &Node, kind: JoinKind, need: &VarSet) -> VarSet {
    match kind {
        JoinKind::Left => {
            need.intersection(&right.scope().possible).minus(&left.vars().intersection(&left.certain))
        }
        _ => VarSet::default(),
    }
}

impl<'a> Planner<'a> {
    /// Runs `right` once per batch of `left`.
    fn nested(
        &mut self,
        left: Subplan,
        right: &'a Node,
        conditions: &[Expression],
        kind: JoinKind,
        reads: &VarSet,
        want: &Want,
    ) -> Result<Subplan> {
        let seed = left.cols(reads);
        let mut seed_vars = left.pick(&seed);
        let row_var = self.fresh();
        seed_vars.push(row_var);
        let mut certain = left.certain.intersection(&seed_vars.iter().copied().collect());
        certain.insert(row_var);
        let mut estimate = left.estimate.clone();
        estimate.vars.retain(|v| seed_vars.contains(&v.var));
        estimate.vars.push(OfVariable::whole(row_var, estimate.rows));
        let leaf = self.make(Op::Seed, seed_vars, estimate, certain, 0.0);
        let from_right = from_right(&left, right, kind, &want.vars);
        let mut right_need = from_right.clone();
        right_need.insert(row_var);
        let right = if conditions.is_empty() {
            right
        } else {
            let inner = Box::new(right.clone());
            self.made.keep(Node::Filter { inner, conditions: conditions.to_vec() })
        };
        let right = self.lower(right, Some(leaf), &want_of_right(right_need, kind, want))?;
        let Some(row) = right.node.col(row_var) else {
            // the right side cannot give anything
            return Ok(self.unmatched(left, kind, &want.vars));
        };
        let seeding = Seeding { seed, row, row_var, context: None };
        Ok(self.nested_op(left, right, seeding, kind, &from_right, &want.vars))
    }

    pub(super) fn nested_op(
        &mut self,
        left: Subplan,
        right: Subplan,
        seeding: Seeding,
        kind: JoinKind,
        from_right: &VarSet,
        need: &VarSet,
    ) -> Subplan {
        let keep_left: Vec<u16> = left
            .kept(need)
            .into_iter()
            .filter(|c| {
                !from_right.contains(left.node.vars[*c as usize])
                    || right.node.col(left.node.vars[*c as usize]).is_none()
            })
            .collect();
        let mut vars = left.pick(&keep_left);
        let mut keep_right = Vec::new();
        if kind == JoinKind::Left {
            for (c, v) in right.node.vars.iter().enumerate() {
                if *v != seeding.row_var && (from_right.contains(*v) || right.weights.contains(*v)) {
                    keep_right.push((c as u16, left.node.col(*v)));
                    vars.push(*v);
                }
            }
        }
        let mut certain = left.certain.clone();
        let mut estimate = left.estimate.clone();
        match kind {
            JoinKind::Left => {
                estimate.sample = None;
                estimate.rows = estimate.rows.max(right.estimate.rows);
                estimate.also_of(&right.estimate);
            }
            JoinKind::Exists(ExistsKind::Mark(v)) => {
                vars.push(v);
                certain.insert(v);
            }
            _ => estimate = estimate.scaled(HAS_MATCH),
        }
        let cost =
            left.node.cost + right.node.cost + self.costs.operator + left.estimate.rows * self.costs.row;
        let op = Op::Nested {
            left: Box::new(left.node),
            right: Box::new(right.node),
            seed: seeding.seed,
            context: seeding.context,
            row: seeding.row,
            kind,
            keep_left,
            keep_right,
        };
        self.make(op, vars, estimate, certain, cost)
    }

    /// The left side when the right is known to be empty.
    pub(super) fn unmatched(&mut self, left: Subplan, kind: JoinKind, need: &VarSet) -> Subplan {
        match kind {
            JoinKind::Exists(ExistsKind::Semi) | JoinKind::Inner => self.nothing(),
            JoinKind::Exists(ExistsKind::Mark(_)) => {
                let right = self.nothing();
                self.hash(left, right, kind, need)
            }
            _ => self.trim(left, need),
        }
    }

    /// OPTIONAL.
    pub(super) fn optional(
        &mut self,
        node: &'a Node,
        left: &'a Node,
        right: &'a Node,
        conditions: &'a [Expression],
        input: Option<Subplan>,
        want: &Want,
    ) -> Result<Subplan> {
        let (of_left, of_right) = (left.scope(), right.scope());
        let reads = of_right.possible.union(&self.reads(conditions));
        let known = of_left.possible.union(&of_right.possible);
        if !flows(&input, &reads, &of_left.certain, Some(&known)) {
            return self.apart(node, input, want);
        }
        let in_doubt = of_right.possible.minus(&of_right.certain);
        if self.reads(conditions).intersection(&of_left.possible).intersects(&in_doubt) {
            return self.left_join_of_pairs(left, right, conditions, input, want);
        }
        let mut left = self.lower(left, input, &want.with(&reads))?;
        if let Some(pattern) = sought(&left, right, conditions) {
            left = match self.optional_lookup(left, &pattern, want)? {
                Ok(built) => return Ok(built),
                Err(left) => left,
            };
        }
        self.nested(left, right, conditions, JoinKind::Left, &reads, want)
    }

    /// A semi-join with each of some parts, that of the fewest rows first.
    fn exists_each(&mut self, mut left: Subplan, parts: Vec<&'a Node>, want: &Want) -> Result<Subplan> {
        let mut ordered = Vec::with_capacity(parts.len());
        for part in parts {
            ordered.push((self.estimate(part)?.rows, part));
        }
        ordered.sort_by(|a, b| b.0.total_cmp(&a.0));
        while let Some((_, part)) = ordered.pop() {
            let later =
                ordered.iter().fold(VarSet::default(), |all, (_, part)| all.union(&part.scope().possible));
            let reads = part.scope().possible;
            left = self.exists(left, part, &[], ExistsKind::Semi, &reads, &want.with(&later))?;
        }
        Ok(left)
    }

    /// The parts of a join that have nothing in common but what is known; `None`: it is one.
    fn independent_parts(&mut self, node: &'a Node, known: &VarSet) -> Option<Vec<&'a Node>> {
        let Node::Join(nodes) = node else { return None };
        let mut parts: Vec<(VarSet, Vec<&'a Node>)> = Vec::new();
        for node in nodes {
            let mut open = node.scope().possible.minus(known);
            let mut members = vec![node];
            for (vars, of_part) in parts.extract_if(.., |part| part.0.intersects(&open)).collect::<Vec<_>>() {
                open = open.union(&vars);
                members.splice(0..0, of_part);
            }
            parts.push((open, members));
        }
        let whole = |(_, members): (VarSet, Vec<&'a Node>)| match members[..] {
            [one] => one,
            _ => self.made.keep(join(members.into_iter().cloned().collect())),
        };
        (parts.len() > 1).then(|| parts.into_iter().map(whole).collect())
    }

    /// A semi-, anti- or marking join: one pass over the right side where that is cheaper than
    /// a visit for each row.
    pub(super) fn exists(
        &mut self,
        mut left: Subplan,
        right: &'a Node,
        conditions: &[Expression],
        kind: ExistsKind,
        reads: &VarSet,
        want: &Want,
    ) -> Result<Subplan> {
        if kind == ExistsKind::Semi
            && conditions.is_empty()
            && let Some(parts) = self.independent_parts(right, &left.certain)
        {
            return self.exists_each(left, parts, want);
        }
        let shared = left.vars().intersection(reads);
        let expected = self.existing(&left.estimate, right, conditions, kind)?;
        let pattern = sought(&left, right, conditions);
        let times = if pattern.is_some() { 1.0 } else { NESTED_LOOKUPS };
        if conditions.is_empty() {
            let on_its_own = self.estimate(right)?;
            let both_certain = shared.is_subset(&left.certain) && shared.is_subset(&right.scope().certain);
            let reach = Reach { index: Index::Psog.into(), rows: on_its_own.rows * 2.0 };
            let one_pass = self.costs.scan(on_its_own.rows, reach.index).total()
                + self.costs.hash(on_its_own.rows, left.estimate.rows, 0.0);
            let (keys, found) = (left.estimate.rows, left.estimate.rows);
            let per_row = times * self.costs.lookup(keys, reach.rows, found, reach).total();
            if shared.is_empty() || (both_certain && one_pass < per_row) {
                let built = self.lower(right, None, &Want::new(shared, Copies::Merge))?;
                let mut built = self.hash(left, built, JoinKind::Exists(kind), &want.vars);
                expect(&mut built, expected);
                return Ok(built);
            }
        }
        if let Some(pattern) = pattern {
            left = match self.whether_lookup(left, &pattern, kind, want)? {
                Ok(built) => return Ok(built),
                Err(left) => left,
            };
        }
        let mut built = self.nested(left, right, conditions, JoinKind::Exists(kind), reads, want)?;
        if matches!(built.node.op, Op::Nested { .. }) {
            expect(&mut built, expected);
        }
        Ok(built)
    }
}
