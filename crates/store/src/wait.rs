//! Waiting, as `snowmelt_io` will provide it: this file goes when it does.

use parking_lot::{Condvar, Mutex};
use std::time::Instant;

/// Real time.
#[derive(Clone, Debug)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    /// Real time.
    pub fn real() -> Self {
        Clock { start: Instant::now() }
    }
    /// Nanoseconds since the clock was made.
    pub fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }
    /// Sleeps.
    pub fn sleep_ns(&self, ns: u64) {
        std::thread::sleep(std::time::Duration::from_nanos(ns));
    }
}

/// A place to wait for a condition.
#[derive(Debug, Default)]
pub struct EventCount {
    lock: Mutex<()>,
    condvar: Condvar,
}

impl EventCount {
    /// Waits in the time of `_clock`.
    pub fn new(_clock: &Clock) -> Self {
        Self::default()
    }
    /// Waits until the condition holds.
    pub fn wait_until(&self, mut condition: impl FnMut() -> bool) {
        let mut guard = self.lock.lock();
        while !condition() {
            self.condvar.wait(&mut guard);
        }
    }
    /// Wakes everybody to look again.
    pub fn notify_all(&self) {
        drop(self.lock.lock());
        self.condvar.notify_all();
    }
}
