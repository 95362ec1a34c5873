//! Engines carry device requests out. All of them work on the state in `serving`.
//!
//! [`StartEngine`] is the seam: `uring`, `threads` and `inline` are behind it, and engines of other
//! crates. One that has a thread of its own sees the queue as a [`ServingThread`].

pub(crate) mod awaited;
pub(crate) mod in_place;
pub(crate) mod inline;
pub(crate) mod serving;
pub(crate) mod serving_thread;
pub(crate) mod start;
pub(crate) mod threads;
pub(crate) mod timed;
pub(crate) mod uring;
pub(crate) mod wake;

pub use serving_thread::{ServingThread, Turn};
pub use start::{NotStarted, ServedQueue, StartEngine, Started, StartedThread};
