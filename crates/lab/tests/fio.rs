//! `read` against fio, in turns, on emulated devices: reads, writes, mixes and zipf.
//!
//! Takes minutes, so it runs only when asked for, and needs fio 3, root, /dev/fuse and loop
//! devices:
//!
//!     SNOWMELT_FIO=1 cargo test -p snowmelt-lab --test fio -- --nocapture
//!
//! Both programs get the same device, engine, size, depth and time, one after the other, three
//! times, each first as often as the other can be. The device is slower than the machine, so that
//! both should see its own rate: the median of the ratios lies between 0.95 and 1.05.
//!
//! Both run in a real-time class (chrt(1)). fio starts its job in a session of its own, to which
//! the kernel gives a share of the processors of its own (sched(7), autogroups). Ours shares that
//! of the terminal: beside three compilers it got half of fio's rate at depth 1 otherwise.

mod support;

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use support::{fails, lab, ok, program, turn};

/// Pairs of runs per cell.
const PAIRS: usize = 3;
const SECONDS: &str = "3";
/// The class that both run in.
const REAL_TIME: [&str; 2] = ["-f", "1"];
const GOOD: std::ops::RangeInclusive<f64> = 0.95..=1.05;

/// A flash drive so slow that a request takes fifty times as long as waking the thread that waits
/// for it beside compilers (about 50 µs); a volume such as gp3, of half a millisecond, does not.
const SLOW_SSD: &str = "kind = \"volume\"\nlatency_us = 2500\njitter = 0.1\nwidth = 16\niops = 20000\n";
/// A cloud volume that needs 3 ms for a request and serves 32 at once.
const CLOUD_VOLUME: &str = "wide-slow";

/// A load: its name, and how both are told of it.
struct FioLoad {
    name: &'static str,
    fio: &'static [&'static str],
    ours: &'static [&'static str],
}

const LOADS: [FioLoad; 4] = [
    FioLoad { name: "read", fio: &["--rw=randread"], ours: &[] },
    FioLoad { name: "write", fio: &["--rw=randwrite"], ours: &["--rwmixread", "0", "--destroy"] },
    FioLoad {
        name: "mix",
        fio: &["--rw=randrw", "--rwmixread=70"],
        ours: &["--rwmixread", "70", "--destroy"],
    },
    FioLoad {
        name: "zipf",
        fio: &["--rw=randread", "--random_distribution=zipf:1.1"],
        ours: &["--random-distribution", "zipf:1.1"],
    },
];

/// IOPS of reads and of writes.
type Rates = (f64, f64);

fn fio(device: &str, load: &FioLoad, depth: u32) -> Rates {
    let depth = format!("--iodepth={depth}");
    let filename = format!("--filename={device}");
    let runtime = format!("--runtime={SECONDS}");
    let usual =
        ["--name=cell", "--bs=4k", "--direct=1", "--ioengine=io_uring", "--time_based", "--randrepeat=0"];
    let output = Command::new("chrt")
        .args(REAL_TIME)
        .arg("fio")
        .args(usual)
        .args([&depth, &filename, &runtime])
        .args(load.fio)
        .arg("--output-format=json")
        .output()
        .expect("fio is there");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    // Messages may stand before the JSON.
    let json: Value = serde_json::from_str(&text[text.find('{').expect("JSON")..]).expect("JSON");
    let iops = |way: &str| json["jobs"][0][way]["iops"].as_f64().expect("a number");
    (iops("read"), iops("write"))
}

