//! Loads of `read` and `write` on a loop device of their own, where root allows one: priorities as
//! the block layer sees them, schedulers set and set back, and the terminal.

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use snowmelt_lab::undo::Undo;
use support::{fails, ok, turn};

/// A loop device that goes with its undo.
struct LoopDevice {
    _turn: fs::File,
    undo: Undo,
    path: PathBuf,
    dir: tempfile::TempDir,
}

impl LoopDevice {
    fn attach() -> Option<LoopDevice> {
        if !rustix::process::geteuid().is_root() || !Path::new("/dev/loop-control").exists() {
            eprintln!("skipped: needs root and loop devices");
            return None;
        }
        let turn = turn();
        let dir = tempfile::tempdir().expect("a folder");
        let backing = dir.path().join("backing");
        fs::write(&backing, vec![1; 8 << 20]).expect("written");
        let undo = Undo::open_in(&dir.path().join("state"), "test").expect("a journal");
        match undo.attach_loop(&backing, &snowmelt_io::LoopOptions::default()) {
            Ok((_, path)) => Some(LoopDevice { _turn: turn, undo, path, dir }),
            Err(e) => {
                eprintln!("skipped: {e}");
                None
            }
        }
    }

    /// Runs a command on it; what it printed, and the lines of its results.
    fn measured(&self, run: &str, words: &str) -> (String, Vec<Value>) {
        let out = self.dir.path().join(run);
        let path = self.path.display().to_string();
        let mut all: Vec<&str> = words.split_whitespace().collect();
        all.insert(1, &path);
        let folder = out.display().to_string();
        all.extend(["--out", &folder]);
        let printed = ok(&all);
        let file = if all[0] == "read" { "cells.jsonl" } else { "rungs.jsonl" };
        let lines = fs::read_to_string(out.join(file)).expect("results");
        (printed, lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect())
    }

    fn queue(&self) -> PathBuf {
        Path::new("/sys/block").join(self.path.file_name().expect("a device has a name")).join("queue")
    }
}

/// IssuedRequests requests of one device, in an instance of tracefs of its own.
struct IssuedRequests(PathBuf);

impl IssuedRequests {
    fn of(device: &Path) -> Option<IssuedRequests> {
        use std::os::unix::fs::MetadataExt;
        let number = fs::metadata(device).expect("a device").rdev();
        let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
        let root = Path::new("/sys/kernel/tracing/instances");
        let issued = IssuedRequests(root.join(format!("snowmelt-test-{}", std::process::id())));
        let event = issued.0.join("events/block/block_rq_issue");
        let set = |file: &str, text: String| fs::write(event.join(file), text);
        let begun = fs::create_dir(&issued.0)
            .and_then(|()| set("filter", format!("dev == {}", (u64::from(major) << 20) | u64::from(minor))))
            .and_then(|()| set("enable", "1".into()));
        match begun {
            Ok(()) if fs::read_to_string(event.join("format")).is_ok_and(|text| text.contains("ioprio")) => {
                Some(issued)
            }
            Ok(()) => skipped("this kernel's events do not tell priorities"),
            Err(e) => skipped(&format!("no tracing here: {e}")),
        }
    }

    /// Priorities of the reads or writes since the last call, as `be,0,6`.
    fn priorities(&self, direction: char) -> Vec<String> {
        let text = fs::read_to_string(self.0.join("trace")).expect("a trace");
        fs::write(self.0.join("trace"), "").expect("emptied");
        let of_line = |line: &str| {
            let (_, event) = line.split_once("block_rq_issue: ")?;
            let words: Vec<&str> = event.split_whitespace().collect();
            words[1].contains(direction).then(|| words[words.len() - 2].to_string())
        };
        text.lines().filter_map(of_line).collect()
    }
}

fn skipped<T>(why: &str) -> Option<T> {
    eprintln!("skipped: {why}");
    None
}

