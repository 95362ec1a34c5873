//! Shared by all readers of trees: errors that name the page, and wishes for pages in key order.

use crate::error::Result;
use crate::format::encoding::Decode;
use crate::page::{PageId, TreeId};
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

/// Wishes for pages that are in key order: after splits that need not be page order.
pub(crate) fn wish_sorted(reader: &mut Reader, tree: TreeId, pages: &[PageId], kind: WishKind) {
    if pages.is_sorted() {
        reader.wish(tree, pages, kind);
    } else {
        let mut pages = pages.to_vec();
        pages.sort_unstable();
        reader.wish(tree, &pages, kind);
    }
}
