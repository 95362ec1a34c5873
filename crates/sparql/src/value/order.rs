//! ORDER BY as bytes: each value becomes a key whose byte order is the order of the values.
//!
//! Order: unbound < blank nodes < IRIs < literals (SPARQL 1.1, section 15.1) < triple terms
//! (SPARQL 1.2, section 15.1), these by subject, predicate and object; among literals,
//! where the standard says nothing: numbers by value, strings by code point, language strings,
//! booleans, temporal values by type, then the others by datatype and lexical form. Sorting,
//! top-k and spilled runs need nothing but `memcmp`, and the order is total whatever is
//! compared.
//!
//! | class byte        | key                                                                             |
//! |-------------------|---------------------------------------------------------------------------------|
//! | 1 unbound         | –                                                                               |
//! | 2 blank, 3 IRI    | text                                                                            |
//! | 16 number         | nearest double, order-preserving, 8 bytes; then 0x80, or 0x7F or 0x81 and the number: exponent, digits two by two, 0 |
//! | 17 string, 18 lang| text; text, tag                                                                 |
//! | 19 boolean        | 1 byte                                                                          |
//! | 20.. temporal     | 16 bytes on the time line (no time zone counts as UTC)                          |
//! | 64 other          | datatype, lexical form                                                          |
//! | 65 triple term    | keys of subject, predicate and object                                           |
//!
//! Text: its bytes with 0 written as 0 255, ended by 0 0. So no key is a prefix of another. A
//! number follows its nearest double where it is not the shortest decimal of that double: 0x7F
//! says below it and 0x81 above it. So the order is the exact one for numbers of any size, and
//! 0.1 as decimal ties with 0.1 as double. Negative numbers have their digits complemented.

use std::cmp::Ordering;

use snowmelt_graph::{InlineNumber, MICROS};

use super::exact::{double_of_decimal, double_of_integer};
use super::triple::{value_of, value_of_subject};
use super::{Decimal, Integer, Temporal, Value};

const UNBOUND: u8 = 1;
const BLANK: u8 = 2;
const IRI: u8 = 3;
const NUMBER: u8 = 16;
const STRING: u8 = 17;
const LANG_STRING: u8 = 18;
const BOOLEAN: u8 = 19;
const TEMPORAL: u8 = 20;
const OTHER: u8 = 64;
const TRIPLE: u8 = 65;

const UNITS_PER_ONE: i128 = 1_000_000_000_000_000_000;

/// Appends the sort key of a value (None = unbound), complemented if `descending`.
pub fn push_order_key(value: Option<&Value<'_>>, descending: bool, out: &mut Vec<u8>) {
    let start = out.len();
    match value {
        None => out.push(UNBOUND),
        Some(value) => push_value(value, out),
    }
    if descending {
        out[start..].iter_mut().for_each(|b| *b = !*b);
    }
}

/// The order of a value's key and a key, which may go on behind its first part. A text is compared
/// where it lies.
pub(crate) fn key_order(value: Option<&Value<'_>>, key: &[u8]) -> Ordering {
    let by_key = || {
        let mut made = Vec::new();
        push_order_key(value, false, &mut made);
        made.as_slice().cmp(&key[..key.len().min(made.len())])
    };
    let (class, text) = match value {
        Some(Value::Iri(text)) => (IRI, text),
        Some(Value::String(text)) => (STRING, text),
        Some(Value::LangString(text, _)) => (LANG_STRING, text),
        _ => return by_key(),
    };
    let Some((first, rest)) = key.split_first() else { return Ordering::Greater };
    if class != *first {
        return class.cmp(first);
    }
    let differs = text.bytes().zip(rest).position(|(a, b)| a != *b);
    let same = differs.unwrap_or(text.len().min(rest.len()));
    // an escaped 0 moves what is behind it
    if memchr::memchr(0, &text.as_bytes()[..same]).is_some() {
        return by_key();
    }
    match (differs, &rest[same..]) {
        (Some(at), _) => text.as_bytes()[at].cmp(&rest[at]),
        (None, [0, 0, ..]) if class == LANG_STRING => by_key(),
        (None, [0, 0, ..]) => Ordering::Equal,
        // the key's text is longer
        (None, _) => Ordering::Less,
    }
}

