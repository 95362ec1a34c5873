//! Writes whose submitter waits for them. They go through the schedule like all others; their
//! completions do not go to the sink.

use parking_lot::Mutex;

use crate::error::IoError;
use crate::time::clock::Clock;
use crate::time::event_count::EventCount;

/// Tag of such writes; no other request may have it.
pub(crate) const AWAITED: u64 = 1 << 63;

/// The batch of writes that is awaited.
pub(crate) struct Awaited {
    /// One batch at a time.
    pub(crate) turn: Mutex<()>,
    batch: Mutex<Batch>,
    over: EventCount,
}

#[derive(Default)]
struct Batch {
    left: usize,
    failed: Option<IoError>,
}

impl Awaited {
    pub(crate) fn new(clock: &Clock) -> Awaited {
        Awaited { turn: Mutex::new(()), batch: Mutex::default(), over: EventCount::new(clock) }
    }

    /// So many writes will be submitted. The caller has the turn.
    pub(crate) fn begin(&self, writes: usize) {
        *self.batch.lock() = Batch { left: writes, failed: None };
    }

    /// One of them is over.
    pub(crate) fn complete(&self, result: Result<(), IoError>) {
        let mut batch = self.batch.lock();
        batch.left -= 1;
        if let Err(e) = result {
            batch.failed.get_or_insert(e);
        }
        let last = batch.left == 0;
        drop(batch);
        if last {
            self.over.notify_all();
        }
    }

    /// Returns when all are over.
    pub(crate) fn wait(&self) -> Result<(), IoError> {
        self.over.wait_until(|| self.batch.lock().left == 0);
        self.batch.lock().failed.take().map_or(Ok(()), Err)
    }
}
