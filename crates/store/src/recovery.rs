//! Recovery: what the journal says beyond the super-block's state, as catalog, extent map and page versions. Nothing is written.
//!
//! 1. the meta run gives the catalog as of the checkpoint C and the extent map as of C or a little later;
//! 2. the journal is read and checked ([`scan`]); of each page the way to its newest version is kept (an image and the diffs after it). The
//!    versions of the latest commits are kept in memory, as many as there is room for, as their image and what changed since, which is made
//!    when somebody looks, or when the changes take more than an eighth of the memory budget. The pages are shared among the processors;
//! 3. commits after C change catalog and map; parts whose commit is missing are forgotten;
//! 4. pages with a version after C enter the version table, and the database is open: writing them back is the checkpointer's business.

use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread::{ScopedJoinHandle, available_parallelism};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::catalog::{Catalog, Record};
use crate::config::StoreConfig;
use crate::error::{Result, StoreError};
use crate::journal::Loc;
use crate::journal::change::{self, Change, ExtentChange};
use crate::journal::record::{self, Head, Kind};
use crate::journal::scan::{self, Found, Needed};
use crate::page::{PageId, TreeId};
use crate::space::{Extent, Geometry, Used};
use crate::superblock::SuperBlock;
use crate::versions::Step;
use crate::waiting::{How, WaitingPage};

/// What was found.
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

/// What opening read, in what sizes, how concurrently, and how long it took.
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
    /// So many of the newest commits have all their pages in memory.
    pub newest_commits_in_memory: u64,
    /// Seconds from the begin of the journal to its end.
    pub seconds: f64,
}

#[derive(Default)]
struct PageWay {
    txn: u64,
    /// Without the changes that wait.
    history: Vec<Step>,
    /// In memory: its transaction is not noted in it before somebody looks.
    waiting: Option<WaitingPage>,
}

impl PageWay {
    /// Memory of what waits.
    fn waiting_bytes(&self) -> usize {
        self.waiting.as_ref().map_or(0, WaitingPage::bytes)
    }

    /// Leaves memory.
    fn leave(&mut self) {
        if let Some(waiting) = self.waiting.take() {
            self.history.extend(waiting.steps());
        }
    }

    /// Makes the changes that wait.
    fn settle(&mut self) -> std::result::Result<(), (Loc, &'static str)> {
        let Some(waiting) = &mut self.waiting else { return Ok(()) };
        self.history.extend(waiting.steps());
        waiting.settle()
    }
}

/// What the journal says of some of the pages, and of catalog and map.
struct Replay {
    /// Of so many shares, this one has the pages whose numbers have this remainder.
    shares: u64,
    share: u64,
    /// The checkpoint: changes up to it are on the stripes.
    after: u64,
    geometry: Geometry,
    catalog: Catalog,
    extents: Vec<Extent>,
    txn: u64,
    last_number: u64,
    /// Commits after the checkpoint.
    commits: Vec<u64>,
    ways: FxHashMap<PageId, PageWay>,
    in_memory: usize,
    most_in_memory: usize,
    /// Pages that are or were in memory, with the transaction that had last changed them when they were put here: those at the front leave first.
    leaving: VecDeque<(PageId, u64)>,
    /// Bytes of changes that wait, and how many may.
    waiting: usize,
    waiting_most: usize,
    /// Parts of a transaction whose commit has not been seen.
    parts: Vec<(u64, u64, Arc<Payload>)>,
    parts_txn: u64,
    dir: PathBuf,
}

