//! `lab file-systems`: the same reads and writes on several file systems, made one after the other
//! on one block device.
//!
//! For each kind: make it, mount it, run `lab read` on a file in it and `lab write` to a new one,
//! each with a run folder of its own, and unmount it. The device is a loop device over a file in a
//! folder, or one that is named, of which everything is lost: an emulated one, say. Its disks are
//! held from the first mkfs to the end. All of it is in the journal of undo. A kind without its
//! mkfs, that the kernel does not mount, or that has no room for the files, is left out, or what of
//! it was not measured, and the page says why.

mod page;
mod volume;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use clap::Parser;
use serde::Serialize;
use serde::de::DeserializeOwned;
use snowmelt_base::random::GOLDEN;
use snowmelt_io::LoopOptions;

use crate::file_systems::page::report;
use crate::file_systems::volume::{FileSystemKind, Volume};
use crate::machine::BlockDevice;
use crate::read::{self, CellResult, ReadArgs, name_of as name_of_cell};
use crate::run::RunFolder;
use crate::target::held::Busy;
use crate::target::{Target, data_file};
use crate::undo::{Undo, signals};
use crate::write::{self, RungResult, WriteArgs, name_of as name_of_rung};
use crate::{LabError, Run, size};

/// Compare file systems: the same reads and writes on each, made anew on one device.
#[derive(Debug, clap::Args)]
pub struct FileSystemsArgs {
    /// A folder for the file behind a loop device; or with --destroy a block device whose content
    /// may be lost
    place: PathBuf,
    /// Overwrite what is on the device
    #[arg(long)]
    destroy: bool,
    /// File systems to be made: ext4, xfs, btrfs
    #[arg(long, value_delimiter = ',', default_value = "ext4,xfs,btrfs", hide_possible_values = true)]
    kinds: Vec<FileSystemKind>,
    /// Length of the loop device
    #[arg(long, value_name = "SIZE", default_value = "1g", value_parser = size::parse)]
    size: u64,
    /// Length of the file that is read; the writes have one of their own, of --size in --write
    #[arg(long, value_name = "SIZE", default_value = "256m", value_parser = size::parse)]
    file: u64,
    /// Switches of `snowmelt-lab read` for the reads; empty for none
    #[arg(
        long,
        value_name = "SWITCHES",
        default_value = "--bs 4k,128k --iodepth 1,32 --direct on --runtime 3",
        allow_hyphen_values = true
    )]
    read: String,
    /// Switches of `snowmelt-lab write` for the writes; empty for none
    #[arg(
        long,
        value_name = "SWITCHES",
        default_value = "--size 256m --engine uring --direct on,off --prefetch off --sync each,end --writes 2560 --runtime 10",
        allow_hyphen_values = true
    )]
    write: String,
    #[command(flatten)]
    busy: Busy,
    /// Folder of the run
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// The words of `lab read` that are common to all file systems.
#[derive(Parser)]
struct ReadLine {
    #[command(flatten)]
    args: ReadArgs,
}

/// See [`ReadLine`].
#[derive(Parser)]
struct WriteLine {
    #[command(flatten)]
    args: WriteArgs,
}

/// A cell of one file system: a line of `cells.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct OnFileSystem {
    file_system: String,
    /// `read` or `write`.
    what: &'static str,
    cell: String,
    /// Requests per second; of writes until they were durable.
    per_s: f64,
    p50_ns: u64,
    p99_ns: u64,
}

/// The file systems that were made, and those that were not.
struct Compared {
    cells: Vec<OnFileSystem>,
    /// By which programs, and mounted how.
    made: Vec<String>,
    left_out: Vec<String>,
}

