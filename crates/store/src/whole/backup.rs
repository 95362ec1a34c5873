//! Copying a database while it is used: one consistent state, every page verified on the way.
//!
//! 1. what is appended is made durable, and a snapshot is taken together with the extent map
//!    that belongs to it;
//! 2. extent by extent: pages with versions come from the version table, the others from the
//!    stripe, past the pool. While the snapshot lives, no later version reaches a stripe; a
//!    page is looked up in the table before its stripe is read, so one written back meanwhile
//!    is right too;
//! 3. the copy gets the same pages under the same numbers, then catalog and map by a checkpoint
//!    of its own.
//!
//! The copy has no journal to recover. Restoring is copying the copy. Its super-block is
//! written, and gets its name, last: what a cut leaves is no database, and the next copy takes
//! it away.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use snowmelt_io::AlignedBuf;

use crate::error::{Result, StoreError};
use crate::format::catalog::Catalog;
use crate::format::lineage::StateName;
use crate::format::placement::Placement;
use crate::format::written_by::WrittenBy;
use crate::history::rebuild::rebuild;
use crate::history::snapshot::Snapshot;
use crate::history::state::State;
use crate::history::versions::Seen;
use crate::page::geometry::ExtentId;
use crate::page::{self, Damage, PAGE_BYTES, PageId, TreeId, header};
use crate::settings::config::{Background, Mode, Seams, StoreConfig};
use crate::space::Space;
use crate::space::extent::Extent;
use crate::store::Store;

/// How far a copy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyProgress {
    /// Extents copied.
    pub extents_done: u64,
    /// Extents there are.
    pub extents: u64,
    /// Pages copied.
    pub pages: u64,
    /// The transaction that the copy is as of.
    pub txn: u64,
}

impl Store {
    /// Copies the newest durable state into a new database in `target`, with its data in
    /// `stripes` (none: in `target`). Readers and writers go on. A failed copy is removed; what
    /// a cut leaves of one is no database.
    ///
    /// Errors: damage in a page; the copy took longer than readers may; what writing the copy
    /// meets.
    pub fn backup(
        &self,
        target: &Path,
        stripes: &[PathBuf],
        mut progress: impl FnMut(CopyProgress),
    ) -> Result<CopyProgress> {
        self.backup_until(target, stripes, |at| {
            progress(at);
            ControlFlow::Continue(())
        })
    }

    /// As [`Store::backup`]; ends in [`StoreError::Stopped`] when `progress` says so.
    pub fn backup_until(
        &self,
        target: &Path,
        stripes: &[PathBuf],
        progress: impl FnMut(CopyProgress) -> ControlFlow<()>,
    ) -> Result<CopyProgress> {
        Ok(self.backup_named(target, stripes, progress)?.0)
    }

    /// As [`Store::backup_until`]; returns the name of the state, too.
    pub(crate) fn backup_named(
        &self,
        target: &Path,
        stripes: &[PathBuf],
        progress: impl FnMut(CopyProgress) -> ControlFlow<()>,
    ) -> Result<(CopyProgress, StateName)> {
        let (snapshot, map) = self.state_and_map()?;
        let name = self.commits.lineage_of(snapshot.state())?.name(snapshot.txn());
        let done = self.copy_to(target, stripes, |copy| self.copy_into(copy, &snapshot, map, progress))?;
        Ok((done, name))
    }

    /// Random number of the database.
    pub(crate) fn identity(&self) -> u64 {
        self.commits.block.lock().identity
    }

    /// Has `fill` make a database of a new one in `target`, which is removed where that fails.
    pub(crate) fn copy_to(
        &self,
        target: &Path,
        stripes: &[PathBuf],
        fill: impl FnOnce(&Arc<Store>) -> Result<CopyProgress>,
    ) -> Result<CopyProgress> {
        let new = Store::create_nameless(target, stripes, copy_config(self))?;
        let done = fill(new.store())?;
        new.finish()?;
        Ok(done)
    }

