//! A page as the journal keeps it: without the header fields that are known anyway.

use twox_hash::XxHash3_64;

use crate::page::PAGE_BYTES;

/// Bytes at the begin of a page that are not kept: checksum, page number and transaction are known
/// anyway.
pub const SKIPPED: usize = 24;
/// Bytes of a page that are kept.
pub const KEPT: usize = PAGE_BYTES - SKIPPED;

/// Checksum of the kept bytes, by which a page that is made anew is known to be the one described.
pub(crate) fn check(page: &[u8]) -> u32 {
    XxHash3_64::oneshot(&page[SKIPPED..]) as u32
}
