//! Building trees in bulk: pages are written in key order, in whole extents, past the pool; one
//! commit makes them the database.
//!
//! 1. each [`TreeWriter`] takes extents of its own, fills one in memory, writes it, takes the
//!    next (more at a time as the tree grows, so that large trees lie in long runs);
//! 2. [`Build::commit`] syncs the stripes and the directories, then commits the switch through
//!    the journal like any transaction: dropped trees, new trees, their extents, records. A
//!    checkpoint follows, so that the next open finds it in the super-block.
//!
//! Invariant: until the journal's record is durable the files hold the old state untouched, so
//! a build that fails, is dropped or is killed leaves it. What it had written lies in extents
//! no map mentions.
//!
//! A build *beside* the writers ([`Store::begin_build_beside`]) has their turn at its begin and at
//! its commit only. Its trees are new ones under names of their own, so whatever is committed
//! meanwhile, it replaces nothing. Its pages carry the number it took at its begin, which is
//! lower than that of its commit; the journal says so.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;
use snowmelt_io::AlignedBuf;

use crate::access::pack::Packer;
use crate::error::{Result, StoreError};
use crate::files::reserve::MayUse;
use crate::format::catalog::{Catalog, Record};
use crate::format::lineage;
use crate::history::state;
use crate::journal::record::Packed;
use crate::page::geometry::ExtentId;
use crate::page::{self, PAGE_BYTES, PageBuf, PageId, TreeId};
use crate::space::extent::Extent;
use crate::store::Store;
use crate::sync::turn::Turn;
use crate::sync::waits::Waiter;

/// Most extents a tree takes at a time.
const MOST_EXTENTS_AT_ONCE: u32 = 16;

/// Places of the extents of a build beside the writers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BuildPlace {
    /// The first free ones.
    Front,
    /// Behind all there are, so that the free ones before them stay together.
    Behind,
}

/// A build under way; dropping it without [`Build::commit`] leaves the old state. Clones are
/// handles to the same build.
#[derive(Debug)]
pub struct Build {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    store: Arc<Store>,
    txn: u64,
    /// Follows the names of its trees and records.
    suffix: &'static str,
    /// The places of its extents; in a build that has the turn the first runs that are long
    /// enough.
    place: Option<BuildPlace>,
    state: Mutex<BuildState>,
    /// While it is here no transaction begins; none in a build beside the writers.
    _turn: Option<Turn>,
}

#[derive(Debug, Default)]
struct BuildState {
    next_tree: u32,
    trees: BTreeMap<TreeId, String>,
    unfinished: BTreeMap<TreeId, String>,
    records: BTreeMap<String, Record>,
    dropped: Vec<TreeId>,
    built: Vec<(ExtentId, Extent)>,
    poison: Option<Arc<StoreError>>,
}

impl Store {
    /// Begins a bulk build, when the transaction under way has ended. One at a time; none after
    /// a failed write of the super-block, until the database is opened again.
    pub fn begin_build(self: &Arc<Self>) -> Result<Build> {
        Ok(self.begin_build_for(&Waiter::PATIENT)?.expect("it does not give up"))
    }

    /// As [`Store::begin_build`], but `None` when `waiter` gives up waiting.
    pub fn begin_build_for(self: &Arc<Self>, waiter: &Waiter<'_>) -> Result<Option<Build>> {
        let Some((txn, turn)) = self.build_number(waiter)? else { return Ok(None) };
        let next_tree = self.commits.tree_number(&self.commits.states.appended().catalog);
        let state = Mutex::new(BuildState { next_tree, ..Default::default() });
        let store = self.clone();
        let shared = Shared { store, txn, suffix: "", place: None, state, _turn: Some(turn) };
        Ok(Some(Build { shared: Arc::new(shared) }))
    }

    /// Begins a build of up to `trees` trees beside the writers, who wait at its begin and at
    /// its commit only. `suffix` follows the names of its trees and records. `None` when the
    /// waiter gave up.
    ///
    /// Errors: as [`Store::begin_build`].
    pub fn begin_build_beside(
        self: &Arc<Self>,
        trees: u32,
        suffix: &'static str,
        place: BuildPlace,
        waiter: &Waiter<'_>,
    ) -> Result<Option<Build>> {
        assert!(!suffix.is_empty(), "it replaces nothing");
        let Some((txn, turn)) = self.build_number(waiter)? else { return Ok(None) };
        let first = self.commits.tree_number(&self.commits.states.appended().catalog);
        // Until the commit the catalog does not know of them.
        self.commits.next_tree.fetch_max(first + trees, Ordering::AcqRel);
        drop(turn);
        let state = Mutex::new(BuildState { next_tree: first, ..Default::default() });
        let store = self.clone();
        let shared = Shared { store, txn, suffix, place: Some(place), state, _turn: None };
        Ok(Some(Build { shared: Arc::new(shared) }))
    }

