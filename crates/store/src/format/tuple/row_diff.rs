//! Changes of a leaf of a tuple tree, as rows instead of bytes: a row in the tail takes a third of
//! the bytes that it changes there, and in a leaf that was packed anew hardly a byte is where it
//! was, though few rows came or went.
//!
//! The first byte says how the new page is made of the old one; until the diff ends follow, for
//! 1, changes of the tail:
//!
//! | bytes  | field                                                                                                       |
//! |--------|-------------------------------------------------------------------------------------------------------------|
//! | 1      | low bits: 0 a row comes, 1 a tombstone comes, 2 an entry goes; bit 4 + c: how column c is given             |
//! | varint | rows of the blocks below the row; of an entry that goes its number, and no more                             |
//! | varint | each column: its difference, zigzag, to the one of the old leaf's first row; or, bit set, itself, 8 bits to the left |
//!
//! and for 2, packed anew:
//!
//! | bytes  | field                                                                                                       |
//! |--------|-------------------------------------------------------------------------------------------------------------|
//! | 4      | once: low half of the XXH3-64 of the new page from byte 24 on                                               |
//! | varint | rows that stay, rows that go, rows that come: a step; what follows the last one stays                       |
//! | varint | each column of each row that comes: its difference, zigzag, to the one of the row that comes before it      |
//!
//! Entries find their slots as in `format::tuple::tail`; what is packed anew is what
//! [`LeafBuilder`] makes of the rows. Invariant: a diff is made only where this gives the very
//! bytes of the new page.

use std::cmp::Ordering;

use crate::format::encoding::bits::BLOCK;
use crate::format::encoding::{Bad, Decode};
use crate::format::key::Key;
use crate::format::key::MAX_ARITY;
use crate::format::tuple::leaf::LeafCursor;
use crate::format::tuple::leaf_build::LeafBuilder;
use crate::format::tuple::tail::{self, TAIL_MAX, Tail};
use crate::format::varint::{put, take, unzigzag, zigzag};
use crate::page::image::SKIPPED;
use crate::page::image::check;
use crate::page::{HEADER_BYTES, PAGE_BYTES, PageBuf, PageKind, header, offset};

/// First bytes of a diff.
const IN_TAIL: u8 = 1;
const PACKED: u8 = 2;

/// Changes of a tail in a diff.
const ADD: u8 = 0;
const ADD_TOMBSTONE: u8 = 1;
const REMOVE: u8 = 2;

/// Rows of a leaf, a vector per column.
type Columns = [Vec<u64>; MAX_ARITY];

fn are_leaves(old: &[u8], new: &[u8]) -> bool {
    let leaf = |page: &[u8]| header(page).kind() == PageKind::TupleLeaf as u8 && header(page).count() > 0;
    leaf(old) && leaf(new) && header(old).tree() == header(new).tree()
}

/// Appends the difference between two leaves that differ in their tails to `out`. False when
/// they do not or it is not that simple; what was appended is useless then.
pub(crate) fn diff_in_tail(old: &[u8], new: &[u8], out: &mut Vec<u8>) -> bool {
    are_leaves(old, new) && try_diff_in_tail(old, new, out).unwrap_or(false)
}

fn try_diff_in_tail(old: &[u8], new: &[u8], out: &mut Vec<u8>) -> Decode<bool> {
    /// More changes are better given as bytes.
    const MANY: usize = 2 * TAIL_MAX;
    let (arity, block_rows, first) = head(old)?;
    let (was, is) = (Tail::parse(old, arity, block_rows)?, Tail::parse(new, arity, block_rows)?);
    let mut page = PageBuf::copy_of(old);
    out.push(IN_TAIL);
    let (mut i, mut j, mut changes) = (0, 0, 0);
    while i < was.len || j < is.len {
        let order = match (i < was.len, j < is.len) {
            (true, true) => was.row(old, i)?.cmp(&is.row(new, j)?),
            (true, false) => Ordering::Less,
            _ => Ordering::Greater,
        };
        if order.is_eq() && was.is_dead(i) == is.is_dead(j) {
            (i, j) = (i + 1, j + 1);
            continue;
        }
        let begin = out.len();
        if order.is_gt() {
            let dead = is.is_dead(j);
            put_row(
                out,
                if dead { ADD_TOMBSTONE } else { ADD },
                is.position(j),
                &is.row(new, j)?[..arity],
                &first,
            );
            j += 1;
        } else {
            out.push(REMOVE);
            // So many of the entries before it are in the page by now.
            put(out, j as u64);
            i += 1;
        }
        change_tail(&mut page, arity, block_rows, &first, &mut &out[begin..])?;
        changes += 1;
        if changes > MANY {
            return Ok(false);
        }
    }
    Ok(page[SKIPPED..] == new[SKIPPED..])
}

