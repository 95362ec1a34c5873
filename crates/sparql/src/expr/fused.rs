//! Casts between numbers on ids, and the fused cast of a number's text.
//!
//! `xsd:float(xsd:string(?price))` is how BSBM turns a price of its own currency type into a
//! number. The text of an inline decimal is its value, so no text is made.

use snowmelt_graph::{InlineValue, TermId, TermKind, from_double, from_float, from_integer};

use super::kernel::Slow;
use crate::value::Cast;

/// A number computed on ids.
pub(crate) enum CastNumber {
    Id(TermId),
    /// a double that is not inline
    Double(f64),
}

fn double(v: f64) -> CastNumber {
    from_double(v).map_or(CastNumber::Double(v), CastNumber::Id)
}

/// Casts of inline numbers that stay inline.
pub(crate) fn cast(to: Cast, id: TermId) -> Result<TermId, Slow> {
    match (to, id.kind()) {
        (Cast::Integer, TermKind::Integer)
        | (Cast::Float, TermKind::Float)
        | (Cast::Double, TermKind::Double) => Ok(id),
        (Cast::Float, TermKind::Integer) => match id.inline_value() {
            Some(InlineValue::Integer(v)) => Ok(from_float(v as f32)),
            _ => Err(Slow),
        },
        (Cast::Double, TermKind::Integer) => match id.inline_value() {
            Some(InlineValue::Integer(v)) => from_double(v as f64).ok_or(Slow),
            _ => Err(Slow),
        },
        _ => Err(Slow),
    }
}

/// The number that the text of an inline integer or decimal (of any datatype) says.
pub(crate) fn cast_text(to: Cast, id: TermId) -> Result<CastNumber, Slow> {
    match (to, id.inline_value().ok_or(Slow)?) {
        (Cast::Float, InlineValue::Decimal { micros, .. }) => {
            float_of_micros(micros).map(|v| CastNumber::Id(from_float(v)))
        }
        (Cast::Double, InlineValue::Decimal { micros, .. }) => Ok(double(double_of_micros(micros))),
        (Cast::Float, InlineValue::Integer(v) | InlineValue::Derived { value: v, .. }) => {
            Ok(CastNumber::Id(from_float(v as f32)))
        }
        (Cast::Double, InlineValue::Integer(v) | InlineValue::Derived { value: v, .. }) => {
            Ok(double(v as f64))
        }
        (Cast::Integer, InlineValue::Integer(v) | InlineValue::Derived { value: v, .. }) => {
            from_integer(v).map(CastNumber::Id).ok_or(Slow)
        }
        _ => Err(Slow),
    }
}

/// Both are exact as doubles, so one rounding: the nearest double.
fn double_of_micros(micros: i64) -> f64 {
    micros as f64 / 1e6
}

/// The nearest float, unless rounding twice could miss it: then the text decides.
fn float_of_micros(micros: i64) -> Result<f32, Slow> {
    let wide = double_of_micros(micros);
    // The 29 bits a float has not: exactly half is the only case in which the first rounding
    // matters.
    const HALF: u64 = 1 << 28;
    if wide.to_bits() & (2 * HALF - 1) == HALF {
        return Err(Slow);
    }
    Ok(wide as f32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_of_decimals_are_those_of_their_text() {
        let mut micros = 1_i64;
        for i in 0..100_000 {
            micros = (micros.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(i)) % (1 << 48);
            if let Ok(v) = float_of_micros(micros) {
                let text = format!(
                    "{}{}.{:06}",
                    if micros < 0 { "-" } else { "" },
                    micros.abs() / 1_000_000,
                    micros.abs() % 1_000_000
                );
                assert_eq!(v, text.parse::<f32>().unwrap(), "{text}");
            }
        }
    }
}
