//! All settings of a store, with their defaults in one place: those that a person sets, and the
//! seams that tests take hold of.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use snowmelt_io::{Access, Clock, Device, IoError, MOST_DESCRIPTORS, Profile, QueueConfig};

use crate::error::{Result, StoreError};
use crate::format::placement::Placement;
use crate::memory::budget::MemoryBudget;
use crate::memory::machine::machine_memory;
use crate::page::PAGE_BYTES;
use crate::pool::LEAST_FRAMES;
use crate::pool::shared::SharedFrames;
use crate::settings::first_uses::FirstUses;
use crate::settings::opener::FileOpener;
use crate::settings::read_ahead::ReadAhead;

/// Settings of a store; passed in full, usually as `StoreConfig { …, ..StoreConfig::default() }`.
#[derive(Clone)]
pub struct StoreConfig {
    /// Permitted use of the database.
    pub mode: Mode,
    /// Pages in an extent, for new databases; an existing one keeps its own. 1 to 65536,
    /// default 256 (2 MiB).
    pub extent_pages: u32,
    /// The whole memory budget in bytes: pool, queries and load. Default: half of the memory of
    /// the machine or cgroup.
    pub memory_bytes: u64,
    /// The budget of the process, for all databases it has open; `None`: a budget of
    /// `memory_bytes` for this database alone.
    pub budget: Option<MemoryBudget>,
    /// The longest string of a term, in bytes: of queries, updates and loads. Default 16 MiB.
    pub longest_string_bytes: usize,
    /// Frames that it shares with other stores of the process; `None`: frames of its own.
    pub shared_frames: Option<Arc<SharedFrames>>,
    /// Bytes of `memory_bytes` for the pool, if it has frames of its own; `None`: three quarters.
    pub pool_bytes: Option<u64>,
    /// Read and write past the page cache (O_DIRECT) where the file system can.
    pub direct: bool,
    /// Descriptors of each stripe, dealt to the threads that read and write in place or as the
    /// engine `threads`. 1 to 64, default 1.
    pub descriptors: u32,
    /// Engine, order and merging of the devices' queues.
    pub queue: QueueConfig,
    /// Trees of a new database that have a stripe of their own. An existing one has its own
    /// placement, and is not opened with another.
    pub placement: Placement,
    /// The treatment of block devices that are stripes of a new database.
    pub block_devices: BlockDevices,
    /// Profiles of devices that are kept beside the stripes of a new database, by their numbers.
    pub new_profiles: Vec<(usize, Profile)>,
    /// Knowledge of the disks that may be used before the first read.
    pub hints: DiskHints,
    /// Read-ahead rules.
    pub read_ahead: ReadAhead,
    /// Journal and checkpoints.
    pub journal: JournalConfig,
    /// Seconds a reader may hold back the checkpointer before its snapshot is given up.
    pub reader_age_s: u64,
    /// Bytes of disk kept free for work that makes a full disk less full: see `reserve`.
    /// Default (`None`): four extents. 0: none is kept.
    pub reserve_bytes: Option<u64>,
    /// Milliseconds closing may take for writing pages back; what is left stays in the journal.
    pub close_ms: u64,
    /// Milliseconds a reader waits for a frame while all are pinned, before it gives up.
    pub frame_wait_ms: u64,
    /// Seams of the engine, which tests and the laboratory take hold of.
    pub seams: Seams,
}

/// Places where tests and the laboratory put something else in. The defaults are what a database
/// in production has.
#[derive(Clone)]
pub struct Seams {
    /// Time.
    pub clock: Clock,
    /// Opens every file in place of the file system: databases in memory, simulated power cuts.
    pub files: Option<FileOpener>,
    /// Wraps the device of each stripe: simulated and faulty devices.
    pub devices: Option<DeviceWrap>,
    /// Wraps the device of each journal file.
    pub journal_devices: Option<DeviceWrap>,
    /// Executor of the background work, such as saving and reading the warm list.
    pub background: Background,
    /// The number of the next opening in the lineage of states; drawn at random unless set.
    pub openings: Option<Arc<AtomicU64>>,
    /// Records which pages are used, for as long as the store is open.
    pub first_uses: Option<Arc<FirstUses>>,
    /// A bug to be put in, for tests that show that it is found.
    #[cfg(feature = "plant")]
    pub plant: Option<Plant>,
}

