//! What all readers of trees share: errors that name the page, cache lines fetched together, buffers used again.

use crate::encoding::Decode;
use crate::error::Result;
use crate::page::{PageId, TreeId};
use crate::tuple_descent::wish_sorted;
use crate::{Reader, WishKind};

/// Turns what a decoder says of `page` into the store's error.
#[inline]
pub(crate) fn decoded<T>(reader: &Reader, page: PageId, result: Decode<T>) -> Result<T> {
    result.map_err(|bad| reader.damaged(page, bad.0))
}

/// Children wished for together by a walk over a whole tree.
const AHEAD: usize = 64;

/// A walk comes to child `at` of a node: now and then it wishes for the next ones.
pub(crate) fn walk_ahead(
    reader: &mut Reader,
    tree: TreeId,
    children: impl Fn(usize) -> Option<PageId>,
    at: usize,
) {
    if !at.is_multiple_of(AHEAD / 2) {
        return;
    }
    // The second half of what was wished for last may still be on its way.
    let from = if at == 0 { 0 } else { at + AHEAD / 2 };
    let pages: Vec<PageId> = (from..at + AHEAD).map_while(children).collect();
    wish_sorted(reader, tree, &pages, WishKind::Scan);
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
