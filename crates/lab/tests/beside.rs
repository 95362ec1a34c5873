//! A program is measured while another one uses the same disk: its counts are those of a quiet
//! disk, and the other one is named.
//!
//! Needs root, loop devices, tracefs and `dd`; skipped, with a line that says so, where one is
//! missing.

mod support;

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use snowmelt_lab::diskstats::DiskCounts;
use snowmelt_lab::undo::Undo;
use support::{lab, ok, program, turn};

/// A loop device, over a file of holes.
struct Disk {
    device: PathBuf,
    dir: tempfile::TempDir,
    undo: Undo,
    _turn: File,
}

impl Disk {
    fn make(bytes: u64) -> Option<Disk> {
        let dir = tempfile::tempdir().expect("a folder");
        let undo = Undo::open_in(&dir.path().join("state"), "test").expect("a journal");
        let can_trace = || snowmelt_lab::trace::tracefs::find_tracefs(&undo).map(drop);
        let why = if !rustix::process::geteuid().is_root() || !Path::new("/dev/loop-control").exists() {
            "needs root and loop devices".to_owned()
        } else if Command::new("dd").arg("--version").stdout(Stdio::null()).status().is_err() {
            "there is no dd".to_owned()
        } else if let Err(e) = can_trace() {
            e.to_string()
        } else {
            let turn = turn();
            let backing = dir.path().join("backing");
            File::create(&backing).and_then(|file| file.set_len(bytes)).expect("a file");
            let options = snowmelt_io::LoopOptions { direct_io: false, ..Default::default() };
            match undo.attach_loop(&backing, &options) {
                Ok((_, device)) => return Some(Disk { device, dir, undo, _turn: turn }),
                Err(e) => e.to_string(),
            }
        };
        eprintln!("skipped: {why}");
        None
    }

    fn path(&self) -> &str {
        self.device.to_str().expect("text")
    }

    fn name(&self) -> String {
        self.device.file_name().expect("a name").to_string_lossy().into_owned()
    }

    /// A folder for a run.
    fn out(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().expect("text").to_owned()
    }

    fn read(&self, run: &str, file: &str) -> Value {
        let path = self.dir.path().join(run).join(file);
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let first = if file.ends_with("jsonl") { text.lines().next().expect("a line") } else { &text };
        serde_json::from_str(first).expect("JSON")
    }

    /// The share of others that a run tells, of requests and of bytes.
    fn disturbed(&self, run: &str) -> (Option<f64>, f64) {
        let of_disk = &self.read(run, "machine.json")["disturbance"]["disks"][self.name()];
        (of_disk["others_requests"].as_f64(), of_disk["others_bytes"].as_f64().expect("a share"))
    }

    /// The doubts that tell of this disk.
    fn doubts(&self, run: &str) -> Vec<String> {
        let settings = self.read(run, "settings.json");
        let doubts = settings["doubts"].as_array().expect("a list").iter().filter_map(Value::as_str);
        let of_disk = format!("of the disk {}", self.name());
        doubts.filter(|doubt| doubt.contains(&of_disk)).map(str::to_owned).collect()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        drop(self.undo.undo());
    }
}

/// Programs that use the disk until this is dropped.
struct Beside(Vec<Child>);

/// So many that they have their share where processors are few.
const READERS: usize = 4;

impl Beside {
    /// `dd` that reads, several times.
    fn start(disk: &Disk) -> Beside {
        let reads = || DiskCounts::now(&disk.name()).expect("counts").reads;
        let before = reads();
        let dd = || {
            Command::new("dd")
                .args([&format!("if={}", disk.path()), "of=/dev/null", "bs=4k", "iflag=direct"])
                .stderr(Stdio::null())
                .process_group(0)
                .spawn()
                .expect("it starts")
        };
        let children = (0..READERS).map(|_| dd()).collect();
        let begun = Instant::now();
        while reads() < before + 100 && begun.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(reads() >= before + 100, "dd reads");
        Beside(children)
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
            drop(child.wait());
        }
    }
}

