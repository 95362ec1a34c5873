//! The store: a directory with a super-block, a lock and stripes, opened as one thing.
//!
//! Opening is in `store::open`; closing writes back what it can in time and leaves the rest in
//! the journal.

pub(crate) mod background;
pub(crate) mod making;
pub(crate) mod minds;
pub(crate) mod open;
pub(crate) mod place;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use snowmelt_io::DeviceCounters;

use crate::commit::Commits;
use crate::commit::room::WorkBy;
use crate::error::{Result, StoreError};
use crate::files::lock::Lock;
use crate::format::catalog::Catalog;
use crate::history::snapshot::Snapshot;
use crate::history::versions::Readable;
use crate::journal::meters::JournalStats;
use crate::memory::budget::MemoryBudget;
use crate::memory::codec_cache::CodecCache;
use crate::page::geometry::{ExtentId, Geometry};
use crate::page::{PAGE_BYTES, PageBuf, PageId, TreeId};
use crate::pool::shared::SharedFrames;
use crate::read::account::Account;
use crate::read::activity::Activity;
use crate::read::fetch::Fetch;
use crate::read::system_statistics::{self, PageTimes, SystemStatistics};
use crate::read::tree_meter::TreeStats;
use crate::recovery::RecoveryTrace;
use crate::settings::config::{Checkpoints, StoreConfig};
use crate::settings::opener::Directory;
use crate::space::extent::Extent;
use crate::space::meta_pages::MetaPlacing;
use crate::store::background::{BackgroundThread, Work};
use crate::sync::turn::WriterGate;
use crate::sync::waits::{UpperWaits, Waiter};

/// Name of the only stripe of a database that was made without any.
pub const DEFAULT_STRIPE: &str = "stripe-0";

/// Catalog record that says at which transaction the database was last salvaged.
const SALVAGED: &str = "salvaged";

/// An open database, below the level of trees.
pub struct Store {
    pub(crate) dir: Arc<Directory>,
    pub(crate) config: StoreConfig,
    pub(crate) geometry: Geometry,
    pub(crate) fetch: Arc<Fetch>,
    work: Arc<Work>,
    background: Option<BackgroundThread>,
    pub(crate) commits: Arc<Commits>,
    pub(crate) writers: Arc<WriterGate>,
    pub(crate) building: AtomicBool,
    upper_waits: UpperWaits,
    pub(crate) codecs: CodecCache,
    recovery: RecoveryTrace,
    memory: MemoryBudget,
    _lock: Arc<Lock>,
}

impl Store {
    /// Does the background work that is due and returns in how many nanoseconds it wants to be
    /// called again: at least [`IDLE_NS`](crate::IDLE_NS) when there was nothing to do. With
    /// [`Background::Thread`] a thread does this.
    pub fn step(&self) -> u64 {
        self.work.step()
    }

    /// A snapshot of the current state.
    pub fn snapshot(&self) -> Snapshot {
        self.commits.snapshot()
    }

    /// The oldest transaction a live snapshot reads as of.
    pub fn oldest_snapshot(&self) -> Option<u64> {
        self.commits.snapshots.oldest()
    }

    /// The bytes a build stored under `name` in the catalog.
    pub fn catalog(&self, name: &str) -> Option<Vec<u8>> {
        self.commits.states.visible().catalog.records.get(name).map(|r| r.bytes.to_vec())
    }

    /// The whole catalog.
    pub fn catalog_all(&self) -> Catalog {
        self.commits.states.visible().catalog.clone()
    }

    /// The memory budget.
    pub fn memory(&self) -> &MemoryBudget {
        &self.memory
    }

    /// Settings it was opened with.
    pub fn config(&self) -> &StoreConfig {
        &self.config
    }

    /// Directory of the database.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// A path that leads to it now, also when it was moved since: for temporary files.
    pub fn work_dir(&self) -> PathBuf {
        self.dir.reachable()
    }

