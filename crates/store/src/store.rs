//! The store: a directory with a super-block, a lock and stripes, opened as one thing.
//!
//! Opening: take the lock → super-block → stripes (lengths checked, leftovers of an unfinished build cut off) → meta run (extent map, catalog) →
//! an empty pool. Nothing else is read, so opening takes a few device requests whatever the size of the database.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};

use parking_lot::RwLock;
use snowmelt_io::{Access, AlignedBuf, DeviceCounters, Sink};
use twox_hash::XxHash3_64;

use crate::background::{BackgroundThread, Work};
use crate::catalog::{self, Catalog};
use crate::config::{Background, StoreConfig};
use crate::core::Core;
use crate::error::{Result, StoreError};
use crate::fetch::Fetch;
use crate::lock::Lock;
use crate::memory::{MemoryBudget, Reservation};
use crate::meters::{Activity, Meters, TreeStats};
use crate::page::{self, BODY_BYTES, HEADER_BYTES, PAGE_BYTES, PageBuf, PageId, TreeId};
use crate::pool::Pool;
use crate::snapshot::{Snapshot, Snapshots};
use crate::space::{Extent, ExtentId, Geometry, Space};
use crate::stripes::{self, Devices};
use crate::superblock::{MetaRun, SuperBlock, SuperBlockFile};

/// Name of the only stripe of a database that was made without any.
pub const DEFAULT_STRIPE: &str = "stripe-0";

/// An open database, below the level of trees.
pub struct Store {
    pub(crate) dir: PathBuf,
    pub(crate) config: StoreConfig,
    pub(crate) geometry: Geometry,
    pub(crate) fetch: Arc<Fetch>,
    work: Arc<Work>,
    background: Option<BackgroundThread>,
    pub(crate) committed: RwLock<Committed>,
    pub(crate) super_file: SuperBlockFile,
    pub(crate) building: AtomicBool,
    /// Why nothing may be written any more: nobody knows what the super-block says since its last write failed.
    pub(crate) poison: OnceLock<Arc<StoreError>>,
    pub(crate) snapshots: Arc<Snapshots>,
    memory: MemoryBudget,
    _pool_memory: Reservation,
    _lock: Lock,
}

/// The committed state beside the extent map.
#[derive(Clone)]
pub(crate) struct Committed {
    pub block: SuperBlock,
    pub catalog: Catalog,
}

impl Store {
    /// Makes an empty database in `dir` (made if absent) and opens it. Without `stripes` the data lies in one file in `dir`; a stripe
    /// that is a directory gets a file in it.
    pub fn create(dir: &Path, stripes: &[PathBuf], config: StoreConfig) -> Result<Arc<Store>> {
        if !(1..=65536).contains(&config.extent_pages) {
            return Err(StoreError::Config(format!(
                "extents of {} pages do not work: 1 to 65536",
                config.extent_pages
            )));
        }
        std::fs::create_dir_all(dir).map_err(StoreError::file(dir, "make the directory"))?;
        if dir.join(crate::superblock::FILE_NAME).exists() {
            return Err(StoreError::Exists { path: dir.to_path_buf() });
        }
        let lock = Lock::take(dir)?;
        let named = stripe_files(dir, stripes)?;
        let paths: Vec<PathBuf> = named.iter().map(|p| stripes::resolve(dir, p)).collect();
        let devices = Devices::open(&paths, Access::CreateNew, &config)?;
        let block = SuperBlock {
            extent_pages: config.extent_pages,
            sequence: 0,
            txn: 0,
            extents: 0,
            meta: None,
            stripes: named,
        };
        let super_file = SuperBlockFile::create(dir, &block)?;
        for path in paths.iter().chain([&dir.join(crate::superblock::FILE_NAME)]) {
            stripes::sync_parent(path)?;
        }
        Self::assemble(dir, config, lock, super_file, block, devices)
    }

