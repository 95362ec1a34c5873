//! Changes of a leaf's tail. The diff is, behind its tag and until it ends:
//!
//! | bytes  | field                                                                                                       |
//! |--------|-------------------------------------------------------------------------------------------------------------|
//! | 1      | low bits: 0 a row comes, 1 a tombstone comes, 2 an entry goes; bit 4 + c: how column c is given             |
//! | varint | rows of the blocks below the row; of an entry that goes its number, and no more                             |
//! | varint | each column: its difference, zigzag, to the one of the old leaf's first row; or, bit set, itself, 8 bits to the left |
//!
//! Entries find their slots as in `format::tuple::tail`.

use std::cmp::Ordering;

use crate::format::encoding::{Bad, Decode};
use crate::format::key::Key;
use crate::format::tuple::row_diff::columns::{LeafHead, are_leaves, head};
use crate::format::tuple::tail::{self, TAIL_MAX, Tail};
use crate::format::varint::{put, take, unzigzag, zigzag};
use crate::page::PageBuf;
use crate::page::image::SKIPPED;

/// First byte of such a diff.
pub(super) const TAG: u8 = 1;

const ADD: u8 = 0;
const ADD_TOMBSTONE: u8 = 1;
const REMOVE: u8 = 2;

/// Appends the difference between two leaves that differ in their tails to `out`. False when
/// they do not or it is not that simple; what was appended is useless then.
pub(crate) fn diff(old: &[u8], new: &[u8], out: &mut Vec<u8>) -> bool {
    are_leaves(old, new) && try_diff(old, new, out).unwrap_or(false)
}

fn try_diff(old: &[u8], new: &[u8], out: &mut Vec<u8>) -> Decode<bool> {
    /// More changes are better given as bytes.
    const MANY: usize = 2 * TAIL_MAX;
    let shape = head(old)?;
    let (arity, block_rows) = (shape.arity, shape.block_rows);
    let (was, is) = (Tail::parse(old, arity, block_rows)?, Tail::parse(new, arity, block_rows)?);
    let mut page = PageBuf::copy_of(old);
    out.push(TAG);
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
                &shape.first,
            );
            j += 1;
        } else {
            out.push(REMOVE);
            // So many of the entries before it are in the page by now.
            put(out, j as u64);
            i += 1;
        }
        change_tail(&mut page, &shape, &mut &out[begin..])?;
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

/// A change of a tail.
pub(super) enum TailChange {
    /// An entry comes: a row, or the tombstone of one, and the rows of the blocks below it.
    Add { row: Key, position: usize, is_tombstone: bool },
    /// The entry of this number goes.
    Remove { entry: usize },
}

/// Takes the change at the front of `diff`, of a leaf whose first row was `first`.
pub(super) fn take_change(arity: usize, first: &Key, diff: &mut &[u8]) -> Decode<TailChange> {
    let (what, rest) = diff.split_first().ok_or(Bad("a change ends too early"))?;
    *diff = rest;
    let n = usize::try_from(take(diff)?).map_err(|_| Bad("a position beyond every leaf"))?;
    if what & 0xF == REMOVE {
        return Ok(TailChange::Remove { entry: n });
    }
    let mut row = Key::default();
    for (c, (v, first)) in row.iter_mut().zip(first).enumerate().take(arity) {
        let given = take(diff)?;
        *v = if what >> (4 + c) & 1 == 1 {
            given.rotate_right(8)
        } else {
            first.wrapping_add(unzigzag(given) as u64)
        };
    }
    Ok(TailChange::Add { row, position: n, is_tombstone: what & 0xF == ADD_TOMBSTONE })
}

/// Makes the changes of a diff, without its tag.
pub(super) fn apply(page: &mut [u8], mut diff: &[u8]) -> Decode<()> {
    let shape = head(page)?;
    while !diff.is_empty() {
        change_tail(page, &shape, &mut diff)?;
    }
    Ok(())
}

/// Makes the change at the front of `diff`.
fn change_tail(page: &mut [u8], shape: &LeafHead, diff: &mut &[u8]) -> Decode<()> {
    let change = take_change(shape.arity, &shape.first, diff)?;
    let tail = Tail::parse(page, shape.arity, shape.block_rows)?;
    match change {
        TailChange::Remove { entry } => {
            if entry >= tail.len {
                return Err(Bad("an entry goes that is not in the tail"));
            }
            tail::remove(page, &tail, entry);
        }
        TailChange::Add { row, position, is_tombstone } => {
            let behind = position.saturating_add(usize::from(is_tombstone));
            if tail.len == TAIL_MAX || behind > shape.block_rows {
                return Err(Bad("an entry that cannot come into the tail"));
            }
            let at = tail.lower(page, &row[..shape.arity])?;
            tail::add(page, &tail, at, &row[..shape.arity], position, is_tombstone);
        }
    }
    Ok(())
}
