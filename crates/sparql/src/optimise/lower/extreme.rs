//! EXISTS of rows that are compared by order with those of the left side, and share nothing else
//! with them: the first one in that order is tried before all, alone. Hardly a row that has a match
//! does not match that one. It is one of them, so nothing else changes: values of kinds that cannot
//! be compared are left to the rows that come after it.

use crate::algebra::translate::join;
use crate::algebra::{BinaryOperator, Expression, Node, SortKey, Var, VarSet};
use crate::optimise::Planner;
use crate::plan::JoinKind;

/// For fewer rows of the left side, all of the right are read as soon as the first is found.
const FEW_ROWS: f64 = 16.0;

impl<'a> Planner<'a> {
    /// A right side that has its first row in the order of the comparison before all of them;
    /// itself where there is no such order.
    pub(super) fn extreme_first(
        &mut self,
        right: &'a Node,
        row: Var,
        kind: JoinKind,
        left_rows: f64,
    ) -> &'a Node {
        if matches!(kind, JoinKind::Exists(_))
            && left_rows >= FEW_ROWS
            && let Some(first) = first_row(right, row)
        {
            return self.made.keep(Node::Union(vec![first, right.clone()]));
        }
        right
    }
}

/// The rows of the context with the first of the others.
fn first_row(right: &Node, row: Var) -> Option<Node> {
    let Node::Filter { inner, conditions } = right else { return None };
    let Node::Join(nodes) = &**inner else { return None };
    let (context, others): (Vec<&Node>, Vec<&Node>) =
        nodes.iter().partition(|node| matches!(node, Node::Context { row: of, .. } if *of == row));
    let (&[context], false) = (&context[..], others.is_empty()) else { return None };
    if !others.iter().all(|node| may_be_read_twice(node)) {
        return None;
    }
    let outer = context.scope().possible;
    let others = join(others.into_iter().cloned().collect());
    let scope = others.scope();
    if scope.possible.intersects(&outer) {
        return None;
    }
    let key = conditions.iter().find_map(|condition| order_of(condition, &outer, &scope.certain))?;
    let read = conditions.iter().fold(VarSet::default(), |all, condition| all.union(&condition.vars()));
    let own = conditions.iter().filter(|condition| condition.vars().is_subset(&scope.possible)).cloned();
    let own: Vec<Expression> = own.collect();
    let of_own =
        if own.is_empty() { others } else { Node::Filter { inner: Box::new(others), conditions: own } };
    let sorted = Node::Sort { inner: Box::new(of_own), keys: vec![key] };
    let vars = read.intersection(&scope.possible).iter().collect();
    let shown = Node::Project { inner: Box::new(sorted), vars };
    let first = Node::Slice { inner: Box::new(shown), offset: 0, limit: Some(1), per: Vec::new() };
    let inner = Box::new(join(vec![context.clone(), first]));
    Some(Node::Filter { inner, conditions: conditions.clone() })
}

/// The order in which the first of some rows is the likeliest to fulfil a condition.
fn order_of(condition: &Expression, outer: &VarSet, inner: &VarSet) -> Option<SortKey> {
    use BinaryOperator as B;
    let Expression::Binary(operator, sides) = condition else { return None };
    let is_of = |side: &Expression, vars: &VarSet| {
        let read = side.vars();
        !read.is_empty() && read.is_subset(vars)
    };
    let (expr, is_left) = match &**sides {
        [left, right] if is_of(left, inner) && is_of(right, outer) => (left, true),
        [left, right] if is_of(left, outer) && is_of(right, inner) => (right, false),
        _ => return None,
    };
    let descending = match operator {
        B::Greater | B::GreaterOrEqual => is_left,
        B::Less | B::LessOrEqual => !is_left,
        _ => return None,
    };
    Some(SortKey { expr: expr.clone(), descending })
}

/// Whether a node gives the same rows each time, of this database and at a bounded price.
fn may_be_read_twice(node: &Node) -> bool {
    match node {
        Node::Pattern(_) | Node::Path { .. } | Node::GraphNames(_) | Node::Values { .. } => true,
        Node::Join(nodes) => nodes.iter().all(may_be_read_twice),
        Node::Filter { inner, .. } | Node::Extend { inner, .. } => may_be_read_twice(inner),
        _ => false,
    }
}
