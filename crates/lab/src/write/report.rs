//! The page of `lab write`: the time until everything was durable, rung by rung.

use std::path::Path;

use crate::report::{Axis, Bar, Bars, Column, Figure, Plot, Report, Scale, Section, Series, Table, Unit};
use crate::stats::median;
use crate::write::bench::RungResult;
use crate::write::rung::{Rung, SyncPolicy, name_of};

struct RungGroup<'a> {
    rung: &'a Rung,
    results: Vec<&'a RungResult>,
}

impl RungGroup<'_> {
    fn median(&self, of: impl Fn(&RungResult) -> f64) -> f64 {
        median(&self.results.iter().map(|r| of(r)).collect::<Vec<_>>()).unwrap_or(0.0)
    }

    fn range(&self, of: impl Fn(&RungResult) -> f64) -> Option<(f64, f64)> {
        let values = || self.results.iter().map(|r| of(r));
        (self.results.len() > 1)
            .then(|| (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max)))
    }
}

/// The page.
pub fn report(path: &Path, results: &[RungResult]) -> Report {
    let mut groups: Vec<RungGroup<'_>> = Vec::new();
    for result in results {
        match groups.iter_mut().find(|g| *g.rung == result.rung) {
            Some(group) => group.results.push(result),
            None => groups.push(RungGroup { rung: &result.rung, results: vec![result] }),
        }
    }
    let mut report = Report::new(format!("Scattered writes to {}", path.display()));
    report.summary = summary(&groups);
    report.sections = vec![
        Section::new("Writes per second until durable", vec![ladder(&groups)]).with_text(
            "Counted from the first write (or the first target read ahead) to the moment when the last byte was synced; \
             each rung writes the same places.",
        ),
        Section::new("Longest sync", vec![syncs(&groups)])
            .with_text("How long a shutdown or a commit that needs everything durable may have to wait."),
        Section::new("All rungs", vec![Figure::Table(table(&groups))]),
    ];
    if let Some(section) = by_size(&groups) {
        report.sections.insert(1, section);
    }
    let early: Vec<&RungGroup<'_>> = groups.iter().filter(|g| returned_early(g)).collect();
    if !early.is_empty() {
        let section = Section::new("Returned is not durable", vec![times(&early)])
            .with_text("Rungs whose writes had all returned at least a tenth sooner than they were durable.");
        report.sections.insert(1, section);
    }
    report
}

