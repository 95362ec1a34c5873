//! Which pages the trees use, against the extent map: each page in use is reached exactly once,
//! by the tree that owns its extent, and no other is.
//!
//! Memory: a bit per page and 100 bytes per extent, less than a ten-thousandth of the database.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::Result;
use crate::history::snapshot::Snapshot;
use crate::page::geometry::{ExtentId, Geometry};
use crate::page::{PageId, TreeId};
use crate::space::extent::Extent;
use crate::store::Store;

/// The pages in use as of a snapshot, and which of them were reached so far.
#[derive(Debug)]
pub struct PageUse {
    geometry: Geometry,
    extents: Vec<Extent>,
    /// By extent, one bit per page; made with the first page.
    reached: BTreeMap<ExtentId, Box<[u64]>>,
}

impl Store {
    /// A snapshot, and the pages in use as of it.
    ///
    /// # Errors
    /// Those of making durable what was appended.
    pub fn page_use(&self) -> Result<(Snapshot, PageUse)> {
        let (snapshot, extents) = self.state_and_map()?;
        Ok((snapshot, PageUse::new(self.geometry, extents)))
    }
}

impl PageUse {
    pub(crate) fn new(geometry: Geometry, extents: Vec<Extent>) -> PageUse {
        PageUse { geometry, extents, reached: BTreeMap::new() }
    }

    /// Pages in use by a tree, as the extent map says.
    pub fn of_tree(&self, tree: TreeId) -> u64 {
        let own = self.extents.iter().filter(|e| e.tree == Some(tree));
        own.flat_map(|e| &e.allocated).map(|w| u64::from(w.count_ones())).sum()
    }

    /// A tree uses a page. What is wrong with that, if anything.
    pub fn reach(&mut self, tree: TreeId, page: PageId) -> Option<String> {
        let (id, index) = (self.geometry.extent_of(page), self.geometry.index_of(page));
        let extent = self.extents.get(id as usize);
        let Some(extent) = extent.filter(|e| e.is_allocated(index)) else {
            return Some(format!("page {page} is used by tree {}, but free in the extent map", tree.0));
        };
        if extent.tree != Some(tree) {
            let owner = extent.tree.map_or("nobody".into(), |t| format!("tree {}", t.0));
            return Some(format!("page {page} is used by tree {}, but belongs to {owner}", tree.0));
        }
        let none = || vec![0; extent.allocated.len()].into();
        let word = &mut self.reached.entry(id).or_insert_with(none)[index as usize / 64];
        let is_second = *word >> (index % 64) & 1 == 1;
        *word |= 1 << (index % 64);
        is_second.then(|| format!("page {page} of tree {} is used twice", tree.0))
    }

    /// After all trees: calls `found` with each fault of the pages that no tree reached. Trees in
    /// `unread` could not be read to their end, so their pages are left out; `trees` are all there
    /// are.
    pub fn unreached(
        &self,
        trees: &BTreeSet<TreeId>,
        unread: &BTreeSet<TreeId>,
        mut found: impl FnMut(String),
    ) {
        for (id, extent) in (0..).zip(&self.extents) {
            let Some(tree) = extent.tree else { continue };
            if !trees.contains(&tree) {
                found(format!("extent {id} belongs to tree {}, which does not exist", tree.0));
                continue;
            }
            if unread.contains(&tree) {
                continue;
            }
            let reached = self.reached.get(&id);
            for (word, used) in extent.allocated.iter().enumerate() {
                let mut lost = used & !reached.map_or(0, |r| r[word]);
                while lost != 0 {
                    let index = word as u32 * 64 + lost.trailing_zeros();
                    lost &= lost - 1;
                    let page = self.geometry.page(id, index);
                    found(format!(
                        "page {page} of tree {} is in use in the extent map, but no page leads to it",
                        tree.0
                    ));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_in_use_is_reached_once() {
        let geometry = Geometry { extent_pages: 8, stripes: 1 };
        let extents = vec![
            Extent::filled(8, TreeId(1), 3),
            Extent::free(8),
            Extent::filled(8, TreeId(2), 1),
            Extent::filled(8, TreeId(9), 1),
        ];
        let mut pages = PageUse::new(geometry, extents);
        assert_eq!(pages.reach(TreeId(1), PageId(0)), None);
        assert_eq!(pages.reach(TreeId(1), PageId(1)), None);
        assert!(pages.reach(TreeId(1), PageId(1)).unwrap().contains("twice"));
        assert!(pages.reach(TreeId(1), PageId(5)).unwrap().contains("free"));
        assert!(pages.reach(TreeId(1), PageId(8)).unwrap().contains("free"));
        assert!(pages.reach(TreeId(1), PageId(800)).unwrap().contains("free"));
        assert!(pages.reach(TreeId(1), PageId(16)).unwrap().contains("belongs to tree 2"));
        let mut found = Vec::new();
        let trees = [TreeId(1), TreeId(2)].into();
        pages.unreached(&trees, &[TreeId(2)].into(), |f| found.push(f));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("page 2 of tree 1") && found[1].starts_with("extent 3"), "{found:?}");
    }
}
