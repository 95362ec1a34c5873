//! `lab write`: the cost of scattered writes until they are durable, by method, by the time of
//! the sync, with and without the targets read ahead.
//!
//! The ladder of a recovery: a journal's pages go to scattered places of a large data file. A
//! rung is one combination; each writes the same places, in portions as large as a journal
//! file:
//!
//! 1. The file is thrown out of the page cache, with proof.
//! 2. For each portion: its places are read ahead (`--prefetch on`), written, and synced as the
//!    policy says.
//! 3. Time is taken when the last write returned, and again when everything was durable.
//!
//! Only a file this command made itself is written to without `--destroy`.

mod plan;
mod report;
mod rung;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use crate::device::Behind;
use crate::device::read_ahead::ReadAhead;
use crate::device::scheduler::{SchedulerChoice, chosen};
use crate::machine::BlockDevice;
use crate::machine::awake::Awake;
use crate::run::arguments::{EngineName, OnOff};
use crate::run::turns::{self, Measured, Turns};
use crate::target::held::Busy;
use crate::target::{Target, data_file};
use crate::undo::{Undo, signals};
use crate::write::plan::{PlannedRung, plan};
use crate::write::report::report;
use crate::write::rung::{RungResult, SyncPolicy, WriteBench, name_of};
use crate::{LabError, Run, size};

/// Measure scattered writes of a file or device until they are durable. An existing file or
/// device needs --destroy.
#[derive(Debug, clap::Args)]
pub struct WriteArgs {
    /// A file to make (it is removed at the end), or with --destroy a file or block device
    /// whose content may be lost.
    path: PathBuf,
    /// Overwrite what is in the file or on the device.
    #[arg(long)]
    destroy: bool,
    /// Size of the file to make.
    #[arg(long, value_name = "SIZE", default_value = "1g", value_parser = size::parse)]
    size: u64,
    /// Sizes of writes (fio: bs).
    #[arg(long, visible_alias = "bs", value_delimiter = ',', default_value = "4k", value_parser = size::parse)]
    sizes: Vec<u64>,
    /// Engine of the writes: inline, mmap, threads, uring, vectored (adjacent ones of
    /// --depth in one pwritev), posix-aio (fio: ioengine).
    #[arg(
        long,
        visible_alias = "ioengine",
        value_delimiter = ',',
        default_value = "inline,mmap,threads,uring"
    )]
    engine: Vec<EngineName>,
    /// Requests outstanding, for engines that can have more than one (fio: iodepth).
    #[arg(long, visible_alias = "iodepth", default_value_t = 32)]
    depth: u32,
    /// Past the page cache, or through it.
    #[arg(long, value_delimiter = ',', default_value = "off,on", hide_possible_values = true)]
    direct: Vec<OnOff>,
    /// Schedulers of the device (needs root; set back at the end): none, mq-deadline, kyber, bfq,
    /// bfq-anticipatory, as-is, or all that it offers; tunables behind colons:
    /// mq-deadline:fifo_batch=1
    #[arg(long, visible_alias = "scheduler", value_delimiter = ',', value_name = "LIST|all")]
    schedulers: Vec<SchedulerChoice>,
    /// Read the places to be written ahead, all of a portion at once, before it is written
    /// (buffered rungs).
    #[arg(long, value_delimiter = ',', default_value = "off,on", hide_possible_values = true)]
    prefetch: Vec<OnOff>,
    /// When to sync: each (every write), journal (every portion), end (once), background (while
    /// going on).
    #[arg(long, value_delimiter = ',', default_value = "journal,end,background")]
    sync: Vec<SyncPolicy>,
    /// Writes per rung.
    #[arg(long, default_value_t = 25_600)]
    writes: u64,
    /// Bytes of writes per portion: a journal file.
    #[arg(long, value_name = "SIZE", default_value = "16m", value_parser = size::parse)]
    journal: u64,
    /// Most seconds of writing per rung; a rung that is slower writes less.
    #[arg(long, default_value_t = 30.0)]
    runtime: f64,
    /// Turns; what is reported is the median.
    #[arg(long, default_value_t = 1)]
    repeats: u32,
    /// Seed of the places.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Keep the processors from sleeping meanwhile (needs root): what waking takes is then in
    /// no latency.
    #[arg(long)]
    awake: bool,
    #[command(flatten)]
    busy: Busy,
    /// Folder for the results, new or empty.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Measures, and says where the report is.
