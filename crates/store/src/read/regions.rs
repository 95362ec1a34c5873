//! How much of each region of a tree is wanted. A region is some extents that follow each other.
//!
//! Queries want the one part of a tree and not the other: the values of products, and not those of
//! reviews. The mean of the tree is true of neither. The pages wanted of a region since its first
//! one, compared with those wanted of the whole database meanwhile, soon tell the parts apart;
//! while they are few, the tree's mean stands for them. A region that was not wanted for long, and
//! is again, is known by its last few pages.

use std::collections::HashMap;
use std::ops::Range;

use parking_lot::Mutex;

use crate::page::TreeId;
use crate::page::geometry::ExtentId;

/// Extents of a region: a few cost little to try, and show how much the others are wanted.
const EXTENTS: u64 = 4;
/// Weight of the tree's mean, in wanted pages.
const MEAN_WEIGH: f64 = 4.0;
/// Number of last wanted pages that show the recent use of a region: another kind of query may
/// come, and want a region that was not wanted for long.
const LAST: usize = 4;

/// Pages wanted of all regions, by readers that missed them or used a guess.
#[derive(Debug, Default)]
pub(crate) struct Regions(Mutex<Wants>);

#[derive(Debug, Default)]
struct Wants {
    pages: u64,
    regions: HashMap<(TreeId, u64), Since>,
}

/// Pages of a region wanted so far.
#[derive(Debug, Clone, Copy)]
struct Since {
    pages: u64,
    /// Pages wanted of all regions before the first of these; `before_last`: before each of the
    /// last of these, in a ring.
    before: u64,
    before_last: [u64; LAST],
}

/// Use of a region so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RegionUse {
    /// Written pages of the tree in it.
    pub pages: u64,
    /// Those that were wanted.
    pub wanted: u64,
    /// Pages of the database wanted since the first of these.
    pub meanwhile: u64,
    /// Those wanted since the first of the last [`LAST`], where there are so many.
    pub lately: Option<u64>,
}

/// The extents of a region, `extent` among them.
pub(crate) fn extents_beside(extent: ExtentId) -> Range<ExtentId> {
    let first = extent / EXTENTS * EXTENTS;
    first..first + EXTENTS
}

impl Regions {
    /// Counts that `pages` more pages of an extent of `tree` are wanted.
    pub fn want(&self, tree: TreeId, extent: ExtentId, pages: u64) {
        self.0.lock().want(tree, extent, pages);
    }

    /// Forgets a dropped tree.
    pub fn forget(&self, dropped: TreeId) {
        self.0.lock().regions.retain(|(tree, _), _| *tree != dropped);
    }

    /// Use of the region of an extent, of which it has `pages`, when `misses` more are wanted.
    pub fn with(&self, tree: TreeId, extent: ExtentId, misses: u64, pages: u64) -> RegionUse {
        let wants = self.0.lock();
        let all = wants.pages + misses;
        let Some(since) = wants.regions.get(&(tree, extent / EXTENTS)) else {
            return RegionUse { pages, wanted: misses, meanwhile: misses, lately: None };
        };
        let wanted = since.pages + misses;
        let before_last = since.before_last[wanted as usize % LAST];
        RegionUse {
            pages,
            wanted,
            meanwhile: all - since.before,
            // Where the misses alone are as many as the last ones, these were all wanted now.
            lately: (wanted >= LAST as u64 && misses < LAST as u64).then_some(all - before_last),
        }
    }
}

impl Wants {
    fn want(&mut self, tree: TreeId, extent: ExtentId, pages: u64) {
        let before = self.pages;
        self.pages += pages;
        let first = Since { pages: 0, before, before_last: [before; LAST] };
        let since = self.regions.entry((tree, extent / EXTENTS)).or_insert(first);
        for _ in 0..pages.min(LAST as u64) {
            since.before_last[since.pages as usize % LAST] = before;
            since.pages += 1;
        }
        since.pages += pages.saturating_sub(LAST as u64);
    }
}

