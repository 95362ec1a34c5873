//! Recovery: the state of the super-block and the journal's changes to it, as catalog, extent map
//! and page versions.
//!
//! 1. the meta run gives the catalog as of the checkpoint C and the extent map as of C or a
//!    little later;
//! 2. the journal is read and checked ([`scan`]); of each page the way to its newest version is
//!    kept ([`replay`]). The versions of the latest commits are kept in memory, as many as there
//!    is room for: each as an image and the changes since, which are applied when the page is
//!    first asked for. The pages are shared among the processors;
//! 3. commits after C change catalog and map; parts whose commit is missing are forgotten;
//! 4. pages with a version after C enter the version table, and the database is open: writing
//!    them back is the checkpointer's business. Nothing is written, but for journals of which
//!    not even the places of all changes fit into the memory budget: their pages are written
//!    back a slice at a time, with one reading of the journal for each ([`redo`]).

mod part;
mod read;
mod redo;
mod replay;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::thread::available_parallelism;

use crate::error::{Result, StoreError};
use crate::files::stripes::Devices;
use crate::format::catalog::Catalog;
use crate::history::step::Step;
use crate::history::waiting::WaitingPage;
use crate::journal::scan::{Found, Needed};
use crate::page::geometry::Geometry;
use crate::page::{PAGE_BYTES, PageId};
use crate::settings::config::{JournalConfig, StoreConfig};
use crate::settings::opener::Directory;
use crate::space::extent::Extent;
use crate::superblock::{SuperBlock, TailPlace};
use read::read_journal;
use replay::{PageWay, Replay, ReplayLimits, ReplayShare, Slice};

/// Result of a recovery.
pub(crate) struct Recovered {
    pub catalog: Catalog,
    pub extents: Vec<Extent>,
    /// The newest commit.
    pub txn: u64,
    /// The highest number of a transaction, committed or not.
    pub last_number: u64,
    pub pages: Vec<RecoveredPage>,
    /// Extents that must be on the stripes.
    pub least_extents: u64,
    pub found: Found,
    pub trace: RecoveryTrace,
}

/// A page with a version that is not on its stripe.
pub(crate) struct RecoveredPage {
    pub page: PageId,
    pub txn: u64,
    /// Without the changes that wait.
    pub history: Vec<Step>,
    /// In memory.
    pub waiting: Option<WaitingPage>,
}

/// Reads of the journal at opening: how many, in what sizes, how concurrently, and how long they
/// took.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecoveryTrace {
    /// Journal files that were needed.
    pub files: u64,
    /// Bytes read from journal files.
    pub read_bytes: u64,
    /// Requests for them.
    pub requests: u64,
    /// Threads that made them.
    pub concurrency: u64,
    /// Sound records, and their bytes.
    pub records: u64,
    /// Bytes of sound records.
    pub record_bytes: u64,
    /// Commits after the checkpoint.
    pub commits: u64,
    /// Pages with a version that is not on its stripe.
    pub pages: u64,
    /// Those of them that are in memory.
    pub pages_in_memory: u64,
    /// Pages that were written back before the database opened: the memory budget could not
    /// hold what the journal says.
    pub pages_written_back: u64,
    /// Number of the newest commits that have all their pages in memory.
    pub newest_commits_in_memory: u64,
    /// Seconds from the begin of the journal to its end.
    pub seconds: f64,
}

/// The state of the database at a checkpoint, which the super-block names.
#[derive(Clone)]
pub(crate) struct CheckpointState {
    pub txn: u64,
    pub geometry: Geometry,
    pub catalog: Catalog,
    pub extents: Vec<Extent>,
}

