//! Operators: batches in, batches out, pulled from the root.
//!
//! Each operator of a plan becomes one [`Operator`]; it asks its inputs for batches until it
//! can give one. Everything runs in the asking thread. Between two batches an operator holds no
//! page.
//!
//! A plan whose first leaf is a seed is run again and again: [`Operator::reset`] hands a new
//! seed down to that leaf and clears what depends on it, while hash tables built from
//! independent inputs stay.

mod access;
mod batch;
mod bound;
mod build;
mod checked;
mod count_values;
mod distinct;
mod extend;
mod fold;
mod group;
mod group_without;
mod hash;
pub(crate) mod id_ranges;
mod leaf;
mod lookup;
mod mask;
mod nested;
mod parallel;
mod path;
mod profile;
mod repeat;
mod rows;
mod run;
mod scan;
mod service;
mod shared;
mod slice;
mod sort;
pub(crate) mod source;
mod spill;
mod union;
mod watch;
mod watched;

use crate::error::QueryError;

pub use batch::Batch;
pub(crate) use build::{build, build_input};
pub(crate) use distinct::Distinct;
#[cfg(test)]
pub(crate) use parallel::PANIC;
pub(crate) use parallel::THREAD_WORK;
pub(crate) use profile::{Counters, Profile};
pub(crate) use run::{BatchSizes, Run, RunningQuery};
pub(crate) use shared::{SharedNote, SharedScans};
pub(crate) use watch::Watch;

pub(crate) type Result<T> = std::result::Result<T, QueryError>;

/// A running operator.
pub(crate) trait Operator: Send {
    /// The next batch, never an empty one; `None` at the end.
    fn next(&mut self, run: &mut Run) -> Result<Option<Batch>>;

    /// Begins again with a new seed.
    fn reset(&mut self, seed: &Batch);

    /// Whether its rows are some of those of a scan, in the index's order.
    fn is_in_order(&self) -> bool {
        false
    }
}

pub(crate) type Boxed = Box<dyn Operator>;
