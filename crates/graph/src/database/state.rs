//! The graph as of one transaction: handles of its trees, and the small tables that stay in
//! memory.
//!
//! | catalog record     | what                                    |
//! |--------------------|-----------------------------------------|
//! | `graph`            | [`GraphMeta`]                           |
//! | `codes`            | [`Codes`]: languages and datatypes      |
//! | `prefixes`         | [`Prefixes`] of IRIs                    |
//! | `iri` `lit` `text` | string trees                            |
//! | `…-hash`           | their hash trees                        |
//! | `psog` … `gs`      | quad indexes                            |
//! | `…-values`         | [`ValueCounts`] of `psog` and `posg`    |
//! | `…-degrees` …      | [`GraphStatistics`]                     |
//! | `triple` …         | the trees of triple terms               |
//!
//! Empty trees may be missing. A database without any of these records is an empty graph.
//!
//! Invariant: a state never changes once a session has it; a transaction works on a copy, which
//! shares what it did not touch.

use std::sync::{Arc, OnceLock};

use snowmelt_database::LayerState;
use snowmelt_store::{Snapshot, StringTree, TupleTree};

use crate::dict::code::{Annotation, Codes, IN_STRING};
use crate::dict::prefix::Prefixes;
use crate::dict::{GraphFormat, GraphMeta, RECORD_CODES, RECORD_META, RECORD_PREFIXES, Tree};
use crate::error::{GraphError, Result};
use crate::index::Index;
use crate::index::statistics::GraphStatistics;
use crate::index::triple::{AnyIndex, TripleIndex};
use crate::index::value_counts::ValueCounts;
use crate::term::layout::XSD_STRING;
use crate::term::{BaseDirection, TermId, TermKind};

/// The graph as of one transaction.
#[derive(Clone)]
pub struct GraphState {
    pub(crate) txn: u64,
    pub(crate) meta: GraphMeta,
    pub(crate) codes: Arc<Codes>,
    pub(crate) prefixes: Arc<Prefixes>,
    pub(crate) strings: [Option<StringTree>; Tree::ALL.len()],
    pub(crate) hashes: [Option<TupleTree>; Tree::ALL.len()],
    pub(crate) indexes: [Option<TupleTree>; Index::ALL.len()],
    /// of triple terms; all or none of them are there
    pub(crate) triples: [Option<TupleTree>; TripleIndex::ALL.len()],
    /// of PSOG and POSG
    pub(crate) values: [Arc<ValueCounts>; 2],
    /// pairs inserted and deleted since the counts in `values` were last written
    pub(crate) values_drift: u64,
    pub(crate) statistics: Arc<GraphStatistics>,
    /// the records have not been written since they were made
    pub(crate) has_new_statistics: bool,
    /// quads added and removed since the database was opened
    pub(crate) changed: u64,
    /// cached answer to "are all quads in the default graph?"; unset until first asked
    pub(crate) plain: OnceLock<bool>,
}

impl LayerState for GraphState {
    type Error = GraphError;

    fn read(snapshot: &Snapshot, txn: u64) -> Result<Self> {
        Self::read_generation(snapshot, txn, "")
    }

    fn txn(&self) -> u64 {
        self.txn
    }

    fn take_over(&mut self, earlier: &Self) {
        self.changed = earlier.changed;
    }
}

impl GraphState {
    /// Reads the catalog records of transaction `txn`.
    pub(crate) fn read_records(txn: u64, record: impl Fn(&str) -> Option<Vec<u8>>) -> Result<Self> {
        let meta = match record(RECORD_META) {
            Some(bytes) => GraphMeta::from_bytes(&bytes)?,
            None => without_record(&record),
        };
        let codes = record(RECORD_CODES).map(|bytes| Codes::from_bytes(&bytes)).transpose()?;
        let prefixes = record(RECORD_PREFIXES).unwrap_or_default();
        let mut state = GraphState {
            txn,
            meta,
            codes: Arc::new(codes.unwrap_or_default()),
            prefixes: Arc::new(Prefixes::from_bytes(&prefixes)?),
            strings: [const { None }; 3],
            hashes: [const { None }; 3],
            indexes: [const { None }; 5],
            triples: [const { None }; 4],
            values: Default::default(),
            values_drift: 1,
            statistics: Arc::new(GraphStatistics::read(&record)),
            has_new_statistics: false,
            changed: 0,
            plain: OnceLock::new(),
        };
        if state.meta.plain {
            state.plain = true.into();
        }
        let tuples = |name, arity| record(name).map(|bytes| tuple_tree(name, arity, &bytes)).transpose();
        for tree in Tree::ALL {
            let strings = record(tree.name());
            state.strings[tree as usize] = strings.map(|bytes| StringTree::from_bytes(&bytes)).transpose()?;
            state.hashes[tree as usize] = tuples(tree.hash_name(), tree.hash_arity())?;
        }
        for index in Index::ALL {
            state.indexes[index as usize] = tuples(index.name(), index.arity())?;
            if let Some(bytes) = record(&ValueCounts::record_name(index.name())) {
                state.values[index as usize] = Arc::new(ValueCounts::from_bytes(&bytes)?);
            }
        }
        for index in TripleIndex::ALL {
            state.triples[index as usize] = tuples(index.name(), TripleIndex::ARITY)?;
        }
        state.check_counts()?;
        Ok(state)
    }

