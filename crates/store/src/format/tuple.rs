//! Leaves of tuple trees.

pub(crate) mod leaf;
pub(crate) mod leaf_build;
pub(crate) mod row_diff;
pub(crate) mod tail;
