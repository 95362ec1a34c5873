//! Geometry: which extent a page belongs to, and where on the stripes it lies.
//!
//! Page `p` is page `p mod k` of extent `p div k` (k = pages per extent). Extent `e` is the
//! `e div n`-th extent of the file of stripe `e mod n` (n stripes).

use crate::page::{PAGE_BYTES, PageId};

/// Number of an extent, counted over all stripes.
pub type ExtentId = u64;

/// Sizes that turn a page number into a place. Copied wherever it is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Pages in an extent.
    pub extent_pages: u32,
    /// Stripes the extents are dealt to.
    pub stripes: u32,
}

/// Where a page lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Index of the stripe.
    pub stripe: usize,
    /// Byte offset in the stripe's file.
    pub offset: u64,
}

impl Geometry {
    /// Bytes in an extent.
    pub fn extent_bytes(&self) -> u64 {
        self.extent_pages as u64 * PAGE_BYTES as u64
    }

    /// The extent of a page.
    #[inline]
    pub fn extent_of(&self, page: PageId) -> ExtentId {
        page.0 / self.extent_pages as u64
    }

    /// Index of a page within its extent.
    #[inline]
    pub fn index_of(&self, page: PageId) -> u32 {
        (page.0 % self.extent_pages as u64) as u32
    }

    /// A page of an extent.
    #[inline]
    pub fn page(&self, extent: ExtentId, index: u32) -> PageId {
        debug_assert!(index < self.extent_pages, "the page lies in its extent");
        PageId(extent * self.extent_pages as u64 + index as u64)
    }

    /// Where an extent begins. For numbers no database reaches the offset saturates: they are
    /// only named in errors.
    pub fn extent_place(&self, extent: ExtentId) -> Place {
        Place {
            stripe: (extent % self.stripes as u64) as usize,
            offset: (extent / self.stripes as u64).saturating_mul(self.extent_bytes()),
        }
    }

    /// Where a page begins.
    #[inline]
    pub fn place(&self, page: PageId) -> Place {
        let mut place = self.extent_place(self.extent_of(page));
        place.offset = place.offset.saturating_add(self.index_of(page) as u64 * PAGE_BYTES as u64);
        place
    }

    /// The extent that lies at a place.
    pub fn extent_at(&self, place: Place) -> ExtentId {
        place.offset / self.extent_bytes() * self.stripes as u64 + place.stripe as u64
    }

    /// The page that lies at a place.
    pub fn page_at(&self, place: Place) -> PageId {
        let index = place.offset % self.extent_bytes() / PAGE_BYTES as u64;
        PageId(self.extent_at(place) * self.extent_pages as u64 + index)
    }

    /// Bytes the file of `stripe` has when the database has `extents` extents.
    pub fn stripe_bytes(&self, stripe: usize, extents: u64) -> u64 {
        let (stripe, n) = (stripe as u64, self.stripes as u64);
        assert!(stripe < n, "the stripe is one of the database's");
        let here = if extents > stripe { (extents - stripe).div_ceil(n) } else { 0 };
        here * self.extent_bytes()
    }
}
