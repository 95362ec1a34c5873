//! System statistics of a device: the time of a read that a reader waits for, and of a read of
//! many pages.
//!
//! Oracle calls the two SREADTIM and MREADTIM, and its optimiser reckons with them. Here:
//!
//! * *single*: one request that a reader waits for, alone in its device request;
//! * *multi*: a device request of several merged requests, with the number of device requests that
//!   were outstanding meanwhile, since that many share the device.
//!
//! Both count from start to end at the device: the time for which a guess was held before says
//! nothing about the device.
//!
//! Each is a mean over the first reads, and over about the last [`WINDOW`] from then on: a
//! device that becomes slower is noticed after some dozens of reads, and one slow read is not
//! the device.

use serde::Serialize;

use crate::queue::device_request::DeviceRequest;
use crate::queue::request::Class;

/// Reads that a mean reaches back.
const WINDOW: u64 = 64;

/// Times of a device's reads, lately.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct ReadTimes {
    /// Reads of one request that a reader waits for.
    pub single: RecentReads,
    /// Reads of several requests in one.
    pub multi: RecentReads,
}

/// The shortest time of a read of one request: of the last [`WINDOW`] to twice as many.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LeastTime {
    reads: u64,
    now_ns: u64,
    before_ns: u64,
}

impl LeastTime {
    pub(super) fn add(&mut self, ns: u64) {
        if self.reads.is_multiple_of(WINDOW) {
            (self.before_ns, self.now_ns) = (self.now_ns, ns);
        }
        self.reads += 1;
        self.now_ns = self.now_ns.min(ns);
    }

    /// In nanoseconds; 0 when there was none.
    pub(super) fn ns(&self) -> u64 {
        match self.before_ns {
            0 => self.now_ns,
            before => before.min(self.now_ns),
        }
    }
}

/// Reads of one kind, lately.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct RecentReads {
    /// Reads so far.
    pub reads: u64,
    /// Mean time, in nanoseconds.
    pub mean_ns: f64,
    /// Mean bytes that were asked for, gaps not counted.
    pub mean_bytes: f64,
    /// Mean number of device requests outstanding, the read itself included.
    pub mean_depth: f64,
}

impl RecentReads {
    fn add(&mut self, ns: u64, bytes: u64, outstanding: u64) {
        self.reads += 1;
        let weight = 1.0 / self.reads.min(WINDOW) as f64;
        self.mean_ns += (ns as f64 - self.mean_ns) * weight;
        self.mean_bytes += (bytes as f64 - self.mean_bytes) * weight;
        self.mean_depth += (outstanding as f64 - self.mean_depth) * weight;
    }
}

impl ReadTimes {
    /// A device request is over, all of it; `outstanding` were at the device with it. Returns its
    /// time if a reader waited for it alone.
    pub(super) fn ended(&mut self, request: &DeviceRequest, outstanding: u64, now: u64) -> Option<u64> {
        if request.write {
            return None;
        }
        let taken = now.saturating_sub(request.started_ns);
        if let [_] = request.pieces[..] {
            return self.ended_alone(request.class, taken, request.len, outstanding);
        }
        self.multi.add(taken, request.len - request.gap_bytes, outstanding);
        None
    }

    /// A read of one request is over. Returns its time if a reader waited for it.
    pub(super) fn ended_alone(
        &mut self,
        class: Class,
        taken: u64,
        bytes: u64,
        outstanding: u64,
    ) -> Option<u64> {
        (class == Class::Demand).then(|| {
            self.single.add(taken, bytes, outstanding);
            taken
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_follows_the_device_and_not_one_read() {
        let (mut times, mut least) = (ReadTimes::default(), LeastTime::default());
        let mut read = |class, ns, reads: u64| {
            let waited = (0..reads).filter_map(|_| times.ended_alone(class, ns, 8192, 1));
            waited.for_each(|ns| least.add(ns));
            (times.single, least.ns())
        };
        read(Class::Demand, 100, 200);
        let (single, _) = read(Class::Planned, 1_000_000, 1);
        assert_eq!((single.reads, single.mean_ns), (200, 100.0), "nobody waits for a planned read");
        let (single, least_ns) = read(Class::Demand, 1_000, 1);
        assert_eq!(least_ns, 100);
        assert!(single.mean_ns < 120.0, "one slow read is not the device: {}", single.mean_ns);
        let (single, least_ns) = read(Class::Demand, 1_000, 200);
        assert!(single.mean_ns > 950.0, "a slower device is noticed: {}", single.mean_ns);
        assert_eq!(least_ns, 1_000, "what was before two windows is forgotten");
        assert_eq!((single.mean_bytes, single.mean_depth), (8192.0, 1.0));
    }

    #[test]
    fn the_least_time_is_that_of_this_window_and_the_one_before() {
        let mut least = LeastTime::default();
        let mut read = |ns, reads: u64| {
            (0..reads).for_each(|_| least.add(ns));
            least.ns()
        };
        assert_eq!(read(100, 3 * WINDOW), 100);
        assert_eq!(read(1_000, 1), 100, "a new window has begun, the one before counts");
        assert_eq!(read(1_000, 2 * WINDOW - 1), 1_000);
        assert_eq!(read(300, 1), 300);
        assert_eq!(read(1_000, 1), 300, "the least of a window, not the last");
    }
}
