//! The order of a join.
//!
//! Up to [`DP_ELEMENTS`] elements: dynamic programming over sets of elements, left-deep
//! (Selinger et al., SIGMOD 1979); a step to an unconnected element is only tried when it is
//! small or nothing else is left. Beyond: the cheapest next step each time ([`super::greedy`]).

use super::Estimate;
use super::greedy::greedy;
use super::problem::Problem;
use crate::algebra::VarSet;
use crate::bounds::Limits;
use crate::error::QueryError;
use crate::plan::JoinKey;

/// Above this the 2ⁿ table costs more than it gains.
const DP_ELEMENTS: usize = 10;

#[derive(Clone)]
struct JoinedSet {
    cost: f64,
    estimate: Estimate,
    bound: VarSet,
    joined: JoinKey,
    last: usize,
}

impl Problem<'_> {
    /// The elements' positions in the order to join them.
    ///
    /// # Errors
    /// When the query must stop.
    pub fn solve(&self, limits: &Limits) -> Result<Vec<usize>, QueryError> {
        let order: Vec<usize> = match self.elements.len() {
            n @ (0 | 1) => (0..n).collect(),
            n if n <= DP_ELEMENTS => self.dynamic(n),
            _ => greedy(self, limits)?,
        };
        let mut is_joined = vec![false; self.elements.len()];
        for element in &order {
            let again = std::mem::replace(&mut is_joined[*element], true);
            assert!(!again, "element {element} is joined twice, in the place of another");
        }
        assert_eq!(order.len(), self.elements.len(), "each element is joined once");
        Ok(order)
    }

    fn begin(&self) -> JoinedSet {
        JoinedSet {
            cost: 0.0,
            estimate: self.start.clone(),
            bound: self.bound.clone(),
            joined: self.before,
            last: usize::MAX,
        }
    }

    fn dynamic(&self, n: usize) -> Vec<usize> {
        let mut best: Vec<Option<JoinedSet>> = vec![None; 1 << n];
        best[0] = Some(self.begin());
        let mentioned = if self.merged.is_some() { self.mentioned(n) } else { Vec::new() };
        let all = (1 << n) - 1;
        for set in 0..(1usize << n) {
            let Some(state) = best[set].clone() else { continue };
            for next in self.candidates(&state, set, n) {
                let to = set | 1 << next;
                let cost = state.cost + self.step_cost(&state, next, set);
                if best[to].as_ref().is_some_and(|b| cost >= b.cost) {
                    continue;
                }
                let mut step = self.step(&state, next, cost);
                if let Some(wanted) = self.merged
                    && to != all
                {
                    let live = self.live(wanted, &mentioned[all & !to], &step.bound);
                    step.cost += self.merge(next, &state.bound, &live, &mut step.estimate);
                }
                if best[to].as_ref().is_none_or(|b| step.cost < b.cost) {
                    best[to] = Some(step);
                }
            }
        }
        let mut order = Vec::with_capacity(n);
        let mut set = (1 << n) - 1;
        while set != 0 {
            let last = best[set].as_ref().expect("every set is reached from a smaller one").last;
            order.push(last);
            set &= !(1 << last);
        }
        order.reverse();
        order
    }

    /// For each set of elements, the variables they have.
    fn mentioned(&self, n: usize) -> Vec<VarSet> {
        let mut sets = vec![VarSet::default()];
        for set in 1..1usize << n {
            let first = set.trailing_zeros() as usize;
            sets.push(sets[set & (set - 1)].union(&self.elements[first].scope));
        }
        sets
    }

    fn candidates(&self, state: &JoinedSet, set: usize, n: usize) -> Vec<usize> {
        let open = (0..n).filter(|e| set & (1 << e) == 0);
        let connected: Vec<usize> = open.clone().filter(|e| self.welcome(state, *e)).collect();
        if connected.is_empty() { open.collect() } else { connected }
    }

    /// Connected to what is there, or too small to matter, or the first.
    fn welcome(&self, state: &JoinedSet, e: usize) -> bool {
        let element = &self.elements[e];
        state.bound.is_empty() || element.scope.intersects(&state.bound) || element.estimate.rows <= 2.0
    }

    fn step_cost(&self, state: &JoinedSet, e: usize, set: usize) -> f64 {
        if set == 0 && state.bound.is_empty() {
            return self.first_cost(e);
        }
        let connected = self.elements[e].scope.intersects(&state.bound);
        let found = state.estimate.join_rows(&self.elements[e].estimate);
        let found = self.found(state.joined, e, found);
        self.next_cost(&state.estimate, e, connected.then_some(&state.bound), found)
    }

    fn step(&self, state: &JoinedSet, e: usize, cost: f64) -> JoinedSet {
        let element = &self.elements[e];
        let bound = state.bound.union(&element.scope);
        let mut estimate = state.estimate.join(&element.estimate);
        estimate.rows = self.found(state.joined, e, estimate.rows);
        for c in self.conditions {
            if c.vars.is_subset(&bound) && !c.vars.is_subset(&state.bound) {
                estimate.rows *= c.selectivity;
            }
        }
        let joined = state.joined.and(element.key);
        estimate.rows = self.learned.at_least(joined, estimate.rows);
        JoinedSet { cost, estimate, bound, joined, last: e }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use snowmelt_graph::Index;

    use crate::algebra::Var;
    use crate::optimise::problem::Element;
    use crate::optimise::{Costs, OfVariable};
    use crate::plan::Learned;

    fn element(rows: f64, vars: &[(u32, f64, f64)]) -> Element {
        let vars: Vec<_> =
            vars.iter().map(|&(v, distinct, domain)| OfVariable { var: Var(v), distinct, domain }).collect();
        Element {
            key: 0,
            scope: vars.iter().map(|of| of.var).collect(),
            estimate: Estimate { rows, vars, sample: None },
            rows_first: rows,
            own_cost: rows * 0.01,
            pattern: None,
            index: Index::Psog.into(),
            visits: Some(1.0),
            walk: None,
            remote: None,
        }
    }

    fn solve(elements: &[Element]) -> Vec<usize> {
        Problem {
            start: Estimate::unit(),
            bound: VarSet::default(),
            elements,
            conditions: &[],
            merged: None,
            costs: Costs::default(),
            learned: &Learned::default(),
            before: JoinKey::default(),
        }
        .solve(&Limits::default())
        .unwrap()
    }

    #[test]
    fn the_rare_pattern_comes_first_and_the_label_last() {
        let label = element(49_000.0, &[(0, 49_000.0, 49_000.0), (1, 40_000.0, 40_000.0)]);
        let of_type = element(2_000.0, &[(0, 2_000.0, 49_000.0)]);
        let feature = element(30.0, &[(0, 30.0, 28_480.0)]);
        assert_eq!(solve(&[label, of_type, feature]), [2, 1, 0]);
    }

    #[test]
    fn greedy_agrees_on_a_long_star() {
        let mut star: Vec<Element> =
            (1..14).map(|i| element(30_000.0, &[(0, 30_000.0, 30_000.0), (i, 5_000.0, 5_000.0)])).collect();
        star.push(element(3.0, &[(0, 3.0, 30_000.0)]));
        assert_eq!(solve(&star)[0], 13);
    }
}
