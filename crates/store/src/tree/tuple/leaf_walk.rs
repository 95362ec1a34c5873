//! The leaves of a range, in order, for scans and merges.
//!
//! The leaves to come are found stretch by stretch through the inner nodes (the separator
//! behind a stretch is where the next begins), so the leaves need no links. Read-ahead rule 4:
//! after some consecutive leaves, as far ahead as [`ScanAhead`] says, at most to the end of the
//! range. No pin is held while a page is waited for.

use std::collections::VecDeque;

use crate::error::Result;
use crate::format::key::Key;
use crate::format::tuple::leaf::LeafCursor;
use crate::page::PageId;
use crate::tree::descent::{Descent, Shape};
use crate::tree::read::{decoded, wish_sorted};
use crate::tree::rows::{Bounds, Keys};
use crate::{PageRef, Reader, ScanAhead, Waited, WishKind};

/// Leaves found at a time when nothing has to be read.
const STRETCH: usize = 256;

/// A walk under way.
pub(crate) struct LeafWalk {
    pub shape: Shape,
    bounds: Bounds,
    /// Leaves to come.
    leaves: VecDeque<PageId>,
    /// Where the next stretch begins; `None` before the first and after the last.
    resume: Option<Key>,
    planned_all: bool,
    started: bool,
    ahead: Option<ScanAhead>,
    pub plan: Descent,
}

/// The rows of a leaf that lie in the range, as far as they are still to come.
#[derive(Clone, Copy)]
pub(crate) struct RowsOfLeaf {
    pub leaf: PageId,
    pub row: usize,
    pub end: usize,
}

impl RowsOfLeaf {
    /// Before the first leaf.
    pub(crate) const NONE: RowsOfLeaf = RowsOfLeaf { leaf: PageId(0), row: 0, end: 0 };
}

impl LeafWalk {
    /// A walk over the leaves between two keys.
    pub(crate) fn new(shape: Shape, bounds: Bounds, plan: Descent) -> LeafWalk {
        LeafWalk {
            shape,
            bounds,
            leaves: VecDeque::new(),
            resume: None,
            planned_all: shape.height == 0 || bounds.lo() > bounds.hi(),
            started: false,
            ahead: None,
            plan,
        }
    }

    /// A walk over these leaves of a range, which follow each other. `is_first`: rows of the first
    /// one may lie before the range.
    pub(crate) fn of_leaves(
        shape: Shape,
        bounds: Bounds,
        leaves: VecDeque<PageId>,
        is_first: bool,
        plan: Descent,
    ) -> LeafWalk {
        LeafWalk { leaves, planned_all: true, started: !is_first, ..LeafWalk::new(shape, bounds, plan) }
    }

    /// Opens the next leaf of the range in `cursor` and finds its rows; `None` behind the last.
    pub(crate) fn next(
        &mut self,
        reader: &mut Reader,
        cursor: &mut LeafCursor,
    ) -> Result<Option<(RowsOfLeaf, PageRef)>> {
        if self.leaves.is_empty() {
            self.plan(reader, 2)?;
        }
        let Some(id) = self.leaves.pop_front() else { return Ok(None) };
        if let Some(ahead) = &mut self.ahead {
            ahead.advanced();
        }
        let waits = (reader.meters.waits, reader.meters.disk - reader.meters.spec_disk);
        let page = reader.page(self.shape.id, id)?;
        let waited = waits != (reader.meters.waits, reader.meters.disk - reader.meters.spec_disk);
        decoded(reader, id, cursor.open(&page))?;
        let last = self.leaves.is_empty() && self.planned_all;
        let row = match self.started {
            true => 0,
            false => decoded(reader, id, cursor.lower(&page, 0, self.bounds.lo()))?,
        };
        let end = match last {
            true => decoded(reader, id, cursor.upper(&page, row, self.bounds.hi()))?,
            false => cursor.len(),
        };
        if !self.started {
            reader.meters.rnd += 1;
        }
        self.started = true;
        let rows = RowsOfLeaf { leaf: id, row, end };
        if !reader.resident(self.shape.id) {
            // The pin goes while inner nodes may be waited for.
            let waited = if waited { Waited::Yes } else { Waited::No };
            drop(page);
            self.read_ahead(reader, id, waited)?;
            return Ok(Some((rows, reader.page(self.shape.id, id)?)));
        }
        Ok(Some((rows, page)))
    }

    /// Rule 4: keeps the next leaves wished for.
    fn read_ahead(&mut self, reader: &mut Reader, leaf: PageId, waited: Waited) -> Result<()> {
        let mut ahead = self.ahead.take().unwrap_or_else(|| reader.scan_ahead());
        ahead.visited(leaf, waited);
        if let Some(distance) = ahead.due() {
            if self.leaves.len() < distance {
                self.plan(reader, distance - self.leaves.len())?;
            }
            wish_sorted(reader, self.shape.id, &ahead.wishes(&self.leaves), WishKind::Scan);
        }
        self.ahead = Some(ahead);
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
