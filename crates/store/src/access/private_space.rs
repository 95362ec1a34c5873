//! The space a write transaction takes and gives back: a layer over the extent map that becomes
//! part of it at commit.
//!
//! A new page comes from the extent of a page near it; if that is full, from the extent's
//! overflow extent, and so on along the chain; the end of the chain gets a new extent. Extents
//! filled at about the same time share an overflow extent, so that random inserts into a large
//! tree do not double it, and pages stay near their origin. An extent whose last page is given
//! back is given back itself; extents that lead to it lead nowhere then. Invariant: a
//! transaction that ends without commit gives every extent back.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::error::{Result, StoreError};
use crate::journal::change::ExtentChange;
use crate::page::geometry::ExtentId;
use crate::page::{PageId, TreeId};
use crate::read::fetch::Fetch;
use crate::space::extent::{Extent, Used};

/// Extents that share one overflow extent.
const SHARERS: u32 = 8;

/// See the head of the file.
pub(crate) struct PrivateSpace {
    fetch: Arc<Fetch>,
    /// Extents as they will be.
    changed: BTreeMap<ExtentId, Extent>,
    /// Those among them that were free.
    taken: Vec<ExtentId>,
    /// The latest overflow extent of a tree, and how many extents lead to it.
    overflow: FxHashMap<TreeId, (ExtentId, u32)>,
}

impl PrivateSpace {
    pub fn new(fetch: Arc<Fetch>) -> PrivateSpace {
        PrivateSpace { fetch, changed: BTreeMap::new(), taken: Vec::new(), overflow: FxHashMap::default() }
    }

    /// Notes the name of a tree that the transaction makes.
    pub fn name_tree(&mut self, tree: TreeId, name: &str) {
        self.fetch.core.space.write().name_tree(tree, name);
    }

    /// Takes a page for `tree`, near another one if there is one.
    pub fn allocate(&mut self, tree: TreeId, near: Option<PageId>) -> Result<PageId> {
        let near = near.map(|p| self.fetch.geometry.extent_of(p));
        let begin = near.or_else(|| self.last_of(tree));
        let Some(mut at) = begin else {
            let first = self.take(tree)?;
            return Ok(self.use_first(first).expect("a new extent has room"));
        };
        loop {
            assert_eq!(self.now(at).tree, Some(tree), "a tree asks for room near its own pages");
            if let Some(page) = self.use_first(at) {
                return Ok(page);
            }
            at = match self.now(at).overflow {
                Some(next) if self.now(next).tree == Some(tree) => next,
                _ => self.lead_on(tree, at)?,
            };
        }
    }

    /// Takes a page for `tree` from an extent that was free, the one in `fresh` as long as it
    /// has room; some pages of each stay free.
    pub fn allocate_fresh(&mut self, tree: TreeId, fresh: &mut Option<ExtentId>) -> Result<PageId> {
        let extent_pages = self.fetch.geometry.extent_pages;
        let has_room =
            |e: &Extent| e.first_unused(extent_pages).is_some_and(|i| i < fresh_pages(extent_pages));
        let extent = match *fresh {
            Some(extent) if has_room(&self.now(extent)) => extent,
            _ => self.take(tree)?,
        };
        *fresh = Some(extent);
        Ok(self.use_first(extent).expect("the extent has room"))
    }

    /// The extents of trees as the transaction sees them, in order, with the number of their pages;
    /// without those that it has taken itself.
    pub fn owned(&self) -> Vec<(ExtentId, TreeId, u32)> {
        let space = self.fetch.core.space.read();
        let owned = space.iter().filter_map(|(id, e)| {
            let tree = e.tree.filter(|tree| *tree != TreeId::META)?;
            let now = self.changed.get(&id).unwrap_or(e);
            let pages = now.allocated.iter().map(|word| word.count_ones()).sum();
            (now.tree == Some(tree)).then_some((id, tree, pages))
        });
        owned.collect()
    }

