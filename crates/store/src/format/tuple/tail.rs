//! The tail of a tuple leaf: up to 32 rows that were added to or taken from the leaf since its
//! blocks were packed.
//!
//! It grows from the end of the page, so that one changed row touches few bytes (a journal diff
//! of about 50):
//!
//! ```text
//! 36    rows of the tail u16 | 38: its first byte u16                             both 0 without a tail
//! 8160  order: 32 × u8, the rows of the tail in key order: slot in the low 5 bits, bit 7: a tombstone
//!       slot s begins at 8160 − (s + 1) · (2 + 8 · arity): position u16, then the row, one u64 per column
//! ```
//!
//! A tombstone hides the equal row of the blocks; any other row of the tail is not in the
//! blocks. `position` is the number of rows of the blocks below the row; it stays right because
//! the blocks do not change as long as there is a tail.
//!
//! Positions of rows in a leaf count what a reader sees (*visible* positions): rows of the
//! blocks without the hidden ones, rows of the tail between them.

use crate::format::encoding::{BODY, Bad, Decode, load, load_u16, partition};
use crate::format::key::Key;
use crate::page::PAGE_BYTES;
use std::cmp::Ordering;

/// Most rows of a tail.
pub(crate) const TAIL_MAX: usize = 32;

/// Where the order of the tail's rows begins.
pub(crate) const TAIL_ORDER: usize = PAGE_BYTES - TAIL_MAX;

/// Offsets of the fixed fields.
const ROWS_AT: usize = 36;
const BEGIN_AT: usize = 38;

/// Marks a tombstone in the order.
pub(crate) const TOMBSTONE: u8 = 0x80;
const SLOT: u8 = 0x1f;

/// Bytes of a slot.
pub(crate) fn slot_bytes(arity: usize) -> usize {
    2 + 8 * arity
}

/// Where slot `slot` begins.
fn slot_at(arity: usize, slot: usize) -> usize {
    TAIL_ORDER - (slot + 1) * slot_bytes(arity)
}

/// A tail found in a page. All accesses take the page it was parsed from.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tail {
    /// Rows, tombstones included.
    pub len: usize,
    arity: usize,
    /// Bit per row: a tombstone.
    dead: u32,
    slots: [u8; TAIL_MAX],
    positions: [u16; TAIL_MAX],
    /// Visible position of each row, or of the gap it leaves; behind the last one `u32::MAX`.
    visible: [u32; TAIL_MAX],
}

/// Source of the row at a visible position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spot {
    /// A row of the tail.
    Tail(usize),
    /// The row of the blocks with this position, and how many follow it undisturbed, itself
    /// included.
    Blocks(usize, usize),
}

impl Default for Spot {
    fn default() -> Spot {
        Spot::Tail(0)
    }
}

impl Tail {
    /// Reads the tail of a leaf whose blocks have `rows` rows.
    pub(crate) fn parse(page: &[u8], arity: usize, rows: usize) -> Decode<Tail> {
        let mut tail = Tail { len: load_u16(page, ROWS_AT)?, arity, ..Tail::default() };
        tail.visible = [u32::MAX; TAIL_MAX];
        let begin = load_u16(page, BEGIN_AT)?;
        if tail.len > TAIL_MAX || begin > TAIL_ORDER {
            return Err(Bad("a tail that does not fit its leaf"));
        }
        let mut least = 0;
        for i in 0..tail.len {
            let entry = page[TAIL_ORDER + i];
            let slot = entry & SLOT;
            let at = slot_at(arity, slot.into());
            if at < begin {
                return Err(Bad("a row of a tail lies before it"));
            }
            let position = load_u16(page, at)?;
            let dead = entry & TOMBSTONE != 0;
            if position < least || position + usize::from(dead) > rows {
                return Err(Bad("positions of a tail that are not in order"));
            }
            least = position + usize::from(dead);
            tail.dead |= u32::from(dead) << i;
            (tail.slots[i], tail.positions[i]) = (slot, position as u16);
            tail.visible[i] = (position as isize + tail.shift(i)) as u32;
        }
        Ok(tail)
    }

    /// True when row `i` of the tail is a tombstone.
    pub(crate) fn is_dead(&self, i: usize) -> bool {
        self.dead >> i & 1 == 1
    }

    /// Rows of the blocks below row `i`.
    pub(crate) fn position(&self, i: usize) -> usize {
        self.positions[i].into()
    }

    /// Value of a column of row `i`.
    pub(crate) fn value(&self, page: &[u8], i: usize, column: usize) -> Decode<u64> {
        load(page, slot_at(self.arity, self.slots[i].into()) + 2 + 8 * column, 8)
    }

    /// Row `i`.
    pub(crate) fn row(&self, page: &[u8], i: usize) -> Decode<Key> {
        let mut row = Key::default();
        for (c, v) in row.iter_mut().enumerate().take(self.arity) {
            *v = self.value(page, i, c)?;
        }
        Ok(row)
    }

    /// By how much the first `i` rows of the tail move what follows them.
    pub(crate) fn shift(&self, i: usize) -> isize {
        let hidden = (u64::from(self.dead) & ((1 << i) - 1)).count_ones() as isize;
        i as isize - 2 * hidden
    }

