//! Requests for objects, and answers that cannot be used.

use snowmelt_io::{Answer, Ask, Objects};

use crate::error::StoreError;

/// A request for a whole object.
pub(super) fn whole(key: &str) -> Ask {
    Ask::Get { key: key.into(), range: None }
}

/// The bytes of an answer to a get.
pub(super) fn got(answer: Answer) -> Vec<u8> {
    match answer {
        Answer::Got { bytes, .. } => bytes,
        _ => unreachable!("a get is answered with bytes"),
    }
}

/// The error for objects that cannot be used.
pub(super) fn unusable(objects: &dyn Objects, why: impl Into<String>) -> StoreError {
    StoreError::Published { store: objects.name().clone(), why: why.into() }
}
