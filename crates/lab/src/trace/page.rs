//! A trace as a page.

use super::event::RequestKind;
use super::histogram;
use super::session::Traced;
use super::summary::{Layer, Summary, plugs, time, unknown};
use super::tally::Tally;
use crate::machine::program::Ended;
use crate::report::{Axis, Bar, Bars, Column, Figure, Plot, Report, Scale, Section, Series, Table, Unit};
use crate::size::{about, exact};

pub(super) fn report(traced: &Traced, ended: Option<&Ended>) -> Report {
    let sum = Summary::new(traced, ended);
    let mut report = Report::new(format!("What {} really got", sum.device));
    report.summary = words(&sum);
    report.sections = sections(traced, ended);
    report
}

/// The figures of a trace.
pub(crate) fn sections(traced: &Traced, ended: Option<&Ended>) -> Vec<Section> {
    let sum = Summary::new(traced, ended);
    let asking = [counts(&sum), layers(&sum)].into_iter().chain(unplugs(&sum)).chain(levels(&sum));
    vec![
        Section::new("From asking to the device", asking.collect()),
        Section::new("Sizes", sizes(&sum)),
        Section::new("Over time", over_time(&traced.tally)),
        Section::new("Where", vec![offsets(&traced.tally)]),
        Section::new("Latency", latency_figures(traced, &sum)).with_text(
            "Q2C is from the kernel's asking to the answer, Q2D its part before the request is issued, D2C its part at the device.",
        ),
        Section::new("Requests by process and file", vec![users(&sum), askers(&traced.tally)]).with_text(
            "Write-back is charged to the process that made the file dirty. [metadata] and [journal] are the file \
             system's own; - is of no file that the kernel named. Times are those at the device.",
        ),
        Section::new("Against /proc/diskstats", vec![checks(&sum)]),
    ]
}

/// The first thing read.
fn words(sum: &Summary) -> Vec<String> {
    let mut words = vec![format!(
        "{:.1} s: {:.0} reads and {:.0} writes per second reached {}, {:.2} at once on average and {} at most; \
         {:.0} % of them began where the one before had ended.",
        sum.seconds,
        sum.read_iops,
        sum.write_iops,
        sum.device,
        sum.depth,
        sum.depth_max,
        sum.sequential * 100.0
    )];
    if sum.program.is_some() {
        words.extend(asked_and_got(&sum.layers));
    }
    words.extend(
        sum.emulated_splits.map(|n| format!("The emulated array below made {n} splits (X) of its requests.")),
    );
    words.extend(plugs(sum));
    words.extend(unknown(sum));
    words.push(match sum.events_lost {
        0 => "No event was lost.".to_string(),
        n => format!("{n} events were lost: the trace is invalid."),
    });
    words
}

/// The first and the last step of the reads, and of the writes.
fn asked_and_got(layers: &[Layer]) -> Vec<String> {
    let of_kinds = layers.chunk_by(|a, b| a.kind == b.kind);
    let words = of_kinds.filter_map(|of_kind| {
        let (first, rest) = of_kind.split_first()?;
        let last = rest.iter().rfind(|layer| layer.per_asked.is_some())?;
        Some(format!(
            "For {} {} there were {} {}: {:.3} for each, {:.3} bytes for each byte.",
            first.count, first.what, last.count, last.what, last.per_asked?, last.bytes_per_asked?
        ))
    });
    words.collect()
}

fn table(title: &str, columns: Vec<Column>, rows: Vec<Vec<String>>) -> Figure {
    Figure::Table(Table { title: title.into(), note: String::new(), columns, rows })
}

fn counts(sum: &Summary) -> Figure {
    let names = [
        "queued",
        "split",
        "merged",
        "issued",
        "requeued",
        "completed",
        "of them bios",
        "completed bytes",
        "errors",
    ];
    let mut columns = vec![Column::text("")];
    columns.extend(names.map(Column::number));
    let rows = sum.kinds.iter().map(|of| {
        let c = &of.counts;
        let mut row = vec![of.kind.to_string()];
        let steps = [c.queued, c.split, c.merged, c.issued, c.requeued, c.completed, c.bios_completed];
        row.extend(steps.map(|n| n.to_string()));
        row.push(about(c.completed_sectors as f64 * 512.0));
        row.push(c.errors.to_string());
        row
    });
    table("Requests by kind", columns, rows.collect())
}