    /// Opens the database in `dir`.
    pub fn open(dir: &Path, config: StoreConfig) -> Result<Arc<Store>> {
        if !dir.join(crate::superblock::FILE_NAME).exists() {
            let why = if dir.is_dir() { "it has no super-block" } else { "no such directory" };
            return Err(StoreError::NotADatabase { path: dir.to_path_buf(), why: why.into() });
        }
        let lock = Lock::take(dir)?;
        let (super_file, block, notice) = SuperBlockFile::open(dir)?;
        if let Some(line) = notice {
            snowmelt_io::notice(&line);
        }
        let files: Vec<PathBuf> = block.stripes.iter().map(|p| stripes::resolve(dir, p)).collect();
        let devices = Devices::open(&files, Access::ReadWrite, &config)?;
        Self::assemble(dir, config, lock, super_file, block, devices)
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
        let (catalog, extents) = read_meta(dir, &block, geometry, &devices)?;
        let memory = MemoryBudget::new(config.memory_bytes);
        let frames = config.frames()?;
        let pool_memory = memory.reserve("the pool", frames as u64 * PAGE_BYTES as u64)?;
        let core = Arc::new(Core {
            pool: Pool::new(frames, most_pages(geometry, block.extents), &config.clock)?,
            space: RwLock::new(Space::new(geometry, extents)),
            meters: Meters::default(),
            files: block.stripes.iter().map(|p| stripes::resolve(dir, p)).collect(),
            failures: Default::default(),
        });
        count_pages(&core);
        let sink: Arc<dyn Sink> = core.clone();
        let stripes = devices.into_stripes(&config, &sink)?;
        let fetch = Arc::new(Fetch::new(core, stripes, geometry, &config));
        let work = Arc::new(Work::new(fetch.clone(), dir.to_path_buf()));
        let threaded = config.background == Background::Thread && !config.clock.is_virtual();
        let background = (threaded && fetch.read_ahead.warm_list)
            .then(|| BackgroundThread::start(work.clone()))
            .transpose()
            .map_err(StoreError::file(dir, "start the background thread"))?;
        Ok(Arc::new(Store {
            dir: dir.to_path_buf(),
            config,
            geometry,
            fetch,
            work,
            background,
            committed: RwLock::new(Committed { block, catalog }),
            super_file,
            building: AtomicBool::new(false),
            poison: OnceLock::new(),
            snapshots: Arc::default(),
            memory,
            _pool_memory: pool_memory,
            _lock: lock,
        }))
    }

    /// Does the background work that is due and answers in how many nanoseconds it wants to be called again. With
    /// [`Background::Thread`] a thread does this.
    pub fn step(&self) -> u64 {
        self.work.step()
    }

    /// A snapshot of the current state.
    pub fn snapshot(&self) -> Snapshot {
        self.snapshots.take(|| self.committed.read().block.txn)
    }

    /// The oldest transaction a live snapshot reads as of.
    pub fn oldest_snapshot(&self) -> Option<u64> {
        self.snapshots.oldest()
    }

    /// The bytes a build stored under `name` in the catalog.
    pub fn catalog(&self, name: &str) -> Option<Vec<u8>> {
        self.committed.read().catalog.records.get(name).map(|r| r.bytes.to_vec())
    }

