//! Errors that end an evaluation, other than SPARQL's error, which only leaves a value unbound.

use std::time::Duration;

use snowmelt_graph::GraphError;
use snowmelt_query::Exceeded;

use crate::QueryError;
use crate::bounds::Stop;

/// Why terms could not be read or made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TermError {
    /// The dictionary.
    #[error(transparent)]
    Store(#[from] GraphError),
    /// A term that would be longer than any may be.
    #[error("a term of {bytes} bytes would be longer than the longest allowed, {most} bytes")]
    TooLong {
        /// Its bytes, or as many as it had when it was given up.
        bytes: u64,
        /// The limit.
        most: usize,
    },
    /// The query's memory is used up.
    #[error("the terms of the query need more than its limit of {share_bytes} bytes of memory ({what})")]
    Memory {
        /// The share, in bytes.
        share_bytes: usize,
        /// The part of the query that asked.
        what: &'static str,
    },
    /// A text and a pattern that are too large together for a search that cannot be interrupted.
    #[error(
        "REGEX or REPLACE of a text of {text_bytes} bytes with a pattern that compiles to {pattern_bytes} bytes could take too long, which has a limit: make one of them smaller"
    )]
    Search {
        /// Size of the text.
        text_bytes: usize,
        /// Size of the compiled pattern, rounded up.
        pattern_bytes: usize,
    },
    /// The caller cancelled the query.
    #[error("the query was cancelled")]
    Cancelled,
    /// The time limit was reached.
    #[error("the query was stopped after its time limit of {0:?}")]
    Timeout(Duration),
    /// A group of more solutions than can be counted.
    #[error("a group has more than 2^63 solutions, which cannot be counted: count parts of it")]
    Count,
    /// The texts of these rows do not fit into memory together: fewer at a time.
    #[error("the texts of a batch take more memory than there is for them")]
    TooMuch,
}

impl From<Stop> for TermError {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Cancelled => TermError::Cancelled,
            Stop::Timeout(limit) => TermError::Timeout(limit),
        }
    }
}

impl From<Exceeded> for TermError {
    fn from(exceeded: Exceeded) -> Self {
        match exceeded {
            Exceeded::Stopped(stop) => stop.into(),
            Exceeded::Memory { share_bytes, what } => TermError::Memory { share_bytes, what },
            Exceeded::TextMemory { .. } | Exceeded::Busy { .. } => TermError::TooMuch,
        }
    }
}

impl From<TermError> for QueryError {
    fn from(error: TermError) -> Self {
        match error {
            TermError::Store(error) => Self::Store(error),
            TermError::TooLong { bytes, most } => Self::TermTooLong { bytes, most },
            TermError::Memory { share_bytes, what } => Self::Memory { share_bytes, what },
            TermError::Search { text_bytes, pattern_bytes } => Self::Search { text_bytes, pattern_bytes },
            TermError::Count => Self::Count,
            TermError::Cancelled => Self::Cancelled,
            TermError::Timeout(limit) => Self::Timeout(limit),
            TermError::TooMuch => Self::TooMuch,
        }
    }
}

/// Errors that may say that a batch was too much at once.
pub(crate) trait TooMuch {
    fn is_too_much(&self) -> bool;
}

impl TooMuch for TermError {
    fn is_too_much(&self) -> bool {
        matches!(self, TermError::TooMuch)
    }
}

impl TooMuch for QueryError {
    fn is_too_much(&self) -> bool {
        matches!(self, QueryError::TooMuch)
    }
}
