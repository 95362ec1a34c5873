//! The checkpointer: writes page versions back to their stripes, in steps that are short and stop nobody.
//!
//! 1. *begin*: C is the newest state that every live snapshot may see. All pages with a version up to C are to be written, sorted by place; the next
//!    change of each is logged as an image again;
//! 2. *write*, a batch per step: adjacent pages in one request; then the page's frame is renewed, the page counts as written, the version leaves
//!    the table;
//! 3. *end*: meta run (catalog as of C, the map as it is), stripes synced, journal synced up to where the map was taken, super-block; then
//!    journal files that nothing needs are used again, and extents freed up to C are given out again.
//!
//! Until the super-block is durable everything before it is still in the journal, so a crash at any point loses nothing. A snapshot that
//! holds C back for too long is given up: its reader gets a clear error.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use snowmelt_io::AlignedBuf;

use crate::commit::Commits;
use crate::config::{Checkpoints, Plant};
use crate::error::{Result, StoreError};
use crate::meta::NewMeta;
use crate::page::{self, PAGE_BYTES, PageBuf, PageId, header};
use crate::pool::Thrown;
use crate::state::State;
use crate::store::count_pages;
use crate::superblock::SuperBlock;
use crate::versions::Seen;

/// Pages written by one step.
const BATCH: usize = 256;

/// Progress of the checkpoint under way.
#[derive(Default)]
pub(crate) struct Checkpointer {
    running: Mutex<Option<Running>>,
    /// Why writing back waits: no space.
    stalled: Mutex<Option<Arc<StoreError>>>,
    /// When the last checkpoint ended or was given up.
    last_ns: AtomicU64,
    /// Bytes appended to the journal when it began.
    last_bytes: AtomicU64,
}

struct Running {
    /// The state as of which pages are written.
    state: Arc<State>,
    pages: Vec<(PageId, u64)>,
    at: usize,
    bytes: u64,
}

/// When a checkpoint begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Begin {
    /// If there is enough to do.
    WhenDue,
    /// If there is anything to do.
    Now,
}

/// What a step came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// There is more to do.
    More,
    /// A checkpoint ended.
    Ended,
    /// Nothing is to be done, or nothing can be.
    Idle,
}

impl Checkpointer {
    /// Why writing back waits, if it does.
    pub fn stalled(&self) -> Option<Arc<StoreError>> {
        self.stalled.lock().clone()
    }
}

impl Commits {
    /// One short piece of checkpoint work. Errors have been noted: a full disk makes it try again later, anything else poisons the store.
    pub fn checkpoint_step(&self, begin: Begin) -> Result<Step> {
        self.check_poison()?;
        let mut running = self.checkpointer.running.lock();
        let result = match &mut *running {
            None => {
                if !self.is_due(begin) {
                    return Ok(Step::Idle);
                }
                *running = self.begin_checkpoint();
                return Ok(if running.is_some() { Step::More } else { Step::Idle });
            }
            Some(r) if r.at < r.pages.len() => self.write_batch(r).map(|()| Step::More),
            Some(r) => self.end_checkpoint(r).map(|()| Step::Ended),
        };
        let now_ns = self.config.clock.now_ns();
        match &result {
            Ok(Step::More) => return result,
            Ok(_) => *self.checkpointer.stalled.lock() = None,
            Err(e) => {
                self.poisoned_by(e);
                let mut stalled = self.checkpointer.stalled.lock();
                if stalled.is_none() {
                    snowmelt_io::notice(&format!("a checkpoint was given up: {e}"));
                }
                *stalled = Some(Arc::new(e.clone()));
            }
        }
        self.checkpointer.last_ns.store(now_ns, Ordering::Relaxed);
        *running = None;
        result
    }

    /// Checkpoints until all is written back that may be. True when nothing is left.
    pub fn checkpoint_all(&self, until_ns: u64) -> Result<bool> {
        loop {
            let step = self.checkpoint_step(Begin::Now)?;
            let durable = self.block.lock().txn;
            if durable >= self.states.visible().txn && step == Step::Idle {
                return Ok(true);
            }
            if step == Step::Idle || self.config.clock.now_ns() >= until_ns {
                return Ok(false);
            }
        }
    }

