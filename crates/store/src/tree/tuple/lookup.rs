//! Batched lookup: the rows of many sorted keys, in key order.
//!
//! Chunk by chunk: the descent finds the leaves of all keys of a chunk and wishes for them
//! together; then the leaves are visited in key order. A key that follows its predecessor in
//! the same leaf, often in the same block, continues where that ended. Output may be cut
//! anywhere; the lookup resumes there. No pin is held between calls.

use std::cmp::Ordering;
use std::collections::VecDeque;

use crate::error::Result;
use crate::format::encoding::Decode;
use crate::format::encoding::touch;
use crate::format::tuple::leaf::{Leaf, LeafCursor};
use crate::page::PageId;
use crate::tree::descent::{Descent, Shape};
use crate::tree::read::decoded;
use crate::tree::rows::{Bounds, Keys, Matches};
use crate::tree::spare::{self, Spare};
use crate::tree::tuple::TupleTree;
use crate::{PageRef, Reader};

/// A lookup under way; see [`TupleTree::lookup`].
pub struct TupleLookup<'a> {
    keys: Keys<'a>,
    way: LookupWay,
}

/// A lookup under way, without its keys: for an operator that owns the keys and hands them in at
/// each call; see [`TupleTree::lookup_way`].
pub struct LookupWay {
    shape: Shape,
    plan: Descent,
    cursor: LeafCursor,
    /// Next key of the chunk, as a position in `plan.spans`.
    key: usize,
    /// Node the key is in; with `row` and `end` its rows there that are still to come.
    node: u32,
    row: usize,
    end: usize,
    /// The key's rows in `node` are known.
    found: bool,
    /// Leaf the cursor is on, its position and parent, and where the last key ended there.
    at: Option<Visited>,
    resident: bool,
    done: bool,
}

#[derive(Clone, Copy)]
struct Visited {
    leaf: PageId,
    node: u32,
    /// No row of a later key is before this one.
    from: usize,
}

impl<'a> TupleLookup<'a> {
    pub(crate) fn new(tree: &TupleTree, keys: Keys<'a>) -> TupleLookup<'a> {
        TupleLookup { keys, way: LookupWay::new(tree, &keys) }
    }

    /// Appends up to `max_rows` rows to `out`; false when there was none left.
    ///
    /// # Errors
    /// Reading a page failed, or a page contradicts the format.
    pub fn next(&mut self, reader: &mut Reader, out: &mut Matches, max_rows: usize) -> Result<bool> {
        self.way.next(reader, &self.keys, out, max_rows)
    }
}

impl LookupWay {
    pub(crate) fn new(tree: &TupleTree, keys: &Keys<'_>) -> LookupWay {
        keys.check(tree.shape.arity);
        let spare = spare::take(tree.shape.arity);
        LookupWay {
            shape: tree.shape,
            plan: spare.plan,
            cursor: spare.cursor,
            key: 0,
            node: 0,
            row: 0,
            end: 0,
            found: false,
            at: None,
            resident: false,
            done: keys.rows == 0 || tree.shape.height == 0,
        }
    }

    /// Appends up to `max_rows` rows to `out`; false when there was none left. `keys` are those
    /// it began with.
    ///
    /// # Errors
    /// Reading a page failed, or a page contradicts the format.
    pub fn next(
        &mut self,
        reader: &mut Reader,
        keys: &Keys<'_>,
        out: &mut Matches,
        max_rows: usize,
    ) -> Result<bool> {
        assert!(max_rows > 0, "a lookup is asked for at least one row");
        let before = out.key.len();
        let most = before.saturating_add(max_rows);
        let mut page = Pinned::default();
        while !self.done && out.key.len() < most {
            if self.key == self.plan.spans.len() {
                page = Pinned::default();
                self.next_chunk(reader, keys)?;
                continue;
            }
            let span = self.plan.spans[self.key];
            if !self.found {
                self.find(reader, keys, &mut page, span)?;
            }
            let leaf = self.pin(reader, &mut page.here)?;
            let result = self.emit(leaf, keys, out, most);
            decoded(reader, self.plan.nodes[self.node as usize], result)?;
            if self.row == self.end {
                self.advance(span);
            }
        }
        let rows = (out.key.len() - before) as u64;
        reader.meters.seq += rows;
        reader.touch(self.shape.id, rows);
        Ok(rows > 0)
    }

