//! An open graph: a store, and the state of the graph as of its newest transactions.

pub(crate) mod change_log;
pub(crate) mod classes;
pub(crate) mod generation;
mod parse_slots;
pub(crate) mod state;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use rustc_hash::{FxHashMap, FxHashSet};
use snowmelt_database::{Database, OpenOptions, States};
use snowmelt_store::Snapshot;

use crate::database::change_log::ChangeLog;
use crate::database::parse_slots::ParseSlots;
use crate::database::state::GraphState;
use crate::dict::Tree;
use crate::dict::prefix::PrefixEncoder;
use crate::error::Result;
use crate::index::Index;
use crate::index::triple::TripleIndex;
use crate::term::TermId;

/// The names of the trees of a database: quad indexes, strings of terms, hashes of them, triple
/// terms.
pub fn tree_names() -> Vec<&'static str> {
    let strings = Tree::ALL.map(Tree::name).into_iter();
    let indexes = Index::ALL.map(Index::name).into_iter();
    let triples = TripleIndex::ALL.map(TripleIndex::name);
    indexes.chain(strings).chain(Tree::ALL.map(Tree::hash_name)).chain(triples).collect()
}

/// The graphs of an open database.
pub struct GraphDatabase {
    database: Arc<Database>,
    pub(crate) states: States<GraphState>,
    /// by dictionary: the prefix table as of the last commit that used it
    prefixes: Mutex<BTreeMap<u64, PrefixEncoder>>,
    /// by predicate: the last transaction since opening that gave it a literal as object
    literals: RwLock<FxHashMap<TermId, u64>>,
    /// the log of changes, while a new generation of the trees is written beside the writers
    pub(crate) changes: Mutex<Option<ChangeLog>>,
    /// Slots for parsing documents that are inserted.
    pub(crate) parsing: Arc<ParseSlots>,
}

impl GraphDatabase {
    /// Opens the database in `path`.
    ///
    /// # Errors
    /// Fails if there is no database, or if another process has it open.
    pub fn open(path: &Path, options: &OpenOptions) -> Result<Arc<Self>> {
        Self::new(Arc::new(Database::open(path, options)?))
    }

    /// Creates an empty database in `path` and opens it; its data lies in `stripes`, or in `path`
    /// if there are none.
    ///
    /// # Errors
    /// Fails if there is something already, or if the device fails.
    pub fn create(path: &Path, stripes: &[PathBuf], options: &OpenOptions) -> Result<Arc<Self>> {
        Self::new(Arc::new(Database::create(path, stripes, options)?))
    }

    /// The graphs in an open database, which other layers may share.
    ///
    /// # Errors
    /// Fails if a catalog record cannot be read.
    pub fn new(database: Arc<Database>) -> Result<Arc<Self>> {
        if let Err(error) = generation::drop_unfinished(database.store()) {
            // A database must open even if the disk is full.
            snowmelt_store::notice(&format!("what an unfinished compaction left stays for now: {error}"));
        }
        Ok(Arc::new(GraphDatabase {
            states: States::open(&database.snapshot())?,
            database,
            prefixes: Mutex::default(),
            literals: RwLock::default(),
            changes: Mutex::default(),
            parsing: Arc::default(),
        }))
    }

    /// The database below.
    pub fn database(&self) -> &Arc<Database> {
        &self.database
    }

    /// The newest durable state.
    ///
    /// # Errors
    /// Fails if a catalog record cannot be read.
    pub fn state(&self) -> Result<Arc<GraphState>> {
        self.state_of(&self.database.snapshot())
    }

    /// The state a snapshot sees.
    pub(crate) fn state_of(&self, snapshot: &Snapshot) -> Result<Arc<GraphState>> {
        self.states.seen_by(snapshot)
    }

    /// Keeps the prefix table of a commit that is about to be appended.
    pub(crate) fn keep_prefix_encoder(&self, dictionary: u64, encoder: PrefixEncoder) {
        /// The dictionary of the sessions and that of the next generation.
        const DICTIONARIES: usize = 2;
        let mut prefixes = self.prefixes.lock();
        prefixes.insert(dictionary, encoder);
        if prefixes.len() > DICTIONARIES {
            prefixes.pop_first();
        }
    }

    /// Forgets the state of transaction `txn`, whose commit was not appended.
    pub(crate) fn forget_appended(&self, txn: u64) {
        self.states.forget(txn);
        self.prefixes.lock().clear();
    }

    /// Takes the prefix table of a dictionary, if it has this many prefixes. The commit gives it
    /// back; after an abort it is built anew.
    pub(crate) fn take_prefix_encoder(&self, dictionary: u64, prefixes: usize) -> Option<PrefixEncoder> {
        self.prefixes.lock().remove(&dictionary).filter(|encoder| encoder.len() == prefixes)
    }

    /// Notes that transaction `txn` gave these predicates literals as objects.
    pub(crate) fn note_literals(&self, predicates: &FxHashSet<TermId>, txn: u64) {
        if !predicates.is_empty() {
            self.literals.write().extend(predicates.iter().map(|predicate| (*predicate, txn)));
        }
    }

    /// The last transaction since the database was opened that gave the predicate a literal as
    /// object; 0 if none did. If all objects were found to be IRIs and blank nodes as of that
    /// transaction or a later one, they still are.
    pub fn literals_since(&self, predicate: TermId) -> u64 {
        self.literals.read().get(&predicate).copied().unwrap_or(0)
    }

    /// Whether a new generation of the trees is written beside the writers.
    pub(crate) fn is_rewritten(&self) -> bool {
        self.changes.lock().is_some()
    }
}
