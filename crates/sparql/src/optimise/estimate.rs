//! How many solutions to expect.
//!
//! A pattern's rows are exact where its constants are a prefix of an index; its variables have
//! a number of distinct values and a *domain*: the distinct values without the other constants.
//! Joins divide by the geometric mean of distinct values and domain: between containment (every
//! value of the smaller side is met) and independence, because BSBM-like data is neither.

use std::rc::Rc;

use snowmelt_graph::{AnyIndex, CompareOp, Index, TermId, TripleIndex};

use super::guess::{
    BOUND, CONDITION, EQUAL, FUNCTION, GRAPHS_JOINED, HAS_MATCH, LANGUAGES, LEAST_SHARE, LENGTHS, ORDERED,
    SUBJECTS_OF_PAIR, VALUES_OF_PAIR, YEARS, bounded,
};
use super::sample::Sample;
use super::{Planner, PredicateStatistics};
use crate::algebra::consts::GroundTerm;
use crate::algebra::{
    AggregateExpression, ApplyKind, BinaryOperator, Const, Expression, Function, GraphSlot, GroupFunction,
    Node, Param, Pattern, Slot, UnaryOperator, Var, VarSet,
};
use crate::error::QueryError;
use crate::plan::JoinKey;
use crate::plan::ranged::compare_op;

/// The values of a variable that are expected.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfVariable {
    pub var: Var,
    pub distinct: f64,
    /// distinct values without the constants that stand beside the variable
    pub domain: f64,
}

impl OfVariable {
    /// Each of a number of values is in the domain, and no other is.
    pub fn whole(var: Var, distinct: f64) -> Self {
        Self { var, distinct, domain: distinct }
    }
}

/// Expected rows, and the values of each variable.
#[derive(Clone, Debug, Default)]
pub(crate) struct Estimate {
    pub rows: f64,
    /// by variable, ascending
    pub vars: Vec<OfVariable>,
    /// some of the rows, where they were looked at
    pub sample: Option<Rc<Sample>>,
}

impl Estimate {
    pub fn unit() -> Self {
        Self::of_rows(1.0)
    }

    /// So many rows of nothing that is known.
    pub fn of_rows(rows: f64) -> Self {
        Self { rows, ..Self::default() }
    }

    fn position(&self, v: Var) -> Result<usize, usize> {
        self.vars.binary_search_by_key(&v, |of| of.var)
    }

    pub(super) fn find(&self, v: Var) -> Option<&OfVariable> {
        self.position(v).ok().map(|i| &self.vars[i])
    }

    pub fn distinct(&self, v: Var) -> f64 {
        self.clamped(self.find(v).map_or(self.rows, |of| of.distinct))
    }

    fn clamped(&self, distinct: f64) -> f64 {
        distinct.min(self.rows).max(1.0)
    }

    pub(super) fn set(&mut self, v: Var, distinct: f64, domain: f64) {
        match self.position(v) {
            Ok(i) => {
                let of = &mut self.vars[i];
                (of.distinct, of.domain) = (of.distinct.min(distinct), of.domain.max(domain));
            }
            Err(i) => self.vars.insert(i, OfVariable { var: v, distinct, domain }),
        }
    }

    /// The variables of another estimate that this one does not have.
    pub(super) fn also_of(&mut self, other: &Self) {
        for v in &other.vars {
            if let Err(i) = self.position(v.var) {
                self.vars.insert(i, *v);
            }
        }
    }

    /// Different values of an expression.
    pub(super) fn distinct_values(&self, expr: &Expression) -> f64 {
        let of_vars = || expr.vars().iter().map(|v| self.distinct(v)).product::<f64>();
        let most = match expr {
            Expression::Var(v) => return self.distinct(*v),
            Expression::Const(_) | Expression::Param(_) => 1.0,
            Expression::Bound(_)
            | Expression::Or(_)
            | Expression::And(_)
            | Expression::In(..)
            | Expression::Unary(UnaryOperator::Not, _) => 2.0,
            Expression::Binary(operator, _) if is_comparison(*operator) => 2.0,
            Expression::Call(function, _) => of_function(*function),
            _ => f64::INFINITY,
        };
        of_vars().min(most).min(self.rows).max(1.0)
    }

