//! The checkpointer: writes page versions back to their stripes, in short steps that stop neither
//! readers nor writers.
//!
//! 1. *begin*: C is the newest state that every live snapshot may see. All pages with a version
//!    up to C are to be written, sorted by place; the next change of each is logged as an image
//!    again;
//! 2. *write*, a batch per step, as fast as the journal grows: adjacent pages in one request,
//!    behind all reads; then the page's frame is renewed, the page counts as written, the
//!    version leaves the table;
//! 3. *end*: meta run (catalog as of C, what changed of the map, as it is), stripes synced,
//!    journal synced up to where the map was taken, super-block; then journal files that
//!    nothing needs are used again, and extents freed up to C are given out again.
//!
//! Until the super-block is durable everything before it is still in the journal, so a crash at
//! any point loses nothing. A snapshot that holds C back for too long is given up: its reader
//! gets a clear error.
//!
//! Pace: with B the bytes of journal a recovery may read, a checkpoint begins at a quarter of B and
//! has written all its pages when the journal has grown by another quarter, or after
//! `checkpoint_s`, whichever comes first, as far as the device can do that beside commits (`pace`);
//! at once, when commits freed 64 MiB of extents.
//! So the journal stays near half of B; from three quarters on writers are slowed
//! ([`Commits::slow_down`]). No lock that commits or readers need is held for longer than a short
//! piece of work, and none during I/O.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use snowmelt_io::{AlignedBuf, Clock, Haste, WriteCost};

use crate::commit::Commits;
use crate::commit::pace::{Batch, Pace, SpaceLeft};
use crate::error::{Result, StoreError};
use crate::history::rebuild::rebuild;
use crate::history::snapshot::Snapshot;
use crate::history::state::State;
use crate::history::versions::Seen;
use crate::page::{self, PAGE_BYTES, PageBuf, PageId, header};
use crate::pool::Thrown;
use crate::settings::config::{Checkpoints, Plant};
use crate::space::meta::NewMeta;
use crate::space::meta_pages::MetaPlacing;
use crate::superblock::{MetaForm, SuperBlock};
use crate::sync::long_lock::LongLock;

/// Most pages written by one step when it is in no hurry.
const BATCH: usize = 32;
/// Most pages written by one step while a thread waits for the checkpoint.
const HURRIED_BATCH: usize = 256;
/// Pause of a checkpoint that is ahead of its pace.
const AHEAD_NS: u64 = 5_000_000;
/// Bytes of freed extents for which a checkpoint begins.
const REST_BYTES: u64 = 64 << 20;
/// Longest pause of a writer near the bound.
const MOST_SLOWED_NS: u64 = 4_000_000;

/// Progress of the checkpoint under way.
pub(crate) struct Checkpointer {
    running: LongLock<Option<Running>>,
    /// Whether there is one under way, for those who only look.
    under_way: AtomicBool,
    /// Why writing back waits: no space.
    stalled: Mutex<Option<Arc<StoreError>>>,
    /// When the last checkpoint ended or was given up.
    last_ns: AtomicU64,
    /// Bytes appended to the journal when it began.
    last_bytes: AtomicU64,
    /// Extents that still rested when it ended.
    last_resting: AtomicU64,
    /// The state that it wrote, which the super-block names.
    last_state: Mutex<Option<Arc<State>>>,
}

/// The state that the super-block names, held: while the snapshot lives no later version of a page
/// is written to its stripe, so no later checkpoint ends, and the journal since is kept.
pub(crate) struct HeldCheckpoint {
    pub block: SuperBlock,
    pub snapshot: Snapshot,
}

struct Running {
    /// The state as of which pages are written.
    state: Arc<State>,
    pages: Vec<(PageId, u64)>,
    at: usize,
    /// Bytes appended to the journal when it began, and when that was.
    bytes: u64,
    begun_ns: u64,
    /// Where catalog and map go.
    placing: MetaPlacing,
    pace: Pace,
}

