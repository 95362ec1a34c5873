//! Space: which extent belongs to which tree, which pages of it are written, and where a page lies.
//!
//! Page `p` is page `p mod k` of extent `p div k` (k = pages per extent). Extent `e` is the `e div n`-th extent of the file of
//! stripe `e mod n` (n stripes). An extent has one owner, so reading it whole never drags in foreign pages; its bitmap says which
//! of its pages were ever written, so read-ahead skips the rest.
//!
//! A page is *allocated* when the newest state uses it and *written* when its stripe has it: between a commit and its checkpoint a page may be
//! one and not the other. The files keep what is allocated; read-ahead and readers go by what is written.
//!
//! Invariant: extents handed to a build or a transaction are invisible to readers until it commits, and an extent that a commit frees
//! stays as it is for the readers of older snapshots.

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
    /// The extent that takes the pages of splits when this one is full.
    pub overflow: Option<ExtentId>,
    /// Bit i: page i is on the stripe. `extent_pages` bits, lowest first.
    pub written: Box<[u64]>,
    /// Bit i: page i is in use.
    pub allocated: Box<[u64]>,
}

impl Extent {
    /// A free extent.
    pub fn free(extent_pages: u32) -> Self {
        let none: Box<[u64]> = vec![0; words(extent_pages)].into();
        Extent { tree: None, overflow: None, written: none.clone(), allocated: none }
    }

    /// An extent of `tree` whose first `pages` pages are written.
    pub fn filled(extent_pages: u32, tree: TreeId, pages: u32) -> Self {
        let mut e = Self::free(extent_pages);
        e.tree = Some(tree);
        for i in 0..pages {
            e.written[i as usize / 64] |= 1 << (i % 64);
        }
        e.allocated = e.written.clone();
        e
    }

    /// True when none of its pages is in use.
    pub fn is_unused(&self) -> bool {
        self.allocated.iter().all(|w| *w == 0)
    }

