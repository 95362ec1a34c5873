//! What all readers of trees share: errors that name the page, cache lines fetched together, buffers used again.

use crate::Reader;
use crate::encoding::Decode;
use crate::error::Result;
use crate::page::PageId;

/// Turns what a decoder says of `page` into the store's error.
#[inline]
pub(crate) fn decoded<T>(reader: &Reader, page: PageId, result: Decode<T>) -> Result<T> {
    result.map_err(|bad| reader.damaged(page, bad.0))
}

/// Bytes of a cache line.
const LINE: usize = 64;

/// Loads the cache lines of `page[from..to]` at once. A probe would otherwise miss them one after the other, each miss waiting for
/// the one before.
#[inline]
pub(crate) fn touch(page: &[u8], from: usize, to: usize) {
    let mut all = 0;
    for line in page.get(from..to.min(page.len())).unwrap_or_default().iter().step_by(LINE) {
        all |= line;
    }
    std::hint::black_box(all);
}