impl Default for Seams {
    fn default() -> Self {
        Seams {
            clock: Clock::real(),
            files: None,
            devices: None,
            journal_devices: None,
            background: Background::Thread,
            openings: None,
            first_uses: None,
            #[cfg(feature = "plant")]
            plant: None,
        }
    }
}

/// Permitted use of an open database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Everything, by one process.
    ReadWrite,
    /// Reading, by any number of processes. No file is made, written or lengthened, so it may lie
    /// on media that cannot be written; a journal that a crash left is recovered in memory.
    ReadOnly,
}

/// The treatment of block devices that are stripes of a new database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockDevices {
    /// Refuses it, and says what is on it.
    Refuse,
    /// Takes it unless it is in use. Whatever is on it is lost.
    Destroy,
}

/// Knowledge of the disks that may be used before the first read. The kind of a disk and the
/// profile of a probe may in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskHints {
    /// Caps of the own cgroup, the name that a cloud gave the disk, and what was learned before.
    Used,
    /// None of these: to see how soon they are learned.
    Hidden,
}

/// Settings of the journal and the checkpointer.
#[derive(Clone, Debug)]
pub struct JournalConfig {
    /// Bytes of a journal file; the first of a database are smaller. Default 64 MiB.
    pub file_bytes: u64,
    /// Bytes of changes in one record, before compression. Default 1 MiB.
    pub part_bytes: usize,
    /// Bytes of diffs of a page after which it is written whole again. Default 32 KiB.
    pub diff_bytes: u32,
    /// Private pages of a transaction that are kept in memory; more are written to the journal
    /// early. Default: a sixth of the frames.
    pub private_pages: Option<usize>,
    /// Pages of memory for versions and what is known of them; other versions are read from the
    /// journal. Default: a sixth of the frames, so that the pool, these and the private pages
    /// are within the memory budget.
    pub version_pages: Option<usize>,
    /// Seconds a recovery may take, as far as the device's costs are known. Writing back keeps
    /// up with that, and writers near it are slowed. Default 5.
    pub recovery_s: f64,
    /// Bytes of memory that reading the journal back may take. Default: the whole memory
    /// budget, whose pool is still empty then.
    pub recovery_bytes: Option<u64>,
    /// Bytes of journal after which a checkpoint begins; earlier when that is more than a
    /// quarter of what `recovery_s` allows. Default 256 MiB.
    pub checkpoint_bytes: u64,
    /// Seconds after which a checkpoint begins however little there is, and in which it ends
    /// when little is written meanwhile. Default 60: the first change of a page after a
    /// checkpoint is journaled as an image, so frequent checkpoints make long journals.
    pub checkpoint_s: u64,
    /// Bytes of journal beyond which writers wait for the checkpointer. Default 1 GiB.
    pub most_bytes: u64,
    /// Whether the checkpointer works on its own.
    pub checkpoints: Checkpoints,
    /// Treatment of damage in the journal at open.
    pub salvage: Salvage,
}

impl Default for JournalConfig {
    fn default() -> Self {
        JournalConfig {
            file_bytes: 64 << 20,
            part_bytes: 1 << 20,
            diff_bytes: 32 << 10,
            private_pages: None,
            version_pages: None,
            recovery_s: 5.0,
            recovery_bytes: None,
            checkpoint_bytes: 256 << 20,
            checkpoint_s: 60,
            most_bytes: 1 << 30,
            checkpoints: Checkpoints::Continuous,
            salvage: Salvage::Refuse,
        }
    }
}

