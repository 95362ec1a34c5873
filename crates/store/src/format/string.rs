//! Leaves of string trees, and the codes of the strings in them.

pub(crate) mod append_diff;
pub(crate) mod codec;
pub(crate) mod dictionary;
pub(crate) mod dictionary_page;
pub(crate) mod entry;
pub(crate) mod leaf;
pub(crate) mod matcher;
pub(crate) mod symbols;
pub(crate) mod train;
