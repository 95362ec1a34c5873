//! Space: which extent belongs to which tree, which pages of it are written, and where a page lies.
//!
//! Page `p` is page `p mod k` of extent `p div k` (k = pages per extent). Extent `e` is the
//! `e div n`-th extent of the file of stripe `e mod n` (n stripes). An extent has one owner, so
//! reading it whole never drags in foreign pages; its bitmap says which of its pages were ever
//! written, so read-ahead skips the rest.
//!
//! A page is *allocated* when the newest state uses it and *written* when its stripe has it:
//! between a commit and its checkpoint a page may be one and not the other. The files keep what
//! is allocated; read-ahead and readers go by what is written.
//!
//! Invariant: extents handed to a build or a transaction are invisible to readers until it
//! commits, and an extent that a commit frees stays as it is for the readers of older
//! snapshots.

pub(crate) mod extent;
pub(crate) mod meta;
pub(crate) mod meta_pages;
pub(crate) mod segment;

use rustc_hash::FxHashMap;

use crate::format::placement::Placement;
use crate::page::geometry::{ExtentId, Geometry};
use crate::page::{PageId, TreeId};
use crate::space::extent::{Extent, SEGMENT};

/// Use of an extent.
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
    /// By segment of the map: true when it may have changed since a checkpoint last took it.
    changed: Vec<bool>,
    /// Number of extents that rest.
    resting: u64,
    /// A free extent: stands for each extent that no committed tree owns.
    free: Extent,
    placement: Placement,
    /// Trees with a stripe of their own.
    placed: FxHashMap<TreeId, u32>,
}

impl Space {
    /// The space described by a committed extent map.
    pub fn new(geometry: Geometry, extents: Vec<Extent>) -> Self {
        assert!(geometry.extent_pages > 0 && geometry.stripes > 0, "extents have pages, and a stripe");
        let uses = extents.iter().map(|e| if e.tree.is_some() { Use::Owned } else { Use::Free }).collect();
        let changed = vec![true; extents.len().div_ceil(SEGMENT)];
        let free = Extent::free(geometry.extent_pages);
        let (placement, placed) = (Placement::default(), FxHashMap::default());
        Space { geometry, extents, uses, changed, resting: 0, free, placement, placed }
    }

    /// This space with trees on stripes of their own, as far as the trees are known by name.
    pub fn with_placement(self, placement: Placement) -> Self {
        debug_assert!(
            placement.iter().all(|(_, stripe)| stripe < self.geometry.stripes),
            "a stripe that is there"
        );
        Space { placement, ..self }
    }

    /// The trees that have a stripe of their own.
    pub fn placement(&self) -> &Placement {
        &self.placement
    }

