//! The page of `lab read`: IOPS by size and depth, latency, steadiness, and the requests at the
//! device for the requests asked.

use std::collections::BTreeSet;

use crate::read::cell::{CellResult, PARTS, ReadCell, name_of, parts};
use crate::read::distribution::{apart, distributions};
use crate::read::group::{CellGroup, grouped};
use crate::report::{
    Axis, Bar, Bars, Column, Figure, HeatMap, Plot, Report, Scale, Section, Series, Table, Unit,
};
use crate::size;
use crate::target::Target;
use crate::trace::cell::CellTrace;

/// Parts of a cell's name besides size and depth that differ within a run: the parts that all
/// cells share are left out, and cells that differ in nothing else make one heat map.
struct Variants {
    /// For each part of a name, whether cells differ in it.
    differ: [bool; PARTS],
    names: Vec<String>,
}

impl Variants {
    fn new(groups: &[CellGroup<'_>]) -> Variants {
        let parts = |cell: &ReadCell| parts(cell).map(|(_, part)| part);
        let first = groups.first().map(|g| parts(g.cell)).unwrap_or_default();
        let mut differ: [bool; PARTS] =
            std::array::from_fn(|i| groups.iter().any(|g| parts(g.cell)[i] != first[i]));
        // Always worth saying, and the only name when all cells are alike.
        differ[1] = true;
        let mut variants = Variants { differ, names: Vec::new() };
        let mut seen = BTreeSet::new();
        let names = groups.iter().map(|g| variants.name(g.cell));
        variants.names = names.filter(|name| seen.insert(name.clone())).collect();
        variants
    }

    fn name(&self, cell: &ReadCell) -> String {
        let parts = parts(cell);
        let told = parts.iter().zip(self.differ).filter(|((_, part), differ)| *differ && !part.is_empty());
        told.map(|((_, part), _)| part.as_str()).collect::<Vec<_>>().join(", ")
    }

    fn members<'a, 'b>(&self, groups: &'b [CellGroup<'a>], name: &str) -> Vec<&'b CellGroup<'a>> {
        groups.iter().filter(|g| self.name(g.cell) == name).collect()
    }
}

/// The page.
pub fn report(target: &Target, results: &[CellResult]) -> Report {
    let groups = grouped(results);
    let what = match groups.iter().all(|g| g.cell.rwmixread.is_none()) {
        true => "Reads of",
        false => "Reads of and writes to",
    };
    let mut report = Report::new(format!("{what} {}", target.path.display()));
    report.summary = summary(&groups);
    let variants = Variants::new(&groups);
    let maps = heat_maps(&groups, &variants, "IOPS", |g| g.iops());
    if maps.is_empty() {
        report.sections.push(Section::new("Requests per second", vec![bars(&groups)]));
    } else {
        report.sections.push(Section::new("Requests per second by size and depth", maps));
    }
    if groups.iter().any(|g| g.cell.iodepth != groups[0].cell.iodepth) {
        report.sections.push(Section::new("With depth", depth_figures(&groups, &variants)));
    }
    report.sections.extend(apart(&groups));
    report.sections.extend(distributions(&groups));
    report.sections.extend(asked_and_got(&groups, &variants));
    report.sections.push(over_time(&groups, &variants));
    report.sections.push(Section::new("All cells", vec![Figure::Table(table(&groups))]));
    report
}

