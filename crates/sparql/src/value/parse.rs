//! Reading a literal: (lexical form, language, datatype) → [`Value`], and back to text.
//!
//! One match on the datatype's local name. A lexical form outside the datatype's space gives
//! [`Value::Other`].

use std::borrow::Cow;
use std::str::FromStr;

use oxsdatatypes::{Double, Float};
use snowmelt_graph::{RDF_DIR_LANG_STRING, split_direction};

use super::exact::{digits_fit, parse_integer};
use super::{Decimal, Integer, Temporal, Value, iri};

/// The bounds of a type derived from xsd:integer, either of which may be missing.
#[derive(Clone, Copy)]
struct IntegerBounds {
    least: Option<i128>,
    greatest: Option<i128>,
}

impl IntegerBounds {
    const NONE: Self = Self { least: None, greatest: None };

    fn new<T: Into<i128>>(least: T, greatest: T) -> Self {
        Self { least: Some(least.into()), greatest: Some(greatest.into()) }
    }

    const fn at_least(least: i128) -> Self {
        Self { least: Some(least), greatest: None }
    }

    const fn at_most(greatest: i128) -> Self {
        Self { least: None, greatest: Some(greatest) }
    }

    fn contain(self, value: &Integer) -> bool {
        self.least.is_none_or(|least| *value >= Integer::from(least))
            && self.greatest.is_none_or(|greatest| *value <= Integer::from(greatest))
    }
}

/// The bounds of a type; None for one that is not derived from xsd:integer.
fn integer_bounds(local: &str) -> Option<IntegerBounds> {
    Some(match local {
        "integer" => IntegerBounds::NONE,
        "nonPositiveInteger" => IntegerBounds::at_most(0),
        "negativeInteger" => IntegerBounds::at_most(-1),
        "nonNegativeInteger" => IntegerBounds::at_least(0),
        "positiveInteger" => IntegerBounds::at_least(1),
        "long" => IntegerBounds::new(i64::MIN, i64::MAX),
        "int" => IntegerBounds::new(i32::MIN, i32::MAX),
        "short" => IntegerBounds::new(i16::MIN, i16::MAX),
        "byte" => IntegerBounds::new(i8::MIN, i8::MAX),
        "unsignedLong" => IntegerBounds::new(u64::MIN, u64::MAX),
        "unsignedInt" => IntegerBounds::new(u32::MIN, u32::MAX),
        "unsignedShort" => IntegerBounds::new(u16::MIN, u16::MAX),
        "unsignedByte" => IntegerBounds::new(u8::MIN, u8::MAX),
        _ => return None,
    })
}

/// The types derived from xsd:integer.
const DERIVED: [&str; 12] = [
    "http://www.w3.org/2001/XMLSchema#nonPositiveInteger",
    "http://www.w3.org/2001/XMLSchema#negativeInteger",
    "http://www.w3.org/2001/XMLSchema#nonNegativeInteger",
    "http://www.w3.org/2001/XMLSchema#positiveInteger",
    "http://www.w3.org/2001/XMLSchema#long",
    "http://www.w3.org/2001/XMLSchema#int",
    "http://www.w3.org/2001/XMLSchema#short",
    "http://www.w3.org/2001/XMLSchema#byte",
    "http://www.w3.org/2001/XMLSchema#unsignedLong",
    "http://www.w3.org/2001/XMLSchema#unsignedInt",
    "http://www.w3.org/2001/XMLSchema#unsignedShort",
    "http://www.w3.org/2001/XMLSchema#unsignedByte",
];

/// The IRI of a type derived from xsd:integer, if it is one.
pub(super) fn derived_integer(datatype: &str) -> Option<&'static str> {
    DERIVED.into_iter().find(|derived| *derived == datatype)
}

