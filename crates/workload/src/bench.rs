//! A database under the benchmark: how many products it holds, and one measured run after
//! another from one stream of queries.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use snowmelt_bsbm::{QueryKind, UseCase, Workload};
use snowmelt_database::OpenOptions;
use snowmelt_graph::GraphDatabase;
use snowmelt_io::Clock;
use snowmelt_sparql::{PlanCosts, QueryEngine, QueryOptions};
use snowmelt_store::ReadAhead;

use super::beliefs::DeviceState;
use super::drive::{Drive, Mixes, Run, Stream};
use super::in_process::InProcess;
use super::sampler::{Counts, End, Sample, Sampler, is_steady};
use super::target::Target;

/// Which queries, and who runs them.
#[derive(Clone, Copy, Debug)]
pub struct ClientLoad {
    /// Scale of the data set.
    pub products: u32,
    /// Seed of the parameters.
    pub seed: i64,
    /// The mix.
    pub use_case: UseCase,
    /// Clients, each with one query at a time.
    pub clients: usize,
    /// Threads that a query may use; 0: as many as there are cores.
    pub threads: usize,
    /// Whether plans count the cost of reads.
    pub costs: PlanCosts,
}

impl ClientLoad {
    /// Queries in a mix.
    pub fn queries_per_mix(&self) -> usize {
        self.use_case.mix().len()
    }

    /// Its stream of mixes, from the start, whose inserts take these transactions in turn.
    pub fn update_stream(&self, transactions: Vec<String>) -> Result<Stream> {
        let workload = Workload::with_updates(self.products, self.seed, self.use_case, transactions)?;
        Ok(Stream::Drawn(Box::new(workload)))
    }

    /// Its stream of mixes, from the start.
    pub fn stream(&self) -> Result<Stream> {
        Ok(Stream::Drawn(Box::new(Workload::new(self.products, self.seed, self.use_case)?)))
    }
}

/// A rule by which a run is over: of its samples so far, and the queries in a mix.
pub type Enough<'a> = &'a (dyn Fn(&[Sample], usize) -> bool + Sync);

/// When a run ends.
#[derive(Clone, Copy)]
pub struct Until<'a> {
    /// After this number of mixes.
    pub mixes: u64,
    /// After so long.
    pub time: Option<Duration>,
    /// When throughput no longer changes.
    pub steady: bool,
    /// When this rule holds.
    pub enough: Option<Enough<'a>>,
}

impl<'a> Until<'a> {
    /// Ends after a number of mixes, however long they take.
    pub fn mixes(mixes: u64) -> Self {
        Self { mixes, time: None, steady: false, enough: None }
    }

    /// Ends when throughput no longer changes, at the latest after `seconds`.
    pub fn steady(seconds: u64) -> Self {
        Self { mixes: u64::MAX, time: Some(Duration::from_secs(seconds)), steady: true, enough: None }
    }

    /// Ends when `enough` says so, at the latest after `mixes` mixes or after `time`.
    pub fn enough(enough: Enough<'a>, mixes: u64, time: Duration) -> Self {
        Self { mixes, time: Some(time), steady: false, enough: Some(enough) }
    }

    /// Ends after this time.
    pub fn seconds(seconds: u64) -> Self {
        Self { steady: false, ..Self::steady(seconds) }
    }
}

/// An open database and the queries it gets.
pub struct Bench {
    /// The database.
    pub database: Arc<GraphDatabase>,
    load: ClientLoad,
    target: InProcess,
    clock: Clock,
    stream: Stream,
    queries: AtomicU64,
}

impl Bench {
    /// Opens the database in `db`, in real time, for the mixes of `load`.
    pub fn open(db: &Path, options: &OpenOptions, load: ClientLoad) -> Result<Self> {
        let stream = load.stream()?;
        Self::with_stream(db, options, load, stream)
    }

