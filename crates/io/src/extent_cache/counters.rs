//! Counters: of one process, and of all that share a cache.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of one process since it opened a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheCounters {
    /// Reads of objects, or of parts, that the cache answered.
    pub hits: u64,
    /// Objects that this process fetched.
    pub misses: u64,
    /// Objects that another thread or process was fetching, and that were waited for. (Of another
    /// process's, the bytes are read from the cache then: a hit.)
    pub waits: u64,
    /// Objects that were fetched past the cache: too long, of an unexpected length, or while it
    /// stood aside.
    pub passed: u64,
    /// Objects that went for others, by this process's hand.
    pub evictions: u64,
    /// Slots and records that this process found damaged.
    pub damaged: u64,
    /// Bytes that hits gave.
    pub hit_bytes: u64,
    /// Bytes that were fetched.
    pub fetched_bytes: u64,
}

/// Counts of all processes since the cache was made, or emptied after damage to its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MachineTotals {
    /// Slots: objects that there is room for.
    pub slots: u64,
    /// Objects in them now.
    pub objects: u64,
    /// Objects that were fetched and kept.
    pub fetched: u64,
    /// Bytes of those.
    pub fetched_bytes: u64,
    /// Objects that went for others.
    pub evictions: u64,
    /// Slots and records that were found damaged.
    pub damaged: u64,
}

/// The counters while they are counted.
#[derive(Default)]
pub(super) struct CacheTally {
    pub hits: AtomicU64,
    pub misses: AtomicU64,
    pub waits: AtomicU64,
    pub passed: AtomicU64,
    pub evictions: AtomicU64,
    pub damaged: AtomicU64,
    pub hit_bytes: AtomicU64,
    pub fetched_bytes: AtomicU64,
}

impl CacheTally {
    pub fn counters(&self) -> CacheCounters {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        CacheCounters {
            hits: read(&self.hits),
            misses: read(&self.misses),
            waits: read(&self.waits),
            passed: read(&self.passed),
            evictions: read(&self.evictions),
            damaged: read(&self.damaged),
            hit_bytes: read(&self.hit_bytes),
            fetched_bytes: read(&self.fetched_bytes),
        }
    }
}

pub(super) fn add(count: &AtomicU64, more: u64) {
    count.fetch_add(more, Ordering::Relaxed);
}