/// A literal of a type derived from xsd:integer; None for a value the type does not have. It is
/// no [`Value::Integer`], which is written as xsd:integer.
pub(super) fn literal_of_derived(datatype: &'static str, value: &Integer) -> Option<Value<'static>> {
    let bounds = integer_bounds(datatype.strip_prefix(iri::XSD)?)?;
    bounds
        .contain(value)
        .then(|| Value::Other { lexical: value.to_string().into(), datatype: datatype.into() })
}

/// True for xsd:integer, its derived types, xsd:decimal, xsd:float and xsd:double.
#[must_use]
pub fn is_numeric_datatype(datatype: &str) -> bool {
    datatype.strip_prefix(iri::XSD).is_some_and(|local| {
        matches!(local, "decimal" | "float" | "double") || integer_bounds(local).is_some()
    })
}

/// Whether a literal is of an exact number's type and may have more digits than a number has.
pub(super) fn is_too_long(lexical: &str, datatype: &str) -> bool {
    let exact =
        datatype.strip_prefix(iri::XSD).is_some_and(|t| t == "decimal" || integer_bounds(t).is_some());
    exact && !digits_fit(lexical.len(), lexical.len())
}

/// Reads a literal. Never fails: what has no value becomes [`Value::Other`].
#[must_use]
pub fn parse_literal<'a>(lexical: &'a str, lang: Option<&'a str>, datatype: &'a str) -> Value<'a> {
    if let Some(lang) = lang {
        return Value::LangString(lexical.into(), lang.into());
    }
    datatype
        .strip_prefix(iri::XSD)
        .and_then(|local| parse_xsd(lexical, local))
        .unwrap_or(Value::Other { lexical: lexical.into(), datatype: datatype.into() })
}

fn parse_xsd<'a>(lexical: &'a str, local: &str) -> Option<Value<'a>> {
    fn temporal<T: FromStr>(text: &str, make: fn(T) -> Temporal) -> Option<Value<'static>> {
        text.parse().ok().map(|t| Value::Temporal(make(t)))
    }
    fn duration<T: FromStr>(text: &str, make: fn(T) -> Temporal) -> Option<Value<'static>> {
        parse_duration(text).map(|t| Value::Temporal(make(t)))
    }
    match local {
        "string" => Some(Value::String(Cow::Borrowed(lexical))),
        "boolean" => parse_boolean(lexical).map(Value::Boolean),
        "decimal" => Decimal::parse(lexical).map(Value::Decimal),
        "double" => parse_double(lexical).map(Value::Double),
        "float" => parse_float(lexical).map(Value::Float),
        "dateTime" | "dateTimeStamp" => temporal(lexical, Temporal::DateTime),
        "date" => temporal(lexical, Temporal::Date),
        "time" => temporal(lexical, Temporal::Time),
        "gYear" => temporal(lexical, Temporal::GYear),
        "gYearMonth" => temporal(lexical, Temporal::GYearMonth),
        "gMonth" => temporal(lexical, Temporal::GMonth),
        "gMonthDay" => temporal(lexical, Temporal::GMonthDay),
        "gDay" => temporal(lexical, Temporal::GDay),
        "duration" => duration(lexical, Temporal::Duration),
        "yearMonthDuration" => duration(lexical, Temporal::YearMonthDuration),
        "dayTimeDuration" => duration(lexical, Temporal::DayTimeDuration),
        _ => {
            let bounds = integer_bounds(local)?;
            let value = parse_integer(lexical)?;
            bounds.contain(&value).then_some(Value::Integer(value))
        }
    }
}

/// A duration of any of the three types. The library also takes what XML Schema does not (3.3.6.2):
/// `T` with nothing behind it, and seconds without digits on both sides of their dot.
pub(super) fn parse_duration<T: FromStr>(text: &str) -> Option<T> {
    let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
    let mut around_dots = text.split('.').zip(text.split('.').skip(1));
    let is_lexical = !text.ends_with('T')
        && around_dots
            .all(|(before, after)| is_digit(before.as_bytes().last()) && is_digit(after.as_bytes().first()));
    is_lexical.then(|| text.parse().ok())?
}

pub(super) fn parse_boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

/// Rust reads "inf", "infinity" and "nan" in any case; XML Schema knows only INF, +INF, -INF
/// and NaN.
fn is_float_lexical(text: &str) -> bool {
    matches!(text, "INF" | "+INF" | "-INF" | "NaN")
        || text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'+' | b'-' | b'e' | b'E'))
}

pub(super) fn parse_double(text: &str) -> Option<Double> {
    is_float_lexical(text).then(|| text.parse().ok())?
}