    /// The first page that is not in use.
    pub fn first_unused(&self, extent_pages: u32) -> Option<u32> {
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

/// What became of an extent that no committed tree owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// A committed tree owns it.
    Owned,
    /// May be given out.
    Free,
    /// A build or a transaction has taken it.
    Building,
    /// Freed by the commit of this transaction; readers of older snapshots may still read it.
    Resting(u64),
}

/// The extent map of a database and what may be allocated.
#[derive(Debug)]
pub struct Space {
    geometry: Geometry,
    extents: Vec<Extent>,
    uses: Vec<Use>,
    /// What a resting extent looks like from outside.
    free: Extent,
}

impl Space {
    /// The space described by a committed extent map.
    pub fn new(geometry: Geometry, extents: Vec<Extent>) -> Self {
        let uses = extents.iter().map(|e| if e.tree.is_some() { Use::Owned } else { Use::Free }).collect();
        Space { geometry, extents, uses, free: Extent::free(geometry.extent_pages) }
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

    /// The extent as of the newest state: free unless a tree owns it.
    pub fn newest(&self, extent: ExtentId) -> &Extent {
        let owned = self.uses.get(extent as usize) == Some(&Use::Owned);
        if owned { &self.extents[extent as usize] } else { &self.free }
    }

    /// The tree that owns `page`, if the page was written and committed.
    pub fn owner(&self, page: PageId) -> Option<TreeId> {
        let e = self.extent(self.geometry.extent_of(page))?;
        if e.is_written(self.geometry.index_of(page)) { e.tree } else { None }
    }

    /// All extents of the newest state in order.
    pub fn iter(&self) -> impl Iterator<Item = (ExtentId, &Extent)> {
        (0..self.len()).map(|i| (i, self.newest(i)))
    }

    /// The extents of a tree in the newest state, in order.
    pub fn of_tree(&self, tree: TreeId) -> impl Iterator<Item = ExtentId> {
        self.iter().filter(move |(_, e)| e.tree == Some(tree)).map(|(id, _)| id)
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

    /// Appends these extents as they are to be kept with a new meta run: what committed trees own, without the run before.
    pub fn copy_durable(&self, range: std::ops::Range<usize>, map: &mut Vec<Extent>) {
        map.extend(range.map(|i| match self.uses.get(i) {
            Some(Use::Owned) if self.extents[i].tree != Some(TreeId::META) => self.extents[i].clone(),
            _ => self.free.clone(),
        }));
    }

    /// The whole map as it is to be kept, without what is free at its end.
    pub fn durable(&self) -> Vec<Extent> {
        let mut map = Vec::new();
        self.copy_durable(0..self.extents.len(), &mut map);
        while map.last().is_some_and(|e| e.tree.is_none()) {
            map.pop();
        }
        map
    }

    /// Makes the extents of a meta run part of the map and frees those of the run before: nobody reads these any more.
    pub fn switch_meta(&mut self, new: impl IntoIterator<Item = (ExtentId, Extent)>) {
        for i in 0..self.extents.len() {
            if self.uses[i] == Use::Owned && self.extents[i].tree == Some(TreeId::META) {
                self.make_free(i);
            }
        }
        self.place(new);
        self.trim();
    }

    /// Makes extents that a build wrote part of the map.
    pub fn place(&mut self, built: impl IntoIterator<Item = (ExtentId, Extent)>) {
        for (id, e) in built {
            let used = &mut self.uses[id as usize];
            assert_eq!(*used, Use::Building, "a built extent was allocated to the build");
            *used = Use::Owned;
            self.extents[id as usize] = e;
        }
    }

    /// Makes a transaction's changes those of the newest state: extents whose owner, overflow or allocation it changed, and trees it dropped.
    /// An extent without an owner was emptied: it rests, if anybody may see what was in it.
    pub fn apply(
        &mut self,
        txn: u64,
        changed: impl IntoIterator<Item = (ExtentId, Extent)>,
        dropped: &[TreeId],
    ) {
        for (id, new) in changed {
            if new.tree.is_none() {
                let used = &mut self.uses[id as usize];
                *used = if *used == Use::Owned { Use::Resting(txn) } else { Use::Free };
                continue;
            }
            let old = &mut self.extents[id as usize];
            old.tree = new.tree;
            old.overflow = new.overflow;
            old.allocated = new.allocated;
            self.uses[id as usize] = Use::Owned;
        }
        if dropped.is_empty() {
            return;
        }
        for (extent, used) in self.extents.iter().zip(&mut self.uses) {
            if *used == Use::Owned && extent.tree.is_some_and(|t| dropped.contains(&t)) {
                *used = Use::Resting(txn);
            }
        }
    }

    /// Says that a page is on its stripe.
    pub fn set_written(&mut self, page: PageId) {
        let (extent, index) = (self.geometry.extent_of(page), self.geometry.index_of(page));
        if let Some(e) = self.extents.get_mut(extent as usize) {
            e.written[index as usize / 64] |= 1 << (index % 64);
        }
    }

    /// The tree that a page belongs to as of `txn`, on its stripe or not.
    pub fn tree_as_of(&self, page: PageId, txn: u64) -> Option<TreeId> {
        let i = self.geometry.extent_of(page) as usize;
        let owned = match self.uses.get(i)? {
            Use::Owned => true,
            Use::Resting(freed) => *freed > txn,
            Use::Free | Use::Building => false,
        };
        if owned { self.extents[i].tree } else { None }
    }

    /// Extents that commits up to `txn` freed.
    pub fn resting(&self, txn: u64) -> Vec<ExtentId> {
        let freed = |u: &Use| matches!(u, Use::Resting(t) if *t <= txn);
        self.uses.iter().enumerate().filter(|(_, u)| freed(u)).map(|(i, _)| i as u64).collect()
    }

    /// Lets a resting extent be given out again. Nobody may be able to see what it held.
    pub fn free(&mut self, extent: ExtentId) {
        assert!(matches!(self.uses[extent as usize], Use::Resting(_)), "only a resting extent is freed");
        self.make_free(extent as usize);
        self.trim();
    }

    fn make_free(&mut self, i: usize) {
        self.uses[i] = Use::Free;
        self.extents[i] = self.free.clone();
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
        s.place(built);
        assert_eq!(s.owner(PageId(0)), Some(TreeId(1)));
        assert_eq!(s.owner(PageId(10)), Some(TreeId(1)));
        assert_eq!(s.owner(PageId(11)), None, "allocated but never written");
        assert_eq!(s.owner(PageId(999)), None);
    }

    #[test]
    fn freed_extents_rest_until_nobody_can_see_them() {
        let mut s = Space::new(G, vec![Extent::filled(8, TreeId(1), 8), Extent::filled(8, TreeId(2), 8)]);
        let e = s.allocate(1);
        assert_eq!(e, 2);
        s.place([(e, Extent::filled(8, TreeId(3), 1))]);
        s.apply(7, [], &[TreeId(1)]);
        assert_eq!(s.allocate(1), 3, "extent 0 rests while old snapshots may read it");
        assert_eq!((s.owner(PageId(0)), s.tree_as_of(PageId(0), 7)), (Some(TreeId(1)), None));
        assert_eq!(s.durable()[0], Extent::free(8));
        assert_eq!((s.resting(6), s.resting(7)), (vec![], vec![0]));
        s.free(0);
        assert_eq!((s.owner(PageId(0)), s.allocate(1)), (None, 0));
    }

    #[test]
    fn an_emptied_extent_rests_too() {
        let mut s = Space::new(G, vec![Extent::filled(8, TreeId(1), 2), Extent::filled(8, TreeId(1), 8)]);
        let taken = s.allocate(1);
        s.apply(7, [(0, Extent::free(8)), (taken, Extent::free(8))], &[]);
        assert_eq!(s.of_tree(TreeId(1)).collect::<Vec<_>>(), [1]);
        assert_eq!(s.owner(PageId(0)), Some(TreeId(1)), "older snapshots read it");
        assert_eq!((s.newest(0).tree, s.durable()[0].tree), (None, None));
        assert_eq!((s.resting(6), s.resting(7)), (vec![], vec![0]));
        assert_eq!(s.allocate(1), taken, "what was taken and not kept is free at once");
        s.free(0);
        assert_eq!(s.allocate(1), 0);
    }

    #[test]
    fn the_map_keeps_the_new_meta_run_only() {
        let mut s = Space::new(G, vec![Extent::filled(8, TreeId(1), 8), Extent::filled(8, TreeId::META, 1)]);
        let e = s.allocate(1);
        let mut map = Vec::new();
        s.copy_durable(0..2, &mut map);
        s.copy_durable(2..3, &mut map);
        assert_eq!((map.len(), map[1].tree), (3, None));
        s.switch_meta([(e, Extent::filled(8, TreeId::META, 2))]);
        assert_eq!(s.allocate(1), 1);
        assert_eq!(s.durable().len(), 1);
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
