//! `lab read`: the cost of reads, by size, depth, engine, alignment and cache.
//!
//! 1. Every combination of the lists is a cell. Impossible ones (a depth of 64 with an engine
//!    that has one request at a time, O_DIRECT off its grid) are left out, with a line that
//!    says so.
//! 2. Each repeat runs all cells ([`turns`]).
//! 3. Nothing is ever written to the file.

mod bench;
mod cell;
mod plan;
pub mod random;
mod report;

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use snowmelt_io::{DeviceModel, JobEngine, Pattern};
use snowmelt_io_experiments::PolicyName;

use crate::device::Behind;
use crate::device::read_ahead::ReadAhead;
use crate::device::scheduler::{SchedulerChoice, chosen};
use crate::machine::BlockDevice;
use crate::machine::awake::Awake;
use crate::read::bench::{ReadBench, too_small};
pub use crate::read::cell::{BufferMemory, CellResult, ReadCell, name_of};
use crate::read::plan::{Align, Planned, plan};
use crate::read::report::report;
use crate::run::arguments::{EngineName, Given, Idle, OnOff, parse_pattern};
use crate::run::turns::{self, Measured, Turns};
use crate::target::Target;
use crate::target::held::Busy;
use crate::undo::{Undo, signals};
use crate::{LabError, Run, size};

/// Measure reads of a file or device, cell by cell; nothing is written to it.
#[derive(Debug, clap::Args)]
pub struct ReadArgs {
    #[command(flatten)]
    given: Given,
    /// A file on a disk, or a block device.
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
    /// Send the load through the engine's own queue, in this order, instead of below it: fifo,
    /// elevator …
    #[arg(long, value_name = "POLICY")]
    queue: Option<PolicyName>,
    /// Do not tell the kernel the pattern (fio: fadvise_hint=0).
    #[arg(long)]
    no_hint: bool,
    /// Use so much of the file, from its start.
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    range: Option<u64>,
    /// Seconds per cell.
    #[arg(long, default_value_t = 3.0)]
    runtime: f64,
    /// Read every place once, then end (buffered cells always do).
    #[arg(long)]
    once: bool,
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

/// Measures, and says where the report is.
///
/// # Errors
/// The arguments make no sense, the file cannot be read, or the run folder cannot be written.
pub fn run(args: &ReadArgs) -> Result<(), LabError> {
    check(args)?;
    let model = args.model.as_deref().map(DeviceModel::named).transpose()?;
    let stop = signals::stop_on_signal();
    let undo = Undo::open("read")?;
    if model.is_none() {
        let disk = BlockDevice::find(&args.path)?;
        args.busy.hold(disk.as_slice(), &undo, stop.flag())?;
    }
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
        runtime: Duration::from_secs_f64(args.runtime),
        once: args.once,
        seed: args.seed,
        hint: !args.no_hint,
        model,
        queue: args.queue,
        trace: args.trace.then_some(&undo),
        stop: stop.flag(),
    };

    let mut run = Run::create("read", args.out.as_deref())?;
    run.settings(&ReadSettings::from_args(args, range));
    run.device(target.device.clone());
    run.compare_by("cells", &KEYS, &[("iops", true), ("cpu_us_per_io", false)]);
    target.doubts.iter().filter(|_| args.model.is_none()).for_each(|doubt| run.doubt(doubt));
    crate::say!("{}", heading());
    let read_ahead = ReadAhead::read(&target.device).filter(|_| args.model.is_none());
    let hold = || read_ahead.as_ref().map_or(Ok(()), |read_ahead| read_ahead.hold(&undo));
    let behind = Behind::find(&target.device.name).filter(|_| args.model.is_none());
    hold()?; // so that the value to be set back is the device's own
    let measure = |planned: &Planned, repeat| {
        // First, because a change of scheduler changes the read-ahead.
        if let Some(scheduler) = &planned.scheduler {
            scheduler.apply(&target.device, &undo)?;
        }
        if args.read_ahead_kb.is_empty() {
            hold()?;
        }
        if let Some(kb) = planned.cell.read_ahead_kb {
            undo.set(&target.device.sys().join("queue/read_ahead_kb"), &kb.to_string())?;
        }
        behind.as_ref().map_or(Ok(()), Behind::reset)?;
        let mut result = bench.run(&planned.cell, planned.engine, planned.pattern, repeat)?;
        result.doubts.extend(behind.as_ref().and_then(Behind::doubt));
        Ok(result)
    };
    let turns = Turns { file: "cells", count: args.repeats, stop: &stop, undo: &undo };
    turns::run(run, &turns, &plan, measure, |results| report(&target, results))
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
}

/// By which the cells of two runs are matched.
pub const KEYS: [&str; 12] = [
    "ioengine",
    "queue",
    "rw",
    "bs",
    "iodepth",
    "direct",
    "align",
    "pattern",
    "read_ahead_kb",
    "prefetch",
    "mem",
    "scheduler",
];

#[derive(Serialize)]
struct ReadSettings {
    path: PathBuf,
    range_bytes: u64,
    runtime_s: f64,
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
            runtime_s: args.runtime,
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
    turns::check(args.runtime, args.repeats, &args.depth)?;
    let wrong = |why: &str| Err(LabError::Argument(why.into()));
    if args.sizes.iter().any(|bs| *bs > 1 << 30) {
        return wrong("--sizes must not be above 1g");
    }
    args.given.refuse_idle(&idle(args))
}

/// Switches without an effect.
fn idle(args: &ReadArgs) -> Vec<Idle<'static>> {
    let is_model = args.model.is_some();
    let is_direct = args.direct.iter().all(|direct| direct.is_on());
    let is_mapped = args.engine.iter().all(|engine| engine.0 == JobEngine::Mmap) && args.queue.is_none();
    let no_kernel = "a model has neither the kernel's read-ahead nor its schedulers; leave it out";
    let past = "the kernel reads nothing ahead of direct reads; add --direct off";
    vec![
        ("read-ahead-kb", is_model, no_kernel),
        ("prefetch", is_model, no_kernel),
        ("schedulers", is_model, no_kernel),
        ("no-hint", is_model, no_kernel),
        ("read-ahead-kb", is_direct, past),
        ("prefetch", is_direct, past),
        ("no-hint", is_direct, past),
        ("mem", is_mapped, "mapped memory has no buffers of ours; add another --engine"),
    ]
}

fn heading() -> String {
    format!(
        "{:<44} {:>9} {:>9} {:>9} {:>9} {:>9} {:>7} {:>9} {:>9}",
        "cell", "iops", "MB/s", "p50 µs", "p99 µs", "p99.9 µs", "cv %", "µs cpu/io", "device/io"
    )
}

fn row(r: &CellResult) -> String {
    format!(
        "{:<44} {:>9.0} {:>9.1} {:>9.0} {:>9.0} {:>9.0} {:>7.1} {:>9.2} {:>9}",
        name_of(&r.cell),
        r.iops,
        r.bw_bytes / 1e6,
        r.clat.p50_ns as f64 / 1e3,
        r.clat.p99_ns as f64 / 1e3,
        r.clat.p99_9_ns as f64 / 1e3,
        r.steadiness.variation * 100.0,
        r.cpu_us_per_io,
        r.requests_per_io.map_or("-".into(), |n| format!("{n:.2}")),
    )
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

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
