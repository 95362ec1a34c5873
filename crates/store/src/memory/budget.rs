//! The one memory budget of a process: pools, queries, loads, recovery, uploads and results of
//! all open databases reserve from it before they allocate.
//!
//! A reservation is a number, not memory: its holder may allocate that much and gives it back by
//! dropping it. Invariant: the sum of all reservations never exceeds the budget, so no
//! request can get the process killed.
//!
//! Two ways to ask. Work that cannot do with less asks for all that is left
//! ([`Reservation::grow`]). Work that can spill leaves a rest for work that begins
//! ([`Reservation::grow_leaving`]). No holder of memory waits for more.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use snowmelt_io::HeapWatch;

use crate::error::{Result, StoreError};

/// Bytes a [`Charge`] takes at once, so that the shared counter is not touched for every value.
const CHUNK_BYTES: u64 = 64 << 10;

/// Work that held so many bytes at a time leaves a heap with holes worth giving back.
const LARGE_BYTES: u64 = 4 << 20;

/// The budget of one process. Clones share it.
#[derive(Clone, Debug)]
pub struct MemoryBudget {
    inner: Arc<BudgetState>,
}

#[derive(Debug, Default)]
struct BudgetState {
    total: u64,
    used: AtomicU64,
    peak: AtomicU64,
    heap: HeapWatch,
}

impl MemoryBudget {
    /// A budget of `total` bytes.
    pub fn new(total: u64) -> Self {
        MemoryBudget { inner: Arc::new(BudgetState { total, ..BudgetState::default() }) }
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

    /// Has the peak be what is reserved now, for a test that looks at what comes next.
    #[doc(hidden)]
    pub fn forget_peak(&self) {
        self.inner.peak.store(self.used(), Ordering::Relaxed);
    }

    /// Bytes free now.
    pub fn free(&self) -> u64 {
        self.total() - self.used()
    }

    /// Reserves `bytes`; an error says how much is free. `what` names the asker in that error.
    pub fn reserve(&self, what: &str, bytes: u64) -> Result<Reservation> {
        self.reserve_leaving(what, bytes, 0)
    }

    /// As [`MemoryBudget::reserve`], but only if `rest` bytes stay free for others.
    pub fn reserve_leaving(&self, what: &str, bytes: u64, rest: u64) -> Result<Reservation> {
        let mut r = Reservation { budget: self.clone(), bytes: 0 };
        r.grow_leaving(what, bytes, rest)?;
        Ok(r)
    }

    /// Work has ended that held up to `most` bytes: the memory it left free in the heap goes back
    /// to the system.
    pub fn ended(&self, most: u64) {
        if most >= LARGE_BYTES {
            snowmelt_io::trim_heap();
        }
    }

    /// Gives back what was left free by all that ended and held little each; to be called now and
    /// then.
    pub fn look_at_heap(&self) {
        self.inner.heap.look();
    }

    /// A charge of nothing yet; `what` names its holder in errors.
    pub fn charge(&self, what: &'static str) -> Charge {
        Charge { reservation: Reservation { budget: self.clone(), bytes: 0 }, most: 0, what }
    }
}

/// The memory of a container that grows: what it holds, rounded up, stays reserved.
#[derive(Debug)]
pub struct Charge {
    reservation: Reservation,
    most: u64,
    what: &'static str,
}

impl Charge {
    /// The container holds so many bytes now, or is about to. On error the charge is as before.
    pub fn set(&mut self, bytes: u64) -> Result<()> {
        self.most = self.most.max(bytes);
        let held = self.reservation.bytes();
        if bytes > held {
            self.reservation.grow(self.what, (bytes - held).next_multiple_of(CHUNK_BYTES))
        } else {
            if held - bytes >= 2 * CHUNK_BYTES {
                self.reservation.shrink((held - bytes) / CHUNK_BYTES * CHUNK_BYTES);
            }
            Ok(())
        }
    }

    /// Bytes reserved.
    pub fn bytes(&self) -> u64 {
        self.reservation.bytes()
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.reservation.budget.ended(self.most);
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
        self.grow_leaving(what, more, 0)
    }

    /// As [`Reservation::grow`], but only if `rest` bytes stay free for others.
    pub fn grow_leaving(&mut self, what: &str, more: u64, rest: u64) -> Result<()> {
        let inner = &self.budget.inner;
        let taken = inner.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            let sum = used.checked_add(more)?;
            (sum.checked_add(rest)? <= inner.total).then_some(sum)
        });
        match taken {
            Ok(before) => {
                debug_assert!(before + more <= inner.total, "reservations stay within the budget");
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
        let before = self.budget.inner.used.fetch_sub(less, Ordering::Relaxed);
        assert!(before >= less, "only what was reserved is given back");
    }

    /// Takes `bytes` of it, at most what is held, for another holder.
    #[must_use]
    pub fn split(&mut self, bytes: u64) -> Reservation {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Reservation { budget: self.budget.clone(), bytes }
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
    fn who_can_spill_leaves_a_rest() {
        let b = MemoryBudget::new(100);
        let mut a = b.reserve("a", 10).unwrap();
        assert!(a.grow_leaving("sort", 71, 20).is_err());
        a.grow_leaving("sort", 70, 20).unwrap();
        assert_eq!(b.free(), 20);
        a.grow("hash", 20).unwrap();
        assert!(a.grow_leaving("sort", 1, u64::MAX).is_err());
    }

    #[test]
    fn a_charge_follows_its_container_in_chunks() {
        let b = MemoryBudget::new(10 * CHUNK_BYTES);
        let mut charge = b.charge("a list");
        for bytes in [1, CHUNK_BYTES, CHUNK_BYTES + 1, 9 * CHUNK_BYTES, 3 * CHUNK_BYTES, 0] {
            charge.set(bytes).unwrap();
            assert!(
                (bytes..bytes + 2 * CHUNK_BYTES).contains(&charge.bytes()),
                "{bytes}: {}",
                charge.bytes()
            );
        }
        assert!(charge.set(11 * CHUNK_BYTES).unwrap_err().to_string().starts_with("a list needs"));
        drop(charge);
        assert_eq!(b.used(), 0);
    }

    #[test]
    fn huge_requests_do_not_overflow() {
        let b = MemoryBudget::new(u64::MAX);
        let _a = b.reserve("a", u64::MAX - 1).unwrap();
        assert!(b.reserve("b", u64::MAX).is_err());
    }
}
