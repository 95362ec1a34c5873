//! Conditions on one variable as ranges of ids: what a scan reads of the index column that the
//! variable is.
//!
//! Comparisons with constants have their ranges from the order of ids. Conditions on kind, language
//! and datatype are asked of each class of ids, whose terms share these ([`Session::id_classes`]).
//!
//! [`Session::id_classes`]: snowmelt_graph::Session::id_classes

use snowmelt_graph::{CompareOp, CompareValue, IdClass, TermId, TermKind, id_ranges_for_comparison};

use super::{Result, Run};
use crate::algebra::consts::GroundTerm;
use crate::algebra::{Expression, Var};
use crate::plan::ranged::{Asks, Ranged, ranged};
use crate::value::{is_numeric_datatype, parse_literal};

/// Ids that may satisfy a condition, both ends included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct IdRange {
    pub low: u64,
    pub high: u64,
    /// all of them do
    pub is_sure: bool,
}

/// Ranges that ascend and do not meet; ids outside of them satisfy nothing.
type IdRanges = Vec<IdRange>;

const ALL: IdRange = IdRange { low: 0, high: u64::MAX, is_sure: true };

/// The ids that may satisfy all of some conditions on a variable.
pub(super) fn id_ranges(conditions: &[Expression], var: Var, run: &mut Run) -> Result<IdRanges> {
    let mut all = vec![ALL];
    for condition in conditions {
        all = both(&all, &of_condition(condition, var, run)?);
    }
    Ok(all)
}

fn of_condition(condition: &Expression, var: Var, run: &mut Run) -> Result<IdRanges> {
    match ranged(condition, var).expect("bounds are conditions that have ranges") {
        Ranged::All(parts) => id_ranges(parts, var, run),
        Ranged::Any(parts) => {
            let mut any = Vec::new();
            for part in parts {
                any = either(&any, &of_condition(part, var, run)?);
            }
            Ok(any)
        }
        Ranged::Compared(op, constants) => {
            let mut any = Vec::new();
            for constant in constants {
                let term = constant.term(&run.query.params).expect("a comparison is with constants");
                let unknown = || vec![IdRange { is_sure: false, ..ALL }];
                any = either(&any, &compared(op, term).unwrap_or_else(unknown));
            }
            Ok(any)
        }
        Ranged::OfClass(asks) => of_class(condition, var, asks, run),
    }
}

/// The classes of ids for which a condition on the class holds.
fn of_class(condition: &Expression, var: Var, asks: Asks, run: &mut Run) -> Result<IdRanges> {
    let classes = run.source.session.id_classes();
    let session = &run.source.session;
    // a number may have no valid form; a class of which ids say nothing may be of numbers
    let may_be_numbers = |class: &IdClass| {
        let datatype = session.datatype_of(TermId(*class.ids.start()));
        matches!(class.kind, TermKind::Value | TermKind::Text) && datatype.is_none_or(is_numeric_datatype)
    };
    let is_answered = |class: &IdClass| {
        let is_told = class.is_carried && class.kind != TermKind::Triple;
        (is_told || !asks.annotation) && !(asks.is_numeric && may_be_numbers(class))
    };
    let (sure, unsure): (Vec<IdClass>, Vec<IdClass>) = classes.into_iter().partition(is_answered);
    let condition = run.compile(condition, &[var])?;
    // The answer is that for the first id, which need not be of any term. Of one that is no number
    // only its annotation counts, and no kind has its value looked at less than literals.
    let first = |class: &IdClass| match TermId(*class.ids.start()) {
        id if matches!(class.kind, TermKind::Value | TermKind::Text) => {
            TermId::coded(TermKind::Literal, id.code(), id.number())
        }
        id => id,
    };
    let firsts: Vec<TermId> = sure.iter().map(first).collect();
    let pass = condition.filter(&mut run.terms, &mut run.source.session, &[firsts], sure.len())?;
    let range =
        |class: &IdClass, is_sure| IdRange { low: *class.ids.start(), high: *class.ids.end(), is_sure };
    let hold = pass.into_iter().map(|row| range(&sure[row as usize], true)).collect();
    let may = unsure.iter().map(|class| range(class, false)).collect();
    Ok(either(&joined(hold), &joined(may)))
}

/// A constant as ids are compared with it: of a number its value, whatever its form and size.
fn constant(literal: &oxrdf::Literal) -> Option<CompareValue<'static>> {
    if let Some(id) = TermId::inline(&literal.as_ref().into()) {
        return id.inline_value()?.into();
    }
    parse_literal(literal.value(), literal.language(), literal.datatype().as_str()).as_compared()
}

