//! Cleans data that a server sends, before it is shown or computed with.
//!
//! Text is made fit for a terminal ([`snowmelt_base::printable`]). Numbers are brought into the
//! range in which JSON is exact everywhere (RFC 8259, section 6), so that sums of them stay in
//! theirs.

use serde_json::{Number, Value};
use snowmelt_base::printable;

/// The largest number, and the smallest with its sign changed.
const MOST: u64 = 1 << 53;

/// The value with all its text escaped and its numbers clamped, names of fields included.
pub fn tamed(value: Value) -> Value {
    each(value, |text| printable::line(text).into_owned(), bounded)
}

/// The value with all text in it made fit for a terminal; ends of lines stay.
pub fn readable(value: Value) -> Value {
    each(value, |text| printable::lines(text).into_owned(), |number| number)
}

fn each(
    value: Value,
    text: impl Fn(&str) -> String + Copy,
    number: impl Fn(Number) -> Number + Copy,
) -> Value {
    match value {
        Value::String(of) => Value::String(text(&of)),
        Value::Number(of) => Value::Number(number(of)),
        Value::Array(of) => of.into_iter().map(|value| each(value, text, number)).collect(),
        Value::Object(of) => {
            of.into_iter().map(|(name, value)| (text(&name), each(value, text, number))).collect()
        }
        other => other,
    }
}

fn bounded(number: Number) -> Number {
    match number.as_f64() {
        Some(n) if n > MOST as f64 => MOST.into(),
        Some(n) if n < -(MOST as f64) => (-(MOST as i64)).into(),
        _ => number,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn all_parts_of_a_value_are_tamed() {
        let value = json!({ "a\u{1b}": ["\u{7}\n", 1, -1.5, u64::MAX, 1e300, -1e300, null, true] });
        let expected = json!({ "a\\u{1b}": ["\\u{7}\\n", 1, -1.5, MOST, MOST, -(MOST as i64), null, true] });
        assert_eq!(tamed(value), expected);
        assert_eq!(readable(json!(["a\u{9b}b\n", u64::MAX])), json!(["a\\u{9b}b\n", u64::MAX]));
    }
}
