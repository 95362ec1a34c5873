//! A leaf that was packed anew. The diff is, behind its tag:
//!
//! | bytes  | field                                                                                                       |
//! |--------|-------------------------------------------------------------------------------------------------------------|
//! | 4      | once: low half of the XXH3-64 of the new page from byte 24 on                                               |
//! | varint | rows that stay, rows that go, rows that come: a step; what follows the last one stays                       |
//! | varint | each column of each row that comes: its difference, zigzag, to the one of the row that comes before it      |
//!
//! The new page is what `LeafBuilder` makes of the rows.

use std::cmp::Ordering;

use crate::format::key::MAX_ARITY;
use crate::format::tuple::row_diff::columns::{RowColumns, are_leaves, pack, rows};
use crate::format::varint::{put, zigzag};
use crate::page::image::{SKIPPED, check};

/// First byte of such a diff.
pub(super) const TAG: u8 = 2;

/// Appends the difference between two leaves to `out`, the new one packed anew. False when
/// there is none to be given, or only one of more than `limit` bytes; what was appended is
/// useless then.
pub(crate) fn diff(old: &[u8], new: &[u8], limit: usize, out: &mut Vec<u8>) -> bool {
    if !are_leaves(old, new) {
        return false;
    }
    let (Ok((arity, before)), Ok((new_arity, after))) = (rows(old), rows(new)) else { return false };
    // Rows that do not ascend are of a damaged leaf: it is told in bytes.
    let ascends =
        (1..before[0].len()).all(|i| compare(&before, i - 1, &before, i, arity) == Some(Ordering::Less));
    if !ascends
        || arity != new_arity
        || !pack(old, arity, &after).is_ok_and(|p| p[SKIPPED..] == new[SKIPPED..])
    {
        return false;
    }
    let end = out.len() + limit;
    out.push(TAG);
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

/// How row `i` of one leaf compares with row `j` of another; the end of one is above all rows
/// of the other.
fn compare(a: &RowColumns, i: usize, b: &RowColumns, j: usize, arity: usize) -> Option<Ordering> {
    match (i < a[0].len(), j < b[0].len()) {
        (false, false) => None,
        (true, false) => Some(Ordering::Less),
        (false, true) => Some(Ordering::Greater),
        (true, true) => {
            Some((0..arity).map(|c| a[c][i].cmp(&b[c][j])).find(|o| o.is_ne()).unwrap_or(Ordering::Equal))
        }
    }
}