/// When a checkpoint begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Begin {
    /// If there is enough to do.
    WhenDue,
    /// If there is anything to do.
    Now,
}

/// Result of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CheckpointStep {
    /// There is more to do.
    More,
    /// There is more to do, in so many nanoseconds.
    Later(u64),
    /// A checkpoint ended.
    Ended,
    /// Nothing is to be done, or nothing can be.
    Idle,
}

/// Bytes of journal from which on writers are slowed.
fn near_bytes(bound: u64) -> u64 {
    bound / 4 * 3
}

impl Checkpointer {
    /// Nothing under way.
    pub fn new(clock: &Clock) -> Checkpointer {
        Checkpointer {
            running: LongLock::new("the checkpointer's turn", None, clock),
            under_way: AtomicBool::new(false),
            stalled: Mutex::default(),
            last_ns: AtomicU64::new(0),
            last_bytes: AtomicU64::new(0),
            last_resting: AtomicU64::new(0),
            last_state: Mutex::default(),
        }
    }

    /// Whether a checkpoint is under way.
    pub fn is_under_way(&self) -> bool {
        self.under_way.load(Ordering::Acquire)
    }

    /// Why writing back waits, if it does.
    pub fn stalled(&self) -> Option<Arc<StoreError>> {
        self.stalled.lock().clone()
    }
}

