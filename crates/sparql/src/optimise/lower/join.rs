//! Joins: patterns and what stands beside them, step by step in the order of least cost.

use snowmelt_graph::{AnyIndex, Index};

use super::{Result, Subplan, Want, flows};
use crate::algebra::translate::join;
use crate::algebra::{ApplyKind, Expression, Node, Pattern, Scope, Slot, VarSet};
use crate::optimise::access::{CountedPattern, scanned_index};
use crate::optimise::guess::{PATH_VISITS, TWO_SIDES, UNKNOWN_PREDICATE_VISITS, UNKNOWN_VISITS, bounded};
use crate::optimise::problem::{Condition, Element, Problem, Remote};
use crate::optimise::{Estimate, Planner};
use crate::plan::{Copies, Finds, JoinKey, JoinKind, Op, element};

/// Up to so many rows, merging copies costs more than it saves.
const FEW_ROWS: f64 = 16.0;

/// One step of a join.
#[derive(Clone, Copy)]
struct Step<'a, 's> {
    node: &'a Node,
    /// all that is joined
    nodes: &'a [Node],
    /// what the steps after it mention
    later: &'s VarSet,
    is_last: bool,
    /// nothing is joined with the result
    is_all: bool,
    /// joined before it, where nothing flows in and the rows are watched
    joined: Option<JoinKey>,
}