fn ours(device: &str, load: &FioLoad, depth: u32) -> Rates {
    let dir = tempfile::tempdir().expect("a folder");
    let out = dir.path().join("run").display().to_string();
    let depth = depth.to_string();
    let usual = ["read", device, "--sizes", "4k", "--direct", "on", "--depth", &depth, "--runtime", SECONDS];
    let mut ours = Command::new("chrt");
    ours.args(REAL_TIME).arg(program()).args(usual).args(load.ours).args(["--out", &out]);
    let output = ours.output().expect("chrt is there");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = std::fs::read_to_string(format!("{out}/cells.jsonl")).expect("results");
    let cell: Value = serde_json::from_str(lines.trim()).expect("one cell");
    let iops = |way: &Value| way["iops"].as_f64();
    match cell["rw"].as_str() {
        Some("randrw") => (iops(&cell["read"]).expect("reads"), iops(&cell["write"]).expect("writes")),
        Some("randwrite") => (0.0, iops(&cell).expect("writes")),
        _ => (iops(&cell).expect("reads"), 0.0),
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

struct Device(String);

impl Drop for Device {
    fn drop(&mut self) {
        lab(&["device", "remove", "--force", &self.0]);
    }
}

fn missing() -> Option<&'static str> {
    match () {
        () if std::env::var_os("SNOWMELT_FIO").is_none() => Some("SNOWMELT_FIO=1 asks for it"),
        () if Command::new("fio").arg("--version").output().is_err() => Some("no fio: apt-get install fio"),
        () if Command::new("chrt").arg("--version").output().is_err() => {
            Some("no chrt: apt-get install util-linux")
        }
        () if !rustix::process::geteuid().is_root() => Some("this needs root"),
        () if !Path::new("/dev/fuse").exists() => Some("/dev/fuse is missing"),
        () if !Path::new("/dev/loop-control").exists() => Some("/dev/loop-control is missing"),
        () => None,
    }
}

#[test]
fn rates_are_fio_s_on_emulated_devices() {
    if let Some(why) = missing() {
        return eprintln!("skipped: {why}");
    }
    let _turn = turn();
    let dir = tempfile::tempdir().expect("a folder");
    let ssd = dir.path().join("ssd.toml");
    std::fs::write(&ssd, SLOW_SSD).expect("written");
    let mut outside = Vec::new();
    println!("{:<6} {:<6} {:>5} {:>10} {:>10} {:>7}", "device", "load", "depth", "fio iops", "ours", "ratio");
    for (name, model) in [("ssd", ssd.display().to_string()), ("cloud", CLOUD_VOLUME.into())] {
        let device = Device(format!("fio-{}-{name}", std::process::id()));
        let path = ok(&["device", "create", &device.0, "--model", &model, "--size", "256m"]);
        let refused = fails(&["read", path.trim(), "--rwmixread", "70"]);
        assert!(refused.contains("--destroy"), "fio would write without a question: {refused}");
        for (load, depth) in LOADS.iter().flat_map(|load| [(load, 1), (load, 32)]) {
            let pairs = pairs(path.trim(), load, depth);
            let all = |of: fn(&Pair) -> f64| median(pairs.iter().map(of).collect());
            let ratio = all(|pair| sum(pair.ours) / sum(pair.fio));
            let (theirs, own) = (all(|pair| sum(pair.fio)), all(|pair| sum(pair.ours)));
            println!("{name:<6} {:<6} {depth:>5} {theirs:>10.0} {own:>10.0} {ratio:>7.3}", load.name);
            if !GOOD.contains(&ratio) {
                outside.push(format!("{name} {} depth {depth}: {ratio:.3}", load.name));
            }
            if load.name == "mix" {
                same_share_of_reads(&pairs);
            }
        }
    }
    assert!(outside.is_empty(), "outside of {GOOD:?}: {outside:?}");
}

/// The rates of one run of each.
struct Pair {
    fio: Rates,
    ours: Rates,
}

fn sum(rates: Rates) -> f64 {
    rates.0 + rates.1
}

fn pairs(device: &str, load: &FioLoad, depth: u32) -> Vec<Pair> {
    let pair = |i: usize| {
        if i.is_multiple_of(2) {
            let fio = fio(device, load, depth);
            Pair { fio, ours: ours(device, load, depth) }
        } else {
            let ours = ours(device, load, depth);
            Pair { fio: fio(device, load, depth), ours }
        }
    };
    (0..PAIRS).map(pair).collect()
}

/// Both draw 70 reads of 100 requests, as far as so many draws can tell.
fn same_share_of_reads(pairs: &[Pair]) {
    let seconds: f64 = SECONDS.parse().expect("a number");
    for of in [|pair: &Pair| pair.fio, |pair: &Pair| pair.ours] {
        let reads: f64 = pairs.iter().map(|pair| of(pair).0).sum();
        let all: f64 = pairs.iter().map(|pair| sum(of(pair))).sum();
        let deviation = (0.7 * 0.3 / (all * seconds)).sqrt();
        assert!((reads / all - 0.7).abs() < 4.0 * deviation + 0.005, "{reads} of {all} read");
    }
}