/// More than any `dd` reads in the time of a test.
const LARGE: u64 = 256 << 30;

/// The row of a layer in `watch.json`.
fn layer(watch: &Value, kind: &str, begins: &str) -> Option<Value> {
    let of_kind = watch["layers"].as_array()?.iter().find(|of| of["kind"] == kind)?;
    let is_it = |row: &&Value| row["layer"].as_str().is_some_and(|name| name.starts_with(begins));
    of_kind["layers"].as_array()?.iter().find(is_it).cloned()
}

#[test]
fn a_program_that_sleeps_asks_for_nothing_and_the_reader_beside_it_is_named() {
    let Some(disk) = Disk::make(LARGE) else { return };
    let _reader = Beside::start(&disk);
    for (run, trace) in [("counted", None), ("traced", Some("--trace"))] {
        let out = disk.out(run);
        let mut words = vec!["watch", "--device", disk.path(), "--out", &out];
        words.extend(trace);
        words.extend(["--", "sleep", "1"]);
        let said = ok(&words);
        assert!(!said.contains("for each") || trace.is_some(), "{said}");
        let watch = disk.read(run, "watch.json");
        let text = watch["layers"].to_string();
        assert!(!text.contains("Amplification") && !text.contains("calls to read"), "{text}");
        let others = layer(&watch, "read", "of them for others").expect("a row of others");
        assert!(others["layer"].as_str().is_some_and(|name| name.contains("dd (pid")), "{others}");
        let all = layer(&watch, "read", "requests to the device, by all").expect("a row of all");
        assert!(all["count"].as_u64() > Some(100), "{all}");
        assert!(others["bytes"].as_f64() > all["bytes"].as_f64().map(|all| 0.99 * all), "{others} {all}");
        let (requests, bytes) = disk.disturbed(run);
        assert!(bytes > 0.99 && requests.is_some() == trace.is_some(), "{requests:?} {bytes}");
        let doubts = disk.doubts(run);
        assert!(doubts.len() == 1 && doubts[0].contains("dd (pid"), "{doubts:?}");
    }
}

#[test]
fn a_traced_program_has_the_requests_it_has_on_a_quiet_disk() {
    let Some(disk) = Disk::make(LARGE) else { return };
    let input = format!("if={}", disk.path());
    let program = ["--", "dd", &input, "of=/dev/null", "bs=8k", "count=500", "iflag=direct", "status=none"];
    let own = |run: &str| {
        let out = disk.out(run);
        ok(&[&["watch", "--trace", "--device", disk.path(), "--out", &out][..], &program].concat());
        let watch = disk.read(run, "watch.json");
        let row = layer(&watch, "read", "requests to the device, for the program").expect("a row");
        (row["count"].as_u64(), row["bytes"].as_u64())
    };
    let quiet = own("quiet");
    assert_eq!(quiet, (Some(500), Some(500 * 8192)));
    assert!(disk.doubts("quiet").is_empty(), "{:?}", disk.doubts("quiet"));
    let _reader = Beside::start(&disk);
    assert_eq!(own("beside"), quiet);
    let (requests, _) = disk.disturbed("beside");
    assert!(requests > Some(0.1) && disk.doubts("beside").len() == 1, "{requests:?}");
    // As a trace: the table, a line for each request, and histograms.
    let out = disk.out("trace");
    let said = ok(&[&["trace", "--snoop", "--device", disk.path(), "--out", &out][..], &program].concat());
    let of_program = |line: &&str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        matches!(words[..], [_, "dd", _, _, "R", _, "8192", _, _, file] if file == disk.path())
    };
    assert_eq!(said.lines().filter(of_program).count(), 500, "{}", &said[..said.len().min(2000)]);
    assert!(said.contains("QUE(ms)") && said.contains("read: D2C") && said.contains("@@@"), "{said}");
    let summary = disk.read("trace", "summary.jsonl");
    let rows = summary["users"].as_array().expect("rows");
    let reads = |ours: bool| -> Vec<(&str, u64)> {
        let of = rows.iter().filter(|row| row["ours"] == ours && row["process"] == "dd");
        of.map(|row| (row["file"].as_str().unwrap(), row["reads"]["requests"].as_u64().unwrap())).collect()
    };
    assert_eq!(reads(true), [(disk.path(), 500)], "{rows:?}");
    assert!(reads(false).iter().all(|(_, requests)| *requests > 0), "{rows:?}");
    assert!(!reads(false).is_empty(), "{rows:?}");
    let said: Vec<&str> = said.lines().filter(|line| line.contains("for the program")).collect();
    assert!(said.len() == 1 && said[0].contains(" 500 of  8.00 KiB"), "{said:?}");
}

