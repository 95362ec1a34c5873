//! Equality, order and truth of values (SPARQL 1.1, sections 17.2.2, 17.3, 17.4.1.7).
//!
//! None is the type error. Two literals that are not the same term are unequal only where both
//! values are known; otherwise "unequal" cannot be said and the answer is an error.
//!
//! Numbers compare in the wider of their types (XPath functions 3.1, section 4.3): exact ones
//! exactly, an exact one and a double as doubles. NaN is neither less, equal nor greater: that
//! is an answer, false, and no error.

use std::cmp::Ordering;

use oxrdf::{Term, Triple};
use snowmelt_graph::CompareValue;

use super::arith::{Promoted, promote};
use super::exact::{double_of_decimal, float_of_decimal};
use super::parse::is_too_long;
use super::triple::value_of;
use super::{Decimal, Temporal, Value, duration};

/// `=`; `!=` is its negation.
#[must_use]
pub fn equals(a: &Value<'_>, b: &Value<'_>) -> Option<bool> {
    use Value as V;
    match (a, b) {
        (V::Iri(a), V::Iri(b)) | (V::Blank(a), V::Blank(b)) => Some(a == b),
        (V::Triple(a), V::Triple(b)) => triples_equal(a, b),
        (V::Iri(_) | V::Blank(_) | V::Triple(_), _) | (_, V::Iri(_) | V::Blank(_) | V::Triple(_)) => {
            Some(false)
        }
        (V::String(a), V::String(b)) => Some(a == b),
        (V::LangString(a, la), V::LangString(b, lb)) => Some(a == b && la.eq_ignore_ascii_case(lb)),
        (V::Boolean(a), V::Boolean(b)) => Some(a == b),
        (V::Temporal(a), V::Temporal(b)) => temporal_equals(a, b),
        (V::Other { lexical: a, datatype: da }, V::Other { lexical: b, datatype: db }) => {
            (a == b && da == db).then_some(true)
        }
        // A language-tagged string is a known value, different from any literal of an unknown type.
        (V::Other { .. }, V::LangString(..)) | (V::LangString(..), V::Other { .. }) => Some(false),
        (V::Other { .. }, _) | (_, V::Other { .. }) => None,
        _ => match promote(a, b) {
            Some(Promoted::Integer(a, b)) => Some(a == b),
            Some(Promoted::Decimal(a, b)) => Some(a == b),
            Some(Promoted::Float(a, b)) => Some(a == b),
            Some(Promoted::Double(a, b)) => Some(a == b),
            None => Some(false), // two known types that share no value
        },
    }
}

/// `=` of two triple terms: an error where one component's comparison is one, unless another
/// differs.
fn triples_equal(a: &Triple, b: &Triple) -> Option<bool> {
    let (mut a, mut b) = (a, b);
    loop {
        if a.subject != b.subject || a.predicate != b.predicate {
            return Some(false);
        }
        match (&a.object, &b.object) {
            (Term::Triple(x), Term::Triple(y)) => (a, b) = (x, y),
            (x, y) => return equals(&value_of(x), &value_of(y)),
        }
    }
}

/// `<`, `<=`, `>` or `>=`, by the orders for which it holds; None for values that do not
/// compare.
#[must_use]
pub fn holds(a: &Value<'_>, b: &Value<'_>, of: impl Fn(Ordering) -> bool) -> Option<bool> {
    match compare(a, b) {
        Some(order) => Some(of(order)),
        None => (a.is_numeric() && b.is_numeric()).then_some(false),
    }
}

