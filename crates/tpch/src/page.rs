//! The report: queries cold and warm, Q1 by both of its ways, and the reason of its throughput.

mod q1;
mod why;

use snowmelt_lab::report::{Bar, Bars, Column, Figure, Report, Section, Table, Unit};
use snowmelt_lab::size::about;
use snowmelt_lab::watch::page::over_time;
use snowmelt_lab::watch::phase;

use crate::result::{QueryRun, State, TpchResult, Way};

/// The line that every report of these queries must have.
const NOT_COMPARABLE: &str = "Derived from TPC-H, not comparable to published TPC-H results: there are no refresh \
     functions, no throughput test and no audit.";

pub(crate) fn report(result: &TpchResult) -> Report {
    let mut report = Report::new(format!("Derived from TPC-H at scale {}, on PostgreSQL", result.scale));
    report.summary = summary(result);
    report.sections = sections(result);
    report
}

fn summary(result: &TpchResult) -> Vec<String> {
    let mut words = vec![NOT_COMPARABLE.to_owned()];
    words.push(format!(
        "{}, {} MiB of shared buffers, {} parallel workers; the database has {}, lineitem {} of it without indexes, on \
         {}.",
        result.version,
        result.shared_buffers_mb,
        result.workers,
        about(result.bytes.0 as f64),
        about(result.bytes.1 as f64),
        result.device
    ));
    let sum = |state: State| planned(result, state).map(|q| q.seconds).sum::<f64>();
    if planned(result, State::Cold).next().is_some() {
        words.push(format!(
            "The queries took {:.2} s cold, {:.2} s warm; the geometric means are {:.3} s and {:.3} s. {}",
            sum(State::Cold),
            sum(State::Warm),
            geometric(planned(result, State::Cold)),
            geometric(planned(result, State::Warm)),
            checked(&result.queries)
        ));
    }
    words.extend(why::words(result));
    words
}

fn checked(queries: &[QueryRun]) -> String {
    let right = queries.iter().filter(|q| q.correct == Some(true)).count();
    let known = queries.iter().filter(|q| q.correct.is_some()).count();
    match known {
        0 => "The answers at this scale are not known here, and were not checked.".into(),
        _ => format!("{right} of {known} answers are right, by row count and digest."),
    }
}

fn planned(result: &TpchResult, state: State) -> impl Iterator<Item = &QueryRun> {
    result.queries.iter().filter(move |q| q.way == Way::Planned && q.state == state)
}

fn geometric<'a>(queries: impl Iterator<Item = &'a QueryRun>) -> f64 {
    let logs: Vec<f64> = queries.map(|q| q.seconds.max(1e-6).ln()).collect();
    (logs.iter().sum::<f64>() / logs.len().max(1) as f64).exp()
}

/// The sections of the page; for pages of several experiments too.
pub fn sections(result: &TpchResult) -> Vec<Section> {
    let mut sections = Vec::new();
    if planned(result, State::Cold).next().is_some() {
        sections.push(queries(result));
    }
    sections.extend(q1::section(result));
    sections.extend(why::section(result));
    if !result.load.is_empty() {
        let text = "COPY FREEZE in the transaction that made the table, then keys, indexes, VACUUM ANALYZE, CHECKPOINT.";
        sections
            .push(Section::new("The load", vec![phase::table("Step by step", &result.load)]).with_text(text));
    }
    let mut watched = over_time(&result.observed.seconds, std::iter::once(&result.device));
    phase::draw_on(&mut watched, &result.observed.phases);
    for section in &mut watched {
        section.title = format!("All of it, second by second: {}", section.title);
    }
    sections.extend(watched);
    sections
}

fn queries(result: &TpchResult) -> Section {
    let bars = |state: State, group: usize| {
        let bar = move |q: &QueryRun| Bar { name: q.name.clone(), value: q.seconds, range: None, group };
        planned(result, state).map(bar).collect::<Vec<_>>()
    };
    let (cold, warm) = (bars(State::Cold, 0), bars(State::Warm, 1));
    let picture = Bars {
        title: "Seconds of each query, cold and warm".into(),
        note: "Cold: the server started again, and no page of its files in the page cache. Warm: run again."
            .into(),
        label: "seconds".into(),
        unit: Unit::Seconds,
        bars: cold.into_iter().zip(warm).flat_map(|(cold, warm)| [cold, warm]).collect(),
    };
    let columns =
        ["cold", "warm", "cold ÷ warm", "rows", "blocks read, cold", "device read, cold", "rareq-sz, cold"];
    let table = Table {
        title: "Query by query".into(),
        note: "Blocks of 8 KiB that were not in PostgreSQL's buffers, by pg_stat_database.".into(),
        columns: [Column::text("query")]
            .into_iter()
            .chain(columns.map(Column::number))
            .chain([Column::text("answer")])
            .collect(),
        rows: planned(result, State::Cold)
            .zip(planned(result, State::Warm))
            .map(|(cold, warm)| row(cold, warm))
            .collect(),
    };
    let phases: Vec<_> =
        result.queries.iter().filter(|q| q.way == Way::Planned).filter_map(|q| q.phase.clone()).collect();
    let watched = phase::table("Each query as a phase of the watch", &phases);
    Section::new("The queries", vec![Figure::Bars(picture), Figure::Table(table), watched])
}

fn row(cold: &QueryRun, warm: &QueryRun) -> Vec<String> {
    let device = cold.phase.as_ref();
    vec![
        format!("Q{}", cold.query),
        format!("{:.3} s", cold.seconds),
        format!("{:.3} s", warm.seconds),
        format!("{:.1}", cold.seconds / warm.seconds.max(1e-6)),
        cold.rows.to_string(),
        cold.blocks_read.to_string(),
        device.map_or("-".into(), |phase| about(phase.device_read_bytes())),
        device.map_or("-".into(), |phase| about(phase.read_request_bytes())),
        match (cold.correct, warm.correct) {
            (Some(true), Some(true)) => "right".into(),
            (None, _) | (_, None) => "not known".into(),
            _ => "WRONG".into(),
        },
    ]
}