/// Reads the journal over the state of a super-block.
pub(crate) fn recover(
    dir: &Arc<Directory>,
    config: &StoreConfig,
    block: &SuperBlock,
    state: CheckpointState,
    devices: &Devices,
) -> Result<Recovered> {
    let begun = config.seams.clock.now_ns();
    let memory = config.memory();
    let bytes = config.recovery_bytes();
    let _held = memory.reserve("the recovery", bytes.min(memory.free()))?;
    // A fixed number from here on: the reservation has just made less memory free.
    let config = &StoreConfig {
        journal: JournalConfig { recovery_bytes: Some(bytes), ..config.journal.clone() },
        ..config.clone()
    };
    let (shares, geometry) = (shares(config), state.geometry);
    let limits = limits(config, shares)?;
    let share = |number: usize| ReplayShare { number: number as u64, count: shares as u64 };
    let replay = |number: usize| Replay::new(dir.path(), share(number), limits, state.clone());
    let mut replays: Vec<Replay> = (0..shares).map(replay).collect();
    let needed = needed(block);
    let mut found = read_journal(dir, config, needed, &mut replays.iter_mut().collect::<Vec<_>>())?;
    if !config.is_read_only() {
        found.settle()?;
    }
    let first = &mut replays[0];
    let (catalog, mut extents) = (std::mem::take(&mut first.catalog), std::mem::take(&mut first.extents));
    let (txn, last_number, commits) = (first.txn, first.last_number, first.commits);
    let newest = std::mem::take(&mut first.newest);
    let least_extents = least_extents(block, &extents);
    let mut pages = Vec::new();
    for replay in replays.iter_mut().filter(|r| r.slices.is_empty()) {
        pages.extend(versions(replay, &extents, geometry));
    }
    let mut passes = Passes { dir, config, devices, needed, state, limits, readings: 1, written: 0 };
    if replays.iter().any(|r| !r.slices.is_empty()) {
        if config.is_read_only() {
            let (path, memory) = (dir.path().to_path_buf(), config.recovery_bytes());
            return Err(StoreError::NeedsWriting { path, memory });
        }
        devices.check_lengths(geometry, least_extents)?;
        devices.set_lengths(geometry, block.extents.max(extents.len() as u64))?;
        passes.run(replays, &mut extents)?;
    }
    let mut trace = trace(&found, &pages, &newest, &passes);
    (trace.commits, trace.seconds) = (commits, (config.seams.clock.now_ns() - begun) as f64 / 1e9);
    assert!(last_number >= txn, "the newest commit has no higher number than the newest record");
    debug_assert!(pages.iter().all(|p| p.txn <= txn), "pages are as of commits that were found");
    debug_assert!(pages.iter().all(|p| p.txn > block.txn), "older states are on the stripes");
    Ok(Recovered { catalog, extents, txn, last_number, pages, least_extents, found, trace })
}

/// The super-block's view of the journal.
fn needed(block: &SuperBlock) -> Needed {
    Needed {
        identity: block.identity,
        first: block.journal,
        before: block.before,
        tail: TailPlace { sequence: block.synced, file: block.tail_file, offset: block.tail_offset },
        slots: block.slots,
    }
}

/// Extents that must be on the stripes. Only what is in use must be there: extents that were built
/// and dropped since may have been cut off by an earlier recovery.
fn least_extents(block: &SuperBlock, extents: &[Extent]) -> u64 {
    let on_stripe = |e: &Extent| e.tree.is_some() && e.written.iter().any(|w| *w != 0);
    let last = extents.iter().rposition(on_stripe).map_or(0, |i| i as u64 + 1);
    block.extents.max(last)
}

/// Trace of the reads, without commits and time.
fn trace(
    found: &Found,
    pages: &[RecoveredPage],
    newest: &VecDeque<u64>,
    passes: &Passes<'_>,
) -> RecoveryTrace {
    let absent = pages.iter().filter(|p| p.waiting.is_none());
    let last_absent = absent.map(|p| p.txn).max().unwrap_or(0);
    RecoveryTrace {
        files: found.used.len() as u64,
        read_bytes: found.read_bytes * passes.readings,
        requests: found.requests * passes.readings,
        concurrency: found.concurrency as u64,
        records: found.records,
        record_bytes: found.bytes,
        newest_commits_in_memory: newest.iter().filter(|txn| **txn > last_absent).count() as u64,
        pages: pages.len() as u64,
        pages_in_memory: pages.iter().filter(|p| p.waiting.is_some()).count() as u64,
        pages_written_back: passes.written,
        ..RecoveryTrace::default()
    }
}

