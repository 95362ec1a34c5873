//! Hashes under which equal values meet, for sets of values and joins on them.
//!
//! `=` of numbers is not transitive: 16777217 and 16777216 both equal the float 1.6777216E7, and
//! not each other. So a number is filed under a hash for each width in which it may be compared,
//! and sought under others:
//!
//! | value   | filed under         | sought under          |
//! |---------|---------------------|-----------------------|
//! | exact   | its double, its float | double, float of floats |
//! | double  | itself              | double, float of floats |
//! | float   | itself              | float, double, float of exact ones |
//! | others  | what makes them equal | the same            |
//!
//! Invariant: where [`equals`](super::equals) says true, the two have a hash in common, the one
//! filed and the other sought. The converse does not hold: who finds a value compares it.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

use super::exact::{double_of_decimal, double_of_integer, float_of_decimal, float_of_integer};
use super::{Temporal, Value, push_order_key};

/// Up to three hashes of a value.
#[derive(Clone, Copy, Default)]
pub(crate) struct ValueHashes {
    hashes: [u64; 3],
    len: usize,
}

impl ValueHashes {
    fn push(mut self, hash: u64) -> Self {
        self.hashes[self.len] = hash;
        self.len += 1;
        self
    }

    pub fn as_slice(&self) -> &[u64] {
        &self.hashes[..self.len]
    }
}

/// A number by the widths in which numbers are compared.
#[derive(Clone, Copy)]
enum Number {
    Exact { double: f64, float: f32 },
    Double(f64),
    Float(f32),
}

fn number(value: &Value<'_>) -> Option<Number> {
    Some(match value {
        Value::Integer(v) => Number::Exact { double: double_of_integer(v), float: float_of_integer(v) },
        Value::Decimal(v) => Number::Exact { double: double_of_decimal(v), float: float_of_decimal(v) },
        Value::Double(v) => Number::Double((*v).into()),
        Value::Float(v) => Number::Float((*v).into()),
        _ => return None,
    })
}

/// Hashes under which a value is kept.
pub(crate) fn filed(value: &Value<'_>) -> ValueHashes {
    let hashes = ValueHashes::default();
    match number(value) {
        Some(Number::Exact { double, float }) => {
            hashes.push(of_double(double)).push(of_float(FLOAT_OF_EXACT, float))
        }
        Some(Number::Double(v)) => hashes.push(of_double(v)),
        Some(Number::Float(v)) => hashes.push(of_float(FLOAT, v)),
        None => hashes.push(other(value)),
    }
}

/// Hashes of the values that may equal a value.
pub(crate) fn sought(value: &Value<'_>) -> ValueHashes {
    let hashes = ValueHashes::default();
    match number(value) {
        Some(Number::Exact { double, float }) => hashes.push(of_double(double)).push(of_float(FLOAT, float)),
        Some(Number::Double(v)) => hashes.push(of_double(v)).push(of_float(FLOAT, v as f32)),
        Some(Number::Float(v)) => {
            hashes.push(of_float(FLOAT, v)).push(of_double(v.into())).push(of_float(FLOAT_OF_EXACT, v))
        }
        None => hashes.push(other(value)),
    }
}

/// Kinds of hashes, which keep values apart that are never equal.
const DOUBLE: u8 = 0;
const FLOAT: u8 = 1;
const FLOAT_OF_EXACT: u8 = 2;
const IRI: u8 = 3;
const BLANK: u8 = 4;
const STRING: u8 = 5;
const LANG_STRING: u8 = 6;
const BOOLEAN: u8 = 7;
const MOMENT: u8 = 8;
const DURATION: u8 = 9;
const OTHER: u8 = 10;
const TRIPLE: u8 = 11;

fn of_double(v: f64) -> u64 {
    // one zero
    hash(DOUBLE, |state| (v + 0.0).to_bits().hash(state))
}

fn of_float(kind: u8, v: f32) -> u64 {
    hash(kind, |state| (v + 0.0).to_bits().hash(state))
}

fn hash(kind: u8, of: impl FnOnce(&mut FxHasher)) -> u64 {
    let mut state = FxHasher::default();
    state.write_u8(kind);
    of(&mut state);
    state.finish()
}

/// The hash of a value that is no number.
fn other(value: &Value<'_>) -> u64 {
    match value {
        Value::Iri(text) => hash(IRI, |state| text.hash(state)),
        Value::Blank(text) => hash(BLANK, |state| text.hash(state)),
        Value::String(text) => hash(STRING, |state| text.hash(state)),
        Value::LangString(text, lang) => hash(LANG_STRING, |state| {
            text.hash(state);
            lang.bytes().for_each(|byte| state.write_u8(byte.to_ascii_lowercase()));
        }),
        Value::Boolean(v) => hash(BOOLEAN, |state| v.hash(state)),
        Value::Temporal(temporal) => match temporal.as_duration() {
            Some(duration) => hash(DURATION, |state| duration.to_be_bytes().hash(state)),
            None => hash(MOMENT, |state| {
                let mut key = Vec::with_capacity(17);
                push_order_key(Some(value), false, &mut key);
                key.hash(state);
            }),
        },
        Value::Other { lexical, datatype } => hash(OTHER, |state| {
            lexical.hash(state);
            datatype.hash(state);
        }),
        // equal ones may have different objects of equal value
        Value::Triple(_) => hash(TRIPLE, |_| ()),
        Value::Integer(_) | Value::Decimal(_) | Value::Float(_) | Value::Double(_) => {
            unreachable!("numbers have hashes of their own")
        }
    }
}

