//! Reads what can be read of a tuple tree that may be damaged, and says what cannot.
//!
//! A walk from the root. A page that is damaged, or contradicts what is above or before it,
//! ends its subtree there: the rows from the least that it may hold up to the next separator are
//! lost to this tree. The walk goes on behind them.

use super::check::TupleWalk;
use crate::Reader;
use crate::error::{Result, StoreError};
use crate::format::inner::Inner;
use crate::format::key::{Key, MAX_ARITY};
use crate::page::{PageId, PageKind};
use crate::tree::read::decoded;
use crate::tree::tuple::TupleTree;

/// Rows that a damaged tree does not give.
#[derive(Clone, Debug)]
pub struct LostRows {
    /// The page that was to lead to them.
    pub page: PageId,
    /// Not below this; `None`: from the first row on.
    pub from: Option<Key>,
    /// Below this; `None`: up to the last row.
    pub below: Option<Key>,
    /// The fault of the page.
    pub why: StoreError,
}

/// Gets the rows of a leaf, by columns.
pub type OnRows<'a> = dyn FnMut(&[Vec<u64>; MAX_ARITY]) -> Result<()> + 'a;

impl TupleTree {
    /// Hands all rows that can be read to `on_rows`, in ascending order, and returns what is
    /// lost.
    ///
    /// # Errors
    /// Those of `on_rows`; others than damage and pages that the device does not read.
    pub fn salvage(&self, reader: &mut Reader, on_rows: &mut OnRows<'_>) -> Result<Vec<LostRows>> {
        let mut on_page = |_: PageId| {};
        let mut salvage = SalvageWalk { walk: TupleWalk::new(self, &mut on_page), on_rows, lost: Vec::new() };
        if self.height() > 0 {
            salvage.subtree(reader, self.shape.root, self.height() - 1, (None, None))?;
        }
        Ok(salvage.lost)
    }
}

struct SalvageWalk<'t, 'r> {
    walk: TupleWalk<'t>,
    on_rows: &'r mut OnRows<'r>,
    lost: Vec<LostRows>,
}

/// Rows that a subtree may hold: not below the first key, below the second one.
type Bounds = (Option<Key>, Option<Key>);

impl SalvageWalk<'_, '_> {
    fn subtree(&mut self, reader: &mut Reader, page: PageId, level: u8, bounds: Bounds) -> Result<()> {
        let (from, below) = bounds;
        let done = match level {
            0 => self.leaf(reader, page, bounds),
            _ => self.inner(reader, page, level, bounds),
        };
        match done {
            Err(why @ (StoreError::Damaged { .. } | StoreError::Read { .. })) => {
                self.lost.push(LostRows { page, from, below, why });
                Ok(())
            }
            other => other,
        }
    }

    fn inner(&mut self, reader: &mut Reader, id: PageId, level: u8, (from, below): Bounds) -> Result<()> {
        let shape = self.walk.tree.shape;
        let page = reader.page(self.walk.tree.id(), id)?;
        let node = decoded(reader, id, Inner::parse(&page, PageKind::TupleInner, shape.arity, level))?;
        let children = decoded(reader, id, node.all(&page))?;
        drop(page);
        let separators = || children.iter().skip(1).map(|child| child.separator);
        let is_within = separators().all(|s| from.is_none_or(|f| f < s) && below.is_none_or(|b| s < b));
        if !is_within || !separators().is_sorted_by(|a, b| a < b) {
            return Err(reader.damaged(id, "separators that do not ascend"));
        }
        for (i, child) in children.iter().enumerate() {
            let from = if i == 0 { from } else { Some(child.separator) };
            let below = children.get(i + 1).map_or(below, |next| Some(next.separator));
            self.subtree(reader, child.page, level - 1, (from, below))?;
        }
        Ok(())
    }

    fn leaf(&mut self, reader: &mut Reader, id: PageId, (from, below): Bounds) -> Result<()> {
        self.walk.read_leaf(reader, id)?;
        let last = self.walk.last_read();
        if below.is_some_and(|below| last >= below) {
            return Err(reader.damaged(id, "a row above the separator of the next leaf"));
        }
        let before = self.walk.last;
        self.walk.rows_ascend(from).map_err(|why| {
            // The next leaf is looked at as if this one were not there.
            self.walk.last = before;
            reader.damaged(id, why)
        })?;
        (self.on_rows)(&self.walk.columns)
    }
}
