//! Weighing the read-ahead rules: is the rest of an extent worth reading?
//!
//! `auto` weighs rules 1 and 2 by the cost model of the stripe's device, by the worth of the
//! rule's pages so far, and by the worth of the pages that leave for them.

use snowmelt_io::CostModel;

use crate::page::PAGE_BYTES;
use crate::read::regions::RegionUse;
use crate::read::tree_meter::{AheadStats, Wanted};

/// Knowledge of `auto` when it weighs rule 1 or 2 for an extent.
///
/// Reading `absent` pages along occupies the device for one request of their length. It gains a
/// visit to the device for each of them that will be wanted; it loses one for each page that
/// has to leave for them and will be wanted again. Both shares are measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Advice {
    /// Pages of the extent that would be read along.
    pub absent: u64,
    /// Fate of the pages the rule brought for this tree.
    pub so_far: AheadStats,
    /// The share of the pages that leave the pool after use which are wanted again soon.
    pub regret: f64,
    /// Whether every frame has been used.
    pub is_full: bool,
    /// How much of the tree is wanted, and of all trees.
    pub wanted: Wanted,
    pub all_wanted: Wanted,
    /// How much of the extent's region is wanted.
    pub region: RegionUse,
    /// Requests that wait or are under way at the device.
    pub outstanding: u64,
    /// Those at the device in the mean, lately.
    pub crowd: u64,
    /// Frames of the pool.
    pub frames: u64,
    /// Pages of the tree.
    pub tree_pages: u64,
    /// Pages of the database.
    pub database_pages: u64,
    /// Pages in an extent.
    pub extent_pages: u64,
}

impl Advice {
    /// Weight of the guess beside measurements: as much as the pages of so many extents.
    const PRIOR_EXTENTS: u64 = 8;
    /// The guess, when the whole database fits the pool.
    const PRIOR: f64 = 0.6;
    /// The gain must be so many times the cost where requests and bytes are limited apart: the time
    /// that one reader saves is not always time that another one can use.
    const CAPS_MARGIN: f64 = 1.4;
    /// In a full pool the gain must be so many times the cost: guesses that are driven out before
    /// they were used are not counted in it.
    const IDLE_MARGIN: f64 = 2.0;
    /// Margin in place of `IDLE_MARGIN` while requests are outstanding at the device: the longer
    /// waits of their readers are not counted either.
    const BUSY_MARGIN: f64 = 4.0;
    /// Number of pages that may still be used that weigh as much as one whose fate is known.
    const PENDING_WEIGH: f64 = 8.0;

    /// Least time for which a database is taken to be in use.
    const SOON_NS: f64 = 2e9;
    /// Time of the work waiting at a device at which the price of bytes has doubled.
    const LONG_NS: f64 = 100e6;
    /// Wanted pages that are taken for spread evenly over all trees, besides those that were.
    const EVEN: f64 = 64.0;

    /// True when reading the rest of the extent is expected to save more time than it costs.
    pub fn is_worth_it(&self, cost: &CostModel) -> bool {
        let chance = match cost.has_caps() && !self.is_full {
            true => self.chance().min(self.chance_soon(cost)),
            false => self.chance(),
        };
        let gain_ns = (chance - self.regret) * self.staying() as f64 * self.visit_ns(cost);
        let margin = match (self.is_full, self.outstanding) {
            (false, _) if cost.has_caps() => Self::CAPS_MARGIN,
            (false, _) => 1.0,
            (true, 0) => Self::IDLE_MARGIN,
            (true, _) => Self::BUSY_MARGIN,
        };
        let waits_ns = match cost.has_caps() {
            true => cost.transfer_ns(self.outstanding * PAGE_BYTES as u64) as f64,
            false => 0.0,
        };
        let busy = 1.0 + waits_ns / Self::LONG_NS;
        gain_ns > margin * busy * cost.price_ns(self.absent * PAGE_BYTES as u64)
    }