/// Reads the journal over the state of a super-block.
pub(crate) fn recover(
    dir: &Path,
    config: &StoreConfig,
    block: &SuperBlock,
    geometry: Geometry,
    (catalog, extents): (Catalog, Vec<Extent>),
) -> Result<Recovered> {
    let begun = config.clock.now_ns();
    // Each share goes over every record, so that more of them gain little.
    const MOST_SHARES: usize = 4;
    let shares = if config.runs_threads() {
        available_parallelism().map_or(1, usize::from).min(MOST_SHARES)
    } else {
        1
    };
    let most_in_memory = config.version_pages()?;
    let replay = |share: usize| Replay {
        shares: shares as u64,
        share: share as u64,
        after: block.txn,
        geometry,
        catalog: catalog.clone(),
        extents: extents.clone(),
        txn: block.txn,
        last_number: block.txn,
        commits: Vec::new(),
        ways: FxHashMap::default(),
        in_memory: 0,
        most_in_memory: most_in_memory.div_ceil(shares),
        leaving: VecDeque::new(),
        waiting: 0,
        waiting_most: config.memory_bytes as usize / 8 / shares,
        parts: Vec::new(),
        parts_txn: 0,
        dir: dir.to_path_buf(),
    };
    let mut replays: Vec<Replay> = (0..shares).map(replay).collect();
    let needed = Needed {
        identity: block.identity,
        first: block.journal,
        before: block.before,
        synced: block.synced,
        slots: block.slots,
    };
    let found = read_journal(dir, config, needed, &mut replays)?;
    for (file, _) in found.used.values() {
        // What was read back must stay before anything is built on it.
        file.sync()?;
    }
    let ways: Vec<_> = replays.iter_mut().flat_map(|r| std::mem::take(&mut r.ways)).collect();
    let replay = replays.swap_remove(0);
    let (after, extents) = (replay.after, &replay.extents);
    // Versions of pages that the newest state does not use would only be in the way of those who get their extents next.
    let in_use = |page: &PageId| {
        let extent = extents.get(geometry.extent_of(*page) as usize);
        extent.is_some_and(|e| e.tree.is_some() && e.is_allocated(geometry.index_of(*page)))
    };
    let ways = ways.into_iter().filter(|(page, way)| way.txn > after && in_use(page));
    let pages: Vec<RecoveredPage> = ways
        .map(|(page, w)| RecoveredPage { page, txn: w.txn, history: w.history, waiting: w.waiting })
        .collect();
    let last_absent = pages.iter().filter(|p| p.waiting.is_none()).map(|p| p.txn).max().unwrap_or(0);
    let trace = RecoveryTrace {
        files: found.used.len() as u64,
        read_bytes: found.read_bytes,
        requests: found.requests,
        concurrency: found.concurrency as u64,
        records: found.records,
        record_bytes: found.bytes,
        commits: replay.commits.len() as u64,
        newest_commits_in_memory: replay.commits.iter().filter(|txn| **txn > last_absent).count() as u64,
        pages: pages.len() as u64,
        pages_in_memory: pages.iter().filter(|p| p.waiting.is_some()).count() as u64,
        seconds: (config.clock.now_ns() - begun) as f64 / 1e9,
    };
    let (catalog, extents) = (replay.catalog, replay.extents);
    // Only what is in use must be there: extents that were built and dropped since may have been cut off by an earlier recovery.
    let on_stripe = |e: &Extent| e.tree.is_some() && e.written.iter().any(|w| *w != 0);
    let last = extents.iter().rposition(on_stripe).map_or(0, |i| i as u64 + 1);
    let least_extents = block.extents.max(last);
    let (txn, last_number) = (replay.txn, replay.last_number);
    Ok(Recovered { catalog, extents, txn, last_number, pages, least_extents, found, trace })
}

/// The unpacked payload of a record. Fresh memory costs as much as unpacking, so its buffer goes back to be used again.
struct Payload {
    bytes: Vec<u8>,
    give_back: mpsc::Sender<Vec<u8>>,
}

impl Drop for Payload {
    fn drop(&mut self) {
        // Nobody wants it when everything has been read.
        let _ = self.give_back.send(std::mem::take(&mut self.bytes));
    }
}

/// Reads and unpacks the records and has each share take in what they say: in a thread of its own when there are several.
fn read_journal(dir: &Path, config: &StoreConfig, needed: Needed, shares: &mut [Replay]) -> Result<Found> {
    /// Records on their way to a share.
    const MOST: usize = 32;
    let (give_back, spare) = mpsc::channel();
    let unpack = |head: &Head, offset: u64, stored: &[u8]| {
        let mut bytes = spare.try_recv().unwrap_or_default();
        record::unpack_into(head, stored, &mut bytes)
            .ok_or_else(|| damaged(dir, head.file, offset, "the record cannot be unpacked"))?;
        Ok(Arc::new(Payload { bytes, give_back: give_back.clone() }))
    };
    if let [replay] = shares {
        return scan::scan(dir, config, needed, &mut |head, offset, stored| {
            replay.record(head, offset, unpack(head, offset, stored)?)
        });
    }
    std::thread::scope(|scope| {
        let (mut send, mut takers) = (Vec::new(), Vec::new());
        for replay in shares {
            let (to_share, taken) = mpsc::sync_channel::<(Head, u64, Arc<Payload>)>(MOST);
            send.push(to_share);
            takers.push(scope.spawn(move || {
                taken
                    .into_iter()
                    .try_for_each(|(head, offset, payload)| replay.record(&head, offset, payload))
            }));
        }
        let found = scan::scan(dir, config, needed, &mut |head, offset, stored| {
            let payload = unpack(head, offset, stored)?;
            // The error of the share that ended says more.
            let ended = |_| damaged(dir, head.file, offset, "the record could not be replayed");
            send.iter().try_for_each(|s| s.send((*head, offset, payload.clone())).map_err(ended))
        });
        drop(send);
        let join = |t: ScopedJoinHandle<'_, _>| t.join().unwrap_or_else(|e| resume_unwind(e));
        takers.into_iter().map(join).fold(Ok(()), Result::and)?;
        found
    })
}

