//! Effect of the journal's records on a share of the pages, on catalog and extent map.
//!
//! Of each page the way to its newest version is kept: an image and the changes after it, in
//! memory ([`WaitingPage`]) or as places in the journal. How much memory all of them may take
//! is bounded ([`ReplayLimits`]):
//!
//! * images beyond their limit leave memory, those changed longest ago first: only their places
//!   stay;
//! * changes that wait beyond their limit are made;
//! * places beyond their limit end the attempt to keep all pages: the share is cut into
//!   [`Slice`]s, and the journal is read once for each.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::part::{Part, Payload};
use crate::error::Result;
use crate::format::catalog::{Catalog, Record};
use crate::history::step::Step;
use crate::history::waiting::{How, WaitingPage};
use crate::journal::Loc;
use crate::journal::change::{self, Change, ExtentChange};
use crate::journal::file::JournalFile;
use crate::journal::record::{Head, RecordKind};
use crate::page::geometry::Geometry;
use crate::page::{PageId, TreeId};
use crate::recovery::CheckpointState;
use crate::space::extent::{Extent, Used};

/// Memory of a page's way besides its places and what waits.
const WAY_BYTES: usize = 256;

/// How much memory the pages of one share may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReplayLimits {
    /// Images.
    pub images: usize,
    /// Images when the pages are written back before the database opens: the pool is still empty.
    pub images_of_slice: usize,
    /// Bytes of changes that wait.
    pub waiting: usize,
    /// Bytes of places.
    pub places: usize,
    /// Bytes of the parts of a transaction whose commit is not there yet; more are read again.
    pub parts: usize,
}

/// A share of the pages: those whose numbers, divided by the number of shares, leave this one's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReplayShare {
    pub number: u64,
    pub count: u64,
}

/// Pages of a share whose numbers, divided by the number of shares, have this remainder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slice {
    of: u64,
    at: u64,
}

impl Slice {
    /// All pages.
    pub const ALL: Slice = Slice { of: 1, at: 0 };
    /// Slices are not cut finer.
    const FINEST: u64 = 1 << 32;

    /// True when it has all pages.
    pub fn is_all(&self) -> bool {
        self.of == 1
    }

    /// True when it has the page of this number, divided by the number of shares.
    fn has(&self, number: u64) -> bool {
        number % self.of == self.at
    }

    /// Cuts it into halves; this is one of them, the other is answered. `None` when it cannot
    /// be cut.
    fn halve(&mut self) -> Option<Slice> {
        if self.of == Self::FINEST {
            return None;
        }
        let other = Slice { of: 2 * self.of, at: self.at + self.of };
        self.of *= 2;
        Some(other)
    }
}

/// The way to a page's newest version.
#[derive(Default)]
pub(super) struct PageWay {
    pub txn: u64,
    /// Without the changes that wait.
    pub history: Vec<Step>,
    /// In memory. Its header gets the transaction when it is made into a page.
    pub waiting: Option<WaitingPage>,
}

impl PageWay {
    fn held(&self) -> Held {
        Held {
            images: usize::from(self.waiting.is_some()),
            waiting: self.waiting.as_ref().map_or(0, WaitingPage::bytes),
            places: self.history.len() * size_of::<Step>(),
        }
    }

    /// Leaves memory.
    fn leave(&mut self) {
        if let Some(waiting) = self.waiting.take() {
            self.history.extend(waiting.steps());
        }
    }

    /// Makes the changes that wait.
    fn settle(&mut self) -> std::result::Result<(), (Loc, &'static str)> {
        let Some(waiting) = &mut self.waiting else { return Ok(()) };
        self.history.extend(waiting.steps());
        waiting.settle()
    }
}

/// Amounts that ways hold in memory.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    images: usize,
    waiting: usize,
    places: usize,
}

impl Held {
    fn add(&mut self, more: Held) {
        self.images += more.images;
        self.waiting += more.waiting;
        self.places += more.places;
    }

    fn remove(&mut self, less: Held) {
        assert!(self.images >= less.images, "images are counted as they come and go");
        assert!(self.waiting >= less.waiting, "what waits is counted as it comes and goes");
        assert!(self.places >= less.places, "places are counted as they come and go");
        self.images -= less.images;
        self.waiting -= less.waiting;
        self.places -= less.places;
    }
}

