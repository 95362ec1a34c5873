//! `lab scan`: full scans of a table at rising degrees of parallelism, under every scheduler
//! and setting on the command line.
//!
//! For every round, setup and degree, in an order that rotates:
//!
//! 1. Set the device, and read the settings back.
//! 2. Open the files anew, and throw them out of the page cache, with proof.
//! 3. Scan, and count.
//!
//! At the end, however it comes, everything is set back.

mod beside;
pub mod cell;
pub mod measure;
mod page;
pub mod plan;
pub mod setting;
mod sweep;
pub mod table;
pub mod workers;

use std::path::{Path, PathBuf};

use crate::scan::plan::{Beside, Chunks, Data, Layout, Lists, ScanEngine, TableSource, WorkerReads, Workers};
use crate::scan::table::ScanTable;
use snowmelt_base::random::GOLDEN;
use snowmelt_io::{Access, FileDevice, IoEngine, ReadDevice};
use snowmelt_io_experiments::TunedPolicy;

use crate::device::Behind;
use crate::device::read_ahead::ReadAhead;
use crate::device::scheduler::{SchedulerChoice, chosen};
use crate::machine::BlockDevice;
use crate::run::RunFolder;
use crate::run::arguments::{Given, Idle, OnOff};
use crate::target::data_file;
use crate::target::held::Busy;
use crate::target::in_use::{Claim, overlap};
use crate::trace::target::TraceTarget;
use crate::undo::{Undo, signals};
use crate::{LabError, size};