fn put_row(out: &mut Vec<u8>, what: u8, position: usize, row: &[u64], first: &Key) {
    let at = out.len();
    out.push(what);
    put(out, position as u64);
    for (c, (v, first)) in row.iter().zip(first).enumerate() {
        let (difference, itself) = (zigzag(v.wrapping_sub(*first) as i64), v.rotate_left(8));
        out[at] |= u8::from(itself < difference) << (4 + c);
        put(out, itself.min(difference));
    }
}

/// A change of a tail: its byte, its position or number, and the row that comes.
fn take_change(arity: usize, first: &Key, diff: &mut &[u8]) -> Decode<(u8, usize, Key)> {
    let (what, rest) = diff.split_first().ok_or(Bad("a change ends too early"))?;
    *diff = rest;
    let n = usize::try_from(take(diff)?).map_err(|_| Bad("a position beyond every leaf"))?;
    let mut row = Key::default();
    if what & 0xF == REMOVE {
        return Ok((REMOVE, n, row));
    }
    for (c, (v, first)) in row.iter_mut().zip(first).enumerate().take(arity) {
        let given = take(diff)?;
        *v = if what >> (4 + c) & 1 == 1 {
            given.rotate_right(8)
        } else {
            first.wrapping_add(unzigzag(given) as u64)
        };
    }
    Ok((what & 0xF, n, row))
}

/// Makes the change at the front of `diff`.
fn change_tail(
    page: &mut [u8],
    arity: usize,
    block_rows: usize,
    first: &Key,
    diff: &mut &[u8],
) -> Decode<()> {
    let (what, n, row) = take_change(arity, first, diff)?;
    let tail = Tail::parse(page, arity, block_rows)?;
    if what == REMOVE {
        if n >= tail.len {
            return Err(Bad("an entry goes that is not in the tail"));
        }
        tail::remove(page, &tail, n);
        return Ok(());
    }
    let dead = what == ADD_TOMBSTONE;
    if tail.len == TAIL_MAX || n.saturating_add(usize::from(dead)) > block_rows {
        return Err(Bad("an entry that cannot come into the tail"));
    }
    let at = tail.lower(page, &row[..arity])?;
    tail::add(page, &tail, at, &row[..arity], n, dead);
    Ok(())
}

/// Arity, rows of the blocks and first row of a leaf.
fn head(page: &[u8]) -> Decode<(usize, usize, Key)> {
    let (arity, mut cursor) = open(page)?;
    let mut first = Key::default();
    let mut value = Vec::with_capacity(1);
    if cursor.len() > 0 {
        cursor.stretch(0, 1);
        for (c, v) in first.iter_mut().enumerate().take(arity) {
            cursor.append(page, c, 0, 1, &mut value)?;
            *v = value.pop().ok_or(Bad("a leaf without its first row"))?;
        }
    }
    Ok((arity, cursor.block_rows(), first))
}

