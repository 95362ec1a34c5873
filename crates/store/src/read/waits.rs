//! How long readers were blocked: by stripe and by the class of the read they waited for.
//!
//! Counted where a reader waits (`access::reader`), so what is resident costs nothing. The times
//! of all stripes and of the journal together are the `wait_ns` of the activity, but for those of
//! what queries put aside (`access::temp_space`), which are in no activity.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use snowmelt_io::Class;

use crate::pool::Coming;

/// Times readers were blocked, and how long in all.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct WaitStats {
    /// Times.
    pub blocked: u64,
    /// Nanoseconds.
    pub wait_ns: u64,
}

impl std::ops::AddAssign for WaitStats {
    fn add_assign(&mut self, other: WaitStats) {
        self.blocked += other.blocked;
        self.wait_ns += other.wait_ns;
    }
}

/// The class of a read that is waited for: that of the rule that began it, also where a priority or
/// a waiting reader made it more or less urgent since.
pub(crate) fn class_of(coming: Coming) -> Class {
    match coming.rule {
        None => Class::Demand,
        Some(rule) if rule.is_guess() => Class::Speculative,
        Some(_) => Class::Planned,
    }
}

#[derive(Debug, Default)]
struct WaitMeter {
    blocked: AtomicU64,
    wait_ns: AtomicU64,
}

impl WaitMeter {
    fn add(&self, ns: u64) {
        self.blocked.fetch_add(1, Relaxed);
        self.wait_ns.fetch_add(ns, Relaxed);
    }

    fn read(&self) -> WaitStats {
        WaitStats { blocked: self.blocked.load(Relaxed), wait_ns: self.wait_ns.load(Relaxed) }
    }

    fn reset(&self) {
        self.blocked.store(0, Relaxed);
        self.wait_ns.store(0, Relaxed);
    }
}

/// The live counters of a store.
#[derive(Debug)]
pub(crate) struct WaitMeters {
    /// By stripe, then in the order of [`Class::ALL`].
    stripes: Vec<[WaitMeter; Class::COUNT]>,
    /// For versions that only the journal has.
    journal: WaitMeter,
}

impl WaitMeters {
    pub fn new(stripes: usize) -> WaitMeters {
        WaitMeters {
            stripes: (0..stripes).map(|_| Default::default()).collect(),
            journal: WaitMeter::default(),
        }
    }

    /// Counts a reader that was blocked for a page of a stripe.
    pub fn of_stripe(&self, stripe: usize, class: Class, ns: u64) {
        self.stripes[stripe][class as usize].add(ns);
    }

    /// Counts a reader that was blocked for a version in the journal.
    pub fn of_journal(&self, ns: u64) {
        self.journal.add(ns);
    }

    /// By stripe and class.
    pub fn read(&self) -> Vec<[WaitStats; Class::COUNT]> {
        self.stripes.iter().map(|classes| classes.each_ref().map(WaitMeter::read)).collect()
    }

    /// For the journal.
    pub fn read_journal(&self) -> WaitStats {
        self.journal.read()
    }

    pub fn reset(&self) {
        self.stripes.iter().flatten().for_each(WaitMeter::reset);
        self.journal.reset();
    }
}
