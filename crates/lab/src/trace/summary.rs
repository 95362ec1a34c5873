//! A trace in few words: one JSON object, and the text on the screen.

use serde::Serialize;
use snowmelt_base::printable;

use super::KINDS;
use super::event::RequestKind;
use super::histogram;
use super::levels::{BelowLine, RemapLine};
use super::plugs::PlugCounts;
use super::session::{Check, Traced};
use super::tally::{AtSize, Counts};
use super::users::{UserLine, others};
use crate::machine::others::Parties;
use crate::machine::program::Ended;
use crate::size::about;
use crate::stats::LatencySummary;

/// The line of `summary.jsonl`.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// Name of the device.
    pub device: String,
    /// Seconds traced.
    pub seconds: f64,
    /// Reads completed per second.
    pub read_iops: f64,
    /// Writes completed per second.
    pub write_iops: f64,
    /// Median time of a read at the device.
    pub read_d2c_p50_ns: u64,
    /// 99 % of reads took no longer at the device.
    pub read_d2c_p99_ns: u64,
    /// By kind.
    pub kinds: Vec<OfKind>,
    /// From the program's calls to the device.
    pub layers: Vec<Layer>,
    /// By process and file, those that moved most first.
    pub users: Vec<UserLine>,
    /// The program, others, and the kernel.
    pub parties: Parties,
    /// Bios that went from one device to another.
    pub remaps: Vec<RemapLine>,
    /// Devices below the traced one.
    pub below: Vec<BelowLine>,
    /// Splits inside an emulated array.
    pub emulated_splits: Option<u64>,
    /// Requests that begin where the one before ended, as a share of all.
    pub sequential: f64,
    /// Mean distance of the others, bytes.
    pub seek_bytes: f64,
    /// Mean number of requests at the device.
    pub depth: f64,
    /// Most of them at once.
    pub depth_max: u32,
    /// False for a device that takes bios as they come: then no depth, order or D2C is known.
    pub has_requests: bool,
    /// Requests held back and handed over together.
    pub plugs: PlugCounts,
    /// Events that this kernel does not have.
    pub events_absent: Vec<&'static str>,
    /// Events the kernel lost.
    pub events_lost: u64,
    /// Completions of requests issued before the trace.
    pub unmatched: u64,
    /// Against /proc/diskstats.
    pub checks: Vec<Check>,
    /// The program, when one was named.
    pub program: Option<Ended>,
}

/// Everything of one kind.
#[derive(Debug, Clone, Serialize)]
pub struct OfKind {
    /// Its name.
    pub kind: &'static str,
    /// How many.
    #[serde(flatten)]
    pub counts: Counts,
    /// From the kernel's asking to the answer.
    pub q2c: LatencySummary,
    /// From the kernel's asking to the issue.
    pub q2d: LatencySummary,
    /// From issue to the answer.
    pub d2c: LatencySummary,
    /// Bios and requests by size.
    pub sizes: Vec<AtSize>,
}

/// A step from the program to the device: how many, how large.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Layer {
    /// Of reads or of writes.
    pub kind: &'static str,
    /// The callers and the device they ask.
    pub what: &'static str,
    /// How many calls, bios or requests.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Count of this layer over that of the first; none where other programs are in it.
    pub per_asked: Option<f64>,
    /// Bytes of this layer over those of the first.
    pub bytes_per_asked: Option<f64>,
}

impl Summary {
    /// The sum of a trace.
    pub fn new(traced: &Traced, ended: Option<&Ended>) -> Summary {
        let tally = &traced.tally;
        let seconds = tally.duration_s();
        let rate = |kind: RequestKind| tally.counts(kind).completed as f64 / seconds.max(1e-9);
        let read_d2c = tally.d2c.get(&RequestKind::Read).map(|l| l.summary()).unwrap_or_default();
        let (apart, followed) = (tally.apart().max(1), (tally.sequential + tally.apart()).max(1));
        Summary {
            device: traced.target.name.clone(),
            seconds,
            read_iops: rate(RequestKind::Read),
            write_iops: rate(RequestKind::Write),
            read_d2c_p50_ns: read_d2c.p50_ns,
            read_d2c_p99_ns: read_d2c.p99_ns,
            kinds: KINDS.into_iter().filter_map(|kind| of_kind(traced, kind)).collect(),
            layers: layers(traced, ended),
            users: traced.users.lines(),
            parties: traced.users.parties,
            remaps: traced.levels.remap_lines(&traced.target),
            below: traced.levels.below_lines(&traced.target),
            emulated_splits: traced.emulated_splits,
            sequential: tally.sequential as f64 / followed as f64,
            seek_bytes: tally.seek_sectors as f64 * 512.0 / apart as f64,
            depth: tally.mean_depth(),
            depth_max: tally.intervals.iter().map(|i| i.depth_max).max().unwrap_or(0),
            has_requests: tally.has_requests(),
            plugs: tally.plugs.counts.clone(),
            events_absent: traced.absent.clone(),
            events_lost: traced.lost,
            unmatched: tally.unmatched(),
            checks: traced.checks(),
            program: ended.cloned(),
        }
    }
}

