//! `lab watch`: a program, the machine and the devices, once a second, on one axis of time.
//!
//! It needs no root: processors, diskstats and memory are open to all users, the I/O of a
//! program to its owner. `--trace` needs root.

pub mod counted;
pub mod counters;
pub mod iostat;
pub mod layers;
pub(crate) mod mark;
mod marks;
pub mod observe;
pub mod page;
pub mod phase;
pub mod second;
mod subject;
pub mod tree;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use regex::Regex;
use serde::Serialize;

use crate::device::Behind;
use crate::group::caps::{CapDevice, Caps, CapsInForce, parse_bytes, parse_ops};
use crate::group::{GroupTotal, ProgramLimits};
use crate::machine::BlockDevice;
use crate::machine::others::{ProcessesIo, in_words};
use crate::machine::program::{ProcessIo, ended_with};
use crate::machine::stacked::counted_elsewhere;
use crate::run::arguments::seconds;
use crate::target::held::Neighbours;
use crate::trace::session::{Follow, Options, Session, Snoop};
use crate::trace::target::TraceTarget;
use crate::trace::users::Touches;
use crate::undo::Undo;
use crate::undo::signals;
use crate::watch::counted::{Asking, Counted};
use crate::watch::counters::CounterSource;
use crate::watch::iostat::DeviceSecond;
use crate::watch::layers::Layers;
use crate::watch::marks::Marks;
use crate::watch::observe::{Observation, Observed};
use crate::watch::phase::Phase;
use crate::watch::second::Second;
use crate::watch::subject::{Subject, SubjectEnd};
use crate::{LabError, Run};

/// Watch a program: processors, its I/O, devices, page faults, memory, once a second.
#[derive(Debug, clap::Args)]
pub struct WatchArgs {
    /// A process that runs already
    #[arg(long, conflicts_with = "command", group = "running")]
    pid: Option<u32>,
    /// The processes of a systemd unit
    #[arg(long, value_name = "NAME", conflicts_with = "command", group = "running")]
    unit: Option<String>,
    /// The processes of a control group: a path below /sys/fs/cgroup, or as in /proc/PID/cgroup
    #[arg(long, value_name = "PATH", conflicts_with = "command", group = "running")]
    cgroup: Option<PathBuf>,
    /// Start the program with so much memory at most, page cache included (needs root and control
    /// groups)
    #[arg(long, value_name = "SIZE", conflicts_with = "running", value_parser = crate::size::parse)]
    memory_limit: Option<u64>,
    /// Start the program with caps of its I/O on this device, or on that of this file (needs root
    /// and control groups); without it, on the first --device
    #[arg(long, value_name = "DEVICE|FILE", conflicts_with = "running")]
    cap_device: Option<PathBuf>,
    /// Cap of the bytes it reads per second: 125MiB
    #[arg(long, value_name = "SIZE", conflicts_with = "running", value_parser = parse_bytes)]
    cap_read: Option<u64>,
    /// Cap of the bytes it writes per second
    #[arg(long, value_name = "SIZE", conflicts_with = "running", value_parser = parse_bytes)]
    cap_write: Option<u64>,
    /// Cap of its reads per second
    #[arg(long, value_name = "N", conflicts_with = "running", value_parser = parse_ops)]
    cap_read_ops: Option<u64>,
    /// Cap of its writes per second
    #[arg(long, value_name = "N", conflicts_with = "running", value_parser = parse_ops)]
    cap_write_ops: Option<u64>,
    /// Devices, or files on them; without it, every device that was busy
    #[arg(long, short, value_delimiter = ',', value_name = "DEVICE|FILE")]
    device: Vec<PathBuf>,
    /// Also trace the requests of the first device (as `lab trace`; needs root)
    #[arg(long, requires = "device")]
    trace: bool,
    /// Length of the intervals; one cut short, of less than half, is counted to the one before
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=86_400_000))]
    interval_ms: u64,
    /// End after so many seconds; a program that was started here is ended then, too
    #[arg(long, value_name = "S", value_parser = seconds)]
    seconds: Option<f64>,
    /// A line of the program's output, or of --log, that matches begins a phase; its name is the
    /// first group of the pattern, else what matched
    #[arg(long, value_name = "REGEX")]
    mark_on: Option<Regex>,
    /// Look for --mark-on in this file as it grows, not in the program's output
    #[arg(long, value_name = "FILE", requires = "mark_on")]
    log: Option<PathBuf>,
    /// Each line written into this FIFO begins a phase; it is made when it is not there
    #[arg(long, value_name = "FIFO")]
    marks: Option<PathBuf>,
    /// Numbers told once per interval by a command (JSON, or lines of a name and a number), or by
    /// snowmelt:URL, postgresql:CONNINFO, virtuoso:PORT[,USER,PASSWORD]
    #[arg(long, value_name = "SOURCE")]
    counters: Vec<CounterSource>,
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
    /// Its exit code, when it was started here: 128 and the signal when one ended it.
    pub code: Option<i32>,
    /// Memory of its control group over all its life, when one is watched or was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupTotal>,
    /// Caps of its I/O, as the kernel told them after they were set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caps: Option<CapsInForce>,
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
    /// Those of them that are made of others of them, which have their requests, too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counted_elsewhere: Vec<String>,
}

