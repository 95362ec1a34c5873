//! Accounts: on whose behalf pages are read.
//!
//! A reader has one account and adds its activity to it, and to those above it, when it is
//! flushed. Nothing is counted per row or per page.
//!
//! | account | above it |
//! |---|---|
//! | all of the store | |
//! | a *named* one of the store: `http query`, `load`, `background`, `other` … | all |
//! | one of a caller's own: a query, with its connection | a named one, and others of the caller |
//!
//! Invariant: above each account is exactly one named one, so the named ones together are all,
//! until one is reset. What was done before a reset does not count after it, in whatever reader
//! it was done.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use parking_lot::Mutex;

use crate::read::activity::Activity;
use crate::read::priority::Priority;
use crate::read::wait_log::WaitLog;
use crate::sync::waits::WaitSign;

/// Whose activity it is; see the head of the file.
#[derive(Debug, Default)]
pub struct Account {
    name: String,
    sum: Mutex<Activity>,
    /// Times it was reset; changes under the lock of `sum`.
    resets: AtomicU64,
    above: Vec<Arc<Account>>,
    waits: Option<Arc<WaitLog>>,
    priority: Priority,
    sign: WaitSign,
}

impl Account {
    /// An account with a name, below `above`.
    pub(crate) fn named(name: &str, above: &[Arc<Account>]) -> Arc<Account> {
        Arc::new(Account { name: name.to_owned(), above: above.to_vec(), ..Account::default() })
    }

    /// An account of one's own that no reader has: it gets what the accounts below it get.
    pub fn alone() -> Arc<Account> {
        Arc::default()
    }

    /// An account of one's own below a named one of the store, and below others of one's own,
    /// which are [`alone`](Account::alone).
    pub fn within(named: &Arc<Account>, others: &[Arc<Account>]) -> Arc<Account> {
        Arc::new(Self::below(named, others))
    }

    /// As [`Account::within`], with reads of that priority; each wait for a page is written into
    /// the log, if there is one.
    pub fn prioritized(
        named: &Arc<Account>,
        others: &[Arc<Account>],
        priority: Priority,
        waits: Option<Arc<WaitLog>>,
    ) -> Arc<Account> {
        Arc::new(Account { priority, waits, ..Self::below(named, others) })
    }

    fn below(named: &Arc<Account>, others: &[Arc<Account>]) -> Account {
        let above = [std::slice::from_ref(named), others].concat();
        Account { above, ..Account::default() }
    }

    /// Its name; empty for those of a caller's own.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its name, or that of the named one above it.
    pub fn named_one(&self) -> &str {
        match self.above.first() {
            Some(above) if self.name.is_empty() => above.named_one(),
            _ => &self.name,
        }
    }

    /// The activity on its behalf that has been flushed.
    pub fn activity(&self) -> Activity {
        *self.sum.lock()
    }

    /// Counts anew.
    pub fn reset(&self) {
        let mut sum = self.sum.lock();
        self.resets.fetch_add(1, Relaxed);
        *sum = Activity::default();
    }

    /// Times it was reset.
    pub(crate) fn resets(&self) -> u64 {
        self.resets.load(Relaxed)
    }

    /// How urgent the reads on its behalf are.
    pub fn priority(&self) -> Priority {
        self.priority
    }

    /// The reason of its wait now, but for pages.
    pub fn sign(&self) -> &WaitSign {
        &self.sign
    }

    /// Where its waits are written down.
    pub(crate) fn waits(&self) -> Option<&Arc<WaitLog>> {
        self.waits.as_ref()
    }
}

/// A reader's debts to its account and to those above it.
#[derive(Debug)]
pub(crate) struct Shares {
    account: Arc<Account>,
    list: Vec<Share>,
}

/// The debt to one account.
#[derive(Debug)]
struct Share {
    account: Arc<Account>,
    /// Times the account had been reset, and what the reader had done by then.
    resets: u64,
    before: Option<Box<Activity>>,
}

impl Shares {
    /// Those of a reader that has done nothing yet.
    pub fn new(account: &Arc<Account>) -> Shares {
        let mut shares = Shares { account: account.clone(), list: Vec::with_capacity(4) };
        shares.add(account);
        shares
    }

    fn add(&mut self, account: &Arc<Account>) {
        debug_assert!(
            self.list.iter().all(|share| !Arc::ptr_eq(&share.account, account)),
            "an account is above another once"
        );
        self.list.push(Share { account: account.clone(), resets: account.resets(), before: None });
        account.above.iter().for_each(|above| self.add(above));
    }

    /// The account.
    pub fn account(&self) -> &Arc<Account> {
        &self.account
    }

    /// Called before anything is read: an account that has been reset since will not count what the
    /// reader did so far.
    pub fn note_resets(&mut self, so_far: &Activity) {
        for share in &mut self.list {
            let resets = share.account.resets();
            if resets != share.resets {
                (share.resets, share.before) = (resets, Some(Box::new(*so_far)));
            }
        }
    }

    /// Adds what the reader did; it begins at zero again.
    pub fn settle(&mut self, done: Activity) {
        if done == Activity::default() {
            return;
        }
        for share in &mut self.list {
            let mut sum = share.account.sum.lock();
            let resets = share.account.resets();
            let before = share.before.take();
            // Nothing was read since a reset that was not noted.
            if resets == share.resets {
                *sum += done.without(&before.map_or_else(Activity::default, |before| *before));
            }
            share.resets = resets;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(n: u64) -> Activity {
        Activity { disk: n, ..Activity::default() }
    }

    #[test]
    fn what_is_done_goes_to_all_above() {
        let all = Account::named("all", &[]);
        let named = Account::named("http query", std::slice::from_ref(&all));
        let connection = Account::alone();
        let query = Account::within(&named, std::slice::from_ref(&connection));
        Shares::new(&query).settle(disk(3));
        Shares::new(&named).settle(disk(4));
        let sums = [&all, &named, &connection, &query].map(|account| account.activity().disk);
        assert_eq!(sums, [7, 7, 3, 3]);
    }

    #[test]
    fn a_reset_is_an_accounts_own() {
        let all = Account::named("all", &[]);
        let named = Account::named("load", std::slice::from_ref(&all));
        let mut shares = Shares::new(&named);
        shares.settle(disk(5));
        // The reader runs over the reset, and reads on.
        let mut done = disk(10);
        named.reset();
        shares.note_resets(&done);
        done += disk(2);
        shares.settle(done);
        assert_eq!((all.activity().disk, named.activity().disk), (17, 2));
        // It ends without having read anything since.
        named.reset();
        shares.settle(disk(1));
        assert_eq!((all.activity().disk, named.activity().disk), (18, 0));
        shares.settle(disk(1));
        assert_eq!(named.activity().disk, 1);
    }
}
