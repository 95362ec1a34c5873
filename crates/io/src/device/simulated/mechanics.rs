//! The mechanics of a simulated device: when each request is over.
//!
//! They compute on a time line of their own: an operation starts when the mechanism is free or
//! the request arrives, whichever is later, not when its completion is asked for. So the same
//! mechanics serve virtual time, where completions are events, and real time, where they are
//! delivered when due.

pub(crate) mod build;
pub(crate) mod caps;
#[cfg(test)]
mod caps_tests;
pub(crate) mod disk;
pub(crate) mod raid0;
pub(crate) mod random_reads;
pub(crate) mod steady;
pub(crate) mod troubled;
pub(crate) mod volume;
pub(crate) mod write_cache;

use crate::device::timed::Transfer;

/// A device's mechanics.
pub(crate) trait Mechanics: Send {
    /// The device gets a request at `now_ns` (never before the last arrival).
    fn arrive(&mut self, id: usize, transfer: Transfer, now_ns: u64);

    /// Number of requests that the drives below get for one: one, unless they are several.
    fn parts(&self, _transfer: &Transfer) -> u64 {
        1
    }

    /// When something happens next, as far as is known: a request is over, or something inside.
    fn next_due(&self) -> Option<u64>;

    /// Takes a request that is over by `now_ns`: its id and when it was over.
    fn pop_due(&mut self, now_ns: u64) -> Option<(usize, u64)>;

    /// As after a long rest: nothing buffered for reading, all budgets full.
    fn rest(&mut self);

    /// Its burst credits are gone at `now_ns`; nothing where there are none.
    fn spend_credits(&mut self, _now_ns: u64) {}

    /// Share of the burst credits left at `now_ns`; none where there are none.
    fn credits(&self, _now_ns: u64) -> Option<f64> {
        None
    }
}
