//! The write transaction of a graph: quads and terms are added and removed, all or nothing.
//!
//! 1. [`GraphDatabase::begin`] waits for the turn of the writer and takes the newest appended
//!    state;
//! 2. terms get ids (`transaction::terms`), quads enter and leave the indexes
//!    (`transaction::quads`), graphs are cleared (`transaction::clear`). A [`Session`] of the
//!    transaction sees all changes; no other session does;
//! 3. [`Transaction::leave`] puts leaves in order after a large batch (`relocate`) and writes the
//!    catalog records that changed. The commit ([`Transaction::append`]) gives later transactions
//!    the new [`GraphState`].
//!
//! It is part of a transaction of the whole database, which other layers may join once it left.
//!
//! Invariant: the records are written once, at the end; until then the state in memory is
//! authoritative.

pub(crate) mod clear;
pub(crate) mod consolidate;
pub(crate) mod document;
pub(crate) mod namespaces;
pub(crate) mod quad_batch;
pub(crate) mod quads;
pub(crate) mod relocate;
pub(crate) mod replay;
mod spooled;
pub(crate) mod staged;
mod statistics;
pub(crate) mod terms;
mod triple_terms;
pub(crate) mod whole_graph;

use std::sync::Arc;

use rustc_hash::FxHashSet;
use snowmelt_database::{Account, Committed, Layer, Pending, Transaction as DatabaseTransaction, Waiter};

use crate::database::GraphDatabase;
use crate::database::change_log::{Change, ChangeLog};
use crate::database::generation::NEXT;
use crate::database::state::GraphState;
use crate::dict::prefix::PrefixEncoder;
use crate::dict::{RECORD_CODES, RECORD_META, RECORD_PREFIXES, Tree};
use crate::error::{GraphError, Result};
use crate::index::Index;
use crate::index::statistics::{RECORD_AGE, record_names};
use crate::index::triple::TripleIndex;
use crate::index::value_counts::ValueCounts;
use crate::session::Session;
use crate::term::TermId;

/// Kind of every catalog record of a graph.
const RECORD_KIND: u32 = 1;

/// Changes to distinct values per predicate that do not yet require writing the counts: this many,
/// plus a sixteenth of the pairs.
const VALUES_DRIFT: u64 = 64;

/// Marks counts that must be written with this commit.
const WRITE_VALUES: u64 = 0;

/// A write transaction. Dropping it without a commit leaves nothing.
pub struct Transaction {
    pub(crate) db: Arc<GraphDatabase>,
    pub(crate) txn: DatabaseTransaction,
    base: Arc<GraphState>,
    pub(crate) state: Arc<GraphState>,
    /// set once an IRI was added
    pub(crate) prefixes: Option<PrefixEncoder>,
    /// predicates that got a literal as object
    pub(crate) literals: FxHashSet<TermId>,
    /// log of its changes, if a rewrite needs them
    log: Option<ChangeLog>,
    target: Target,
}

/// The trees that a transaction changes.
enum Target {
    /// The trees that sessions see.
    Seen,
    /// The trees of the next generation. Sessions keep the state `seen`, unless its commit is the
    /// switch.
    Next { seen: Arc<GraphState>, switches: bool },
}

impl Target {
    /// Suffix of the names of the trees that it creates.
    fn suffix(&self) -> &'static str {
        match self {
            Target::Seen => "",
            Target::Next { .. } => NEXT,
        }
    }
}

/// A graph transaction that left the transaction of the database.
struct Left {
    db: Arc<GraphDatabase>,
    base: Arc<GraphState>,
    state: Arc<GraphState>,
    prefixes: Option<PrefixEncoder>,
    literals: FxHashSet<TermId>,
    log: Option<ChangeLog>,
    target: Target,
}

impl Layer for Left {
    fn append(&mut self) {
        // Before a session can see the quads: a plan that assumes a predicate has no literals
        // checks this.
        self.db.note_literals(&self.literals, self.state.txn);
        if let Some(encoder) = self.prefixes.take() {
            self.db.keep_prefix_encoder(self.state.dictionary(), encoder);
        }
        let seen = match &self.target {
            Target::Next { seen, switches: false } => seen,
            _ => &self.state,
        };
        self.db.states.append(seen.clone());
    }

    fn appended(&mut self) {
        let mut changes = self.db.changes.lock();
        match (&mut *changes, self.log.take()) {
            // Later changes go to the new generation directly.
            _ if matches!(self.target, Target::Next { switches: true, .. }) => *changes = None,
            (Some(all), Some(log)) => all.join(log),
            _ => {}
        }
    }

    fn failed(&mut self) {
        self.db.forget_appended(self.state.txn);
    }
}

impl GraphDatabase {
    /// Begins a write transaction; waits until the one before it has been appended or dropped.
    ///
    /// # Errors
    /// Fails if the database cannot be written any more, or a catalog record cannot be read.
    pub fn begin(self: &Arc<Self>) -> Result<Transaction> {
        Ok(self.begin_for(&Waiter::PATIENT)?.expect("it does not give up"))
    }

