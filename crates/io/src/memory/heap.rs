//! The heap of the process: freed memory goes back to the system, as far as glibc can be told
//! to.
//!
//! By default glibc gives every thread an arena that keeps its peak size. After the first large
//! block is freed, the next ones come from the arena as well. A process that once ran
//! 64 large queries would stay as large as all of them together.

#![allow(unsafe_code)]

#[cfg(target_env = "gnu")]
use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};

/// Arenas: more only let more threads allocate at the same moment.
#[cfg(target_env = "gnu")]
const ARENAS: c_int = 4;

/// Blocks from here on are mappings of their own, and go back as soon as they are freed.
/// Columns of a batch are smaller: to map and fault them in again and again costs as much as
/// filling them.
#[cfg(target_env = "gnu")]
const MAPPED_BYTES: c_int = 4 << 20;

/// Free bytes at the end of the heap that it keeps.
#[cfg(target_env = "gnu")]
const KEPT_BYTES: c_int = 16 << 20;

/// Bounds what the heap keeps for itself; called once, by `main`.
pub fn bound_heap() {
    #[cfg(target_env = "gnu")]
    for (what, value) in [
        (libc::M_ARENA_MAX, ARENAS),
        (libc::M_MMAP_THRESHOLD, MAPPED_BYTES),
        (libc::M_TRIM_THRESHOLD, KEPT_BYTES),
    ] {
        // SAFETY: mallopt takes numbers and may be called at any time; a parameter it does not
        // know it refuses.
        unsafe { libc::mallopt(what, value) };
    }
}

/// Gives free memory within the heap back to the system: after something large has ended.
pub fn trim_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: malloc_trim only looks at free memory, under the heap's own locks.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Bytes of this process in memory; `None` where the system does not say.
fn resident_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages = statm.split(' ').nth(1)?.parse::<u64>().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// Gives back what many small things have left free, when the process has grown by much: what
/// each of them held was not worth a look.
///
/// Resident memory is what is looked at, since the heap itself does not say how much of what is
/// free in it has been given back. So a process that grew because it needs more looks once for
/// each [`HeapWatch::GROWN_BYTES`], in vain.
#[derive(Debug, Default)]
pub struct HeapWatch {
    /// resident after the last time, or since
    least: AtomicU64,
}

impl HeapWatch {
    const GROWN_BYTES: u64 = 24 << 20;

    /// To be called now and then; answers whether memory was given back.
    pub fn look(&self) -> bool {
        let Some(now) = resident_bytes() else { return false };
        if !self.has_grown(now) {
            return false;
        }
        trim_heap();
        self.least.store(resident_bytes().unwrap_or(now), Ordering::Relaxed);
        true
    }

    fn has_grown(&self, now: u64) -> bool {
        now >= self.least.fetch_min(now, Ordering::Relaxed) + Self::GROWN_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resident() -> usize {
        resident_bytes().unwrap() as usize
    }

    #[test]
    fn a_process_that_does_not_grow_is_left_alone() {
        let watch = HeapWatch::default();
        watch.least.store(100 << 20, Ordering::Relaxed);
        let grown = [110, 123, 60, 83, 84].map(|now| watch.has_grown(now << 20));
        assert_eq!(grown, [false, false, false, false, true], "since it was least");
    }

    #[test]
    fn what_many_have_left_goes_back() {
        bound_heap();
        let watch = HeapWatch::default();
        let mut small: Vec<Vec<u8>> = (0..400_000).map(|i| vec![i as u8; 300]).collect();
        let full = resident();
        // each page of the heap keeps nothing, but for the last
        small.drain(..small.len() - 1);
        assert!(watch.look(), "it has grown");
        let now = resident();
        assert!(full - now > 50 << 20, "{full} bytes before, {now} after");
    }

    #[test]
    fn freed_memory_goes_back() {
        bound_heap();
        let small: Vec<Vec<u8>> = (0..200_000).map(|i| vec![i as u8; 500]).collect();
        // the last one keeps the end of the heap in use
        let last = small.last().cloned();
        let full = resident();
        drop(small);
        trim_heap();
        let now = resident();
        assert!(full - now > 50 << 20, "{full} bytes before, {now} after");
        drop(last);
    }
}
