//! The error of a query that exceeds one of its bounds.

use std::time::Duration;

use crate::limits::Stop;

/// A bound that was exceeded. Advice is added at the edges: command line, HTTP, Python.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Exceeded {
    /// It has to end.
    #[error(transparent)]
    Stopped(#[from] Stop),
    /// The memory share was exceeded although what can spill had spilled.
    #[error("the query needs more than its limit of {share_bytes} bytes of memory ({what})")]
    Memory {
        /// The share, in bytes.
        share_bytes: usize,
        /// The operator that asked last.
        what: &'static str,
    },
    /// A text that takes more memory than it can ever have.
    #[error(
        "a text of {text_bytes} bytes takes {needed_bytes} bytes of memory, and there are at most {most_bytes} for it"
    )]
    TextMemory {
        /// Of the text.
        text_bytes: usize,
        /// Memory that its trees and plan take.
        needed_bytes: usize,
        /// Memory that they can have.
        most_bytes: usize,
    },
    /// Too many others run: what a query needs at least was not free in time.
    #[error(
        "after {waited:?} only {free_bytes} of the {total_bytes} bytes of memory are free, and a query needs {least_bytes}"
    )]
    Busy {
        /// How long it waited.
        waited: Duration,
        /// Bytes a query needs to begin.
        least_bytes: usize,
        /// Bytes that are free.
        free_bytes: u64,
        /// The whole budget.
        total_bytes: u64,
    },
}
