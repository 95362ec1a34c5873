//! Durations as numbers: times and divided by a number, divided by each other, and their parts
//! (XPath functions 3.1, sections 8.4 and 19.1.4).
//!
//! A yearMonthDuration is a whole number of months, rounded half up where a number makes a
//! fraction of it; a dayTimeDuration is a number of seconds with 18 digits behind the point. An
//! xsd:duration has both and no arithmetic of its own.

use oxsdatatypes::{DayTimeDuration, Duration, YearMonthDuration};

use super::exact::{Integer, decimal_of_double};
use super::{Decimal, Temporal, Value};

/// A duration of one of the three types with its two parts.
pub(super) fn whole(v: &Temporal) -> Option<Duration> {
    match v {
        Temporal::Duration(d) => Some(*d),
        Temporal::YearMonthDuration(d) => Some((*d).into()),
        Temporal::DayTimeDuration(d) => Some((*d).into()),
        _ => None,
    }
}

/// The months of a duration.
pub(super) fn year_month(d: Duration) -> YearMonthDuration {
    YearMonthDuration::new(d.years() * 12 + d.months())
}

/// The seconds of a duration.
pub(super) fn day_time(d: Duration) -> DayTimeDuration {
    let bytes = d.to_be_bytes();
    let (_, seconds) = bytes.split_last_chunk().expect("a duration has 24 bytes, the last 16 its seconds");
    DayTimeDuration::from_be_bytes(*seconds)
}

/// A duration a number of times.
pub(super) fn times(duration: Temporal, number: &Value<'_>) -> Option<Temporal> {
    let number = exact(number)?;
    scaled(duration, |length| length.multiply(&number))
}

/// A duration divided by a number; by an infinite one it is none at all.
pub(super) fn divided(duration: Temporal, number: &Value<'_>) -> Option<Temporal> {
    if is_infinite(number) {
        return scaled(duration, |_| Some(Integer::ZERO.into()));
    }
    let number = exact(number)?;
    scaled(duration, |length| length.divide(&number))
}

/// How many times one duration is in another of its type.
pub(super) fn ratio(a: Temporal, b: Temporal) -> Option<Decimal> {
    match (a, b) {
        (Temporal::YearMonthDuration(_), Temporal::YearMonthDuration(_))
        | (Temporal::DayTimeDuration(_), Temporal::DayTimeDuration(_)) => length(a)?.divide(&length(b)?),
        _ => None,
    }
}

/// Months or seconds, of the two types that have only one of them.
fn length(v: Temporal) -> Option<Decimal> {
    match v {
        Temporal::YearMonthDuration(d) => Some(Integer::from(d.years() * 12 + d.months()).into()),
        Temporal::DayTimeDuration(d) => Some(d.as_seconds().into()),
        _ => None,
    }
}

fn scaled(duration: Temporal, f: impl Fn(&Decimal) -> Option<Decimal>) -> Option<Temporal> {
    let length = f(&length(duration)?)?;
    Some(match duration {
        Temporal::YearMonthDuration(_) => {
            let months = i64::try_from(&length.round_half_up()).ok()?;
            Temporal::YearMonthDuration(YearMonthDuration::new(months))
        }
        _ => Temporal::DayTimeDuration(DayTimeDuration::from_be_bytes(length.attos()?.to_be_bytes())),
    })
}

fn exact(v: &Value<'_>) -> Option<Decimal> {
    match v {
        Value::Integer(v) => Some(v.clone().into()),
        Value::Decimal(v) => Some(v.clone()),
        Value::Float(v) => decimal_of_double(f32::from(*v).into()),
        Value::Double(v) => decimal_of_double((*v).into()),
        _ => None,
    }
}

fn is_infinite(v: &Value<'_>) -> bool {
    match v {
        Value::Float(v) => f32::from(*v).is_infinite(),
        Value::Double(v) => f64::from(*v).is_infinite(),
        _ => false,
    }
}
