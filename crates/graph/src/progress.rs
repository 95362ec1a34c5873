//! How far a change is, for those who watch it and may end it.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use crate::interrupt::Interrupt;

/// Phases of a change, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangePhase {
    /// Its document or text comes in; done are bytes.
    Reading,
    /// Its document is parsed; done are statements.
    Parsing,
    /// Others change the database, and it waits until they are done.
    Waiting,
    /// It has the writer's turn; done are statements.
    Writing,
}

impl ChangePhase {
    const ALL: [Self; 4] = [Self::Reading, Self::Parsing, Self::Waiting, Self::Writing];

    /// For people and programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reading => "reading",
            Self::Parsing => "parsing",
            Self::Waiting => "waiting for its turn",
            Self::Writing => "writing",
        }
    }
}

/// The phase of a change, and what is done of it. Shared by the change and its watchers.
#[derive(Debug, Default)]
pub struct ChangeProgress {
    /// place in the list of all phases, from 1; 0 before the first
    phase: AtomicU8,
    done: AtomicU64,
}

impl ChangeProgress {
    /// A phase begins; nothing of it is done.
    pub fn enter(&self, phase: ChangePhase) {
        self.done.store(0, Ordering::Relaxed);
        self.phase.store(phase as u8 + 1, Ordering::Relaxed);
    }

    /// So much more of the phase is done.
    pub fn add(&self, done: u64) {
        self.done.fetch_add(done, Ordering::Relaxed);
    }

    /// The phase, and what is done of it; none before the first.
    pub fn now(&self) -> Option<(ChangePhase, u64)> {
        let at = usize::from(self.phase.load(Ordering::Relaxed)).checked_sub(1)?;
        Some((ChangePhase::ALL[at], self.done.load(Ordering::Relaxed)))
    }
}

/// How a change that is under way is watched.
#[derive(Clone, Copy)]
pub struct ChangeWatch<'a> {
    /// Whether it is still wanted.
    pub interrupt: &'a dyn Interrupt,
    /// Told how far it is.
    pub progress: &'a ChangeProgress,
}
