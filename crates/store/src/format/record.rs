//! Pages and keys of record trees.

pub(crate) mod key;
pub(crate) mod page;
