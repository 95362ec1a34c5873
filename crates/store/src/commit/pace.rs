//! The pace of a checkpoint: how much of the device's time it takes beside commits.
//!
//! 1. Its writes go out few at once, and the device is left alone after them, as the learned cost
//!    of writes says ([`WriteCost`]).
//! 2. Its share of the time grows with what the journal leaves: at the rate at which the journal
//!    fills, all pages are written before it comes near its bound. Near it, when a writer waits for
//!    room, or without other commits, the checkpoint has all.
//! 3. A volatile cache is flushed before it holds much.

use snowmelt_io::{Haste, WriteCost};

use crate::page::geometry::Geometry;
use crate::page::{PAGE_BYTES, PageId};

/// Factor over the time that the remaining pages take alone: commits take some of the time.
const MARGIN: f64 = 1.5;
/// Weight of the last batch in the mean time of a page.
const LAST: f64 = 0.1;
/// A batch may always take 5/4 of the time of one write: neighbours take hardly longer.
const HARDLY: (u64, u64) = (5, 4);
/// Batches after which one may have a page more.
const SLOW_START: usize = 8;
/// Factor of what a cache may hold, in haste.
const HELD_IN_HASTE: u64 = 8;

/// See the head of the file.
#[derive(Default)]
pub(super) struct Pace {
    /// Time of a page, without pauses; 0 before the first.
    page_ns: f64,
    /// Batches so far.
    batches: usize,
    /// The stripe that was written last, and pages of it since its last flush.
    stripe: usize,
    unflushed: u64,
}

/// The journal beside a checkpoint.
pub(super) struct SpaceLeft {
    /// Bytes until it comes near its bound.
    pub bytes: u64,
    /// Bytes that it has grown by since the checkpoint began, and in how many nanoseconds.
    pub grown: (u64, u64),
}

/// Pages of a batch and the device time that they are reckoned to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Batch {
    pub pages: usize,
    pub device_ns: u64,
}

impl Pace {
    /// The share of the device's time with which `left` pages are written before the journal is
    /// full.
    pub fn haste(&self, left: usize, cost: &WriteCost, room: &SpaceLeft) -> Haste {
        let (grown, ns) = room.grown;
        let page_ns = self.page_ns.max(cost.request_ns(PAGE_BYTES as u64) as f64);
        let until_ns = room.bytes as f64 * ns as f64 / grown.max(1) as f64;
        Haste::to_be_over(MARGIN * left as f64 * page_ns, until_ns)
    }

    /// The first of `pages`, at most `most`, that may be at the device together. It begins with
    /// one, because the device may be another than is believed.
    pub fn batch(&self, pages: &[(PageId, u64)], most: usize, geometry: Geometry, cost: &WriteCost) -> Batch {
        let most = most.min(1 + self.batches / SLOW_START);
        let one_ns = cost.request_ns(PAGE_BYTES as u64);
        let most_ns = cost.at_once_ns().max(one_ns * HARDLY.0 / HARDLY.1);
        let stripe = geometry.place(pages[0].0).stripe;
        let (mut before_ns, mut run) = (0, 1);
        let mut batch = Batch { pages: 1, device_ns: one_ns };
        for two in pages[..pages.len().min(most)].windows(2) {
            let (last, next) = (two[0].0, two[1].0);
            match next.0 == last.0 + 1 && geometry.extent_of(next) == geometry.extent_of(last) {
                true => run += 1,
                false => (before_ns, run) = (batch.device_ns, 1),
            }
            let device_ns = before_ns + cost.request_ns(run * PAGE_BYTES as u64);
            if device_ns > most_ns || geometry.place(next).stripe != stripe {
                break;
            }
            batch = Batch { pages: batch.pages + 1, device_ns };
        }
        batch
    }

    /// Notes that a batch was written. True when a flush is due.
    pub fn wrote(&mut self, stripe: usize, pages: u64, haste: Haste, cost: &WriteCost) -> bool {
        if stripe != self.stripe {
            (self.stripe, self.unflushed) = (stripe, 0);
        }
        self.unflushed += pages;
        let held = if haste == Haste::All { HELD_IN_HASTE } else { 1 };
        let is_due = self.unflushed >= held * cost.unflushed();
        if is_due {
            self.unflushed = 0;
        }
        is_due
    }

    /// Takes in the time of a batch, with its flush if one was due.
    pub fn took(&mut self, pages: usize, ns: u64) {
        self.batches += 1;
        let page_ns = ns as f64 / pages as f64;
        let last = if self.page_ns == 0.0 { 1.0 } else { LAST };
        self.page_ns += last * (page_ns - self.page_ns);
    }
}
