//! From a literal's lexical form to an inline id. The parsers are written by hand on the bytes,
//! because the loader runs them for every literal.
//!
//! Only forms that `term::lexical` gives back byte for byte are inline: no plus sign, no
//! leading zeros, no minus zero in integers and decimals, no hour 24, no time zone other than
//! none and `Z`, no trailing zeros in fractions of seconds, canonical doubles and floats
//! (`1.05E1`). Decimals keep their digits after the point (`1.50`), up to six. Everything else
//! goes to the dictionary, under the kind that [`Inline::No`] names.

use crate::term::civil::{days_of, is_valid};
use crate::term::layout::{
    BODY_BITS, DAYS, DECIMAL, DECIMAL_OFFSET, DERIVED, DERIVED_OFFSET, DIGIT_BITS, INTEGER_OFFSET,
    MAX_DIGITS, MS_PER_DAY, SCALE, SHORT_STRING_BYTES, XSD,
};
use crate::term::{TermId, TermKind};

/// The encoding of a literal without language tag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Inline {
    /// The literal has this id.
    Id(TermId),
    /// The literal looks like a decimal number, and its datatype has no fixed code: it is inline
    /// once the datatype has a code ([`decimal_like`]), else in the dictionary as
    /// [`TermKind::Literal`].
    Shaped(u64),
    /// The literal is in the dictionary under this kind: string, literal or value.
    No(TermKind),
}

impl Inline {
    /// The id, if the literal is inline without a code table.
    #[inline]
    pub fn id(self) -> Option<TermId> {
        match self {
            Inline::Id(id) => Some(id),
            _ => None,
        }
    }
}

/// The id of a literal of a registered datatype from the payload of [`Inline::Shaped`].
#[inline]
pub const fn decimal_like(code: u8, body: u64) -> TermId {
    TermId::new(TermKind::Decimal, ((code as u64) << BODY_BITS) | body)
}

/// Encoding of the literals of a datatype.
enum Datatype {
    String,
    Integer,
    Decimal,
    Derived(u8),
    Double,
    Float,
    Boolean,
    Date,
    DateTime,
    /// Comparable, but never inline.
    Comparable,
    Unknown,
}

fn datatype_named(iri: &str) -> Datatype {
    let Some(name) = iri.strip_prefix(XSD) else { return Datatype::Unknown };
    match name {
        "string" => Datatype::String,
        "integer" => Datatype::Integer,
        "date" => Datatype::Date,
        "dateTime" => Datatype::DateTime,
        "decimal" => Datatype::Decimal,
        "double" => Datatype::Double,
        "float" => Datatype::Float,
        "boolean" => Datatype::Boolean,
        "dateTimeStamp" | "time" | "gYear" | "gYearMonth" | "gMonth" | "gMonthDay" | "gDay" | "duration"
        | "dayTimeDuration" | "yearMonthDuration" => Datatype::Comparable,
        _ => match DERIVED.iter().position(|derived| derived.name == name) {
            Some(place) => Datatype::Derived(place as u8 + 1),
            None => Datatype::Unknown,
        },
    }
}

/// Whether literals of `datatype` have the kind [`TermKind::Value`] if they are not inline:
/// numbers, booleans, dates, times, durations.
pub fn is_comparable_datatype(datatype: &str) -> bool {
    !matches!(datatype_named(datatype), Datatype::String | Datatype::Unknown)
}

/// Encodes a literal without a language tag.
pub fn encode(lexical: &str, datatype: &str) -> Inline {
    let bytes = lexical.as_bytes();
    let id = match datatype_named(datatype) {
        Datatype::String => match short_string(bytes) {
            Some(id) => return Inline::Id(id),
            None => return Inline::No(TermKind::String),
        },
        Datatype::Unknown => match decimal_body(bytes) {
            Some(body) => return Inline::Shaped(body),
            None => return Inline::No(TermKind::Literal),
        },
        Datatype::Integer => integer(bytes).and_then(from_integer),
        Datatype::Decimal => decimal_body(bytes).map(|body| decimal_like(DECIMAL, body)),
        Datatype::Derived(code) => integer(bytes).and_then(|value| from_derived(code, value)),
        Datatype::Double => canonical_double(lexical),
        Datatype::Float => canonical_float(lexical),
        Datatype::Boolean => match lexical {
            "true" => Some(from_boolean(true)),
            "false" => Some(from_boolean(false)),
            _ => None,
        },
        Datatype::Date => date(bytes),
        Datatype::DateTime => date_time(bytes),
        Datatype::Comparable => None,
    };
    id.map_or(Inline::No(TermKind::Value), Inline::Id)
}

