//! Settings of the patience with a store.

use std::time::Duration;

/// How long, how often and how much at once a store is asked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Patience {
    /// A request is given up after this time and that of its bytes from its first attempt on; one
    /// that still waits for its turn, when the store has given no good answer for that long.
    pub deadline: Duration,
    /// An attempt is given up, and counts as failed, after this time and that of its bytes.
    pub attempt: Duration,
    /// Bytes per second that are waited for; above 0. The length of an object that is read as a
    /// whole is not known, and counts as 0: large ones are read by ranges.
    pub slowest_bytes_per_s: u64,
    /// The longest pause after the first failure. It doubles with each further one.
    pub first_pause: Duration,
    /// The longest pause.
    pub longest_pause: Duration,
    /// Most attempts outstanding; above 0.
    pub width: usize,
    /// The part of all gets, of 1, for which a second attempt may be made because the first is
    /// slow.
    pub hedged: f64,
    /// Seed of the pauses.
    pub seed: u64,
}

impl Default for Patience {
    fn default() -> Self {
        Patience {
            deadline: Duration::from_secs(30),
            attempt: Duration::from_secs(10),
            slowest_bytes_per_s: 1_000_000,
            first_pause: Duration::from_millis(100),
            longest_pause: Duration::from_secs(5),
            width: 64,
            hedged: 0.05,
            seed: 0,
        }
    }
}

impl Patience {
    /// # Panics
    /// When a setting is out of its bounds.
    pub(super) fn check(&self) {
        assert!(self.width > 0, "at least one request is outstanding");
        assert!(self.slowest_bytes_per_s > 0, "bytes come at some speed");
        assert!((0.0..=1.0).contains(&self.hedged), "a part of all gets is hedged");
        assert!(!self.deadline.is_zero() && !self.attempt.is_zero(), "answers take time");
    }

    /// Time after which an attempt that moves `bytes` is given up, in nanoseconds.
    pub(super) fn attempt_ns(&self, bytes: u64) -> u64 {
        nanos(self.attempt).saturating_add(self.moving_ns(bytes))
    }

    /// Time after which a request that moves `bytes` is given up, in nanoseconds.
    pub(super) fn deadline_ns(&self, bytes: u64) -> u64 {
        nanos(self.deadline).saturating_add(self.moving_ns(bytes))
    }

    fn moving_ns(&self, bytes: u64) -> u64 {
        let ns = u128::from(bytes) * 1_000_000_000 / u128::from(self.slowest_bytes_per_s);
        u64::try_from(ns).unwrap_or(u64::MAX)
    }

    /// The longest pause after `failures`, in nanoseconds.
    pub(super) fn pause_ns(&self, failures: u32) -> u64 {
        let doubled = nanos(self.first_pause).saturating_mul(1 << failures.saturating_sub(1).min(32));
        doubled.min(nanos(self.longest_pause))
    }
}

fn nanos(of: Duration) -> u64 {
    u64::try_from(of.as_nanos()).unwrap_or(u64::MAX)
}