    /// Begins a write transaction. Waits as long as `go_on` returns true; it is called some tens of
    /// times a second. `None` if it gave up.
    ///
    /// # Errors
    /// Fails as [`GraphDatabase::begin`] does.
    pub fn begin_while(self: &Arc<Self>, go_on: &(dyn Fn() -> bool + Sync)) -> Result<Option<Transaction>> {
        self.begin_for(&Waiter { go_on, sign: None })
    }

    /// Begins a write transaction for `account`, which shows the waits and is charged for the
    /// transaction's reads. `go_on` is that of [`GraphDatabase::begin_while`].
    ///
    /// # Errors
    /// Fails as [`GraphDatabase::begin`] does.
    pub fn begin_charged(
        self: &Arc<Self>,
        account: &Arc<Account>,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<Transaction>> {
        let mut begun = self.begin_for(&Waiter { go_on, sign: Some(account.sign()) })?;
        if let Some(txn) = &mut begun {
            txn.charge_to(account);
        }
        Ok(begun)
    }

    /// Begins a write transaction for a waiter; `None` if the waiter gave up.
    pub(crate) fn begin_for(self: &Arc<Self>, waiter: &Waiter<'_>) -> Result<Option<Transaction>> {
        let begun = self.database().begin_for(waiter)?;
        begun.map(|txn| self.join(txn)).transpose()
    }

    /// Joins a transaction of the database; a graph transaction may have left it before.
    ///
    /// # Errors
    /// Fails if a catalog record cannot be read.
    pub fn join(self: &Arc<Self>, mut txn: DatabaseTransaction) -> Result<Transaction> {
        if let Some(left) = txn.take::<Left>() {
            let Left { db, base, state, prefixes, literals, log, target } = *left;
            assert!(Arc::ptr_eq(&db, self), "a transaction is joined by the graphs of its database");
            return Ok(Transaction { db, txn, base, state, prefixes, literals, log, target });
        }
        let log = self.changes.lock().as_mut().map(|all| {
            all.shrink(self.database().store());
            ChangeLog::default()
        });
        let base = self.states.appended(&txn.snapshot(), txn.number() - 1)?;
        let mut state = GraphState::clone(&base);
        assert!(base.txn < txn.number(), "it builds on what was appended before it");
        state.txn = txn.number();
        state.has_new_statistics = false;
        Ok(Transaction {
            db: self.clone(),
            txn,
            base,
            state: Arc::new(state),
            prefixes: None,
            literals: FxHashSet::default(),
            log,
            target: Target::Seen,
        })
    }

    /// Begins a write transaction on the next generation, whose state is `next`.
    /// `None` if the waiter gave up.
    pub(crate) fn begin_next(
        self: &Arc<Self>,
        next: &GraphState,
        waiter: &Waiter<'_>,
    ) -> Result<Option<Transaction>> {
        let Some(mut txn) = self.begin_for(waiter)? else { return Ok(None) };
        assert!(next.txn < txn.number(), "the generation was committed before");
        assert_eq!(txn.state.changed, txn.base.changed, "the generation is chosen before any change");
        let base = Arc::new(next.clone());
        let state = GraphState { txn: txn.number(), ..next.clone() };
        txn.base = base;
        let seen = std::mem::replace(&mut txn.state, Arc::new(state));
        txn.target = Target::Next { seen, switches: false };
        txn.log = None;
        Ok(Some(txn))
    }
}

impl Transaction {
    /// A session that sees the transaction's changes so far, and no later ones.
    pub fn session(&self) -> Session {
        let session = Session::new(self.db.clone(), self.state.clone(), self.txn.snapshot());
        session.charged_to(self.txn.account())
    }

    /// The account that its reads are charged to.
    pub fn account(&self) -> &Arc<Account> {
        self.txn.account()
    }

    /// Charges its reads to `account` from now on.
    pub fn charge_to(&mut self, account: &Arc<Account>) {
        self.txn.charge_to(account);
    }

    /// Its number.
    pub fn number(&self) -> u64 {
        self.txn.number()
    }

    /// The graph database that it changes.
    pub fn graph(&self) -> &Arc<GraphDatabase> {
        &self.db
    }

    /// The graph with all changes so far.
    pub fn state(&self) -> &Arc<GraphState> {
        &self.state
    }

    /// Suffix of the names of the trees that it creates.
    fn suffix(&self) -> &'static str {
        self.target.suffix()
    }

