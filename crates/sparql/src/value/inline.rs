//! Values of ids that hold them whole.

use oxsdatatypes::{Date, DateTime, Double, Float};
use snowmelt_graph::{InlineValue, TermId};

use super::{Decimal, Temporal, Value};

/// The value of an inline id that needs neither text nor table.
pub(super) fn inline_value(id: TermId) -> Option<Value<'static>> {
    Some(match id.inline_value()? {
        InlineValue::Integer(v) | InlineValue::Derived { value: v, .. } => Value::Integer(v.into()),
        InlineValue::Decimal { datatype: 0, micros, .. } => Value::Decimal(Decimal::from_micros(micros)),
        InlineValue::Double(v) => Value::Double(Double::from(v)),
        InlineValue::Float(v) => Value::Float(Float::from(v)),
        InlineValue::Boolean(v) => Value::Boolean(v),
        InlineValue::Date { days, utc } => {
            let bytes = moment(i128::from(days) * 86_400_000_000, utc);
            Value::Temporal(Temporal::Date(Date::from_be_bytes(bytes)))
        }
        InlineValue::DateTime { ms, utc } => {
            let bytes = moment(i128::from(ms) * 1_000, utc);
            Value::Temporal(Temporal::DateTime(DateTime::from_be_bytes(bytes)))
        }
        InlineValue::String(_) | InlineValue::Decimal { .. } => return None,
    })
}

/// A point in time as oxsdatatypes keeps it: seconds since 0001-01-01T00:00:00, then the time
/// zone's minutes or -1.
fn moment(micros: i128, utc: bool) -> [u8; 18] {
    /// 10^-18 s in a point in time.
    const UNITS_PER_MICRO: i128 = 1_000_000_000_000;
    let mut bytes = [0; 18];
    bytes[..16].copy_from_slice(&(micros * UNITS_PER_MICRO).to_be_bytes());
    if !utc {
        bytes[16..].fill(u8::MAX);
    }
    bytes
}