    /// Sizes of extents and stripes.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Whether a directory holds a store.
    pub fn is_at(dir: &Path) -> bool {
        dir.join(crate::superblock::FILE_NAME).is_file()
    }

    /// Stripe files.
    pub fn stripe_files(&self) -> &[PathBuf] {
        &self.fetch.core.files
    }

    /// The frames it reads pages into; other stores may share them.
    pub fn shared_frames(&self) -> &Arc<SharedFrames> {
        self.fetch.core.pages.pool.shared()
    }

    /// Frames of the pool, all stores together that share them.
    pub fn frames(&self) -> u32 {
        self.fetch.core.pages.pool.frame_count()
    }

    /// Bytes of the pool.
    pub fn pool_bytes(&self) -> u64 {
        self.frames() as u64 * PAGE_BYTES as u64
    }

    /// Bytes of the extents in use, all stripes together.
    pub fn bytes(&self) -> u64 {
        let used = self.fetch.core.space.read().iter().filter(|(_, e)| e.tree.is_some()).count();
        used as u64 * self.geometry.extent_bytes()
    }

    /// The extent map: which extents there are, whose they are, which of their pages are written.
    pub fn extents(&self) -> Vec<(ExtentId, Extent)> {
        self.fetch.core.space.read().iter().map(|(id, extent)| (id, extent.clone())).collect()
    }

    /// The pages of an extent that changed after transaction `txn`: those written back since,
    /// and those with a version that is yet to be. Pages of which nothing is known count as
    /// changed. For copies of what changed.
    pub fn pages_written_since(&self, extent: ExtentId, txn: u64) -> Vec<PageId> {
        let core = &self.fetch.core;
        let newest = self.commits.states.visible().txn;
        let (mut pages, map) = {
            let space = core.space.read();
            (space.written_since(extent, txn, newest), space.newest(extent).clone())
        };
        let used = (0..self.geometry.extent_pages).filter(|i| map.is_allocated(*i));
        pages.extend(used.map(|i| self.geometry.page(extent, i)).filter(|p| core.pages.versions.has(*p)));
        pages.sort_unstable();
        pages.dedup();
        pages
    }

    /// Counters of every tree, in the order of their ids; the store's own pages come first.
    pub fn tree_stats(&self) -> Vec<TreeStats> {
        let state = self.commits.states.visible();
        let own = [(TreeId::META, "meta")];
        let trees = state.catalog.trees.iter().map(|(id, name)| (*id, name.as_str()));
        own.into_iter().chain(trees).map(|(id, name)| self.fetch.core.meters.stats(id, name)).collect()
    }

    /// Activity of all readers together; each adds its own when it is dropped or flushed.
    pub fn activity(&self) -> Activity {
        self.fetch.core.meters.total()
    }

    /// The account of a name, made when first asked for; see [`Account`].
    pub fn account(&self, name: &str) -> Arc<Account> {
        self.fetch.core.meters.account(name)
    }

    /// Counters of every stripe's device, by class of requests.
    pub fn device_counters(&self) -> Vec<DeviceCounters> {
        self.fetch.stripes.counters()
    }

    /// Times of reads of every stripe's device: of one page and of many (SREADTIM, MREADTIM).
    pub fn system_statistics(&self) -> Vec<SystemStatistics> {
        system_statistics::of_devices(&self.fetch.stripes)
    }

    /// Times of reading absent pages, all devices together.
    pub fn page_times(&self) -> PageTimes {
        system_statistics::page_times(&self.fetch.stripes)
    }

    /// Sets all counters to zero, but for those of resident pages. The work that open readers have
    /// done so far no longer counts, nor does the fate of pages that were read ahead.
    pub fn reset_meters(&self) {
        self.fetch.core.pages.pool.begin_generation();
        self.fetch.core.meters.reset();
        self.fetch.waits.reset();
        self.fetch.stripes.reset_counters();
    }

