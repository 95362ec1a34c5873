//! Groups of a product without some of its pairs ([`Op::GroupWithout`]):
//! `{ A . B FILTER NOT EXISTS { E } }`, where A and B share no variable, E shares one with each of
//! them, the keys are of A, and the arguments of the aggregates of B.
//!
//! 1. The left side falls into factors that share no variable. What is written over a product, a
//!    condition, an OPTIONAL or the like, goes to the one factor that has its variables.
//! 2. B is the factor of E's one variable, with those that arguments read; A is the rest.
//! 3. The groups are those of the product where that has more rows than E, A and B together.
//!
//! Only where nothing flows into the group, and where equal solutions have equal values.

use super::block::demand;
use super::{Result, Subplan, Want};
use crate::algebra::translate::join;
use crate::algebra::{AggregateExpression, ExistsKind, Expression, GroupFunction, Node, Var, VarSet};
use crate::optimise::Planner;
use crate::plan::{Copies, Op};

/// A part of a product.
struct Factor {
    node: Node,
    vars: VarSet,
}

/// A product without some of its pairs.
pub(super) struct ProductWithout<'a> {
    left: &'a Node,
    right: &'a Node,
    pairs: &'a Node,
    /// the variables of the pairs: of the left and of the right side
    on: (Var, Var),
    /// expected work beside that of the three
    cost: f64,
}

impl<'a> Planner<'a> {
    /// The product without pairs that a group's solutions are, where it is better not made.
    pub(super) fn product_without(
        &mut self,
        inner: &'a Node,
        keys: &[Var],
        aggregates: &[AggregateExpression],
    ) -> Result<Option<ProductWithout<'a>>> {
        if self.copies_differ || !aggregates.iter().all(is_mergeable) {
            return Ok(None);
        }
        let Some((all, right, conditions)) = anti_join(inner) else { return Ok(None) };
        let (of_all, of_pairs) = (all.scope(), right.scope());
        let shared = of_all.possible.intersection(&of_pairs.possible);
        let both = of_all.certain.intersection(&of_pairs.certain);
        let is_own = |condition: &Expression| condition.vars().is_subset(&of_pairs.possible);
        let ends: Vec<Var> = shared.iter().collect();
        let [a, b] = ends[..] else { return Ok(None) };
        if !shared.is_subset(&both) || !conditions.iter().all(is_own) {
            return Ok(None);
        }
        let Some(mut factors) = factors(all) else { return Ok(None) };
        let reads = aggregates.iter().filter_map(|a| a.argument.as_ref());
        let reads = reads.fold(VarSet::default(), |all, argument| all.union(&argument.vars()));
        let keys: VarSet = keys.iter().copied().collect();
        let is_left = |f: &Factor, x: Var| f.vars.contains(x) || f.vars.intersects(&keys);
        let is_right = |f: &Factor, y: Var| f.vars.contains(y) || f.vars.intersects(&reads);
        let are_apart = |(x, y): &(Var, Var)| !factors.iter().any(|f| is_left(f, *x) && is_right(f, *y));
        let Some((x, y)) = [(a, b), (b, a)].into_iter().find(are_apart) else { return Ok(None) };
        let of_right: Vec<Factor> = factors.extract_if(.., |f| is_right(f, y)).collect();
        let pairs = if conditions.is_empty() {
            right
        } else {
            self.made.keep(Node::Filter { inner: Box::new(right.clone()), conditions: conditions.to_vec() })
        };
        let [left, right] = [factors, of_right].map(|list| self.made.keep(product(list)));
        let left_rows = self.estimate(left)?.rows;
        let (right_rows, pair_rows) = (self.estimate(right)?.rows, self.estimate(pairs)?.rows);
        let steps = pair_rows * (right_rows + 2.0).log2();
        let cost = (left_rows + right_rows + 2.0 * pair_rows) * self.costs.hash_row + steps * self.costs.row;
        let of_product = left_rows * right_rows * (self.costs.row + self.costs.hash_row);
        Ok((cost < of_product).then_some(ProductWithout { left, right, pairs, on: (x, y), cost }))
    }

    /// The groups of a product without pairs; the aggregates are put out as `results`.
    pub(super) fn group_without(
        &mut self,
        node: &'a Node,
        product: &ProductWithout<'a>,
        keys: &[Var],
        results: &[Var],
        mut aggregates: Vec<AggregateExpression>,
    ) -> Result<Subplan> {
        let ProductWithout { left, right, pairs, on: (x, y), cost } = *product;
        let copies = aggregates.iter().map(demand).max().unwrap_or(Copies::Merge);
        let reads = aggregates.iter().filter_map(|a| a.argument.as_ref());
        let of_right: VarSet = reads.fold([y].into_iter().collect(), |all, e| all.union(&e.vars()));
        let of_left: VarSet = keys.iter().copied().chain([x]).collect();
        let wants = [
            (left, of_left, copies),
            (right, of_right, copies),
            (pairs, [x, y].into_iter().collect(), Copies::Merge),
        ];
        let before = std::mem::replace(&mut self.compared, true);
        let built = wants.map(|(node, vars, copies)| self.lower(node, None, &Want::new(vars, copies)));
        self.compared = before;
        let [left, right, pairs] = built;
        let right = self.texts_below(right?, &mut aggregates);
        let (right, left) = (self.with_columns(right, &[y]), self.with_columns(left?, &of_keys(keys, x)));
        let pairs = self.exactly(pairs?, &[x, y]);
        let mut estimate = self.estimate(node)?;
        estimate.rows = estimate.rows.min(left.estimate.rows).max(1.0);
        let cost = left.node.cost + right.node.cost + pairs.node.cost + cost;
        let vars: Vec<Var> = keys.iter().chain(results).copied().collect();
        let op = Op::GroupWithout {
            on: (left.col(x), right.col(y)),
            keys: keys.iter().map(|k| left.col(*k)).collect(),
            left_weights: left.cols(&left.weights),
            right_weights: right.cols(&right.weights),
            aggregates,
            stored: self.compared,
            right: Box::new(right.node),
            pairs: Box::new(pairs.node),
            left: Box::new(left.node),
        };
        Ok(self.make(op, vars, estimate, node.scope().certain, cost))
    }

    /// With columns for variables that nothing may bind.
    pub(super) fn with_columns(&mut self, built: Subplan, vars: &[Var]) -> Subplan {
        let mut cols: Vec<Var> = built.node.vars.clone();
        cols.extend(vars.iter().filter(|v| built.node.col(**v).is_none()));
        self.exactly(built, &cols)
    }
}

