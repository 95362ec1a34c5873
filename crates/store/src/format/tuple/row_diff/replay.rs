//! Changes of a leaf made one after the other on its rows, which are packed once at the end.

use crate::format::encoding::{Bad, Decode};
use crate::format::key::Key;
use crate::format::tuple::row_diff::columns::{RowColumns, head, pack, row_of, rows};
use crate::format::tuple::row_diff::in_tail::{TailChange, take_change};
use crate::format::tuple::row_diff::packed;
use crate::format::tuple::tail::{TAIL_MAX, Tail};
use crate::format::varint::{take, unzigzag};
use crate::page::PageBuf;
use crate::page::image::check;

/// The rows of a leaf, while changes are made that end with packing it anew. What comes and
/// goes is only noted: most changes do not say where in the leaf they are, and to sort many
/// rows in at once costs a fraction of moving the rows behind each of them.
pub(super) struct LeafRows {
    arity: usize,
    /// Rows, without what is noted.
    rows: RowColumns,
    /// Rows that came and went since, oldest first.
    noted: Vec<(Key, bool)>,
    /// First of all rows, as long as it is known.
    first: Option<Key>,
    /// Entries of the tail, ascending, and whether they are tombstones.
    tail: Vec<(Key, bool)>,
    /// Checksum that the packed page must have.
    wanted: u32,
}

impl LeafRows {
    /// The rows of `page`; about `expected` are to come or go.
    pub(super) fn read(page: &[u8], expected: usize) -> Decode<LeafRows> {
        let shape = head(page)?;
        let (arity, rows) = rows(page)?;
        let tail = Tail::parse(page, arity, shape.block_rows)?;
        let tail = (0..tail.len).map(|i| Ok((tail.row(page, i)?, tail.is_dead(i)))).collect::<Decode<_>>()?;
        let first = (!rows[0].is_empty()).then_some(shape.first);
        Ok(LeafRows { arity, rows, noted: Vec::with_capacity(expected), first, tail, wanted: 0 })
    }

    /// Makes the changes of a diff of either kind.
    pub(super) fn change(&mut self, diff: &[u8]) -> Decode<()> {
        let (how, mut diff) = diff.split_first().ok_or(Bad("a change ends too early"))?;
        if *how == packed::TAG {
            return self.pack_anew(diff);
        }
        let first = self.first();
        while !diff.is_empty() {
            match take_change(self.arity, &first, &mut diff)? {
                TailChange::Remove { entry } => {
                    if entry >= self.tail.len() {
                        return Err(Bad("an entry goes that is not in the tail"));
                    }
                    let (row, is_tombstone) = self.tail.remove(entry);
                    self.note(row, is_tombstone);
                }
                TailChange::Add { row, is_tombstone, .. } => {
                    if self.tail.len() == TAIL_MAX {
                        return Err(Bad("an entry that cannot come into the tail"));
                    }
                    let at = self.tail.partition_point(|(r, _)| *r < row);
                    self.tail.insert(at, (row, is_tombstone));
                    self.note(row, !is_tombstone);
                }
            }
        }
        Ok(())
    }

    fn pack_anew(&mut self, diff: &[u8]) -> Decode<()> {
        let (wanted, mut diff) = diff.split_first_chunk::<4>().ok_or(Bad("a change ends too early"))?;
        self.wanted = u32::from_le_bytes(*wanted);
        // Number of rows noted before this change; 0 once they are sorted in.
        let mut before = self.noted.len();
        let (mut at, mut last) = (0usize, Key::default());
        while !diff.is_empty() {
            let (stay, gone, come) = (take(&mut diff)?, take(&mut diff)?, take(&mut diff)?);
            let step = |from: usize, n: u64| usize::try_from(n).ok().and_then(|n| from.checked_add(n));
            let beyond = Bad("rows beyond the end of a leaf stay or go");
            let from = step(at, stay).ok_or(beyond)?;
            at = step(from, gone).ok_or(beyond)?;
            if gone > 0 {
                self.sort_in(std::mem::take(&mut before));
                if at > self.rows[0].len() {
                    return Err(beyond);
                }
                (from..at).for_each(|i| self.note(row_of(&self.rows, i), false));
            }
            for _ in 0..come {
                for last in &mut last[..self.arity] {
                    *last = last.wrapping_add(unzigzag(take(&mut diff)?) as u64);
                }
                self.note(last, true);
            }
        }
        self.tail.clear();
        Ok(())
    }

    /// Notes that a row came, or went.
    fn note(&mut self, row: Key, there: bool) {
        self.first = match self.first {
            Some(first) if there => Some(first.min(row)),
            Some(first) if first != row => Some(first),
            _ => None,
        };
        self.noted.push((row, there));
    }

    /// The first row; a zero key when there is none.
    fn first(&mut self) -> Key {
        if let Some(first) = self.first {
            return first;
        }
        self.sort_in(self.noted.len());
        self.first = (!self.rows[0].is_empty()).then(|| row_of(&self.rows, 0));
        self.first.unwrap_or_default()
    }

    /// Sorts the first `n` of what is noted into the rows.
    fn sort_in(&mut self, n: usize) {
        if n == 0 {
            return;
        }
        let (noted, old) = (&mut self.noted[..n], &self.rows);
        // Stable: of equal rows the last one is the newest.
        noted.sort_by_key(|(row, _)| *row);
        let mut new = RowColumns::default();
        new[..self.arity].iter_mut().for_each(|c| c.reserve(old[0].len() + n));
        let mut append = |from: usize, to: usize, row: Option<&Key>| {
            for (c, column) in new.iter_mut().enumerate().take(self.arity) {
                column.extend_from_slice(&old[c][from..to]);
                column.extend(row.map(|row| row[c]));
            }
        };
        let mut at = 0;
        for same in noted.chunk_by(|a, b| a.0 == b.0) {
            let (row, there) = &same[same.len() - 1];
            let to = lower(old, at, row);
            append(at, to, there.then_some(row));
            at = to + usize::from(to < old[0].len() && row_of(old, to) == *row);
        }
        append(at, old[0].len(), None);
        self.rows = new;
        self.noted.drain(..n);
    }

    /// The page of the rows, of the same tree as `like`.
    pub(super) fn pack(mut self, like: &[u8]) -> Decode<PageBuf> {
        self.sort_in(self.noted.len());
        let page = pack(like, self.arity, &self.rows)?;
        if check(&page) != self.wanted {
            return Err(Bad("rows of a leaf that do not give the page they gave before"));
        }
        Ok(page)
    }
}

/// First row from `from` on that is not below `row`; it is looked for near `from` first.
fn lower(columns: &RowColumns, from: usize, row: &Key) -> usize {
    let below = |i: usize| row_of(columns, i) < *row;
    let (mut at, mut step) = (from, 1);
    while at + step <= columns[0].len() && below(at + step - 1) {
        at += step;
        step *= 2;
    }
    let (mut lo, mut hi) = (at, (at + step).min(columns[0].len()));
    while lo < hi {
        let mid = lo.midpoint(hi);
        if below(mid) { lo = mid + 1 } else { hi = mid }
    }
    lo
}