    /// As [`Store::reset_meters`], for the counters of one tree; false when there is none of that
    /// name.
    pub fn reset_tree_meters(&self, name: &str) -> bool {
        let Some(tree) = self.tree_stats().into_iter().find(|tree| tree.name == name) else { return false };
        let core = &self.fetch.core;
        let tree = TreeId(tree.tree);
        let extents = self.extents_of(tree);
        core.pages.pool.forget_fate(|page| extents.contains(&self.geometry.extent_of(page)));
        core.meters.reset_tree(tree);
        true
    }

    fn extents_of(&self, tree: TreeId) -> HashSet<ExtentId> {
        let space = self.fetch.core.space.read();
        space.iter().filter(|(_, extent)| extent.tree == Some(tree)).map(|(id, _)| id).collect()
    }

    /// As [`Store::reset_meters`], for one named account; false when there is none.
    pub fn reset_account(&self, name: &str) -> bool {
        let accounts = self.fetch.core.meters.accounts();
        let found = accounts.iter().find(|account| account.name() == name);
        found.inspect(|account| account.reset()).is_some()
    }

    /// Publishes a hand-made version of a page: snapshots as of `txn` and later see it.
    #[doc(hidden)]
    pub fn publish_version(&self, page: PageId, txn: u64, state: PageBuf) {
        self.fetch.core.pages.publish_version(page, txn, Some(Arc::new(state)), None, &Readable::default());
    }

    /// Drops the versions of a page up to and including `txn`.
    #[doc(hidden)]
    pub fn forget_versions(&self, page: PageId, txn: u64) {
        self.fetch.core.pages.forget_versions(page, txn);
    }

    /// Work of commits, journal and checkpoints since the database was opened, and how much is
    /// waiting.
    pub fn journal_stats(&self) -> JournalStats {
        JournalStats { turn_waits: self.writers.waits(), ..self.commits.stats() }
    }

    /// Meters of waits above the store: see [`UpperWaits`].
    pub fn upper_waits(&self) -> &UpperWaits {
        &self.upper_waits
    }

    /// Reads of the journal at opening.
    pub fn recovery(&self) -> &RecoveryTrace {
        &self.recovery
    }

    /// Why nothing may be written any more, if so.
    pub fn poisoned(&self) -> Option<Arc<StoreError>> {
        self.commits.poison.get().filter(|_| !self.config.is_read_only()).cloned()
    }

    /// Why changes fail or will wait for long, if so: a write failed, or the journal is as long
    /// as it may be and nothing gives it back.
    pub fn unready(&self) -> Option<String> {
        self.poisoned().map(|why| why.to_string()).or_else(|| self.commits.unready())
    }

    /// An error when a file of it no longer has its name. Nothing is written from then on.
    pub fn look(&self) -> Result<()> {
        if self.config.is_read_only() { self.commits.journal.look() } else { self.commits.look() }
    }

    /// Writes back all pages that may be, and starts the journal anew as far as possible. True when
    /// nothing is left in the journal.
    pub fn checkpoint(&self) -> Result<bool> {
        self.checkpoint_while(&|| true)
    }

    /// As [`Store::checkpoint`], as long as `go_on` says so; it is asked between short pieces of
    /// work.
    pub fn checkpoint_while(&self, go_on: &dyn Fn() -> bool) -> Result<bool> {
        self.commits.settle()?;
        self.commits.checkpoint_all(go_on)
    }

    /// Writes all pages back and gives free space at the end of the stripes back. Catalog and
    /// map go to the front where that makes the stripes shorter.
    pub fn compact(&self) -> Result<()> {
        self.compact_while(&|| true)
    }

