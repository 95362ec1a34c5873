//! What changed in a leaf, said in rows or strings instead of bytes; the first byte tells who
//! understands the rest.

use crate::encoding::Decode;
use crate::page::PageBuf;
use crate::string_leaf_diff;
use crate::tuple_leaf_diff;

fn is_of_strings(diff: &[u8]) -> bool {
    diff.first() == Some(&string_leaf_diff::APPENDED)
}

/// True when a diff and the one after it can be applied as one.
pub(crate) fn can_follow(diff: &[u8], next: &[u8]) -> bool {
    is_of_strings(diff) == is_of_strings(next)
}

/// Makes the changes in a page: one, or several that can follow each other. After an error it
/// is no page any more.
pub(crate) fn apply(page: &mut PageBuf, diffs: &[&[u8]]) -> Decode<()> {
    match diffs.first().is_some_and(|diff| is_of_strings(diff)) {
        true => string_leaf_diff::apply(page, diffs),
        false => tuple_leaf_diff::apply(page, diffs),
    }
}
