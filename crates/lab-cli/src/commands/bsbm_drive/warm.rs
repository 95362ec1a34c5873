//! `bsbm drive --warm-up`: the warm-up of a server, or of a database in this process.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result, bail};
use snowmelt_bench::cold_run::READERS_WAIT;
use snowmelt_bench::content;
use snowmelt_bench::measure::{Measured, Streams};
use snowmelt_bench::warm_run::WarmRun;
use snowmelt_bench::warm_up::meters::ServerMeters;
use snowmelt_bench::warm_up::server::ServerProcess;
use snowmelt_bench::warm_up::{Bandwidth, WarmUp, WarmUpFacts, WorkingSet};
use snowmelt_bsbm::UseCase;
use snowmelt_store::{PAGE_BYTES, Store};
use snowmelt_workload::bench::ClientLoad;
use snowmelt_workload::drive::Rules;
use snowmelt_workload::kept::KeptAnswers;
use snowmelt_workload::sampler::{Counts, Sample};
use snowmelt_workload::target::Target;

use super::BsbmDriveArgs;

/// Refuses what does not go together, before anything is opened.
pub(super) fn check(args: &BsbmDriveArgs) -> Result<()> {
    if let Some(switch) = args.warming.given().filter(|_| !args.warm_up) {
        bail!("{switch} is a rule of warming: it needs --warm-up");
    }
    if args.warm_up && args.use_case == UseCase::ExploreAndUpdate {
        bail!("explore-and-update warms up by other queries than it measures: use explore or bi");
    }
    if args.server_pid.is_some() && !super::is_url(&args.target) {
        bail!("a database in this process has no --server-pid: leave it out");
    }
    Ok(())
}

/// The origin of the counters of a warm-up.
enum CounterOrigin<'a> {
    Store(&'a Arc<Store>),
    Server(Box<ServerProcess>, Option<ServerMeters>),
    /// The process is not known, for a reason.
    None(String, Option<ServerMeters>),
}

impl CounterOrigin<'_> {
    fn counts(&self) -> Counts {
        match self {
            Self::Store(store) => Counts::of_store(store),
            Self::Server(server, meters) => with_meters(server.counts(), meters.as_ref()),
            Self::None(_, meters) => with_meters(Counts::default(), meters.as_ref()),
        }
    }
}

/// Counters of a process, and those that a server tells itself. The wait is the server's own, or
/// absent in a moment in which it does not answer: never the machine's in between.
fn with_meters(counts: Counts, meters: Option<&ServerMeters>) -> Counts {
    let Some(meters) = meters else { return counts };
    let own = meters.counts().unwrap_or_default();
    Counts { cpu_s: counts.cpu_s, bytes: counts.bytes.or(own.bytes), ..own }
}

/// A target that warms up, and its clients.
pub(super) struct Warming<'a> {
    pub(super) target: &'a dyn Target,
    /// Of a database in this process.
    pub(super) store: Option<&'a Arc<Store>>,
    pub(super) load: &'a ClientLoad,
    pub(super) kept: &'a KeptAnswers,
}

impl Warming<'_> {
    /// The warm-up, then the measured mixes.
    pub(super) fn measure(
        &self,
        args: &BsbmDriveArgs,
        streams: Streams,
        stop: &AtomicBool,
    ) -> Result<(Measured, WarmUp)> {
        let Self { target, store, load, kept } = *self;
        let source = source(args, store)?;
        // Before the first reads, by which the store would correct it.
        let bandwidth = args.warming.bandwidth().or_else(|| Bandwidth::of_store(store?));
        if let CounterOrigin::None(why, _) = &source {
            args.say(&format!("the server's process is not known: {why}"));
        }
        args.say(Sample::HEAD);
        let phase = WarmRun {
            target,
            clients: load.clients,
            rules: Rules { rate: None, reading: content::terms, keeps_going: args.keep_going },
            warm: args.warming.rules(),
            queries_per_mix: load.queries_per_mix(),
            mixes: args.mixes,
            kept: Some(kept),
            counts: &|| source.counts(),
            on_sample: &|sample| args.say(&sample.line()),
            stop,
        };
        let warmed = phase.run(streams)?;
        let facts = facts(&source, load, bandwidth);
        let warm_up = WarmUp::new(&warmed.course, warmed.measured_from_s, &args.warming.rules(), facts);
        Ok((warmed.measured, warm_up))
    }
}

fn source<'a>(args: &BsbmDriveArgs, store: Option<&'a Arc<Store>>) -> Result<CounterOrigin<'a>> {
    if let Some(store) = store {
        return Ok(CounterOrigin::Store(store));
    }
    let meters = ServerMeters::of_endpoint(&args.target);
    if let Some(pid) = args.server_pid {
        let server = ServerProcess::of_pid(pid).context("--server-pid")?;
        return Ok(CounterOrigin::Server(Box::new(server), meters));
    }
    Ok(match ServerProcess::listening_at(&args.target) {
        Ok(server) => CounterOrigin::Server(Box::new(server), meters),
        Err(why) => CounterOrigin::None(why.to_string(), meters),
    })
}

fn facts(source: &CounterOrigin<'_>, load: &ClientLoad, bandwidth: Option<Bandwidth>) -> WarmUpFacts {
    let facts = WarmUpFacts {
        clients: load.clients,
        processors: std::thread::available_parallelism().map_or(1, usize::from),
        bandwidth,
        ..WarmUpFacts::default()
    };
    match source {
        CounterOrigin::Store(store) => {
            let report = store.report();
            let (pages, ahead) = (report.pages_used(), report.ahead_total());
            WarmUpFacts {
                working_set: Some(WorkingSet {
                    pages,
                    bytes: pages * PAGE_BYTES as u64,
                    is_exact: report.pool.left == 0,
                    missing_at_most: 0,
                }),
                read_ahead: Some((ahead.issued, ahead.used)),
                io_wait: READERS_WAIT.into(),
                server: "this process, its clients included, and the meters of its store".into(),
                ..facts
            }
        }
        CounterOrigin::Server(server, None) => WarmUpFacts {
            io_wait: "of the whole machine: processors idle while a request was under way".into(),
            server: server.told(),
            ..facts
        },
        CounterOrigin::None(why, None) => WarmUpFacts { server: format!("not known: {why}"), ..facts },
        CounterOrigin::Server(server, Some(meters)) => of_meters(meters, &server.told(), facts),
        CounterOrigin::None(why, Some(meters)) => {
            of_meters(meters, &format!("the process is not known: {why}"), facts)
        }
    }
}

/// Facts that a server tells itself.
fn of_meters(meters: &ServerMeters, process: &str, facts: WarmUpFacts) -> WarmUpFacts {
    let (working_set, read_ahead) = meters.used().unzip();
    WarmUpFacts {
        working_set,
        read_ahead,
        io_wait: READERS_WAIT.into(),
        server: format!("{process}; and the meters of {}", meters.url()),
        ..facts
    }
}
