//! Updates.

use super::pattern::{Dataset, FirstUses, GraphPattern};
use super::term::{Iri, Quad, QuadPattern};
use super::vars::VarNames;
use crate::lexer::Span;

/// An update: operations that are carried out one after the other.
#[derive(Clone, Default, Debug)]
pub struct Update {
    /// The operations.
    pub operations: Vec<UpdateOperation>,
    /// The base IRI where the text ends.
    pub base: Option<Iri>,
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
}

/// An operation of an update. ADD, MOVE and COPY are DROPs and a [`Operation::Modify`], as the
/// specification defines them.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the parts have the names of the grammar")]
pub enum Operation {
    InsertData(Vec<Quad>),
    /// Without blank nodes.
    DeleteData(Vec<Quad>),
    /// DELETE and INSERT; the templates and the dataset are as WITH makes them.
    Modify {
        delete: Vec<QuadPattern>,
        insert: Vec<QuadPattern>,
        using: Option<Dataset>,
        pattern: GraphPattern,
    },
    Load {
        is_silent: bool,
        source: Iri,
        into: Option<Iri>,
    },
    Clear {
        is_silent: bool,
        target: GraphTarget,
    },
    Create {
        is_silent: bool,
        graph: Iri,
    },
    Drop {
        is_silent: bool,
        target: GraphTarget,
    },
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
