//! Engines carry device requests out. All of them work on the state in `serving`.

pub(crate) mod awaited;
pub(crate) mod in_place;
pub(crate) mod inline;
pub(crate) mod posix_aio;
pub(crate) mod serving;
pub(crate) mod threads;
pub(crate) mod timed;
pub(crate) mod uring;
pub(crate) mod wake;
