//! One leaf of a tuple tree, the changes that fall into it, and their outcome.
//!
//! 1. each change is looked up: adding a row that is there, or taking one that is not, has no
//!    effect;
//! 2. if the tail has room for what is left, it takes it (few bytes of the page change);
//! 3. else blocks, tail and changes are merged, and the caller has them packed anew: into one
//!    leaf or, when they do not fit, into several of about equal size. It may have the next
//!    leaf joined first: two full leaves become three (as in a B*-tree), two sparse ones become
//!    one. Rows that all come behind the leaf's last one fill the leaves to the last byte, as a
//!    bulk build does.
//!
//! Nothing here writes a page that a reader may see: the caller gives pages that are its own.

use std::ops::Range;

use crate::format::encoding::bits::BLOCK;
use crate::format::encoding::{BODY, Bad, Decode};
use crate::format::key::Key;
use crate::format::key::MAX_ARITY;
use crate::format::tuple::leaf::LeafCursor;
use crate::format::tuple::leaf_build::LeafBuilder;
use crate::format::tuple::tail::{self, Tail, body_with_room, has_room};
use crate::page::{BODY_BYTES, PageBuf};
use crate::tree::tuple::changes::Changes;
use crate::tree::tuple::distinct::PrefixChanges;

/// Rows of a tail for which a leaf that is packed anew keeps room.
const SPARE_ROWS: usize = 8;

/// How full leaves become at most that are packed with others; their rows are not all of the
/// same size.
const DENSE: f64 = 0.92;

/// A leaf that is packed anew and fuller than this stays alone.
const SPARSE: f64 = 0.3;

/// Outcome of the changes for a leaf.
pub(crate) enum LeafChange {
    /// No change had an effect.
    Nothing,
    /// The tail takes the changes: [`LeafChanger::write_tail`] writes them.
    Tail,
    /// Its rows are merged: [`LeafChanger::pack`] packs them.
    Merged,
}

/// A packed leaf.
pub(crate) struct Piece {
    pub page: PageBuf,
    pub first: Key,
    pub last: Key,
    pub rows: u64,
}

/// A change that has an effect.
struct Edit {
    /// Number of the change.
    change: usize,
    insert: bool,
    /// Rows of the blocks, and of the tail, below it.
    position: usize,
    rank: usize,
    /// The row is in the tail, alive or as a tombstone.
    in_tail: bool,
}

/// How leaves are filled that are packed anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fill {
    /// About equally, with room for a tail.
    Even,
    /// To the last byte.
    Full,
}

/// Changes leaves; reused from leaf to leaf.
pub(crate) struct LeafChanger {
    arity: usize,
    cursor: LeafCursor,
    builder: LeafBuilder,
    edits: Vec<Edit>,
    /// Rows that came since the last [`LeafChanger::change`] began.
    pub inserted: u64,
    /// Rows that went since then.
    pub deleted: u64,
    fill: Fill,
    /// About how many leaves the merged rows need.
    leaves: f64,
    /// Changes of the numbers of distinct prefixes by the edits, over all leaves.
    pub prefixes: PrefixChanges,
    value: Vec<u64>,
    old: [Vec<u64>; MAX_ARITY],
    new: [Vec<u64>; MAX_ARITY],
}

impl LeafChanger {
    pub(crate) fn new(arity: usize) -> LeafChanger {
        LeafChanger {
            arity,
            cursor: LeafCursor::new(arity),
            builder: LeafBuilder::new(arity),
            edits: Vec::new(),
            inserted: 0,
            deleted: 0,
            fill: Fill::Even,
            leaves: 0.0,
            prefixes: PrefixChanges::new(arity),
            value: Vec::new(),
            old: Default::default(),
            new: Default::default(),
        }
    }

    /// Finds out what the changes `range` do to the leaf in `page`; `effective` has one entry
    /// for each of them.
    pub(crate) fn change(
        &mut self,
        page: &[u8],
        changes: &Changes,
        range: Range<usize>,
        effective: &mut [bool],
    ) -> Decode<LeafChange> {
        (self.inserted, self.deleted, self.leaves) = (0, 0, 0.0);
        assert_eq!(range.len(), effective.len(), "an answer for each change");
        self.open(page, changes, range, effective)?;
        if self.edits.is_empty() {
            return Ok(LeafChange::Nothing);
        }
        let end = self.cursor.blocks_end(page)?;
        let tail_rows = self.cursor.tail().map_or(0, |t| t.len);
        let added = self.edits.iter().filter(|e| !e.in_tail).count();
        let rows = (self.cursor.len() as u64 + self.inserted).saturating_sub(self.deleted);
        if rows > 0 && has_room(end, self.arity, tail_rows + added) {
            return Ok(LeafChange::Tail);
        }
        self.new.iter_mut().for_each(Vec::clear);
        self.fill = if self.appends() { Fill::Full } else { Fill::Even };
        self.merge(page, changes)?;
        Ok(LeafChange::Merged)
    }