    /// The chance that an absent page of the tree will be wanted soon: the better of two guesses.
    ///
    /// * By the rate. "Soon" is the time in which the device, if it did nothing else, would read
    ///   all absent pages, at least `SOON_NS`; meanwhile as many single pages are wanted as it can
    ///   read. So the best use of its bytes is found before they are all spent. Trees of which
    ///   much is wanted, for their size, come first.
    /// * By the past. As much will be wanted again as was so far, so the chance is the part of the
    ///   pages that was. Those not wanted yet are hardly wanted more often than the others.
    ///
    /// Both are those of the extent's region, as far as that is known.
    fn chance_soon(&self, cost: &CostModel) -> f64 {
        let part = (self.wanted.absent.max(1) as f64 / self.all_wanted.absent.max(1) as f64).min(1.0);
        let wanted = self.wanted.pages as f64 + Self::EVEN * part;
        let density = wanted / (self.all_wanted.pages as f64 + Self::EVEN) / part;
        let fits = (self.frames as f64 / self.database_pages.max(1) as f64).min(1.0);
        let all_ns = self.all_wanted.absent as f64 * cost.transfer_ns(PAGE_BYTES as u64) as f64;
        let single_ns = self.share_ns(cost).max(cost.ns_per_request as f64);
        let singles = all_ns.max(Self::SOON_NS) / single_ns;
        let again = (self.wanted.ever as f64 / self.tree_pages.max(1) as f64).min(1.0);
        let soon = self.region.rate(density / self.all_wanted.absent.max(1) as f64) * singles;
        (1.0 - (-soon * fits).exp()).max(self.region.part(again) * fits)
    }

    /// Pages read along that stay in the pool: in a full one guesses hold a quarter of the frames
    /// (`pool::replace`), and drive each other out beyond that.
    fn staying(&self) -> u64 {
        let room = if self.is_full { self.frames / 4 } else { self.frames };
        self.absent.min(room)
    }

    /// Cost of a later visit for one page: the time of the device when many wait for it, all of its
    /// latency when one waits alone.
    fn visit_ns(&self, cost: &CostModel) -> f64 {
        let request_ns = cost.price_ns(0);
        let transfer_ns = cost.price_ns(PAGE_BYTES as u64) - request_ns;
        request_ns.max(self.share_ns(cost)) + transfer_ns
    }

    /// The latency of a request, shared with those that wait meanwhile.
    fn share_ns(&self, cost: &CostModel) -> f64 {
        cost.latency_ns as f64 / (self.outstanding.max(self.crowd) + 1) as f64
    }