    /// Opens the database in `db`, in real time.
    pub fn with_stream(db: &Path, options: &OpenOptions, load: ClientLoad, stream: Stream) -> Result<Self> {
        let database = GraphDatabase::open(db, options)?;
        let clock = options.seams.clock.clone();
        let engine = Arc::new(QueryEngine::new(database.clone()));
        let queries = QueryOptions { threads: load.threads, costs: load.costs, ..QueryOptions::default() };
        let target = InProcess::new(engine, clock.clone(), queries);
        Ok(Self { database, load, target, clock, stream, queries: AtomicU64::new(0) })
    }

    /// Drives mixes of another stream, unmeasured: a run with updates is warmed up without any,
    /// as the benchmark's own driver does.
    pub fn warm_up(&self, stream: Stream, mixes: u64, stop: &AtomicBool) -> Result<()> {
        let drive = Drive::new(&self.target, &self.clock, self.load.clients);
        drive.run(&Mixes::new(stream, mixes, &[stop])).map(drop)
    }

    /// Drives the next mixes of the stream, and samples meanwhile.
    pub fn run(
        &mut self,
        until: Until<'_>,
        interval_s: f64,
        stop: &AtomicBool,
        on_sample: &(dyn Fn(&Sample) + Sync),
    ) -> Result<(Run, Vec<Sample>)> {
        let over = AtomicBool::new(false);
        let store = self.database.database().store().clone();
        let queries_per_mix = self.load.queries_per_mix();
        let is_end = |samples: &[Sample]| {
            until.steady && is_steady(samples)
                || until.enough.is_some_and(|enough| enough(samples, queries_per_mix))
        };
        let sampler = Sampler {
            counts: &|| Counts::of_store(&store),
            devices: &|| DeviceState::of_store(&store),
            queries: &self.queries,
            queries_per_mix,
            interval_s,
            on_sample,
            ends: Some(End { flag: &over, is_reached: &is_end }),
        };
        let mut mixes = Mixes::new(self.stream.clone(), until.mixes, &[stop, &over]);
        if let Some(time) = until.time {
            mixes = mixes.until(self.clock.now_ns() + time.as_nanos() as u64);
        }
        let count = |_: &super::drive::Record| {
            self.queries.fetch_add(1, Ordering::Relaxed);
        };
        let drive = Drive::new(&self.target, &self.clock, self.load.clients).on_query(&count);
        let (run, samples) = sampler.during(|| drive.run(&mixes));
        self.stream = mixes.into_stream();
        Ok((run?, samples))
    }
}

/// How many products the database in `db` holds. Reads a few pages.
pub fn count_products(db: &Path, options: &OpenOptions) -> Result<u32> {
    let options = OpenOptions { read_ahead: ReadAhead::none(), ..options.clone() };
    let engine = QueryEngine::new(GraphDatabase::open(db, &options)?);
    let target = InProcess::new(Arc::new(engine), options.seams.clock.clone(), QueryOptions::default());
    products_of(&target).with_context(|| db.display().to_string())
}

/// How many products a target holds: a twentieth of its offers.
///
/// # Errors
/// It fails, or does not look like a data set of the benchmark.
pub fn products_of(target: &dyn Target) -> Result<u32> {
    let text = "PREFIX bsbm: <http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/>\n\
                SELECT (COUNT(*) AS ?offers) WHERE { ?offer a bsbm:Offer }";
    let query = snowmelt_bsbm::Query { number: 0, kind: QueryKind::Select, text: text.into() };
    let mut answer = Vec::new();
    if let Some(failure) = target.answer(&query, &mut answer)?.failed {
        bail!("it cannot count its offers: {failure}");
    }
    let answer = String::from_utf8_lossy(&answer);
    let number = answer.split("</literal>").next().and_then(|text| text.rsplit('>').next());
    match number.and_then(|number| number.parse::<u32>().ok()) {
        Some(offers) if offers >= 20 && offers % 20 == 0 => Ok(offers / 20),
        _ => bail!(
            "it does not look like a data set of the benchmark (no offers, 20 for each product): \
             make one with `snowmelt-lab bsbm generate`, or give --products"
        ),
    }
}
