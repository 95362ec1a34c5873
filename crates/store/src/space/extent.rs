//! An extent of the map: its owner, which of its pages are in use, and which are on the stripe.
//!
//! A page is *allocated* when the newest state uses it and *written* when its stripe has it:
//! between a commit and its checkpoint a page may be one and not the other.

use crate::format::written_by::WrittenBy;
use crate::page::TreeId;
use crate::page::geometry::ExtentId;

/// Extents of a segment.
pub(crate) const SEGMENT: usize = 64;

/// One extent of the map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Owner; `None` when the extent is free.
    pub tree: Option<TreeId>,
    /// The extent that takes the pages of splits when this one is full.
    pub overflow: Option<ExtentId>,
    /// Bit i: page i is on the stripe. `extent_pages` bits, lowest first.
    pub written: Box<[u64]>,
    /// Bit i: page i is in use.
    pub allocated: Box<[u64]>,
    /// The transaction that each written page was last written with.
    pub written_by: WrittenBy,
}

impl Extent {
    /// A free extent.
    pub fn free(extent_pages: u32) -> Self {
        let none: Box<[u64]> = vec![0; words(extent_pages)].into();
        Extent {
            tree: None,
            overflow: None,
            written: none.clone(),
            allocated: none,
            written_by: WrittenBy::UNKNOWN,
        }
    }

    /// An extent of `tree` whose first `pages` pages are written.
    pub fn filled(extent_pages: u32, tree: TreeId, pages: u32) -> Self {
        let mut e = Self::free(extent_pages);
        assert!(pages <= extent_pages, "an extent holds its pages");
        e.tree = Some(tree);
        for i in 0..pages {
            e.written[i as usize / 64] |= 1 << (i % 64);
        }
        e.allocated = e.written.clone();
        e
    }

    /// This extent, with all its pages written by transaction `txn`.
    pub fn by(mut self, txn: u64) -> Self {
        self.written_by = WrittenBy::same(txn);
        self
    }

    /// True when none of its pages is in use.
    pub fn is_unused(&self) -> bool {
        self.allocated.iter().all(|w| *w == 0)
    }

    /// The first page that is not in use.
    pub fn first_unused(&self, extent_pages: u32) -> Option<u32> {
        debug_assert_eq!(self.allocated.len(), words(extent_pages), "a bit for each page of the extent");
        let word = self.allocated.iter().position(|w| *w != u64::MAX)?;
        let index = word as u32 * 64 + self.allocated[word].trailing_ones();
        (index < extent_pages).then_some(index)
    }

    /// True when page `index` is in use.
    #[inline]
    pub fn is_allocated(&self, index: u32) -> bool {
        self.allocated[index as usize / 64] >> (index % 64) & 1 == 1
    }

    /// Says whether page `index` is in use.
    pub fn set_allocated(&mut self, index: u32, used: Used) {
        assert!((index as usize) < 64 * self.allocated.len(), "the page lies in its extent");
        let bit = 1 << (index % 64);
        match used {
            Used::Yes => self.allocated[index as usize / 64] |= bit,
            Used::No => self.allocated[index as usize / 64] &= !bit,
        }
    }

    /// True when page `index` was written.
    #[inline]
    pub fn is_written(&self, index: u32) -> bool {
        self.written[index as usize / 64] >> (index % 64) & 1 == 1
    }

    /// Number of pages written.
    pub fn pages(&self) -> u32 {
        debug_assert_eq!(self.written.len(), self.allocated.len(), "two maps of the same pages");
        self.written.iter().map(|w| w.count_ones()).sum()
    }
}

/// Whether a page is in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Used {
    /// By the newest state.
    Yes,
    /// It may be allocated.
    No,
}

/// Words of a bitmap over the pages of an extent.
pub(crate) fn words(extent_pages: u32) -> usize {
    (extent_pages as usize).div_ceil(64)
}
