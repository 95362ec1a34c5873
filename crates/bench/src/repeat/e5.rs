//! E5: parallel full scans under each scheduler of the kernel.

mod postgres;

use anyhow::{Context, Result};
use serde_json::Value;
use snowmelt_lab::report::{Bar, Bars, Figure, Section, Unit};
use snowmelt_lab::stats::median;

use self::postgres::PostgresScans;
use super::Chapter;
use super::emulated::{self, Emulated};
use super::finding::Finding;
use super::steps::{LabStep, Steps};

/// Schedulers of today for those of 2006.
const SCHEDULERS: &str = "none,mq-deadline,kyber,bfq,bfq-anticipatory";

/// The kernel's, of which they are made.
const KERNEL_SCHEDULERS: [&str; 4] = ["none", "mq-deadline", "kyber", "bfq"];
/// The step, where it is skipped.
const SCANS: &str = "scans under each scheduler";
const RISE: &str = "How does the time grow from one worker to two?";
const RISE_PUBLISHED: &str = "sharply under three schedulers, far less under the anticipatory one";
/// The disk, as a model.
const DISK: &str = "hdd-10k";
/// The table of the whole form: a tenth of the published one, for the time it takes.
const TABLE: &str = "200m";
/// The living relative of the anticipatory scheduler.
const ANTICIPATORY: &str = "bfq-anticipatory";

pub fn repeat(steps: &mut Steps<'_>) -> Result<Chapter> {
    let mut findings = Vec::new();
    let mut sections = Vec::new();
    if emulated::is_possible() {
        let size = if steps.plan.is_quick { "64m" } else { TABLE };
        Emulated::with(steps, DISK, "2g", |steps, device| {
            if let Some(name) = emulated::scheduler_missing(device, &KERNEL_SCHEDULERS) {
                let why = format!("this kernel does not offer the scheduler {name}");
                steps.skip(SCANS, &why);
                findings.push(Finding::unmeasured(RISE, RISE_PUBLISHED, why));
                return Ok(());
            }
            let range = scans(steps, device, size, "independent")?;
            let shared = scans(steps, device, size, "coordinated")?;
            findings.extend(compare(&range, &shared)?);
            let text = "Each worker reads a range of its own, as Oracle's did.";
            sections.push(range.section("Workers with ranges of their own", text, &[""]));
            let text = "The workers take pieces of one shared scan, as PostgreSQL's do, through Snowmelt's elevator.";
            sections.push(shared.section("Workers that share a scan", text, &[""]));
            if !steps.plan.is_quick {
                let ahead = read_ahead(steps, device, size)?;
                findings.push(linearity(&ahead)?);
                let text = "Through the page cache, under the anticipatory relative.";
                sections.push(ahead.section("Read-ahead of the kernel", text, &[""]));
            }
            Ok(())
        })?;
    } else {
        steps.skip(SCANS, emulated::NEEDS_ROOT);
        findings.push(Finding::unmeasured(RISE, RISE_PUBLISHED, emulated::NEEDS_ROOT));
    }
    beside_postgresql(steps, &mut findings, &mut sections)?;
    Ok(Chapter {
        title: "E5: parallel full scans under each I/O scheduler",
        source: "Published 2006: Oracle counting a table of 2 GB on one SCSI disk of 10,000 rpm, by 1 to 80 workers \
                 under four schedulers of Linux 2.6.",
        findings,
        differs: vec![
            format!(
                "The schedulers of 2006 are gone: none stands for noop, mq-deadline for deadline, bfq for CFQ, bfq \
                 with slice_idle and low_latency=0 for the anticipatory one; kyber is new. The disk is the model {DISK}."
            ),
            format!(
                "The table has {} MB (with --quick 64) instead of 2 GB: times are shorter by that.",
                TABLE.trim_end_matches('m')
            ),
        ],
        sections,
    })
}

/// PostgreSQL's own parallel scan, and ranges: what is good for one is bad for the other.
fn beside_postgresql(
    steps: &mut Steps<'_>,
    findings: &mut Vec<Finding>,
    sections: &mut Vec<Section>,
) -> Result<()> {
    const WHAT: &str =
        "PostgreSQL: which way of sharing a table among processes suits the anticipatory relative?";
    const BEFORE: &str = "not asked there; measured here before: sharing blocks was worst under it (8.93 s by 8 \
                          processes, 4.0 by 1), ranges were best";
    let why = match steps.plan.is_quick {
        true => Some("--quick leaves PostgreSQL out"),
        false => emulated::why_no_file_system(),
    };
    if let Some(why) = why {
        findings.push(Finding::unmeasured(WHAT, BEFORE, why));
        return Ok(());
    }
    let done = emulated::with_file_system(steps, DISK, "2g", |steps, folder| {
        postgres::scans(steps, folder, 20_000, "1,2,4,8")
    });
    match done {
        Ok(done) => {
            findings.push(reversal(&done, WHAT, BEFORE)?);
            sections.push(Section::new("PostgreSQL: the reversal", vec![both_ways(&done)?]));
            sections.push(done.shared.section(
                "PostgreSQL's parallel scan",
                "Processes share blocks.",
                &[""],
            ));
            sections.push(done.ranges.section("PostgreSQL by ranges", "A query for each range.", &[""]));
        }
        Err(error) => {
            steps.check_stop()?;
            steps.skip("PostgreSQL", &error.to_string());
            findings.push(Finding::unmeasured(WHAT, BEFORE, error.to_string()));
        }
    }
    Ok(())
}

