//! Comparison operators as ranges of ids, so that a filter becomes bounds of an index scan.
//!
//! Within an inline kind (and datatype code) ids are ordered by value, so the ids that satisfy
//! `id OP constant` are one range. Its ends are found by binary search over the payloads, with the
//! comparison that SPARQL prescribes (numeric type promotion; dates with and without time zone
//! compare only if they are more than 14 hours apart), so the ranges cannot disagree with it.
//! Values that are not inline, and dates near a constant of the other time zone form, are returned
//! as ranges to check one by one. All other ids do not satisfy the operator (it is false, or a type
//! error).

use std::cmp::Ordering;
use std::ops::RangeInclusive;

use crate::term::inline::{from_double, from_float, short_payload};
use crate::term::layout::{
    BODY_BITS, DAYS, DECIMAL, DECIMAL_OFFSET, DERIVED, DERIVED_OFFSET, DIGIT_BITS, INTEGER_OFFSET,
    MS_PER_DAY, SHORT_STRING_BYTES,
};
use crate::term::lexical::{InlineValue, double_of, float_of};
use crate::term::number::{InlineNumber, MICROS};
use crate::term::{NUMBER_BITS, PLAIN, TermId, TermKind};

/// A comparison `?x OP constant`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum CompareOp {
    Eq,
    Lt,
    Le,
    Gt,
    Ge,
}

impl CompareOp {
    /// Whether the operator holds if the left side has this order to the right side.
    pub fn holds(self, ordering: Ordering) -> bool {
        match self {
            CompareOp::Eq => ordering.is_eq(),
            CompareOp::Lt => ordering.is_lt(),
            CompareOp::Le => ordering.is_le(),
            CompareOp::Gt => ordering.is_gt(),
            CompareOp::Ge => ordering.is_ge(),
        }
    }
}

/// The constant of a comparison.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum CompareValue<'a> {
    /// xsd:integer, xsd:decimal and derived types, of any size, reduced to the parts needed for a
    /// comparison with an inline number.
    Exact {
        /// The value rounded down to millionths, saturating.
        micros: i128,
        /// Whether the value is above that.
        above: bool,
        /// The nearest float.
        float: f32,
        /// The nearest double.
        double: f64,
    },
    /// xsd:float.
    Float(f32),
    /// xsd:double.
    Double(f64),
    /// xsd:boolean.
    Boolean(bool),
    /// xsd:string.
    String(&'a str),
    /// xsd:date: days since 0001-01-01; `Z` or no time zone.
    Date {
        /// Days since 0001-01-01.
        days: u32,
        /// `Z`, or no time zone.
        utc: bool,
    },
    /// xsd:dateTime: milliseconds since 0001-01-01T00:00:00; `Z` or no time zone.
    DateTime {
        /// Milliseconds since 0001-01-01T00:00:00.
        ms: u64,
        /// `Z`, or no time zone.
        utc: bool,
    },
}

impl From<InlineValue> for Option<CompareValue<'static>> {
    /// The constant with an inline value; `None` for strings (they are not static) and registered
    /// datatypes.
    fn from(value: InlineValue) -> Self {
        Some(match value {
            InlineValue::Integer(value) | InlineValue::Derived { value, .. } => {
                InlineNumber::Exact(i128::from(value) * MICROS).into()
            }
            InlineValue::Decimal { datatype: DECIMAL, micros, .. } => {
                InlineNumber::Exact(micros.into()).into()
            }
            InlineValue::Double(value) => CompareValue::Double(value),
            InlineValue::Float(value) => CompareValue::Float(value),
            InlineValue::Boolean(value) => CompareValue::Boolean(value),
            InlineValue::Date { days, utc } => CompareValue::Date { days, utc },
            InlineValue::DateTime { ms, utc } => CompareValue::DateTime { ms, utc },
            InlineValue::String(_) | InlineValue::Decimal { .. } => return None,
        })
    }
}

impl From<InlineNumber> for CompareValue<'_> {
    fn from(number: InlineNumber) -> Self {
        match number {
            InlineNumber::Exact(micros) => {
                CompareValue::Exact { micros, above: false, float: number.float(), double: number.double() }
            }
            InlineNumber::Float(value) => CompareValue::Float(value),
            InlineNumber::Double(value) => CompareValue::Double(value),
        }
    }
}

