//! Memory that devices may touch: owned aligned buffers, and the raw range a request carries.

#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use crate::memory::mapping::{HUGE_BYTES, Huge, Mapping};

/// Alignment of [`AlignedBuf`] in bytes: enough for O_DIRECT on every device we know.
pub const BUFFER_ALIGN: usize = 4096;

/// A zeroed buffer, aligned to [`BUFFER_ALIGN`].
pub struct AlignedBuf {
    start: NonNull<u8>,
    len: usize,
    /// The mapping it lies in; `None` for the heap.
    mapping: Option<Mapping>,
}

// SAFETY: the buffer is owned and has no interior mutability, like a Box<[u8]>.
unsafe impl Send for AlignedBuf {}
// SAFETY: as above.
unsafe impl Sync for AlignedBuf {}

impl AlignedBuf {
    /// A buffer of `len` zeroed bytes; aborts when memory is exhausted, as Vec does.
    pub fn new(len: usize) -> AlignedBuf {
        if len == 0 {
            return AlignedBuf { start: NonNull::dangling(), len, mapping: None };
        }
        let layout = Self::layout(len);
        // SAFETY: the layout has a size above zero.
        let start = unsafe { alloc_zeroed(layout) };
        let start = NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout));
        AlignedBuf { start, len, mapping: None }
    }

    /// A buffer for long requests: in huge pages, where the kernel has them and it has the length
    /// of one. (A virtual disk whose queue has 256 places reads 2 MiB into scattered pages of 4 KiB
    /// one request at a time.)
    pub fn huge(len: usize) -> AlignedBuf {
        if len < HUGE_BYTES { AlignedBuf::new(len) } else { AlignedBuf::mapped(len, Huge::Yes) }
    }

    /// A buffer in pages of its own, none of them touched before; of any length also when they
    /// are to be huge.
    pub(crate) fn mapped(len: usize, huge: Huge) -> AlignedBuf {
        let least = if huge == Huge::Yes { HUGE_BYTES } else { 0 };
        match Mapping::new(len.max(least), huge) {
            Ok(m) => AlignedBuf {
                start: NonNull::new(m.start()).expect("a mapping is not at 0"),
                len,
                mapping: Some(m),
            },
            Err(_) => AlignedBuf::new(len),
        }
    }

    /// A copy of `bytes`.
    pub fn from_slice(bytes: &[u8]) -> AlignedBuf {
        let mut buf = AlignedBuf::new(bytes.len());
        buf.copy_from_slice(bytes);
        buf
    }

    fn layout(len: usize) -> Layout {
        Layout::from_size_align(len, BUFFER_ALIGN).expect("a buffer is smaller than the address space")
    }

    /// Address of the first byte, for requests.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl Drop for AlignedBuf {
    fn drop(&mut self) {
        if self.len > 0 && self.mapping.is_none() {
            // SAFETY: allocated in `new` with this very layout.
            unsafe { dealloc(self.start.as_ptr(), Self::layout(self.len)) }
        }
    }
}

impl Deref for AlignedBuf {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: start and len describe our own initialised allocation (or an empty slice).
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for AlignedBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in deref, and we are borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

/// The memory of one request and its direction. Carries no lifetime: see the constructors.
#[derive(Debug, Clone, Copy)]
pub struct RawBuf {
    start: *mut u8,
    len: usize,
    write: bool,
}

// SAFETY: the code that builds one promises that the range may be used from any thread until
// the request completes.
unsafe impl Send for RawBuf {}

impl RawBuf {
    /// Memory to read into.
    ///
    /// # Safety
    /// `start..start + len` must be valid for writes and not be touched by other code, on any
    /// thread, until `Sink::complete` has been called with the request's tag.
    pub unsafe fn read_into(start: *mut u8, len: usize) -> RawBuf {
        RawBuf { start, len, write: false }
    }

    /// Memory to write from.
    ///
    /// # Safety
    /// `start..start + len` must be valid for reads and not be changed, on any
    /// thread, until `Sink::complete` has been called with the request's tag.
    pub unsafe fn write_from(start: *const u8, len: usize) -> RawBuf {
        RawBuf { start: start.cast_mut(), len, write: true }
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True when no bytes are to be moved.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// True when the bytes go to the device.
    pub fn is_write(&self) -> bool {
        self.write
    }

    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_zeroed_and_aligned() {
        let long = if cfg!(miri) { 9000 } else { HUGE_BYTES - 1 };
        for len in [0, 1, 4096, long] {
            let mapped = [Huge::Yes, Huge::No, Huge::AsSet].map(|huge| AlignedBuf::mapped(len, huge));
            for mut buf in mapped.into_iter().chain([AlignedBuf::new(len), AlignedBuf::huge(len)]) {
                assert_eq!(buf.len(), len);
                assert!(len == 0 || (buf.as_mut_ptr() as usize).is_multiple_of(BUFFER_ALIGN));
                assert!(buf.iter().all(|b| *b == 0));
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri takes a minute to look at each byte")]
    fn long_buffers_begin_where_a_huge_page_can() {
        let mut buf = AlignedBuf::huge(HUGE_BYTES + 4096);
        assert!((buf.as_mut_ptr() as usize).is_multiple_of(HUGE_BYTES));
        assert!(buf.iter().all(|b| *b == 0));
        buf[HUGE_BYTES..].fill(7);
        assert_eq!(buf[HUGE_BYTES - 1..][..2], [0, 7]);
    }
}