/// Runs the command.
///
/// # Errors
/// The switches of read or write make no sense, the device is in use, or no file system could be
/// measured.
pub fn run(args: &FileSystemsArgs) -> Result<(), LabError> {
    // Before anything is made.
    let here = Path::new("file");
    if !args.read.trim().is_empty() {
        read_line(args, here, here)?;
    }
    if !args.write.trim().is_empty() {
        write_line(args, here, here)?;
    }
    if args.read.trim().is_empty() && args.write.trim().is_empty() {
        return Err(LabError::Argument("nothing to measure: --read and --write are both empty".into()));
    }
    if !rustix::process::geteuid().is_root() {
        return Err(LabError::refused(
            "making and mounting file systems",
            "needs root",
            "without it `snowmelt-lab read` and `write` measure files on those there are",
        ));
    }
    let undo = Undo::open("file-systems")?;
    let folder = RunFolder::create("file-systems", args.out.as_deref())?;
    let device = device(args, &undo)?;
    let mut run = folder.begin();
    run.settings(&serde_json::json!({
        "place": args.place, "device": device, "kinds": args.kinds.iter().map(|k| k.name()).collect::<Vec<_>>(),
        "file_bytes": args.file, "read": args.read, "write": args.write,
    }));
    run.compare_by("cells", &["file_system", "what", "cell"], &[("per_s", true), ("p99_ns", false)]);
    if let Some(device) = BlockDevice::find(&device)? {
        run.device(device);
    }
    let mut lines = run.lines("cells")?;
    let mut compared = Compared { cells: Vec::new(), made: Vec::new(), left_out: Vec::new() };
    for kind in &args.kinds {
        match Volume::make(*kind, &device, &undo)? {
            Err(why) => compared.leave_out(why),
            Ok(volume) => {
                crate::say!("\n{}", volume.made);
                compared.made.push(volume.made.clone());
                let outcome = measure(args, &volume, &mut run, &undo, &mut |cell| {
                    lines.write(&cell)?;
                    compared.cells.push(cell);
                    Ok(())
                });
                volume.take_down(&undo)?;
                match outcome {
                    Ok(()) => {}
                    Err(LabError::Stopped) => return Err(LabError::Stopped),
                    Err(e) => compared.leave_out(format!("{}: not all of it was measured: {e}", kind.name())),
                }
            }
        }
    }
    undo.undo()?;
    if compared.cells.is_empty() {
        return Err(LabError::Argument(format!("no file system: {}", compared.left_out.join("; "))));
    }
    let page = run.finish(report(&compared))?;
    crate::say!("\n{}", page.display());
    Ok(())
}

impl Compared {
    fn leave_out(&mut self, why: String) {
        crate::tell!("left out: {why}");
        self.left_out.push(why);
    }
}

/// The device that the file systems are made on, with its disks held.
fn device(args: &FileSystemsArgs, undo: &Undo) -> Result<PathBuf, LabError> {
    let stop = signals::stop_on_signal();
    if !args.place.is_dir() {
        Target::look(&args.place)?;
        if !snowmelt_io::is_block_device(&args.place) {
            let instead = "name its folder, or a block device";
            return Err(LabError::refused(args.place.display(), "is a file", instead));
        }
        // Every mkfs and every mount takes it for itself.
        drop(args.busy.take(&args.place, args.destroy, &[], undo, stop.flag())?);
        return Ok(args.place.clone());
    }
    args.busy.hold(BlockDevice::find(&args.place)?.as_slice(), undo, stop.flag())?;
    let backing = args.place.join(format!("snowmelt-lab-file-systems-{}", std::process::id()));
    data_file::make(&backing, args.size, GOLDEN, undo)?;
    let (_, device) = undo.attach_loop(&backing, &LoopOptions::default())?;
    args.busy.hold(BlockDevice::find(&device)?.as_slice(), undo, stop.flag())?;
    Ok(device)
}

