//! The store as trees use it: a [`reader`] of a snapshot, the write [`transaction`], the bulk
//! [`build`]; and [`temp_space`] for what queries put aside.

pub(crate) mod build;
pub(crate) mod pack;
pub(crate) mod private_space;
pub(crate) mod reader;
pub(crate) mod temp_space;
pub(crate) mod transaction;
