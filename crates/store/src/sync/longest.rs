//! The longest time a lock was held, in the clock's time.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use snowmelt_io::Clock;

/// The longest time something was held.
#[derive(Debug, Default)]
pub(crate) struct Longest(AtomicU64);

impl Longest {
    /// Measures until the answer is dropped.
    pub fn hold<'a>(&'a self, clock: &'a Clock) -> HoldTimer<'a> {
        HoldTimer { of: self, clock, since_ns: clock.now_ns() }
    }
    /// Notes a time.
    pub fn note(&self, ns: u64) {
        self.0.fetch_max(ns, Relaxed);
    }
    /// The longest so far, in nanoseconds.
    pub fn read(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// See [`Longest::hold`].
pub(crate) struct HoldTimer<'a> {
    of: &'a Longest,
    clock: &'a Clock,
    since_ns: u64,
}

impl Drop for HoldTimer<'_> {
    fn drop(&mut self) {
        self.of.note(self.clock.now_ns().saturating_sub(self.since_ns));
    }
}
