//! Turns of queries and of changes: so many run at the same time, others wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The slots of one kind of work.
pub struct Slots {
    free: Arc<Semaphore>,
    all: usize,
    /// those that had to wait, and how long all together
    waited: AtomicU64,
    waited_ns: AtomicU64,
}

impl Slots {
    pub fn new(all: usize) -> Self {
        Self {
            free: Arc::new(Semaphore::new(all)),
            all,
            waited: AtomicU64::new(0),
            waited_ns: AtomicU64::new(0),
        }
    }

    /// How many there are.
    pub fn all(&self) -> usize {
        self.all
    }

    /// A slot, if one comes free in time.
    pub async fn take(&self, wait: Duration) -> Option<Slot> {
        let of = Arc::clone(&self.free);
        if let Ok(held) = Arc::clone(&of).try_acquire_owned() {
            return Some(Slot { held: Some(held), of });
        }
        let begun = Instant::now();
        let taken = tokio::time::timeout(wait, acquire(&of)).await;
        self.waited.fetch_add(1, Ordering::Relaxed);
        self.waited_ns.fetch_add(begun.elapsed().as_nanos() as u64, Ordering::Relaxed);
        Some(Slot { held: Some(taken.ok()?), of })
    }

    /// How many have waited, in vain or not, and how long all together.
    pub fn waited(&self) -> (u64, Duration) {
        let time = Duration::from_nanos(self.waited_ns.load(Ordering::Relaxed));
        (self.waited.load(Ordering::Relaxed), time)
    }

    #[cfg(test)]
    pub fn try_take(&self) -> Option<Slot> {
        let held = Arc::clone(&self.free).try_acquire_owned().ok()?;
        Some(Slot { held: Some(held), of: Arc::clone(&self.free) })
    }
}

/// A slot; others get it when this is dropped, and while it is released.
pub struct Slot {
    held: Option<OwnedSemaphorePermit>,
    of: Arc<Semaphore>,
}

impl Slot {
    /// Lets others have it.
    pub fn release(&mut self) {
        self.held = None;
    }

    /// Waits until one is free again.
    pub async fn take_again(&mut self) {
        if self.held.is_none() {
            self.held = Some(acquire(&self.of).await);
        }
    }
}

async fn acquire(of: &Arc<Semaphore>) -> OwnedSemaphorePermit {
    Arc::clone(of).acquire_owned().await.expect("the semaphore is never closed")
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
}
