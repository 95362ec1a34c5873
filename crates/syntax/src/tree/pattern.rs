//! Queries and graph patterns.

use super::expr::{Aggregate, Expr};
use super::path::Path;
use super::term::{Iri, Slot, TriplePattern};
use super::vars::{Var, VarNames};

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
    /// How deep and long it is.
    pub measure: Measure,
}

/// Counts of a text. Stack for a walk over the tree follows from
/// the first three.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Measure {
    /// Brackets, calls, groups, `!` and triple terms within each other.
    pub depth: usize,
    /// Parts that have those before them within them, along the deepest way, and all EXISTS.
    pub chain: usize,
    /// Parts of UNION, `||`, `&&`, FILTER and negated paths; groups, GRAPH, SERVICE and VALUES
    /// beside each other.
    pub branches: usize,
    /// Triple patterns and paths.
    pub patterns: usize,
    /// Groups, those of sub-selects among them.
    pub groups: usize,
    /// Bytes of terms: once where the text has one, and once for each triple that it is in.
    pub bytes: usize,
}

/// The kind of a query's result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum QueryForm {
    /// SELECT
    Select,
    /// CONSTRUCT with its template.
    Construct(Vec<TriplePattern>),
    /// DESCRIBE of what the text names, in its order: variables, which are those of the pattern's
    /// projection, and IRIs. Of `*`, which is all variables of the projection, nothing.
    Describe(Vec<Slot>),
    /// ASK
    Ask,
}

/// A place in a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
}

/// Where a construct stands first. What the engine cannot do is refused with its place.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FirstUses {
    /// SERVICE
    pub service: Option<Place>,
    /// Triple terms, reified triples, annotations.
    pub triple_term: Option<Place>,
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
///
/// An empty `Bgp` is one solution without bindings. `Join` and `Union` have two parts at least, and
/// no empty `Bgp` is among those of `Join`. The condition of `LeftJoin` are the filters of its
/// group. `Extend` stands for BIND, and for AS of SELECT and GROUP BY: one after the other. With
/// `is_star` the variables of `Project` are those of `SELECT *`, in the order of the text.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs, reason = "the parts have the names of the specification")]
pub enum GraphPattern {
    Bgp(Vec<TriplePattern>),
    Path { subject: Slot, path: Path, object: Slot },
    Values(Values),
    Join(Vec<Self>),
    Union(Vec<Self>),
    LeftJoin { left: Box<Self>, right: Box<Self>, condition: Option<Expr> },
    Lateral { left: Box<Self>, right: Box<Self> },
    Minus { left: Box<Self>, right: Box<Self> },
    Filter { condition: Expr, inner: Box<Self> },
    Graph { name: Slot, inner: Box<Self> },
    Service { name: Slot, inner: Box<Self>, is_silent: bool },
    Extend { inner: Box<Self>, values: Vec<(Var, Expr)> },
    Group { inner: Box<Self>, vars: Vec<Var>, aggregates: Vec<(Var, Aggregate)> },
    OrderBy { inner: Box<Self>, keys: Vec<OrderKey> },
    Project { inner: Box<Self>, vars: Vec<Var>, is_star: bool },
    Distinct(Box<Self>),
    Reduced(Box<Self>),
    Slice { inner: Box<Self>, start: usize, length: Option<usize> },
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
