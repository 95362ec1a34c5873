//! Sweeps over schedulers and engines on a loop device, where root allows one: what is set,
//! what is set back, and that tables and JSON say the same.

use std::path::{Path, PathBuf};

use clap::Parser;
use serde_json::Value;
use snowmelt_lab::undo::Undo;
use snowmelt_lab::{Command, LabError, run};

#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// Runs a command; it waits for other tests, whose files lie on the same disk.
fn lab(line: &str) -> Result<(), LabError> {
    let measures = ["read", "write", "scan"].iter().any(|command| line.starts_with(command));
    let wait = measures.then_some("--wait");
    let words = std::iter::once("lab").chain(line.split_whitespace()).chain(wait);
    run(Cli::parse_from(words).command).map(drop)
}

/// A loop device that goes with its undo.
struct Loop {
    undo: Undo,
    device: PathBuf,
    dir: tempfile::TempDir,
}

impl Loop {
    fn attach() -> Option<Loop> {
        if !rustix::process::geteuid().is_root() || !Path::new("/dev/loop-control").exists() {
            eprintln!("skipped: needs root and loop devices");
            return None;
        }
        let dir = tempfile::tempdir().expect("a folder");
        let backing = dir.path().join("backing");
        std::fs::write(&backing, vec![1; 8 << 20]).expect("written");
        let undo = Undo::open_in(&dir.path().join("state"), "test").expect("a journal");
        match undo.attach_loop(&backing, &snowmelt_io::LoopOptions::default()) {
            Ok((_, device)) => Some(Loop { undo, device, dir }),
            Err(e) => {
                eprintln!("skipped: {e}");
                None
            }
        }
    }

    /// The line of its schedulers, the active one in brackets.
    fn schedulers(&self) -> String {
        let name = self.device.file_name().expect("a device has a name");
        let path = Path::new("/sys/block").join(name).join("queue/scheduler");
        std::fs::read_to_string(path).expect("readable").trim().to_string()
    }