/// The id of a string of at most seven bytes.
#[inline]
pub fn short_string(bytes: &[u8]) -> Option<TermId> {
    if bytes.len() > SHORT_STRING_BYTES {
        return None;
    }
    Some(TermId::new(TermKind::ShortString, short_payload(bytes)))
}

/// The bytes left aligned and zero filled, then the length. Payloads order as the strings do, also
/// with NUL in them.
pub(crate) fn short_payload(bytes: &[u8]) -> u64 {
    let mut aligned = [0; 8];
    aligned[..bytes.len()].copy_from_slice(bytes);
    (u64::from_be_bytes(aligned) >> 4) | bytes.len() as u64
}

/// The id of an xsd:integer, if it fits 60 bits.
#[inline]
pub fn from_integer(value: i64) -> Option<TermId> {
    if !(-INTEGER_OFFSET..INTEGER_OFFSET).contains(&value) {
        return None;
    }
    Some(TermId::new(TermKind::Integer, (value + INTEGER_OFFSET) as u64))
}

/// The id of a value of a datatype derived from integer, given by its code (1 to 12), if it is
/// within the datatype's bounds and fits 52 bits.
pub fn from_derived(code: u8, value: i64) -> Option<TermId> {
    let derived = &DERIVED[usize::from(code) - 1];
    let fits = (-DERIVED_OFFSET..DERIVED_OFFSET).contains(&value);
    if !fits || value < derived.min || value > derived.max {
        return None;
    }
    Some(decimal_like(code, (value + DERIVED_OFFSET) as u64))
}

/// The id of the xsd:decimal `value` · 10^-6, written with as few digits as possible.
pub fn from_micros(value: i64) -> Option<TermId> {
    if !(-DECIMAL_OFFSET..DECIMAL_OFFSET).contains(&value) {
        return None;
    }
    let mut digits = MAX_DIGITS as u64;
    let mut rest = value;
    while digits > 0 && rest % 10 == 0 {
        rest /= 10;
        digits -= 1;
    }
    Some(decimal_like(DECIMAL, ((value + DECIMAL_OFFSET) as u64) << DIGIT_BITS | digits))
}

/// The id of an xsd:double, if its low four bits are zero. Its lexical form is the canonical one.
pub fn from_double(value: f64) -> Option<TermId> {
    let value = if value.is_nan() { f64::NAN } else { value };
    let bits = value.to_bits();
    (bits & 0xF == 0).then(|| TermId::new(TermKind::Double, ordered_bits(value) >> 4))
}

/// The bit pattern of a double, changed so that patterns order as values do.
pub(crate) fn ordered_bits(value: f64) -> u64 {
    let bits = value.to_bits();
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

/// The id of an xsd:float. Its lexical form is the canonical one.
pub fn from_float(value: f32) -> TermId {
    let value = if value.is_nan() { f32::NAN } else { value };
    TermId::new(TermKind::Float, u64::from(ordered_bits_f32(value)))
}

pub(crate) fn ordered_bits_f32(value: f32) -> u32 {
    let bits = value.to_bits();
    if bits >> 31 == 0 { bits | 1 << 31 } else { !bits }
}

/// The id of an xsd:boolean.
pub const fn from_boolean(value: bool) -> TermId {
    TermId::new(TermKind::Boolean, value as u64)
}

/// The id of an xsd:date: days since 0001-01-01 (up to 9999-12-31), without time zone or in
/// UTC.
pub fn from_date(days: u32, utc: bool) -> Option<TermId> {
    (days < DAYS).then(|| TermId::new(TermKind::Date, u64::from(days) << 1 | u64::from(utc)))
}

/// The id of an xsd:dateTime: milliseconds since 0001-01-01T00:00:00 (up to the end of 9999),
/// without time zone or in UTC.
pub fn from_date_time(ms: u64, utc: bool) -> Option<TermId> {
    (ms < u64::from(DAYS) * MS_PER_DAY).then(|| TermId::new(TermKind::DateTime, ms << 1 | u64::from(utc)))
}

/// A canonical integer of at most 18 digits.
#[inline]
fn integer(bytes: &[u8]) -> Option<i64> {
    let (negative, digits) = match bytes {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, bytes),
    };
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    if digits[0] == b'0' {
        return (digits.len() == 1 && !negative).then_some(0);
    }
    let value = number(digits)?;
    Some(if negative { -value } else { value })
}

/// The number of at most 18 digits.
#[inline]
fn number(digits: &[u8]) -> Option<i64> {
    let mut value = 0;
    for &byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + i64::from(digit);
    }
    Some(value)
}

const POWERS: [i64; MAX_DIGITS + 1] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000];