/// See the head of the file.
pub(super) struct Replay {
    pub share: ReplayShare,
    /// The pages this reading of the journal is about; `None`: none, only catalog and map.
    pub slice: Option<Slice>,
    /// Those that other readings are to be about.
    pub slices: Vec<Slice>,
    pub limits: ReplayLimits,
    /// The checkpoint: changes up to it are on the stripes.
    pub after: u64,
    pub geometry: Geometry,
    pub catalog: Catalog,
    pub extents: Vec<Extent>,
    pub txn: u64,
    pub last_number: u64,
    /// Commits after the checkpoint, and the newest of them.
    pub commits: u64,
    pub newest: VecDeque<u64>,
    pub ways: FxHashMap<PageId, PageWay>,
    held: Held,
    /// Pages that are or were in memory, with the transaction that had last changed them when
    /// they were put here: those at the front leave first.
    leaving: VecDeque<(PageId, u64)>,
    /// Parts of a transaction whose commit has not been seen.
    parts: Vec<Part>,
    parts_bytes: usize,
    parts_txn: u64,
    dir: PathBuf,
}

impl Replay {
    /// A share over the state of a checkpoint.
    pub fn new(dir: &Path, share: ReplayShare, limits: ReplayLimits, state: CheckpointState) -> Replay {
        let CheckpointState { txn: after, geometry, catalog, extents } = state;
        Replay {
            share,
            slice: Some(Slice::ALL),
            slices: Vec::new(),
            limits,
            after,
            geometry,
            catalog,
            extents,
            txn: after,
            last_number: after,
            commits: 0,
            newest: VecDeque::new(),
            ways: FxHashMap::default(),
            held: Held::default(),
            leaving: VecDeque::new(),
            parts: Vec::new(),
            parts_bytes: 0,
            parts_txn: 0,
            dir: dir.to_path_buf(),
        }
    }

    /// Takes a record in. `file` is where it is, to be read again.
    pub fn record(
        &mut self,
        head: &Head,
        file: &Arc<JournalFile>,
        offset: u64,
        payload: Arc<Payload>,
    ) -> Result<()> {
        self.last_number = self.last_number.max(head.txn);
        if head.txn != self.parts_txn {
            // Parts of a transaction that never committed.
            self.parts.clear();
            self.parts_bytes = 0;
            self.parts_txn = head.txn;
        }
        match head.kind {
            RecordKind::Mark => return Ok(()),
            RecordKind::Part => {
                self.parts_bytes += payload.len();
                if self.parts_bytes > self.limits.parts {
                    self.parts.iter_mut().for_each(Part::leave);
                }
                self.parts.push(Part::new(head, file, offset, payload));
                return Ok(());
            }
            RecordKind::Commit => {}
        }
        for part in std::mem::take(&mut self.parts) {
            let payload = part.payload(&self.dir)?;
            self.changes(head.txn, part.number, part.offset, &payload)?;
        }
        self.parts_bytes = 0;
        self.changes(head.txn, head.file, offset, &payload)?;
        if head.txn > self.after {
            debug_assert!(head.txn > self.txn, "commits come in order");
            self.txn = head.txn;
            self.committed(head.txn);
        }
        Ok(())
    }

    /// The ways of its pages, which leave it.
    pub fn take_ways(&mut self) -> impl Iterator<Item = (PageId, PageWay)> + use<> {
        self.held = Held::default();
        std::mem::take(&mut self.ways).into_iter()
    }

    fn committed(&mut self, txn: u64) {
        /// Newest commits that are remembered.
        const REMEMBERED: usize = 1 << 16;
        self.commits += 1;
        if self.newest.len() == REMEMBERED {
            self.newest.pop_front();
        }
        self.newest.push_back(txn);
    }