/// `watch.json`: everything in one file.
#[derive(Serialize)]
struct Everything<'a> {
    total: &'a Total,
    seconds: &'a [Second],
    phases: &'a [Phase],
    layers: &'a [Layers],
}

impl WatchArgs {
    /// The watched program runs already.
    fn is_running(&self) -> bool {
        self.pid.is_some() || self.unit.is_some() || self.cgroup.is_some()
    }

    /// Limits of the program that is started.
    fn limits(&self) -> Result<ProgramLimits, LabError> {
        let caps = Caps {
            read_bytes_per_s: self.cap_read,
            write_bytes_per_s: self.cap_write,
            reads_per_s: self.cap_read_ops,
            writes_per_s: self.cap_write_ops,
        };
        let argument = |text: &str| Err(LabError::Argument(text.into()));
        let caps = match (self.cap_device.as_ref().or(self.device.first()), caps.is_empty()) {
            (_, true) if self.cap_device.is_some() => {
                return argument(
                    "--cap-device needs a cap: --cap-read 125MiB, --cap-write SIZE, --cap-read-ops N, --cap-write-ops N",
                );
            }
            (_, true) => None,
            (Some(path), false) => Some((CapDevice::find(path)?, caps)),
            (None, false) => return argument("name the device of the caps: --cap-device DEVICE|FILE"),
        };
        Ok(ProgramLimits { memory_bytes: self.memory_limit, caps })
    }
}

/// Runs the command. The exit status is that of a program that was started and has ended.
///
/// # Errors
/// The program cannot be started or found, or the run folder cannot be written.
pub fn run(args: &WatchArgs) -> Result<u8, LabError> {
    if !args.is_running() && args.command.is_empty() {
        return Err(LabError::Argument(
            "name what to watch: --pid P, --unit NAME, --cgroup PATH, or -- CMD".into(),
        ));
    }
    args.limits()?; // before anything is made
    let subject = Subject::from_args(args)?;
    let undo = Undo::open("watch")?;
    let stop = signals::stop_on_signal();
    let mut run = Run::create("watch", args.out.as_deref())?;
    let devices = devices(args, &mut run)?;
    let mut session = match args.device.first().filter(|_| args.trace) {
        Some(path) => Some(Session::start(TraceTarget::find(path)?, trace_options(args), &undo)?),
        None => None,
    };
    let looked_at: Vec<BlockDevice> =
        args.device.iter().filter_map(|path| BlockDevice::find(path).ok()?).collect();
    let neighbours = Neighbours::look(&looked_at, args.pid);
    let emulated: Vec<Behind> = devices.iter().filter_map(|name| Behind::find(name)).collect();
    let mut marks = Marks::new(args.mark_on.clone(), args.log.as_deref());
    if let Some(fifo) = &args.marks {
        marks.add_fifo(fifo, &undo)?;
    }
    mark::register(&mut marks, run.path(), &undo)?;
    let subject = subject.begin(args, &mut marks, &undo)?;
    if let Some(session) = &mut session {
        session.follow(subject.pid())?;
    }
    subject.pids().into_iter().for_each(|pid| run.program(pid));
    let watched = watch(args, subject, &devices, &mut marks, &stop, &mut run)?;
    // Children that have ended are in the counts of this process.
    if watched.total.code.is_none() {
        run.programs_io(watched.total.io);
    }
    let traced = session.map(Session::finish).transpose()?;
    if let Some(traced) = &traced {
        run.traced(&traced.target.device.name, traced.users.parties);
        traced.doubts().into_iter().for_each(|doubt| run.doubt(doubt));
    }
    emulated.iter().filter_map(Behind::doubt).chain(neighbours.doubts()).for_each(|doubt| run.doubt(doubt));
    let code = watched.total.code;
    let pass_on = |marks: &mut Marks| marks.pass_on_rest(&|| !stop.requested());
    if code.is_some() {
        pass_on(&mut marks); // before our own lines
    }
    finish(args, run, watched, traced.as_ref())?;
    undo.undo()?; // ends a program that still runs
    pass_on(&mut marks);
    Ok(code.map_or(0, |code| u8::try_from(code).unwrap_or(1)))
}

