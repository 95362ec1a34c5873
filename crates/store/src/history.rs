//! The states of a database that readers may still see.
//!
//! A commit makes a new [`state::State`] (the catalog) and new page [`versions`]; a
//! [`snapshot`] holds one state; a transaction has [`private`] pages until it commits. Versions
//! that left memory are [`rebuild`]t from the journal.

pub(crate) mod private;
pub(crate) mod rebuild;
pub(crate) mod snapshot;
pub(crate) mod state;
pub(crate) mod step;
pub(crate) mod versions;
pub(crate) mod waiting;
