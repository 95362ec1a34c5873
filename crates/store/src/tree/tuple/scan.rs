//! Scan of a range, in order.
//!
//! The leaves to come are found stretch by stretch through the inner nodes (the separator
//! behind a stretch is where the next begins), so the leaves need no links. Read-ahead rule 4:
//! after two consecutive leaves, as far ahead as [`ScanAhead`] says, at most to the end of the
//! range. No pin is held between calls.

use std::collections::VecDeque;

use crate::error::Result;
use crate::format::key::Key;
use crate::format::tuple::leaf::LeafCursor;
use crate::page::PageId;
use crate::tree::descent::{Descent, Shape};
use crate::tree::read::{decoded, wish_sorted};
use crate::tree::rows::{Bounds, Columns, Keys, ScanBounds};
use crate::tree::spare::{self, Spare};
use crate::tree::tuple::TupleTree;
use crate::{PageRef, Reader, ScanAhead, Waited, WishKind};

/// Leaves found at a time when nothing has to be read.
const STRETCH: usize = 256;

/// A scan under way; see [`TupleTree::scan`].
pub struct TupleScan {
    shape: Shape,
    bounds: Bounds,
    /// Leaves to come; the first `wished` of them were wished for.
    leaves: VecDeque<PageId>,
    wished: usize,
    /// Where the next stretch begins; `None` before the first and after the last.
    resume: Option<Key>,
    planned_all: bool,
    started: bool,
    ahead: Option<ScanAhead>,
    cursor: LeafCursor,
    /// Leaf the scan is in, with the rows still to come.
    leaf: Option<PageId>,
    row: usize,
    end: usize,
    plan: Descent,
}

impl TupleScan {
    pub(crate) fn new(tree: &TupleTree, bounds: ScanBounds<'_>) -> TupleScan {
        let mut scan = TupleScan::between(tree, bounds_of(tree, bounds));
        scan.planned_all |= bounds.range.is_some_and(|(lo, hi)| lo > hi);
        scan
    }

    /// A scan of the rows between two keys.
    pub(crate) fn between(tree: &TupleTree, bounds: Bounds) -> TupleScan {
        let spare = spare::take(tree.shape.arity);
        TupleScan {
            shape: tree.shape,
            bounds,
            leaves: VecDeque::new(),
            wished: 0,
            resume: None,
            planned_all: tree.shape.height == 0,
            started: false,
            ahead: None,
            cursor: spare.cursor,
            leaf: None,
            row: 0,
            end: 0,
            plan: spare.plan,
        }
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
        TupleScan {
            shape,
            bounds,
            wished: leaves.len(),
            leaves,
            resume: None,
            planned_all: true,
            started: !is_first,
            ahead: None,
            cursor: spare.cursor,
            leaf: None,
            row: 0,
            end: 0,
            plan: spare.plan,
        }
    }

    /// Appends up to `max_rows` rows to `out`; false when there was none left.
    ///
    /// # Errors
    /// Reading a page failed, or a page contradicts the format.
    pub fn next(&mut self, reader: &mut Reader, out: &mut Columns, max_rows: usize) -> Result<bool> {
        assert!(max_rows > 0, "a scan is asked for at least one row");
        let most = out.rows.saturating_add(max_rows);
        let before = out.rows;
        let mut page: Option<PageRef> = None;
        while out.rows < most {
            if self.row == self.end {
                drop(page.take()); // no pin while waiting
                page = self.next_leaf(reader)?;
                if page.is_none() {
                    break;
                }
                continue;
            }
            let id = self.leaf.expect("rows to come are in a leaf");
            if page.is_none() {
                page = Some(reader.page(self.shape.id, id)?);
            }
            let leaf = page.as_ref().expect("just pinned");
            let to = self.end.min(self.row.saturating_add(most - out.rows));
            let to = self.cursor.stretch(self.row, to);
            for (c, column) in out.cols.iter_mut().enumerate() {
                if out.wanted >> c & 1 == 1 {
                    decoded(reader, id, self.cursor.append(leaf, c, self.row, to, column))?;
                }
            }
            out.rows += to - self.row;
            self.row = to;
        }
        let rows = (out.rows - before) as u64;
        reader.meters.seq += rows;
        reader.touch(self.shape.id, rows);
        Ok(rows > 0)
    }

    /// Goes to the next leaf of the range and finds its rows.
    fn next_leaf(&mut self, reader: &mut Reader) -> Result<Option<PageRef>> {
        if self.leaves.is_empty() {
            self.plan(reader, 2)?;
        }
        let Some(id) = self.leaves.pop_front() else { return Ok(None) };
        self.wished = self.wished.saturating_sub(1);
        let waits = (reader.meters.waits, reader.meters.disk - reader.meters.spec_disk);
        let page = reader.page(self.shape.id, id)?;
        let waited = waits != (reader.meters.waits, reader.meters.disk - reader.meters.spec_disk);
        decoded(reader, id, self.cursor.open(&page))?;
        let last = self.leaves.is_empty() && self.planned_all;
        self.row = match self.started {
            true => 0,
            false => decoded(reader, id, self.cursor.lower(&page, 0, self.bounds.lo()))?,
        };
        self.end = match last {
            true => decoded(reader, id, self.cursor.upper(&page, self.row, self.bounds.hi()))?,
            false => self.cursor.len(),
        };
        if !self.started {
            reader.meters.rnd += 1;
        }
        self.started = true;
        self.leaf = Some(id);
        if !reader.resident(self.shape.id) {
            // The pin goes while inner nodes may be waited for.
            let waited = if waited { Waited::Yes } else { Waited::No };
            drop(page);
            self.read_ahead(reader, waited)?;
            return Ok(Some(reader.page(self.shape.id, id)?));
        }
        Ok(Some(page))
    }

    /// Rule 4: keeps the next leaves wished for.
    fn read_ahead(&mut self, reader: &mut Reader, waited: Waited) -> Result<()> {
        let most = reader.scan_leaves();
        let distance = self.ahead.get_or_insert_with(|| ScanAhead::new(most)).visited(waited) as usize;
        // In halves, so that wishes are batches and not single pages.
        if distance == 0 || self.wished > distance / 2 {
            return Ok(());
        }
        if self.leaves.len() < distance {
            self.plan(reader, distance - self.leaves.len())?;
        }
        let to = distance.min(self.leaves.len());
        if to > self.wished {
            let pages: Vec<PageId> = self.leaves.range(self.wished..to).copied().collect();
            wish_sorted(reader, self.shape.id, &pages, WishKind::Scan);
            self.wished = to;
        }
        Ok(())
    }

    /// Finds up to `want` more leaves.
    fn plan(&mut self, reader: &mut Reader, want: usize) -> Result<()> {
        if self.planned_all {
            return Ok(());
        }
        let want = if reader.resident(self.shape.id) { STRETCH } else { want.min(reader.wish_limit()) };
        let keys = Keys { cols: &[], rows: 1, range: None };
        self.plan.begin(&self.shape, &keys, 0, self.resume, want);
        while self.plan.level > 0 {
            self.plan.step_between(reader, &self.shape, &self.bounds)?;
        }
        self.leaves.extend(&self.plan.nodes);
        self.resume = self.plan.cut;
        self.planned_all = self.resume.is_none();
        Ok(())
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
        let (plan, cursor) = (std::mem::take(&mut self.plan), std::mem::take(&mut self.cursor));
        spare::give(Spare { plan, cursor, ..Spare::default() });
    }
}