fn summary(groups: &[CellGroup<'_>]) -> Vec<String> {
    let mut lines = Vec::new();
    let most = |of: &dyn Fn(&CellGroup<'_>) -> f64| {
        groups.iter().filter(|g| of(g).is_finite()).max_by(|a, b| of(a).total_cmp(&of(b)))
    };
    if let Some(best) = most(&|g| g.iops()) {
        lines.push(format!(
            "Most requests: {} per second ({}).",
            Unit::Plain.show(best.iops()),
            name_of(best.cell)
        ));
    }
    if let Some(best) = most(&|g| g.median(|r| r.bw_bytes)) {
        let rate = best.median(|r| r.bw_bytes);
        lines.push(format!("Most bytes: {} ({}).", Unit::BytesPerSecond.show(rate), name_of(best.cell)));
    }
    if let Some(best) = most(&|g| -g.median(|r| r.clat.p50_ns as f64)) {
        let (p50, p99) = (best.median(|r| r.clat.p50_ns as f64), best.median(|r| r.clat.p99_ns as f64));
        lines.push(format!(
            "Shortest latency: median {}, 99 % within {} ({}).",
            Unit::Nanoseconds.show(p50),
            Unit::Nanoseconds.show(p99),
            name_of(best.cell)
        ));
    }
    if let Some(worst) = most(&|g| g.median(|r| r.steadiness.variation)) {
        let variation = worst.median(|r| r.steadiness.variation);
        if variation > 0.1 {
            lines.push(format!(
                "Least steady: {} varies by {:.0} % from interval to interval.",
                name_of(worst.cell),
                variation * 100.0
            ));
        }
    }
    if let Some(worst) = most(&|g| g.median(|r| r.requests_per_io.unwrap_or(0.0))) {
        let requests = worst.median(|r| r.requests_per_io.unwrap_or(0.0));
        if requests > 1.1 {
            lines.push(format!(
                "The device served up to {requests:.2} requests for one that was asked ({}).",
                name_of(worst.cell)
            ));
        }
    }
    lines
}

/// A map of sizes and depths for each variant that has several of them.
fn heat_maps(
    groups: &[CellGroup<'_>],
    variants: &Variants,
    what: &str,
    value: impl Fn(&CellGroup<'_>) -> f64,
) -> Vec<Figure> {
    let map = |name: &String| heat_map(format!("{what}: {name}"), &variants.members(groups, name), &value);
    variants.names.iter().filter_map(map).collect()
}

/// For cells that fill no map.
fn bars(groups: &[CellGroup<'_>]) -> Figure {
    let bar = |g: &CellGroup<'_>| {
        let all = || g.results.iter().map(|r| r.iops);
        let range = (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max));
        Bar {
            name: name_of(g.cell),
            value: g.iops(),
            range: (g.results.len() > 1).then_some(range),
            group: usize::from(!g.cell.direct),
        }
    };
    Figure::Bars(Bars {
        title: "Requests per second".into(),
        note: String::new(),
        label: "requests per second".into(),
        unit: Unit::Plain,
        bars: groups.iter().map(bar).collect(),
    })
}

fn heat_map(
    title: String,
    groups: &[&CellGroup<'_>],
    value: &impl Fn(&CellGroup<'_>) -> f64,
) -> Option<Figure> {
    let sizes: Vec<u64> = groups.iter().map(|g| g.cell.bs).collect::<BTreeSet<_>>().into_iter().collect();
    let depths: Vec<u32> =
        groups.iter().map(|g| g.cell.iodepth).collect::<BTreeSet<_>>().into_iter().collect();
    if sizes.len() < 2 || depths.len() < 2 {
        return None;
    }
    let at = |bs: u64, depth: u32| {
        groups.iter().find(|g| g.cell.bs == bs && g.cell.iodepth == depth).map(|g| value(g))
    };
    Some(Figure::HeatMap(HeatMap {
        title,
        note: String::new(),
        x_label: "requests outstanding (iodepth)".into(),
        x: depths.iter().map(u32::to_string).collect(),
        y_label: "request size (bs)".into(),
        y: sizes.iter().map(|bs| size::exact(*bs)).collect(),
        cells: sizes.iter().map(|bs| depths.iter().map(|d| at(*bs, *d)).collect()).collect(),
        unit: Unit::Plain,
        log: true,
    }))
}

fn depth_figures(groups: &[CellGroup<'_>], variants: &Variants) -> Vec<Figure> {
    let sizes: Vec<u64> = groups.iter().map(|g| g.cell.bs).collect::<BTreeSet<_>>().into_iter().collect();
    // The size in which most databases read, or the smallest.
    let bs = if sizes.contains(&8192) { 8192 } else { sizes.first().copied().unwrap_or(0) };
    let points = |name: &str, of: &dyn Fn(&CellGroup<'_>) -> f64| {
        let mut points: Vec<(f64, f64)> = variants
            .members(groups, name)
            .into_iter()
            .filter(|g| g.cell.bs == bs)
            .map(|g| (f64::from(g.cell.iodepth), of(g)))
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points
    };
    let depth = || Axis::new("requests outstanding (iodepth)", Unit::Plain).scaled(Scale::Ordinal);
    let shown = size::exact(bs);
    let iops = Plot {
        title: format!("Requests per second with depth, {shown}"),
        x: depth(),
        y: Axis::new("requests per second", Unit::Plain),
        series: variants.names.iter().map(|v| Series::new(v, points(v, &|g| g.iops()))).collect(),
        ..Plot::default()
    };
    let mut latency = Vec::new();
    for (i, v) in variants.names.iter().enumerate() {
        let p50 = points(v, &|g| g.median(|r| r.clat.p50_ns as f64));
        let p99 = points(v, &|g| g.median(|r| r.clat.p99_ns as f64));
        latency.push(Series::new(format!("{v}: p50"), p50).coloured(i));
        latency.push(Series::new(format!("{v}: p99"), p99).coloured(i).dashed());
    }
    let latency = Plot {
        title: format!("Latency with depth, {shown}"),
        note: "Median, and dashed the 99th percentile.".into(),
        x: depth(),
        y: Axis::new("latency", Unit::Nanoseconds).scaled(Scale::Log),
        series: latency,
    };
    vec![Figure::Lines(iops), Figure::Lines(latency)]
}

/// More bars than this are a map.
const MOST_BARS: usize = 24;

/// Asked against got, where the device's counters tell a difference.
fn asked_and_got(groups: &[CellGroup<'_>], variants: &Variants) -> Option<Section> {
    let known = |g: &&CellGroup<'_>| g.results.iter().any(|r| r.requests_per_io.is_some());
    let value = |g: &CellGroup<'_>| g.median(|r| r.requests_per_io.unwrap_or(0.0));
    if groups.iter().filter(known).count() == 0 {
        return None;
    }
    let title = "Requests the device served for each one asked";
    let mut figures =
        if groups.len() > MOST_BARS { heat_maps(groups, variants, title, value) } else { Vec::new() };
    if figures.is_empty() {
        let bars = groups.iter().filter(known).map(|g| Bar {
            name: name_of(g.cell),
            value: value(g),
            range: None,
            group: usize::from(!g.cell.direct),
        });
        figures.push(Figure::Bars(Bars {
            title: title.into(),
            note: String::new(),
            label: "device requests per request".into(),
            unit: Unit::Plain,
            bars: bars.collect(),
        }));
    }
    figures.extend(traced(groups));
    let text = "A request can reach the device in pieces, and the page cache can read more than was asked: the device's \
                count of requests is not the program's. Above one, the kernel split; below one, it merged, or a cache answered. \
                By the trace these are the requests of this process; without one they are the device's own counters, \
                and left out where others had a part in them.";
    Some(Section::new("Asked and got", figures).with_text(text))
}

/// Pieces per request by the trace: this process's own.
fn traced(groups: &[CellGroup<'_>]) -> Vec<Figure> {
    let traces: Vec<(&CellGroup<'_>, &CellTrace, &CellResult)> = groups
        .iter()
        .filter_map(|g| g.results.iter().find_map(|r| Some((g, r.trace.as_ref()?, *r))))
        .collect();
    if traces.is_empty() {
        return Vec::new();
    }
    let per_io = |count: u64, r: &CellResult| count as f64 / r.total_ios.max(1) as f64;
    let bars = traces.iter().map(|(g, trace, r)| Bar {
        name: name_of(g.cell),
        value: per_io(trace.own_bios, r),
        range: None,
        group: usize::from(!g.cell.direct),
    });
    let bars = Bars {
        title: "By the block trace: pieces in which a request reached the device".into(),
        note: "Bios queued by this process, divided by its requests; no other process counts. Where the kernel reads page by page, \
               they are the pages that a request touches and that are not cached yet."
            .into(),
        label: "bios per request".into(),
        unit: Unit::Plain,
        bars: bars.collect(),
    };
    let columns = [
        "requests asked",
        "pages per request",
        "own bios",
        "bios per request",
        "bytes per bio",
        "device requests",
        "splits",
        "merges",
        "events lost",
    ];
    let rows = traces.iter().map(|(g, trace, r)| {
        vec![
            name_of(g.cell),
            r.total_ios.to_string(),
            format!("{:.4}", r.pages_per_io),
            trace.own_bios.to_string(),
            format!("{:.4}", per_io(trace.own_bios, r)),
            format!("{:.0}", trace.own_bio_bytes as f64 / trace.own_bios.max(1) as f64),
            trace.requests.to_string(),
            trace.splits.to_string(),
            trace.merges.to_string(),
            trace.events_lost.to_string(),
        ]
    });
    let table = Table {
        title: "The block trace in numbers".into(),
        note: "Device requests, splits and merges are those of all programs on this device.".into(),
        columns: std::iter::once(Column::text("cell")).chain(columns.map(Column::number)).collect(),
        rows: rows.collect(),
    };
    vec![Figure::Bars(bars), Figure::Table(table)]
}

/// Intervals of the first repeat, for the variants at the size and depth that show most.
fn over_time(groups: &[CellGroup<'_>], variants: &Variants) -> Section {
    let deepest = groups.iter().map(|g| g.cell.iodepth).max().unwrap_or(1);
    let sizes: BTreeSet<u64> = groups.iter().map(|g| g.cell.bs).collect();
    let figures = sizes.iter().map(|bs| {
        let series = groups.iter().filter(|g| g.cell.bs == *bs && g.cell.iodepth == deepest).map(|g| {
            let first = g.results[0];
            let at = |i: usize| (i as f64 + 1.0) * first.interval_ms / 1e3;
            let points = first.iops_series.iter().enumerate().map(|(i, v)| (at(i), *v)).collect();
            Series::new(variants.name(g.cell), points)
        });
        Figure::Lines(Plot {
            title: format!("Requests per second over time, {} at depth {deepest}", size::exact(*bs)),
            note: String::new(),
            x: Axis::new("time since the start", Unit::Seconds),
            y: Axis::new("requests per second", Unit::Plain),
            series: series.collect(),
        })
    });
    Section::new("Interval by interval", figures.collect())
        .with_text("A device that is steady draws a flat line. The first repeat of each cell.")
}

fn table(groups: &[CellGroup<'_>]) -> Table {
    let shown: Vec<f64> = groups.first().map(|g| g.results[0].shown.clone()).unwrap_or_default();
    let percentiles = shown.iter().map(|percent| format!("p{percent}"));
    let names = ["IOPS", "MB/s"].map(String::from).into_iter().chain(percentiles).chain(
        ["longest", "variation", "CPU per request", "device requests", "amplification"].map(String::from),
    );
    let columns = std::iter::once(Column::text("cell")).chain(names.map(Column::number)).collect();
    let rows = groups.iter().map(|g| {
        let ns = |of: &dyn Fn(&CellResult) -> u64| Unit::Nanoseconds.show(g.median(|r| of(r) as f64));
        let ratio = |of: fn(&CellResult) -> Option<f64>| {
            if g.results.iter().any(|r| of(r).is_some()) {
                format!("{:.3}", g.median(|r| of(r).unwrap_or(0.0)))
            } else {
                "–".into()
            }
        };
        let mut row = vec![
            name_of(g.cell),
            format!("{:.0}", g.iops()),
            format!("{:.1}", g.median(|r| r.bw_bytes) / 1e6),
        ];
        row.extend((0..shown.len()).map(|i| ns(&|r| r.shown_ns()[i].1)));
        row.extend([
            ns(&|r| r.clat.max_ns),
            format!("{:.1} %", g.median(|r| r.steadiness.variation) * 100.0),
            format!("{:.2} µs", g.median(|r| r.cpu_us_per_io)),
            ratio(|r| r.requests_per_io),
            ratio(|r| r.amplification),
        ]);
        row
    });
    Table {
        title: "Medians of the repeats".into(),
        note: "variation: standard deviation of the intervals divided by their mean. device requests, amplification: \
               requests and bytes the device served this process for each one asked."
            .into(),
        columns,
        rows: rows.collect(),
    }
}
