//! The files of a database beside super-block and journal: stripes, lock, reserve.

pub(crate) mod block_stripe;
pub(crate) mod lock;
pub(crate) mod reserve;
pub(crate) mod stripes;
pub(crate) mod watch;
