//! Turns of queries and of changes: so many run at the same time, others wait.

use std::fmt;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use snowmelt_sparql::QuerySlot;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::running::LOOK;

/// The slots of one kind of work.
pub struct Slots {
    queue: Arc<SlotQueue>,
    all: usize,
}

/// The slots that are free, and the requests that wait for one, in the order of their coming.
struct SlotQueue {
    free: Arc<Semaphore>,
    /// those that had to wait, and how long all together
    waited: AtomicU64,
    waited_ns: AtomicU64,
}

impl Slots {
    pub fn new(all: usize) -> Self {
        let free = Arc::new(Semaphore::new(all));
        let queue = SlotQueue { free, waited: AtomicU64::new(0), waited_ns: AtomicU64::new(0) };
        Self { queue: Arc::new(queue), all }
    }

    /// How many there are.
    pub fn all(&self) -> usize {
        self.all
    }

    /// A slot, if one comes free in time.
    pub async fn take(&self, wait: Duration) -> Option<Slot> {
        let held = tokio::time::timeout(wait, self.queue.take()).await.ok()?;
        Some(Slot { held: Mutex::new(Some(held)), of: Arc::clone(&self.queue) })
    }

    /// How many have waited, in vain or not, and how long all together.
    pub fn waited(&self) -> (u64, Duration) {
        let time = Duration::from_nanos(self.queue.waited_ns.load(Ordering::Relaxed));
        (self.queue.waited.load(Ordering::Relaxed), time)
    }

    #[cfg(test)]
    pub fn try_take(&self) -> Option<Slot> {
        let held = Arc::clone(&self.queue.free).try_acquire_owned().ok()?;
        Some(Slot { held: Mutex::new(Some(held)), of: Arc::clone(&self.queue) })
    }
}

impl SlotQueue {
    async fn take(&self) -> OwnedSemaphorePermit {
        if let Ok(held) = Arc::clone(&self.free).try_acquire_owned() {
            return held;
        }
        let _counted = CountedWait { of: self, begun: Instant::now() };
        Arc::clone(&self.free).acquire_owned().await.expect("the semaphore is never closed")
    }
}

/// A wait that is counted when it ends, or is given up.
struct CountedWait<'a> {
    of: &'a SlotQueue,
    begun: Instant,
}

impl Drop for CountedWait<'_> {
    fn drop(&mut self) {
        self.of.waited.fetch_add(1, Ordering::Relaxed);
        self.of.waited_ns.fetch_add(self.begun.elapsed().as_nanos() as u64, Ordering::Relaxed);
    }
}

/// A slot; others get it when this is dropped, and while it is released.
pub struct Slot {
    held: Mutex<Option<OwnedSemaphorePermit>>,
    of: Arc<SlotQueue>,
}

impl Slot {
    /// Lets others have it.
    pub fn release(&self) {
        *self.held.lock().expect("no holder panics") = None;
    }

    /// Waits until one is free again.
    pub async fn take_again(&self) {
        if self.held.lock().expect("no holder panics").is_none() {
            let held = self.of.take().await;
            *self.held.lock().expect("no holder panics") = Some(held);
        }
    }
}

/// The slot of a request that waits for other machines on a thread of its own. It needs no runtime,
/// which may be about to end.
#[derive(Clone)]
pub struct LentSlot(pub Arc<Slot>);

/// Wakes a thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl fmt::Debug for LentSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LentSlot")
    }
}

impl QuerySlot for LentSlot {
    fn lend(&self) {
        self.0.release();
    }

    fn take_again(&self, go_on: &dyn Fn() -> bool) -> bool {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut taking = pin!(self.0.take_again());
        while taking.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
            thread::park_timeout(LOOK);
            if !go_on() {
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn those_that_wait_are_counted() {
        let slots = Slots::new(1);
        let wait = Duration::from_millis(20);
        let first = slots.take(wait).await.expect("it is free");
        assert_eq!(slots.waited(), (0, Duration::ZERO));
        assert!(slots.take(wait).await.is_none());
        let (waited, time) = slots.waited();
        assert!(waited == 1 && time >= wait, "{waited}, {time:?}");
        drop(first);
        assert!(slots.take(wait).await.is_some());
        assert_eq!(slots.waited().0, 1);
    }

    /// Without a runtime: one that gives up leaves its place, the others come in their order.
    #[test]
    fn a_lent_slot_is_taken_again_in_order() {
        let slots = Slots::new(1);
        let lent: Vec<LentSlot> = (0..3)
            .map(|_| {
                let slot = LentSlot(Arc::new(slots.try_take().expect("it is free")));
                slot.lend();
                slot
            })
            .collect();
        let holder = slots.try_take().unwrap();
        let order = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for (n, slot) in lent.iter().enumerate() {
                let (order, slots) = (&order, &slots);
                scope.spawn(move || {
                    let until = Instant::now() + Duration::from_millis(if n == 1 { 100 } else { 60_000 });
                    let has_slot = slot.take_again(&|| Instant::now() < until);
                    order.lock().unwrap().push((n, has_slot));
                    slot.lend();
                    assert!(slots.all() == 1);
                });
                thread::sleep(Duration::from_millis(50));
            }
            thread::sleep(Duration::from_millis(300));
            drop(holder);
        });
        assert_eq!(order.into_inner().unwrap(), [(1, false), (0, true), (2, true)]);
        assert_eq!(slots.waited().0, 3);
    }
}
