//! The heap of the process: freed memory goes back to the system, as far as glibc can be told
//! to.
//!
//! By default glibc gives every thread an arena that keeps its peak size. After the first large
//! block is freed, the next ones come from the arena as well. A process that once ran
//! 64 large queries would stay as large as all of them together.

#![allow(unsafe_code)]

#[cfg(target_env = "gnu")]
use std::ffi::c_int;

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

#[cfg(test)]
mod tests {
    use super::*;

    /// Resident bytes of this process.
    fn resident() -> usize {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
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
