//! The running total of SUM and AVG.

use oxsdatatypes::{Double, Float};
use snowmelt_graph::{FIRST_REGISTERED, InlineNumber, InlineValue, MICROS, TermId, TermKind};

use crate::value::{Arithmetic, Decimal, Temporal, Terms, Value, arithmetic, bytes_of};

/// A total in the widest type met so far.
#[derive(Clone, Debug)]
pub(super) enum Total {
    /// no value was met; it counts as the integer 0
    Nothing,
    Integer(i64),
    /// an xsd:decimal of millionths, as ids carry them
    Micros(i128),
    /// an xsd:float, added in twice its width: then the order of values hardly shows in it
    Float(f64),
    Double(f64),
    /// an integer or a decimal beyond the two above, or a duration
    Exact(Box<Value<'static>>),
    /// something was met that cannot be added, or the total is beyond the bounds of numbers
    Failed,
}

/// Bytes of a number's digits.
fn heap_bytes(v: &Value<'_>) -> usize {
    match v {
        Value::Integer(v) => bytes_of(v),
        Value::Decimal(v) => v.heap_bytes(),
        _ => 0,
    }
}

/// A number, or a duration of one of the two types that can be added (XPath functions 3.1,
/// section 14.4.5).
fn summand<'t>(id: TermId, terms: &'t Terms) -> Option<Value<'t>> {
    // Terms that are neither were not prefetched.
    let is_read = match id.kind() {
        TermKind::Value | TermKind::Text | TermKind::Local => true,
        TermKind::Decimal => id.decimal_code() < FIRST_REGISTERED,
        kind => kind.is_inline(),
    };
    let is_summand = |v: &Value<'_>| {
        let is_duration =
            matches!(v, Value::Temporal(Temporal::YearMonthDuration(_) | Temporal::DayTimeDuration(_)));
        is_duration || v.is_numeric()
    };
    if is_read { terms.value(id).filter(is_summand) } else { None }
}

impl Total {
    /// Adds a term; one that is not inline must have been prefetched. Gives the bytes by which
    /// what it holds beside itself has grown.
    #[inline]
    pub fn add(&mut self, id: TermId, terms: &Terms) -> isize {
        match (&mut *self, id.inline_value()) {
            (Total::Integer(total), Some(InlineValue::Integer(v))) => match total.checked_add(v) {
                Some(sum) => *total = sum,
                None => return self.add_value(id, terms),
            },
            (Total::Float(total), Some(InlineValue::Float(v))) => *total += f64::from(v),
            (Total::Float(total), Some(InlineValue::Integer(v))) => *total += f64::from(v as f32),
            (Total::Double(total), Some(InlineValue::Double(v))) => *total += v,
            (Total::Double(total), Some(InlineValue::Float(v))) => *total += f64::from(v),
            (Total::Double(total), Some(InlineValue::Integer(v))) => *total += v as f64,
            (Total::Micros(total), Some(InlineValue::Decimal { datatype: 0, micros, .. })) => {
                match total.checked_add(micros.into()) {
                    Some(sum) => *total = sum,
                    None => return self.add_value(id, terms),
                }
            }
            (Total::Micros(total), Some(InlineValue::Integer(v))) => {
                match total.checked_add(i128::from(v) * MICROS) {
                    Some(sum) => *total = sum,
                    None => return self.add_value(id, terms),
                }
            }
            (Total::Nothing, Some(InlineValue::Integer(v))) => *self = Total::Integer(v),
            (Total::Failed, _) => {}
            _ => return self.add_value(id, terms),
        }
        0
    }

    /// Adds a term as often as `times` says, as [`Total::add`] does once.
    #[inline]
    pub fn add_times(&mut self, id: TermId, times: u64, terms: &Terms) -> isize {
        match (&mut *self, id.inline_value()) {
            _ if times == 1 => return self.add(id, terms),
            (Total::Integer(total), Some(InlineValue::Integer(v))) => {
                let sum = i64::try_from(times).ok().and_then(|n| v.checked_mul(n)?.checked_add(*total));
                match sum {
                    Some(sum) => *total = sum,
                    None => return self.add_doubled(Total::first(id, terms), times, terms),
                }
            }
            (Total::Micros(total), Some(InlineValue::Decimal { datatype: 0, micros, .. })) => {
                match i128::from(micros).checked_mul(times.into()).and_then(|v| v.checked_add(*total)) {
                    Some(sum) => *total = sum,
                    None => return self.add_doubled(Total::first(id, terms), times, terms),
                }
            }
            (Total::Float(total), Some(InlineValue::Float(v))) => *total += f64::from(v) * times as f64,
            (Total::Double(total), Some(InlineValue::Double(v))) => *total += v * times as f64,
            (Total::Failed, _) => {}
            _ => return self.add_doubled(Total::first(id, terms), times, terms),
        }
        0
    }

