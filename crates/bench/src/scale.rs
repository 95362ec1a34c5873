//! How the benchmark's work grows with its data: the same mixes on data sets of several sizes.
//!
//! 1. `room`: whether the disk has room for the databases.
//! 2. Each scale is run from a cold start, its meters are set to zero, and it is run on in
//!    steady state. Both phases give the activity per mix, the reads of each tree, and each
//!    query's share of the time: what the benchmark's rate is made of.
//! 3. `growth`: a figure that is multiplied by b when the data is multiplied by a has the
//!    exponent log b ÷ log a: 0 for a look-up, 1 for a scan.
//! 4. `profile`: where the processors are in steady state, as a flame graph (`flame`), and as
//!    shares of functions (`functions`). Where perf cannot record, the figures come without it.
//! 5. `text`: all of it as tables; `page`: the same to look at.

pub mod flame;
mod functions;
mod growth;
mod page;
mod profile;
pub mod room;
mod text;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use serde::Serialize;
use snowmelt_database::OpenOptions;
use snowmelt_lab::functions::FunctionShare;
use snowmelt_store::{Activity, Report, Store};

use super::report::{self, Throughput};
use snowmelt_workload::bench::{Bench, ClientLoad, Until};
use snowmelt_workload::cold::{self, Proof};
use snowmelt_workload::drive::{Record, Run};

pub use functions::{function_changes, function_text};
pub use growth::{Growth, GrowthFigure, exponent, figures_of, growths};
pub use page::scale_page;
pub use profile::Profiler;
pub use text::{growth_text, scale_text};

/// Runs on the data set of one size.
#[derive(Clone, Debug, Serialize)]
pub struct ScaleRun {
    /// Products of the data set.
    pub products: u32,
    /// Quads in the database.
    pub quads: u64,
    /// Bytes of its files.
    pub bytes: u64,
    /// That the first phase began cold.
    pub proof: Proof,
    /// From the first query on.
    pub cold: Phase,
    /// After that, with meters from zero.
    pub steady: Phase,
    /// Where the processors were in steady state, if that was asked for.
    pub profile: Option<Profile>,
}

/// Where the processors were.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// Functions, those that run most themselves first.
    Functions(Vec<FunctionShare>),
    /// There is none, for this reason.
    Missing(String),
}

/// Figures of some mixes.
#[derive(Clone, Debug, Serialize)]
pub struct Phase {
    /// Mixes completed.
    pub mixes: u64,
    /// Wall time.
    pub seconds: f64,
    /// Both definitions of the benchmark's rate.
    pub throughput: Throughput,
    /// Sum over all queries.
    pub activity: Activity,
    /// Trees that were touched, most read first.
    pub trees: Vec<TreeReads>,
    /// Query by query.
    pub queries: Vec<QueryShare>,
    /// Share of the queries' time before their first operator begins.
    pub planning_share: f64,
    /// Look-ups and rows moved over, each second of wall time.
    pub operations_per_second: f64,
}

/// Use of a tree in a phase.
#[derive(Clone, Debug, Serialize)]
pub struct TreeReads {
    /// Its name.
    pub tree: String,
    /// Rows found.
    pub touches: u64,
    /// Pages read.
    pub reads: u64,
    /// Pages it has.
    pub pages: u64,
}

/// A query's part in a phase.
#[derive(Clone, Debug, Serialize)]
pub struct QueryShare {
    /// Number in the use case.
    pub query: u32,
    /// Executions.
    pub count: usize,
    /// Mean time in seconds.
    pub mean_s: f64,
    /// Its executions' time ÷ that of all queries.
    pub share: f64,
    /// Time before the first operator ÷ its time.
    pub planning_share: f64,
    /// Of all answers, as `report` has it.
    pub digest: String,
}

/// The runs on one data set.
pub struct ScalePlan<'a> {
    /// The database.
    pub db: &'a Path,
    /// How to open it; a warm list is not read.
    pub options: &'a OpenOptions,
    /// Which queries.
    pub load: ClientLoad,
    /// Mixes from cold.
    pub warmup: u64,
    /// Mixes in steady state.
    pub mixes: u64,
    /// Where the flame graph of the steady state goes.
    pub flame: Option<&'a Path>,
    /// Ends it.
    pub stop: &'a AtomicBool,
}