    /// True when the tree has a stripe of its own.
    pub fn is_placed(&self, tree: TreeId) -> bool {
        self.fetch.core.space.read().is_placed(tree)
    }

    /// Takes the first free extent for a tree if it lies before another one.
    pub fn take_before(&mut self, tree: TreeId, before: ExtentId) -> Option<ExtentId> {
        let id = self.fetch.core.space.write().allocate_before(tree, before)?;
        let mut extent = Extent::free(self.fetch.geometry.extent_pages);
        extent.tree = Some(tree);
        self.changed.insert(id, extent);
        self.taken.push(id);
        Some(id)
    }

    /// Gives an extent back that was taken, and of which no page was used.
    pub fn give_back(&mut self, extent: ExtentId) {
        let i = self.taken.iter().position(|taken| *taken == extent).expect("it was taken before");
        self.taken.swap_remove(i);
        let was = self.changed.remove(&extent);
        assert!(was.is_some_and(|e| e.is_unused()), "no page of it is in use");
        self.fetch.core.space.write().release(extent);
    }

    /// Pages of an extent that are in use.
    pub fn pages_in(&self, extent: ExtentId) -> Vec<PageId> {
        let (geometry, now) = (self.fetch.geometry, self.now(extent));
        let used = (0..geometry.extent_pages).filter(|i| now.is_allocated(*i));
        used.map(|i| geometry.page(extent, i)).collect()
    }

    /// Takes this page of an extent, or its first free one. `None`: there is none.
    pub fn allocate_in(&mut self, extent: ExtentId, index: Option<u32>) -> Option<PageId> {
        let Some(index) = index else { return self.use_first(extent) };
        assert!(!self.now(extent).is_allocated(index), "the page is free");
        self.change(extent).set_allocated(index, Used::Yes);
        Some(self.fetch.geometry.page(extent, index))
    }

    /// Looks at an extent again at the end: one without pages is given up.
    pub fn touch(&mut self, extent: ExtentId) {
        self.change(extent);
    }

    /// Gives a page back.
    pub fn release(&mut self, page: PageId) {
        let (extent, index) = (self.fetch.geometry.extent_of(page), self.fetch.geometry.index_of(page));
        debug_assert!(self.now(extent).is_allocated(index), "a page is given back once");
        self.change(extent).set_allocated(index, Used::No);
    }

    /// Forgets the changes to the extents of a dropped tree. Those it had taken are given back.
    pub fn drop_tree(&mut self, tree: TreeId) {
        let gone: Vec<ExtentId> =
            self.changed.iter().filter(|(_, e)| e.tree == Some(tree)).map(|(id, _)| *id).collect();
        for id in gone {
            self.changed.remove(&id);
            if let Some(i) = self.taken.iter().position(|t| *t == id) {
                self.taken.swap_remove(i);
                self.fetch.core.space.write().release(id);
            }
        }
        self.overflow.remove(&tree);
    }

    /// Gives up the extents that nothing is left in. The transaction takes no page any more.
    pub fn leave_empty(&mut self) {
        let extent_pages = self.fetch.geometry.extent_pages;
        for extent in self.changed.values_mut().filter(|e| e.is_unused()) {
            *extent = Extent::free(extent_pages);
        }
    }

    /// Changes of extents, for the journal; without extents that end as they began.
    pub fn changes(&self) -> Vec<ExtentChange> {
        let space = self.fetch.core.space.read();
        let free = Extent::free(self.fetch.geometry.extent_pages);
        let changes = self.changed.iter().map(|(id, new)| {
            let taken = self.taken.contains(id);
            let old = space.extent(*id).filter(|_| !taken).unwrap_or(&free);
            let indices = 0..self.fetch.geometry.extent_pages;
            let turned = |from: &Extent, to: &Extent| {
                indices.clone().filter(|i| !from.is_allocated(*i) && to.is_allocated(*i)).collect::<Vec<_>>()
            };
            let (used, unused) = (turned(old, new), turned(new, old));
            let same = (old.tree, old.overflow) == (new.tree, new.overflow);
            let change = ExtentChange { extent: *id, tree: new.tree, overflow: new.overflow, used, unused };
            (!same || !change.used.is_empty() || !change.unused.is_empty()).then_some(change)
        });
        changes.flatten().collect()
    }

