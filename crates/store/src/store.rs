//! The store: a directory with a super-block, a lock and stripes, opened as one thing.
//!
//! Opening: take the lock → super-block → meta run (extent map, catalog) → journal (what was
//! committed since) → stripes (lengths checked, leftovers of an unfinished build cut off) → an
//! empty pool and the version table. Nothing else is read and nothing is written, so opening
//! takes a few device requests whatever the size of the database, and the time to read the
//! journal.

pub(crate) mod background;

use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, RwLock};
use snowmelt_io::{Access, DeviceCounters, Sink};

use crate::commit::Commits;
use crate::commit::checkpoint::{Begin, Checkpointer, Step};
use crate::error::{Result, StoreError};
use crate::files::lock::Lock;
use crate::files::reserve::{self, Reserve};
use crate::files::stripes::{self, Devices};
use crate::format::catalog::Catalog;
use crate::history::snapshot::Snapshot;
use crate::history::state::{State, States};
use crate::journal::Journal;
use crate::journal::meters::JournalStats;
use crate::page::geometry::{ExtentId, Geometry};
use crate::page::{PAGE_BYTES, PageBuf, PageId, TreeId};
use crate::pool::Pool;
use crate::read::core::Core;
use crate::read::fetch::Fetch;
use crate::read::meters::{Activity, Meters, TreeStats};
use crate::read::visible::VisiblePages;
use crate::read::warm::{self, WarmUp};
use crate::recovery::{RecoveryTrace, recover};
use crate::settings::config::{Checkpoints, Mode, StoreConfig};
use crate::settings::memory::{MemoryBudget, Reservation};
use crate::space::Space;
use crate::space::extent::Extent;
use crate::space::meta::{Meta, read_meta};
use crate::store::background::{BackgroundThread, Work};
use crate::superblock::current::CurrentBlock;
use crate::superblock::file::Opened;
use crate::superblock::{MetaForm, SuperBlock, SuperBlockFile};
use crate::sync::long_lock::LongLock;
use crate::sync::turn::WriterGate;

/// Name of the only stripe of a database that was made without any.
pub const DEFAULT_STRIPE: &str = "stripe-0";

/// Catalog record that says at which transaction the database was last salvaged.
const SALVAGED: &str = "salvaged";

/// An open database, below the level of trees.
pub struct Store {
    pub(crate) dir: PathBuf,
    pub(crate) config: StoreConfig,
    pub(crate) geometry: Geometry,
    pub(crate) fetch: Arc<Fetch>,
    work: Arc<Work>,
    background: Option<BackgroundThread>,
    pub(crate) commits: Arc<Commits>,
    pub(crate) writers: Arc<WriterGate>,
    pub(crate) building: AtomicBool,
    recovery: RecoveryTrace,
    memory: MemoryBudget,
    _pool_memory: Reservation,
    _lock: Lock,
}

impl Store {
    /// Makes an empty database in `dir` (made if absent) and opens it. Without `stripes` the
    /// data lies in one file in `dir`; a stripe that is a directory gets a file in it.
    pub fn create(dir: &Path, stripes: &[PathBuf], config: StoreConfig) -> Result<Arc<Store>> {
        let store = Self::create_nameless(dir, stripes, config)?;
        store.commits.block.write()?;
        Ok(store)
    }

    /// The same, but until a checkpoint writes the super-block, what is in `dir` is no database.
    pub(crate) fn create_nameless(
        dir: &Path,
        stripes: &[PathBuf],
        config: StoreConfig,
    ) -> Result<Arc<Store>> {
        if !(1..=65536).contains(&config.extent_pages) {
            return Err(StoreError::Config(format!(
                "extents of {} pages do not work: 1 to 65536",
                config.extent_pages
            )));
        }
        if config.is_read_only() {
            return Err(StoreError::ReadOnly { path: dir.to_path_buf() });
        }
        make_dir(dir)?;
        if config.files.is_none() && dir.join(crate::superblock::FILE_NAME).exists() {
            return Err(StoreError::Exists { path: dir.to_path_buf() });
        }
        let mut lock = Lock::take(dir)?;
        let named = stripe_files(dir, stripes)?;
        let paths: Vec<PathBuf> = named.iter().map(|p| stripes::resolve(dir, p)).collect();
        let devices = Devices::open(&paths, Access::CreateNew, &config)?;
        let block = SuperBlock {
            extent_pages: config.extent_pages,
            sequence: 0,
            txn: 0,
            extents: 0,
            meta: None,
            meta_form: MetaForm::Whole,
            identity: RandomState::new().hash_one(dir),
            journal: 1,
            slots: 0,
            before: (0, 0),
            synced: 0,
            tail_file: 0,
            tail_offset: 0,
            stripes: named,
        };
        let super_file = SuperBlockFile::create(dir, config.files.as_ref())?;
        lock.take_super_block(dir)?;
        let real = config.files.is_none();
        for path in paths.iter().chain([&dir.join(crate::superblock::FILE_NAME)]).filter(|_| real) {
            stripes::sync_parent(path)?;
        }
        Self::assemble(dir, config, lock, super_file, block, devices)
    }

