//! The engine in this process as the target of a run.

use std::sync::Arc;

use anyhow::{Context, Result};
use snowmelt_bsbm::{Query, QueryKind};
use snowmelt_io::Clock;
use snowmelt_sparql::{QueryEngine, QueryError, QueryOptions, ResultFormat, UpdateOptions};

use super::cpu_model::CpuModel;
use super::target::{Answered, Failure, Target};

/// The engine in this process.
pub struct InProcess {
    engine: Arc<QueryEngine>,
    clock: Clock,
    options: QueryOptions,
    model: CpuModel,
}

impl InProcess {
    /// An engine whose database runs in `clock`'s time.
    pub fn new(engine: Arc<QueryEngine>, clock: Clock, options: QueryOptions) -> Self {
        Self { engine, clock, options, model: CpuModel::default() }
    }
}

impl InProcess {
    /// Runs an update; it is durable when this returns.
    fn update(&self, query: &Query) -> Result<Answered> {
        let updated = self.engine.update(&query.text, &UpdateOptions::default());
        let updated = updated.with_context(|| format!("update {}", query.number))?;
        Ok(Answered { rows: updated.changed.inserted + updated.changed.deleted, ..Answered::default() })
    }
}

impl Target for InProcess {
    fn answer(&self, query: &Query, answer: &mut Vec<u8>) -> Result<Answered> {
        if query.kind == QueryKind::Update {
            return self.update(query);
        }
        let format = match query.kind {
            QueryKind::Describe | QueryKind::Construct => ResultFormat::RdfXml,
            _ => ResultFormat::Xml,
        };
        let result = self.engine.query(&query.text, &self.options);
        let written = match result.and_then(|result| result.write(format, answer)) {
            Ok(written) => written,
            Err(error @ QueryError::Timeout { .. }) => {
                let failed = Some(Failure::Timeout(error.to_string()));
                return Ok(Answered { failed, ..Answered::default() });
            }
            Err(error @ QueryError::Memory { .. }) => {
                let failed = Some(Failure::Limit(error.to_string()));
                return Ok(Answered { failed, ..Answered::default() });
            }
            Err(error) => {
                return Err(error).with_context(|| format!("query {}:\n{}\n", query.number, query.text));
            }
        };
        let mut answered = Answered { rows: written.rows, ..Answered::default() };
        if self.clock.is_virtual() {
            answered.work_ns = self.model.work_ns(&written.activity, answer.len() as u64);
            self.clock.charge_cpu(answered.work_ns + self.model.reads_ns(&written.activity));
        } else {
            answered.planning_ns = written.planning.as_nanos() as u64;
        }
        Ok(answered)
    }
}
