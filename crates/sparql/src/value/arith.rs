//! Arithmetic: SPARQL's numeric operators with XPath's type promotion, and dates with durations.
//!
//! Promotion: integer → decimal → float → double; the wider operand's type is the result's,
//! except that integer ÷ integer is a decimal. Numbers beyond the bounds of exact ones and the
//! division of an exact number by zero are errors (None).

use std::borrow::Cow;

use oxsdatatypes::{DayTimeDuration, Double, Float};

use super::exact::{double_of_decimal, double_of_integer, float_of_decimal, float_of_integer, within_bounds};
use super::{Decimal, Integer, Temporal, Value, duration};

/// The four operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arithmetic {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
}

/// Two numbers brought to their common type.
pub(super) enum Promoted<'a> {
    Integer(&'a Integer, &'a Integer),
    Decimal(Cow<'a, Decimal>, Cow<'a, Decimal>),
    Float(Float, Float),
    Double(Double, Double),
}

/// Brings two numbers to their common type; None unless both are numbers.
pub(super) fn promote<'a>(a: &'a Value<'_>, b: &'a Value<'_>) -> Option<Promoted<'a>> {
    use Value as V;
    Some(match (a, b) {
        (V::Integer(a), V::Integer(b)) => Promoted::Integer(a, b),
        (V::Double(_), _) | (_, V::Double(_)) => Promoted::Double(to_double(a)?, to_double(b)?),
        (V::Float(_), _) | (_, V::Float(_)) => Promoted::Float(to_float(a)?, to_float(b)?),
        _ => Promoted::Decimal(to_decimal(a)?, to_decimal(b)?),
    })
}

/// The nearest double of a number.
pub(super) fn to_double(v: &Value<'_>) -> Option<Double> {
    Some(match v {
        Value::Integer(v) => double_of_integer(v).into(),
        Value::Decimal(v) => double_of_decimal(v).into(),
        Value::Float(v) => (*v).into(),
        Value::Double(v) => *v,
        _ => return None,
    })
}

/// The nearest float of a number.
pub(super) fn to_float(v: &Value<'_>) -> Option<Float> {
    Some(match v {
        Value::Integer(v) => float_of_integer(v).into(),
        Value::Decimal(v) => float_of_decimal(v).into(),
        Value::Float(v) => *v,
        Value::Double(v) => (*v).into(),
        _ => return None,
    })
}

fn to_decimal<'a>(v: &'a Value<'_>) -> Option<Cow<'a, Decimal>> {
    Some(match v {
        Value::Integer(v) => Cow::Owned(v.clone().into()),
        Value::Decimal(v) => Cow::Borrowed(v),
        _ => return None,
    })
}

/// Applies an operator; None is SPARQL's type error, an overflow, or an exact division by zero.
#[must_use]
pub fn arithmetic(op: Arithmetic, a: &Value<'_>, b: &Value<'_>) -> Option<Value<'static>> {
    if let (Value::Temporal(_), _) | (_, Value::Temporal(_)) = (a, b) {
        return temporal(op, a, b);
    }
    Some(match promote(a, b)? {
        Promoted::Integer(a, b) => match op {
            Arithmetic::Add => Value::Integer(within_bounds(a + b)?),
            Arithmetic::Subtract => Value::Integer(within_bounds(a - b)?),
            Arithmetic::Multiply => Value::Integer(within_bounds(a * b)?),
            Arithmetic::Divide => Value::Decimal(Decimal::from(a.clone()).divide(&b.clone().into())?),
        },
        Promoted::Decimal(a, b) => Value::Decimal(match op {
            Arithmetic::Add => a.add(&b),
            Arithmetic::Subtract => a.subtract(&b),
            Arithmetic::Multiply => a.multiply(&b),
            Arithmetic::Divide => a.divide(&b),
        }?),
        Promoted::Float(a, b) => Value::Float(match op {
            Arithmetic::Add => a + b,
            Arithmetic::Subtract => a - b,
            Arithmetic::Multiply => a * b,
            Arithmetic::Divide => a / b,
        }),
        Promoted::Double(a, b) => Value::Double(match op {
            Arithmetic::Add => a + b,
            Arithmetic::Subtract => a - b,
            Arithmetic::Multiply => a * b,
            Arithmetic::Divide => a / b,
        }),
    })
}

/// Dates and durations: date − date, date ± duration, duration ± duration, duration · number,
/// duration ÷ number, duration ÷ duration (XPath operators, beyond SPARQL's table).
fn temporal(op: Arithmetic, a: &Value<'_>, b: &Value<'_>) -> Option<Value<'static>> {
    use Value as V;
    match (op, a, b) {
        (Arithmetic::Divide, V::Temporal(a), V::Temporal(b)) => duration::ratio(*a, *b).map(V::Decimal),
        (Arithmetic::Divide, V::Temporal(a), number) => duration::divided(*a, number).map(V::Temporal),
        (Arithmetic::Multiply, V::Temporal(length), number)
        | (Arithmetic::Multiply, number, V::Temporal(length)) => {
            duration::times(*length, number).map(V::Temporal)
        }
        (_, V::Temporal(a), V::Temporal(b)) => added(op, *a, *b).map(V::Temporal),
        _ => None,
    }
}

