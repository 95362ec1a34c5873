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
//! 4. With `--verify` the blocks are read back from the device, each compared with what was
//!    written there.
//!
//! Only a file this command made itself is written to without `--destroy`.

mod bench;
mod plan;
mod report;
mod rung;
mod sized;
mod verify;

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use crate::device::Behind;
use crate::device::read_ahead::ReadAhead;
use crate::device::scheduler::{SchedulerChoice, chosen};
use crate::machine::awake::Awake;
use crate::run::RunFolder;
use crate::run::arguments::{EngineName, Given, Idle, OnOff};
use crate::run::load::LoadArgs;
use crate::run::turns::{self, Measured, Turns};
use crate::target::Target;
use crate::target::held::Busy;
use crate::undo::Undo;
use crate::undo::signals::{self, Stop};
pub(crate) use crate::write::bench::RungResult;
use crate::write::bench::WriteBench;
use crate::write::plan::{PlannedRung, plan};
use crate::write::report::report;
use crate::write::rung::SyncPolicy;
pub(crate) use crate::write::rung::name_of;
use crate::write::sized::SizedTarget;
use crate::{LabError, Run, room, size};

/// Measure scattered writes of a file or device until they are durable. An existing file or
/// device needs --destroy.
#[derive(Debug, clap::Args)]
pub struct WriteArgs {
    #[command(flatten)]
    given: Given,
    /// A file to make (it is removed at the end), or with --destroy a file or block device
    /// whose content may be lost.
    path: PathBuf,
    /// Overwrite what is in the file or on the device.
    #[arg(long)]
    destroy: bool,
    /// Size of the file to make, 1g if not given; of several a file each, with the time of the
    /// syncs by size. One that the disk has no room for is made sparse.
    #[arg(long, value_name = "SIZE", value_delimiter = ',', value_parser = size::parse)]
    size: Vec<u64>,
    /// Make all files sparse: only what is written takes room, and finding it is measured, too.
    #[arg(long)]
    sparse: bool,
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
    #[command(flatten)]
    load: LoadArgs,
    /// Read every block back after the last sync, cold, and compare it with what was written (fio:
    /// verify): each has a header with its offset, a seed and a checksum.
    #[arg(long)]
    verify: bool,
    /// Writes per rung (fio: number_ios).
    #[arg(long, visible_alias = "number-ios", alias = "number_ios", default_value_t = 25_600)]
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
///
/// # Errors
/// The arguments make no sense, the file or device cannot be written, or the run folder cannot.
pub fn run(args: &WriteArgs) -> Result<(), LabError> {
    run_with(args, &Undo::open("write")?)
}

/// As [`run`], for a command that holds the disk already.
///
/// # Errors
/// As [`run`].
pub(crate) fn run_within(args: &WriteArgs, outer: &Undo) -> Result<(), LabError> {
    run_with(args, &Undo::open_within(outer, "write")?)
}

fn run_with(args: &WriteArgs, undo: &Undo) -> Result<(), LabError> {
    check(args)?;
    let stop = signals::stop_on_signal();
    let folder = RunFolder::create("write", args.out.as_deref())?;
    // The file may be made first, on the same disk.
    let claim = args.busy.take(&args.path, args.destroy, &[], undo, stop.flag())?;
    let _awake = args.awake.then(Awake::hold).transpose()?;
    let targets = prepare(args, undo)?;
    let _claim = claim.once_made(&args.path)?;
    let device = &targets[0].target.device;
    let schedulers = chosen(&args.schedulers, std::slice::from_ref(device))?;
    let (plan, left_out) = plan(args, &schedulers, &targets)?;
    if plan.is_empty() {
        return Err(LabError::Argument(format!("nothing to measure: {}", left_out.join("; "))));
    }
    left_out.iter().for_each(|why| crate::tell!("left out: {why}"));
    let each = |planned: &PlannedRung| args.writes.saturating_mul(room::taken(&args.path, planned.rung.bs));
    let all = plan.iter().map(each).fold(0, u64::saturating_add).saturating_mul(args.repeats.into());
    targets.iter().try_for_each(|sized| sized.check_holes(all))?;
    measure(args, folder.begin(), &targets, &plan, undo, &stop)
}

/// Measures the plan in turns.
fn measure(
    args: &WriteArgs,
    mut run: Run,
    targets: &[SizedTarget],
    plan: &[PlannedRung],
    undo: &Undo,
    stop: &Stop,
) -> Result<(), LabError> {
    let bench = |target| WriteBench {
        target,
        writes: args.writes,
        journal_bytes: args.journal,
        runtime: Duration::from_secs_f64(args.runtime),
        seed: args.seed,
        stop: stop.flag(),
    };
    let benches: Vec<WriteBench<'_>> = targets.iter().map(bench).collect();
    let device = &targets[0].target.device;
    let lens: Vec<u64> = targets.iter().map(|sized| sized.target.len).collect();
    run.settings(&WriteSettings::from_args(args, &lens));
    run.device(device.clone());
    targets.iter().filter_map(doubt).for_each(|doubt| run.doubt(doubt));
    run.compare_by("rungs", &KEYS, &[("durable_per_s", true), ("durable_s", false)]);
    crate::say!("{}", heading());
    let read_ahead = ReadAhead::read(device);
    let behind = Behind::find(&device.name);
    behind.iter().for_each(|behind| run.program(behind.server()));
    let measure = |planned: &PlannedRung, repeat| {
        // First, because a change of scheduler changes the read-ahead.
        if let Some(scheduler) = &planned.scheduler {
            scheduler.apply(device, undo)?;
        }
        read_ahead.as_ref().map_or(Ok(()), |read_ahead| read_ahead.hold(undo))?;
        behind.as_ref().map_or(Ok(()), Behind::reset)?;
        let mut result = benches[planned.target].run(planned, repeat)?;
        result.doubts.extend(planned.load.without_effect(device));
        result.doubts.extend(behind.as_ref().and_then(Behind::doubt));
        Ok(result)
    };
    let turns = Turns { file: "rungs", count: args.repeats, stop, undo };
    turns::run(run, &turns, plan, measure, |results| report(&args.path, results))
}

/// A sparse file that was not asked for puts its rungs in doubt.
fn doubt(sized: &SizedTarget) -> Option<String> {
    let bytes = sized.size.filter(|_| sized.sparse)?;
    Some(format!(
        "the file of {} is sparse: writing it also has the file system find room for every place",
        size::exact(bytes)
    ))
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

const KEYS: [&str; 16] = [
    "ioengine",
    "bs",
    "iodepth",
    "direct",
    "prefetch",
    "sync",
    "rw",
    "scheduler",
    "size",
    "sparse",
    "queue",
    "queue_depth",
    "random_distribution",
    "prioclass",
    "prio",
    "verify",
];

#[derive(Serialize)]
struct WriteSettings {
    path: PathBuf,
    len_bytes: Vec<u64>,
    writes: u64,
    journal_bytes: u64,
    runtime_s: f64,
    repeats: u32,
    seed: u64,
    awake: bool,
}

impl WriteSettings {
    fn from_args(args: &WriteArgs, lens: &[u64]) -> WriteSettings {
        WriteSettings {
            path: args.path.clone(),
            len_bytes: lens.to_vec(),
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
    args.load.check()?;
    let wrong = |why: &str| Err(LabError::Argument(why.into()));
    if args.writes == 0 {
        return wrong("--writes must be at least 1");
    }
    if args.sizes.iter().any(|bs| *bs > args.journal) {
        return wrong("--journal must hold at least one write of each of --sizes");
    }
    args.given.refuse_idle(&idle(args))
}

/// Switches without an effect.
fn idle(args: &WriteArgs) -> Vec<Idle<'static>> {
    let is_deep = args.engine.iter().any(|engine| engine.0.most_depth().is_none_or(|most| most > 1));
    let is_each = args.sync.iter().all(|sync| *sync == SyncPolicy::Each);
    vec![
        ("size", args.path.exists(), "the file is there already and keeps its size; leave it out"),
        ("sparse", args.path.exists(), "the file is there already and stays as it is; leave it out"),
        ("depth", !is_deep, "these engines have one write at a time; add --engine uring or threads"),
        ("depth", is_each, "a write that is synced at once is alone; add --sync journal, end or background"),
        ("journal", is_each, "each write is synced at once; add --sync journal, end or background"),
    ]
}

/// Makes the files where there is none.
fn prepare(args: &WriteArgs, undo: &Undo) -> Result<Vec<SizedTarget>, LabError> {
    if args.path.exists() {
        return Ok(vec![SizedTarget { target: Target::look(&args.path)?, size: None, sparse: false }]);
    }
    let sizes = if args.size.is_empty() { vec![1 << 30] } else { args.size.clone() };
    let longest = args.sizes.iter().map(|bs| room::taken(&args.path, *bs)).max().unwrap_or(0);
    sized::make(&args.path, &sizes, args.sparse, args.writes.saturating_mul(longest), args.seed, undo)
}

fn heading() -> String {
    format!(
        "{:<52} {:>8} {:>9} {:>9} {:>9} {:>8} {:>6} {:>9}",
        "rung", "writes", "written s", "durable s", "writes/s", "MB/s", "syncs", "max ms"
    )
}

fn row(r: &RungResult) -> String {
    let verified = r.verified.map_or(String::new(), |verified| format!("  {} verified", verified.blocks));
    format!(
        "{:<52} {:>8} {:>9.2} {:>9.2} {:>9.0} {:>8.2} {:>6} {:>9.1}{verified}",
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
    use crate::run::load::LoadFields;
    use crate::write::rung::Rung;

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
            ("f --engine inline,mmap --depth 8", "--depth would change nothing"),
            ("f --sync each --depth 8", "--depth would change nothing"),
            ("f --sync each --journal 1m", "--journal would change nothing"),
            ("/dev/null --size 1m", "--size would change nothing"),
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
        let line = format!("{} --writes 8 --wait --out {}", path.display(), dir.path().join("run").display());
        let error = run(&args(&line)).unwrap_err().to_string();
        assert!(error.contains("is there already") && error.contains("--destroy"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), vec![7; 1 << 20]);
        assert!(!dir.path().join("run").exists());
    }

    #[test]
    fn the_run_folder_is_looked_at_before_a_file_is_made() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("run");
        std::fs::create_dir(&out).unwrap();
        std::fs::write(out.join("notes"), "x").unwrap();
        // There is no room for the file: that would be told first.
        let line = format!("{} --size 512t --wait --out {}", dir.path().join("f").display(), out.display());
        let error = run(&args(&line)).unwrap_err().to_string();
        assert!(error.contains("something in it already"), "{error}");
    }

    #[test]
    fn holes_that_writes_would_fill_need_room() {
        let Some(dir) = folder_on_a_device() else { return };
        let path = dir.path().join("file");
        let free = room::bytes_free(dir.path()).unwrap().unwrap();
        let run_with = |more: &str, writes: u64| {
            let words = "--direct off --prefetch off --sync end --runtime 0.1";
            let out = dir.path().join("run");
            let line =
                format!("{} {words} --writes {writes} --wait --out {} {more}", path.display(), out.display());
            let outcome = run(&args(&line)).map_err(|e| e.to_string());
            drop(std::fs::remove_dir_all(out));
            outcome
        };
        // Each of them takes a block of 4 KiB.
        let small = format!("--engine inline --sizes 512 --sparse --size {}", 2 * free);
        let error = run_with(&small, free / 2048).unwrap_err();
        assert!(error.contains("are needed") && error.contains("free"), "{error}");
        std::fs::File::create(&path).unwrap().set_len(2 * free).unwrap();
        let error = run_with("--engine mmap --sizes 4k --destroy", free / 2048).unwrap_err();
        assert!(error.contains("are needed") && error.contains("without holes"), "{error}");
        run_with("--engine mmap --sizes 4k --destroy", 16).unwrap();
    }

    #[test]
    fn each_size_has_rungs_and_the_vectored_one_writes_neighbours_together() {
        let Some(dir) = folder_on_a_device() else { return };
        let (path, out) = (dir.path().join("made"), dir.path().join("run"));
        // As many writes of 16k as the file has places: all of them are neighbours.
        let line = format!(
            "{} --size 1m --sizes 4k,16k --engine inline,vectored --depth 64 --writes 64 --journal 1m --direct on \
             --prefetch off --sync end --wait --out {}",
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

    /// Runs `words` on a file to be made in `dir`; its results and its page.
    fn measured(dir: &tempfile::TempDir, words: &str) -> (Vec<RungResult>, String) {
        let (path, out) = (dir.path().join("made"), dir.path().join("run"));
        run(&args(&format!("{} --wait --out {} {words}", path.display(), out.display()))).unwrap();
        let files =
            std::fs::read_dir(dir.path()).unwrap().flatten().map(|e| e.file_name()).collect::<Vec<_>>();
        assert_eq!(files, ["run"], "the files it made are gone");
        let lines = std::fs::read_to_string(out.join("rungs.jsonl")).unwrap();
        let rungs = lines.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        (rungs, std::fs::read_to_string(out.join("report.html")).unwrap())
    }

    /// A setting that tells rungs apart but is no key would have `lab compare` take one rung for
    /// the other.
    #[test]
    fn every_setting_of_a_rung_is_a_key_of_comparisons_and_in_its_name() {
        let rung = Rung {
            rw: "randwrite".into(),
            ioengine: "io_uring".into(),
            size: Some(8 << 30),
            sparse: true,
            load: LoadFields {
                queue: Some("fair".into()),
                queue_depth: Some(2),
                random_distribution: Some("zipf:1.1".into()),
                prioclass: Some(3),
                prio: Some(0),
            },
            verify: true,
            bs: 8192,
            iodepth: 3,
            direct: true,
            prefetch: true,
            sync: SyncPolicy::End,
            scheduler: Some("bfq".into()),
        };
        let serde_json::Value::Object(fields) = serde_json::to_value(&rung).unwrap() else { panic!() };
        let keys: std::collections::BTreeSet<&str> = KEYS.into_iter().collect();
        assert_eq!(fields.keys().map(String::as_str).collect::<std::collections::BTreeSet<_>>(), keys);
        let name = name_of(&rung);
        for part in
            ["queue fair (2 at the device)", "zipf:1.1", "ioprio idle", "verify", "file of 8g, sparse"]
        {
            assert!(name.contains(part), "{part}: {name}");
        }
    }

    #[test]
    fn every_engine_s_writes_are_verified_through_queues_and_by_laws() {
        let Some(dir) = folder_on_a_device() else { return };
        let words = "--size 2m --writes 300 --journal 256k --sync end --prefetch off --depth 8 --verify \
                     --engine inline,mmap,threads,uring,vectored,posix-aio --random-distribution random,zipf:1.2 \
                     --queue none --queue elevator --queue deadline --queue-depth 2";
        let (rungs, page) = measured(&dir, words);
        for r in &rungs {
            let verified = r.verified.unwrap();
            let by_zipf = r.rung.load.random_distribution.is_some();
            assert!(verified.blocks == 300 || (by_zipf && (50..300).contains(&verified.blocks)), "{r:?}");
            assert_eq!(verified.cached_pages, 0);
            assert_eq!(r.rung.load.queue_depth.is_some(), r.rung.load.queue.is_some());
        }
        let behind = |name: &str| rungs.iter().filter(|r| r.rung.load.queue.as_deref() == Some(name)).count();
        // Threads, rings and POSIX AIO; the others have one request at a time, which never waits.
        assert_eq!((behind("elevator"), behind("deadline")), (3 * 2 * 2, 3 * 2 * 2));
        assert!(page.contains("verified"));
    }

    #[test]
    fn files_of_several_sizes_are_rows_and_a_curve_and_one_beyond_the_room_is_sparse() {
        let Some(dir) = folder_on_a_device() else { return };
        let beyond = crate::room::bytes_free(dir.path()).unwrap().unwrap() + (1 << 30);
        let words = format!(
            "--size 1m,4m,{beyond} --writes 64 --journal 1m --sync journal,end --direct off --engine inline --prefetch off,on"
        );
        let (rungs, page) = measured(&dir, &words);
        let of = |size: u64| rungs.iter().filter(move |r| r.rung.size == Some(size)).collect::<Vec<_>>();
        assert_eq!([1 << 20, 4 << 20, beyond].map(|size| of(size).len()), [4, 4, 2]);
        assert!(of(beyond).iter().all(|r| r.rung.sparse && r.total_ios == 64 && !r.rung.prefetch));
        assert!(of(1 << 20).iter().all(|r| !r.rung.sparse));
        assert!(page.contains("Time of all syncs by the size of the file") && page.contains("is sparse"));
    }

    #[test]
    fn sizes_are_of_files_to_make() {
        let Some(dir) = folder_on_a_device() else { return };
        let path = dir.path().join("there");
        std::fs::write(&path, vec![7; 1 << 20]).unwrap();
        for more in ["--size 1m", "--sparse"] {
            let line = format!("{} --destroy --wait {more}", path.display());
            let refused = run(&args(&line)).unwrap_err().to_string();
            assert!(refused.contains("is there already") && refused.contains("leave it out"), "{refused}");
        }
    }

    #[test]
    fn a_ladder_writes_leaves_no_file_and_says_when_it_was_durable() {
        let Some(dir) = folder_on_a_device() else { return };
        let (path, out) = (dir.path().join("made"), dir.path().join("run"));
        let line = format!(
            "{} --size 2m --writes 96 --journal 128k --sync each,journal,end,background --wait --out {}",
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
            assert!(r.rung.sync != SyncPolicy::Each || r.rung.iodepth == 1, "{}", name_of(&r.rung));
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