    /// A tree has this name: extents that it takes from now on lie where its name is placed.
    pub fn name_tree(&mut self, tree: TreeId, name: &str) {
        match self.placement.stripe_of(name) {
            Some(stripe) => drop(self.placed.insert(tree, stripe)),
            None => drop(self.placed.remove(&tree)),
        }
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

    /// Its owner as [`Space::owner`] says it, and what its stripe must have: the low half of
    /// the transaction it was last written with. `None` when that is not known, and for pages
    /// that the newest state does not use.
    pub fn expected(&self, page: PageId) -> (Option<TreeId>, Option<u32>) {
        let Some(e) = self.extent(self.geometry.extent_of(page)) else { return (None, None) };
        let index = self.geometry.index_of(page);
        match e.is_written(index) {
            true if e.is_allocated(index) => (e.tree, e.written_by.get(index)),
            true => (e.tree, None),
            false => (None, None),
        }
    }

    /// The pages of an extent of the newest state whose last write, as far as is known, is
    /// newer than `txn`; `newest` is the newest transaction there is.
    pub fn written_since(&self, extent: ExtentId, txn: u64, newest: u64) -> Vec<PageId> {
        let e = self.newest(extent);
        let is_newer = |i: u32| {
            // Of a number whose low half is known: the latest that there can be.
            let of = |low: u32| newest - u64::from((newest as u32).wrapping_sub(low)).min(newest);
            e.is_allocated(i) && e.written_by.get(i).is_none_or(|low| of(low) > txn)
        };
        (0..self.geometry.extent_pages)
            .filter(|i| is_newer(*i))
            .map(|i| self.geometry.page(extent, i))
            .collect()
    }

    /// All extents of the newest state in order.
    pub fn iter(&self) -> impl Iterator<Item = (ExtentId, &Extent)> {
        (0..self.len()).map(|i| (i, self.newest(i)))
    }

    /// The extents of a tree in the newest state, in order.
    pub fn of_tree(&self, tree: TreeId) -> impl Iterator<Item = ExtentId> {
        self.iter().filter(move |(_, e)| e.tree == Some(tree)).map(|(id, _)| id)
    }

    /// Takes up to `want` ≥ 1 consecutive extents: the first free run that is long enough, else
    /// new ones at the end. Returns the first; all `want` are the caller's until
    /// [`Space::release`] or [`Space::commit`].
    pub fn allocate(&mut self, want: u32) -> ExtentId {
        assert!(want > 0, "no extents asked for");
        let first = self.first_free_run(want as usize);
        let end = first + want as usize;
        while self.extents.len() < end {
            self.extents.push(Extent::free(self.geometry.extent_pages));
            self.uses.push(Use::Free);
        }
        assert!(self.uses[first..end].iter().all(|u| *u == Use::Free), "only free extents are given out");
        self.uses[first..end].fill(Use::Building);
        assert_eq!(self.uses.len(), self.extents.len(), "each extent has its use");
        first as u64
    }

    /// Takes `want` ≥ 1 extents for a tree: those of [`Space::allocate`], or, of a tree that is
    /// placed, extents that follow each other on its stripe.
    pub fn allocate_for(&mut self, tree: TreeId, want: u32) -> Vec<ExtentId> {
        let Some(stripe) = self.placed.get(&tree) else {
            let first = self.allocate(want);
            return (first..first + u64::from(want)).collect();
        };
        assert!(want > 0, "no extents asked for");
        let mut run = Vec::new();
        let mut next = *stripe as usize;
        while run.len() < want as usize {
            match self.uses.get(next) {
                Some(Use::Free) | None => run.push(next as u64),
                Some(_) => run.clear(),
            }
            next += self.geometry.stripes as usize;
        }
        let end = *run.last().expect("an extent at least") as usize + 1;
        while self.extents.len() < end {
            self.extents.push(self.free.clone());
            self.uses.push(Use::Free);
        }
        let is_free = |extent: &ExtentId| self.uses[*extent as usize] == Use::Free;
        assert!(run.iter().all(is_free), "only free extents are given out");
        assert_eq!(run.len(), want as usize, "as many extents are given out as were asked for");
        run.iter().for_each(|extent| self.uses[*extent as usize] = Use::Building);
        assert_eq!(self.uses.len(), self.extents.len(), "each extent has its use");
        run
    }

    /// True when the tree has a stripe of its own.
    pub fn is_placed(&self, tree: TreeId) -> bool {
        self.placed.contains_key(&tree)
    }

    /// Takes the first free extent for a tree, of one that is placed on its stripe, if it lies
    /// before this one.
    pub fn allocate_before(&mut self, tree: TreeId, before: ExtentId) -> Option<ExtentId> {
        let stripe = self.placed.get(&tree).map(|stripe| u64::from(*stripe));
        let fits = |i: &u64| stripe.is_none_or(|stripe| i % u64::from(self.geometry.stripes) == stripe);
        let free = (0..before.min(self.len())).filter(fits).find(|i| self.uses[*i as usize] == Use::Free)?;
        self.uses[free as usize] = Use::Building;
        Some(free)
    }

    /// The first of `want` free extents in a row.
    pub fn first_room(&self, want: usize) -> ExtentId {
        self.first_free_run(want) as u64
    }

    /// Takes an extent for a tree behind all there are; of a tree that is placed, on its stripe.
    pub fn allocate_behind(&mut self, tree: TreeId) -> ExtentId {
        let (len, stripes) = (self.extents.len(), self.geometry.stripes as usize);
        let at = match self.placed.get(&tree) {
            Some(stripe) => len + (*stripe as usize + stripes - len % stripes) % stripes,
            None => len,
        };
        self.extents.resize(at + 1, self.free.clone());
        self.uses.resize(at + 1, Use::Free);
        assert_eq!(self.uses.len(), self.extents.len(), "each extent has its use");
        self.uses[at] = Use::Building;
        at as u64
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
            let last = self.extents.pop();
            assert!(last.is_some_and(|e| e.tree.is_none()), "a free extent has no owner");
        }
    }

    /// Appends these extents as they are to be kept with a new meta run: what committed trees
    /// own, without the run before.
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

    /// Notes that the segment of an extent may have changed since it was last taken.
    fn touch(&mut self, extent: usize) {
        let segment = extent / SEGMENT;
        if segment >= self.changed.len() {
            self.changed.resize(segment + 1, true);
        }
        self.changed[segment] = true;
    }

    /// The segments of the map that may have changed since they were last taken.
    pub fn changed_segments(&self) -> Vec<usize> {
        self.changed.iter().enumerate().filter(|(_, changed)| **changed).map(|(i, _)| i).collect()
    }