/// A number that equal values share, of IRIs, strings and xsd:integer; none of others. Unequal ones
/// may share it, too. Its id is inline.
pub(crate) fn join_key(value: &Value<'_>) -> Option<i64> {
    /// Bits of an inline integer that is not negative.
    const BITS: u32 = 59;
    let hash = match value {
        Value::Iri(_) | Value::String(_) | Value::LangString(..) => other(value),
        Value::Integer(v) => of_double(double_of_integer(v)),
        _ => return None,
    };
    Some((hash >> (u64::BITS - BITS)) as i64)
}

impl Temporal {
    /// Whether it is a moment that has a time zone; `None` for a duration.
    pub(crate) fn has_time_zone(&self) -> Option<bool> {
        Some(match self {
            Self::DateTime(v) => v.timezone_offset().is_some(),
            Self::Date(v) => v.timezone_offset().is_some(),
            Self::Time(v) => v.timezone_offset().is_some(),
            Self::GYear(v) => v.timezone_offset().is_some(),
            Self::GYearMonth(v) => v.timezone_offset().is_some(),
            Self::GMonth(v) => v.timezone_offset().is_some(),
            Self::GMonthDay(v) => v.timezone_offset().is_some(),
            Self::GDay(v) => v.timezone_offset().is_some(),
            Self::Duration(_) | Self::YearMonthDuration(_) | Self::DayTimeDuration(_) => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{equals, parse_literal};

    fn values() -> Vec<Value<'static>> {
        let typed = |lexical: &'static str, datatype: &str| {
            let datatype = format!("{}{datatype}", crate::value::iri::XSD);
            parse_literal(lexical, None, &datatype).into_owned()
        };
        let numbers = [
            "0",
            "-0",
            "1",
            "16777216",
            "16777217",
            "16777218",
            "9007199254740993",
            "9007199254740992",
            "123456789012345678901234567890",
            "-5",
        ];
        let points = ["0.1", "1.00", "0.100000001490116119384765625", "1.0000000596046447753906250000001"];
        let mut all: Vec<Value<'_>> = Vec::new();
        for text in numbers {
            all.extend(["integer", "decimal", "float", "double", "int"].map(|of| typed(text, of)));
        }
        for text in points {
            all.extend(["decimal", "float", "double"].map(|of| typed(text, of)));
        }
        all.extend(["NaN", "INF", "-INF"].map(|text| typed(text, "double")));
        all.extend(["NaN", "INF", "-INF"].map(|text| typed(text, "float")));
        for text in ["2008-06-20", "2008-06-20Z", "2008-06-20+02:00", "2008-06-19-22:00"] {
            all.push(typed(text, "date"));
        }
        for text in ["2008-06-20T12:00:00Z", "2008-06-20T14:00:00+02:00", "2008-06-20T12:00:00"] {
            all.push(typed(text, "dateTime"));
        }
        for (text, of) in [("P1Y", "duration"), ("P12M", "yearMonthDuration"), ("PT24H", "dayTimeDuration")] {
            all.push(typed(text, of));
        }
        all.extend([typed("P1D", "duration"), typed("P0D", "duration"), typed("P0M", "yearMonthDuration")]);
        all.extend(["true", "1", "0"].map(|text| typed(text, "boolean")));
        all.extend(["a", "b"].map(|text| Value::String(text.into())));
        all.extend(["en", "EN", "de"].map(|tag| Value::LangString("a".into(), tag.into())));
        all.extend([Value::Iri("a".into()), Value::Blank("a".into()), typed("x", "integer")]);
        all
    }

    #[test]
    fn equal_values_meet_under_a_hash() {
        let (values, mut equal) = (values(), 0);
        for a in &values {
            for b in &values {
                if equals(a, b) == Some(true) {
                    equal += 1;
                    let filed = filed(b);
                    let meet = sought(a).as_slice().iter().any(|hash| filed.as_slice().contains(hash));
                    assert!(meet, "{a:?} and {b:?} are equal and do not meet");
                }
            }
        }
        assert!(equal > values.len(), "numbers equal numbers of other types");
    }

    #[test]
    fn keys_of_joins_are_shared_by_equal_values_and_few_others() {
        let values = values();
        let keyed: Vec<_> = values.iter().filter_map(|v| Some((v, join_key(v)?))).collect();
        for (a, key) in &keyed {
            for (b, other) in &keyed {
                assert_eq!(key == other, equals(a, b) == Some(true) || numbers_meet(a, b), "{a:?} {b:?}");
            }
        }
        assert!(keyed.len() > 20);
    }

    /// Integers beyond the doubles share those.
    fn numbers_meet(a: &Value<'_>, b: &Value<'_>) -> bool {
        match (a, b) {
            (Value::Integer(a), Value::Integer(b)) => double_of_integer(a) == double_of_integer(b),
            _ => false,
        }
    }
}