/// Appends the difference between two leaves to `out`, the new one packed anew. False when
/// there is none to be given, or only one of more than `limit` bytes; what was appended is
/// useless then.
pub(crate) fn diff(old: &[u8], new: &[u8], limit: usize, out: &mut Vec<u8>) -> bool {
    if !are_leaves(old, new) {
        return false;
    }
    let (Ok((arity, before)), Ok((new_arity, after))) = (rows(old), rows(new)) else { return false };
    if arity != new_arity || !pack(old, arity, &after).is_ok_and(|p| p[SKIPPED..] == new[SKIPPED..]) {
        return false;
    }
    let end = out.len() + limit;
    out.push(PACKED);
    out.extend(check(new).to_le_bytes());
    let (mut i, mut j) = (0, 0);
    let mut last = [0; MAX_ARITY];
    while i < before[0].len() || j < after[0].len() {
        let (from, mut gone) = (i, 0);
        while compare(&before, i, &after, j, arity) == Some(Ordering::Equal) {
            (i, j) = (i + 1, j + 1);
        }
        let stay = i - from;
        let first = j;
        loop {
            match compare(&before, i, &after, j, arity) {
                Some(Ordering::Less) => (i, gone) = (i + 1, gone + 1),
                Some(Ordering::Greater) => j += 1,
                _ => break,
            }
        }
        if gone == 0 && j == first {
            break;
        }
        [stay, gone, j - first].iter().for_each(|n| put(out, *n as u64));
        for row in first..j {
            for (column, last) in after.iter().zip(&mut last).take(arity) {
                put(out, zigzag(column[row].wrapping_sub(*last) as i64));
                *last = column[row];
            }
        }
        if out.len() > end {
            return false;
        }
    }
    out.len() <= end
}

/// Applies successive changes. Up to the last one that packs the leaf anew only the rows are kept:
/// the leaf is packed once, and only that change's checksum can be compared. After an error the
/// page is unusable.
pub(crate) fn apply(page: &mut PageBuf, diffs: &[&[u8]]) -> Decode<()> {
    /// A row that comes takes about so much of a diff.
    const ROW_BYTES: usize = 12;
    let packed = diffs.iter().rposition(|d| d.first() == Some(&PACKED)).map_or(0, |last| last + 1);
    if packed > 0 {
        let mut leaf = LeafRows::of(page)?;
        leaf.noted.reserve(diffs[..packed].iter().map(|d| d.len()).sum::<usize>() / ROW_BYTES);
        diffs[..packed].iter().try_for_each(|diff| leaf.change(diff))?;
        *page = leaf.pack(page)?;
    }
    for diff in &diffs[packed..] {
        let mut diff = diff.strip_prefix(&[IN_TAIL]).ok_or(Bad("a change ends too early"))?;
        let (arity, block_rows, first) = head(page)?;
        while !diff.is_empty() {
            change_tail(page, arity, block_rows, &first, &mut diff)?;
        }
    }
    Ok(())
}

/// The rows of a leaf, while changes are made that end with packing it anew. What comes and
/// goes is only noted: most changes do not say where in the leaf they are, and to sort many
/// rows in at once costs a fraction of moving the rows behind each of them.
struct LeafRows {
    arity: usize,
    /// Rows, without what is noted.
    rows: Columns,
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
    fn of(page: &[u8]) -> Decode<LeafRows> {
        let (_, block_rows, first) = head(page)?;
        let (arity, rows) = rows(page)?;
        let tail = Tail::parse(page, arity, block_rows)?;
        let tail = (0..tail.len).map(|i| Ok((tail.row(page, i)?, tail.is_dead(i)))).collect::<Decode<_>>()?;
        let first = (!rows[0].is_empty()).then_some(first);
        Ok(LeafRows { arity, rows, noted: Vec::new(), first, tail, wanted: 0 })
    }

