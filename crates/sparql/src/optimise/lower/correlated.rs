//! Right sides that are evaluated for the rows of the left, their context ([`Node::Apply`],
//! [`Op::Context`]).
//!
//! The right side is planned like any other: its contexts are a table, of which only the number
//! of rows can be foreseen. Its rows come with their context's number, by which they meet the
//! left ones.

use super::leaf::expect;
use super::nested::{Seeding, from_right, want_of_right};
use super::{Result, Subplan, Want, seeded};
use crate::algebra::translate::join;
use crate::algebra::{ApplyKind, BinaryOperator, ContextVar, ExistsKind, Expression, Node, Var, VarSet};
use crate::optimise::{Estimate, OfVariable, Planner};
use crate::plan::{JoinKind, Op, children};

impl<'a> Planner<'a> {
    /// Runs `right` for each batch of `left`, which is its context.
    pub(super) fn correlated(
        &mut self,
        left: Subplan,
        right: &'a Node,
        row: Var,
        vars: &VarSet,
        kind: ApplyKind,
        want: &Want,
    ) -> Result<Subplan> {
        let seed = left.cols(vars);
        let mut seed_vars = left.pick(&seed);
        seed_vars.push(row);
        let mut estimate = left.estimate.clone();
        estimate.vars.retain(|v| vars.contains(v.var));
        estimate.sample = None;
        estimate.rows = estimate.combinations(vars).max(1.0);
        let kind = match kind {
            ApplyKind::Left => JoinKind::Left,
            ApplyKind::Exists(kind) => JoinKind::Exists(kind),
        };
        let compared = compared(right);
        let right = self.extreme_first(right, row, kind, left.estimate.rows);
        let from_right = from_right(&left, right, kind, &want.vars);
        let mut right_need = from_right.clone();
        right_need.insert(row);
        self.contexts.push((row, seed_vars, estimate));
        let built = self.lower(right, None, &want_of_right(right_need, kind, want));
        self.contexts.pop();
        assert!(self.contexts.iter().all(|context| context.0 != row), "a context ends with its right side");
        let built = built?;
        let Some(col_of_row) = built.node.col(row) else {
            // the right side cannot give anything
            return Ok(self.unmatched(left, kind, &want.vars));
        };
        let seeding = Seeding { seed, row: col_of_row, row_var: row, context: Some(row) };
        // of rows above which none may be, hardly more than one of each kind
        let extremes = match (kind, compared) {
            (JoinKind::Exists(ExistsKind::Anti), Some(compared)) => {
                Some(left.estimate.combinations(&vars.minus(&compared)).max(1.0))
            }
            _ => None,
        };
        let mut built = self.nested_op(left, built, seeding, kind, &from_right, &want.vars);
        if let Some(rows) = extremes {
            let rows = rows.min(built.estimate.rows);
            let estimate = Estimate { rows, sample: None, ..built.estimate.clone() };
            expect(&mut built, estimate);
        }
        Ok(built)
    }

    /// An OPTIONAL whose conditions read what the right side may leave open and the left may
    /// bind: they are asked of the pair.
    pub(super) fn left_join_of_pairs(
        &mut self,
        left: &'a Node,
        right: &'a Node,
        conditions: &[Expression],
        input: Option<Subplan>,
        want: &Want,
    ) -> Result<Subplan> {
        let reads = right.scope().possible.union(&self.reads(conditions));
        let scope = left.scope();
        let vars = scope.possible.intersection(&reads);
        let row = self.fresh();
        let of_left = |v: Var| ContextVar { of: v, here: v, certain: scope.certain.contains(v) };
        let context = Node::Context { row, vars: vars.iter().map(of_left).collect() };
        let pairs = Box::new(join(vec![context, right.clone()]));
        let pairs = self.made.keep(Node::Filter { inner: pairs, conditions: conditions.to_vec() });
        let left = self.lower(left, input, &want.with(&reads))?;
        self.correlated(left, pairs, row, &vars, ApplyKind::Left, want)
    }

