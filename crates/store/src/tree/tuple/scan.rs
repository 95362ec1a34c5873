//! Scan of a range, in order: leaf by leaf (see `tree::tuple::leaf_walk`), block by block.
//! Output may be cut anywhere; the scan resumes there. No pin is held between calls.

use std::collections::VecDeque;

use crate::error::Result;
use crate::format::key::Key;
use crate::format::tuple::leaf::LeafCursor;
use crate::page::PageId;
use crate::tree::descent::Shape;
use crate::tree::read::decoded;
use crate::tree::rows::{Bounds, Columns, ScanBounds};
use crate::tree::spare::{self, Spare};
use crate::tree::tuple::TupleTree;
use crate::tree::tuple::leaf_walk::{LeafWalk, RowsOfLeaf};
use crate::{PageRef, Reader};

/// A scan under way; see [`TupleTree::scan`].
pub struct TupleScan {
    walk: LeafWalk,
    cursor: LeafCursor,
    /// The leaf the scan is in, with the rows still to come.
    rest: RowsOfLeaf,
}

impl TupleScan {
    pub(crate) fn new(tree: &TupleTree, bounds: ScanBounds<'_>) -> TupleScan {
        TupleScan::between(tree, bounds_of(tree, bounds))
    }

    /// A scan of the rows between two keys.
    pub(crate) fn between(tree: &TupleTree, bounds: Bounds) -> TupleScan {
        let spare = spare::take(tree.shape.arity);
        let walk = LeafWalk::new(tree.shape, bounds, spare.plan);
        TupleScan { walk, cursor: spare.cursor, rest: RowsOfLeaf::NONE }
    }

    /// A scan of these leaves of a range, which follow each other and were wished for.
    /// `is_first`: rows of the first one may lie before the range.
    pub(crate) fn of_leaves(
        shape: Shape,
        bounds: Bounds,
        leaves: VecDeque<PageId>,
        is_first: bool,
    ) -> TupleScan {
        let spare = spare::take(shape.arity);
        let walk = LeafWalk::of_leaves(shape, bounds, leaves, is_first, spare.plan);
        TupleScan { walk, cursor: spare.cursor, rest: RowsOfLeaf::NONE }
    }

    /// Appends up to `max_rows` rows to `out`; false when there was none left.
    ///
    /// # Errors
    /// Reading a page failed, or a page contradicts the format.
    pub fn next(&mut self, reader: &mut Reader, out: &mut Columns, max_rows: usize) -> Result<bool> {
        assert!(max_rows > 0, "a scan is asked for at least one row");
        let most = out.rows.saturating_add(max_rows);
        let before = out.rows;
        let tree = self.walk.shape.id;
        let mut page: Option<PageRef> = None;
        while out.rows < most {
            if self.rest.row == self.rest.end {
                drop(page.take()); // no pin while waiting
                let Some((rows, leaf)) = self.walk.next(reader, &mut self.cursor)? else { break };
                (self.rest, page) = (rows, Some(leaf));
                continue;
            }
            let RowsOfLeaf { leaf: id, row, end } = self.rest;
            if page.is_none() {
                page = Some(reader.page(tree, id)?);
            }
            let leaf = page.as_ref().expect("just pinned");
            let to = end.min(row.saturating_add(most - out.rows));
            let to = self.cursor.stretch(row, to);
            for (c, column) in out.cols.iter_mut().enumerate() {
                if out.wanted >> c & 1 == 1 {
                    decoded(reader, id, self.cursor.append(leaf, c, row, to, column))?;
                }
            }
            out.rows += to - row;
            self.rest.row = to;
        }
        let rows = (out.rows - before) as u64;
        reader.meters.seq += rows;
        reader.touch(tree, rows);
        Ok(rows > 0)
    }
}

/// The bounds as key prefixes.
pub(crate) fn bounds_of(tree: &TupleTree, bounds: ScanBounds<'_>) -> Bounds {
    let len = bounds.prefix.len() + usize::from(bounds.range.is_some());
    assert!(len <= tree.shape.arity, "{len} bound columns for a tree of {}", tree.shape.arity);
    let mut lo = Key::default();
    lo[..bounds.prefix.len()].copy_from_slice(bounds.prefix);
    let mut hi = lo;
    if let Some((least, greatest)) = bounds.range {
        lo[len - 1] = least;
        hi[len - 1] = greatest;
    }
    Bounds { lo, hi, len }
}

impl Drop for TupleScan {
    fn drop(&mut self) {
        let (plan, cursor) = (std::mem::take(&mut self.walk.plan), std::mem::take(&mut self.cursor));
        spare::give(Spare { plan, cursor, ..Spare::default() });
    }
}
