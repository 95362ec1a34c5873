//! Building trees in bulk: pages are written in key order, in whole extents, past the pool; one commit makes them the database.
//!
//! 1. each [`TreeWriter`] takes extents of its own, fills one in memory, writes it, takes the next (more at a time as the tree grows, so
//!    that large trees lie in long runs);
//! 2. [`Build::commit`] syncs the stripes and the directories, writes the meta run, syncs, writes the super-block's other slot, syncs.
//!
//! Invariant: until the last step the files hold the old state untouched, so a build that fails, is dropped or is killed leaves it. What
//! it had written lies in extents no map mentions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;
use snowmelt_io::AlignedBuf;

use crate::catalog::{self, Catalog, Record};
use crate::error::{Result, StoreError};
use crate::page::{self, PAGE_BYTES, PageBuf, PageId, TreeId};
use crate::space::{Extent, ExtentId};
use crate::store::{Store, count_pages, meta_pages};
use crate::superblock::SuperBlock;

/// Most extents a tree takes at a time.
const MOST_EXTENTS_AT_ONCE: u32 = 16;

/// A build under way; dropping it without [`Build::commit`] leaves the old state. Clones are handles to the same build.
#[derive(Debug)]
pub struct Build {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    store: Arc<Store>,
    txn: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    next_tree: u32,
    trees: BTreeMap<TreeId, String>,
    unfinished: BTreeMap<TreeId, String>,
    records: BTreeMap<String, Record>,
    dropped: Vec<TreeId>,
    built: Vec<(ExtentId, Extent)>,
    poison: Option<Arc<StoreError>>,
}

impl Store {
    /// Begins a bulk build. One at a time; none after a failed write of the super-block, until the database is opened again.
    pub fn begin_build(self: &Arc<Self>) -> Result<Build> {
        if let Some(cause) = self.poison.get() {
            return Err(StoreError::Poisoned { cause: cause.clone() });
        }
        if self.building.swap(true, Ordering::AcqRel) {
            return Err(StoreError::BuildBusy);
        }
        let committed = self.committed.read();
        let state = State { next_tree: committed.catalog.next_tree, ..Default::default() };
        let txn = committed.block.txn + 1;
        drop(committed);
        Ok(Build { shared: Arc::new(Shared { store: self.clone(), txn, state: Mutex::new(state) }) })
    }
}

impl Build {
    /// Begins a new tree. A tree of the same name in the committed state is replaced at commit.
    pub fn new_tree(&self, name: &str) -> TreeWriter {
        let mut state = self.shared.state.lock();
        let id = TreeId(state.next_tree);
        state.next_tree += 1;
        state.trees.insert(id, name.to_string());
        state.unfinished.insert(id, name.to_string());
        drop(state);
        let buffer = AlignedBuf::new(self.shared.store.geometry.extent_bytes() as usize);
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
        self.shared.state.lock().records.insert(name.to_string(), Record { kind, bytes: bytes.into() });
    }

    /// Drops the committed tree of this name and its record, if there is one.
    pub fn drop_tree(&self, name: &str) {
        let committed = self.shared.store.committed.read();
        let ids = committed.catalog.trees.iter().filter(|(_, n)| *n == name).map(|(id, _)| *id);
        self.shared.state.lock().dropped.extend(ids);
    }

    /// Transaction number of the pages this build writes.
    pub fn txn(&self) -> u64 {
        self.shared.txn
    }

    /// Makes the build the database. When this returns the new state is durable; on an error the old state stays.
    pub fn commit(self) -> Result<()> {
        let shared = &self.shared;
        let state = shared.state.lock();
        if let Some(cause) = &state.poison {
            return Err(StoreError::Poisoned { cause: cause.clone() });
        }
        if let Some(name) = state.unfinished.values().next() {
            return Err(StoreError::Unfinished { name: name.clone() });
        }
        drop(state);
        shared.store.fetch.stripes.sync()?;
        shared.switch()
    }
}

impl Shared {
    /// The catalog after the commit, and the trees that go.
    fn new_catalog(&self, state: &State, old: &Catalog) -> (Catalog, Vec<TreeId>) {
        let mut catalog = old.clone();
        catalog.next_tree = state.next_tree;
        let replaced = |name: &String| state.trees.values().any(|n| n == name);
        let gone = |id: &TreeId, name: &String| replaced(name) || state.dropped.contains(id);
        let mut dropped: Vec<TreeId> =
            catalog.trees.iter().filter(|(id, name)| gone(id, name)).map(|(id, _)| *id).collect();
        for id in &dropped {
            if let Some(name) = catalog.trees.remove(id) {
                catalog.records.remove(&name);
            }
        }
        dropped.push(TreeId::META);
        catalog.trees.extend(state.trees.clone());
        catalog.records.extend(state.records.clone());
        (catalog, dropped)
    }

