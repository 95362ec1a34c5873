//! A sweep as a page. Its first figure is elapsed time against the degree of parallelism, as in
//! the figure of 2006.

use super::cell::ScanCell;
use super::plan::{Lists, Setup, Workers};

use crate::report::{Axis, Column, Figure, Plot, Report, Scale, Section, Series, Table, Unit};
use crate::stats::median;

pub(super) fn report(lists: &Lists, setups: &[Setup], cells: &[ScanCell], by_command: bool) -> Report {
    let mut report = Report::new("Parallel full scans");
    report.summary = words(lists, setups, cells);
    let plot = |title: &str, label: &str, unit: Unit, value: &dyn Fn(&ScanCell) -> Option<f64>| {
        let series = setups.iter().map(|setup| {
            let name = lists.name(setup);
            let points = over_dop(cells, &name, value);
            Series::new(name, points)
        });
        Figure::Lines(Plot {
            title: title.into(),
            note: String::new(),
            x: Axis::new("degree of parallelism", Unit::Plain).scaled(Scale::Ordinal),
            y: Axis::new(label, unit),
            series: series.filter(|s| !s.points.is_empty()).collect(),
        })
    };
    let mut device = vec![
        plot("Size of requests", "mean size", Unit::Bytes, &|c| Some(c.device.rareq_kib * 1024.0)),
        plot("Queue", "requests waiting or under way", Unit::Plain, &|c| Some(c.device.aqu)),
        plot("In flight while the device was busy", "requests", Unit::Plain, &|c| Some(c.device.in_flight)),
    ];
    if cells.iter().any(|c| c.device.seeks.is_some()) {
        device.push(plot("Seeks", "requests apart from the one before", Unit::Plain, &|c| {
            c.device.seeks.map(|n| n as f64)
        }));
        device.push(plot("Depth at the device", "requests", Unit::Plain, &|c| c.device.depth));
    }
    report.sections = vec![
        Section::new(
            "Elapsed time",
            vec![
                plot("Elapsed time against degree of parallelism", "elapsed", Unit::Seconds, &|c| {
                    Some(c.elapsed_s)
                }),
                plot("Throughput", "scanned", Unit::BytesPerSecond, &|c| Some(c.mb_per_s * 1e6)),
            ],
        )
        .with_text(match by_command {
            false => "Medians of the rounds; every scan from a cold cache.",
            true => {
                "Medians of the rounds. The table was thrown out of the page cache before each; buffers of the \
                 program that scanned it are its own affair: see the bytes that the device gave."
            }
        }),
        Section::new("What the device got", device),
        Section::new(
            "Processors",
            vec![
                plot("Busy", "user and system", Unit::Percent, &|c| Some(c.cpu.user + c.cpu.system)),
                plot("Waiting for I/O", "idle with a request under way", Unit::Percent, &|c| {
                    Some(c.cpu.iowait)
                }),
            ],
        ),
    ];
    if cells.iter().any(|c| c.beside.count > 0) {
        let beside = vec![
            plot("Beside the scan: median time", "p50", Unit::Nanoseconds, &|c| {
                (c.beside.count > 0).then_some(c.beside.p50_ns as f64)
            }),
            plot("Beside the scan: 99th percentile", "p99", Unit::Nanoseconds, &|c| {
                (c.beside.count > 0).then_some(c.beside.p99_ns as f64)
            }),
        ];
        report.sections.push(Section::new("Beside the scan", beside));
    }
    report.sections.push(Section::new("All cells", vec![all(cells)]));
    report
}

/// Medians over the rounds, by degree.
fn over_dop(cells: &[ScanCell], name: &str, value: &dyn Fn(&ScanCell) -> Option<f64>) -> Vec<(f64, f64)> {
    let mut dops: Vec<u32> = cells.iter().filter(|c| c.setup == name).map(|c| c.dop).collect();
    dops.sort_unstable();
    dops.dedup();
    let at = |dop: u32| {
        let values: Vec<f64> =
            cells.iter().filter(|c| c.setup == name && c.dop == dop).filter_map(value).collect();
        Some((f64::from(dop), median(&values)?))
    };
    dops.into_iter().filter_map(at).collect()
}

