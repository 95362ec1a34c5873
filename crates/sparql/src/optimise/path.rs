//! How many pairs a property path has, and what it costs to walk it.
//!
//! Of a predicate the pairs are counted, and so are the nodes at both ends, as far as the database
//! knows them. How many of the nodes at which an edge ends have an edge of their own is sampled.
//! A closure grows from level to level by that share times the edges of a node: below 1 the levels
//! are a geometric series, from 1 on it is taken to reach [`CLOSURE`] times its edges.

use super::device_time;
use super::guess::{CLOSURE, UNKNOWN_ONWARD};
use super::{Estimate, Planner, PredicateStatistics};
use crate::algebra::{Const, Node, PropertyPath, Slot, Var};
use crate::error::QueryError;
use crate::plan::Cost;

/// Microseconds for a pair that a walk reaches: edge, set of what is reached, list.
const PAIR: f64 = 0.25;

/// Pairs of a path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PathPairs {
    pub pairs: f64,
    /// nodes at which it starts
    pub starts: f64,
    /// nodes at which it ends
    pub ends: f64,
    /// share of the nodes at which it ends that it starts at, too
    onward: f64,
    /// further pairs of no step: each node with itself
    pub nodes: f64,
}

impl PathPairs {
    fn turned(self) -> Self {
        let both = self.onward * self.ends;
        let onward = (both / self.starts.max(1.0)).min(1.0);
        Self { starts: self.ends, ends: self.starts, onward, ..self }
    }

    fn then(self, next: Self) -> Self {
        let met = self.ends.max(next.starts).max(1.0);
        let steps = self.pairs * next.pairs / met;
        let pairs = steps + self.nodes.min(1.0) * next.pairs + next.nodes.min(1.0) * self.pairs;
        Self {
            pairs,
            starts: (self.starts + self.nodes.min(1.0) * next.starts).min(pairs),
            ends: (next.ends + next.nodes.min(1.0) * self.ends).min(pairs),
            onward: UNKNOWN_ONWARD,
            nodes: if self.nodes > 0.0 { next.nodes } else { 0.0 },
        }
    }

    fn or(self, other: Self) -> Self {
        Self {
            pairs: self.pairs + other.pairs,
            starts: self.starts + other.starts,
            ends: self.ends + other.ends,
            onward: (self.onward + other.onward).min(1.0),
            nodes: self.nodes.max(other.nodes),
        }
    }

    /// Any number of steps, at least one.
    fn repeated(self) -> Self {
        let growth = self.onward * self.pairs / self.starts.max(1.0);
        let levels = 1.0 / (1.0 - growth.min(1.0)).max(1.0 / CLOSURE);
        let most = (self.starts * self.ends).max(self.pairs);
        Self { pairs: (self.pairs * levels).min(most), ..self }
    }

    /// Pairs of one node at which it may start.
    pub fn of_start(self) -> f64 {
        self.pairs / self.starts.max(1.0) + self.nodes.min(1.0)
    }

    /// Pairs of one node at which it may end.
    pub fn of_end(self) -> f64 {
        self.turned().of_start()
    }
}

/// Costs of walking a path.
#[derive(Clone, Copy, Debug)]
pub(super) struct WalkCost {
    /// from all nodes
    pub all: Cost,
    /// the ends that are variables, with the cost from a node there
    pub from: [Option<(Var, Cost)>; 2],
}

impl<'a> Planner<'a> {
    pub(super) fn path_pairs(&mut self, path: &PropertyPath) -> Result<PathPairs, QueryError> {
        Ok(match path {
            PropertyPath::Predicate(p) => self.edges(*p)?,
            PropertyPath::Reverse(path) => self.path_pairs(path)?.turned(),
            PropertyPath::Sequence(steps) => {
                let mut all = self.path_pairs(&steps[0])?;
                for step in &steps[1..] {
                    all = all.then(self.path_pairs(step)?);
                }
                all
            }
            PropertyPath::Alternative(paths) => {
                let mut any = self.path_pairs(&paths[0])?;
                for path in &paths[1..] {
                    any = any.or(self.path_pairs(path)?);
                }
                any
            }
            PropertyPath::ZeroOrOne(path) => self.with_nodes(path)?,
            PropertyPath::ZeroOrMore(path) => self.with_nodes(path)?.repeated(),
            PropertyPath::OneOrMore(path) => self.path_pairs(path)?.repeated(),
            PropertyPath::Negated(_) => {
                let totals = self.statistics.totals();
                PathPairs {
                    pairs: totals.quads,
                    starts: totals.subjects,
                    ends: totals.objects,
                    onward: UNKNOWN_ONWARD,
                    nodes: 0.0,
                }
            }
        })
    }

