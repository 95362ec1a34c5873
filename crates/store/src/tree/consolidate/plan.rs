//! The plan of a transaction: which extents become empty, and where their pages go.

use std::collections::{BTreeMap, BTreeSet};

use super::Consolidation;
use crate::access::private_space::fresh_pages;
use crate::access::transaction::Transaction;
use crate::error::Result;
use crate::page::TreeId;
use crate::page::geometry::ExtentId;

/// An extent that becomes empty.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    pub tree: TreeId,
    /// That takes its pages.
    pub into: ExtentId,
    /// That one was free.
    pub is_fresh: bool,
}

/// See the head of the module above.
pub(super) fn plan(
    txn: &mut Transaction,
    trees: &[TreeId],
    most_pages: u64,
    so_far: &Consolidation,
) -> Result<BTreeMap<ExtentId, Source>> {
    let trees: BTreeSet<TreeId> = trees.iter().copied().collect();
    let owned: Vec<(ExtentId, TreeId, u32)> =
        txn.space().owned().into_iter().filter(|(_, tree, _)| trees.contains(tree)).collect();
    let mut plan = Plan { sources: BTreeMap::new(), targets: BTreeSet::new(), pages: 0, most_pages };
    plan.merge(&owned, fresh_pages(txn.store().geometry().extent_pages), so_far);
    for (extent, tree, pages) in owned.iter().rev() {
        if plan.is_full() {
            break;
        }
        let stays = so_far.stuck.contains(extent) || plan.targets.contains(extent);
        if stays || plan.sources.contains_key(extent) {
            continue;
        }
        if let Some(into) = txn.space().take_before(*tree, *extent) {
            plan.add(*extent, Source { tree: *tree, into, is_fresh: true }, *pages);
        } else if !txn.space().is_placed(*tree) {
            break;
        }
    }
    Ok(plan.sources)
}

struct Plan {
    sources: BTreeMap<ExtentId, Source>,
    /// Extents that others are merged into.
    targets: BTreeSet<ExtentId>,
    pages: u64,
    most_pages: u64,
}

impl Plan {
    fn is_full(&self) -> bool {
        self.pages >= self.most_pages
    }

    fn add(&mut self, extent: ExtentId, source: Source, pages: u32) {
        assert!(!self.targets.contains(&extent), "an extent that takes pages keeps its own");
        self.pages += u64::from(pages.max(1));
        self.sources.insert(extent, source);
    }

    /// Merges neighbours of one tree that have `most` pages together at most.
    fn merge(&mut self, owned: &[(ExtentId, TreeId, u32)], most: u32, so_far: &Consolidation) {
        let mut before: BTreeMap<TreeId, (ExtentId, u32)> = BTreeMap::new();
        for (extent, tree, pages) in owned {
            if self.is_full() {
                return;
            }
            if so_far.stuck.contains(extent) || so_far.whole.contains(extent) {
                continue;
            }
            match before.get_mut(tree) {
                Some((into, held)) if *held + pages <= most => {
                    *held += pages;
                    let into = *into;
                    self.targets.insert(into);
                    self.add(*extent, Source { tree: *tree, into, is_fresh: false }, *pages);
                }
                _ => drop(before.insert(*tree, (*extent, *pages))),
            }
        }
    }
}
