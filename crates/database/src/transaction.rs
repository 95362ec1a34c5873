//! The write transaction of a database, which layers share.
//!
//! 1. [`Database::begin_for`] waits for the turn of the writer.
//! 2. A layer joins: it takes the transaction, changes its trees, and leaves with
//!    [`Transaction::leave`], its records written. It can join again, and finds what it left
//!    ([`Transaction::take`]). Other layers do the same in between.
//! 3. [`Transaction::append`] makes one commit of it all. The layers are told in the order in which
//!    they left.
//!
//! Invariant: each layer that changed something has left when the commit is appended.

use std::any::Any;
use std::sync::Arc;

use snowmelt_store::{
    Account, Committed, Pending, Snapshot, StoreError, Transaction as StoreTransaction, Waiter,
};

use crate::database::Database;

type Result<T> = std::result::Result<T, StoreError>;

/// A layer that left a transaction and hears whether it was committed. A transaction that is
/// dropped tells nothing.
pub trait Layer: Any + Send {
    /// Called right before the commit is appended, so before any reader can see it.
    fn append(&mut self);

    /// Called once the commit is sure to be appended, and before another writer has the turn. Must
    /// be short and must not wait. Not called when nothing was changed.
    fn appended(&mut self);

    /// Called when the commit was not appended: nothing has changed.
    fn failed(&mut self);
}

/// A write transaction. Dropped without commit it leaves nothing.
pub struct Transaction {
    store: StoreTransaction,
    layers: Vec<Box<dyn Layer>>,
}

impl Database {
    /// Begins a write transaction; waits until the one before it has been appended or dropped.
    /// `None` when the waiter gave up.
    ///
    /// # Errors
    /// Nothing may be written any more.
    pub fn begin_for(&self, waiter: &Waiter<'_>) -> Result<Option<Transaction>> {
        let begun = self.store().begin_for(waiter)?;
        Ok(begun.map(|store| Transaction { store, layers: Vec::new() }))
    }
}

impl Transaction {
    /// Its number.
    pub fn number(&self) -> u64 {
        self.store.txn()
    }

    /// A view of all that was done so far.
    pub fn snapshot(&self) -> Snapshot {
        self.store.snapshot()
    }

    /// The account that its reads are counted for.
    pub fn account(&self) -> &Arc<Account> {
        self.store.account()
    }

    /// Counts its reads for `account` from now on.
    pub fn charge_to(&mut self, account: &Arc<Account>) {
        self.store.charge_to(account);
    }

    /// The transaction of the store, for changes of trees and records.
    pub fn trees(&mut self) -> &mut StoreTransaction {
        &mut self.store
    }

    /// A layer leaves, having written its records; `left` hears of the end.
    pub fn leave(&mut self, left: Box<dyn Layer>) {
        self.layers.push(left);
    }

    /// Takes back what [`Transaction::leave`] was given, if the layer was here: it joins again.
    pub fn take<L: Layer>(&mut self) -> Option<Box<L>> {
        let is_its = |left: &dyn Layer| (left as &dyn Any).is::<L>();
        let left = self.layers.remove(self.layers.iter().position(|left| is_its(&**left))?);
        Some((left as Box<dyn Any>).downcast().expect("it is of this type"))
    }

    /// Commits; durable when it returns.
    ///
    /// # Errors
    /// Those of the journal; then nothing was changed, or nothing more can be.
    pub fn commit(self) -> Result<Committed> {
        self.append()?.wait()
    }

    /// Commits without waiting: the next writer builds on it, readers see it when it is durable.
    ///
    /// # Errors
    /// As [`Transaction::commit`].
    pub fn append(self) -> Result<Pending> {
        let Transaction { store, mut layers } = self;
        layers.iter_mut().for_each(|layer| layer.append());
        let appended = store.append_noting(|| layers.iter_mut().for_each(|layer| layer.appended()));
        if appended.is_err() {
            layers.iter_mut().for_each(|layer| layer.failed());
        }
        appended
    }
}