    /// Adds the total of other values as often as `times` says. Gives what [`Total::add`] does.
    #[inline]
    pub fn add_total(&mut self, other: &Total, times: u64, terms: &Terms) -> isize {
        match (&mut *self, other) {
            (Total::Float(total), Total::Float(v)) | (Total::Double(total), Total::Double(v)) => {
                *total += v * times as f64;
            }
            (Total::Integer(total), Total::Integer(v)) => {
                let sum = i64::try_from(times).ok().and_then(|n| v.checked_mul(n)?.checked_add(*total));
                match sum {
                    Some(sum) => *total = sum,
                    None => return self.add_doubled(other.clone(), times, terms),
                }
            }
            (Total::Micros(total), Total::Micros(v)) => {
                match v.checked_mul(times.into()).and_then(|v| v.checked_add(*total)) {
                    Some(sum) => *total = sum,
                    None => return self.add_doubled(other.clone(), times, terms),
                }
            }
            // 0 cannot be added to a duration
            (_, Total::Nothing) | (Total::Failed, _) => {}
            _ => return self.add_doubled(other.clone(), times, terms),
        }
        0
    }

    /// Adds a total so many times, for all there is: once, twice, four times and so on, and of
    /// these the ones that make up the number.
    #[cold]
    fn add_doubled(&mut self, mut power: Total, times: u64, terms: &Terms) -> isize {
        let before = self.heap_bytes();
        let mut left = times;
        while left > 0 {
            if left & 1 == 1 {
                *self = self.plus(&power, terms);
            }
            left >>= 1;
            if left > 0 {
                power = power.plus(&power, terms);
            }
        }
        self.heap_bytes() - before
    }

    /// The sum of two totals.
    fn plus(&self, other: &Total, terms: &Terms) -> Total {
        if let (Total::Float(a), Total::Float(b)) = (self, other) {
            return Total::Float(a + b);
        }
        match (self, other.value()) {
            (Total::Nothing, _) => other.clone(),
            (_, Some(value)) => self.with_value(&value, terms),
            (_, None) => Total::Failed,
        }
    }

    /// The rare ways: types change, out-of-line numbers, large totals.
    #[cold]
    fn add_value(&mut self, id: TermId, terms: &Terms) -> isize {
        let before = self.heap_bytes();
        if let Total::Nothing = self {
            *self = Total::first(id, terms);
            return self.heap_bytes() - before;
        }
        *self = match (&*self, id.inline_number()) {
            // the first decimal of a group
            (Total::Integer(total), Some(InlineNumber::Exact(v)))
                if id.kind() == TermKind::Decimal && id.decimal_code() == 0 =>
            {
                Total::Micros(i128::from(*total) * MICROS + v)
            }
            _ => self.sum(id, terms),
        };
        self.heap_bytes() - before
    }

    /// The total of one value: a duration is the only one that cannot be added to 0.
    fn first(id: TermId, terms: &Terms) -> Total {
        if !id.kind().is_inline()
            && let Some(Value::Temporal(v)) = summand(id, terms)
        {
            return Total::Exact(Box::new(Value::Temporal(v)));
        }
        let mut total = Total::Integer(0);
        total.add(id, terms);
        total
    }

    fn sum(&self, id: TermId, terms: &Terms) -> Total {
        summand(id, terms).map_or(Total::Failed, |value| self.with_value(&value, terms))
    }

    fn with_value(&self, value: &Value<'_>, terms: &Terms) -> Total {
        if let (Total::Integer(total), Value::Integer(v)) = (self, value)
            && let Some(sum) = i64::try_from(v).ok().and_then(|v| total.checked_add(v))
        {
            return Total::Integer(sum);
        }
        if let (Total::Float(total), Value::Float(v)) = (self, value) {
            return Total::Float(total + f64::from(f32::from(*v)));
        }
        // numbers may be long: the query's limits end it here
        if terms.poll(heap_bytes(value) + self.heap_bytes().unsigned_abs()).is_none() {
            return Total::Failed;
        }
        match self.value().and_then(|total| arithmetic(Arithmetic::Add, &total, value)) {
            Some(Value::Integer(v)) => match i64::try_from(&v) {
                Ok(v) => Total::Integer(v),
                Err(_) => Total::Exact(Box::new(Value::Integer(v))),
            },
            Some(Value::Decimal(v)) => match v.micros() {
                Some(v) => Total::Micros(v.into()),
                None => Total::Exact(Box::new(Value::Decimal(v))),
            },
            Some(Value::Float(v)) => Total::Float(f32::from(v).into()),
            Some(Value::Double(v)) => Total::Double(v.into()),
            Some(Value::Temporal(v)) => Total::Exact(Box::new(Value::Temporal(v))),
            _ => Total::Failed,
        }
    }

    /// Bytes held beside itself.
    fn heap_bytes(&self) -> isize {
        let Total::Exact(value) = self else { return 0 };
        (size_of::<Value<'static>>() + heap_bytes(value)) as isize
    }

    pub fn value(&self) -> Option<Value<'static>> {
        Some(match self {
            Total::Nothing => Value::Integer(0.into()),
            Total::Integer(v) => Value::Integer((*v).into()),
            Total::Micros(v) => Value::Decimal(Decimal::new((*v).into(), 6)?),
            Total::Float(v) => Value::Float(Float::from(*v as f32)),
            Total::Double(v) => Value::Double(Double::from(*v)),
            Total::Exact(v) => (**v).clone(),
            Total::Failed => return None,
        })
    }

    /// The mean of `count` values; 0 of none.
    pub fn average(&self, count: i64) -> Option<Value<'static>> {
        if count == 0 {
            return Some(Value::Integer(0.into()));
        }
        arithmetic(Arithmetic::Divide, &self.value()?, &Value::Integer(count.into()))
    }
}
