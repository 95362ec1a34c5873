//! The store as trees use it: a [`reader`] of a snapshot, the write [`transaction`], the bulk
//! [`build`].

pub(crate) mod build;
pub(crate) mod pack;
pub(crate) mod private_space;
pub(crate) mod reader;
pub(crate) mod transaction;
