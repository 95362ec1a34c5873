//! Meters of the trees: what was touched, read, read ahead, used of that, and thrown out unused;
//! and the accounts of a store.
//!
//! The counters are atomics, touched only when a page moves or a reader says how many rows it
//! found.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;

use crate::page::TreeId;
use crate::pool::rule::Rule;
use crate::read::account::Account;
use crate::read::activity::Activity;
use crate::read::tree_meters::TreeMeters;
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
    wanted: AtomicU64,
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

    fn stats(&self, tree: u32, name: &str) -> TreeStats {
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

    fn wanted(&self) -> Wanted {
        let resident = self.resident();
        let absent = self.pages.load(Relaxed).saturating_sub(resident);
        Wanted { pages: self.wanted.load(Relaxed), ever: self.wanted_ever.load(Relaxed), absent }
    }

    fn reset(&self) {
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

/// The account of readers without another, and the name of trees that are not of the newest
/// state.
const OTHER: &str = "other";

/// The meters of a store's trees, and its accounts.
#[derive(Debug)]
pub(crate) struct Meters {
    trees: TreeMeters,
    /// Above all others.
    all: Arc<Account>,
    other: Arc<Account>,
    /// By name, in the order in which they were asked for.
    accounts: Mutex<Vec<Arc<Account>>>,
}

impl Default for Meters {
    fn default() -> Self {
        let all = Account::named("all", &[]);
        let other = Account::named(OTHER, std::slice::from_ref(&all));
        Meters { trees: TreeMeters::default(), accounts: Mutex::new(vec![other.clone()]), all, other }
    }
}

impl Meters {
    /// The account of a name, made when first asked for.
    pub fn account(&self, name: &str) -> Arc<Account> {
        let mut accounts = self.accounts.lock();
        if let Some(account) = accounts.iter().find(|account| account.name() == name) {
            return account.clone();
        }
        let account = Account::named(name, std::slice::from_ref(&self.all));
        accounts.push(account.clone());
        account
    }

    /// Of readers without another.
    pub fn other(&self) -> &Arc<Account> {
        &self.other
    }

    /// All named accounts.
    pub fn accounts(&self) -> Vec<Arc<Account>> {
        self.accounts.lock().clone()
    }

    /// Calls `f` with the meter of a tree, made when first asked for.
    pub fn with<T>(&self, tree: TreeId, f: impl FnOnce(&TreeMeter) -> T) -> T {
        f(self.trees.of_tree(tree))
    }

    /// A tree is dropped: what was counted of it goes to the others.
    pub fn retire(&self, tree: TreeId) {
        self.trees.retire(tree);
    }

    /// How much of a tree and of all trees is wanted. Older wants count less.
    pub fn wanted(&self, tree: TreeId) -> (Wanted, Wanted) {
        /// Wanted pages that count, of all trees.
        const REACH: u64 = 2048;
        let of_tree = self.with(tree, TreeMeter::wanted);
        let all = self.trees.live().fold(Wanted::default(), |sum, tree| {
            let of = tree.wanted();
            Wanted { pages: sum.pages + of.pages, ever: sum.ever + of.ever, absent: sum.absent + of.absent }
        });
        if all.pages > 2 * REACH {
            // Another thread that halves them at the same time does no harm: this is a guess.
            self.trees.live().for_each(|tree| tree.wanted.store(tree.wanted.load(Relaxed) / 2, Relaxed));
        }
        (of_tree, all)
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

    /// The activity of all accounts together.
    pub fn total(&self) -> Activity {
        self.all.activity()
    }

    /// Times all meters were reset.
    pub fn resets(&self) -> u64 {
        self.all.resets()
    }

    pub fn reset(&self) {
        self.all.reset();
        self.accounts.lock().iter().for_each(|account| account.reset());
        self.trees.all().for_each(TreeMeter::reset);
    }

    /// Sets the counters of one tree to zero.
    pub fn reset_tree(&self, tree: TreeId) {
        self.with(tree, TreeMeter::reset);
    }

    /// The counters of all trees but the `known` ones, together: of those that were replaced, or
    /// are being made.
    pub fn others(&self, known: &[TreeStats]) -> TreeStats {
        let is_other = |meter: &&TreeMeter| known.iter().all(|k| !self.trees.is_of(meter, TreeId(k.tree)));
        let sum = TreeStats { tree: u32::MAX, name: OTHER.to_owned(), ..TreeStats::default() };
        self.trees.all().filter(is_other).map(|meter| meter.stats(u32::MAX, OTHER)).fold(
            sum,
            |mut sum, tree| {
                sum.resident += tree.resident;
                sum.touches += tree.touches;
                sum.reads += tree.reads;
                sum.ahead.iter_mut().zip(tree.ahead).for_each(|(sum, ahead)| *sum += ahead);
                sum.journaled.images += tree.journaled.images;
                sum.journaled.image_bytes += tree.journaled.image_bytes;
                sum.journaled.diffs += tree.journaled.diffs;
                sum.journaled.diff_bytes += tree.journaled.diff_bytes;
                sum
            },
        )
    }

    pub fn stats(&self, tree: TreeId, name: &str) -> TreeStats {
        self.with(tree, |meter| meter.stats(tree.0, name))
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
