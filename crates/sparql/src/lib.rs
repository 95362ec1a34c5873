//! SPARQL: plan, optimise, execute in batches.

pub mod aggregate;
mod batch;
mod error;
pub mod expr;
mod functions;
pub mod results;
pub mod value;

pub use batch::Batch;
pub use error::QueryError;
