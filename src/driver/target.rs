//! Who answers the queries of a run: the engine in this process, or (see `http`) an endpoint.

use std::sync::Arc;

use anyhow::{Context, Result};
use snowmelt_bsbm::{Query, QueryKind};
use snowmelt_io::Clock;
use snowmelt_sparql::{Engine, QueryError, QueryOptions, ResultFormat};
use snowmelt_store::Activity;

/// Answers one query at a time, for several threads at once.
pub trait Target: Sync {
    /// Appends the serialised answer. An error ends the run; what only this query failed at is in the answer.
    fn answer(&self, query: &Query, answer: &mut Vec<u8>) -> Result<Answered>;
}

/// What is known of an answer beside its bytes.
#[derive(Clone, Debug, Default)]
pub struct Answered {
    /// Solutions or triples.
    pub rows: u64,
    /// Modelled processor time in nanoseconds; 0 in real time.
    pub work_ns: u64,
    /// Why there is no answer.
    pub failed: Option<String>,
}

/// Modelled processor time of a query, for virtual time, where measured time would make runs differ.
///
/// Fitted to measured times of Explore queries, everything resident; see `benches/cpu_model.md`.
#[derive(Clone, Copy, Debug)]
pub struct CpuModel {
    /// Nanoseconds per query.
    pub query_ns: f64,
    /// Per random lookup.
    pub rnd_ns: f64,
    /// Per row moved over.
    pub seq_ns: f64,
    /// Per byte of the answer.
    pub byte_ns: f64,
    /// Per page read from a device: request, checksum, book-keeping. Not part of a query's own work.
    pub read_ns: f64,
}

impl Default for CpuModel {
    fn default() -> Self {
        Self { query_ns: 60_000.0, rnd_ns: 250.0, seq_ns: 15.0, byte_ns: 4.0, read_ns: 3_000.0 }
    }
}

impl CpuModel {
    /// The query's own work in nanoseconds: the same cold and warm.
    pub fn work_ns(&self, activity: &Activity, bytes: u64) -> u64 {
        (self.query_ns
            + self.rnd_ns * activity.rnd as f64
            + self.seq_ns * activity.seq as f64
            + self.byte_ns * bytes as f64) as u64
    }

    /// What its reads cost on top.
    pub fn reads_ns(&self, activity: &Activity) -> u64 {
        (self.read_ns * activity.disk as f64) as u64
    }
}

/// The engine in this process.
pub struct InProcess {
    engine: Arc<Engine>,
    clock: Clock,
    options: QueryOptions,
    model: CpuModel,
}

impl InProcess {
    /// An engine whose database runs in `clock`'s time.
    pub fn new(engine: Arc<Engine>, clock: Clock, options: QueryOptions) -> Self {
        Self { engine, clock, options, model: CpuModel::default() }
    }
}

impl Target for InProcess {
    fn answer(&self, query: &Query, answer: &mut Vec<u8>) -> Result<Answered> {
        let format = match query.kind {
            QueryKind::Describe | QueryKind::Construct => ResultFormat::RdfXml,
            _ => ResultFormat::Xml,
        };
        let result = self.engine.query(&query.text, &self.options);
        let written = match result.and_then(|result| result.write(format, answer)) {
            Ok(written) => written,
            Err(error @ (QueryError::Timeout { .. } | QueryError::Memory { .. })) => {
                return Ok(Answered { failed: Some(error.to_string()), ..Answered::default() });
            }
            Err(error) => return Err(error).with_context(|| format!("query {}:\n{}\n", query.number, query.text)),
        };
        let mut answered = Answered { rows: written.rows, ..Answered::default() };
        if self.clock.is_virtual() {
            answered.work_ns = self.model.work_ns(&written.activity, answer.len() as u64);
            self.clock.charge_cpu(answered.work_ns + self.model.reads_ns(&written.activity));
        }
        Ok(answered)
    }
}
