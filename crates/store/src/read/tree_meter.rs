//! The meter of one tree: what was touched, read, read ahead, used of that, and thrown out unused.
//!
//! The counters are atomics, touched only when a page moves or a reader says how many rows it
//! found.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::pool::rule::Rule;
use crate::read::visits::RecentVisits;

/// Fate of the pages one read-ahead rule asked for.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct AheadStats {
    /// Pages whose read the rule started.
    pub issued: u64,
    /// Those that were used.
    pub used: u64,
    /// Those evicted before any use.
    pub evicted_unused: u64,
}

impl std::ops::AddAssign for AheadStats {
    fn add_assign(&mut self, o: AheadStats) {
        self.issued += o.issued;
        self.used += o.used;
        self.evicted_unused += o.evicted_unused;
    }
}

/// Counters of one tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeStats {
    /// The tree.
    pub tree: u32,
    /// Its name.
    pub name: String,
    /// Pages written.
    pub pages: u64,
    /// Pages in the pool now.
    pub resident: u64,
    /// Pages whose newest state is not on their stripe; filled in by a report.
    pub dirty: u64,
    /// Rows found, as the trees report.
    pub touches: u64,
    /// Pages whose read was started.
    pub reads: u64,
    /// By rule, in the order of [`Rule::ALL`].
    pub ahead: [AheadStats; Rule::ALL.len()],
    /// Its pages that commits put into the journal.
    pub journaled: JournaledPages,
}

/// Pages that commits put into the journal, and their bytes there before compression.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct JournaledPages {
    /// Pages given whole.
    pub images: u64,
    /// Bytes of them.
    pub image_bytes: u64,
    /// Pages of which only the change was given.
    pub diffs: u64,
    /// Bytes of them.
    pub diff_bytes: u64,
}

impl TreeStats {
    /// Reads per 100 touches, rounded down.
    pub fn read_percent(&self) -> u64 {
        100 * self.reads / (self.touches + 1)
    }

    /// All rules together.
    pub fn ahead_total(&self) -> AheadStats {
        self.ahead.iter().fold(AheadStats::default(), |mut sum, a| {
            sum += *a;
            sum
        })
    }
}

#[derive(Debug, Default)]
struct AheadMeter {
    issued: AtomicU64,
    used: AtomicU64,
    evicted_unused: AtomicU64,
}

/// How much of a tree, or of all, is wanted.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Pages wanted lately that were not in the pool, or only because of a guess.
    pub pages: u64,
    /// Pages wanted since the database was opened.
    pub ever: u64,
    /// Pages absent now.
    pub absent: u64,
}

/// Counters that every reader writes at the end of every step, on cache lines of their own: other
/// readers look at the rest meanwhile.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct StepCounters {
    pub touches: AtomicU64,
    /// For the optimiser: not a meter, and not reset.
    pub visits: RecentVisits,
}

/// The live counters of one tree.
#[derive(Debug, Default)]
pub(crate) struct TreeMeter {
    pub steps: StepCounters,
    pub reads: AtomicU64,
    pub resident: AtomicU64,
    pub pages: AtomicU64,
    /// See [`Wanted::pages`]: not a meter, and not reset.
    pub wanted: AtomicU64,
    wanted_ever: AtomicU64,
    ahead: [AheadMeter; Rule::ALL.len()],
    images: AtomicU64,
    image_bytes: AtomicU64,
    diffs: AtomicU64,
    diff_bytes: AtomicU64,
}