#[test]
fn cells_of_reads_count_their_own_and_doubt_a_busy_disk() {
    let Some(disk) = Disk::make(LARGE) else { return };
    let cell = |run: &str, trace: Option<&str>| {
        let out = disk.out(run);
        let mut words = vec!["read", disk.path(), "--sizes", "8k", "--depth", "1", "--engine", "uring"];
        words.extend(["--direct", "on", "--range", "1g", "--runtime", "0.7", "--out", &out]);
        words.extend(trace);
        ok(&words);
        disk.read(run, "cells.jsonl")
    };
    let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{value}"));
    let is_own = |cell: &Value| {
        let own = &cell["device"]["own"];
        // Opening a device may read a little of it: its partitions.
        let more = |own: &Value, asked: &Value| number(own) - number(asked);
        assert!(more(&own["reads"], &cell["total_ios"]) <= 4, "{own} {}", cell["total_ios"]);
        assert!(more(&own["read_bytes"], &cell["io_bytes"]) <= 4 * 4096, "{own} {}", cell["io_bytes"]);
        let each = cell["requests_per_io"].as_f64().expect("a ratio");
        assert!(number(&own["writes"]) == 0 && (1.0..1.01).contains(&each), "{own} {each}");
    };
    let quiet = cell("quiet", Some("--trace"));
    is_own(&quiet);
    assert!(number(&quiet["device"]["others_bytes"]) < 64 << 10, "{quiet}");
    assert!(disk.doubts("quiet").is_empty(), "{:?}", disk.doubts("quiet"));
    let _reader = Beside::start(&disk);
    let traced = cell("traced", Some("--trace"));
    is_own(&traced);
    assert!(number(&traced["device"]["others_bytes"]) > 1 << 20, "{traced}");
    let (requests, bytes) = disk.disturbed("traced");
    assert!(requests > Some(0.1) && bytes > 0.05, "{requests:?} {bytes}");
    assert!(disk.doubts("traced")[0].contains("of the requests"), "{:?}", disk.doubts("traced"));
    // Without a trace bytes are told from those of others, requests are not.
    let counted = cell("counted", None);
    assert!(counted["device"]["own"].is_null() && counted["requests_per_io"].is_null(), "{counted}");
    let amplification = counted["amplification"].as_f64().expect("a ratio");
    assert!((amplification - 1.0).abs() < 0.02, "{amplification}");
    let (requests, bytes) = disk.disturbed("counted");
    assert!(requests.is_none() && bytes > 0.05, "{bytes}");
}

#[test]
fn a_scan_counts_its_own_reads() {
    let Some(disk) = Disk::make(LARGE) else { return };
    let scan = |run: &str| {
        let out = disk.out(run);
        let what = ["--size", "256m", "--scheduler", "as-is", "--dop", "2", "--repeat", "1"];
        ok(&[&["scan", disk.path(), "--out", &out][..], &what].concat());
        let cell = disk.read(run, "cells.jsonl");
        let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{cell}"));
        let device = &cell["device"];
        assert_eq!(number(&cell["bytes"]), 256 << 20);
        (number(&device["own"]["bytes"]), number(&device["read_bytes"]), number(&device["others_bytes"]))
    };
    // Opening a device may read a little of it.
    let is_own = |own: u64| (256 << 20..257 << 20).contains(&own);
    let (own, all, others) = scan("quiet");
    assert!(is_own(own) && is_own(all) && others < 1 << 20, "{own} {all} {others}");
    let _beside = Beside::start(&disk);
    let (own, all, others) = scan("beside");
    assert!(is_own(own) && all > own && others > 0, "{own} {all} {others}");
    assert!(disk.disturbed("beside").0 > Some(0.0), "{:?}", disk.disturbed("beside"));
}

