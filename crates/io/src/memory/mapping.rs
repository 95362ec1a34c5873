//! Anonymous mappings: memory that exists once it is touched. Untouched memory reads as zero.
//!
//! Miri knows no mapping that is cut to size. Under it the memory comes from the heap; all else
//! is the same.

#![allow(unsafe_code)]

use std::ptr::NonNull;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// A private anonymous mapping.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping is plain memory owned by this value; who may touch which part of it is
// the users' business, and they say so.
unsafe impl Send for Mapping {}
// SAFETY: as above; `&Mapping` only gives out the address.
unsafe impl Sync for Mapping {}

/// Whether the kernel should use huge pages: a device takes what lies in one of them in one
/// piece, and 4 KiB pages one by one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Huge {
    /// Ask for huge pages; the kernel may refuse, which costs only speed.
    Yes,
    /// Small pages, so that a sparsely used array stays small.
    No,
    /// As the machine is set (`/sys/kernel/mm/transparent_hugepage/enabled`), like any
    /// program's memory.
    AsSet,
}

/// Bytes of a huge page.
pub const HUGE_BYTES: usize = 2 << 20;

impl Mapping {
    /// Reserves `len` bytes of zeroed memory, aligned to 2 MiB when huge.
    ///
    /// # Errors
    /// The kernel has no room for it.
    pub fn new(len: usize, huge: Huge) -> std::io::Result<Mapping> {
        let len = len.max(1).next_multiple_of(4096);
        if cfg!(miri) {
            return Ok(Mapping { start: heap::reserve(len), len });
        }
        let extra = if huge == Huge::Yes && len >= HUGE_BYTES { HUGE_BYTES } else { 0 };
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice disturbs
        // nothing.
        let start = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                len + extra,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
        }?
        .cast::<u8>();
        let mapping = Self::align(start, len, extra);
        let advice = match huge {
            Huge::Yes => Advice::LinuxHugepage,
            Huge::No => Advice::LinuxNoHugepage,
            Huge::AsSet => return Ok(mapping),
        };
        // SAFETY: the range is the mapping just made; the advice does not change its contents.
        // A refusal is harmless.
        let _ = unsafe { madvise(mapping.start.as_ptr().cast(), len, advice) };
        Ok(mapping)
    }

    /// Cuts a mapping of `len + extra` bytes down to `len` bytes at a 2 MiB boundary.
    fn align(start: *mut u8, len: usize, extra: usize) -> Mapping {
        let before = if extra > 0 { start.align_offset(HUGE_BYTES) } else { 0 };
        let after = extra - before;
        // SAFETY: `before + len + after` bytes were mapped at `start`; no other code knows the
        // mapping yet, and the parts cut off are multiples of 4096 because start, len and extra
        // are.
        unsafe {
            if before > 0 {
                let _ = munmap(start.cast(), before);
            }
            if after > 0 {
                let _ = munmap(start.add(before + len).cast(), after);
            }
            Mapping { start: NonNull::new_unchecked(start.add(before)), len }
        }
    }

    /// First byte.
    #[inline]
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if cfg!(miri) {
            return heap::release(self.start, self.len);
        }
        // SAFETY: start and len are those of the mapping, and its users are gone with their
        // owner.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// The substitute for mappings under Miri.
mod heap {
    use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
    use std::ptr::NonNull;

    fn layout(len: usize) -> Layout {
        Layout::from_size_align(len, super::HUGE_BYTES).expect("less than the address space")
    }

    pub(super) fn reserve(len: usize) -> NonNull<u8> {
        // SAFETY: a mapping has at least a page.
        let start = unsafe { alloc_zeroed(layout(len)) };
        NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout(len)))
    }

    pub(super) fn release(start: NonNull<u8>, len: usize) {
        // SAFETY: reserved above with the same length, and its users are gone with their owner.
        unsafe { dealloc(start.as_ptr(), layout(len)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_mappings_are_aligned() {
        let m = Mapping::new(5 << 20, Huge::Yes).unwrap();
        assert_eq!(m.start() as usize % HUGE_BYTES, 0);
        assert_eq!(m.len, 5 << 20);
    }
}