/// The time of the syncs by the size of the file, where there are several.
fn by_size(groups: &[RungGroup<'_>]) -> Option<Section> {
    let several = groups.iter().any(|g| g.rung.size != groups[0].rung.size);
    if !several {
        return None;
    }
    let alike = |rung: &Rung| Rung { size: None, sparse: false, ..rung.clone() };
    let mut variants: Vec<Rung> = Vec::new();
    groups.iter().map(|g| alike(g.rung)).for_each(|rung| {
        if !variants.contains(&rung) {
            variants.push(rung);
        }
    });
    let plot = |title: &str, of: fn(&RungResult) -> f64| {
        let series = variants.iter().map(|variant| {
            let members = groups.iter().filter(|g| alike(g.rung) == *variant);
            let mut points: Vec<(f64, f64)> =
                members.filter_map(|g| Some((g.rung.size? as f64, g.median(of)))).collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            Series::new(name_of(variant), points)
        });
        Figure::Lines(Plot {
            title: title.into(),
            note: String::new(),
            x: Axis::new("size of the file", Unit::Bytes).scaled(Scale::Log),
            y: Axis::new("time", Unit::Seconds),
            series: series.collect(),
        })
    };
    let figures = vec![
        plot("Time of all syncs by the size of the file", |r| r.sync_s),
        plot("Longest sync by the size of the file", |r| r.sync_max_ms / 1e3),
    ];
    let text = "As many writes are scattered over each file. In a larger one they lie further apart, and the file \
                system has more to look up. A sparse file also needs room found for each place.";
    Some(Section::new("With the size of the file", figures).with_text(text))
}

fn returned_early(g: &RungGroup<'_>) -> bool {
    g.median(|r| r.written_s) < 0.9 * g.median(|r| r.durable_s)
}

fn summary(groups: &[RungGroup<'_>]) -> Vec<String> {
    let rate = |g: &&RungGroup<'_>| g.median(|r| r.durable_per_s);
    let order = |a: &&RungGroup<'_>, b: &&RungGroup<'_>| rate(a).total_cmp(&rate(b));
    let all = || groups.iter().filter(|g| g.rung.sync != SyncPolicy::Each);
    let (Some(best), Some(worst)) = (all().max_by(order), all().min_by(order)) else { return Vec::new() };
    let say = |g: &RungGroup<'_>| {
        let bytes = g.median(|r| r.durable_bytes_per_s);
        format!(
            "{} ({}, {})",
            name_of(g.rung),
            Unit::Plain.show(g.median(|r| r.durable_per_s)) + " writes per second",
            Unit::BytesPerSecond.show(bytes)
        )
    };
    let mut lines = vec![
        format!("Fastest until durable: {}.", say(best)),
        format!("Slowest: {}, {:.1} times slower.", say(worst), rate(&best) / rate(&worst).max(1e-9)),
    ];
    lines.extend(prefetch_gain(groups));
    lines
}

/// The largest gain of reading the targets ahead.
fn prefetch_gain(groups: &[RungGroup<'_>]) -> Option<String> {
    let rate = |g: &RungGroup<'_>| g.median(|r| r.durable_per_s);
    let gain = |with: &RungGroup<'_>| {
        let plain = Rung { prefetch: false, ..with.rung.clone() };
        let without = groups.iter().find(|g| *g.rung == plain)?;
        Some(rate(with) / rate(without).max(1e-9))
    };
    let (best, ratio) = groups
        .iter()
        .filter(|g| g.rung.prefetch)
        .filter_map(|g| Some((g, gain(g)?)))
        .max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(format!(
        "Reading the targets ahead was worth at most a factor of {ratio:.2} ({}).",
        name_of(best.rung)
    ))
}

fn bars(groups: &[RungGroup<'_>], of: impl Fn(&RungResult) -> f64 + Copy) -> Vec<Bar> {
    let bar = |g: &RungGroup<'_>| Bar {
        name: name_of(g.rung),
        value: g.median(of),
        range: g.range(of),
        group: match g.rung.sync {
            SyncPolicy::Each => 3,
            SyncPolicy::Journal => 1,
            SyncPolicy::End => 0,
            SyncPolicy::Background => 2,
        },
    };
    groups.iter().map(bar).collect()
}

fn ladder(groups: &[RungGroup<'_>]) -> Figure {
    Figure::Bars(Bars {
        title: "Writes per second until durable".into(),
        note: "One colour per policy of syncing.".into(),
        label: "writes per second".into(),
        unit: Unit::Plain,
        bars: bars(groups, |r| r.durable_per_s),
    })
}

fn times(groups: &[&RungGroup<'_>]) -> Figure {
    let both = groups.iter().flat_map(|g| {
        let written = Bar {
            name: format!("{}: returned", name_of(g.rung)),
            value: g.median(|r| r.written_s),
            range: None,
            group: 5,
        };
        let durable = Bar { name: "durable".into(), value: g.median(|r| r.durable_s), range: None, group: 0 };
        [written, durable]
    });
    Figure::Bars(Bars {
        title: "Time until all writes had returned, and until all were durable".into(),
        label: "time".into(),
        unit: Unit::Seconds,
        bars: both.collect(),
        ..Bars::default()
    })
}

fn syncs(groups: &[RungGroup<'_>]) -> Figure {
    Figure::Bars(Bars {
        title: "Longest sync".into(),
        label: "time".into(),
        unit: Unit::Seconds,
        bars: bars(groups, |r| r.sync_max_ms / 1e3),
        ..Bars::default()
    })
}

fn table(groups: &[RungGroup<'_>]) -> Table {
    let mut columns = vec![Column::text("rung")];
    columns.extend(
        [
            "writes",
            "returned s",
            "durable s",
            "writes/s",
            "MB/s",
            "read ahead s",
            "p50",
            "p99",
            "syncs",
            "longest sync",
            "device writes",
            "device reads",
        ]
        .map(Column::number),
    );
    let verified = groups.iter().any(|g| g.rung.verify);
    if verified {
        columns.push(Column::number("verified"));
    }
    let rows = groups.iter().map(|g| {
        let device = |of: fn(&crate::machine::device_work::DeviceWork) -> u64| {
            format!("{:.0}", g.median(|r| r.device.as_ref().map_or(0, of) as f64))
        };
        let mut row = vec![
            name_of(g.rung),
            format!("{:.0}", g.median(|r| r.total_ios as f64)),
            format!("{:.2}", g.median(|r| r.written_s)),
            format!("{:.2}", g.median(|r| r.durable_s)),
            format!("{:.0}", g.median(|r| r.durable_per_s)),
            format!("{:.2}", g.median(|r| r.durable_bytes_per_s) / 1e6),
            format!("{:.2}", g.median(|r| r.prefetch_s)),
            Unit::Nanoseconds.show(g.median(|r| r.clat.p50_ns as f64)),
            Unit::Nanoseconds.show(g.median(|r| r.clat.p99_ns as f64)),
            format!("{:.0}", g.median(|r| r.syncs as f64)),
            format!("{:.1} ms", g.median(|r| r.sync_max_ms)),
            device(|d| d.writes),
            device(|d| d.reads),
        ];
        if verified {
            row.push(format!("{:.0}", g.median(|r| r.verified.map_or(0, |v| v.blocks) as f64)));
        }
        row
    });
    Table {
        title: "Medians of the repeats".into(),
        note: "Device writes and reads are the device's own counts, other programs' included. Verified: blocks that \
               were read back, cold, and are what was written."
            .into(),
        columns,
        rows: rows.collect(),
    }
}
