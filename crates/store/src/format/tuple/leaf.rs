//! Finds rows in a leaf of a tuple tree and unpacks only what is asked for.
//!
//! A probe: (1) binary search on the restart keys; (2) in that block, column by column, the
//! rows that equal the key, unpacking a column only when it must be; (3) single values of the
//! other columns where the encoding allows. The cursor remembers block and unpacked columns, so
//! the next key of a sorted batch continues where the last one ended. Layout: see
//! `format::tuple::leaf_build`.
//!
//! Positions are *visible* ones: when the leaf has a tail (see `format::tuple::tail`), what is
//! found in the blocks is shifted by the rows of the tail before it. A leaf without a tail pays
//! one comparison for this.

pub(crate) mod merge;

use crate::format::encoding::bits::BLOCK;
use crate::format::encoding::column::{Column, DictRef, Segment};
use crate::format::encoding::table::Table;
use crate::format::encoding::touch;
use crate::format::encoding::{Bad, Decode, load, load_u8, load_u16};
use crate::format::key::MAX_ARITY;
use crate::format::tuple::leaf_build::DICT_HEAD;
use crate::format::tuple::tail::{Spot, Tail};
use crate::page::{PageKind, header};
use std::cmp::Ordering;

/// Up to this many rows are fetched one by one before a column is unpacked.
const SINGLE: usize = 8;

/// A binary search over this many rows fetches values one by one.
const SEARCH_SINGLE: usize = 16;

/// Most bytes of a block that are loaded when it is entered.
const MOST_TOUCHED: usize = 640;

/// No block.
const NONE: usize = usize::MAX;

/// A leaf found in a page.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Leaf {
    /// Rows in the blocks.
    pub rows: usize,
    /// True when there is a tail.
    pub tailed: bool,
    arity: usize,
    table: Table,
    offsets: usize,
    dicts: [DictRef; MAX_ARITY],
}

impl Leaf {
    /// Reads the head of the leaf in `page` and checks that its tables lie inside.
    pub(crate) fn parse(page: &[u8], arity: usize) -> Decode<Leaf> {
        let head = header(page);
        if head.kind() != PageKind::TupleLeaf as u8 {
            return Err(Bad("not a leaf of a tuple tree"));
        }
        let rows = head.count() as usize;
        let fixed = load(page, 32, 8)?;
        if fixed & 0xff != arity as u64 {
            return Err(Bad("a leaf with another number of columns than its tree"));
        }
        let tailed = fixed >> 32 != 0;
        if rows == 0 {
            return Err(Bad("a leaf without rows"));
        }
        let blocks = rows.div_ceil(BLOCK);
        let table = Table::parse(page, 40, arity, blocks)?;
        let mut leaf = Leaf { rows, tailed, arity, table, offsets: table.end, dicts: Default::default() };
        let mut next = table.end + 2 * blocks;
        let mask = (fixed >> 8) as u8;
        if mask != 0 {
            for c in (0..arity).filter(|c| mask >> c & 1 == 1) {
                let (entries, width) = (load_u8(page, next)?, load_u8(page, next + 1)?);
                if width > 8 {
                    return Err(Bad("a dictionary entry wider than 8 bytes"));
                }
                leaf.dicts[c] =
                    DictRef { base: load(page, next + 2, 8)?, at: next + DICT_HEAD, width, entries };
                next += DICT_HEAD + entries * width;
            }
        }
        if next > page.len() { Err(Bad("the tables of a leaf lie outside the page")) } else { Ok(leaf) }
    }

    fn blocks(&self) -> usize {
        self.table.rows
    }

    /// First and last byte of a block; the last block is taken to be of common size.
    #[inline]
    fn block_bytes(&self, page: &[u8], block: usize) -> Decode<(usize, usize)> {
        let from = load_u16(page, self.offsets + 2 * block)?;
        let to = match block + 1 == self.blocks() {
            true => from + MOST_TOUCHED,
            false => load_u16(page, self.offsets + 2 * block + 2)?,
        };
        Ok((from, to.min(from + MOST_TOUCHED)))
    }

    /// Starts to load the block in which the rows of `key` begin.
    #[inline]
    pub(crate) fn touch_block_of(&self, page: &[u8], key: &[u64]) -> Decode<()> {
        let block = self.table.lower_from(page, key, 0)?.saturating_sub(1);
        let (from, to) = self.block_bytes(page, block)?;
        touch(page, from, to);
        Ok(())
    }
}