    /// Logs changes, if a rewrite needs them.
    fn log(&mut self, changes: impl Iterator<Item = Change>) {
        if let Some(log) = &mut self.log {
            changes.for_each(|change| log.push(change));
            log.shrink(self.db.database().store());
        }
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
    /// Fails with errors of the journal; then nothing was changed, or nothing more can be written.
    pub fn commit(self) -> Result<Committed> {
        Ok(self.append()?.wait()?)
    }

    /// Commits without waiting: the next writer builds on it, readers see it once it is
    /// durable.
    ///
    /// # Errors
    /// Fails as [`Transaction::commit`] does.
    pub fn append(self) -> Result<Pending> {
        Ok(self.leave()?.append()?)
    }

    /// Leaves the transaction of the database, for other layers to join or for its commit.
    ///
    /// # Errors
    /// Fails with errors of the store.
    pub fn leave(mut self) -> Result<DatabaseTransaction> {
        self.relocate_after_batch()?;
        self.write_records();
        assert_eq!(self.state.txn, self.txn.number(), "the state is that of the transaction");
        let Transaction { db, mut txn, base, state, prefixes, literals, log, target } = self;
        txn.leave(Box::new(Left { db, base, state, prefixes, literals, log, target }));
        Ok(txn)
    }

    /// Writes the changed records.
    fn write_records(&mut self) {
        self.decide_values();
        let switches = matches!(self.target, Target::Next { switches: true, .. });
        if switches {
            self.take_names();
        }
        let suffix = if switches { "" } else { self.suffix() };
        let (state, base) = (self.state.clone(), self.base.clone());
        let mut put = |name: &str, bytes: &[u8]| match suffix {
            "" => self.txn.trees().put_record(name, RECORD_KIND, bytes),
            suffix => self.txn.trees().put_record(&format!("{name}{suffix}"), RECORD_KIND, bytes),
        };
        // Always with the first terms: the record has the format by which they are placed.
        let is_first = base.txn == 0 || Tree::ALL.into_iter().all(|tree| base.strings(tree).is_none());
        if switches || state.meta != base.meta || is_first {
            put(RECORD_META, &state.meta.to_bytes());
        }
        if switches || !Arc::ptr_eq(&state.codes, &base.codes) {
            put(RECORD_CODES, &state.codes.to_bytes());
        }
        if switches || !Arc::ptr_eq(&state.prefixes, &base.prefixes) {
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
        for index in TripleIndex::ALL {
            if let Some(rows) = &state.triples[index as usize] {
                put(index.name(), &rows.to_bytes());
            }
        }
        if state.values_drift == WRITE_VALUES {
            for (index, values) in [Index::Psog, Index::Posg].into_iter().zip(&state.values) {
                put(&ValueCounts::record_name(index.name()), &values.to_bytes());
            }
        }
        if state.has_new_statistics {
            state.statistics.records().iter().for_each(|(name, bytes)| put(name, bytes));
        }
        let has_statistics = state.has_new_statistics || !state.statistics.is_empty();
        if has_statistics && (state.has_new_statistics || state.values_drift == WRITE_VALUES) {
            put(RECORD_AGE, &state.statistics.age().to_le_bytes());
        }
    }

    /// Makes the next generation the one that sessions see, as of this commit.
    ///
    /// # Errors
    /// Fails if the generations do not have the same number of rows: one of them is damaged.
    pub(crate) fn switch(&mut self) -> Result<()> {
        let Target::Next { seen, switches } = &mut self.target else {
            unreachable!("only the next generation can become the one that is seen")
        };
        for index in Index::ALL {
            let rows = |state: &GraphState| state.index(index).map_or(0, |tree| tree.rows());
            let (old, new) = (rows(seen), rows(&self.state));
            if old != new {
                let why = format!("its {old} rows became {new}: check the database");
                return Err(GraphError::record(index.name(), why));
            }
        }
        assert!(!*switches, "a generation is switched to once");
        *switches = true;
        let state = Arc::make_mut(&mut self.state);
        // Numbers of blank nodes are equal in all generations.
        state.meta.blank_nodes = state.meta.blank_nodes.max(seen.meta.blank_nodes);
        state.changed = seen.changed;
        state.values_drift = WRITE_VALUES;
        state.has_new_statistics = true;
        Ok(())
    }

    /// Drops the old generation, and gives its names to the next one.
    fn take_names(&mut self) {
        let trees = Tree::ALL.into_iter().flat_map(|tree| [tree.name(), tree.hash_name()]);
        let trees = trees.chain(TripleIndex::ALL.map(TripleIndex::name));
        for name in trees.chain(Index::ALL.map(Index::name)) {
            self.txn.trees().rename_tree(&format!("{name}{NEXT}"), name);
        }
        let values = [Index::Psog, Index::Posg].map(|index| ValueCounts::record_name(index.name()));
        let records = [RECORD_META, RECORD_CODES, RECORD_PREFIXES].map(str::to_owned);
        let statistics = record_names().map(str::to_owned);
        for name in records.into_iter().chain(values).chain(statistics) {
            self.txn.trees().drop_record(&format!("{name}{NEXT}"));
        }
    }

    /// Decides whether to write the counts of distinct values: they are statistics, and are written
    /// only once they are off by more than a little.
    fn decide_values(&mut self) {
        let pairs: u64 =
            [Index::Sp, Index::Op].iter().map(|i| self.state.index(*i).map_or(0, |t| t.rows())).sum();
        if self.state.values_drift > VALUES_DRIFT + pairs / 16 {
            self.state_mut().values_drift = WRITE_VALUES;
        }
    }
}
