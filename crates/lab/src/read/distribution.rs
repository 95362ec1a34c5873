//! The sections of reads and writes apart, and of the distribution of latencies.

use crate::read::cell::{CellResult, OneWayResult, name_of};
use crate::read::group::CellGroup;
use crate::report::{Axis, Column, Figure, Plot, Scale, Section, Series, Table, Unit};
use crate::stats::median;

/// More lines than this cannot be told apart.
const MOST_LINES: usize = 8;

/// The two directions of mixes, if there are any.
pub(super) fn apart(groups: &[CellGroup<'_>]) -> Option<Section> {
    let mixed = groups.iter().filter(|g| g.results.iter().any(|r| r.read.is_some()));
    let row = |g: &CellGroup<'_>, name: &str, of: fn(&CellResult) -> Option<&OneWayResult>| {
        let median = |field: fn(&OneWayResult) -> f64| {
            let values: Vec<f64> = g.results.iter().filter_map(|r| of(r)).map(field).collect();
            median(&values).unwrap_or(0.0)
        };
        let ns = |field: fn(&OneWayResult) -> f64| Unit::Nanoseconds.show(median(field));
        vec![
            name_of(g.cell),
            name.into(),
            format!("{:.0}", median(|one| one.iops)),
            format!("{:.1}", median(|one| one.bw_bytes) / 1e6),
            format!("{:.0}", median(|one| one.total_ios as f64)),
            ns(|one| one.clat.p50_ns as f64),
            ns(|one| one.clat.p99_ns as f64),
            ns(|one| one.clat.p99_9_ns as f64),
            ns(|one| one.clat.max_ns as f64),
        ]
    };
    let rows: Vec<Vec<String>> = mixed
        .flat_map(|g| [row(g, "reads", |r| r.read.as_ref()), row(g, "writes", |r| r.write.as_ref())])
        .collect();
    if rows.is_empty() {
        return None;
    }
    let numbers = ["IOPS", "MB/s", "requests", "p50", "p99", "p99.9", "longest"].map(Column::number);
    let table = Table {
        title: "Reads and writes of the mixes".into(),
        note: "Medians of the repeats.".into(),
        columns: [Column::text("cell"), Column::text("direction")].into_iter().chain(numbers).collect(),
        rows,
    };
    Some(Section::new("Reads and writes apart", vec![Figure::Table(table)]))
}

/// Histograms of the cells, if they were asked for: of the first repeat.
pub(super) fn distributions(groups: &[CellGroup<'_>]) -> Option<Section> {
    let asked: Vec<_> = groups.iter().filter(|g| !g.results[0].clat_log2_ns.is_empty()).collect();
    if asked.is_empty() {
        return None;
    }
    let series = |g: &&CellGroup<'_>| {
        let first = g.results[0];
        let share = |count: u64| count as f64 / first.total_ios.max(1) as f64 * 100.0;
        let points = first.clat_log2_ns.iter().map(|(lower, count)| (*lower as f64, share(*count)));
        Series::new(name_of(g.cell), points.collect())
    };
    let plots = asked.chunks(MOST_LINES).map(|some| {
        Figure::Lines(Plot {
            title: "Share of the requests by latency".into(),
            note: "Of the first repeat. Each point is a power of two: the requests from this latency up to twice \
                   as long."
                .into(),
            x: Axis::new("latency", Unit::Nanoseconds).scaled(Scale::Log),
            y: Axis::new("share of the requests", Unit::Percent),
            series: some.iter().map(series).collect(),
        })
    });
    Some(Section::new("Distribution of latencies", plots.collect()))
}