    /// Writes the meta run and switches the super-block. No lock is held while a device works: nobody else changes the
    /// committed state while a build is under way.
    fn switch(&self) -> Result<()> {
        let store = &self.store;
        let old = store.committed.read().clone();
        let (catalog, map, first) = {
            let mut state = self.state.lock();
            let (catalog, dropped) = self.new_catalog(&state, &old.catalog);
            let (map, first) = self.map_with_meta(&mut state, &catalog, &dropped);
            (catalog, map, first)
        };
        let most = store.fetch.core.pool.most_pages() / store.geometry.extent_pages as u64;
        if map.len() as u64 > most {
            let why = "the database has grown beyond what it was opened for: close it and build again";
            return Err(StoreError::Config(why.into()));
        }
        let (run, pages) = meta_pages(&catalog::encode(&catalog, &map), first, store.geometry, self.txn);
        let extents = store.fetch.core.space.read().len();
        store.fetch.stripes.set_extents(store.geometry, extents)?;
        for (i, extent) in pages.chunks(store.geometry.extent_bytes() as usize).enumerate() {
            let place = store.geometry.extent_place(store.geometry.extent_of(first) + i as u64);
            store.fetch.stripes.write(place, extent)?;
        }
        store.fetch.stripes.sync()?;
        let block = SuperBlock {
            sequence: old.block.sequence + 1,
            txn: self.txn,
            extents: map.len() as u64,
            meta: Some(run),
            ..old.block
        };
        if let Err(e) = store.super_file.write(&block) {
            let _ = store.poison.set(Arc::new(e.clone()));
            return Err(e);
        }
        self.state.lock().built.clear();
        store.fetch.core.space.write().commit(map);
        *store.committed.write() = crate::store::Committed { block, catalog };
        count_pages(&store.fetch.core);
        Ok(())
    }

    /// The extent map after the commit with room for the meta run that will hold it, and the run's first page.
    fn map_with_meta(
        &self,
        state: &mut State,
        catalog: &Catalog,
        dropped: &[TreeId],
    ) -> (Vec<Extent>, PageId) {
        let geometry = self.store.geometry;
        let mut space = self.store.fetch.core.space.write();
        let names = catalog::encode(catalog, &[]).len();
        let entry = catalog::extent_entry_bytes(geometry.extent_pages);
        let per_extent = geometry.extent_pages as usize * page::BODY_BYTES;
        // The run lengthens the map that it holds: grow until it fits, counting the worst case of all its extents at the end.
        let mut extents = 1;
        while names + (space.len() as usize + extents) * entry > extents * per_extent {
            extents += 1;
        }
        let first = space.allocate(extents as u32);
        for e in first..first + extents as u64 {
            state.built.push((e, Extent::filled(geometry.extent_pages, TreeId::META, 0)));
        }
        let mut map = space.after(&state.built, dropped);
        // `after` drops free extents at the end; the run's are owned, so they stay.
        let pages = (names + map.len() * entry).div_ceil(page::BODY_BYTES) as u64;
        for (i, e) in (first..first + extents as u64).enumerate() {
            let here = pages.saturating_sub(i as u64 * geometry.extent_pages as u64);
            let here = here.min(geometry.extent_pages as u64) as u32;
            map[e as usize] = Extent::filled(geometry.extent_pages, TreeId::META, here);
        }
        (map, geometry.page(first, 0))
    }

    fn poison(&self, e: &StoreError) {
        self.state.lock().poison.get_or_insert_with(|| Arc::new(e.clone()));
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if self.store.poison.get().is_some() {
            // The super-block may say that these extents are the database: they stay as they are.
            return self.store.building.store(false, Ordering::Release);
        }
        let state = self.state.get_mut();
        let mut space = self.store.fetch.core.space.write();
        for (extent, _) in state.built.drain(..) {
            space.release(extent);
        }
        let extents = space.len();
        drop(space);
        // Only to give back the room on the device early; the next open does it too.
        let _ = self.store.fetch.stripes.set_extents(self.store.geometry, extents);
        self.store.building.store(false, Ordering::Release);
    }
}

/// Writes the pages of one tree of a build, in order. Several may be used at once from several threads.
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

    /// Id of the page the next [`TreeWriter::append`] writes. Page ids grow by one within an extent; the next extent may lie anywhere.
    pub fn next_id(&mut self) -> PageId {
        if self.at == self.extents.len() {
            let want = (self.extents.len() as u32).clamp(1, MOST_EXTENTS_AT_ONCE);
            let first = self.shared.store.fetch.core.space.write().allocate(want);
            self.extents.extend(first..first + want as u64);
        }
        self.shared.store.geometry.page(self.extents[self.at], self.filled)
    }

    /// Pages that can still be appended with consecutive ids, the next one included.
    pub fn consecutive(&mut self) -> u32 {
        self.next_id();
        let run = self.extents[self.at..].windows(2).take_while(|w| w[1] == w[0] + 1).count() as u32 + 1;
        run * self.shared.store.geometry.extent_pages - self.filled
    }

    /// Seals a copy of `page` (whose kind, level, count and body the caller has set) and writes it, whole extents at a time. Answers its id.
    /// Errors: the disk is full, a failed write; the build is lost then.
    pub fn append(&mut self, page: &mut PageBuf) -> Result<PageId> {
        let id = self.next_id();
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
        let bytes = &self.buffer[..self.filled as usize * PAGE_BYTES];
        store
            .fetch
            .stripes
            .write(store.geometry.extent_place(extent), bytes)
            .inspect_err(|e| self.shared.poison(e))?;
        let filled = Extent::filled(store.geometry.extent_pages, self.tree, self.filled);
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
        self.shared.state.lock().unfinished.remove(&self.tree);
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
