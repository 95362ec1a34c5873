//! Weighing the read-ahead rules: is the rest of an extent worth reading, how far ahead does a
//! scan go?
//!
//! The rules themselves are in `rules`. `auto` weighs rules 1 and 2 by the device's cost model,
//! by the worth of the rule's pages so far, and by the worth of the pages that leave for them
//! ([`Advice`]); [`ScanAhead`] finds the distance of rule 4.

use snowmelt_io::CostModel;

use crate::page::PAGE_BYTES;
use crate::read::meters::AheadStats;

/// What `auto` knows when it weighs rule 1 or 2 for an extent.
///
/// Reading `absent` pages along occupies the device for one request of their length. It gains a
/// visit to the device for each of them that will be wanted; it loses one for each page that
/// has to leave for them and will be wanted again. Both shares are measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Advice {
    /// Pages of the extent that would be read along.
    pub absent: u64,
    /// What became of the pages the rule brought for this tree.
    pub so_far: AheadStats,
    /// The share of the pages that leave the pool after use which are wanted again soon.
    pub regret: f64,
    /// Requests that wait or are under way at the device.
    pub outstanding: u64,
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
    /// Extents whose pages a guess counts for, against what was measured.
    const PRIOR_EXTENTS: u64 = 8;
    /// The guess, when the whole database fits the pool.
    const PRIOR: f64 = 0.6;
    /// So many pages that still may be used weigh as much as one whose fate is known.
    const PENDING_WEIGH: f64 = 8.0;

    /// True when reading the rest of the extent is expected to save more time than it costs.
    pub fn is_worth_it(&self, cost: &CostModel) -> bool {
        let gain_ns = (self.chance() - self.regret) * self.absent as f64 * self.visit_ns(cost);
        gain_ns > cost.request_ns(self.absent * PAGE_BYTES as u64) as f64
    }

    /// What a later visit for one page would cost: the time of the device when many wait for
    /// it, all of its latency when one waits alone.
    fn visit_ns(&self, cost: &CostModel) -> f64 {
        let transfer_ns = cost.request_ns(PAGE_BYTES as u64) - cost.ns_per_request;
        let share_ns = cost.latency_ns / (self.outstanding + 1);
        (cost.ns_per_request.max(share_ns) + transfer_ns) as f64
    }

    /// The chance that an absent page of the extent will be used while it is in the pool.
    ///
    /// Before anything was measured, the smaller the pool the less. Afterwards the share of
    /// pages used, of those whose fate is known; those that still may be used weigh a little,
    /// so that guesses that nobody ever uses stop even while nothing is evicted.
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

/// How far a scan reads ahead (rule 4). One per scan.
///
/// After two consecutive leaves the distance starts at `FIRST` leaves; it doubles while the
/// consumer finds leaves not yet there, and shrinks by an eighth for each leaf that was there
/// long before it was needed.
#[derive(Clone, Debug)]
pub struct ScanAhead {
    consecutive: u32,
    distance: u32,
    ready: u32,
    most: u32,
}

impl ScanAhead {
    const FIRST: u32 = 8;
    /// Leaves found ready in a row before the distance shrinks.
    const PATIENCE: u32 = 64;

    /// A scan that may read `most` leaves ahead; 0 switches the rule off.
    pub fn new(most: u32) -> Self {
        ScanAhead { consecutive: 0, distance: Self::FIRST.min(most), ready: 0, most }
    }

    /// Tells that the scan has visited its next leaf and whether it had to wait for it. Answers
    /// how many leaves beyond this one should be read or on their way now.
    pub fn visited(&mut self, waited: Waited) -> u32 {
        self.consecutive += 1;
        if self.consecutive < 2 {
            return 0;
        }
        match waited {
            Waited::Yes => {
                self.ready = 0;
                self.distance = (self.distance * 2).min(self.most);
            }
            Waited::No => {
                self.ready += 1;
                if self.ready > Self::PATIENCE {
                    self.distance = (self.distance - self.distance / 8).max(Self::FIRST.min(self.most));
                    self.ready = 0;
                }
            }
        }
        self.distance
    }

    /// The scan jumped: what it reads next is not the next leaf.
    pub fn jumped(&mut self) {
        self.consecutive = 0;
    }
}

/// Whether a page was there when it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// The reader waited for a device.
    Yes,
    /// The page was resident.
    No,
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
            regret: 0.0,
            outstanding: 0,
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

    #[test]
    fn scan_distance_follows_the_consumer() {
        let mut s = ScanAhead::new(3000);
        assert_eq!(s.visited(Waited::Yes), 0, "one leaf is no scan");
        let mut last = 0;
        for _ in 0..20 {
            let d = s.visited(Waited::Yes);
            assert!(d >= last);
            last = d;
        }
        assert_eq!(last, 3000);
        for _ in 0..10_000 {
            last = s.visited(Waited::No);
        }
        assert_eq!(last, ScanAhead::FIRST);
        s.jumped();
        assert_eq!(s.visited(Waited::No), 0);
        let mut off = ScanAhead::new(0);
        assert_eq!((off.visited(Waited::Yes), off.visited(Waited::Yes)), (0, 0));
    }
}