    /// One more variable, whose value is computed.
    pub(super) fn set_computed(&mut self, v: Var, expr: &Expression) {
        let distinct = self.distinct_values(expr);
        let domain = match expr {
            Expression::Var(of) => self.find(*of).map_or(distinct, |of| of.domain),
            // of texts that are made few are equal to those of another side
            Expression::Key(_) => distinct * distinct.sqrt(),
            _ => distinct,
        };
        self.set(v, distinct, domain);
    }

    /// Fewer rows, by a filter.
    pub fn scaled(mut self, by: f64) -> Self {
        self.rows *= by;
        self.sample = None;
        self
    }

    /// The distinct values and the domain of a variable that two inputs share.
    fn shared(&self, x: &OfVariable, other: &Self, y: &OfVariable) -> (f64, f64) {
        let distinct = self.clamped(x.distinct).max(other.clamped(y.distinct));
        (distinct, x.domain.max(y.domain).max(distinct))
    }

    /// The rows of the natural join; quick where the other has few variables.
    pub fn join_rows(&self, other: &Self) -> f64 {
        let mut selectivities = Vec::new();
        for y in &other.vars {
            if let Some(x) = self.find(y.var) {
                let (distinct, domain) = self.shared(x, other, y);
                selectivities.push(1.0 / (distinct * domain).sqrt());
            }
        }
        // further shared variables are rarely independent of the first
        selectivities.sort_by(f64::total_cmp);
        let mut rows = self.rows * other.rows;
        let mut weight = 1.0;
        for s in selectivities {
            rows *= s.powf(weight);
            weight /= 2.0;
        }
        rows
    }

    /// The natural join.
    pub fn join(&self, other: &Self) -> Self {
        let mut vars = Vec::with_capacity(self.vars.len() + other.vars.len());
        let (mut a, mut b) = (self.vars.iter().peekable(), other.vars.iter().peekable());
        loop {
            match (a.peek(), b.peek()) {
                (Some(x), Some(y)) if x.var == y.var => {
                    let (distinct, domain) = (x.distinct.min(y.distinct), self.shared(x, other, y).1);
                    vars.push(OfVariable { var: x.var, distinct, domain });
                    a.next();
                    b.next();
                }
                (Some(x), Some(y)) if x.var < y.var => {
                    vars.push(**x);
                    a.next();
                }
                (Some(x), None) => {
                    vars.push(**x);
                    a.next();
                }
                (_, Some(y)) => {
                    vars.push(**y);
                    b.next();
                }
                (None, None) => break,
            }
        }
        debug_assert!(vars.is_sorted_by(|a, b| a.var < b.var), "an estimate's variables ascend");
        let rows = self.join_rows(other);
        for v in &mut vars {
            v.distinct = v.distinct.min(rows.max(1.0));
        }
        Self { rows, vars, sample: None }
    }

    /// The rows that OFFSET and LIMIT leave, of all rows or of those of each combination.
    pub(super) fn sliced(mut self, offset: u64, limit: Option<u64>, of_all: bool) -> Self {
        if of_all {
            self.rows = (self.rows - offset as f64).max(0.0);
        }
        self.rows = limit.map_or(self.rows, |limit| self.rows.min(limit as f64));
        self.sample = self.sample.filter(|_| limit.is_none() && offset == 0);
        self
    }

    /// The natural join, and the rows of this side that meet none.
    pub(super) fn left_join(&self, other: &Self) -> Self {
        let mut both = self.join(other);
        both.rows = both.rows.max(self.rows);
        both
    }

    /// The solutions of both, as UNION has them.
    pub fn add(&mut self, other: &Self) {
        self.rows += other.rows;
        for v in &other.vars {
            match self.position(v.var) {
                Ok(i) => self.vars[i].distinct += v.distinct,
                Err(i) => self.vars.insert(i, *v),
            }
        }
    }

    /// One solution for each combination of the keys.
    fn grouped(&self, keys: &[Var], aggregates: &[(Var, AggregateExpression)]) -> Self {
        let groups = self.combinations(&keys.iter().copied().collect()).max(1.0);
        let mut out = Estimate::of_rows(groups);
        for k in keys {
            let domain = self.find(*k).map_or(groups, |of| of.domain);
            out.set(*k, self.distinct(*k).min(groups), domain);
        }
        for (v, of) in aggregates {
            let counts = matches!(of.function, GroupFunction::Count | GroupFunction::CountRows);
            // counts that add up to the rows
            let most = if counts { (2.0 * self.rows).sqrt().max(1.0) } else { groups };
            out.set(*v, groups.min(most), groups);
        }
        out
    }

