//! Exact numbers and the floating ones: the nearest double or float of a number, and the very
//! number that a double is.

use super::decimal::Decimal;
use super::integer::{Integer, within_bounds};

/// Powers of ten that are doubles.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];

/// Integers up to this are doubles.
const EXACT: u64 = 1 << 53;

/// The nearest double.
pub(in crate::value) fn double_of_integer(v: &Integer) -> f64 {
    match i64::try_from(v) {
        Ok(v) => v as f64,
        Err(_) => v.to_f64().value(),
    }
}

/// The nearest float.
pub(in crate::value) fn float_of_integer(v: &Integer) -> f32 {
    match i64::try_from(v) {
        Ok(v) => v as f32,
        Err(_) => v.to_f32().value(),
    }
}

/// The nearest double.
pub(in crate::value) fn double_of_decimal(v: &Decimal) -> f64 {
    let (units, places) = v.parts();
    if places == 0 {
        return double_of_integer(units);
    }
    // both are exact, so it is rounded once
    if let (Ok(units), Some(power)) = (i64::try_from(units), POWERS.get(places as usize))
        && units.unsigned_abs() <= EXACT
    {
        return units as f64 / power;
    }
    format!("{units}e-{places}").parse().expect("digits and an exponent are a number")
}

/// The nearest float.
pub(in crate::value) fn float_of_decimal(v: &Decimal) -> f32 {
    let (units, places) = v.parts();
    if places == 0 {
        return float_of_integer(units);
    }
    format!("{units}e-{places}").parse().expect("digits and an exponent are a number")
}

/// Mantissa and exponent of a finite number; the mantissa is odd or 0.
fn taken_apart(v: f64) -> Option<(i64, i32)> {
    const MANTISSA_BITS: u32 = f64::MANTISSA_DIGITS - 1;
    if !v.is_finite() {
        return None;
    }
    let bits = v.abs().to_bits();
    let (exponent, fraction) = ((bits >> MANTISSA_BITS) as i32, bits & ((1 << MANTISSA_BITS) - 1));
    let mantissa = if exponent == 0 { fraction } else { fraction | 1 << MANTISSA_BITS };
    if mantissa == 0 {
        return Some((0, 0));
    }
    let zeros = mantissa.trailing_zeros();
    let mantissa = (mantissa >> zeros) as i64;
    let lowest = 1 - (f64::MAX_EXP - 1) - MANTISSA_BITS as i32;
    let exponent = lowest + exponent.max(1) - 1 + zeros as i32;
    Some((if v.is_sign_negative() { -mantissa } else { mantissa }, exponent))
}

/// The number that a finite double is.
pub(in crate::value) fn decimal_of_double(v: f64) -> Option<Decimal> {
    let (mantissa, exponent) = taken_apart(v)?;
    let mantissa = Integer::from(mantissa);
    let size = exponent.unsigned_abs() as usize;
    if exponent >= 0 {
        return Decimal::new(mantissa << size, 0);
    }
    Decimal::new(mantissa * Integer::from(5).pow(size), size)
}

/// The whole part of a finite double.
pub(in crate::value) fn integer_of_double(v: f64) -> Option<Integer> {
    let (mantissa, exponent) = taken_apart(v.trunc())?;
    let size = usize::try_from(exponent).expect("a whole number has no negative exponent");
    within_bounds(Integer::from(mantissa) << size)
}
