//! Leaves of string trees.

pub(crate) mod append_diff;
pub(crate) mod leaf;
pub(crate) mod symbols;
