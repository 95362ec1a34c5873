//! Which rows of a block hold one of many sorted keys: the inner loop of a merge.
//!
//! 1. Keys before the first row and behind the last are left out.
//! 2. The keys between are brought into the form in which the column is unpacked (`u32`
//!    relative to base and stride): that is a few keys, where widening would be 128 rows.
//! 3. A few keys are searched among all rows of the block, without a branch on what a
//!    comparison says: no search waits for the one before it, so the processor works on several
//!    at a time. For more keys a table is made first, from a row's value to its position; where
//!    the values lie too far apart for it, or a row repeats, keys are searched one after the
//!    other from where the last one ended.
//!
//! In a damaged page rows may fall: then some are not found.

use crate::format::encoding::bits::BLOCK;
use crate::format::encoding::column::{Column, Form};

/// Keys looked at together while those of a block are counted.
const COUNTED: usize = 16;

/// A block with more keys is worth a table of its rows.
const FEW_KEYS: usize = 16;

/// Values between the first row of a block and the last, at most, for such a table.
const SPAN: usize = 1024;

/// Rows of a block that hold a key, with the positions of their keys.
pub(crate) struct Met {
    rows: [u8; BLOCK],
    keys: [u32; BLOCK],
    len: usize,
    /// Scratch: by distance from the block's first value, the row that has it. What an earlier
    /// block left there is told apart by the row's value.
    places: [u8; SPAN],
}

impl Met {
    /// No rows.
    pub(crate) fn new() -> Met {
        Met { rows: [0; BLOCK], keys: [0; BLOCK], len: 0, places: [0; SPAN] }
    }

    /// The rows, as positions in their block, ascending.
    #[inline]
    pub(crate) fn rows(&self) -> &[u8] {
        &self.rows[..self.len]
    }

    /// For each row the position of its key.
    #[inline]
    pub(crate) fn keys(&self) -> &[u32] {
        &self.keys[..self.len]
    }

    /// Forgets all rows.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    #[inline(always)]
    fn push(&mut self, row: usize, key: usize) {
        // a row holds one key at most, unless the page is damaged
        if let Some(slot) = self.rows.get_mut(self.len) {
            *slot = row as u8;
            self.keys[self.len] = key as u32;
            self.len += 1;
        }
    }

    /// Only the rows for which `keep` holds stay.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(usize) -> bool) {
        let mut kept = 0;
        for i in 0..self.len {
            if keep(i) {
                (self.rows[kept], self.keys[kept]) = (self.rows[i], self.keys[i]);
                kept += 1;
            }
        }
        self.len = kept;
    }

    /// Rows `from .. to`, which all hold `value`, against the ascending, distinct `keys`, of
    /// which those before `next` are done. Then `next` is the first that a later row may hold.
    pub(crate) fn meet_one(&mut self, from: usize, to: usize, value: u64, keys: &[u64], next: &mut usize) {
        self.clear();
        *next += before(&keys[*next..], value);
        if keys.get(*next) == Some(&value) {
            (from..to).for_each(|row| self.push(row, *next));
        }
    }

    /// Searches rows, of which the first is row `from` of the block, for each of `keys`, of
    /// which the first is key number `first`. No key is above the last row.
    #[inline(always)]
    fn search<T: Copy + Ord>(
        &mut self,
        rows: &[T],
        from: usize,
        keys: impl ExactSizeIterator<Item = Option<T>>,
        first: usize,
    ) {
        if keys.len() > FEW_KEYS {
            self.search_on(rows, from, keys, first);
            return;
        }
        for (number, key) in (first..).zip(keys) {
            let Some(key) = key else { continue };
            let mut at = rows.partition_point(|row| *row < key);
            while at < rows.len() && rows[at] == key {
                self.push(from + at, number);
                at += 1;
            }
        }
    }

    /// As [`Met::search`], but each key is searched from where the one before it ended.
    fn search_on<T: Copy + Ord>(
        &mut self,
        rows: &[T],
        from: usize,
        keys: impl Iterator<Item = Option<T>>,
        first: usize,
    ) {
        let mut at = 0;
        for (number, key) in (first..).zip(keys) {
            let Some(key) = key else { continue };
            if at < rows.len() && rows[at] < key {
                at += rows[at..].partition_point(|row| *row < key);
            }
            while at < rows.len() && rows[at] == key {
                self.push(from + at, number);
                at += 1;
            }
        }
    }

    /// As [`Met::search`], by a table, for rows that lie near each other; false, and nothing found,
    /// where they do not or one repeats.
    fn by_table(&mut self, rows: &[u32], from: usize, keys: impl Iterator<Item = u32>, first: usize) -> bool {
        let (least, last) = (rows[0], rows.len() - 1);
        if rows[last].wrapping_sub(least) as usize >= SPAN {
            return false;
        }
        let (mut repeats, mut before) = (false, !least);
        for (place, row) in rows.iter().enumerate() {
            self.places[row.wrapping_sub(least) as usize % SPAN] = place as u8;
            repeats |= *row == before;
            before = *row;
        }
        if repeats {
            return false;
        }
        let mut len = 0;
        for (number, key) in (first..).zip(keys) {
            let place = usize::from(self.places[key.wrapping_sub(least) as usize % SPAN]).min(last);
            (self.rows[len % BLOCK], self.keys[len % BLOCK]) = ((from + place) as u8, number as u32);
            len += usize::from(rows[place] == key);
        }
        self.len = len.min(BLOCK);
        true
    }
}