/// Scan a table in parallel under every scheduler: elapsed time against the number of workers.
#[derive(Debug, clap::Args)]
pub struct ScanArgs {
    #[command(flatten)]
    given: Given,
    /// The table: a file or block device, which is only read; with --table SIZE a folder, with
    /// --table DB:INDEX the stripe of the database
    path: PathBuf,
    /// Make a table of this size in the folder, and remove it in the end; or scan an index of a
    /// Snowmelt database through its own engine, with so many threads: db:psog
    #[arg(long, value_name = "SIZE|DB:INDEX")]
    table: Option<TableSource>,
    /// Scan only so much of it
    #[arg(long, value_name = "SIZE", value_parser = size::parse, conflicts_with = "table")]
    size: Option<u64>,
    /// More files or devices for layouts over several
    #[arg(long, value_delimiter = ',', value_name = "PATH")]
    files: Vec<PathBuf>,
    /// Degrees of parallelism
    #[arg(long, value_delimiter = ',', default_value = "1,2,3,4,5,6,7,8,20,40,80")]
    dop: Vec<u32>,
    /// none, mq-deadline, kyber, bfq, bfq-anticipatory, as-is, or all that the device offers;
    /// tunables behind colons: mq-deadline:fifo_batch=1
    #[arg(long, visible_alias = "schedulers", value_delimiter = ',', default_value = "as-is")]
    scheduler: Vec<SchedulerChoice>,
    /// Read-ahead of the device; without it, as it is
    #[arg(long, value_delimiter = ',', value_name = "KIB")]
    read_ahead_kb: Vec<u64>,
    /// Past the page cache or through it
    #[arg(long, value_delimiter = ',', default_value = "on")]
    direct: Vec<OnOff>,
    /// Independent workers, or ones that share a scan through Snowmelt's elevator
    #[arg(long, value_delimiter = ',', default_value = "independent")]
    workers: Vec<Workers>,
    /// The order of the queue that coordinated workers, or the engine, read through (repeatable):
    /// elevator, fifo, deadline, anticipatory, fair; with numbers: deadline:read-expire=50,batch=4
    #[arg(long, value_name = "NAME[:KEY=VALUE]")]
    queue: Vec<TunedPolicy>,
    /// Size of an independent worker's reads; 8k+1m mixes small and large ones
    #[arg(long, value_delimiter = ',', default_value = "128k")]
    chunk: Vec<Chunks>,
    /// Engine of an independent worker's reads: sync (one after the other), uring, threads,
    /// posix-aio; the run tells how many were in flight at the device
    #[arg(long, visible_alias = "ioengine", value_delimiter = ',', default_value = "sync")]
    engine: Vec<ScanEngine>,
    /// Reads that a worker keeps in flight with an asynchronous engine; without it, 8
    #[arg(long, visible_alias = "iodepth", value_delimiter = ',')]
    depth: Vec<u32>,
    /// How the table lies on its files
    #[arg(long, value_delimiter = ',', default_value = "single")]
    layout: Vec<Layout>,
    /// Scans at once, each of so many workers
    #[arg(long, value_delimiter = ',', default_value = "1")]
    users: Vec<u32>,
    /// Data that several users scan
    #[arg(long, value_delimiter = ',', default_value = "same")]
    data: Vec<Data>,
    /// Load beside the scan
    #[arg(long, value_delimiter = ',', default_value = "nothing")]
    beside: Vec<Beside>,
    /// File for --beside write and sort: made and removed, or an existing one with --destroy
    #[arg(long, value_name = "FILE")]
    scratch: Option<PathBuf>,
    /// Allow writing to an existing scratch file
    #[arg(long)]
    destroy: bool,
    /// How often every cell is measured
    #[arg(long, default_value_t = 2, value_parser = repeats)]
    repeat: usize,
    /// A command to run as the scan instead, by the shell; {dop}, {path} and {queue} are filled
    /// in
    #[arg(long, value_name = "CMD")]
    exec: Option<String>,
    /// A command to run by the shell before each scan, untimed: to empty the buffers of a server,
    /// say, by a restart
    #[arg(long, value_name = "CMD")]
    before: Option<String>,
    /// A further file to be thrown out of the page cache before each scan, or a folder with all
    /// its files (repeatable)
    #[arg(long, value_name = "PATH")]
    cold: Vec<PathBuf>,
    /// Do without the block trace (seeks, depth at the device)
    #[arg(long)]
    no_trace: bool,
    #[command(flatten)]
    busy: Busy,
    /// Show what would be set and run, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Folder of the run
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl ScanArgs {
    /// The command that is the scan, if one is: with places for what differs from cell to cell.
    fn command(&self) -> Option<String> {
        match (&self.exec, &self.table) {
            (Some(command), _) => Some(command.clone()),
            (None, Some(TableSource::Index(db, index))) => {
                let program = this_command();
                let [program, db, index] = [&program, db.as_str(), index.as_str()].map(quoted);
                let queue = if self.queue.is_empty() { "" } else { " --queue {queue}" };
                Some(format!("{program} scan-index {db} {index} --threads {{dop}}{queue}"))
            }
            _ => None,
        }
    }
}

/// This program, if it is the command: it may be a library of another.
fn this_command() -> String {
    const NAME: &str = "snowmelt-lab";
    let program = std::env::current_exe().unwrap_or_default();
    let is_command = program.file_stem().is_some_and(|stem| stem == NAME);
    if is_command { program.to_string_lossy().into_owned() } else { NAME.to_owned() }
}

/// A word as the shell reads it back.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Size of the scratch file that is made for writing.
const SCRATCH_BYTES: u64 = 64 << 20;

/// Runs the command.
///
/// # Errors
/// The arguments make no sense together, a setting is refused, or a scan fails.
pub fn run(args: &ScanArgs) -> Result<(), LabError> {
    let mut lists = lists(args)?;
    let place = match (&args.table, args.path.is_dir()) {
        (None | Some(TableSource::Index(..)), true) => {
            return Err(LabError::refused(
                args.path.display(),
                "is a folder",
                "name a table in it, or make one with --table SIZE",
            ));
        }
        (Some(TableSource::Made(_)), false) => {
            return Err(LabError::Argument(format!(
                "{}: --table makes a table in a folder",
                args.path.display()
            )));
        }
        _ => args.path.clone(),
    };
    check_layouts(args)?;
    let (_, devices) = targets(&place, args);
    setting::check(&lists.read_ahead_kb, &devices)?;
    lists.schedulers = chosen(&args.scheduler, &devices)?;
    if args.dry_run {
        show(args, &lists, &lists.setups(), &devices);
        return Ok(());
    }
    let undo = Undo::open("scan")?;
    let folder = RunFolder::create("scan", args.out.as_deref())?;
    let claim = hold(args, &place, &devices, &undo)?;
    // Once more: the command that was waited for may have had other settings.
    let (targets, devices) = targets(&place, args);
    lists.schedulers = chosen(&args.scheduler, &devices)?;
    let setups = lists.setups();
    let path = match args.table {
        Some(TableSource::Made(len)) => {
            make_file(&place.join(format!("snowmelt-lab-table-{}", std::process::id())), len, &undo)?
        }
        _ => place,
    };
    let scratch = scratch(args, &undo)?;
    let made = claim.zip(scratch.as_deref());
    let _claim = made.map(|(claim, scratch)| claim.once_made(scratch)).transpose()?;
    let mut run = folder.begin();
    run.settings(&lists);
    for device in &devices {
        match args.exec {
            // It may ask a server, whose reads are the scan.
            Some(_) => run.device_of_others(device.clone()),
            None => run.device(device.clone()),
        }
        Behind::find(&device.name).iter().for_each(|behind| run.program(behind.server()));
    }
    if targets.is_empty() {
        run.doubt("no block device is behind the table: requests, depth and seeks cannot be seen");
    }
    let read_ahead: Vec<ReadAhead> = devices.iter().filter_map(ReadAhead::read).collect();
    read_ahead.iter().try_for_each(|read_ahead| read_ahead.hold(&undo))?;
    let sweep = sweep::Sweep {
        args,
        lists: &lists,
        setups: &setups,
        targets,
        devices,
        path,
        scratch,
        undo,
        read_ahead,
    };
    sweep.run(run)
}

/// Holds the disks of the table, and takes the scratch file or device that is written to.
fn hold(
    args: &ScanArgs,
    place: &Path,
    devices: &[BlockDevice],
    undo: &Undo,
) -> Result<Option<Claim>, LabError> {
    let stop = signals::stop_on_signal();
    let Some(scratch) = args.scratch.as_ref().filter(|_| writes_beside(args)) else {
        args.busy.hold(devices, undo, stop.flag())?;
        return Ok(None);
    };
    let mut tables = std::iter::once(place).chain(args.files.iter().map(PathBuf::as_path));
    if tables.any(|table| overlap(table, scratch)) {
        return Err(LabError::refused(
            scratch.display(),
            "is the table, or a part of it, which is only read",
            "name another file for --scratch",
        ));
    }
    args.busy.take(scratch, args.destroy, devices, undo, stop.flag()).map(Some)
}

/// The devices below the table's files, each once, as they are set now.
fn targets(place: &Path, args: &ScanArgs) -> (Vec<TraceTarget>, Vec<BlockDevice>) {
    let mut targets: Vec<TraceTarget> = Vec::new();
    for path in std::iter::once(place).chain(args.files.iter().map(PathBuf::as_path)) {
        let target =
            TraceTarget::find(path).ok().filter(|t| targets.iter().all(|known| known.name != t.name));
        targets.extend(target);
    }
    let devices = targets.iter().map(|target| target.device.clone()).collect();
    (targets, devices)
}

fn lists(args: &ScanArgs) -> Result<Lists, LabError> {
    let wrong = |what: &str| Err(LabError::Argument(what.to_string()));
    if args.dop.is_empty() || args.dop.contains(&0) || args.users.contains(&0) {
        return wrong("--dop and --users begin at 1");
    }
    let largest = |numbers: &[u32]| u64::from(numbers.iter().max().copied().unwrap_or(1));
    let most = largest(&args.dop) * largest(&args.users);
    if most > 4096 {
        return wrong("more than 4096 workers at once tell nothing about a disk: fewer --dop or --users");
    }
    if args.exec.is_some() && matches!(args.table, Some(TableSource::Index(..))) {
        return wrong("--exec is a scan already: leave out --table DB:INDEX");
    }
    match args.command() {
        Some(command) => args.given.refuse_idle(&idle_beside_command(args, &command))?,
        None => args.given.refuse_idle(&idle_of_workers(args))?,
    }
    if args.exec.as_ref().is_some_and(|command| args.dop.len() > 1 && !command.contains("{dop}")) {
        return wrong("the command has no {dop}, so all degrees would be the same: add it, or --dop 1");
    }
    let reads = worker_reads(args, most)?;
    if writes_beside(args) && args.scratch.is_none() {
        return wrong("--beside write and sort need a file to write to: --scratch FILE on the same device");
    }
    Ok(Lists {
        schedulers: Vec::new(), // known when the devices are
        read_ahead_kb: args.read_ahead_kb.clone(),
        direct: args.direct.clone(),
        workers: args.workers.clone(),
        chunks: args.chunk.clone(),
        reads,
        layouts: args.layout.clone(),
        users: args.users.clone(),
        data: args.data.clone(),
        beside: args.beside.clone(),
        queues: args.queue.clone(),
        by_command: args.command().is_some(),
    })
}

/// Switches without an effect on a scan by workers of ours.
fn idle_of_workers(args: &ScanArgs) -> Vec<Idle<'static>> {
    let independent = args.workers.contains(&Workers::Independent);
    let shared = args.workers.contains(&Workers::Coordinated);
    let is_sync = args.engine.iter().all(|engine| engine.0 == IoEngine::Inline);
    let is_single = args.layout.iter().all(|layout| *layout == Layout::Single);
    let is_direct = args.direct.iter().all(|direct| direct.is_on());
    let own_way = "a shared scan reads ahead in its own way; add --workers independent, or leave it out";
    vec![
        ("queue", !shared, "independent workers have no queue of ours; add --workers coordinated"),
        ("engine", !independent, own_way),
        ("depth", !independent, own_way),
        ("chunk", !independent, own_way),
        ("depth", is_sync, "it is of an asynchronous engine; add --engine uring, threads or posix-aio"),
        (
            "files",
            is_single,
            "the table is on the first file; add --layout jbod4, stripe-fine or stripe-coarse",
        ),
        (
            "data",
            args.users.iter().all(|users| *users == 1),
            "one user scans all of it; add --users 2, or more",
        ),
        ("read-ahead-kb", is_direct, "the kernel reads nothing ahead of direct reads; add --direct off"),
        ("scratch", !writes_beside(args), WRITES_NOTHING),
        ("destroy", args.scratch.is_none(), WRITES_NOTHING),
    ]
}

