//! The store: a directory with a super-block, a lock and stripes, opened as one thing.
//!
//! Opening: take the lock → super-block → stripes (lengths checked, leftovers of an unfinished build cut off) → meta run (extent map, catalog) →
//! an empty pool. Nothing else is read, so opening takes a few device requests whatever the size of the database.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use parking_lot::{Mutex, RwLock};
use twox_hash::XxHash3_64;

use crate::catalog::{self, Catalog};
use crate::config::StoreConfig;
use crate::core::Core;
use crate::error::{Result, StoreError};
use crate::lock::Lock;
use crate::memory::{MemoryBudget, Reservation};
use crate::meters::{Activity, Meters, TreeStats};
use crate::page::{self, BODY_BYTES, HEADER_BYTES, PAGE_BYTES, PageBuf, PageId, TreeId};
use crate::pool::{Pool, Rule};
use crate::snapshot::{Snapshot, Snapshots};
use crate::space::{Extent, Geometry, Space};
use crate::stripes::{self, Stripes};
use crate::superblock::{MetaRun, SuperBlock, SuperBlockFile};

/// Name of the only stripe of a database that was made without any.
pub const DEFAULT_STRIPE: &str = "stripe-0";

/// An open database, below the level of trees.
#[derive(Debug)]
pub struct Store {
    pub(crate) dir: PathBuf,
    pub(crate) config: StoreConfig,
    pub(crate) geometry: Geometry,
    pub(crate) core: Arc<Core>,
    pub(crate) stripes: Stripes,
    pub(crate) committed: RwLock<Committed>,
    pub(crate) super_file: SuperBlockFile,
    pub(crate) building: AtomicBool,
    pub(crate) snapshots: Arc<Snapshots>,
    pub(crate) history: Mutex<HashMap<u64, (u64, u32)>>,
    memory: MemoryBudget,
    _pool_memory: Reservation,
    _lock: Lock,
}

