//! Space: which extent belongs to which tree, which pages of it are written, and where a page lies.
//!
//! Page `p` is page `p mod k` of extent `p div k` (k = pages per extent). Extent `e` is the `e div n`-th extent of the file of
//! stripe `e mod n` (n stripes). An extent has one owner, so reading it whole never drags in foreign pages; its bitmap says which
//! of its pages were ever written, so read-ahead skips the rest.
//!
//! Invariant: what [`Space::owner`] answers only changes by a commit; extents handed to a build are invisible to readers.

use crate::page::{PAGE_BYTES, PageId, TreeId};

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
        PageId(extent * self.extent_pages as u64 + index as u64)
    }

    /// Where an extent begins. For numbers no database reaches the offset saturates: they are only named in errors.
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

    /// Bytes the file of `stripe` has when the database has `extents` extents.
    pub fn stripe_bytes(&self, stripe: usize, extents: u64) -> u64 {
        let (stripe, n) = (stripe as u64, self.stripes as u64);
        let here = if extents > stripe { (extents - stripe).div_ceil(n) } else { 0 };
        here * self.extent_bytes()
    }
}

/// One extent of the map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Owner; `None` when the extent is free.
    pub tree: Option<TreeId>,
    /// The extent that takes the pages of splits when this one is full. Unused until trees are updated in place.
    pub overflow: Option<ExtentId>,
    /// Bit i: page i was written. `extent_pages` bits, lowest first.
    pub written: Box<[u64]>,
}

impl Extent {
    /// A free extent.
    pub fn free(extent_pages: u32) -> Self {
        Extent { tree: None, overflow: None, written: vec![0; words(extent_pages)].into() }
    }

    /// An extent of `tree` whose first `pages` pages are written.
    pub fn filled(extent_pages: u32, tree: TreeId, pages: u32) -> Self {
        let mut e = Self::free(extent_pages);
        e.tree = Some(tree);
        for i in 0..pages {
            e.written[i as usize / 64] |= 1 << (i % 64);
        }
        e
    }

    /// True when page `index` was written.
    #[inline]
    pub fn is_written(&self, index: u32) -> bool {
        self.written[index as usize / 64] >> (index % 64) & 1 == 1
    }

    /// Number of pages written.
    pub fn pages(&self) -> u32 {
        self.written.iter().map(|w| w.count_ones()).sum()
    }
}

/// Words of a bitmap over the pages of an extent.
pub(crate) fn words(extent_pages: u32) -> usize {
    (extent_pages as usize).div_ceil(64)
}

/// What became of an extent that no committed tree owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// A committed tree owns it.
    Owned,
    /// May be given out.
    Free,
    /// A build is writing it.
    Building,
    /// Freed by a commit of this process; readers of older snapshots may still read it, so it rests until the next open.
    Resting,
}

/// The extent map of a database and what may be allocated.
#[derive(Debug)]
pub struct Space {
    geometry: Geometry,
    extents: Vec<Extent>,
    uses: Vec<Use>,
}

impl Space {
    /// The space described by a committed extent map.
    pub fn new(geometry: Geometry, extents: Vec<Extent>) -> Self {
        let uses = extents.iter().map(|e| if e.tree.is_some() { Use::Owned } else { Use::Free }).collect();
        Space { geometry, extents, uses }
    }

    /// Sizes.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Number of extents, free ones and those of a build included.
    pub fn len(&self) -> u64 {
        self.extents.len() as u64
    }

    /// True when there is no extent.
    pub fn is_empty(&self) -> bool {
        self.extents.is_empty()
    }

    /// The committed extent, `None` beyond the end.
    pub fn extent(&self, extent: ExtentId) -> Option<&Extent> {
        self.extents.get(extent as usize)
    }

    /// The tree that owns `page`, if the page was written and committed.
    pub fn owner(&self, page: PageId) -> Option<TreeId> {
        let e = self.extent(self.geometry.extent_of(page))?;
        if e.is_written(self.geometry.index_of(page)) { e.tree } else { None }
    }

    /// All extents in order.
    pub fn iter(&self) -> impl Iterator<Item = (ExtentId, &Extent)> {
        self.extents.iter().enumerate().map(|(i, e)| (i as u64, e))
    }

    /// Takes up to `want` ≥ 1 consecutive extents: the first free run that is long enough, else new ones at the end.
    /// Answers the first; all `want` are the caller's until [`Space::release`] or [`Space::commit`].
    pub fn allocate(&mut self, want: u32) -> ExtentId {
        assert!(want > 0, "no extents asked for");
        let first = self.first_free_run(want as usize);
        let end = first + want as usize;
        while self.extents.len() < end {
            self.extents.push(Extent::free(self.geometry.extent_pages));
            self.uses.push(Use::Free);
        }
        self.uses[first..end].fill(Use::Building);
        first as u64
    }

    /// Index of the first run of `want` free extents; it may reach beyond the end.
    fn first_free_run(&self, want: usize) -> usize {
        let mut run = 0;
        for (i, u) in self.uses.iter().enumerate() {
            run = if *u == Use::Free { run + 1 } else { 0 };
            if run == want {
                return i + 1 - want;
            }
        }
        self.uses.len() - run
    }

