//! Aggregates: one state per group, fed column by column.
//!
//! The grouping operator numbers its groups densely from 0 and calls [`Aggregate::update`]
//! with, for each row, the group and the id of the argument; [`Aggregate::finish`] gives one id
//! per group. Inline numbers are added without leaving the ids.
//!
//! Errors (SPARQL 1.1, section 18.5.1): COUNT and SAMPLE pass over unbound values; to the
//! others an unbound value or one they cannot take (a sum of strings) is an error of the group,
//! and its result is unbound. Of no values at all, COUNT, SUM and AVG are 0, GROUP_CONCAT is
//! "", the others unbound.

mod best;
mod merge;
mod sum;
mod texts;

use rustc_hash::FxHashSet;
use snowmelt_graph::{TermId, TermKind, TermRef};

use crate::algebra::GroupFunction;
use crate::bounds::Held;
use crate::value::{TermError, TermStore, Terms, Value};
use best::Best;
use sum::Total;

pub(crate) use merge::MergedGroup;

/// Bytes reserved ahead, so that not every row asks.
const AHEAD: usize = 64 << 10;

/// One aggregate over all groups.
pub struct Aggregate {
    state: GroupStates,
    distinct: Option<DistinctArguments>,
    /// of the texts in its groups: reserved before they grow, since one batch may hold many
    held: Held,
}

/// Rows for an aggregate: row i belongs to group `groups[i]`, its argument is `args[i]`, and it
/// stands for `weights[i]` rows that are equal to it.
#[derive(Clone, Copy)]
pub struct AggregateRows<'r> {
    /// Below the size last given to [`Aggregate::resize`].
    pub groups: &'r [u32],
    /// COUNT(*) ignores them.
    pub args: &'r [TermId],
    /// `None`: each row stands for itself.
    pub weights: Option<&'r [u64]>,
}

impl AggregateRows<'_> {
    /// A part of the rows: group, argument, weight.
    fn part(&self, part: std::ops::Range<usize>) -> impl Iterator<Item = (usize, TermId, u64)> {
        part.map(|row| (self.groups[row] as usize, self.args[row], self.weight(row)))
    }

    #[inline]
    fn weight(&self, row: usize) -> u64 {
        self.weights.map_or(1, |weights| weights[row])
    }
}

/// Arguments seen of each group; ids are normalised to stored ones, so that equal terms are
/// equal ids.
#[derive(Default)]
struct DistinctArguments {
    values: FxHashSet<(u32, TermId)>,
    rows: FxHashSet<(u32, Box<[TermId]>)>,
}

enum GroupStates {
    /// rows; `all`: also those whose argument is unbound, for COUNT(*)
    Count {
        groups: Vec<i64>,
        all: bool,
    },
    /// `bytes`: of large totals
    Sum {
        groups: Vec<Total>,
        bytes: isize,
    },
    Average {
        groups: Vec<(Total, i64)>,
        bytes: isize,
    },
    Best {
        groups: Vec<Best>,
        max: bool,
        /// of the keys
        bytes: usize,
    },
    Sample(Vec<TermId>),
    Concat {
        groups: Vec<Concat>,
        separator: Box<str>,
    },
}

/// GROUP_CONCAT of one group.
enum Concat {
    Empty,
    Text(String),
    Failed,
}

impl Aggregate {
    /// The accumulator of an aggregate.
    pub(crate) fn new(function: &GroupFunction, is_distinct: bool) -> Self {
        let state = Self::state(function);
        // A value more or less of a kind changes neither the least, nor the greatest, nor that
        // there is one.
        let matters = !matches!(state, GroupStates::Best { .. } | GroupStates::Sample(_));
        let distinct = (is_distinct && matters).then(DistinctArguments::default);
        Aggregate { state, distinct, held: Held::default() }
    }

    /// Has the texts held in a query's memory.
    pub(crate) fn held_by(self, held: Held) -> Self {
        Aggregate { held, ..self }
    }

    fn state(function: &GroupFunction) -> GroupStates {
        match function {
            GroupFunction::CountRows => GroupStates::Count { groups: Vec::new(), all: true },
            GroupFunction::Count => GroupStates::Count { groups: Vec::new(), all: false },
            GroupFunction::Sum => GroupStates::Sum { groups: Vec::new(), bytes: 0 },
            GroupFunction::Avg => GroupStates::Average { groups: Vec::new(), bytes: 0 },
            GroupFunction::Min => GroupStates::Best { groups: Vec::new(), max: false, bytes: 0 },
            GroupFunction::Max => GroupStates::Best { groups: Vec::new(), max: true, bytes: 0 },
            GroupFunction::Sample => GroupStates::Sample(Vec::new()),
            GroupFunction::Concat(separator) => {
                GroupStates::Concat { groups: Vec::new(), separator: separator.clone() }
            }
        }
    }