impl<'a> Planner<'a> {
    /// Nodes joined in the best order, conditions asked as soon as nothing to come can change
    /// them.
    pub(super) fn join_group(
        &mut self,
        nodes: &'a [Node],
        conditions: &[Expression],
        input: Option<Subplan>,
        want: &Want,
    ) -> Result<Subplan> {
        if input.is_none()
            && nodes.len() > 1
            && let Some((parts, conditions)) = self.keyed(nodes, conditions)
        {
            return self.join_group(parts, &conditions, None, want);
        }
        let scope = nodes.iter().fold(Scope::default(), |all, n| all.join(&n.scope()));
        let reads = self.reads(conditions);
        if !flows(&input, &reads, &scope.certain, Some(&scope.possible)) {
            let inner = Box::new(join(nodes.to_vec()));
            let node = self.made.keep(Node::Filter { inner, conditions: conditions.to_vec() });
            return self.apart(node, input, want);
        }
        let order = self.order(nodes, conditions, input.as_ref(), want)?;
        let mut open: Vec<Expression> = conditions.to_vec();
        let mut waiting = self.take_waiting(nodes, &order, &mut open, input.as_ref())?;
        // rows that are found for others are counted there
        let is_watched = nodes.len() > 1 && input.is_none() && self.contexts.is_empty();
        // all that a query joins is as much in any order
        let is_all = std::ptr::eq(nodes, self.all_joined);
        let mut joined = is_watched.then(JoinKey::default);
        let mut current = input;
        let later = self.mentioned_later(nodes, &order);
        assert_eq!(order.len(), nodes.len(), "all nodes of a join are ordered");
        for (number, (position, later)) in order.iter().zip(&later).enumerate() {
            let is_last = number + 1 == order.len();
            let step = Step { node: &nodes[*position], nodes, later, is_last, is_all, joined };
            open.extend(waiting.extract_if(.., |waits| waits.0 <= number).map(|waits| waits.1));
            let asked_later = waiting.iter().fold(VarSet::default(), |all, waits| all.union(&waits.1.vars()));
            current = Some(self.join_step(&step, current, &mut open, &want.with(&asked_later))?);
            joined = joined.map(|joined| joined.and(element(step.node)));
        }
        assert!(waiting.is_empty(), "a condition waits for a step of the join");
        let mut built = match current {
            Some(built) => built,
            None => self.unit(),
        };
        if !open.is_empty() {
            built = self.filter(built, open, &want.vars, nodes)?;
        }
        Ok(self.trim(built, &want.vars))
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

    /// Every variable a node names, in patterns or expressions.
    fn mentioned(&self, node: &Node) -> VarSet {
        let all = |nodes: &[Node]| nodes.iter().fold(VarSet::default(), |a, n| a.union(&self.mentioned(n)));
        match node {
            Node::Unit
            | Node::Pattern(_)
            | Node::Path { .. }
            | Node::GraphNames(_)
            | Node::Service(_)
            | Node::Context { .. }
            | Node::Values { .. } => node.scope().possible,
            Node::Join(nodes) | Node::Union(nodes) => all(nodes),
            Node::LeftJoin { left, right, conditions } | Node::Exists { left, right, conditions, .. } => {
                self.mentioned(left).union(&self.mentioned(right)).union(&self.reads(conditions))
            }
            Node::Minus { left, right, .. } => self.mentioned(left).union(&right.scope().possible),
            Node::Apply { left, right, vars, kind: ApplyKind::Left, .. } => {
                self.mentioned(left).union(vars).union(&right.scope().possible)
            }
            Node::Apply { left, vars, .. } => self.mentioned(left).union(vars),
            Node::Filter { inner, conditions } => self.mentioned(inner).union(&self.reads(conditions)),
            Node::Extend { inner, expr, .. } => {
                self.mentioned(inner).union(&expr.vars()).union(&node.scope().possible)
            }
            // sub-selects are evaluated on their own
            Node::Project { .. }
            | Node::Distinct(_)
            | Node::Reduced(_)
            | Node::Sort { .. }
            | Node::Slice { .. }
            | Node::Group { .. } => node.scope().possible,
        }
    }

    fn order(
        &mut self,
        nodes: &'a [Node],
        conditions: &[Expression],
        input: Option<&Subplan>,
        want: &Want,
    ) -> Result<Vec<usize>> {
        if nodes.len() < 2 {
            return Ok((0..nodes.len()).collect());
        }
        let mut filters = Vec::with_capacity(conditions.len());
        for c in conditions {
            filters.push(Condition { vars: c.vars(), selectivity: self.selectivity(c, nodes)? });
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
            let (pattern, index) = self.read_as(node)?;
            let scope = node.scope().possible;
            let remote = endpoints(node).map(|needs| Remote { needs });
            let walk = if let Node::Path { .. } = node { Some(self.walk_cost(node)?) } else { None };
            elements.push(Element {
                key: element(node),
                scope,
                estimate,
                rows_first,
                own_cost,
                pattern,
                index,
                visits,
                walk,
                remote,
            });
        }
        // where pages have to be read, fewer rows later are no better than fewer reads now
        let is_merged = want.copies != Copies::Count && self.costs.reads.times().is_none();
        let problem = Problem {
            start: input.map_or_else(Estimate::unit, |i| i.estimate.clone()),
            bound: input.map(Subplan::vars).unwrap_or_default(),
            elements: &elements,
            conditions: &filters,
            merged: is_merged.then_some(&want.vars),
            costs: self.costs,
            learned: self.learned,
            before: if input.is_some() { JoinKey::of_input() } else { JoinKey::default() },
        };
        problem.solve(self.limits)
    }

    /// A pattern where its reads matter, and the index that a node is scanned in.
    fn read_as(&mut self, node: &Node) -> Result<(Option<CountedPattern>, AnyIndex)> {
        let Node::Pattern(p) = node else { return Ok((None, Index::Psog.into())) };
        let is_cold = self.costs.reads.times().is_some();
        let pattern = if is_cold { Some(self.counted(p)?) } else { None };
        Ok((pattern, scanned_index(p)))
    }

    /// Index visits per input row when the input flows into the node.
    fn visits_of(&self, node: &Node) -> Option<f64> {
        let sum = |nodes: &[Node]| nodes.iter().map(|n| self.visits_of(n)).sum::<Option<f64>>();
        match node {
            Node::Pattern(p) => {
                let is_whole = p.triple_term().is_some();
                Some(if matches!(p.p, Slot::Var(_)) && !is_whole { UNKNOWN_PREDICATE_VISITS } else { 1.0 })
            }
            Node::Path { .. } => Some(PATH_VISITS),
            Node::Join(nodes) | Node::Union(nodes) => sum(nodes),
            // nothing flows into a key
            Node::Extend { expr: Expression::Key(_), .. } => None,
            Node::Filter { inner, .. } | Node::Extend { inner, .. } | Node::Project { inner, .. } => {
                self.visits_of(inner)
            }
            Node::LeftJoin { left, right, .. }
            | Node::Exists { left, right, .. }
            | Node::Apply { left, right, .. } => {
                Some(self.visits_of(left)? + self.visits_of(right).unwrap_or(UNKNOWN_VISITS))
            }
            _ => None,
        }
    }

    /// The cost of a node on its own, roughly: all rows that pass through it.
    fn own_cost(&mut self, node: &'a Node, estimate: &Estimate) -> Result<f64> {
        Ok(match node {
            Node::Pattern(p) => self.costs.scan(estimate.rows, scanned_index(p)).total(),
            Node::Service(service) => self.service_cost(service),
            Node::Path { .. } => self.walk_cost(node)?.all.total(),
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
                TWO_SIDES * self.own_cost(left, &e)?
            }
            _ => estimate.rows * self.costs.row,
        })
    }

