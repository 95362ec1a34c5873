//! The algebra, operator by operator, to a plan.
//!
//! `lower(node, input)` plans `Join(input, node)`: where that gives the same answer the input
//! flows into the node, so that its bindings become keys of look-ups; elsewhere the node is
//! planned on its own and hash-joined. `need` is what must come out: everything else is dropped
//! as early as possible, and under DISTINCT (`dup`) rows that became equal are merged then.

mod correlated;

use spargebra::algebra::{AggregateExpression, AggregateFunction, Expression};

use super::access::{Visit, visits};
use super::estimate::joined;
use super::order::{Condition, Element, Problem};
use super::{Estimate, Planner};
use crate::algebra::{ApplyKind, ExistsKind, GraphSlot, Node, Pattern, Slot, SortKey, Var, VarSet};
use crate::error::QueryError;
use crate::plan::{Bounds, JoinKind, Op, PathEnd, PathGraph, PlanNode, Src};
use correlated::{contexts, from_right, swaps};

/// A plan being built.
pub(super) struct Built {
    pub node: PlanNode,
    /// columns never unbound
    pub certain: VarSet,
    pub estimate: Estimate,
}

impl Built {
    fn vars(&self) -> VarSet {
        self.node.vars.iter().copied().collect()
    }

    fn col(&self, v: Var) -> u16 {
        self.node.col(v).expect("asked for a variable of its own")
    }

    /// The columns of those variables it has.
    fn cols(&self, of: &VarSet) -> Vec<u16> {
        (0..self.node.vars.len() as u16).filter(|c| of.contains(self.node.vars[*c as usize])).collect()
    }

    fn pick(&self, cols: &[u16]) -> Vec<Var> {
        cols.iter().map(|c| self.node.vars[*c as usize]).collect()
    }
}

type Result<T> = std::result::Result<T, QueryError>;