fn of_kind(traced: &Traced, kind: RequestKind) -> Option<OfKind> {
    let tally = &traced.tally;
    let counts = tally.counts.get(&kind)?;
    let latency = |all: &std::collections::BTreeMap<RequestKind, crate::stats::Latencies>| {
        all.get(&kind).map(|l| l.summary()).unwrap_or_default()
    };
    Some(OfKind {
        kind: kind.as_str(),
        counts: *counts,
        q2c: latency(&tally.q2c),
        q2d: latency(&tally.q2d),
        d2c: latency(&tally.d2c),
        sizes: tally.at_sizes(kind),
    })
}

/// Requests as asked and as they reached the device, for reads and for writes. Behind those of
/// the program stand those of all.
pub fn layers(traced: &Traced, ended: Option<&Ended>) -> Vec<Layer> {
    let tally = &traced.tally;
    let mut layers = Vec::new();
    for (kind, [calls, own_bios, own_requests, bios, requests]) in [
        (
            RequestKind::Read,
            [
                "read calls of the program",
                "bios to read, by the program",
                "read requests to the device, for the program",
                "bios to read, by all",
                "read requests to the device, by all",
            ],
        ),
        (
            RequestKind::Write,
            [
                "write calls of the program",
                "bios to write, by the program",
                "write requests to the device, for the program",
                "bios to write, by all",
                "write requests to the device, by all",
            ],
        ),
    ] {
        let counts = tally.counts(kind);
        if counts.queued + counts.issued == 0 {
            continue;
        }
        let mut of_kind = Vec::new();
        let own = tally.ours.get(&kind).map(|(count, sectors)| (*count, sectors * 512));
        if let Some(io) = ended.and_then(|ended| ended.io) {
            let (count, bytes) =
                if kind == RequestKind::Read { (io.syscr, io.rchar) } else { (io.syscw, io.wchar) };
            // Calls through io_uring and libaio are not in the kernel's count: then what the
            // program asked of the device exceeds it.
            if bytes >= own.map_or(0, |(_, bytes)| bytes) / 2 {
                of_kind.push((calls, count, bytes));
            }
        }
        let done = tally.own.get(&kind).copied().unwrap_or_default();
        if let Some((count, bytes)) = own {
            of_kind.push((own_bios, count, bytes));
        }
        if ended.is_some() || own.is_some() {
            of_kind.push((own_requests, done.requests, done.bytes));
        }
        of_kind.push((bios, counts.queued, counts.queued_sectors * 512));
        of_kind.push((requests, counts.requests, counts.issued_sectors * 512));
        let (_, first_count, first_bytes) = of_kind[0];
        let is_of_program = of_kind.len() > 2;
        layers.extend(of_kind.into_iter().map(|(what, count, bytes)| {
            // Requests of all are not to be measured by the calls of the program.
            let comparable = !is_of_program || !what.ends_with("by all");
            let ratio = |n: u64, first: u64| comparable.then(|| n as f64 / first.max(1) as f64);
            Layer {
                kind: kind.as_str(),
                what,
                count,
                bytes,
                per_asked: ratio(count, first_count),
                bytes_per_asked: ratio(bytes, first_bytes),
            }
        }));
    }
    layers
}

/// Plugs in a sentence; nothing when there were none.
pub fn plugs(sum: &Summary) -> Option<String> {
    let plugs = &sum.plugs;
    (plugs.unplugs > 0).then(|| {
        format!(
            "{} plugs, {} unplugs of {:.2} requests on average and {} at most.",
            plugs.plugs,
            plugs.unplugs,
            plugs.mean(),
            plugs.most()
        )
    })
}

/// Reasons why a trace tells less: of the kernel or of the device.
pub fn unknown(sum: &Summary) -> Vec<String> {
    let mut unknown = Vec::new();
    if !sum.events_absent.is_empty() {
        unknown.push(format!("This kernel has no event {}.", sum.events_absent.join(", ")));
    }
    if !sum.has_requests && sum.kinds.iter().any(|of| of.counts.bios_completed > 0) {
        unknown.push(format!(
            "{} takes bios as they come, without requests: depth, order and D2C are not known.",
            sum.device
        ));
    }
    unknown
}

/// Time as people say it.
pub fn time(ns: f64) -> String {
    match ns {
        ns if ns < 1e3 => format!("{ns:.0} ns"),
        ns if ns < 1e6 => format!("{:.1} µs", ns / 1e3),
        ns if ns < 1e9 => format!("{:.2} ms", ns / 1e6),
        ns => format!("{:.2} s", ns / 1e9),
    }
}

/// Rows of the table of processes and files on the screen.
const MOST_USERS: usize = 20;

