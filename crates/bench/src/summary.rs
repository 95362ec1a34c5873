//! Everything a measurement of the benchmark comes to, as data: printed as JSON, as the original
//! driver's XML (`xml`), and as a page (`page`).

mod cost;
mod page;
mod repeats;
mod xml;

use serde::Serialize;
use snowmelt_bsbm::{QueryKind, UseCase};
use snowmelt_lab::stats::{Latencies, LatencySummary};

pub use cost::{MOST_SHARE, OwnCost, PublishedRate};
pub use repeats::RepeatFigures;

use super::measure::Measured;
use super::report::{MixTimes, QueryReport, Throughput, mix_times, queries};
use super::verify::Verification;
use super::warm_up::WarmUp;
use snowmelt_workload::bench::ClientLoad;
use snowmelt_workload::drive::{Record, Run};
use snowmelt_workload::target::Failure;

/// Settings of a measurement, as reports show them.
#[derive(Clone, Debug, Serialize)]
pub struct Setup {
    /// URL or database.
    pub target: String,
    /// The mix.
    pub use_case: String,
    /// Scale of the data set.
    pub products: u32,
    /// Seed of the parameters.
    pub seed: i64,
    /// Clients.
    pub clients: usize,
    /// Mixes before those that count.
    pub warmup: u64,
    /// Mixes that count, in each repeat.
    pub mixes: u64,
    /// Times that they are measured.
    pub repeats: u32,
    /// Queries per second of an open loop.
    pub rate: Option<f64>,
    /// Time limit of a query.
    pub timeout_ms: Option<u64>,
    /// A connection is opened for each query.
    pub connection_per_query: bool,
    /// The engine runs in this process.
    pub in_process: bool,
}

/// The driver's own part in the measurement.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct DriverWork {
    /// Processor seconds of this process; with the engine's if that runs in it.
    pub cpu_s: f64,
    /// Queries per processor second.
    pub queries_per_cpu_s: f64,
    /// Connections made.
    pub connections: usize,
    /// Mean time to make one; it is no part of a query's time in a closed loop.
    pub connect_s: f64,
    /// Delays of the starts of an open loop.
    pub lateness: Option<LatencySummary>,
    /// Its own cost for a query.
    pub own: OwnCost,
}

/// Executions without an answer.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Failures {
    /// Not answered in time.
    pub timeouts: usize,
    /// Ended by another limit of the engine.
    pub limits: usize,
    /// Refused, cut, or no answers of the protocol.
    pub broken: usize,
    /// The first reason.
    pub example: Option<String>,
}

/// Results of a measurement.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Its settings.
    #[serde(flatten)]
    pub setup: Setup,
    /// Queries of a whole mix.
    pub queries_per_mix: usize,
    /// Query mixes per hour, as the benchmark reports them for this number of clients.
    pub qmph: f64,
    /// In both definitions.
    pub throughput: Throughput,
    /// Wall time.
    pub seconds: f64,
    /// Times of whole mixes.
    pub mix: MixTimes,
    /// Figures by query.
    pub queries: Vec<QueryReport>,
    /// Executions without an answer.
    pub failures: Failures,
    /// The driver's part.
    pub driver: DriverWork,
    /// Each repeat.
    pub repeats: Vec<RepeatFigures>,
    /// Held against a published rate.
    pub published: Option<PublishedRate>,
    /// Comparison of the answers with others.
    pub verification: Option<Verification>,
    /// The warm-up before, if that was measured.
    pub warm_up: Option<WarmUp>,
}

impl Summary {
    /// Adds up a measurement: its repeats, and all of them together.
    pub fn new(setup: Setup, load: &ClientLoad, repeats: &[Measured]) -> Self {
        let Measured { run, cpu_s } = &Measured::joined(repeats);
        let queries_per_mix = load.queries_per_mix();
        let throughput = Throughput::new(run, queries_per_mix);
        let is_closed = setup.rate.is_none();
        let qmph = |of: Throughput| if is_closed { of.qmph(setup.clients) } else { of.qmph_wall };
        let figures = |(repeat, Measured { run, .. }): (u32, &Measured)| RepeatFigures {
            repeat,
            qmph: qmph(Throughput::new(run, queries_per_mix)),
            seconds: run.seconds(),
            mix: mix_times(&run.records, queries_per_mix),
            own: OwnCost::new(run, setup.in_process),
            queries: queries(&run.records),
        };
        Self {
            qmph: qmph(throughput),
            repeats: (1..).zip(repeats).map(figures).collect(),
            published: None,
            throughput,
            queries_per_mix,
            seconds: run.seconds(),
            mix: mix_times(&run.records, queries_per_mix),
            queries: queries(&run.records),
            failures: Failures::count(&run.records),
            driver: DriverWork::new(run, *cpu_s, &setup),
            verification: None,
            warm_up: None,
            setup,
        }
    }

