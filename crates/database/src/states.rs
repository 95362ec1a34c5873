//! States of a layer. Sessions and transactions share them, so that none reads the catalog each
//! time.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use snowmelt_store::{Snapshot, StoreError};

/// A layer as of one transaction: its trees and small tables. Immutable once a session has it.
pub trait LayerState: Sized + Send + Sync {
    /// Why a state cannot be read.
    type Error: From<StoreError>;

    /// The state that a snapshot sees, as of transaction `txn`.
    ///
    /// # Errors
    /// A record that cannot be read.
    fn read(snapshot: &Snapshot, txn: u64) -> Result<Self, Self::Error>;

    /// The last transaction that it contains.
    fn txn(&self) -> u64;

    /// Takes over from an earlier state what was counted since the layer was opened, and stands in
    /// no record: this one was read after a commit of another layer.
    fn take_over(&mut self, _earlier: &Self) {}
}

/// The states of an open layer.
///
/// A commit is *appended* before it is durable: the next writer builds on it, sessions see it
/// later. A commit of another layer makes no state here; the one after it is read from the catalog.
pub struct States<S> {
    /// The newest that a session has asked for.
    newest: RwLock<Arc<S>>,
    /// States of commits that no session has asked for yet.
    appended: Mutex<BTreeMap<u64, Arc<S>>>,
}

impl<S: LayerState> States<S> {
    /// States of a layer at its opening, as a snapshot sees it.
    ///
    /// # Errors
    /// A record that cannot be read.
    pub fn open(snapshot: &Snapshot) -> Result<Self, S::Error> {
        let newest = S::read(snapshot, snapshot.txn())?;
        Ok(Self { newest: RwLock::new(Arc::new(newest)), appended: Mutex::default() })
    }

    /// The state that a snapshot sees.
    ///
    /// # Errors
    /// A record that cannot be read.
    pub fn seen_by(&self, snapshot: &Snapshot) -> Result<Arc<S>, S::Error> {
        // Its number is that of a commit which may never be, or is another's.
        if snapshot.is_private() {
            return Ok(Arc::new(self.read(snapshot, snapshot.txn())?));
        }
        let newest = self.newest.read().clone();
        if newest.txn() == snapshot.txn() {
            return Ok(newest);
        }
        let appended = self.appended.lock().get(&snapshot.txn()).cloned();
        let state = match appended {
            Some(state) => state,
            None => Arc::new(self.read(snapshot, snapshot.txn())?),
        };
        let mut newest = self.newest.write();
        if newest.txn() < state.txn() {
            *newest = state.clone();
            // The newest appended state stays for the next writer.
            let mut appended = self.appended.lock();
            if let Some((last, _)) = appended.last_key_value() {
                let keep = state.txn().min(*last);
                *appended = appended.split_off(&keep);
            }
        }
        Ok(state)
    }

    /// The state that a new transaction builds on. It began with the snapshot `base`, after
    /// transaction `txn`.
    ///
    /// # Errors
    /// A record that cannot be read.
    pub fn appended(&self, base: &Snapshot, txn: u64) -> Result<Arc<S>, S::Error> {
        if let Some(state) = self.appended.lock().get(&txn) {
            return Ok(state.clone());
        }
        let newest = self.newest.read().clone();
        if newest.txn() == txn {
            return Ok(newest);
        }
        Ok(Arc::new(self.read(base, txn)?))
    }

    /// Reads a state, and takes over from the one before it.
    fn read(&self, snapshot: &Snapshot, txn: u64) -> Result<S, S::Error> {
        let mut state = S::read(snapshot, txn)?;
        let newest = self.newest.read().clone();
        let appended = self.appended.lock().range(..txn).next_back().map(|(_, state)| state.clone());
        state.take_over(&appended.filter(|state| state.txn() > newest.txn()).unwrap_or(newest));
        Ok(state)
    }

    /// Adds a state whose commit is about to be appended.
    pub fn append(&self, state: Arc<S>) {
        assert!(state.txn() > self.newest.read().txn(), "commits are appended in order");
        self.appended.lock().insert(state.txn(), state);
    }

    /// Removes the state of a commit that was not appended.
    pub fn forget(&self, txn: u64) {
        self.appended.lock().remove(&txn);
    }
}
