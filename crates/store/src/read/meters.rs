//! Meters of the trees, and the accounts of a store.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use parking_lot::Mutex;

use crate::page::TreeId;
use crate::pool::rule::Rule;
use crate::read::account::Account;
use crate::read::activity::Activity;
use crate::read::tree_meter::{TreeMeter, TreeStats, Wanted};
use crate::read::tree_meters::TreeMeters;

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

    /// The account of readers without another one.
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

    /// Moves the counts of a dropped tree to those of other trees.
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

    /// Counts a page of a tree that had to leave; `unused` is the rule that had brought it, if it
    /// was never used.
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