fn layers(sum: &Summary) -> Figure {
    let columns = vec![
        Column::text("layer"),
        Column::number("count"),
        Column::number("bytes"),
        Column::number("mean size"),
        Column::number("count ÷ first"),
        Column::number("bytes ÷ first"),
    ];
    let rows = sum.layers.iter().map(|layer| {
        vec![
            layer.what.to_string(),
            layer.count.to_string(),
            about(layer.bytes as f64),
            about(layer.bytes as f64 / layer.count.max(1) as f64),
            layer.per_asked.map_or("-".into(), |n| format!("{n:.3}")),
            layer.bytes_per_asked.map_or("-".into(), |n| format!("{n:.3}")),
        ]
    });
    table("Amplification: what was asked, what the device got", columns, rows.collect())
}

/// Where the bios of a stacked device went.
fn levels(sum: &Summary) -> Vec<Figure> {
    let mut figures = Vec::new();
    if !sum.remaps.is_empty() {
        let columns =
            [Column::text("from"), Column::text("to"), Column::number("bios"), Column::number("bytes")];
        let rows = sum.remaps.iter().map(|line| {
            let moved = line.moved;
            vec![line.from.clone(), line.to.clone(), moved.requests.to_string(), about(moved.bytes as f64)]
        });
        figures.push(table(
            "Remaps (A): bios that went on to another device",
            columns.into(),
            rows.collect(),
        ));
    }
    if !sum.below.is_empty() {
        let mut columns = vec![Column::text("device")];
        columns.extend(["queued", "split", "merged", "issued", "bytes"].map(Column::number));
        let rows = sum.below.iter().map(|line| {
            let c = line.counts;
            let counts = [c.queued, c.split, c.merged, c.issued].map(|n| n.to_string());
            let bytes = about(c.issued_bytes as f64);
            std::iter::once(line.device.clone()).chain(counts).chain([bytes]).collect()
        });
        figures.push(table("The devices below", columns, rows.collect()));
    }
    figures
}

/// How many requests unplugs handed over.
fn unplugs(sum: &Summary) -> Option<Figure> {
    let columns = vec![Column::number("requests"), Column::number("unplugs")];
    let rows = sum.plugs.by_requests.iter().map(|(requests, n)| vec![requests.to_string(), n.to_string()]);
    (sum.plugs.unplugs > 0).then(|| {
        Figure::Table(Table {
            title: "Requests handed over by an unplug".into(),
            note: "A thread that asks for much holds its requests back and hands them over together. The kernel tells \
                   the thread and not the device: plugs are the device's when the thread had just asked it."
                .into(),
            columns,
            rows: rows.collect(),
        })
    })
}

/// A figure of the sizes of bios and one of those of requests, for reads and writes.
fn sizes(sum: &Summary) -> Vec<Figure> {
    let mut figures = Vec::new();
    for of in sum.kinds.iter().filter(|of| !of.sizes.is_empty()) {
        let mut bars: Vec<Bar> = Vec::new();
        // The most frequent sizes, in order of size.
        let mut common = of.sizes.clone();
        common.sort_by_key(|s| std::cmp::Reverse(s.bios + s.requests));
        let rest = common.split_off(common.len().min(10));
        common.sort_by_key(|s| s.bytes);
        for size in &common {
            for (group, what, n) in [(0, "asked", size.bios), (1, "issued", size.requests)] {
                if n > 0 {
                    let name = format!("{} {what}", exact(size.bytes));
                    bars.push(Bar { name, value: n as f64, range: None, group });
                }
            }
        }
        let note = match rest.iter().map(|s| s.bios + s.requests).sum::<u64>() {
            0 => "Asked: by the kernel, as bios. Issued: to the device, after splitting and merging."
                .to_string(),
            n => format!(
                "Asked: by the kernel, as bios. Issued: to the device. {} rarer sizes ({n} together) are in summary.jsonl.",
                rest.len()
            ),
        };
        let title = format!("Sizes of {}s", of.kind);
        figures.push(Figure::Bars(Bars { title, note, label: "count".into(), unit: Unit::Plain, bars }));
    }
    figures
}