/// Whether the checkpointer works on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checkpoints {
    /// Yes.
    Continuous,
    /// Only when [`Store::checkpoint`](crate::Store::checkpoint) is called: to measure
    /// restarts. The journal grows without bound, and closing leaves it.
    Held,
}

/// Treatment of damage in a part of the journal that was durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Salvage {
    /// Refuse to open, with an error that names the place.
    Refuse,
    /// Open with the commits before the damage; those after it are lost.
    CutJournal,
}

/// Bugs that tests put in to see that they are found.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// Commits do not sync the journal.
    SkipJournalSync,
    /// The stripes are not synced before the super-block says that their pages are there.
    SkipStripeSync,
    /// Journal files are used again before the super-block says that they are not needed.
    ReuseJournalEarly,
    /// The slot of a journal file counts before the file is there.
    CountSlotEarly,
    /// Versions are written back although an older snapshot is read.
    WriteUnderReader,
    /// Journal files that hold nothing of a commit are given back only by a checkpoint, and
    /// writers wait for that also when none will begin.
    KeepDeadJournal,
}

/// Caller of [`Store::step`](crate::Store::step).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Background {
    /// A thread of the store's own. In virtual time there is none: the caller does it then.
    Thread,
    /// A thread of the store's own, in virtual time, too: it takes part in that time, so the thread
    /// that closes the store must as well.
    Participant,
    /// The caller.
    Caller,
}

type WrapFn = dyn Fn(usize, Arc<dyn Device>) -> std::result::Result<Arc<dyn Device>, IoError> + Send + Sync;

/// Puts another device around, or in the place of, the device of a stripe.
#[derive(Clone)]
pub struct DeviceWrap {
    wrap: Arc<WrapFn>,
    least_stripes: usize,
}

impl DeviceWrap {
    /// Wraps with `f`, which gets the number of the stripe and the device of its file.
    pub fn new(
        f: impl Fn(usize, Arc<dyn Device>) -> std::result::Result<Arc<dyn Device>, IoError>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        DeviceWrap { wrap: Arc::new(f), least_stripes: 0 }
    }

    /// Limits it to databases of at least `least` stripes; others are not opened.
    pub fn for_stripes(self, least: usize) -> Self {
        DeviceWrap { least_stripes: least, ..self }
    }

    /// Refuses a database that has fewer stripes than it is for.
    pub(crate) fn check(&self, stripes: usize) -> Result<()> {
        if stripes >= self.least_stripes {
            return Ok(());
        }
        Err(StoreError::Config(format!(
            "a device is given for stripe {}, and the database has {stripes}: 0 to {}",
            self.least_stripes - 1,
            stripes - 1
        )))
    }

    pub(crate) fn wrap(
        &self,
        stripe: usize,
        file: Arc<dyn Device>,
    ) -> std::result::Result<Arc<dyn Device>, IoError> {
        (self.wrap)(stripe, file)
    }
}

impl fmt::Debug for DeviceWrap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DeviceWrap")
    }
}

impl Default for StoreConfig {
    fn default() -> Self {
        StoreConfig {
            mode: Mode::ReadWrite,
            extent_pages: 256,
            memory_bytes: machine_memory() / 2,
            budget: None,
            longest_string_bytes: 16 << 20,
            shared_frames: None,
            pool_bytes: None,
            direct: true,
            descriptors: 1,
            queue: QueueConfig::default(),
            placement: Placement::default(),
            block_devices: BlockDevices::Refuse,
            new_profiles: Vec::new(),
            hints: DiskHints::Used,
            read_ahead: ReadAhead::default(),
            journal: JournalConfig::default(),
            reader_age_s: 600,
            reserve_bytes: None,
            close_ms: 1_000,
            frame_wait_ms: 10_000,
            seams: Seams::default(),
        }
    }
}

impl StoreConfig {
    /// True when a test has put this bug in.
    #[cfg(feature = "plant")]
    pub(crate) fn is_planted(&self, plant: Plant) -> bool {
        self.seams.plant == Some(plant)
    }

