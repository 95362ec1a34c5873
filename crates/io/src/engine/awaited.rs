//! Requests whose submitter waits for them, in batches. They go through the schedule like all
//! others; their completions do not go to the sink.
//!
//! A batch has a number, which the tags of its requests carry. So any number of batches are under
//! way at once, and an urgent one does not wait for another to end.

use parking_lot::Mutex;

use crate::error::IoError;
use crate::time::clock::Clock;
use crate::time::event_count::EventCount;

/// Mark of the tags of such requests; no other request may have it. The rest is the batch.
pub(crate) const AWAITED: u64 = 1 << 63;

/// The batches that are awaited.
pub(crate) struct Awaited {
    batches: Mutex<Batches>,
    over: EventCount,
}

#[derive(Default)]
struct Batches {
    list: Vec<Batch>,
    /// Numbers that may be given again.
    free: Vec<usize>,
}

#[derive(Default)]
struct Batch {
    left: usize,
    failed: Option<IoError>,
}

impl Awaited {
    pub(crate) fn new(clock: &Clock) -> Awaited {
        Awaited { batches: Mutex::default(), over: EventCount::new(clock) }
    }

    /// A batch of so many requests; the tag that all of them must have.
    pub(crate) fn begin(&self, requests: usize) -> u64 {
        let mut batches = self.batches.lock();
        let number = match batches.free.pop() {
            Some(number) => number,
            None => {
                batches.list.push(Batch::default());
                batches.list.len() - 1
            }
        };
        let before = std::mem::replace(&mut batches.list[number], Batch { left: requests, failed: None });
        assert_eq!(before.left, 0, "a batch that is under way keeps its number");
        AWAITED | number as u64
    }

    /// Notes that a request of a batch is over.
    pub(crate) fn complete(&self, tag: u64, result: Result<(), IoError>) {
        let mut batches = self.batches.lock();
        let batch = &mut batches.list[number(tag)];
        batch.left = batch.left.checked_sub(1).expect("each request is over once");
        if let Err(e) = result {
            batch.failed.get_or_insert(e);
        }
        let last = batch.left == 0;
        drop(batches);
        if last {
            self.over.notify_all();
        }
    }

    /// Returns when all of a batch are over, with the first failure. The batch is gone then.
    pub(crate) fn wait(&self, tag: u64) -> Result<(), IoError> {
        self.over.wait_until(|| self.batches.lock().list[number(tag)].left == 0);
        let mut batches = self.batches.lock();
        let failed = batches.list[number(tag)].failed.take();
        batches.free.push(number(tag));
        failed.map_or(Ok(()), Err)
    }
}

/// The batch of a tag.
fn number(tag: u64) -> usize {
    debug_assert!(tag & AWAITED != 0, "the tag of a request that is awaited");
    (tag & !AWAITED) as usize
}
