//! Waits of requests: what each is for, whether it goes on, and how long all of them took.
//!
//! A waiter brings a [`Waiter`]: whether it still wants what it waits for, and the sign that
//! says what that is while it waits. So each wait has an end, a place where it is shown, and a
//! meter.

use std::fmt;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicU64};
use std::time::Duration;

use snowmelt_io::Clock;

use crate::sync::longest::Longest;

/// How often a waiter checks whether to go on.
pub(crate) const LOOK: Duration = Duration::from_millis(20);

/// Reasons of a request to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitFor {
    /// The turn of the writers: another thread changes the database.
    Turn,
    /// Room in the journal: a checkpoint writes back.
    Room,
    /// Memory, which others have.
    Memory,
    /// A turn to parse: as many documents as there is memory for are being parsed.
    Parsing,
    /// An endpoint elsewhere.
    Endpoint,
    /// A slot among the requests that run, which others have had meanwhile.
    Slot,
}

impl WaitFor {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            WaitFor::Turn => "the turn of the writers",
            WaitFor::Room => "room in the journal",
            WaitFor::Memory => "memory",
            WaitFor::Parsing => "a turn to parse",
            WaitFor::Endpoint => "an endpoint",
            WaitFor::Slot => "a slot",
        }
    }
}

/// Shows the reason of a wait to the caller that looks.
#[derive(Debug, Default)]
pub struct WaitSign(AtomicU8);

impl WaitSign {
    /// The reason of the wait now; `None` while there is no wait.
    pub fn read(&self) -> Option<WaitFor> {
        match self.0.load(Relaxed) {
            1 => Some(WaitFor::Turn),
            2 => Some(WaitFor::Room),
            3 => Some(WaitFor::Memory),
            4 => Some(WaitFor::Parsing),
            5 => Some(WaitFor::Endpoint),
            6 => Some(WaitFor::Slot),
            _ => None,
        }
    }

    /// Shows `what` until the answer is dropped.
    pub fn show(&self, what: WaitFor) -> ShownWait<'_> {
        self.set(Some(what));
        ShownWait(self)
    }

    /// Shows `what` until the next call.
    pub fn set(&self, what: Option<WaitFor>) {
        let number = match what {
            None => 0,
            Some(WaitFor::Turn) => 1,
            Some(WaitFor::Room) => 2,
            Some(WaitFor::Memory) => 3,
            Some(WaitFor::Parsing) => 4,
            Some(WaitFor::Endpoint) => 5,
            Some(WaitFor::Slot) => 6,
        };
        self.0.store(number, Relaxed);
    }
}

/// See [`WaitSign::show`].
#[derive(Debug)]
pub struct ShownWait<'a>(&'a WaitSign);

impl Drop for ShownWait<'_> {
    fn drop(&mut self) {
        self.0.set(None);
    }
}

/// A caller that may have to wait.
#[derive(Clone, Copy)]
pub struct Waiter<'a> {
    /// Whether it still wants to; asked some tens of times a second.
    pub go_on: &'a (dyn Fn() -> bool + Sync),
    /// Where its waits are shown.
    pub sign: Option<&'a WaitSign>,
}

impl Waiter<'_> {
    /// One that does not give up, shown nowhere.
    pub const PATIENT: Waiter<'static> = Waiter { go_on: &|| true, sign: None };

    pub(crate) fn show(&self, what: WaitFor) -> Option<ShownWait<'_>> {
        self.sign.map(|sign| sign.show(what))
    }
}

impl fmt::Debug for Waiter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Waiter({:?})", self.sign)
    }
}

/// Waits of one kind, all together.
#[derive(Debug, Default)]
pub struct WaitTally {
    now: AtomicU64,
    /// Begin of the present stretch of time in which some thread has always been waiting.
    since_ns: AtomicU64,
    count: AtomicU64,
    ns: AtomicU64,
    longest: Longest,
}

/// Waits above a store, for resources that are not the store's own.
#[derive(Debug, Default)]
pub struct UpperWaits {
    /// For memory of the budget.
    pub memory: WaitTally,
    /// For a turn to parse.
    pub parsing: WaitTally,
    /// For an endpoint elsewhere.
    pub endpoint: WaitTally,
}

/// How often and how long was waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitTimes {
    /// Waiters at this moment.
    pub now: u64,
    /// Waits that are over.
    pub count: u64,
    /// Nanoseconds of them.
    pub ns: u64,
    /// The longest of them, in nanoseconds.
    pub longest_ns: u64,
}

impl WaitTally {
    /// Measures until the answer is dropped.
    pub fn wait<'a>(&'a self, clock: &'a Clock) -> MeteredWait<'a> {
        let since_ns = clock.now_ns();
        if self.now.fetch_add(1, Relaxed) == 0 {
            self.since_ns.store(since_ns, Relaxed);
        }
        MeteredWait { of: self, clock, since_ns }
    }

    /// Since when a thread has been waiting without a pause.
    pub fn since_ns(&self) -> Option<u64> {
        (self.now.load(Relaxed) > 0).then(|| self.since_ns.load(Relaxed))
    }

    /// The numbers so far.
    pub fn read(&self) -> WaitTimes {
        WaitTimes {
            now: self.now.load(Relaxed),
            count: self.count.load(Relaxed),
            ns: self.ns.load(Relaxed),
            longest_ns: self.longest.read(),
        }
    }
}

/// See [`WaitTally::wait`].
pub struct MeteredWait<'a> {
    of: &'a WaitTally,
    clock: &'a Clock,
    since_ns: u64,
}

impl Drop for MeteredWait<'_> {
    fn drop(&mut self) {
        let ns = self.clock.now_ns().saturating_sub(self.since_ns);
        self.of.now.fetch_sub(1, Relaxed);
        self.of.count.fetch_add(1, Relaxed);
        self.of.ns.fetch_add(ns, Relaxed);
        self.of.longest.note(ns);
    }
}