/// Switches without an effect on a scan by a command.
fn idle_beside_command(args: &ScanArgs, command: &str) -> Vec<Idle<'static>> {
    let own_way = "the command scans in its own way; what differs goes into it by {dop} and {queue}";
    let of_command = ["workers", "users", "data", "layout", "direct", "chunk", "engine", "depth", "size"];
    let mut idle: Vec<Idle<'static>> = of_command.iter().map(|switch| (*switch, true, own_way)).collect();
    idle.extend([
        ("queue", !command.contains("{queue}"), "the command has no {queue}"),
        ("scratch", !writes_beside(args), WRITES_NOTHING),
        ("destroy", args.scratch.is_none(), WRITES_NOTHING),
    ]);
    idle
}

const WRITES_NOTHING: &str =
    "nothing is written beside the scan; add --beside write or sort with --scratch FILE";

fn writes_beside(args: &ScanArgs) -> bool {
    args.beside.iter().any(|beside| beside.writes())
}

fn repeats(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(repeats @ 1..=1000) => Ok(repeats),
        _ => Err("use a number from 1 to 1000".into()),
    }
}

/// Reads that a worker keeps in flight when nothing else is said.
const USUAL_DEPTH: u32 = 8;

/// Most memory for the reads in flight.
const MOST_BYTES: u64 = 1 << 30;

