//! A bell that one thread waits for between its rounds of work.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use snowmelt_io::{Clock, EventCount};

/// See the head of the file.
pub(crate) struct Bell {
    rung: AtomicBool,
    event: EventCount,
}

impl Bell {
    /// One that has not been rung.
    pub fn new(clock: &Clock) -> Bell {
        Bell { rung: AtomicBool::new(false), event: EventCount::named(clock, "work") }
    }

    /// Ends the wait under way, or else the next one.
    pub fn ring(&self) {
        if !self.rung.swap(true, Ordering::AcqRel) {
            self.event.notify_all();
        }
    }

    /// Waits until it is rung, for no longer than `most`.
    pub fn wait(&self, most: Duration) {
        self.event.wait_for_work(most, || self.rung.load(Ordering::Acquire));
        self.rung.store(false, Ordering::Release);
    }
}
