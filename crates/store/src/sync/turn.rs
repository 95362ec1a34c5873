//! One writer at a time: transactions and bulk builds take turns.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use snowmelt_io::{Clock, EventCount};

use crate::sync::waits::{LOOK, WaitFor, WaitTally, WaitTimes, Waiter};

/// The turn of the writers.
pub(crate) struct WriterGate {
    taken: AtomicBool,
    given_back: EventCount,
    waits: WaitTally,
    clock: Clock,
}

impl WriterGate {
    /// A gate whose waiters wait in `clock`'s time.
    pub fn new(clock: &Clock) -> Arc<WriterGate> {
        Arc::new(WriterGate {
            taken: AtomicBool::new(false),
            given_back: EventCount::named(clock, WaitFor::Turn.name()),
            waits: WaitTally::default(),
            clock: clock.clone(),
        })
    }

    /// Waits for the turn, as long as the waiter wants to; `None` when it gave up. The caller
    /// must hold no other lock.
    pub fn enter(self: &Arc<Self>, waiter: &Waiter<'_>) -> Option<Turn> {
        if !self.taken.swap(true, Ordering::Acquire) {
            return Some(Turn { gate: self.clone() });
        }
        let (_shown, _metered) = (waiter.show(WaitFor::Turn), self.waits.wait(&self.clock));
        let mut entered = false;
        self.given_back.wait_until_looking(LOOK, || {
            entered = !self.taken.swap(true, Ordering::Acquire);
            entered || !(waiter.go_on)()
        });
        entered.then(|| Turn { gate: self.clone() })
    }

    /// How long writers waited.
    pub fn waits(&self) -> WaitTimes {
        self.waits.read()
    }
}

/// The turn of a writer; given back when dropped.
pub(crate) struct Turn {
    gate: Arc<WriterGate>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        let was_taken = self.gate.taken.swap(false, Ordering::Release);
        assert!(was_taken, "a turn is given back once");
        self.gate.given_back.notify_all();
    }
}

impl std::fmt::Debug for Turn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Turn")
    }
}
