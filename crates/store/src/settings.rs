//! What a store is opened with: its settings, the memory it may take, and how its files are opened.

pub(crate) mod config;
pub(crate) mod machine;
pub(crate) mod memory;
pub(crate) mod opener;
pub(crate) mod read_ahead;
