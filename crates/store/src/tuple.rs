//! Tuple trees: 1 to 4 columns of u64, sorted and unique, clustered.
//!
//! This file: the handle of a tree and exact counts. Reading rows: `tuple_scan`, `tuple_lookup`, both on the level by
//! level descent of `tuple_descent`. Building: `tuple_build`. Pages: `tuple_leaf`, `tuple_inner`.

use std::path::PathBuf;

use crate::encoding::{Decode, load};
use crate::error::{Result, StoreError};
use crate::page::{PageId, PageKind, TreeId};
use crate::tree_read::decoded;
use crate::tree_spare;
use crate::tuple_descent::Shape;
use crate::tuple_inner::{Inner, Key, Top};
use crate::tuple_leaf_build::MAX_ARITY;
use crate::tuple_lookup::{LookupWay, TupleLookup};
use crate::tuple_scan::TupleScan;
use crate::{Reader, WishKind};

/// A tuple tree as of a build or a change. Cheap to clone; holds no page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TupleTree {
    pub(crate) shape: Shape,
    pub(crate) rows: u64,
    pub(crate) leaves: u64,
    pub(crate) pages: u64,
    pub(crate) distinct: [u64; MAX_ARITY],
}

/// Which rows a scan returns.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScanBounds<'a> {
    /// Values of the leading columns.
    pub prefix: &'a [u64],
    /// Least and greatest value of the column behind the prefix, both inclusive.
    pub range: Option<(u64, u64)>,
}

/// Keys of a batched lookup.
#[derive(Clone, Copy, Debug)]
pub struct Keys<'a> {
    /// Leading columns, each of `rows` values; rows ascend (duplicates allowed).
    pub cols: &'a [&'a [u64]],
    /// Number of keys.
    pub rows: usize,
    /// Least and greatest value of the column behind the keys, both inclusive, the same for all keys.
    pub range: Option<(u64, u64)>,
}

impl<'a> Keys<'a> {
    /// Keys of at least one column.
    pub fn new(cols: &'a [&'a [u64]], range: Option<(u64, u64)>) -> Keys<'a> {
        Keys { cols, rows: cols.first().map_or(1, |c| c.len()), range }
    }

    /// Least and greatest key prefix of key `k`, and how many columns count.
    #[inline]
    pub(crate) fn bounds(&self, k: usize) -> Bounds {
        let mut b = Bounds { lo: Key::default(), hi: Key::default(), len: self.cols.len() };
        for (c, column) in self.cols.iter().enumerate() {
            b.lo[c] = column[k];
            b.hi[c] = column[k];
        }
        if let Some((lo, hi)) = self.range {
            b.lo[b.len] = lo;
            b.hi[b.len] = hi;
            b.len += 1;
        }
        b
    }

    /// True when key `k` equals the one before it.
    #[inline]
    pub(crate) fn repeats(&self, k: usize) -> bool {
        k > 0 && self.cols.iter().all(|c| c[k] == c[k - 1])
    }

    /// Asserts what the caller promised: fitting columns, keys in order.
    pub(crate) fn check(&self, arity: usize) {
        let len = self.cols.len() + usize::from(self.range.is_some());
        assert!(len <= arity, "{len} key columns for a tree of {arity}");
        assert!(self.cols.iter().all(|c| c.len() == self.rows), "key columns of one length");
        let ordered = |k: usize| {
            let differs = self.cols.iter().find(|c| c[k] != c[k - 1]);
            differs.is_none_or(|c| c[k] > c[k - 1])
        };
        assert!((1..self.rows).all(ordered), "keys of a lookup are sorted");
    }
}

/// Rows between two key prefixes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub lo: Key,
    pub hi: Key,
    pub len: usize,
}

impl Bounds {
    #[inline]
    pub(crate) fn lo(&self) -> &[u64] {
        &self.lo[..self.len]
    }

    #[inline]
    pub(crate) fn hi(&self) -> &[u64] {
        &self.hi[..self.len]
    }
}

/// Rows of a scan, column by column.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    /// One vector per column of the tree; those not wanted stay empty.
    pub cols: Vec<Vec<u64>>,
    /// Bit per column: which ones to fill.
    pub wanted: u8,
    /// Rows appended so far, also when no column is wanted.
    pub rows: usize,
}

impl Columns {
    /// All `arity` columns are wanted.
    pub fn new(arity: usize) -> Columns {
        Columns::of(arity, u8::MAX)
    }

    /// Only the columns whose bit is set in `wanted` are filled.
    pub fn of(arity: usize, wanted: u8) -> Columns {
        Columns { cols: vec![Vec::new(); arity], wanted, rows: 0 }
    }

