//! The target of a run's queries: the engine in this process (`in_process`), or an endpoint
//! (`http`).

use anyhow::Result;
use snowmelt_bsbm::Query;

/// Answers one query at a time, for several threads at once.
pub trait Target: Sync {
    /// Appends the serialised answer. An error ends the run; what only this query failed at is
    /// in the answer.
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
    /// Why there is no answer.
    pub failed: Option<String>,
}
