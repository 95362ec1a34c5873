//! Snapshots: every read says as of which commit it reads.
//!
//! A snapshot is the last commit it may see and the catalog as of it; one taken inside a
//! transaction also carries that transaction's pages, frozen. Live snapshots are registered,
//! because a checkpoint may write a page version to its stripe only when every live snapshot
//! may see it. Invariant: `oldest()` is never newer than a live snapshot.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use crate::format::catalog::Catalog;
use crate::history::private::PrivatePages;
use crate::history::state::State;

/// The live snapshots by transaction.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    live: Mutex<BTreeMap<u64, LiveState>>,
}

#[derive(Debug)]
struct LiveState {
    count: usize,
    state: Arc<State>,
    /// When the first of them was taken, and the latest.
    first_ns: u64,
    taken_ns: u64,
    /// Name of the account whose reader reads as of it.
    holder: Arc<OnceLock<String>>,
    cancelled: Arc<AtomicBool>,
}

impl Snapshots {
    /// Registers a snapshot that sees what `state` returns. `state` is called under the lock, so
    /// that no snapshot is missed between reading the state and registering it.
    pub(crate) fn take(self: &Arc<Self>, now_ns: u64, state: impl FnOnce() -> Arc<State>) -> Snapshot {
        let mut live = self.live.lock();
        let state = state();
        let txn = state.txn;
        let fresh = || LiveState {
            count: 0,
            state: state.clone(),
            first_ns: now_ns,
            taken_ns: 0,
            holder: Arc::default(),
            cancelled: Arc::default(),
        };
        let entry = live.entry(txn).or_insert_with(fresh);
        assert_eq!(entry.state.txn, txn, "snapshots of one transaction share its state");
        entry.count += 1;
        entry.taken_ns = entry.taken_ns.max(now_ns);
        let (cancelled, holder) = (entry.cancelled.clone(), entry.holder.clone());
        Snapshot { live: Arc::new(Live { txn, of: self.clone(), cancelled, holder }), state, pages: None }
    }

    /// The oldest live snapshot.
    pub(crate) fn oldest_live(&self) -> Option<OldestSnapshot> {
        let live = self.live.lock();
        let (txn, entry) = live.first_key_value()?;
        let holder = entry.holder.get().cloned().unwrap_or_default();
        Some(OldestSnapshot { txn: *txn, since_ns: entry.first_ns, holder })
    }

    /// The oldest transaction a live snapshot reads as of.
    pub(crate) fn oldest(&self) -> Option<u64> {
        self.live.lock().keys().next().copied()
    }

    /// Transactions that are listed at most.
    pub(crate) const MOST_LISTED: usize = 64;

    /// The transactions that live snapshots read as of, the oldest first, up to
    /// [`MOST_LISTED`](Self::MOST_LISTED).
    pub(crate) fn live(&self) -> Vec<u64> {
        self.live.lock().keys().copied().take(Self::MOST_LISTED).collect()
    }

    /// The newest state that every live snapshot may see: that of the oldest snapshot, or `visible`
    /// when none is older.
    pub(crate) fn oldest_state(&self, visible: impl FnOnce() -> Arc<State>) -> Arc<State> {
        let live = self.live.lock();
        // Asked under the lock: a snapshot that is taken later sees at least this.
        let visible = visible();
        match live.first_key_value() {
            Some((txn, entry)) if *txn < visible.txn => entry.state.clone(),
            _ => visible,
        }
    }

    /// Gives up the snapshots of transactions before `txn` that were all taken before
    /// `before_ns`; returns how many.
    pub(crate) fn cancel(&self, txn: u64, before_ns: u64) -> u64 {
        let mut live = self.live.lock();
        let old: Vec<u64> =
            live.range(..txn).filter(|(_, e)| e.taken_ns < before_ns).map(|(t, _)| *t).collect();
        let mut n = 0;
        for t in old {
            if let Some(entry) = live.remove(&t) {
                entry.cancelled.store(true, Ordering::Release);
                n += entry.count as u64;
            }
        }
        n
    }
}

/// The oldest live snapshot, or one of several of the same transaction.
#[derive(Clone, Debug)]
pub(crate) struct OldestSnapshot {
    pub txn: u64,
    /// When it was taken.
    pub since_ns: u64,
    /// Name of the account that first read as of it; empty when none has said so.
    pub holder: String,
}

/// A point in the database's history; every read is as of one. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Snapshot {
    live: Arc<Live>,
    state: Arc<State>,
    /// The changes of the transaction it was taken in.
    pages: Option<Arc<PrivatePages>>,
}

#[derive(Debug)]
struct Live {
    txn: u64,
    of: Arc<Snapshots>,
    cancelled: Arc<AtomicBool>,
    holder: Arc<OnceLock<String>>,
}

impl Snapshot {
    /// The last transaction this snapshot sees; of one taken inside a transaction, that one.
    pub fn txn(&self) -> u64 {
        self.state.txn
    }

    /// True when it sees changes that are not committed, so that its number does not say what
    /// it sees.
    pub fn is_private(&self) -> bool {
        self.pages.is_some()
    }

    /// The bytes stored under `name` in the catalog, as of this snapshot.
    pub fn record(&self, name: &str) -> Option<Arc<[u8]>> {
        self.state.catalog.records.get(name).map(|r| r.bytes.clone())
    }

    /// The whole catalog as of this snapshot.
    pub fn catalog(&self) -> &Catalog {
        &self.state.catalog
    }

    /// The state, with the changes of the transaction it was taken in.
    pub(crate) fn state(&self) -> &Arc<State> {
        &self.state
    }

    /// The last commit whose page versions it sees.
    pub(crate) fn committed_txn(&self) -> u64 {
        self.live.txn
    }

    /// True when it was given up because its reader took too long.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.live.cancelled.load(Ordering::Acquire)
    }

    /// Notes the account whose reader reads as of it; `name` is called the first time.
    pub(crate) fn held_by(&self, name: impl FnOnce() -> String) {
        self.live.holder.get_or_init(name);
    }

    /// The pages of the transaction it was taken in.
    pub(crate) fn private_pages(&self) -> Option<&Arc<PrivatePages>> {
        self.pages.as_ref()
    }

    /// This snapshot with the changes of a transaction on top.
    pub(crate) fn with_changes(&self, state: Arc<State>, pages: Arc<PrivatePages>) -> Snapshot {
        assert!(state.txn > self.live.txn, "changes come on top of a commit");
        Snapshot { live: self.live.clone(), state, pages: Some(pages) }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let mut live = self.of.live.lock();
        if self.cancelled.load(Ordering::Acquire) {
            return;
        }
        let entry = live.get_mut(&self.txn).expect("a live snapshot that was not cancelled is registered");
        assert!(entry.count > 0, "a snapshot is dropped once");
        entry.count -= 1;
        if entry.count == 0 {
            live.remove(&self.txn);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(txn: u64) -> Arc<State> {
        Arc::new(State { txn, ..Default::default() })
    }

    #[test]
    fn oldest_follows_the_living() {
        let s = Arc::new(Snapshots::default());
        let a = s.take(0, || at(3));
        let b = s.take(0, || at(5));
        let a2 = a.clone();
        drop(a);
        assert_eq!(s.oldest(), Some(3));
        drop(a2);
        assert_eq!(s.oldest(), Some(5));
        drop(b);
        assert_eq!(s.oldest(), None);
    }
}
