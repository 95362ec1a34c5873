//! Meters: what was touched, read, read ahead, used of that, and thrown out unused; per tree,
//! and per reader as *activity*.
//!
//! Hot paths count in the reader (plain integers); a reader adds its activity to the store's
//! total when it is dropped. Per-tree counters are atomics, touched only when a page moves or a
//! reader says how many rows it found. Invariant: `spec_disk <= disk`, because both are counted
//! at the one place where a read is started.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::{Mutex, RwLock};

use crate::page::TreeId;
use crate::pool::rule::Rule;
use crate::read::visits::RecentVisits;

/// What a query, a client or the whole store did. All fields are counts since the start (or the
/// last reset).
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Activity {
    /// Index lookups, found or not.
    pub rnd: u64,
    /// Rows moved over, matching or not.
    pub seq: u64,
    /// Lookups that continued in the same restart block as the one before.
    pub same_seg: u64,
    /// Lookups that continued on the same leaf.
    pub same_pg: u64,
    /// Lookups that continued under the same parent.
    pub same_par: u64,
    /// Pages whose read from a device was started, read-ahead included.
    pub disk: u64,
    /// Those of `disk` that nobody was waiting for when they were started.
    pub spec_disk: u64,
    /// Threads started to work in parallel.
    pub fork: u64,
    /// Pages pinned.
    pub pages: u64,
    /// Times a page was found in flight, started by somebody else or ahead, and waited for.
    pub waits: u64,
    /// Nanoseconds spent waiting for pages, own reads and those of others.
    pub wait_ns: u64,
}

impl Activity {
    const FIELDS: [&'static str; 8] =
        ["rnd", "seq", "same seg", "same pg", "same par", "disk", "spec disk", "fork"];

    fn values(&self) -> [u64; 8] {
        [self.rnd, self.seq, self.same_seg, self.same_pg, self.same_par, self.disk, self.spec_disk, self.fork]
    }

    /// What was done since `earlier`.
    pub fn since(&self, earlier: &Activity) -> Activity {
        let mut a = *self;
        a.each(earlier, |x, y| *x -= y);
        a
    }

    /// The rest without `part`, field by field; 0 where that is more.
    pub(crate) fn without(mut self, part: &Activity) -> Activity {
        self.each(part, |x, y| *x = x.saturating_sub(y));
        self
    }

    fn each(&mut self, other: &Activity, f: impl Fn(&mut u64, u64)) {
        f(&mut self.rnd, other.rnd);
        f(&mut self.seq, other.seq);
        f(&mut self.same_seg, other.same_seg);
        f(&mut self.same_pg, other.same_pg);
        f(&mut self.same_par, other.same_par);
        f(&mut self.disk, other.disk);
        f(&mut self.spec_disk, other.spec_disk);
        f(&mut self.fork, other.fork);
        f(&mut self.pages, other.pages);
        f(&mut self.waits, other.waits);
        f(&mut self.wait_ns, other.wait_ns);
    }
}

impl std::ops::AddAssign for Activity {
    fn add_assign(&mut self, other: Activity) {
        self.each(&other, |x, y| *x += y);
    }
}

impl fmt::Display for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, value)) in Self::FIELDS.iter().zip(self.values()).enumerate() {
            let gap = if i > 0 { "  " } else { "" };
            write!(f, "{gap}{} {name}", Short(value))?;
        }
        Ok(())
    }
}

/// A count in four significant digits with K, M or G.
#[derive(Clone, Copy, Debug)]
pub struct Short(pub u64);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, unit) = match self.0 {
            v if v < 10_000 => return write!(f, "{v}"),
            v if v < 999_950 => (v as f64 / 1e3, "K"),
            v if v < 999_950_000 => (v as f64 / 1e6, "M"),
            v => (v as f64 / 1e9, "G"),
        };
        let digits = if value < 9.9995 {
            3
        } else if value < 99.995 {
            2
        } else if value < 999.95 {
            1
        } else {
            0
        };
        write!(f, "{value:.digits$}{unit}")
    }
}

/// Fate of the pages one read-ahead rule asked for.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct AheadStats {
    /// Pages whose read the rule started.
    pub issued: u64,
    /// Those somebody used.
    pub used: u64,
    /// Those evicted before anybody used them.
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
    /// Rows found, as the trees report.
    pub touches: u64,
    /// Pages whose read was started.
    pub reads: u64,
    /// By rule, in the order of [`Rule::ALL`].
    pub ahead: [AheadStats; Rule::ALL.len()],
    /// What commits put of it into the journal.
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