    /// Whether it counts distinct solutions: then [`Aggregate::update_rows`] is to be called
    /// instead of [`Aggregate::update`].
    #[must_use]
    pub fn counts_distinct_rows(&self) -> bool {
        self.distinct.is_some() && matches!(self.state, GroupStates::Count { all: true, .. })
    }

    /// Bytes held beside texts, to be counted against the query's memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let distinct = self.distinct.as_ref().map_or(0, |d| {
            let row_bytes = d.rows.iter().next().map_or(0, |r| r.1.len() * 8 + 16);
            d.values.capacity() * 17 + d.rows.capacity() * 25 + d.rows.len() * row_bytes
        });
        distinct
            + match &self.state {
                GroupStates::Count { groups, .. } => groups.capacity() * 8,
                GroupStates::Sum { groups, bytes } => {
                    groups.capacity() * size_of::<Total>() + bytes.unsigned_abs()
                }
                GroupStates::Average { groups, bytes } => {
                    groups.capacity() * size_of::<(Total, i64)>() + bytes.unsigned_abs()
                }
                GroupStates::Best { groups, .. } => groups.capacity() * size_of::<Best>(),
                GroupStates::Sample(groups) => groups.capacity() * 8,
                GroupStates::Concat { groups, .. } => groups.capacity() * size_of::<Concat>(),
            }
    }

    /// Makes room for `groups` groups; new ones are empty.
    pub fn resize(&mut self, groups: usize) {
        match &mut self.state {
            GroupStates::Count { groups: g, .. } => g.resize(groups, 0),
            GroupStates::Sum { groups: g, .. } => g.resize(groups, Total::Nothing),
            GroupStates::Average { groups: g, .. } => g.resize(groups, (Total::Nothing, 0)),
            GroupStates::Best { groups: g, .. } => g.resize_with(groups, Best::default),
            GroupStates::Sample(g) => g.resize(groups, TermId::UNDEF),
            GroupStates::Concat { groups: g, .. } => g.resize_with(groups, || Concat::Empty),
        }
    }

    /// Takes in rows.
    pub fn update(
        &mut self,
        terms: &mut Terms,
        store: &mut dyn TermStore,
        rows: AggregateRows<'_>,
    ) -> Result<(), TermError> {
        assert!(!self.counts_distinct_rows(), "update_rows is for COUNT(DISTINCT *)");
        let Some(distinct) = &mut self.distinct else {
            return self.state.update(terms, store, rows, &mut self.held);
        };
        let mut args = rows.args.to_vec();
        terms.to_stored(store, &mut args)?;
        let mut new_groups = Vec::new();
        let mut new_args = Vec::new();
        for (group, arg) in rows.groups.iter().zip(args) {
            // Each error counts: the first one fails its group.
            if arg.is_undef() || distinct.values.insert((*group, arg)) {
                new_groups.push(*group);
                new_args.push(arg);
            }
        }
        let rows = AggregateRows { groups: &new_groups, args: &new_args, weights: None };
        self.state.update(terms, store, rows, &mut self.held)
    }

    /// COUNT(DISTINCT *): takes in whole solutions, `cols` being all visible variables.
    pub fn update_rows(
        &mut self,
        terms: &mut Terms,
        store: &mut dyn TermStore,
        groups: &[u32],
        mut cols: Vec<Vec<TermId>>,
    ) -> Result<(), TermError> {
        let (Some(distinct), GroupStates::Count { groups: counts, .. }) =
            (&mut self.distinct, &mut self.state)
        else {
            panic!("update_rows is for COUNT(DISTINCT *) alone");
        };
        for col in &mut cols {
            terms.to_stored(store, col)?;
        }
        for (row, group) in groups.iter().enumerate() {
            let solution: Box<[TermId]> = cols.iter().map(|c| c[row]).collect();
            counts[*group as usize] += i64::from(distinct.rows.insert((*group, solution)));
        }
        Ok(())
    }

    /// The result of each group. The ids last for the query.
    pub fn finish(mut self, terms: &mut Terms) -> Vec<TermId> {
        match self.state {
            GroupStates::Count { groups, .. } => {
                groups.into_iter().map(|n| push(terms, Some(Value::Integer(n.into())))).collect()
            }
            GroupStates::Sum { groups, .. } => {
                groups.into_iter().map(|total| push(terms, total.value())).collect()
            }
            GroupStates::Average { groups, .. } => {
                groups.into_iter().map(|(total, count)| push(terms, total.average(count))).collect()
            }
            GroupStates::Best { groups, .. } => groups.into_iter().map(|best| best.finish(terms)).collect(),
            GroupStates::Sample(ids) => ids,
            // each text is given away before the next one is kept
            GroupStates::Concat { groups, .. } => groups
                .into_iter()
                .map(|group| match group {
                    Concat::Empty => terms.intern(TermRef::string("")),
                    Concat::Text(text) => {
                        let id = terms.intern(TermRef::string(&text));
                        self.held.give_back(text.capacity());
                        id
                    }
                    Concat::Failed => TermId::UNDEF,
                })
                .collect(),
        }
    }
}

