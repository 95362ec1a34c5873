//! Numbers: rounding to digits, mathematics on doubles (XPath functions 3.1, sections 4.4 and 4.8).

use std::cmp::Ordering;

use oxsdatatypes::Double;

use super::Named;
use crate::value::{Cast, Ties, Value, cast, compare, round};

/// A function of one double.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unary {
    Exp,
    Exp10,
    Log,
    Log10,
    Sqrt,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
}

pub(super) fn call(func: Named, args: &[Value<'_>]) -> Option<Value<'static>> {
    let real = |v: f64| Some(Value::Double(v.into()));
    match func {
        Named::Number => Some(cast(Cast::Double, &args[0]).unwrap_or(Value::Double(Double::NAN))),
        Named::RoundTo => round::to_places(&args[0], &args[1], Ties::Up),
        Named::HalfToEven => {
            round::to_places(&args[0], args.get(1).unwrap_or(&Value::Integer(0.into())), Ties::Even)
        }
        Named::Pi => real(std::f64::consts::PI),
        Named::E => real(std::f64::consts::E),
        Named::Unary(func) => real(unary(func, double(&args[0])?)),
        Named::Power => real(double(&args[0])?.powf(double(&args[1])?)),
        Named::Atan2 => real(double(&args[0])?.atan2(double(&args[1])?)),
        Named::Least => extreme(&args[0], &args[1], Ordering::is_le),
        Named::Greatest => extreme(&args[0], &args[1], Ordering::is_ge),
        _ => None,
    }
}

/// The double of a number.
fn double(v: &Value<'_>) -> Option<f64> {
    if !v.is_numeric() {
        return None;
    }
    match cast(Cast::Double, v)? {
        Value::Double(v) => Some(v.into()),
        _ => None,
    }
}

fn unary(func: Unary, v: f64) -> f64 {
    match func {
        Unary::Exp => v.exp(),
        Unary::Exp10 => 10_f64.powf(v),
        Unary::Log => v.ln(),
        Unary::Log10 => v.log10(),
        Unary::Sqrt => v.sqrt(),
        Unary::Sin => v.sin(),
        Unary::Cos => v.cos(),
        Unary::Tan => v.tan(),
        Unary::Asin => v.asin(),
        Unary::Acos => v.acos(),
        Unary::Atan => v.atan(),
    }
}

/// One of two values that compare.
fn extreme(a: &Value<'_>, b: &Value<'_>, first: fn(Ordering) -> bool) -> Option<Value<'static>> {
    let order = compare(a, b)?;
    Some(if first(order) { a } else { b }.clone().into_owned())
}