impl ScalePlan<'_> {
    /// Runs both phases.
    ///
    /// # Errors
    /// The database is no data set of the benchmark, a query fails, the files cannot be made
    /// cold, the flame graph cannot be written, or it was stopped. That perf fails is none: it is
    /// told in the figures.
    pub fn run(&self) -> Result<ScaleRun> {
        let proof = cold::make_cold(self.db)?;
        let mut options = self.options.clone();
        options.read_ahead.warm_list = false;
        let mut bench = Bench::open(self.db, &options, self.load)?;
        let store = bench.database.database().store().clone();
        let first = self.phase(&mut bench, self.warmup, &store)?;
        store.reset_meters();
        let profiler = self.flame.map(|_| Profiler::attach());
        let steady = self.phase(&mut bench, self.mixes, &store)?;
        let profile = match (profiler.map(|attached| attached.and_then(Profiler::stacks)), self.flame) {
            (Some(Ok(stacks)), Some(file)) => {
                let title =
                    format!("{} products, {} mixes in steady state", self.load.products, steady.mixes);
                std::fs::write(file, flame::svg(&stacks, &title))
                    .with_context(|| format!("cannot write {}", file.display()))?;
                Some(Profile::Functions(functions::shares(
                    &format!("{} products", self.load.products),
                    &stacks,
                )))
            }
            (Some(Err(why)), _) => Some(Profile::Missing(format!("{why:#}"))),
            _ => None,
        };
        let quads = bench.database.session()?.state().quads();
        let (products, bytes) = (self.load.products, proof.bytes);
        Ok(ScaleRun { products, quads, bytes, proof, cold: first, steady, profile })
    }

    fn phase(&self, bench: &mut Bench, mixes: u64, store: &Store) -> Result<Phase> {
        let (run, _) = bench.run(Until::mixes(mixes), 1.0, self.stop, &|_| {})?;
        if self.stop.load(Ordering::Relaxed) {
            bail!("interrupted");
        }
        if let Some((number, why)) = run.records.iter().find_map(|r| Some((r.number, r.failed.as_ref()?))) {
            bail!("query {number} failed, so times say nothing: {why}");
        }
        Ok(Phase::new(&run, &store.report(), self.load.queries_per_mix()))
    }
}

impl Phase {
    fn new(run: &Run, meters: &Report, queries_per_mix: usize) -> Self {
        let a = meters.activity;
        let all_ns = run.records.iter().map(time_ns).sum();
        let planning_ns = run.records.iter().map(|r| r.planning_ns).sum();
        Self {
            mixes: run.mixes() as u64,
            seconds: run.seconds(),
            throughput: Throughput::new(run, queries_per_mix),
            activity: a,
            trees: trees(meters),
            queries: shares(&run.records, all_ns),
            planning_share: ratio(planning_ns, all_ns),
            operations_per_second: (a.rnd + a.seq) as f64 / run.seconds().max(1e-9),
        }
    }

    /// A count of the phase for each of its mixes.
    pub fn per_mix(&self, count: u64) -> f64 {
        count as f64 / self.mixes.max(1) as f64
    }

    /// Look-ups and rows moved over, per mix.
    pub fn operations_per_mix(&self) -> f64 {
        self.per_mix(self.activity.rnd + self.activity.seq)
    }

    /// Pages read, per mix.
    pub fn reads_per_mix(&self) -> f64 {
        self.per_mix(self.trees.iter().map(|tree| tree.reads).sum())
    }
}

fn time_ns(record: &Record) -> u64 {
    record.end_ns - record.start_ns
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

fn trees(meters: &Report) -> Vec<TreeReads> {
    let used = meters.trees.iter().filter(|tree| tree.reads + tree.touches > 0);
    let mut trees: Vec<TreeReads> = used
        .map(|t| TreeReads { tree: t.name.clone(), touches: t.touches, reads: t.reads, pages: t.pages })
        .collect();
    trees.sort_by_key(|t| std::cmp::Reverse((t.reads, t.touches)));
    trees
}

fn shares(records: &[Record], all_ns: u64) -> Vec<QueryShare> {
    let share = |of: report::QueryReport| {
        let own = || records.iter().filter(|record| record.number == of.query);
        let ns = own().map(time_ns).sum();
        QueryShare {
            query: of.query,
            count: of.count,
            mean_s: of.aqet,
            share: ratio(ns, all_ns),
            planning_share: ratio(own().map(|record| record.planning_ns).sum(), ns),
            digest: of.digest,
        }
    };
    report::queries(records).into_iter().map(share).collect()
}