    fn is_due(&self, begin: Begin) -> bool {
        let durable = self.block.lock().txn;
        if self.states.visible().txn <= durable {
            return false;
        }
        if begin == Begin::Now || self.config.journal.checkpoints == Checkpoints::Held {
            return begin == Begin::Now;
        }
        let c = &self.checkpointer;
        let waited_ns = self.config.clock.now_ns().saturating_sub(c.last_ns.load(Ordering::Relaxed));
        if c.stalled.lock().is_some() {
            return waited_ns >= 1_000_000_000;
        }
        let appended = self.journal.meters.read_appended();
        let settings = &self.config.journal;
        waited_ns >= settings.checkpoint_s.saturating_mul(1_000_000_000)
            || appended - c.last_bytes.load(Ordering::Relaxed) >= settings.checkpoint_bytes
            || self.fetch.core.pool.versions.in_memory() > self.version_pages / 2
    }

    /// Gives up snapshots that hold the checkpointer back for too long.
    fn cancel_old_readers(&self) {
        let now_ns = self.config.clock.now_ns();
        let age_ns = self.config.reader_age_s.saturating_mul(1_000_000_000);
        if let Some(before_ns) = now_ns.checked_sub(age_ns) {
            let n = self.snapshots.cancel(self.states.visible().txn, before_ns);
            if n > 0 {
                self.journal.meters.cancelled(n);
                snowmelt_io::notice(&format!(
                    "{n} readers older than {} s were given up: they held back the checkpoint",
                    self.config.reader_age_s
                ));
            }
        }
    }

    fn begin_checkpoint(&self) -> Option<Running> {
        self.cancel_old_readers();
        let _order = self.order.lock();
        let state = match self.config.plant {
            Some(Plant::WriteUnderReader) => self.states.visible(),
            _ => self.snapshots.oldest_state(|| self.states.visible()),
        };
        if state.txn <= self.block.lock().txn {
            return None;
        }
        self.generation.fetch_add(1, Ordering::AcqRel);
        let mut pages = self.fetch.core.pool.versions.begin_write_back(state.txn);
        let geometry = self.fetch.geometry;
        pages.sort_unstable_by_key(|(page, _)| {
            let place = geometry.place(*page);
            (place.stripe, place.offset)
        });
        let bytes = self.journal.meters.read_appended();
        Some(Running { state, pages, at: 0, bytes })
    }

    fn write_batch(&self, r: &mut Running) -> Result<()> {
        if r.at == 0 {
            self.set_lengths()?;
        }
        let end = (r.at + BATCH).min(r.pages.len());
        let mut run: Vec<(PageId, u64, PageBuf)> = Vec::new();
        for (page, txn) in &r.pages[r.at..end] {
            let Some(mut state) = self.version(*page, *txn)? else { continue };
            let tree = header(&state).tree();
            if self.fetch.core.space.read().tree_as_of(*page, r.state.txn) != Some(tree) {
                // The tree was dropped; nobody who could see this page is left.
                self.fetch.core.pool.forget_versions(*page, *txn);
                continue;
            }
            page::seal(&mut state, *page, tree, *txn);
            if run.last().is_some_and(|(last, ..)| !self.is_next(*last, *page)) {
                self.write_run(&mut run)?;
            }
            run.push((*page, *txn, state));
        }
        self.write_run(&mut run)?;
        r.at = end;
        Ok(())
    }

    fn is_next(&self, a: PageId, b: PageId) -> bool {
        b.0 == a.0 + 1 && self.fetch.geometry.extent_of(a) == self.fetch.geometry.extent_of(b)
    }

    /// The version of just this transaction; `None` when it has left the table.
    fn version(&self, page: PageId, txn: u64) -> Result<Option<PageBuf>> {
        match self.fetch.core.pool.versions.see(page, txn) {
            Seen::Stripe => Ok(None),
            Seen::Memory(state) => Ok(Some((*state).clone())),
            Seen::Journal(txn, way) => Ok(Some(self.journal.rebuild(page, txn, &way)?)),
        }
    }

