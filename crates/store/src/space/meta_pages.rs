//! The pages of the meta run and of the extent map's segments: which are in use, and where new
//! ones go.
//!
//! They lie in extents of the store's own (tree 0). Which of their pages are in use follows
//! from the run and its directory; the map does not say it. Invariant: a page that the durable
//! state uses is never given out, so a state that is not yet durable can be dropped at any
//! moment.

use std::collections::{BTreeMap, BTreeSet};

use crate::page::geometry::{ExtentId, Geometry};
use crate::page::{BODY_BYTES, PageId, TreeId};
use crate::space::Space;
use crate::space::extent::{Extent, words};
use crate::space::segment::SegmentPlace;
use crate::superblock::MetaRun;

/// Where the durable state keeps catalog and map.
#[derive(Clone, Debug, Default)]
pub(crate) struct MetaState {
    /// The run; `None` in an empty database.
    pub run: Option<MetaRun>,
    /// Segments of the map; none when the run has the map whole.
    pub segments: Vec<SegmentPlace>,
    /// Extents of the store's own.
    pub extents: BTreeSet<ExtentId>,
}

impl MetaState {
    /// Learns which extents are the store's own, and tells the map which of their pages are in use.
    pub fn adopt_extents(&mut self, extents: &mut [Extent], geometry: Geometry) {
        let own = extents.iter().enumerate().filter(|(_, e)| e.tree == Some(TreeId::META));
        self.extents = own.map(|(i, _)| i as u64).collect();
        for (id, used) in MetaPages::from_state(self, geometry).used {
            let extent = &mut extents[id as usize];
            extent.written = used.clone();
            extent.allocated = used;
        }
    }

    /// Tells the space which pages are in use; returns the extents that can be given up: those
    /// without any, but for one that is used again.
    pub fn settle(&self, geometry: Geometry, space: &mut Space, placing: MetaPlacing) -> Vec<ExtentId> {
        let mut unused = Vec::new();
        for (id, used) in MetaPages::from_state(self, geometry).used {
            if used.iter().all(|w| *w == 0) {
                unused.push(id);
            }
            space.set_meta_pages(id, used);
        }
        if placing == MetaPlacing::Reuse {
            unused.drain(..1.min(unused.len()));
        }
        unused
    }

    /// True when the store's own extents would all lie further to the front if they were taken
    /// anew.
    pub fn lies_behind(&self, space: &Space) -> bool {
        let wanted = self.extents.len() as u64;
        self.extents.last().is_some_and(|last| space.first_room(wanted as usize) + wanted <= *last)
    }

    /// First page and number of pages of all that the state uses.
    fn runs(&self) -> impl Iterator<Item = (PageId, u64)> {
        let run = self.run.iter().map(|r| (r.first, r.bytes.div_ceil(BODY_BYTES as u64)));
        run.chain(self.segments.iter().map(|s| (s.first, s.pages().into())))
    }
}

/// Extents that the next run and its segments go to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MetaPlacing {
    /// Those of the store's own that have room.
    Reuse,
    /// The first free ones; those before are given up.
    Front,
}

/// The store's own extents, and which of their pages may not be written.
pub(crate) struct MetaPages {
    geometry: Geometry,
    used: BTreeMap<ExtentId, Box<[u64]>>,
}

impl MetaPages {
    /// Those of a durable state.
    pub fn from_state(state: &MetaState, geometry: Geometry) -> MetaPages {
        let none: Box<[u64]> = vec![0; words(geometry.extent_pages)].into();
        let used = state.extents.iter().map(|e| (*e, none.clone())).collect();
        let mut pages = MetaPages { geometry, used };
        state.runs().for_each(|(first, n)| pages.set_used(first, n));
        pages
    }

    /// Only those extents among them that are not in `before` are given out.
    pub fn without(&mut self, before: &BTreeSet<ExtentId>) {
        let all = |(_, used): (&ExtentId, &mut Box<[u64]>)| used.fill(u64::MAX);
        self.used.iter_mut().filter(|(extent, _)| before.contains(extent)).for_each(all);
    }

    fn set_used(&mut self, first: PageId, pages: u64) {
        for page in (first.0..first.0 + pages).map(PageId) {
            let index = self.geometry.index_of(page);
            if let Some(used) = self.used.get_mut(&self.geometry.extent_of(page)) {
                used[index as usize / 64] |= 1 << (index % 64);
            }
        }
    }

