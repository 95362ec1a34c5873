//! Parts of dates and times (SPARQL 1.1, section 17.4.5), also of the types that have only some
//! of them.

use std::borrow::Cow;

use oxsdatatypes::TimezoneOffset;

use super::Func;
use crate::value::{Temporal, Value};

/// YEAR, MONTH, DAY, HOURS, MINUTES, SECONDS.
pub(super) fn part(func: Func, v: &Value<'_>) -> Option<Value<'static>> {
    use Temporal as T;
    let Value::Temporal(t) = v else { return None };
    Some(match (func, t) {
        (Func::Year, T::DateTime(t)) => Value::Integer(t.year().into()),
        (Func::Year, T::Date(t)) => Value::Integer(t.year().into()),
        (Func::Year, T::GYear(t)) => Value::Integer(t.year().into()),
        (Func::Year, T::GYearMonth(t)) => Value::Integer(t.year().into()),
        (Func::Month, T::DateTime(t)) => Value::Integer(t.month().into()),
        (Func::Month, T::Date(t)) => Value::Integer(t.month().into()),
        (Func::Month, T::GYearMonth(t)) => Value::Integer(t.month().into()),
        (Func::Month, T::GMonthDay(t)) => Value::Integer(t.month().into()),
        (Func::Month, T::GMonth(t)) => Value::Integer(t.month().into()),
        (Func::Day, T::DateTime(t)) => Value::Integer(t.day().into()),
        (Func::Day, T::Date(t)) => Value::Integer(t.day().into()),
        (Func::Day, T::GMonthDay(t)) => Value::Integer(t.day().into()),
        (Func::Day, T::GDay(t)) => Value::Integer(t.day().into()),
        (Func::Hours, T::DateTime(t)) => Value::Integer(t.hour().into()),
        (Func::Hours, T::Time(t)) => Value::Integer(t.hour().into()),
        (Func::Minutes, T::DateTime(t)) => Value::Integer(t.minute().into()),
        (Func::Minutes, T::Time(t)) => Value::Integer(t.minute().into()),
        (Func::Seconds, T::DateTime(t)) => Value::Decimal(t.second().into()),
        (Func::Seconds, T::Time(t)) => Value::Decimal(t.second().into()),
        _ => return None,
    })
}

/// Some(None) for a value without time zone, None for one that cannot have any.
fn offset(v: &Value<'_>) -> Option<Option<TimezoneOffset>> {
    let Value::Temporal(t) = v else { return None };
    Some(match t {
        Temporal::DateTime(t) => t.timezone_offset(),
        Temporal::Date(t) => t.timezone_offset(),
        Temporal::Time(t) => t.timezone_offset(),
        Temporal::GYear(t) => t.timezone_offset(),
        Temporal::GYearMonth(t) => t.timezone_offset(),
        Temporal::GMonth(t) => t.timezone_offset(),
        Temporal::GMonthDay(t) => t.timezone_offset(),
        Temporal::GDay(t) => t.timezone_offset(),
        _ => return None,
    })
}

/// TIMEZONE: a dayTimeDuration; an error without time zone.
pub(super) fn timezone(v: &Value<'_>) -> Option<Value<'static>> {
    Some(Value::Temporal(Temporal::DayTimeDuration(offset(v)??.into())))
}

/// TZ: as written, "" without time zone.
pub(super) fn tz(v: &Value<'_>) -> Option<Value<'static>> {
    let text = offset(v)?.map_or_else(String::new, |offset| offset.to_string());
    Some(Value::String(Cow::Owned(text)))
}

/// ADJUST (SPARQL-dev SEP 2; XPath functions 3.1, section 9.6): the moment as a clock of another
/// time zone shows it. Without a time zone it gets that one. "" takes its time zone away.
pub(super) fn adjust(v: &Value<'_>, zone: &Value<'_>) -> Option<Value<'static>> {
    let Value::Temporal(moment) = v else { return None };
    let zone = match zone {
        Value::String(text) if text.is_empty() => None,
        Value::Temporal(Temporal::DayTimeDuration(offset)) => Some(TimezoneOffset::try_from(*offset).ok()?),
        _ => return None,
    };
    Some(Value::Temporal(match moment {
        Temporal::DateTime(t) => Temporal::DateTime(t.adjust(zone)?),
        Temporal::Date(t) => Temporal::Date(t.adjust(zone)?),
        Temporal::Time(t) => Temporal::Time(t.adjust(zone)?),
        _ => return None,
    }))
}