impl CompareValue<'_> {
    /// The order of an inline number to this constant; `None` if one is NaN, or this is no number.
    fn compared_with(&self, number: InlineNumber) -> Option<Ordering> {
        match (number, *self) {
            (InlineNumber::Exact(v), CompareValue::Exact { micros, above, .. }) => {
                Some(v.cmp(&micros).then(if above { Ordering::Less } else { Ordering::Equal }))
            }
            (InlineNumber::Float(v), CompareValue::Exact { float, .. }) => v.partial_cmp(&float),
            (InlineNumber::Double(v), CompareValue::Exact { double, .. }) => v.partial_cmp(&double),
            (v, CompareValue::Float(value)) => v.compare(InlineNumber::Float(value)),
            (v, CompareValue::Double(value)) => v.compare(InlineNumber::Double(value)),
            _ => None,
        }
    }

    fn is_nan(&self) -> bool {
        match self {
            CompareValue::Float(value) => value.is_nan(),
            CompareValue::Double(value) => value.is_nan(),
            _ => false,
        }
    }
}

/// The ids that satisfy a comparison. Ranges are disjoint, ascending and not empty.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct IdRanges {
    /// Every id of the database in these ranges satisfies it.
    pub exact: Vec<RangeInclusive<u64>>,
    /// These ids must be checked by value: literals in the dictionary, and dates whose order
    /// with the constant depends on the time zone form.
    pub check: Vec<RangeInclusive<u64>>,
}

impl IdRanges {
    fn exact(&mut self, kind: TermKind, range: Option<(u64, u64)>) {
        push(&mut self.exact, kind, range);
    }

    fn check(&mut self, kind: TermKind, range: Option<(u64, u64)>) {
        push(&mut self.check, kind, range);
    }
}

fn push(ranges: &mut Vec<RangeInclusive<u64>>, kind: TermKind, range: Option<(u64, u64)>) {
    if let Some((low, high)) = range {
        ranges.push(TermId::new(kind, low).0..=TermId::new(kind, high).0);
    }
}

/// All ids of a kind.
pub fn ids_of_kind(kind: TermKind) -> RangeInclusive<u64> {
    TermId::new(kind, 0).0..=TermId::new(kind, kind.most_payload()).0
}

/// The ids that satisfy `?x op value`.
pub fn id_ranges_for_comparison(op: CompareOp, value: CompareValue<'_>) -> IdRanges {
    let mut ranges = IdRanges::default();
    match value {
        CompareValue::Exact { .. } | CompareValue::Float(_) | CompareValue::Double(_) => {
            numeric(op, value, &mut ranges);
        }
        CompareValue::Boolean(constant) => {
            let within = search(op, 0, 1, |payload| Some((payload == 1).cmp(&constant)));
            ranges.exact(TermKind::Boolean, within);
        }
        CompareValue::String(constant) => return strings(op, constant),
        CompareValue::Date { days, utc } => {
            let last = u64::from(DAYS) - 1;
            zoned(op, TermKind::Date, last, &mut ranges, |day, zone| {
                compare_instants(day * MS_PER_DAY, zone, u64::from(days) * MS_PER_DAY, utc)
            });
        }
        CompareValue::DateTime { ms, utc } => {
            let last = u64::from(DAYS) * MS_PER_DAY - 1;
            zoned(op, TermKind::DateTime, last, &mut ranges, |at, zone| compare_instants(at, zone, ms, utc));
        }
    }
    ranges.check.push(ids_of_kind(TermKind::Value));
    ranges
}

/// The payloads of `low..=high` that satisfy the operator. With rising payload, `compare` (the
/// payload's value to the constant) goes from less through equal or not comparable to greater.
fn search(
    op: CompareOp,
    low: u64,
    high: u64,
    compare: impl Fn(u64) -> Option<Ordering>,
) -> Option<(u64, u64)> {
    let not_less = first(low, high, |payload| compare(payload) != Some(Ordering::Less));
    let greater = first(low, high, |payload| compare(payload) == Some(Ordering::Greater));
    let any_equal = not_less < greater && compare(not_less) == Some(Ordering::Equal);
    let (begin, end) = match op {
        CompareOp::Eq if !any_equal => return None,
        CompareOp::Eq => (not_less, greater),
        CompareOp::Le if any_equal => (low, greater),
        CompareOp::Lt | CompareOp::Le => (low, not_less),
        CompareOp::Ge if any_equal => (not_less, high + 1),
        CompareOp::Gt | CompareOp::Ge => (greater, high + 1),
    };
    (begin < end).then(|| (begin, end - 1))
}

