//! Merge of sorted keys with the rows of a range: for keys that lie dense.
//!
//! The keys differ in one column; the range goes from the first to the last. Leaf by leaf as a
//! scan does, with its read-ahead; in a leaf only blocks that may hold a key are unpacked, only
//! their key column, and other columns for the rows that match (see `format::tuple::leaf`).
//! Output may be cut anywhere; the merge resumes there. No pin is held between calls.
//!
//! Meters: as a scan counts. One `rnd` where it begins; every row it moves over is one `seq`
//! and one touch, also those of blocks that it passes; no key is a lookup.

use std::ops::Range;

use crate::error::Result;
use crate::format::encoding::Decode;
use crate::format::encoding::column::meet::Met;
use crate::format::tuple::leaf::LeafCursor;
use crate::format::tuple::leaf::merge::SortedKeys;
use crate::tree::read::decoded;
use crate::tree::rows::{Matches, MergeKeys};
use crate::tree::spare::{self, Spare};
use crate::tree::tuple::TupleTree;
use crate::tree::tuple::leaf_walk::{LeafWalk, RowsOfLeaf};
use crate::{PageRef, Reader};

/// Rows moved over between two answers: within a millisecond or so when they are resident.
const MOVED: usize = 1 << 18;

/// A merge under way; see [`TupleTree::merge_way`].
pub struct MergeWay {
    walk: LeafWalk,
    cursor: LeafCursor,
    /// The leaf it is in, with the rows still to come.
    rest: RowsOfLeaf,
    /// The first key that a row to come may hold.
    next: usize,
    /// Rows found in the current block, and how many of them are put out.
    met: Box<Met>,
    out: usize,
    done: bool,
}

impl MergeWay {
    pub(crate) fn new(tree: &TupleTree, keys: &MergeKeys<'_>) -> MergeWay {
        keys.check(tree.shape.arity);
        let spare = spare::take(tree.shape.arity);
        MergeWay {
            walk: LeafWalk::new(tree.shape, keys.bounds(), spare.plan),
            cursor: spare.cursor,
            rest: RowsOfLeaf::NONE,
            next: 0,
            met: Box::new(Met::new()),
            out: 0,
            done: keys.varying.is_empty(),
        }
    }

    /// Appends up to `max_rows` rows to `out`; false at the end. True without a row says that
    /// it moved over many that hold no key, and that the caller may look at the clock. `keys`
    /// are those it began with.
    ///
    /// # Errors
    /// Reading a page failed, or a page contradicts the format.
    pub fn next(
        &mut self,
        reader: &mut Reader,
        keys: &MergeKeys<'_>,
        out: &mut Matches,
        max_rows: usize,
    ) -> Result<bool> {
        assert!(max_rows > 0, "a merge is asked for at least one row");
        let before = out.key.len();
        let most = before.saturating_add(max_rows);
        let (tree, mut moved) = (self.walk.shape.id, 0);
        let mut page: Option<PageRef> = None;
        while out.key.len() < most && moved < MOVED {
            if self.out == self.met.rows().len() && self.rest.row == self.rest.end {
                drop(page.take()); // no pin while waiting
                let leaf = if self.done { None } else { self.walk.next(reader, &mut self.cursor)? };
                let Some((rows, leaf)) = leaf else {
                    self.done = true;
                    break;
                };
                (self.rest, page) = (rows, Some(leaf));
                continue;
            }
            let id = self.rest.leaf;
            if page.is_none() {
                page = Some(reader.page(tree, id)?);
            }
            let leaf = page.as_ref().expect("just pinned");
            if self.out == self.met.rows().len() {
                moved += decoded(reader, id, self.meet(leaf, keys))?;
            }
            let result = self.emit(leaf, keys.columns(), out, most);
            decoded(reader, id, result)?;
        }
        reader.meters.seq += moved as u64;
        reader.touch(tree, moved as u64);
        Ok(out.key.len() > before || !self.done)
    }

    /// Goes on in the leaf until rows hold a key or none is left; returns how many it moved
    /// over.
    fn meet(&mut self, leaf: &[u8], keys: &MergeKeys<'_>) -> Decode<usize> {
        let RowsOfLeaf { row, end, .. } = self.rest;
        let mut sorted = SortedKeys { before: keys.before, varying: keys.varying, next: self.next };
        self.out = 0;
        while self.rest.row < end {
            self.rest.row = self.cursor.meet(leaf, self.rest.row, end, &mut sorted, &mut self.met)?;
            for (c, value) in (keys.before.len() + 1..).zip(keys.behind) {
                self.cursor.retain_met(leaf, c, *value, &mut self.met)?;
            }
            if !self.met.rows().is_empty() {
                break;
            }
        }
        self.next = sorted.next;
        self.done = self.next == keys.varying.len();
        Ok(self.rest.row - row)
    }

    /// Appends rows that were met, up to `most` rows in all.
    fn emit(&mut self, leaf: &[u8], first: usize, out: &mut Matches, most: usize) -> Decode<()> {
        let to = self.met.rows().len().min(self.out + (most - out.key.len()));
        let these: Range<usize> = self.out..to;
        for (c, column) in out.cols.iter_mut().enumerate() {
            if out.wanted >> c & 1 == 1 {
                self.cursor.append_met(leaf, first + c, &self.met.rows()[these.clone()], column)?;
            }
        }
        out.key.extend_from_slice(&self.met.keys()[these]);
        self.out = to;
        Ok(())
    }
}

impl Drop for MergeWay {
    fn drop(&mut self) {
        let (plan, cursor) = (std::mem::take(&mut self.walk.plan), std::mem::take(&mut self.cursor));
        spare::give(Spare { plan, cursor, ..Spare::default() });
    }
}
