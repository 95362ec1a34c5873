//! Sums over the requests of some time, and the time itself.
//!
//! Time in which nothing happens is not the work of the device: it stalls, the machine was
//! suspended, or a clock has jumped. The time between two events counts up to a bound that follows
//! from the mean time of a request. The rest does not count, and is subtracted from the times of
//! the requests that were outstanding. When the device has really become that slow, the bound grows
//! step by step.

/// The time between two events counts up to this many times the mean time of a request, and at
/// least this much.
const GAP: f64 = 8.0;
const LEAST_GAP_NS: f64 = 50e6;

/// From here on, time that goes backwards means that the clock was set back.
pub(crate) const BACK_NS: u64 = 1_000_000_000;

#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Sums {
    pub(crate) busy_ns: f64,
    /// Idle time, with nothing outstanding: short gaps, in which the programs that use the device
    /// work.
    pub(crate) idle_ns: f64,
    /// The part of the busy time with the full depth outstanding.
    pub(crate) full_ns: f64,
    pub(crate) service_ns: f64,
    pub(crate) requests: f64,
    pub(crate) bytes: f64,
}

impl Sums {
    /// Scales these sums by `keep`, then adds others.
    pub(crate) fn add(&mut self, other: &Sums, keep: f64) {
        self.busy_ns = self.busy_ns * keep + other.busy_ns;
        self.idle_ns = self.idle_ns * keep + other.idle_ns;
        self.full_ns = self.full_ns * keep + other.full_ns;
        self.service_ns = self.service_ns * keep + other.service_ns;
        self.requests = self.requests * keep + other.requests;
        self.bytes = self.bytes * keep + other.bytes;
    }

    /// Busy and idle time.
    pub(crate) fn ns(&self) -> f64 {
        self.busy_ns + self.idle_ns
    }

    pub(crate) fn mean_bytes(&self) -> f64 {
        self.bytes / self.requests
    }

    pub(crate) fn busy_per_request(&self) -> f64 {
        self.busy_ns / self.requests
    }

    pub(crate) fn service_per_request(&self) -> f64 {
        self.service_ns / self.requests
    }
}

/// The time that passes between events.
#[derive(Clone, Default)]
pub(crate) struct Passing {
    now_ns: u64,
    /// The last gap that did not count in full: its end, and the part that did not count.
    stall: (u64, u64),
}

impl Passing {
    /// Moves the time to `now_ns`. Returns how much of it counts, when a request takes `request_ns`
    /// in the mean.
    pub(crate) fn to(&mut self, now_ns: u64, request_ns: f64) -> f64 {
        if now_ns < self.now_ns {
            // A little: the clock was read before another event was.
            if self.now_ns - now_ns > BACK_NS {
                *self = Passing { now_ns, stall: (0, 0) };
            }
            return 0.0;
        }
        let passed_ns = now_ns - self.now_ns;
        self.now_ns = now_ns;
        let most_ns = (GAP * request_ns).max(LEAST_GAP_NS);
        if passed_ns as f64 <= most_ns {
            return passed_ns as f64;
        }
        self.stall = (now_ns, passed_ns - most_ns as u64);
        most_ns
    }

    /// The time of a request that ends now, as far as it counts; `None` where it is impossible.
    pub(crate) fn taken(&self, taken_ns: u64) -> Option<f64> {
        let (ended_ns, stalled_ns) = self.stall;
        let is_stalled = self.now_ns.saturating_sub(taken_ns) < ended_ns.saturating_sub(stalled_ns);
        let taken_ns = if is_stalled { taken_ns.saturating_sub(stalled_ns) } else { taken_ns };
        (taken_ns > 0).then_some(taken_ns as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_stall_is_no_work() {
        let mut passing = Passing::default();
        passing.to(5 * MS, 1e6);
        assert_eq!(passing.to(6 * MS, 1e6), 1e6);
        assert_eq!(passing.to(10_006 * MS, 1e6), 50e6, "of ten seconds");
        assert_eq!(passing.taken(10_001 * MS), Some(51e6), "it was outstanding");
        assert_eq!(passing.to(10_007 * MS, 1e6), 1e6);
        assert_eq!(passing.taken(MS), Some(1e6), "it came later");
        assert_eq!(passing.to(20_007 * MS, 2e9), 10e9, "requests take seconds");
    }

    #[test]
    fn a_clock_that_is_set_back_goes_on() {
        let mut passing = Passing::default();
        passing.to(100_000 * MS, 1e6);
        assert_eq!(passing.to(99_999 * MS, 1e6), 0.0);
        assert_eq!(passing.to(100_001 * MS, 1e6), 1e6, "two threads have read it");
        assert_eq!(passing.to(50_000 * MS, 1e6), 0.0);
        assert_eq!(passing.taken(0), None, "it began later");
        assert_eq!(passing.to(50_001 * MS, 1e6), 1e6);
    }
}
