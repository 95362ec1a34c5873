//! Room in the journal: who waits for it, and what gives it back.
//!
//! 1. The journal is longer than it may be: a writer that is about to begin waits, if there is
//!    something that a checkpoint, under way or to come, will give back.
//! 2. While a writer waits a checkpoint is due, and hurries.
//! 3. Each end of a checkpoint has the waiters look again.
//!
//! Files with no record of a commit after the checkpoint are *dead*, though they lie between it
//! and the end of the journal: a large transaction left them that was dropped or cut off. They
//! are given back without a checkpoint, by a super-block that begins the journal behind them.
//!
//! Invariant: no thread waits unless something is under way or due that gives room. Where a reader
//! or a transaction under way holds the journal, a longer one is better than a writer that waits
//! for that.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use snowmelt_io::{Clock, EventCount};

use crate::commit::Commits;
use crate::commit::checkpoint::{Begin, CheckpointStep};
use crate::error::Result;
use crate::settings::config::{Checkpoints, Plant};
use crate::superblock::SuperBlock;
use crate::sync::waits::{LOOK, WaitFor, WaitTally, WaitTimes, Waiter};

/// See the head of the file.
pub(crate) struct JournalRoom {
    given: EventCount,
    waits: WaitTally,
    /// Bytes of files that the journal took lately; falls slowly.
    taken: AtomicU64,
}

impl JournalRoom {
    /// Room for which no thread waits yet.
    pub fn new(clock: &Clock) -> JournalRoom {
        JournalRoom {
            given: EventCount::named(clock, WaitFor::Room.name()),
            waits: WaitTally::default(),
            taken: AtomicU64::new(0),
        }
    }

    /// Whether a thread waits.
    pub fn is_wanted(&self) -> bool {
        self.waits.read().now > 0
    }

    /// For how long a thread has been waiting without a pause, until now.
    pub fn waited_ns(&self, clock: &Clock) -> u64 {
        self.waits.since_ns().map_or(0, |since| clock.now_ns().saturating_sub(since))
    }

    /// How long writers waited.
    pub fn waits(&self) -> WaitTimes {
        self.waits.read()
    }

    /// Wakes the waiters, which look again.
    pub fn notify(&self) {
        self.given.notify_all();
    }
}

/// The worker that a writer waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WorkBy {
    /// The store's own thread.
    Thread,
    /// The caller that waits.
    Waiter,
}

impl Commits {
    /// Waits while the journal is longer than it may be and that will change. False when the
    /// waiter gave up.
    pub fn wait_for_room(&self, by: WorkBy, waiter: &Waiter<'_>) -> Result<bool> {
        if self.config.journal.checkpoints == Checkpoints::Held || self.has_room() {
            return Ok(true);
        }
        let mut shown = None;
        while !self.has_room() && (waiter.go_on)() {
            self.check_poison()?;
            if let Some(e) = self.checkpointer.stalled() {
                return Err((*e).clone());
            }
            if !self.may_get_room() {
                return Ok(true);
            }
            shown.get_or_insert_with(|| {
                (waiter.show(WaitFor::Room), self.room.waits.wait(&self.config.seams.clock))
            });
            match by {
                WorkBy::Thread => self.wait_for_thread(waiter),
                WorkBy::Waiter if self.checkpoint_step(Begin::Now)? == CheckpointStep::Idle => {
                    return Ok(true);
                }
                WorkBy::Waiter => {}
            }
        }
        Ok((waiter.go_on)())
    }

    /// Keeps as many free files as the journal took lately, and cuts the others. Called at the
    /// end of a checkpoint, before and after files became free.
    pub fn note_taken(&self) {
        let (used, _) = self.journal.file_bytes();
        let before = self.room.taken.load(Relaxed);
        self.room.taken.store(used.max(before - before / 4), Relaxed);
    }

    /// See [`Commits::note_taken`].
    pub fn shrink_journal(&self) {
        let (used, _) = self.journal.file_bytes();
        self.journal.shrink(self.room.taken.load(Relaxed).saturating_sub(used));
    }

    /// As [`Commits::shrink_journal`], before a long pause: only a small share of the data's size
    /// is kept in free files.
    pub fn shrink_journal_to_rest(&self) {
        /// Bytes of free files that are kept in any case.
        const LEAST: u64 = 4 << 20;
        /// The share of the data that may be kept.
        const SHARE: u64 = 16;
        let extents = self.fetch.core.space.read().len();
        self.journal.shrink((extents * self.fetch.geometry.extent_bytes() / SHARE).max(LEAST));
    }

    fn wait_for_thread(&self, waiter: &Waiter<'_>) {
        self.room.given.wait_until_looking(LOOK, || {
            self.bell.ring();
            self.has_room()
                || !self.may_get_room()
                || self.poison.get().is_some()
                || self.checkpointer.stalled().is_some()
                || !(waiter.go_on)()
        });
    }

    /// Why the next change of the database would fail or wait for long, if so.
    pub fn unready(&self) -> Option<String> {
        let stalled = self.stalled()?;
        (!self.has_room()).then_some(stalled)
    }

    fn has_room(&self) -> bool {
        let bound = self.bound_bytes();
        let most = self.config.journal.most_bytes.min(bound.saturating_add(bound / 4));
        self.journal.bytes_in_use() <= most
    }

    /// True while a checkpoint is under way, or when one, or giving back dead files, would give
    /// room.
    fn may_get_room(&self) -> bool {
        if self.config.is_planted(Plant::KeepDeadJournal) {
            return true;
        }
        self.checkpointer.is_under_way()
            || self.oldest_readable() > self.block.lock().txn
            || self.first_alive().is_some()
    }

    /// The first file that is needed, if the super-block names an earlier one.
    fn first_alive(&self) -> Option<u64> {
        let (named, durable) = {
            let block = self.block.lock();
            (block.journal, block.txn)
        };
        // Commits since the checkpoint may build on images in earlier files, which only the end of
        // a checkpoint knows to keep.
        if self.states.appended().txn > durable {
            return None;
        }
        // Cheap, and nearly always the end of it.
        if self.journal.first_file_after(durable) <= named || self.config.is_planted(Plant::KeepDeadJournal) {
            return None;
        }
        let first = self.first_needed_file(durable);
        (first > named).then_some(first)
    }

    /// Gives dead files back; returns whether there were any. Only while no checkpoint is under
    /// way.
    pub fn give_back_dead(&self) -> Result<bool> {
        if self.first_alive().is_none() {
            return Ok(false);
        }
        // The super-block must not name an end that is not durable.
        self.journal.sync_to(self.journal.last_sequence())?;
        self.block.make_room()?;
        let Some(first) = self.first_alive() else { return Ok(false) };
        let switched = self.switch_block(|block| {
            let state = SuperBlock {
                journal: first,
                before: self.journal.before(first),
                slots: self.journal.slots(),
                ..block.clone()
            };
            state.with_tail(self.journal.synced_place())
        });
        switched.inspect_err(|e| self.poisoned_by(e))?;
        self.journal.recycle(first);
        self.room.notify();
        Ok(true)
    }
}
