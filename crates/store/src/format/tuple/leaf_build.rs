//! Fills one leaf of a tuple tree, block by block, to the last byte that fits.
//!
//! Body of a leaf, from byte 32 of the page (header count = rows; blocks = rows / 128 rounded up):
//!
//! ```text
//! 32  arity u8 | columns with a dictionary u8 (bit per column) | 0 u16 | tail rows u16 | tail offset u16
//! 40  restart table: arity columns, one row per block: the block's first row (see encoding_table)
//!     block offsets: blocks × u16, from the start of the page
//!     dictionaries, one per set bit: entries u8 | width u8 | base u64 | entries × width
//!     blocks: one segment per column (see encoding_column)
//! ```
//!
//! Invariants: every block but the last has 128 rows, so row r lies in block r / 128. What is
//! built here has no tail (see `format::tuple::tail`).

use crate::format::encoding::bits::BLOCK;
use crate::format::encoding::column::encode;
use crate::format::encoding::dict::PageDict;
use crate::format::encoding::table::{Span, Table, table_len, write_table};
use crate::format::encoding::{BODY, store};
use crate::format::key::MAX_ARITY;
use crate::page::{BODY_BYTES, PageBuf, PageKind};

/// Bytes of the fixed fields of a leaf.
pub(crate) const LEAF_HEAD: usize = 8;

/// Rows a leaf may hold: its count is a u16.
const MAX_ROWS: usize = u16::MAX as usize / BLOCK * BLOCK;

/// Bytes of the head of a page dictionary.
pub(crate) const DICT_HEAD: usize = 10;

/// A leaf under construction; reused from leaf to leaf.
pub(crate) struct LeafBuilder {
    arity: usize,
    /// Bytes of the body that may be filled.
    limit: usize,
    rows: usize,
    restarts: [Vec<u64>; MAX_ARITY],
    spans: [Span; MAX_ARITY],
    dicts: [PageDict; MAX_ARITY],
    ends: Vec<usize>,
    data: Vec<u8>,
    scratch: Vec<u8>,
}