/// The lower 52 bits of a decimal id: `-?(0|[1-9][0-9]*)(\.[0-9]{1,6})?` below 2^48 / 10^6,
/// minus zero excepted.
#[inline]
pub(crate) fn decimal_body(bytes: &[u8]) -> Option<u64> {
    let (negative, bytes) = match bytes {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, bytes),
    };
    // Nine digits, the point and six more. The check also rejects long texts quickly.
    if bytes.len() > 16 {
        return None;
    }
    let point = bytes.iter().position(|&byte| byte == b'.').unwrap_or(bytes.len());
    let (whole, fraction) = bytes.split_at(point);
    if whole.is_empty() || whole.len() > 9 || (whole[0] == b'0' && whole.len() > 1) {
        return None;
    }
    let fraction = match fraction {
        [] => fraction,
        [_, digits @ ..] if (1..=MAX_DIGITS).contains(&digits.len()) => digits,
        _ => return None,
    };
    let value = number(whole)? * SCALE + number(fraction)? * POWERS[MAX_DIGITS - fraction.len()];
    if value >= DECIMAL_OFFSET || (negative && value == 0) {
        return None;
    }
    let value = if negative { -value } else { value };
    Some(((value + DECIMAL_OFFSET) as u64) << DIGIT_BITS | fraction.len() as u64)
}

#[inline]
fn two(bytes: &[u8], at: usize) -> Option<u32> {
    let (high, low) = (bytes[at].wrapping_sub(b'0'), bytes[at + 1].wrapping_sub(b'0'));
    (high <= 9 && low <= 9).then_some(u32::from(high) * 10 + u32::from(low))
}

/// Days of `YYYY-MM-DD` in the first ten bytes.
#[inline]
fn days(bytes: &[u8]) -> Option<u32> {
    if bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    let year = two(bytes, 0)? * 100 + two(bytes, 2)?;
    let (month, day) = (two(bytes, 5)?, two(bytes, 8)?);
    is_valid(year, month, day).then(|| days_of(year, month, day))
}

/// `Z` or nothing.
#[inline]
fn zone(rest: &[u8]) -> Option<bool> {
    match rest {
        [] => Some(false),
        [b'Z'] => Some(true),
        _ => None,
    }
}

fn date(bytes: &[u8]) -> Option<TermId> {
    if bytes.len() < 10 {
        return None;
    }
    from_date(days(bytes)?, zone(&bytes[10..])?)
}

fn date_time(bytes: &[u8]) -> Option<TermId> {
    if bytes.len() < 19 || bytes[10] != b'T' || bytes[13] != b':' || bytes[16] != b':' {
        return None;
    }
    let (hour, minute, second) = (two(bytes, 11)?, two(bytes, 14)?, two(bytes, 17)?);
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let (fraction, rest) = milliseconds(&bytes[19..])?;
    let seconds = u64::from(hour * 3600 + minute * 60 + second);
    let ms = u64::from(days(bytes)?) * MS_PER_DAY + seconds * 1000 + fraction;
    from_date_time(ms, zone(rest)?)
}

/// The fraction of a second, canonical and at most three digits, and what follows it.
fn milliseconds(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let [b'.', rest @ ..] = bytes else { return Some((0, bytes)) };
    let len = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if len == 0 || len > 3 || rest[len - 1] == b'0' {
        return None;
    }
    let value = number(&rest[..len])? as u64;
    Some((value * [100, 10, 1][len - 1], &rest[len..]))
}

fn canonical_double(lexical: &str) -> Option<TermId> {
    let value = match lexical {
        "INF" => f64::INFINITY,
        "-INF" => f64::NEG_INFINITY,
        "NaN" => f64::NAN,
        _ if looks_scientific(lexical) => lexical.parse().ok()?,
        _ => return None,
    };
    given_back(from_double(value)?, lexical)
}

fn canonical_float(lexical: &str) -> Option<TermId> {
    let value = match lexical {
        "INF" => f32::INFINITY,
        "-INF" => f32::NEG_INFINITY,
        "NaN" => f32::NAN,
        _ if looks_scientific(lexical) => lexical.parse().ok()?,
        _ => return None,
    };
    given_back(from_float(value), lexical)
}

/// A cheap check before the costly parse: `-?D.D…E…`.
fn looks_scientific(lexical: &str) -> bool {
    let bytes = lexical.strip_prefix('-').unwrap_or(lexical).as_bytes();
    bytes.len() >= 5
        && bytes.len() <= 24
        && bytes[0].is_ascii_digit()
        && bytes[1] == b'.'
        && bytes.contains(&b'E')
}

fn given_back(id: TermId, lexical: &str) -> Option<TermId> {
    let mut written = crate::term::lexical::Lexical::new();
    (written.write(id) == Some(lexical)).then_some(id)
}
