//! EXPLAIN ANALYZE: measurements of each operator. Operators are wrapped only on request. Each
//! thread of a query counts for itself; its counts are added to the total when it ends.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use snowmelt_database::meters::Activity;

use super::shared::SharedNote;
use super::{Boxed, Operator, Result, Run};
use crate::exec::Batch;
use crate::remote::RemoteUse;

/// Counters of one operator, all threads together; time and meters include its inputs.
#[derive(Clone, Default, Debug)]
pub(crate) struct Counters {
    pub rows: u64,
    pub batches: u64,
    /// times it was begun (seeded operators: once per seed)
    pub starts: u64,
    /// times it came to its end; fewer than `starts`: an operator above needed no more rows
    pub ends: u64,
    pub time: Duration,
    pub activity: Activity,
    /// threads that were forked to run it
    pub threads: usize,
    /// of a scan that is shared
    pub shared: Option<SharedNote>,
    /// by endpoint
    pub remote: BTreeMap<String, RemoteUse>,
}

impl Counters {
    /// Counts an answer of an endpoint.
    pub fn asked(&mut self, endpoint: &str, used: RemoteUse) {
        *self.remote.entry(endpoint.to_owned()).or_default() += used;
    }
}

/// Counters by operator id.
#[derive(Clone, Default, Debug)]
pub(crate) struct Profile {
    pub operators: Vec<Counters>,
}

impl Profile {
    pub fn new(operators: usize) -> Self {
        Self { operators: vec![Counters::default(); operators] }
    }

    /// Adds what another thread counted.
    pub fn add(&mut self, other: &Profile) {
        assert_eq!(self.operators.len(), other.operators.len(), "threads of a query run one plan");
        for (of, more) in self.operators.iter_mut().zip(&other.operators) {
            of.rows += more.rows;
            of.batches += more.batches;
            of.starts += more.starts;
            of.ends += more.ends;
            of.time += more.time;
            of.activity += more.activity;
            of.shared = of.shared.or(more.shared);
            more.remote.iter().for_each(|(endpoint, used)| of.asked(endpoint, *used));
        }
    }
}

pub(super) struct Profiled {
    pub inner: Boxed,
    pub id: usize,
    stage: Stage,
}

/// Since the operator was made or seeded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// no row was asked for
    New,
    Begun,
    /// it has put out all rows
    Over,
}

impl Profiled {
    pub fn new(inner: Boxed, id: usize) -> Self {
        Self { inner, id, stage: Stage::New }
    }
}

impl Operator for Profiled {
    fn next(&mut self, run: &mut Run) -> Result<Option<Batch>> {
        let before = run.activity();
        let start = Instant::now();
        let batch = self.inner.next(run)?;
        let time = start.elapsed();
        let activity = run.activity().since(&before);
        if let Some(profile) = &mut run.profile {
            assert!(self.id < profile.operators.len(), "an operator of the plan");
            let counters = &mut profile.operators[self.id];
            counters.time += time;
            counters.activity += activity;
            if self.stage == Stage::New {
                counters.starts += 1;
                self.stage = Stage::Begun;
            }
            match &batch {
                Some(batch) => {
                    counters.rows += batch.rows as u64;
                    counters.batches += 1;
                }
                None if self.stage == Stage::Begun => {
                    counters.ends += 1;
                    self.stage = Stage::Over;
                }
                None => {}
            }
        }
        Ok(batch)
    }

    fn reset(&mut self, seed: &Batch) {
        self.stage = Stage::New;
        self.inner.reset(seed);
    }

    fn is_in_order(&self) -> bool {
        self.inner.is_in_order()
    }
}