/// A position in a leaf with what is known of its block. Every call takes the page the cursor
/// was opened on.
#[derive(Default)]
pub(crate) struct LeafCursor {
    leaf: Leaf,
    block: usize,
    /// First byte of the block.
    begins: usize,
    rows: usize,
    parsed: usize,
    segments: [Segment; MAX_ARITY],
    unpacked: [bool; MAX_ARITY],
    fetched: [u16; MAX_ARITY],
    columns: Vec<Column>,
    /// The tail, if the leaf has one. Apart, so that cursors stay small.
    tail: Box<Tail>,
    /// A visible position and what is there.
    spot: (usize, Spot),
}

impl LeafCursor {
    /// A cursor for leaves of `arity` columns, on no leaf yet.
    pub(crate) fn new(arity: usize) -> LeafCursor {
        let mut cursor = LeafCursor::default();
        cursor.reset(arity);
        cursor
    }

    /// Begins anew, for leaves of `arity` columns; only memory is kept.
    pub(crate) fn reset(&mut self, arity: usize) {
        self.leaf = Leaf { arity, ..Leaf::default() };
        self.block = NONE;
    }

    /// Goes to another leaf.
    pub(crate) fn open(&mut self, page: &[u8]) -> Decode<()> {
        self.block = NONE;
        self.leaf = Leaf::parse(page, self.leaf.arity)?;
        if self.leaf.tailed {
            *self.tail = Tail::parse(page, self.leaf.arity, self.leaf.rows)?;
            self.spot = (NONE, Spot::Tail(0));
        }
        Ok(())
    }