    /// Empties the vectors, keeping their memory.
    pub fn clear(&mut self) {
        self.cols.iter_mut().for_each(Vec::clear);
        self.rows = 0;
    }
}

/// Rows found by a lookup.
#[derive(Clone, Debug, Default)]
pub struct Matches {
    /// For each row the index of its key.
    pub key: Vec<u32>,
    /// One vector per column behind the key columns; those not wanted stay empty.
    pub cols: Vec<Vec<u64>>,
    /// Bit per vector of `cols`: which ones to fill.
    pub wanted: u8,
}

impl Matches {
    /// For keys of `key_columns` columns in a tree of `arity`; all other columns are wanted.
    pub fn new(arity: usize, key_columns: usize) -> Matches {
        Matches::of(arity, key_columns, u8::MAX)
    }

    /// As [`Matches::new`], but only the columns whose bit is set are filled: bit 0 is the first column behind the key.
    pub fn of(arity: usize, key_columns: usize, wanted: u8) -> Matches {
        Matches { key: Vec::new(), cols: vec![Vec::new(); arity - key_columns], wanted }
    }

    /// Empties the vectors, keeping their memory.
    pub fn clear(&mut self) {
        self.key.clear();
        self.cols.iter_mut().for_each(Vec::clear);
    }
}

/// Version of the catalog record.
const RECORD: u8 = 1;
const RECORD_LEN: usize = 1 + 1 + 4 + 8 + 1 + 3 * 8 + 8 * MAX_ARITY;

impl TupleTree {
    pub(crate) fn new(
        id: TreeId,
        arity: usize,
        top: &Top,
        rows: u64,
        leaves: u64,
        distinct: [u64; MAX_ARITY],
    ) -> Self {
        let shape = Shape { id, root: top.root, height: top.height, arity, inner: PageKind::TupleInner };
        TupleTree { shape, rows, leaves, pages: leaves + top.inner, distinct }
    }

    pub(crate) fn empty(id: TreeId, arity: usize) -> Self {
        let top = Top { root: PageId(0), height: 0, inner: 0 };
        TupleTree::new(id, arity, &top, 0, 0, [0; MAX_ARITY])
    }