    fn changes(&mut self, txn: u64, file: u64, offset: u64, payload: &[u8]) -> Result<()> {
        let mut rest = payload;
        while !rest.is_empty() {
            let at = (payload.len() - rest.len()) as u32;
            let change = change::next(&mut rest).map_err(|b| super::damaged(&self.dir, file, offset, b.0))?;
            let loc = Loc { file, offset, at };
            let changed = match change {
                Change::Image { page, .. } | Change::Diff { page, .. } | Change::Rows { page, .. }
                    if !self.is_about(page) =>
                {
                    Ok(())
                }
                Change::Image { page, bytes } => {
                    self.image(txn, page, loc, bytes);
                    Ok(())
                }
                Change::Diff { page, diff } => self.diff(txn, page, loc, diff, How::Bytes),
                Change::Rows { page, diff } => self.diff(txn, page, loc, diff, How::Rows),
                _ if txn <= self.after => Ok(()),
                other => self.other(txn, other),
            };
            changed.map_err(|why| super::damaged(&self.dir, file, offset, why))?;
            self.stay_within_limits()?;
        }
        Ok(())
    }

    fn is_about(&self, page: PageId) -> bool {
        let ReplayShare { number, count } = self.share;
        page.0 % count == number && self.slice.is_some_and(|s| s.has(page.0 / count))
    }

    fn image(&mut self, txn: u64, page: PageId, loc: Loc, bytes: &[u8]) {
        debug_assert!(self.is_about(page), "other shares have other pages");
        let way = self.ways.entry(page).or_default();
        self.held.remove(way.held());
        way.txn = txn;
        way.history.clear();
        way.history.push(Step { txn, loc, diff_bytes: None });
        // An image of the checkpoint's state is looked up when a later change needs it, but for
        // pages that are written back at once.
        if txn <= self.after && self.slice == Some(Slice::ALL) {
            way.waiting = None;
            return self.held.add(way.held());
        }
        if way.waiting.is_none() {
            self.leaving.push_back((page, txn));
        }
        way.waiting.get_or_insert_default().set_image(txn, loc, bytes);
        self.held.add(way.held());
    }