impl Planner<'_> {
    pub(super) fn root(&mut self, output: &[Var]) -> Result<PlanNode> {
        let algebra = self.algebra;
        let need = output.iter().copied().collect();
        let built = self.lower(&algebra.root, None, &need, false)?;
        Ok(self.exactly(built, output).node)
    }

    fn make(&mut self, op: Op, vars: Vec<Var>, estimate: Estimate, certain: VarSet, cost: f64) -> Built {
        let id = self.nodes;
        self.nodes += 1;
        let contexts = contexts(&op);
        Built { node: PlanNode { id, vars, rows: estimate.rows, cost, contexts, op }, certain, estimate }
    }

    /// These columns in this order; unbound where there is none.
    fn exactly(&mut self, built: Built, vars: &[Var]) -> Built {
        if built.node.vars == vars {
            return built;
        }
        let cols = vars.iter().map(|v| built.node.col(*v)).collect();
        let (estimate, certain, cost) = (built.estimate.clone(), built.certain.clone(), built.node.cost);
        self.make(Op::Project { input: Box::new(built.node), cols }, vars.to_vec(), estimate, certain, cost)
    }

    /// Without the columns nobody needs.
    fn trim(&mut self, built: Built, need: &VarSet) -> Built {
        let wanted: Vec<Var> = built.node.vars.iter().copied().filter(|v| need.contains(*v)).collect();
        self.exactly(built, &wanted)
    }

    fn unit(&mut self) -> Built {
        self.make(Op::Unit, Vec::new(), Estimate::unit(), VarSet::default(), 0.0)
    }

    fn nothing(&mut self) -> Built {
        self.make(Op::Nothing, Vec::new(), Estimate::default(), VarSet::default(), 0.0)
    }

    pub(super) fn lower(
        &mut self,
        node: &Node,
        input: Option<Built>,
        need: &VarSet,
        dup: bool,
    ) -> Result<Built> {
        // what only passes through these is printed, not compared
        let passes = matches!(
            node,
            Node::Extend { .. }
                | Node::Project { .. }
                | Node::Sort { .. }
                | Node::Slice { .. }
                | Node::Group { .. }
        );
        self.limits.check()?;
        let before = self.compared;
        self.compared |= !passes;
        let built = self.lower_node(node, input, need, dup);
        self.compared = before;
        built
    }

    fn lower_node(&mut self, node: &Node, input: Option<Built>, need: &VarSet, dup: bool) -> Result<Built> {
        match node {
            Node::Unit => Ok(match input {
                Some(input) => self.trim(input, need),
                None => self.unit(),
            }),
            Node::Pattern(_)
            | Node::Path { .. }
            | Node::GraphNames(_)
            | Node::Context { .. }
            | Node::Values { .. } => self.join_group(std::slice::from_ref(node), &[], input, need, dup),
            Node::Join(nodes) => self.join_group(nodes, &[], input, need, dup),
            Node::Filter { inner, conditions } => match &**inner {
                Node::Join(nodes) => self.join_group(nodes, conditions, input, need, dup),
                Node::Pattern(_) | Node::Unit => {
                    self.join_group(std::slice::from_ref(inner), conditions, input, need, dup)
                }
                _ => {
                    let reads = self.reads(conditions);
                    if !flows(&input, &reads, &inner.certain(), &inner.scope()) {
                        return self.apart(node, input, need, dup);
                    }
                    let built = self.lower(inner, input, &need.union(&reads), dup)?;
                    self.filter(built, conditions.to_vec(), need, joined(inner))
                }
            },
            Node::Extend { inner, var, expr } => self.extend(node, inner, *var, expr, input, need, dup),
            Node::LeftJoin { left, right, conditions } => {
                let reads = right.scope().union(&self.reads(conditions));
                if !flows(&input, &reads, &left.certain(), &node.scope()) {
                    return self.apart(node, input, need, dup);
                }
                let in_doubt = right.scope().minus(&right.certain());
                if self.reads(conditions).intersection(&left.scope()).intersects(&in_doubt) {
                    return self.left_join_of_pairs(left, right, conditions, input, need, dup);
                }
                let left = self.lower(left, input, &need.union(&reads), dup)?;
                self.nested(left, right, conditions, JoinKind::Left, &reads, need, dup)
            }
            Node::Exists { left, right, conditions, kind } => {
                let reads = right.scope().union(&self.reads(conditions));
                if !flows(&input, &reads, &left.certain(), &VarSet::default()) {
                    return self.apart(node, input, need, dup);
                }
                let left = self.lower(left, input, &need.union(&reads), dup)?;
                self.exists(left, right, conditions, *kind, &reads, need)
            }
            Node::Apply { left, right, row, vars, kind } => {
                let reads = match kind {
                    ApplyKind::Left => vars.union(&right.scope()),
                    ApplyKind::Exists(_) => vars.clone(),
                };
                if !flows(&input, &reads, &left.certain(), &VarSet::default()) {
                    return self.apart(node, input, need, dup);
                }
                let left = self.lower(left, input, &need.union(&reads), dup)?;
                self.correlated(left, right, *row, vars, *kind, need, dup)
            }
            Node::Minus { left, right, apart } => {
                let shared = left.scope().intersection(&right.scope());
                if !flows(&input, &right.scope(), &left.certain(), &VarSet::default()) {
                    return self.apart(node, input, need, dup);
                }
                let left = self.lower(left, input, &need.union(&shared), dup)?;
                let right = self.lower(right, None, &shared, true)?;
                Ok(self.minus(left, right, apart, need))
            }
            Node::Union(nodes) => self.union(nodes, input, need, dup),
            Node::Project { inner, vars } => {
                // hidden variables have numbers of their own, so the input may flow past
                let shown: VarSet = vars.iter().copied().collect();
                let outside = input.as_ref().map(Built::vars).unwrap_or_default();
                self.lower(inner, input, &need.intersection(&shown.union(&outside)), dup)
            }
            Node::Distinct(inner) => match input {
                Some(_) => self.apart(node, input, need, dup),
                None => {
                    let scope = inner.scope();
                    let keep = if dup { scope.intersection(need) } else { scope };
                    let built = self.lower(inner, None, &keep, true)?;
                    let built = self.distinct(built, false);
                    Ok(self.trim(built, need))
                }
            },
            Node::Reduced(inner) => self.lower(inner, input, need, dup),
            Node::Sort { .. } | Node::Slice { .. } | Node::Group { .. } => match input {
                Some(_) => self.apart(node, input, need, dup),
                None => self.block(node, need, dup),
            },
        }
    }

    /// Plans the node on its own and joins.
    fn apart(&mut self, node: &Node, input: Option<Built>, need: &VarSet, dup: bool) -> Result<Built> {
        let Some(input) = input else { return self.lower(node, None, need, dup) };
        let inside = need.union(&input.vars()).intersection(&node.scope());
        let built = self.lower(node, None, &inside, dup)?;
        Ok(self.hash(input, built, JoinKind::Inner, need))
    }

    fn block(&mut self, node: &Node, need: &VarSet, dup: bool) -> Result<Built> {
        match node {
            Node::Sort { inner, keys } => self.sort(inner, keys, None, need),
            Node::Slice { inner, offset, limit, per } => {
                let most = limit.filter(|_| per.is_empty()).map(|l| l.saturating_add(*offset));
                let need = &need.union(&per.iter().copied().collect());
                let built = match (sorted(inner), most) {
                    (Some((inner, keys)), most) => self.sort(inner, keys, most, need)?,
                    (None, _) => self.lower(inner, None, &need.intersection(&inner.scope()), false)?,
                };
                let mut estimate = built.estimate.clone();
                estimate.rows = limit.map_or(estimate.rows, |l| estimate.rows.min(l as f64));
                let (vars, certain, cost) = (built.node.vars.clone(), built.certain.clone(), built.node.cost);
                let per = per.iter().filter_map(|v| built.node.col(*v)).collect();
                let built = self.make(
                    Op::Slice { input: Box::new(built.node), offset: *offset, limit: *limit, per },
                    vars,
                    estimate,
                    certain,
                    cost,
                );
                Ok(self.trim(built, need))
            }
            Node::Group { inner, keys, aggregates } => self.group(node, inner, keys, aggregates, need),
            _ => self.lower(node, None, need, dup),
        }
    }

    fn sort(&mut self, inner: &Node, keys: &[SortKey], limit: Option<u64>, need: &VarSet) -> Result<Built> {
        let reads = keys.iter().fold(VarSet::default(), |a, k| a.union(&self.algebra.vars_of(&k.expr)));
        let built = self.lower(inner, None, &need.union(&reads), false)?;
        let keep = built.cols(need);
        let vars = built.pick(&keep);
        let mut estimate = built.estimate.clone();
        estimate.rows = limit.map_or(estimate.rows, |l| estimate.rows.min(l as f64));
        let cost = built.node.cost + built.estimate.rows * self.costs.hash_row * 2.0;
        let certain = built.certain.clone();
        Ok(self.make(
            Op::Sort { input: Box::new(built.node), keys: keys.to_vec(), limit, keep },
            vars,
            estimate,
            certain,
            cost,
        ))
    }

    fn group(
        &mut self,
        node: &Node,
        inner: &Node,
        keys: &[Var],
        aggregates: &[(Var, AggregateExpression)],
        need: &VarSet,
    ) -> Result<Built> {
        let used: Vec<&(Var, AggregateExpression)> =
            aggregates.iter().filter(|a| need.contains(a.0)).collect();
        let mut reads: VarSet = keys.iter().copied().collect();
        let mut dup = true;
        for (_, a) in &used {
            dup &= ignores_duplicates(a);
            match a {
                AggregateExpression::CountSolutions { distinct: true } => reads = reads.union(&inner.scope()),
                AggregateExpression::CountSolutions { distinct: false } => {}
                AggregateExpression::FunctionCall { expr, .. } => {
                    reads = reads.union(&self.algebra.vars_of(expr))
                }
            }
        }
        let before = std::mem::replace(&mut self.compared, true);
        let built = self.lower(inner, None, &reads, dup);
        self.compared = before;
        let built = built?;
        // a key that nothing binds is a column all the same
        let mut cols: Vec<Var> = built.node.vars.clone();
        cols.extend(keys.iter().filter(|k| built.node.col(**k).is_none()));
        let built = self.exactly(built, &cols);
        let key_cols = keys.iter().map(|k| built.col(*k)).collect();
        let mut estimate = self.estimate(node)?;
        estimate.rows = estimate.rows.min(built.estimate.rows).max(1.0);
        let cost = built.node.cost + built.estimate.rows * self.costs.hash_row * (1.0 + used.len() as f64);
        let vars: Vec<Var> = keys.iter().copied().chain(used.iter().map(|a| a.0)).collect();
        let certain = node.certain();
        let op = Op::Group {
            input: Box::new(built.node),
            keys: key_cols,
            aggregates: used.iter().map(|a| a.1.clone()).collect(),
            stored: self.compared,
        };
        let built = self.make(op, vars, estimate, certain, cost);
        Ok(self.trim(built, need))
    }

    fn distinct(&mut self, built: Built, optional: bool) -> Built {
        let mut estimate = built.estimate.clone();
        estimate.rows = estimate.combinations(&built.vars()).max(estimate.rows.min(1.0));
        let cost = built.node.cost + built.estimate.rows * self.costs.hash_row;
        let (vars, certain) = (built.node.vars.clone(), built.certain.clone());
        self.make(Op::Distinct { input: Box::new(built.node), optional }, vars, estimate, certain, cost)
    }

    #[allow(clippy::too_many_arguments)] // the parts of one node and its surroundings
    fn extend(
        &mut self,
        node: &Node,
        inner: &Node,
        var: Var,
        expr: &Expression,
        input: Option<Built>,
        need: &VarSet,
        dup: bool,
    ) -> Result<Built> {
        let reads = self.algebra.vars_of(expr);
        let clash = input.as_ref().is_some_and(|i| i.vars().contains(var));
        if clash || !flows(&input, &reads, &inner.certain(), &inner.scope()) {
            return self.apart(node, input, need, dup);
        }
        if !need.contains(var) {
            return self.lower(inner, input, need, dup);
        }
        let built = self.lower(inner, input, &need.union(&reads), dup)?;
        let mut wanted = need.clone();
        wanted.remove(var);
        let keep = built.cols(&wanted);
        let mut vars = built.pick(&keep);
        vars.push(var);
        let mut certain = built.certain.clone();
        match expr {
            Expression::Variable(v) if self.algebra.var(v).is_none_or(|v| !built.certain.contains(v)) => {}
            Expression::Variable(_) | Expression::NamedNode(_) | Expression::Literal(_) => {
                certain.insert(var)
            }
            _ => {}
        }
        let estimate = built.estimate.clone();
        let cost = built.node.cost + estimate.rows * self.costs.row;
        Ok(self.make(
            Op::Extend { input: Box::new(built.node), expr: expr.clone(), keep, stored: self.compared },
            vars,
            estimate,
            certain,
            cost,
        ))
    }

    fn filter(
        &mut self,
        built: Built,
        conditions: Vec<Expression>,
        need: &VarSet,
        over: &[Node],
    ) -> Result<Built> {
        let mut estimate = built.estimate.clone();
        for c in &conditions {
            estimate.rows *= self.selectivity(c, over)?;
        }
        Ok(self.filter_op(built, conditions, need, estimate))
    }

    fn filter_op(
        &mut self,
        built: Built,
        conditions: Vec<Expression>,
        need: &VarSet,
        estimate: Estimate,
    ) -> Built {
        let keep = built.cols(need);
        let vars = built.pick(&keep);
        let cost = built.node.cost + built.estimate.rows * self.costs.row * conditions.len() as f64;
        let certain = built.certain.clone();
        self.make(Op::Filter { input: Box::new(built.node), conditions, keep }, vars, estimate, certain, cost)
    }

    fn reads(&self, conditions: &[Expression]) -> VarSet {
        conditions.iter().fold(VarSet::default(), |a, c| a.union(&self.algebra.vars_of(c)))
    }

    /// Every variable a node names, in patterns or expressions.
    fn mentioned(&self, node: &Node) -> VarSet {
        let all = |nodes: &[Node]| nodes.iter().fold(VarSet::default(), |a, n| a.union(&self.mentioned(n)));
        match node {
            Node::Unit
            | Node::Pattern(_)
            | Node::Path { .. }
            | Node::GraphNames(_)
            | Node::Context { .. }
            | Node::Values { .. } => node.scope(),
            Node::Join(nodes) | Node::Union(nodes) => all(nodes),
            Node::LeftJoin { left, right, conditions } | Node::Exists { left, right, conditions, .. } => {
                self.mentioned(left).union(&self.mentioned(right)).union(&self.reads(conditions))
            }
            Node::Minus { left, right, .. } => self.mentioned(left).union(&right.scope()),
            Node::Apply { left, right, vars, kind: ApplyKind::Left, .. } => {
                self.mentioned(left).union(vars).union(&right.scope())
            }
            Node::Apply { left, vars, .. } => self.mentioned(left).union(vars),
            Node::Filter { inner, conditions } => self.mentioned(inner).union(&self.reads(conditions)),
            Node::Extend { inner, expr, .. } => {
                self.mentioned(inner).union(&self.algebra.vars_of(expr)).union(&node.scope())
            }
            // sub-selects are evaluated on their own
            Node::Project { .. }
            | Node::Distinct(_)
            | Node::Reduced(_)
            | Node::Sort { .. }
            | Node::Slice { .. }
            | Node::Group { .. } => node.scope(),
        }
    }

    /// Runs `right` once per batch of `left`.
    #[allow(clippy::too_many_arguments)] // the parts of one node and its surroundings
    fn nested(
        &mut self,
        left: Built,
        right: &Node,
        conditions: &[Expression],
        kind: JoinKind,
        reads: &VarSet,
        need: &VarSet,
        dup: bool,
    ) -> Result<Built> {
        let seed = left.cols(reads);
        let mut seed_vars = left.pick(&seed);
        let row_var = self.fresh();
        seed_vars.push(row_var);
        let mut certain = left.certain.intersection(&seed_vars.iter().copied().collect());
        certain.insert(row_var);
        let mut estimate = left.estimate.clone();
        estimate.vars.retain(|v| seed_vars.contains(&v.0));
        estimate.vars.push((row_var, estimate.rows, estimate.rows));
        let leaf = self.make(Op::Seed, seed_vars, estimate, certain, 0.0);
        let from_right = from_right(&left, right, kind, need);
        let mut right_need = from_right.clone();
        right_need.insert(row_var);
        let right_node = Node::Filter { inner: Box::new(right.clone()), conditions: conditions.to_vec() };
        let right_node = if conditions.is_empty() { right } else { &right_node };
        let memo = std::mem::take(&mut self.unit_memo);
        let right_built = self.lower(right_node, Some(leaf), &right_need, dup || kind != JoinKind::Left);
        self.unit_memo = memo;
        let right_built = right_built?;
        let Some(row) = right_built.node.col(row_var) else {
            // the right side cannot give anything
            return Ok(self.unmatched(left, kind, need));
        };
        Ok(self.nested_op(left, right_built, (row, row_var, None), seed, kind, &from_right, need))
    }

    #[allow(clippy::too_many_arguments)] // everything of one operator
    fn nested_op(
        &mut self,
        left: Built,
        right: Built,
        (row, row_var, context): (u16, Var, Option<Var>),
        seed: Vec<u16>,
        kind: JoinKind,
        from_right: &VarSet,
        need: &VarSet,
    ) -> Built {
        let keep_left: Vec<u16> = left
            .cols(need)
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
                if *v != row_var && from_right.contains(*v) {
                    keep_right.push((c as u16, left.node.col(*v)));
                    vars.push(*v);
                }
            }
        }
        let mut certain = left.certain.clone();
        let mut estimate = left.estimate.clone();
        match kind {
            JoinKind::Left => {
                estimate.rows = estimate.rows.max(right.estimate.rows);
                for v in &right.estimate.vars {
                    if estimate.vars.binary_search_by_key(&v.0, |x| x.0).is_err() {
                        let at = estimate.vars.partition_point(|x| x.0 < v.0);
                        estimate.vars.insert(at, *v);
                    }
                }
            }
            JoinKind::Exists(ExistsKind::Mark(v)) => {
                vars.push(v);
                certain.insert(v);
            }
            _ => estimate.rows *= 0.5,
        }
        let cost =
            left.node.cost + right.node.cost + self.costs.operator + left.estimate.rows * self.costs.row;
        let op = Op::Nested {
            left: Box::new(left.node),
            right: Box::new(right.node),
            seed,
            context,
            row,
            kind,
            keep_left,
            keep_right,
        };
        self.make(op, vars, estimate, certain, cost)
    }

    /// The left side when the right is known to be empty.
    fn unmatched(&mut self, left: Built, kind: JoinKind, need: &VarSet) -> Built {
        match kind {
            JoinKind::Exists(ExistsKind::Semi) | JoinKind::Inner => self.nothing(),
            JoinKind::Exists(ExistsKind::Mark(_)) => {
                let right = self.nothing();
                self.hash(left, right, kind, need)
            }
            _ => self.trim(left, need),
        }
    }

    #[allow(clippy::too_many_arguments)] // the parts of one node and its surroundings
    fn exists(
        &mut self,
        left: Built,
        right: &Node,
        conditions: &[Expression],
        kind: ExistsKind,
        reads: &VarSet,
        need: &VarSet,
    ) -> Result<Built> {
        let kind = JoinKind::Exists(kind);
        let shared = left.vars().intersection(reads);
        if conditions.is_empty() {
            let on_its_own = self.estimate(right)?;
            let both_certain = shared.is_subset(&left.certain) && shared.is_subset(&right.certain());
            let one_pass =
                self.costs.scan(on_its_own.rows) + self.costs.hash(on_its_own.rows, left.estimate.rows, 0.0);
            let per_row =
                2.0 * self.costs.lookup(left.estimate.rows, on_its_own.rows * 2.0, left.estimate.rows);
            if shared.is_empty() || (both_certain && one_pass < per_row) {
                let built = self.lower(right, None, &shared, true)?;
                return Ok(self.hash(left, built, kind, need));
            }
        }
        self.nested(left, right, conditions, kind, reads, need, true)
    }

    fn union(&mut self, nodes: &[Node], input: Option<Built>, need: &VarSet, dup: bool) -> Result<Built> {
        let mut branches = Vec::with_capacity(nodes.len());
        for node in nodes {
            let seed = input.as_ref().map(|i| {
                self.make(Op::Seed, i.node.vars.clone(), i.estimate.clone(), i.certain.clone(), 0.0)
            });
            branches.push(self.lower(node, seed, need, dup)?);
        }
        let mut vars: Vec<Var> = Vec::new();
        for v in branches.iter().flat_map(|b| &b.node.vars) {
            if !vars.contains(v) {
                vars.push(*v);
            }
        }
        let live = branches.iter().filter(|b| !matches!(b.node.op, Op::Nothing));
        let certain = live
            .map(|b| b.certain.intersection(&b.vars()))
            .reduce(|a, b| a.intersection(&b))
            .unwrap_or_default();
        let mut estimate = Estimate::default();
        for b in &branches {
            estimate.rows += b.estimate.rows;
            for v in &b.estimate.vars {
                match estimate.vars.binary_search_by_key(&v.0, |x| x.0) {
                    Ok(i) => estimate.vars[i].1 += v.1,
                    Err(i) => estimate.vars.insert(i, *v),
                }
            }
        }
        let cost =
            input.as_ref().map_or(0.0, |i| i.node.cost) + branches.iter().map(|b| b.node.cost).sum::<f64>();
        let branches = branches.into_iter().map(|b| {
            let from = vars.iter().map(|v| b.node.col(*v)).collect();
            (b.node, from)
        });
        let op = Op::Union { branches: branches.collect(), input: input.map(|i| Box::new(i.node)) };
        Ok(self.make(op, vars, estimate, certain, cost))
    }

    fn minus(&mut self, left: Built, right: Built, apart: &VarSet, need: &VarSet) -> Built {
        let on_apart = left.vars().intersection(&right.vars()).intersection(apart);
        let mut built = self.hash(left, right, JoinKind::Minus, need);
        if let Op::Hash { left, on, loose, apart, .. } = &mut built.node.op {
            let at = on.iter().enumerate().filter(|(_, p)| on_apart.contains(left.vars[p.0 as usize]));
            *apart = at.map(|(i, _)| i as u16).collect();
            // only there it is looked at
            *loose |= !apart.is_empty();
        }
        built
    }

    /// A hash join on all common columns. Inner joins build on the smaller side.
    fn hash(&mut self, left: Built, right: Built, kind: JoinKind, need: &VarSet) -> Built {
        let (left, right) = match kind {
            // the seed is new for each run; a table built on it would be too
            JoinKind::Inner if swaps(&left, &right) => (right, left),
            _ => (left, right),
        };
        let shared = left.vars().intersection(&right.vars());
        let loose = !shared.is_subset(&left.certain.intersection(&right.certain));
        let on = shared.iter().map(|v| (left.col(v), right.col(v))).collect();
        let mut keep_left = left.cols(need);
        let mut keep_right = Vec::new();
        let mut certain = left.certain.clone();
        let mut estimate = left.estimate.clone();
        if matches!(kind, JoinKind::Inner | JoinKind::Left) {
            estimate = left.estimate.join(&right.estimate);
            if kind == JoinKind::Inner {
                certain = certain.union(&right.certain);
            } else {
                estimate.rows = estimate.rows.max(left.estimate.rows);
            }
            // a common variable that the left may leave open is taken from the pair
            let from_right = |v: Var| !left.vars().contains(v) || (loose && !left.certain.contains(v));
            keep_left.retain(|c| {
                !from_right(left.node.vars[*c as usize])
                    || right.node.col(left.node.vars[*c as usize]).is_none()
            });
            for (c, v) in right.node.vars.iter().enumerate() {
                if need.contains(*v) && from_right(*v) {
                    keep_right.push((c as u16, left.node.col(*v)));
                }
            }
        } else {
            estimate.rows *= 0.5;
        }
        let mut vars = left.pick(&keep_left);
        vars.extend(keep_right.iter().map(|(c, _)| right.node.vars[*c as usize]));
        if let JoinKind::Exists(ExistsKind::Mark(v)) = kind {
            vars.push(v);
            certain.insert(v);
        }
        let cost = left.node.cost
            + right.node.cost
            + self.costs.hash(right.estimate.rows, left.estimate.rows, estimate.rows);
        let op = Op::Hash {
            left: Box::new(left.node),
            right: Box::new(right.node),
            on,
            loose,
            apart: Vec::new(),
            kind,
            keep_left,
            keep_right,
        };
        self.make(op, vars, estimate, certain, cost)
    }

    fn join_group(
        &mut self,
        nodes: &[Node],
        conditions: &[Expression],
        input: Option<Built>,
        need: &VarSet,
        dup: bool,
    ) -> Result<Built> {
        let scope = nodes.iter().fold(VarSet::default(), |a, n| a.union(&n.scope()));
        let certain = nodes.iter().fold(VarSet::default(), |a, n| a.union(&n.certain()));
        let reads = self.reads(conditions);
        if !flows(&input, &reads, &certain, &scope) {
            let node = Node::Filter {
                inner: Box::new(crate::algebra::translate::join(nodes.to_vec())),
                conditions: conditions.to_vec(),
            };
            let memo = std::mem::take(&mut self.unit_memo);
            let built = self.apart(&node, input, need, dup);
            self.unit_memo = memo;
            return built;
        }
        let order = self.order(nodes, conditions, input.as_ref())?;
        let mut open: Vec<Expression> = conditions.to_vec();
        let mut current = input;
        let later = self.mentioned_later(nodes, &order);
        for (position, later) in order.iter().zip(&later) {
            let more = position != order.last().expect("it is one of them");
            current =
                Some(self.join_step(&nodes[*position], current, later, &mut open, nodes, need, dup, more)?);
        }
        let mut built = match current {
            Some(built) => built,
            None => self.unit(),
        };
        if !open.is_empty() {
            built = self.filter(built, open, need, nodes)?;
        }
        Ok(self.trim(built, need))
    }

    /// For each step of a join, what the steps after it mention.
    fn mentioned_later(&self, nodes: &[Node], order: &[usize]) -> Vec<VarSet> {
        let mut later = Vec::with_capacity(order.len());
        let mut all = VarSet::default();
        for position in order.iter().rev() {
            later.push(all.clone());
            all = all.union(&self.mentioned(&nodes[*position]));
        }
        later.reverse();
        later
    }

    fn order(
        &mut self,
        nodes: &[Node],
        conditions: &[Expression],
        input: Option<&Built>,
    ) -> Result<Vec<usize>> {
        if nodes.len() < 2 {
            return Ok((0..nodes.len()).collect());
        }
        let mut filters = Vec::with_capacity(conditions.len());
        for c in conditions {
            filters
                .push(Condition { vars: self.algebra.vars_of(c), selectivity: self.selectivity(c, nodes)? });
        }
        let mut elements = Vec::with_capacity(nodes.len());
        for node in nodes {
            let estimate = self.estimate(node)?;
            let mut rows_first = estimate.rows;
            if let Node::Pattern(Pattern { o: Slot::Var(o), .. }) = node {
                let only: VarSet = [*o].into_iter().collect();
                for (c, f) in conditions.iter().zip(&filters) {
                    if f.vars == only && self.comparison(c).is_some() {
                        rows_first *= f.selectivity;
                    }
                }
            }
            let visits = self.visits_of(node);
            let own_cost = self.own_cost(node, &estimate)?;
            elements.push(Element { scope: node.scope(), estimate, rows_first, own_cost, visits });
        }
        let problem = Problem {
            start: input.map_or_else(Estimate::unit, |i| i.estimate.clone()),
            bound: input.map(Built::vars).unwrap_or_default(),
            elements: &elements,
            conditions: &filters,
            costs: self.costs,
        };
        problem.solve(self.limits)
    }

    /// Index visits per input row when the input flows into the node.
    fn visits_of(&self, node: &Node) -> Option<f64> {
        let sum = |nodes: &[Node]| nodes.iter().map(|n| self.visits_of(n)).sum::<Option<f64>>();
        match node {
            Node::Pattern(p) => Some(if matches!(p.p, Slot::Var(_)) { 2.0 } else { 1.0 }),
            Node::Path { .. } => Some(20.0),
            Node::Join(nodes) | Node::Union(nodes) => sum(nodes),
            Node::Filter { inner, .. } | Node::Extend { inner, .. } | Node::Project { inner, .. } => {
                self.visits_of(inner)
            }
            Node::LeftJoin { left, right, .. }
            | Node::Exists { left, right, .. }
            | Node::Apply { left, right, .. } => {
                Some(self.visits_of(left)? + self.visits_of(right).unwrap_or(2.0))
            }
            _ => None,
        }
    }

    /// The cost of a node on its own, roughly: all rows that pass through it.
    fn own_cost(&mut self, node: &Node, estimate: &Estimate) -> Result<f64> {
        Ok(match node {
            Node::Pattern(_) => self.costs.scan(estimate.rows),
            Node::Join(nodes) | Node::Union(nodes) => {
                let mut sum = estimate.rows * self.costs.hash_row;
                for n in nodes {
                    let e = self.estimate(n)?;
                    sum += self.own_cost(n, &e)?;
                }
                sum
            }
            Node::Filter { inner, .. }
            | Node::Extend { inner, .. }
            | Node::Project { inner, .. }
            | Node::Distinct(inner)
            | Node::Reduced(inner)
            | Node::Group { inner, .. }
            | Node::Sort { inner, .. }
            | Node::Slice { inner, .. } => {
                let e = self.estimate(inner)?;
                e.rows * self.costs.hash_row + self.own_cost(inner, &e)?
            }
            Node::LeftJoin { left, .. }
            | Node::Exists { left, .. }
            | Node::Apply { left, .. }
            | Node::Minus { left, .. } => {
                let e = self.estimate(left)?;
                3.0 * self.own_cost(left, &e)?
            }
            _ => estimate.rows * self.costs.row,
        })
    }

    #[allow(clippy::too_many_arguments)] // one step of a join, and what is around it
    fn join_step(
        &mut self,
        node: &Node,
        current: Option<Built>,
        later: &VarSet,
        open: &mut Vec<Expression>,
        nodes: &[Node],
        need: &VarSet,
        dup: bool,
        more: bool,
    ) -> Result<Built> {
        let before = current.as_ref().map(Built::vars).unwrap_or_default();
        let after = before.union(&node.scope());
        self.limits.check()?;
        let live = need.union(later).union(&self.reads(open));
        let certain = current.as_ref().map(|c| c.certain.clone()).unwrap_or_default().union(&node.certain());
        // conditions that nothing to come can change
        let (ready, wait): (Vec<Expression>, Vec<Expression>) =
            std::mem::take(open).into_iter().partition(|c| {
                let vars = self.algebra.vars_of(c);
                vars.iter().all(|v| certain.contains(v) || !later.contains(v))
                    && (vars.intersects(&after) || !more)
            });
        *open = wait;
        let mut built = match node {
            Node::Pattern(p) => self.pattern_step(p, current, &live, &ready)?,
            Node::Path { .. } => self.path_step(node, current, &live)?,
            Node::GraphNames(slot) => self.graph_names(*slot, current, &live),
            Node::Context { row, vars } => self.context(*row, vars, current, &live),
            Node::Values { vars, rows } => {
                let estimate = self.estimate(node)?;
                let op = Op::Values { rows: rows.clone() };
                let values = self.make(op, vars.clone(), estimate, node.certain(), 0.0);
                match current {
                    Some(current) => self.hash(current, values, JoinKind::Inner, &live),
                    None => self.trim(values, &live),
                }
            }
            other => self.lower(other, current, &live, dup)?,
        };
        let live = need.union(later).union(&self.reads(open));
        if !ready.is_empty() {
            built = self.apply(built, ready, nodes, &live)?;
        }
        let built = self.trim_dead(built, &live);
        // a join variable that is of no use any more leaves duplicates behind
        let lost = before.minus(&built.vars());
        let fans_out = lost.intersects(&node.scope()) && built.estimate.rows > 16.0;
        Ok(if dup && more && fans_out && !built.node.vars.is_empty() {
            self.distinct(built, true)
        } else {
            built
        })
    }

    fn trim_dead(&mut self, built: Built, live: &VarSet) -> Built {
        if built.vars().is_subset(live) { built } else { self.trim(built, live) }
    }

    /// Conditions over what a join step gave: inside its look-up where they only read new columns.
    fn apply(
        &mut self,
        built: Built,
        ready: Vec<Expression>,
        nodes: &[Node],
        live: &VarSet,
    ) -> Result<Built> {
        let mut estimate = built.estimate.clone();
        for c in &ready {
            estimate.rows *= self.selectivity(c, nodes)?;
        }
        let mut built = built;
        let mut outside = Vec::new();
        for condition in ready {
            let vars = self.algebra.vars_of(&condition);
            match &mut built.node.op {
                Op::Lookup { keep, conditions, .. }
                    if vars.iter().all(|v| built.node.vars[keep.len()..].contains(&v)) =>
                {
                    conditions.push(condition)
                }
                _ => outside.push(condition),
            }
        }
        if outside.is_empty() {
            narrow_lookup(&mut built, live);
            built.node.rows = estimate.rows;
            built.estimate = estimate;
            return Ok(built);
        }
        Ok(self.filter_op(built, outside, live, estimate))
    }

    fn pattern_step(
        &mut self,
        p: &Pattern,
        current: Option<Built>,
        live: &VarSet,
        ready: &[Expression],
    ) -> Result<Built> {
        let live = live.union(&self.reads(ready));
        let node = Node::Pattern(p.clone());
        let memo = std::mem::take(&mut self.unit_memo);
        let estimate = self.estimate(&node);
        self.unit_memo = memo;
        let estimate = estimate?;
        let Some(current) = current else { return self.scan(p, &live, estimate, ready) };
        let shared = current.vars().intersection(&p.vars());
        let joined = current.estimate.join(&estimate);
        let lookup = self.costs.lookup(current.estimate.rows, estimate.rows, joined.rows);
        let apart = self.costs.scan(estimate.rows)
            + self.costs.hash(
                estimate.rows.min(current.estimate.rows),
                estimate.rows.max(current.estimate.rows),
                joined.rows,
            );
        if shared.is_empty()
            || !shared.is_subset(&current.certain)
            || (apart < lookup && !seeded(&current.node))
        {
            let scan_need = live.union(&shared);
            let scan = self.scan(p, &scan_need, estimate, ready)?;
            return Ok(self.hash(current, scan, JoinKind::Inner, &live));
        }
        self.lookups(p, current, &live, joined)
    }

    fn scan(
        &mut self,
        p: &Pattern,
        live: &VarSet,
        estimate: Estimate,
        ready: &[Expression],
    ) -> Result<Built> {
        let bounds = self.bounds(p, ready);
        let list = visits(p, &VarSet::default(), !bounds.is_empty());
        let ends = list[0].rest.first() == Some(&snowmelt_graph::Column::Object);
        let bounds = if ends { bounds } else { Vec::new() };
        let later = list[1..].iter().fold(live.clone(), |a, v| a.union(&key_vars(v)));
        let Some((access, vars)) = list[0].number(&[], &later, &self.scope, bounds) else {
            return Ok(self.nothing());
        };
        let cost = self.costs.scan(estimate.rows);
        let certain = list[0].binds.clone();
        let mut built = self.make(Op::Scan { access }, vars, estimate, certain, cost);
        for (i, visit) in list.iter().enumerate().skip(1) {
            built = match self.lookup(visit, &list[i + 1..], built, live)? {
                Some(built) => built,
                None => return Ok(self.nothing()),
            };
        }
        Ok(built)
    }

    /// Comparisons with constants on a pattern's object, for a scan in object order.
    fn bounds(&self, p: &Pattern, ready: &[Expression]) -> Bounds {
        let (Slot::Const(_), Slot::Var(o), Slot::Var(s)) = (p.p, p.o, p.s) else { return Vec::new() };
        if s == o {
            return Vec::new();
        }
        ready
            .iter()
            .filter_map(|c| self.comparison(c))
            .filter(|(v, _, _)| *v == o)
            .map(|(_, op, c)| (op, c))
            .collect()
    }

    fn lookups(&mut self, p: &Pattern, current: Built, live: &VarSet, joined: Estimate) -> Result<Built> {
        let list = visits(p, &current.vars(), false);
        let mut built = current;
        for (i, visit) in list.iter().enumerate() {
            built = match self.lookup(visit, &list[i + 1..], built, live)? {
                Some(built) => built,
                None => return Ok(self.nothing()),
            };
        }
        built.estimate = joined;
        built.node.rows = built.estimate.rows;
        Ok(built)
    }

    fn lookup(
        &mut self,
        visit: &Visit,
        later: &[Visit],
        input: Built,
        live: &VarSet,
    ) -> Result<Option<Built>> {
        let wanted = later.iter().fold(live.clone(), |a, v| a.union(&key_vars(v)).union(&v.pattern.vars()));
        let wanted = if later.is_empty() { live.clone() } else { wanted };
        let Some((access, new)) = visit.number(&input.node.vars, &wanted, &self.scope, Vec::new()) else {
            return Ok(None);
        };
        let keep = input.cols(&wanted);
        let mut vars = input.pick(&keep);
        let emit = (0..new.len() as u16).collect();
        vars.extend(&new);
        let node = Node::Pattern(visit.pattern.clone());
        let memo = std::mem::take(&mut self.unit_memo);
        let pattern = self.estimate(&node);
        self.unit_memo = memo;
        let pattern = pattern?;
        let estimate = input.estimate.join(&pattern);
        let cost = input.node.cost + self.costs.lookup(input.estimate.rows, pattern.rows, estimate.rows);
        let certain = input.certain.union(&visit.binds);
        let op = Op::Lookup {
            input: Box::new(input.node),
            access,
            keep,
            conditions: Vec::new(),
            new,
            emit,
            star: Vec::new(),
        };
        Ok(Some(self.make(op, vars, estimate, certain, cost)))
    }

    fn graph_names(&mut self, slot: Slot, current: Option<Built>, live: &VarSet) -> Built {
        let (graph, vars) = match slot {
            Slot::Const(c) => (Some(c), Vec::new()),
            Slot::Var(v) => (None, vec![v]),
        };
        let of = self.scope.named.clone();
        let mut estimate = Estimate { rows: 10.0, vars: Vec::new() };
        estimate.vars.extend(vars.iter().map(|v| (*v, 10.0, 10.0)));
        let certain = vars.iter().copied().collect();
        let names = self.make(Op::GraphNames { graph, of }, vars, estimate, certain, 1.0);
        match current {
            Some(current) => self.hash(current, names, JoinKind::Inner, live),
            None => names,
        }
    }

    fn path_step(&mut self, node: &Node, current: Option<Built>, live: &VarSet) -> Result<Built> {
        let Node::Path { s, path, o, g } = node else { unreachable!("called for paths") };
        let current = match current {
            Some(current) => current,
            None => self.unit(),
        };
        let known = current.vars().intersection(&node.scope());
        if !known.is_subset(&current.certain) {
            let wanted = live.union(&known);
            let alone = self.path_step(node, None, &wanted)?;
            return Ok(self.hash(current, alone, JoinKind::Inner, live));
        }
        let src = |slot: Slot| match slot {
            Slot::Const(c) => Some(Src::Const(c)),
            Slot::Var(v) => current.node.col(v).map(Src::Col),
        };
        let end = |slot: Slot| src(slot).map_or(PathEnd::New, PathEnd::Is);
        let (from, to) = (end(*s), end(*o));
        let same = s == o && from == PathEnd::New;
        let graph = match g {
            GraphSlot::Default => PathGraph::Default,
            GraphSlot::Named(slot) => src(*slot).map_or(PathGraph::Each, PathGraph::Is),
        };
        let keep = current.cols(live);
        let mut vars = current.pick(&keep);
        if from == PathEnd::New {
            vars.extend(s.var());
        }
        if to == PathEnd::New && !same {
            vars.extend(o.var());
        }
        if let (PathGraph::Each, GraphSlot::Named(Slot::Var(v))) = (&graph, g) {
            vars.push(*v);
        }
        let alone = self.estimate(node)?;
        let mut estimate = current.estimate.join(&alone);
        estimate.rows = estimate.rows.max(current.estimate.rows);
        let cost = current.node.cost + current.estimate.rows * 20.0 * self.costs.key;
        let certain = current.certain.union(&node.scope());
        let op = Op::Path { input: Box::new(current.node), from, path: path.clone(), to, graph, same, keep };
        Ok(self.make(op, vars, estimate, certain, cost))
    }
}