/// The live counters of one tree.
#[derive(Debug, Default)]
pub(crate) struct TreeMeter {
    pub touches: AtomicU64,
    pub reads: AtomicU64,
    pub resident: AtomicU64,
    pub pages: AtomicU64,
    /// For the optimiser: not a meter, and not reset.
    pub visits: RecentVisits,
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

    fn reset(&self) {
        self.touches.store(0, Relaxed);
        self.reads.store(0, Relaxed);
        for counter in [&self.images, &self.image_bytes, &self.diffs, &self.diff_bytes] {
            counter.store(0, Relaxed);
        }
        for a in &self.ahead {
            // What becomes of pages that were read before is not counted: see `Pool::counted`.
            [&a.issued, &a.used, &a.evicted_unused].into_iter().for_each(|n| n.store(0, Relaxed));
        }
    }
}

/// All meters of a store.
#[derive(Debug, Default)]
pub(crate) struct Meters {
    trees: RwLock<Vec<Arc<TreeMeter>>>,
    total: Mutex<Activity>,
    /// Times they were reset.
    resets: AtomicU64,
}

impl Meters {
    /// The meter of a tree, made when first asked for.
    pub fn tree(&self, tree: TreeId) -> Arc<TreeMeter> {
        if let Some(m) = self.trees.read().get(tree.0 as usize) {
            return m.clone();
        }
        let mut trees = self.trees.write();
        while trees.len() <= tree.0 as usize {
            trees.push(Arc::default());
        }
        trees[tree.0 as usize].clone()
    }

    /// Calls `f` with the meter of a tree, without touching its reference count.
    pub fn with<T>(&self, tree: TreeId, f: impl FnOnce(&TreeMeter) -> T) -> T {
        if let Some(m) = self.trees.read().get(tree.0 as usize) {
            return f(m);
        }
        f(&self.tree(tree))
    }

    /// A page of a tree had to leave; `unused` is the rule that had brought it, if it was never
    /// used.
    pub fn evicted(&self, tree: TreeId, unused: Option<Rule>) {
        self.with(tree, |m| {
            m.resident.fetch_sub(1, Relaxed);
            if let Some(rule) = unused {
                m.evicted_unused(rule);
            }
        });
    }

    pub fn add(&self, activity: Activity) {
        *self.total.lock() += activity;
    }

    pub fn total(&self) -> Activity {
        *self.total.lock()
    }

    /// Times they were reset.
    pub fn resets(&self) -> u64 {
        self.resets.load(Relaxed)
    }

    pub fn reset(&self) {
        self.resets.fetch_add(1, Relaxed);
        *self.total.lock() = Activity::default();
        self.trees.read().iter().for_each(|t| t.reset());
    }

    pub fn stats(&self, tree: TreeId, name: &str) -> TreeStats {
        self.with(tree, |m| TreeStats {
            tree: tree.0,
            name: name.to_string(),
            pages: m.pages.load(Relaxed),
            resident: m.resident.load(Relaxed),
            touches: m.touches.load(Relaxed),
            reads: m.reads.load(Relaxed),
            ahead: Rule::ALL.map(|r| m.ahead(r)),
            journaled: m.journaled(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_significant_digits() {
        let cases = [
            (0, "0"),
            (9999, "9999"),
            (10_000, "10.00K"),
            (123_449, "123.4K"),
            (999_949, "999.9K"),
            (999_950, "1.000M"),
            (12_345_678, "12.35M"),
            (999_949_999, "999.9M"),
            (4_321_000_000, "4.321G"),
        ];
        for (n, text) in cases {
            assert_eq!(Short(n).to_string(), text);
        }
    }

    #[test]
    fn activity_adds_and_subtracts() {
        let mut a = Activity { rnd: 1, disk: 5, spec_disk: 2, ..Default::default() };
        let before = a;
        a += Activity { rnd: 10, wait_ns: 7, ..Default::default() };
        assert_eq!(a.since(&before), Activity { rnd: 10, wait_ns: 7, ..Default::default() });
        assert!(a.to_string().starts_with("11 rnd  0 seq"), "{a}");
    }

    #[test]
    fn read_percent_rounds_down() {
        let s = TreeStats { touches: 99, reads: 7, ..Default::default() };
        assert_eq!(s.read_percent(), 7);
    }
}