    fn change(&mut self, diff: &[u8]) -> Decode<()> {
        let (how, mut diff) = diff.split_first().ok_or(Bad("a change ends too early"))?;
        if *how == PACKED {
            return self.pack_anew(diff);
        }
        let first = self.first();
        while !diff.is_empty() {
            let (what, n, row) = take_change(self.arity, &first, &mut diff)?;
            if what == REMOVE {
                if n >= self.tail.len() {
                    return Err(Bad("an entry goes that is not in the tail"));
                }
                let (row, dead) = self.tail.remove(n);
                self.note(row, dead);
            } else {
                if self.tail.len() == TAIL_MAX {
                    return Err(Bad("an entry that cannot come into the tail"));
                }
                let at = self.tail.partition_point(|(r, _)| *r < row);
                self.tail.insert(at, (row, what == ADD_TOMBSTONE));
                self.note(row, what != ADD_TOMBSTONE);
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
        let mut new = Columns::default();
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

    fn pack(mut self, like: &[u8]) -> Decode<PageBuf> {
        self.sort_in(self.noted.len());
        let page = pack(like, self.arity, &self.rows)?;
        if check(&page) != self.wanted {
            return Err(Bad("rows of a leaf that do not give the page they gave before"));
        }
        Ok(page)
    }
}

fn row_of(columns: &Columns, i: usize) -> Key {
    let mut row = Key::default();
    row.iter_mut().zip(columns).for_each(|(v, column)| *v = column.get(i).copied().unwrap_or(0));
    row
}

/// First row from `from` on that is not below `row`; it is looked for near `from` first.
fn lower(columns: &Columns, from: usize, row: &Key) -> usize {
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

/// How row `i` of one leaf compares with row `j` of another; the end of one is above all rows
/// of the other.
fn compare(a: &Columns, i: usize, b: &Columns, j: usize, arity: usize) -> Option<Ordering> {
    match (i < a[0].len(), j < b[0].len()) {
        (false, false) => None,
        (true, false) => Some(Ordering::Less),
        (false, true) => Some(Ordering::Greater),
        (true, true) => {
            Some((0..arity).map(|c| a[c][i].cmp(&b[c][j])).find(|o| o.is_ne()).unwrap_or(Ordering::Equal))
        }
    }
}

/// Arity of a leaf, and a cursor on it.
fn open(page: &[u8]) -> Decode<(usize, LeafCursor)> {
    let arity = usize::from(page[HEADER_BYTES]);
    if !(1..=MAX_ARITY).contains(&arity) {
        return Err(Bad("a leaf with a number of columns that cannot be"));
    }
    let mut cursor = LeafCursor::new(arity);
    cursor.open(page)?;
    Ok((arity, cursor))
}

/// Arity and rows of a leaf.
fn rows(page: &[u8]) -> Decode<(usize, Columns)> {
    let (arity, mut cursor) = open(page)?;
    let mut columns = Columns::default();
    let (mut at, len) = (0, cursor.len());
    columns[..arity].iter_mut().for_each(|c| c.reserve(len));
    while at < len {
        let to = cursor.stretch(at, len);
        for (c, column) in columns.iter_mut().enumerate().take(arity) {
            cursor.append(page, c, at, to, column)?;
        }
        at = to;
    }
    Ok((arity, columns))
}

/// A leaf of these rows, of the tree of another one.
fn pack(like: &[u8], arity: usize, columns: &Columns) -> Decode<PageBuf> {
    let len = columns[0].len();
    let row = |i: usize| columns[..arity].iter().map(move |c| c[i]);
    if len == 0 || len > usize::from(u16::MAX) || (1..len).any(|i| row(i - 1).ge(row(i))) {
        return Err(Bad("rows that are none of a leaf's"));
    }
    let mut builder = LeafBuilder::new(arity);
    let mut done = 0;
    while done < len {
        let rest: [&[u64]; MAX_ARITY] = std::array::from_fn(|c| columns[c].get(done..).unwrap_or(&[]));
        let want = rest[0].len().min(BLOCK);
        if builder.add(&rest[..arity]) < want {
            return Err(Bad("more rows than fit into a leaf"));
        }
        done += want;
    }
    let mut page = PageBuf::new();
    builder.finish(&mut page);
    page[offset::TREE..offset::TREE + 4].copy_from_slice(&like[offset::TREE..offset::TREE + 4]);
    assert_eq!(page.len(), PAGE_BYTES);
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{self, PageId, TreeId};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    type Rows = BTreeSet<[u64; 3]>;

    fn leaf(rows: &Rows) -> PageBuf {
        let columns: Columns = std::array::from_fn(|c| match c {
            0..3 => rows.iter().map(|r| r[c]).collect(),
            _ => Vec::new(),
        });
        let mut like = PageBuf::new();
        page::mark(&mut like, PageId(5), TreeId(7), 9);
        let mut made = pack(&like, 3, &columns).expect("few rows fit");
        page::mark(&mut made, PageId(5), TreeId(7), 9);
        made
    }

    fn round_trip(old: &PageBuf, new: &PageBuf) -> usize {
        let mut d = Vec::new();
        assert!(diff(old, new, usize::MAX / 2, &mut d));
        let mut back = old.clone();
        apply(&mut back, &[&d]).unwrap();
        assert_eq!(back[SKIPPED..], new[SKIPPED..]);
        d.len()
    }

    fn some(n: u64) -> Rows {
        (0..n).map(|i| [i / 50, i * 0x9E37_79B9 % 100_000, i]).collect()
    }

    #[test]
    fn a_row_in_the_midst_of_many_is_a_few_bytes() {
        let old = some(700);
        let mut new = old.clone();
        new.insert([3, 77_777, 5]);
        assert!(round_trip(&leaf(&old), &leaf(&new)) <= 20);
        new.remove(&old.iter().nth(400).copied().unwrap());
        assert!(round_trip(&leaf(&old), &leaf(&new)) <= 24);
        assert_eq!(round_trip(&leaf(&old), &leaf(&old)), 5);
    }

    #[test]
    fn what_the_tail_holds_is_known() {
        let old = some(300);
        let (mut page, mut rows) = (leaf(&old), old.clone());
        for i in 0..10u64 {
            let row = [i % 6, 100_000 + i, i];
            let tail = Tail::parse(&page, 3, old.len()).unwrap();
            let position = old.iter().filter(|r| **r < row).count();
            let at = tail.lower(&page, &row).unwrap();
            tail::add(&mut page, &tail, at, &row, position, false);
            rows.insert(row);
        }
        assert_eq!(round_trip(&page, &leaf(&rows)), 5);
        assert!(!diff(&leaf(&rows), &page, usize::MAX / 2, &mut Vec::new()), "a tail is not packed");
    }

    /// Rows come and go in the tail, some of them rows of the blocks; every step is a few bytes.
    #[test]
    fn changes_of_the_tail_are_few_bytes() {
        let old = some(300);
        let (mut page, mut random) = (leaf(&old), 1u64);
        let blocks: Vec<[u64; 3]> = old.iter().copied().collect();
        let mut lens = BTreeSet::new();
        for _ in 0..600 {
            snowmelt_base::random::lcg(&mut random);
            let (before, pick) = (page.clone(), (random >> 33) as usize);
            let tail = Tail::parse(&page, 3, 300).unwrap();
            lens.insert(tail.len);
            if pick % 5 < 2 && tail.len > 0 {
                tail::remove(&mut page, &tail, pick / 5 % tail.len);
            } else if tail.len < TAIL_MAX {
                let dead = pick.is_multiple_of(3);
                let row = if dead {
                    blocks[pick % 300]
                } else {
                    [pick as u64 % 6, 100_000 + random % 1000, 1 << 57 | random >> 40]
                };
                let at = tail.lower(&page, &row).unwrap();
                if at < tail.len && tail.compare(&page, at, &row).unwrap().is_eq() {
                    continue;
                }
                let position = old.iter().filter(|r| **r < row).count();
                tail::add(&mut page, &tail, at, &row, position, dead);
            }
            let mut d = Vec::new();
            assert!(diff_in_tail(&before, &page, &mut d) && d.len() <= 18, "{} bytes", d.len());
            let mut back = before.clone();
            apply(&mut back, &[&d]).unwrap();
            assert_eq!(back[SKIPPED..], page[SKIPPED..]);
        }
        assert!(lens.len() > 20, "tails of all lengths: {lens:?}");
        assert!(!diff_in_tail(&page, &leaf(&some(301)), &mut Vec::new()), "other blocks");
    }

    /// Changes of the tail and of the blocks in turns, made one by one and all at once.
    #[test]
    fn changes_that_follow_each_other_are_one() {
        let mut rows = some(300);
        let (begin, mut random) = (leaf(&rows), 7u64);
        let (mut page, mut diffs) = (begin.clone(), Vec::new());
        for step in 0..200 {
            let before = page.clone();
            snowmelt_base::random::lcg(&mut random);
            let pick = (random >> 33) as usize;
            let (_, block_rows, _) = head(&page).unwrap();
            let blocks = rows_of_blocks(&page);
            let tail = Tail::parse(&page, 3, block_rows).unwrap();
            let dead = pick.is_multiple_of(3);
            let row = if dead {
                blocks[pick % blocks.len()]
            } else {
                [pick as u64 % 6, 100_000 + random % 5000, 9]
            };
            let at = tail.lower(&page, &row).unwrap();
            let known = at < tail.len && tail.compare(&page, at, &row).unwrap().is_eq();
            if known {
                let was_dead = tail.is_dead(at);
                tail::remove(&mut page, &tail, at);
                assert!(if was_dead { rows.insert(row) } else { rows.remove(&row) });
            } else if dead || !blocks.contains(&row) {
                let position = blocks.iter().filter(|r| **r < row).count();
                tail::add(&mut page, &tail, at, &row, position, dead);
                assert!(if dead { rows.remove(&row) } else { rows.insert(row) });
            }
            let mut d = Vec::new();
            if step % 20 == 19 {
                page = leaf(&rows);
                assert!(diff(&before, &page, usize::MAX / 2, &mut d));
            } else {
                assert!(diff_in_tail(&before, &page, &mut d));
            }
            diffs.push(d);
        }
        let diffs: Vec<&[u8]> = diffs.iter().map(Vec::as_slice).collect();
        let mut one_by_one = begin.clone();
        diffs.iter().for_each(|d| apply(&mut one_by_one, &[d]).unwrap());
        assert_eq!(one_by_one[SKIPPED..], page[SKIPPED..]);
        for cut in [1, 50, 63, 100] {
            let mut at_once = begin.clone();
            apply(&mut at_once, &diffs[..cut]).unwrap();
            apply(&mut at_once, &diffs[cut..]).unwrap();
            assert_eq!(at_once[SKIPPED..], page[SKIPPED..]);
        }
        assert!(apply(&mut begin.clone(), &diffs[1..]).is_err(), "one is missing");
    }

    fn rows_of_blocks(page: &PageBuf) -> Vec<[u64; 3]> {
        let mut page = page.clone();
        let (_, block_rows, _) = head(&page).unwrap();
        while let tail = Tail::parse(&page, 3, block_rows).unwrap()
            && tail.len > 0
        {
            tail::remove(&mut page, &tail, 0);
        }
        let (_, columns) = rows(&page).unwrap();
        (0..columns[0].len()).map(|i| std::array::from_fn(|c| columns[c][i])).collect()
    }

    #[test]
    fn another_old_page_is_noticed() {
        let (old, mut new) = (some(300), some(300));
        new.insert([3, 5, 5]);
        let mut d = Vec::new();
        assert!(diff(&leaf(&old), &leaf(&new), 4096, &mut d));
        let mut other = old.clone();
        other.pop_last();
        assert!(apply(&mut leaf(&other), &[&d]).is_err());
    }

    proptest! {
        #[test]
        fn any_rows_round_trip(
            old in prop::collection::btree_set([0u64..9, 0..1 << 40, 0..300], 1..400),
            new in prop::collection::btree_set([0u64..9, 0..1 << 40, 0..300], 1..400),
            share in 0usize..400,
        ) {
            let new: Rows = new.into_iter().chain(old.iter().take(share).copied()).take(500).collect();
            round_trip(&leaf(&old), &leaf(&new));
        }

        #[test]
        fn any_bytes_are_an_error_or_a_page(
            how in 0u8..4,
            bytes in prop::collection::vec(any::<u8>(), 0..40),
            flips in prop::collection::vec((0usize..200, any::<u8>()), 0..3),
        ) {
            let bytes: Vec<u8> = std::iter::once(how).chain(bytes).collect();
            let mut page = leaf(&some(200));
            flips.iter().for_each(|(at, b)| page[SKIPPED + at] ^= b);
            let _ = apply(&mut page, &[&bytes]);
        }
    }
}
