//! Numbers of threads, small and in order of their first asking.

use std::sync::atomic::{AtomicU64, Ordering};

/// The number of the calling thread: the same at every call, and no other thread's.
pub(crate) fn thread_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static NUMBER: u64 = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    NUMBER.with(|number| *number)
}