    /// Adds the leaf in `page`, which follows the last one, with its changes to the merged rows.
    pub(crate) fn join(
        &mut self,
        page: &[u8],
        changes: &Changes,
        range: Range<usize>,
        effective: &mut [bool],
    ) -> Decode<()> {
        self.open(page, changes, range, effective)?;
        self.merge(page, changes)
    }

    /// True when the merged rows are better packed together with those of the next leaf: when
    /// they need a second leaf, or little of one.
    pub(crate) fn wants_next(&self) -> bool {
        self.fill == Fill::Even
            && ((SPARSE > self.leaves && !self.new[0].is_empty()) || (1.0..2.0).contains(&self.leaves))
    }

    /// Reads a leaf and finds the edits that its changes come to.
    fn open(
        &mut self,
        page: &[u8],
        changes: &Changes,
        range: Range<usize>,
        effective: &mut [bool],
    ) -> Decode<()> {
        self.cursor.reset(self.arity);
        self.cursor.open(page)?;
        self.find_edits(page, changes, range, effective)?;
        self.note_prefixes(page, changes)?;
        let inserted = self.edits.iter().filter(|e| e.insert).count() as u64;
        self.inserted += inserted;
        self.deleted += self.edits.len() as u64 - inserted;
        Ok(())
    }

    /// Writes the edits of the last [`LeafChanger::change`] into the tail of `page`, which is a
    /// copy of the page it was given.
    pub(crate) fn write_tail(&self, page: &mut [u8], changes: &Changes) -> Decode<()> {
        for edit in &self.edits {
            let tail = Tail::parse(page, self.arity, self.cursor.block_rows())?;
            let row = changes.row(edit.change);
            let row = &row[..self.arity];
            let at = tail.lower(page, row)?;
            match edit.in_tail {
                true if at == tail.len => return Err(Bad("a tail that is not sorted")),
                true => tail::remove(page, &tail, at),
                false => tail::add(page, &tail, at, row, edit.position, !edit.insert),
            }
        }
        Ok(())
    }

    /// Packs the inserts of `changes` from number `from` on: for a tree that is empty so far.
    pub(crate) fn pack_inserts(&mut self, changes: &Changes, from: usize) -> Vec<Piece> {
        self.new.iter_mut().for_each(Vec::clear);
        for i in (from..changes.len()).filter(|&i| changes.insert[i]) {
            self.new.iter_mut().zip(&changes.cols).for_each(|(new, column)| new.push(column[i]));
        }
        self.prefixes.note_rows(&self.new[..self.arity]);
        (self.fill, self.leaves) = (Fill::Even, 0.0);
        self.pack()
    }

    fn find_edits(
        &mut self,
        page: &[u8],
        changes: &Changes,
        range: Range<usize>,
        effective: &mut [bool],
    ) -> Decode<()> {
        self.edits.clear();
        let mut from = 0;
        for (flag, change) in effective.iter_mut().zip(range) {
            let row = changes.row(change);
            let row = &row[..self.arity];
            let position = self.cursor.lower_in_blocks(page, from, row)?;
            let in_blocks = self.cursor.upper_in_blocks(page, position, row)? > position;
            let (mut rank, mut in_tail, mut there) = (0, false, in_blocks);
            if let Some(tail) = self.cursor.tail() {
                rank = tail.lower(page, row)?;
                in_tail = rank < tail.len && tail.compare(page, rank, row)?.is_eq();
                there = if in_tail { !tail.is_dead(rank) } else { in_blocks };
            }
            let insert = changes.insert[change];
            *flag = insert != there;
            if *flag {
                self.edits.push(Edit { change, insert, position, rank, in_tail });
            }
            from = position;
        }
        Ok(())
    }

    /// Tells, edit by edit, what each row shares with its neighbours at that time.
    fn note_prefixes(&mut self, page: &[u8], changes: &Changes) -> Decode<()> {
        let (edits, len) = (std::mem::take(&mut self.edits), self.cursor.len());
        // The neighbour on the left of visible position `next`, when it is not the old row
        // before it.
        let (mut next, mut carried): (usize, Option<Key>) = (0, None);
        for edit in &edits {
            let (row, at) = (changes.row(edit.change), self.visible(edit));
            let left = match (at > next, &carried) {
                (true, _) => Some(self.shared(page, at - 1, &row)?),
                (false, Some(left)) => Some(common(left, &row)),
                (false, None) => None,
            };
            let behind = if edit.insert { at } else { at + 1 };
            let right = if behind < len { Some(self.shared(page, behind, &row)?) } else { None };
            self.prefixes.note(&row, edit.insert, left, right);
            carried = match (edit.insert, at > next) {
                (true, _) => Some(row),
                (false, true) => Some(self.visible_row(page, at - 1)?),
                (false, false) => carried,
            };
            next = behind;
        }
        self.edits = edits;
        Ok(())
    }

    /// Number of leading columns that the old row at visible position `at` has in common with
    /// `row`.
    fn shared(&mut self, page: &[u8], at: usize, row: &Key) -> Decode<usize> {
        for (c, &v) in row.iter().enumerate().take(self.arity) {
            if self.value(page, at, c)? != v {
                return Ok(c);
            }
        }
        Ok(self.arity)
    }

