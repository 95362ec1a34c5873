//! The number of running queries: a query forks only to cores that no other query uses.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts a query among the active ones while it lives.
pub struct Active {
    count: Arc<AtomicUsize>,
    /// queries that were active when it began
    pub others: usize,
}

impl Active {
    /// Counts one more query.
    pub fn new(count: &Arc<AtomicUsize>) -> Self {
        Self { count: count.clone(), others: count.fetch_add(1, Ordering::Relaxed) }
    }

    /// Counts it no more until the answer is dropped: it waits for another machine.
    pub fn rest(&self) -> Resting<'_> {
        self.count.fetch_sub(1, Ordering::Relaxed);
        Resting(self)
    }
}

/// See [`Active::rest`].
pub struct Resting<'a>(&'a Active);

impl Drop for Resting<'_> {
    fn drop(&mut self) {
        self.0.count.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        let before = self.count.fetch_sub(1, Ordering::Relaxed);
        assert!(before > 0, "a query that ends was counted when it began");
    }
}
