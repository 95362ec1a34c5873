//! The order of a long join: the cheapest next step each time.
//!
//! Each step considers the elements left, at most [`AMONG`], so considering one must be cheap: it
//! estimates only the rows of the join, and asks only the conditions that read a variable of the
//! element.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::Estimate;
use super::problem::Problem;
use crate::algebra::{Var, VarSet};
use crate::bounds::Limits;
use crate::error::QueryError;
use crate::plan::JoinKey;

/// Elements that a step considers: the first ones in the order of the text. Considering all
/// elements of a longer join would cost the square of their number.
const AMONG: usize = 1 << 10;

/// Elements considered between two checks of the limits.
const LOOKS: usize = 1 << 12;

struct Greedy<'a> {
    problem: &'a Problem<'a>,
    estimate: Estimate,
    joined: JoinKey,
    bound: VarSet,
    left: BTreeSet<usize>,
    /// of those left: connected to what is there, or too small to matter
    welcome: BTreeSet<usize>,
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
    let mut order = Vec::with_capacity(problem.elements.len());
    let mut looks = 0;
    while !greedy.left.is_empty() {
        let among = greedy.among();
        looks += among.len().min(AMONG);
        if looks >= LOOKS {
            limits.check()?;
            looks = 0;
        }
        let (is_first, left) = (order.is_empty(), greedy.left.len());
        let worth = among.iter().take(AMONG).map(|e| (*e, greedy.worth(*e, is_first, left)));
        let (next, _) = worth.min_by(|a, b| a.1.total_cmp(&b.1)).expect("not empty");
        greedy.take(next);
        order.push(next);
    }
    debug_assert!(
        greedy.missing.iter().flatten().all(|vars| !vars.intersects(&greedy.bound)),
        "a condition lacks only variables that are not bound"
    );
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
            left: (0..problem.elements.len()).collect(),
            welcome: (0..problem.elements.len())
                .filter(|e| problem.elements[*e].estimate.rows <= 2.0)
                .collect(),
            estimate: problem.start.clone(),
            joined: problem.before,
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
            for e in self.having.get(&v).into_iter().flatten() {
                self.connected[*e] = true;
                if self.left.contains(e) {
                    self.welcome.insert(*e);
                }
            }
        }
        self.bound = self.bound.union(vars);
    }

    /// Those that may be next.
    fn among(&self) -> &BTreeSet<usize> {
        if self.bound.is_empty() || self.welcome.is_empty() { &self.left } else { &self.welcome }
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
        let found = self.problem.found(self.joined, e, found);
        let cost = if first && self.bound.is_empty() {
            self.problem.first_cost(e)
        } else {
            self.problem.next_cost(&self.estimate, e, self.connected[e].then_some(&self.bound), found)
        };
        cost + found * self.selectivity(e) * self.problem.costs.near_key * left as f64
    }

    fn take(&mut self, e: usize) {
        self.left.remove(&e);
        self.welcome.remove(&e);
        let element = &self.problem.elements[e];
        let selectivity = self.selectivity(e);
        let joined = self.estimate.join(&element.estimate);
        let found = self.problem.found(self.joined, e, joined.rows);
        self.joined = self.joined.and(element.key);
        let rows = self.problem.learned.at_least(self.joined, found * selectivity);
        self.estimate = Estimate { rows, sample: None, ..joined };
        self.bind(&element.scope);
        for c in &self.reading[e] {
            let rest = self.missing[*c].take().map(|missing| missing.minus(&element.scope));
            self.missing[*c] = rest.filter(|missing| !missing.is_empty());
        }
    }
}