pub fn run(args: &WriteArgs) -> Result<(), LabError> {
    check(args)?;
    let stop = signals::stop_on_signal();
    let undo = Undo::open("write")?;
    // The file may be made first, on the same disk.
    let folder = args.path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let place = if args.path.exists() { &args.path } else { folder.unwrap_or(Path::new(".")) };
    let disk = BlockDevice::find(place)?;
    args.busy.hold(disk.as_slice(), &undo, stop.flag())?;
    let _awake = args.awake.then(Awake::hold).transpose()?;
    prepare(args, &undo)?;
    let target = Target::look(&args.path)?;
    target.refuse_if_in_use()?;
    let schedulers = chosen(&args.schedulers, std::slice::from_ref(&target.device))?;
    let (plan, left_out) = plan(args, &schedulers, &target)?;
    if plan.is_empty() {
        return Err(LabError::Argument(format!("nothing to measure: {}", left_out.join("; "))));
    }
    left_out.iter().for_each(|why| crate::tell!("left out: {why}"));
    let bench = WriteBench {
        target: &target,
        writes: args.writes,
        journal_bytes: args.journal,
        runtime: Duration::from_secs_f64(args.runtime),
        seed: args.seed,
        stop: stop.flag(),
    };

    let mut run = Run::create("write", args.out.as_deref())?;
    run.settings(&WriteSettings::from_args(args, target.len));
    run.device(target.device.clone());
    run.compare_by("rungs", &KEYS, &[("durable_per_s", true), ("durable_s", false)]);
    crate::say!("{}", heading());
    let read_ahead = ReadAhead::read(&target.device);
    let behind = Behind::find(&target.device.name);
    behind.iter().for_each(|behind| run.program(behind.server()));
    let measure = |planned: &PlannedRung, repeat| {
        // First, because a change of scheduler changes the read-ahead.
        if let Some(scheduler) = &planned.scheduler {
            scheduler.apply(&target.device, &undo)?;
        }
        read_ahead.as_ref().map_or(Ok(()), |read_ahead| read_ahead.hold(&undo))?;
        behind.as_ref().map_or(Ok(()), Behind::reset)?;
        let mut result = bench.run(&planned.rung, planned.engine, repeat)?;
        result.doubts.extend(behind.as_ref().and_then(Behind::doubt));
        Ok(result)
    };
    let turns = Turns { file: "rungs", count: args.repeats, stop: &stop, undo: &undo };
    turns::run(run, &turns, &plan, measure, |results| report(&target, results))
}

impl Measured for RungResult {
    fn name(&self) -> String {
        name_of(&self.rung)
    }

    fn row(&self) -> String {
        row(self)
    }

    fn doubts(&self) -> &[String] {
        &self.doubts
    }
}

const KEYS: [&str; 8] = ["ioengine", "bs", "iodepth", "direct", "prefetch", "sync", "rw", "scheduler"];

#[derive(Serialize)]
struct WriteSettings {
    path: PathBuf,
    len_bytes: u64,
    writes: u64,
    journal_bytes: u64,
    runtime_s: f64,
    repeats: u32,
    seed: u64,
    awake: bool,
}

impl WriteSettings {
    fn from_args(args: &WriteArgs, len_bytes: u64) -> WriteSettings {
        WriteSettings {
            path: args.path.clone(),
            len_bytes,
            writes: args.writes,
            journal_bytes: args.journal,
            runtime_s: args.runtime,
            repeats: args.repeats,
            seed: args.seed,
            awake: args.awake,
        }
    }
}

fn check(args: &WriteArgs) -> Result<(), LabError> {
    turns::check(args.runtime, args.repeats, &[args.depth])?;
    let wrong = |why: &str| Err(LabError::Argument(why.into()));
    if args.writes == 0 {
        return wrong("--writes must be at least 1");
    }
    if args.sizes.iter().any(|bs| *bs > args.journal) {
        return wrong("--journal must hold at least one write of each of --sizes");
    }
    Ok(())
}

/// Makes the file where there is none; refuses to touch what is there without --destroy.
fn prepare(args: &WriteArgs, undo: &Undo) -> Result<(), LabError> {
    if args.path.exists() {
        if args.destroy {
            return Ok(());
        }
        return Err(LabError::refused(
            args.path.display(),
            "is there already and would be overwritten",
            "name a file that is not there yet, or allow it with --destroy",
        ));
    }
    data_file::make(&args.path, args.size, args.seed, undo)
}

fn heading() -> String {
    format!(
        "{:<52} {:>8} {:>9} {:>9} {:>9} {:>8} {:>6} {:>9}",
        "rung", "writes", "written s", "durable s", "writes/s", "MB/s", "syncs", "max ms"
    )
}

