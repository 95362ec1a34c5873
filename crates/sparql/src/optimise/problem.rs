//! Costs that joins are ordered by: the elements of one, and the cost of each as the next step.
//!
//! A step's cost is the cheaper of look-ups and a hash join.

use snowmelt_graph::{AnyIndex, Index};

use super::access::CountedPattern;
use super::device_time::{Reach, handicap};
use super::guess::{REMOTE_ROW_US, REMOTE_TRIP_US, REMOTE_VALUE_US, REMOTE_VALUES};
use super::path::WalkCost;
use super::{Costs, Estimate};
use crate::algebra::VarSet;
use crate::plan::{JoinKey, Learned};

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

/// A join whose order is sought.
pub(super) struct Problem<'a> {
    pub start: Estimate,
    pub bound: VarSet,
    pub elements: &'a [Element],
    pub conditions: &'a [Condition],
    /// the variables that come out, where equal rows are as good as one
    pub merged: Option<&'a VarSet>,
    pub costs: Costs,
    pub learned: &'a Learned,
    /// of what is joined before
    pub before: JoinKey,
}

impl Problem<'_> {
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

    /// The variables that are asked for later than a step, by those of the elements left and those
    /// that are bound by then.
    pub fn live(&self, wanted: &VarSet, left: &VarSet, bound: &VarSet) -> VarSet {
        let open = self.conditions.iter().filter(|c| !c.vars.is_subset(bound));
        open.fold(wanted.union(left), |live, c| live.union(&c.vars))
    }

    /// Has equal rows of a step come as one, as they do where a join variable, or one of a pattern
    /// alone, is of no use any more; the cost of that. `before` was bound before the element.
    pub fn merge(&self, e: usize, before: &VarSet, live: &VarSet, estimate: &mut Estimate) -> f64 {
        let element = &self.elements[e];
        let dead = element.scope.minus(live);
        let loses = dead.intersects(before);
        // the rows of a visit that differ in nothing else are neighbours
        let folds = element.visits == Some(1.0) && !dead.is_empty();
        if !loses && !folds {
            return 0.0;
        }
        let all = estimate.rows;
        let kept = before.union(&element.scope).intersection(live);
        estimate.rows = estimate.combinations(&kept).max(all.min(1.0));
        if loses { all * self.costs.hash_row } else { 0.0 }
    }

    /// Where the keys of look-ups into an element lie; of what is no pattern, anywhere.
    fn reach(&self, element: &Element, bound: &VarSet) -> Reach {
        let reads = &self.costs.reads;
        let anywhere = || Reach { index: Index::Psog.into(), rows: reads.index(Index::Psog).rows };
        element.pattern.as_ref().map_or_else(anywhere, |pattern| pattern.reach(bound, reads))
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
