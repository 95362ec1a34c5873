//! The settings of a store, and how its files are opened.

pub(crate) mod config;
pub(crate) mod first_uses;
pub(crate) mod opener;
pub(crate) mod read_ahead;
