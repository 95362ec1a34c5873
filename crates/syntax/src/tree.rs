//! The syntax tree, which is SPARQL's algebra with names resolved and places kept.
//!
//! Variables are numbers into a query's own table of names ([`VarNames`]); IRIs are absolute;
//! fresh variables and blank nodes have numbers and no names. Operators of equal rank are lists
//! ([`GraphPattern::Join`], [`GraphPattern::Union`], [`Expr::And`], [`Expr::Or`], the pairs of
//! [`GraphPattern::Extend`], the parts of [`Path::Sequence`]): read from the left they are the
//! nested binary operators of the specification. All other nesting is within the limits of depth
//! and chain that the text was parsed with, so recursion over a tree is safe, its drop as well.

mod expr;
mod path;
mod pattern;
mod term;
mod update;
mod vars;
mod visit;

pub use expr::{Aggregate, AggregateFunction, BinaryOperator, Expr, Function, UnaryOperator};
pub use path::Path;
pub use pattern::{Dataset, FirstUses, GraphPattern, Measure, OrderKey, Place, Query, QueryForm, Values};
pub(crate) use term::RDF;
pub use term::{
    Blank, Direction, Iri, Literal, LiteralKind, Quad, QuadPattern, Slot, Term, TermTriple, TriplePattern,
};
pub use update::{GraphTarget, Modify, Operation, Update, UpdateOperation};
pub use vars::{Var, VarNames};
pub use visit::Node;