    /// Rows of the tail whose leading columns are below `key`, or, `upto`, not above it.
    fn rank(&self, page: &[u8], key: &[u64], upto: bool) -> Decode<usize> {
        partition(0, self.len, |i| {
            let order = self.compare(page, i, key)?;
            Ok(order == Ordering::Less || (upto && order == Ordering::Equal))
        })
    }

    /// Rows of the tail whose leading columns are below `key`.
    pub(crate) fn lower(&self, page: &[u8], key: &[u64]) -> Decode<usize> {
        self.rank(page, key, false)
    }

    /// Rows of the tail whose leading columns are not above `key`.
    pub(crate) fn upper(&self, page: &[u8], key: &[u64]) -> Decode<usize> {
        self.rank(page, key, true)
    }

    /// Compares the leading columns of row `i` with `key`.
    pub(crate) fn compare(&self, page: &[u8], i: usize, key: &[u64]) -> Decode<Ordering> {
        for (c, k) in key.iter().enumerate() {
            match self.value(page, i, c)?.cmp(k) {
                Ordering::Equal => {}
                other => return Ok(other),
            }
        }
        Ok(Ordering::Equal)
    }

    /// A position in the blocks that is not behind the rows from visible position `at` on.
    pub(crate) fn floor(&self, at: usize) -> usize {
        let before = self.visible.iter().filter(|&&v| (v as usize) < at).count();
        (at as isize - self.shift(before)).max(0) as usize
    }

    /// Source of the row at visible position `at`.
    pub(crate) fn spot(&self, at: usize) -> Spot {
        // Of the rows at `at` itself tombstones come first: they leave gaps before it.
        let below = self.visible.iter().filter(|&&v| (v as usize) < at).count();
        let here = self.visible[below..].iter().take_while(|&&v| v as usize == at).count();
        let before = (below..below + here).take_while(|&i| self.is_dead(i)).count() + below;
        let position = (at as isize - self.shift(before)).max(0) as usize;
        if before == self.len {
            return Spot::Blocks(position, usize::MAX - position);
        }
        match usize::from(self.positions[before]).saturating_sub(position) {
            0 => Spot::Tail(before),
            run => Spot::Blocks(position, run),
        }
    }
}

/// Adds row `row` to the tail of a leaf, as number `at` in key order, or a tombstone for it.
/// The caller has seen that there is room.
pub(crate) fn add(page: &mut [u8], tail: &Tail, at: usize, row: &[u64], position: usize, dead: bool) {
    assert!(tail.len < TAIL_MAX && at <= tail.len, "a full tail is merged");
    assert_eq!(row.len(), tail.arity, "a row has as many columns as its leaf");
    assert!(position <= usize::from(u16::MAX), "a leaf has fewer rows than 65536");
    let used = tail.slots[..tail.len].iter().fold(0u32, |used, &s| used | 1 << s);
    let slot = used.trailing_ones() as usize;
    let begin = slot_at(row.len(), slot);
    page[begin..begin + 2].copy_from_slice(&(position as u16).to_le_bytes());
    for (c, v) in row.iter().enumerate() {
        page[begin + 2 + 8 * c..begin + 10 + 8 * c].copy_from_slice(&v.to_le_bytes());
    }
    page.copy_within(TAIL_ORDER + at..TAIL_ORDER + tail.len, TAIL_ORDER + at + 1);
    page[TAIL_ORDER + at] = slot as u8 | if dead { TOMBSTONE } else { 0 };
    let known = u16::from_le_bytes([page[BEGIN_AT], page[BEGIN_AT + 1]]) as usize;
    let begin = if tail.len == 0 { begin } else { begin.min(known) };
    set_fields(page, tail.len + 1, begin);
}

/// Takes row number `at` out of the tail.
pub(crate) fn remove(page: &mut [u8], tail: &Tail, at: usize) {
    assert!(at < tail.len, "only what is in the tail can leave it");
    page.copy_within(TAIL_ORDER + at + 1..TAIL_ORDER + tail.len, TAIL_ORDER + at);
    page[TAIL_ORDER + tail.len - 1] = 0;
    let known = u16::from_le_bytes([page[BEGIN_AT], page[BEGIN_AT + 1]]) as usize;
    set_fields(page, tail.len - 1, if tail.len == 1 { 0 } else { known });
}

fn set_fields(page: &mut [u8], rows: usize, begin: usize) {
    page[ROWS_AT..ROWS_AT + 2].copy_from_slice(&(rows as u16).to_le_bytes());
    page[BEGIN_AT..BEGIN_AT + 2].copy_from_slice(&(begin as u16).to_le_bytes());
}

/// Bytes of a body that leave room for a tail of `rows` rows.
pub(crate) fn body_with_room(arity: usize, rows: usize) -> usize {
    TAIL_ORDER - BODY - rows * slot_bytes(arity)
}

/// True when a leaf whose blocks end at `end` has room for a tail of `rows` rows.
pub(crate) fn has_room(end: usize, arity: usize, rows: usize) -> bool {
    rows <= TAIL_MAX && end + rows * slot_bytes(arity) <= TAIL_ORDER
}
