//! When a query must end before its time: the clock, a flag set from outside, another thread of
//! it that failed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use snowmelt_graph::load::LoadError;
use snowmelt_graph::{GraphError, Interrupt};

use crate::error::QueryError;

/// Limits that end a query.
#[derive(Clone, Default)]
pub(crate) struct Limits {
    pub timeout: Option<Duration>,
    pub deadline: Option<Instant>,
    pub cancel: Option<Arc<AtomicBool>>,
    pub max_rows: Option<u64>,
    /// set when another thread of the query failed, or its result was dropped
    pub stop: Option<Arc<AtomicBool>>,
}

/// Why a query has to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    Cancelled,
    Timeout(Duration),
}

impl Limits {
    /// Those of work that begins now.
    pub fn from_now(timeout: Option<Duration>, cancel: Option<Arc<AtomicBool>>) -> Self {
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        Self { timeout, deadline, cancel, max_rows: None, stop: None }
    }

    /// Asked by every operator for every batch, and by whatever loops longer than some
    /// milliseconds in between.
    pub fn check(&self) -> Result<(), Stop> {
        #[cfg(test)]
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

impl Limits {
    /// The error of work that these have stopped.
    pub fn stopped(&self) -> QueryError {
        self.check().err().map_or(QueryError::Cancelled, QueryError::from)
    }

    /// The error of documents under these.
    pub fn of_load(&self, error: LoadError) -> QueryError {
        match error {
            LoadError::Cancelled => self.stopped(),
            LoadError::Graph(error) => error.into(),
            LoadError::Store(error) => GraphError::from(error).into(),
            other => other.into(),
        }
    }
}

impl From<Stop> for QueryError {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Cancelled => Self::Cancelled,
            Stop::Timeout(limit) => Self::Timeout(limit),
        }
    }
}

impl Interrupt for Limits {
    fn is_set(&self) -> bool {
        self.check().is_err()
    }
}

/// For tests: how often this thread has looked.
#[cfg(test)]
pub(crate) mod looks {
    use std::cell::Cell;

    thread_local!(static LOOKS: Cell<u64> = const { Cell::new(0) });

    pub(super) fn count() {
        LOOKS.set(LOOKS.get() + 1);
    }

    pub(crate) fn so_far() -> u64 {
        LOOKS.get()
    }
}