    fn join_step(
        &mut self,
        step: &Step<'a, '_>,
        current: Option<Subplan>,
        open: &mut Vec<Expression>,
        want: &Want,
    ) -> Result<Subplan> {
        let Step { node, nodes, later, is_last, is_all, joined } = *step;
        let is_end = is_last && is_all;
        // the count of a pattern alone is exact
        let found = joined.filter(|_| current.is_some() || !matches!(node, Node::Pattern(_)));
        let found = found.filter(|_| !(is_end && nodes.len() == 2));
        let before = current.as_ref().map(Subplan::vars).unwrap_or_default();
        let scope = node.scope();
        let after = before.union(&scope.possible);
        self.limits.check()?;
        let live = want.vars.union(later).union(&self.reads(open));
        let certain = current.as_ref().map(|c| c.certain.clone()).unwrap_or_default().union(&scope.certain);
        // conditions that nothing to come can change
        let (mut ready, wait): (Vec<Expression>, Vec<Expression>) =
            std::mem::take(open).into_iter().partition(|c| {
                let vars = c.vars();
                vars.iter().all(|v| certain.contains(v) || !later.contains(v))
                    && (vars.intersects(&after) || is_last)
            });
        *open = wait;
        let mut built = match node {
            Node::Pattern(p) => {
                let live = want.vars.union(later).union(&self.reads(open));
                self.pattern_step(p, current, &want.with_only(live), &mut ready, nodes)?
            }
            Node::Path { .. } => self.path_step(node, current, &live)?,
            Node::GraphNames(slot) => self.graph_names(*slot, current, &live),
            Node::Context { row, vars } => self.context(*row, vars, current, &live),
            Node::Values { vars, rows } => {
                let estimate = self.estimate(node)?;
                let op = Op::Values { rows: rows.clone() };
                let values = self.make(op, vars.clone(), estimate, scope.certain.clone(), 0.0);
                match current {
                    Some(current) => self.hash(current, values, JoinKind::Inner, &live),
                    None => self.trim(values, &live),
                }
            }
            other => self.lower(other, current, &want.with_only(live.clone()))?,
        };
        if let Some(joined) = found {
            self.watch(&mut built, joined.before_conditions(element(node)));
        }
        let live = want.vars.union(later).union(&self.reads(open));
        if !ready.is_empty() {
            built = self.apply_conditions(built, ready, nodes, &live)?;
        }
        let mut built = self.trim_dead(built, &live);
        if let Some(joined) = joined.filter(|_| !is_end) {
            self.watch(&mut built, joined.and(element(node)));
        }
        // a join variable that is of no use any more leaves duplicates behind
        let lost = before.minus(&built.vars());
        let fans_out = lost.intersects(&scope.possible) && built.estimate.rows > FEW_ROWS;
        let merges = fans_out && !is_last && !built.node.vars.is_empty();
        Ok(match want.copies {
            Copies::Merge if merges => self.distinct(built, true),
            Copies::Weigh if merges => self.sum_weights(built),
            _ => built,
        })
    }

    /// Has the rows of a join watched. No fewer are expected than were met before.
    #[inline(never)]
    fn watch(&self, built: &mut Subplan, join: JoinKey) {
        if !self.learned.is_empty() {
            built.estimate.rows = bounded(self.learned.at_least(join, built.estimate.rows));
            built.node.rows = built.estimate.rows;
        }
        built.node.join = Some(join);
    }

