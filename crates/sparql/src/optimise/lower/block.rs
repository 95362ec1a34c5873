//! Operators that take their whole input: GROUP BY, ORDER BY, OFFSET and LIMIT, DISTINCT.

use super::{Result, Subplan, Want};
use crate::algebra::{AggregateExpression, Expression, GroupFunction, Node, SortKey, Var, VarSet};
use crate::optimise::{Estimate, Planner};
use crate::plan::{Access, Copies, JoinKind, Op, PlanNode};

/// Sorting a row costs as much as putting it into so many hash tables.
const SORT_HASHES: f64 = 2.0;

/// A LIMIT up to which equal rows are sorted as one.
const MOST_REPEATED: u64 = 1000;

impl<'a> Planner<'a> {
    /// An operator that takes its whole input before it gives a row, on its own.
    pub(super) fn block(&mut self, node: &'a Node, want: &Want) -> Result<Subplan> {
        let need = &want.vars;
        match node {
            Node::Distinct(inner) => {
                let scope = inner.scope().possible;
                let keep = if want.copies == Copies::Merge { scope.intersection(need) } else { scope };
                let built = self.lower(inner, None, &Want::new(keep, Copies::Merge))?;
                let built = self.distinct(built, false);
                Ok(self.trim(built, need))
            }
            Node::Sort { inner, keys } => self.sort(inner, keys, None, need),
            Node::Slice { inner, offset, limit, per } => self.slice(inner, *offset, *limit, per, need),
            Node::Group { inner, keys, aggregates, visible } => {
                self.group(node, inner, keys, aggregates, visible, need)
            }
            _ => self.lower(node, None, want),
        }
    }

    /// OFFSET and LIMIT, of the rows of each combination of `per`. Over a sort, that keeps no
    /// more rows than it must.
    fn slice(
        &mut self,
        inner: &'a Node,
        offset: u64,
        limit: Option<u64>,
        per: &[Var],
        need: &VarSet,
    ) -> Result<Subplan> {
        let most = limit.filter(|_| per.is_empty()).map(|l| l.saturating_add(offset));
        let need = &need.union(&per.iter().copied().collect());
        let built = match (sorted(inner), most) {
            (Some((inner, keys)), most) => self.sort(inner, keys, most, need)?,
            (None, most) => {
                let want = Want::new(need.intersection(&inner.scope().possible), Copies::Count);
                let built = self.lower(inner, None, &want)?;
                match most {
                    Some(most) => Subplan { node: self.limited(built.node, most), ..built },
                    None => built,
                }
            }
        };
        let estimate = built.estimate.clone().sliced(offset, limit, per.is_empty());
        let (vars, certain, cost) = (built.node.vars.clone(), built.certain.clone(), built.node.cost);
        let per = per.iter().filter_map(|v| built.node.col(*v)).collect();
        let built = self.make(
            Op::Slice { input: Box::new(built.node), offset, limit, per },
            vars,
            estimate,
            certain,
            cost,
        );
        Ok(self.trim(built, need))
    }

    /// A plan of which only so many rows are asked for: of a product, each side needs no more.
    fn limited(&mut self, node: PlanNode, most: u64) -> PlanNode {
        let PlanNode { op, vars, .. } = node;
        let op = match op {
            Op::Hash { left, right, on, loose, apart, kind: JoinKind::Inner, keep_left, keep_right }
                if on.is_empty() =>
            {
                let [left, right] = [left, right].map(|side| Box::new(self.first_rows(*side, most)));
                Op::Hash { left, right, on, loose, apart, kind: JoinKind::Inner, keep_left, keep_right }
            }
            Op::Project { input, cols } => Op::Project { input: Box::new(self.limited(*input, most)), cols },
            op => op,
        };
        PlanNode { op, vars, ..node }
    }

    fn first_rows(&mut self, node: PlanNode, most: u64) -> PlanNode {
        let input = self.limited(node, most);
        let (vars, contexts, rows) =
            (input.vars.clone(), input.contexts.clone(), input.rows.min(most as f64));
        let (id, cost) = (self.nodes, input.cost);
        self.nodes += 1;
        let op = Op::Slice { input: Box::new(input), offset: 0, limit: Some(most), per: Vec::new() };
        PlanNode { id, vars, rows, cost, contexts, join: None, op }
    }

    fn sort(
        &mut self,
        inner: &'a Node,
        keys: &[SortKey],
        limit: Option<u64>,
        need: &VarSet,
    ) -> Result<Subplan> {
        let reads = keys.iter().fold(VarSet::default(), |a, k| a.union(&k.expr.vars()));
        // the best few rows are found among different ones
        let most = limit.filter(|limit| *limit <= MOST_REPEATED);
        let copies = if most.is_some() { Copies::Weigh } else { Copies::Count };
        let built = self.lower(inner, None, &Want::new(need.union(&reads), copies))?;
        let keep = built.kept(need);
        let vars = built.pick(&keep);
        let estimate = built.estimate.clone().sliced(0, limit, true);
        let cost = built.node.cost + built.estimate.rows * self.costs.hash_row * SORT_HASHES;
        let certain = built.certain.clone();
        let op = Op::Sort { input: Box::new(built.node), keys: keys.to_vec(), limit, keep };
        let sorted = self.make(op, vars, estimate, certain, cost);
        Ok(match most.filter(|_| !sorted.weights.is_empty()) {
            Some(most) => self.repeated(sorted, most),
            None => sorted,
        })
    }