    fn visible_row(&mut self, page: &[u8], at: usize) -> Decode<Key> {
        let mut row = Key::default();
        for (c, v) in row.iter_mut().enumerate().take(self.arity) {
            *v = self.value(page, at, c)?;
        }
        Ok(row)
    }

    fn value(&mut self, page: &[u8], at: usize, column: usize) -> Decode<u64> {
        self.value.clear();
        self.cursor.append(page, column, at, at + 1, &mut self.value)?;
        self.value.pop().ok_or(Bad("a row that is not in its leaf"))
    }

    /// True when all edits add rows behind the last one.
    fn appends(&self) -> bool {
        let len = self.cursor.len();
        self.edits.iter().all(|e| e.insert && self.visible(e) == len)
    }

    /// Where an edit happens among the visible rows.
    fn visible(&self, edit: &Edit) -> usize {
        let shift = self.cursor.tail().map_or(0, |t| t.shift(edit.rank));
        (edit.position as isize + shift).max(0) as usize
    }

    /// Appends all rows of the leaf, with the edits carried out, to `new`.
    fn merge(&mut self, page: &[u8], changes: &Changes) -> Decode<()> {
        self.old.iter_mut().for_each(Vec::clear);
        let len = self.cursor.len();
        let mut at = 0;
        while at < len {
            let to = self.cursor.stretch(at, len);
            for (c, column) in self.old.iter_mut().enumerate().take(self.arity) {
                self.cursor.append(page, c, at, to, column)?;
            }
            at = to;
        }
        for c in 0..self.arity {
            let (mut new, old) = (std::mem::take(&mut self.new[c]), &self.old[c]);
            let mut done = 0;
            for edit in &self.edits {
                let at = self.visible(edit).clamp(done, len);
                new.extend_from_slice(&old[done..at]);
                done = at;
                match edit.insert {
                    true => new.push(changes.cols[c][edit.change]),
                    false => done = (at + 1).min(len),
                }
            }
            new.extend_from_slice(&old[done..]);
            self.new[c] = new;
        }
        let row_bytes = (self.cursor.blocks_end(page)? - BODY) as f64 / self.cursor.block_rows() as f64;
        let rows =
            (len + self.edits.len()) as f64 - 2.0 * self.edits.iter().filter(|e| !e.insert).count() as f64;
        self.leaves += rows * row_bytes / self.roomy() as f64;
        Ok(())
    }

    /// Bytes of a body that leave room for a short tail.
    fn roomy(&self) -> usize {
        body_with_room(self.arity, SPARE_ROWS)
    }

    /// Packs the merged rows into leaves; none when there are no rows.
    pub(crate) fn pack(&mut self) -> Vec<Piece> {
        let (rows, fill) = (self.new[0].len(), self.fill);
        assert!(self.new[..self.arity].iter().all(|c| c.len() == rows), "columns of one length");
        if rows == 0 {
            return Vec::new();
        }
        self.builder.set_limit(if fill == Fill::Full { BODY_BYTES } else { self.roomy() });
        let mut leaves = (self.leaves / DENSE).ceil() as usize;
        if fill == Fill::Even && self.leaves < 1.03 {
            let taken = self.fill(0, rows);
            if taken == rows {
                return vec![self.finish(0, rows)];
            }
            self.builder.clear();
            leaves = rows.div_ceil(taken);
        }
        let (mut pieces, mut done) = (Vec::new(), 0);
        while done < rows {
            let left = leaves.saturating_sub(pieces.len()).max(1);
            let want = if fill == Fill::Full { rows - done } else { (rows - done).div_ceil(left) };
            let taken = self.fill(done, done + want);
            pieces.push(self.finish(done, done + taken));
            done += taken;
        }
        assert_eq!(done, rows, "each row is in a leaf");
        pieces
    }

    /// Fills a leaf with rows `from .. to` of `new`, and says how many fit.
    fn fill(&mut self, from: usize, to: usize) -> usize {
        let mut at = from;
        while at < to {
            let rest: [&[u64]; MAX_ARITY] = std::array::from_fn(|c| self.new[c].get(at..to).unwrap_or(&[]));
            let taken = self.builder.add(&rest[..self.arity]);
            at += taken;
            if taken < BLOCK {
                break;
            }
        }
        assert!(at > from, "a row fits into an empty leaf");
        at - from
    }

    fn finish(&mut self, from: usize, to: usize) -> Piece {
        assert!(from < to, "a leaf has rows");
        assert_eq!(self.builder.rows(), to - from, "the leaf has just these rows");
        let mut page = PageBuf::new();
        self.builder.finish(&mut page);
        let row = |at: usize| std::array::from_fn(|c| self.new[c].get(at).copied().unwrap_or(0));
        Piece { page, first: row(from), last: row(to - 1), rows: (to - from) as u64 }
    }
}

/// Number of leading columns that two rows have in common.
fn common(a: &Key, b: &Key) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
