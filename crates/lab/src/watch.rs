//! `lab watch`: a program, the machine and the devices, once a second, on one axis of time.
//!
//! It needs no root: processors, diskstats and memory are open to all users, the I/O of a
//! program to its owner. `--trace` needs root.

pub mod iostat;
mod page;
pub mod second;
pub mod tree;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::machine::BlockDevice;
use crate::machine::program::{ProcessIo, Program};
use crate::trace::session::{Follow, Options, Session};
use crate::trace::target::TraceTarget;
use crate::undo::Undo;
use crate::undo::signals;
use crate::watch::iostat::DeviceSecond;
use crate::watch::second::{Reading, Second};
use crate::watch::tree::Tree;
use crate::{LabError, Run};

/// Watch a program: processors, its I/O, devices, page faults, memory, once a second.
#[derive(Debug, clap::Args)]
pub struct WatchArgs {
    /// A process that runs already
    #[arg(long, conflicts_with = "command")]
    pid: Option<u32>,
    /// Devices, or files on them; without it, every device that was busy
    #[arg(long, short, value_delimiter = ',', value_name = "DEVICE|FILE")]
    device: Vec<PathBuf>,
    /// Also trace the requests of the first device (as `lab trace`; needs root)
    #[arg(long, requires = "device")]
    trace: bool,
    /// Length of the intervals; one cut short, of less than half, is counted to the one before
    #[arg(long, value_name = "MS", default_value_t = 1000)]
    interval_ms: u64,
    /// End after so many seconds
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,
    /// Folder of the run
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The program to start and watch
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

/// Sums over the whole watch: `watch.json`.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Total {
    /// The watched program and device.
    pub program: String,
    /// Its exit code, when it was started here.
    pub code: Option<i32>,
    /// How long.
    pub seconds: f64,
    /// Processor time in user mode.
    pub user_s: f64,
    /// Processor time in the kernel.
    pub system_s: f64,
    /// Page faults answered from memory.
    pub minor_faults: u64,
    /// Page faults that waited for storage.
    pub major_faults: u64,
    /// Most memory seen at the end of an interval.
    pub rss_max_bytes: u64,
    /// Its calls and bytes.
    pub io: ProcessIo,
    /// Means over the whole time, by device.
    pub devices: BTreeMap<String, DeviceSecond>,
}

/// `watch.json`: everything in one file.
#[derive(Serialize)]
struct Everything<'a> {
    total: &'a Total,
    seconds: &'a [Second],
}

/// Runs the command.
///
/// # Errors
/// The program cannot be started or found, or the run folder cannot be written.
pub fn run(args: &WatchArgs) -> Result<(), LabError> {
    if args.interval_ms == 0 {
        return Err(LabError::Argument("--interval-ms must be at least 1".into()));
    }
    if args.pid.is_none() && args.command.is_empty() {
        return Err(LabError::Argument("name what to watch: --pid P, or -- CMD".into()));
    }
    let undo = Undo::open("watch")?;
    let stop = signals::stop_on_signal();
    let mut run = Run::create("watch", args.out.as_deref())?;
    let devices = devices(args, &mut run)?;
    let mut session = match args.device.first().filter(|_| args.trace) {
        Some(path) => Some(Session::start(TraceTarget::of(path)?, trace_options(args), &undo)?),
        None => None,
    };
    let program = match args.pid {
        Some(pid) => Program::running(pid)?,
        None => Program::start(&args.command, &undo)?,
    };
    if let Some(session) = &mut session {
        session.follow(Some(program.pid()))?;
    }
    let watched = watch(args, program, &devices, &stop, &mut run)?;
    let traced = session.map(Session::finish).transpose()?;
    if let Some(traced) = &traced {
        traced.doubts().into_iter().for_each(|doubt| run.doubt(doubt));
    }
    finish(args, run, watched, traced.as_ref())?;
    undo.undo()?;
    Ok(())
}

fn trace_options(args: &WatchArgs) -> Options {
    Options {
        interval: Duration::from_millis(args.interval_ms),
        buffer_kb: 16 << 10,
        blktrace: None,
        requests: None,
        follow: Follow::Program,
    }
}

/// Names in diskstats: those asked for, or every whole device.
fn devices(args: &WatchArgs, run: &mut Run) -> Result<Vec<String>, LabError> {
    let mut names = Vec::new();
    for path in &args.device {
        let target = TraceTarget::of(path)?;
        run.device(target.device.clone());
        names.push(target.name);
    }
    if names.is_empty() {
        let entries = std::fs::read_dir("/sys/block").into_iter().flatten();
        names = entries.filter_map(|e| e.ok()?.file_name().into_string().ok()).collect();
        names.sort();
    }
    Ok(names)
}

struct Watched {
    seconds: Vec<Second>,
    total: Total,
}

