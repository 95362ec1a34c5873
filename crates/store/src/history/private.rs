//! The private pages of a write transaction: copies that it alone sees until it commits.
//!
//! Those that find no room in memory are written to the journal early. Invariant: a page that a
//! snapshot holds never changes; the transaction copies it first ([`Arc::make_mut`]).

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::journal::{FilePin, Loc};
use crate::page::{PageBuf, PageId, TreeId, header};

/// Pages a transaction has changed.
#[derive(Clone, Debug, Default)]
pub(crate) struct PrivatePages {
    pages: FxHashMap<PageId, PrivatePage>,
    in_memory: usize,
    /// Keeps the journal files that hold pages.
    pin: Option<Arc<FilePin>>,
}

/// A page a transaction has changed.
#[derive(Clone, Debug)]
pub(crate) struct PrivatePage {
    pub tree: TreeId,
    pub state: Private,
    /// Its next record in the journal must not build on the state before the transaction: the
    /// journal has a newer state, or the page is a new one, whose earlier life the journal may know
    /// differently (spilled, then given back).
    pub stands_alone: bool,
}

/// Where a private page comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// It is a copy of the page before.
    Copy,
    /// It was just allocated.
    New,
}

/// Where a private page is.
#[derive(Clone, Debug)]
pub(crate) enum Private {
    Memory(Arc<PageBuf>),
    Journal(Loc),
}

impl PrivatePages {
    /// The page, if it was changed.
    #[inline]
    pub fn get(&self, page: PageId) -> Option<&PrivatePage> {
        self.pages.get(&page)
    }

    /// The page to be changed further, if it is in memory.
    pub fn get_mut(&mut self, page: PageId) -> Option<&mut PageBuf> {
        match self.pages.get_mut(&page).map(|p| &mut p.state) {
            Some(Private::Memory(state)) => Some(Arc::make_mut(state)),
            _ => None,
        }
    }

    /// Adds a page of `tree`, or brings one back into memory.
    pub fn insert(&mut self, page: PageId, tree: TreeId, state: PageBuf, origin: Origin) {
        let old = self.pages.get(&page);
        assert!(old.is_none_or(|old| old.tree == tree), "a page has one owner within a transaction");
        let old_stands_alone = old.is_some_and(|p| p.stands_alone);
        self.remove(page);
        self.in_memory += 1;
        let stands_alone = old_stands_alone || origin == Origin::New;
        self.pages.insert(page, PrivatePage { tree, state: Private::Memory(Arc::new(state)), stands_alone });
    }

    /// Forgets a page.
    pub fn remove(&mut self, page: PageId) {
        let Some(old) = self.pages.remove(&page) else { return };
        let was_in_memory = usize::from(matches!(old.state, Private::Memory(_)));
        assert!(self.in_memory >= was_in_memory, "pages in memory are counted");
        self.in_memory -= was_in_memory;
    }

    /// Forgets the pages of a tree.
    pub fn remove_tree(&mut self, tree: TreeId) {
        self.pages.retain(|_, p| p.tree != tree);
        self.in_memory = self.pages.values().filter(|p| matches!(p.state, Private::Memory(_))).count();
    }

    /// Pages in memory.
    pub fn in_memory(&self) -> usize {
        debug_assert!(self.in_memory <= self.pages.len(), "no more are in memory than there are");
        self.in_memory
    }

    /// True when nothing was changed.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// The pages to be written out when there are too many: leaves, or if these are few, all.
    pub fn to_spill(&self) -> Vec<(PageId, Arc<PageBuf>)> {
        let in_memory = self.pages.iter().filter_map(|(id, p)| match &p.state {
            Private::Memory(state) => Some((*id, state.clone())),
            Private::Journal(_) => None,
        });
        let all: Vec<_> = in_memory.collect();
        let leaves: Vec<_> = all.iter().filter(|(_, p)| header(p).level() == 0).cloned().collect();
        let mut chosen = if leaves.len() * 2 >= all.len() { leaves } else { all };
        chosen.sort_unstable_by_key(|(id, _)| *id);
        chosen
    }

    /// Notes that the page is in the journal.
    pub fn spilled(&mut self, page: PageId, loc: Loc, pin: &Arc<FilePin>) {
        if let Some(p) = self.pages.get_mut(&page) {
            let was_in_memory = usize::from(matches!(p.state, Private::Memory(_)));
            assert!(self.in_memory >= was_in_memory, "pages in memory are counted");
            self.in_memory -= was_in_memory;
            (p.state, p.stands_alone) = (Private::Journal(loc), true);
            self.pin = Some(pin.clone());
        }
    }

    /// All pages in the order of their numbers.
    pub fn sorted(&self) -> Vec<(PageId, PrivatePage)> {
        let counted = self.pages.values().filter(|p| matches!(p.state, Private::Memory(_))).count();
        debug_assert_eq!(counted, self.in_memory, "pages in memory are counted");
        let mut all: Vec<_> = self.pages.iter().map(|(id, page)| (*id, page.clone())).collect();
        all.sort_unstable_by_key(|(id, _)| *id);
        all
    }
}
