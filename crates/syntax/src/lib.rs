//! The syntax of SPARQL 1.1 and 1.2, queries and updates, with LATERAL.
//!
//! One lexer, one recursive-descent parser. Nothing goes over a text before the parser does: depth,
//! chains, variables, patterns and bytes are counted while parsing, and a text beyond a limit is
//! refused at the token that goes beyond it.
//!
//! Each folder uses those above it and none below:
//!
//! | folder | what it is |
//! |---|---|
//! | `lexer` | from bytes to tokens with places, of a text or of a stream |
//! | `tree` | queries, updates, patterns, expressions, terms; one visitor |
//! | `options` | the base IRI, limits, known prefixes |
//! | `error` | faults with place, caret, expectation and likely cause |
//! | `shape` | the key of a plan: a text's tokens without its constants |
//! | `parser` | from tokens to a tree |
//! | `text` | whole texts |
//! | `stream` | updates of any length |
//! | `fuzz` | entry points of the fuzz targets |
//!
//! # From spargebra's tree to this one
//!
//! The algebra is the one of spargebra 0.4, so a translator needs few changes:
//!
//! | spargebra | here |
//! |---|---|
//! | `Variable`, by name | [`tree::Var`], a number in [`tree::Query::names`]; fresh ones have no name |
//! | `Query::Select { pattern, … }` | [`tree::Query`] with a [`tree::QueryForm`] |
//! | `Join`, `Union`, `And`, `Or`, paths `Sequence` and `Alternative`, of two | lists, read from the left |
//! | `Extend` in `Extend` | one [`tree::GraphPattern::Extend`], innermost value first; so is DESCRIBE with its IRIs |
//! | `NamedNodePattern`, `TermPattern`, `GroundTerm` | [`tree::Slot`] |
//! | `Expression::NamedNode`, `Literal` | [`tree::Expr::Const`] |
//! | placeholders `<snowmelt-param:n>` | [`tree::Expr::Param`] and [`tree::Slot::Param`] |
//! | `UnaryMinus(1)` of the text `-1` | the constant `-1` |
//! | `OrderExpression::Desc` | [`tree::OrderKey::is_descending`] |
//! | variables of `SELECT *` by name | in the order of the text, with `is_star` |
//! | `GraphUpdateOperation` | [`tree::Operation`] in a [`tree::UpdateOperation`] with its place |
//! | — | [`tree::FirstUses`]: where SERVICE, LATERAL, triple terms and directions stand first |
//!
//! The engine does these by hand today and need not any more:
//!
//! | today in `sparql` | here |
//! |---|---|
//! | `text/shape`, `parameter`: a text with placeholders as a key | [`shape_of`], [`ParseOptions::is_shaped`] |
//! | `bounds/text_limits` and its scan | [`Limits`]; `query_parsing` has no meaning, for nothing is read twice |
//! | `text/star`, `described`, `base`, `tokens` | the tree |
//! | `text/parser_error`, `unfinished`, `syntax` | [`SyntaxError`]; [`ErrorCode::WrongLanguage`] |
//! | `text/keyword`: the place of a word found again | [`tree::FirstUses`], [`tree::UpdateOperation::span`] |
//! | `text/pieces`, `update/stream`: a long update cut into texts | [`read_update`] |
//! | `text/bind`: values for variables by name | still a walk over the tree: look the name up in [`tree::VarNames::var`] |
//!
//! A shape's key knows neither the base IRI from outside nor the names of bound variables: a cache
//! adds both. Trees nest no deeper than [`Limits::depth`] and [`Limits::chain`] together; a thread
//! that parses or walks one needs [`Limits::DEPTH_BYTES`] of stack for each level of depth.
//!
//! The tests compare verdicts and trees with spargebra's; `tests/oracle/classes.txt` explains each
//! class of difference.

mod error;
#[doc(hidden)]
pub mod fuzz;
mod lexer;
mod options;
mod parser;
mod shape;
mod stream;
mod text;
pub mod tree;

pub use error::{ErrorCode, KNOWN_PREFIXES, LimitReached, SyntaxError, known_namespace};
pub use lexer::Span;
pub use options::{Limits, ParseOptions};
pub use shape::{Shape, shape_of};
pub use stream::{BATCH_QUADS, StreamError, read_update};
pub use text::{ParsedQuery, parse_query, parse_update, text_of};
