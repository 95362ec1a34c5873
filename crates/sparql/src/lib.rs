//! SPARQL: plan, optimise, execute in batches.
//!
//! Each folder uses those above it and none below:
//!
//! | folder | what it is |
//! |---|---|
//! | `remote` | endpoints elsewhere, as queries ask them |
//! | `error` | why a query gave no whole answer |
//! | `bounds` | time, memory, stack and size of text, asked while a query works |
//! | `text` | from characters to a syntax tree: shape, parameters, words of errors |
//! | `algebra` | the syntax tree with scopes resolved, variables and constants numbered |
//! | `rewrite` | the same algebra, cheaper: filters to where they bind, what cannot match |
//! | `plan` | a tree of operators with fixed columns |
//! | `optimise` | from algebra to plan: estimates, order of joins, ways of access |
//! | `value` | what terms mean: numbers, dates, order, arithmetic |
//! | `functions` | the functions of SPARQL on values |
//! | `expr` | compiled expressions over columns of ids |
//! | `aggregate` | one state per group |
//! | `exec` | running operators: batches in, batches out |
//! | `results` | rows and triples in the formats of answers |
//! | `engine` | a query from its text to its result; templates kept by shape |
//! | `update` | requests of changes, each one transaction |
//! | `fuzz` | entry points of the fuzz targets: texts and results from strangers |

pub mod aggregate;
mod algebra;
mod bounds;
mod engine;
mod error;
mod exec;
pub mod expr;
mod functions;
#[doc(hidden)]
pub mod fuzz;
mod optimise;
mod plan;
mod remote;
pub mod results;
mod rewrite;
mod text;
mod update;
pub mod value;

pub use bounds::TextLimits;
pub use engine::{
    Assumptions, DescribeForm, Explanation, Measured, Outcome, PlanCosts, PlanEstimate, PlanStep,
    QueryEngine, QueryKind, QueryMemory, QueryOptions, QueryResult, QueryText, Residence, TermRows, Written,
    may_ask_endpoints,
};
pub use error::{LoadRefusal, QueryError, SparqlLanguage};
pub use exec::Batch;
pub use functions::{CustomFunction, CustomFunctions, TermFunction};
pub use remote::{
    QuerySlot, RemoteAnswer, RemoteDocument, RemoteEndpoints, RemoteFault, RemoteFaultKind, RemotePart,
    RemoteQuestion, RemoteTotals, RemoteUse, RemoteWait,
};
pub use results::{RdfVersion, ResultFormat, TableStyle};
pub use text::prefixes::{Shortener, declared_prefixes, prefixes_for};
pub use update::{LoadPermission, UpdateOptions, Updated};