/// The ids that may satisfy a comparison with a constant; `None` if it has no place in their order.
pub(crate) fn compared(op: CompareOp, term: &GroundTerm) -> Option<Vec<IdRange>> {
    let GroundTerm::Literal(literal) = term else { return None };
    let ranges = id_ranges_for_comparison(op, constant(literal)?);
    let sure = ranges.exact.iter().map(|r| IdRange { low: *r.start(), high: *r.end(), is_sure: true });
    let unsure = ranges.check.iter().map(|r| IdRange { low: *r.start(), high: *r.end(), is_sure: false });
    let (mut sure, mut unsure): (IdRanges, IdRanges) = (sure.collect(), unsure.collect());
    sure.sort_unstable_by_key(|range| range.low);
    unsure.sort_unstable_by_key(|range| range.low);
    Some(either(&joined(sure), &joined(unsure)))
}

/// Ids in both: surely, where they are in both surely.
fn both(a: &[IdRange], b: &[IdRange]) -> IdRanges {
    swept(a, b, |a, b| a.zip(b).map(|(a, b)| a && b))
}

/// Ids in either: surely, where they are in one surely.
fn either(a: &[IdRange], b: &[IdRange]) -> IdRanges {
    swept(a, b, |a, b| match (a, b) {
        (Some(a), Some(b)) => Some(a || b),
        (one, other) => one.or(other),
    })
}

/// Two lists of ranges put together: `combine` says of each id, from whether it is in the one and
/// in the other, and whether surely, the same of the outcome.
fn swept(
    a: &[IdRange],
    b: &[IdRange],
    combine: impl Fn(Option<bool>, Option<bool>) -> Option<bool>,
) -> IdRanges {
    // where something may change: the first id of each range, and the first behind it
    let mut places: Vec<u64> =
        a.iter().chain(b).flat_map(|r| [Some(r.low), r.high.checked_add(1)]).flatten().collect();
    places.sort_unstable();
    places.dedup();
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    let mut found = Vec::new();
    for (place, low) in places.iter().enumerate() {
        let within = |ranges: &mut std::iter::Peekable<std::slice::Iter<'_, IdRange>>| {
            while ranges.next_if(|range| range.high < *low).is_some() {}
            ranges.peek().filter(|range| range.low <= *low).map(|range| range.is_sure)
        };
        let high = places.get(place + 1).map_or(u64::MAX, |next| next - 1);
        if let Some(is_sure) = combine(within(&mut a), within(&mut b)) {
            found.push(IdRange { low: *low, high, is_sure });
        }
    }
    joined(found)
}

/// Neighbours that are equally sure as one.
fn joined(ranges: IdRanges) -> IdRanges {
    let mut out: IdRanges = Vec::with_capacity(ranges.len());
    for range in ranges {
        match out.last_mut() {
            Some(last) if last.high.checked_add(1) == Some(range.low) && last.is_sure == range.is_sure => {
                last.high = range.high;
            }
            _ => out.push(range),
        }
    }
    debug_assert!(out.is_sorted_by(|a, b| a.high < b.low), "ranges ascend and do not meet");
    out
}

/// The parts of ranges within others.
pub(super) fn within(ranges: &[IdRange], (low, high): (u64, u64)) -> IdRanges {
    both(ranges, &[IdRange { low, high, is_sure: true }])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(ranges: &[IdRange], id: u64) -> Option<bool> {
        ranges.iter().find(|r| (r.low..=r.high).contains(&id)).map(|r| r.is_sure)
    }

    /// Every pair of small lists, beside what is said of each id.
    #[test]
    fn ranges_are_what_each_id_says() {
        // each id of 0..6 is out, in, or in surely
        let list = |mut number: u32| {
            let mut ranges = Vec::new();
            for id in 0..6 {
                if let state @ 1.. = number % 3 {
                    ranges.push(IdRange { low: id, high: id, is_sure: state == 2 });
                }
                number /= 3;
            }
            joined(ranges)
        };
        for a in (0..729).step_by(5).map(list) {
            for b in (0..729).step_by(7).map(list) {
                let (met, any) = (both(&a, &b), either(&a, &b));
                for id in 0..7 {
                    let (x, y) = (holds(&a, id), holds(&b, id));
                    assert_eq!(holds(&met, id), x.zip(y).map(|(x, y)| x && y), "{id} of {a:?} and {b:?}");
                    let either = x.max(y);
                    assert_eq!(holds(&any, id), either, "{id} of {a:?} or {b:?}");
                }
            }
        }
        assert_eq!(both(&[ALL], &[ALL]), [ALL]);
    }
}
