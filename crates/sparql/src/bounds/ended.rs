//! Errors of work that came up against a bound.

use snowmelt_database::StoreError;
use snowmelt_graph::GraphError;
use snowmelt_graph::load::LoadError;
use snowmelt_query::{Exceeded, QueryLimits, SpillError, Stop};

use crate::error::QueryError;

/// The error of work that these have stopped.
pub(crate) fn stopped(limits: &QueryLimits) -> QueryError {
    limits.check().err().map_or(QueryError::Cancelled, QueryError::from)
}

/// The error of documents under these.
pub(crate) fn document_failed(limits: &QueryLimits, error: LoadError) -> QueryError {
    match error {
        LoadError::Cancelled => stopped(limits),
        LoadError::Graph(error) => error.into(),
        LoadError::Store(error) => error.into(),
        other => other.into(),
    }
}

impl From<Stop> for QueryError {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Cancelled => Self::Cancelled,
            Stop::Timeout(limit) => Self::Timeout(limit),
        }
    }
}

impl From<Exceeded> for QueryError {
    fn from(exceeded: Exceeded) -> Self {
        match exceeded {
            Exceeded::Stopped(stop) => stop.into(),
            Exceeded::Memory { share_bytes, what } => Self::Memory { share_bytes, what },
            Exceeded::TextMemory { text_bytes, needed_bytes, most_bytes } => {
                Self::TextMemory { text_bytes, needed_bytes, most_bytes }
            }
            Exceeded::Busy { waited, least_bytes, free_bytes, total_bytes } => {
                Self::Busy { waited, least_bytes, free_bytes, total_bytes }
            }
        }
    }
}

impl From<StoreError> for QueryError {
    fn from(error: StoreError) -> Self {
        GraphError::from(error).into()
    }
}

impl From<SpillError> for QueryError {
    fn from(error: SpillError) -> Self {
        match error {
            SpillError::Store(error) => error.into(),
            SpillError::Memory(error) => error.into(),
            SpillError::Damaged(what) => Self::Spill { what },
        }
    }
}
