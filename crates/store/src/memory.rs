//! The one memory budget: pool, queries and load all reserve from it before they allocate.
//!
//! A reservation is a number, not memory: whoever holds it may allocate that much and gives it back by dropping it. Invariant: the
//! sum of all reservations never exceeds the budget, so no query can get the process killed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Result, StoreError};

/// The budget of one database. Clones share it.
#[derive(Clone, Debug)]
pub struct MemoryBudget {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    total: u64,
    used: AtomicU64,
    peak: AtomicU64,
}

impl MemoryBudget {
    /// A budget of `total` bytes.
    pub fn new(total: u64) -> Self {
        MemoryBudget { inner: Arc::new(Inner { total, used: AtomicU64::new(0), peak: AtomicU64::new(0) }) }
    }

    /// The whole budget in bytes.
    pub fn total(&self) -> u64 {
        self.inner.total
    }

    /// Bytes reserved now.
    pub fn used(&self) -> u64 {
        self.inner.used.load(Ordering::Relaxed)
    }

    /// Most bytes ever reserved at once.
    pub fn peak(&self) -> u64 {
        self.inner.peak.load(Ordering::Relaxed)
    }

    /// Bytes free now.
    pub fn free(&self) -> u64 {
        self.total() - self.used()
    }

    /// Reserves `bytes`; an error says how much is free. `what` names the asker in that error.
    pub fn reserve(&self, what: &str, bytes: u64) -> Result<Reservation> {
        let mut r = Reservation { budget: self.clone(), bytes: 0 };
        r.grow(what, bytes)?;
        Ok(r)
    }
}

/// Bytes taken from a [`MemoryBudget`], given back when dropped.
#[derive(Debug)]
pub struct Reservation {
    budget: MemoryBudget,
    bytes: u64,
}

impl Reservation {
    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes `more` bytes. On error the reservation is as before.
    pub fn grow(&mut self, what: &str, more: u64) -> Result<()> {
        let inner = &self.budget.inner;
        let taken = inner.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(more).filter(|sum| *sum <= inner.total)
        });
        match taken {
            Ok(before) => {
                inner.peak.fetch_max(before + more, Ordering::Relaxed);
                self.bytes += more;
                Ok(())
            }
            Err(used) => Err(StoreError::Memory {
                what: what.to_string(),
                wanted: more,
                free: inner.total - used,
                total: inner.total,
            }),
        }
    }

    /// Gives back `less` bytes, at most what is held.
    pub fn shrink(&mut self, less: u64) {
        let less = less.min(self.bytes);
        self.bytes -= less;
        self.budget.inner.used.fetch_sub(less, Ordering::Relaxed);
    }

    /// Makes the reservation `bytes` large.
    pub fn resize(&mut self, what: &str, bytes: u64) -> Result<()> {
        if bytes > self.bytes {
            self.grow(what, bytes - self.bytes)
        } else {
            self.shrink(self.bytes - bytes);
            Ok(())
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shrink(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_more_than_the_total() {
        let b = MemoryBudget::new(100);
        let mut a = b.reserve("a", 60).unwrap();
        let e = b.reserve("sort", 41).unwrap_err();
        assert!(matches!(e, StoreError::Memory { free: 40, wanted: 41, total: 100, .. }), "{e}");
        a.resize("a", 10).unwrap();
        let c = b.reserve("c", 90).unwrap();
        assert_eq!((b.used(), b.free(), b.peak()), (100, 0, 100));
        drop((a, c));
        assert_eq!(b.used(), 0);
    }

    #[test]
    fn huge_requests_do_not_overflow() {
        let b = MemoryBudget::new(u64::MAX);
        let _a = b.reserve("a", u64::MAX - 1).unwrap();
        assert!(b.reserve("b", u64::MAX).is_err());
    }
}
