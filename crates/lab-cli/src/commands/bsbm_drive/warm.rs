//! `bsbm drive --warm-up`: the warm-up of a server, or of a database in this process.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result, bail};
use snowmelt_bench::cold_run::READERS_WAIT;
use snowmelt_bench::content;
use snowmelt_bench::measure::{Measured, Streams};
use snowmelt_bench::warm_run::WarmRun;
use snowmelt_bench::warm_up::server::ServerProcess;
use snowmelt_bench::warm_up::{Bandwidth, WarmUp, WarmUpFacts, WorkingSet};
use snowmelt_bsbm::UseCase;
use snowmelt_store::{PAGE_BYTES, Store};
use snowmelt_workload::bench::ClientLoad;
use snowmelt_workload::drive::Rules;
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
    Server(Box<ServerProcess>),
    None(String),
}

impl CounterOrigin<'_> {
    fn counts(&self) -> Counts {
        match self {
            Self::Store(store) => Counts::of_store(store),
            Self::Server(server) => server.counts(),
            Self::None(_) => Counts::default(),
        }
    }
}

/// The warm-up, then the measured mixes.
pub(super) fn measure(
    args: &BsbmDriveArgs,
    target: &dyn Target,
    store: Option<&Arc<Store>>,
    load: &ClientLoad,
    streams: Streams,
    stop: &AtomicBool,
) -> Result<(Measured, WarmUp)> {
    let source = source(args, store)?;
    // Before the first reads, by which the store would correct it.
    let bandwidth = args.warming.bandwidth().or_else(|| Bandwidth::of_store(store?));
    if let CounterOrigin::None(why) = &source {
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
        counts: &|| source.counts(),
        on_sample: &|sample| args.say(&sample.line()),
        stop,
    };
    let warmed = phase.run(streams)?;
    let facts = facts(&source, load, bandwidth);
    let warm_up = WarmUp::new(&warmed.course, warmed.measured_from_s, &args.warming.rules(), facts);
    Ok((warmed.measured, warm_up))
}

fn source<'a>(args: &BsbmDriveArgs, store: Option<&'a Arc<Store>>) -> Result<CounterOrigin<'a>> {
    if let Some(store) = store {
        return Ok(CounterOrigin::Store(store));
    }
    if let Some(pid) = args.server_pid {
        return ServerProcess::of_pid(pid)
            .map(|server| CounterOrigin::Server(Box::new(server)))
            .context("--server-pid");
    }
    Ok(match ServerProcess::listening_at(&args.target) {
        Ok(server) => CounterOrigin::Server(Box::new(server)),
        Err(why) => CounterOrigin::None(why.to_string()),
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
        CounterOrigin::Server(server) => WarmUpFacts {
            io_wait: "of the whole machine: processors idle while a request was under way".into(),
            server: server.told(),
            ..facts
        },
        CounterOrigin::None(why) => WarmUpFacts { server: format!("not known: {why}"), ..facts },
    }
}