/// Sharing was worst under the anticipatory relative, and ranges best.
fn reversal(done: &PostgresScans, what: &str, published: &str) -> Result<Finding> {
    let names = || SCHEDULERS.split(',');
    let all = |step: &LabStep| names().map(|name| seconds(step, name, 8)).collect::<Result<Vec<f64>>>();
    let (shared, ranges) = (all(&done.shared)?, all(&done.ranges)?);
    let at = names().position(|name| name == ANTICIPATORY).context("it is one of them")?;
    let is_worst = shared.iter().all(|&other| other <= shared[at]);
    let is_best = ranges.iter().all(|&other| other >= ranges[at]);
    let text = |times: &[f64]| {
        let each = names().zip(times).map(|(name, time)| format!("{name} {time:.2}"));
        each.collect::<Vec<_>>().join(", ")
    };
    let here = format!("seconds by 8 processes, sharing: {}; by ranges: {}", text(&shared), text(&ranges));
    Ok(Finding::measured(what, published, here, is_worst && is_best))
}

fn both_ways(done: &PostgresScans) -> Result<Figure> {
    let mut bars = Vec::new();
    for name in SCHEDULERS.split(',') {
        for (group, (way, step)) in
            [("sharing", &done.shared), ("ranges", &done.ranges)].into_iter().enumerate()
        {
            let times = times(step, name, 8);
            let (value, range) = (seconds(step, name, 8)?, times.first().copied().zip(times.last().copied()));
            bars.push(Bar { name: format!("{name}, {way}"), value, range, group });
        }
    }
    let title = "A scan by 8 processes: sharing blocks against ranges of their own";
    Ok(Figure::Bars(Bars {
        title: title.into(),
        label: "time".into(),
        unit: Unit::Seconds,
        bars,
        ..Bars::default()
    }))
}

/// Buffered scans with the kernel's read-ahead off, usual and large.
fn read_ahead(steps: &mut Steps<'_>, device: &str, size: &str) -> Result<LabStep> {
    let args = [
        "scan",
        device,
        "--scheduler",
        ANTICIPATORY,
        "--direct",
        "off",
        "--read-ahead-kb",
        "0,128,2048",
        "--dop",
        "1,2,3,4,5",
        "--size",
        size,
        "--repeat",
        "3",
    ];
    steps.lab("read-ahead under the anticipatory relative", "scan-read-ahead", "cells", &args)
}

/// How much more time five workers take than one, without read-ahead and with 2 MiB.
fn linearity(step: &LabStep) -> Result<Finding> {
    let median = |kb: u64, dop: u64| -> Result<f64> {
        let is_it = |cell: &&Value| cell["settings"]["read_ahead_kb"] == kb && cell["dop"] == dop;
        let times = sorted(step.lines.iter().filter(is_it));
        median(&times).with_context(|| format!("no scan with read-ahead {kb} by {dop}"))
    };
    let growth = |kb: u64| -> Result<f64> { Ok(median(kb, 5)? / median(kb, 1)?) };
    let (none, large) = (growth(0)?, growth(2048)?);
    Ok(Finding::measured(
        "Does read-ahead keep five workers together?",
        "124 s for 53 without (2.3 times), 90 for 61 with 2 MB (1.5 times)",
        format!("{none:.2} times without, {large:.2} times with 2 MiB"),
        none > large,
    ))
}

fn scans(steps: &mut Steps<'_>, device: &str, size: &str, workers: &str) -> Result<LabStep> {
    let (dop, repeat) = if steps.plan.is_quick { ("1,2,8", "1") } else { ("1,2,3,4,8,20,80", "3") };
    let schedulers = if workers == "coordinated" { "none,bfq-anticipatory" } else { SCHEDULERS };
    let args = [
        "scan",
        device,
        "--scheduler",
        schedulers,
        "--dop",
        dop,
        "--size",
        size,
        "--repeat",
        repeat,
        "--workers",
        workers,
    ];
    let title = format!("{workers} workers under each scheduler");
    steps.lab(&title, &format!("scan-{workers}"), "cells", &args)
}

