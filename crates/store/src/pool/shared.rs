//! Frames that several stores of a process share, with one replacement for all.
//!
//! A process has one budget: what one store does not use serves the others, page by page, by the
//! same rules as within a store. Translation (`members`) and files stay with each store, so a hit
//! costs what it costs a store alone.
//!
//! 1. a store *joins* with an empty table;
//! 2. a store that needs frames evicts pages of any store; the owner's meters are told;
//! 3. a store *leaves* when its pool is dropped: its frames go to the others.
//!
//! Invariant: a pinned frame is neither handed out nor unmapped, even when its
//! store has left.

#![allow(unsafe_code)]

use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64};

use parking_lot::Mutex;

use super::frames::Frames;
use super::members::{Member, Members};
use super::replace::Replacer;
use super::rule::Rule;
use super::word;
use crate::error::{Result, StoreError};
use crate::memory::budget::{MemoryBudget, Reservation};
use crate::page::{PAGE_BYTES, header};

/// See the head of the file.
pub struct SharedFrames {
    pub(super) frames: ManuallyDrop<Frames>,
    pub(super) queues: Mutex<Queues>,
    /// Every frame has been used.
    pub(super) full: AtomicBool,
    /// Pages that were wanted again soon after they had left.
    pub(super) regrets: AtomicU64,
    /// Pages of plans and scans that are not visited yet.
    pub(super) unvisited: AtomicI64,
    /// A store left while a page of it was pinned.
    pinned: AtomicBool,
    _memory: Option<Reservation>,
}

/// The state behind the one lock.
pub(super) struct Queues {
    pub replacer: Replacer,
    pub members: Members,
}

/// How frames are used, all stores together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameStats {
    /// Frames.
    pub frames: u32,
    /// Those never used so far.
    pub fresh: u32,
    /// Those that hold a page, or are about to.
    pub held: u32,
    /// Stores that share them.
    pub stores: usize,
}

impl SharedFrames {
    /// Frames in `bytes` of memory, reserved from `budget`, for the stores that are opened with
    /// [`StoreConfig::shared_frames`](crate::StoreConfig::shared_frames).
    ///
    /// # Errors
    /// Too little memory for a pool, or more than is free in the budget.
    pub fn new(bytes: u64, budget: &MemoryBudget) -> Result<Arc<SharedFrames>> {
        let count = u32::try_from(bytes / PAGE_BYTES as u64).unwrap_or(u32::MAX);
        if count < super::LEAST_FRAMES {
            let why = format!("{bytes} bytes hold {count} frames; at least {} work", super::LEAST_FRAMES);
            return Err(StoreError::Config(why));
        }
        let memory = budget.reserve("the pool", u64::from(count) * PAGE_BYTES as u64)?;
        Ok(Arc::new(Self::within(count, Some(memory))?))
    }

    /// Frames without a budget.
    #[cfg(test)]
    pub(crate) fn unreserved(count: u32) -> Result<SharedFrames> {
        Self::within(count, None)
    }

    fn within(count: u32, memory: Option<Reservation>) -> Result<SharedFrames> {
        Ok(SharedFrames {
            frames: ManuallyDrop::new(Frames::new(count)?),
            queues: Mutex::new(Queues { replacer: Replacer::new(count), members: Members::default() }),
            full: AtomicBool::new(false),
            regrets: AtomicU64::new(0),
            unvisited: AtomicI64::new(0),
            pinned: AtomicBool::new(false),
            _memory: memory,
        })
    }

    /// Number of frames.
    pub fn count(&self) -> u32 {
        self.frames.count()
    }

    /// How they are used.
    pub fn stats(&self) -> FrameStats {
        let queues = self.queues.lock();
        let held = (0..queues.replacer.used()).filter(|f| self.frames.page(*f).is_some()).count();
        FrameStats {
            frames: self.count(),
            fresh: queues.replacer.fresh_left(),
            held: held as u32,
            stores: queues.members.count(),
        }
    }

    pub(super) fn join(&self, member: Arc<Member>) -> Result<u16> {
        let joined = self.queues.lock().members.join(member);
        joined.ok_or_else(|| StoreError::Config("too many stores share the frames".into()))
    }

    /// Takes up to `want` frames without waiting, in ascending order, and tells the stores whose
    /// pages had to leave.
    pub(super) fn take(&self, want: usize) -> Vec<u32> {
        let mut queues = self.queues.lock();
        let Queues { replacer, members } = &mut *queues;
        let taken = replacer.take(want, &self.frames, members);
        for e in &taken.evicted {
            self.planned_settled(word::rule(e.word));
            let owner = members.get(e.member);
            // SAFETY: the frame was just evicted and is the caller's alone: no device writes it
            // and no reader holds it.
            let tree = header(unsafe { self.frames.bytes(e.frame) }).tree();
            (owner.on_evicted)(tree, owner.counted(e.word));
        }
        if replacer.is_full() {
            self.full.store(true, Relaxed);
        }
        taken.frames
    }

    /// Notes that a page was used for the first time, was evicted, or failed; `rule` are the bits
    /// of the rule that had brought it.
    pub(super) fn planned_settled(&self, rule: u8) {
        if Rule::from_bits(rule).is_some_and(|r| !r.is_guess()) {
            self.unvisited.fetch_sub(1, Relaxed);
        }
    }

    /// Lets a store leave: its frames become free, but for those that are pinned. Returns true when
    /// none is pinned. Its table must not change meanwhile but by unpinning.
    pub(super) fn leave(&self, number: u16) -> bool {
        let mut queues = self.queues.lock();
        let Queues { replacer, members } = &mut *queues;
        replacer.forget(number);
        let mut all_free = true;
        for frame in 0..replacer.used() {
            let Some(owned) = self.frames.page(frame).filter(|p| p.member == number) else { continue };
            // Acquire meets the Release of the last unpin.
            let w = members.word(owned).load(Acquire);
            assert!(word::state(w) == 0 || word::frame(w) == frame, "word and frame name each other");
            self.frames.set_page(frame, None);
            if word::state(w) == word::RESIDENT && word::pins(w) == 0 {
                self.planned_settled(word::rule(w));
                replacer.give_back(frame);
            } else {
                // This frame is never handed out again.
                all_free = false;
            }
        }
        members.leave(number);
        if !all_free {
            self.pinned.store(true, Relaxed);
        }
        all_free
    }
}

impl Drop for SharedFrames {
    fn drop(&mut self) {
        // A PageRef holds no share of the frames (that would cost more than the pin), so memory
        // that was pinned when its store left is never unmapped.
        if !self.pinned.load(Relaxed) {
            // SAFETY: dropped once, here; no pin is left, and new ones need a pool.
            unsafe { ManuallyDrop::drop(&mut self.frames) };
        }
    }
}

impl std::fmt::Debug for SharedFrames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SharedFrames({})", self.count())
    }
}
