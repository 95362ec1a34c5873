//! Checks a tuple tree as a whole: every page decodes, rows ascend across leaves, separators
//! part them, every count is exact, tails fit their blocks.

use crate::error::Result;
use crate::format::encoding::{Bad, Decode};
use crate::format::inner::{Child, Inner};
use crate::format::key::Key;
use crate::format::key::MAX_ARITY;
use crate::format::tuple::leaf::LeafCursor;
use crate::page::{PageId, PageKind};
use crate::tree::read::{decoded, walk_ahead};
use crate::tree::tuple::TupleTree;
use crate::{Reader, StoreError};

/// State of a check: all that it has seen so far.
pub(super) struct TupleWalk<'t> {
    pub(super) tree: &'t TupleTree,
    on_page: &'t mut dyn FnMut(PageId),
    cursor: LeafCursor,
    /// The last row of all.
    pub(super) last: Option<Key>,
    rows: u64,
    leaves: u64,
    pages: u64,
    changes: [u64; MAX_ARITY],
    /// Rows of the leaf that was read last.
    pub(super) columns: [Vec<u64>; MAX_ARITY],
}

impl TupleTree {
    /// Reads the whole tree and compares what it says with what it holds.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] with the first page that contradicts another one or the handle.
    pub fn check(&self, reader: &mut Reader) -> Result<()> {
        self.check_pages(reader, &mut |_| {})
    }

    /// As [`TupleTree::check`]; `on_page` is called with each page that the tree uses.
    ///
    /// # Errors
    /// As [`TupleTree::check`].
    pub fn check_pages(&self, reader: &mut Reader, on_page: &mut dyn FnMut(PageId)) -> Result<()> {
        let mut walk = TupleWalk::new(self, on_page);
        if self.height() > 0 {
            walk.node(reader, self.shape.root, self.height() - 1, None)?;
        }
        let found = [walk.rows, walk.leaves, walk.pages];
        let said = [self.rows, self.leaves, self.pages];
        if found != said {
            let why = format!("rows, leaves, pages are {found:?}, the tree's record says {said:?}");
            return Err(reader.damaged(self.shape.root, why));
        }
        let mut sum = u64::from(walk.rows > 0);
        for columns in 1..=self.arity() {
            sum += walk.changes[columns - 1];
            if sum != self.distinct(columns) {
                let said = self.distinct(columns);
                let why =
                    format!("{sum} distinct values of {columns} columns, the tree's record says {said}");
                return Err(reader.damaged(self.shape.root, why));
            }
        }
        Ok(())
    }
}

impl<'t> TupleWalk<'t> {
    pub(super) fn new(tree: &'t TupleTree, on_page: &'t mut dyn FnMut(PageId)) -> Self {
        TupleWalk {
            tree,
            on_page,
            cursor: LeafCursor::new(tree.arity()),
            last: None,
            rows: 0,
            leaves: 0,
            pages: 0,
            changes: [0; MAX_ARITY],
            columns: Default::default(),
        }
    }
}

impl TupleWalk<'_> {
    /// A node whose rows must not be below `least`; returns how many there are.
    fn node(&mut self, reader: &mut Reader, id: PageId, level: u8, least: Option<Key>) -> Result<u64> {
        self.pages += 1;
        (self.on_page)(id);
        if level == 0 {
            return self.leaf(reader, id, least);
        }
        let (shape, page) = (self.tree.shape, reader.page(self.tree.id(), id)?);
        let node = decoded(reader, id, Inner::parse(&page, PageKind::TupleInner, shape.arity, level))?;
        let children = decoded(reader, id, node.all(&page))?;
        drop(page);
        if !children.is_sorted_by(|a, b| a.separator < b.separator) {
            return Err(reader.damaged(id, "separators that do not ascend"));
        }
        let mut sum = 0;
        for (i, Child { separator, page, rows }) in children.iter().copied().enumerate() {
            walk_ahead(reader, self.tree.id(), |i| children.get(i).map(|c| c.page), i);
            let least = if i == 0 { least } else { Some(separator) };
            if least.is_some() && self.last.is_some_and(|last| Some(last) >= least) {
                return Err(
                    reader.damaged(id, format!("the separator of child {i} is not above the rows before it"))
                );
            }
            let found = self.node(reader, page, level - 1, least)?;
            if found != rows {
                return Err(reader.damaged(id, format!("child {i} has {found} rows, not {rows}")));
            }
            sum += found;
        }
        Ok(sum)
    }

    fn leaf(&mut self, reader: &mut Reader, id: PageId, least: Option<Key>) -> Result<u64> {
        self.leaves += 1;
        self.read_leaf(reader, id)?;
        self.rows_ascend(least).map_err(|why| -> StoreError { reader.damaged(id, why) })
    }

    /// Reads the rows of a leaf.
    pub(super) fn read_leaf(&mut self, reader: &mut Reader, id: PageId) -> Result<()> {
        let page = reader.page(self.tree.id(), id)?;
        let read = self.read(&page);
        decoded(reader, id, read)
    }

    /// The last row of the leaf that was read last.
    pub(super) fn last_read(&self) -> Key {
        std::array::from_fn(|c| self.columns[c].last().copied().unwrap_or(0))
    }

    /// Puts the visible rows into `columns` and checks the tail.
    fn read(&mut self, page: &[u8]) -> Decode<()> {
        let arity = self.tree.arity();
        self.cursor.reset(arity);
        self.cursor.open(page)?;
        if let Some(tail) = self.cursor.tail().copied() {
            let mut before: Option<Key> = None;
            for i in 0..tail.len {
                let row = tail.row(page, i)?;
                let position = self.cursor.lower_in_blocks(page, 0, &row[..arity])?;
                let there = self.cursor.upper_in_blocks(page, position, &row[..arity])? > position;
                if there != tail.is_dead(i)
                    || position != tail.position(i)
                    || before.is_some_and(|b| b >= row)
                {
                    return Err(Bad("a tail that contradicts its leaf"));
                }
                before = Some(row);
            }
        }
        self.columns.iter_mut().for_each(Vec::clear);
        let (mut at, len) = (0, self.cursor.len());
        while at < len {
            let to = self.cursor.stretch(at, len);
            for (c, column) in self.columns.iter_mut().enumerate().take(arity) {
                self.cursor.append(page, c, at, to, column)?;
            }
            at = to;
        }
        if len == 0 { Err(Bad("a leaf without rows")) } else { Ok(()) }
    }

    /// Takes the rows that were read for the next ones.
    pub(super) fn rows_ascend(&mut self, least: Option<Key>) -> std::result::Result<u64, &'static str> {
        let rows = self.columns[0].len();
        for i in 0..rows {
            let row: Key = std::array::from_fn(|c| self.columns[c].get(i).copied().unwrap_or(0));
            if least.is_some_and(|least| row < least) {
                return Err("a row below the separator of its leaf");
            }
            if let Some(last) = self.last {
                let Some(c) = (0..MAX_ARITY).find(|&c| row[c] != last[c]) else {
                    return Err("a row that is there twice");
                };
                if row[c] < last[c] {
                    return Err("rows that do not ascend");
                }
                self.changes[c] += 1;
            }
            self.last = Some(row);
        }
        self.rows += rows as u64;
        Ok(rows as u64)
    }
}