fn line(title: &str, y: Axis, series: Vec<Series>) -> Figure {
    let x = Axis::new("time since the start", Unit::Seconds);
    let series = series.into_iter().filter(|s| s.points.iter().any(|p| p.1 > 0.0)).collect();
    Figure::Lines(Plot { title: title.into(), note: String::new(), x, y, series })
}

fn over_time(tally: &Tally) -> Vec<Figure> {
    // The rest of the last interval says little when it is short.
    let (whole, last) = match &tally.intervals[..] {
        [whole @ .., before, last] if last.end_s - before.end_s < 0.5 * tally.intervals[0].end_s => {
            (whole, Some(before))
        }
        all => (all, None),
    };
    let points = |value: &dyn Fn(&super::tally::Interval) -> f64| {
        whole.iter().chain(last).map(|i| (i.end_s, value(i))).collect::<Vec<_>>()
    };
    vec![
        line(
            "Throughput",
            Axis::new("per second", Unit::BytesPerSecond),
            vec![
                Series::new("read", points(&|i| i.read_bytes_per_s)),
                Series::new("written", points(&|i| i.write_bytes_per_s)),
            ],
        ),
        line(
            "Requests",
            Axis::new("completed per second", Unit::Plain),
            vec![
                Series::new("reads", points(&|i| i.reads_per_s)),
                Series::new("writes", points(&|i| i.writes_per_s)),
            ],
        ),
        line(
            "Depth at the device",
            Axis::new("requests", Unit::Plain),
            vec![
                Series::new("mean", points(&|i| i.depth)),
                Series::new("most", points(&|i| f64::from(i.depth_max))),
            ],
        ),
        line(
            "Latency at the device (D2C)",
            Axis::new("time", Unit::Nanoseconds).scaled(Scale::Log),
            vec![
                Series::new("p50", points(&|i| i.d2c.p50_ns as f64)),
                Series::new("p99", points(&|i| i.d2c.p99_ns as f64)),
                Series::new("max", points(&|i| i.d2c.max_ns as f64)),
            ],
        ),
    ]
}

fn offsets(tally: &Tally) -> Figure {
    let of = |kind: RequestKind| {
        let dots = tally.dots.iter().filter(|dot| dot.kind == kind);
        Series::new(format!("{}s", kind.as_str()), dots.map(|dot| (dot.at_s, dot.offset)).collect())
    };
    let series = [RequestKind::Read, RequestKind::Write, RequestKind::Discard].map(of);
    let note = match tally.placed as usize > tally.dots.len() {
        true => format!("A fair sample of {} of {} requests.", tally.dots.len(), tally.placed),
        false => String::new(),
    };
    Figure::Scatter(Plot {
        title: "Offset over time".into(),
        note,
        x: Axis::new("time since the start", Unit::Seconds),
        y: Axis::new("offset", Unit::Bytes),
        series: series.into_iter().filter(|s| !s.points.is_empty()).collect(),
    })
}

fn latencies(sum: &Summary) -> Figure {
    let names = ["count", "min", "mean", "p50", "p90", "p99", "p99.9", "max"];
    let mut columns = vec![Column::text("")];
    columns.extend(names.map(Column::number));
    let mut rows = Vec::new();
    for of in &sum.kinds {
        for (name, l) in [("Q2C", of.q2c), ("Q2D", of.q2d), ("D2C", of.d2c)] {
            if l.count == 0 {
                continue;
            }
            let mut row = vec![format!("{} {name}", of.kind), l.count.to_string()];
            let times = [
                l.min_ns as f64,
                l.mean_ns,
                l.p50_ns as f64,
                l.p90_ns as f64,
                l.p99_ns as f64,
                l.p99_9_ns as f64,
                l.max_ns as f64,
            ];
            row.extend(times.map(time));
            rows.push(row);
        }
    }
    table("Latency", columns, rows)
}