    /// The number of a build that begins, and the turn; `None` when the waiter gave up.
    fn build_number(&self, waiter: &Waiter<'_>) -> Result<Option<(u64, Turn)>> {
        self.commits.check_poison()?;
        if self.building.swap(true, Ordering::AcqRel) {
            return Err(StoreError::BuildBusy);
        }
        let Some(turn) = self.writers.enter(waiter) else {
            self.building.store(false, Ordering::Release);
            return Ok(None);
        };
        // The state that is looked at while building must be the one that the build replaces.
        if let Err(error) = self.commits.settle() {
            self.building.store(false, Ordering::Release);
            return Err(error);
        }
        let before = self.commits.states.appended();
        let txn = self.commits.next_txn.load(Ordering::Acquire).max(before.txn + 1);
        // Its pages carry this number, so it is used up even if the build is given up.
        self.commits.next_txn.fetch_max(txn + 1, Ordering::AcqRel);
        assert!(txn > before.txn, "a build is newer than what it replaces");
        Ok(Some((txn, turn)))
    }

    /// Whether a build is under way.
    pub fn is_building(&self) -> bool {
        self.building.load(Ordering::Acquire)
    }
}

impl Build {
    /// Begins a new tree. A tree of the same name in the committed state is replaced at commit.
    pub fn new_tree(&self, name: &str) -> TreeWriter {
        let mut state = self.shared.state.lock();
        let id = TreeId(state.next_tree);
        state.next_tree += 1;
        assert!(!state.trees.contains_key(&id), "tree numbers are given once");
        state.trees.insert(id, format!("{name}{}", self.shared.suffix));
        state.unfinished.insert(id, name.to_string());
        drop(state);
        self.shared.store.fetch.core.space.write().name_tree(id, name);
        let buffer = AlignedBuf::huge(self.shared.store.geometry.extent_bytes() as usize);
        TreeWriter {
            shared: self.shared.clone(),
            tree: id,
            buffer,
            filled: 0,
            extents: Vec::new(),
            at: 0,
            pages: 0,
        }
    }

    /// Stores a record in the catalog, replacing one of the same name. `kind` is the writer's.
    pub fn put_record(&self, name: &str, kind: u32, bytes: &[u8]) {
        let name = format!("{name}{}", self.shared.suffix);
        self.shared.state.lock().records.insert(name, Record { kind, bytes: bytes.into() });
    }

    /// Drops the committed tree of this name and its record, if there is one.
    pub fn drop_tree(&self, name: &str) {
        let before = self.shared.store.commits.states.appended();
        let ids = before.catalog.trees.iter().filter(|(_, n)| *n == name).map(|(id, _)| *id);
        self.shared.state.lock().dropped.extend(ids);
    }

    /// Transaction number of the pages this build writes.
    pub fn txn(&self) -> u64 {
        self.shared.txn
    }

    /// Makes the build the database. When this returns the new state is durable; on an error
    /// the old state stays.
    pub fn commit(self) -> Result<()> {
        let is_done = self.commit_for(&Waiter::PATIENT)?;
        assert!(is_done, "it does not give up");
        Ok(())
    }

    /// As [`Build::commit`], but false when `waiter` gives up waiting for the turn; the old state
    /// stays then.
    pub fn commit_for(self, waiter: &Waiter<'_>) -> Result<bool> {
        let shared = &self.shared;
        let state = shared.state.lock();
        if let Some(cause) = &state.poison {
            return Err(StoreError::Poisoned { cause: cause.clone() });
        }
        if let Some(name) = state.unfinished.values().next() {
            return Err(StoreError::Unfinished { name: name.clone() });
        }
        drop(state);
        shared.store.commits.set_lengths()?;
        shared.store.fetch.stripes.sync()?;
        shared.switch(waiter)
    }
}

