//! Queries and graph patterns.

use super::expr::{Aggregate, Expr};
use super::path::Path;
use super::term::{Iri, Slot, TriplePattern};
use super::vars::{Var, VarNames};
use crate::lexer::Span;

/// A query.
#[derive(Clone, Debug)]
pub struct Query {
    /// The kind of its result.
    pub form: QueryForm,
    /// FROM and FROM NAMED.
    pub dataset: Option<Dataset>,
    /// WHERE with the modifiers of its solutions.
    pub pattern: GraphPattern,
    /// The base IRI where the prologue ends.
    pub base: Option<Iri>,
    /// The last VERSION of the prologue.
    pub version: Option<Box<str>>,
    /// The names of its variables.
    pub names: VarNames,
    /// Constructs an engine may not have, where they stand.
    pub first: FirstUses,
}

/// The kind of a query's result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum QueryForm {
    /// SELECT
    Select,
    /// CONSTRUCT with its template.
    Construct(Vec<TriplePattern>),
    /// DESCRIBE of all variables of the pattern's projection; an IRI of the text is a fresh
    /// variable with that value.
    Describe,
    /// ASK
    Ask,
}

/// Where a construct stands first. What the engine cannot do is refused with its place.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FirstUses {
    /// SERVICE
    pub service: Option<Span>,
    /// LATERAL
    pub lateral: Option<Span>,
    /// Triple terms, reified triples, annotations.
    pub triple_term: Option<Span>,
    /// A literal with a direction.
    pub direction: Option<Span>,
}

/// FROM, or USING.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Dataset {
    /// Graphs that are the default graph together.
    pub default: Vec<Iri>,
    /// Named graphs; `None`: all, as with WITH.
    pub named: Option<Vec<Iri>>,
}

/// A graph pattern.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs, reason = "the parts have the names of the specification")]
pub enum GraphPattern {
    /// Triples that match together; none: one solution without bindings.
    Bgp(Vec<TriplePattern>),
    Path {
        subject: Slot,
        path: Path,
        object: Slot,
    },
    /// Two at least. No empty [`GraphPattern::Bgp`] is among them.
    Join(Vec<GraphPattern>),
    /// OPTIONAL. The condition: the filters of its group.
    LeftJoin {
        left: Box<GraphPattern>,
        right: Box<GraphPattern>,
        condition: Option<Expr>,
    },
    Lateral {
        left: Box<GraphPattern>,
        right: Box<GraphPattern>,
    },
    Filter {
        condition: Expr,
        inner: Box<GraphPattern>,
    },
    /// Two at least.
    Union(Vec<GraphPattern>),
    Graph {
        name: Slot,
        inner: Box<GraphPattern>,
    },
    /// BIND, and AS of SELECT and GROUP BY: one after the other.
    Extend {
        inner: Box<GraphPattern>,
        values: Vec<(Var, Expr)>,
    },
    Minus {
        left: Box<GraphPattern>,
        right: Box<GraphPattern>,
    },
    Values(Values),
    OrderBy {
        inner: Box<GraphPattern>,
        keys: Vec<OrderKey>,
    },
    /// `is_star`: of `SELECT *`, in the order of the text.
    Project {
        inner: Box<GraphPattern>,
        vars: Vec<Var>,
        is_star: bool,
    },
    Distinct(Box<GraphPattern>),
    Reduced(Box<GraphPattern>),
    Slice {
        inner: Box<GraphPattern>,
        start: usize,
        length: Option<usize>,
    },
    Group {
        inner: Box<GraphPattern>,
        vars: Vec<Var>,
        aggregates: Vec<(Var, Aggregate)>,
    },
    Service {
        name: Slot,
        inner: Box<GraphPattern>,
        is_silent: bool,
    },
}

impl Default for GraphPattern {
    fn default() -> Self {
        Self::Bgp(Vec::new())
    }
}

/// VALUES.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Values {
    /// Its variables.
    pub vars: Vec<Var>,
    /// Rows, of one cell per variable; `None`: UNDEF. No cell has a variable or a blank node.
    pub rows: Vec<Box<[Option<Slot>]>>,
}

/// A part of ORDER BY.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct OrderKey {
    /// The value.
    pub expr: Expr,
    /// DESC
    pub is_descending: bool,
}

impl GraphPattern {
    /// The join of two patterns; what is empty falls away, and triples become one pattern.
    #[must_use]
    pub(crate) fn joined(self, right: GraphPattern) -> GraphPattern {
        match (self, right) {
            (Self::Bgp(left), right) if left.is_empty() => right,
            (left, Self::Bgp(right)) if right.is_empty() => left,
            (Self::Bgp(mut left), Self::Bgp(right)) => {
                left.extend(right);
                Self::Bgp(left)
            }
            (Self::Join(mut parts), right) => {
                parts.push(right);
                Self::Join(parts)
            }
            (left, right) => Self::Join(vec![left, right]),
        }
    }

    /// The pattern with a variable that gets a value.
    #[must_use]
    pub(crate) fn extended(self, var: Var, expr: Expr) -> GraphPattern {
        match self {
            Self::Extend { inner, mut values } => {
                values.push((var, expr));
                Self::Extend { inner, values }
            }
            inner => Self::Extend { inner: Box::new(inner), values: vec![(var, expr)] },
        }
    }
}
