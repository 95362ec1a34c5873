//! Consolidation: pages move towards the begin of the files, so that these can be truncated.
//!
//! 1. The *plan* of a transaction names extents that are to become empty, and another one of the
//!    same tree for each: (a) neighbours of one tree whose pages fit together into seven eighths of
//!    one are merged into the first; (b) the last extents move to the first free ones, as long as
//!    those lie before them.
//! 2. Each tree is walked: all inner nodes, and of its leaves only those that lie in such an extent
//!    or refer to long values there. An extent that has a page to which no way was found stays.
//! 3. The pages are copied, those of a moved extent to the same places in the new one, and the old
//!    ones given back. The nodes above get the new numbers, from the leaves upwards
//!    ([`crate::tree::change`]).
//!
//! It is a transaction like any other: a crash leaves the state before or after it, and readers
//! of older snapshots keep the old pages. Their extents are free after a checkpoint.
//!
//! Long values: nothing in a page of one says which leaf refers to it, so their places are
//! searched once for all transactions ([`StringTree::long_places`]). They move whole extents at a
//! time and are not merged, so that a value gets few more pieces.
//!
//! After consolidation without readers of older snapshots no extent is free in front of one that
//! could move, and two neighbouring extents of a tree have more than seven eighths of an extent in
//! use together. So the files have at most 16/7 of the bytes of the pages in use, an extent per
//! tree, the catalog and the map. Long values and trees on a stripe of their own may have more.

mod plan;
mod repoint;
mod walk;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rustc_hash::FxHashMap;

use crate::access::transaction::Transaction;
use crate::error::Result;
use crate::format::string::dictionary_page::DictionaryHead;
use crate::page::geometry::ExtentId;
use crate::page::{PageBuf, PageId, PageKind, TreeId, header};
use crate::tree::change::put;
use crate::tree::descent::Shape;
use crate::tree::string::StringTree;
use crate::tree::tuple::TupleTree;
use plan::Source;
use walk::{WalkedTree, see};

/// Places of long values by extent, of one tree: strings with pages there.
pub(crate) type LongPlaces = BTreeMap<ExtentId, BTreeSet<u64>>;

/// A consolidation of several transactions.
#[derive(Default, Debug)]
pub struct Consolidation {
    /// Extents that could not be emptied.
    stuck: BTreeSet<ExtentId>,
    /// Those that are not merged: long values lie in them.
    whole: BTreeSet<ExtentId>,
    longs: HashMap<TreeId, LongPlaces>,
    /// The tree whose long values are to be searched before the next transaction.
    wanted: Option<TreeId>,
}

/// Work of one transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Consolidated {
    /// Extents that became empty.
    pub extents: u64,
    /// Pages moved.
    pub pages: u64,
}

impl std::ops::AddAssign for Consolidated {
    fn add_assign(&mut self, other: Consolidated) {
        self.extents += other.extents;
        self.pages += other.pages;
    }
}

/// A tree that takes part.
#[derive(Debug)]
pub enum MovableTree<'a> {
    /// Of rows.
    Tuple(&'a mut TupleTree),
    /// Of strings.
    String(&'a mut StringTree),
}

impl MovableTree<'_> {
    fn shape(&mut self) -> &mut Shape {
        match self {
            MovableTree::Tuple(tree) => &mut tree.shape,
            MovableTree::String(tree) => &mut tree.shape,
        }
    }

    /// The pages of a tree that no node leads to: its symbols, or its dictionary, with its head.
    fn codec_pages(&self, txn: &Transaction) -> Result<(Vec<PageId>, Option<DictionaryHead>)> {
        let MovableTree::String(tree) = self else { return Ok((Vec::new(), None)) };
        let head = tree.dictionary_head(&mut txn.reader())?;
        let parts = head.iter().flat_map(|head| head.parts.iter().copied());
        Ok((std::iter::once(tree.symbols_page).chain(parts).collect(), head))
    }

    fn moved(&mut self, pages: i64, places: &Places) {
        match self {
            MovableTree::Tuple(tree) => tree.pages = tree.pages.wrapping_add_signed(pages),
            MovableTree::String(tree) => {
                tree.symbols_page = places.of(tree.symbols_page);
                tree.pages = tree.pages.wrapping_add_signed(pages);
            }
        }
    }
}

/// The new places of pages.
#[derive(Default)]
pub(crate) struct Places(FxHashMap<PageId, PageId>);

impl Places {
    /// Where a page is now.
    pub(crate) fn of(&self, page: PageId) -> PageId {
        self.0.get(&page).copied().unwrap_or(page)
    }

    pub(crate) fn has_any(&self, pages: &[PageId]) -> bool {
        pages.iter().any(|page| self.0.contains_key(page))
    }
}

impl Consolidation {
    /// The tree whose long values are to be searched before the next transaction, if there is one.
    /// Until they are, extents that hold some stay.
    pub fn wanted(&self) -> Option<TreeId> {
        self.wanted
    }

    /// Takes the places of a tree's long values, as [`StringTree::long_places`] found them.
    pub fn take_longs(&mut self, tree: TreeId, places: BTreeMap<ExtentId, BTreeSet<u64>>) {
        self.longs.insert(tree, places);
        self.wanted = None;
    }

