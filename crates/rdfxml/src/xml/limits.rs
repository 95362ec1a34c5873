//! Limits of a document's cost.

use crate::fault::FaultText;

/// Elements that are open at once.
pub(crate) const MOST_LEVELS: usize = 50_000;

/// Bytes of a document type declaration, and of what its parameter entities stand for.
pub(super) const MOST_DECLARED: usize = 64 << 10;

/// Bytes that one reference stands for, with the references in its text.
pub(super) const MOST_EXPANDED: usize = 64 << 10;

/// Entities in entities.
pub(super) const MOST_NESTED: usize = 64;

/// Bytes that a document may become by entities, default attributes, prefixes and bases, for
/// each byte of it. Documents as people write them stay below 20.
const MOST_TIMES: u64 = 100;

/// Bytes it may become in any case.
const FREE: u64 = 8 << 20;

/// Counts what a document becomes that stands in few bytes of it.
#[derive(Default, Debug)]
pub(crate) struct Amplified {
    bytes: u64,
}

impl Amplified {
    /// Counts so many bytes more of a document of which so many were read.
    pub(crate) fn add(&mut self, bytes: usize, read: u64) -> Result<(), String> {
        self.bytes += bytes as u64;
        if self.bytes > FREE && self.bytes > read.saturating_mul(MOST_TIMES) {
            return Err(format!(
                "entities, default attributes, prefixes and bases make this document more than \
                 {MOST_TIMES} times as long, the limit"
            ));
        }
        Ok(())
    }
}

/// The message for a token or term that is too long.
pub(crate) fn too_long(most: usize) -> FaultText {
    let text = format!("a text, tag or XML literal has more than {most} bytes, the longest term allowed");
    FaultText { text, is_too_long: true, is_cut: false }
}
