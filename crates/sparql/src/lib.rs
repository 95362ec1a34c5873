//! SPARQL: plan, optimise, execute in batches.

pub mod aggregate;
mod algebra;
mod batch;
mod bind;
mod engine;
mod error;
mod exec;
mod explain;
pub mod expr;
mod functions;
#[doc(hidden)]
pub mod fuzz;
mod guard;
mod iri;
mod limits;
mod optimise;
mod plan;
mod prefixes;
pub mod results;
mod rewrite;
mod shape;
mod source;
mod stack;
mod update;
pub mod value;

pub use batch::Batch;
pub use engine::{Engine, QueryKind, QueryMemory, QueryOptions, QueryResult, TermRows, Written};
pub use error::QueryError;
pub use guard::TextLimits;
pub use prefixes::{KNOWN_PREFIXES, Shortener, declared_prefixes, known_namespace};
pub use results::{ResultFormat, TableStyle};
pub use update::{LoadPermission, UpdateOptions, Updated, graph_exists};