    /// Opens the database in `dir`.
    pub fn open(dir: &Path, config: StoreConfig) -> Result<Arc<Store>> {
        if config.files.is_none() && !dir.join(crate::superblock::FILE_NAME).exists() {
            let why = if dir.is_dir() { "it has no super-block" } else { "no such directory" };
            return Err(StoreError::NotADatabase { path: dir.to_path_buf(), why: why.into() });
        }
        let lock = if config.is_read_only() { Lock::share(dir)? } else { Lock::take(dir)? };
        let Opened { file: super_file, block, notice, doubt } =
            SuperBlockFile::open_as(dir, config.access(), config.files.as_ref())?;
        if let Some(line) = notice {
            snowmelt_io::notice(&line);
        }
        // A process that was killed may have left it written and not synced; what it says was
        // durable must be before anything is used again.
        if !config.is_read_only() {
            super_file.sync()?;
        }
        let files: Vec<PathBuf> = block.stripes.iter().map(|p| stripes::resolve(dir, p)).collect();
        let devices = Devices::open(&files, config.access(), &config)?;
        Self::assemble(dir, config, lock, super_file, block, devices).map_err(|e| match doubt {
            Some(doubt) if e.is_damage() => {
                let path = dir.join(crate::superblock::FILE_NAME);
                StoreError::Corrupt { path, why: format!("{doubt}: {e}") }
            }
            _ => e,
        })
    }

    fn assemble(
        dir: &Path,
        config: StoreConfig,
        lock: Lock,
        super_file: SuperBlockFile,
        block: SuperBlock,
        devices: Devices,
    ) -> Result<Arc<Store>> {
        let geometry = Geometry { extent_pages: block.extent_pages, stripes: block.stripes.len() as u32 };
        devices.check_lengths(geometry, block.extents)?;
        let Meta { catalog, extents, state: mut meta } = read_meta(dir, &block, geometry, &devices)?;
        let mut found = recover(dir, &config, &block, geometry, (catalog, extents), &devices)?;
        meta.adopt_extents(&mut found.extents, geometry);
        say_recovered(dir, &found.trace);
        let extents = found.extents.len() as u64;
        devices.check_lengths(geometry, found.least_extents)?;
        if !config.is_read_only() {
            devices.set_lengths(geometry, extents.max(block.extents))?;
        }
        let memory = config.memory();
        let frames = config.frames()?;
        let pool_memory = memory.reserve("the pool", frames as u64 * PAGE_BYTES as u64)?;
        let core = Arc::new(Core {
            pages: VisiblePages::new(Pool::new(frames, most_pages(geometry, extents), &config.clock)?),
            space: RwLock::new(Space::new(geometry, found.extents)),
            meters: Meters::default(),
            files: block.stripes.iter().map(|p| stripes::resolve(dir, p)).collect(),
            failures: Default::default(),
        });
        core.count_pages();
        let sink: Arc<dyn Sink> = core.clone();
        let stripes = devices.into_stripes(&config, &sink)?;
        let listed = config.read_ahead.warm_list.then(|| warm::load(dir, geometry.extent_pages)).flatten();
        let warm_up = WarmUp::new(listed.unwrap_or_default(), frames as u64, geometry);
        let fetch = Arc::new(Fetch::new(core, stripes, geometry, warm_up, &config));
        for p in found.pages {
            fetch.core.pages.restore_version(p.page, p.txn, p.waiting, p.history);
        }
        let replayed_per_s = replayed_per_s(&found.trace, fetch.stripes.cost(0).bytes_per_s);
        let poison: Arc<OnceLock<_>> = Arc::default();
        if config.is_read_only() {
            let _ = poison.set(Arc::new(StoreError::ReadOnly { path: dir.to_path_buf() }));
        }
        let place = found.found.place;
        let synced = block.synced.min(place.sequence);
        let block = if synced < block.synced {
            // Cut at the damage, as asked: what is behind it is no longer missed.
            SuperBlock { synced, tail_file: place.file, tail_offset: place.offset, ..block }
        } else {
            block
        };
        let reserve_bytes = match config.mode {
            Mode::ReadWrite => config.reserve_bytes.unwrap_or(4 * geometry.extent_bytes()),
            Mode::ReadOnly => 0,
        };
        let spare = Reserve::open(dir, reserve_bytes, &config);
        let block = CurrentBlock::new(super_file, block, &config.clock);
        let journal =
            Journal::new(dir.to_path_buf(), &config, block.clone(), Arc::clone(&poison), found.found)?;
        let commits = Arc::new(Commits {
            dir: dir.to_path_buf(),
            fetch: fetch.clone(),
            states: States::new(State { txn: found.txn, catalog: found.catalog }),
            snapshots: Arc::default(),
            journal: Arc::new(journal),
            meta: Mutex::new(meta),
            block,
            spare,
            lengths: LongLock::new(Default::default(), &config.clock),
            replayed_per_s,
            poison,
            order: Mutex::default(),
            generation: AtomicU64::new(0),
            next_txn: AtomicU64::new(found.last_number + 1),
            checkpointer: Checkpointer::new(&config.clock),
            version_pages: config.version_pages()? as u64,
            config: config.clone(),
        });
        let work = Arc::new(Work::new(commits.clone()));
        let background = config
            .runs_threads()
            .then(|| BackgroundThread::start(work.clone()))
            .transpose()
            .map_err(StoreError::file(dir, "start the background thread"))?;
        Ok(Arc::new(Store {
            dir: dir.to_path_buf(),
            geometry,
            fetch,
            work,
            background,
            commits,
            writers: WriterGate::new(&config.clock),
            config,
            building: AtomicBool::new(false),
            recovery: found.trace,
            memory,
            _pool_memory: pool_memory,
            _lock: lock,
        }))
    }

