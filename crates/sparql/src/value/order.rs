//! ORDER BY as bytes: each value becomes a key whose byte order is the order of the values.
//!
//! Order: unbound < blank nodes < IRIs < literals (SPARQL 1.1, section 15.1); among literals,
//! where the standard says nothing: numbers by value, strings by code point, language strings,
//! booleans, temporal values by type, then the others by datatype and lexical form. Sorting,
//! top-k and spilled runs need nothing but `memcmp`, and the order is total whatever is
//! compared.
//!
//! | class byte        | key                                                                             |
//! |-------------------|---------------------------------------------------------------------------------|
//! | 1 unbound         | –                                                                               |
//! | 2 blank, 3 IRI    | text                                                                            |
//! | 16 number         | nearest double, order-preserving, 8 bytes; then the rest of the value: 0x80 = none, 0x7F or 0x81 and 16 bytes |
//! | 17 string, 18 lang| text; text, tag                                                                 |
//! | 19 boolean        | 1 byte                                                                          |
//! | 20.. temporal     | 16 bytes on the time line (no time zone counts as UTC)                          |
//! | 64 other          | datatype, lexical form                                                          |
//!
//! Text: its bytes with 0 written as 0 255, ended by 0 0. So no key is a prefix of another. A
//! number's rest is its distance from the shortest decimal of its nearest double: for one
//! double it grows with the number, so the order is the exact one, and 0.1 as decimal ties with
//! 0.1 as double.

use oxsdatatypes::Decimal;

use super::{Temporal, Value};

const UNBOUND: u8 = 1;
const BLANK: u8 = 2;
const IRI: u8 = 3;
const NUMBER: u8 = 16;
const STRING: u8 = 17;
const LANG_STRING: u8 = 18;
const BOOLEAN: u8 = 19;
const TEMPORAL: u8 = 20;
const OTHER: u8 = 64;

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
        Value::Integer(v) => push_integer(*v, out),
        Value::Decimal(v) => push_decimal(*v, out),
        Value::Float(v) => push_double(f64::from(f32::from(*v)), None, out),
        Value::Double(v) => push_double((*v).into(), None, out),
        Value::Temporal(t) => push_temporal(t, out),
        Value::Other { lexical, datatype } => {
            push_text(OTHER, datatype, out);
            push_text(OTHER, lexical, out);
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

fn push_integer(v: i64, out: &mut Vec<u8>) {
    const EXACT: i64 = 1 << 53;
    let rest = if (-EXACT..=EXACT).contains(&v) { None } else { rest_of(v.into(), v as f64) };
    push_double(v as f64, rest, out);
}

fn push_decimal(v: Decimal, out: &mut Vec<u8>) {
    let units = i128::from_be_bytes(v.to_be_bytes());
    let mut digits = units;
    let mut places = 18_i32;
    while places > 0 && digits % 10 == 0 {
        digits /= 10;
        places -= 1;
    }
    // Up to 15 digits, the nearest double's shortest decimal is the number itself.
    if digits.unsigned_abs() < 1_000_000_000_000_000 {
        return push_double(digits as f64 / 10_f64.powi(places), None, out);
    }
    let nearest = v.to_string().parse::<f64>().unwrap_or(f64::NAN);
    push_double(nearest, rest_of(v, nearest), out);
}

/// The difference between a number and the shortest decimal of its nearest double, in 10^-18;
/// None when nothing does.
fn rest_of(v: Decimal, nearest: f64) -> Option<i128> {
    let shortest: Decimal = nearest.to_string().parse().ok()?;
    let rest = i128::from_be_bytes(v.to_be_bytes()) - i128::from_be_bytes(shortest.to_be_bytes());
    (rest != 0).then_some(rest)
}

fn push_double(v: f64, rest: Option<i128>, out: &mut Vec<u8>) {
    let v = if v == 0.0 { 0.0 } else { v }; // one zero
    let bits = v.to_bits();
    let key = match v {
        v if v.is_nan() => 0, // before all numbers
        _ if bits >> 63 == 1 => !bits,
        _ => bits | (1 << 63),
    };
    out.push(NUMBER);
    out.extend(key.to_be_bytes());
    match rest {
        None => out.push(0x80),
        Some(rest) => {
            out.push(if rest < 0 { 0x7F } else { 0x81 });
            push_i128(rest, out);
        }
    }
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
            ("1e30", "double"),
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
            push_order_key(v.map(Value::Integer).as_ref(), true, &mut out);
            out
        };
        assert_eq!(down(Some(3)).cmp(&down(Some(4))), Ordering::Greater);
        assert_eq!(down(None).cmp(&down(Some(4))), Ordering::Greater);
    }
}