fn watch(
    args: &WatchArgs,
    program: Program,
    devices: &[String],
    stop: &signals::Stop,
    run: &mut Run,
) -> Result<Watched, LabError> {
    let mut lines = run.lines("seconds")?;
    let mut tree = Tree::of(program.pid());
    // While it is there; its number alone would be another one each time.
    let name = command_line(program.pid());
    let begun = Instant::now();
    let first = Reading::now(&mut tree, devices);
    let mut seconds = Vec::new();
    let mut keep = |second: Second| lines.write(&second).map(|()| seconds.push(second));
    // Begin and end of the newest interval, which may still grow.
    let mut newest: Option<(Reading, Reading)> = None;
    let interval = Duration::from_millis(args.interval_ms);
    let mut due = begun;
    let mut over = false;
    while !over {
        due += interval;
        let limit = args.seconds.map(|s| begun + Duration::from_secs_f64(s));
        let until = limit.map_or(due, |limit| due.min(limit));
        while Instant::now() < until && !over {
            over = program.is_over() || stop.requested();
            let left = until.saturating_duration_since(Instant::now());
            std::thread::sleep(left.min(Duration::from_millis(5)));
        }
        over |= limit.is_some_and(|limit| Instant::now() >= limit);
        let reading = Reading::now(&mut tree, devices);
        newest = Some(match newest {
            None => (first.clone(), reading),
            // Rates over a few milliseconds at the end say nothing.
            Some((begin, end)) if reading.seconds_after(&end) < interval.as_secs_f64() / 2.0 => {
                (begin, reading)
            }
            Some((begin, end)) => {
                keep(end.since(&begin, begun))?;
                (end, reading)
            }
        });
    }
    let (begin, last) = newest.expect("the loop ran once");
    keep(last.since(&begin, begun))?;
    let whole = last.since(&first, begun);
    // A program started here began with nothing, also what it did before the first reading is
    // its own.
    let own = |then: u64| if args.pid.is_some() { then } else { 0 };
    let (then, now) = (first.tree(), last.tree());
    let from = if args.pid.is_some() { *then } else { tree::TreeCounts::default() };
    let ended = program.end();
    let total = Total {
        program: match args.pid {
            Some(pid) => named(pid, &name),
            None => args.command.join(" "),
        },
        code: ended.code,
        seconds: whole.length_s,
        user_s: now.user_s - from.user_s,
        system_s: now.system_s - from.system_s,
        minor_faults: now.minor_faults.saturating_sub(own(then.minor_faults)),
        major_faults: now.major_faults.saturating_sub(own(then.major_faults)),
        rss_max_bytes: seconds.iter().map(|s: &Second| s.program.rss_bytes).max().unwrap_or(0),
        io: now.io.since(from.io),
        devices: busy(&whole, args),
    };
    Ok(Watched { seconds, total })
}

/// The command line of a process; empty when it has none, or is gone.
fn command_line(pid: u32) -> String {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = words.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    words.map(|word| String::from_utf8_lossy(word).into_owned()).collect::<Vec<_>>().join(" ")
}

fn named(pid: u32, name: &str) -> String {
    if name.is_empty() { format!("process {pid}") } else { name.to_owned() }
}

/// Bytes of the devices that are worth a word when the program had no part in them.
const FOREIGN_BYTES: f64 = 1e6;

/// A line when most of what the devices moved was not the program's.
fn foreign(total: &Total) -> Option<String> {
    let moved = |d: &DeviceSecond| (d.rkb_s + d.wkb_s) * 1024.0 * total.seconds;
    let devices: f64 = total.devices.values().map(moved).sum();
    let own = (total.io.read_bytes + total.io.write_bytes) as f64;
    (devices > FOREIGN_BYTES && own < devices / 2.0).then(|| {
        format!(
            "Of the {} that the devices moved, {} are the program's and its children's: another process did the \
             rest. If that is a server which the program asked, watch it with --pid.",
            crate::size::about(devices),
            crate::size::about(own)
        )
    })
}

/// The devices worth showing: those asked for, else those that did something.
fn busy(whole: &Second, args: &WatchArgs) -> BTreeMap<String, DeviceSecond> {
    let did = |d: &DeviceSecond| d.r_s + d.w_s + d.d_s + d.f_s > 0.0;
    let shown = whole.devices.iter().filter(|(_, d)| !args.device.is_empty() || did(d));
    shown.map(|(name, d)| (name.clone(), *d)).collect()
}

fn finish(
    args: &WatchArgs,
    mut run: Run,
    watched: Watched,
    traced: Option<&crate::trace::session::Traced>,
) -> Result<(), LabError> {
    let Watched { seconds, total } = watched;
    if args.device.is_empty() {
        for name in total.devices.keys() {
            if let Ok(Some(device)) = BlockDevice::of(&Path::new("/dev").join(name)) {
                run.device(device);
            }
        }
    }
    run.settings(&serde_json::json!({ "program": total.program, "interval_ms": args.interval_ms, "trace": args.trace }));
    run.compare_by(
        "total",
        &["program"],
        &[("seconds", false), ("user_s", false), ("system_s", false), ("major_faults", false)],
    );
    run.lines("total")?.write(&total)?;
    let path = run.path().join("watch.json");
    let text = serde_json::to_string(&Everything { total: &total, seconds: &seconds }).expect("plain data");
    std::fs::write(&path, text + "\n").map_err(|e| LabError::file("write", &path, e))?;
    print(&total);
    let title = format!("Watched: {}", total.program);
    let mut report = page::report(&title, &seconds, &total, traced);
    if let Some(line) = foreign(&total) {
        crate::say!("{line}");
        report.summary.push(line);
    }
    let page = run.finish(report)?;
    crate::say!("\n{}", page.display());
    Ok(())
}

fn print(total: &Total) {
    crate::say!(
        "{}: {:.2} s, {:.2} s user, {:.2} s system, {} major faults, {} at most",
        total.program,
        total.seconds,
        total.user_s,
        total.system_s,
        total.major_faults,
        crate::size::about(total.rss_max_bytes as f64)
    );
    for (name, d) in &total.devices {
        crate::say!(
            "{name:8} r/s {:9.1} rkB/s {:10.1} r_await {:7.2} rareq-sz {:7.1}  w/s {:8.1} wkB/s {:10.1} w_await {:7.2}  aqu-sz {:6.2} %util {:5.1}",
            d.r_s,
            d.rkb_s,
            d.r_await,
            d.rareq_sz,
            d.w_s,
            d.wkb_s,
            d.w_await,
            d.aqu_sz,
            d.util
        );
    }
}