    /// Distinct combinations of some variables to expect.
    pub fn combinations(&self, vars: &VarSet) -> f64 {
        let product =
            vars.iter().filter_map(|v| self.find(v)).fold(1.0, |a, of| a * self.clamped(of.distinct));
        product.min(self.rows)
    }
}

/// A node without its conditions.
fn without_conditions(node: &Node) -> &Node {
    if let Node::Filter { inner, .. } = node { inner } else { node }
}

/// The nodes that a node joins, or itself.
pub(super) fn joined(node: &Node) -> &[Node] {
    match node {
        Node::Join(nodes) => nodes,
        one => std::slice::from_ref(one),
    }
}

impl<'a> Planner<'a> {
    /// Expected solutions of a node on its own.
    pub(super) fn estimate(&mut self, node: &'a Node) -> Result<Estimate, QueryError> {
        if let Some(e) = self.estimates.get(node) {
            return Ok(e.clone());
        }
        self.limits.check()?;
        let mut estimate = self.estimate_new(node)?;
        if !self.learned.is_empty()
            && let Node::Join(nodes) = without_conditions(node)
        {
            estimate.rows = self.learned.at_least(JoinKey::of(nodes), estimate.rows);
        }
        estimate.rows = bounded(estimate.rows);
        debug_assert!(estimate.vars.is_sorted_by(|a, b| a.var < b.var), "an estimate's variables ascend");
        self.estimates.insert(node, estimate.clone());
        Ok(estimate)
    }

    fn estimate_new(&mut self, node: &'a Node) -> Result<Estimate, QueryError> {
        Ok(match node {
            Node::Unit => Estimate::unit(),
            Node::Pattern(p) => self.pattern(p)?,
            Node::Path { s, path, o, .. } => self.path_estimate(*s, path, *o)?,
            Node::GraphNames(graph) => self.graph_names_estimate(node, *graph),
            Node::Service(service) => self.service_estimate(service),
            Node::Context { row, vars } => self.context_estimate(*row, vars),
            Node::Join(nodes) => {
                let all = nodes.iter().try_fold(Estimate::unit(), |all, node| {
                    Ok::<_, QueryError>(all.join(&self.estimate(node)?))
                })?;
                let rows = self.star_rows(nodes)?.unwrap_or(all.rows);
                Estimate { rows, ..all }
            }
            Node::LeftJoin { left, right, .. } => {
                let left = self.estimate(left)?;
                left.left_join(&self.estimate(right)?)
            }
            Node::Exists { left, .. }
            | Node::Minus { left, .. }
            | Node::Apply { left, kind: ApplyKind::Exists(_), .. } => self.estimate(left)?.scaled(HAS_MATCH),
            // the right side is only planned where it is run
            Node::Apply { left, kind: ApplyKind::Left, .. } => self.estimate(left)?,
            Node::Union(nodes) => {
                let mut sum = Estimate::default();
                for n in nodes {
                    sum.add(&self.estimate(n)?);
                }
                sum
            }
            Node::Filter { inner, conditions } => {
                let mut e = self.estimate(inner)?;
                for c in conditions {
                    let s = self.selectivity_in(c, joined(inner), &e)?;
                    e = e.scaled(s);
                }
                e
            }
            Node::Extend { inner, var, expr } => {
                let mut e = self.estimate(inner)?;
                e.set_computed(*var, expr);
                e
            }
            Node::Values { rows, .. } => self.spread(node, rows.len() as f64, rows.len() as f64),
            Node::Group { inner, keys, aggregates, .. } => self.estimate(inner)?.grouped(keys, aggregates),
            Node::Distinct(inner) => {
                let mut e = self.estimate(inner)?;
                e.rows = e.combinations(&inner.scope().possible).max(e.rows.min(1.0));
                e
            }
            Node::Reduced(inner) | Node::Sort { inner, .. } => self.estimate(inner)?,
            Node::Slice { inner, offset, limit, per } => {
                self.estimate(inner)?.sliced(*offset, *limit, per.is_empty())
            }
            Node::Project { inner, vars } => {
                let mut e = self.estimate(inner)?;
                e.vars.retain(|of| vars.contains(&of.var));
                e
            }
        })
    }