    /// The changed extents; they are the caller's from now on.
    pub fn finish(&mut self) -> BTreeMap<ExtentId, Extent> {
        debug_assert!(self.taken.iter().all(|id| self.changed.contains_key(id)), "what was taken is changed");
        self.taken.clear();
        std::mem::take(&mut self.changed)
    }

    /// The extent as the transaction sees it.
    fn now(&self, extent: ExtentId) -> Extent {
        if let Some(e) = self.changed.get(&extent) {
            return e.clone();
        }
        self.fetch.core.space.read().newest(extent).clone()
    }

    fn change(&mut self, extent: ExtentId) -> &mut Extent {
        let now = if self.changed.contains_key(&extent) { None } else { Some(self.now(extent)) };
        let entry = self.changed.entry(extent);
        entry.or_insert_with(|| now.expect("an extent that is not among the changed ones was looked up"))
    }

    fn use_first(&mut self, extent: ExtentId) -> Option<PageId> {
        let index = self.now(extent).first_unused(self.fetch.geometry.extent_pages)?;
        debug_assert!(index < self.fetch.geometry.extent_pages, "the page lies in its extent");
        self.change(extent).set_allocated(index, Used::Yes);
        Some(self.fetch.geometry.page(extent, index))
    }

    /// The last extent of a tree in the map or among those taken.
    fn last_of(&self, tree: TreeId) -> Option<ExtentId> {
        let taken = self.taken.iter().rev().find(|e| self.now(**e).tree == Some(tree)).copied();
        taken.or_else(|| self.fetch.core.space.read().of_tree(tree).last())
    }

    /// Gives the full extent `at` an overflow extent: the tree's latest one if few lead to it
    /// and it has room, else a new one.
    fn lead_on(&mut self, tree: TreeId, at: ExtentId) -> Result<ExtentId> {
        let extent_pages = self.fetch.geometry.extent_pages;
        let shared = self.overflow.get(&tree).copied().filter(|(e, sharers)| {
            *sharers < SHARERS && *e != at && self.now(*e).first_unused(extent_pages).is_some()
        });
        let (to, sharers) = match shared {
            Some((e, sharers)) => (e, sharers + 1),
            None => (self.take(tree)?, 1),
        };
        assert!(to != at, "an extent does not overflow into itself");
        debug_assert!(sharers <= SHARERS, "few extents share an overflow extent");
        self.overflow.insert(tree, (to, sharers));
        self.change(at).overflow = Some(to);
        Ok(to)
    }

    fn take(&mut self, tree: TreeId) -> Result<ExtentId> {
        let most = self.fetch.core.pages.pool.most_pages() / self.fetch.geometry.extent_pages as u64;
        let mut space = self.fetch.core.space.write();
        let id = space.allocate_for(tree, 1)[0];
        if id >= most {
            space.release(id);
            let why = "the database has grown beyond what it was opened for: close it and open it again";
            return Err(StoreError::Config(why.into()));
        }
        drop(space);
        let mut extent = Extent::free(self.fetch.geometry.extent_pages);
        extent.tree = Some(tree);
        self.changed.insert(id, extent);
        debug_assert!(!self.taken.contains(&id), "an extent is taken once");
        self.taken.push(id);
        Ok(id)
    }
}

impl Drop for PrivateSpace {
    fn drop(&mut self) {
        let mut space = self.fetch.core.space.write();
        for id in self.taken.drain(..) {
            space.release(id);
        }
    }
}

/// Pages of a fresh extent that are filled.
pub(crate) fn fresh_pages(extent_pages: u32) -> u32 {
    (extent_pages - extent_pages / 8).max(1)
}