    /// Gives back an extent that a build took and does not use.
    pub fn release(&mut self, extent: ExtentId) {
        let u = &mut self.uses[extent as usize];
        assert_eq!(*u, Use::Building, "only a build's extent can be given back");
        *u = Use::Free;
        self.trim();
    }

    /// Drops free extents at the end, so that the files can be shortened.
    fn trim(&mut self) {
        while self.uses.last() == Some(&Use::Free) {
            self.uses.pop();
            self.extents.pop();
        }
    }

    /// The map as it will be after a commit of `built`, without the extents of `dropped` trees.
    pub fn after(&self, built: &[(ExtentId, Extent)], dropped: &[TreeId]) -> Vec<Extent> {
        let free = Extent::free(self.geometry.extent_pages);
        let mut map: Vec<Extent> = self
            .extents
            .iter()
            .map(|e| match e.tree {
                Some(t) if !dropped.contains(&t) => e.clone(),
                _ => free.clone(),
            })
            .collect();
        for (id, e) in built {
            assert_eq!(self.uses[*id as usize], Use::Building, "a built extent was allocated to the build");
            map[*id as usize] = e.clone();
        }
        while map.last().is_some_and(|e| e.tree.is_none()) {
            map.pop();
        }
        map
    }

    /// Makes `map` (from [`Space::after`]) the committed one. Freed extents rest until the next open.
    pub fn commit(&mut self, map: Vec<Extent>) {
        let free = Extent::free(self.geometry.extent_pages);
        for i in 0..self.extents.len() {
            let new = map.get(i).unwrap_or(&free);
            let was = self.uses[i];
            self.uses[i] = match (new.tree.is_some(), was) {
                (true, _) => Use::Owned,
                (false, Use::Owned | Use::Resting) => Use::Resting,
                (false, other) => other,
            };
            self.extents[i] = new.clone();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const G: Geometry = Geometry { extent_pages: 8, stripes: 3 };

    #[test]
    fn pages_are_dealt_to_stripes() {
        assert_eq!(G.place(PageId(0)), Place { stripe: 0, offset: 0 });
        assert_eq!(G.place(PageId(9)), Place { stripe: 1, offset: 8192 });
        assert_eq!(G.place(PageId(8 * 4 + 2)), Place { stripe: 1, offset: 8 * 8192 + 2 * 8192 });
        assert_eq!(G.page(4, 2), PageId(34));
        assert_eq!((G.extent_of(PageId(34)), G.index_of(PageId(34))), (4, 2));
        let bytes: u64 = (0..3).map(|s| G.stripe_bytes(s, 5)).sum();
        assert_eq!(bytes, 5 * G.extent_bytes());
        assert_eq!(G.stripe_bytes(2, 5), G.extent_bytes());
        assert_eq!(G.stripe_bytes(2, 2), 0);
    }

    #[test]
    fn every_page_has_its_own_place() {
        let mut seen = std::collections::HashSet::new();
        for p in 0..8 * 10 {
            let place = G.place(PageId(p));
            assert!(seen.insert((place.stripe, place.offset)));
            assert!(place.offset < G.stripe_bytes(place.stripe, 10));
        }
    }

    #[test]
    fn builds_are_invisible_until_committed() {
        let mut s = Space::new(G, vec![]);
        let a = s.allocate(2);
        assert_eq!((a, s.len()), (0, 2));
        assert_eq!(s.owner(PageId(0)), None);
        let built = vec![(0, Extent::filled(8, TreeId(1), 8)), (1, Extent::filled(8, TreeId(1), 3))];
        let map = s.after(&built, &[]);
        s.commit(map);
        assert_eq!(s.owner(PageId(0)), Some(TreeId(1)));
        assert_eq!(s.owner(PageId(10)), Some(TreeId(1)));
        assert_eq!(s.owner(PageId(11)), None, "allocated but never written");
        assert_eq!(s.owner(PageId(999)), None);
    }

    #[test]
    fn freed_extents_rest_and_are_reused_after_reopen() {
        let mut s = Space::new(G, vec![Extent::filled(8, TreeId(1), 8), Extent::filled(8, TreeId(2), 8)]);
        let e = s.allocate(1);
        assert_eq!(e, 2);
        let map = s.after(&[(e, Extent::filled(8, TreeId(3), 1))], &[TreeId(1)]);
        s.commit(map.clone());
        assert_eq!(s.allocate(1), 3, "extent 0 rests while old snapshots may read it");
        let mut again = Space::new(G, map);
        assert_eq!(again.allocate(1), 0);
        assert_eq!(again.allocate(2), 3);
    }

    #[test]
    fn released_extents_are_found_again_and_the_end_is_trimmed() {
        let mut s = Space::new(G, vec![]);
        s.allocate(4);
        s.release(1);
        s.release(2);
        assert_eq!(s.allocate(2), 1);
        s.release(3);
        assert_eq!(s.len(), 3);
    }
}