/// The committed state beside the extent map.
#[derive(Debug)]
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
        Stripes::create(&paths)?;
        let block = SuperBlock {
            extent_pages: config.extent_pages,
            sequence: 0,
            txn: 0,
            extents: 0,
            meta: None,
            stripes: named,
        };
        SuperBlockFile::create(dir, &block)?;
        for path in &paths {
            stripes::sync_parent(path)?;
        }
        stripes::sync_parent(&dir.join(crate::superblock::FILE_NAME))?;
        Self::open_locked(dir, config, lock)
    }

    /// Opens the database in `dir`.
    pub fn open(dir: &Path, config: StoreConfig) -> Result<Arc<Store>> {
        if !dir.join(crate::superblock::FILE_NAME).exists() {
            let why = if dir.is_dir() { "it has no super-block" } else { "no such directory" };
            return Err(StoreError::NotADatabase { path: dir.to_path_buf(), why: why.into() });
        }
        let lock = Lock::take(dir)?;
        Self::open_locked(dir, config, lock)
    }

    fn open_locked(dir: &Path, config: StoreConfig, lock: Lock) -> Result<Arc<Store>> {
        let (super_file, block, notice) = SuperBlockFile::open(dir)?;
        if let Some(line) = notice {
            eprintln!("{line}");
        }
        let geometry = Geometry { extent_pages: block.extent_pages, stripes: block.stripes.len() as u32 };
        let files: Vec<PathBuf> = block.stripes.iter().map(|p| stripes::resolve(dir, p)).collect();
        let stripes = Stripes::open(&files, geometry, block.extents)?;
        let (catalog, extents) = read_meta(dir, &block, geometry, &stripes)?;
        let memory = MemoryBudget::new(config.memory_bytes);
        let frames = config.frames()?;
        let pool_memory = memory.reserve("the pool", frames as u64 * PAGE_BYTES as u64)?;
        let core = Core {
            pool: Pool::new(frames, most_pages(geometry, block.extents), &config.clock)?,
            space: RwLock::new(Space::new(geometry, extents)),
            meters: Meters::default(),
            files,
            failures: Default::default(),
        };
        count_pages(&core);
        Ok(Arc::new(Store {
            dir: dir.to_path_buf(),
            config,
            geometry,
            core: Arc::new(core),
            stripes,
            committed: RwLock::new(Committed { block, catalog }),
            super_file,
            building: AtomicBool::new(false),
            snapshots: Arc::default(),
            history: Mutex::default(),
            memory,
            _pool_memory: pool_memory,
            _lock: lock,
        }))
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
        &self.core.files
    }

    /// Frames of the pool.
    pub fn frames(&self) -> u32 {
        self.core.pool.frame_count()
    }

    /// Bytes of the extents in use, all stripes together.
    pub fn bytes(&self) -> u64 {
        let used = self.core.space.read().iter().filter(|(_, e)| e.tree.is_some()).count();
        used as u64 * self.geometry.extent_bytes()
    }

    /// Counters of every tree, in the order of their ids; the store's own pages come first.
    pub fn tree_stats(&self) -> Vec<TreeStats> {
        let committed = self.committed.read();
        let own = [(TreeId::META, "meta")];
        let trees = committed.catalog.trees.iter().map(|(id, name)| (*id, name.as_str()));
        own.into_iter().chain(trees).map(|(id, name)| self.core.meters.stats(id, name)).collect()
    }

    /// What all readers together did; readers add theirs when they are dropped or flushed.
    pub fn activity(&self) -> Activity {
        self.core.meters.total()
    }

    /// Sets all counters to zero; what is resident stays counted.
    pub fn reset_meters(&self) {
        self.core.meters.reset();
    }

    /// Publishes a hand-made version of a page: snapshots as of `txn` and later see it. This is the door updates will use.
    #[doc(hidden)]
    pub fn publish_version(&self, page: PageId, txn: u64, state: PageBuf) {
        self.core.pool.publish_version(page, txn, Arc::new(state));
    }

    /// Drops the versions of a page up to and including `txn`.
    #[doc(hidden)]
    pub fn forget_versions(&self, page: PageId, txn: u64) {
        self.core.pool.forget_versions(page, txn);
    }

    /// Starts the reads of absent pages and answers how many. Never waits: what finds no frame is not read.
    pub(crate) fn start_reads(&self, tree: TreeId, pages: &[PageId], rule: Rule) -> u64 {
        let taken = self.core.pool.take_frames(pages.len());
        let mut started = 0;
        let mut frames = self.core.account(taken).into_iter();
        for page in pages {
            let Some(frame) = frames.next() else { break };
            if !self.core.pool.start(*page, frame, Some(rule)) {
                self.core.pool.give_back(frame);
                continue;
            }
            started += 1;
            let read = self.read_in_place(*page);
            // A failure stays with the page: whoever needs it will be told.
            let _ = self.core.arrive(*page, read, crate::pool::Pin::No);
        }
        frames.for_each(|f| self.core.pool.give_back(f));
        self.core.meters.with(tree, |m| {
            m.reads.fetch_add(started, Relaxed);
            m.issued(rule, started);
        });
        started
    }

    /// Reads a page that the calling thread has put in flight.
    pub(crate) fn read_in_place(&self, page: PageId) -> std::result::Result<(), crate::core::Cause> {
        #[allow(unsafe_code)]
        // SAFETY: the caller put the page in flight and reads it nowhere else.
        let frame = unsafe { self.core.pool.in_place(page) };
        self.stripes.read(self.geometry.place(page), frame).map_err(|e| Arc::new(e) as crate::core::Cause)
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

/// Reads and checks the meta run.
fn read_meta(
    dir: &Path,
    block: &SuperBlock,
    geometry: Geometry,
    stripes: &Stripes,
) -> Result<(Catalog, Vec<Extent>)> {
    let Some(run) = block.meta else {
        return Ok((Catalog { next_tree: 1, ..Default::default() }, Vec::new()));
    };
    let corrupt = |why: String| StoreError::Corrupt { path: dir.join(crate::superblock::FILE_NAME), why };
    let pages = run.bytes.div_ceil(BODY_BYTES as u64);
    if run.first.0.saturating_add(pages) > block.extents.saturating_mul(geometry.extent_pages as u64) {
        return Err(corrupt("the meta run lies beyond the end of the database".into()));
    }
    let mut bytes = Vec::with_capacity(pages as usize * BODY_BYTES);
    let mut page = PageBuf::new();
    for id in (run.first.0..run.first.0 + pages).map(PageId) {
        let place = geometry.place(id);
        let file = || stripes::resolve(dir, &block.stripes[place.stripe]);
        stripes.read(place, &mut page).map_err(|e| StoreError::Read {
            file: file(),
            offset: place.offset,
            page: id,
            cause: Arc::new(e),
        })?;
        page::verify(&page, id, TreeId::META).map_err(|why| StoreError::Damaged {
            file: file(),
            offset: place.offset,
            page: id,
            why,
        })?;
        bytes.extend_from_slice(&page[HEADER_BYTES..]);
    }
    bytes.truncate(run.bytes as usize);
    if XxHash3_64::oneshot(&bytes) != run.checksum {
        return Err(corrupt("the meta run is not the one this state wrote".into()));
    }
    let (catalog, extents) =
        catalog::decode(&bytes, block.extent_pages).map_err(|why| corrupt(why.into()))?;
    if extents.len() as u64 != block.extents {
        return Err(corrupt("super-block and extent map disagree".into()));
    }
    Ok((catalog, extents))
}

/// Packs the meta run into sealed pages.
pub(crate) fn meta_pages(bytes: &[u8], first: PageId, txn: u64) -> (MetaRun, Vec<PageBuf>) {
    let run = MetaRun { first, bytes: bytes.len() as u64, checksum: XxHash3_64::oneshot(bytes) };
    let pages = bytes.chunks(BODY_BYTES).enumerate().map(|(i, part)| {
        let mut page = PageBuf::new();
        page.set_header(page::PageKind::Meta, 0, 0);
        page.body_mut()[..part.len()].copy_from_slice(part);
        page::seal(&mut page, PageId(first.0 + i as u64), TreeId::META, txn);
        page
    });
    (run, pages.collect())
}

impl Store {
    /// Which extent rule a miss of `page` triggers, if any (rules 1 and 2).
    pub(crate) fn extent_rule(&self, page: PageId) -> Option<Rule> {
        let r = &self.config.read_ahead;
        if r.start_up && !self.core.pool.was_full() {
            return Some(Rule::StartUp);
        }
        if !r.extent {
            return None;
        }
        let now = self.config.clock.now_ns() / 1_000_000;
        let mut history = self.history.lock();
        let seen = history.entry(self.geometry.extent_of(page)).or_insert((now, 0));
        if now - seen.0 > r.extent_window_ms {
            *seen = (now, 0);
        }
        seen.1 += 1;
        (seen.1 == r.extent_misses).then_some(Rule::Extent)
    }

    /// The written pages of an extent that are absent.
    pub(crate) fn absent_in_extent(&self, extent: u64) -> Vec<PageId> {
        let space = self.core.space.read();
        let Some(e) = space.extent(extent) else { return Vec::new() };
        let pages = (0..self.geometry.extent_pages)
            .filter(|i| e.is_written(*i))
            .map(|i| self.geometry.page(extent, i));
        pages.filter(|p| self.core.pool.peek_absent(*p)).collect()
    }
}