    /// Copies all extents as the snapshot sees them, then makes the copy a database.
    fn copy_into(
        &self,
        copy: &Store,
        snapshot: &Snapshot,
        mut map: Vec<Extent>,
        mut progress: impl FnMut(CopyProgress) -> ControlFlow<()>,
    ) -> Result<CopyProgress> {
        let mut at =
            CopyProgress { extents_done: 0, extents: map.len() as u64, pages: 0, txn: snapshot.txn() };
        let mut buf = AlignedBuf::huge(self.geometry.extent_bytes() as usize);
        for (id, extent) in map.iter_mut().enumerate().filter(|(_, e)| e.tree.is_some()) {
            let pages = self.extent_as_of(snapshot, id as u64, extent, |_, _| true, &mut buf)?.len() as u64;
            note_written(extent, &buf);
            copy.fetch.stripes.write(copy.geometry.extent_place(id as u64), &buf)?;
            at = CopyProgress { extents_done: id as u64 + 1, pages: at.pages + pages, ..at };
            if progress(at).is_break() {
                return Err(StoreError::Stopped);
            }
        }
        copy.adopt(snapshot.txn(), snapshot.catalog().clone(), map)?;
        at.extents_done = at.extents;
        Ok(at)
    }

    /// A snapshot of the newest state and the map that belongs to it.
    pub(crate) fn state_and_map(&self) -> Result<(Snapshot, Vec<Extent>)> {
        let commits = &self.commits;
        loop {
            commits.settle()?;
            let _order = commits.order.lock();
            if commits.states.appended().txn == commits.states.visible().txn {
                let map = self.fetch.core.space.read().durable();
                return Ok((commits.snapshot(), map));
            }
        }
    }

    /// Fills `buf` with the pages of an extent as the snapshot sees them, the others zeroed, and
    /// returns which they are. Wanted of those in use are the ones of which `is_wanted` says so,
    /// given the index and the low half of the transaction that wrote them, where that is known.
    pub(crate) fn extent_as_of(
        &self,
        snapshot: &Snapshot,
        id: ExtentId,
        extent: &Extent,
        is_wanted: impl Fn(u32, Option<u32>) -> bool,
        buf: &mut AlignedBuf,
    ) -> Result<Vec<u32>> {
        let tree = extent.tree.expect("only extents with an owner are copied");
        assert_eq!(buf.len() as u64, self.geometry.extent_bytes(), "an extent is copied whole");
        let used = (0..self.geometry.extent_pages).filter(|i| extent.is_allocated(*i));
        let txn = snapshot.txn();
        let seen = used.map(|i| {
            let page = self.geometry.page(id, i);
            (i, page, self.fetch.core.pages.versions.see(page, txn))
        });
        let mut wanted: Vec<(u32, PageId, Seen)> = seen.collect();
        {
            let space = self.fetch.core.space.read();
            wanted.retain(|(i, page, seen)| {
                let written_by = match seen {
                    Seen::Stripe => space.expected(*page).1,
                    Seen::Memory(state) => Some(header(state).txn() as u32),
                    Seen::Journal(version, _) => Some(*version as u32),
                };
                is_wanted(*i, written_by)
            });
        }
        let on_stripe = wanted.iter().filter(|(_, _, seen)| matches!(seen, Seen::Stripe)).map(|(i, ..)| *i);
        let (first, end) = on_stripe.fold((u32::MAX, 0), |(first, end), i| (first.min(i), end.max(i + 1)));
        buf.fill(0);
        if first < end {
            let page = self.geometry.page(id, first);
            self.fetch
                .read_past_pool(page, &mut buf[first as usize * PAGE_BYTES..end as usize * PAGE_BYTES])
                .map_err(|e| self.fetch.core.unreadable(page, e))?;
        }
        let mut kept = vec![false; self.geometry.extent_pages as usize];
        let found = wanted.iter().map(|(i, ..)| *i).collect();
        for (i, page, seen) in wanted {
            kept[i as usize] = true;
            let bytes = &mut buf[i as usize * PAGE_BYTES..][..PAGE_BYTES];
            self.page_as_of(txn, page, tree, seen, bytes).map_err(|e| match snapshot.is_cancelled() {
                true => StoreError::SnapshotTooOld { txn },
                false => e,
            })?;
            let newest = header(bytes).txn();
            if newest > txn || snapshot.is_cancelled() {
                return Err(StoreError::SnapshotTooOld { txn });
            }
        }
        let others = buf.chunks_exact_mut(PAGE_BYTES).zip(&kept).filter(|(_, kept)| !**kept);
        others.for_each(|(bytes, _)| bytes.fill(0));
        Ok(found)
    }