impl RegionUse {
    /// The rate at which a page of the region is wanted, per page wanted of the database: since the
    /// region's first one, or lately, if that is more. `mean` is the rate in the whole tree.
    pub fn rate(&self, mean: f64) -> f64 {
        let rate = |wanted: u64, meanwhile: u64| {
            (MEAN_WEIGH + wanted as f64) / (MEAN_WEIGH / mean + (self.pages * meanwhile) as f64)
        };
        let lately = self.lately.map_or(0.0, |meanwhile| rate(LAST as u64, meanwhile));
        rate(self.wanted, self.meanwhile).max(lately)
    }

    /// The part of the region that was wanted so far. `mean` is the part of the whole tree.
    pub fn part(&self, mean: f64) -> f64 {
        ((MEAN_WEIGH * mean + self.wanted as f64) / (MEAN_WEIGH + self.pages as f64)).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages of a region of full extents.
    const PAGES: u64 = 1024;

    fn want(regions: &Regions, tree: TreeId, extent: ExtentId, pages: u64) -> RegionUse {
        let with = regions.with(tree, extent, pages, PAGES);
        regions.want(tree, extent, pages);
        with
    }

    #[test]
    fn what_is_wanted_of_a_region_soon_outweighs_the_mean_of_its_tree() {
        let (regions, tree, mean) = (Regions::default(), TreeId(3), 1e-4);
        let first = want(&regions, tree, 0, 1);
        assert_eq!(first, RegionUse { pages: PAGES, wanted: 1, meanwhile: 1, lately: None });
        assert!((first.rate(mean) / mean - 1.25).abs() < 0.1, "{}", first.rate(mean) / mean);
        // Another extent of the same region, dense, and a region far away, of which little is.
        let dense = want(&regions, tree, 3, 99);
        assert_eq!(dense, RegionUse { wanted: 100, meanwhile: 100, ..first });
        want(&regions, tree, 4, 1);
        want(&regions, TreeId(4), 0, 100_000);
        let sparse = want(&regions, tree, 7, 1);
        assert_eq!(sparse, RegionUse { wanted: 2, meanwhile: 100_002, ..first });
        assert!(dense.rate(mean) > 4.0 * mean && sparse.rate(mean) < 0.01 * mean);
        assert!(dense.part(0.3) < 0.1 && sparse.part(0.3) < 0.01, "of 1,024 pages");
    }

    #[test]
    fn a_region_that_was_not_wanted_for_long_is_known_by_its_last_pages() {
        let (regions, tree, mean) = (Regions::default(), TreeId(3), 1e-4);
        want(&regions, tree, 0, 3);
        want(&regions, TreeId(4), 0, 1_000_000);
        let rates: Vec<f64> =
            (0..5).map(|extent| want(&regions, tree, extent % 4, 1).rate(mean) / mean).collect();
        assert!(rates[0] < 0.01 && rates[2] < 0.01, "the last four are of long ago, too: {rates:?}");
        assert!(rates[3] > 1.0 && rates[4] > 1.0, "{rates:?}");
        // Pages that are wanted steadily, but seldom, are not taken for that.
        for _ in 0..20 {
            want(&regions, TreeId(4), 0, 10_000);
            want(&regions, tree, 0, 1);
        }
        want(&regions, TreeId(4), 0, 10_000);
        assert!(want(&regions, tree, 1, 1).rate(mean) < 0.01 * mean);
    }

    #[test]
    fn of_a_small_tree_its_own_pages_count() {
        let (wanted, meanwhile) = (15, 50_000);
        let of = |pages| RegionUse { pages, wanted, meanwhile, lately: None }.part(0.5);
        assert!(of(30) > 0.4 && of(PAGES) < 0.02);
    }

    #[test]
    fn trees_in_the_same_extents_are_apart() {
        let regions = Regions::default();
        want(&regions, TreeId(1), 5, 10);
        assert_eq!(want(&regions, TreeId(2), 5, 1).wanted, 1);
        assert_eq!(extents_beside(5), 4..8);
    }
}
