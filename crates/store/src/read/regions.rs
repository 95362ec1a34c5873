//! How much of each region of a tree is wanted. A region is some extents that follow each other.
//!
//! Queries want the one part of a tree and not the other: the values of products, and not those of
//! reviews. The mean of the tree is true of neither. What was wanted of a region since it was
//! wanted first, while so much was wanted of the whole database, tells them apart soon; as long as
//! little was, the tree's mean stands for it.

use std::collections::HashMap;

use parking_lot::Mutex;

use crate::page::TreeId;
use crate::page::geometry::ExtentId;

/// Extents of a region: a few cost little to try, and say what the others are like.
const EXTENTS: u64 = 4;
/// The mean of the tree weighs as much as so many wanted pages.
const MEAN_WEIGH: f64 = 4.0;

/// Pages wanted of all regions, by readers that missed them or used a guess.
#[derive(Debug, Default)]
pub(crate) struct Regions(Mutex<Wants>);

#[derive(Debug, Default)]
struct Wants {
    pages: u64,
    regions: HashMap<(TreeId, u64), Since>,
}

/// Pages of a region wanted so far, and those of all that were wanted before the first of them.
#[derive(Debug, Clone, Copy)]
struct Since {
    before: u64,
    pages: u64,
}

/// Use of a region so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RegionUse {
    /// Pages in it.
    pub pages: u64,
    /// Those that were wanted.
    pub wanted: u64,
    /// Pages of the database wanted since the first of these.
    pub meanwhile: u64,
}

impl Regions {
    /// So many more pages of an extent of `tree` are wanted. Answers what is known of its region.
    pub fn want(&self, tree: TreeId, extent: ExtentId, pages: u64, extent_pages: u32) -> RegionUse {
        let mut wants = self.0.lock();
        let before = wants.pages;
        wants.pages += pages;
        let since = wants.regions.entry((tree, extent / EXTENTS)).or_insert(Since { before, pages: 0 });
        since.pages += pages;
        let meanwhile = before + pages - since.before;
        RegionUse { pages: EXTENTS * u64::from(extent_pages), wanted: since.pages, meanwhile }
    }
}

impl RegionUse {
    /// The rate at which a page is wanted for each that is wanted of the database, where that of
    /// the tree is `mean`.
    pub fn rate(&self, mean: f64) -> f64 {
        let seen = (self.pages * self.meanwhile) as f64;
        (MEAN_WEIGH + self.wanted as f64) / (MEAN_WEIGH / mean + seen)
    }

    /// The part that was wanted so far, where that of the tree is `mean`.
    pub fn part(&self, mean: f64) -> f64 {
        ((MEAN_WEIGH * mean + self.wanted as f64) / (MEAN_WEIGH + self.pages as f64)).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wanted_of_a_region_soon_outweighs_the_mean_of_its_tree() {
        let (regions, tree, mean) = (Regions::default(), TreeId(3), 1e-4);
        let first = regions.want(tree, 0, 1, 256);
        assert_eq!(first, RegionUse { pages: 1024, wanted: 1, meanwhile: 1 });
        assert!((first.rate(mean) / mean - 1.25).abs() < 0.1, "{}", first.rate(mean) / mean);
        // Another extent of the same region, dense, and a region far away, of which little is.
        let dense = regions.want(tree, 3, 99, 256);
        assert_eq!(dense, RegionUse { wanted: 100, meanwhile: 100, ..first });
        regions.want(tree, 4, 1, 256);
        regions.want(TreeId(4), 0, 100_000, 256);
        let sparse = regions.want(tree, 7, 1, 256);
        assert_eq!(sparse, RegionUse { wanted: 2, meanwhile: 100_002, ..first });
        assert!(dense.rate(mean) > 4.0 * mean && sparse.rate(mean) < 0.01 * mean);
        assert!(dense.part(0.3) < 0.1 && sparse.part(0.3) < 0.01, "of 1,024 pages");
    }

    #[test]
    fn trees_in_the_same_extents_are_apart() {
        let regions = Regions::default();
        regions.want(TreeId(1), 5, 10, 256);
        assert_eq!(regions.want(TreeId(2), 5, 1, 256).wanted, 1);
    }
}