    /// The catalog record of the tree.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![RECORD, self.shape.arity as u8];
        out.extend(self.shape.id.0.to_le_bytes());
        out.extend(self.shape.root.0.to_le_bytes());
        out.push(self.shape.height);
        for v in [self.rows, self.leaves, self.pages].iter().chain(&self.distinct) {
            out.extend(v.to_le_bytes());
        }
        out
    }

    /// Reads a catalog record written by [`TupleTree::to_bytes`].
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when it is not one.
    pub fn from_bytes(bytes: &[u8]) -> Result<TupleTree> {
        let wrong = || StoreError::Corrupt {
            path: PathBuf::from("catalog"),
            why: "the record of a tuple tree cannot be read".into(),
        };
        if bytes.len() != RECORD_LEN || bytes[0] != RECORD || !(1..=MAX_ARITY).contains(&(bytes[1] as usize))
        {
            return Err(wrong());
        }
        let read = |at: usize| load(bytes, at, 8).map_err(|_| wrong());
        let mut distinct = [0; MAX_ARITY];
        for (i, d) in distinct.iter_mut().enumerate() {
            *d = read(39 + 8 * i)?;
        }
        let shape = Shape {
            arity: bytes[1] as usize,
            id: TreeId(load(bytes, 2, 4).map_err(|_| wrong())? as u32),
            root: PageId(read(6)?),
            height: bytes[14],
            inner: PageKind::TupleInner,
        };
        Ok(TupleTree { shape, rows: read(15)?, leaves: read(23)?, pages: read(31)?, distinct })
    }

    /// The tree's id in the store.
    pub fn id(&self) -> TreeId {
        self.shape.id
    }

    /// Number of columns.
    pub fn arity(&self) -> usize {
        self.shape.arity
    }

    /// Number of rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Number of leaf pages.
    pub fn leaves(&self) -> u64 {
        self.leaves
    }

    /// Number of pages.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// Levels, leaves included; 0 when empty.
    pub fn height(&self) -> u8 {
        self.shape.height
    }

    /// Distinct values of the first `columns` (1 to arity) columns together; exact.
    pub fn distinct(&self, columns: usize) -> u64 {
        self.distinct[columns - 1]
    }

    /// Rows whose leading columns are not below `lo` and not above `hi`; exact, reads two paths from the root.
    pub fn count(&self, reader: &mut Reader, lo: &[u64], hi: &[u64]) -> Result<u64> {
        assert!(
            lo.len() <= self.shape.arity && hi.len() <= self.shape.arity,
            "more key columns than the tree has"
        );
        if self.shape.height == 0 {
            return Ok(0);
        }
        if lo.is_empty() && hi.is_empty() {
            return Ok(self.rows);
        }
        reader.meters.rnd += 1;
        let (mut first, mut last) = (self.shape.root, self.shape.root);
        let (mut below, mut upto) = (0, 0);
        for level in (1..self.shape.height).rev() {
            let (page, rows) = self.step(reader, first, level, |n, page| n.lower(page, lo, 0))?;
            below = u64::wrapping_add(below, rows);
            first = page;
            let (page, rows) = self.step(reader, last, level, |n, page| n.upper(page, hi, 0))?;
            upto = u64::wrapping_add(upto, rows);
            last = page;
            if first.0 < last.0 && !reader.resident(self.shape.id) {
                reader.wish(self.shape.id, &[first, last], WishKind::Planned);
            }
        }
        let mut spare = tree_spare::take(self.shape.arity);
        let cursor = &mut spare.cursor;
        let page = reader.page(self.shape.id, first)?;
        let rank = decoded(reader, first, cursor.open(&page).and_then(|()| cursor.lower(&page, 0, lo)))?;
        below = below.wrapping_add(rank as u64);
        let rank = if first != last {
            drop(page);
            let page = reader.page(self.shape.id, last)?;
            decoded(reader, last, cursor.open(&page).and_then(|()| cursor.upper(&page, 0, hi)))?
        } else {
            decoded(reader, last, cursor.upper(&page, 0, hi))?
        };
        upto = upto.wrapping_add(rank as u64);
        tree_spare::give(spare);
        if first == last {
            return Ok(upto.saturating_sub(below));
        }
        self.rows_between_leaves(reader, lo, hi, upto.wrapping_sub(below))
    }

    /// What the inner nodes say of the rows of a range that ends in another leaf than it begins in, unless it cannot be.
    fn rows_between_leaves(&self, reader: &mut Reader, lo: &[u64], hi: &[u64], rows: u64) -> Result<u64> {
        let len = lo.len().min(hi.len());
        if lo[..len] > hi[..len] {
            return Ok(0);
        }
        // None where some are: whoever drops what nothing belongs to would drop them.
        if rows > self.rows || (rows == 0 && self.has_row_between(reader, lo, hi)?) {
            let why = "the row counts of the inner nodes contradict the leaves";
            return Err(reader.damaged(self.shape.root, why));
        }
        Ok(rows)
    }

    /// True when there is a row whose leading columns are not below `lo` and not above `hi`: looks at the row, counts of inner nodes have no say.
    pub fn has_row_between(&self, reader: &mut Reader, lo: &[u64], hi: &[u64]) -> Result<bool> {
        let len = lo.len().max(hi.len());
        let (mut least, mut most) = (Key::default(), [u64::MAX; MAX_ARITY]);
        least[..lo.len()].copy_from_slice(lo);
        most[..hi.len()].copy_from_slice(hi);
        if self.shape.height == 0 || least[..len] > most[..len] {
            return Ok(false);
        }
        let mut scan = TupleScan::between(self, Bounds { lo: least, hi: most, len });
        scan.next(reader, &mut Columns::of(self.shape.arity, 0), 1)
    }

    /// One level of a count: the child to go to and the rows before it.
    fn step(
        &self,
        reader: &mut Reader,
        at: PageId,
        level: u8,
        choose: impl Fn(&Inner, &[u8]) -> Decode<usize>,
    ) -> Result<(PageId, u64)> {
        let page = reader.page(self.shape.id, at)?;
        let found = Inner::parse(&page, PageKind::TupleInner, self.shape.arity, level).and_then(|node| {
            let i = choose(&node, &page)?;
            Ok((node.child(&page, i)?, node.rows_before(&page, i)?))
        });
        decoded(reader, at, found)
    }

    /// Rows of a range, in order. The scan keeps its own copy of this handle, so that an operator may own it.
    pub fn scan(&self, bounds: ScanBounds<'_>) -> TupleScan {
        TupleScan::new(self, bounds)
    }

    /// Rows of many keys, in key order.
    pub fn lookup<'k>(&self, keys: Keys<'k>) -> TupleLookup<'k> {
        TupleLookup::new(self, keys)
    }

    /// The same for an operator that owns its keys and hands them in again at each call.
    pub fn lookup_way(&self, keys: &Keys<'_>) -> LookupWay {
        LookupWay::new(self, keys)
    }
}