fn push_value(value: &Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::Blank(t) => push_text(BLANK, t, out),
        Value::Iri(t) => push_text(IRI, t, out),
        Value::String(t) => push_text(STRING, t, out),
        Value::LangString(t, lang) => {
            push_text(LANG_STRING, t, out);
            push_text(LANG_STRING, lang, out);
        }
        Value::Boolean(v) => out.extend([BOOLEAN, u8::from(*v)]),
        Value::Integer(v) => push_integer(v, out),
        Value::Decimal(v) => push_decimal(v, out),
        Value::Float(v) => push_double(f64::from(f32::from(*v)), out),
        Value::Double(v) => push_double((*v).into(), out),
        Value::Temporal(t) => push_temporal(t, out),
        Value::Other { lexical, datatype } => {
            push_text(OTHER, datatype, out);
            push_text(OTHER, lexical, out);
        }
        Value::Triple(triple) => push_triple(triple, out),
    }
}

fn push_triple(triple: &oxrdf::Triple, out: &mut Vec<u8>) {
    let mut at = triple;
    loop {
        out.push(TRIPLE);
        push_value(&value_of_subject(&at.subject), out);
        push_text(IRI, at.predicate.as_str(), out);
        match &at.object {
            oxrdf::Term::Triple(inner) => at = inner,
            object => return push_value(&value_of(object), out),
        }
    }
}

fn push_text(class: u8, text: &str, out: &mut Vec<u8>) {
    out.push(class);
    for part in text.as_bytes().split_inclusive(|b| *b == 0) {
        out.extend_from_slice(part);
        if part.ends_with(&[0]) {
            out.push(255);
        }
    }
    out.extend([0, 0]);
}

/// Integers up to this are doubles, each with a shortest decimal of its own.
const EXACT: u64 = 1 << 53;

/// Appends the sort key of an inline number, as of its value.
pub(super) fn push_inline_number(number: InlineNumber, out: &mut Vec<u8>) {
    match number {
        InlineNumber::Float(v) => push_double(v.into(), out),
        InlineNumber::Double(v) => push_double(v, out),
        InlineNumber::Exact(micros) => match i64::try_from(micros / MICROS) {
            // decimals of so many digits are the shortest ones of their doubles
            Ok(v) if v.unsigned_abs() <= EXACT => push_double(number.double(), out),
            Ok(v) => push_exact(number.double(), &v, out),
            Err(_) => unreachable!("an inline number has at most 64 bits before the point"),
        },
    }
}

fn push_integer(v: &Integer, out: &mut Vec<u8>) {
    match i64::try_from(v) {
        Ok(small) if small.unsigned_abs() <= EXACT => push_double(small as f64, out),
        _ => push_exact(double_of_integer(v), v, out),
    }
}

fn push_decimal(v: &Decimal, out: &mut Vec<u8>) {
    if v.is_short() {
        return push_double(double_of_decimal(v), out);
    }
    push_exact(double_of_decimal(v), v, out);
}

/// A number under the key of its nearest double, and behind or before that of the double's
/// shortest decimal.
fn push_exact(nearest: f64, v: &impl ToString, out: &mut Vec<u8>) {
    let text = v.to_string();
    let number = Scientific::of_decimal(&text);
    let side = if nearest.is_infinite() {
        // finite numbers are nearer to 0 than infinity
        Ordering::Less
    } else {
        number.magnitude(&Scientific::of_double(&format!("{nearest:e}")))
    };
    push_key(nearest, out);
    match (side, number.negative) {
        (Ordering::Equal, _) => return out.push(SHORTEST),
        (Ordering::Less, false) | (Ordering::Greater, true) => out.push(BELOW),
        (Ordering::Greater, false) | (Ordering::Less, true) => out.push(ABOVE),
    }
    number.push(out);
}

/// 0.DIGITS · 10^exponent; the digits begin and end with none that is 0.
struct Scientific {
    negative: bool,
    exponent: i64,
    digits: Vec<u8>,
}