    fn diff(
        &mut self,
        txn: u64,
        page: PageId,
        loc: Loc,
        bytes: &[u8],
        how: How,
    ) -> std::result::Result<(), &'static str> {
        let Some(way) = self.ways.get_mut(&page).filter(|w| !w.history.is_empty()) else {
            // The image may lie before the first needed file when the page has been written
            // back since.
            return if txn > self.after { Err("a page is changed whose image is missing") } else { Ok(()) };
        };
        self.held.remove(way.held());
        way.txn = txn;
        match &mut way.waiting {
            Some(waiting) => waiting.add(txn, loc, how, bytes),
            None => way.history.push(Step { txn, loc, diff_bytes: Some(bytes.len() as u32) }),
        }
        self.held.add(way.held());
        Ok(())
    }

    fn stay_within_limits(&mut self) -> Result<()> {
        if self.held.waiting > self.limits.waiting {
            self.settle()?;
        }
        let Some(slice) = self.slice else { return Ok(()) };
        if slice.is_all() {
            self.make_room();
        }
        while self.is_over() && self.cut_slice() {}
        Ok(())
    }

    fn is_over(&self) -> bool {
        let images = match self.slice {
            Some(slice) if !slice.is_all() => self.held.images > self.limits.images_of_slice,
            _ => false,
        };
        images || self.held.places + self.ways.len() * WAY_BYTES > self.limits.places
    }

    /// Leaves half of the pages to another reading; false when there is nothing to be left.
    /// Pages that have left memory would have to be read back one by one: the first cut leaves
    /// all pages to others.
    fn cut_slice(&mut self) -> bool {
        let Some(mut slice) = self.slice else { return false };
        let was_all = slice.is_all();
        let Some(other) = slice.halve() else { return false };
        self.slices.push(other);
        if was_all {
            self.slices.push(slice);
            self.slice = None;
            self.ways = FxHashMap::default();
            self.leaving = VecDeque::new();
            self.held = Held::default();
            return true;
        }
        self.slice = Some(slice);
        let shares = self.share.count;
        self.keep_ways(|page| slice.has(page.0 / shares));
        true
    }

    /// Puts pages out of memory, those changed longest ago first, until the others have room.
    fn make_room(&mut self) {
        while self.held.images > self.limits.images
            && let Some((page, txn)) = self.leaving.pop_front()
        {
            let Some(way) = self.ways.get_mut(&page).filter(|way| way.waiting.is_some()) else { continue };
            if way.txn > txn {
                // Changed since: to the back again.
                self.leaving.push_back((page, way.txn));
            } else {
                self.held.remove(way.held());
                way.leave();
                self.held.add(way.held());
            }
        }
    }

    /// Makes the changes that wait.
    fn settle(&mut self) -> Result<()> {
        for way in self.ways.values_mut() {
            self.held.remove(way.held());
            let settled = way.settle();
            self.held.add(way.held());
            settled.map_err(|(loc, why)| super::damaged(&self.dir, loc.file, loc.offset, why))?;
        }
        Ok(())
    }

    fn other(&mut self, txn: u64, change: Change<'_>) -> std::result::Result<(), &'static str> {
        match change {
            Change::Image { .. } | Change::Diff { .. } | Change::Rows { .. } => {
                unreachable!("handled by the caller")
            }
            Change::Record { name, kind, bytes } => {
                self.catalog.records.insert(name.to_string(), Record { kind, bytes: bytes.into() });
            }
            Change::Records { diff } => self.catalog.apply(diff).map_err(|b| b.0)?,
            Change::DropRecord { name } => drop(self.catalog.records.remove(name)),
            Change::NewTree { tree, name } => {
                self.catalog.trees.insert(tree, name.to_string());
                self.catalog.next_tree = self.catalog.next_tree.max(tree.0 + 1);
            }
            Change::DropTree { tree } => self.drop_tree(tree),
            Change::Extent(e) => self.extent(&e)?,
            Change::Built { first, extents, tree, pages, by } => {
                let end = first.checked_add(extents).ok_or("an extent number is too large")?;
                if pages > self.geometry.extent_pages {
                    return Err("an extent has too many pages");
                }
                self.lengthen(end)?;
                self.forget_pages(|extent| (first..end).contains(&extent));
                let built = Extent::filled(self.geometry.extent_pages, tree, pages).by(by.unwrap_or(txn));
                self.extents[first as usize..end as usize].fill(built);
            }
        }
        Ok(())
    }

    fn lengthen(&mut self, extents: u64) -> std::result::Result<(), &'static str> {
        /// More than any database has: 2^40 pages.
        const MOST: u64 = 1 << 32;
        if extents > MOST {
            return Err("an extent number is too large");
        }
        let now = self.extents.len().max(extents as usize);
        self.extents.resize(now, Extent::free(self.geometry.extent_pages));
        Ok(())
    }

    fn extent(&mut self, change: &ExtentChange) -> std::result::Result<(), &'static str> {
        self.lengthen(change.extent + 1)?;
        let extent_pages = self.geometry.extent_pages;
        let e = &mut self.extents[change.extent as usize];
        if change.tree.is_none() {
            // Emptied: as with a dropped tree, a later owner must not meet its pages.
            *e = Extent::free(extent_pages);
            self.forget_pages(|extent| extent == change.extent);
            return Ok(());
        }
        if e.tree.is_none() {
            *e = Extent::free(extent_pages);
        }
        (e.tree, e.overflow) = (change.tree, change.overflow);
        for (list, used) in [(&change.used, Used::Yes), (&change.unused, Used::No)] {
            for index in list {
                if *index >= extent_pages {
                    return Err("a page lies beyond its extent");
                }
                e.set_allocated(*index, used);
                if used == Used::Yes {
                    e.written[*index as usize / 64] &= !(1 << (index % 64));
                }
            }
        }
        Ok(())
    }

    /// Forgets the pages of a dropped tree: a later owner of its extents must not meet them.
    fn drop_tree(&mut self, tree: TreeId) {
        self.catalog.trees.remove(&tree);
        let mut gone = FxHashSet::default();
        for (i, e) in self.extents.iter_mut().enumerate().filter(|(_, e)| e.tree == Some(tree)) {
            *e = Extent::free(self.geometry.extent_pages);
            gone.insert(i as u64);
        }
        self.forget_pages(|extent| gone.contains(&extent));
    }

    fn forget_pages(&mut self, of: impl Fn(u64) -> bool) {
        let geometry = self.geometry;
        self.keep_ways(|page| !of(geometry.extent_of(page)));
    }

    fn keep_ways(&mut self, stays: impl Fn(PageId) -> bool) {
        let held = &mut self.held;
        self.ways.retain(|page, way| {
            let stays = stays(*page);
            if !stays {
                held.remove(way.held());
            }
            stays
        });
    }
}