/// Reads and writes in one file system; each of the cells is taken as soon as it was measured.
fn measure(
    args: &FileSystemsArgs,
    volume: &Volume,
    run: &mut Run,
    undo: &Undo,
    take: &mut dyn FnMut(OnFileSystem) -> Result<(), LabError>,
) -> Result<(), LabError> {
    let name = volume.kind.name();
    let steps = run.path().join("steps");
    std::fs::create_dir_all(&steps).map_err(|e| LabError::file("make the folder", &steps, e))?;
    let cell = |what, cell: String, per_s, clat: &crate::stats::LatencySummary| OnFileSystem {
        file_system: name.into(),
        what,
        cell,
        per_s,
        p50_ns: clat.p50_ns,
        p99_ns: clat.p99_ns,
    };
    if !args.read.trim().is_empty() {
        let (file, out) = (volume.folder.join("read"), steps.join(format!("{name}-read")));
        // It goes with the file system.
        let own = Undo::open_within(undo, "file-systems-file")?;
        data_file::make(&file, args.file, GOLDEN, &own)?;
        read::run_within(&read_line(args, &file, &out)?, undo)?;
        own.undo()?;
        for result in results::<CellResult>(&out.join("cells.jsonl"))? {
            result.doubts.iter().for_each(|doubt| run.doubt(format!("{name}: {doubt}")));
            take(cell("read", name_of_cell(&result.cell), result.iops, &result.clat))?;
        }
    }
    if !args.write.trim().is_empty() {
        let (file, out) = (volume.folder.join("write"), steps.join(format!("{name}-write")));
        write::run_within(&write_line(args, &file, &out)?, undo)?;
        for result in results::<RungResult>(&out.join("rungs.jsonl"))? {
            result.doubts.iter().for_each(|doubt| run.doubt(format!("{name}: {doubt}")));
            take(cell("write", name_of_rung(&result.rung), result.durable_per_s, &result.clat))?;
        }
    }
    Ok(())
}

fn read_line(args: &FileSystemsArgs, file: &Path, out: &Path) -> Result<ReadArgs, LabError> {
    words::<ReadLine>("read", &args.read, file, out).map(|line| line.args)
}

fn write_line(args: &FileSystemsArgs, file: &Path, out: &Path) -> Result<WriteArgs, LabError> {
    words::<WriteLine>("write", &args.write, file, out).map(|line| line.args)
}

/// The command line of a step. It waits for others, which may begin between two steps.
fn words<P: Parser>(command: &str, switches: &str, file: &Path, out: &Path) -> Result<P, LabError> {
    let (file, out) = (file.as_os_str().to_owned(), out.as_os_str().to_owned());
    let mut line = vec![command.into(), file, "--out".into(), out];
    line.extend(switches.split_whitespace().map(Into::into));
    if !switches.split_whitespace().any(|word| word == "--wait") {
        line.push("--wait".into());
    }
    P::try_parse_from(line).map_err(|wrong| {
        let text = wrong.to_string();
        let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
        LabError::Argument(format!("--{command} {switches:?}: {first}"))
    })
}