    /// The extents of a segment as they are to be kept, free ones beyond the end. It counts as
    /// unchanged from now on.
    pub fn take_segment(&mut self, segment: usize) -> Vec<Extent> {
        if let Some(changed) = self.changed.get_mut(segment) {
            *changed = false;
        }
        let kept = |i: usize| match self.uses.get(i) {
            Some(Use::Owned) => self.extents[i].clone(),
            _ => self.free.clone(),
        };
        debug_assert_eq!(self.uses.len(), self.extents.len(), "each extent has its use");
        (segment * SEGMENT..(segment + 1) * SEGMENT).map(kept).collect()
    }

    /// Counts segments as changed again: they were taken in vain.
    pub fn change_segments(&mut self, segments: impl IntoIterator<Item = usize>) {
        segments.into_iter().for_each(|s| self.touch(s * SEGMENT));
    }

    /// Extents that the map to be kept needs: all but the free ones at the end.
    pub fn durable_len(&self) -> u64 {
        self.uses.iter().rposition(|u| *u == Use::Owned).map_or(0, |i| i as u64 + 1)
    }

    /// Takes `want` consecutive extents for the store's own pages: they are part of the map at
    /// once.
    pub fn take_for_meta(&mut self, want: u32) -> std::ops::Range<ExtentId> {
        let first = self.allocate(want);
        for i in first..first + u64::from(want) {
            assert!(self.extents[i as usize].tree.is_none(), "an extent that is taken has no owner");
            self.extents[i as usize].tree = Some(TreeId::META);
            self.uses[i as usize] = Use::Owned;
            self.touch(i as usize);
        }
        first..first + u64::from(want)
    }

    /// Which pages of an extent of the store's own are in use.
    pub fn set_meta_pages(&mut self, extent: ExtentId, used: Box<[u64]>) {
        let e = &mut self.extents[extent as usize];
        assert_eq!(e.tree, Some(TreeId::META), "only an extent of the store's own has pages of the meta run");
        assert_eq!(used.len(), e.allocated.len(), "a bit for each page of the extent");
        e.written = used.clone();
        e.allocated = used;
    }

    /// Gives up an extent of the store's own: the durable state has nothing in it.
    pub fn release_meta(&mut self, extent: ExtentId) {
        let i = extent as usize;
        assert_eq!(self.extents[i].tree, Some(TreeId::META), "only an extent of the store's own is given up");
        assert!(self.extents[i].is_unused(), "nothing is left in an extent that is given up");
        self.make_free(i);
        self.touch(i);
        self.trim();
    }

    /// Makes extents that a build wrote part of the map.
    pub fn place(&mut self, built: impl IntoIterator<Item = (ExtentId, Extent)>) {
        for (id, e) in built {
            let used = &mut self.uses[id as usize];
            assert_eq!(*used, Use::Building, "a built extent was allocated to the build");
            assert!(e.tree.is_some(), "a built extent has an owner");
            *used = Use::Owned;
            self.extents[id as usize] = e;
            self.touch(id as usize);
        }
    }

    /// Makes a transaction's changes those of the newest state: extents whose owner, overflow or
    /// allocation it changed, and trees it dropped. An extent without an owner was emptied: one of
    /// a committed tree rests, since older snapshots may see it.
    pub fn apply(
        &mut self,
        txn: u64,
        changed: impl IntoIterator<Item = (ExtentId, Extent)>,
        dropped: &[TreeId],
    ) {
        for (id, new) in changed {
            self.touch(id as usize);
            if new.tree.is_none() {
                match self.uses[id as usize] {
                    Use::Owned => self.rest(id as usize, txn),
                    _ => self.uses[id as usize] = Use::Free,
                }
                continue;
            }
            let old = &mut self.extents[id as usize];
            assert!(!matches!(self.uses[id as usize], Use::Resting(_)), "a resting extent is not changed");
            assert_eq!(old.allocated.len(), new.allocated.len(), "a bit for each page of the extent");
            old.tree = new.tree;
            old.overflow = new.overflow;
            old.allocated = new.allocated;
            self.uses[id as usize] = Use::Owned;
        }
        if dropped.is_empty() {
            return;
        }
        for i in 0..self.extents.len() {
            let is_gone = self.extents[i].tree.is_some_and(|t| dropped.contains(&t));
            if is_gone && self.uses[i] == Use::Owned {
                self.rest(i, txn);
                self.touch(i);
            }
        }
    }

    fn rest(&mut self, i: usize, txn: u64) {
        self.uses[i] = Use::Resting(txn);
        self.resting += 1;
    }

    /// Number of extents that were freed and may not be given out yet.
    pub fn rest_count(&self) -> u64 {
        self.resting
    }

