//! The write transaction of a graph: quads and terms come and go, all or nothing.
//!
//! 1. [`Database::begin`] waits for the turn of the writer and takes the newest appended state;
//! 2. terms get ids (`transaction::terms`), quads enter and leave the indexes
//!    (`transaction::quads`), graphs are cleared (`transaction::clear`); a [`Session`] of the
//!    transaction sees all of it, no other session does;
//! 3. [`Transaction::append`] puts leaves in order after a large batch (`relocate`), writes the
//!    catalog records that changed and hands the new [`GraphState`] to those who come after.
//!
//! Invariant: the records are written once, at the end; in between the state in memory is the
//! truth.

pub(crate) mod clear;
pub(crate) mod document;
pub(crate) mod quad_batch;
pub(crate) mod quads;
pub(crate) mod relocate;
pub(crate) mod terms;
pub(crate) mod whole_graph;

use std::sync::Arc;

use rustc_hash::FxHashSet;
use snowmelt_store::{Account, Committed, Pending, Transaction as StoreTransaction};

use crate::database::Database;
use crate::database::state::GraphState;
use crate::dict::prefix::PrefixEncoder;
use crate::dict::{RECORD_CODES, RECORD_META, RECORD_PREFIXES, Tree};
use crate::error::Result;
use crate::index::Index;
use crate::index::value_counts::ValueCounts;
use crate::session::Session;
use crate::term::TermId;

/// Kind of every catalog record of a graph.
const RECORD_KIND: u32 = 1;

/// Changes to distinct values per predicate that are not worth writing the counts again: this,
/// and a sixteenth of the pairs.
const VALUES_DRIFT: u64 = 64;

/// Marks counts that are to be written with this commit.
const WRITE_VALUES: u64 = 0;

/// A write transaction. Dropped without commit it leaves nothing.
pub struct Transaction {
    pub(crate) db: Arc<Database>,
    pub(crate) txn: StoreTransaction,
    base: Arc<GraphState>,
    pub(crate) state: Arc<GraphState>,
    /// there once an IRI was added
    pub(crate) prefixes: Option<PrefixEncoder>,
    /// predicates that got a literal as object
    pub(crate) literals: FxHashSet<TermId>,
}

impl Database {
    /// Begins a write transaction; waits until the one before it has been appended or dropped.
    ///
    /// # Errors
    /// When nothing may be written any more, or a catalog record cannot be read.
    pub fn begin(self: &Arc<Self>) -> Result<Transaction> {
        Ok(self.begin_while(&|| true)?.expect("it does not give up"))
    }

    /// The same, as long as `go_on` says so while it waits; it is asked some tens of times a
    /// second. `None` when it gave up.
    ///
    /// # Errors
    /// As [`Database::begin`].
    pub fn begin_while(self: &Arc<Self>, go_on: &(dyn Fn() -> bool + Sync)) -> Result<Option<Transaction>> {
        let Some(txn) = self.store().begin_while(go_on)? else { return Ok(None) };
        let base = self.appended_state(&txn.snapshot(), txn.txn() - 1)?;
        let mut state = GraphState::clone(&base);
        state.txn = txn.txn();
        Ok(Some(Transaction {
            db: self.clone(),
            txn,
            base,
            state: Arc::new(state),
            prefixes: None,
            literals: FxHashSet::default(),
        }))
    }
}

impl Transaction {
    /// A session that sees what the transaction has done so far, and never more.
    pub fn session(&self) -> Session {
        let session = Session::new(self.db.clone(), self.state.clone(), self.txn.snapshot());
        session.charged_to(self.txn.account())
    }

    /// On whose behalf it reads.
    pub fn account(&self) -> &Arc<Account> {
        self.txn.account()
    }

    /// From now on what it reads is read on behalf of `account`.
    pub fn charge_to(&mut self, account: &Arc<Account>) {
        self.txn.charge_to(account);
    }

    /// Its number.
    pub fn number(&self) -> u64 {
        self.txn.txn()
    }

    /// The database.
    pub fn database(&self) -> &Arc<Database> {
        &self.db
    }

    /// The graph with all changes so far.
    pub fn state(&self) -> &Arc<GraphState> {
        &self.state
    }

    pub(crate) fn base(&self) -> &GraphState {
        &self.base
    }

    pub(crate) fn state_mut(&mut self) -> &mut GraphState {
        Arc::make_mut(&mut self.state)
    }

    /// Commits; durable when it returns.
    ///
    /// # Errors
    /// Those of the journal; then nothing was changed, or nothing more can be.
    pub fn commit(self) -> Result<Committed> {
        Ok(self.append()?.wait()?)
    }

    /// Commits without waiting: the next writer builds on it, readers see it when it is
    /// durable.
    ///
    /// # Errors
    /// As [`Transaction::commit`].
    pub fn append(mut self) -> Result<Pending> {
        self.relocate_after_batch()?;
        self.write_records();
        assert_eq!(self.state.txn, self.txn.txn(), "the state is that of the transaction");
        let Transaction { db, txn, state, prefixes, literals, .. } = self;
        // Before a session can see the quads: a plan that assumes that a predicate has no
        // literals asks for this.
        db.note_literals(&literals, txn.txn());
        let number = txn.txn();
        db.note_appended(state, prefixes);
        match txn.append() {
            Ok(pending) => Ok(pending),
            Err(error) => {
                db.forget_appended(number);
                Err(error.into())
            }
        }
    }

    /// Puts the records that changed.
    fn write_records(&mut self) {
        self.decide_values();
        let (state, base) = (self.state.clone(), self.base.clone());
        let mut put = |name: &str, bytes: &[u8]| self.txn.put_record(name, RECORD_KIND, bytes);
        if state.meta != base.meta || base.txn == 0 {
            put(RECORD_META, &state.meta.to_bytes());
        }
        if !Arc::ptr_eq(&state.codes, &base.codes) {
            put(RECORD_CODES, &state.codes.to_bytes());
        }
        if !Arc::ptr_eq(&state.prefixes, &base.prefixes) {
            put(RECORD_PREFIXES, &state.prefixes.to_bytes());
        }
        for tree in Tree::ALL {
            if let Some(strings) = &state.strings[tree as usize] {
                put(tree.name(), &strings.to_bytes());
            }
            if let Some(hashes) = &state.hashes[tree as usize] {
                put(tree.hash_name(), &hashes.to_bytes());
            }
        }
        for index in Index::ALL {
            if let Some(rows) = &state.indexes[index as usize] {
                put(index.name(), &rows.to_bytes());
            }
        }
        if state.values_drift == WRITE_VALUES {
            for (index, values) in [Index::Psog, Index::Posg].into_iter().zip(&state.values) {
                put(&ValueCounts::record_name(index.name()), &values.to_bytes());
            }
        }
    }

    /// The counts of distinct values are statistics: they are written when they are off by more
    /// than a little.
    fn decide_values(&mut self) {
        let pairs: u64 =
            [Index::Sp, Index::Op].iter().map(|i| self.state.index(*i).map_or(0, |t| t.rows())).sum();
        if self.state.values_drift > VALUES_DRIFT + pairs / 16 {
            self.state_mut().values_drift = WRITE_VALUES;
        }
    }
}