fn results<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, LabError> {
    let file = File::open(path).map_err(|e| LabError::file("read", path, e))?;
    let wrong = |e: serde_json::Error| LabError::Argument(format!("{}: {e}", path.display()));
    let lines = BufReader::new(file).lines().map(|line| line.map_err(|e| LabError::file("read", path, e)));
    lines.map(|line| serde_json::from_str(&line?).map_err(wrong)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: FileSystemsArgs,
    }

    fn args(words: &[&str]) -> FileSystemsArgs {
        Cli::parse_from([&["file-systems"], words].concat()).args
    }

    #[test]
    fn wrong_switches_of_the_steps_are_told_before_anything_is_made() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().to_str().unwrap();
        for (words, says) in [
            (["--read", "--bs 4x"], "--read \"--bs 4x\""),
            (["--write", "--sink end"], "--write \"--sink end\""),
        ] {
            let error = run(&args(&[&[place], &words[..]].concat())).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        let error = run(&args(&[place, "--read", "", "--write", ""])).unwrap_err().to_string();
        assert!(error.contains("nothing to measure"), "{error}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        read_line(&args(&[place]), Path::new("f"), Path::new("o")).unwrap();
        write_line(&args(&[place]), Path::new("f"), Path::new("o")).unwrap();
    }

    /// Two folders, for the loop device and for the run, where root has loop devices.
    fn folders() -> Option<(tempfile::TempDir, PathBuf, PathBuf)> {
        if !rustix::process::geteuid().is_root() || !Path::new("/dev/loop-control").exists() {
            println!("skipped: needs root and loop devices");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let (place, out) = (dir.path().join("place"), dir.path().join("run"));
        std::fs::create_dir(&place).unwrap();
        Some((dir, place, out))
    }

    #[test]
    fn a_kind_without_room_is_told_and_the_others_are_measured() {
        let Some((dir, place, out)) = folders() else { return };
        // Through a link: the loop device is ours by its real path.
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&place, &link).unwrap();
        // ext4 has room for the file of the reads, and none for that of the writes.
        let words = [
            &[link.to_str().unwrap(), "--wait", "--kinds", "ext4", "--size", "400m", "--file", "8m"][..],
            &["--out", out.to_str().unwrap(), "--read", "--bs 4k --iodepth 1 --direct on --runtime 0.1"],
            &["--write", "--size 8m,2g --engine inline --direct on --sync end --writes 1000000"],
        ];
        match run(&args(&words.concat())) {
            Err(e) if e.to_string().contains("no mkfs") || e.to_string().contains("loop") => {
                return println!("skipped: {e}");
            }
            other => other.unwrap(),
        }
        let report = std::fs::read_to_string(out.join("report.json")).unwrap();
        assert!(
            report.contains("ext4: not all of it was measured") && report.contains("are needed"),
            "{report}"
        );
        let cells = std::fs::read_to_string(out.join("cells.jsonl")).unwrap();
        assert_eq!(cells.lines().count(), 1, "{cells}");
        assert_eq!(std::fs::read_dir(&place).unwrap().count(), 0);
        let loops = std::fs::read_dir("/sys/block").unwrap().flatten();
        let shown = loops.filter_map(|entry| snowmelt_io::loop_backing(Path::new(&entry.file_name())));
        let left: Vec<PathBuf> = shown.filter(|backing| backing.starts_with(&place)).collect();
        assert!(left.is_empty(), "attached still: {left:?}");
    }

    #[test]
    fn a_device_that_another_command_measures_is_left_alone() {
        let Some((dir, ..)) = folders() else { return };
        let backing = dir.path().join("backing");
        let bytes = vec![7; 1 << 20];
        std::fs::write(&backing, &bytes).unwrap();
        let other = Undo::open_in(&dir.path().join("state"), "other").unwrap();
        let Ok((_, device)) = other.attach_loop(&backing, &LoopOptions::default()) else {
            return println!("skipped: no loop devices here");
        };
        let disk = BlockDevice::find(&device).unwrap().unwrap();
        assert!(other.hold(&std::fs::canonicalize(disk.sys()).unwrap()).unwrap());
        let out = dir.path().join("run");
        let line = [device.to_str().unwrap(), "--destroy", "--out", out.to_str().unwrap()];
        // Its disk may be measured by another test: that is told as well.
        let error = run(&args(&line)).unwrap_err().to_string();
        assert!(error.contains("is being measured by"), "{error}");
        other.undo().unwrap();
        assert_eq!(std::fs::read(&backing).unwrap(), bytes);
    }

    #[test]
    fn each_kind_is_made_measured_and_taken_down() {
        let Some((_dir, place, out)) = folders() else { return };
        let words = [
            &[place.to_str().unwrap(), "--wait", "--size", "400m", "--file", "8m"][..],
            &["--out", out.to_str().unwrap()],
            &["--read", "--bs 4k --iodepth 1,8 --direct on --runtime 0.1"],
            &["--write", "--size 8m --engine inline --direct on --prefetch off --sync end --writes 64"],
        ];
        match run(&args(&words.concat())) {
            Err(e) if e.to_string().contains("no file system") || e.to_string().contains("loop") => {
                return println!("skipped: {e}");
            }
            other => other.unwrap(),
        }
        let text = std::fs::read_to_string(out.join("cells.jsonl")).unwrap();
        let cells: Vec<serde_json::Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        let report = std::fs::read_to_string(out.join("report.json")).unwrap();
        for kind in ["ext4", "xfs", "btrfs"] {
            let of = cells.iter().filter(|cell| cell["file_system"] == kind).count();
            assert!(
                of == 3 || (of == 0 && report.contains(&format!("{kind} was left out"))),
                "{kind}: {text}"
            );
        }
        assert!(!report.contains("busy"), "one was not taken down before the next was made: {report}");
        assert!(cells.iter().all(|cell| cell["per_s"].as_f64().unwrap() > 0.0), "{text}");
        assert_eq!(std::fs::read_dir(&place).unwrap().count(), 0, "the file of the loop device is gone");
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
        assert!(!mounts.contains(&format!("file-systems-{}", std::process::id())), "{mounts}");
    }
}