    /// Rows that stand for several, each as often as it counts, but no more than `most` times.
    fn repeated(&mut self, built: Subplan, most: u64) -> Subplan {
        let weights = built.cols(&built.weights);
        let keep = built.cols(&built.vars().minus(&built.weights));
        let vars = built.pick(&keep);
        let (estimate, certain) = (built.estimate.clone(), built.certain.clone());
        let cost = built.node.cost + estimate.rows * self.costs.row;
        let op = Op::Repeat { input: Box::new(built.node), keep, weights, most };
        self.make(op, vars, estimate, certain, cost)
    }

    fn group(
        &mut self,
        node: &'a Node,
        inner: &'a Node,
        keys: &[Var],
        aggregates: &[(Var, AggregateExpression)],
        visible: &VarSet,
        need: &VarSet,
    ) -> Result<Subplan> {
        let used: Vec<&(Var, AggregateExpression)> =
            aggregates.iter().filter(|a| need.contains(a.0)).collect();
        let mut reads: VarSet = keys.iter().copied().collect();
        let certain = inner.scope().certain;
        let mut aggregated: Vec<AggregateExpression> =
            used.iter().map(|a| without_doubt(&a.1, &certain)).collect();
        if let Some(product) = self.product_without(inner, keys, &aggregated)? {
            let results: Vec<Var> = used.iter().map(|a| a.0).collect();
            let built = self.group_without(node, &product, keys, &results, aggregated)?;
            return Ok(self.trim(built, need));
        }
        for a in &aggregated {
            match &a.argument {
                Some(argument) => reads = reads.union(&argument.vars()),
                None if a.is_distinct => reads = reads.union(visible),
                None => {}
            }
        }
        let copies = aggregated.iter().map(demand).max().unwrap_or(Copies::Merge);
        // arguments are values: of equal ones only keys must be equal ids
        let before = std::mem::replace(&mut self.compared, !keys.is_empty());
        let built = self.lower(inner, None, &Want::new(reads, copies));
        self.compared = before;
        let built = built?;
        let built = self.texts_below(built, &mut aggregated);
        // a key that nothing binds is a column all the same
        let built = self.with_columns(built, keys);
        let key_cols = keys.iter().map(|k| built.col(*k)).collect();
        let visible = built.cols(visible);
        let weights = built.cols(&built.weights);
        if keys.is_empty() && counts_values_in_order(&aggregated, &built) {
            let cost = built.node.cost;
            let op = Op::CountValues { input: Box::new(built.node) };
            let vars: VarSet = used.iter().map(|a| a.0).collect();
            let counted = self.make(op, vars.iter().collect(), Estimate::unit(), vars, cost);
            return Ok(self.trim(counted, need));
        }
        let mut estimate = self.estimate(node)?;
        let groups = built.estimate.groups(keys).unwrap_or(estimate.rows);
        estimate.rows = groups.min(built.estimate.rows).max(1.0);
        let cost = built.node.cost + built.estimate.rows * self.costs.hash_row * (1.0 + used.len() as f64);
        let vars: Vec<Var> = keys.iter().copied().chain(used.iter().map(|a| a.0)).collect();
        let certain = node.scope().certain;
        let op = Op::Group {
            input: Box::new(built.node),
            keys: key_cols,
            visible,
            weights,
            aggregates: aggregated,
            stored: self.compared,
        };
        let built = self.make(op, vars, estimate, certain, cost);
        Ok(self.trim(built, need))
    }

    /// Without copies; `optional`: only there to make later work less.
    pub(super) fn distinct(&mut self, built: Subplan, optional: bool) -> Subplan {
        let estimate = built.estimate.clone().made_distinct(&built.vars());
        let cost = built.node.cost + built.estimate.rows * self.costs.hash_row;
        let (vars, certain) = (built.node.vars.clone(), built.certain.clone());
        self.make(Op::Distinct { input: Box::new(built.node), optional }, vars, estimate, certain, cost)
    }
}

/// The sort at the end of a select without DISTINCT.
fn sorted(node: &Node) -> Option<(&Node, &[SortKey])> {
    match node {
        Node::Sort { inner, keys } => Some((inner, keys)),
        Node::Project { inner, .. } => sorted(inner),
        _ => None,
    }
}

/// Whether different values of one variable are counted, and come in order.
fn counts_values_in_order(aggregates: &[AggregateExpression], input: &Subplan) -> bool {
    let [AggregateExpression { function: GroupFunction::Count, is_distinct: true, argument }] = aggregates
    else {
        return false;
    };
    let is_alone = matches!(argument, Some(Expression::Var(v)) if input.node.vars == [*v]);
    let in_order = |access: &Access| access.copies == Copies::Merge && access.bounds.is_none();
    is_alone && matches!(&input.node.op, Op::Scan { access } if in_order(access))
}

/// Demands of an aggregate on the copies of a row, the mildest first.
pub(super) fn demand(a: &AggregateExpression) -> Copies {
    match a.function {
        _ if a.is_distinct => Copies::Merge,
        GroupFunction::Min | GroupFunction::Max | GroupFunction::Sample => Copies::Merge,
        GroupFunction::CountRows | GroupFunction::Count | GroupFunction::Sum | GroupFunction::Avg => {
            Copies::Weigh
        }
        GroupFunction::Concat(_) => Copies::Count,
    }
}

/// COUNT of a variable that each row binds counts the rows, and need not read it.
fn without_doubt(a: &AggregateExpression, certain: &VarSet) -> AggregateExpression {
    match &a.argument {
        Some(Expression::Var(v))
            if a.function == GroupFunction::Count && !a.is_distinct && certain.contains(*v) =>
        {
            AggregateExpression { function: GroupFunction::CountRows, is_distinct: false, argument: None }
        }
        _ => a.clone(),
    }
}