    /// Rows of patterns with one subject, by the sets of predicates that subjects have; `None`
    /// where these do not tell.
    fn star_rows(&mut self, nodes: &[Node]) -> Result<Option<f64>, QueryError> {
        /// Subjects of a predicate by the sets, in those that there are now: more says that the
        /// sets are of other data.
        const OFF: f64 = 2.0;
        let (mut subject, mut predicates, mut rows) = (None, Vec::new(), 1.0);
        for node in nodes {
            let Node::Pattern(p @ Pattern { s: Slot::Var(s), p: Slot::Const(c), .. }) = node else {
                return Ok(None);
            };
            let is_of_star = *subject.get_or_insert(*s) == *s && p.o.var() != Some(*s);
            if !is_of_star || p.triple_term().is_some() || !self.scope.plain {
                return Ok(None);
            }
            let Some(id) = self.statistics.id(*c) else { return Ok(None) };
            let subjects = self.statistics.predicate(id)?.subjects.max(1.0);
            let Some(known) = self.statistics.subjects_with(&[id]) else { return Ok(None) };
            if known.max(1.0) > OFF * subjects || subjects > OFF * known.max(1.0) {
                return Ok(None);
            }
            rows *= self.pattern(p)?.rows / subjects;
            predicates.push(id);
        }
        predicates.sort_unstable();
        predicates.dedup();
        Ok(self.statistics.subjects_with(&predicates).map(|subjects| subjects * rows))
    }

    /// A constant is one of the names or not.
    fn graph_names_estimate(&mut self, node: &Node, graph: Slot) -> Estimate {
        match graph {
            Slot::Const(_) => Estimate::unit(),
            Slot::Var(_) => self.spread(node, GRAPHS_JOINED, GRAPHS_JOINED),
        }
    }

    fn spread(&mut self, node: &Node, rows: f64, distinct: f64) -> Estimate {
        let mut e = Estimate::of_rows(rows);
        for v in node.scope().possible.iter() {
            e.set(v, distinct.min(rows), distinct);
        }
        e
    }

    /// Expected solutions of a pattern.
    pub(super) fn pattern(&mut self, p: &Pattern) -> Result<Estimate, QueryError> {
        let ids = [p.s, p.p, p.o].map(|slot| match slot {
            Slot::Const(c) => Some(self.statistics.id(c)),
            Slot::Var(_) => None,
        });
        // a constant the data does not have
        if ids.contains(&Some(None)) {
            let mut none = Estimate::default();
            p.vars().iter().for_each(|v| none.set(v, 0.0, 1.0));
            return Ok(none);
        }
        if let Some(term) = p.triple_term() {
            return self.triple_terms(p, term, ids.map(Option::flatten));
        }
        let totals = self.statistics.totals();
        let [s, predicate, o] = ids.map(Option::flatten);
        let of = match predicate {
            Some(id) => self.statistics.predicate(id)?,
            None => {
                PredicateStatistics { rows: totals.quads, subjects: totals.subjects, objects: totals.objects }
            }
        };
        let rows = self.pattern_rows(s, predicate, o, of.rows)? as f64;
        let mut e = Estimate::of_rows(rows);
        // a predicate's rows may be of other graphs; distinct values then only bound from above
        if let Slot::Var(v) = p.s {
            let distinct = if o.is_some() { rows } else { of.subjects };
            e.set(v, distinct.min(rows).max(1.0), of.subjects.max(1.0));
        }
        if let Slot::Var(v) = p.o {
            let distinct = if s.is_some() { rows } else { of.objects };
            e.set(v, distinct.min(rows).max(1.0), of.objects.max(1.0));
        }
        if let Slot::Var(v) = p.p {
            e.set(v, totals.predicates.min(rows).max(1.0), totals.predicates.max(1.0));
        }
        if let GraphSlot::Named(Slot::Var(v)) = p.g {
            e.set(v, rows.sqrt().max(1.0), rows.sqrt().max(1.0));
        }
        Ok(e)
    }