    /// The whole catalog.
    pub fn catalog_all(&self) -> Catalog {
        self.committed.read().catalog.clone()
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
        self.fetch.core.pool.frame_count()
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

    /// Counters of every tree, in the order of their ids; the store's own pages come first.
    pub fn tree_stats(&self) -> Vec<TreeStats> {
        let committed = self.committed.read();
        let own = [(TreeId::META, "meta")];
        let trees = committed.catalog.trees.iter().map(|(id, name)| (*id, name.as_str()));
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

    /// Publishes a hand-made version of a page: snapshots as of `txn` and later see it. This is the door updates will use.
    #[doc(hidden)]
    pub fn publish_version(&self, page: PageId, txn: u64, state: PageBuf) {
        self.fetch.core.pool.publish_version(page, txn, Arc::new(state));
    }

    /// Drops the versions of a page up to and including `txn`.
    #[doc(hidden)]
    pub fn forget_versions(&self, page: PageId, txn: u64) {
        self.fetch.core.pool.forget_versions(page, txn);
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        drop(self.background.take());
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

/// Pages the translation array covers: room to grow costs only address space.
fn most_pages(geometry: Geometry, extents: u64) -> u64 {
    (extents * geometry.extent_pages as u64 * 4).max(1 << 28)
}

/// Tells the meters how many pages each tree has.
pub(crate) fn count_pages(core: &Core) {
    let mut pages: HashMap<TreeId, u64> = HashMap::new();
    for (_, e) in core.space.read().iter() {
        if let Some(tree) = e.tree {
            *pages.entry(tree).or_default() += e.pages() as u64;
        }
    }
    for (tree, n) in pages {
        core.meters.with(tree, |m| m.pages.store(n, Relaxed));
    }
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

/// Reads and checks the meta run, an extent at a time.
fn read_meta(
    dir: &Path,
    block: &SuperBlock,
    geometry: Geometry,
    devices: &Devices,
) -> Result<(Catalog, Vec<Extent>)> {
    let Some(run) = block.meta else {
        return Ok((Catalog { next_tree: 1, ..Default::default() }, Vec::new()));
    };
    let corrupt =
        |why: &str| StoreError::Corrupt { path: dir.join(crate::superblock::FILE_NAME), why: why.into() };
    let pages = run.bytes.div_ceil(BODY_BYTES as u64);
    let all = block.extents.saturating_mul(geometry.extent_pages as u64);
    if run.first.0.saturating_add(pages) > all || geometry.index_of(run.first) != 0 {
        return Err(corrupt("the meta run lies beyond the end of the database"));
    }
    let mut bytes = Vec::with_capacity(pages as usize * BODY_BYTES);
    let mut buf = AlignedBuf::new(geometry.extent_bytes() as usize);
    for first in (run.first.0..run.first.0 + pages).step_by(geometry.extent_pages as usize) {
        let place = geometry.place(PageId(first));
        let here = (run.first.0 + pages - first).min(geometry.extent_pages as u64) as usize;
        let file = || stripes::resolve(dir, &block.stripes[place.stripe]);
        let part = &mut buf[..here * PAGE_BYTES];
        devices.read(place, part).map_err(StoreError::device(&file(), "read the meta run"))?;
        for (i, page) in part.chunks_exact(PAGE_BYTES).enumerate() {
            let id = PageId(first + i as u64);
            let offset = geometry.place(id).offset;
            page::verify(page, id, TreeId::META).map_err(|why| StoreError::Damaged {
                file: file(),
                offset,
                page: id,
                why,
            })?;
            bytes.extend_from_slice(&page[HEADER_BYTES..]);
        }
    }
    bytes.truncate(run.bytes as usize);
    if XxHash3_64::oneshot(&bytes) != run.checksum {
        return Err(corrupt("the meta run is not the one this state wrote"));
    }
    let (catalog, extents) = catalog::decode(&bytes, block.extent_pages).map_err(corrupt)?;
    if extents.len() as u64 != block.extents {
        return Err(corrupt("super-block and extent map disagree"));
    }
    Ok((catalog, extents))
}

/// Packs the meta run into sealed pages, whole extents long.
pub(crate) fn meta_pages(bytes: &[u8], first: PageId, geometry: Geometry, txn: u64) -> (MetaRun, AlignedBuf) {
    let run = MetaRun { first, bytes: bytes.len() as u64, checksum: XxHash3_64::oneshot(bytes) };
    let pages = bytes.len().div_ceil(BODY_BYTES).next_multiple_of(geometry.extent_pages as usize);
    let mut buf = AlignedBuf::new(pages * PAGE_BYTES);
    for (i, part) in bytes.chunks(BODY_BYTES).enumerate() {
        let page = &mut buf[i * PAGE_BYTES..][..PAGE_BYTES];
        page[page::offset::KIND] = page::PageKind::Meta as u8;
        page[HEADER_BYTES..][..part.len()].copy_from_slice(part);
        page::seal(page, PageId(first.0 + i as u64), TreeId::META, txn);
    }
    (run, buf)
}
