//! `lab read` and `lab write` under schedulers of a loop device, where root allows one.

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

fn lab(line: &str) -> Result<(), LabError> {
    run(Cli::parse_from(std::iter::once("lab").chain(line.split_whitespace())).command)
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
        let text = std::fs::read_to_string(self.dir.path().join(run).join(name)).expect("results");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
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
    let report = std::fs::read_to_string(format!("{dir}/read/report.json")).expect("a report");
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let text = report.to_string();
    for cell in &cells {
        let name = cell["scheduler"].as_str().expect("swept");
        let row = format!(
            r#"["io_uring 4k depth {} direct, scheduler {name}","{:.0}""#,
            cell["iodepth"],
            cell["iops"].as_f64().expect("a number")
        );
        assert!(text.contains(&row), "{row}");
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
        let error = lab(&format!("{line} --schedulers cfq")).expect_err("it is gone").to_string();
        assert!(error.contains("scheduler cfq") && error.contains("it offers none"), "{error}");
    }
    device.undo.undo().expect("undone");
}