/// Processes and files, levels and histograms on the screen.
pub(crate) fn print_users(traced: &Traced) {
    let users = traced.users.lines();
    if !users.is_empty() {
        crate::say!(
            "\n{:<24} {:>9} {:>10} {:>9} {:>10} {:>10} {:>10}  file",
            "process",
            "reads",
            "bytes",
            "writes",
            "bytes",
            "mean",
            "p99"
        );
    }
    for line in users.iter().take(MOST_USERS) {
        crate::say!(
            "{:<24} {:>9} {:>10} {:>9} {:>10} {:>10} {:>10}  {}",
            line.who(),
            line.reads.requests,
            about(line.reads.bytes as f64),
            line.writes.requests,
            about(line.writes.bytes as f64),
            time(line.mean_ns),
            time(line.p99_ns as f64),
            printable::line(&line.file)
        );
    }
    if users.len() > MOST_USERS {
        crate::say!("… and {} more: summary.jsonl and the page have them", users.len() - MOST_USERS);
    }
    levels(traced).into_iter().chain(histogram::lines(&traced.tally)).for_each(|line| crate::say!("{line}"));
    crate::say!("");
}

/// Remaps and the devices below, in lines.
pub fn levels(traced: &Traced) -> Vec<String> {
    let remap = |line: RemapLine| {
        format!(
            "A {} <- {}: {} bios, {}",
            line.to,
            line.from,
            line.moved.requests,
            about(line.moved.bytes as f64)
        )
    };
    let below = |line: BelowLine| {
        let c = line.counts;
        format!(
            "below, {}: Q {}, X {}, M {}, D {} ({})",
            line.device,
            c.queued,
            c.split,
            c.merged,
            c.issued,
            about(c.issued_bytes as f64)
        )
    };
    let remaps = traced.levels.remap_lines(&traced.target).into_iter().map(remap);
    let emulated = traced.emulated_splits.map(|n| format!("below, the emulated array: X {n}"));
    let below = traced.levels.below_lines(&traced.target).into_iter().map(below);
    remaps.chain(below).chain(emulated).collect()
}

/// The text on the screen.
pub fn print(traced: &Traced, ended: Option<&Ended>) {
    let sum = Summary::new(traced, ended);
    crate::say!("{}: {:.2} s traced", sum.device, sum.seconds);
    crate::say!(
        "\n{:8} {:>10} {:>9} {:>9} {:>10} {:>9} {:>10} {:>10} {:>9}",
        "",
        "queued",
        "split",
        "merged",
        "issued",
        "requeued",
        "completed",
        "MiB",
        "IOPS"
    );
    for of in &sum.kinds {
        let c = &of.counts;
        crate::say!(
            "{:8} {:>10} {:>9} {:>9} {:>10} {:>9} {:>10} {:>10.1} {:>9.0}",
            of.kind,
            c.queued,
            c.split,
            c.merged,
            c.issued,
            c.requeued,
            c.completed,
            c.completed_sectors as f64 / 2048.0,
            c.completed as f64 / sum.seconds.max(1e-9),
        );
    }
    crate::say!("\n{:8} {:>11} {:>11} {:>11} {:>11} {:>11}", "", "mean", "p50", "p99", "p99.9", "max");
    for of in &sum.kinds {
        for (name, l) in [("Q2C", of.q2c), ("Q2D", of.q2d), ("D2C", of.d2c)] {
            if l.count > 0 {
                let times = [l.mean_ns, l.p50_ns as f64, l.p99_ns as f64, l.p99_9_ns as f64, l.max_ns as f64];
                let times = times.map(|ns| format!("{:>11}", time(ns))).join(" ");
                crate::say!("{:4} {name} {times}", &of.kind[..of.kind.len().min(4)]);
            }
        }
    }
    crate::say!("");
    for layer in &sum.layers {
        let mean = layer.bytes as f64 / layer.count.max(1) as f64;
        let ratio = match (layer.per_asked, layer.bytes_per_asked) {
            (Some(count), Some(bytes)) => {
                format!(", {count:>9.3} × the first in number, {bytes:.3} × in bytes")
            }
            _ => String::new(),
        };
        crate::say!("{:45} {:>10} of {:>9}{ratio}", layer.what, layer.count, about(mean));
    }
    others(&sum.users).filter(|_| sum.users.iter().any(|line| line.ours)).iter().for_each(|others| {
        crate::say!("others: {others}");
    });
    crate::say!(
        "\n{:.1} % sequential, the others {} away on average; depth {:.2} on average, {} at most",
        sum.sequential * 100.0,
        about(sum.seek_bytes),
        sum.depth,
        sum.depth_max
    );
    plugs(&sum).into_iter().chain(unknown(&sum)).for_each(|line| crate::say!("{line}"));
    print_users(traced);
    match traced.doubts().as_slice() {
        [] => crate::say!("no event lost; the counts are those of /proc/diskstats"),
        doubts => doubts.iter().for_each(|doubt| crate::say!("doubt: {doubt}")),
    }
}
