//! An open graph: a store, and the state of the graph as of its newest transactions.

pub(crate) mod backup;
pub(crate) mod change_log;
pub(crate) mod generation;
mod parse_slots;
mod resources;
pub(crate) mod state;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use rustc_hash::{FxHashMap, FxHashSet};
use snowmelt_store::{Snapshot, Store, TempSpace};

use crate::database::change_log::ChangeLog;
use crate::database::parse_slots::ParseSlots;
use crate::database::state::GraphState;
use crate::dict::Tree;
use crate::dict::prefix::PrefixEncoder;
use crate::error::Result;
use crate::index::Index;
use crate::term::TermId;

/// How to open a database: the store's settings.
pub use snowmelt_store::StoreConfig as OpenOptions;

/// The names of the trees of a database: quad indexes, strings of terms, hashes of them.
pub fn tree_names() -> Vec<&'static str> {
    let strings = Tree::ALL.map(Tree::name).into_iter();
    let indexes = Index::ALL.map(Index::name).into_iter();
    indexes.chain(strings).chain(Tree::ALL.map(Tree::hash_name)).collect()
}

/// An open graph database. One process at a time has it open.
pub struct Database {
    store: Arc<Store>,
    /// the newest state a session has asked for
    newest: RwLock<Arc<GraphState>>,
    /// states of commits that no session has asked for yet
    appended: Mutex<BTreeMap<u64, Arc<GraphState>>>,
    /// by dictionary: the prefix table as of the last commit that used it
    prefixes: Mutex<BTreeMap<u64, PrefixEncoder>>,
    /// by predicate: the last transaction since opening that gave it a literal as object
    literals: RwLock<FxHashMap<TermId, u64>>,
    /// there while a new generation of the trees is written beside the writers
    pub(crate) changes: Mutex<Option<ChangeLog>>,
    /// Turns of documents that are parsed to be inserted.
    pub(crate) parsing: Arc<ParseSlots>,
}

impl Database {
    /// Opens the database in `path`; an error if there is none, or a process has it open.
    pub fn open(path: &Path, options: &OpenOptions) -> Result<Arc<Self>> {
        Self::of_store(Store::open(path, options.clone())?)
    }

    /// Makes an empty database in `path` and opens it; its data lies in `stripes`, or in `path`
    /// if there are none.
    pub fn create(path: &Path, stripes: &[PathBuf], options: &OpenOptions) -> Result<Arc<Self>> {
        Self::of_store(Store::create(path, stripes, options.clone())?)
    }

    /// The graph in an open store.
    pub fn of_store(store: Arc<Store>) -> Result<Arc<Self>> {
        if let Err(error) = generation::drop_unfinished(&store) {
            // On a full disk a database opens all the same.
            snowmelt_store::notice(&format!("what an unfinished compaction left stays for now: {error}"));
        }
        let newest = GraphState::of_snapshot(&store.snapshot())?;
        Ok(Arc::new(Database {
            store,
            newest: RwLock::new(Arc::new(newest)),
            appended: Mutex::default(),
            prefixes: Mutex::default(),
            literals: RwLock::default(),
            changes: Mutex::default(),
            parsing: Arc::default(),
        }))
    }

    /// Whether a directory holds a database.
    pub fn is_at(dir: &Path) -> bool {
        Store::is_at(dir)
    }

    /// The newest durable state.
    ///
    /// # Errors
    /// A catalog record that cannot be read.
    pub fn state(&self) -> Result<Arc<GraphState>> {
        self.state_of(&self.store.snapshot())
    }

    /// The state a snapshot sees.
    pub(crate) fn state_of(&self, snapshot: &Snapshot) -> Result<Arc<GraphState>> {
        let newest = self.newest.read().clone();
        if newest.txn() == snapshot.txn() {
            return Ok(newest);
        }
        let appended = self.appended.lock().get(&snapshot.txn()).cloned();
        let state = match appended {
            Some(state) => state,
            None => Arc::new(GraphState::of_snapshot(snapshot)?),
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

    /// The state a transaction that has just begun builds on.
    pub(crate) fn appended_state(&self, base: &Snapshot, txn: u64) -> Result<Arc<GraphState>> {
        if let Some(state) = self.appended.lock().get(&txn) {
            return Ok(state.clone());
        }
        let newest = self.newest.read().clone();
        if newest.txn() == txn {
            return Ok(newest);
        }
        let mut state = GraphState::of_snapshot(base)?;
        state.txn = txn;
        Ok(Arc::new(state))
    }

    /// A commit is about to be appended.
    pub(crate) fn note_appended(&self, state: Arc<GraphState>, prefixes: Option<(u64, PrefixEncoder)>) {
        /// That of sessions, and that of the next generation.
        const DICTIONARIES: usize = 2;
        assert!(state.txn() > self.newest.read().txn(), "commits are appended in order");
        self.appended.lock().insert(state.txn(), state);
        if let Some((dictionary, encoder)) = prefixes {
            let mut prefixes = self.prefixes.lock();
            prefixes.insert(dictionary, encoder);
            if prefixes.len() > DICTIONARIES {
                prefixes.pop_first();
            }
        }
    }

    /// It was not.
    pub(crate) fn forget_appended(&self, txn: u64) {
        self.appended.lock().remove(&txn);
        self.prefixes.lock().clear();
    }

    /// The prefix table of a dictionary, if it is the one with so many prefixes. It comes back
    /// with the commit; after an abort it is made anew.
    pub(crate) fn take_prefix_encoder(&self, dictionary: u64, prefixes: usize) -> Option<PrefixEncoder> {
        self.prefixes.lock().remove(&dictionary).filter(|encoder| encoder.len() == prefixes)
    }

    /// A transaction gave these predicates literals as objects.
    pub(crate) fn note_literals(&self, predicates: &FxHashSet<TermId>, txn: u64) {
        if !predicates.is_empty() {
            self.literals.write().extend(predicates.iter().map(|predicate| (*predicate, txn)));
        }
    }

    /// The last transaction since the database was opened that gave the predicate a literal as
    /// object; 0 if none did. What was found out as of that transaction or later, namely that
    /// its objects are all IRIs and blank nodes, still holds.
    pub fn literals_since(&self, predicate: TermId) -> u64 {
        self.literals.read().get(&predicate).copied().unwrap_or(0)
    }

    /// Whether a new generation of the trees is written beside the writers.
    pub(crate) fn is_rewritten(&self) -> bool {
        self.changes.lock().is_some()
    }

    /// Temporary space for what a query cannot hold in memory.
    ///
    /// # Errors
    /// Those of the store.
    pub fn temp_space(&self) -> Result<TempSpace> {
        Ok(self.store.temp_space()?)
    }

    /// The store below.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }
}