/// Reads of the disk past the page cache for a moment, and the share of others in its bytes.
fn others_beside_reads(disk: &Disk, run: &str, wrapper: &[&str]) -> f64 {
    let out = disk.out(run);
    let lab = program();
    let mut words = wrapper.to_vec();
    words.extend([lab.to_str().expect("text"), "read", disk.path(), "--sizes", "8k", "--depth", "1"]);
    words.extend(["--engine", "uring", "--direct", "on", "--range", "1g", "--runtime", "0.7", "--out", &out]);
    let output = Command::new(words[0]).args(&words[1..]).output().expect("it starts");
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    disk.disturbed(run).1
}

#[test]
fn in_a_container_the_work_of_processes_outside_is_others() {
    let Some(disk) = Disk::make(LARGE) else { return };
    let wrapper = ["unshare", "--pid", "--fork", "--mount-proc"];
    if !Command::new(wrapper[0]).args(&wrapper[1..]).arg("true").status().is_ok_and(|of| of.success()) {
        return eprintln!("skipped: unshare does not run here");
    }
    let _beside = Beside::start(&disk);
    let others = others_beside_reads(&disk, "container", &wrapper);
    assert!(others > 0.05, "{others}");
    let doubts = disk.doubts("container");
    assert!(doubts.len() == 1 && doubts[0].contains("or the file system's own"), "{doubts:?}");
}

/// Programs whose counts no process gets when they end.
#[test]
fn the_work_of_children_that_nothing_waits_for_is_others() {
    let Some(disk) = Disk::make(LARGE) else { return };
    let script = format!(
        "trap '' CHLD; while :; do dd if={} of=/dev/null bs=64k count=64 iflag=direct status=none; done",
        disk.path()
    );
    let shell = Command::new("sh").args(["-c", &script]).process_group(0).spawn().expect("it starts");
    let stat = format!("/proc/{}/stat", shell.id());
    let _beside = Beside(vec![shell]);
    std::thread::sleep(Duration::from_millis(200));
    let stat = std::fs::read_to_string(stat).expect("it runs");
    let ignored =
        stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(30)?.parse::<u64>().ok());
    if ignored.is_none_or(|signals| signals & (1 << 16) == 0) {
        return eprintln!("skipped: this shell does not ignore SIGCHLD");
    }
    let others = others_beside_reads(&disk, "lost", &[]);
    assert!(others > 0.05, "{others}");
    assert_eq!(disk.doubts("lost").len(), 1, "{:?}", disk.doubts("lost"));
}

#[test]
fn a_trace_ends_as_its_program_does_or_ends_it() {
    let Some(disk) = Disk::make(LARGE) else { return };
    let code = |run: &str, words: &[&str]| {
        let out = disk.out(run);
        let output = lab(&[&["trace", "--device", disk.path(), "--out", &out][..], words].concat());
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    assert_eq!(code("failed", &["--", "false"]).0, Some(1));
    assert_eq!(code("killed", &["--", "sh", "-c", "kill -9 $$"]).0, Some(137));
    assert_eq!(code("well", &["--", "true"]).0, Some(0));
    let marker = disk.dir.path().join("ended");
    let script = format!("trap 'echo term > {}; exit' TERM; while :; do sleep 0.02; done", marker.display());
    let (code, said) = code("long", &["--seconds", "0.3", "--", "sh", "-c", &script]);
    assert!(code == Some(0) && said.contains("still ran at the end of the trace"), "{code:?} {said}");
    assert_eq!(std::fs::read_to_string(marker).expect("SIGTERM came"), "term\n");
}

/// A mount, until it is dropped.
struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(&self.0, rustix::mount::UnmountFlags::DETACH);
    }
}