    /// Holds the rate against a published one.
    pub fn hold_against(&mut self, published: f64) {
        let Failures { timeouts, limits, broken, .. } = self.failures;
        let failed = timeouts + limits + broken;
        self.published = Some(PublishedRate::hold(published, self.qmph, &self.driver.own, failed));
    }

    /// Executions of all queries.
    pub fn executions(&self) -> usize {
        self.queries.iter().map(|query| query.count).sum()
    }

    /// Executions of a query per second, by the benchmark's definition.
    fn qps(&self, query: &QueryReport) -> f64 {
        let busy = match (self.setup.clients, self.setup.rate) {
            (1, None) => 1.0,
            _ => self.mix.total / self.seconds,
        };
        busy / query.aqet
    }

    fn kind(&self, number: u32) -> Option<QueryKind> {
        self.setup.use_case.parse::<UseCase>().ok().and_then(|use_case| use_case.kind(number))
    }

    /// Throughput, failures, and the driver's part, a line each.
    pub fn lines(&self) -> Vec<String> {
        let MixTimes { mixes, cqet, cqet_geometric, .. } = self.mix;
        let mut lines = vec![format!(
            "QMpH {:.2}: {mixes} mixes, {} queries in {:.3} s; CQET {cqet:.5} s, geometric {cqet_geometric:.5} s",
            self.qmph,
            self.executions(),
            self.seconds
        )];
        let Failures { timeouts, limits, broken, example } = &self.failures;
        if let Some(example) = example {
            lines.push(format!(
                "without an answer: {timeouts} timeouts, {limits} other limits, {broken} broken; the first: {example}"
            ));
        }
        lines.extend(repeats::line(&self.repeats));
        lines.extend(self.published.as_ref().map(PublishedRate::line));
        lines.push(self.driver.line(self.setup.in_process));
        lines.push(self.driver.own.line());
        if let Some(line) = self.driver.lateness.as_ref().map(late_line) {
            lines.push(line);
        }
        lines.extend(self.verification.iter().map(Verification::line));
        lines.extend(self.verification.iter().flat_map(Verification::difference_lines));
        lines
    }

    /// Reasons to doubt the figures.
    pub fn doubts(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        let Failures { timeouts, limits, broken, .. } = self.failures;
        let failed = timeouts + limits + broken;
        if failed > 0 {
            doubts.push(format!("{failed} of {} queries have no answer", self.executions()));
        }
        if let Some(late) = self.driver.lateness.filter(|late| late.p99_ns > 1_000_000) {
            doubts.push(format!(
                "queries were sent late: one in a hundred by {:.1} ms or more, because no client was free",
                late.p99_ns as f64 / 1e6
            ));
        }
        doubts.extend(self.verification.iter().filter_map(Verification::doubt));
        doubts.extend(self.warm_up.iter().flat_map(|warm_up| &warm_up.doubts).cloned());
        doubts
    }
}

impl DriverWork {
    fn new(run: &Run, cpu_s: f64, setup: &Setup) -> Self {
        let connects: Vec<u64> = run.records.iter().map(|r| r.connect_ns).filter(|ns| *ns > 0).collect();
        let connect_s = connects.iter().sum::<u64>() as f64 / 1e9 / connects.len().max(1) as f64;
        let lateness = setup.rate.map(|_| {
            let mut late = Latencies::default();
            run.records.iter().for_each(|record| late.add(record.late_ns()));
            late.summary()
        });
        Self {
            cpu_s,
            queries_per_cpu_s: if cpu_s > 0.0 { run.records.len() as f64 / cpu_s } else { 0.0 },
            connections: connects.len(),
            connect_s,
            lateness,
            own: OwnCost::new(run, setup.in_process),
        }
    }

    fn line(&self, in_process: bool) -> String {
        let owner = if in_process { "driver and engine" } else { "driver" };
        let Self { cpu_s, queries_per_cpu_s, connections, connect_s, .. } = self;
        let connected = match connections {
            0 => String::new(),
            _ => format!("; {connections} connections, {:.3} ms each", connect_s * 1e3),
        };
        format!("{owner}: {cpu_s:.3} processor seconds, {queries_per_cpu_s:.0} queries in each{connected}")
    }
}

fn late_line(late: &LatencySummary) -> String {
    let ms = |ns: u64| ns as f64 / 1e6;
    format!(
        "lateness of the starts, counted in the times: mean {:.3} ms, p50 {:.3}, p99 {:.3}, most {:.3}",
        late.mean_ns / 1e6,
        ms(late.p50_ns),
        ms(late.p99_ns),
        ms(late.max_ns)
    )
}

impl Failures {
    fn count(records: &[Record]) -> Self {
        let mut failures = Self::default();
        for record in records {
            let Some(failure) = &record.failed else { continue };
            *match failure {
                Failure::Timeout(_) => &mut failures.timeouts,
                Failure::Limit(_) => &mut failures.limits,
                Failure::Broken(_) => &mut failures.broken,
            } += 1;
            failures.example.get_or_insert_with(|| format!("query {}: {failure}", record.number));
        }
        failures
    }
}
