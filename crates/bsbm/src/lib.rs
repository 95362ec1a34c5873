//! The Berlin SPARQL Benchmark (BSBM V3): data generator, query templates and parameter rules.
//!
//! Data and queries are those of the original tools, byte for byte, when the original word
//! lists are given: `random`, `normal` and `draw` are its random numbers, `scale` and `types`
//! the structure of a data set, `generator` its texts, `workload` the queries with their
//! parameters.
//!
//! Invariant: everything follows from the number of products (and the words, and a seed for the
//! queries); nothing here knows what a store is.

#[macro_use]
mod vocabulary;

mod calendar;
mod double_double;
mod draw;
mod error;
mod generator;
mod normal;
mod parameters;
mod random;
mod scale;
mod seeds;
mod synthetic;
mod template;
mod types;
mod words;
mod workload;

pub use error::Error;
pub use generator::{Config, Generator, Summary, Written};
pub use random::JavaRandom;
pub use scale::{EntityCounts, MAX_PRODUCTS};
pub use template::QueryKind;
pub use words::WordLists;
pub use workload::{DEFAULT_SEED, Mix, Query, UseCase, Workload, read_update_transactions};
