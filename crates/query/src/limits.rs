//! Reasons to stop a query early: its deadline, a flag set by the caller, a failure of another of
//! its threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use snowmelt_base::Interrupt;

/// Limits that end a query.
#[derive(Clone, Default)]
pub struct QueryLimits {
    /// The time it may take.
    pub timeout: Option<Duration>,
    /// When that time ends.
    pub deadline: Option<Instant>,
    /// Set by the caller to stop the query.
    pub cancel: Option<Arc<AtomicBool>>,
    /// Most rows of the result.
    pub max_rows: Option<u64>,
    /// Set when another thread of the query failed, or its result was dropped
    pub stop: Option<Arc<AtomicBool>>,
}

/// Why a query has to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stop {
    /// The caller asked, or another thread of the query failed.
    #[error("the query was cancelled")]
    Cancelled,
    /// Its time is over.
    #[error("the query was stopped after its time limit of {0:?}")]
    Timeout(Duration),
}

impl QueryLimits {
    /// Limits of work that begins now.
    pub fn from_now(timeout: Option<Duration>, cancel: Option<Arc<AtomicBool>>) -> Self {
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        Self { timeout, deadline, cancel, max_rows: None, stop: None }
    }

    /// Checks that the query may go on.
    ///
    /// # Errors
    /// The reason to stop.
    ///
    /// Called by every operator for every batch, and by every loop that takes longer than some
    /// milliseconds.
    pub fn check(&self) -> Result<(), Stop> {
        #[cfg(feature = "scarcity")]
        looks::count();
        let set = |flag: &Option<Arc<AtomicBool>>| flag.as_ref().is_some_and(|c| c.load(Ordering::Relaxed));
        if set(&self.cancel) || set(&self.stop) {
            return Err(Stop::Cancelled);
        }
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(Stop::Timeout(self.timeout.unwrap_or_default()));
        }
        Ok(())
    }
}

impl Interrupt for QueryLimits {
    fn is_set(&self) -> bool {
        self.check().is_err()
    }
}

/// For tests: the number of checks that this thread has made.
#[cfg(feature = "scarcity")]
pub mod looks {
    use std::cell::Cell;

    thread_local!(static LOOKS: Cell<u64> = const { Cell::new(0) });

    pub(super) fn count() {
        LOOKS.set(LOOKS.get() + 1);
    }

    /// Checks so far.
    pub fn so_far() -> u64 {
        LOOKS.get()
    }
}
