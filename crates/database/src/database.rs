//! An open database: resources for work on it, and their use so far.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use snowmelt_store::{
    Account, Activity, Clock, ExtentCache, JournalStats, MemoryBudget, MeterScope, NoSuchMeter, Objects,
    PageTimes, Published, RecoveryTrace, Report, Snapshot, Store, StoreError, TempSpace, WaitTally,
};

/// How to open a database: the store's settings.
pub use snowmelt_store::StoreConfig as OpenOptions;

type Result<T> = std::result::Result<T, StoreError>;

/// An open database. One process at a time has it open for writing.
pub struct Database {
    store: Arc<Store>,
}

impl Database {
    /// Opens the database in `path`.
    ///
    /// # Errors
    /// There is none, or a process has it open.
    pub fn open(path: &Path, options: &OpenOptions) -> Result<Self> {
        Ok(Self { store: Store::open(path, options.clone())? })
    }

    /// Opens the newest state that is published in an object store, for reading. Extents that are
    /// read are kept in `cache`, if there is one.
    ///
    /// # Errors
    /// Nothing is published there, or it cannot be read.
    pub fn open_published(
        objects: Arc<dyn Objects>,
        cache: Option<Arc<ExtentCache>>,
        options: &OpenOptions,
    ) -> Result<Self> {
        let published = Published::find(objects, &options.seams.clock)?;
        Ok(Self { store: published.open(cache, options.clone())? })
    }

    /// Makes an empty database in `path` and opens it; its data lies in `stripes`, or in `path`
    /// if there are none.
    ///
    /// # Errors
    /// Something is there already, or the device cannot.
    pub fn create(path: &Path, stripes: &[PathBuf], options: &OpenOptions) -> Result<Self> {
        Ok(Self { store: Store::create(path, stripes, options.clone())? })
    }

    /// Whether a directory holds a database.
    pub fn is_at(dir: &Path) -> bool {
        Store::is_at(dir)
    }

    /// The store, for layers.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// The newest durable state.
    pub fn snapshot(&self) -> Snapshot {
        self.store.snapshot()
    }

    /// The newest transaction that readers see.
    pub fn newest(&self) -> u64 {
        self.snapshot().txn()
    }

    /// The budget that all memory of the database comes from, the pool's included.
    pub fn memory(&self) -> &MemoryBudget {
        self.store.memory()
    }

    /// Bytes of the page pool.
    pub fn pool_bytes(&self) -> u64 {
        self.store.pool_bytes()
    }

    /// Bytes of the longest string that may be stored.
    pub fn longest_string_bytes(&self) -> usize {
        self.store.config().longest_string_bytes
    }

    /// Its folder, as it was opened.
    pub fn dir(&self) -> &Path {
        self.store.dir()
    }

    /// Its folder, also after it was moved: temporary files of work on it go there.
    pub fn work_dir(&self) -> PathBuf {
        self.store.work_dir()
    }

    /// Time of the last change of its files, as the file system says; the present time if it does
    /// not.
    pub fn changed_at(&self) -> SystemTime {
        let files = std::fs::read_dir(self.work_dir()).into_iter().flatten().flatten();
        let times = files.filter_map(|file| file.metadata().and_then(|meta| meta.modified()).ok());
        times.max().unwrap_or_else(SystemTime::now)
    }

    /// Its clock, which may be virtual. All work on the database waits on this clock.
    pub fn clock(&self) -> &Clock {
        &self.store.config().seams.clock
    }

    /// Temporary space for what a query cannot hold in memory.
    ///
    /// # Errors
    /// The file that stands in for extents cannot be made.
    pub fn temp_space(&self) -> Result<TempSpace> {
        self.store.temp_space()
    }

    /// Reads and time of all work on it, as far as readers have flushed their counts.
    pub fn activity(&self) -> Activity {
        self.store.activity()
    }

    /// The account of a name, made when first asked for.
    pub fn account(&self, name: &str) -> Arc<Account> {
        self.store.account(name)
    }

    /// All meters as they are now.
    pub fn report(&self) -> Report {
        self.store.report()
    }

    /// Sets meters to zero.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn reset(&self, scope: &MeterScope) -> std::result::Result<(), NoSuchMeter> {
        self.store.reset(scope)
    }

    /// The tally of waits for memory.
    pub fn memory_waits(&self) -> &WaitTally {
        &self.store.upper_waits().memory
    }

    /// The tally of waits for a turn to parse a document.
    pub fn parsing_waits(&self) -> &WaitTally {
        &self.store.upper_waits().parsing
    }

    /// The tally of waits for endpoints elsewhere.
    pub fn endpoint_waits(&self) -> &WaitTally {
        &self.store.upper_waits().endpoint
    }

    /// Times of reading absent pages, all devices together.
    pub fn page_times(&self) -> PageTimes {
        self.store.page_times()
    }

    /// Commits, journal, versions and checkpoints since it was opened.
    pub fn journal_stats(&self) -> JournalStats {
        self.store.journal_stats()
    }

    /// Reads of the journal when it was opened.
    pub fn recovery(&self) -> &RecoveryTrace {
        self.store.recovery()
    }

    /// The failed write after which nothing more is written, if there was one.
    pub fn poisoned(&self) -> Option<Arc<StoreError>> {
        self.store.poisoned()
    }

    /// Why updates have to wait now, if they do.
    pub fn unready(&self) -> Option<String> {
        self.store.unready()
    }
}