fn words(lists: &Lists, setups: &[Setup], cells: &[ScanCell]) -> Vec<String> {
    let mut words = Vec::new();
    for setup in setups {
        let name = lists.name(setup);
        let points = over_dop(cells, &name, &|c| Some(c.elapsed_s));
        let (Some(first), Some(last)) = (points.first(), points.last()) else { continue };
        let show = |s: f64| Unit::Seconds.show(s);
        let workers = if first.0 == 1.0 { "worker" } else { "workers" };
        let mut text = format!("{name}: {} with {} {workers}", show(first.1), first.0);
        if points.len() > 1 {
            text += &format!(", {} with {} ({:.2} ×)", show(last.1), last.0, last.1 / first.1);
        }
        let worst = points.iter().copied().fold(*first, |a, b| if b.1 > a.1 { b } else { a });
        if worst.0 != first.0 && worst.0 != last.0 {
            text += &format!("; slowest {} with {}", show(worst.1), worst.0);
        }
        words.push(text + ".");
    }
    words.extend(setups.iter().filter_map(|setup| at_once(lists, setup, cells)));
    let kernel = setups.iter().any(|s| s.scheduler.kernel.is_some());
    if kernel {
        words.push(
            "The schedulers of 2006 are gone. Their closest living relatives: none for noop, mq-deadline for deadline, bfq for CFQ, \
             and bfq with low_latency=0 (bfq-anticipatory) for the anticipatory scheduler; kyber is new."
                .into(),
        );
    }
    if setups.iter().any(|s| s.workers == Workers::Coordinated) {
        words.push(
            "Independent workers read a range each, 128 KiB or as said at a time. Coordinated ones take the next piece of one shared scan, \
             which Snowmelt's elevator reads ahead in the device's order."
                .into(),
        );
    }
    words
}

/// Reads asked for at once by the most workers, and those that were in flight.
fn at_once(lists: &Lists, setup: &Setup, cells: &[ScanCell]) -> Option<String> {
    setup.reads.filter(|reads| reads.depth > 1)?;
    let name = lists.name(setup);
    let asked = over_dop(cells, &name, &|c| c.asked_at_once.map(|n| n as f64));
    let seen = over_dop(cells, &name, &|c| Some(c.device.in_flight));
    let ((dop, asked), (_, seen)) = (asked.last()?, seen.last()?);
    let workers = if *dop == 1.0 { "worker" } else { "workers" };
    Some(format!(
        "{name}: {dop} {workers} asked for {asked} reads at once; {seen:.1} requests were in flight on average while \
         the device was busy."
    ))
}

fn all(cells: &[ScanCell]) -> Figure {
    let names = [
        "workers",
        "round",
        "elapsed s",
        "MB/s",
        "requests",
        "KiB each",
        "queue",
        "asked at once",
        "in flight",
        "r_await ms",
        "seeks",
        "depth",
        "user %",
        "system %",
        "I/O wait %",
        "steal %",
    ];
    let mut columns = vec![Column::text("setup")];
    columns.extend(names.map(Column::number));
    let rows = cells.iter().map(|c| {
        let mut row = vec![c.setup.clone(), c.dop.to_string(), (c.round + 1).to_string()];
        row.extend([c.elapsed_s, c.mb_per_s].map(|v| format!("{v:.2}")));
        row.push(c.device.reads.to_string());
        row.extend([c.device.rareq_kib, c.device.aqu].map(|v| format!("{v:.1}")));
        row.push(c.asked_at_once.map_or(String::new(), |n| n.to_string()));
        row.extend([c.device.in_flight, c.device.r_await].map(|v| format!("{v:.1}")));
        row.push(c.device.seeks.map_or(String::new(), |n| n.to_string()));
        row.push(c.device.depth.map_or(String::new(), |d| format!("{d:.1}")));
        row.extend([c.cpu.user, c.cpu.system, c.cpu.iowait, c.cpu.steal].map(|v| format!("{v:.1}")));
        row
    });
    Figure::Table(Table {
        title: "All cells".into(),
        note: "queue, in flight (while the device was busy) and r_await are by /proc/diskstats, seeks and depth by the \
               block trace".into(),
        columns,
        rows: rows.collect(),
    })
}
