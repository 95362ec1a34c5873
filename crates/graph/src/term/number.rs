//! The number that an inline id carries, and the comparison of numbers of different types.
//!
//! The wider type of the two decides (XPath's promotion: decimal, float, double). An exact number
//! is in millionths, as in ids, and is rounded once to the nearest float or double.

use std::cmp::Ordering;

use crate::term::TermId;
use crate::term::layout::DECIMAL;
use crate::term::lexical::InlineValue;

/// Millionths of 1.
pub const MICROS: i128 = 1_000_000;

/// The number of an inline id.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum InlineNumber {
    /// xsd:integer, the types derived from it, and xsd:decimal, in millionths.
    Exact(i128),
    /// xsd:float.
    Float(f32),
    /// xsd:double.
    Double(f64),
}

impl TermId {
    /// The number that an inline id carries; `None` for other ids, and for registered datatypes,
    /// which no operator treats as numbers.
    #[inline]
    pub fn inline_number(self) -> Option<InlineNumber> {
        Some(match self.inline_value()? {
            InlineValue::Integer(v) | InlineValue::Derived { value: v, .. } => {
                InlineNumber::Exact(i128::from(v) * MICROS)
            }
            InlineValue::Decimal { datatype: DECIMAL, micros, .. } => InlineNumber::Exact(micros.into()),
            InlineValue::Float(v) => InlineNumber::Float(v),
            InlineValue::Double(v) => InlineNumber::Double(v),
            _ => return None,
        })
    }
}

impl InlineNumber {
    /// The nearest double.
    #[inline]
    pub fn double(self) -> f64 {
        match self {
            InlineNumber::Exact(v) if v % MICROS == 0 => (v / MICROS) as f64,
            // fewer than 53 bits, so both are exact and the quotient is rounded once
            InlineNumber::Exact(v) => v as f64 / 1e6,
            InlineNumber::Float(v) => v.into(),
            InlineNumber::Double(v) => v,
        }
    }

    /// The nearest float.
    #[inline]
    pub fn float(self) -> f32 {
        match self {
            InlineNumber::Exact(v) if v % MICROS == 0 => (v / MICROS) as f32,
            InlineNumber::Exact(v) => float_of_micros(v),
            InlineNumber::Float(v) => v,
            InlineNumber::Double(v) => v as f32,
        }
    }

    /// The order of two numbers; `None` if one is NaN.
    #[inline]
    pub fn compare(self, other: InlineNumber) -> Option<Ordering> {
        match (self, other) {
            (InlineNumber::Exact(a), InlineNumber::Exact(b)) => Some(a.cmp(&b)),
            (InlineNumber::Double(_), _) | (_, InlineNumber::Double(_)) => {
                self.double().partial_cmp(&other.double())
            }
            _ => self.float().partial_cmp(&other.float()),
        }
    }
}

/// Converts by way of the nearest double. If that is half way between two floats, the first
/// rounding matters, and the exact digits decide.
fn float_of_micros(micros: i128) -> f32 {
    /// Half of the 29 bits that a float lacks.
    const HALF: u64 = 1 << 28;
    let wide = micros as f64 / 1e6;
    if wide.to_bits() & (2 * HALF - 1) != HALF {
        return wide as f32;
    }
    format!("{micros}e-6").parse().expect("digits and an exponent are a number")
}