impl Shared {
    /// The catalog after the commit, and the trees that go.
    fn new_catalog(&self, state: &BuildState, old: &Catalog) -> (Catalog, Vec<TreeId>) {
        let mut catalog = old.clone();
        catalog.next_tree = old.next_tree.max(state.next_tree);
        let replaced = |name: &String| state.trees.values().any(|n| n == name);
        let gone = |id: &TreeId, name: &String| replaced(name) || state.dropped.contains(id);
        let dropped: Vec<TreeId> =
            catalog.trees.iter().filter(|(id, name)| gone(id, name)).map(|(id, _)| *id).collect();
        for id in &dropped {
            if let Some(name) = catalog.trees.remove(id) {
                catalog.records.remove(&name);
            }
        }
        catalog.trees.extend(state.trees.clone());
        catalog.records.extend(state.records.clone());
        (catalog, dropped)
    }

    /// Commits the switch, then has it checkpointed; false when the waiter gave up.
    fn switch(&self, waiter: &Waiter<'_>) -> Result<bool> {
        let commits = &self.store.commits;
        let turn = match self._turn {
            Some(_) => None,
            None => match self.store.writers.enter(waiter) {
                Some(turn) => Some(turn),
                None => return Ok(false),
            },
        };
        let most = self.store.fetch.core.pages.pool.most_pages() / self.store.geometry.extent_pages as u64;
        if self.store.fetch.core.space.read().len() > most {
            let why = "the database has grown beyond what it was opened for: close it and build again";
            return Err(StoreError::Config(why.into()));
        }
        let old = commits.states.appended();
        let named = commits.lineage_record(&old)?;
        let (packed, catalog, dropped) = self.pack(&old.catalog, named);
        let txn = match turn {
            Some(_) => commits.next_txn.load(Ordering::Acquire).max(old.txn + 1),
            None => self.txn,
        };
        assert!(old.txn < txn, "what is committed beside a build is older than its commit");
        let new = Arc::new(state::State { txn, catalog });
        let sequence = loop {
            let generation = commits.generation.load(Ordering::Acquire);
            let room = commits.reserve(&packed, MayUse::Journal)?;
            let appended = commits.append(&packed, room, &new, generation, |_| {
                let mut space = self.store.fetch.core.space.write();
                space.place(self.state.lock().built.drain(..));
                space.apply(txn, [], &dropped);
            });
            if let Some(appended) = appended {
                dropped.iter().for_each(|tree| self.store.fetch.forget_tree(*tree));
                break appended.sequence;
            }
        };
        commits.wait(&new, sequence)?;
        self.store.fetch.core.count_pages();
        if turn.is_some() {
            // Writing back can wait, and the writers need not.
            return Ok(true);
        }
        // The build is durable; if this cannot be done now, the checkpointer does it later.
        let _ = commits.checkpoint_all(&|| true);
        Ok(true)
    }

    fn pack(&self, old: &Catalog, named: Option<Record>) -> (Vec<Packed>, Catalog, Vec<TreeId>) {
        let mut state = self.state.lock();
        let (mut catalog, dropped) = self.new_catalog(&state, old);
        catalog.records.extend(named.map(|record| (lineage::RECORD.to_string(), record)));
        let mut packer = Packer::new(&self.store.config.journal);
        packer.catalog(old, &catalog);
        state.built.sort_unstable_by_key(|(id, _)| *id);
        let follows = |a: &(ExtentId, Extent), b: &(ExtentId, Extent)| {
            b.0 == a.0 + 1 && (b.1.tree, b.1.pages()) == (a.1.tree, a.1.pages())
        };
        for run in state.built.chunk_by(follows) {
            let (first, extent) = &run[0];
            let tree = extent.tree.expect("an extent of a build has an owner");
            assert!(extent.pages() > 0, "an extent of a build has pages");
            // The pages of a build that had the turn carry the number of the commit itself.
            let by = self._turn.is_none().then_some(self.txn);
            packer.built(*first, run.len() as u64, tree, extent.pages(), by);
        }
        drop(state);
        (packer.finish().records, catalog, dropped)
    }

    fn poison(&self, e: &StoreError) {
        self.state.lock().poison.get_or_insert_with(|| Arc::new(e.clone()));
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if self.store.commits.poison.get().is_some() {
            // The journal may say that these extents are the database: they stay as they are.
            return self.store.building.store(false, Ordering::Release);
        }
        let state = self.state.get_mut();
        let mut space = self.store.fetch.core.space.write();
        for (extent, _) in state.built.drain(..) {
            space.release(extent);
        }
        drop(space);
        // Only to give back the room on the device early; the next open does it too.
        let _ = self.store.commits.set_lengths();
        self.store.building.store(false, Ordering::Release);
    }
}