impl Scientific {
    fn new(negative: bool, digits: impl Iterator<Item = u8>, before_point: i64) -> Self {
        let digits: Vec<u8> = digits.collect();
        let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
        let end = digits.iter().rposition(|digit| *digit != b'0').map_or(zeros, |last| last + 1);
        if zeros == end {
            return Self { negative, exponent: i64::MIN, digits: Vec::new() };
        }
        Self { negative, exponent: before_point - zeros as i64, digits: digits[zeros..end].to_vec() }
    }

    /// `-12.5`
    fn of_decimal(text: &str) -> Self {
        let (negative, text) = text.strip_prefix('-').map_or((false, text), |text| (true, text));
        let point = text.find('.').unwrap_or(text.len());
        Self::new(negative, text.bytes().filter(|byte| *byte != b'.'), point as i64)
    }

    /// `-1.25e1`
    fn of_double(text: &str) -> Self {
        let (mantissa, exponent) = text.split_once('e').expect("{:e} writes an e");
        let mut number = Self::of_decimal(mantissa);
        number.exponent = number.exponent.saturating_add(exponent.parse().expect("and a number behind it"));
        number
    }

    /// The order of the numbers without their signs.
    fn magnitude(&self, other: &Self) -> Ordering {
        self.exponent.cmp(&other.exponent).then_with(|| self.digits.cmp(&other.digits))
    }

    /// The exponent, the digits two by two, an end; all complemented for a negative number.
    fn push(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let exponent = (self.exponent.clamp(i32::MIN.into(), i32::MAX.into()) - i64::from(i32::MIN)) as u32;
        out.extend(exponent.to_be_bytes());
        for pair in self.digits.chunks(2) {
            let low = pair.get(1).map_or(0, |digit| digit - b'0');
            out.push((pair[0] - b'0') * 10 + low + 1);
        }
        out.push(0);
        if self.negative {
            out[start..].iter_mut().for_each(|byte| *byte = !*byte);
        }
    }
}

/// A number is the shortest decimal of its double, below it, or above it.
const SHORTEST: u8 = 0x80;
const BELOW: u8 = 0x7F;
const ABOVE: u8 = 0x81;

fn push_double(v: f64, out: &mut Vec<u8>) {
    push_key(v, out);
    out.push(SHORTEST);
}

fn push_key(v: f64, out: &mut Vec<u8>) {
    let v = if v == 0.0 { 0.0 } else { v }; // one zero
    let bits = v.to_bits();
    let key = match v {
        v if v.is_nan() => 0, // before all numbers
        _ if bits >> 63 == 1 => !bits,
        _ => bits | (1 << 63),
    };
    out.push(NUMBER);
    out.extend(key.to_be_bytes());
}

fn push_i128(v: i128, out: &mut Vec<u8>) {
    out.extend(((v as u128) ^ (1 << 127)).to_be_bytes());
}

fn push_temporal(t: &Temporal, out: &mut Vec<u8>) {
    let point = |bytes: [u8; 18]| {
        i128::from_be_bytes(bytes[..16].try_into().expect("sixteen bytes are sixteen bytes"))
    };
    let (class, key) = match t {
        Temporal::DateTime(v) => (0, point(v.to_be_bytes())),
        Temporal::Date(v) => (1, point(v.to_be_bytes())),
        Temporal::Time(v) => (2, point(v.to_be_bytes())),
        Temporal::GYear(v) => (3, point(v.to_be_bytes())),
        Temporal::GYearMonth(v) => (4, point(v.to_be_bytes())),
        Temporal::GMonth(v) => (5, point(v.to_be_bytes())),
        Temporal::GMonthDay(v) => (6, point(v.to_be_bytes())),
        Temporal::GDay(v) => (7, point(v.to_be_bytes())),
        Temporal::Duration(v) => (8, mean_length(*v)),
        Temporal::YearMonthDuration(v) => (8, mean_length((*v).into())),
        Temporal::DayTimeDuration(v) => (8, mean_length((*v).into())),
    };
    out.push(TEMPORAL + class);
    push_i128(key, out);
}