    /// Writes adjacent pages in one request; then their versions leave the table.
    fn write_run(&self, run: &mut Vec<(PageId, u64, PageBuf)>) -> Result<()> {
        let Some((first, ..)) = run.first() else { return Ok(()) };
        let mut bytes = AlignedBuf::new(run.len() * PAGE_BYTES);
        for (i, (.., state)) in run.iter().enumerate() {
            bytes[i * PAGE_BYTES..][..PAGE_BYTES].copy_from_slice(state);
        }
        self.fetch.stripes.write(self.fetch.geometry.place(*first), &bytes)?;
        let core = &self.fetch.core;
        let mut space = core.space.write();
        run.iter().for_each(|(page, ..)| space.set_written(*page));
        drop(space);
        self.journal.meters.wrote_back(run.len() as u64);
        for (page, txn, state) in run.drain(..) {
            // A frame that is still held by a reader long gone stays for the next time.
            if core.pool.renew(page, &state) {
                core.pool.forget_versions(page, txn);
            }
        }
        Ok(())
    }

    fn end_checkpoint(&self, r: &Running) -> Result<()> {
        self.set_lengths()?;
        let (meta, sequence) = {
            let _order = self.order.lock();
            (NewMeta::take(&self.fetch, &r.state.catalog), self.journal.last_sequence())
        };
        let switched = (|| {
            // The run may have lengthened the map.
            self.set_lengths()?;
            let run = meta.write(&self.fetch, &r.state.catalog, r.state.txn)?;
            if self.config.plant != Some(Plant::SkipStripeSync) {
                self.fetch.stripes.sync()?;
            }
            // The map may hold what commits after C changed: these must be durable before it is.
            self.journal.sync_to(sequence)?;
            let first = self.first_needed_file(r.state.txn);
            if self.config.plant == Some(Plant::ReuseJournalEarly) {
                self.journal.recycle(u64::MAX);
            }
            let mut block = self.block.lock();
            let new = SuperBlock {
                sequence: block.sequence + 1,
                txn: r.state.txn,
                extents: meta.map.len() as u64,
                meta: Some(run),
                journal: first,
                before: self.journal.before(first),
                synced: sequence,
                slots: self.journal.slots(),
                ..block.clone()
            };
            self.super_file.write(&new).inspect_err(|e| {
                // Even with a full disk nobody knows which state it says.
                let _ = self.poison.set(Arc::new(e.clone()));
            })?;
            *block = new;
            Ok(first)
        })();
        let first = match switched {
            Ok(first) => first,
            Err(e) => {
                if self.poison.get().is_none() {
                    meta.give_up(&self.fetch);
                }
                return Err(e);
            }
        };
        meta.settle(&self.fetch);
        self.journal.recycle(first);
        self.give_out_again(r.state.txn);
        self.checkpointer.last_bytes.store(r.bytes, Ordering::Relaxed);
        self.journal.meters.checkpointed();
        count_pages(&self.fetch.core);
        self.set_lengths()
    }

    /// The first journal file that a recovery from C, a version in the table or a transaction under way needs.
    fn first_needed_file(&self, txn: u64) -> u64 {
        let mut first = self.journal.first_file_after(txn);
        for other in [self.fetch.core.pool.versions.first_file(), self.journal.first_pinned()] {
            first = other.map_or(first, |f| f.min(first));
        }
        first
    }

    /// Extents that commits up to C freed: their pages leave the pool, then they may be anybody's.
    fn give_out_again(&self, txn: u64) {
        let core = &self.fetch.core;
        let resting = core.space.read().resting(txn);
        for extent in resting {
            let pages = (0..self.fetch.geometry.extent_pages).map(|i| self.fetch.geometry.page(extent, i));
            let mut held = false;
            for page in pages {
                match core.pool.throw_out(page) {
                    Thrown::Out(tree) => core.meters.with(tree, |m| {
                        m.resident.fetch_sub(1, Ordering::Relaxed);
                    }),
                    Thrown::Held => held = true,
                    Thrown::Absent => {}
                }
                core.pool.forget_versions(page, txn);
            }
            if !held {
                core.space.write().free(extent);
            }
        }
    }
}
