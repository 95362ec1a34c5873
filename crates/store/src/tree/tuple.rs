//! Tuple trees: 1 to 4 columns of u64, sorted and unique, clustered.
//!
//! This file: the handle of a tree and exact counts. Reading rows: `tree::tuple::scan`,
//! `tree::tuple::lookup` and `tree::tuple::merge`, all on the level by level descent of
//! `tree::descent`. Building: `tree::tuple::build`. Pages: `format::tuple::leaf`,
//! `format::inner`.

pub(crate) mod apply;
pub(crate) mod build;
pub(crate) mod changes;
pub(crate) mod check;
pub(crate) mod distinct;
pub(crate) mod leaf_change;
pub(crate) mod leaf_walk;
pub(crate) mod lookup;
pub(crate) mod merge;
pub(crate) mod nth;
pub(crate) mod pieces;
pub(crate) mod relocate;
pub(crate) mod salvage;
pub(crate) mod scan;

use std::path::PathBuf;

use crate::error::{Result, StoreError};
use crate::format::encoding::{Decode, load};
use crate::format::inner::Inner;
use crate::format::key::Key;
use crate::format::key::MAX_ARITY;
use crate::page::{PageId, PageKind, TreeId};
use crate::tree::descent::Shape;
use crate::tree::levels::Top;
use crate::tree::read::decoded;
use crate::tree::rows::{Bounds, Columns, Keys, MergeKeys, ScanBounds};
use crate::tree::spare;
use crate::tree::tuple::lookup::{LookupWay, TupleLookup};
use crate::tree::tuple::merge::MergeWay;
use crate::tree::tuple::scan::TupleScan;
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

    /// Rows whose leading columns are not below `lo` and not above `hi`; exact, reads two paths
    /// from the root.
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
        let mut spare = spare::take(self.shape.arity);
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
        spare::give(spare);
        if first == last {
            return Ok(upto.saturating_sub(below));
        }
        self.rows_between_leaves(reader, lo, hi, upto.wrapping_sub(below))
    }

    /// Checks `rows`, the count that the inner nodes give for a range that ends in another leaf
    /// than it begins in: an impossible count is damage.
    fn rows_between_leaves(&self, reader: &mut Reader, lo: &[u64], hi: &[u64], rows: u64) -> Result<u64> {
        let len = lo.len().min(hi.len());
        if lo[..len] > hi[..len] {
            return Ok(0);
        }
        // A false zero would let a caller delete live rows.
        if rows > self.rows || (rows == 0 && self.has_row_between(reader, lo, hi)?) {
            let why = "the row counts of the inner nodes contradict the leaves";
            return Err(reader.damaged(self.shape.root, why));
        }
        Ok(rows)
    }

    /// True when there is a row whose leading columns are not below `lo` and not above `hi`. It
    /// looks for the row itself and does not rely on the counts of inner nodes.
    pub fn has_row_between(&self, reader: &mut Reader, lo: &[u64], hi: &[u64]) -> Result<bool> {
        let len = lo.len().max(hi.len());
        let (mut least, mut most) = (Key::default(), [u64::MAX; MAX_ARITY]);
        least[..lo.len()].copy_from_slice(lo);
        most[..hi.len()].copy_from_slice(hi);
        if self.shape.height == 0 || least[..len] > most[..len] {
            return Ok(false);
        }
        let mut scan = TupleScan::between(self, Bounds { lo: least, hi: most, len });
        scan.next(reader, &mut Columns::with_wanted(self.shape.arity, 0), 1)
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

    /// Rows of a range, in order. The scan keeps its own copy of this handle, so that an
    /// operator may own it.
    pub fn scan(&self, bounds: ScanBounds<'_>) -> TupleScan {
        TupleScan::new(self, bounds)
    }

    /// Rows of many keys, in key order.
    pub fn lookup<'k>(&self, keys: Keys<'k>) -> TupleLookup<'k> {
        TupleLookup::new(self, keys)
    }

    /// As [`TupleTree::lookup`], for an operator that owns its keys and hands them in at each call.
    pub fn lookup_way(&self, keys: &Keys<'_>) -> LookupWay {
        LookupWay::new(self, keys)
    }

    /// Rows of many keys that differ in one column, in key order: a scan from the first key to
    /// the last that unpacks only what it must to find theirs. Better than a lookup where the
    /// keys lie dense.
    pub fn merge_way(&self, keys: &MergeKeys<'_>) -> MergeWay {
        MergeWay::new(self, keys)
    }
}
