//! The order of a join.
//!
//! Up to [`DP_ELEMENTS`] elements: dynamic programming over sets of elements, left-deep
//! (Selinger et al., SIGMOD 1979); a step to an unconnected element is only tried when it is
//! small or nothing else is left. Beyond: the cheapest next step each time ([`super::greedy`]).
//! A step's cost is the cheaper of look-ups and a hash join.

use snowmelt_graph::{AnyIndex, Index};

use super::access::CountedPattern;
use super::device_time::{Reach, handicap};
use super::greedy::greedy;
use super::guess::{REMOTE_ROW_US, REMOTE_TRIP_US, REMOTE_VALUE_US, REMOTE_VALUES};
use super::path::WalkCost;
use super::{Costs, Estimate};
use crate::algebra::VarSet;
use crate::bounds::Limits;
use crate::error::QueryError;
use crate::plan::{JoinKey, Learned};

/// Above this the 2ⁿ table costs more than it gains.
const DP_ELEMENTS: usize = 10;

/// An element of a join.
#[derive(Debug)]
pub(super) struct Element {
    /// what tells it apart
    pub key: u64,
    pub scope: VarSet,
    pub estimate: Estimate,
    /// rows when it is read first, with the bounds its filters put on the index
    pub rows_first: f64,
    /// its cost on its own
    pub own_cost: f64,
    /// the pattern that it is, if it is one and its reads matter
    pub pattern: Option<CountedPattern>,
    /// the index that it is scanned in
    pub index: AnyIndex,
    /// visits to indexes per input row, when the bound variables are keys; `None`: it can only
    /// stand alone
    pub visits: Option<f64>,
    /// of a property path
    pub walk: Option<WalkCost>,
    /// of one that endpoints elsewhere have a part in
    pub remote: Option<Remote>,
}

/// An element that is answered elsewhere.
#[derive(Debug)]
pub(super) struct Remote {
    /// variables that name its endpoints
    pub needs: VarSet,
}

/// The cost of a step that cannot be made: all others come first.
const IMPOSSIBLE: f64 = 1e100;

/// A condition, by what it needs.
#[derive(Debug)]
pub(super) struct Condition {
    pub vars: VarSet,
    pub selectivity: f64,
}

pub(super) struct Problem<'a> {
    pub start: Estimate,
    pub bound: VarSet,
    pub elements: &'a [Element],
    pub conditions: &'a [Condition],
    pub costs: Costs,
    pub learned: &'a Learned,
    /// of what is joined before
    pub before: JoinKey,
}

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
        for set in 0..(1usize << n) {
            let Some(state) = best[set].clone() else { continue };
            for next in self.candidates(&state, set, n) {
                let to = set | 1 << next;
                let cost = state.cost + self.step_cost(&state, next, set);
                if best[to].as_ref().is_none_or(|b| cost < b.cost) {
                    best[to] = Some(self.step(&state, next, cost));
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

    /// Rows that an element finds, before conditions: no fewer than were met.
    pub fn found(&self, joined: JoinKey, e: usize, rows: f64) -> f64 {
        self.learned.at_least(joined.before_conditions(self.elements[e].key), rows)
    }

    /// The cost of an element that nothing is before.
    pub fn first_cost(&self, e: usize) -> f64 {
        let element = &self.elements[e];
        if let Some(Remote { needs }) = &element.remote {
            return if needs.is_empty() { element.own_cost } else { IMPOSSIBLE };
        }
        match element.visits {
            _ if element.walk.is_some() => element.own_cost,
            Some(_) => self.costs.scan(element.rows_first, element.index).total(),
            None => element.own_cost,
        }
    }

    /// The cost of joining an element to what is there, to find so many rows; with what is bound
    /// there, if it shares variables with that.
    pub fn next_cost(&self, before: &Estimate, e: usize, bound: Option<&VarSet>, found: f64) -> f64 {
        let (element, costs, input) = (&self.elements[e], &self.costs, before.rows);
        if let Some(remote) = &element.remote {
            return remote.next_cost(element, input, bound, found);
        }
        let apart = element.own_cost
            + costs.hash(element.estimate.rows.min(input), element.estimate.rows.max(input), found);
        if let Some(walk) = &element.walk {
            let distinct = |v| bound.filter(|bound| bound.contains(v)).map(|_| before.distinct(v));
            return walk
                .of_rows(distinct)
                .map_or(apart, |walked| apart.min(walked.total() + found * costs.row));
        }
        match (element.visits, bound) {
            (Some(visits), Some(bound)) => {
                let reach = self.reach(element, bound);
                let lookup = costs.lookup(input, element.estimate.rows, found, reach).total();
                (visits * lookup).min(apart + handicap(&costs.reads))
            }
            _ => apart,
        }
    }

    /// Where the keys of look-ups into an element lie; of what is no pattern, anywhere.
    fn reach(&self, element: &Element, bound: &VarSet) -> Reach {
        let reads = &self.costs.reads;
        let anywhere = || Reach { index: Index::Psog.into(), rows: reads.index(Index::Psog).rows };
        element.pattern.as_ref().map_or_else(anywhere, |pattern| pattern.reach(bound, reads))
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

impl Remote {
    /// The cost of asking for the values of so many rows, or for all there is.
    fn next_cost(&self, element: &Element, input: f64, bound: Option<&VarSet>, found: f64) -> f64 {
        let is_bound = |vars: &VarSet| bound.is_some_and(|bound| vars.is_subset(bound));
        if !is_bound(&self.needs) && !self.needs.is_empty() {
            return IMPOSSIBLE;
        }
        let trips = (input / REMOTE_VALUES).ceil() * REMOTE_TRIP_US;
        let sent = trips + input * REMOTE_VALUE_US + found * REMOTE_ROW_US;
        if bound.is_some() { sent.min(element.own_cost) } else { element.own_cost }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algebra::Var;

    fn element(rows: f64, vars: &[(u32, f64, f64)]) -> Element {
        let vars: Vec<_> = vars.iter().map(|v| (Var(v.0), v.1, v.2)).collect();
        Element {
            key: 0,
            scope: vars.iter().map(|v| v.0).collect(),
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