impl Drop for IssuedRequests {
    fn drop(&mut self) {
        let _ = fs::write(self.0.join("events/block/block_rq_issue/enable"), "0");
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn every_request_has_the_priority_that_was_asked_for() {
    let Some(device) = LoopDevice::attach() else { return };
    let Some(issued) = IssuedRequests::of(&device.path) else { return };
    let direct = "--sizes 4k --direct on --number-ios 40 --depth";
    for (i, (engine, depth)) in
        [("uring", 4), ("threads", 4), ("inline", 1), ("vectored", 4)].iter().enumerate()
    {
        for (priority, seen) in [("best-effort:6", "be,0,6"), ("idle", "idle,0,0"), ("realtime:2", "rt,0,2")]
        {
            issued.priorities('R');
            let words = format!("read {direct} {depth} --engine {engine} --ioprio {priority}");
            let (printed, cells) = device.measured(&format!("{engine}-{priority}"), &words);
            assert!(printed.contains(&format!("ioprio {priority}")), "{printed}");
            assert_eq!(cells[0]["total_ios"], 40);
            let priorities = issued.priorities('R');
            let right = priorities.iter().filter(|p| *p == seen).count();
            assert_eq!(right, 40, "{engine} {priority}: {priorities:?}");
        }
        // Nothing is left on a thread, and without the switch nothing is set.
        device.measured(&format!("usual-{i}"), &format!("read {direct} {depth} --engine {engine}"));
        assert!(issued.priorities('R').iter().all(|p| !p.starts_with("rt") && !p.starts_with("idle")));
    }
    let words =
        "write --destroy --direct on --engine uring --prefetch off --sync end --writes 40 --ioprio idle";
    let (_, rungs) = device.measured("written", words);
    assert_eq!((rungs[0]["prioclass"].as_u64(), rungs[0]["prio"].as_u64()), (Some(3), Some(0)));
    let writes = issued.priorities('W').iter().filter(|p| *p == "idle,0,0").count();
    assert_eq!(writes, 40);
    drop(issued);
    device.undo.undo().expect("undone");
}

#[test]
fn mixes_and_verified_writes_go_through_every_scheduler_and_it_is_set_back() {
    let Some(device) = LoopDevice::attach() else { return };
    let schedulers = || fs::read_to_string(device.queue().join("scheduler")).expect("readable");
    let before = schedulers();
    let names: Vec<&str> = before.split_whitespace().map(|name| name.trim_matches(['[', ']'])).collect();
    let words =
        "read --destroy --rwmixread 60 --sizes 4k --depth 8 --direct on --number-ios 400 --scheduler all";
    let (printed, cells) = device.measured("mixed", words);
    assert_eq!(cells.iter().map(|c| c["scheduler"].as_str().expect("swept")).collect::<Vec<_>>(), names);
    for cell in &cells {
        let ios = |way: &str| cell[way]["total_ios"].as_u64().expect("a number");
        assert_eq!(ios("read") + ios("write"), 400, "{cell}");
        let requests = cell["requests_per_io"].as_f64().expect("the device counts both directions");
        assert!((requests - 1.0).abs() < 0.02, "{requests}");
    }
    assert!(printed.contains("\n  read ") && printed.contains("\n  write "), "{printed}");
    let words = "write --destroy --direct on --engine uring --prefetch off --sync end --writes 200 --verify \
                 --scheduler all";
    let (_, rungs) = device.measured("verified", words);
    assert_eq!(rungs.len(), names.len());
    assert!(rungs.iter().all(|rung| rung["verified"]["blocks"] == 200), "{rungs:?}");
    assert_eq!(schedulers(), before);
    let (path, busy) = (device.path.display().to_string(), "no --ioprio with --direct off");
    let refused = fails(&["write", &path, "--destroy", "--direct", "off", "--ioprio", "idle"]);
    assert!(refused.contains(busy), "{refused}");
    device.undo.undo().expect("undone");
}

#[test]
fn the_page_cache_answers_most_of_what_comes_by_zipf() {
    let Some(device) = LoopDevice::attach() else { return };
    let words = "read --sizes 4k --depth 1 --direct off --number-ios 2000 --read-ahead-kb 0 \
                 --random-distribution random,zipf:1.2 --seed 3";
    let (_, cells) = device.measured("zipf", words);
    let served = |i: usize| cells[i]["requests_per_io"].as_f64().expect("counted");
    // 2048 places: each once, and of 2000 draws by the law about a fifth are of new places.
    assert!((served(0) - 1.0).abs() < 0.01, "{}", served(0));
    assert!((0.1..0.35).contains(&served(1)), "{}", served(1));
    assert_eq!(cells[1]["random_distribution"], "zipf:1.2");
    device.undo.undo().expect("undone");
}

#[test]
fn the_terminal_shows_percentiles_and_histograms() {
    let Some(device) = LoopDevice::attach() else { return };
    let words =
        "read --sizes 4k --depth 1 --direct on --number-ios 500 --percentile-list 5:95:99.95 --histogram";
    let (printed, cells) = device.measured("shown", words);
    assert!(
        printed.contains("p5 µs") && printed.contains("p95 µs") && printed.contains("p99.95 µs"),
        "{printed}"
    );
    let buckets: Vec<u64> = printed
        .lines()
        .filter(|line| line.starts_with('[') && line.ends_with('|'))
        .map(|line| line.split(')').nth(1).and_then(|rest| rest.split_whitespace().next()).expect("a count"))
        .map(|count| count.parse().expect("a number"))
        .collect();
    assert_eq!(buckets.iter().sum::<u64>(), 500, "{printed}");
    let ns = |percent: &str| cells[0]["percentile"][percent].as_f64().expect("a percentile");
    let row = printed.lines().find(|line| line.starts_with("io_uring 4k depth 1 direct")).expect("a row");
    let columns: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(columns[7..10], ["5.000000", "95.000000", "99.950000"].map(|p| format!("{:.0}", ns(p) / 1e3)));
    device.undo.undo().expect("undone");
}