/// The reads of independent workers, of whom there are `most` at once.
fn worker_reads(args: &ScanArgs, most: u64) -> Result<Vec<WorkerReads>, LabError> {
    let wrong = |what: &str| Err(LabError::Argument(what.to_string()));
    let is_sync = args.engine.iter().all(|engine| engine.0 == IoEngine::Inline);
    let depths = if args.depth.is_empty() { vec![USUAL_DEPTH] } else { args.depth.clone() };
    let reads = WorkerReads::all(&args.engine, &depths);
    let deepest = reads.iter().map(|reads| reads.depth).max().unwrap_or(1);
    if depths.contains(&0) || most * u64::from(deepest) > 4096 {
        return wrong("--depth begins at 1, and all workers together have at most 4096 reads in flight");
    }
    let largest = args.chunk.iter().map(Chunks::largest).max().unwrap_or(0) as u64;
    let bytes = (most * u64::from(deepest)).saturating_mul(largest);
    if !is_sync && bytes > MOST_BYTES {
        return Err(LabError::Argument(format!(
            "reads in flight may take {} of memory, not {}: smaller --depth, --chunk, --dop or --users",
            size::exact(MOST_BYTES),
            size::exact(bytes)
        )));
    }
    Ok(reads)
}

/// Refuses a table that cannot be laid out, before anything is made for it.
fn check_layouts(args: &ScanArgs) -> Result<(), LabError> {
    let first = if let Some(TableSource::Made(len)) = args.table { len } else { length(&args.path)? };
    let mut files = vec![(args.path.clone(), first)];
    for path in &args.files {
        files.push((path.clone(), length(path)?));
    }
    for layout in &args.layout {
        ScanTable::new(files.clone(), *layout, args.size).map_err(LabError::Argument)?;
    }
    Ok(())
}

fn show(args: &ScanArgs, lists: &Lists, setups: &[plan::Setup], devices: &[BlockDevice]) {
    crate::say!(
        "{} setups at {} degrees of parallelism, {} times: {} scans",
        setups.len(),
        args.dop.len(),
        args.repeat,
        setups.len() * args.dop.len() * args.repeat
    );
    setups.iter().for_each(|setup| crate::say!("  {}", lists.name(setup)));
    let settings = setting::describe(setups, devices);
    crate::say!("{}", if settings.is_empty() { "nothing would be set" } else { "would set, and set back:" });
    settings.iter().for_each(|line| crate::say!("  {line}"));
    if let Some(TableSource::Made(len)) = args.table {
        crate::say!(
            "would make a table of {} in {}, and remove it",
            size::about(len as f64),
            args.path.display()
        );
    }
    if let Some(path) = args.scratch.as_ref().filter(|path| !path.exists()) {
        crate::say!("would make {} of {}, and remove it", path.display(), size::about(SCRATCH_BYTES as f64));
    }
}