impl Commits {
    /// One short piece of checkpoint work. Errors have been noted: a full disk makes it try
    /// again later, anything else poisons the store.
    pub fn checkpoint_step(&self, begin: Begin) -> Result<CheckpointStep> {
        self.check_poison()?;
        let mut running = self.checkpointer.running.lock();
        let result = match &mut *running {
            None => {
                if self.is_due(begin) {
                    *running = self.begin_checkpoint();
                    self.checkpointer.under_way.store(running.is_some(), Ordering::Release);
                    if running.is_some() {
                        return Ok(CheckpointStep::More);
                    }
                }
                let given = self.give_back_dead()?;
                return Ok(if given { CheckpointStep::Ended } else { CheckpointStep::Idle });
            }
            Some(r) if r.at < r.pages.len() => {
                let most = match begin {
                    Begin::Now => HURRIED_BATCH,
                    Begin::WhenDue if self.room.is_wanted() || self.rests_much() => HURRIED_BATCH,
                    Begin::WhenDue => self.due_pages(r),
                };
                if most == 0 {
                    return Ok(CheckpointStep::Later(AHEAD_NS));
                }
                let haste = self.haste(r, begin);
                self.write_batch(r, most, haste).map(|pause_ns| match pause_ns {
                    0 => CheckpointStep::More,
                    pause_ns => CheckpointStep::Later(pause_ns),
                })
            }
            Some(r) => {
                let haste = self.haste(r, begin);
                self.end_checkpoint(r, haste).map(|()| CheckpointStep::Ended)
            }
        };
        let now_ns = self.config.seams.clock.now_ns();
        match &result {
            Ok(CheckpointStep::More | CheckpointStep::Later(_)) => return result,
            // The step is tried again: it gives back the room it takes, when the journal is used
            // again.
            Err(StoreError::Full { .. }) if self.poison.get().is_none() && self.spare.release() => {
                return Ok(CheckpointStep::More);
            }
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
        self.fetch.core.pages.versions.keep_from(None);
        *running = None;
        self.checkpointer.under_way.store(false, Ordering::Release);
        self.room.notify();
        result
    }

    /// Checkpoints until all is written back that is committed by now and may be, as long as
    /// `go_on` says so. True when nothing is left: what comes meanwhile is left to the next.
    pub fn checkpoint_all(&self, go_on: &dyn Fn() -> bool) -> Result<bool> {
        let until_txn = self.states.visible().txn;
        loop {
            let step = self.checkpoint_step(Begin::Now)?;
            let durable = self.block.lock().txn;
            let is_over = match step {
                CheckpointStep::Idle => true,
                CheckpointStep::Ended => durable >= until_txn && self.meta_again.lock().is_none(),
                CheckpointStep::More | CheckpointStep::Later(_) => false,
            };
            if is_over || !go_on() {
                return Ok(is_over && durable >= self.states.visible().txn);
            }
        }
    }

    /// Holds the state that the super-block names. `None` while a checkpoint is under way, and when
    /// commits came after it before this opening has made one.
    pub fn hold_checkpoint(&self) -> Option<HeldCheckpoint> {
        let running = self.checkpointer.running.lock();
        if running.is_some() {
            return None;
        }
        let block = self.block.lock().clone();
        let known = self.checkpointer.last_state.lock().clone().unwrap_or_else(|| self.states.visible());
        if known.txn != block.txn {
            return None;
        }
        let snapshot = self.snapshots.take(self.config.seams.clock.now_ns(), || known);
        Some(HeldCheckpoint { block, snapshot })
    }

    fn is_due(&self, begin: Begin) -> bool {
        let durable = self.block.lock().txn;
        if self.states.visible().txn <= durable {
            return begin == Begin::Now && self.meta_again.lock().is_some();
        }
        if begin == Begin::Now || self.config.journal.checkpoints == Checkpoints::Held {
            return begin == Begin::Now;
        }
        let c = &self.checkpointer;
        let waited_ns = self.config.seams.clock.now_ns().saturating_sub(c.last_ns.load(Ordering::Relaxed));
        if c.stalled.lock().is_some() {
            return waited_ns >= 1_000_000_000;
        }
        if self.room.is_wanted() || self.rests_much() {
            return true;
        }
        let appended = self.journal.meters.read_appended();
        let settings = &self.config.journal;
        waited_ns >= settings.checkpoint_s.saturating_mul(1_000_000_000)
            || appended - c.last_bytes.load(Ordering::Relaxed) >= self.spread_bytes()
            || (waited_ns >= settings.checkpoint_s.saturating_mul(10_000_000) && self.is_late())
            || self.fetch.core.pages.versions.memory_pages() > self.version_pages / 2
    }

    /// Bytes of journal after which a checkpoint begins, and over which its pages are spread.
    fn spread_bytes(&self) -> u64 {
        self.config.journal.checkpoint_bytes.min(self.bound_bytes() / 4)
    }

    /// True when commits freed much that only a checkpoint gives out again: to empty a database is
    /// a short record, after which its extents are still taken.
    fn rests_much(&self) -> bool {
        let resting = self.fetch.core.space.read().rest_count();
        let since = resting.saturating_sub(self.checkpointer.last_resting.load(Ordering::Relaxed));
        since * self.fetch.geometry.extent_bytes() >= REST_BYTES
    }

    /// True when the journal is longer than the pace explains: a reader or a large transaction
    /// held it back.
    fn is_late(&self) -> bool {
        self.bytes_to_recover() > self.bound_bytes() / 8 * 5
    }

    /// Pages that may be written now.
    fn due_pages(&self, r: &Running) -> usize {
        let settings = &self.config.journal;
        let pages = &self.fetch.core.pages.versions;
        if self.is_late() || pages.memory_pages() > self.version_pages / 4 * 3 {
            return BATCH;
        }
        let grown = self.journal.meters.read_appended() - r.bytes;
        let passed_ns = self.config.seams.clock.now_ns().saturating_sub(r.begun_ns);
        let by_bytes = grown as f64 / self.spread_bytes().max(1) as f64;
        let by_time = passed_ns as f64 / (settings.checkpoint_s.max(1) as f64 * 1e9);
        let due = (by_bytes.max(by_time) * r.pages.len() as f64) as usize;
        due.saturating_sub(r.at).min(BATCH)
    }

    /// The share of the device's time that a checkpoint has now.
    fn haste(&self, r: &Running, begin: Begin) -> Haste {
        if begin == Begin::Now || self.room.is_wanted() || self.fetch.stripes.are_quiet() {
            return Haste::All;
        }
        let near = near_bytes(self.bound_bytes());
        let passed_ns = self.config.seams.clock.now_ns().saturating_sub(r.begun_ns);
        let room = SpaceLeft {
            bytes: near.saturating_sub(self.bytes_to_recover()),
            grown: (self.journal.meters.read_appended() - r.bytes, passed_ns),
        };
        let stripe = r.pages.get(r.at).map_or(0, |(page, _)| self.fetch.geometry.place(*page).stripe);
        r.pace.haste(r.pages.len() - r.at, &self.fetch.stripes.write_cost(stripe), &room)
    }

    /// Pauses a writer for a moment when the journal comes near its bound, the longer the nearer:
    /// so no writer has to wait for long when it is reached.
    pub fn slow_down(&self) {
        let (bytes, bound) = (self.bytes_to_recover(), self.bound_bytes());
        let near = near_bytes(bound);
        if bytes <= near {
            return;
        }
        let share = ((bytes - near) as f64 / (bound - near).max(1) as f64).min(1.0);
        let ns = (share * share * MOST_SLOWED_NS as f64) as u64;
        self.config.seams.clock.sleep_ns(ns);
        self.journal.meters.slowed(ns);
    }

    /// Gives up snapshots that hold the checkpointer back for too long.
    fn cancel_old_readers(&self) {
        let now_ns = self.config.seams.clock.now_ns();
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
        let (meters, clock) = (&self.journal.meters, &self.config.seams.clock);
        let again = self.meta_again.lock().take();
        let state = {
            // In one step for commits, which drop versions that only older readers would see:
            // from now on they leave what C needs.
            let _order = self.order.lock();
            let _held = meters.order_hold.hold(clock);
            let state = if self.config.is_planted(Plant::WriteUnderReader) {
                self.states.visible()
            } else {
                self.snapshots.oldest_state(|| self.states.visible())
            };
            let durable = self.block.lock().txn;
            // A state is written a second time only to move its catalog and map.
            if state.txn < durable || (state.txn == durable && again.is_none()) {
                return None;
            }
            self.fetch.core.pages.versions.keep_from(Some(state.txn));
            state
        };
        let bytes = meters.read_appended();
        let mut pages =
            self.fetch.core.pages.versions.begin_write_back(state.txn, &meters.versions_hold, clock);
        {
            // Commits packed before may hold diffs against versions that are about to leave: they
            // are packed again.
            let _order = self.order.lock();
            let _held = meters.order_hold.hold(clock);
            self.generation.fetch_add(1, Ordering::AcqRel);
        }
        let geometry = self.fetch.geometry;
        pages.sort_unstable_by_key(|(page, _)| {
            let place = geometry.place(*page);
            (place.stripe, place.offset)
        });
        assert!(pages.iter().all(|(_, txn)| *txn <= state.txn), "only what C contains is written");
        assert!(pages.windows(2).all(|w| w[0].0 != w[1].0), "a page is written once");
        let placing = again.unwrap_or(MetaPlacing::Reuse);
        let pace = Pace::default();
        Some(Running { state, pages, at: 0, bytes, begun_ns: clock.now_ns(), placing, pace })
    }

    /// Writes up to `most` pages; returns for how long the device is to be left alone.
    fn write_batch(&self, r: &mut Running, most: usize, haste: Haste) -> Result<u64> {
        if r.at == 0 {
            self.set_lengths()?;
        }
        let (stripes, geometry, clock) = (&self.fetch.stripes, self.fetch.geometry, &self.config.seams.clock);
        let stripe = geometry.place(r.pages[r.at].0).stripe;
        let batch = match haste {
            Haste::All => Batch { pages: most, device_ns: 0 },
            Haste::Share(_) => r.pace.batch(&r.pages[r.at..], most, geometry, &stripes.write_cost(stripe)),
        };
        let begun_ns = clock.now_ns();
        let end = (r.at + batch.pages).min(r.pages.len());
        let pages = end - r.at;
        self.write_up_to(r, end)?;
        let cost = stripes.write_cost(stripe);
        if stripes.are_real() && r.pace.wrote(stripe, pages as u64, haste, &cost) {
            stripes.flush(stripe)?;
        }
        let taken_ns = clock.now_ns().saturating_sub(begun_ns);
        r.pace.took(pages, taken_ns);
        Ok(WriteCost::pause_ns(haste, batch.device_ns, taken_ns))
    }

    /// Writes the pages before `end` that are not written yet.
    fn write_up_to(&self, r: &mut Running, end: usize) -> Result<()> {
        assert!(end > r.at, "a step writes at least a page");
        let mut batch: Vec<(PageId, u64, PageBuf)> = Vec::new();
        for (page, txn) in &r.pages[r.at..end] {
            let Some(mut state) = self.version(*page, *txn)? else { continue };
            let tree = header(&state).tree();
            if self.fetch.core.space.read().tree_as_of(*page, r.state.txn) != Some(tree) {
                // The tree was dropped; no snapshot that could see this page is left.
                self.fetch.core.pages.forget_versions(*page, *txn);
                continue;
            }
            page::seal(&mut state, *page, tree, *txn);
            assert!(header(&state).txn() <= r.state.txn, "what is written back was committed by C");
            batch.push((*page, *txn, state));
        }
        self.write_pages(&batch)?;
        r.at = end;
        Ok(())
    }

    fn is_next(&self, a: PageId, b: PageId) -> bool {
        b.0 == a.0 + 1 && self.fetch.geometry.extent_of(a) == self.fetch.geometry.extent_of(b)
    }

    /// The version of just this transaction; `None` when it has left the table.
    fn version(&self, page: PageId, txn: u64) -> Result<Option<PageBuf>> {
        match self.fetch.core.pages.versions.see(page, txn) {
            Seen::Stripe => Ok(None),
            Seen::Memory(state) => Ok(Some((*state).clone())),
            Seen::Journal(txn, way) => Ok(Some(rebuild(&self.journal, page, txn, &way)?)),
        }
    }

    /// Writes sorted pages, adjacent ones in one request; then their versions leave the table.
    fn write_pages(&self, batch: &[(PageId, u64, PageBuf)]) -> Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        let geometry = self.fetch.geometry;
        let mut bytes = AlignedBuf::new(batch.len() * PAGE_BYTES);
        for (to, (.., state)) in bytes.chunks_exact_mut(PAGE_BYTES).zip(batch) {
            to.copy_from_slice(state);
        }
        let mut rest = &bytes[..];
        for of_stripe in batch.chunk_by(|a, b| geometry.place(a.0).stripe == geometry.place(b.0).stripe) {
            let mut parts = Vec::new();
            for run in of_stripe.chunk_by(|a, b| self.is_next(a.0, b.0)) {
                let (now, later) = rest.split_at(run.len() * PAGE_BYTES);
                parts.push((geometry.place(run[0].0).offset, now));
                rest = later;
            }
            debug_assert!(parts.is_sorted_by_key(|(offset, _)| *offset), "in the order of the device");
            self.fetch.stripes.write_back(geometry.place(of_stripe[0].0).stripe, &parts)?;
        }
        assert!(rest.is_empty(), "each page of the batch was written");
        let core = &self.fetch.core;
        {
            let mut space = core.space.write();
            let _held = self.journal.meters.map_hold.hold(&self.config.seams.clock);
            batch.iter().for_each(|(page, txn, _)| space.set_written(*page, *txn));
        }
        self.journal.meters.wrote_back(batch.len() as u64);
        for (page, txn, state) in batch {
            // A frame that is still held by a reader long gone stays for the next time.
            if core.pages.pool.renew(*page, state) {
                core.pages.forget_versions(*page, *txn);
            }
        }
        Ok(())
    }

