//! The order of a long join: the cheapest next step each time.
//!
//! n steps that each look at all elements left: n² looks, so a look must be short. It asks for
//! the rows of a join alone, and of the conditions only those that read a variable of the
//! element.

use rustc_hash::FxHashMap;

use super::Estimate;
use super::order::Problem;
use crate::algebra::{Var, VarSet};
use crate::bounds::Limits;
use crate::error::QueryError;

/// Looks between two at the clock.
const LOOKS: usize = 1 << 12;

struct Greedy<'a> {
    problem: &'a Problem<'a>,
    estimate: Estimate,
    bound: VarSet,
    /// shares a variable with what is joined
    connected: Vec<bool>,
    /// the elements of a variable
    having: FxHashMap<Var, Vec<usize>>,
    /// the conditions that read a variable of an element
    reading: Vec<Vec<usize>>,
    /// what a condition reads that is not bound; `None` once it holds
    missing: Vec<Option<VarSet>>,
}

/// The elements' positions in the order to join them.
pub(super) fn greedy(problem: &Problem<'_>, limits: &Limits) -> Result<Vec<usize>, QueryError> {
    let mut greedy = Greedy::new(problem);
    let mut left: Vec<usize> = (0..problem.elements.len()).collect();
    let mut order = Vec::with_capacity(left.len());
    let mut looks = 0;
    while !left.is_empty() {
        looks += left.len();
        if looks >= LOOKS {
            limits.check()?;
            looks = 0;
        }
        let welcome = left.iter().any(|e| greedy.is_welcome(*e));
        let among = left.iter().enumerate().filter(|(_, e)| !welcome || greedy.is_welcome(**e));
        let worth = among.map(|(at, e)| (at, greedy.worth(*e, order.is_empty(), left.len())));
        let (at, _) = worth.min_by(|a, b| a.1.total_cmp(&b.1)).expect("not empty");
        let next = left.remove(at);
        greedy.take(next);
        order.push(next);
    }
    assert_eq!(order.len(), problem.elements.len(), "each element is joined once");
    Ok(order)
}

impl<'a> Greedy<'a> {
    fn new(problem: &'a Problem<'a>) -> Self {
        let mut having: FxHashMap<Var, Vec<usize>> = FxHashMap::default();
        for (e, element) in problem.elements.iter().enumerate() {
            element.scope.iter().for_each(|v| having.entry(v).or_default().push(e));
        }
        let mut reading = vec![Vec::new(); problem.elements.len()];
        for (c, condition) in problem.conditions.iter().enumerate() {
            let readers = condition.vars.iter().filter_map(|v| having.get(&v)).flatten();
            let mut readers: Vec<usize> = readers.copied().collect();
            readers.sort_unstable();
            readers.dedup();
            readers.into_iter().for_each(|e| reading[e].push(c));
        }
        let missing = |vars: &VarSet| Some(vars.minus(&problem.bound)).filter(|m| !m.is_empty());
        let mut greedy = Self {
            problem,
            estimate: problem.start.clone(),
            bound: VarSet::default(),
            connected: vec![false; problem.elements.len()],
            having,
            reading,
            missing: problem.conditions.iter().map(|c| missing(&c.vars)).collect(),
        };
        greedy.bind(&problem.bound);
        greedy
    }

    fn bind(&mut self, vars: &VarSet) {
        for v in vars.minus(&self.bound).iter() {
            self.having.get(&v).into_iter().flatten().for_each(|e| self.connected[*e] = true);
        }
        self.bound = self.bound.union(vars);
    }

    /// Connected to what is there, or too small to matter, or the first.
    fn is_welcome(&self, e: usize) -> bool {
        self.bound.is_empty() || self.connected[e] || self.problem.elements[e].estimate.rows <= 2.0
    }

    /// The share of rows that the conditions let pass which an element makes decidable.
    fn selectivity(&self, e: usize) -> f64 {
        let scope = &self.problem.elements[e].scope;
        let decided = |c: &&usize| self.missing[**c].as_ref().is_some_and(|missing| missing.is_subset(scope));
        self.reading[e].iter().filter(decided).map(|c| self.problem.conditions[*c].selectivity).product()
    }

    /// Its cost now, and that of each row it leaves in the steps to come.
    fn worth(&self, e: usize, first: bool, left: usize) -> f64 {
        let found = self.estimate.join_rows(&self.problem.elements[e].estimate);
        let cost = if first && self.bound.is_empty() {
            self.problem.first_cost(e)
        } else {
            self.problem.next_cost(&self.estimate, e, self.connected[e].then_some(&self.bound), found)
        };
        cost + found * self.selectivity(e) * self.problem.costs.near_key * left as f64
    }

    fn take(&mut self, e: usize) {
        let element = &self.problem.elements[e];
        let selectivity = self.selectivity(e);
        self.estimate = self.estimate.join(&element.estimate).scaled(selectivity);
        self.bind(&element.scope);
        for c in &self.reading[e] {
            let rest = self.missing[*c].take().map(|missing| missing.minus(&element.scope));
            self.missing[*c] = rest.filter(|missing| !missing.is_empty());
        }
    }
}
