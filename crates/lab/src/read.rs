//! `lab read`: the cost of reads, by size, depth, engine, alignment and cache.
//!
//! 1. Every combination of the lists is a cell. Impossible ones (a depth of 64 with an engine
//!    that has one request at a time, O_DIRECT off its grid) are left out, with a line that
//!    says so.
//! 2. Each repeat runs all cells ([`turns`]).
//! 3. Nothing is written to the file, unless a mix of reads and writes is asked for: then only to
//!    a file this command made itself, or with `--destroy`.

mod bench;
mod cell;
mod distribution;
mod group;
mod plan;
pub mod random;
mod report;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use snowmelt_io::{DeviceModel, JobEngine, Pattern};

use crate::device::Behind;
use crate::device::read_ahead::ReadAhead;
use crate::device::scheduler::{SchedulerChoice, chosen};
use crate::machine::awake::Awake;
use crate::machine::others::Parties;
use crate::read::bench::{ReadBench, too_small};
pub use crate::read::cell::{BufferMemory, CellResult, ReadCell, name_of};
use crate::read::plan::{Align, Planned, plan};
use crate::read::report::report;
use crate::report::Unit;
use crate::run::RunFolder;
use crate::run::arguments::{EngineName, Given, Idle, OnOff, parse_pattern};
use crate::run::load::{Distribution, LoadArgs};
use crate::run::turns::{self, Measured, Turns};
use crate::stats::{PercentileList, log2_rows, percentile_key};
use crate::target::held::Busy;
use crate::target::{Target, data_file};
use crate::undo::Undo;
use crate::undo::signals::{self, Stop};
use crate::{LabError, Run, size};

/// Measure reads of a file or device, cell by cell, alone or mixed with writes; without
/// --rwmixread, nothing is written to it.
#[derive(Debug, clap::Args)]
pub struct ReadArgs {
    #[command(flatten)]
    given: Given,
    /// A file on a disk, or a block device. With --rwmixread a file to make (it is removed at the
    /// end), or with --destroy one whose content may be lost.
    path: PathBuf,
    /// Sizes of requests (fio: bs).
    #[arg(long, visible_alias = "bs", value_delimiter = ',', default_value = "4k,8k,16k,64k,2m", value_parser = size::parse)]
    sizes: Vec<u64>,
    /// Requests outstanding (fio: iodepth).
    #[arg(long, visible_alias = "iodepth", value_delimiter = ',', default_value = "1,4,16,64")]
    depth: Vec<u32>,
    /// Past the page cache, or through it, cold.
    #[arg(long, value_delimiter = ',', default_value = "on,off", hide_possible_values = true)]
    direct: Vec<OnOff>,
    /// Engine of the reads: uring, threads, inline, mmap, vectored, posix-aio (fio: ioengine).
    #[arg(long, visible_alias = "ioengine", value_delimiter = ',', default_value = "uring")]
    engine: Vec<EngineName>,
    /// Offsets are multiples of this: bytes, or `size` for the request's own.
    #[arg(long, value_delimiter = ',', default_value = "size")]
    align: Vec<Align>,
    /// random, sequential, or stride:SIZE.
    #[arg(long, value_delimiter = ',', default_value = "random", value_parser = parse_pattern)]
    pattern: Vec<Pattern>,
    /// Set the device's read-ahead for buffered cells (needs root; restored at the end).
    #[arg(long, value_delimiter = ',', value_name = "KB")]
    read_ahead_kb: Vec<u64>,
    /// Schedulers of the device (needs root; set back at the end): none, mq-deadline, kyber, bfq,
    /// bfq-anticipatory, as-is, or all that it offers; tunables behind colons:
    /// mq-deadline:fifo_batch=1
    #[arg(long, visible_alias = "scheduler", value_delimiter = ',', value_name = "LIST|all")]
    schedulers: Vec<SchedulerChoice>,
    /// Ask the kernel for the whole range before it is read (buffered cells).
    #[arg(long, value_delimiter = ',', default_value = "off", hide_possible_values = true)]
    prefetch: Vec<OnOff>,
    /// Memory of the buffers (fio: mem): a device takes a buffer in a huge page in one piece.
    #[arg(long, visible_alias = "iomem", value_delimiter = ',', default_value = "malloc")]
    mem: Vec<BufferMemory>,
    /// So many of 100 requests read, the others write, drawn for each (fio: rwmixread); reads and
    /// writes are reported apart.
    #[arg(long, value_delimiter = ',', value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    rwmixread: Vec<u8>,
    /// Overwrite what is in the file or on the device (with --rwmixread).
    #[arg(long, requires = "rwmixread")]
    destroy: bool,
    /// Size of the file to make (with --rwmixread); 1g if not given.
    #[arg(long, value_name = "SIZE", value_parser = size::parse, requires = "rwmixread")]
    size: Option<u64>,
    #[command(flatten)]
    load: LoadArgs,
    /// Do not tell the kernel the pattern (fio: fadvise_hint=0).
    #[arg(long)]
    no_hint: bool,
    /// Use so much of the file, from its start.
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    range: Option<u64>,
    /// Seconds per cell; 3 if neither this nor --number-ios is given.
    #[arg(long)]
    runtime: Option<f64>,
    /// I/Os per cell instead of seconds (fio: number_ios); with --runtime, whichever is over first.
    #[arg(long, alias = "number_ios", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    number_ios: Option<u64>,
    /// Read every place once, then end (buffered cells always do).
    #[arg(long)]
    once: bool,
    /// Percentiles of the latency to show (fio: percentile_list); all of fio's are in the results.
    #[arg(long, alias = "percentile_list", value_name = "LIST", default_value = "50:99:99.9")]
    percentile_list: PercentileList,
    /// Show how many requests took how long, by powers of two.
    #[arg(long)]
    histogram: bool,
    /// Turns; what is reported is the median.
    #[arg(long, default_value_t = 1)]
    repeats: u32,
    /// Seed of the random places.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Simulate a device over the file instead (hdd, wide-slow, nvme, or a file): needs neither
    /// root nor a disk.
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Keep the processors from sleeping meanwhile (needs root): what waking takes is then in
    /// no latency.
    #[arg(long)]
    awake: bool,
    /// Trace the block layer during every cell and count what the kernel made of the requests
    /// (needs root).
    #[arg(long, conflicts_with = "model")]
    trace: bool,
    #[command(flatten)]
    busy: Busy,
    /// Folder for the results, new or empty.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Longest time of a cell that ends by its number of I/Os.
const A_DAY_S: f64 = 86_400.0;

impl ReadArgs {
    fn writes(&self) -> bool {
        self.rwmixread.iter().any(|reads| *reads < 100)
    }

