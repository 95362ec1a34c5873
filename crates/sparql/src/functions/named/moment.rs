//! Moments and durations: their parts, time zones, and the present (XPath functions 3.1, sections
//! 8.2, 9.5, 9.6 and 15.3).

use oxsdatatypes::{Date, DateTime, DayTimeDuration, Time};

use super::Named;
use crate::functions::{Func, date};
use crate::value::{Temporal, Value};

/// The type that an argument must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MomentType {
    DateTime,
    Date,
    Time,
}

/// A part of a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MomentPart {
    Year,
    Month,
    Day,
    Hours,
    Minutes,
    Seconds,
    Timezone,
}

impl MomentPart {
    fn of(self, v: &Value<'_>) -> Option<Value<'static>> {
        let func = match self {
            Self::Year => Func::Year,
            Self::Month => Func::Month,
            Self::Day => Func::Day,
            Self::Hours => Func::Hours,
            Self::Minutes => Func::Minutes,
            Self::Seconds => Func::Seconds,
            Self::Timezone => return date::timezone(v),
        };
        date::part(func, v)
    }
}

/// A part of a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DurationPart {
    Years,
    Months,
    Days,
    Hours,
    Minutes,
    Seconds,
}

impl MomentType {
    fn has(self, v: &Value<'_>) -> bool {
        matches!(
            (self, v),
            (Self::DateTime, Value::Temporal(Temporal::DateTime(_)))
                | (Self::Date, Value::Temporal(Temporal::Date(_)))
                | (Self::Time, Value::Temporal(Temporal::Time(_)))
        )
    }
}

pub(super) fn call(func: Named, args: &[Value<'_>]) -> Option<Value<'static>> {
    match func {
        Named::PartOf(of, part) if of.has(&args[0]) => part.of(&args[0]),
        Named::Adjust(of) if of.has(&args[0]) => {
            date::adjust(&args[0], args.get(1).unwrap_or(&implicit_timezone()))
        }
        Named::DurationPart(part) => duration_part(part, &args[0]),
        Named::DateAndTime => date_and_time(&args[0], &args[1]),
        _ => None,
    }
}

/// The present as a query sees it.
pub(super) fn current(func: Named, now: DateTime) -> Option<Value<'static>> {
    Some(match func {
        Named::CurrentDate => Value::Temporal(Temporal::Date(Date::try_from(now).ok()?)),
        Named::CurrentTime => Value::Temporal(Temporal::Time(Time::from(now))),
        _ => implicit_timezone(),
    })
}

/// UTC: the time zone of a moment where XPath wants one and none is given.
fn implicit_timezone() -> Value<'static> {
    Value::Temporal(Temporal::DayTimeDuration(DayTimeDuration::default()))
}

fn duration_part(part: DurationPart, v: &Value<'_>) -> Option<Value<'static>> {
    let Value::Temporal(v) = v else { return None };
    let d = v.as_duration()?;
    Some(match part {
        DurationPart::Years => Value::Integer(d.years().into()),
        DurationPart::Months => Value::Integer(d.months().into()),
        DurationPart::Days => Value::Integer(d.days().into()),
        DurationPart::Hours => Value::Integer(d.hours().into()),
        DurationPart::Minutes => Value::Integer(d.minutes().into()),
        DurationPart::Seconds => Value::Decimal(d.seconds().into()),
    })
}

/// fn:dateTime; an error where both have a time zone and these differ.
fn date_and_time(day: &Value<'_>, time: &Value<'_>) -> Option<Value<'static>> {
    let (Value::Temporal(Temporal::Date(day)), Value::Temporal(Temporal::Time(time))) = (day, time) else {
        return None;
    };
    let zone = match (day.timezone_offset(), time.timezone_offset()) {
        (Some(a), Some(b)) if a != b => return None,
        (a, b) => a.or(b).map_or_else(String::new, |zone| zone.to_string()),
    };
    // without a time zone they are written as their clocks show them
    let text = format!("{}T{}{zone}", day.adjust(None)?, time.adjust(None)?);
    text.parse().ok().map(|moment| Value::Temporal(Temporal::DateTime(moment)))
}