/// Shares of the pages: each goes over every record, so that more of them gain little.
fn shares(config: &StoreConfig) -> usize {
    const MOST: usize = 4;
    if config.runs_threads() { available_parallelism().map_or(1, usize::from).min(MOST) } else { 1 }
}

/// Limits of each share: together an eighth of the memory budget for images, as in the version
/// table, a sixteenth each for what waits and for places. The parts of a transaction are the
/// same memory for all shares.
fn limits(config: &StoreConfig, shares: usize) -> Result<ReplayLimits> {
    let memory = config.recovery_bytes() as usize;
    let share_of = |part: usize| (memory / part / shares).max(1);
    Ok(ReplayLimits {
        images: config.version_pages()?.div_ceil(shares),
        images_of_slice: (memory / 2 / PAGE_BYTES).max(1),
        waiting: share_of(16),
        places: share_of(16),
        parts: memory / 16,
    })
}

/// True of a page that the newest state uses. Versions of other pages would only be in the way of
/// the next owners of their extents.
fn is_in_use(extents: &[Extent], geometry: Geometry, page: PageId) -> bool {
    let extent = extents.get(geometry.extent_of(page) as usize);
    extent.is_some_and(|e| e.tree.is_some() && e.is_allocated(geometry.index_of(page)))
}

/// The versions of a share that are to enter the version table.
fn versions(replay: &mut Replay, extents: &[Extent], geometry: Geometry) -> Vec<RecoveredPage> {
    let after = replay.after;
    let wanted = |(page, way): &(PageId, PageWay)| way.txn > after && is_in_use(extents, geometry, *page);
    let ways = replay.take_ways().filter(wanted);
    ways.map(|(page, w)| RecoveredPage { page, txn: w.txn, history: w.history, waiting: w.waiting }).collect()
}

/// Readings of the journal after the first one, each for a slice of the pages.
struct Passes<'a> {
    dir: &'a Arc<Directory>,
    config: &'a StoreConfig,
    devices: &'a Devices,
    needed: Needed,
    state: CheckpointState,
    limits: ReplayLimits,
    readings: u64,
    /// Pages written back.
    written: u64,
}

impl Passes<'_> {
    /// One slice after the other, in the calling thread: heaps of other threads would keep what
    /// they once had.
    fn run(&mut self, replays: Vec<Replay>, extents: &mut [Extent]) -> Result<()> {
        let of_share = |r: Replay| r.slices.into_iter().map(move |slice| (r.share, slice));
        let mut open: Vec<(ReplayShare, Slice)> = replays.into_iter().flat_map(of_share).collect();
        while let Some((share, slice)) = open.pop() {
            let mut replay = Replay::new(self.dir.path(), share, self.limits, self.state.clone());
            replay.slice = Some(slice);
            read_journal(self.dir, self.config, self.needed, &mut [&mut replay])?;
            self.readings += 1;
            open.extend(replay.slices.drain(..).map(|slice| (share, slice)));
            self.written +=
                redo::write_back(self.dir.path(), self.devices, self.state.geometry, extents, &mut replay)?;
            snowmelt_io::notice(&format!(
                "{}: the journal says more than the memory budget holds: {} pages written back in {} readings of it, at least {} to go; more memory opens faster",
                self.dir.path().display(),
                self.written,
                self.readings,
                open.len(),
            ));
        }
        Ok(())
    }
}

fn damaged(dir: &Path, file: u64, offset: u64, why: &str) -> StoreError {
    StoreError::JournalDamaged {
        file: dir.join(format!("journal (file {file})")),
        offset,
        why: why.into(),
        is_cuttable: false,
    }
}
