//! Joins that give far more rows than were expected: the query begins anew, with a plan that knows.
//!
//! After *mid-query re-optimisation* (Kabra, DeWitt, SIGMOD 1998), in its simplest form: nothing of
//! what was done is kept. That is safe until the query has given its first rows, and if it asks no
//! endpoint and calls no function twice that may tell the difference.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use super::Result;
use crate::error::QueryError;
use crate::plan::{JoinKey, Plan, Surprise};

/// As many times more rows than expected, and at least so many, are a surprise.
const FAR_MORE: f64 = 100.0;
const LEAST_ROWS: f64 = 100_000.0;

/// Operators of a plan that is watched: of thousands, each would take more of the stack.
const MOST_OPERATORS: usize = 256;

const ON: u8 = 0;
const OFF: u8 = 1;
const GIVEN_UP: u8 = 2;

/// A join in a plan, by the operator that gives its rows.
pub(super) struct WatchedJoin {
    pub id: usize,
    pub join: JoinKey,
    /// rows
    pub expected: f64,
}

/// The joins of a running query, all its threads together.
pub(crate) struct Watch {
    state: AtomicU8,
    /// rows so far, by operator
    rows: Box<[AtomicU64]>,
    /// rows beyond those expected that are a surprise, if not [`FAR_MORE`]
    beyond: Option<u64>,
    surprise: OnceLock<Surprise>,
}

impl Watch {
    /// Of a plan that may be given up, or is run in any case. With so many rows beyond those
    /// expected, if not with far more, it is.
    pub fn new(plan: &Plan, is_on: bool, beyond: Option<u64>) -> Self {
        let is_on = is_on && !plan.learned.is_full() && plan.nodes <= MOST_OPERATORS;
        let operators = if is_on { plan.nodes } else { 0 };
        Self {
            state: AtomicU8::new(if is_on { ON } else { OFF }),
            rows: (0..operators).map(|_| AtomicU64::new(0)).collect(),
            beyond,
            surprise: OnceLock::new(),
        }
    }

    pub fn is_off(&self) -> bool {
        self.state.load(Ordering::Relaxed) == OFF
    }

    /// From here on the plan is run to its end; or it was given up, for this reason.
    pub fn settle(&self) -> Option<Surprise> {
        match self.state.compare_exchange(ON, OFF, Ordering::AcqRel, Ordering::Acquire) {
            Err(GIVEN_UP) => self.surprise.get().copied(),
            _ => None,
        }
    }

    /// Counts rows of a join.
    ///
    /// # Errors
    /// The plan is given up.
    pub(super) fn count(&self, of: &WatchedJoin, rows: usize) -> Result<()> {
        let rows = rows as u64 + self.rows[of.id].fetch_add(rows as u64, Ordering::Relaxed);
        let usual = (FAR_MORE * of.expected).max(LEAST_ROWS);
        if (rows as f64) <= self.beyond.map_or(usual, |beyond| of.expected + beyond as f64) {
            return Ok(());
        }
        let surprise = Surprise { join: of.join, rows: rows as f64 };
        // Another thread may have been as surprised: one of both is enough.
        let _ = self.surprise.set(surprise);
        match self.state.compare_exchange(ON, GIVEN_UP, Ordering::AcqRel, Ordering::Acquire) {
            // The caller of the query does not see it.
            Ok(_) | Err(GIVEN_UP) => Err(QueryError::Cancelled),
            Err(_) => Ok(()),
        }
    }
}
