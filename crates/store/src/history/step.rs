//! A change of a page in the journal, as a page's history lists it.

use crate::journal::Loc;

/// A change of a page in the journal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub txn: u64,
    pub loc: Loc,
    /// Bytes of the diff; `None` for an image.
    pub diff_bytes: Option<u32>,
}