/// Sums and differences.
fn added(op: Arithmetic, a: Temporal, b: Temporal) -> Option<Temporal> {
    use Temporal as T;
    Some(match (op, a, b) {
        (Arithmetic::Subtract, T::DateTime(a), T::DateTime(b)) => T::DayTimeDuration(a.checked_sub(b)?),
        (Arithmetic::Subtract, T::Date(a), T::Date(b)) => T::DayTimeDuration(a.checked_sub(b)?),
        (Arithmetic::Subtract, T::Time(a), T::Time(b)) => T::DayTimeDuration(a.checked_sub(b)?),
        (Arithmetic::Add, T::YearMonthDuration(a), T::YearMonthDuration(b)) => {
            T::YearMonthDuration(a.checked_add(b)?)
        }
        (Arithmetic::Subtract, T::YearMonthDuration(a), T::YearMonthDuration(b)) => {
            T::YearMonthDuration(a.checked_sub(b)?)
        }
        (Arithmetic::Add, T::DayTimeDuration(a), T::DayTimeDuration(b)) => {
            T::DayTimeDuration(a.checked_add(b)?)
        }
        (Arithmetic::Subtract, T::DayTimeDuration(a), T::DayTimeDuration(b)) => {
            T::DayTimeDuration(a.checked_sub(b)?)
        }
        (Arithmetic::Add, a, b) => shift(a, b, true).or_else(|| shift(b, a, true))?,
        (Arithmetic::Subtract, moment, length) => shift(moment, length, false)?,
        _ => return None,
    })
}

/// A point in time moved by a duration, forwards or backwards.
fn shift(moment: Temporal, length: Temporal, forwards: bool) -> Option<Temporal> {
    use Temporal as T;
    let length = duration::whole(&length)?;
    let length = if forwards { length } else { length.checked_neg()? };
    Some(match moment {
        T::DateTime(m) => T::DateTime(m.checked_add_duration(length)?),
        T::Date(m) => T::Date(m.checked_add_duration(length)?),
        // a clock knows no months
        T::Time(m) => T::Time(m.checked_add_day_time_duration(DayTimeDuration::try_from(length).ok()?)?),
        _ => return None,
    })
}

/// Unary minus.
#[must_use]
pub fn negate(v: &Value<'_>) -> Option<Value<'static>> {
    Some(match v {
        Value::Integer(v) => Value::Integer(-v),
        Value::Decimal(v) => Value::Decimal(v.negate()),
        Value::Float(v) => Value::Float(-*v),
        Value::Double(v) => Value::Double(-*v),
        Value::Temporal(Temporal::YearMonthDuration(d)) => {
            Value::Temporal(Temporal::YearMonthDuration(d.checked_neg()?))
        }
        Value::Temporal(Temporal::DayTimeDuration(d)) => {
            Value::Temporal(Temporal::DayTimeDuration(d.checked_neg()?))
        }
        _ => return None,
    })
}

/// ABS, CEIL, FLOOR, ROUND: the type stays.
pub mod round {
    use dashu_int::ops::Abs;

    use super::super::exact::{decimal_of_double, double_of_decimal, float_of_decimal};
    use super::{Decimal, Integer, Value};
    use crate::value::Ties;

    /// fn:round and fn:round-half-to-even: to so many digits behind the point, an xsd:integer; the
    /// type stays.
    #[must_use]
    pub fn to_places(v: &Value<'_>, places: &Value<'_>, ties: Ties) -> Option<Value<'static>> {
        let Value::Integer(places) = places else { return None };
        // beyond these no number has digits
        let most = Integer::from(1_000_000);
        let places = i64::try_from(places.clamp(&-&most, &most)).ok()?;
        Some(match v {
            Value::Integer(v) => Value::Integer(Decimal::from(v.clone()).rounded(places, ties)?.truncate()),
            Value::Decimal(v) => Value::Decimal(v.rounded(places, ties)?),
            // what rounds to 0 keeps its sign; NaN and the infinite ones stay
            Value::Float(f) => {
                let v = f32::from(*f);
                let Some(exact) = decimal_of_double(v.into()) else { return Some(Value::Float(*f)) };
                Value::Float(float_of_decimal(&exact.rounded(places, ties)?).copysign(v).into())
            }
            Value::Double(d) => {
                let v = f64::from(*d);
                let Some(exact) = decimal_of_double(v) else { return Some(Value::Double(*d)) };
                Value::Double(double_of_decimal(&exact.rounded(places, ties)?).copysign(v).into())
            }
            _ => return None,
        })
    }

    macro_rules! rounding {
        ($(#[$doc:meta] $name:ident, $integer:expr, $decimal:expr, $float:ident;)*) => {
            $(#[$doc]
            #[must_use]
            pub fn $name(v: &Value<'_>) -> Option<Value<'static>> {
                Some(match v {
                    Value::Integer(v) => Value::Integer($integer(v.clone())),
                    Value::Decimal(v) => Value::Decimal($decimal(v).into()),
                    Value::Float(v) => Value::Float(v.$float()),
                    Value::Double(v) => Value::Double(v.$float()),
                    _ => return None,
                })
            })*
        };
    }

    rounding! {
        /// ABS.
        abs, Abs::abs, Decimal::abs, abs;
        /// CEIL.
        ceil, std::convert::identity, Decimal::ceil, ceil;
        /// FLOOR.
        floor, std::convert::identity, Decimal::floor, floor;
        /// ROUND: halves go up.
        half_up, std::convert::identity, Decimal::round_half_up, round;
    }
}
