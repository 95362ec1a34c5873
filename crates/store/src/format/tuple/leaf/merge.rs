//! Merges the rows of a leaf with sorted keys, block by block.
//!
//! 1. The restart keys of a block and of the next say between which values its rows lie: keys
//!    before it are passed, and blocks before the next key are passed without being unpacked.
//! 2. Of a block that may hold a key the key column is unpacked, and its rows are searched (see
//!    `format::encoding::column::meet`). A constant column needs no unpacking.
//! 3. Other columns are fetched for the rows found, singly or from the unpacked block.
//!
//! In a leaf with a tail the stretches between the tail's rows are merged in the same way, and
//! its rows one by one.

use super::{LeafCursor, SINGLE};
use crate::format::encoding::bits::BLOCK;
use crate::format::encoding::column::meet::{Met, before};
use crate::format::encoding::{Bad, Decode, partition};
use crate::format::key::Key;
use crate::format::tuple::tail::Spot;
use std::cmp::Ordering;

/// The keys of a merge and how far it is.
pub(crate) struct SortedKeys<'a> {
    /// Values of the columns before the varying one.
    pub before: &'a [u64],
    /// Values of the varying column, ascending and distinct.
    pub varying: &'a [u64],
    /// The first that a row to come may hold.
    pub next: usize,
}

impl LeafCursor {
    /// Moves over some of the visible rows `from .. to` (at least one, all of which begin with
    /// `keys.before`) and puts those of them that hold a key into `met`. Returns where it came
    /// to: rows of one block at most, with blocks before it that hold no key, or all where no
    /// key is left.
    pub(crate) fn meet(
        &mut self,
        page: &[u8],
        from: usize,
        to: usize,
        keys: &mut SortedKeys<'_>,
        met: &mut Met,
    ) -> Decode<usize> {
        debug_assert!(from < to, "there are rows to be moved over");
        met.clear();
        if keys.next == keys.varying.len() {
            return Ok(to);
        }
        if self.leaf.tailed {
            return self.meet_tailed(page, from, to, keys, met);
        }
        let (column, mut from) = (keys.before.len(), from);
        let (mut block, last) = (from / BLOCK, (to - 1) / BLOCK);
        if from.is_multiple_of(BLOCK) {
            let first = self.leaf.table.value(page, column, block)?;
            keys.next += before(&keys.varying[keys.next..], first);
            if keys.next == keys.varying.len() {
                return Ok(to);
            }
        }
        let (key, table) = (keys.varying[keys.next], &self.leaf.table);
        if block < last && table.value(page, column, block + 1)? < key {
            let below = |b| Ok(table.value(page, column, b)? < key);
            block = partition(block + 2, last + 1, below)? - 1;
            from = block * BLOCK;
        }
        let to = to.min((block + 1) * BLOCK);
        self.meet_block(page, from, to, keys, met)?;
        Ok(to)
    }

    /// As [`LeafCursor::meet`], up to the next row of the tail.
    fn meet_tailed(
        &mut self,
        page: &[u8],
        from: usize,
        to: usize,
        keys: &mut SortedKeys<'_>,
        met: &mut Met,
    ) -> Decode<usize> {
        let to = self.stretch_tailed(from, to);
        let column = keys.before.len();
        match self.spot.1 {
            Spot::Tail(i) => {
                let value = self.tail.value(page, i, column)?;
                met.meet_one(0, 1, value, keys.varying, &mut keys.next);
            }
            Spot::Blocks(at, _) => {
                let end = at + (to - from);
                if end > self.leaf.rows {
                    return Err(Bad("a tail that hides rows its leaf does not have"));
                }
                let mut key = Key::default();
                key[..column].copy_from_slice(keys.before);
                key[column] = keys.varying[keys.next];
                let next = at / BLOCK + 1;
                let is_before = next < self.leaf.blocks()
                    && self.leaf.table.compare(page, next, &key[..=column])? == Ordering::Less;
                if !is_before {
                    self.meet_block(page, at, end, keys, met)?;
                }
            }
        }
        Ok(to)
    }

    /// Finds the rows that hold a key among rows `from .. to` of the blocks, which lie in one.
    fn meet_block(
        &mut self,
        page: &[u8],
        from: usize,
        to: usize,
        keys: &mut SortedKeys<'_>,
        met: &mut Met,
    ) -> Decode<()> {
        let column = keys.before.len();
        let block = from / BLOCK;
        self.enter(page, block)?;
        self.parse_to(page, column)?;
        let (from, to) = (from - block * BLOCK, to - block * BLOCK);
        if let Some(value) = self.segments[column].constant() {
            met.meet_one(from, to, value, keys.varying, &mut keys.next);
            return Ok(());
        }
        self.unpack(page, column)?;
        self.columns[column].meet(from, to, keys.varying, &mut keys.next, met);
        Ok(())
    }

    /// Keeps those of the rows last met whose column holds `value`.
    pub(crate) fn retain_met(&mut self, page: &[u8], column: usize, value: u64, met: &mut Met) -> Decode<()> {
        let mut values = Vec::with_capacity(met.rows().len());
        self.append_met(page, column, met.rows(), &mut values)?;
        met.retain(|i| values[i] == value);
        Ok(())
    }

    /// Appends a column of some of the rows last met.
    pub(crate) fn append_met(
        &mut self,
        page: &[u8],
        column: usize,
        rows: &[u8],
        out: &mut Vec<u64>,
    ) -> Decode<()> {
        if self.leaf.tailed
            && let Spot::Tail(i) = self.spot.1
        {
            debug_assert!(rows.len() <= 1, "a row of the tail stands alone");
            if !rows.is_empty() {
                out.push(self.tail.value(page, i, column)?);
            }
            return Ok(());
        }
        self.parse_to(page, column)?;
        let segment = self.segments[column];
        if segment.constant().is_some()
            || (!self.unpacked[column] && segment.random_access() && rows.len() <= SINGLE)
        {
            return segment.pick(page, &self.leaf.dicts[column], rows, out);
        }
        self.unpack(page, column)?;
        self.columns[column].pick(rows, out);
        Ok(())
    }
}