    fn end_checkpoint(&self, r: &Running, haste: Haste) -> Result<()> {
        self.set_lengths()?;
        let meta = NewMeta::take(&self.fetch.core.space, &r.state.catalog, &self.meta, r.placing);
        // The map may get shorter while this one is written.
        self.keep_length(meta.extents);
        let ended = self.switch_state(r, meta, haste);
        self.keep_length(0);
        ended?;
        self.set_lengths()?;
        self.spare.refill();
        Ok(())
    }

    /// Makes the state of a checkpoint that of the super-block.
    fn switch_state(&self, r: &Running, meta: NewMeta, haste: Haste) -> Result<()> {
        let sequence = self.journal.last_sequence();
        assert_eq!(r.at, r.pages.len(), "a checkpoint ends when all its pages are written");
        let switched = (|| {
            // The run may have lengthened the map.
            self.set_lengths()?;
            let (fetch, clock) = (&self.fetch, &self.config.seams.clock);
            meta.write(fetch.geometry, r.state.txn, &fetch.stripes, clock, haste)?;
            if !self.config.is_planted(Plant::SkipStripeSync) {
                self.fetch.stripes.sync()?;
            }
            // The map may hold what commits after C changed: these must be durable before it is.
            self.journal.sync_to(sequence)?;
            // No journal file may be used again if the stripe that has its pages now is gone.
            self.look()?;
            self.block.make_room()?;
            let first = self.first_needed_file(r.state.txn);
            if self.config.is_planted(Plant::ReuseJournalEarly) {
                self.journal.recycle(u64::MAX);
            }
            let switched = self.switch_block(|block| {
                let state = SuperBlock {
                    txn: r.state.txn,
                    extents: meta.extents,
                    meta: meta.run(),
                    meta_form: MetaForm::Segments,
                    journal: first,
                    before: self.journal.before(first),
                    slots: self.journal.slots(),
                    ..block.clone()
                };
                state.with_tail(self.journal.synced_place())
            });
            switched.inspect_err(|e| {
                // Even with a full disk it is not known which state the super-block says.
                let _ = self.poison.set(Arc::new(e.clone()));
            })?;
            Ok(first)
        })();
        let first = match switched {
            Ok(first) => first,
            Err(e) => {
                if self.poison.get().is_none() {
                    meta.give_up(&self.fetch.core.space);
                }
                return Err(e);
            }
        };
        assert!(self.block.lock().txn >= r.state.txn, "the super-block names the checkpoint");
        meta.settle(&self.fetch.core.space, &self.meta);
        self.note_taken();
        self.journal.recycle(first);
        self.shrink_journal();
        self.give_out_again(r.state.txn);
        self.checkpointer.last_bytes.store(r.bytes, Ordering::Relaxed);
        let resting = self.fetch.core.space.read().rest_count();
        self.checkpointer.last_resting.store(resting, Ordering::Relaxed);
        *self.checkpointer.last_state.lock() = Some(r.state.clone());
        self.journal.meters.checkpointed();
        self.fetch.core.count_pages();
        Ok(())
    }

