//! Waiting for a condition without missing the moment it becomes true.
//!
//! 1. The waiter counts itself as waiting, reads the sequence number, then the condition. It
//!    sleeps only while the number is the one it read.
//! 2. The notifier makes the condition true, then looks for waiters. Only if there are some it
//!    takes the lock and raises the number.
//!
//! Invariant: either the waiter sees the condition, or the notifier sees the waiter. No lock is
//! held while a condition is evaluated.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::time::clock::Clock;
use crate::time::virtual_time::{WaitPatience, WaitingFor};

/// Waiters and notifiers meet here. The only way anything in the engine blocks.
pub struct EventCount {
    clock: Clock,
    id: u64,
    /// The awaited event, in words.
    what: &'static str,
    waiters: AtomicU32,
    sequence: Mutex<u64>,
    raised: Condvar,
}

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

impl EventCount {
    /// An event count whose waiters wait in `clock`'s time.
    pub fn new(clock: &Clock) -> EventCount {
        EventCount::named(clock, "an event")
    }

    /// An event count with words for what is waited for: the report of a [watched](Clock::watch)
    /// clock that stands still has them.
    pub fn named(clock: &Clock, what: &'static str) -> EventCount {
        EventCount {
            clock: clock.clone(),
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            what,
            waiters: AtomicU32::new(0),
            sequence: Mutex::new(0),
            raised: Condvar::new(),
        }
    }

    /// Returns when `condition` is true. The thread that makes it true must call
    /// [`notify_all`](Self::notify_all) afterwards.
    ///
    /// The caller must hold no lock. The condition is evaluated several times, in virtual time
    /// also by other threads (while this one is parked), so it should be short and look only at
    /// shared state.
    pub fn wait_until(&self, condition: impl FnMut() -> bool + Send) {
        self.wait(None, condition);
    }

    /// Returns when `condition` is true, as [`wait_until`](Self::wait_until) does. The condition
    /// may become true without a notice: it is looked at every so often, too.
    pub fn wait_until_looking(&self, every: Duration, condition: impl FnMut() -> bool + Send) {
        self.wait(Some(every), condition);
    }

    /// Waits for work that need not come: for no longer than `most`. A waiter here is no sign
    /// of time that stands still.
    pub fn wait_for_work(&self, most: Duration, mut condition: impl FnMut() -> bool + Send) {
        self.as_waiter(&mut condition, |this, condition| match this.clock.virtual_clock() {
            Some(v) => {
                let until_ns = v.now_ns().saturating_add(most.as_nanos() as u64);
                let awaited = WaitingFor { patience: WaitPatience::Endless, ..this.awaited(v.now_ns()) };
                v.wait(&awaited, Some(until_ns), condition);
            }
            None => this.wait_real(Some(most), Some(Instant::now() + most), condition),
        });
    }

    fn wait(&self, every: Option<Duration>, mut condition: impl FnMut() -> bool + Send) {
        self.as_waiter(&mut condition, |this, condition| match this.clock.virtual_clock() {
            Some(v) => {
                let awaited = this.awaited(v.now_ns());
                let look_ns = || every.map(|every| v.now_ns() + every.as_nanos() as u64);
                while !v.wait(&awaited, look_ns(), condition) && !condition() {}
            }
            None => this.wait_real(every, None, condition),
        });
    }

    /// Counts the caller as waiting while `wait` runs, if the condition is not true yet.
    fn as_waiter<C: FnMut() -> bool + Send>(&self, condition: &mut C, wait: impl FnOnce(&Self, &mut C)) {
        if condition() {
            return;
        }
        let _counted = Counted::new(&self.waiters);
        fence(Ordering::SeqCst);
        wait(self, condition);
    }

    fn awaited(&self, since_ns: u64) -> WaitingFor {
        WaitingFor { event_count: self.id, what: self.what, since_ns, patience: WaitPatience::OfTheClock }
    }

    fn wait_real(
        &self,
        every: Option<Duration>,
        until: Option<Instant>,
        condition: &mut dyn FnMut() -> bool,
    ) {
        loop {
            let seen = *self.sequence.lock();
            if condition() || until.is_some_and(|until| Instant::now() >= until) {
                return;
            }
            let mut sequence = self.sequence.lock();
            while *sequence == seen {
                match every {
                    None => self.raised.wait(&mut sequence),
                    Some(every) if self.raised.wait_for(&mut sequence, every).timed_out() => break,
                    Some(_) => {}
                }
            }
        }
    }

    /// Makes every waiter look at its condition again. Costs one load when there are no
    /// waiters.
    pub fn notify_all(&self) {
        self.notify(|raised| {
            raised.notify_all();
        });
    }

    /// Wakes one waiter. Sufficient when all waiters have the same condition and the woken one
    /// wakes the next. (In virtual time all of them look.)
    pub fn notify_one(&self) {
        self.notify(|raised| {
            raised.notify_one();
        });
    }

    fn notify(&self, raise: impl FnOnce(&Condvar)) {
        fence(Ordering::SeqCst);
        if self.waiters.load(Ordering::Relaxed) == 0 {
            return;
        }
        match self.clock.virtual_clock() {
            Some(v) => v.notify(self.id),
            None => {
                *self.sequence.lock() += 1;
                raise(&self.raised);
            }
        }
    }
}

/// A waiting thread, counted until it goes on; after a panic, too.
struct Counted<'a>(&'a AtomicU32);

impl<'a> Counted<'a> {
    fn new(waiters: &'a AtomicU32) -> Counted<'a> {
        waiters.fetch_add(1, Ordering::SeqCst);
        Counted(waiters)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
