//! The syntax of SPARQL 1.1 and 1.2, queries and updates, with LATERAL.
//!
//! One lexer, one recursive-descent parser. Nothing goes over a text before the parser does: depth,
//! chains, variables, patterns and bytes are counted while parsing, and a text beyond a limit is
//! refused at the token that goes beyond it.
//!
//! Each folder uses those above it and none below:
//!
//! | module | what it is |
//! |---|---|
//! | `named` | tables of the language |
//! | `lexer` | from bytes to tokens with places, of a text or of a stream |
//! | `tree` | queries, updates, patterns, expressions, terms; one walk over them |
//! | `shape` | the key of a plan: a text's tokens without its constants |
//! | `options` | the base IRI, limits, the shape |
//! | `error` | faults: place, caret, expectation |
//! | `parser` | from tokens to a tree |
//! | `text` | whole texts |
//! | `stream` | updates of any length |
//! | `fuzz` | entry points of the fuzz targets |
//!
//! A shape's key knows neither the base IRI from outside nor the names of bound variables: a cache
//! adds both. Trees nest no deeper than [`Limits::depth`] and [`Limits::chain`] together; a thread
//! that parses or walks one needs [`Limits::DEPTH_BYTES`] of stack for each level of depth.
//!
//! The algebra is that of spargebra 0.4, with lists where that nests binary operators. The tests
//! compare verdicts and trees with spargebra's; `tests/oracle/classes.txt` explains each class of
//! difference.

mod error;
#[doc(hidden)]
pub mod fuzz;
mod lexer;
mod named;
mod options;
mod parser;
mod shape;
mod stream;
mod text;
pub mod tree;

pub use error::{ErrorCode, LimitReached, OpenBracket, SyntaxError};
pub use lexer::Span;
pub use options::{AssumedPrefixes, Limits, ParseOptions};
pub use shape::{Shape, shape_of};
pub use stream::{BATCH_QUADS, StreamError, read_update};
pub use text::{parse_query, parse_update, text_of};