    /// The state of the generation whose names end in `suffix`, as of transaction `txn`.
    pub(crate) fn read_generation(snapshot: &Snapshot, txn: u64, suffix: &str) -> Result<Self> {
        let record = |name: &str| snapshot.record(&format!("{name}{suffix}")).map(|bytes| bytes.to_vec());
        Self::read_records(txn, record)
    }

    /// Identifies the dictionary: an id of one dictionary means another term, or none, in another.
    /// Caches keyed by id are valid only for states of one dictionary.
    pub fn dictionary(&self) -> u64 {
        // Each dictionary has trees of its own, and every quad has an IRI.
        self.strings(Tree::Iri).map_or(0, |strings| u64::from(strings.id().0))
    }

    /// Terms in the dictionary, blank nodes not counted.
    pub fn terms(&self) -> u64 {
        Tree::ALL.into_iter().filter_map(|tree| self.strings(tree)).map(|strings| strings.len()).sum()
    }

    /// The last transaction it contains.
    pub fn txn(&self) -> u64 {
        self.txn
    }

    /// Quads added and removed since the database was opened: a bound on the error of statistics.
    pub fn changed(&self) -> u64 {
        self.changed
    }

    /// Checks that the records agree on the counts: a missing tree must not look like an empty one.
    fn check_counts(&self) -> Result<()> {
        let quads = self.meta.quads;
        for index in Index::ALL {
            let rows = self.index(index).map_or(0, |tree| tree.rows());
            let whole = index.arity() == 4;
            if (whole && rows != quads) || (rows == 0) != (quads == 0) {
                let why = format!("it has {rows} rows, but there are {quads} quads");
                return Err(GraphError::record(index.name(), why));
            }
        }
        for tree in Tree::ALL {
            let strings = self.strings(tree).map_or(0, |strings| strings.len());
            let hashes = self.hashes(tree).map_or(0, |hashes| hashes.rows());
            if strings != hashes {
                let why = format!("it has {hashes} rows for {strings} strings");
                return Err(GraphError::record(tree.hash_name(), why));
            }
        }
        for index in TripleIndex::ALL {
            let (rows, terms) = (self.triple(index).map_or(0, |tree| tree.rows()), self.triple_terms());
            if rows != terms {
                let why = format!("it has {rows} rows, but there are {terms} triple terms");
                return Err(GraphError::record(index.name(), why));
            }
        }
        Ok(())
    }

    /// Number of quads.
    pub fn quads(&self) -> u64 {
        self.meta.quads
    }

    /// The graph's record in the catalog.
    pub fn meta(&self) -> &GraphMeta {
        &self.meta
    }

    /// The languages and datatypes that ids carry as codes.
    pub fn codes(&self) -> &Codes {
        &self.codes
    }

    /// The prefixes of the IRI tree.
    pub fn prefixes(&self) -> &Prefixes {
        &self.prefixes
    }

    /// The tree of an index; `None` if it has no rows.
    #[inline]
    pub fn index(&self, index: Index) -> Option<&TupleTree> {
        self.indexes[index as usize].as_ref()
    }

    /// A tree of triple terms; `None` if there are none.
    #[inline]
    pub fn triple(&self, index: TripleIndex) -> Option<&TupleTree> {
        self.triples[index as usize].as_ref()
    }

    /// The tree of an order of quads or triple terms; `None` if it has no rows.
    #[inline]
    pub fn any_index(&self, index: AnyIndex) -> Option<&TupleTree> {
        match index {
            AnyIndex::Quads(index) => self.index(index),
            AnyIndex::Triples(index) => self.triple(index),
        }
    }

    /// Number of triple terms, in quads or not; they are numbered from 0.
    #[inline]
    pub fn triple_terms(&self) -> u64 {
        self.triple(TripleIndex::Id).map_or(0, |tree| tree.rows())
    }