pub(super) fn parse_float(text: &str) -> Option<Float> {
    is_float_lexical(text).then(|| text.parse().ok())?
}

impl Value<'_> {
    /// The datatype's IRI; None for IRIs, blank nodes and triple terms.
    #[must_use]
    pub fn datatype(&self) -> Option<&str> {
        Some(match self {
            Value::Iri(_) | Value::Blank(_) | Value::Triple(_) => return None,
            Value::String(_) => iri::STRING,
            Value::LangString(_, lang) if split_direction(lang).1.is_some() => RDF_DIR_LANG_STRING,
            Value::LangString(..) => iri::LANG_STRING,
            Value::Boolean(_) => iri::BOOLEAN,
            Value::Integer(_) => iri::INTEGER,
            Value::Decimal(_) => iri::DECIMAL,
            Value::Float(_) => iri::FLOAT,
            Value::Double(_) => iri::DOUBLE,
            Value::Temporal(t) => t.datatype(),
            Value::Other { datatype, .. } => datatype,
        })
    }

    /// The canonical lexical form, the IRI, the blank node's label, or a triple term as N-Triples
    /// writes it.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Value::Iri(t)
            | Value::Blank(t)
            | Value::String(t)
            | Value::LangString(t, _)
            | Value::Other { lexical: t, .. } => Cow::Borrowed(t),
            Value::Boolean(true) => Cow::Borrowed("true"),
            Value::Boolean(false) => Cow::Borrowed("false"),
            Value::Integer(v) => Cow::Owned(v.to_string()),
            Value::Decimal(v) => Cow::Owned(v.to_string()),
            Value::Float(v) => Cow::Owned(scientific(f32::from(*v), f64::from(*v))),
            Value::Double(v) => Cow::Owned(scientific(f64::from(*v), f64::from(*v))),
            Value::Temporal(t) => Cow::Owned(t.to_string()),
            Value::Triple(t) => Cow::Owned(format!("<<( {} )>>", **t)),
        }
    }
}

/// The canonical form of XML Schema 1.0, as inline ids give it back: `1.05E1`. `value` keeps
/// the width that decides which digits are the shortest.
fn scientific(value: impl std::fmt::UpperExp, wide: f64) -> String {
    if wide.is_nan() {
        return "NaN".to_owned();
    }
    if wide.is_infinite() {
        return if wide < 0.0 { "-INF" } else { "INF" }.to_owned();
    }
    let mut text = format!("{value:E}");
    if !text.contains('.') {
        let exponent = text.find('E').expect("{:E} writes an E");
        text.insert_str(exponent, ".0");
    }
    text
}

impl Temporal {
    /// The datatype's IRI.
    #[must_use]
    pub fn datatype(&self) -> &'static str {
        match self {
            Temporal::DateTime(_) => iri::DATE_TIME,
            Temporal::Date(_) => iri::DATE,
            Temporal::Time(_) => iri::TIME,
            Temporal::GYear(_) => iri::G_YEAR,
            Temporal::GYearMonth(_) => iri::G_YEAR_MONTH,
            Temporal::GMonth(_) => iri::G_MONTH,
            Temporal::GMonthDay(_) => iri::G_MONTH_DAY,
            Temporal::GDay(_) => iri::G_DAY,
            Temporal::Duration(_) => iri::DURATION,
            Temporal::YearMonthDuration(_) => iri::YEAR_MONTH_DURATION,
            Temporal::DayTimeDuration(_) => iri::DAY_TIME_DURATION,
        }
    }
}

impl std::fmt::Display for Temporal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Temporal::DateTime(v) => v.fmt(f),
            Temporal::Date(v) => v.fmt(f),
            Temporal::Time(v) => v.fmt(f),
            Temporal::GYear(v) => v.fmt(f),
            Temporal::GYearMonth(v) => v.fmt(f),
            Temporal::GMonth(v) => v.fmt(f),
            Temporal::GMonthDay(v) => v.fmt(f),
            Temporal::GDay(v) => v.fmt(f),
            Temporal::Duration(v) => v.fmt(f),
            Temporal::YearMonthDuration(v) => v.fmt(f),
            Temporal::DayTimeDuration(v) => v.fmt(f),
        }
    }
}
