//! The heap of the process: freed memory goes back to the system, as far as glibc can be told
//! to.
//!
//! By default glibc gives every thread an arena that keeps its peak size. After the first large
//! block is freed, the next ones come from the arena as well. A process that once ran
//! 64 large queries would stay as large as all of them together.

#![allow(unsafe_code)]

#[cfg(target_env = "gnu")]
use std::ffi::c_int;

use parking_lot::Mutex;

/// Arenas: with fewer than threads that work, some wait for each other's allocations. With four,
/// four clients on two processors ran at 0.93 of their speed whenever a thread of the background
/// had taken one.
#[cfg(target_env = "gnu")]
const ARENAS: c_int = 8;

/// Blocks from here on are mappings of their own, and go back as soon as they are freed.
/// Columns of a batch are smaller: to map and fault them in again and again costs as much as
/// filling them.
#[cfg(target_env = "gnu")]
const MAPPED_BYTES: c_int = 4 << 20;

/// Free bytes at the end of an arena that it keeps.
#[cfg(target_env = "gnu")]
const KEPT_BYTES: c_int = 8 << 20;

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

/// Bytes of the heap in use, modulo 4 GiB; `None` where the system does not say.
fn used_bytes() -> Option<u32> {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: mallinfo only counts, under the heap's own locks.
        let info = unsafe { libc::mallinfo() };
        Some((info.uordblks as u32).wrapping_add(info.hblkhd as u32))
    }
    #[cfg(not(target_env = "gnu"))]
    None
}

/// Gives back memory that many small allocations have left free, none of which was worth a trim.
///
/// The heap does not say how much of what is free in it has been given back. So it is given back
/// when the process has grown by much, or when much was in use that is not any more. A process
/// that grew because it needs more looks once for each [`HeapWatch::GROWN_BYTES`], in vain.
#[derive(Debug, Default)]
pub struct HeapWatch(Mutex<Watched>);

#[derive(Debug, Default)]
struct Watched {
    /// resident after the last time, or since
    least: u64,
    /// most in use since the last time
    most_used: u32,
    looks: u32,
}

impl HeapWatch {
    const GROWN_BYTES: u64 = 24 << 20;
    const FREED_BYTES: u32 = 16 << 20;
    /// Looks per query of the heap, which costs time where much of it is free.
    const LOOKS: u32 = 4;

    /// Call it a few times a second; returns whether memory was given back.
    pub fn look(&self) -> bool {
        let Some(now) = resident_bytes() else { return false };
        let mut watched = self.0.lock();
        if !watched.has_grown(now) && !watched.is_freed(used_bytes) {
            return false;
        }
        trim_heap();
        watched.least = resident_bytes().unwrap_or(now);
        watched.most_used = used_bytes().unwrap_or(0);
        true
    }
}

impl Watched {
    fn has_grown(&mut self, now: u64) -> bool {
        let has_grown = now >= self.least + HeapWatch::GROWN_BYTES;
        self.least = self.least.min(now);
        has_grown
    }

    /// Whether much was in use that is not any more.
    fn is_freed(&mut self, used: impl FnOnce() -> Option<u32>) -> bool {
        self.looks = (self.looks + 1) % HeapWatch::LOOKS;
        if self.looks > 0 {
            return false;
        }
        let Some(used) = used() else { return false };
        // Differences are right whichever 4 GiB these are.
        let fewer = self.most_used.wrapping_sub(used) as i32;
        if fewer < 0 {
            self.most_used = used;
        }
        fewer >= HeapWatch::FREED_BYTES as i32
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
        let mut watched = Watched { least: 100 << 20, ..Watched::default() };
        let grown = [110, 123, 60, 83, 84].map(|now| watched.has_grown(now << 20));
        assert_eq!(grown, [false, false, false, false, true], "since it was least");
    }

    #[test]
    fn what_is_not_in_use_any_more_is_noticed() {
        // across the end of the 4 GiB that are told apart
        let used = [4090u64, 4100, 4095, 4085, 4084].map(|used| (used << 20) as u32);
        let mut watched = Watched { most_used: used[0], ..Watched::default() };
        let mut looks = 0;
        let mut freed = |used: u32| {
            let ask = |_| watched.is_freed(|| Some(used).inspect(|_| looks += 1));
            (0..HeapWatch::LOOKS).map(ask).filter(|freed| *freed).count()
        };
        assert_eq!(used.map(&mut freed), [0, 0, 0, 0, 1]);
        assert_eq!(looks, used.len(), "the heap is not asked each time");
    }

    #[test]
    fn what_is_freed_without_growth_goes_back() {
        bound_heap();
        let watch = HeapWatch::default();
        let mut small: Vec<Vec<u8>> = (0..400_000).map(|i| vec![i as u8; 300]).collect();
        watch.look();
        let full = resident();
        small.drain(..small.len() - 1);
        // others of this process grow and free meanwhile
        let looked = (0..2 * HeapWatch::LOOKS).any(|_| watch.look());
        assert!(looked, "much was in use");
        let now = resident();
        assert!(full - now > 50 << 20, "{full} bytes before, {now} after");
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
