//! How far a scan reads ahead (rule 4).
//!
//! After `after` consecutive leaves the distance starts at [`FIRST`] leaves. It doubles while
//! the consumer finds leaves not yet there, and shrinks by an eighth for each row of
//! [`PATIENCE`] leaves that were there when they were asked for.
//!
//! Each stripe has a distance of its own, since its device decides how early a leaf must be
//! asked for: of a scan over a disk and a flash drive, the leaves on the disk are read from far
//! ahead, and those on the flash drive take no frames meanwhile. Distances are counted in
//! leaves of the scan, whatever stripes they lie on.

use std::collections::VecDeque;

use crate::page::PageId;
use crate::page::geometry::Geometry;

/// Leaves ahead at first.
const FIRST: u32 = 8;
/// Leaves found ready in a row before the distance shrinks.
const PATIENCE: u32 = 64;

/// Whether a page was there when it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// The reader waited for a device.
    Yes,
    /// The page was resident.
    No,
}

/// The distances of one scan, and how far its leaves have been wished for.
#[derive(Clone, Debug)]
pub struct ScanAhead {
    geometry: Geometry,
    /// Most leaves ahead; 0 switches the rule off.
    most: u32,
    /// Consecutive leaves before it begins.
    after: u32,
    consecutive: u32,
    stripes: Vec<StripeAhead>,
}

/// Of one stripe.
#[derive(Clone, Debug)]
struct StripeAhead {
    distance: u32,
    ready: u32,
    /// Of the leaves to come, those before this one were wished for if they lie on this stripe.
    wished: usize,
}

impl StripeAhead {
    fn visited(&mut self, waited: Waited, most: u32) {
        match waited {
            Waited::Yes => {
                self.ready = 0;
                self.distance = (self.distance * 2).min(most);
            }
            Waited::No => {
                self.ready += 1;
                if self.ready > PATIENCE {
                    self.distance = (self.distance - self.distance / 8).max(FIRST.min(most));
                    self.ready = 0;
                }
            }
        }
    }

    /// Wishes are made in halves, so that they are batches and not single pages.
    fn is_due(&self) -> bool {
        self.distance > 0 && self.wished <= self.distance as usize / 2
    }
}

impl ScanAhead {
    /// A scan that may read `most` leaves ahead, and begins after `after` consecutive ones.
    pub fn new(geometry: Geometry, most: u32, after: u32) -> Self {
        let stripe = StripeAhead { distance: FIRST.min(most), ready: 0, wished: 0 };
        let stripes = vec![stripe; geometry.stripes as usize];
        ScanAhead { geometry, most, after, consecutive: 0, stripes }
    }

    /// Most leaves ahead.
    pub fn most(&self) -> u32 {
        self.most
    }

    /// Notes that the first of the leaves to come left the list.
    pub fn advanced(&mut self) {
        self.stripes.iter_mut().for_each(|s| s.wished = s.wished.saturating_sub(1));
    }

    /// Notes that the list of leaves to come is a new one, of which none was wished for.
    pub fn begun_anew(&mut self) {
        self.stripes.iter_mut().for_each(|s| s.wished = 0);
    }

    /// Notes that the scan has visited its next leaf, and whether it had to wait.
    pub fn visited(&mut self, leaf: PageId, waited: Waited) {
        self.consecutive = self.consecutive.saturating_add(1);
        if self.has_begun() {
            let stripe = self.geometry.place(leaf).stripe;
            self.stripes[stripe].visited(waited, self.most);
        }
    }

    /// Notes that the scan jumped: what it reads next is not the next leaf.
    pub fn jumped(&mut self) {
        self.consecutive = 0;
    }

    fn has_begun(&self) -> bool {
        self.consecutive >= self.after
    }

    /// How many of the leaves to come must be known to [`ScanAhead::wishes`]; `None` when there
    /// is nothing to wish for now.
    pub fn due(&self) -> Option<usize> {
        let due = self.stripes.iter().filter(|s| self.has_begun() && s.is_due());
        due.map(|s| s.distance as usize).max()
    }