#[test]
fn write_back_is_of_the_program_that_wrote_the_file() {
    write_back_is_told(&["mkfs.ext4", "-q", "-E", "lazy_itable_init=0"]);
}

/// Its files have a number that no device has.
#[test]
fn write_back_of_a_btrfs_is_of_the_program_that_wrote_the_file() {
    write_back_is_told(&["mkfs.btrfs", "-q"]);
}

fn write_back_is_told(mkfs: &[&str]) {
    let Some(disk) = Disk::make(256 << 20) else { return };
    let made = Command::new(mkfs[0]).args(&mkfs[1..]).arg(disk.path()).status();
    if !made.is_ok_and(|status| status.success()) {
        return eprintln!("skipped: there is no {}", mkfs[0]);
    }
    let kind = mkfs[0].trim_start_matches("mkfs.");
    let place = disk.dir.path().join("mount");
    std::fs::create_dir(&place).expect("a folder");
    let flags = rustix::mount::MountFlags::empty();
    if let Err(e) = rustix::mount::mount(&disk.device, &place, kind, flags, None) {
        return eprintln!("skipped: no {kind} can be mounted ({e})");
    }
    let mounted = Mounted(place.clone());
    rustix::fs::syncfs(File::open(&place).expect("a folder")).expect("synced");
    let path = |name: &str| place.join(name).to_str().expect("text").to_owned();
    // Another program writes as much beside it, and only the program asks for write-back, which is
    // done by a thread of the kernel.
    let beside = format!(
        "while :; do dd if=/dev/zero of={} bs=64k count=32 conv=notrunc status=none; sleep 0.02; done",
        path("other")
    );
    let other = Command::new("sh").args(["-c", &beside]).process_group(0).spawn().expect("it starts");
    let other = Beside(vec![other]);
    std::thread::sleep(Duration::from_millis(100));
    let write = format!(
        "dd if=/dev/zero of={} bs=64k count=64 status=none; sleep 0.3; sync -f {}",
        path("mine"),
        place.display()
    );
    let out = disk.out("trace");
    let words = ["trace", "--requests", "--device", disk.path(), "--out", &out, "--", "sh", "-c", &write];
    ok(&words);
    drop(other);
    // A short program may have ended before its files were asked for: then they have numbers.
    let inode = |name: &str| std::fs::metadata(path(name)).map(|meta| format!("inode {}", meta.ino()));
    let inodes = ["mine", "other"].map(|name| (name, inode(name).expect("a file")));
    drop(mounted);
    let summary = disk.read("trace", "summary.jsonl");
    let rows = summary["users"].as_array().expect("rows");
    let of = |name: &str| -> Vec<&Value> {
        let number = &inodes.iter().find(|(of, _)| *of == name).expect("one of both").1;
        rows.iter().filter(|row| row["file"] == path(name) || row["file"] == *number).collect()
    };
    let mine = of("mine");
    let is_ours = |row: &&Value| row["ours"] == true && (row["process"] == "dd" || row["process"] == "?");
    assert!(mine.iter().all(is_ours), "{rows:?}");
    let bytes = |rows: &[&Value]| rows.iter().filter_map(|row| row["writes"]["bytes"].as_u64()).sum::<u64>();
    assert_eq!(bytes(&mine), 64 * 65536, "{rows:?}");
    assert!(of("other").iter().all(|row| row["ours"] == false) && bytes(&of("other")) > 0, "{rows:?}");
    // Of a btrfs `sync` itself writes the structures.
    let own = summary["parties"]["own"]["bytes"].as_u64().map(|n| n >> 16);
    assert!(own == Some(64) || (kind == "btrfs" && own > Some(64)), "{own:?} {rows:?}");
    // The thread that wrote it is another one.
    let lines = std::fs::read_to_string(disk.dir.path().join("trace/requests.jsonl")).expect("requests");
    let of_mine: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let by_kernel = of_mine.iter().any(|line| {
        line["ours"] == true && line["comm"].as_str().is_some_and(|comm| comm.starts_with("kworker/"))
    });
    assert!(by_kernel, "{lines}");
}
