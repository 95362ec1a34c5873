//! Joins on computed keys: parts of a join that share no variable, and an equality of what is
//! computed from each of them, `FILTER(STR(?a) = STR(?b))`.
//!
//! 1. The nodes of a join fall into parts that share variables.
//! 2. An equality between two parts gives each of them one more column, the key of its side, with
//!    the same new variable; solutions without a key go.
//! 3. The parts, each a join of its own with the conditions that it alone decides, are joined on
//!    the new variables, which makes it hash joins. The equalities stay as conditions: unequal
//!    values may share a key.
//!
//! Only where nothing flows into the join: an input may connect the parts.

use crate::algebra::join_key::{self, Keyed};
use crate::algebra::translate::join;
use crate::algebra::{Expression, Node, Var, VarSet};
use crate::optimise::Planner;

/// Nodes that share variables, as they will be joined.
struct JoinPart {
    nodes: Vec<Node>,
    vars: VarSet,
    /// new columns
    keys: Vec<(Var, Expression)>,
}

impl<'a> Planner<'a> {
    /// The parts of a join with keys, and the conditions that are left; None where there is no
    /// such equality.
    pub(super) fn keyed(
        &mut self,
        nodes: &[Node],
        conditions: &[Expression],
    ) -> Option<(&'a [Node], Vec<Expression>)> {
        if !conditions.iter().any(join_key::is_equality) {
            return None;
        }
        let scopes: Vec<VarSet> = nodes.iter().map(|node| node.scope().possible).collect();
        let kind = |e: &Expression| kind_in(nodes, &scopes, e);
        let equalities: Vec<[&Expression; 2]> =
            conditions.iter().filter_map(|c| join_key::sides(c, kind)).collect();
        if equalities.is_empty() {
            return None;
        }
        let mut parts = parts(nodes, scopes);
        let mut is_keyed = false;
        for sides in equalities {
            let of_sides = sides.map(|side| part_of(&parts, &side.vars()));
            let [Some(a), Some(b)] = of_sides else { continue };
            if a == b {
                continue;
            }
            let key = self.fresh();
            for (part, side) in [a, b].into_iter().zip(sides) {
                parts[part].keys.push((key, Expression::Key(Box::new(side.clone()))));
            }
            is_keyed = true;
        }
        if !is_keyed {
            return None;
        }
        let mut left = Vec::new();
        let mut own: Vec<Vec<Expression>> = parts.iter().map(|_| Vec::new()).collect();
        for condition in conditions {
            match part_of(&parts, &condition.vars()) {
                Some(part) => own[part].push(condition.clone()),
                None => left.push(condition.clone()),
            }
        }
        let joined = parts.into_iter().zip(own).map(|(part, own)| part.into_node(own)).collect();
        match self.made.keep(Node::Join(joined)) {
            Node::Join(nodes) => Some((nodes, left)),
            _ => unreachable!("a join was kept"),
        }
    }
}

impl JoinPart {
    fn into_node(self, conditions: Vec<Expression>) -> Node {
        let mut node = filtered(join(self.nodes), conditions);
        let bound = self.keys.iter().map(|(var, _)| Expression::Bound(*var)).collect();
        for (var, expr) in self.keys {
            node = Node::Extend { inner: Box::new(node), var, expr };
        }
        filtered(node, bound)
    }
}

fn filtered(node: Node, conditions: Vec<Expression>) -> Node {
    if conditions.is_empty() { node } else { Node::Filter { inner: Box::new(node), conditions } }
}

/// Nodes grouped by the variables that they share, directly or by others.
fn parts(nodes: &[Node], scopes: Vec<VarSet>) -> Vec<JoinPart> {
    let mut parts: Vec<JoinPart> = Vec::new();
    for (node, vars) in nodes.iter().zip(scopes) {
        let mut part = JoinPart { nodes: Vec::new(), vars: vars.clone(), keys: Vec::new() };
        // the order of the text is kept
        for connected in parts.extract_if(.., |other| other.vars.intersects(&vars)) {
            part.nodes.extend(connected.nodes);
            part.vars = part.vars.union(&connected.vars);
        }
        part.nodes.push(node.clone());
        parts.push(part);
    }
    parts
}

/// The part that has all of these variables, of which there is at least one.
fn part_of(parts: &[JoinPart], vars: &VarSet) -> Option<usize> {
    parts.iter().position(|part| !vars.is_empty() && vars.is_subset(&part.vars))
}

fn kind_in(nodes: &[Node], scopes: &[VarSet], e: &Expression) -> Option<Keyed> {
    let defined = |v: Var| {
        let mut binding = nodes.iter().zip(scopes).filter(|(_, scope)| scope.contains(v));
        let (only, _) = binding.next()?;
        let expr = if binding.next().is_none() { join_key::definition(only, v)? } else { return None };
        // what it is made of in turn is of no matter
        join_key::kind(expr, &|_| None)
    };
    join_key::kind(e, &defined)
}
