//! The target of a run's queries: the engine in this process (`in_process`), or an endpoint over
//! HTTP (in `snowmelt-bench`).

use std::fmt;

use anyhow::Result;
use snowmelt_bsbm::Query;

/// Answers one query at a time, for several threads at once.
pub trait Target: Sync {
    /// Appends the serialised answer. An error ends the run; a failure of this query alone is in
    /// the answer.
    fn answer(&self, query: &Query, answer: &mut Vec<u8>) -> Result<Answered>;
}

/// Facts about an answer beside its bytes.
#[derive(Clone, Debug, Default)]
pub struct Answered {
    /// Solutions or triples.
    pub rows: u64,
    /// Modelled processor time in nanoseconds; 0 in real time.
    pub work_ns: u64,
    /// Nanoseconds until the first operator began; 0 where the target does not tell, and in
    /// virtual time.
    pub planning_ns: u64,
    /// Nanoseconds spent on a new connection before the query was sent.
    pub connect_ns: u64,
    /// Why there is no answer.
    pub failed: Option<Failure>,
}

/// Why a query has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It was not answered in time.
    Timeout(String),
    /// It hit another limit of its engine.
    Limit(String),
    /// It was refused, or answered by something that is no answer.
    Broken(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Timeout(why) | Self::Limit(why) | Self::Broken(why)) = self;
        f.write_str(why)
    }
}