    /// Says that a page is on its stripe, as this transaction left it.
    pub fn set_written(&mut self, page: PageId, txn: u64) {
        let (extent, index) = (self.geometry.extent_of(page), self.geometry.index_of(page));
        let pages = self.geometry.extent_pages;
        if let Some(e) = self.extents.get_mut(extent as usize) {
            e.written[index as usize / 64] |= 1 << (index % 64);
            if e.written_by.set(index, txn, pages) {
                self.touch(extent as usize);
            }
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

    /// Extents that may be given out, and those that rest for older readers.
    pub fn unused(&self) -> (u64, u64) {
        let count = |wanted: fn(&Use) -> bool| self.uses.iter().filter(|u| wanted(u)).count() as u64;
        (count(|u| *u == Use::Free), count(|u| matches!(u, Use::Resting(_))))
    }

    /// Extents that commits up to `txn` freed.
    pub fn resting(&self, txn: u64) -> Vec<ExtentId> {
        let freed = |u: &Use| matches!(u, Use::Resting(t) if *t <= txn);
        self.uses.iter().enumerate().filter(|(_, u)| freed(u)).map(|(i, _)| i as u64).collect()
    }

    /// Lets a resting extent be given out again. No snapshot may see its old content any more.
    pub fn free(&mut self, extent: ExtentId) {
        assert!(matches!(self.uses[extent as usize], Use::Resting(_)), "only a resting extent is freed");
        self.resting -= 1;
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
    use crate::page::geometry::Place;

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
    fn a_placed_tree_stays_on_its_stripe() {
        let mut s = Space::new(G, vec![]).with_placement("a=1".parse().unwrap());
        let (a, b) = (TreeId(1), TreeId(2));
        s.name_tree(a, "a");
        s.name_tree(b, "b");
        assert_eq!(s.allocate_for(a, 2), [1, 4]);
        assert_eq!(s.allocate_for(b, 1), [0]);
        assert_eq!(s.allocate_for(b, 3), [5, 6, 7], "the first run that is long enough");
        assert_eq!(s.allocate_for(a, 1), [10], "7 is on its stripe and taken");
        assert_eq!(s.allocate_for(b, 2), [2, 3]);
        let behind = [s.allocate_behind(b), s.allocate_behind(a), s.allocate_behind(a)];
        assert_eq!(behind, [11, 13, 16]);
        [16, 13, 11].into_iter().for_each(|extent| s.release(extent));
        s.release(4);
        assert_eq!(s.allocate_for(a, 1), [4], "what is free again is found");
        s.name_tree(a, "b");
        assert_eq!(s.allocate_for(a, 1), [8], "the tree of this number is another now");
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
    fn what_changes_is_in_a_changed_segment() {
        let extents = vec![Extent::filled(8, TreeId(1), 8).by(1); 3 * SEGMENT];
        let mut s = Space::new(G, extents);
        let settle = |s: &mut Space| {
            let changed = s.changed_segments();
            changed.iter().for_each(|i| drop(s.take_segment(*i)));
            changed
        };
        assert_eq!(settle(&mut s), [0, 1, 2], "who knows what a recovery changed");
        s.set_written(PageId(8 * 70 + 1), 1);
        assert_eq!(settle(&mut s), [0usize; 0], "nothing new");
        s.set_written(PageId(8 * 70 + 1), 5);
        assert_eq!(s.expected(PageId(8 * 70 + 1)), (Some(TreeId(1)), Some(5)));
        assert_eq!(settle(&mut s), [1]);
        s.apply(9, [(130, Extent::free(8))], &[]);
        assert_eq!(settle(&mut s), [2]);
        let taken = s.take_for_meta(2);
        assert_eq!((taken.start, s.durable_len()), (192, 194));
        assert_eq!(settle(&mut s), [3]);
        s.release_meta(193);
        s.release_meta(192);
        assert_eq!((settle(&mut s), s.durable_len()), (vec![3], 192));
        s.apply(10, [], &[TreeId(1)]);
        assert_eq!(s.changed_segments(), [0, 1, 2]);
        assert!(s.take_segment(0).iter().all(|e| e.tree.is_none()));
        s.change_segments([0]);
        assert_eq!(s.changed_segments(), [0, 1, 2]);
    }

    #[test]
    fn the_map_of_a_copy_has_no_meta_run() {
        let mut s = Space::new(G, vec![Extent::filled(8, TreeId(1), 8), Extent::filled(8, TreeId::META, 1)]);
        let e = s.allocate(1);
        let mut map = Vec::new();
        s.copy_durable(0..2, &mut map);
        s.copy_durable(2..3, &mut map);
        assert_eq!((map.len(), map[1].tree), (3, None));
        assert_eq!(s.durable().len(), 1);
        s.release(e);
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
