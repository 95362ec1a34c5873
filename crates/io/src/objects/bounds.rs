//! The bytes of an object that a get asks for.

use std::ops::Range;

use crate::objects::ObjectErrorKind;

/// The bytes to answer of an object of `object_bytes`.
///
/// # Errors
/// [`ObjectErrorKind::Short`]: the range reaches beyond the end.
pub(crate) fn wanted(range: Option<&Range<u64>>, object_bytes: u64) -> Result<Range<u64>, ObjectErrorKind> {
    let Some(range) = range else { return Ok(0..object_bytes) };
    assert!(range.start < range.end, "a get asks for at least one byte");
    if range.end <= object_bytes {
        return Ok(range.clone());
    }
    let got = object_bytes.saturating_sub(range.start);
    Err(ObjectErrorKind::Short { got, wanted: range.end - range.start })
}
