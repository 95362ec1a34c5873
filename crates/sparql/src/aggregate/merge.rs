//! Groups put together of groups of other rows.

use super::{Aggregate, GroupStates, count};
use crate::value::{TermError, Terms};

/// A group that grows by another one.
#[derive(Clone, Copy)]
pub(crate) struct MergedGroup {
    pub to: usize,
    /// of the other aggregate
    pub from: usize,
    /// how often its rows count
    pub times: u64,
}

impl Aggregate {
    /// Takes the rows of another aggregate's groups into its own, without looking at them again.
    pub(crate) fn merge(
        &mut self,
        other: &Aggregate,
        groups: impl Iterator<Item = MergedGroup>,
        terms: &Terms,
    ) -> Result<(), TermError> {
        assert!(self.distinct.is_none() && other.distinct.is_none(), "equal arguments of parts count once");
        match (&mut self.state, &other.state) {
            (GroupStates::Count { groups: own, .. }, GroupStates::Count { groups: of, .. }) => {
                for MergedGroup { to, from, times } in groups {
                    count_times(&mut own[to], of[from], times)?;
                }
            }
            (GroupStates::Sum { groups: own, bytes }, GroupStates::Sum { groups: of, .. }) => {
                for MergedGroup { to, from, times } in groups {
                    *bytes += own[to].add_total(&of[from], times, terms);
                }
            }
            (GroupStates::Average { groups: own, bytes }, GroupStates::Average { groups: of, .. }) => {
                for MergedGroup { to, from, times } in groups {
                    let (total, number) = &mut own[to];
                    *bytes += total.add_total(&of[from].0, times, terms);
                    count_times(number, of[from].1, times)?;
                }
            }
            (GroupStates::Best { groups: own, max, bytes }, GroupStates::Best { groups: of, .. }) => {
                for MergedGroup { to, from, .. } in groups {
                    let best = &mut own[to];
                    *bytes -= best.bytes();
                    best.merge(&of[from], *max, terms);
                    *bytes += best.bytes();
                    if *bytes > self.held.bytes() {
                        self.held.set(*bytes + super::AHEAD, "group")?;
                    }
                }
            }
            (GroupStates::Sample(own), GroupStates::Sample(of)) => {
                for MergedGroup { to, from, .. } in groups {
                    if own[to].is_undef() {
                        own[to] = of[from];
                    }
                }
            }
            _ => unreachable!("groups of one function are merged, and texts come in an order"),
        }
        terms.fault()
    }
}

/// Counts the rows of a group, each so many times.
#[inline]
fn count_times(number: &mut i64, rows: i64, times: u64) -> Result<(), TermError> {
    let rows = u64::try_from(rows).expect("a count is of rows");
    count(number, rows.checked_mul(times).ok_or(TermError::Count)?)
}