fn scratch(args: &ScanArgs, undo: &Undo) -> Result<Option<PathBuf>, LabError> {
    let Some(path) = args.scratch.as_ref().filter(|_| writes_beside(args)) else {
        return Ok(None);
    };
    if !path.exists() {
        return make_file(path, SCRATCH_BYTES, undo).map(Some);
    }
    let least = beside::LEAST_SCRATCH;
    if args.beside.contains(&Beside::Sort) && length(path)? < least {
        return Err(LabError::refused(
            path.display(),
            format!("is too small to sort in: {} are the least", size::about(least as f64)),
            "name a larger file, or a new one",
        ));
    }
    Ok(Some(path.clone()))
}

/// A file of whole MiB for the scan, or for what goes on beside it.
fn make_file(path: &Path, len: u64, undo: &Undo) -> Result<PathBuf, LabError> {
    data_file::make(path, len.next_multiple_of(1 << 20), GOLDEN, undo)?;
    Ok(path.to_path_buf())
}

/// Length of a file or block device.
fn length(path: &Path) -> Result<u64, LabError> {
    Ok(FileDevice::open(path, Access::Read, false)?.len()?)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: ScanArgs,
    }

    fn reads(line: &str) -> Result<Vec<WorkerReads>, String> {
        let words = std::iter::once("scan").chain(line.split(' '));
        let args = Cli::try_parse_from(words).map_err(|e| e.to_string())?.args;
        lists(&args).map(|lists| lists.reads).map_err(|e| e.to_string())
    }

    #[test]
    fn wrong_reads_are_explained() {
        for (line, says) in [
            ("f --engine mmap", "no engine of scans is called 'mmap'"),
            ("f --depth 4", "add --engine uring"),
            ("f --queue fifo", "--queue would change nothing here: independent workers"),
            ("f --workers coordinated --chunk 8k", "--chunk would change nothing"),
            ("f --workers coordinated --depth 8", "--depth would change nothing"),
            ("f --files g", "add --layout"),
            ("f --data different", "add --users 2"),
            ("f --read-ahead-kb 0,128", "add --direct off"),
            ("f --scratch s", "nothing is written beside"),
            ("f --destroy", "nothing is written beside"),
            ("f --dop 1 --exec true --queue fifo", "no {queue}"),
            ("f --dop 1 --exec true --direct off", "--direct would change nothing"),
            ("f --dop 1 --exec true --workers independent", "--workers would change nothing"),
            ("f --dop 1 --exec true --size 1m", "--size would change nothing"),
            ("f --exec true", "no {dop}"),
            ("f --dop 65536 --users 65536", "more than 4096 workers"),
            ("f --repeat 18446744073709551615", "from 1 to 1000"),
            ("f --engine uring --depth 0", "--depth begins at 1"),
            ("f --engine uring --dop 80 --depth 52", "at most 4096"),
            ("f --engine uring --dop 80 --chunk 2m", "1g of memory, not 1280m"),
            ("f --engine uring --workers coordinated", "reads ahead in its own way"),
            ("f --dop 1 --engine uring --exec true", "--engine would change nothing"),
        ] {
            let error = reads(line).expect_err(line);
            assert!(error.contains(says), "{line}: {error}");
        }
    }

    #[test]
    fn switches_with_an_effect_are_taken() {
        for line in [
            "f --queue fifo --workers independent,coordinated --chunk 8k --engine uring --depth 4",
            "f --files g --layout jbod4 --users 1,2 --data different --direct on,off --read-ahead-kb 0",
            "f --beside sort --scratch s --destroy",
            "f --files g --read-ahead-kb 0 --beside random-read --queue fifo --exec {dop}{queue}",
            "f --table db:psog --queue fifo",
            "f --dop 1 --exec true",
        ] {
            assert!(reads(line).is_ok(), "{line}: {:?}", reads(line));
        }
    }

    #[test]
    fn asynchronous_engines_have_eight_reads_in_flight_unless_told_otherwise() {
        assert_eq!(reads("f"), Ok(vec![WorkerReads::SYNC]));
        let depths = |line| reads(line).map(|reads| reads.iter().map(|r| r.depth).collect::<Vec<_>>());
        assert_eq!(depths("f --engine sync,uring"), Ok(vec![1, 8]));
        assert_eq!(depths("f --engine sync,uring --iodepth 2,32"), Ok(vec![1, 2, 32]));
    }
}