/// The table of latencies, and their distribution.
fn latency_figures(traced: &Traced, sum: &Summary) -> Vec<Figure> {
    let mut figures = vec![latencies(sum)];
    for (kind, latencies) in traced.tally.d2c.iter().filter(|(kind, _)| **kind != RequestKind::Flush) {
        let bars = latencies.powers_of_two().into_iter().map(|(from, n)| Bar {
            name: histogram::class_of_time(from),
            value: n as f64,
            range: None,
            group: 0,
        });
        figures.push(Figure::Bars(Bars {
            title: format!("Distribution of {} D2C", kind.as_str()),
            note: String::new(),
            label: "requests".into(),
            unit: Unit::Plain,
            bars: bars.collect(),
        }));
    }
    figures
}

/// Rows of the table of processes and files.
const MOST_USERS: usize = 50;

fn users(sum: &Summary) -> Figure {
    let mut columns = vec![Column::text("process"), Column::text("file")];
    columns.extend(["reads", "bytes read", "writes", "bytes written", "mean", "p99"].map(Column::number));
    let rows = sum.users.iter().take(MOST_USERS).map(|line| {
        vec![
            line.who(),
            line.file.clone(),
            line.reads.requests.to_string(),
            about(line.reads.bytes as f64),
            line.writes.requests.to_string(),
            about(line.writes.bytes as f64),
            time(line.mean_ns),
            time(line.p99_ns as f64),
        ]
    });
    let note = match sum.users.len().saturating_sub(MOST_USERS) {
        0 => String::new(),
        n => format!("{n} more rows are in summary.jsonl."),
    };
    Figure::Table(Table { title: "I/O by process and file".into(), note, columns, rows: rows.collect() })
}

fn askers(tally: &Tally) -> Figure {
    let mut all: Vec<(&String, &u64)> = tally.askers.iter().collect();
    all.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
    let rows = all.into_iter().take(20).map(|(name, n)| vec![name.clone(), n.to_string()]);
    let columns = vec![Column::text("thread"), Column::number("bios")];
    let note = "The threads that were running when bios were queued, as blktrace names them.";
    Figure::Table(Table {
        title: "Threads by bios queued".into(),
        note: note.into(),
        columns,
        rows: rows.collect(),
    })
}

fn checks(sum: &Summary) -> Figure {
    let columns = vec![Column::text("count"), Column::number("trace"), Column::number("/proc/diskstats")];
    let rows = sum
        .checks
        .iter()
        .map(|check| vec![check.what.to_string(), check.traced.to_string(), check.diskstats.to_string()]);
    table("The same requests counted twice", columns, rows.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_compared_with_reads_and_writes_with_writes() {
        let layer = |kind, what: &'static str, count| {
            let comparable = !what.ends_with("by all");
            Layer {
                kind,
                what,
                count,
                bytes: count * 4096,
                per_asked: comparable.then_some(count as f64 / 10.0),
                bytes_per_asked: comparable.then_some(1.0),
            }
        };
        let layers = [
            layer("read", "read calls of the program", 10),
            layer("read", "read requests to the device, for the program", 40),
            layer("read", "read requests to the device, by all", 4000),
            layer("write", "write calls of the program", 10),
            layer("write", "write requests to the device, for the program", 5),
        ];
        let of_reads = "For 10 read calls of the program there were 40 read requests to the device, for the \
                        program: 4.000 for each, 1.000 bytes for each byte.";
        let of_writes = "For 10 write calls of the program there were 5 write requests to the device, for the \
                         program: 0.500 for each, 1.000 bytes for each byte.";
        assert_eq!(asked_and_got(&layers), [of_reads, of_writes]);
        assert!(asked_and_got(&layers[2..3]).is_empty());
        // Only others asked: nothing to compare with the calls.
        assert!(asked_and_got(&[layers[0].clone(), layers[2].clone()]).is_empty());
    }
}