/// Whether an input may flow into a node that reads `reads` at a place where only `certain` is
/// sure to be bound the same: what the input binds must be bound there too, or be unknown to
/// the node altogether (an outer variable of EXISTS).
fn flows(input: &Option<Built>, reads: &VarSet, certain: &VarSet, scope: &VarSet) -> bool {
    input.as_ref().is_none_or(|i| {
        let shared = i.vars().intersection(reads);
        shared.iter().all(|v| certain.contains(v) || (!scope.is_empty() && !scope.contains(v)))
    })
}

/// Whether a plan starts with a seed.
fn seeded(node: &PlanNode) -> bool {
    matches!(node.op, Op::Seed) || crate::plan::children(&node.op).first().is_some_and(|c| seeded(c))
}

fn key_vars(visit: &Visit) -> VarSet {
    visit.key.iter().filter_map(|s| s.var()).collect()
}

/// Puts out only the live new columns of a look-up whose conditions have been evaluated inside.
fn narrow_lookup(built: &mut Built, live: &VarSet) {
    if let Op::Lookup { keep, new, emit, .. } = &mut built.node.op {
        built.node.vars.truncate(keep.len());
        emit.retain(|c| live.contains(new[*c as usize]));
        built.node.vars.extend(emit.iter().map(|c| new[*c as usize]));
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

fn ignores_duplicates(a: &AggregateExpression) -> bool {
    use AggregateFunction::{Max, Min, Sample};
    match a {
        AggregateExpression::CountSolutions { distinct } => *distinct,
        AggregateExpression::FunctionCall { name: Min | Max | Sample, .. } => true,
        AggregateExpression::FunctionCall { distinct, .. } => *distinct,
    }
}
