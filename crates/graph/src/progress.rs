//! Progress of a change, for watchers that may end it.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use crate::interrupt::Interrupt;

/// Phases of a change, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangePhase {
    /// Reading the document or text; counts bytes.
    Reading,
    /// Parsing the document; counts statements.
    Parsing,
    /// Waiting for other changes to end.
    Waiting,
    /// Writing, with the writer's turn; counts statements.
    Writing,
}

impl ChangePhase {
    const ALL: [Self; 4] = [Self::Reading, Self::Parsing, Self::Waiting, Self::Writing];

    /// A name for people and programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reading => "reading",
            Self::Parsing => "parsing",
            Self::Waiting => "waiting for its turn",
            Self::Writing => "writing",
        }
    }
}

/// The phase of a change and its count, shared by the change and its watchers.
#[derive(Debug, Default)]
pub struct ChangeProgress {
    /// place in the list of all phases, from 1; 0 before the first
    phase: AtomicU8,
    done: AtomicU64,
}

impl ChangeProgress {
    /// Begins a phase, with a count of 0.
    pub fn enter(&self, phase: ChangePhase) {
        self.done.store(0, Ordering::Relaxed);
        self.phase.store(phase as u8 + 1, Ordering::Relaxed);
    }

    /// Adds to the count of the phase.
    pub fn add(&self, done: u64) {
        self.done.fetch_add(done, Ordering::Relaxed);
    }

    /// The phase and its count; `None` before the first.
    pub fn now(&self) -> Option<(ChangePhase, u64)> {
        let at = usize::from(self.phase.load(Ordering::Relaxed)).checked_sub(1)?;
        Some((ChangePhase::ALL[at], self.done.load(Ordering::Relaxed)))
    }
}

/// Controls of a running change.
#[derive(Clone, Copy)]
pub struct ChangeWatch<'a> {
    /// Tells whether the change is still wanted.
    pub interrupt: &'a dyn Interrupt,
    /// Receives the progress.
    pub progress: &'a ChangeProgress,
}