impl TreeMeter {
    pub fn issued(&self, rule: Rule, n: u64) {
        self.ahead[rule.index()].issued.fetch_add(n, Relaxed);
    }
    pub fn used(&self, rule: Rule) {
        self.ahead[rule.index()].used.fetch_add(1, Relaxed);
        if rule.is_guess() {
            self.missed(1);
        }
    }
    pub fn evicted_unused(&self, rule: Rule) {
        self.ahead[rule.index()].evicted_unused.fetch_add(1, Relaxed);
    }
    pub fn image(&self, bytes: u64) {
        self.images.fetch_add(1, Relaxed);
        self.image_bytes.fetch_add(bytes, Relaxed);
    }
    pub fn diff(&self, bytes: u64) {
        self.diffs.fetch_add(1, Relaxed);
        self.diff_bytes.fetch_add(bytes, Relaxed);
    }
    fn journaled(&self) -> JournaledPages {
        JournaledPages {
            images: self.images.load(Relaxed),
            image_bytes: self.image_bytes.load(Relaxed),
            diffs: self.diffs.load(Relaxed),
            diff_bytes: self.diff_bytes.load(Relaxed),
        }
    }
    pub fn ahead(&self, rule: Rule) -> AheadStats {
        let a = &self.ahead[rule.index()];
        AheadStats {
            issued: a.issued.load(Relaxed),
            used: a.used.load(Relaxed),
            evicted_unused: a.evicted_unused.load(Relaxed),
        }
    }

    /// Pages of it were wanted that were not in the pool before.
    pub fn missed(&self, pages: u64) {
        self.wanted.fetch_add(pages, Relaxed);
        self.wanted_ever.fetch_add(pages, Relaxed);
    }

    pub fn stats(&self, tree: u32, name: &str) -> TreeStats {
        TreeStats {
            tree,
            name: name.to_owned(),
            pages: self.pages.load(Relaxed),
            resident: self.resident(),
            dirty: 0,
            touches: self.steps.touches.load(Relaxed),
            reads: self.reads.load(Relaxed),
            ahead: Rule::ALL.map(|rule| self.ahead(rule)),
            journaled: self.journaled(),
        }
    }

    /// Pages in the pool. One that left while its tree was dropped may be counted elsewhere.
    pub fn resident(&self) -> u64 {
        (self.resident.load(Relaxed) as i64).max(0) as u64
    }

    /// Gives all that was counted to another meter, and begins anew.
    pub fn move_to(&self, other: &TreeMeter) {
        let move_counter = |from: &AtomicU64, to: &AtomicU64| {
            let counted = from.load(Relaxed);
            from.fetch_sub(counted, Relaxed);
            to.fetch_add(counted, Relaxed);
        };
        move_counter(&self.steps.touches, &other.steps.touches);
        move_counter(&self.reads, &other.reads);
        move_counter(&self.resident, &other.resident);
        move_counter(&self.images, &other.images);
        move_counter(&self.image_bytes, &other.image_bytes);
        move_counter(&self.diffs, &other.diffs);
        move_counter(&self.diff_bytes, &other.diff_bytes);
        for (from, to) in self.ahead.iter().zip(&other.ahead) {
            move_counter(&from.issued, &to.issued);
            move_counter(&from.used, &to.used);
            move_counter(&from.evicted_unused, &to.evicted_unused);
        }
        [&self.pages, &self.wanted, &self.wanted_ever].into_iter().for_each(|n| n.store(0, Relaxed));
        self.steps.visits.forget();
    }

    pub fn wanted(&self) -> Wanted {
        let resident = self.resident();
        let absent = self.pages.load(Relaxed).saturating_sub(resident);
        Wanted { pages: self.wanted.load(Relaxed), ever: self.wanted_ever.load(Relaxed), absent }
    }

    pub fn reset(&self) {
        self.steps.touches.store(0, Relaxed);
        self.reads.store(0, Relaxed);
        for counter in [&self.images, &self.image_bytes, &self.diffs, &self.diff_bytes] {
            counter.store(0, Relaxed);
        }
        for a in &self.ahead {
            // The fate of pages that were read before is not counted: see `Member::counted`.
            [&a.issued, &a.used, &a.evicted_unused].into_iter().for_each(|n| n.store(0, Relaxed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_percent_rounds_down() {
        let s = TreeStats { touches: 99, reads: 7, ..Default::default() };
        assert_eq!(s.read_percent(), 7);
    }
}
