//! Updates.

use super::pattern::{Dataset, FirstUses, GraphPattern, Measure};
use super::term::{Iri, Quad, QuadPattern};
use super::vars::VarNames;
use crate::lexer::Span;

/// An update: operations that are carried out one after the other.
#[derive(Clone, Default, Debug)]
pub struct Update {
    /// The operations.
    pub operations: Vec<UpdateOperation>,
    /// The last VERSION.
    pub version: Option<Box<str>>,
}

/// An operation, or a part of one that is data.
#[derive(Clone, Debug)]
pub struct UpdateOperation {
    /// The operation.
    pub operation: Operation,
    /// Where it stands in the text.
    pub span: Span,
    /// Its data are the rest of those of the operation before.
    pub goes_on: bool,
    /// The names of its variables.
    pub names: VarNames,
    /// Constructs an engine may not have, where they stand.
    pub first: FirstUses,
    /// How deep and long it is.
    pub measure: Measure,
    /// Labels of blank nodes that the parser remembers, of this and all data before.
    pub labels: usize,
}

/// An operation of an update. ADD, MOVE and COPY are DROPs and a [`Operation::Modify`], as the
/// specification defines them. Data of `DeleteData` have no blank nodes.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the parts have the names of the grammar")]
pub enum Operation {
    InsertData(Vec<Quad>),
    DeleteData(Vec<Quad>),
    Modify(Modify),
    Load { is_silent: bool, source: Iri, into: Option<Iri> },
    Clear { is_silent: bool, target: GraphTarget },
    Create { is_silent: bool, graph: Iri },
    Drop { is_silent: bool, target: GraphTarget },
}

/// DELETE and INSERT with their pattern, as WITH makes them.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Modify {
    /// The template of quads to delete.
    pub delete: Vec<QuadPattern>,
    /// The template of quads to insert.
    pub insert: Vec<QuadPattern>,
    /// The dataset of the pattern.
    pub using: Option<Dataset>,
    /// WHERE
    pub pattern: GraphPattern,
    /// The base IRI where it stands.
    pub base: Option<Iri>,
}

/// Graphs that an operation is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GraphTarget {
    /// One.
    Named(Iri),
    /// DEFAULT
    Default,
    /// NAMED
    AllNamed,
    /// ALL
    All,
}

impl From<Option<Iri>> for GraphTarget {
    fn from(graph: Option<Iri>) -> Self {
        graph.map_or(Self::Default, Self::Named)
    }
}