    /// Bugs can be put in only by this crate's tests: see the feature `plant`.
    #[cfg(not(feature = "plant"))]
    pub(crate) const fn is_planted(&self, _: Plant) -> bool {
        false
    }

    /// True when nothing may be written.
    pub(crate) fn is_read_only(&self) -> bool {
        self.mode == Mode::ReadOnly
    }

    /// How existing files are opened.
    pub(crate) fn access(&self) -> Access {
        match self.mode {
            Mode::ReadWrite => Access::ReadWrite,
            Mode::ReadOnly => Access::Read,
        }
    }

    /// Refuses numbers out of their bounds.
    pub(crate) fn check(&self) -> Result<()> {
        match (1..=MOST_DESCRIPTORS).contains(&self.descriptors) {
            true => Ok(()),
            false => Err(StoreError::Config(format!(
                "{} descriptors of a stripe do not work: 1 to {MOST_DESCRIPTORS}",
                self.descriptors
            ))),
        }
    }

    /// True when a thread of the store's own does the background work.
    pub(crate) fn runs_background(&self) -> bool {
        self.runs_threads() || self.seams.background == Background::Participant
    }

    /// True when there may be threads besides the callers'.
    pub(crate) fn runs_threads(&self) -> bool {
        self.seams.background == Background::Thread && !self.seams.clock.is_virtual()
    }

    /// Bytes of memory that a recovery may take.
    pub(crate) fn recovery_bytes(&self) -> u64 {
        /// With less, every page would take a reading of the journal.
        const LEAST: u64 = 64 << 10;
        let most = self.memory_bytes.min(self.memory().free());
        self.journal.recovery_bytes.unwrap_or(most).max(LEAST)
    }

    /// The budget that the database reserves from: the process's, or one of its own.
    pub fn memory(&self) -> MemoryBudget {
        self.budget.clone().unwrap_or_else(|| MemoryBudget::new(self.memory_bytes))
    }

    /// Page versions kept in memory.
    pub(crate) fn version_pages(&self) -> Result<usize> {
        let frames = self.frames()? as usize;
        Ok(self.journal.version_pages.unwrap_or(frames / 6).max(8))
    }

    /// Private pages of a transaction kept in memory.
    pub(crate) fn private_pages(&self) -> Result<usize> {
        let frames = self.frames()? as usize;
        Ok(self.journal.private_pages.unwrap_or(frames / 6).max(8))
    }

    /// Frames of the pool.
    pub fn frames(&self) -> Result<u32> {
        if let Some(shared) = &self.shared_frames {
            return Ok(shared.count());
        }
        let bytes = self.pool_bytes.unwrap_or(self.memory_bytes / 4 * 3);
        let frames = bytes / PAGE_BYTES as u64;
        if bytes > self.memory_bytes || frames < LEAST_FRAMES as u64 {
            return Err(StoreError::Config(format!(
                "a pool of {bytes} bytes does not work: it needs at least {} and at most the {} of the memory budget",
                LEAST_FRAMES as u64 * PAGE_BYTES as u64,
                self.memory_bytes
            )));
        }
        u32::try_from(frames).map_err(|_| StoreError::Config("the pool has more than 2^32 pages".into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pool_sizes() {
        let c = StoreConfig { memory_bytes: 1 << 20, ..Default::default() };
        assert_eq!(c.frames().unwrap(), 96);
        let c = StoreConfig { memory_bytes: 1 << 20, pool_bytes: Some(64 * 8192), ..Default::default() };
        assert_eq!(c.frames().unwrap(), 64);
        let c = StoreConfig { memory_bytes: 100_000, ..Default::default() };
        assert!(matches!(c.frames(), Err(StoreError::Config(_))));
        let c = StoreConfig { memory_bytes: 1 << 20, pool_bytes: Some(1 << 21), ..Default::default() };
        assert!(matches!(c.frames(), Err(StoreError::Config(_))));
    }
}
