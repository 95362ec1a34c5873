//! Trees: tuples and strings, read, changed, built and checked.
//!
//! Tuple and string trees share their inner nodes, the [`descent`] from keys to leaves and the
//! [`change`]s on the way up. [`consolidate`] moves pages of both towards the begin of the files.
//! [`announce`] reads ahead for several trees at once.

pub(crate) mod announce;
pub(crate) mod change;
pub(crate) mod consolidate;
pub(crate) mod descent;
pub(crate) mod levels;
pub(crate) mod long_value;
pub(crate) mod read;
pub(crate) mod rows;
pub(crate) mod spare;
pub(crate) mod string;
pub(crate) mod tuple;
