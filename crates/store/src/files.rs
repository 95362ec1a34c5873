//! The files of a database beside super-block and journal: stripes, lock, reserve.

pub(crate) mod lock;
pub(crate) mod reserve;
pub(crate) mod stripes;