impl Column {
    /// Finds the rows of `from .. to`, a stretch that is not empty and in which the column does
    /// not decrease, that hold one of the ascending, distinct `keys`, of which those before
    /// `next` are done. Then `next` is the first that a later row may hold.
    pub(crate) fn meet(&self, from: usize, to: usize, keys: &[u64], next: &mut usize, met: &mut Met) {
        debug_assert!(from < to && to <= BLOCK, "a stretch of rows of a block");
        met.clear();
        match self.form {
            Form::Narrow { base, stride } => {
                let rows = &self.narrow[from..to];
                let wide = |u: u32| base.wrapping_add(u64::from(u).wrapping_mul(stride));
                let found = between(keys, next, wide(rows[0]), wide(rows[rows.len() - 1]));
                let relative = keys[found.clone()].iter().map(|key| key.wrapping_sub(base));
                if stride <= 1 {
                    let narrow = relative.map(|key| key as u32);
                    let tabled =
                        found.len() > FEW_KEYS && met.by_table(rows, from, narrow.clone(), found.start);
                    if !tabled {
                        met.search(rows, from, narrow.map(Some), found.start);
                    }
                } else {
                    let narrow = |key: u64| key.is_multiple_of(stride).then_some((key / stride) as u32);
                    met.search(rows, from, relative.map(narrow), found.start);
                }
            }
            Form::Wide => {
                let rows = &self.wide[from..to];
                let found = between(keys, next, rows[0], rows[rows.len() - 1]);
                met.search(rows, from, keys[found.clone()].iter().map(|key| Some(*key)), found.start);
            }
        }
    }
}

/// The keys from `next` on that lie between two values. Then `next` is the first that a row
/// behind the last may hold.
#[inline(always)]
fn between(keys: &[u64], next: &mut usize, least: u64, most: u64) -> std::ops::Range<usize> {
    let start = *next + before(&keys[*next..], least);
    let mut end = start;
    // usually a few: counted without a branch for each
    loop {
        let part = &keys[end..keys.len().min(end + COUNTED)];
        let within = part.iter().filter(|key| **key <= most).count();
        end += within;
        if within < COUNTED {
            break;
        }
    }
    // the rows behind the last may hold the same value
    let repeats = end > start && keys[end - 1] == most;
    *next = end - usize::from(repeats);
    start..end
}

/// Number of keys below `value`.
#[inline]
pub(crate) fn before(keys: &[u64], value: u64) -> usize {
    super::gallop(keys, |key| *key < value)
}