    fn next_chunk(&mut self, reader: &mut Reader, keys: &Keys<'_>) -> Result<()> {
        let (first, resume) = (self.plan.end, self.plan.cut);
        if first == keys.rows {
            self.done = true;
            return Ok(());
        }
        self.resident = reader.resident(self.shape.id);
        let limit = Descent::limit(self.resident, reader);
        self.plan.begin(&self.shape, keys, first, resume, limit);
        self.plan.descend(reader, &self.shape, keys)?;
        self.key = 0;
        self.node = self.plan.spans.first().map_or(0, |s| s.0);
        self.found = false;
        Ok(())
    }

    /// The pinned leaf of the current node.
    #[inline]
    fn pin<'p>(&self, reader: &mut Reader, page: &'p mut Option<PageRef>) -> Result<&'p PageRef> {
        if page.is_none() {
            *page = Some(reader.page(self.shape.id, self.plan.nodes[self.node as usize])?);
        }
        Ok(page.as_ref().expect("just pinned"))
    }

    /// Finds the current key's rows in the current node.
    fn find(
        &mut self,
        reader: &mut Reader,
        keys: &Keys<'_>,
        page: &mut Pinned,
        span: (u32, u32),
    ) -> Result<()> {
        let k = self.plan.first + self.key;
        let id = self.plan.nodes[self.node as usize];
        let (first, last) = (self.node == span.0, self.node == span.1);
        let stays = self.at.is_some_and(|at| at.leaf == id);
        if !stays {
            page.here = page.take(self.node);
            self.pin(reader, &mut page.here)?;
            self.look_ahead(reader, keys, page)?;
            let leaf = self.pin(reader, &mut page.here)?;
            decoded(reader, id, self.cursor.open(leaf))?;
            self.meet_leaf(reader, id, first);
        }
        let before = self.cursor.block();
        let leaf = self.pin(reader, &mut page.here)?;
        let at = self.at.as_mut().expect("a leaf is open");
        if keys.repeats(k) {
            at.from = 0;
        }
        let bounds = keys.bounds(k);
        let (row, end) = decoded(reader, id, rows_of(&mut self.cursor, leaf, at.from, &bounds, first, last))?;
        (self.row, self.end, self.found) = (row, end, true);
        at.from = end;
        if first && (self.key > 0 || self.plan.resume.is_none()) {
            reader.meters.rnd += 1;
            if stays && self.cursor.block() == before {
                reader.meters.same_seg += 1;
            } else if stays {
                reader.meters.same_pg += 1;
            }
        }
        Ok(())
    }

    /// Software pipeline over the leaves of a resident tree: the directory of a leaf is loaded
    /// [`AHEAD`] leaves before its visit, the block of its first key one leaf before. So misses
    /// overlap with work, and with each other.
    #[inline]
    fn look_ahead(&self, reader: &mut Reader, keys: &Keys<'_>, page: &mut Pinned) -> Result<()> {
        if !self.resident {
            return Ok(());
        }
        while page.ahead.len() < AHEAD {
            let node = page.ahead.back().map_or(self.node, |(node, _)| *node) + 1;
            let Some(&id) = self.plan.nodes.get(node as usize) else { break };
            let next = reader.page(self.shape.id, id)?;
            touch(&next, 0, DIRECTORY);
            page.ahead.push_back((node, next));
        }
        if let Some((node, next)) = page.ahead.front() {
            let spans = self.plan.spans.iter().enumerate().skip(self.key + 1).take(8);
            if let Some((key, _)) = spans.into_iter().find(|(_, span)| span.0 == *node) {
                let bounds = keys.bounds(self.plan.first + key);
                // A fault of the leaf is reported when it is visited.
                let _ = Leaf::parse(next, self.shape.arity).and_then(|l| l.touch_block_of(next, bounds.lo()));
            }
        }
        Ok(())
    }

    /// Notes that the cursor is on another leaf.
    fn meet_leaf(&mut self, reader: &mut Reader, leaf: PageId, counts: bool) {
        let parent = |node: u32| self.plan.parents.get(node as usize);
        let same_chunk = self.key > 0;
        if counts && same_chunk && self.at.is_some_and(|at| parent(at.node) == parent(self.node)) {
            reader.meters.same_par += 1;
        }
        self.at = Some(Visited { leaf, node: self.node, from: 0 });
    }

    /// Appends rows of the current key up to `most` rows in all.
    #[inline]
    fn emit(&mut self, leaf: &[u8], keys: &Keys<'_>, out: &mut Matches, most: usize) -> Decode<()> {
        let m = keys.cols.len();
        let k = (self.plan.first + self.key) as u32;
        while self.row < self.end && out.key.len() < most {
            let to = self.end.min(self.row.saturating_add(most - out.key.len()));
            let to = self.cursor.stretch(self.row, to);
            for (c, column) in out.cols.iter_mut().enumerate() {
                if out.wanted >> c & 1 == 1 {
                    self.cursor.append(leaf, m + c, self.row, to, column)?;
                }
            }
            out.key.resize(out.key.len() + to - self.row, k);
            self.row = to;
        }
        Ok(())
    }

    /// To the next leaf of the key, or to the next key.
    #[inline]
    fn advance(&mut self, span: (u32, u32)) {
        self.found = false;
        if self.node < span.1 {
            self.node += 1;
        } else {
            self.key += 1;
            if let Some(next) = self.plan.spans.get(self.key) {
                self.node = next.0;
            }
        }
    }
}