    /// Moves about `most_pages` pages of these trees in a transaction. Nothing is left to be done
    /// when no extent became empty and no tree is [`wanted`](Self::wanted). The handles are to be
    /// stored; on an error the transaction must be given up.
    ///
    /// # Errors
    /// Reading a page failed, a page contradicts the format, there is no space left.
    pub fn run(
        &mut self,
        txn: &mut Transaction,
        trees: &mut [MovableTree<'_>],
        most_pages: u64,
    ) -> Result<Consolidated> {
        self.wanted = None;
        let ids: Vec<TreeId> = trees.iter_mut().map(|tree| tree.shape().id).collect();
        let mut done = Consolidated::default();
        loop {
            let plan = plan::plan(txn, &ids, most_pages, self)?;
            for tree in &mut *trees {
                let id = tree.shape().id;
                let of_tree = plan.iter().filter(|(_, source)| source.tree == id);
                let sources: BTreeMap<ExtentId, Source> = of_tree.map(|(x, source)| (*x, *source)).collect();
                if !sources.is_empty() {
                    done += self.empty(txn, tree, sources)?;
                }
            }
            // A plan of which nothing could be done has named extents that the next one leaves.
            if plan.is_empty() || done.extents > 0 || self.wanted.is_some() {
                return Ok(done);
            }
        }
    }

    /// Empties extents of one tree, as far as that is possible.
    fn empty(
        &mut self,
        txn: &mut Transaction,
        tree: &mut MovableTree<'_>,
        mut sources: BTreeMap<ExtentId, Source>,
    ) -> Result<Consolidated> {
        let shape = *tree.shape();
        self.leave_long_values(txn, &shape, &mut sources)?;
        let (codec_pages, dictionary) = tree.codec_pages(txn)?;
        let seen = see(txn, &shape, &codec_pages, &sources, self.longs.get(&shape.id))?;
        self.leave_unreached(txn, &seen, &mut sources)?;
        let mut done = Consolidated { extents: sources.len() as u64, pages: 0 };
        if sources.is_empty() {
            return Ok(done);
        }
        let mut places = Places::default();
        for (extent, source) in &sources {
            for page in txn.space().pages_in(*extent) {
                let to = match source.is_fresh {
                    true => Some(txn.store().geometry().index_of(page)),
                    false => None,
                };
                places.0.insert(page, txn.allocate_in(shape.id, source.into, to)?);
            }
        }
        done.pages = places.0.len() as u64;
        copy(txn, shape.id, &places)?;
        if let Some(head) = dictionary.filter(|head| places.has_any(&head.parts)) {
            let mut page = PageBuf::new();
            head.moved(|part| places.of(part)).write(&mut page);
            put(txn, shape.id, places.of(codec_pages[0]), &page)?;
        }
        // also one without pages is given up
        sources.keys().for_each(|extent| txn.space().touch(*extent));
        let pages = repoint::repoint(txn, tree.shape(), seen, &places)?;
        tree.moved(pages, &places);
        Ok(done)
    }

    /// Leaves extents with long values as they are, where those have not been searched, or the
    /// extent would be merged.
    fn leave_long_values(
        &mut self,
        txn: &mut Transaction,
        shape: &Shape,
        sources: &mut BTreeMap<ExtentId, Source>,
    ) -> Result<()> {
        let tree = shape.id;
        let mut left = Vec::new();
        let of_strings = shape.inner == PageKind::StringInner;
        for (extent, source) in sources.iter().filter(|_| of_strings) {
            let pages = txn.space().pages_in(*extent);
            wish(txn, tree, &pages);
            let mut is_long = false;
            for page in pages {
                is_long |= header(&txn.page(tree, page)?).kind() == PageKind::LongRun as u8;
            }
            if !is_long {
                continue;
            }
            self.whole.insert(*extent);
            if !self.longs.contains_key(&tree) {
                self.wanted = Some(tree);
                left.push(*extent);
            } else if !source.is_fresh {
                left.push(*extent);
            }
        }
        left.into_iter().for_each(|extent| leave(txn, extent, sources));
        Ok(())
    }

    /// Leaves extents that have pages to which no way was found.
    fn leave_unreached(
        &mut self,
        txn: &mut Transaction,
        seen: &WalkedTree,
        sources: &mut BTreeMap<ExtentId, Source>,
    ) -> Result<()> {
        let is_reached = |extent: &ExtentId, txn: &mut Transaction| {
            !seen.crowded.contains(extent)
                && txn.space().pages_in(*extent).iter().all(|page| seen.pages.contains(page))
        };
        let left: Vec<ExtentId> = sources.keys().copied().filter(|extent| !is_reached(extent, txn)).collect();
        for extent in left {
            self.stuck.insert(extent);
            leave(txn, extent, sources);
        }
        Ok(())
    }
}

/// Takes an extent out of the plan.
fn leave(txn: &mut Transaction, extent: ExtentId, sources: &mut BTreeMap<ExtentId, Source>) {
    if let Some(source) = sources.remove(&extent).filter(|source| source.is_fresh) {
        txn.space().give_back(source.into);
    }
}

fn wish(txn: &mut Transaction, tree: TreeId, pages: &[PageId]) {
    for pages in pages.chunks(txn.wish_limit().max(1)) {
        txn.wish(tree, pages);
    }
}

/// Copies pages to their new places, and gives the old ones back.
fn copy(txn: &mut Transaction, tree: TreeId, places: &Places) -> Result<()> {
    let mut moves: Vec<(PageId, PageId)> = places.0.iter().map(|(from, to)| (*from, *to)).collect();
    moves.sort_unstable();
    for moves in moves.chunks(txn.wish_limit().max(1)) {
        let pages: Vec<PageId> = moves.iter().map(|(from, _)| *from).collect();
        txn.wish(tree, &pages);
        for (from, to) in moves {
            let copy = PageBuf::copy_of(&txn.page(tree, *from)?);
            put(txn, tree, *to, &copy)?;
            txn.release(tree, *from);
        }
    }
    Ok(())
}