fn row(r: &RungResult) -> String {
    format!(
        "{:<52} {:>8} {:>9.2} {:>9.2} {:>9.0} {:>8.2} {:>6} {:>9.1}",
        name_of(&r.rung),
        r.total_ios,
        r.written_s,
        r.durable_s,
        r.durable_per_s,
        r.durable_bytes_per_s / 1e6,
        r.syncs,
        r.sync_max_ms,
    )
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: WriteArgs,
    }

    fn args(line: &str) -> WriteArgs {
        Cli::parse_from(std::iter::once("write").chain(line.split(' '))).args
    }

    #[test]
    fn wrong_arguments_are_explained() {
        for (line, says) in [
            ("f --runtime 0", "--runtime"),
            ("f --repeats 0", "--repeats"),
            ("f --depth 0", "--depth"),
            ("f --writes 0", "--writes"),
            ("f --sizes 4k,1m --journal 64k", "--journal"),
        ] {
            let error = check(&args(line)).unwrap_err().to_string();
            assert!(error.contains(says), "{line}: {error}");
        }
        let words = ["write", "f", "--sync", "often"];
        let error = Cli::try_parse_from(words).map(drop).unwrap_err().to_string();
        assert!(error.contains("'often'") && error.contains("background"), "{error}");
    }

    /// A folder for files that can be measured; nothing where temporary files are on no device.
    fn folder_on_a_device() -> Option<tempfile::TempDir> {
        let dir = tempfile::tempdir().unwrap();
        if Target::look(dir.path()).is_err_and(|e| e.to_string().contains("which no block device")) {
            println!("skipped: temporary files are on no block device here");
            return None;
        }
        Some(dir)
    }

    #[test]
    fn nothing_that_exists_is_touched_without_destroy() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("precious");
        std::fs::write(&path, vec![7; 1 << 20]).unwrap();
        let line = format!("{} --writes 8 --out {}", path.display(), dir.path().join("run").display());
        let error = run(&args(&line)).unwrap_err().to_string();
        assert!(error.contains("is there already") && error.contains("--destroy"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), vec![7; 1 << 20]);
        assert!(!dir.path().join("run").exists());
    }

    #[test]
    fn each_size_has_rungs_and_the_vectored_one_writes_neighbours_together() {
        let Some(dir) = folder_on_a_device() else { return };
        let (path, out) = (dir.path().join("made"), dir.path().join("run"));
        // As many writes of 16k as the file has places: all of them are neighbours.
        let line = format!(
            "{} --size 1m --sizes 4k,16k --engine inline,vectored --depth 64 --writes 64 --journal 1m --direct on \
             --prefetch off --sync end --out {}",
            path.display(),
            out.display()
        );
        run(&args(&line)).unwrap();
        let lines = std::fs::read_to_string(out.join("rungs.jsonl")).unwrap();
        let rungs: Vec<RungResult> = lines.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        let cells: Vec<(u64, &str)> = rungs.iter().map(|r| (r.rung.bs, r.rung.ioengine.as_str())).collect();
        assert_eq!(cells, [(4096, "psync"), (4096, "vsync"), (16384, "psync"), (16384, "vsync")]);
        let page: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(out.join("report.json")).unwrap()).unwrap();
        let text = page.to_string();
        for r in &rungs {
            assert_eq!((r.total_ios, r.io_bytes), (64, 64 * r.rung.bs));
            let row = format!(r#"["{}","64","{:.2}","{:.2}""#, name_of(&r.rung), r.written_s, r.durable_s);
            assert!(text.contains(&row), "{row}");
        }
        // All pieces of a call have its time.
        let (least, most) = (rungs[3].clat.min_ns as f64, rungs[3].clat.max_ns as f64);
        assert!(most <= least * 1.01, "the whole file by one call: {least} to {most} ns");
    }

    #[test]
    fn a_ladder_writes_leaves_no_file_and_says_when_it_was_durable() {
        let Some(dir) = folder_on_a_device() else { return };
        let (path, out) = (dir.path().join("made"), dir.path().join("run"));
        let line = format!(
            "{} --size 2m --writes 96 --journal 128k --sync each,journal,end,background --out {}",
            path.display(),
            out.display()
        );
        run(&args(&line)).unwrap();
        assert!(!path.exists(), "the file it made is gone");
        let lines = std::fs::read_to_string(out.join("rungs.jsonl")).unwrap();
        let rungs: Vec<RungResult> = lines.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        // Four policies by: four engines buffered with and without prefetch, three direct.
        assert_eq!(rungs.len(), 4 * (4 * 2 + 3));
        for r in &rungs {
            assert_eq!(r.total_ios, 96, "{}", name_of(&r.rung));
            assert!(r.durable_s >= r.written_s && r.durable_per_s > 0.0);
            let syncs = match r.rung.sync {
                SyncPolicy::Each => 96..=96,
                SyncPolicy::Journal => 3..=3,
                SyncPolicy::End => 1..=1,
                SyncPolicy::Background => 1..=4,
            };
            assert!(syncs.contains(&r.syncs), "{}: {} syncs", name_of(&r.rung), r.syncs);
        }
        let page = std::fs::read_to_string(out.join("report.html")).unwrap();
        assert!(page.contains("until durable"), "the report shows the ladder");
    }
}
