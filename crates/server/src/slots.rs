//! Turns of queries and of changes: so many run at the same time, others wait.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The slots of one kind of work.
pub struct Slots {
    free: Arc<Semaphore>,
    all: usize,
}

impl Slots {
    pub fn new(all: usize) -> Self {
        Self { free: Arc::new(Semaphore::new(all)), all }
    }

    /// How many there are.
    pub fn all(&self) -> usize {
        self.all
    }

    /// A slot, if one comes free in time.
    pub async fn take(&self, wait: Duration) -> Option<Slot> {
        let taken = tokio::time::timeout(wait, acquire(&self.free)).await.ok()?;
        Some(Slot { held: Some(taken), of: Arc::clone(&self.free) })
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