    /// Distinct subjects (PSOG) or objects (POSG) of a predicate; `None` if they were not counted.
    pub fn distinct_values(&self, index: Index, predicate: TermId) -> Option<u64> {
        self.values.get(index as usize)?.get(predicate.0)
    }

    /// Statistics that only estimate: how degrees are distributed, and predicates that go together.
    pub fn statistics(&self) -> &Arc<GraphStatistics> {
        &self.statistics
    }

    /// Notes that quads came and went.
    pub(crate) fn note_changed(&mut self, quads: u64) {
        self.changed += quads;
        let statistics = Arc::make_mut(&mut self.statistics);
        statistics.age = statistics.age.saturating_add(quads);
    }

    /// The string tree; `None` if it has no strings.
    #[inline]
    pub fn strings(&self, tree: Tree) -> Option<&StringTree> {
        self.strings[tree as usize].as_ref()
    }

    /// Bytes of all strings, before they were encoded.
    pub(crate) fn string_bytes(&self) -> u64 {
        self.strings.iter().flatten().map(StringTree::bytes).sum()
    }

    /// The hash tree; `None` if it has no rows.
    #[inline]
    pub fn hashes(&self, tree: Tree) -> Option<&TupleTree> {
        self.hashes[tree as usize].as_ref()
    }

    /// Language and datatype of a literal, as far as its id carries them; no I/O.
    #[inline]
    pub fn annotation_of(&self, id: TermId) -> Carried<'_> {
        let kind = id.kind();
        if kind == TermKind::String {
            return Carried::Is(Annotation::Plain);
        }
        if kind.has_code() {
            return match self.codes.annotation_of(id.code()) {
                Some(annotation) => Carried::Is(annotation),
                None if id.code() == IN_STRING => Carried::InString,
                None => Carried::NotALiteral,
            };
        }
        match self.inline_datatype(id) {
            Some(XSD_STRING) => Carried::Is(Annotation::Plain),
            Some(datatype) => Carried::Is(Annotation::Datatype(datatype)),
            None => Carried::NotALiteral,
        }
    }

    /// Datatype of an inline id.
    #[inline]
    pub(crate) fn inline_datatype(&self, id: TermId) -> Option<&str> {
        match id.fixed_datatype() {
            Some(datatype) => Some(datatype),
            None if id.kind() == TermKind::Decimal => self.codes.decimal_datatype_of(id.decimal_code()),
            None => None,
        }
    }
}

/// The counts of a graph without a record, which is empty. Programs that wrote format 1 could
/// leave the record out if there were terms but no quads.
fn without_record(record: &impl Fn(&str) -> Option<Vec<u8>>) -> GraphMeta {
    let has_terms = Tree::ALL.into_iter().any(|tree| record(tree.name()).is_some());
    let format = if has_terms { GraphFormat::One } else { GraphFormat::default() };
    GraphMeta { format, ..GraphMeta::default() }
}

/// A tuple tree from its record.
fn tuple_tree(name: &'static str, arity: usize, bytes: &[u8]) -> Result<TupleTree> {
    let tree = TupleTree::from_bytes(bytes)?;
    if tree.arity() != arity {
        let why = format!("the tree has {} columns instead of {arity}", tree.arity());
        return Err(GraphError::record(name, why));
    }
    Ok(tree)
}

/// Language and datatype, as far as an id carries them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Carried<'a> {
    /// This annotation.
    Is(Annotation<'a>),
    /// The annotation is in the dictionary string: decode the term. (Only in databases with
    /// thousands of languages and datatypes.)
    InString,
    /// The id is not of a stored literal: it is an IRI, a blank node, unbound, made by a query, or
    /// stands for no stored term.
    NotALiteral,
}

impl<'a> Carried<'a> {
    /// The language tag: `Some(None)` for literals without one, `None` if the id does not carry it.
    pub fn lang(self) -> Option<Option<&'a str>> {
        match self {
            Carried::Is(annotation) => Some(annotation.lang()),
            _ => None,
        }
    }

    /// The base direction: `Some(None)` for literals without one, `None` if the id does not carry
    /// it.
    pub fn direction(self) -> Option<Option<BaseDirection>> {
        match self {
            Carried::Is(annotation) => Some(annotation.direction()),
            _ => None,
        }
    }

    /// The datatype IRI (rdf:langString or rdf:dirLangString with a language tag); `None` if the id
    /// does not carry it.
    pub fn datatype(self) -> Option<&'a str> {
        match self {
            Carried::Is(annotation) => Some(annotation.datatype()),
            _ => None,
        }
    }
}