    /// The first journal file that a recovery from C, a version in the table or a transaction
    /// under way needs.
    pub(super) fn first_needed_file(&self, txn: u64) -> u64 {
        let mut first = self.journal.first_file_after(txn);
        // Pins first: what a transaction wrote early goes from its pin into the table when it
        // commits, never back.
        let pinned = self.journal.first_pinned();
        for other in [pinned, self.fetch.core.pages.versions.first_file()] {
            first = other.map_or(first, |f| f.min(first));
        }
        first
    }

    /// Gives out again the extents that commits up to C freed, once their pages have left the pool.
    fn give_out_again(&self, txn: u64) {
        let core = &self.fetch.core;
        let resting = core.space.read().resting(txn);
        for extent in resting {
            let pages = (0..self.fetch.geometry.extent_pages).map(|i| self.fetch.geometry.page(extent, i));
            let mut held = false;
            for page in pages {
                match core.pages.pool.throw_out(page) {
                    Thrown::Out(tree) => core.meters.with(tree, |m| {
                        m.resident.fetch_sub(1, Ordering::Relaxed);
                    }),
                    Thrown::Held => held = true,
                    Thrown::Absent => {}
                }
                core.pages.forget_versions(page, txn);
            }
            if !held {
                core.space.write().free(extent);
            }
        }
    }
}