    /// Rows of the leaf that can be seen.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        if self.leaf.tailed { self.shifted(self.leaf.rows, self.tail.len) } else { self.leaf.rows }
    }

    /// Rows of the blocks.
    pub(crate) fn block_rows(&self) -> usize {
        self.leaf.rows
    }

    /// The tail, if there is one.
    pub(crate) fn tail(&self) -> Option<&Tail> {
        self.leaf.tailed.then_some(&self.tail)
    }

    /// Visible position of a position in the blocks, given the rows of the tail before it.
    fn shifted(&self, position: usize, before: usize) -> usize {
        (position as isize + self.tail.shift(before)).max(0) as usize
    }

    /// First byte behind the blocks.
    pub(crate) fn blocks_end(&mut self, page: &[u8]) -> Decode<usize> {
        self.enter(page, self.leaf.blocks() - 1)?;
        let last = self.leaf.arity - 1;
        self.parse_to(page, last)?;
        Ok(self.segments[last].end)
    }

    /// The block the last search or fetch was in; `usize::MAX` right after [`LeafCursor::open`].
    pub(crate) fn block(&self) -> usize {
        self.block
    }

    #[inline]
    fn enter(&mut self, page: &[u8], block: usize) -> Decode<()> {
        if block != self.block {
            // All lines of the block at once: it is about 300 bytes, and several columns will
            // be read.
            let (from, to) = self.leaf.block_bytes(page, block)?;
            touch(page, from, to);
            self.begins = from;
            self.block = block;
            self.rows = BLOCK.min(self.leaf.rows - block * BLOCK);
            self.parsed = 0;
            self.unpacked = [false; MAX_ARITY];
            self.fetched = [0; MAX_ARITY];
        }
        Ok(())
    }

    /// Makes the segments of columns `0 ..= column` known.
    #[inline]
    fn parse_to(&mut self, page: &[u8], column: usize) -> Decode<()> {
        while self.parsed <= column {
            let at = match self.parsed {
                0 => self.begins,
                done => self.segments[done - 1].end,
            };
            let first = self.leaf.table.value(page, self.parsed, self.block)?;
            self.segments[self.parsed] = Segment::parse(page, at, first, self.rows)?;
            self.parsed += 1;
        }
        Ok(())
    }

    fn unpack(&mut self, page: &[u8], column: usize) -> Decode<()> {
        if !self.unpacked[column] {
            if self.columns.len() <= column {
                self.columns.resize_with(column + 1, Column::new);
            }
            let (dict, out) = (&self.leaf.dicts[column], &mut self.columns[column]);
            self.segments[column].unpack(page, dict, self.rows, out)?;
            self.unpacked[column] = true;
        }
        Ok(())
    }

    /// First row of `from .. to` of the block whose column is not below `key`; the column does
    /// not decrease there.
    #[inline]
    fn column_lower(
        &mut self,
        page: &[u8],
        column: usize,
        from: usize,
        to: usize,
        key: u64,
    ) -> Decode<usize> {
        self.parse_to(page, column)?;
        let segment = self.segments[column];
        if let Some(value) = segment.constant() {
            return Ok(if value < key { to } else { from });
        }
        if !self.unpacked[column] && segment.random_access() && to - from <= SEARCH_SINGLE {
            let (mut lo, mut hi) = (from, to);
            while lo < hi {
                let middle = (lo + hi) / 2;
                if segment.value(page, &self.leaf.dicts[column], middle)? < key {
                    lo = middle + 1;
                } else {
                    hi = middle;
                }
            }
            return Ok(lo);
        }
        self.unpack(page, column)?;
        Ok(self.columns[column].lower(from, to, key))
    }

    #[inline]
    fn column_upper(
        &mut self,
        page: &[u8],
        column: usize,
        from: usize,
        to: usize,
        key: u64,
    ) -> Decode<usize> {
        match key.checked_add(1) {
            Some(next) => self.column_lower(page, column, from, to, next),
            None => Ok(to),
        }
    }

    /// First row of the block, from `from` on, whose leading columns are not below `key`.
    #[inline]
    fn block_lower(&mut self, page: &[u8], from: usize, key: &[u64]) -> Decode<usize> {
        let (mut lo, mut hi) = (from, self.rows);
        for (c, &k) in key.iter().enumerate() {
            lo = self.column_lower(page, c, lo, hi, k)?;
            if lo == hi || c + 1 == key.len() {
                break;
            }
            hi = self.column_upper(page, c, lo, hi, k)?;
            if lo == hi {
                break;
            }
        }
        Ok(lo)
    }

    /// First row of the block, from `from` on, whose leading columns are above `key`.
    #[inline]
    fn block_upper(&mut self, page: &[u8], from: usize, key: &[u64]) -> Decode<usize> {
        let (mut lo, mut hi) = (from, self.rows);
        for (c, &k) in key.iter().enumerate() {
            lo = self.column_lower(page, c, lo, hi, k)?;
            if lo == hi {
                return Ok(lo);
            }
            hi = self.column_upper(page, c, lo, hi, k)?;
            if lo == hi {
                return Ok(lo);
            }
        }
        Ok(hi)
    }

    /// First row of the leaf whose leading columns are not below `key`, given that it is not
    /// before row `from`.
    #[inline]
    pub(crate) fn lower(&mut self, page: &[u8], from: usize, key: &[u64]) -> Decode<usize> {
        if self.leaf.tailed {
            return self.lower_tailed(page, from, key);
        }
        self.lower_in_blocks(page, from, key)
    }

    /// First row of the leaf whose leading columns are above `key`, given that it is not before
    /// row `from`.
    #[inline]
    pub(crate) fn upper(&mut self, page: &[u8], from: usize, key: &[u64]) -> Decode<usize> {
        if self.leaf.tailed {
            return self.upper_tailed(page, from, key);
        }
        self.upper_in_blocks(page, from, key)
    }

    fn lower_tailed(&mut self, page: &[u8], from: usize, key: &[u64]) -> Decode<usize> {
        if key.is_empty() {
            return Ok(from);
        }
        let before = self.tail.lower(page, key)?;
        let position = self.lower_in_blocks(page, self.tail.floor(from), key)?;
        Ok(self.shifted(position, before).max(from).min(self.len()))
    }

    fn upper_tailed(&mut self, page: &[u8], from: usize, key: &[u64]) -> Decode<usize> {
        if key.is_empty() {
            return Ok(self.len().max(from));
        }
        let before = self.tail.upper(page, key)?;
        let position = self.upper_in_blocks(page, self.tail.floor(from), key)?;
        Ok(self.shifted(position, before).max(from).min(self.len()))
    }

    /// As [`LeafCursor::lower`], in the blocks alone.
    #[inline]
    pub(crate) fn lower_in_blocks(&mut self, page: &[u8], from: usize, key: &[u64]) -> Decode<usize> {
        if from >= self.leaf.rows || key.is_empty() {
            return Ok(from);
        }
        let mut block = from / BLOCK;
        let next = block + 1;
        let stays = block == self.block
            && (next == self.leaf.blocks() || self.leaf.table.compare(page, next, key)? != Ordering::Less);
        if !stays {
            block = block.max(self.leaf.table.lower_from(page, key, block)?.saturating_sub(1));
        }
        self.enter(page, block)?;
        let from = from.saturating_sub(block * BLOCK);
        Ok(block * BLOCK + self.block_lower(page, from, key)?)
    }

    /// As [`LeafCursor::upper`], in the blocks alone.
    #[inline]
    pub(crate) fn upper_in_blocks(&mut self, page: &[u8], from: usize, key: &[u64]) -> Decode<usize> {
        if from >= self.leaf.rows {
            return Ok(from);
        }
        if key.is_empty() {
            return Ok(self.leaf.rows);
        }
        let mut block = from / BLOCK;
        if from.is_multiple_of(BLOCK) && self.leaf.table.compare(page, block, key)? == Ordering::Greater {
            return Ok(from);
        }
        let next = block + 1;
        if next != self.leaf.blocks() && self.leaf.table.compare(page, next, key)? != Ordering::Greater {
            block = block.max(self.leaf.table.upper_from(page, key, next)?.saturating_sub(1));
        }
        self.enter(page, block)?;
        let from = from.saturating_sub(block * BLOCK);
        Ok(block * BLOCK + self.block_upper(page, from, key)?)
    }

    /// Rows whose leading columns lie between `lo` and `hi`, which differ in the last column at
    /// most; none is before row `from`.
    #[inline]
    pub(crate) fn find(
        &mut self,
        page: &[u8],
        from: usize,
        lo: &[u64],
        hi: &[u64],
    ) -> Decode<(usize, usize)> {
        if self.leaf.tailed {
            let a = self.lower(page, from, lo)?;
            return Ok((a, self.upper(page, a, hi)?));
        }
        if from >= self.leaf.rows || lo.is_empty() {
            return Ok((from, self.leaf.rows));
        }
        let mut block = from / BLOCK;
        let next = block + 1;
        let stays = block == self.block
            && (next == self.leaf.blocks() || self.leaf.table.compare(page, next, lo)? != Ordering::Less);
        if !stays {
            block = block.max(self.leaf.table.lower_from(page, lo, block)?.saturating_sub(1));
        }
        self.enter(page, block)?;
        let (mut a, mut b) = (from.saturating_sub(block * BLOCK), self.rows);
        for (c, (&least, &greatest)) in lo.iter().zip(hi).enumerate() {
            a = self.column_lower(page, c, a, b, least)?;
            if a == b {
                break;
            }
            b = self.column_upper(page, c, a, b, greatest)?;
        }
        let (a, b) = (block * BLOCK + a, block * BLOCK + b.max(a));
        // Rows up to the block's end: there may be more behind it.
        let end = if b == (block + 1) * BLOCK { self.upper_in_blocks(page, b, hi)? } else { b };
        Ok((a, end.max(a)))
    }

    /// How far, at most to `to`, the rows from `from` on can be appended at once.
    #[inline]
    pub(crate) fn stretch(&mut self, from: usize, to: usize) -> usize {
        if self.leaf.tailed {
            return self.stretch_tailed(from, to);
        }
        to.min((from / BLOCK + 1) * BLOCK)
    }

    fn stretch_tailed(&mut self, from: usize, to: usize) -> usize {
        self.spot = (from, self.tail.spot(from));
        match self.spot.1 {
            Spot::Tail(_) => to.min(from + 1),
            Spot::Blocks(at, run) => to.min(from + run.min(BLOCK - at % BLOCK)),
        }
    }

    /// Appends rows `from .. to` of a column; `to` is not behind what [`LeafCursor::stretch`] says.
    #[inline]
    pub(crate) fn append(
        &mut self,
        page: &[u8],
        column: usize,
        from: usize,
        to: usize,
        out: &mut Vec<u64>,
    ) -> Decode<()> {
        if self.leaf.tailed {
            return self.append_tailed(page, column, from, to, out);
        }
        self.append_from_blocks(page, column, from, to, out)
    }

    fn append_tailed(
        &mut self,
        page: &[u8],
        column: usize,
        from: usize,
        to: usize,
        out: &mut Vec<u64>,
    ) -> Decode<()> {
        if self.spot.0 != from {
            self.spot = (from, self.tail.spot(from));
        }
        match self.spot.1 {
            Spot::Tail(i) => {
                out.push(self.tail.value(page, i, column)?);
                Ok(())
            }
            // A damaged tail may ask for this.
            Spot::Blocks(at, _) if at + (to - from) > self.leaf.rows => {
                Err(Bad("a tail that hides rows its leaf does not have"))
            }
            Spot::Blocks(at, _) => self.append_from_blocks(page, column, at, at + (to - from), out),
        }
    }

    /// Appends rows `from .. to` of the blocks, which lie in one of them, of a column.
    #[inline]
    fn append_from_blocks(
        &mut self,
        page: &[u8],
        column: usize,
        from: usize,
        to: usize,
        out: &mut Vec<u64>,
    ) -> Decode<()> {
        debug_assert!(from < to && from / BLOCK == (to - 1) / BLOCK);
        self.enter(page, from / BLOCK)?;
        self.parse_to(page, column)?;
        let (first, last) = (from % BLOCK, (to - 1) % BLOCK + 1);
        let segment = self.segments[column];
        if let Some(value) = segment.constant() {
            out.resize(out.len() + last - first, value);
            return Ok(());
        }
        let fetched = &mut self.fetched[column];
        if !self.unpacked[column] && segment.random_access() && *fetched as usize + last - first <= SINGLE {
            *fetched += (last - first) as u16;
            for i in first..last {
                out.push(segment.value(page, &self.leaf.dicts[column], i)?);
            }
            return Ok(());
        }
        self.unpack(page, column)?;
        self.columns[column].append(first, last, out);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