    /// Triple terms with these parts, exactly counted.
    fn triple_terms(
        &mut self,
        p: &Pattern,
        term: Slot,
        [s, predicate, o]: [Option<TermId>; 3],
    ) -> Result<Estimate, QueryError> {
        let (index, prefix) = match (s, predicate, o) {
            (Some(s), Some(p), Some(o)) => (TripleIndex::Spo, vec![s, p, o]),
            (Some(s), Some(p), None) => (TripleIndex::Spo, vec![s, p]),
            (Some(s), None, Some(o)) => (TripleIndex::Osp, vec![o, s]),
            (None, Some(p), Some(o)) => (TripleIndex::Pos, vec![p, o]),
            (Some(s), None, None) => (TripleIndex::Spo, vec![s]),
            (None, Some(p), None) => (TripleIndex::Pos, vec![p]),
            (None, None, Some(o)) => (TripleIndex::Osp, vec![o]),
            (None, None, None) => (TripleIndex::Id, Vec::new()),
        };
        let rows = self.statistics.count(AnyIndex::Triples(index), &prefix)? as f64;
        let [terms, subjects, predicates, objects] = self.statistics.totals().triple_terms;
        let mut e = Estimate::of_rows(rows);
        for (slot, of_all) in [(term, terms), (p.s, subjects), (p.p, predicates), (p.o, objects)] {
            if let Slot::Var(v) = slot {
                e.set(v, of_all.min(rows).max(1.0), of_all.max(1.0));
            }
        }
        Ok(e)
    }

    fn pattern_rows(
        &mut self,
        s: Option<TermId>,
        p: Option<TermId>,
        o: Option<TermId>,
        all: f64,
    ) -> Result<u64, QueryError> {
        let count = |t: &mut Self, index: Index, prefix: &[TermId]| t.statistics.count(index.into(), prefix);
        match (s, p, o) {
            (Some(s), Some(p), Some(o)) => count(self, Index::Psog, &[p, s, o]),
            (Some(s), Some(p), None) => count(self, Index::Psog, &[p, s]),
            (None, Some(p), Some(o)) => count(self, Index::Posg, &[p, o]),
            (None, Some(p), None) => count(self, Index::Psog, &[p]),
            // pairs, of which most have one value
            (Some(s), None, None) => Ok(count(self, Index::Sp, &[s])? * VALUES_OF_PAIR),
            (Some(_), None, Some(_)) => Ok(1),
            (None, None, Some(o)) => {
                let pairs = count(self, Index::Op, &[o])?;
                Ok(pairs * SUBJECTS_OF_PAIR)
            }
            (None, None, None) => Ok(all as u64),
        }
    }

    /// The share of rows that a condition lets pass.
    pub(super) fn selectivity(&mut self, condition: &Expression, over: &[Node]) -> Result<f64, QueryError> {
        if let Some((v, op, c)) = self.comparison(condition)
            && let Some((p, rows)) = self.object_of(v, over)?
            && let Some(n) = self.statistics.count_compared(p, op, c)?
        {
            return Ok((n as f64 / rows.max(1.0)).clamp(LEAST_SHARE, 1.0));
        }
        Ok(match condition {
            Expression::And(list) => {
                let mut all = 1.0;
                for part in list {
                    all *= self.selectivity(part, over)?;
                }
                all
            }
            Expression::Or(list) => {
                let mut any = 0.0;
                for part in list {
                    any += self.selectivity(part, over)?;
                }
                any.min(1.0)
            }
            other => typical_selectivity(other),
        })
    }

    /// The share of the rows of an estimate that a condition lets pass.
    pub(super) fn selectivity_in(
        &mut self,
        condition: &Expression,
        over: &[Node],
        of: &Estimate,
    ) -> Result<f64, QueryError> {
        Ok(match condition {
            Expression::In(value, members) => {
                let distinct = of.distinct_values(value);
                (members.len() as f64 / distinct.max(1.0)).clamp(LEAST_SHARE, 1.0)
            }
            Expression::Binary(BinaryOperator::Equal, pair) if has_keys(pair, over) => 1.0,
            Expression::Binary(BinaryOperator::Equal, pair) if pair.iter().all(is_variable) => {
                let [a, b] = &**pair;
                1.0 / of.distinct_values(a).max(of.distinct_values(b))
            }
            Expression::And(list) => {
                let mut all = 1.0;
                for part in list {
                    all *= self.selectivity_in(part, over, of)?;
                }
                all
            }
            other => self.selectivity(other, over)?,
        })
    }