    fn runtime_s(&self) -> f64 {
        self.runtime.unwrap_or(if self.number_ios.is_some() { A_DAY_S } else { 3.0 })
    }
}

/// Measures, and says where the report is.
///
/// # Errors
/// The arguments make no sense, the file cannot be read, or the run folder cannot be written.
pub fn run(args: &ReadArgs) -> Result<(), LabError> {
    run_with(args, &Undo::open("read")?)
}

/// As [`run`], for a command that holds the disk already.
///
/// # Errors
/// As [`run`].
pub(crate) fn run_within(args: &ReadArgs, outer: &Undo) -> Result<(), LabError> {
    run_with(args, &Undo::open_within(outer, "read")?)
}

fn run_with(args: &ReadArgs, undo: &Undo) -> Result<(), LabError> {
    check(args)?;
    let model = args.model.as_deref().map(DeviceModel::named).transpose()?;
    let stop = signals::stop_on_signal();
    let folder = RunFolder::create("read", args.out.as_deref())?;
    let claim = match (args.writes(), &model) {
        (true, _) => Some(args.busy.take(&args.path, args.destroy, &[], undo, stop.flag())?),
        (false, None) => {
            // Before its disk is waited for.
            std::fs::metadata(&args.path).map_err(|e| LabError::file("read", &args.path, e))?;
            args.busy.hold(data_file::disk_below(&args.path)?.as_slice(), undo, stop.flag())?;
            None
        }
        (false, Some(_)) => None,
    };
    let _claim = match claim {
        None => None,
        Some(claim) => {
            make_if_missing(args, undo)?;
            Some(claim.once_made(&args.path)?)
        }
    };
    let target = if model.is_some() { Target::any(&args.path)? } else { Target::look(&args.path)? };
    let range = target.range(args.range)?;
    if let Some(bs) = args.sizes.iter().max().filter(|bs| **bs > range) {
        return Err(too_small(&target, range, *bs));
    }
    let schedulers = chosen(&args.schedulers, std::slice::from_ref(&target.device))?;
    let (plan, left_out) = plan(args, &schedulers, &target)?;
    if plan.is_empty() {
        return Err(LabError::Argument(format!("nothing to measure: {}", left_out.join("; "))));
    }
    left_out.iter().for_each(|why| crate::tell!("left out: {why}"));
    let _awake = args.awake.then(Awake::hold).transpose()?;
    let bench = ReadBench {
        target: &target,
        range,
        runtime: Duration::from_secs_f64(args.runtime_s()),
        once: args.once,
        seed: args.seed,
        hint: !args.no_hint,
        most: args.number_ios,
        shown: args.percentile_list.0.clone(),
        histogram: args.histogram,
        model: model.clone(),
        trace: args.trace.then_some(undo),
        stop: stop.flag(),
    };
    measure(args, folder.begin(), &bench, &plan, undo, &stop)
}

/// The file that a mix writes to, where there is none.
fn make_if_missing(args: &ReadArgs, undo: &Undo) -> Result<(), LabError> {
    if args.path.exists() {
        return match args.size {
            None => Ok(()),
            Some(_) => Err(only_of_files_to_make(&args.path)),
        };
    }
    data_file::make(&args.path, args.size.unwrap_or(1 << 30), args.seed, undo)
}

fn only_of_files_to_make(path: &Path) -> LabError {
    let instead = "--range uses a part of it";
    LabError::refused(path.display(), "is there already: --size is that of a file to make", instead)
}

/// Measures the plan in turns.
fn measure(
    args: &ReadArgs,
    mut run: Run,
    bench: &ReadBench<'_>,
    plan: &[Planned],
    undo: &Undo,
    stop: &Stop,
) -> Result<(), LabError> {
    let target = bench.target;
    run.settings(&ReadSettings::from_args(args, bench.range));
    match args.model {
        Some(_) => run.device_of_others(target.device.clone()), // and is not asked
        None => run.device(target.device.clone()),
    }
    run.compare_by("cells", &KEYS, &[("iops", true), ("cpu_us_per_io", false)]);
    target.doubts.iter().filter(|_| args.model.is_none()).for_each(|doubt| run.doubt(doubt));
    crate::say!("{}", heading(&bench.shown));
    let read_ahead = ReadAhead::read(&target.device).filter(|_| args.model.is_none());
    let hold = || read_ahead.as_ref().map_or(Ok(()), |read_ahead| read_ahead.hold(undo));
    let behind = Behind::find(&target.device.name).filter(|_| args.model.is_none());
    behind.iter().for_each(|behind| run.program(behind.server()));
    hold()?; // so that the value to be set back is the device's own
    let measure = |planned: &Planned, repeat| {
        // First, because a change of scheduler changes the read-ahead.
        if let Some(scheduler) = &planned.scheduler {
            scheduler.apply(&target.device, undo)?;
        }
        if args.read_ahead_kb.is_empty() {
            hold()?;
        }
        if let Some(kb) = planned.cell.read_ahead_kb {
            undo.set(&target.device.sys().join("queue/read_ahead_kb"), &kb.to_string())?;
        }
        behind.as_ref().map_or(Ok(()), Behind::reset)?;
        let mut result = bench.run(planned, repeat)?;
        result.doubts.extend(planned.load.without_effect(&target.device));
        result.doubts.extend(behind.as_ref().and_then(Behind::doubt));
        Ok(result)
    };
    let turns = Turns { file: "cells", count: args.repeats, stop, undo };
    turns::run(run, &turns, plan, measure, |results| report(target, results))
}

impl Measured for CellResult {
    fn name(&self) -> String {
        name_of(&self.cell)
    }

