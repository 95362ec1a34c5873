//! A page as the journal keeps it: without what is known of it anyway.

use twox_hash::XxHash3_64;

use crate::page::PAGE_BYTES;

/// Bytes of a page before those that are kept: checksum, page number and transaction are known
/// anyway.
pub const SKIPPED: usize = 24;
/// Bytes of a page that are kept.
pub const KEPT: usize = PAGE_BYTES - SKIPPED;

/// What a page that is made anew must have to be the one that was described.
pub(crate) fn check(page: &[u8]) -> u32 {
    XxHash3_64::oneshot(&page[SKIPPED..]) as u32
}
