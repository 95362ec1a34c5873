//! Options for reading one document.

use std::io;

use oxrdf::{GraphName, NamedNode};
use oxrdfio::RdfFormat;
use snowmelt_jsonld::Contexts;
use snowmelt_rdfxml::OddTerms;
use snowmelt_store::MemoryBudget;

use crate::input::error::LoadError;
use crate::interrupt::Interrupt;
use crate::namespaces::NamespaceSink;

/// A document, and how to read it.
#[derive(Debug, Clone)]
pub(crate) struct DocumentOptions {
    /// Its name in messages.
    pub(crate) name: String,
    /// Its number among the inputs.
    pub(crate) source: usize,
    pub(crate) format: RdfFormat,
    /// Base IRI.
    pub(crate) base: Option<String>,
    /// The graph of statements that name none.
    pub(crate) graph: Option<NamedNode>,
    /// Statements that name a graph count as faults.
    pub(crate) is_one_graph: bool,
    /// Go on after malformed statements.
    pub(crate) lenient: bool,
    /// Treatment of terms that the RFCs do not allow.
    pub(crate) odd_terms: OddTerms,
    /// Contexts that JSON-LD documents may refer to.
    pub(crate) contexts: Contexts,
    /// Statements per chunk.
    pub(crate) chunk_rows: usize,
    /// Bytes of terms per chunk.
    pub(crate) chunk_bytes: usize,
    /// Bytes of the longest term allowed.
    pub(crate) longest: usize,
    /// Takes the prefixes that the document declares.
    pub(crate) namespaces: NamespaceSink,
    /// Budget charged for formats that are kept whole while they are read.
    pub(crate) budget: MemoryBudget,
}

impl DocumentOptions {
    /// The error of a failed read: cancellation also makes reads fail.
    pub(super) fn unreadable(&self, source: io::Error, cancel: &dyn Interrupt) -> LoadError {
        match super::cancelled(cancel) {
            Ok(()) => LoadError::Input { file: self.name.clone(), source },
            Err(cancelled) => cancelled,
        }
    }

    /// The graph of statements that name none.
    pub(super) fn graph_of_triples(&self) -> GraphName {
        self.graph.clone().map_or(GraphName::DefaultGraph, GraphName::NamedNode)
    }
}
