//! Changes of a leaf of a tuple tree, as rows instead of bytes: a row in the tail takes a third of
//! the bytes that it changes there, and in a leaf that was packed anew hardly a byte is where it
//! was, though few rows came or went.
//!
//! The first byte says how the new page is made of the old one: [`in_tail`] or [`packed`]. Changes
//! that follow each other are applied to the leaf's rows and packed once ([`replay`]).
//!
//! Invariant: a diff is made only where applying it gives the very bytes of the new page.

mod columns;
pub(crate) mod in_tail;
pub(crate) mod packed;
mod replay;
#[cfg(test)]
mod tests;

use crate::format::encoding::{Bad, Decode};
use crate::format::tuple::row_diff::replay::LeafRows;
use crate::page::PageBuf;

/// Applies successive changes. Up to the last one that packs the leaf anew only the rows are kept:
/// the leaf is packed once, and only that change's checksum can be compared. After an error the
/// page is unusable.
pub(crate) fn apply(page: &mut PageBuf, diffs: &[&[u8]]) -> Decode<()> {
    /// A row that comes takes about so much of a diff.
    const ROW_BYTES: usize = 12;
    let packed_diffs = diffs.iter().rposition(|d| d.first() == Some(&packed::TAG)).map_or(0, |last| last + 1);
    if packed_diffs > 0 {
        let bytes: usize = diffs[..packed_diffs].iter().map(|d| d.len()).sum();
        let mut leaf = LeafRows::read(page, bytes / ROW_BYTES)?;
        diffs[..packed_diffs].iter().try_for_each(|diff| leaf.change(diff))?;
        *page = leaf.pack(page)?;
    }
    for diff in &diffs[packed_diffs..] {
        let diff = diff.strip_prefix(&[in_tail::TAG]).ok_or(Bad("a change ends too early"))?;
        in_tail::apply(page, diff)?;
    }
    Ok(())
}
