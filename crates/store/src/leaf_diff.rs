//! What changed in a leaf, said in rows or strings instead of bytes; the first byte tells who understands the rest.

use twox_hash::XxHash3_64;

use crate::encoding::Decode;
use crate::page::offset;
use crate::string_leaf_diff;
use crate::tuple_leaf_diff;

/// Bytes of a page that no diff describes: checksum, page number, transaction.
pub(crate) const KEPT_FROM: usize = offset::TREE;

/// The page that `diff` describes, given the old one; both from [`KEPT_FROM`] on.
pub(crate) fn apply(old: &[u8], diff: &[u8], new: &mut [u8]) -> Decode<()> {
    match diff.first() {
        Some(&string_leaf_diff::APPENDED) => string_leaf_diff::apply(old, diff, new),
        _ => tuple_leaf_diff::apply(old, diff, new),
    }
}

/// What a page that is made anew must have to be the one that was described.
pub(crate) fn check(page: &[u8]) -> u32 {
    XxHash3_64::oneshot(&page[KEPT_FROM..]) as u32
}
