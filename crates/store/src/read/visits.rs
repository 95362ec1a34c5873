//! How often a visit to a tree finds its page absent: at most the share of its pages that are
//! absent.
//!
//! In a pool that is too small for a tree, most of the tree is absent all the time; but queries
//! come back to the same pages, and those are there. So the share of visited pages that readers had
//! to read lately says more than the share of the tree that is absent. The reader tells the pages
//! visited and read at the end of each step of a scan or look-up.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Pages visited after which all that came before counts half.
const WINDOW: u64 = 4096;

/// Visits that count as misses as long as little was seen.
const PRIOR: f64 = 32.0;

/// Pins for each leaf that is visited, about: on the way to it inner nodes are pinned, which
/// are there.
const PINS_PER_LEAF: f64 = 2.0;

/// Visits to a tree lately: pages visited in the upper half of one word, pages read for that in
/// the lower, so that readers change one counter.
#[derive(Debug, Default)]
pub(crate) struct RecentVisits(AtomicU64);

impl RecentVisits {
    /// Counts pages that were visited, and how many were read for that. Threads that come at the
    /// same time may forget a little twice.
    pub fn add(&self, pages: u64, read: u64) {
        if pages == 0 {
            return;
        }
        let more = pages.min(WINDOW) << 32 | read.min(WINDOW);
        let sum = self.0.fetch_add(more, Relaxed) + more;
        if sum >> 32 >= WINDOW {
            self.0.store((sum >> 33) << 32 | (sum & HALF) >> 1, Relaxed);
        }
    }

    /// Forgets all visits.
    pub fn forget(&self) {
        self.0.store(0, Relaxed);
    }

    /// The expected share of visits to leaves that find them absent, in a tree of `pages` pages of
    /// which `resident` are resident.
    pub fn absent_share(&self, pages: u64, resident: u64) -> f64 {
        let absent = 1.0 - resident.min(pages) as f64 / pages.max(1) as f64;
        let sum = self.0.load(Relaxed);
        let (visited, read) = ((sum >> 32) as f64, (sum & HALF) as f64);
        absent.min(PINS_PER_LEAF * (read + PRIOR) / (visited + PRIOR))
    }
}

/// The lower half of a word.
const HALF: u64 = u32::MAX as u64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_queries_come_back_to_is_there() {
        let visits = RecentVisits::default();
        assert_eq!(visits.absent_share(1000, 100), 0.9, "nothing is known but what is resident");
        visits.add(1000, 1000);
        assert_eq!(visits.absent_share(1000, 100), 0.9, "all was read");
        (0..400).for_each(|_| visits.add(100, 1));
        let share = visits.absent_share(1000, 100);
        assert!((0.02..0.06).contains(&share), "{share}");
        assert_eq!(visits.absent_share(1000, 1000), 0.0);
        (0..100).for_each(|_| visits.add(100, 80));
        assert_eq!(visits.absent_share(1000, 100), 0.9, "the queries are others now");
    }
}
