//! The difference between two states of a leaf, in rows or strings instead of bytes; the first byte
//! tells which of the two the rest is in.

use crate::format::encoding::Decode;
use crate::format::string::append_diff;
use crate::format::tuple::row_diff;
use crate::page::PageBuf;

fn is_of_strings(diff: &[u8]) -> bool {
    diff.first() == Some(&append_diff::APPENDED)
}

/// True when a diff and the one after it can be applied as one.
pub(crate) fn can_follow(diff: &[u8], next: &[u8]) -> bool {
    is_of_strings(diff) == is_of_strings(next)
}

/// Applies changes to a page: one, or several that can follow each other. After an error the page
/// is unusable.
pub(crate) fn apply(page: &mut PageBuf, diffs: &[&[u8]]) -> Decode<()> {
    match diffs.first().is_some_and(|diff| is_of_strings(diff)) {
        true => append_diff::apply(page, diffs),
        false => row_diff::apply(page, diffs),
    }
}
