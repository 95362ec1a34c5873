//! A scan in pieces: threads of one query take neighbouring leaves from it, one piece after the
//! other, and scans of several queries follow each other over the same leaves.
//!
//! 1. A piece is some leaves, found through the inner nodes as those of a [`TupleScan`] are.
//!    A thread that takes a piece first sees to it that those behind it are wished for, more of
//!    them each time. So the device gets one sequential stream per scan in the order of the
//!    tree, however many threads take pieces.
//! 2. A scan may *join* another one of the same tree: it begins at the place where the other is
//!    ([`ScanPieces::place`]), goes to the end, and comes round to what it left out. From there
//!    on both find in the pool what the other has just read. Neither waits for the other: if one
//!    falls behind by more than the pool holds, it reads for itself.
//!
//! Invariant: the pieces of a scan are all leaves of its range, each once. A scan that joined
//! ends in front of the leaf that it began with, which it knows by its page, because a place may
//! be of a tree with other leaves.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use snowmelt_io::Clock;

use crate::error::Result;
use crate::format::key::Key;
use crate::page::PageId;
use crate::sync::long_lock::LongLock;
use crate::tree::descent::{Descent, Shape};
use crate::tree::read::wish_sorted;
use crate::tree::rows::{Bounds, Keys, ScanBounds};
use crate::tree::tuple::TupleTree;
use crate::tree::tuple::scan::{TupleScan, bounds_of};
use crate::{Reader, WishKind};

/// Leaves wished for beyond a piece to begin with.
const FIRST_AHEAD: usize = 8;

/// A scan that threads take pieces of; see the head of the file.
pub struct ScanPieces {
    turn: LongLock<Planned>,
    /// Leaves that were handed out.
    handed: AtomicU64,
    /// Where the scan is.
    place: Mutex<Option<ScanPlace>>,
}

/// A place in a tree: the key that the leaf there begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanPlace(Key);

/// The part of a scan that is found but not handed out, and how to go on.
struct Planned {
    shape: Shape,
    bounds: Bounds,
    /// Leaves of a piece.
    leaves: usize,
    pieces: VecDeque<LeavesOfPiece>,
    /// Leaves wished for beyond what is handed out, and how many there may be now.
    wished: usize,
    ahead: usize,
    plan: Descent,
    resume: Option<Key>,
    lap: Lap,
    /// The first leaf of a scan that joined another.
    joined_at: Option<PageId>,
}

/// Leaves that follow each other.
struct LeavesOfPiece {
    begins: Option<ScanPlace>,
    leaves: VecDeque<PageId>,
    /// Its first leaf may hold rows before the range.
    is_first: bool,
}

/// How far round a scan is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lap {
    /// From where it joined another to the end; nothing of it is planned yet.
    Joins(ScanPlace),
    Joined,
    /// From the beginning; nothing of it is planned yet.
    Begins,
    Begun,
    Over,
}

impl ScanPieces {
    pub(crate) fn new(
        tree: &TupleTree,
        bounds: ScanBounds<'_>,
        leaves: usize,
        joins: Option<ScanPlace>,
        clock: &Clock,
    ) -> ScanPieces {
        assert!(leaves > 0, "a piece has a leaf");
        let bounds = bounds_of(tree, bounds);
        let within = |place: &ScanPlace| {
            let at = &place.0[..bounds.len];
            bounds.lo() <= at && at <= bounds.hi()
        };
        let lap = match joins.filter(within) {
            _ if tree.shape.height == 0 || bounds.lo() > bounds.hi() => Lap::Over,
            Some(place) => Lap::Joins(place),
            None => Lap::Begins,
        };
        let planned = Planned {
            shape: tree.shape,
            bounds,
            leaves,
            pieces: VecDeque::new(),
            wished: 0,
            ahead: FIRST_AHEAD,
            plan: Descent::default(),
            resume: None,
            lap,
            joined_at: None,
        };
        ScanPieces {
            turn: LongLock::new("a plan of pieces", planned, clock),
            handed: AtomicU64::new(0),
            place: Mutex::new(joins.filter(within)),
        }
    }

    /// The next piece, as a scan of its own; `None` when all are handed out.
    ///
    /// # Errors
    /// Reading an inner node failed, or it contradicts the format.
    pub fn next(&self, reader: &mut Reader) -> Result<Option<TupleScan>> {
        let mut planned = self.turn.lock();
        let piece = planned.take(reader)?;
        if let Some(piece) = &piece {
            self.handed.fetch_add(piece.leaves.len() as u64, Ordering::Relaxed);
            *self.place.lock() = planned.place();
        }
        let (shape, bounds) = (planned.shape, planned.bounds);
        Ok(piece.map(|piece| TupleScan::of_leaves(shape, bounds, piece.leaves, piece.is_first)))
    }

    /// Where the next piece begins; `None` at the beginning and at the end.
    pub fn place(&self) -> Option<ScanPlace> {
        *self.place.lock()
    }

