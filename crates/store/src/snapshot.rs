//! Snapshots: every read says as of which commit it reads.
//!
//! A snapshot is the number of the last commit it may see. Live snapshots are registered, because a checkpoint may write a page
//! version to its stripe only when every live snapshot may see it. Invariant: `oldest()` is never newer than a live snapshot.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// The live snapshots: transaction → how many.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    live: Mutex<BTreeMap<u64, usize>>,
}

impl Snapshots {
    /// Registers a snapshot that sees commits up to and including what `txn` answers; asked under the lock, so that no snapshot
    /// is missed between reading the number and registering it.
    pub(crate) fn take(self: &Arc<Self>, txn: impl FnOnce() -> u64) -> Snapshot {
        let mut live = self.live.lock();
        let txn = txn();
        *live.entry(txn).or_insert(0) += 1;
        Snapshot { inner: Arc::new(Live { txn, of: self.clone() }) }
    }

    /// The oldest transaction a live snapshot reads as of.
    pub(crate) fn oldest(&self) -> Option<u64> {
        self.live.lock().keys().next().copied()
    }
}

/// A point in the database's history; every read is as of one. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Snapshot {
    inner: Arc<Live>,
}

#[derive(Debug)]
struct Live {
    txn: u64,
    of: Arc<Snapshots>,
}

impl Snapshot {
    /// The last transaction this snapshot sees.
    pub fn txn(&self) -> u64 {
        self.inner.txn
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let mut live = self.of.live.lock();
        let n = live.get_mut(&self.txn).expect("a live snapshot is registered");
        *n -= 1;
        if *n == 0 {
            live.remove(&self.txn);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_follows_the_living() {
        let s = Arc::new(Snapshots::default());
        let a = s.take(|| 3);
        let b = s.take(|| 5);
        let a2 = a.clone();
        drop(a);
        assert_eq!(s.oldest(), Some(3));
        drop(a2);
        assert_eq!(s.oldest(), Some(5));
        drop(b);
        assert_eq!(s.oldest(), None);
    }
}