/// The order of two values; None where there is none: of types that do not compare, of NaN, of
/// times within 14 hours of which one has no time zone.
#[must_use]
pub fn compare(a: &Value<'_>, b: &Value<'_>) -> Option<Ordering> {
    use Value as V;
    match (a, b) {
        (V::String(a), V::String(b)) => Some(a.cmp(b)),
        (V::LangString(a, la), V::LangString(b, lb)) if la.eq_ignore_ascii_case(lb) => Some(a.cmp(b)),
        (V::Boolean(a), V::Boolean(b)) => Some(a.cmp(b)),
        (V::Temporal(a), V::Temporal(b)) => temporal_compare(a, b),
        // <= and >= hold for identical terms of any type.
        (V::Iri(a), V::Iri(b)) | (V::Blank(a), V::Blank(b)) => (a == b).then_some(Ordering::Equal),
        (V::Triple(a), V::Triple(b)) => (**a == **b).then_some(Ordering::Equal),
        (V::Other { lexical: a, datatype: da }, V::Other { lexical: b, datatype: db }) => {
            (a == b && da == db).then_some(Ordering::Equal)
        }
        _ => match promote(a, b)? {
            Promoted::Integer(a, b) => Some(a.cmp(b)),
            Promoted::Decimal(a, b) => Some(a.cmp(&b)),
            Promoted::Float(a, b) => a.partial_cmp(&b),
            Promoted::Double(a, b) => a.partial_cmp(&b),
        },
    }
}

impl Value<'_> {
    /// A number or boolean as ids are compared with it; None for other values.
    pub(crate) fn as_compared(&self) -> Option<CompareValue<'static>> {
        let exact = |number: &Decimal| {
            let (micros, above) = number.floor_micros();
            let (float, double) = (float_of_decimal(number), double_of_decimal(number));
            CompareValue::Exact { micros, above, float, double }
        };
        Some(match self {
            Value::Integer(v) => exact(&v.clone().into()),
            Value::Decimal(v) => exact(v),
            Value::Float(v) => CompareValue::Float((*v).into()),
            Value::Double(v) => CompareValue::Double((*v).into()),
            Value::Boolean(v) => CompareValue::Boolean(*v),
            _ => return None,
        })
    }
}

/// Values of one temporal type; the three duration types compare with each other.
fn temporal_compare(a: &Temporal, b: &Temporal) -> Option<Ordering> {
    use Temporal as T;
    match (a, b) {
        (T::DateTime(a), T::DateTime(b)) => a.partial_cmp(b),
        (T::Date(a), T::Date(b)) => a.partial_cmp(b),
        (T::Time(a), T::Time(b)) => a.partial_cmp(b),
        (T::GYear(a), T::GYear(b)) => a.partial_cmp(b),
        (T::GYearMonth(a), T::GYearMonth(b)) => a.partial_cmp(b),
        (T::GMonth(a), T::GMonth(b)) => a.partial_cmp(b),
        (T::GMonthDay(a), T::GMonthDay(b)) => a.partial_cmp(b),
        (T::GDay(a), T::GDay(b)) => a.partial_cmp(b),
        (T::YearMonthDuration(a), T::YearMonthDuration(b)) => a.partial_cmp(b),
        (T::DayTimeDuration(a), T::DayTimeDuration(b)) => a.partial_cmp(b),
        _ => duration::whole(a)?.partial_cmp(&duration::whole(b)?),
    }
}

fn temporal_equals(a: &Temporal, b: &Temporal) -> Option<bool> {
    // Durations are equal by months and seconds, also those without an order.
    if let (Some(a), Some(b)) = (duration::whole(a), duration::whole(b)) {
        return Some(a == b);
    }
    if a.datatype() != b.datatype() {
        return Some(false);
    }
    // A moment with a time zone and one without may be incomparable: then equality is not known
    // either.
    temporal_compare(a, b).map(Ordering::is_eq)
}

/// The effective boolean value. A literal of a boolean or numeric type with a malformed lexical
/// form is false.
#[must_use]
pub fn effective_boolean(v: &Value<'_>) -> Option<bool> {
    match v {
        Value::Boolean(v) => Some(*v),
        Value::String(v) => Some(!v.is_empty()),
        Value::Integer(v) => Some(!v.is_zero()),
        Value::Decimal(v) => Some(!v.is_zero()),
        Value::Float(v) => Some(!v.is_nan() && f32::from(*v) != 0.0),
        Value::Double(v) => Some(!v.is_nan() && f64::from(*v) != 0.0),
        // a number of more digits than there may be is no malformed one
        Value::Other { lexical, datatype } if is_too_long(lexical, datatype) => None,
        Value::Other { datatype, .. }
            if **datatype == *super::iri::BOOLEAN || super::is_numeric_datatype(datatype) =>
        {
            Some(false)
        }
        _ => None,
    }
}
