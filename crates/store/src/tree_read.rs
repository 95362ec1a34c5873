//! From a body that does not decode to the error that names the page.

use crate::Reader;
use crate::encoding::Decode;
use crate::error::Result;
use crate::page::PageId;

/// Turns what a decoder says of `page` into the store's error.
#[inline]
pub(crate) fn decoded<T>(reader: &Reader, page: PageId, result: Decode<T>) -> Result<T> {
    result.map_err(|bad| reader.damaged(page, bad.0))
}