/// A duration's length with months of mean length (30.436875 days), in 10^-18 seconds,
/// saturating.
fn mean_length(d: oxsdatatypes::Duration) -> i128 {
    const MONTH_SECONDS: i128 = 2_629_746;
    let bytes = d.to_be_bytes();
    let months = i64::from_be_bytes(bytes[..8].try_into().expect("eight bytes are eight bytes"));
    let seconds = i128::from_be_bytes(bytes[8..].try_into().expect("sixteen bytes are sixteen bytes"));
    i128::from(months).saturating_mul(MONTH_SECONDS).saturating_mul(UNITS_PER_ONE).saturating_add(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{compare, parse_literal};
    use std::cmp::Ordering;

    fn key(lexical: &str, datatype: &str) -> Vec<u8> {
        let datatype = format!("{}{datatype}", crate::value::iri::XSD);
        let mut out = Vec::new();
        push_order_key(Some(&parse_literal(lexical, None, &datatype)), false, &mut out);
        out
    }

    #[test]
    fn numbers_of_all_types_sort_by_value() {
        let ascending = [
            ("NaN", "double"),
            ("-INF", "double"),
            ("-9223372036854775808", "integer"),
            ("-9223372036854775807", "integer"),
            ("-1.5", "decimal"),
            ("-0.3", "float"),
            ("0", "integer"),
            ("0.000000000000000001", "decimal"),
            ("0.1", "decimal"),
            ("0.100000000000000001", "decimal"),
            ("0.100000000000000002", "decimal"),
            ("1", "byte"),
            ("1.5", "float"),
            ("1.6", "double"),
            ("9007199254740993", "integer"),
            ("9007199254740994", "integer"),
            ("9223372036854775806", "integer"),
            ("9223372036854775807", "integer"),
            ("18446744073709551615", "unsignedLong"),
            ("18446744073709551616", "integer"),
            ("18446744073709551616.5", "decimal"),
            ("99999999999999999999", "integer"),
            ("1e30", "double"),
            ("1000000000000000000000000000001", "integer"),
            ("INF", "float"),
        ];
        for pair in ascending.windows(2) {
            assert!(key(pair[0].0, pair[0].1) < key(pair[1].0, pair[1].1), "{pair:?}");
        }
        for (a, b) in [
            (("0.1", "decimal"), ("0.1", "double")),
            (("-0", "double"), ("0", "integer")),
            (("2.50", "decimal"), ("2.5", "float")),
        ] {
            assert_eq!(key(a.0, a.1), key(b.0, b.1));
        }
    }

    #[test]
    fn strings_sort_by_code_point_and_no_key_is_a_prefix() {
        let ascending = ["", "\0", "\0a", "\u{1}", "a", "a\0", "a\0b", "a ", "aa", "b", "é", "\u{10000}"];
        for pair in ascending.windows(2) {
            let (a, b) = (key(pair[0], "string"), key(pair[1], "string"));
            assert!(a < b && !b.starts_with(&a), "{pair:?}");
        }
    }

    #[test]
    fn temporal_keys_agree_with_comparison() {
        for (datatype, values) in [
            (
                "dateTime",
                vec![
                    "2008-06-20T00:00:00",
                    "2008-06-20T00:00:00.5",
                    "-0001-01-01T00:00:00",
                    "2010-01-01T00:00:00",
                ],
            ),
            ("date", vec!["2008-06-20", "2008-06-19", "1900-02-28", "2008-06-20"]),
            ("dayTimeDuration", vec!["P1D", "PT23H", "-P2D", "PT0S"]),
            ("yearMonthDuration", vec!["P1Y", "P11M", "-P1M"]),
        ] {
            let iri = format!("{}{datatype}", crate::value::iri::XSD);
            for a in &values {
                for b in &values {
                    let order = compare(&parse_literal(a, None, &iri), &parse_literal(b, None, &iri));
                    assert_eq!(order, Some(key(a, datatype).cmp(&key(b, datatype))), "{a} {b}");
                }
            }
        }
    }

    #[test]
    fn descending_turns_the_order_round_and_unbound_comes_first() {
        let down = |v: Option<i64>| {
            let mut out = Vec::new();
            push_order_key(v.map(|v| Value::Integer(v.into())).as_ref(), true, &mut out);
            out
        };
        assert_eq!(down(Some(3)).cmp(&down(Some(4))), Ordering::Greater);
        assert_eq!(down(None).cmp(&down(Some(4))), Ordering::Greater);
    }
}
