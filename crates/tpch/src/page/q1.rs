//! Q1 by full scan and by index scan: a table, and pictures over the time of each run.

use snowmelt_lab::report::{Axis, Column, Figure, Plot, Section, Series, Table, Unit};
use snowmelt_lab::size::about;
use snowmelt_lab::watch::iostat::DeviceSecond;
use snowmelt_lab::watch::second::Second;

use crate::result::{QueryRun, State, TpchResult, Way};

pub(super) fn section(result: &TpchResult) -> Option<Section> {
    let runs: Vec<&QueryRun> = result.queries.iter().filter(|q| q.way != Way::Planned).collect();
    if runs.is_empty() {
        return None;
    }
    let cold: Vec<&QueryRun> = runs.iter().copied().filter(|run| run.state == State::Cold).collect();
    let mut figures = vec![table(&runs)];
    let picture = |title: &str, label: &str, unit: Unit, value: fn(&DeviceSecond) -> f64| {
        let of = |second: &Second| second.devices.get(&result.device).map_or(0.0, value);
        over_runs(result, &cold, title, Axis::new(label, unit), &of)
    };
    figures.push(picture("Cold runs: bytes from the device", "per second", Unit::BytesPerSecond, |d| {
        d.rkb_s * 1024.0
    }));
    figures.push(picture("Cold runs: reads of the device", "r/s", Unit::Plain, |d| d.r_s));
    figures.push(picture("Cold runs: size of reads", "rareq-sz", Unit::Bytes, |d| d.rareq_sz * 1024.0));
    figures.push(picture("Cold runs: queue", "aqu-sz", Unit::Plain, |d| d.aqu_sz));
    let cores = result.observed.seconds.iter().map(|second| second.cpus.len()).max().unwrap_or(0);
    for core in 0..cores.min(8) {
        let busy = move |second: &Second| second.cpus.get(core).map_or(0.0, |cpu| cpu.user + cpu.system);
        let title = format!("Cold runs: processor {core}");
        figures.push(over_runs(result, &cold, &title, Axis::new("user and system", Unit::Percent), &busy));
    }
    let plans = result.plans.iter().map(|(way, plan)| plan_words(*way, plan));
    let mut section = Section::new("Q1 by full scan and by index scan on l_shipdate", figures).with_text(
        "In one process. The index scan visits rows in the order of their date; orders are stored by key, so each \
         date's rows are on pages all over the table.",
    );
    section.text.extend(plans);
    Some(section)
}

/// A plan as a paragraph.
fn plan_words(way: Way, plan: &str) -> String {
    let steps: Vec<&str> = plan.lines().map(|line| line.trim().trim_start_matches("->").trim()).collect();
    format!("Plan of the {}: {}.", way.words(), steps.join(" ← "))
}

fn table(runs: &[&QueryRun]) -> Figure {
    let columns = [
        "read-ahead",
        "seconds",
        "CPU",
        "I/O wait",
        "blocks read",
        "device read",
        "reads",
        "MB/s",
        "r/s",
        "rareq-sz",
        "aqu-sz",
    ];
    let row = |run: &&QueryRun| {
        let mut row = vec![
            format!("{}, {}", run.way.words(), run.state.words()),
            format!("{} KiB", run.read_ahead_kb),
            format!("{:.2} s", run.seconds),
        ];
        let Some(phase) = &run.phase else { return row };
        row.extend([
            format!("{:.2} s", phase.user_s + phase.system_s),
            format!("{:.0} %", phase.cpu.iowait),
            run.blocks_read.to_string(),
            about(phase.device_read_bytes()),
            format!("{:.0}", phase.device_reads()),
            format!("{:.1}", phase.device_read_bytes() / 1e6 / phase.seconds),
            format!("{:.0}", phase.device_reads() / phase.seconds),
            about(phase.read_request_bytes()),
            format!("{:.2}", phase.devices.values().map(|d| d.aqu_sz).sum::<f64>()),
        ]);
        row
    };
    Figure::Table(Table {
        title: "Q1, run by run".into(),
        note: "I/O wait is that of all processors.".into(),
        columns: [Column::text("run")].into_iter().chain(columns.map(Column::number)).collect(),
        rows: runs.iter().map(row).collect(),
    })
}

/// The intervals that lie in the run, with their time since its begin.
pub(super) fn intervals<'a>(result: &'a TpchResult, run: &QueryRun) -> Vec<(f64, &'a Second)> {
    let Some(phase) = &run.phase else { return Vec::new() };
    // An interval belongs to the run when most of it lies in it.
    let middle = |second: &Second| second.end_s - second.length_s / 2.0;
    let inside = |second: &&Second| (phase.begin_s..phase.end_s).contains(&middle(second));
    result
        .observed
        .seconds
        .iter()
        .filter(inside)
        .map(|second| (second.end_s - phase.begin_s, second))
        .collect()
}

fn over_runs(
    result: &TpchResult,
    runs: &[&QueryRun],
    title: &str,
    y: Axis,
    value: &dyn Fn(&Second) -> f64,
) -> Figure {
    let series = runs.iter().map(|run| {
        let points = intervals(result, run).into_iter().map(|(at, second)| (at, value(second)));
        Series::new(format!("{}, {} KiB", run.way.words(), run.read_ahead_kb), points.collect())
    });
    Figure::Lines(Plot {
        title: title.into(),
        note: "By the device's read-ahead.".into(),
        x: Axis::new("time since the query began", Unit::Seconds),
        y,
        series: series.collect(),
    })
}