    /// The chance that an absent page of the extent will be used while it is in the pool.
    ///
    /// Before anything was measured, the smaller the pool the less. Afterwards the share of pages
    /// used, of those whose fate is known; those that still may be used weigh a little, so that
    /// useless guesses stop even while nothing is evicted.
    fn chance(&self) -> f64 {
        let fits = (self.frames as f64 / self.database_pages.max(1) as f64).min(1.0);
        let AheadStats { issued, used, evicted_unused } = self.so_far;
        let known = used + evicted_unused;
        let pending = issued.saturating_sub(known) as f64 / Self::PENDING_WEIGH;
        // A small tree cannot outvote the prior by its few pages.
        let weight = (Self::PRIOR_EXTENTS * self.extent_pages).min(self.tree_pages + 1) as f64;
        (used as f64 + Self::PRIOR * fits * weight) / (known as f64 + pending + weight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An extent of 256 pages of which one is missed, nothing measured yet, a pool for the
    /// whole database.
    fn advice() -> Advice {
        Advice {
            absent: 255,
            so_far: AheadStats::default(),
            wanted: Wanted { pages: 0, ever: 0, absent: 5_000 },
            all_wanted: Wanted { pages: 0, ever: 0, absent: 10_000 },
            region: RegionUse { pages: 1024, wanted: 1, meanwhile: 1, lately: None },
            regret: 0.0,
            is_full: false,
            outstanding: 0,
            crowd: 0,
            frames: 10_000,
            tree_pages: 5_000,
            database_pages: 10_000,
            extent_pages: 256,
        }
    }

    fn everywhere(advice: Advice) -> [bool; 3] {
        [CostModel::hdd(), CostModel::network(), CostModel::nvme()].map(|cost| advice.is_worth_it(&cost))
    }

    #[test]
    fn auto_reads_extents_where_everything_fits() {
        assert_eq!(everywhere(advice()), [true; 3]);
        assert!(
            Advice { outstanding: 32, ..advice() }.is_worth_it(&CostModel::network()),
            "with many clients too"
        );
    }

    #[test]
    fn auto_reads_no_extents_for_which_better_pages_would_leave() {
        let small = Advice { frames: 1_000, regret: 0.2, ..advice() };
        assert_eq!(everywhere(small), [false; 3]);
        // A pool that is not full yet has nothing to lose, and an arm gains most.
        assert!(Advice { regret: 0.0, ..small }.is_worth_it(&CostModel::hdd()));
    }

    #[test]
    fn what_does_not_stay_is_worth_nothing() {
        let full = Advice { is_full: true, ..advice() };
        assert!(full.is_worth_it(&CostModel::network()));
        assert!(!Advice { frames: 20, database_pages: 20, ..full }.is_worth_it(&CostModel::network()));
    }

    /// The largest regret at which it is still worth it on a disk, in percent.
    fn bears(advice: Advice) -> u32 {
        let at = |percent: u32| Advice { regret: f64::from(percent) / 100.0, ..advice };
        let worth = (0..100).take_while(|percent| at(*percent).is_worth_it(&CostModel::hdd()));
        worth.last().expect("without a regret it is")
    }

    #[test]
    fn a_full_pool_and_a_busy_device_need_more_of_a_reason() {
        let full = Advice { is_full: true, frames: 2_000, database_pages: 2_000, ..advice() };
        let busy = Advice { outstanding: 1, ..full };
        assert_eq!([advice(), full, busy].map(bears), [59, 58, 54]);
    }

    /// Advice on a small cloud volume. A tenth of the tree's pages were wanted so far; of the 1,024
    /// pages of this extent's region `wanted` were, while 2,000 of the database were.
    fn on_a_volume(wanted: u64, outstanding: u64) -> bool {
        let advice = Advice {
            wanted: Wanted { pages: 1_000, ever: 500, absent: 4_500 },
            all_wanted: Wanted { pages: 2_000, ever: 1_000, absent: 9_000 },
            region: RegionUse { pages: 1024, wanted, meanwhile: 2_000, lately: None },
            so_far: AheadStats { issued: 4_000, used: 2_000, evicted_unused: 0 },
            outstanding,
            ..advice()
        };
        advice.is_worth_it(&CostModel::capped(1_000_000, 3_000.0, 131_072_000.0))
    }

    #[test]
    fn where_bytes_are_scarce_an_extent_is_judged_by_its_region() {
        assert!(on_a_volume(400, 0), "many pages of the region are used");
        assert!(!on_a_volume(2, 0), "few are");
        assert!(!on_a_volume(400, 1_000_000), "too much waits for its bytes");
    }

    #[test]
    fn auto_learns_from_what_became_of_its_guesses() {
        let bad = AheadStats { issued: 100_000, used: 1_000, evicted_unused: 90_000 };
        assert!(!Advice { so_far: bad, outstanding: 32, ..advice() }.is_worth_it(&CostModel::network()));
        let never_used = AheadStats { issued: 1_000_000, used: 100, evicted_unused: 0 };
        assert!(
            !Advice { so_far: never_used, outstanding: 32, ..advice() }.is_worth_it(&CostModel::network())
        );
        let early = AheadStats { issued: 4_000, used: 400, evicted_unused: 0 };
        assert_eq!(everywhere(Advice { so_far: early, ..advice() }), [true; 3], "most may still be used");
    }
}