fn trace_options(args: &WatchArgs) -> Options {
    Options {
        interval: Duration::from_millis(args.interval_ms),
        buffer_kb: 16 << 10,
        blktrace: None,
        requests: None,
        follow: Follow::Program,
        touches: Touches::All,
        snoop: Snoop::Silent,
    }
}

/// Names in diskstats: those asked for, or every whole device.
fn devices(args: &WatchArgs, run: &mut Run) -> Result<Vec<String>, LabError> {
    let mut names = Vec::new();
    for path in &args.device {
        let target = TraceTarget::find(path)?;
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
    observed: Observed,
    counted: Vec<Counted>,
    total: Total,
    /// Programs beside it, and the bytes they moved.
    beside: Vec<(String, u64)>,
}

fn watch(
    args: &WatchArgs,
    subject: Subject,
    devices: &[String],
    marks: &mut Marks,
    stop: &signals::Stop,
    run: &mut Run,
) -> Result<Watched, LabError> {
    // While it is there; its number alone would be another one each time.
    let name = subject.name(args);
    let tree = subject.tree();
    let (mut own, beside) = (HashSet::from_iter(subject.pids()), ProcessesIo::now());
    own.insert(std::process::id());
    let interval = Duration::from_millis(args.interval_ms);
    let mut observation = Observation::begin(tree, devices.to_vec(), interval, Some(run.lines("seconds")?));
    let begun = observation.begun();
    let ask = |source: &CounterSource| Asking::start(source.clone(), begun, interval);
    let asking: Vec<Asking> = args.counters.iter().map(ask).collect::<Result<_, LabError>>()?;
    let limit = args.seconds.map(|s| begun + Duration::from_secs_f64(s));
    let mut due = begun;
    let mut over = false;
    while !over {
        due += interval;
        let until = limit.map_or(due, |limit| due.min(limit));
        while Instant::now() < until && !over {
            over = subject.is_over() || stop.requested();
            marks.poll().into_iter().for_each(|mark| observation.mark(mark));
            let left = until.saturating_duration_since(Instant::now());
            std::thread::sleep(left.min(Duration::from_millis(5)));
        }
        over |= limit.is_some_and(|limit| Instant::now() >= limit);
        if !over {
            observation.tick()?;
        }
    }
    marks.settle();
    marks.poll().into_iter().for_each(|mark| observation.mark(mark));
    let observed = observation.finish()?;
    let counted = asking.into_iter().map(Asking::finish).collect();
    let (caps, doubts) = subject.caps();
    doubts.into_iter().for_each(|doubt| run.doubt(doubt));
    let beside = ProcessesIo::now().since(&beside, &own);
    let total = Total { caps, ..Total::new(args, name, subject.end(), &observed) };
    Ok(Watched { observed, counted, total, beside })
}

impl Total {
    fn new(args: &WatchArgs, program: String, end: SubjectEnd, observed: &Observed) -> Total {
        let (then, now) = (observed.first.tree(), observed.last.tree());
        // A program started here began with nothing, also what it did before the first reading
        // is its own.
        let from = if args.is_running() { *then } else { tree::TreeCounts::default() };
        let devices = busy(&observed.whole, args);
        Total {
            program,
            code: end.code,
            group: end.group,
            caps: None,
            seconds: observed.whole.length_s,
            user_s: now.user_s - from.user_s,
            system_s: now.system_s - from.system_s,
            minor_faults: now.minor_faults.saturating_sub(from.minor_faults),
            major_faults: now.major_faults.saturating_sub(from.major_faults),
            rss_max_bytes: observed.seconds.iter().map(|s| s.program.rss_bytes).max().unwrap_or(0),
            io: now.io.since(from.io),
            counted_elsewhere: counted_elsewhere(&devices.keys().map(String::as_str).collect::<Vec<_>>()),
            devices,
        }
    }

    /// The devices, without those whose requests others of them have.
    fn counted_once(&self) -> impl Iterator<Item = &DeviceSecond> {
        let is_counted = |name: &&String| !self.counted_elsewhere.contains(name);
        self.devices.iter().filter(move |(name, _)| is_counted(name)).map(|(_, device)| device)
    }
}

/// Bytes of the devices that are worth a word when the program had no part in them.
const FOREIGN_BYTES: f64 = 1e6;

/// A line when most of what the devices moved was not the program's.
fn foreign(total: &Total, beside: &[(String, u64)]) -> Option<String> {
    let moved = |d: &DeviceSecond| (d.rkb_s + d.wkb_s) * 1024.0 * total.seconds;
    let devices: f64 = total.counted_once().map(moved).sum();
    let own = (total.io.read_bytes + total.io.write_bytes) as f64;
    (devices > FOREIGN_BYTES && own < devices / 2.0).then(|| {
        format!(
            "Of the {} that the devices moved, {} are the program's and its children's: another process did the \
             rest{}. If that is a server which the program asked, watch it with --pid.",
            crate::size::about(devices),
            crate::size::about(own),
            in_words(beside).map_or(String::new(), |names| format!(" ({names})"))
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
    let Watched { observed, counted, total, beside } = watched;
    let Observed { seconds, phases, .. } = &observed;
    if args.device.is_empty() {
        for name in total.devices.keys() {
            if let Ok(Some(device)) = BlockDevice::find(&Path::new("/dev").join(name)) {
                run.device_of_others(device); // it was not known which would be busy
            }
        }
    }
    run.settings(&serde_json::json!({
        "program": total.program,
        "interval_ms": args.interval_ms,
        "trace": args.trace,
        "memory_limit": args.memory_limit,
        "caps": total.caps,
    }));
    run.compare_by(
        "total",
        &["program"],
        &[("seconds", false), ("user_s", false), ("system_s", false), ("major_faults", false)],
    );
    run.lines("total")?.write(&total)?;
    if !phases.is_empty() {
        let mut lines = run.lines("phases")?;
        phases.iter().try_for_each(|phase| lines.write(phase))?;
    }
    if !counted.is_empty() {
        let mut lines = run.lines("counters")?;
        counted.iter().try_for_each(|counted| counted.write(&mut lines))?;
        counted.iter().filter_map(Counted::doubt).for_each(|doubt| run.doubt(doubt));
    }
    let layers = layers::layers(&total, traced, &beside);
    let path = run.path().join("watch.json");
    let text = serde_json::to_string(&Everything { total: &total, seconds, phases, layers: &layers })
        .expect("plain data");
    std::fs::write(&path, text + "\n").map_err(|e| LabError::file("write", &path, e))?;
    print(&total);
    traced.iter().for_each(|traced| crate::trace::print_users(traced));
    layers.iter().flat_map(|of| &of.differences).for_each(|line| crate::say!("{line}"));
    let title = format!("Watched: {}", total.program);
    let mut report = page::report(&title, &observed, &total, &layers, &counted, traced);
    if let Some(line) = foreign(&total, &beside) {
        crate::say!("{line}");
        report.summary.push(line);
    }
    if total.code.is_none() && !args.is_running() {
        crate::say!("{}", ended_with("watch"));
        report.summary.push(ended_with("watch"));
    }
    let page = run.finish(report)?;
    crate::say!("\n{}", page.display());
    Ok(())
}

fn print(total: &Total) {
    crate::say!(
        "{}: {:.2} s, {:.2} s user, {:.2} s system, {} major faults, {} at most",
        snowmelt_base::printable::line(&total.program),
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