fn damaged(dir: &Path, file: u64, offset: u64, why: &str) -> StoreError {
    StoreError::JournalDamaged { file: dir.join(format!("journal (file {file})")), offset, why: why.into() }
}

impl Replay {
    fn record(&mut self, head: &Head, offset: u64, payload: Arc<Payload>) -> Result<()> {
        self.last_number = self.last_number.max(head.txn);
        if head.txn != self.parts_txn {
            // Parts of a transaction that never committed.
            self.parts.clear();
            self.parts_txn = head.txn;
        }
        if head.kind == Kind::Mark {
            return Ok(());
        }
        if head.kind == Kind::Part {
            self.parts.push((head.file, offset, payload));
            return Ok(());
        }
        for (file, offset, payload) in std::mem::take(&mut self.parts) {
            self.changes(head.txn, file, offset, &payload.bytes)?;
        }
        self.changes(head.txn, head.file, offset, &payload.bytes)?;
        if self.waiting > self.waiting_most {
            self.settle()?;
        }
        if head.txn > self.after {
            self.txn = head.txn;
            self.commits.push(head.txn);
        }
        Ok(())
    }

    fn changes(&mut self, txn: u64, file: u64, offset: u64, payload: &[u8]) -> Result<()> {
        self.try_changes(txn, file, offset, payload).map_err(|why| damaged(&self.dir, file, offset, why))
    }