    /// Takes consecutive free pages: in one extent when they have room there, else from the
    /// begin of one through consecutive extents. `Err` says how many more consecutive extents
    /// are needed.
    pub fn take(&mut self, pages: u32) -> Result<PageId, u32> {
        let k = self.geometry.extent_pages;
        let first = if pages <= k { self.within(pages) } else { self.through(pages.div_ceil(k)) };
        let first = first.ok_or(pages.div_ceil(k))?;
        debug_assert!(!self.is_used(first, pages), "pages in use are not given out");
        self.set_used(first, pages.into());
        Ok(first)
    }

    /// True when one of these pages is in use, or not the store's.
    fn is_used(&self, first: PageId, pages: u32) -> bool {
        (first.0..first.0 + u64::from(pages)).map(PageId).any(|page| {
            let index = self.geometry.index_of(page);
            let extent = self.used.get(&self.geometry.extent_of(page));
            extent.is_none_or(|used| used[index as usize / 64] >> (index % 64) & 1 == 1)
        })
    }

    fn within(&self, pages: u32) -> Option<PageId> {
        self.used.iter().find_map(|(extent, used)| {
            let mut free = 0;
            let end = (0..self.geometry.extent_pages).find(|i| {
                let taken = used[*i as usize / 64] >> (i % 64) & 1 == 1;
                free = if taken { 0 } else { free + 1 };
                free == pages
            })?;
            Some(self.geometry.page(*extent, end + 1 - pages))
        })
    }

    fn through(&self, extents: u32) -> Option<PageId> {
        let mut run = 0;
        let mut last = None;
        let end = self.used.iter().find_map(|(extent, used)| {
            let follows = last.is_some_and(|l| l + 1 == *extent);
            last = Some(*extent);
            let is_free = used.iter().all(|w| *w == 0);
            run = if !is_free {
                0
            } else if follows {
                run + 1
            } else {
                1
            };
            (run == extents).then_some(*extent)
        })?;
        Some(self.geometry.page(end + 1 - u64::from(extents), 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const G: Geometry = Geometry { extent_pages: 8, stripes: 1 };

    fn state(run: (u64, u64), segments: &[(u64, u32)], extents: &[u64]) -> MetaState {
        let bytes = |pages: u64| pages * BODY_BYTES as u64;
        let segment = |(first, pages): &(u64, u32)| SegmentPlace {
            first: PageId(*first),
            bytes: bytes((*pages).into()) as u32,
            checksum: 0,
        };
        MetaState {
            run: Some(MetaRun { first: PageId(run.0), bytes: bytes(run.1), checksum: 0 }),
            segments: segments.iter().map(segment).collect(),
            extents: extents.iter().copied().collect(),
        }
    }

    #[test]
    fn pages_in_use_are_never_given_out() {
        let state = state((16, 3), &[(21, 2), (40, 1), (0, 0)], &[2, 5]);
        let mut pages = MetaPages::from_state(&state, G);
        assert_eq!(pages.take(2), Ok(PageId(19)));
        assert_eq!(pages.take(2), Ok(PageId(41)));
        assert_eq!(pages.take(1), Ok(PageId(23)));
        assert_eq!(pages.take(5), Ok(PageId(43)));
        assert_eq!(pages.take(1), Err(1));
    }

    #[test]
    fn long_runs_go_through_consecutive_extents() {
        let state = state((16, 1), &[], &[2, 3, 5, 6, 7]);
        let mut pages = MetaPages::from_state(&state, G);
        assert_eq!(pages.take(30), Err(4));
        assert_eq!(pages.take(20), Ok(PageId(40)));
        assert_eq!(pages.take(9), Err(2));
        assert_eq!(pages.take(8), Ok(PageId(24)));
    }

    #[test]
    fn one_unused_extent_is_kept() {
        let mut space = Space::new(G, Vec::new());
        let taken: Vec<u64> = space.take_for_meta(4).collect();
        let state = state((8, 1), &[], &taken);
        assert_eq!(state.settle(G, &mut space, MetaPlacing::Front), [0, 2, 3]);
        assert_eq!(state.settle(G, &mut space, MetaPlacing::Reuse), [2, 3]);
        assert_eq!(space.expected(PageId(8)), (Some(TreeId::META), None));
    }
}