    fn lines(&self, run: &str, name: &str) -> Vec<Value> {
        self.text(run, name).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    fn text(&self, run: &str, name: &str) -> String {
        std::fs::read_to_string(self.dir.path().join(run).join(name)).expect("results")
    }

    /// The rows of all tables of the page.
    fn rows(&self, run: &str) -> Vec<Vec<String>> {
        let report: Value = serde_json::from_str(&self.text(run, "report.json")).expect("JSON");
        let mut rows = Vec::new();
        tables(&report, &mut |table| {
            rows.extend(serde_json::from_value::<Vec<Vec<String>>>(table["rows"].clone()).expect("rows"));
        });
        rows
    }
}

/// Every table of a report, wherever it stands.
fn tables(value: &Value, take: &mut impl FnMut(&Value)) {
    match value {
        Value::Object(map) if map.contains_key("rows") && map.contains_key("columns") => take(value),
        Value::Object(map) => map.values().for_each(|inner| tables(inner, take)),
        Value::Array(list) => list.iter().for_each(|inner| tables(inner, take)),
        _ => {}
    }
}

#[test]
fn reads_and_writes_sweep_all_schedulers_and_set_the_old_one_back() {
    let Some(device) = Loop::attach() else { return };
    let before = device.schedulers();
    let offered: Vec<&str> = before.split_whitespace().map(|name| name.trim_matches(['[', ']'])).collect();
    let (path, dir) = (device.device.display(), device.dir.path().display());
    lab(&format!(
        "read {path} --schedulers all --sizes 4k --depth 1,2 --direct on --runtime 0.05 --out {dir}/read"
    ))
    .expect("measured");
    assert_eq!(device.schedulers(), before);
    let cells = device.lines("read", "cells.jsonl");
    let ran: Vec<&str> = cells.iter().filter_map(|cell| cell["scheduler"].as_str()).collect();
    let each_twice: Vec<&str> = offered.iter().flat_map(|name| [*name, *name]).collect();
    assert_eq!(ran, each_twice);
    let rows = device.rows("read");
    for cell in &cells {
        let scheduler = cell["scheduler"].as_str().expect("swept");
        let name = format!("io_uring 4k depth {} direct, scheduler {scheduler}", cell["iodepth"]);
        let row = rows.iter().find(|row| row[0] == name).unwrap_or_else(|| panic!("{name}: {rows:?}"));
        assert_eq!(row[1], format!("{:.0}", cell["iops"].as_f64().expect("a number")));
    }
    lab(&format!(
        "write {path} --destroy --schedulers none,as-is --engine inline --direct on --prefetch off --sync end \
         --writes 8 --out {dir}/write"
    ))
    .expect("measured");
    let rungs = device.lines("write", "rungs.jsonl");
    let ran: Vec<&str> = rungs.iter().filter_map(|rung| rung["scheduler"].as_str()).collect();
    assert_eq!(ran, ["none", "as-is"]);
    assert_eq!(device.schedulers(), before);
    device.undo.undo().expect("undone");
}

#[test]
fn a_scheduler_is_set_before_its_cell_or_the_run_ends() {
    let Some(device) = Loop::attach() else { return };
    let before = device.schedulers();
    if !before.contains("mq-deadline") {
        return eprintln!("skipped: this kernel has no mq-deadline");
    }
    let (path, dir) = (device.device.display(), device.dir.path().display());
    for line in [
        format!("read {path} --runtime 0.05 --out {dir}/read"),
        format!("write {path} --destroy --writes 8 --out {dir}/write"),
        format!("scan {path} --dop 1 --out {dir}/scan"),
    ] {
        let error =
            lab(&format!("{line} --schedulers none,mq-deadline:fifo_batch=many")).expect_err("no number");
        assert!(error.to_string().contains("fifo_batch"), "{line}: {error}");
        assert_eq!(device.schedulers(), before, "{line}");
        let error = lab(&format!("{line}-2 --schedulers cfq")).expect_err("it is gone").to_string();
        assert!(error.contains("scheduler cfq") && error.contains("it offers none"), "{error}");
    }
    device.undo.undo().expect("undone");
}

#[test]
fn a_scan_writes_neither_to_its_table_nor_to_a_device_in_use() {
    let (Some(device), Some(other)) = (Loop::attach(), Loop::attach()) else { return };
    let (table, scratch, dir) =
        (device.device.display(), other.device.display(), device.dir.path().display());
    let scan = |scratch: &dyn std::fmt::Display| {
        let words = "--dop 1 --repeat 1 --no-trace --beside write --destroy";
        lab(&format!("scan {table} {words} --scratch {scratch} --out {dir}/scan")).map_err(|e| e.to_string())
    };
    let refused = scan(&table).expect_err("refused");
    assert!(refused.contains("which is only read"), "{refused}");
    // As mounted.
    let claim = snowmelt_io::block_claim(&other.device).expect("it is free");
    let refused = scan(&scratch).expect_err("refused");
    assert!(refused.contains("is in use") && refused.contains(&scratch.to_string()), "{refused}");
    drop(claim);
    for looped in [&device, &other] {
        let bytes = std::fs::read(looped.dir.path().join("backing")).expect("readable");
        assert!(bytes.iter().all(|byte| *byte == 1), "nothing was written");
    }
    scan(&scratch).expect("it is free again");
    for looped in [device, other] {
        looped.undo.undo().expect("undone");
    }
}

#[test]
fn settings_are_looked_at_when_the_wait_is_over() {
    let Some(device) = Loop::attach() else { return };
    if !device.schedulers().contains("mq-deadline") {
        return eprintln!("skipped: this kernel has no mq-deadline");
    }
    let name = device.device.file_name().expect("a device has a name");
    let sys = std::fs::canonicalize(Path::new("/sys/block").join(name)).expect("it is there");
    let scheduler = sys.join("queue/scheduler");
    device.undo.set(&scheduler, "mq-deadline").expect("set");
    let other = Undo::open_in(&device.dir.path().join("other"), "other").expect("a journal");
    assert!(other.hold(&sys).expect("held"), "it is ours alone");
    other.set(&scheduler, "none").expect("set");
    let (path, dir) = (device.device.display().to_string(), device.dir.path().display().to_string());
    std::thread::scope(|scope| {
        let line =
            format!("scan {path} --dop 1 --repeat 1 --scheduler none,as-is --no-trace --out {dir}/scan");
        let waiting = scope.spawn(move || lab(&line));
        std::thread::sleep(std::time::Duration::from_millis(700));
        assert!(!waiting.is_finished(), "it waits");
        other.undo().expect("undone");
        waiting.join().expect("no panic").expect("scanned");
    });
    let of_cells: Vec<(String, String)> = device
        .lines("scan", "cells.jsonl")
        .iter()
        .map(|cell| &cell["settings"]["scheduler"])
        .map(|scheduler| (scheduler["name"].to_string(), scheduler["kernel"].to_string()))
        .collect();
    let want = [("none", "none"), ("as-is", "mq-deadline")];
    assert_eq!(of_cells, want.map(|(name, kernel)| (format!("{name:?}"), format!("{kernel:?}"))));
    assert!(device.schedulers().contains("[mq-deadline]"));
    device.undo.undo().expect("undone");
}

#[test]
fn a_scan_tells_how_many_of_its_reads_were_in_flight() {
    let Some(device) = Loop::attach() else { return };
    let (path, dir) = (device.device.display(), device.dir.path().display());
    lab(&format!(
        "scan {path} --dop 1,2 --engine sync,uring --depth 4 --chunk 64k --repeat 1 --no-trace --out {dir}/scan"
    ))
    .expect("scanned");
    let cells = device.lines("scan", "cells.jsonl");
    let asked: Vec<(u64, u64)> = cells
        .iter()
        .map(|cell| (cell["settings"]["reads"]["depth"].as_u64(), cell["asked_at_once"].as_u64()))
        .map(|(depth, asked)| (depth.expect("a number"), asked.expect("a number")))
        .collect();
    assert_eq!(asked, [(1, 1), (1, 2), (4, 4), (4, 8)]);
    let (rows, settings) = (device.rows("scan"), device.text("scan", "settings.json"));
    for (cell, row) in cells.iter().zip(&rows) {
        let number = |name: &str| cell[name].as_f64().expect("a number");
        let in_flight = cell["device"]["in_flight"].as_f64().expect("a number");
        assert_eq!(row[..2], [cell["setup"].as_str().expect("a name").to_string(), cell["dop"].to_string()]);
        assert_eq!(row[3..5], [number("elapsed_s"), number("mb_per_s")].map(|n| format!("{n:.2}")));
        assert_eq!(row[8..10], [cell["asked_at_once"].to_string(), format!("{in_flight:.1}")]);
        let doubt = format!("{} with {}: asynchronous reads", row[0], row[1]);
        let is_async = cell["settings"]["reads"]["depth"] == 4;
        assert!(is_async || !settings.contains(&doubt), "{doubt}");
        let reads_in_flight =
            in_flight * number("bytes") / 65536.0 / cell["device"]["reads"].as_f64().unwrap();
        assert!(!is_async || (reads_in_flight > number("dop") * 1.05) != settings.contains(&doubt), "{cell}");
    }
    assert!(device.text("scan", "report.json").contains("2 workers asked for 8 reads at once"));
    device.undo.undo().expect("undone");
}

#[test]
fn scans_that_were_repeated_are_judged() {
    let Some(device) = Loop::attach() else { return };
    let (path, dir) = (device.device.display(), device.dir.path().display());
    for run in ["before", "after"] {
        lab(&format!("scan {path} --dop 1,2 --repeat 3 --no-trace --out {dir}/{run}")).expect("scanned");
    }
    lab(&format!("compare {dir}/before {dir}/after --out {dir}/compared")).expect("compared");
    let rows = device.rows("compared");
    let cells: Vec<&Vec<String>> =
        rows.iter().filter(|row| row.get(1).is_some_and(|m| m == "mb_per_s")).collect();
    assert_eq!(cells.len(), 2, "{rows:?}");
    assert!(cells.iter().all(|row| row[5] != "too few repeats"), "{cells:?}");
    device.undo.undo().expect("undone");
}