    /// As [`Store::compact`], as long as `go_on` says so; what was done by then stays done.
    pub fn compact_while(&self, go_on: &dyn Fn() -> bool) -> Result<()> {
        self.checkpoint_while(go_on)?;
        let commits = &self.commits;
        let lies_behind = commits.meta.lock().lies_behind(&commits.fetch.core.space.read());
        if lies_behind {
            *commits.meta_again.lock() = Some(MetaPlacing::Front);
            self.checkpoint_while(go_on)?;
        }
        // The super-block names extents that were given up since its map was taken.
        let is_short = self.fetch.core.space.read().len() < commits.block.lock().extents;
        if is_short {
            *commits.meta_again.lock() = Some(MetaPlacing::Reuse);
            self.checkpoint_while(go_on)?;
        }
        self.commits.shrink_journal_to_rest();
        self.commits.set_lengths()
    }

    /// Bytes of the stripes' files, and of what the extents take on block devices.
    pub fn stripe_bytes(&self) -> Result<u64> {
        self.fetch.stripes.bytes(self.geometry, self.fetch.core.space.read().len())
    }

    /// Bytes of extents that may be given out without the stripes growing, and of those that
    /// readers of older states keep from being given out.
    pub fn unused_bytes(&self) -> (u64, u64) {
        let (free, resting) = self.fetch.core.space.read().unused();
        let bytes = self.geometry.extent_bytes();
        (free * bytes, resting * bytes)
    }

    /// Bytes by which the stripes can grow; `None` when that is not known.
    pub fn room_bytes(&self) -> Option<u64> {
        self.fetch.stripes.room()
    }

    /// After an open with [`Salvage::CutJournal`](crate::Salvage): commits and checkpoints what
    /// is left, so that the damage is behind it.
    pub fn settle_salvage(self: &Arc<Self>) -> Result<()> {
        let mut txn = self.begin()?;
        let number = txn.txn();
        txn.put_record(SALVAGED, 0, &number.to_le_bytes());
        txn.commit()?;
        self.checkpoint().map(drop)
    }

    /// Slows the writer that has the turn when the journal comes near its bound, as long as
    /// background work can shorten it.
    pub(crate) fn slow_down(&self) {
        let commits = &self.commits;
        let held_back = || {
            let durable = commits.block.lock().txn;
            commits.snapshots.oldest().is_some_and(|oldest| oldest <= durable)
        };
        let works = self.background.is_some() && self.config.journal.checkpoints == Checkpoints::Continuous;
        if works && commits.checkpointer.stalled().is_none() && !held_back() {
            commits.slow_down();
        }
    }

    /// Waits while the journal is longer than it may be; false when the waiter gave up.
    pub(crate) fn wait_for_room(&self, waiter: &Waiter<'_>) -> Result<bool> {
        let by = if self.background.is_some() { WorkBy::Thread } else { WorkBy::Waiter };
        self.commits.wait_for_room(by, waiter)
    }

    /// Closes the store: pages that are not written back in time stay in the journal.
    fn close(&self) {
        let commits = &self.commits;
        if commits.poison.get().is_some() {
            return;
        }
        let until_ns =
            commits.config.seams.clock.now_ns().saturating_add(commits.config.close_ms * 1_000_000);
        let done = commits.settle().and_then(|()| {
            // So that nothing in it is needed later, also not the leavings of large transactions
            // that were dropped.
            let is_long = commits.bytes_to_recover() > self.config.journal.file_bytes;
            if is_long || commits.states.visible().txn > commits.block.lock().txn {
                commits.journal.end_file();
            }
            if self.config.journal.checkpoints == Checkpoints::Held {
                return Ok(false);
            }
            commits.checkpoint_all(&|| commits.config.seams.clock.now_ns() < until_ns)
        });
        // The records left in the journal must be there at the next opening.
        let done = done.and_then(|_| commits.write_tail());
        commits.shrink_journal_to_rest();
        if let Err(e) = done {
            snowmelt_io::notice(&format!("closing {}: {e}", commits.dir.display()));
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        drop(self.background.take());
        self.close();
        if self.fetch.read_ahead.warm_list {
            self.work.save();
        }
        self.work.keep_learned();
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Store({})", self.dir().display())
    }
}
