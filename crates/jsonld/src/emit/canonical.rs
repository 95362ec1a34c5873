//! Canonical forms: of numbers in XML Schema, of JSON (RFC 8785).

use std::fmt::Write;

use crate::json::{Json, Value};

/// The canonical integer of a number without a fraction, below 10²¹; `None` for others.
///
/// A number that is written in digits alone keeps all of them.
pub(super) fn integer(text: &str) -> Option<String> {
    let value: f64 = text.parse().ok()?;
    if value.fract() != 0.0 || value.abs() >= 1e21 {
        return None;
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.bytes().all(|b| b.is_ascii_digit()) {
        let sign = if digits.len() < text.len() && digits != "0" { "-" } else { "" };
        return Some(format!("{sign}{digits}"));
    }
    // zero has no sign
    Some(format!("{:.0}", if value == 0.0 { 0.0 } else { value }))
}

/// The canonical double of a number.
pub(super) fn double(text: &str) -> String {
    let value: f64 = text.parse().unwrap_or(f64::NAN);
    if value.is_infinite() {
        return if value > 0.0 { "INF" } else { "-INF" }.to_owned();
    }
    let short = format!("{value:E}");
    match short.split_once('E') {
        Some((digits, exponent)) if !digits.contains('.') => format!("{digits}.0E{exponent}"),
        _ => short,
    }
}

/// The canonical form of JSON: members by their names in UTF-16, no white space.
pub(super) fn canonical(json: &Json) -> String {
    let mut out = String::new();
    push(&mut out, json);
    out
}

/// As deep as the document, which is bounded.
fn push(out: &mut String, json: &Json) {
    match &json.value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(text) => push_number(out, text),
        Value::String(text) => push_string(out, text),
        Value::Array(elements) => {
            out.push('[');
            for (i, element) in elements.iter().enumerate() {
                out.push_str(if i > 0 { "," } else { "" });
                push(out, element);
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<(&str, &Json)> = members.iter().collect();
            members.sort_by(|a, b| a.0.encode_utf16().cmp(b.0.encode_utf16()));
            out.push('{');
            for (i, (name, value)) in members.into_iter().enumerate() {
                out.push_str(if i > 0 { "," } else { "" });
                push_string(out, name);
                out.push(':');
                push(out, value);
            }
            out.push('}');
        }
    }
}

fn push_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' => {
                write!(out, "\\u{:04x}", u32::from(c)).expect("writing to a string does not fail")
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// As ECMAScript writes a number.
fn push_number(out: &mut String, text: &str) {
    let value: f64 = text.parse().unwrap_or(0.0);
    if value == 0.0 {
        out.push('0');
        return;
    }
    let short = format!("{:e}", value.abs());
    let (mantissa, exponent) = short.split_once('e').expect("the format has an exponent");
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    let point = exponent.parse::<i32>().expect("the exponent is a number") + 1;
    let len = digits.len() as i32;
    if value < 0.0 {
        out.push('-');
    }
    match point {
        _ if len <= point && point <= 21 => {
            out.push_str(&digits);
            out.extend(std::iter::repeat_n('0', (point - len) as usize));
        }
        1..=21 => {
            out.push_str(&digits[..point as usize]);
            out.push('.');
            out.push_str(&digits[point as usize..]);
        }
        -5..=0 => {
            out.push_str("0.");
            out.extend(std::iter::repeat_n('0', -point as usize));
            out.push_str(&digits);
        }
        _ => {
            out.push_str(&digits[..1]);
            if len > 1 {
                out.push('.');
                out.push_str(&digits[1..]);
            }
            write!(out, "e{:+}", point - 1).expect("writing to a string does not fail");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_one_form() {
        for (text, expected) in [
            ("1", "1"),
            ("-0", "0"),
            ("1.50", "1.5"),
            ("1e21", "1e+21"),
            ("123456789012345680000", "123456789012345680000"),
            ("0.000001", "0.000001"),
            ("0.0000001", "1e-7"),
            ("-12.5e-9", "-1.25e-8"),
            ("100", "100"),
            ("1e2", "100"),
        ] {
            let mut out = String::new();
            push_number(&mut out, text);
            assert_eq!(out, expected, "{text}");
        }
        for (text, expected) in [
            ("1", Some("1")),
            ("-0", Some("0")),
            ("-0.0", Some("0")),
            ("1.0", Some("1")),
            ("1E2", Some("100")),
            ("100000000000000000000", Some("100000000000000000000")),
            ("12345678901234567890", Some("12345678901234567890")),
            ("1e21", None),
            ("1000000000000000000000", None),
            ("1.5", None),
        ] {
            assert_eq!(integer(text).as_deref(), expected, "{text}");
        }
        assert_eq!(double("5.3"), "5.3E0");
        assert_eq!(double("1e21"), "1.0E21");
        assert_eq!(double("-0.00001"), "-1.0E-5");
        assert_eq!(double("1e999"), "INF");
    }
}