    fn row(&self) -> String {
        row(self)
    }

    fn doubts(&self) -> &[String] {
        &self.doubts
    }

    fn traced(&self) -> Option<(&str, Parties)> {
        self.parties.as_ref().map(|(disk, parties)| (disk.as_str(), *parties))
    }
}

/// By which the cells of two runs are matched.
pub const KEYS: [&str; 17] = [
    "ioengine",
    "queue",
    "queue_depth",
    "rw",
    "rwmixread",
    "bs",
    "iodepth",
    "direct",
    "align",
    "pattern",
    "random_distribution",
    "prioclass",
    "prio",
    "read_ahead_kb",
    "prefetch",
    "mem",
    "scheduler",
];

#[derive(Serialize)]
struct ReadSettings {
    path: PathBuf,
    range_bytes: u64,
    runtime_s: Option<f64>,
    number_ios: Option<u64>,
    once: bool,
    repeats: u32,
    seed: u64,
    fadvise_hint: bool,
    awake: bool,
    model: Option<String>,
}

impl ReadSettings {
    fn from_args(args: &ReadArgs, range_bytes: u64) -> ReadSettings {
        ReadSettings {
            path: args.path.clone(),
            range_bytes,
            runtime_s: args.number_ios.map_or(Some(args.runtime_s()), |_| args.runtime),
            number_ios: args.number_ios,
            once: args.once,
            repeats: args.repeats,
            seed: args.seed,
            fadvise_hint: !args.no_hint,
            awake: args.awake,
            model: args.model.clone(),
        }
    }
}

fn check(args: &ReadArgs) -> Result<(), LabError> {
    turns::check(args.runtime_s(), args.repeats, &args.depth)?;
    args.load.check()?;
    let wrong = |why: &str| Err(LabError::Argument(why.into()));
    if args.sizes.iter().any(|bs| *bs > 1 << 30) {
        return wrong("--sizes must not be above 1g");
    }
    if args.once && args.number_ios.is_some() {
        return wrong("--once is every place once: leave --number-ios out");
    }
    if args.once && args.load.random_distribution.iter().any(|d| *d != Distribution::Uniform) {
        return wrong("by zipf some places come again and again: --once reads every place once");
    }
    if args.trace && args.writes() {
        return wrong("--trace counts the requests of reads: leave --rwmixread out");
    }
    args.given.refuse_idle(&idle(args))
}

/// Switches without an effect.
fn idle(args: &ReadArgs) -> Vec<Idle<'static>> {
    let is_model = args.model.is_some();
    let is_direct = args.direct.iter().all(|direct| direct.is_on());
    let is_mapped = args.engine.iter().all(|engine| engine.0 == JobEngine::Mmap) && !args.load.has_queue();
    let no_kernel = "a model has neither the kernel's read-ahead nor its schedulers; leave it out";
    let past = "the kernel reads nothing ahead of direct reads; add --direct off";
    vec![
        ("read-ahead-kb", is_model, no_kernel),
        ("prefetch", is_model, no_kernel),
        ("schedulers", is_model, no_kernel),
        ("no-hint", is_model, no_kernel),
        ("ioprio", is_model, no_kernel),
        ("read-ahead-kb", is_direct, past),
        ("prefetch", is_direct, past),
        ("no-hint", is_direct, past),
        ("mem", is_mapped, "mapped memory has no buffers of ours; add another --engine"),
        ("destroy", !args.writes(), READS_ONLY),
        ("size", !args.writes(), READS_ONLY),
    ]
}