fn push(terms: &mut Terms, value: Option<Value<'static>>) -> TermId {
    value.map_or(TermId::UNDEF, |v| terms.push_kept(&v))
}

impl GroupStates {
    fn update(
        &mut self,
        terms: &mut Terms,
        store: &mut dyn TermStore,
        rows: AggregateRows<'_>,
        held: &mut Held,
    ) -> Result<(), TermError> {
        let (all, args) = (0..rows.groups.len(), rows.args);
        match self {
            GroupStates::Count { groups, all: every } => {
                for (row, g) in rows.groups.iter().enumerate() {
                    if *every || !args[row].is_undef() {
                        count(&mut groups[*g as usize], rows.weight(row))?;
                    }
                }
            }
            GroupStates::Sum { groups, bytes } => terms.in_parts(all, &mut |terms, part| {
                prefetch_numbers(terms, store, &args[part.clone()])?;
                for (g, a, weight) in rows.part(part) {
                    *bytes += groups[g].add_times(a, weight, terms);
                }
                terms.fault()
            })?,
            GroupStates::Average { groups, bytes } => terms.in_parts(all, &mut |terms, part| {
                prefetch_numbers(terms, store, &args[part.clone()])?;
                for (g, a, weight) in rows.part(part) {
                    let (total, number) = &mut groups[g];
                    *bytes += total.add_times(a, weight, terms);
                    count(number, weight)?;
                }
                terms.fault()
            })?,
            GroupStates::Best { groups, max, bytes } => terms.in_parts(all, &mut |terms, part| {
                terms.prefetch(store, args[part.clone()].iter().copied())?;
                for (g, a, _) in rows.part(part) {
                    let best = &mut groups[g];
                    *bytes -= best.bytes();
                    best.update(a, *max, terms);
                    *bytes += best.bytes();
                    if *bytes > held.bytes() {
                        held.set(*bytes + AHEAD, "group")?;
                    }
                }
                terms.fault()
            })?,
            GroupStates::Sample(groups) => {
                for (g, a) in rows.groups.iter().zip(args) {
                    let sample = &mut groups[*g as usize];
                    if sample.is_undef() {
                        *sample = *a;
                    }
                }
            }
            GroupStates::Concat { groups, separator } => {
                assert!(rows.weights.is_none(), "each text of a group comes");
                terms.in_parts(all, &mut |terms, part| {
                    terms.prefetch(store, args[part.clone()].iter().copied())?;
                    for (g, a, _) in rows.part(part) {
                        groups[g].add(a, separator, terms, held)?;
                        if terms.poll(0).is_none() {
                            return terms.fault();
                        }
                    }
                    Ok::<_, TermError>(())
                })?
            }
        }
        Ok(())
    }
}

/// Counts so many rows more.
#[inline]
fn count(number: &mut i64, rows: u64) -> Result<(), TermError> {
    *number = i64::try_from(rows).ok().and_then(|rows| number.checked_add(rows)).ok_or(TermError::Count)?;
    Ok(())
}

/// Only out-of-line numbers and local terms can count; nothing else is worth reading.
fn prefetch_numbers(terms: &mut Terms, store: &mut dyn TermStore, args: &[TermId]) -> Result<(), TermError> {
    let readable = |id: &TermId| matches!(id.kind(), TermKind::Value | TermKind::Local | TermKind::Text);
    terms.prefetch(store, args.iter().copied().filter(readable))
}

impl Concat {
    /// Adds one value's text, unless the whole would be too long.
    fn add(&mut self, id: TermId, separator: &str, terms: &Terms, held: &mut Held) -> Result<(), TermError> {
        let added = terms.with_term(id, |term| {
            let (TermRef::Iri(text) | TermRef::Literal { lexical: text, .. }) = term else { return None };
            let (all, separator) = match self {
                Concat::Failed => return None,
                Concat::Empty => (&mut String::new(), ""),
                Concat::Text(all) => (all, separator),
            };
            let len = all.len() + separator.len() + text.len();
            terms.fits(len)?;
            if len > all.capacity() {
                let more = len.max(2 * all.capacity()) - all.capacity();
                if let Err(error) = held.add(more, "group") {
                    return Some(Err(error));
                }
                all.reserve_exact(all.capacity() + more - all.len());
            }
            all.push_str(separator);
            all.push_str(text);
            let all = std::mem::take(all);
            *self = Concat::Text(all);
            Some(Ok(()))
        });
        match added.flatten() {
            Some(added) => Ok(added?),
            None => {
                *self = Concat::Failed;
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests;