/// Bytes at the begin of a leaf that are loaded ahead: header, restart keys of 128-row blocks,
/// offsets.
const DIRECTORY: usize = 448;

/// Leaves pinned ahead of the current one.
const AHEAD: usize = 4;

/// Leaves pinned during a call.
#[derive(Default)]
struct Pinned {
    here: Option<PageRef>,
    /// The leaves after it, with their positions, when the tree is resident.
    ahead: VecDeque<(u32, PageRef)>,
}

impl Pinned {
    /// The leaf at `node`, if it was pinned ahead; leaves before it are let go.
    fn take(&mut self, node: u32) -> Option<PageRef> {
        while let Some((at, page)) = self.ahead.pop_front() {
            match at.cmp(&node) {
                Ordering::Less => {}
                Ordering::Equal => return Some(page),
                Ordering::Greater => self.ahead.clear(),
            }
        }
        None
    }
}

/// Rows of a key in an open leaf, none of them before `from`; in the key's first leaf they
/// begin at its lower bound, in its last one they end at its upper bound.
#[inline]
fn rows_of(
    cursor: &mut LeafCursor,
    leaf: &[u8],
    from: usize,
    bounds: &Bounds,
    first: bool,
    last: bool,
) -> Decode<(usize, usize)> {
    match (first, last) {
        (true, true) => cursor.find(leaf, from, bounds.lo(), bounds.hi()),
        (true, false) => Ok((cursor.lower(leaf, from, bounds.lo())?, cursor.len())),
        (false, true) => Ok((0, cursor.upper(leaf, 0, bounds.hi())?)),
        (false, false) => Ok((0, cursor.len())),
    }
}

impl Drop for LookupWay {
    fn drop(&mut self) {
        let (plan, cursor) = (std::mem::take(&mut self.plan), std::mem::take(&mut self.cursor));
        spare::give(Spare { plan, cursor, ..Spare::default() });
    }
}
