//! The ways to the pages of a tree that lie in the extents of a plan.

use std::collections::{BTreeMap, BTreeSet};

use super::LongPlaces;
use super::plan::Source;
use crate::access::transaction::Transaction;
use crate::error::Result;
use crate::format::encoding::Decode;
use crate::format::inner::{Child, Inner};
use crate::format::string::leaf::{MOST, StringLeaf};
use crate::page::geometry::ExtentId;
use crate::page::{PageId, PageKind};
use crate::tree::change::Visit;
use crate::tree::descent::Shape;
use crate::tree::long_value::LongRef;

/// A node on the way to a page, as its parent has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeStep {
    pub visit: Visit,
    pub entry: Child,
}

/// A tree as far as it was walked.
#[derive(Default)]
pub(super) struct WalkedTree {
    /// Inner nodes, from level 1 upwards, in key order: all of them.
    pub levels: Vec<Vec<NodeStep>>,
    /// Leaves that move, or refer to long values that do.
    pub leaves: Vec<NodeStep>,
    /// Pages in extents of the plan to which there is a way.
    pub pages: BTreeSet<PageId>,
    /// Extents whose long values would get more pieces than a leaf can list.
    pub crowded: BTreeSet<ExtentId>,
}

/// A walk under way.
struct Walk<'a> {
    txn: &'a mut Transaction,
    shape: &'a Shape,
    sources: &'a BTreeMap<ExtentId, Source>,
    /// Strings with long values there.
    longs: BTreeSet<u64>,
    seen: WalkedTree,
}

/// Walks a tree: see the head of the module above.
pub(super) fn see(
    txn: &mut Transaction,
    shape: &Shape,
    codec: &[PageId],
    sources: &BTreeMap<ExtentId, Source>,
    longs: Option<&LongPlaces>,
) -> Result<WalkedTree> {
    let of_sources = |longs: &LongPlaces| {
        sources.keys().filter_map(|extent| longs.get(extent)).flatten().copied().collect::<BTreeSet<u64>>()
    };
    let longs = longs.map(of_sources).unwrap_or_default();
    let mut walk = Walk { txn, shape, sources, longs, seen: WalkedTree::default() };
    codec.iter().for_each(|page| walk.reach(*page));
    if shape.height > 0 {
        walk.nodes()?;
        walk.leaves()?;
    }
    Ok(walk.seen)
}

impl Walk<'_> {
    fn moves(&self, page: PageId) -> bool {
        self.sources.contains_key(&self.txn.store().geometry().extent_of(page))
    }

    fn reach(&mut self, page: PageId) {
        if self.moves(page) {
            self.seen.pages.insert(page);
        }
    }

    fn root(&self) -> NodeStep {
        NodeStep {
            visit: Visit { page: self.shape.root, parent: 0, child: 0 },
            entry: Child { separator: Default::default(), page: self.shape.root, rows: 0 },
        }
    }

    /// All inner nodes, from the root down.
    fn nodes(&mut self) -> Result<()> {
        let root = self.root();
        if self.shape.height == 1 {
            return Ok(());
        }
        let mut levels = vec![vec![root]];
        for level in (2..self.shape.height).rev() {
            let mut below = Vec::new();
            for (parent, step) in levels[0].iter().enumerate() {
                below.extend(self.children(step.visit.page, level, parent)?);
            }
            let mut pages: Vec<PageId> = below.iter().map(|step| step.visit.page).collect();
            pages.sort_unstable();
            super::wish(self.txn, self.shape.id, &pages);
            levels.insert(0, below);
        }
        levels.iter().flatten().for_each(|step| self.reach(step.visit.page));
        self.seen.levels = levels;
        Ok(())
    }

    fn children(&mut self, at: PageId, level: u8, parent: usize) -> Result<Vec<NodeStep>> {
        let Shape { id, arity, inner, .. } = *self.shape;
        let page = self.txn.page(id, at)?;
        let all = Inner::parse(&page, inner, arity, level).and_then(|node| node.all(&page));
        drop(page);
        let all = all.map_err(|bad| self.txn.damaged(at, bad.0))?;
        let step = |(child, entry): (usize, Child)| NodeStep {
            visit: Visit { page: entry.page, parent, child },
            entry,
        };
        Ok(all.into_iter().enumerate().map(step).collect())
    }

    /// The leaves that matter.
    fn leaves(&mut self) -> Result<()> {
        if self.shape.height == 1 {
            return self.leaf(self.root(), true);
        }
        let parents: Vec<PageId> = self.seen.levels[0].iter().map(|step| step.visit.page).collect();
        for (parent, at) in parents.into_iter().enumerate() {
            for step in self.children(at, 1, parent)? {
                let first = step.entry.separator[0];
                let has_long =
                    self.longs.range(first..first.saturating_add(step.entry.rows)).next().is_some();
                self.leaf(step, has_long)?;
            }
        }
        Ok(())
    }

    fn leaf(&mut self, step: NodeStep, may_refer: bool) -> Result<()> {
        let at = step.visit.page;
        let refers = may_refer && self.shape.inner == PageKind::StringInner && self.long_values(at)?;
        if refers || self.moves(at) {
            self.reach(at);
            self.seen.leaves.push(step);
        }
        Ok(())
    }

    /// Reaches the pages of a leaf's long values; true when some of them move.
    fn long_values(&mut self, at: PageId) -> Result<bool> {
        /// Bytes of a piece of a reference: two numbers of at most nine bytes.
        const PIECE_BYTES: usize = 18;
        let page = self.txn.page(self.shape.id, at)?;
        let long = references(&page);
        drop(page);
        let long = long.map_err(|bad| self.txn.damaged(at, bad.0))?;
        let mut any = false;
        for (reference, bytes) in long {
            let geometry = self.txn.store().geometry();
            let moving: Vec<PageId> = reference.pages.into_iter().filter(|page| self.moves(*page)).collect();
            let extents: BTreeSet<ExtentId> = moving.iter().map(|page| geometry.extent_of(*page)).collect();
            // each extent that moves may cut a piece in three
            if bytes + 2 * PIECE_BYTES * extents.len() > MOST {
                self.seen.crowded.extend(extents);
                continue;
            }
            any |= !moving.is_empty();
            self.seen.pages.extend(moving);
        }
        Ok(any)
    }
}

/// The references to long values in a leaf, and the bytes of each.
pub(super) fn references(page: &[u8]) -> Decode<Vec<(LongRef, usize)>> {
    let leaf = StringLeaf::parse(page)?;
    leaf.long_places(page)
        .map(|place| place.and_then(|(_, at)| Ok((LongRef::parse(&page[at.clone()])?, at.len()))))
        .collect()
}