const READS_ONLY: &str = "nothing is written; add a --rwmixread below 100";

fn heading(shown: &[f64]) -> String {
    let percentiles: String =
        shown.iter().map(|percent| format!(" {:>9}", format!("p{percent} µs"))).collect();
    format!(
        "{:<44} {:>9} {:>9}{percentiles} {:>7} {:>9} {:>9}",
        "cell", "iops", "MB/s", "cv %", "µs cpu/io", "device/io"
    )
}

fn row(r: &CellResult) -> String {
    let percentiles: String =
        r.shown_ns().iter().map(|(_, ns)| format!(" {:>9.0}", *ns as f64 / 1e3)).collect();
    let mut rows = vec![format!(
        "{:<44} {:>9.0} {:>9.1}{percentiles} {:>7.1} {:>9.2} {:>9}",
        name_of(&r.cell),
        r.iops,
        r.bw_bytes / 1e6,
        r.steadiness.variation * 100.0,
        r.cpu_us_per_io,
        r.requests_per_io.map_or("-".into(), |n| format!("{n:.2}")),
    )];
    let histogram = |buckets: &[(u64, u64)]| log2_rows(buckets, |ns| Unit::Nanoseconds.show(ns as f64));
    for (name, way) in [("read", &r.read), ("write", &r.write)] {
        let Some(way) = way else { continue };
        let ns = |percent: &f64| way.percentile.get(&percentile_key(*percent)).copied().unwrap_or(0);
        let percentiles: String =
            r.shown.iter().map(|percent| format!(" {:>9.0}", ns(percent) as f64 / 1e3)).collect();
        rows.push(format!("  {name:<42} {:>9.0} {:>9.1}{percentiles}", way.iops, way.bw_bytes / 1e6));
        rows.extend(histogram(&way.clat_log2_ns));
    }
    if r.read.is_none() {
        rows.extend(histogram(&r.clat_log2_ns));
    }
    rows.join("\n")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::run::load::LoadFields;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: ReadArgs,
    }

    fn args(line: &str) -> Result<ReadArgs, String> {
        let words = std::iter::once("read").chain(line.split(' '));
        Cli::try_parse_from(words).map(|cli| cli.args).map_err(|e| e.to_string())
    }

    #[test]
    fn wrong_arguments_are_explained() {
        for (line, says) in [
            ("f --sizes 4x", "4k"),
            ("f --engine libaio", "no engine is called 'libaio'"),
            ("f --pattern zipf", "no pattern is called 'zipf'"),
            ("f --direct maybe", "possible values: on, off"),
            ("f --align odd", "not a size"),
            ("f --schedulers bfq:x", "no tunable"),
            ("f --schedulers all:x=1", "belong to one scheduler"),
            ("f --number-ios 0", "number-ios"),
            ("f --rwmixread 101", "rwmixread"),
            ("f --destroy", "--rwmixread"),
            ("f --size 1g", "--rwmixread"),
            ("f --percentile-list 101", "50:99:99.9"),
        ] {
            let error = args(line).unwrap_err();
            assert!(error.contains(says), "{line}: {error}");
        }
        for (line, says) in [
            ("f --runtime 0", "--runtime"),
            ("f --runtime nan", "--runtime"),
            ("f --repeats 0", "--repeats"),
            ("f --depth 0", "--depth"),
            ("f --depth 1,5000", "--depth"),
            ("f --sizes 2g", "--sizes"),
            ("f --model hdd --read-ahead-kb 0", "--read-ahead-kb"),
            ("f --model hdd --prefetch on", "--prefetch"),
            ("f --model hdd --schedulers all", "--schedulers"),
            ("f --direct on --read-ahead-kb 0,128", "--read-ahead-kb would change nothing"),
            ("f --direct on --prefetch on", "add --direct off"),
            ("f --direct on --no-hint", "add --direct off"),
            ("f --engine mmap --direct off --mem mmaphuge", "add another --engine"),
            ("f --model hdd --no-hint", "leave it out"),
            ("f --model hdd --ioprio idle", "--ioprio"),
            ("f --once --number-ios 5", "--number-ios"),
            ("f --once --random-distribution zipf:1", "every place once"),
            ("f --trace --rwmixread 50", "--rwmixread"),
            ("f --queue elevator --queue fifo", "--queue-depth"),
            ("f --rwmixread 100 --destroy", "--destroy would change nothing"),
            ("f --rwmixread 100 --size 1g", "--size would change nothing"),
        ] {
            let error = check(&args(line).unwrap()).unwrap_err().to_string();
            assert!(error.contains(says), "{line}: {error}");
        }
    }

    fn disk_file(len: u64) -> Option<(tempfile::NamedTempFile, Target)> {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(len).unwrap();
        let target = Target::look(file.path()).ok();
        if target.is_none() {
            println!("skipped: temporary files are on no block device here");
        }
        target.map(|target| (file, target))
    }

    #[test]
    fn cells_that_cannot_be_are_left_out_with_a_reason() {
        let Some((_file, target)) = disk_file(1 << 20) else { return };
        let line = "f --mem malloc,mmaphuge --engine inline,mmap --sizes 4k,1000 --depth 1,4 --direct on,off --read-ahead-kb 0,128";
        let (cells, left_out) = plan(&args(line).unwrap(), &[], &target).unwrap();
        // psync: 4k direct, and 4k and 1000 buffered with two read-aheads; mmap: the buffered
        // ones only; each with two kinds of memory.
        let huge = cells.iter().filter(|p| p.cell.mem == BufferMemory::MmapHuge).count();
        assert_eq!((cells.len() - huge, huge), (1 + 4 + 4, 1 + 4 + 4));
        assert!(
            cells.iter().all(|p| p.cell.iodepth == 1 && (!p.cell.direct || p.cell.read_ahead_kb.is_none()))
        );
        for says in ["psync has one request", "no mmap with --direct on", "multiples of"] {
            assert!(left_out.iter().any(|why| why.contains(says)), "{says}: {left_out:?}");
        }
    }

    #[test]
    fn every_scheduler_has_all_cells_and_names_of_its_own() {
        let Some((_file, target)) = disk_file(1 << 20) else { return };
        let line = "f --sizes 4k,8k --depth 1,4 --direct off";
        let schedulers = ["none", "bfq-anticipatory"].map(|name| name.parse().unwrap());
        let (cells, _) = plan(&args(line).unwrap(), &schedulers, &target).unwrap();
        let names: std::collections::BTreeSet<String> = cells.iter().map(|p| name_of(&p.cell)).collect();
        assert_eq!((cells.len(), names.len()), (2 * 4, 2 * 4), "{names:?}");
        let bfq = cells.iter().filter(|p| p.cell.scheduler.as_deref() == Some("bfq-anticipatory"));
        assert!(bfq.clone().all(|p| p.scheduler.as_ref() == Some(&schedulers[1])));
        assert_eq!(bfq.count(), 4);
    }

    #[test]
    fn mixes_priorities_and_laws_without_sense_are_left_out() {
        let Some((_file, target)) = disk_file(1 << 20) else { return };
        let line = "f --sizes 4k --depth 8 --pattern random,sequential --random-distribution random,zipf:1.1 \
                    --rwmixread 100,70,0 --ioprio best-effort:7,idle";
        let (cells, left_out) = plan(&args(line).unwrap(), &[], &target).unwrap();
        // Random places: reads by both laws direct and buffered, mixes and writes direct only;
        // sequential ones: uniform reads. Each with two priorities.
        let count = |of: &dyn Fn(&ReadCell) -> bool| cells.iter().filter(|p| of(&p.cell)).count();
        assert_eq!(count(&|c| c.pattern == "random" && c.rw == "randread"), 2 * 2 * 2);
        assert_eq!(count(&|c| c.rw == "randrw" && c.direct), 2 * 2);
        assert_eq!(count(&|c| c.rw == "randwrite" && c.rwmixread == Some(0)), 2 * 2);
        assert_eq!(count(&|c| c.pattern == "sequential" && c.rw == "read"), 2 * 2);
        assert_eq!(cells.len(), 8 + 4 + 4 + 4);
        let names: std::collections::BTreeSet<String> = cells.iter().map(|p| name_of(&p.cell)).collect();
        assert_eq!(names.len(), cells.len(), "{names:?}");
        for says in
            ["no zipf:1.1 with a --pattern", "no --rwmixread with sequential", "no --ioprio with --rwmixread"]
        {
            assert!(left_out.iter().any(|why| why.contains(says)), "{says}: {left_out:?}");
        }
        let refused = plan(
            &args("f --sizes 4k --pattern sequential --random-distribution zipf:1").unwrap(),
            &[],
            &target,
        );
        assert!(refused.unwrap().0.is_empty());
    }

    /// A setting that tells cells apart but is no key would have `lab compare` take one cell for
    /// the other.
    #[test]
    fn every_setting_of_a_cell_is_a_key_of_comparisons_and_in_its_name() {
        let cell = ReadCell {
            ioengine: "io_uring".into(),
            load: LoadFields {
                queue: Some("fifo".into()),
                queue_depth: Some(2),
                random_distribution: Some("zipf:1.1".into()),
                prioclass: Some(2),
                prio: Some(6),
            },
            rw: "randrw".into(),
            rwmixread: Some(70),
            bs: 8192,
            iodepth: 3,
            direct: true,
            align: 512,
            pattern: "stride:1m".into(),
            read_ahead_kb: Some(128),
            prefetch: true,
            mem: BufferMemory::MmapHuge,
            scheduler: Some("bfq".into()),
        };
        let serde_json::Value::Object(fields) = serde_json::to_value(&cell).unwrap() else { panic!() };
        let keys: std::collections::BTreeSet<&str> = KEYS.into_iter().collect();
        assert_eq!(fields.keys().map(String::as_str).collect::<std::collections::BTreeSet<_>>(), keys);
        let name = name_of(&cell);
        for part in
            ["fifo (2 at the device)", "rwmixread 70", "zipf:1.1", "ioprio best-effort:6", "scheduler bfq"]
        {
            assert!(name.contains(part), "{part}: {name}");
        }
    }

    #[test]
    fn buffers_that_would_fill_the_memory_are_left_out() {
        let Some((_file, target)) = disk_file(1 << 20) else { return };
        let line = "f --mem malloc,mmaphuge --sizes 2m --depth 512,513 --direct off";
        let (cells, left_out) = plan(&args(line).unwrap(), &[], &target).unwrap();
        assert_eq!(cells.iter().map(|p| p.cell.iodepth).collect::<Vec<_>>(), [512, 512]);
        assert!(left_out[0].contains("1g at most: no 1026m for io_uring 2m depth 513"), "{left_out:?}");
    }

    #[test]
    fn a_run_through_a_model_needs_no_disk() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("data");
        std::fs::write(&file, vec![0; 1 << 20]).unwrap();
        let out = dir.path().join("run");
        let line = format!(
            "{} --model nvme --sizes 4k --depth 4 --direct off --runtime 0.2 --out {}",
            file.display(),
            out.display()
        );
        run(&args(&line).unwrap()).unwrap();
        let cells = std::fs::read_to_string(out.join("cells.jsonl")).unwrap();
        let cell: CellResult = serde_json::from_str(cells.lines().next().unwrap()).unwrap();
        assert!(cell.total_ios > 100 && cell.clat.p50_ns > 10_000, "{cells}");
        assert!(std::fs::read_to_string(out.join("report.html")).unwrap().contains("io_uring 4k depth 4"));
    }

    /// Runs `words` on a path and gives its results, its page, and the run folder.
    fn measured(path: &Path, words: &str) -> (Vec<CellResult>, String, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("run");
        run(&args(&format!("{} --wait --out {} {words}", path.display(), out.display())).unwrap()).unwrap();
        let lines = std::fs::read_to_string(out.join("cells.jsonl")).unwrap();
        let cells = lines.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        (cells, std::fs::read_to_string(out.join("report.html")).unwrap(), dir)
    }

    #[test]
    fn a_number_of_ios_ends_a_cell_and_what_ends_it_sooner_is_told() {
        let Some((file, _)) = disk_file(4 << 20) else { return };
        std::fs::write(file.path(), vec![7; 4 << 20]).unwrap();
        let line = "--sizes 4k --depth 4 --number-ios 2500 --percentile-list 10:99.99 --histogram";
        let (cells, page, _dir) = measured(file.path(), line);
        let (direct, buffered) = (&cells[0], &cells[1]);
        assert_eq!((direct.cell.direct, direct.total_ios), (true, 2500));
        let (rates, whole) = (&direct.iops_series, direct.runtime_ms >= direct.interval_ms);
        assert!(whole || rates[..] == [direct.iops], "{rates:?} of {}", direct.iops);
        assert!(!direct.doubts.iter().any(|doubt| doubt.contains("I/Os")), "{:?}", direct.doubts);
        assert_eq!(direct.clat_log2_ns.iter().map(|(_, count)| count).sum::<u64>(), 2500);
        assert!(direct.percentile["99.990000"] >= direct.percentile["10.000000"]);
        assert_eq!(buffered.total_ios, 1024);
        let told = "only 1024 of 2500 I/Os: every place was read once";
        assert!(buffered.doubts.iter().any(|doubt| doubt.contains(told)), "{:?}", buffered.doubts);
        assert!(page.contains("Distribution of latencies") && page.contains("p99.99"));
        let line = "--sizes 4k --depth 1 --direct on --number-ios 1000000000 --runtime 0.1";
        let (cells, ..) = measured(file.path(), line);
        let told = "I/Os: the time allowed was over";
        assert!(cells[0].doubts.iter().any(|doubt| doubt.contains(told)), "{:?}", cells[0].doubts);
        assert!(cells[0].total_ios > 0 && cells[0].clat_log2_ns.is_empty());
    }

    #[test]
    fn a_mix_needs_a_file_of_its_own_and_reports_both_directions() {
        let Some((file, _)) = disk_file(1 << 20) else { return };
        let precious = vec![7; 1 << 20];
        std::fs::write(file.path(), &precious).unwrap();
        let line = format!("{} --rwmixread 50", file.path().display());
        let refused = run(&args(&line).unwrap()).unwrap_err().to_string();
        assert!(refused.contains("is there already") && refused.contains("--destroy"), "{refused}");
        let sized = format!("{line} --destroy --wait --size 1m");
        assert!(
            run(&args(&sized).unwrap()).unwrap_err().to_string().contains("--size is that of a file to make")
        );
        assert_eq!(std::fs::read(file.path()).unwrap(), precious);

        let dir = tempfile::tempdir().unwrap();
        let made = dir.path().join("made");
        let line =
            "--size 4m --rwmixread 70,100,0 --sizes 4k --depth 8 --number-ios 1000 --engine uring,threads";
        let (cells, page, _run) = measured(&made, line);
        assert!(!made.exists(), "the file it made is gone");
        assert_eq!(cells.len(), 3 * 2 * 2);
        for cell in &cells {
            let [read, write] = [&cell.read, &cell.write].map(|way| way.as_ref().map_or(0, |w| w.total_ios));
            match cell.cell.rwmixread {
                Some(70) => {
                    assert_eq!((read + write, cell.cell.rw.as_str()), (cell.total_ios, "randrw"));
                    assert!((600..800).contains(&(read * 1000 / cell.total_ios)), "{read} and {write}");
                }
                Some(0) => assert_eq!((read + write, cell.cell.rw.as_str()), (0, "randwrite")),
                _ => assert_eq!((read + write, cell.cell.rw.as_str()), (0, "randread")),
            }
            let early = cell.doubts.iter().any(|doubt| doubt.contains("before the device had them"));
            assert_eq!(early, cell.cell.rw != "randread" && !cell.cell.direct, "{:?}", cell.doubts);
        }
        assert!(page.contains("Reads and writes apart"));
    }

    /// On a disk with one arm the order is worth something as soon as requests wait for it.
    #[test]
    fn an_order_has_an_effect_once_requests_wait_in_the_queue() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("data");
        std::fs::File::create(&file).unwrap().set_len(900 << 30).unwrap();
        let line = "--model hdd --sizes 4k --depth 128 --direct off --runtime 1.5 --queue fifo --queue elevator \
                    --queue deadline:batch=8 --queue anticipatory --queue fair --queue-depth 1";
        let (cells, ..) = measured(&file, line);
        let iops = |queue: &str| {
            let cell = cells.iter().find(|c| c.cell.load.queue.as_deref() == Some(queue)).unwrap();
            assert_eq!(cell.cell.load.queue_depth, Some(1));
            cell.iops
        };
        assert!(iops("elevator") > 1.3 * iops("fifo"), "{} and {}", iops("elevator"), iops("fifo"));
        assert!(iops("deadline:batch=8") > 0.0 && iops("anticipatory") > 0.0 && iops("fair") > 0.0);
    }

    #[test]
    fn once_is_every_place_once_asked_ahead_or_not() {
        let Some((file, _)) = disk_file(4 << 20) else { return };
        std::fs::write(file.path(), vec![7; 4 << 20]).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("run");
        let line = format!(
            "{} --engine uring,mmap --sizes 64k --depth 1 --pattern sequential --prefetch off,on --once --wait --out {}",
            file.path().display(),
            out.display()
        );
        run(&args(&line).unwrap()).unwrap();
        let lines = std::fs::read_to_string(out.join("cells.jsonl")).unwrap();
        let cells: Vec<CellResult> = lines.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        // Past the cache, and through it by both engines with and without.
        assert_eq!(cells.len(), 1 + 2 * 2);
        assert!(cells.iter().all(|c| c.total_ios == 64), "{lines}");
        assert_eq!(cells.iter().filter(|c| c.cell.prefetch && !c.cell.direct).count(), 2);
    }
}