    /// Leaves handed out so far.
    pub fn handed(&self) -> u64 {
        self.handed.load(Ordering::Relaxed)
    }
}

impl Planned {
    /// Where the next piece begins.
    fn place(&self) -> Option<ScanPlace> {
        match self.pieces.front() {
            Some(piece) => piece.begins,
            None => self.resume.map(ScanPlace),
        }
    }

    /// The next piece; sees to it that what is behind it is on its way.
    fn take(&mut self, reader: &mut Reader) -> Result<Option<LeavesOfPiece>> {
        if self.pieces.is_empty() {
            self.plan(reader)?;
        }
        let Some(piece) = self.pieces.pop_front() else { return Ok(None) };
        let own = piece.leaves.len();
        let missing = own.saturating_sub(self.wished);
        self.wished = self.wished.saturating_sub(own);
        if !reader.resident(self.shape.id) {
            let own: Vec<PageId> = piece.leaves.iter().copied().skip(own - missing).collect();
            self.wish(reader, own)?;
        }
        Ok(Some(piece))
    }

    /// Wishes for what is missing of the piece that is handed out, and for what comes next.
    fn wish(&mut self, reader: &mut Reader, mut pages: Vec<PageId>) -> Result<()> {
        let most = reader.scan_leaves() as usize;
        let ahead = self.ahead.min(most);
        self.ahead = (2 * self.ahead).min(most.max(FIRST_AHEAD));
        // In halves, so that wishes are batches.
        if self.wished <= ahead / 2 {
            while self.pieces.iter().map(|piece| piece.leaves.len()).sum::<usize>() < ahead {
                if !self.plan(reader)? {
                    break;
                }
            }
            let coming = self.pieces.iter().flat_map(|piece| &piece.leaves).copied();
            pages.extend(coming.take(ahead).skip(self.wished));
            let there: usize = self.pieces.iter().map(|piece| piece.leaves.len()).sum();
            self.wished = self.wished.max(ahead.min(there));
        }
        if most > 0 {
            wish_sorted(reader, self.shape.id, &pages, WishKind::Scan);
        }
        Ok(())
    }

    /// Finds the leaves of one more piece; false when there are none.
    fn plan(&mut self, reader: &mut Reader) -> Result<bool> {
        let mut is_first = false;
        match self.lap {
            Lap::Over => return Ok(false),
            Lap::Joins(place) => (self.resume, is_first, self.lap) = (Some(place.0), true, Lap::Joined),
            Lap::Begins => (self.resume, is_first, self.lap) = (None, true, Lap::Begun),
            Lap::Joined | Lap::Begun => {}
        }
        let begins = self.resume.map(ScanPlace);
        let keys = Keys { cols: &[], rows: 1, range: None };
        self.plan.begin(&self.shape, &keys, 0, self.resume, self.leaves);
        while self.plan.level > 0 {
            self.plan.step_between(reader, &self.shape, &self.bounds)?;
        }
        self.resume = self.plan.cut;
        let mut leaves: VecDeque<PageId> = self.plan.nodes.iter().copied().collect();
        if self.lap == Lap::Joined && is_first {
            self.joined_at = leaves.front().copied();
        }
        let round = leaves.iter().position(|leaf| self.lap == Lap::Begun && self.joined_at == Some(*leaf));
        if let Some(at) = round {
            leaves.truncate(at);
            (self.lap, self.resume) = (Lap::Over, None);
        } else if self.resume.is_none() {
            self.lap = if self.lap == Lap::Joined { Lap::Begins } else { Lap::Over };
        }
        if leaves.is_empty() {
            return Ok(false);
        }
        self.pieces.push_back(LeavesOfPiece { begins, leaves, is_first });
        Ok(true)
    }
}

impl TupleTree {
    /// Rows of a range in pieces of at most so many leaves, for threads that share the scan; it
    /// joins another one at its place, if that lies in the range.
    pub fn pieces(
        &self,
        bounds: ScanBounds<'_>,
        leaves: usize,
        joins: Option<ScanPlace>,
        reader: &Reader,
    ) -> ScanPieces {
        // In a small pool large pieces would be evicted before they are used.
        let leaves = leaves.min(reader.wish_limit() / 8).max(1);
        ScanPieces::new(self, bounds, leaves, joins, &reader.store().config().seams.clock)
    }

    /// The share of a range that lies before a place; exact counts.
    ///
    /// # Errors
    /// As [`TupleTree::count`].
    pub fn share_before(&self, reader: &mut Reader, bounds: ScanBounds<'_>, place: ScanPlace) -> Result<f64> {
        let bounds = bounds_of(self, bounds);
        let all = self.count(reader, bounds.lo(), bounds.hi())?;
        let after = self.count(reader, &place.0[..self.shape.arity], bounds.hi())?;
        Ok(1.0 - after.min(all) as f64 / all.max(1) as f64)
    }
}
