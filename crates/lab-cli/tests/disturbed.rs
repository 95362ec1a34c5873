//! The experiments E3 and E4 beside other programs: each verdict is that of a quiet run, or *not
//! comparable*.
//!
//! It takes ten minutes, root, /dev/fuse, loop devices and two processors that nothing else uses,
//! so it is asked for: `SNOWMELT_DISTURBED=1 cargo test -p snowmelt-lab-cli --test disturbed`. The
//! same with planted disturbances always runs: `repeat` in the crate `snowmelt-bench`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

/// Findings of each that a quiet machine has verdicts for.
const LEAST_COMPARED: usize = 3;

/// Programs that are killed at the end.
struct Beside(Vec<Child>);

impl Drop for Beside {
    fn drop(&mut self) {
        for child in &mut self.0 {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

fn shell(script: &str) -> Child {
    let mut command = Command::new("sh");
    command.args(["-c", script]).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// Emulated devices that stand now.
fn devices(dir: &Path) -> Vec<String> {
    let listed = Command::new(env!("CARGO_BIN_EXE_snowmelt-lab"))
        .current_dir(dir)
        .args(["device", "list", "--json"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    let records = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    records
        .filter(|record| record["spec"]["name"].as_str().is_some_and(|name| name.starts_with("repeat-")))
        .filter_map(|record| Some(record["device"].as_str()?.to_owned()))
        .collect()
}

/// Reads at random of each emulated device while it stands, and something that computes as a
/// compiler does.
fn disturb(dir: &Path, over: &AtomicBool) {
    let _compiler = Beside(vec![shell("while :; do :; done")]);
    let mut readers: BTreeMap<String, Beside> = BTreeMap::new();
    while !over.load(Ordering::Relaxed) {
        let standing = devices(dir);
        // Each `dd` is short: a device that is held open cannot be taken down.
        readers.retain(|device, _| standing.contains(device));
        for device in standing {
            readers.entry(device.clone()).or_insert_with(|| {
                let read = "dd if=$0 of=/dev/null bs=4k count=1 iflag=direct skip=$(shuf -i 0-200000 -n 1)";
                let script =
                    format!("while [ -b $0 ] && [ $(blockdev --getsize64 $0) -gt 0 ]; do {read}; done");
                let mut command = Command::new("sh");
                command.args(["-c", &script, &device]).stdout(Stdio::null()).stderr(Stdio::null());
                Beside(vec![command.spawn().unwrap()])
            });
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn findings(dir: &Path, experiment: &str, out: &str) -> BTreeMap<String, Value> {
    let line = ["repeat", experiment, "--quick", "--out", out];
    let done = Command::new(env!("CARGO_BIN_EXE_snowmelt-lab")).current_dir(dir).args(line).output().unwrap();
    assert!(done.status.success(), "{line:?}: {}", String::from_utf8_lossy(&done.stderr));
    let text = std::fs::read_to_string(dir.join(out).join("findings.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.map(|line| (line["id"].as_str().unwrap().to_owned(), line)).collect()
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

#[test]
fn verdicts_beside_other_programs_are_those_of_a_quiet_run_or_none() {
    if std::env::var_os("SNOWMELT_DISTURBED").is_none() {
        println!("skipped: it takes ten minutes and a quiet machine; SNOWMELT_DISTURBED=1 runs it");
        return;
    }
    let missing = ["/dev/fuse", "/dev/loop-control"].into_iter().find(|path| !Path::new(path).exists());
    if let Some(path) = missing.or((!is_root()).then_some("root")) {
        println!("skipped: emulated devices need {path}");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for experiment in ["e3", "e4"] {
        let quiet = findings(dir.path(), experiment, &format!("{experiment}-quiet"));
        let over = AtomicBool::new(false);
        let busy = std::thread::scope(|scope| {
            scope.spawn(|| disturb(dir.path(), &over));
            let done =
                std::panic::catch_unwind(|| findings(dir.path(), experiment, &format!("{experiment}-busy")));
            over.store(true, Ordering::Relaxed);
            done
        });
        let busy = busy.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        assert_eq!(quiet.keys().collect::<Vec<_>>(), busy.keys().collect::<Vec<_>>());
        for (id, quiet) in &quiet {
            let busy = &busy[id];
            println!(
                "{id}: quiet {} ({}), busy {} ({}), {}",
                quiet["verdict"], quiet["here"], busy["verdict"], busy["here"], busy["reason"]
            );
            let is_same = busy["verdict"] == quiet["verdict"] || busy["verdict"] == "not-comparable";
            assert!(is_same || quiet["verdict"] == "not-comparable", "{id}: {quiet} became {busy}");
            // A figure that has a verdict is that of the quiet run, within a tenth.
            let figures = [quiet, busy].map(|of| of["here_value"].as_f64());
            if let ([Some(alone), Some(beside)], "counts" | "own-counts") =
                (figures, busy["basis"].as_str().unwrap_or_default())
                && busy["verdict"] != "not-comparable"
            {
                assert!((beside / alone - 1.0).abs() < 0.1, "{id}: {alone} became {beside}");
            }
        }
        let is_compared = |of: &&Value| {
            ["as-published", "weaker", "otherwise"].iter().any(|verdict| of["verdict"] == *verdict)
        };
        let compared = quiet.values().filter(is_compared).count();
        assert!(compared >= LEAST_COMPARED, "the quiet run was not quiet: {quiet:?}");
    }
}
