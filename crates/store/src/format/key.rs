//! Keys of tuple trees.

/// Most columns of a tuple tree.
pub const MAX_ARITY: usize = 4;

/// A key of up to [`MAX_ARITY`] columns; unused ones are 0.
pub(crate) type Key = [u64; MAX_ARITY];
