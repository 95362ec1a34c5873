//! `lab trace`: the requests that a device really gets, from the kernel's block events.
//!
//! The way of an event: the kernel writes it into the buffer of a processor, in a trace
//! instance of our own that lets only one device through ([`tracefs`]); raw pages come out
//! ([`ring_page`]) and are decoded by this kernel's formats ([`mod@format`], [`event`]), put in
//! order ([`collector`]), matched ([`pairing`]), charged to a process and a file ([`users`]) and
//! added up ([`tally`]).

pub mod blktrace;
mod btrfs;
pub(crate) mod cell;
pub mod collector;
mod device_number;
pub mod event;
pub mod family;
pub mod file_names;
mod filter;
pub mod format;
mod histogram;
pub mod levels;
mod page;
pub mod pairing;
pub mod plugs;
pub mod ring_page;
pub mod session;
pub mod snoop;
mod summary;
pub mod tally;
pub mod target;
pub mod tracefs;
pub mod users;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::device::Behind;
use crate::machine::program::{Ended, ProcessIo, Program, ended_with};
use crate::run::arguments::seconds;
use crate::target::held::Neighbours;
use crate::trace::event::RequestKind;
use crate::trace::session::{Follow, Options, Session, Snoop, Traced};
use crate::trace::target::TraceTarget;
use crate::trace::users::Touches;
use crate::undo::Undo;
use crate::undo::signals;
use crate::{LabError, Run};

/// Trace the requests a device gets: as asked, split, merged, issued, completed.
#[derive(Debug, clap::Args)]
pub struct TraceArgs {
    /// The block device, or any file on it
    #[arg(long, short, value_name = "DEVICE|FILE")]
    device: PathBuf,
    /// Tell the requests of this process (and what it starts) from others', and end with it
    #[arg(long, conflicts_with = "command")]
    pid: Option<u32>,
    /// End after so many seconds; a program that was started here is ended then, too
    #[arg(long, value_name = "S", value_parser = seconds)]
    seconds: Option<f64>,
    /// Length of the intervals of the series
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=86_400_000))]
    interval_ms: u64,
    /// Memory of the kernel's buffer, per processor
    #[arg(long, value_name = "MIB", default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..=65_536))]
    buffer_mb: u64,
    /// Write a JSON line per request
    #[arg(long)]
    requests: bool,
    /// Show each request as soon as it is over, as biosnoop does, with its file
    #[arg(long)]
    snoop: bool,
    /// Write files for blkparse and btt
    #[arg(long)]
    blktrace: bool,
    /// Folder of the run
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// A program to start and trace; without one, until Ctrl-C
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

#[derive(Serialize)]
struct TraceSettings<'a> {
    device: &'a str,
    command: &'a [String],
    pid: Option<u32>,
    interval_ms: u64,
    buffer_mb: u64,
}

/// Runs the command. The exit status is that of a program that was started and has ended.
///
/// # Errors
/// The device cannot be traced, the program cannot be started, or the run folder cannot be
/// written.
pub fn run(args: &TraceArgs) -> Result<u8, LabError> {
    let target = TraceTarget::find(&args.device)?;
    let undo = Undo::open("trace")?;
    let stop = signals::stop_on_signal();
    let mut run = Run::create("trace", args.out.as_deref())?;
    run.settings(&TraceSettings {
        device: &target.name,
        command: &args.command,
        pid: args.pid,
        interval_ms: args.interval_ms,
        buffer_mb: args.buffer_mb,
    });
    let neighbours = Neighbours::look(std::slice::from_ref(&target.device), args.pid);
    let names_program = args.pid.is_some() || !args.command.is_empty();
    if names_program {
        run.device(target.device.clone());
    } else {
        run.device_of_others(target.device.clone());
    }
    let behind = Behind::find(&target.device.name);
    let options = Options {
        interval: Duration::from_millis(args.interval_ms),
        buffer_kb: args.buffer_mb << 10,
        blktrace: args.blktrace.then(|| run.path().join(&target.name)),
        requests: args.requests.then(|| run.path().join("requests.jsonl")),
        follow: if names_program { Follow::Program } else { Follow::Nobody },
        touches: Touches::All,
        snoop: if args.snoop { Snoop::Print } else { Snoop::Silent },
    };
    let mut session = Session::start(target, options, &undo)?;
    let program = match args.pid {
        Some(pid) => Some(Program::running(pid)?),
        None if args.command.is_empty() => None,
        None => Some(Program::start(&args.command, &undo)?),
    };
    let io_before = args.pid.and_then(ProcessIo::read);
    if args.snoop {
        crate::say!("{}", snoop::heading());
    }
    session.follow(program.as_ref().map(Program::pid))?;
    let begun = Instant::now();
    let mut go_on = || !stop.requested() && args.seconds.is_none_or(|s| begun.elapsed().as_secs_f64() < s);
    match &program {
        Some(program) => program.wait(Duration::from_millis(20), &mut go_on),
        None => {
            while go_on() {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
    let ended = program.map(|program| {
        let mut ended = program.end();
        ended.io = ended.io.map(|io| io_before.map_or(io, |before| io.since(before)));
        ended
    });
    let traced = session.finish()?;
    behind.iter().filter_map(Behind::doubt).chain(neighbours.doubts()).for_each(|doubt| run.doubt(doubt));
    if let (Some(pid), Some(io)) = (args.pid, ended.as_ref().and_then(|ended| ended.io)) {
        run.program(pid);
        run.programs_io(io);
    }
    if names_program {
        run.traced(&traced.target.device.name, traced.users.parties);
    }
    let code = ended.as_ref().and_then(|ended| ended.code);
    let still_runs = code.is_none() && !args.command.is_empty();
    record(run, &traced, ended.as_ref(), still_runs.then(|| ended_with("trace")))?;
    undo.undo()?; // ends a program that still runs
    Ok(code.map_or(0, |code| u8::try_from(code).unwrap_or(1)))
}

/// Writes the run folder, and the summary to the screen, with a line about the program.
fn record(
    mut run: Run,
    traced: &Traced,
    ended: Option<&Ended>,
    of_program: Option<String>,
) -> Result<(), LabError> {
    let mut lines = run.lines("intervals")?;
    for interval in &traced.tally.intervals {
        lines.write(interval)?;
    }
    run.lines("summary")?.write(&summary::Summary::new(traced, ended))?;
    run.compare_by(
        "summary",
        &["device"],
        &[("read_iops", true), ("write_iops", true), ("read_d2c_p50_ns", false), ("read_d2c_p99_ns", false)],
    );
    for doubt in traced.doubts() {
        run.doubt(doubt);
    }
    if let Some(code) = ended.and_then(|ended| ended.code).filter(|code| *code != 0) {
        run.doubt(format!("the program ended with code {code}"));
    }
    summary::print(traced, ended);
    let mut report = page::report(traced, ended);
    if let Some(line) = of_program {
        crate::say!("{line}");
        report.summary.push(line);
    }
    let page = run.finish(report)?;
    crate::say!("\n{}", page.display());
    Ok(())
}

pub(crate) use page::sections;
pub(crate) use summary::print_users;

/// Reads, writes, and the rest, in the order of tables.
const KINDS: [RequestKind; 5] =
    [RequestKind::Read, RequestKind::Write, RequestKind::Discard, RequestKind::Flush, RequestKind::Other];