    pub(super) fn context(
        &mut self,
        row: Var,
        vars: &[ContextVar],
        current: Option<Subplan>,
        live: &VarSet,
    ) -> Subplan {
        let (_, seed, _) =
            self.contexts.iter().rfind(|c| c.0 == row).expect("inside the right side of its node");
        let col = |v: Var| seed.iter().position(|s| *s == v).map(|c| c as u16);
        let mut cols = vec![col(row)];
        cols.extend(vars.iter().map(|v| col(v.of)));
        let certain = vars.iter().filter(|v| v.certain).map(|v| v.here).chain([row]).collect();
        let estimate = self.context_estimate(row, vars);
        let names = [row].into_iter().chain(vars.iter().map(|v| v.here)).collect();
        let built = self.make(Op::Context { row, cols }, names, estimate, certain, self.costs.operator);
        match current {
            Some(current) => self.hash(current, built, JoinKind::Inner, live),
            None => self.trim(built, live),
        }
    }

    /// How many rows a context has.
    pub(in crate::optimise) fn context_estimate(&self, row: Var, vars: &[ContextVar]) -> Estimate {
        let Some((_, _, all)) = self.contexts.iter().rfind(|c| c.0 == row) else {
            return Estimate::unit();
        };
        let vars_of_row = vec![OfVariable::whole(row, all.rows)];
        let mut estimate = Estimate { rows: all.rows, vars: vars_of_row, sample: None };
        for v in vars {
            let of = all.find(v.of).copied().unwrap_or_else(|| OfVariable::whole(v.here, all.rows));
            estimate.vars.push(OfVariable { var: v.here, ..of });
        }
        estimate.vars.sort_unstable_by_key(|v| v.var);
        estimate.vars.dedup_by_key(|v| v.var);
        estimate
    }
}

/// The outer variables that a right side compares with its own by order; `None`: none.
fn compared(right: &Node) -> Option<VarSet> {
    use BinaryOperator as B;
    let (mut outer, mut ordered) = (Vec::new(), Vec::new());
    let mut open = vec![right];
    while let Some(node) = open.pop() {
        match node {
            Node::Join(nodes) => open.extend(nodes),
            Node::Context { vars, .. } => outer.extend(vars.iter().map(|v| (v.here, v.of))),
            Node::Filter { inner, conditions } => {
                open.push(inner);
                ordered.extend(conditions.iter().filter_map(|condition| match condition {
                    Expression::Binary(B::Less | B::LessOrEqual | B::Greater | B::GreaterOrEqual, pair) => {
                        Some(pair)
                    }
                    _ => None,
                }));
            }
            _ => {}
        }
    }
    let of = |side: &Expression| match side {
        Expression::Var(v) => outer.iter().find(|(here, _)| here == v).map(|(_, of)| *of),
        _ => None,
    };
    let compared: VarSet = ordered.iter().flat_map(|pair| pair.iter().filter_map(of)).collect();
    (!compared.is_empty()).then_some(compared)
}

/// The contexts an operator reads that come from further up.
pub(super) fn contexts(op: &Op) -> VarSet {
    let mut set = children(op).iter().fold(VarSet::default(), |a, c| a.union(&c.contexts));
    match op {
        Op::Context { row, .. } => set.insert(*row),
        Op::Nested { context: Some(row), .. } => set.remove(*row),
        _ => {}
    }
    set
}

/// Whether an inner join had better build its table on the left: on the smaller side, but
/// rather on one that stays the same from seed to seed and from context to context.
pub(super) fn swaps(left: &Subplan, right: &Subplan) -> bool {
    match (left.node.contexts.is_empty(), right.node.contexts.is_empty()) {
        (true, false) => !seeded(&left.node),
        (false, true) => false,
        _ => right.estimate.rows > left.estimate.rows && !seeded(&left.node),
    }
}