    fn try_changes(
        &mut self,
        txn: u64,
        file: u64,
        offset: u64,
        payload: &[u8],
    ) -> std::result::Result<(), &'static str> {
        let mut rest = payload;
        while !rest.is_empty() {
            let at = (payload.len() - rest.len()) as u32;
            let change = change::next(&mut rest).map_err(|b| b.0)?;
            let loc = Loc { file, offset, at };
            match change {
                Change::Image { page, .. } | Change::Diff { page, .. } | Change::Rows { page, .. }
                    if page.0 % self.shares != self.share => {}
                Change::Image { page, bytes } => self.image(txn, page, loc, bytes),
                Change::Diff { page, diff } => self.diff(txn, page, loc, diff, How::Bytes)?,
                Change::Rows { page, diff } => self.diff(txn, page, loc, diff, How::Rows)?,
                _ if txn <= self.after => {}
                other => self.other(other)?,
            }
        }
        Ok(())
    }

    fn image(&mut self, txn: u64, page: PageId, loc: Loc, bytes: &[u8]) {
        let way = self.ways.entry(page).or_default();
        way.txn = txn;
        way.history.clear();
        way.history.push(Step { txn, loc, diff_bytes: None });
        let was_in_memory = way.waiting.is_some();
        self.waiting -= way.waiting_bytes();
        if txn <= self.after {
            self.in_memory -= usize::from(was_in_memory);
            way.waiting = None;
            return;
        }
        way.waiting.get_or_insert_default().set_image(txn, loc, bytes);
        if !was_in_memory {
            self.in_memory += 1;
            self.leaving.push_back((page, txn));
            self.make_room();
        }
    }

    /// Has the pages leave memory that were changed longest ago, until the others have room.
    fn make_room(&mut self) {
        while self.in_memory > self.most_in_memory
            && let Some((page, txn)) = self.leaving.pop_front()
        {
            let Some(way) = self.ways.get_mut(&page).filter(|way| way.waiting.is_some()) else { continue };
            if way.txn > txn {
                // Changed since: to the back again.
                self.leaving.push_back((page, way.txn));
            } else {
                self.waiting -= way.waiting_bytes();
                way.leave();
                self.in_memory -= 1;
            }
        }
    }

    fn diff(
        &mut self,
        txn: u64,
        page: PageId,
        loc: Loc,
        bytes: &[u8],
        how: How,
    ) -> std::result::Result<(), &'static str> {
        let Some(way) = self.ways.get_mut(&page).filter(|w| !w.history.is_empty()) else {
            // The image may lie before the first needed file when the page has been written back since.
            return if txn > self.after { Err("a page is changed whose image is missing") } else { Ok(()) };
        };
        way.txn = txn;
        match &mut way.waiting {
            Some(waiting) => {
                let before = waiting.bytes();
                waiting.add(txn, loc, how, bytes);
                self.waiting += waiting.bytes() - before;
            }
            None => way.history.push(Step { txn, loc, diff_bytes: Some(bytes.len() as u32) }),
        }
        Ok(())
    }

    /// Makes the changes that wait.
    fn settle(&mut self) -> Result<()> {
        for way in self.ways.values_mut() {
            way.settle().map_err(|(loc, why)| damaged(&self.dir, loc.file, loc.offset, why))?;
        }
        self.waiting = 0;
        Ok(())
    }

    fn other(&mut self, change: Change<'_>) -> std::result::Result<(), &'static str> {
        match change {
            Change::Image { .. } | Change::Diff { .. } | Change::Rows { .. } => {
                unreachable!("handled by the caller")
            }
            Change::Record { name, kind, bytes } => {
                self.catalog.records.insert(name.to_string(), Record { kind, bytes: bytes.into() });
            }
            Change::Records { diff } => self.catalog.apply(diff).map_err(|b| b.0)?,
            Change::DropRecord { name } => drop(self.catalog.records.remove(name)),
            Change::NewTree { tree, name } => {
                self.catalog.trees.insert(tree, name.to_string());
                self.catalog.next_tree = self.catalog.next_tree.max(tree.0 + 1);
            }
            Change::DropTree { tree } => self.drop_tree(tree),
            Change::Extent(e) => self.extent(&e)?,
            Change::Built { first, extents, tree, pages } => {
                let end = first.checked_add(extents).ok_or("an extent number is too large")?;
                if pages > self.geometry.extent_pages {
                    return Err("an extent has too many pages");
                }
                self.lengthen(end)?;
                self.forget_pages(|extent| (first..end).contains(&extent));
                for e in first..end {
                    self.extents[e as usize] = Extent::filled(self.geometry.extent_pages, tree, pages);
                }
            }
        }
        Ok(())
    }

    fn lengthen(&mut self, extents: u64) -> std::result::Result<(), &'static str> {
        /// More than any database has: 2^40 pages.
        const MOST: u64 = 1 << 32;
        if extents > MOST {
            return Err("an extent number is too large");
        }
        let now = self.extents.len().max(extents as usize);
        self.extents.resize(now, Extent::free(self.geometry.extent_pages));
        Ok(())
    }

    fn extent(&mut self, change: &ExtentChange) -> std::result::Result<(), &'static str> {
        self.lengthen(change.extent + 1)?;
        let extent_pages = self.geometry.extent_pages;
        let e = &mut self.extents[change.extent as usize];
        if change.tree.is_none() {
            // Emptied: as with a dropped tree, a later owner must not meet its pages.
            *e = Extent::free(extent_pages);
            self.forget_pages(|extent| extent == change.extent);
            return Ok(());
        }
        if e.tree.is_none() {
            *e = Extent::free(extent_pages);
        }
        (e.tree, e.overflow) = (change.tree, change.overflow);
        for (list, used) in [(&change.used, Used::Yes), (&change.unused, Used::No)] {
            for index in list {
                if *index >= extent_pages {
                    return Err("a page lies beyond its extent");
                }
                e.set_allocated(*index, used);
                if used == Used::Yes {
                    e.written[*index as usize / 64] &= !(1 << (index % 64));
                }
            }
        }
        Ok(())
    }

    /// The pages of a dropped tree are nobody's: a later owner of its extents must not meet them.
    fn drop_tree(&mut self, tree: TreeId) {
        self.catalog.trees.remove(&tree);
        let mut gone = FxHashSet::default();
        for (i, e) in self.extents.iter_mut().enumerate().filter(|(_, e)| e.tree == Some(tree)) {
            *e = Extent::free(self.geometry.extent_pages);
            gone.insert(i as u64);
        }
        self.forget_pages(|extent| gone.contains(&extent));
    }

    fn forget_pages(&mut self, of: impl Fn(u64) -> bool) {
        let geometry = self.geometry;
        let (in_memory, waiting) = (&mut self.in_memory, &mut self.waiting);
        self.ways.retain(|page, way| {
            let stays = !of(geometry.extent_of(*page));
            if !stays {
                *in_memory -= usize::from(way.waiting.is_some());
                *waiting -= way.waiting_bytes();
            }
            stays
        });
    }
}
