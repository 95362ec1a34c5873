//! Background work: one function, [`Work::step`], that a thread of the store calls in
//! production and a test, or a client in virtual time, calls itself.
//!
//! 1. make appended commits durable that no caller waits for, have a journal file ready, and do
//!    a piece of checkpoint work;
//! 2. read the warm list back, while there is something to read and room for it;
//! 3. save it every few minutes;
//! 4. look at what is believed of the disks, and keep what was learned.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use snowmelt_io::{ClientTicket, EventCount};

use crate::commit::Commits;
use crate::commit::checkpoint::{Begin, CheckpointStep};
use crate::journal::room::Made;
use crate::memory::budget::MemoryBudget;
use crate::read::account::Shares;
use crate::read::activity::Activity;
use crate::read::fetch::Fetch;
use crate::read::warm;
use crate::read::warming;
use crate::settings::opener::Directory;
use crate::store::minds::Minds;

/// Pause while there is nothing to do, in nanoseconds: what [`Store::step`](crate::Store::step)
/// returns then, at least.
pub const IDLE_NS: u64 = 1_000_000_000;

/// The account of reads that no caller asked for.
const BACKGROUND: &str = "background";

/// The background work of a store.
pub(crate) struct Work {
    pub fetch: Arc<Fetch>,
    pub commits: Arc<Commits>,
    pub dir: Arc<Directory>,
    pub next_save_ns: AtomicU64,
    minds: Minds,
    next_look_ns: AtomicU64,
}

impl Work {
    /// Work for a store that has just been opened.
    pub fn new(commits: Arc<Commits>, dir: Arc<Directory>) -> Work {
        let fetch = commits.fetch.clone();
        let minds = Minds::new(&fetch.stripes, commits.config.mode, fetch.clock.now_ns());
        let zero = AtomicU64::default;
        let work = Work { fetch, commits, dir, next_save_ns: zero(), minds, next_look_ns: zero() };
        work.plan_save();
        work
    }

    fn plan_save(&self) {
        let pause_ns = self.fetch.read_ahead.warm_save_s.saturating_mul(1_000_000_000);
        self.next_save_ns.store(self.fetch.clock.now_ns().saturating_add(pause_ns), Relaxed);
    }

    /// Does what is due, briefly, and returns in how many nanoseconds it wants to be called again.
    pub fn step(&self) -> u64 {
        self.look_at_disks();
        self.commit_step().min(self.warm_step())
    }

    /// Only where a thread does the work: a line in the log is of no use in virtual time.
    fn look_at_disks(&self) {
        let now = self.fetch.clock.now_ns();
        if self.commits.config.runs_threads() && now >= self.next_look_ns.load(Relaxed) {
            let next = self.minds.look(&self.fetch.stripes, &self.dir, now);
            self.next_look_ns.store(next, Relaxed);
        }
    }

    /// Keeps what was learned of the disks.
    pub fn keep_learned(&self) {
        self.minds.keep(&self.fetch.stripes, &self.dir, self.fetch.clock.now_ns());
    }

    /// Errors have been noted, and are told to the next writer.
    fn commit_step(&self) -> u64 {
        /// Pause while something may soon be due.
        const SOON_NS: u64 = 20_000_000;
        let c = &self.commits;
        if c.poison.get().is_some() {
            return IDLE_NS;
        }
        if c.look_when_due().is_err() || c.settle().is_err() {
            return SOON_NS;
        }
        // An error is passed over: without room for another journal file, checkpoints make some.
        let made = c.journal.prepare().and_then(|made| c.note_slots().map(|()| made));
        let made_ns = match made {
            Ok(Made::Partly(pause_ns)) => pause_ns,
            Ok(Made::Wholly) | Err(_) => u64::MAX,
        };
        let step = c.checkpoint_step(Begin::WhenDue);
        match step {
            Ok(CheckpointStep::More) => return 0,
            Ok(CheckpointStep::Later(ns)) => return made_ns.min(ns),
            _ if made_ns < u64::MAX => return made_ns,
            _ => {}
        }
        if c.states.visible().txn > c.block.lock().txn { SOON_NS } else { IDLE_NS }
    }

