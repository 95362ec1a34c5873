//! SPARQL: plan, optimise, execute in batches.

mod batch;
mod error;

pub use batch::Batch;
pub use error::QueryError;