    /// The leaves to wish for now, of those to come; they count as wished for.
    pub fn wishes(&mut self, leaves: &VecDeque<PageId>) -> Vec<PageId> {
        let Some(farthest) = self.due() else { return Vec::new() };
        let known = farthest.min(leaves.len());
        let from = self.stripes.iter().filter(|s| s.is_due()).map(|s| s.wished).min().unwrap_or(known);
        let is_wanted = |(at, leaf): (usize, &PageId)| {
            let stripe = &self.stripes[self.geometry.place(*leaf).stripe];
            let wanted = stripe.is_due() && (stripe.wished..stripe.distance as usize).contains(&at);
            wanted.then_some(*leaf)
        };
        let wishes = (from.min(known)..known).zip(leaves.range(from.min(known)..known));
        let wishes = wishes.filter_map(is_wanted).collect();
        for stripe in self.stripes.iter_mut().filter(|s| s.is_due()) {
            stripe.wished = stripe.wished.max(known.min(stripe.distance as usize));
        }
        wishes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Geometry = Geometry { extent_pages: 8, stripes: 1 };
    const TWO: Geometry = Geometry { extent_pages: 8, stripes: 2 };

    /// Pages of an endless tree.
    fn leaves() -> VecDeque<PageId> {
        (0..4000).map(PageId).collect()
    }

    /// Visits leaf `n`, and returns how far ahead the scan then is.
    fn visit(scan: &mut ScanAhead, n: u64, waited: Waited) -> usize {
        scan.visited(PageId(n), waited);
        scan.due().unwrap_or(0)
    }

    #[test]
    fn the_distance_follows_the_consumer() {
        let mut s = ScanAhead::new(ONE, 3000, 2);
        assert_eq!(visit(&mut s, 0, Waited::Yes), 0, "one leaf is no scan");
        let mut last = 0;
        for _ in 0..20 {
            let distance = visit(&mut s, 1, Waited::Yes);
            assert!(distance >= last);
            last = distance;
        }
        assert_eq!(last, 3000);
        for _ in 0..10_000 {
            last = visit(&mut s, 1, Waited::No);
        }
        assert_eq!(last, FIRST as usize);
        s.jumped();
        assert_eq!(visit(&mut s, 1, Waited::No), 0);
        let mut off = ScanAhead::new(ONE, 0, 2);
        assert_eq!((visit(&mut off, 0, Waited::Yes), visit(&mut off, 1, Waited::Yes)), (0, 0));
    }

    #[test]
    fn it_begins_after_as_many_leaves_as_it_is_told() {
        for after in [1, 2, 5] {
            let mut s = ScanAhead::new(ONE, 3000, after);
            let begun = (1..10).find(|n| visit(&mut s, *n, Waited::No) > 0);
            assert_eq!(begun, Some(u64::from(after)));
        }
    }

    #[test]
    fn leaves_are_wished_for_once_and_in_halves() {
        let mut s = ScanAhead::new(ONE, 8, 1);
        s.visited(PageId(0), Waited::No);
        let mut leaves = leaves();
        assert_eq!(s.wishes(&leaves).len(), 8);
        for n in 1..4 {
            leaves.pop_front();
            s.advanced();
            s.visited(PageId(n), Waited::No);
            assert_eq!(s.wishes(&leaves), [], "less than half of them are gone");
        }
        leaves.pop_front();
        s.advanced();
        assert_eq!(s.wishes(&leaves), [8, 9, 10, 11].map(PageId));
        s.begun_anew();
        assert_eq!(s.wishes(&leaves).len(), 8);
    }

    #[test]
    fn each_stripe_has_its_own_distance() {
        let mut s = ScanAhead::new(TWO, 64, 1);
        // Extent 0 is on the slow stripe, extent 1 on the other.
        (0..8).for_each(|n| s.visited(PageId(n), Waited::Yes));
        (8..16).for_each(|n| s.visited(PageId(n), Waited::No));
        assert_eq!(s.due(), Some(64));
        let leaves: VecDeque<PageId> = (16..200).map(PageId).collect();
        let wishes = s.wishes(&leaves);
        let on = |stripe| wishes.iter().filter(|p| TWO.place(**p).stripe == stripe).count();
        assert_eq!((on(0), on(1)), (32, 0), "64 leaves ahead on one, 8 on the other: {wishes:?}");
        assert_eq!(wishes.last(), Some(&PageId(71)));
    }
}