    /// Expected solutions of a path.
    pub(super) fn path_estimate(
        &mut self,
        s: Slot,
        path: &PropertyPath,
        o: Slot,
    ) -> Result<Estimate, QueryError> {
        let pairs = self.path_pairs(path)?;
        let rows = match (s, o) {
            (Slot::Var(_), Slot::Var(_)) => pairs.pairs + pairs.nodes,
            (Slot::Const(_), Slot::Var(_)) => pairs.of_start(),
            (Slot::Var(_), Slot::Const(_)) => pairs.of_end(),
            (Slot::Const(_), Slot::Const(_)) => 0.5,
        };
        let mut estimate = Estimate::of_rows(rows);
        for (slot, distinct) in [(s, pairs.starts), (o, pairs.ends)] {
            if let Slot::Var(v) = slot {
                let distinct = (distinct + pairs.nodes).max(1.0);
                estimate.set(v, distinct.min(rows), distinct);
            }
        }
        Ok(estimate)
    }

    fn with_nodes(&mut self, path: &PropertyPath) -> Result<PathPairs, QueryError> {
        let totals = self.statistics.totals();
        Ok(PathPairs { nodes: totals.subjects + totals.objects, ..self.path_pairs(path)? })
    }

    fn edges(&mut self, p: Const) -> Result<PathPairs, QueryError> {
        let Some(id) = self.statistics.id(p) else { return Ok(PathPairs::default()) };
        let PredicateStatistics { rows, subjects, objects } = self.statistics.predicate(id)?;
        let onward = self.statistics.onward(id)?;
        Ok(PathPairs { pairs: rows, starts: subjects, ends: objects, onward, nodes: 0.0 })
    }

    /// The cost of so many pairs, each from a look-up.
    fn visited(&self, pairs: f64) -> Cost {
        let io = device_time::lookup(&self.costs.reads, self.anywhere(), pairs, pairs);
        Cost { cpu: pairs * (self.costs.near_key + PAIR), io }
    }

    /// The cost of a path's walk.
    pub(super) fn walk_cost(&mut self, node: &Node) -> Result<WalkCost, QueryError> {
        let Node::Path { s, path, o, .. } = node else { unreachable!("called for paths") };
        let pairs = self.path_pairs(path)?;
        let start = self.visited(pairs.of_start()) + self.costs.key;
        let end = self.visited(pairs.of_end()) + self.costs.key;
        let all = match (s, o) {
            (Slot::Var(_), Slot::Var(_)) => self.visited(pairs.starts + pairs.pairs + pairs.nodes),
            (Slot::Const(_), Slot::Var(_)) => start,
            (Slot::Var(_), Slot::Const(_)) => end,
            (Slot::Const(_), Slot::Const(_)) => least(start, end),
        };
        let all = all + self.costs.operator;
        let from = [(s, start), (o, end)].map(|(slot, cost)| slot.var().map(|v| (v, least(cost, all))));
        Ok(WalkCost { all, from })
    }
}

fn least(one: Cost, other: Cost) -> Cost {
    if other.total() < one.total() { other } else { one }
}

impl WalkCost {
    /// Of rows that bind some of the variables, to so many values: by the end from which it is
    /// least. `None` where they bind none.
    pub fn of_rows(&self, distinct: impl Fn(Var) -> Option<f64>) -> Option<Cost> {
        let bound = self.from.iter().flatten();
        let costs = bound.filter_map(|(v, cost)| distinct(*v).map(|n| cost.map(|one| n * one)));
        costs.reduce(least)
    }
}
