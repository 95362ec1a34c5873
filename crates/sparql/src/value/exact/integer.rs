//! Whole numbers, and the bounds of all exact ones.

use dashu_int::UBig;
use dashu_int::ops::BitTest;

/// A whole number of any size; 128 bits are kept without an allocation.
pub use dashu_int::IBig as Integer;

/// Bits of the largest whole part: 78,913 digits.
pub const MOST_BITS: usize = 1 << 18;

/// Digits behind the point of the longest fraction.
pub const MOST_PLACES: u32 = 1 << 16;

/// Digits that no number within [`MOST_BITS`] exceeds.
const MOST_DIGITS: usize = 78_914;

/// Digits that fit 64 bits whatever they are.
const DIGITS_OF_WORD: usize = 18;

/// Bytes of its digits.
#[must_use]
pub fn bytes_of(v: &Integer) -> usize {
    v.bit_len() / 8
}

/// The number, unless it is too large.
pub(in crate::value) fn within_bounds(v: Integer) -> Option<Integer> {
    (v.bit_len() <= MOST_BITS).then_some(v)
}

/// Whether a number of so many digits before and behind the point may be within the bounds.
pub(in crate::value) fn digits_fit(whole: usize, places: usize) -> bool {
    whole <= MOST_DIGITS && places <= MOST_PLACES as usize
}

/// 10 to a power.
pub(super) fn power_of_ten(exponent: usize) -> Integer {
    /// The largest power of 128 bits.
    const LARGEST: usize = 38;
    if exponent <= LARGEST {
        return Integer::from(10_u128.pow(exponent as u32));
    }
    Integer::from(5_u8).pow(exponent) << exponent
}

/// The number that digits say; they are nothing but digits.
pub(super) fn of_digits(digits: &str) -> Option<Integer> {
    if digits.len() <= DIGITS_OF_WORD {
        return digits.parse().ok().map(|v: u64| v.into());
    }
    UBig::from_str_radix(digits, 10).ok().map(Integer::from)
}

/// Splits a sign off; whether it is a minus.
pub(super) fn split_sign(text: &str) -> (bool, &str) {
    match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    }
}

/// The value of a lexical form of xsd:integer: a sign or none, and digits.
pub(in crate::value) fn parse_integer(text: &str) -> Option<Integer> {
    if text.len() <= DIGITS_OF_WORD
        && let Ok(v) = text.parse::<i64>()
    {
        return Some(v.into());
    }
    let (negative, digits) = split_sign(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let significant = digits.trim_start_matches('0');
    if significant.is_empty() {
        return Some(Integer::ZERO);
    }
    if !digits_fit(significant.len(), 0) {
        return None;
    }
    let value = within_bounds(of_digits(significant)?)?;
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        for (text, value) in [("0", 0), ("-0", 0), ("+007", 7), ("-42", -42), ("000", 0)] {
            assert_eq!(parse_integer(text), Some(value.into()), "{text}");
        }
        for text in ["", "+", "-", "--1", "1_0", "1.0", "1e3", " 1", "٣"] {
            assert_eq!(parse_integer(text), None, "{text}");
        }
        let long = "123456789012345678901234567890123456789012345678901234567890";
        assert_eq!(parse_integer(&format!("-00{long}")).unwrap().to_string(), format!("-{long}"));
    }

    #[test]
    fn the_bound_is_a_power_of_two() {
        let most = (Integer::from(1) << MOST_BITS) - Integer::from(1);
        let text = most.to_string();
        assert!(text.len() <= MOST_DIGITS);
        assert_eq!(parse_integer(&text), Some(most.clone()));
        assert_eq!(parse_integer(&(most + Integer::from(1)).to_string()), None);
        assert_eq!(parse_integer(&"9".repeat(1 << 20)), None);
        assert_eq!(parse_integer(&("0".repeat(1 << 20) + "9")), Some(9.into()));
    }
}