/// Times of cells, the shortest first.
fn sorted<'a>(cells: impl Iterator<Item = &'a Value>) -> Vec<f64> {
    let mut all: Vec<f64> = cells.filter_map(|cell| cell["elapsed_s"].as_f64()).collect();
    all.sort_by(f64::total_cmp);
    all
}

/// The times of a setup.
fn times(step: &LabStep, scheduler: &str, dop: u64) -> Vec<f64> {
    let is_it = |cell: &&Value| cell["settings"]["scheduler"]["name"] == scheduler && cell["dop"] == dop;
    sorted(step.lines.iter().filter(is_it))
}

/// The median time of a setup.
fn seconds(step: &LabStep, scheduler: &str, dop: u64) -> Result<f64> {
    median(&times(step, scheduler, dop)).with_context(|| format!("no scan under {scheduler} by {dop}"))
}

fn compare(independent: &LabStep, coordinated: &LabStep) -> Result<Vec<Finding>> {
    let rise = |scheduler: &str| -> Result<f64> {
        Ok(seconds(independent, scheduler, 2)? / seconds(independent, scheduler, 1)?)
    };
    let rises: Result<Vec<(&str, f64)>> = SCHEDULERS.split(',').map(|name| Ok((name, rise(name)?))).collect();
    let rises = rises?;
    let text: Vec<String> = rises.iter().map(|(name, rise)| format!("{name} {rise:.2}")).collect();
    let anticipatory = rise(ANTICIPATORY)?;
    let others = rises.iter().filter(|(name, _)| *name != ANTICIPATORY).map(|(_, rise)| *rise);
    let (range, shared) = (seconds(independent, "none", 8)?, seconds(coordinated, "none", 8)?);
    Ok(vec![
        Finding::measured(
            RISE,
            RISE_PUBLISHED,
            text.join(", "),
            anticipatory < others.fold(f64::INFINITY, f64::min),
        ),
        Finding::answered(
            "Would workers that share the scan need a scheduler at all?",
            "not asked there; PostgreSQL's workers take blocks from one counter",
            format!("8 workers under none: {range:.2} s with ranges, {shared:.2} s sharing"),
        ),
    ])
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use snowmelt_lab::report::Report;

    use super::super::finding::Agreement;
    use super::*;

    fn step(cells: Vec<Value>) -> LabStep {
        LabStep { report: Report::new("scans"), lines: cells }
    }

    /// Three cells for each scheduler by 8, whose median is `time`.
    fn by_eight(time: impl Fn(&str) -> f64) -> LabStep {
        let cell = |name: &str, seconds: f64| json!({"settings": {"scheduler": {"name": name}}, "dop": 8, "elapsed_s": seconds});
        let names = SCHEDULERS.split(',');
        step(names.flat_map(|name| [9e9, time(name), 0.0].map(|seconds| cell(name, seconds))).collect())
    }

    #[test]
    fn the_reversal_is_worst_for_one_way_and_best_for_the_other() {
        let odd = |at: f64| move |name: &str| if name == ANTICIPATORY { at } else { 5.0 };
        let verdict = |shared: f64, ranges: f64| {
            let done = PostgresScans { shared: by_eight(odd(shared)), ranges: by_eight(odd(ranges)) };
            reversal(&done, "", "").unwrap().verdict
        };
        assert_eq!(verdict(8.9, 4.0), Agreement::Same);
        assert_eq!(verdict(8.9, 6.0), Agreement::Otherwise, "ranges are not best under it");
        assert_eq!(verdict(4.0, 4.0), Agreement::Otherwise, "sharing is not worst under it");
        let Figure::Bars(bars) =
            both_ways(&PostgresScans { shared: by_eight(odd(8.9)), ranges: by_eight(odd(4.0)) }).unwrap()
        else {
            panic!("bars")
        };
        assert_eq!(bars.bars.len(), 10);
        assert_eq!((bars.bars[9].value, bars.bars[9].range), (4.0, Some((0.0, 9e9))));
    }

    #[test]
    fn growth_is_told_for_each_read_ahead() {
        let cell = |kb: u64, dop: u64, seconds: f64| json!({"settings": {"read_ahead_kb": kb}, "dop": dop, "elapsed_s": seconds});
        let published = [cell(0, 1, 53.0), cell(0, 5, 124.0), cell(2048, 1, 61.0), cell(2048, 5, 90.0)];
        let finding = linearity(&step(published.into())).unwrap();
        assert_eq!(finding.here, "2.34 times without, 1.48 times with 2 MiB");
        assert_eq!(finding.verdict, Agreement::Same);
        assert!(linearity(&step(vec![cell(0, 1, 53.0)])).is_err(), "no figure is made up");
    }
}
