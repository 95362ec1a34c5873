//! An open graph: the store's trees under their names, and the small tables that stay in memory.
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
//!
//! Trees that hold nothing may be missing. A database into which nothing was loaded is an empty graph.

use crate::dict::{GraphMeta, RECORD_CODES, RECORD_META, RECORD_PREFIXES, Tree};
use crate::dict_code::{Annotation, Codes, IN_STRING};
use crate::dict_prefix::Prefixes;
use crate::error::{GraphError, Result};
use crate::index::Index;
use crate::session::Session;
use crate::term::{Kind, TermId};
use crate::term_inline::{RDF_LANG_STRING, XSD_STRING};
use crate::value_counts::ValueCounts;
use snowmelt_store::{Store, StringTree, TupleTree};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How to open a database: the store's settings.
pub use snowmelt_store::StoreConfig as OpenOptions;

/// An open graph database. One process at a time has it open.
pub struct Database {
    store: Arc<Store>,
    meta: GraphMeta,
    codes: Codes,
    prefixes: Prefixes,
    strings: [Option<StringTree>; Tree::ALL.len()],
    hashes: [Option<TupleTree>; Tree::ALL.len()],
    indexes: [Option<TupleTree>; Index::ALL.len()],
    /// of PSOG and POSG
    values: [ValueCounts; 2],
}

impl Database {
    /// Opens the database in `path`; an error if there is none, or a process has it open.
    pub fn open(path: &Path, options: &OpenOptions) -> Result<Arc<Self>> {
        Self::of_store(Store::open(path, options.clone())?)
    }

    /// Makes an empty database in `path` and opens it; its data lies in `stripes`, or in `path` if there are none.
    pub fn create(path: &Path, stripes: &[PathBuf], options: &OpenOptions) -> Result<Arc<Self>> {
        Self::of_store(Store::create(path, stripes, options.clone())?)
    }

    /// The graph in an open store, as it is now.
    pub fn of_store(store: Arc<Store>) -> Result<Arc<Self>> {
        let meta = store.catalog(RECORD_META).map(|bytes| GraphMeta::from_bytes(&bytes)).transpose()?;
        let codes = store.catalog(RECORD_CODES).map(|bytes| Codes::from_bytes(&bytes)).transpose()?;
        let prefixes = store.catalog(RECORD_PREFIXES).unwrap_or_default();
        let mut graph = Database {
            meta: meta.unwrap_or_default(),
            codes: codes.unwrap_or_default(),
            prefixes: Prefixes::from_bytes(&prefixes)?,
            strings: [const { None }; 3],
            hashes: [const { None }; 3],
            indexes: [const { None }; 5],
            values: Default::default(),
            store,
        };
        for tree in Tree::ALL {
            let record = graph.store.catalog(tree.name());
            graph.strings[tree as usize] = record.map(|bytes| StringTree::from_bytes(&bytes)).transpose()?;
            graph.hashes[tree as usize] = graph.tuple_tree(tree.hash_name(), tree.hash_arity())?;
        }
        for index in Index::ALL {
            graph.indexes[index as usize] = graph.tuple_tree(index.name(), index.arity())?;
            if let Some(bytes) = graph.store.catalog(&ValueCounts::record_name(index.name())) {
                graph.values[index as usize] = ValueCounts::from_bytes(&bytes)?;
            }
        }
        graph.check_counts()?;
        Ok(Arc::new(graph))
    }

    /// The records agree on how much there is: a missing tree must not look like an empty one.
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
        Ok(())
    }

    fn tuple_tree(&self, name: &'static str, arity: usize) -> Result<Option<TupleTree>> {
        let Some(bytes) = self.store.catalog(name) else { return Ok(None) };
        let tree = TupleTree::from_bytes(&bytes)?;
        if tree.arity() != arity {
            let why = format!("the tree has {} columns instead of {arity}", tree.arity());
            return Err(GraphError::record(name, why));
        }
        Ok(Some(tree))
    }

    /// A session that sees the database as it is now. Each thread of a query has its own.
    pub fn session(self: &Arc<Self>) -> Session {
        Session::new(self.clone())
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

    /// The store below.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// The tree of an index; `None` if it has no rows.
    #[inline]
    pub fn index(&self, index: Index) -> Option<&TupleTree> {
        self.indexes[index as usize].as_ref()
    }

    /// Distinct subjects (PSOG) or objects (POSG) of a predicate; `None` where they were not counted.
    pub fn distinct_values(&self, index: Index, predicate: TermId) -> Option<u64> {
        self.values.get(index as usize)?.get(predicate.0)
    }

    /// The string tree; `None` if it has no strings.
    #[inline]
    pub fn strings(&self, tree: Tree) -> Option<&StringTree> {
        self.strings[tree as usize].as_ref()
    }

    /// The hash tree; `None` if it has no rows.
    #[inline]
    pub fn hashes(&self, tree: Tree) -> Option<&TupleTree> {
        self.hashes[tree as usize].as_ref()
    }

    /// Language and datatype of a literal, as far as its id tells: without I/O.
    #[inline]
    pub fn annotation_of(&self, id: TermId) -> Carried<'_> {
        let kind = id.kind();
        if kind == Kind::String {
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
            None if id.kind() == Kind::Decimal => self.codes.decimal_datatype_of(id.decimal_code()),
            None => None,
        }
    }
}

/// What an id tells of its language and datatype.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Carried<'a> {
    /// These.
    Is(Annotation<'a>),
    /// They stand in the dictionary string: decode the term. (Only in databases with thousands of languages
    /// and datatypes.)
    InString,
    /// The id is not a literal's: an IRI, a blank node, unbound, made by a query, or of no stored term.
    NotALiteral,
}

impl<'a> Carried<'a> {
    /// The language tag: `Some(None)` for literals without, `None` where the id does not tell.
    pub fn lang(self) -> Option<Option<&'a str>> {
        match self {
            Carried::Is(annotation) => Some(annotation.lang()),
            _ => None,
        }
    }

    /// The datatype IRI (rdf:langString with a language tag); `None` where the id does not tell.
    pub fn datatype(self) -> Option<&'a str> {
        match self {
            Carried::Is(Annotation::Language(_)) => Some(RDF_LANG_STRING),
            Carried::Is(annotation) => Some(annotation.datatype()),
            _ => None,
        }
    }
}