/// Writes the pages of one tree of a build, in order. Several may be used at once from several
/// threads.
pub struct TreeWriter {
    shared: Arc<Shared>,
    tree: TreeId,
    /// Pages of the current extent.
    buffer: AlignedBuf,
    /// Pages in it.
    filled: u32,
    /// Extents taken; those from `at` on are not written yet, the first of them is the current one.
    extents: Vec<ExtentId>,
    at: usize,
    pages: u64,
}

impl TreeWriter {
    /// The tree's id.
    pub fn id(&self) -> TreeId {
        self.tree
    }

    /// Pages appended so far.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// Id of the page the next [`TreeWriter::append`] writes. Page ids grow by one within an
    /// extent; the next extent may lie anywhere.
    pub fn next_id(&mut self) -> PageId {
        if self.at == self.extents.len() {
            let mut space = self.shared.store.fetch.core.space.write();
            let taken = match self.shared.place {
                None => {
                    let want = (self.extents.len() as u32).clamp(1, MOST_EXTENTS_AT_ONCE);
                    space.allocate_for(self.tree, want)
                }
                Some(BuildPlace::Front) => space.allocate_for(self.tree, 1),
                Some(BuildPlace::Behind) => vec![space.allocate_behind(self.tree)],
            };
            drop(space);
            self.extents.extend(taken);
        }
        self.shared.store.geometry.page(self.extents[self.at], self.filled)
    }

    /// Pages that can still be appended with consecutive ids, the next one included.
    pub fn consecutive(&mut self) -> u32 {
        self.next_id();
        debug_assert!(self.at < self.extents.len(), "there is an extent for the next page");
        let run = self.extents[self.at..].windows(2).take_while(|w| w[1] == w[0] + 1).count() as u32 + 1;
        run * self.shared.store.geometry.extent_pages - self.filled
    }

    /// Seals a copy of `page` (whose kind, level, count and body the caller has set) and writes
    /// it, whole extents at a time. Returns its id. Errors: the disk is full, a failed write;
    /// the build is lost then.
    pub fn append(&mut self, page: &mut PageBuf) -> Result<PageId> {
        let id = self.next_id();
        assert!(self.filled < self.shared.store.geometry.extent_pages, "a full extent has been written");
        debug_assert!(
            self.buffer.len() as u64 == self.shared.store.geometry.extent_bytes(),
            "the buffer holds an extent"
        );
        page::seal(page, id, self.tree, self.shared.txn);
        self.buffer[self.filled as usize * PAGE_BYTES..][..PAGE_BYTES].copy_from_slice(page);
        self.filled += 1;
        self.pages += 1;
        if self.filled == self.shared.store.geometry.extent_pages {
            self.write_extent()?;
        }
        Ok(id)
    }

    fn write_extent(&mut self) -> Result<()> {
        let store = &self.shared.store;
        let extent = self.extents[self.at];
        assert!(self.filled > 0, "an extent without pages is not written");
        let bytes = &self.buffer[..self.filled as usize * PAGE_BYTES];
        let ahead = (extent + 1).next_multiple_of(MOST_EXTENTS_AT_ONCE.into());
        let longer = store.commits.lengthen(extent + 1, ahead);
        longer.inspect_err(|e| self.shared.poison(e))?;
        store
            .fetch
            .stripes
            .write(store.geometry.extent_place(extent), bytes)
            .inspect_err(|e| self.shared.poison(e))?;
        let filled = Extent::filled(store.geometry.extent_pages, self.tree, self.filled);
        let filled = filled.by(self.shared.txn);
        self.shared.state.lock().built.push((extent, filled));
        self.at += 1;
        self.filled = 0;
        Ok(())
    }

    /// Writes what is left. A tree that is dropped without this makes the build fail at commit.
    pub fn finish(mut self) -> Result<TreeId> {
        if self.filled > 0 {
            self.write_extent()?;
        }
        let was_open = self.shared.state.lock().unfinished.remove(&self.tree);
        assert!(was_open.is_some(), "a tree is finished once");
        Ok(self.tree)
    }
}

impl Drop for TreeWriter {
    fn drop(&mut self) {
        let mut space = self.shared.store.fetch.core.space.write();
        for extent in &self.extents[self.at..] {
            space.release(*extent);
        }
    }
}
