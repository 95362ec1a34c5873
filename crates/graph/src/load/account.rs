//! Memory that several parts of a load share: a counter with a limit.
//!
//! A stage that keeps bulk data in memory takes bytes here first. If they are refused, it goes to a
//! temporary file, so the sum stays below the limit whatever the parts do.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A share of the memory budget, in bytes.
#[derive(Debug)]
pub(super) struct LoadMemory {
    limit: u64,
    used: AtomicU64,
}

impl LoadMemory {
    /// An account of `limit` bytes.
    pub(super) fn new(limit: u64) -> Arc<LoadMemory> {
        Arc::new(LoadMemory { limit, used: AtomicU64::new(0) })
    }

    /// Takes `bytes` if they fit; dropping the returned value gives them back.
    pub(super) fn take(self: &Arc<Self>, bytes: u64) -> Option<Taken> {
        let grow = |used: u64| used.checked_add(bytes).filter(|&n| n <= self.limit);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grow).ok()?;
        Some(Taken { account: Arc::clone(self), bytes })
    }
}

/// Bytes taken from a [`LoadMemory`].
#[derive(Debug)]
pub(super) struct Taken {
    account: Arc<LoadMemory>,
    bytes: u64,
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.account.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_beyond_the_limit() {
        let account = LoadMemory::new(10);
        let six = account.take(6).unwrap();
        assert!(account.take(5).is_none());
        let four = account.take(4).unwrap();
        assert!(account.take(1).is_none());
        drop(six);
        assert!(account.take(6).is_some());
        drop(four);
    }
}
