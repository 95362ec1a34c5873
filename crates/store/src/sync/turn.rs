//! One writer at a time: transactions and bulk builds take turns.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use snowmelt_io::{Clock, EventCount};

/// How often one who waits looks whether it should.
const LOOK: Duration = Duration::from_millis(20);

/// The turn of the writers.
pub(crate) struct WriterGate {
    taken: AtomicBool,
    given_back: EventCount,
}

impl WriterGate {
    /// A gate whose waiters wait in `clock`'s time.
    pub fn new(clock: &Clock) -> Arc<WriterGate> {
        Arc::new(WriterGate { taken: AtomicBool::new(false), given_back: EventCount::new(clock) })
    }

    /// Waits for the turn. The caller must hold no other lock.
    pub fn enter(self: &Arc<Self>) -> Turn {
        self.given_back.wait_until(|| !self.taken.swap(true, Ordering::Acquire));
        Turn { gate: self.clone() }
    }

    /// The same, as long as `go_on` says so; `None` when it gave up.
    pub fn enter_while(self: &Arc<Self>, go_on: &(dyn Fn() -> bool + Sync)) -> Option<Turn> {
        let mut entered = false;
        self.given_back.wait_until_looking(LOOK, || {
            entered = !self.taken.swap(true, Ordering::Acquire);
            entered || !go_on()
        });
        entered.then(|| Turn { gate: self.clone() })
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