    /// Whether the rows that pass a condition are counted in an index.
    pub(super) fn is_counted(&mut self, condition: &Expression, over: &[Node]) -> Result<bool, QueryError> {
        let Some((v, op, c)) = self.comparison(condition) else { return Ok(false) };
        let Some((p, _)) = self.object_of(v, over)? else { return Ok(false) };
        Ok(self.statistics.count_compared(p, op, c)?.is_some())
    }

    /// `?v op constant`, either way round.
    pub(super) fn comparison(&self, e: &Expression) -> Option<(Var, CompareOp, Const)> {
        let Expression::Binary(operator, pair) = e else { return None };
        let (op, flipped) = compare_op(*operator)?;
        match &**pair {
            [Expression::Var(v), constant] => Some((*v, op, self.literal(constant)?)),
            [constant, Expression::Var(v)] => Some((*v, flipped, self.literal(constant)?)),
            _ => None,
        }
    }

    /// The number of a constant that is no IRI.
    fn literal(&self, e: &Expression) -> Option<Const> {
        if matches!(e, Expression::Const(GroundTerm::Iri(_)) | Expression::Param(Param { is_iri: true, .. }))
        {
            return None;
        }
        let term = e.constant()?;
        self.algebra.consts.iter().position(|c| *c == term).map(|i| Const(i as u32))
    }

    /// The constant predicate whose object a variable is, in some pattern of a join, and that
    /// predicate's rows.
    fn object_of(&mut self, v: Var, over: &[Node]) -> Result<Option<(TermId, f64)>, QueryError> {
        for node in over {
            if let Node::Pattern(pattern @ Pattern { p: Slot::Const(p), o: Slot::Var(o), .. }) = node
                && *o == v
                && pattern.triple_term().is_none()
                && let Some(id) = self.statistics.id(*p)
            {
                return Ok(Some((id, self.statistics.predicate(id)?.rows)));
            }
        }
        Ok(None)
    }
}

fn is_variable(e: &Expression) -> bool {
    matches!(e, Expression::Var(_))
}

/// Whether the sides of an equality are keys of nodes that have met on them.
fn has_keys(sides: &[Expression; 2], nodes: &[Node]) -> bool {
    let is_key = |mut node: &Node, side: &Expression| loop {
        node = match node {
            Node::Extend { expr: Expression::Key(of), .. } if **of == *side => return true,
            Node::Filter { inner, .. } | Node::Extend { inner, .. } => inner,
            _ => return false,
        };
    };
    sides.iter().all(|side| nodes.iter().any(|node| is_key(node, side)))
}

fn is_comparison(operator: BinaryOperator) -> bool {
    use BinaryOperator as B;
    matches!(operator, B::Equal | B::Less | B::LessOrEqual | B::Greater | B::GreaterOrEqual)
}

/// Most different values of a function that has few.
fn of_function(function: Function) -> f64 {
    use Function as F;
    match function {
        F::IsIri | F::IsBlank | F::IsLiteral | F::IsNumeric | F::SameTerm => 2.0,
        F::Contains | F::StrStarts | F::StrEnds | F::Regex | F::LangMatches => 2.0,
        F::Lang | F::Datatype => LANGUAGES,
        F::Year => YEARS,
        F::Month => 12.0,
        F::Day => 31.0,
        F::Hours => 24.0,
        F::Minutes | F::Seconds => 60.0,
        F::StrLen => LENGTHS,
        _ => f64::INFINITY,
    }
}

/// The share of rows that a condition of its kind lets pass.
fn typical_selectivity(condition: &Expression) -> f64 {
    use BinaryOperator as B;
    match condition {
        Expression::Binary(B::Equal, _) | Expression::Call(Function::SameTerm, _) => EQUAL,
        Expression::Binary(B::Less | B::LessOrEqual | B::Greater | B::GreaterOrEqual, _) => ORDERED,
        Expression::Unary(UnaryOperator::Not, inner)
            if matches!(
                **inner,
                Expression::Binary(B::Equal, _) | Expression::Call(Function::SameTerm, _)
            ) =>
        {
            1.0 - EQUAL
        }
        Expression::Bound(_) => BOUND,
        Expression::Call(Function::If | Function::Coalesce, _) => CONDITION,
        Expression::Call(..) | Expression::Custom(..) => FUNCTION,
        _ => CONDITION,
    }
}