    /// Rows that are equal, weights aside, as one.
    fn sum_weights(&mut self, built: Subplan) -> Subplan {
        let keys = built.cols(&built.vars().minus(&built.weights));
        let mut vars = built.pick(&keys);
        let estimate = built.estimate.clone().made_distinct(&vars.iter().copied().collect());
        let weights = built.cols(&built.weights);
        let weight = self.fresh_weight();
        vars.push(weight);
        let cost = built.node.cost + built.estimate.rows * self.costs.hash_row;
        let certain = built.certain.clone();
        let op = Op::Fold { input: Box::new(built.node), keys, weights };
        self.make(op, vars, estimate, certain, cost)
    }

    fn trim_dead(&mut self, built: Subplan, live: &VarSet) -> Subplan {
        if built.vars().is_subset(live) { built } else { self.trim(built, live) }
    }

    /// Conditions over what a join step gave: inside its look-up where they only read new
    /// columns.
    fn apply_conditions(
        &mut self,
        built: Subplan,
        ready: Vec<Expression>,
        nodes: &[Node],
        live: &VarSet,
    ) -> Result<Subplan> {
        let mut estimate = built.estimate.clone();
        for c in &ready {
            self.filtered(&mut estimate, c, nodes)?;
        }
        // those on texts last, for fewer rows
        let mut ready = ready;
        ready.sort_by_key(|c| !c.text_vars().is_empty());
        let mut built = built;
        let mut outside = Vec::new();
        for condition in ready {
            let vars = condition.vars();
            match &mut built.node.op {
                Op::Lookup { finds: Finds::Rows, keep, conditions, .. }
                    if vars.iter().all(|v| built.node.vars[keep.len()..].contains(&v)) =>
                {
                    built.node.cost = built.node.cost + self.text_cost(&condition, &built.estimate);
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
}

/// Of a node with endpoints elsewhere, the variables that name them and that it does not bind
/// itself; `None` where it has no endpoints that values can be sent to.
fn endpoints(node: &Node) -> Option<VarSet> {
    match node {
        Node::Service(service) => Some(service.endpoint.var().into_iter().collect()),
        Node::Filter { inner, .. } | Node::Extend { inner, .. } | Node::Project { inner, .. } => {
            endpoints(inner)
        }
        Node::Join(nodes) => {
            // each node once: joins may be within each other
            let each: Vec<Option<VarSet>> = nodes.iter().map(endpoints).collect();
            let needs = each.iter().flatten().cloned().reduce(|all, needs| all.union(&needs))?;
            let local = nodes.iter().zip(&each).filter(|(_, needs)| needs.is_none());
            Some(local.fold(needs, |needs, (node, _)| without_certain(needs, node)))
        }
        Node::LeftJoin { left, right, .. } => {
            let of_right = endpoints(right).map(|needs| without_certain(needs, left));
            match (endpoints(left), of_right) {
                (Some(left), Some(right)) => Some(left.union(&right)),
                (left, right) => left.or(right),
            }
        }
        Node::Union(nodes) => nodes.iter().filter_map(endpoints).reduce(|all, needs| all.union(&needs)),
        _ => None,
    }
}

/// The variables that a node does not bind in each solution.
fn without_certain(vars: VarSet, node: &Node) -> VarSet {
    if vars.is_empty() { vars } else { vars.minus(&node.scope().certain) }
}

/// Puts out only the live new columns of a look-up whose conditions have been evaluated inside.
fn narrow_lookup(built: &mut Subplan, live: &VarSet) {
    if let Op::Lookup { access, finds: Finds::Rows, keep, new, emit, .. } = &mut built.node.op {
        let weight = (access.copies == Copies::Weigh).then(|| built.node.vars.pop()).flatten();
        built.node.vars.truncate(keep.len());
        emit.retain(|c| live.contains(new[*c as usize]));
        built.node.vars.extend(emit.iter().map(|c| new[*c as usize]));
        built.node.vars.extend(weight);
    }
}