    /// Does the background work that is due and answers in how many nanoseconds it wants to be
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
        &self.dir
    }

    /// Sizes of extents and stripes.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Stripe files.
    pub fn stripe_files(&self) -> &[PathBuf] {
        &self.fetch.core.files
    }

    /// Frames of the pool.
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

    /// What all readers together did; readers add theirs when they are dropped or flushed.
    pub fn activity(&self) -> Activity {
        self.fetch.core.meters.total()
    }

    /// Counters of every stripe's device, by class of requests.
    pub fn device_counters(&self) -> Vec<DeviceCounters> {
        self.fetch.stripes.counters()
    }

    /// Sets all counters to zero; what is resident stays counted.
    pub fn reset_meters(&self) {
        self.fetch.core.meters.reset();
        self.fetch.stripes.reset_counters();
    }

    /// Publishes a hand-made version of a page: snapshots as of `txn` and later see it.
    #[doc(hidden)]
    pub fn publish_version(&self, page: PageId, txn: u64, state: PageBuf) {
        self.fetch.core.pages.publish_version(page, txn, Some(Arc::new(state)), None, 0);
    }

    /// Drops the versions of a page up to and including `txn`.
    #[doc(hidden)]
    pub fn forget_versions(&self, page: PageId, txn: u64) {
        self.fetch.core.pages.forget_versions(page, txn);
    }

    /// What commits, journal and checkpoints did since the database was opened, and how much is
    /// waiting.
    pub fn journal_stats(&self) -> JournalStats {
        self.commits.stats()
    }

    /// What opening read from the journal.
    pub fn recovery(&self) -> &RecoveryTrace {
        &self.recovery
    }

    /// Why nothing may be written any more, if so.
    pub fn poisoned(&self) -> Option<Arc<StoreError>> {
        self.commits.poison.get().filter(|_| !self.config.is_read_only()).cloned()
    }

    /// Writes all pages back that may be, and starts the journal anew as far as that goes. True
    /// when nothing is left in the journal.
    pub fn checkpoint(&self) -> Result<bool> {
        self.commits.settle()?;
        self.commits.checkpoint_all(u64::MAX)
    }

    /// Writes all pages back and gives free space at the end of the stripes back.
    pub fn compact(&self) -> Result<()> {
        self.checkpoint()?;
        self.commits.set_lengths()
    }

    /// Bytes of the stripes' files.
    pub fn stripe_bytes(&self) -> Result<u64> {
        let len = |path: &PathBuf| std::fs::metadata(path).map(|m| m.len());
        let len = |path: &PathBuf| len(path).map_err(StoreError::file(path, "look at the stripe"));
        self.stripe_files().iter().map(len).sum()
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

    /// Slows a writer whose turn it is when the journal comes near its bound, while somebody
    /// else works on that.
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

    /// Waits while the journal is longer than it may be.
    pub(crate) fn wait_for_room(&self) -> Result<()> {
        /// Pause between two looks while the background thread works.
        const PAUSE_NS: u64 = 1_000_000;
        let commits = &self.commits;
        if self.config.journal.checkpoints == Checkpoints::Held {
            return Ok(());
        }
        let bound = commits.bound_bytes();
        let most = self.config.journal.most_bytes.min(bound.saturating_add(bound / 4));
        while commits.journal.bytes_in_use() > most {
            commits.check_poison()?;
            if let Some(e) = commits.checkpointer.stalled() {
                return Err((*e).clone());
            }
            let durable = commits.block.lock().txn;
            if commits.snapshots.oldest().is_some_and(|oldest| oldest <= durable) {
                // A reader holds it back; a longer journal is better than a writer that waits
                // for that.
                return Ok(());
            }
            if self.background.is_some() {
                self.config.clock.sleep_ns(PAUSE_NS);
            } else if commits.checkpoint_step(Begin::Now)? == Step::Idle {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The end: what is not written back in time stays in the journal.
    fn close(&self) {
        let commits = &self.commits;
        if commits.poison.get().is_some() {
            return;
        }
        let until_ns = commits.config.clock.now_ns().saturating_add(commits.config.close_ms * 1_000_000);
        let done = commits.settle().and_then(|()| {
            if commits.states.visible().txn > commits.block.lock().txn {
                commits.journal.end_file();
            }
            if self.config.journal.checkpoints == Checkpoints::Held {
                return Ok(false);
            }
            commits.checkpoint_all(until_ns)
        });
        // What is left in the journal must be there when it is opened again.
        let done = done.and_then(|_| commits.write_tail());
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
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Store({})", self.dir.display())
    }
}

/// Takes back what was made of a database that was not finished, as far as that goes: its files
/// in `dir`, and its stripes.
pub fn remove_unfinished(dir: &Path, stripes: &[PathBuf]) {
    let names =
        [crate::superblock::FILE_NAME, crate::files::lock::FILE_NAME, warm::FILE_NAME, reserve::FILE_NAME];
    let own = |name: &str| name.starts_with("journal-") || names.contains(&name);
    let inside = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let inside = inside.filter(|entry| entry.file_name().to_str().is_some_and(own));
    for path in inside.map(|entry| entry.path()).chain(stripes.iter().cloned()) {
        let _ = std::fs::remove_file(path);
    }
}

/// Makes a directory and those above it, durably.
fn make_dir(dir: &Path) -> Result<()> {
    let missing: Vec<&Path> =
        dir.ancestors().take_while(|d| !d.as_os_str().is_empty() && !d.exists()).collect();
    std::fs::create_dir_all(dir).map_err(StoreError::file(dir, "make the directory"))?;
    missing.into_iter().try_for_each(stripes::sync_parent)
}

/// A line for the log when there was something to recover.
fn say_recovered(dir: &Path, trace: &RecoveryTrace) {
    if trace.commits > 0 {
        snowmelt_io::notice(&format!(
            "{}: recovered {} commits after the checkpoint: {} bytes of journal in {} requests, {} at a time, {:.3} s; {} pages will be written back",
            dir.display(),
            trace.commits,
            trace.read_bytes,
            trace.requests,
            trace.concurrency,
            trace.seconds,
            trace.pages
        ));
    }
}

/// Bytes of journal a second of recovery takes: what the device reads and what the processor
/// makes of it, as measured at this open if that says anything.
fn replayed_per_s(trace: &RecoveryTrace, device_bytes_per_s: u64) -> u64 {
    /// Without a measurement: commits of one quad take twice as long, of a hundred a quarter.
    const USUAL: u64 = 100_000_000;
    /// Less says more about opening files than about reading.
    const ENOUGH_BYTES: u64 = 64 << 20;
    let measured = (trace.read_bytes >= ENOUGH_BYTES)
        .then(|| (trace.read_bytes as f64 / trace.seconds.max(1e-3)) as u64);
    measured.unwrap_or(USUAL).min(device_bytes_per_s).max(1)
}

/// Pages the translation array covers: room to grow costs only address space.
fn most_pages(geometry: Geometry, extents: u64) -> u64 {
    (extents * geometry.extent_pages as u64 * 4).max(1 << 28)
}

/// The paths the super-block will name.
fn stripe_files(dir: &Path, stripes: &[PathBuf]) -> Result<Vec<PathBuf>> {
    if stripes.is_empty() {
        return Ok(vec![PathBuf::from(DEFAULT_STRIPE)]);
    }
    let name = dir.file_name().map_or("database".into(), |n| n.to_string_lossy().into_owned());
    let absolute = |p: &Path| std::path::absolute(p).map_err(StoreError::file(p, "find the stripe"));
    let file = |(i, p): (usize, &PathBuf)| {
        if p.is_dir() { absolute(&p.join(format!("{name}.stripe-{i}"))) } else { absolute(p) }
    };
    let files = stripes.iter().enumerate().map(file).collect::<Result<Vec<_>>>()?;
    for (i, f) in files.iter().enumerate() {
        if files[..i].contains(f) {
            return Err(StoreError::Config(format!("the stripe {} is named twice", f.display())));
        }
    }
    Ok(files)
}
