//! The running total of SUM and AVG.

use oxsdatatypes::{Decimal, Double, Float};
use snowmelt_graph::{FIRST_REGISTERED, InlineValue, Kind, TermId};

use crate::value::{Arithmetic, Terms, Value, arithmetic};

/// A total in the widest type met so far.
#[derive(Clone, Copy, Debug)]
pub(super) enum Total {
    Integer(i64),
    Decimal(Decimal),
    Float(f32),
    Double(f64),
    /// something that is not a number was met, or the total does not fit its type
    Failed,
}

impl Total {
    pub const ZERO: Total = Total::Integer(0);

    /// Adds a term; one that is not inline must have been prefetched.
    #[inline]
    pub fn add(&mut self, id: TermId, terms: &Terms) {
        match (&mut *self, id.inline_value()) {
            (Total::Integer(total), Some(InlineValue::Integer(v))) => match total.checked_add(v) {
                Some(sum) => *total = sum,
                None => *self = Total::Failed,
            },
            (Total::Float(total), Some(InlineValue::Float(v))) => *total += v,
            (Total::Float(total), Some(InlineValue::Integer(v))) => *total += v as f32,
            (Total::Double(total), Some(InlineValue::Double(v))) => *total += v,
            (Total::Double(total), Some(InlineValue::Float(v))) => *total += f64::from(v),
            (Total::Double(total), Some(InlineValue::Integer(v))) => *total += v as f64,
            (Total::Failed, _) => {}
            _ => self.add_value(id, terms),
        }
    }

    /// The rare ways: types change, decimals, out-of-line numbers.
    #[cold]
    fn add_value(&mut self, id: TermId, terms: &Terms) {
        // Terms that cannot be numbers were not prefetched.
        let number = match id.kind() {
            Kind::Value | Kind::Text | Kind::Local => true,
            Kind::Decimal => id.decimal_code() < FIRST_REGISTERED,
            kind => kind.is_inline(),
        };
        let sum = self.value().filter(|_| number).and_then(|total| {
            let value = terms.value(id)?;
            if value.is_numeric() { arithmetic(Arithmetic::Add, &total, &value) } else { None }
        });
        *self = match sum {
            Some(Value::Integer(v)) => Total::Integer(v),
            Some(Value::Decimal(v)) => Total::Decimal(v),
            Some(Value::Float(v)) => Total::Float(v.into()),
            Some(Value::Double(v)) => Total::Double(v.into()),
            _ => Total::Failed,
        };
    }

    pub fn value(self) -> Option<Value<'static>> {
        Some(match self {
            Total::Integer(v) => Value::Integer(v),
            Total::Decimal(v) => Value::Decimal(v),
            Total::Float(v) => Value::Float(Float::from(v)),
            Total::Double(v) => Value::Double(Double::from(v)),
            Total::Failed => return None,
        })
    }

    /// The mean of `count` values; 0 of none.
    pub fn average(self, count: i64) -> Option<Value<'static>> {
        if count == 0 {
            return Some(Value::Integer(0));
        }
        arithmetic(Arithmetic::Divide, &self.value()?, &Value::Integer(count))
    }
}
