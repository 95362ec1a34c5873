//! Builds a tuple tree bottom-up from sorted rows: leaves as they fill, the levels above them
//! at the end.

use crate::TreeWriter;
use crate::error::Result;
use crate::format::encoding::bits::BLOCK;
use crate::format::inner::Child;
use crate::format::key::Key;
use crate::format::key::MAX_ARITY;
use crate::format::tuple::leaf_build::LeafBuilder;
use crate::format::tuple::tail::body_with_room;
use crate::page::{PageBuf, PageKind};
use crate::tree::levels::write_levels;
use crate::tree::tuple::TupleTree;

/// Rows of a tail for which a leaf keeps room: changes that fall into it soon after cost bytes
/// of the journal, not pages.
const SPARE_ROWS: usize = 8;

/// Rows buffered before leaves are filled.
const BUFFER: usize = 16 * BLOCK;

/// Bulk build of a [`TupleTree`] from rows in strictly ascending order.
pub struct TupleTreeBuilder {
    writer: TreeWriter,
    arity: usize,
    leaf: LeafBuilder,
    page: PageBuf,
    /// Rows not yet in a leaf.
    buffer: [Vec<u64>; MAX_ARITY],
    last_pushed: Option<Key>,
    /// Last row of the previous leaf and first row of the current one.
    leaf_before: Option<Key>,
    leaf_first: Key,
    leaf_last: Key,
    children: Vec<Child>,
    rows: u64,
    /// Rows whose first difference from the row before is in column c.
    changes: [u64; MAX_ARITY],
}

impl TupleTreeBuilder {
    /// A tree of `arity` (1 to 4) columns, written by `writer`.
    pub fn new(writer: TreeWriter, arity: usize) -> Self {
        let mut leaf = LeafBuilder::new(arity);
        leaf.set_limit(body_with_room(arity, SPARE_ROWS));
        TupleTreeBuilder {
            writer,
            arity,
            leaf,
            page: PageBuf::new(),
            buffer: Default::default(),
            last_pushed: None,
            leaf_before: None,
            leaf_first: Key::default(),
            leaf_last: Key::default(),
            children: Vec::new(),
            rows: 0,
            changes: [0; MAX_ARITY],
        }
    }

    /// Adds one row, which must be above the last one.
    pub fn push(&mut self, row: &[u64]) -> Result<()> {
        assert_eq!(row.len(), self.arity, "a row has as many columns as its tree");
        self.note(row.try_into().unwrap_or_else(|_| padded(row)));
        self.buffer.iter_mut().zip(row).for_each(|(column, &v)| column.push(v));
        if self.buffer[0].len() >= BUFFER { self.fill(BLOCK) } else { Ok(()) }
    }

    /// Adds rows given as columns of equal length; they must ascend strictly and be above the
    /// last one.
    pub fn push_columns(&mut self, columns: &[&[u64]]) -> Result<()> {
        assert_eq!(columns.len(), self.arity, "a row has as many columns as its tree");
        let n = columns[0].len();
        assert!(columns.iter().all(|c| c.len() == n), "columns of one length");
        let mut done = 0;
        while done < n {
            let part = done..n.min(done + BUFFER);
            for row in part.clone() {
                let mut key = Key::default();
                key.iter_mut().zip(columns).for_each(|(k, c)| *k = c[row]);
                self.note(key);
            }
            self.buffer.iter_mut().zip(columns).for_each(|(b, c)| b.extend_from_slice(&c[part.clone()]));
            done = part.end;
            self.fill(BLOCK)?;
        }
        Ok(())
    }

    /// Writes what is left and the levels above the leaves.
    pub fn finish(mut self) -> Result<TupleTree> {
        self.fill(1)?;
        self.end_leaf()?;
        assert!(self.buffer[0].is_empty(), "no row is left behind");
        assert_eq!(self.children.iter().map(|c| c.rows).sum::<u64>(), self.rows, "each row is in a leaf");
        let id = self.writer.id();
        if self.children.is_empty() {
            self.writer.finish()?;
            return Ok(TupleTree::empty(id, self.arity));
        }
        let leaves = self.children.len() as u64;
        let top = write_levels(&mut self.writer, PageKind::TupleInner, self.arity, self.children)?;
        self.writer.finish()?;
        let mut distinct = [0; MAX_ARITY];
        let mut sum = 1;
        for (d, c) in distinct.iter_mut().zip(self.changes) {
            sum += c;
            *d = sum;
        }
        assert_eq!(distinct[self.arity - 1], self.rows, "rows of a tuple tree are unique");
        Ok(TupleTree::new(id, self.arity, &top, self.rows, leaves, distinct))
    }

    /// Checks the order and keeps the statistics.
    #[inline]
    fn note(&mut self, row: Key) {
        self.rows += 1;
        if let Some(last) = &self.last_pushed {
            let differs = (0..self.arity).find(|&c| row[c] != last[c]);
            let c = differs.expect("rows of a tuple tree are unique");
            assert!(row[c] > last[c], "rows of a tuple tree are pushed in ascending order");
            self.changes[c] += 1;
        }
        self.last_pushed = Some(row);
    }

    /// Moves buffered rows into leaves until less than `least` are left.
    fn fill(&mut self, least: usize) -> Result<()> {
        let mut from = 0;
        let len = self.buffer[0].len();
        while len - from >= least {
            let rest: [&[u64]; MAX_ARITY] =
                std::array::from_fn(|c| self.buffer[c].get(from..).unwrap_or(&[]));
            let starts = self.leaf.rows() == 0;
            let taken = self.leaf.add(&rest[..self.arity]);
            if taken > 0 {
                let row = |at: usize| std::array::from_fn(|c| rest[c].get(at).copied().unwrap_or(0));
                if starts {
                    self.leaf_first = row(0);
                }
                self.leaf_last = row(taken - 1);
                from += taken;
            }
            if taken < BLOCK {
                self.end_leaf()?;
            }
        }
        self.buffer[..self.arity].iter_mut().for_each(|column| {
            column.drain(..from);
        });
        Ok(())
    }

    fn end_leaf(&mut self) -> Result<()> {
        let rows = self.leaf.rows() as u64;
        if rows == 0 {
            return Ok(());
        }
        self.leaf.finish(&mut self.page);
        let page = self.writer.append(&mut self.page)?;
        let separator = separator(self.leaf_before.as_ref(), &self.leaf_first, self.arity);
        assert!(self.leaf_before.is_none_or(|before| before < separator), "a separator parts its leaves");
        assert!(separator <= self.leaf_first, "a separator is not above its leaf");
        self.children.push(Child { separator, page, rows });
        self.leaf_before = Some(self.leaf_last);
        Ok(())
    }
}

fn padded(row: &[u64]) -> Key {
    let mut key = Key::default();
    key[..row.len()].copy_from_slice(row);
    key
}

/// The shortest key above `before` and not above `first`.
pub(crate) fn separator(before: Option<&Key>, first: &Key, arity: usize) -> Key {
    let Some(before) = before else { return *first };
    let mut key = Key::default();
    for c in 0..arity {
        key[c] = first[c];
        if first[c] != before[c] {
            break;
        }
    }
    key
}