/// The first payload of `low..=high` for which `after` holds, or `high + 1`; it holds for all
/// greater ones, too.
fn first(low: u64, high: u64, after: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut end) = (low, high + 1);
    while low < end {
        let middle = low + (end - low) / 2;
        if after(middle) {
            end = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

fn numeric(op: CompareOp, constant: CompareValue<'_>, ranges: &mut IdRanges) {
    if constant.is_nan() {
        return;
    }
    let compare = |number: InlineNumber| constant.compared_with(number);
    let whole = |value: i64| compare(InlineNumber::Exact(i128::from(value) * MICROS));
    let last = (1 << 60) - 1;
    let within = search(op, 0, last, |payload| whole(payload as i64 - INTEGER_OFFSET));
    ranges.exact(TermKind::Integer, within);

    // The digits are below the value: search the values, then include all digits.
    let values = search(op, 0, 2 * DECIMAL_OFFSET as u64 - 1, |value| {
        compare(InlineNumber::Exact((value as i64 - DECIMAL_OFFSET).into()))
    });
    ranges.exact(
        TermKind::Decimal,
        values.map(|(low, high)| (low << DIGIT_BITS, ((high + 1) << DIGIT_BITS) - 1)),
    );
    // every derived type gets this range: a type that lacks a value has no id with it
    let bodies = search(op, 0, (1 << BODY_BITS) - 1, |body| whole(body as i64 - DERIVED_OFFSET));
    for code in 1..=DERIVED.len() as u64 {
        let datatype = code << BODY_BITS;
        ranges.exact(TermKind::Decimal, bodies.map(|(low, high)| (datatype | low, datatype | high)));
    }

    let payload = |id: Option<TermId>| id.expect("infinity is inline").payload();
    let (low, high) = (payload(from_double(f64::NEG_INFINITY)), payload(from_double(f64::INFINITY)));
    let within = search(op, low, high, |payload| compare(InlineNumber::Double(double_of(payload))));
    ranges.exact(TermKind::Double, within);
    let (low, high) = (from_float(f32::NEG_INFINITY).payload(), from_float(f32::INFINITY).payload());
    let within = search(op, low, high, |payload| compare(InlineNumber::Float(float_of(payload as u32))));
    ranges.exact(TermKind::Float, within);
}

fn strings(op: CompareOp, constant: &str) -> IdRanges {
    let mut ranges = IdRanges::default();
    let bytes = constant.as_bytes();
    let last = (1 << 60) - 1;
    // A constant longer than inline strings is greater than its own prefix and less than the
    // next inline string.
    let key = short_payload(&bytes[..bytes.len().min(SHORT_STRING_BYTES)]);
    let long = bytes.len() > SHORT_STRING_BYTES;
    let within = search(op, 0, last, |payload| match payload.cmp(&key) {
        Ordering::Equal if long => Some(Ordering::Less),
        ordering => Some(ordering),
    });
    ranges.exact(TermKind::ShortString, within);
    if op != CompareOp::Eq || long {
        ranges.check(TermKind::String, Some((0, last)));
        let plain = u64::from(PLAIN) << NUMBER_BITS;
        ranges.check(TermKind::Text, Some((plain, plain | ((1 << NUMBER_BITS) - 1))));
    }
    ranges.check.sort_by_key(|range| *range.start());
    ranges
}

const FOURTEEN_HOURS: u64 = 14 * 3_600_000;

/// The order of two instants, in milliseconds, each in UTC or without time zone (XML Schema
/// part 2, section 3.2.7.4).
pub fn compare_instants(left: u64, left_utc: bool, right: u64, right_utc: bool) -> Option<Ordering> {
    if left_utc == right_utc {
        return Some(left.cmp(&right));
    }
    if left + FOURTEEN_HOURS < right {
        Some(Ordering::Less)
    } else if left > right + FOURTEEN_HOURS {
        Some(Ordering::Greater)
    } else {
        None
    }
}

/// Ranges for kinds with a time zone bit below the value: exact if both forms satisfy the
/// operator, to be checked if one does.
fn zoned(
    op: CompareOp,
    kind: TermKind,
    last: u64,
    ranges: &mut IdRanges,
    compare: impl Fn(u64, bool) -> Option<Ordering>,
) {
    let [local, utc] = [false, true].map(|zone| search(op, 0, last, |value| compare(value, zone)));
    if op == CompareOp::Eq {
        ranges.exact(kind, local.map(|(value, _)| (value << 1, value << 1)));
        ranges.exact(kind, utc.map(|(value, _)| (value << 1 | 1, value << 1 | 1)));
        return;
    }
    let (local, utc) = match (local, utc) {
        (Some(local), Some(utc)) => (local, utc),
        (Some(one), None) | (None, Some(one)) => {
            return ranges.check(kind, Some((one.0 << 1, one.1 << 1 | 1)));
        }
        (None, None) => return,
    };
    let both = (local.0.max(utc.0), local.1.min(utc.1));
    let either = (local.0.min(utc.0), local.1.max(utc.1));
    if both.0 > both.1 {
        return ranges.check(kind, Some((either.0 << 1, either.1 << 1 | 1)));
    }
    ranges.exact(kind, Some((both.0 << 1, both.1 << 1 | 1)));
    if either.0 < both.0 {
        ranges.check(kind, Some((either.0 << 1, (both.0 << 1) - 1)));
    }
    if either.1 > both.1 {
        ranges.check(kind, Some(((both.1 + 1) << 1, either.1 << 1 | 1)));
    }
}