    /// Fills `bytes` with a page of which the version table said `seen`; in them is what its
    /// stripe had after that.
    fn page_as_of(
        &self,
        txn: u64,
        page: PageId,
        tree: TreeId,
        mut seen: Seen,
        bytes: &mut [u8],
    ) -> Result<()> {
        let core = &self.fetch.core;
        loop {
            let (version, way) = match seen {
                Seen::Memory(state) => {
                    seal_into(bytes, &state, page, tree);
                    return Ok(());
                }
                // As of now: the map may be older than a write-back that took its version.
                Seen::Stripe => {
                    let (owner, expected) = core.space.read().expected(page);
                    if owner != Some(tree) {
                        return Err(core.damaged(page, Damage::NotAllocated));
                    }
                    return page::verify_written(bytes, page, tree, expected)
                        .map_err(|why| core.damaged(page, why));
                }
                Seen::Journal(version, way) => (version, way),
            };
            let failed = match rebuild(&self.commits.journal, page, version, &way) {
                Ok(state) => {
                    seal_into(bytes, &state, page, tree);
                    return Ok(());
                }
                Err(e) => e,
            };
            // It may have been written back since we looked, and its place in the journal used
            // again.
            seen = match core.pages.versions.see(page, txn) {
                Seen::Journal(now, _) if now == version => return Err(failed),
                now => now,
            };
            if matches!(seen, Seen::Stripe) {
                self.fetch.read_past_pool(page, bytes).map_err(|e| core.unreadable(page, e))?;
            }
        }
    }

    /// Makes the pages that were copied here a database.
    pub(crate) fn adopt(&self, txn: u64, mut catalog: Catalog, map: Vec<Extent>) -> Result<()> {
        if txn == 0 {
            self.fetch.stripes.sync()?;
            return self.commits.block.write();
        }
        *self.fetch.core.space.write() = Space::new(self.geometry, all_written(map));
        // On fewer stripes some trees have no stripe of their own any more.
        Placement::of_catalog(&catalog, self.geometry.stripes).keep(&mut catalog);
        let state = Arc::new(State { txn, catalog });
        self.commits.states.append(state.clone());
        self.commits.states.show(state);
        self.checkpoint().map(drop)
    }
}

/// The configuration of a copy.
pub(crate) fn copy_config(store: &Store) -> StoreConfig {
    StoreConfig {
        mode: Mode::ReadWrite,
        extent_pages: store.geometry.extent_pages,
        read_ahead: crate::ReadAhead::none(),
        placement: Default::default(),
        new_profiles: Vec::new(),
        journal: Default::default(),
        // of the same budget: a backup runs beside queries
        memory_bytes: COPY_MEMORY.min(store.memory().total() / 8),
        budget: Some(store.memory().clone()),
        pool_bytes: None,
        shared_frames: None,
        seams: Seams {
            background: Background::Caller,
            devices: None,
            #[cfg(feature = "plant")]
            plant: None,
            ..store.config.clone().seams
        },
        ..store.config.clone()
    }
}

/// Most memory of the store that a copy is written with: it reads nothing.
const COPY_MEMORY: u64 = 16 << 20;

fn seal_into(bytes: &mut [u8], state: &[u8], page: PageId, tree: TreeId) {
    bytes.copy_from_slice(state);
    let txn = header(bytes).txn();
    page::seal(bytes, page, tree, txn);
}

/// In the copy every page was written as the transaction in its header left it.
fn note_written(extent: &mut Extent, pages: &[u8]) {
    let count = (pages.len() / PAGE_BYTES) as u32;
    let mut written_by = WrittenBy::UNKNOWN;
    for (i, page) in (0..count).zip(pages.chunks_exact(PAGE_BYTES)).filter(|(i, _)| extent.is_allocated(*i)) {
        written_by.set(i, header(page).txn(), count);
    }
    extent.written_by = written_by;
}

/// In the copy every page in use is on its stripe.
fn all_written(mut map: Vec<Extent>) -> Vec<Extent> {
    map.iter_mut().for_each(|e| e.written = e.allocated.clone());
    map
}