fn of_keys(keys: &[Var], x: Var) -> Vec<Var> {
    let is_key = keys.contains(&x);
    keys.iter().copied().chain((!is_key).then_some(x)).collect()
}

/// Whether an aggregate of two groups together is known from those of each.
fn is_mergeable(a: &AggregateExpression) -> bool {
    match a.function {
        GroupFunction::Min | GroupFunction::Max | GroupFunction::Sample => true,
        GroupFunction::CountRows | GroupFunction::Count | GroupFunction::Sum | GroupFunction::Avg => {
            !a.is_distinct
        }
        GroupFunction::Concat(_) => false,
    }
}

/// The two sides of an anti-join, and its conditions.
fn anti_join(node: &Node) -> Option<(&Node, &Node, &[Expression])> {
    match node {
        Node::Exists { left, right, conditions, kind: ExistsKind::Anti } => Some((left, right, conditions)),
        Node::Minus { left, right, apart } if apart.is_empty() => Some((left, right, &[])),
        _ => None,
    }
}

fn product(factors: Vec<Factor>) -> Node {
    join(factors.into_iter().map(|factor| factor.node).collect())
}

/// The parts of a node that share no variable, whose product it is; `None`: something in it reads
/// several of them, or none.
fn factors(node: &Node) -> Option<Vec<Factor>> {
    match node {
        Node::Join(nodes) => {
            let mut all: Vec<Factor> = Vec::new();
            for factor in nodes.iter().map(factors).collect::<Option<Vec<_>>>()?.into_iter().flatten() {
                let mut vars = factor.vars;
                // the order of the text is kept
                let connected = all.extract_if(.., |other| other.vars.intersects(&vars));
                let mut nodes = Vec::new();
                let mut joined = VarSet::default();
                for other in connected {
                    joined = joined.union(&other.vars);
                    nodes.push(other.node);
                }
                nodes.push(factor.node);
                vars = vars.union(&joined);
                all.push(Factor { node: join(nodes), vars });
            }
            Some(all)
        }
        Node::Filter { inner, conditions } => {
            let mut all = factors(inner)?;
            for condition in conditions {
                let conditions = vec![condition.clone()];
                wrap(&mut all, &condition.vars(), |inner| Node::Filter { inner, conditions })?;
            }
            Some(all)
        }
        Node::LeftJoin { left, right, conditions } => {
            let mut all = factors(left)?;
            let binds = right.scope().possible;
            let vars = conditions.iter().fold(binds.clone(), |all, c| all.union(&c.vars()));
            let (right, conditions) = (right.clone(), conditions.clone());
            let factor = wrap(&mut all, &vars, |left| Node::LeftJoin { left, right, conditions })?;
            factor.vars = factor.vars.union(&binds);
            Some(all)
        }
        Node::Exists { left, right, conditions, kind: kind @ (ExistsKind::Semi | ExistsKind::Anti) } => {
            let mut all = factors(left)?;
            let vars = conditions.iter().fold(right.scope().possible, |all, c| all.union(&c.vars()));
            let (right, conditions, kind) = (right.clone(), conditions.clone(), *kind);
            wrap(&mut all, &vars, |left| Node::Exists { left, right, conditions, kind })?;
            Some(all)
        }
        _ => Some(vec![Factor { node: node.clone(), vars: node.scope().possible }]),
    }
}

/// Puts an operator over the one factor that has some of these variables; `None`: there is none, or
/// are several.
fn wrap<'f>(
    factors: &'f mut [Factor],
    vars: &VarSet,
    over: impl FnOnce(Box<Node>) -> Node,
) -> Option<&'f mut Factor> {
    let mut reached = factors.iter_mut().filter(|factor| factor.vars.intersects(vars));
    let factor = reached.next()?;
    if reached.next().is_some() {
        return None;
    }
    let inner = std::mem::replace(&mut factor.node, Node::Unit);
    factor.node = over(Box::new(inner));
    Some(factor)
}