impl LeafBuilder {
    pub(crate) fn new(arity: usize) -> LeafBuilder {
        assert!((1..=MAX_ARITY).contains(&arity), "a tuple tree has 1 to {MAX_ARITY} columns");
        LeafBuilder {
            arity,
            limit: BODY_BYTES,
            rows: 0,
            restarts: Default::default(),
            spans: [Span::EMPTY; MAX_ARITY],
            dicts: std::array::from_fn(|_| PageDict::new()),
            ends: Vec::new(),
            data: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// From now on at most `limit` bytes of a body are filled.
    pub(crate) fn set_limit(&mut self, limit: usize) {
        assert!(limit <= BODY_BYTES, "a body has {BODY_BYTES} bytes");
        self.limit = limit;
    }

    /// Rows in the leaf so far.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes of the body with the blocks taken so far.
    fn len(&self) -> usize {
        let dicts: usize = self.dicts.iter().map(dict_len).sum();
        LEAF_HEAD
            + table_len(&self.spans[..self.arity], self.ends.len())
            + 2 * self.ends.len()
            + dicts
            + self.data.len()
    }

    /// Takes as many of the first 128 rows as fit, and says how many. Less than 128 means that the
    /// leaf is full, or that no more rows were given: then it must be finished. Never 0 on an empty
    /// leaf.
    pub(crate) fn add(&mut self, columns: &[&[u64]]) -> usize {
        let given = columns[0].len().min(BLOCK);
        assert!(self.rows.is_multiple_of(BLOCK), "only the last block is short");
        assert_eq!(columns.len(), self.arity, "a row has as many columns as its leaf");
        if self.rows + given > MAX_ROWS {
            return 0;
        }
        let mut take = given;
        let before = self.len();
        for _ in 0..4 {
            let need = match self.try_add(columns, take) {
                Ok(()) => return take,
                Err(need) => need,
            };
            // A part of the block: sizes grow about linearly with the rows, in lanes of four.
            let free = self.limit - before;
            let fits = take * free / need.max(1);
            take = (fits.min(take - 1) / 4) * 4;
            if take < 16 {
                break;
            }
        }
        0
    }

    /// Takes a block of `n` rows, or says how many bytes it would have added.
    fn try_add(&mut self, columns: &[&[u64]], n: usize) -> Result<(), usize> {
        let before = (self.len(), self.data.len(), self.spans);
        let known: [usize; MAX_ARITY] = std::array::from_fn(|c| self.dicts[c].values().len());
        for (c, column) in columns.iter().enumerate() {
            self.spans[c] = self.spans[c].with(column[0]);
            encode(&column[..n], &mut self.dicts[c], &mut self.data);
        }
        assert!(columns.iter().all(|c| c.len() >= n), "columns of one length");
        self.ends.push(self.data.len());
        let len = self.len();
        if len <= self.limit {
            columns.iter().enumerate().for_each(|(c, column)| self.restarts[c].push(column[0]));
            self.rows += n;
            return Ok(());
        }
        self.ends.pop();
        self.data.truncate(before.1);
        self.spans = before.2;
        self.dicts.iter_mut().zip(known).for_each(|(d, k)| d.truncate(k));
        Err(len - before.0)
    }

    /// Writes the leaf into a page and begins a new one.
    pub(crate) fn finish(&mut self, page: &mut PageBuf) {
        let out = &mut self.scratch;
        out.clear();
        let used = |d: &PageDict| !d.values().is_empty();
        let mask = (0..self.arity).filter(|&c| used(&self.dicts[c])).fold(0, |m, c| m | 1 << c);
        out.extend([self.arity as u8, mask, 0, 0, 0, 0, 0, 0]);
        let restarts: Vec<&[u64]> = self.restarts[..self.arity].iter().map(|r| &r[..]).collect();
        write_table(&restarts, out);
        let dicts: usize = self.dicts.iter().map(dict_len).sum();
        let data_at = BODY + out.len() + 2 * self.ends.len() + dicts;
        let mut start = 0;
        for &end in &self.ends {
            store(out, (data_at + start) as u64, 2);
            start = end;
        }
        for dict in self.dicts.iter().filter(|d| used(d)) {
            out.extend([dict.values().len() as u8, dict.width() as u8]);
            store(out, dict.base(), 8);
            dict.values().iter().for_each(|v| store(out, v - dict.base(), dict.width()));
        }
        out.extend_from_slice(&self.data);
        assert!(self.rows > 0, "a leaf has rows");
        assert_eq!(self.ends.len(), self.rows.div_ceil(BLOCK), "row r lies in block r / {BLOCK}");
        assert!(out.len() <= self.limit, "a leaf stays within its limit");
        page.clear();
        page.body_mut()[..out.len()].copy_from_slice(out);
        page.set_header(PageKind::TupleLeaf, 0, self.rows as u16);
        debug_assert!(self.has_restarts(page), "restart keys are read as they were written");
        self.clear();
    }

    /// True when a page has the restart keys of the blocks taken so far.
    fn has_restarts(&self, page: &PageBuf) -> bool {
        let table = Table::parse(page, BODY + LEAF_HEAD, self.arity, self.ends.len());
        table.is_ok_and(|table| {
            let is_found = |c: usize, (b, v): (usize, &u64)| table.value(page, c, b) == Ok(*v);
            (0..self.arity).all(|c| self.restarts[c].iter().enumerate().all(|row| is_found(c, row)))
        })
    }

    /// Forgets the rows taken so far.
    pub(crate) fn clear(&mut self) {
        self.rows = 0;
        self.restarts.iter_mut().for_each(Vec::clear);
        self.spans = [Span::EMPTY; MAX_ARITY];
        self.dicts.iter_mut().filter(|d| !d.values().is_empty()).for_each(PageDict::clear);
        self.ends.clear();
        self.data.clear();
    }
}

/// Bytes a dictionary takes in the page; none when it is empty.
fn dict_len(dict: &PageDict) -> usize {
    if dict.values().is_empty() { 0 } else { DICT_HEAD + dict.values().len() * dict.width() }
}
