//! Long writes beside commits: the extents of a load or a compaction, and what queries put aside.
//!
//! While transactions commit, such a write goes out in pieces that take a part of a commit
//! ([`WriteCost`]), and those of all threads take turns that leave the device most of its time. A
//! single commit is no traffic: a load ends with one.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use snowmelt_io::{Clock, Haste, WriteCost};

/// Two commits within this time are traffic.
const TRAFFIC_NS: u64 = 1_000_000_000;
/// No commit for so long is the end of the traffic.
const QUIET_NS: u64 = 3_000_000_000;
/// Longest time that a piece is reckoned to take: beliefs about a device may be wrong, and only
/// writing corrects them.
const LONGEST_NS: u64 = 1_000_000_000;

/// When the last two commits were.
pub(crate) struct Traffic {
    /// The opening counts as one: nothing is known of what comes.
    last_ns: AtomicU64,
    before_ns: AtomicU64,
}

impl Traffic {
    /// None until now.
    pub fn new(now_ns: u64) -> Traffic {
        Traffic { last_ns: AtomicU64::new(now_ns), before_ns: AtomicU64::new(0) }
    }

    /// A commit now.
    pub fn note(&self, now_ns: u64) {
        self.before_ns.store(self.last_ns.swap(now_ns, Relaxed), Relaxed);
    }

    /// True while transactions commit.
    pub fn is_on(&self, now_ns: u64) -> bool {
        let before_ns = self.before_ns.load(Relaxed);
        before_ns > 0 && now_ns.saturating_sub(before_ns) < TRAFFIC_NS
    }

    /// True after a while without commits.
    pub fn is_over(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.last_ns.load(Relaxed)) >= QUIET_NS
    }
}

/// Turns at one device.
#[derive(Default)]
pub(crate) struct Turns {
    /// When the next one begins.
    next_ns: AtomicU64,
}

impl Turns {
    /// Waits for a turn, writes a piece that is to take `device_ns` by `write`, and puts the next
    /// turn off for as long as the device is to be left alone.
    pub fn take<R>(&self, clock: &Clock, device_ns: u64, write: impl FnOnce() -> R) -> R {
        let device_ns = device_ns.min(LONGEST_NS);
        let pause_ns = WriteCost::pause_ns(Haste::LEISURE, device_ns, device_ns);
        let now_ns = clock.now_ns();
        let turn_ns = |next_ns: u64| next_ns.max(now_ns);
        let next = |next_ns| Some(turn_ns(next_ns) + device_ns + pause_ns);
        let before = self.next_ns.fetch_update(Relaxed, Relaxed, next).expect("there is always a next turn");
        clock.sleep_ns(turn_ns(before) - now_ns);
        let begun_ns = clock.now_ns();
        let done = write();
        let taken_ns = clock.now_ns().saturating_sub(begun_ns);
        let more_ns = (taken_ns + WriteCost::pause_ns(Haste::LEISURE, device_ns, taken_ns))
            .saturating_sub(device_ns + pause_ns);
        self.next_ns.fetch_add(more_ns, Relaxed);
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_commit_is_no_traffic() {
        let traffic = Traffic::new(0);
        traffic.note(5 * TRAFFIC_NS);
        assert!(!traffic.is_on(5 * TRAFFIC_NS + 1));
        traffic.note(6 * TRAFFIC_NS);
        assert!(!traffic.is_on(6 * TRAFFIC_NS + 1));
        traffic.note(6 * TRAFFIC_NS + 10);
        assert!(traffic.is_on(7 * TRAFFIC_NS - 1) && !traffic.is_on(7 * TRAFFIC_NS));
        let last_ns = 6 * TRAFFIC_NS + 10;
        assert!(!traffic.is_over(last_ns + QUIET_NS - 1) && traffic.is_over(last_ns + QUIET_NS));
    }

    #[test]
    fn turns_leave_the_device_most_of_its_time() {
        let (clock, turns) = (Clock::virtual_time(2), Turns::default());
        let _in_time = clock.enter();
        let begun_ns = clock.now_ns();
        for taken_ns in [100, 400, 100, 100] {
            turns.take(&clock, 200, || clock.sleep_ns(taken_ns));
        }
        turns.take(&clock, 200, || ());
        assert_eq!(clock.now_ns() - begun_ns, (3 * 200 + 400) * 5 / 2);
    }

    #[test]
    fn a_belief_that_is_far_too_dear_puts_no_turn_off_for_long() {
        let (clock, turns) = (Clock::virtual_time(2), Turns::default());
        let _in_time = clock.enter();
        let begun_ns = clock.now_ns();
        for device_ns in [1 << 50, u64::MAX, 1 << 50] {
            turns.take(&clock, device_ns, || clock.sleep_ns(1_000_000));
        }
        assert!(clock.now_ns() - begun_ns <= 3 * 2 * LONGEST_NS);
    }
}