    fn warm_step(&self) -> u64 {
        /// Pause while the devices work off what the warm list asked for.
        const WARMING_NS: u64 = 2_000_000;
        if !self.fetch.read_ahead.warm_list {
            return u64::MAX;
        }
        let meters = &self.fetch.core.meters;
        let (mut done, mut shares) = (Activity::default(), Shares::new(&meters.account(BACKGROUND)));
        let more = warming::step(&self.fetch, &mut done);
        shares.settle(done);
        let now = self.fetch.clock.now_ns();
        if now >= self.next_save_ns.load(Relaxed) {
            self.save();
            self.keep_learned();
            self.plan_save();
        }
        if more { WARMING_NS } else { self.next_save_ns.load(Relaxed).saturating_sub(now) }
    }

    /// Saves the warm list. Not while the last one is still being read back: it would be
    /// replaced by a part of itself.
    pub fn save(&self) {
        if !self.fetch.warm_up.is_done() || self.commits.config.is_read_only() {
            return;
        }
        let list = warming::collect(&self.fetch);
        if list.is_empty() {
            return;
        }
        // Advice only: a full disk or a read-only directory must do no harm.
        if let Err(e) = warm::save(&self.dir, self.fetch.geometry.extent_pages, &list) {
            snowmelt_io::notice(&format!("{e}; going on without"));
        }
    }
}

/// The thread that does the work; stopped and joined when dropped.
pub(crate) struct BackgroundThread {
    work: Arc<Work>,
    signals: Arc<Signals>,
    thread: Option<JoinHandle<()>>,
}

/// Signals between the thread and its owner.
struct Signals {
    stop: AtomicBool,
    is_over: AtomicBool,
    over: EventCount,
}

impl BackgroundThread {
    pub fn start(work: Arc<Work>, memory: MemoryBudget) -> std::io::Result<BackgroundThread> {
        /// The longest time between two looks at what there is to do.
        const MOST_NS: u64 = 60_000_000_000;
        /// How often the heap is looked at, while there is something to do. In real time, since no
        /// answer of the store depends on it.
        const HEAP_LOOK: Duration = Duration::from_millis(250);
        let clock = &work.commits.config.seams.clock;
        let over = EventCount::named(clock, "the end of the background thread");
        let signals =
            Arc::new(Signals { stop: AtomicBool::new(false), is_over: AtomicBool::new(false), over });
        let (of_thread, work_of_thread) = (signals.clone(), work.clone());
        let ticket = clock.reserve(1).pop();
        let run = move || {
            let _taking_part = ticket.map(ClientTicket::enter);
            let over = Over(of_thread.clone());
            let mut looked = Instant::now();
            while !of_thread.stop.load(Acquire) {
                let wait_ns = work_of_thread.step().min(MOST_NS);
                if looked.elapsed() >= HEAP_LOOK {
                    memory.look_at_heap();
                    looked = Instant::now();
                }
                if wait_ns > 0 && !of_thread.stop.load(Acquire) {
                    work_of_thread.commits.bell.wait(Duration::from_nanos(wait_ns));
                }
            }
            drop(over);
        };
        let thread = std::thread::Builder::new().name("snowmelt-store".into()).spawn(run)?;
        Ok(BackgroundThread { work, signals, thread: Some(thread) })
    }
}

impl Drop for BackgroundThread {
    fn drop(&mut self) {
        self.signals.stop.store(true, Release);
        self.work.commits.bell.ring();
        let Some(thread) = self.thread.take() else { return };
        if self.work.commits.config.seams.clock.is_virtual() {
            if std::thread::panicking() {
                return;
            }
            // In virtual time a thread is waited for only so.
            self.signals.over.wait_until(|| self.signals.is_over.load(Acquire));
        }
        let _ = thread.join();
    }
}

/// Says that the thread is over, also when it panics.
struct Over(Arc<Signals>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.is_over.store(true, Release);
        self.0.over.notify_all();
    }
}
