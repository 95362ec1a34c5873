//! Casts: xsd:TYPE(value) as constructor functions (SPARQL 1.1, section 17.5; XPath functions,
//! section 19).
//!
//! From a string, a cast reads the lexical form; between values it converts. A literal of an
//! unknown datatype can be cast to xsd:string only (its lexical form), and from there to
//! anything.

use std::borrow::Cow;

use oxsdatatypes::{Date, Double, Float, GDay, GMonth, GMonthDay, GYear, GYearMonth, Time};

use super::exact::{decimal_of_double, integer_of_double, parse_integer};
use super::parse::{
    derived_integer, literal_of_derived, parse_boolean, parse_double, parse_duration, parse_float,
};
use super::{Decimal, Integer, Temporal, Value, arith, duration, iri};

/// The target of a cast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // each is the XML Schema type of that name
pub enum Cast {
    String,
    Boolean,
    Integer,
    Decimal,
    Float,
    Double,
    DateTime,
    Date,
    Time,
    GYear,
    GYearMonth,
    GMonth,
    GMonthDay,
    GDay,
    Duration,
    YearMonthDuration,
    DayTimeDuration,
    /// A type derived from xsd:integer, by its IRI.
    Derived(&'static str),
}

impl Cast {
    /// The cast a function IRI names, if it names one.
    #[must_use]
    pub fn from_iri(iri: &str) -> Option<Self> {
        Some(match iri.strip_prefix(iri::XSD)? {
            "string" => Self::String,
            "boolean" => Self::Boolean,
            "integer" => Self::Integer,
            "decimal" => Self::Decimal,
            "float" => Self::Float,
            "double" => Self::Double,
            "dateTime" => Self::DateTime,
            "date" => Self::Date,
            "time" => Self::Time,
            "gYear" => Self::GYear,
            "gYearMonth" => Self::GYearMonth,
            "gMonth" => Self::GMonth,
            "gMonthDay" => Self::GMonthDay,
            "gDay" => Self::GDay,
            "duration" => Self::Duration,
            "yearMonthDuration" => Self::YearMonthDuration,
            "dayTimeDuration" => Self::DayTimeDuration,
            _ => Self::Derived(derived_integer(iri)?),
        })
    }
}

/// Converts a value; None when the types do not allow it or the value does not fit.
#[must_use]
pub fn cast(to: Cast, v: &Value<'_>) -> Option<Value<'static>> {
    Some(match to {
        Cast::String => to_string(v)?,
        Cast::Boolean => Value::Boolean(to_boolean(v)?),
        Cast::Integer => Value::Integer(to_integer(v)?),
        Cast::Derived(datatype) => literal_of_derived(datatype, &to_integer(v)?)?,
        Cast::Decimal => Value::Decimal(to_decimal(v)?),
        Cast::Float => Value::Float(to_float(v)?),
        Cast::Double => Value::Double(to_double(v)?),
        _ => Value::Temporal(to_temporal(to, v)?),
    })
}

fn to_string(v: &Value<'_>) -> Option<Value<'static>> {
    let text = match v {
        Value::Blank(_) | Value::Triple(_) => return None,
        Value::Float(v) => real_text(f32::from(*v), f64::from(f32::from(*v))),
        Value::Double(v) => real_text(f64::from(*v), f64::from(*v)),
        _ => None,
    };
    Some(Value::String(Cow::Owned(text.unwrap_or_else(|| v.text().into_owned()))))
}

/// XPath writes floats and doubles of moderate size without exponent; None for the others,
/// whose text is the canonical one.
fn real_text(value: impl std::fmt::Display, wide: f64) -> Option<String> {
    (wide == 0.0 || (1e-6..1e6).contains(&wide.abs())).then(|| value.to_string())
}

/// The text that a cast from a string reads: white space at its ends is no part of it (XML
/// Schema part 2, whiteSpace).
fn trimmed(text: &str) -> &str {
    text.trim_matches([' ', '\t', '\n', '\r'])
}

fn to_boolean(v: &Value<'_>) -> Option<bool> {
    match v {
        Value::String(t) => parse_boolean(trimmed(t)),
        Value::Boolean(_) | Value::Integer(_) | Value::Decimal(_) | Value::Float(_) | Value::Double(_) => {
            super::effective_boolean(v)
        }
        _ => None,
    }
}

fn to_integer(v: &Value<'_>) -> Option<Integer> {
    match v {
        Value::String(t) => parse_integer(trimmed(t)),
        Value::Boolean(v) => Some((*v).into()),
        Value::Integer(v) => Some(v.clone()),
        Value::Decimal(v) => Some(v.truncate()),
        Value::Float(v) => integer_of_double(f32::from(*v).into()),
        Value::Double(v) => integer_of_double((*v).into()),
        _ => None,
    }
}

fn to_decimal(v: &Value<'_>) -> Option<Decimal> {
    match v {
        Value::String(t) => Decimal::parse(trimmed(t)),
        Value::Boolean(v) => Some(Integer::from(*v).into()),
        Value::Integer(v) => Some(v.clone().into()),
        Value::Decimal(v) => Some(v.clone()),
        Value::Float(v) => decimal_of_double(f32::from(*v).into()),
        Value::Double(v) => decimal_of_double((*v).into()),
        _ => None,
    }
}

fn to_float(v: &Value<'_>) -> Option<Float> {
    match v {
        Value::String(t) => parse_float(trimmed(t)),
        Value::Boolean(v) => Some(Float::from(f32::from(u8::from(*v)))),
        v => arith::to_float(v),
    }
}

fn to_double(v: &Value<'_>) -> Option<Double> {
    match v {
        Value::String(t) => parse_double(trimmed(t)),
        Value::Boolean(v) => Some(Double::from(f64::from(u8::from(*v)))),
        v => arith::to_double(v),
    }
}

fn to_temporal(to: Cast, v: &Value<'_>) -> Option<Temporal> {
    match v {
        Value::String(t) => read_temporal(to, trimmed(t)),
        Value::Temporal(t) => convert_temporal(to, *t),
        _ => None,
    }
}

fn read_temporal(to: Cast, text: &str) -> Option<Temporal> {
    Some(match to {
        Cast::DateTime => Temporal::DateTime(text.parse().ok()?),
        Cast::Date => Temporal::Date(text.parse().ok()?),
        Cast::Time => Temporal::Time(text.parse().ok()?),
        Cast::GYear => Temporal::GYear(text.parse().ok()?),
        Cast::GYearMonth => Temporal::GYearMonth(text.parse().ok()?),
        Cast::GMonth => Temporal::GMonth(text.parse().ok()?),
        Cast::GMonthDay => Temporal::GMonthDay(text.parse().ok()?),
        Cast::GDay => Temporal::GDay(text.parse().ok()?),
        Cast::Duration => Temporal::Duration(parse_duration(text)?),
        Cast::YearMonthDuration => Temporal::YearMonthDuration(parse_duration(text)?),
        Cast::DayTimeDuration => Temporal::DayTimeDuration(parse_duration(text)?),
        _ => return None,
    })
}

fn convert_temporal(to: Cast, v: Temporal) -> Option<Temporal> {
    use Temporal as T;
    Some(match (to, v) {
        (Cast::DateTime, T::DateTime(_))
        | (Cast::Date, T::Date(_))
        | (Cast::Time, T::Time(_))
        | (Cast::GYear, T::GYear(_))
        | (Cast::GYearMonth, T::GYearMonth(_))
        | (Cast::GMonth, T::GMonth(_))
        | (Cast::GMonthDay, T::GMonthDay(_))
        | (Cast::GDay, T::GDay(_))
        | (Cast::Duration, T::Duration(_))
        | (Cast::YearMonthDuration, T::YearMonthDuration(_))
        | (Cast::DayTimeDuration, T::DayTimeDuration(_)) => v,
        (Cast::DateTime, T::Date(d)) => T::DateTime(d.try_into().ok()?),
        (Cast::Date, T::DateTime(d)) => T::Date(Date::try_from(d).ok()?),
        (Cast::Time, T::DateTime(d)) => T::Time(Time::from(d)),
        (Cast::GYear, T::DateTime(d)) => T::GYear(GYear::try_from(d).ok()?),
        (Cast::GYear, T::Date(d)) => T::GYear(GYear::try_from(d).ok()?),
        (Cast::GYearMonth, T::DateTime(d)) => T::GYearMonth(GYearMonth::try_from(d).ok()?),
        (Cast::GYearMonth, T::Date(d)) => T::GYearMonth(GYearMonth::from(d)),
        (Cast::GMonth, T::DateTime(d)) => T::GMonth(GMonth::from(d)),
        (Cast::GMonth, T::Date(d)) => T::GMonth(GMonth::from(d)),
        (Cast::GMonthDay, T::DateTime(d)) => T::GMonthDay(GMonthDay::from(d)),
        (Cast::GMonthDay, T::Date(d)) => T::GMonthDay(GMonthDay::from(d)),
        (Cast::GDay, T::DateTime(d)) => T::GDay(GDay::from(d)),
        (Cast::GDay, T::Date(d)) => T::GDay(GDay::from(d)),
        (Cast::Duration, T::YearMonthDuration(d)) => T::Duration(d.into()),
        (Cast::Duration, T::DayTimeDuration(d)) => T::Duration(d.into()),
        // each takes its own part and leaves the other out (19.1.4)
        (Cast::YearMonthDuration, d) => T::YearMonthDuration(duration::year_month(duration::whole(&d)?)),
        (Cast::DayTimeDuration, d) => T::DayTimeDuration(duration::day_time(duration::whole(&d)?)),
        _ => return None,
    })
}
