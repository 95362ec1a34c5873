//! Frames: the fixed memory that pages are read into, and which page each holds.
//!
//! Invariant: a frame's bytes are written only while its page is in flight (by the device) and
//! read only while its page is resident and pinned. The page's word decides which; the frames
//! themselves know nothing of it.

#![allow(unsafe_code)]

use std::sync::atomic::Ordering;

use snowmelt_io::{Huge, Mapping};

use super::lazy::{LazyWords, reserve};
use crate::error::Result;
use crate::page::{PAGE_BYTES, PageId};

/// A page of one of the stores that share the frames.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct OwnedPage {
    /// Number of the store among those that share.
    pub member: u16,
    pub page: PageId,
}

/// Bits of a page number in a frame's word; the member is above them.
const PAGE_BITS: u32 = 48;

/// The frames of a pool.
#[derive(Debug)]
pub struct Frames {
    memory: Mapping,
    /// Member and page held + 1; 0 when the frame holds none.
    pages: LazyWords,
    /// Pages whose reads were started together with that of the page held.
    batches: LazyWords,
    count: u32,
}

impl Frames {
    /// `count` frames, populated when first used.
    pub fn new(count: u32) -> Result<Frames> {
        assert!(count > 0, "a pool has frames");
        Ok(Frames {
            memory: reserve(count as usize * PAGE_BYTES, Huge::Yes)?,
            pages: LazyWords::new(count as usize)?,
            batches: LazyWords::new(count as usize)?,
            count,
        })
    }

    /// Number of frames.
    #[inline]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// First byte of a frame.
    #[inline]
    pub fn address(&self, frame: u32) -> *mut u8 {
        debug_assert!(frame < self.count, "frame within the pool");
        // SAFETY: frame < count, so the address lies within the mapping.
        unsafe { self.memory.start().add(frame as usize * PAGE_BYTES) }
    }

    /// The page a frame holds or is being filled with.
    pub fn page(&self, frame: u32) -> Option<OwnedPage> {
        let held = self.pages.at(frame as u64).load(Ordering::Acquire).checked_sub(1)?;
        let page = PageId(held & ((1 << PAGE_BITS) - 1));
        Some(OwnedPage { member: (held >> PAGE_BITS) as u16, page })
    }

    /// Notes which page a frame holds.
    pub fn set_page(&self, frame: u32, page: Option<OwnedPage>) {
        assert!(frame < self.count, "frame within the pool");
        let held = page.map_or(0, |p| {
            assert!(p.page.0 < (1 << PAGE_BITS) - 1, "a page number has 48 bits");
            (u64::from(p.member) << PAGE_BITS) + p.page.0 + 1
        });
        self.pages.at(frame as u64).store(held, Ordering::Release);
    }

    /// Notes how many pages are asked for together with the one that comes into a frame.
    pub fn set_batch(&self, frame: u32, pages: u32) {
        self.batches.at(frame.into()).store(pages.into(), Ordering::Relaxed);
    }

    /// Pages asked for together with the one in a frame.
    pub fn batch(&self, frame: u32) -> u32 {
        self.batches.at(frame.into()).load(Ordering::Relaxed) as u32
    }

    /// The bytes of a frame.
    ///
    /// # Safety
    /// Until the slice is gone the frame's page must be resident and pinned, or in flight with
    /// its read complete and not yet published by the caller.
    #[inline]
    pub unsafe fn bytes<'a>(&self, frame: u32) -> &'a [u8] {
        // SAFETY: the address is that of PAGE_BYTES bytes inside the mapping; the caller promises
        // that nothing writes them.
        unsafe { std::slice::from_raw_parts(self.address(frame), PAGE_BYTES) }
    }

    /// The bytes of a frame, to be filled.
    ///
    /// # Safety
    /// The caller must be the only user of the frame: it put the frame's page in flight, and
    /// nothing else reads into it.
    pub unsafe fn bytes_mut<'a>(&self, frame: u32) -> &'a mut [u8] {
        // SAFETY: as above, and the caller promises exclusive use.
        unsafe { std::slice::from_raw_parts_mut(self.address(frame), PAGE_BYTES) }
    }
}
