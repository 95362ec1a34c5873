//! E5: parallel full scans under each scheduler of the kernel.

mod postgres;

use anyhow::{Context, Result};
use serde_json::Value;
use snowmelt_lab::report::{Bar, Bars, Figure, Section, Unit};
use snowmelt_lab::stats::median;

use self::postgres::PostgresScans;
use super::Chapter;
use super::emulated::{self, Emulated};
use super::finding::answers::{Answers, Measure};
use super::finding::catalogue;
use super::steps::{LabStep, Steps};

/// Schedulers of today for those of 2006.
const SCHEDULERS: &str = "none,mq-deadline,kyber,bfq,bfq-anticipatory";

/// The kernel's, of which they are made.
const KERNEL_SCHEDULERS: [&str; 4] = ["none", "mq-deadline", "kyber", "bfq"];
/// The step, where it is skipped.
const SCANS: &str = "scans under each scheduler";
/// Questions to it.
const RISES: [&str; 4] = ["e5-rise", "e5-anticipatory-2", "e5-anticipatory-3", "e5-shared"];
/// Questions to scans through the page cache.
const AHEAD: [&str; 2] = ["e5-ahead-none", "e5-ahead-2m"];
/// Relatives of the three schedulers under which the time rose sharply.
const SHARP: [&str; 3] = ["none", "mq-deadline", "bfq"];
/// The disk, as a model.
const DISK: &str = "hdd-10k";
/// The table of the whole form: a tenth of the published one, for the time it takes.
const TABLE: &str = "200m";
/// The living relative of the anticipatory scheduler.
const ANTICIPATORY: &str = "bfq-anticipatory";

pub fn repeat(steps: &mut Steps<'_>) -> Result<Chapter> {
    let mut answers = Answers::to(catalogue::E5);
    let mut sections = Vec::new();
    if emulated::is_possible() {
        let size = if steps.plan.is_quick { "64m" } else { TABLE };
        Emulated::with(steps, DISK, "2g", |steps, emulated| {
            let device = emulated.path.as_str();
            if let Some(name) = emulated::scheduler_missing(device, &KERNEL_SCHEDULERS) {
                let why = format!("this kernel does not offer the scheduler {name}");
                steps.skip(SCANS, &why);
                answers.none_measured(&RISES, &why);
                answers.none_measured(&AHEAD, &why);
                return Ok(());
            }
            let range = scans(steps, device, size, "independent")?;
            let shared = scans(steps, device, size, "coordinated")?;
            compare(&range, &shared, &mut answers)?;
            let text = "Each worker reads a range of its own, as Oracle's did.";
            sections.push(range.section("Workers with ranges of their own", text, &[""]));
            let text = "The workers take pieces of one shared scan, as PostgreSQL's do, through Snowmelt's elevator.";
            sections.push(shared.section("Workers that share a scan", text, &[""]));
            if steps.plan.is_quick {
                answers.none_measured(&AHEAD, "--quick leaves it out");
            } else {
                let ahead = read_ahead(steps, device, size)?;
                linearity(&ahead, &mut answers)?;
                let text = "Through the page cache, under the anticipatory relative.";
                sections.push(ahead.section("Read-ahead of the kernel", text, &[""]));
            }
            Ok(())
        })?;
    } else {
        steps.skip(SCANS, emulated::NEEDS_ROOT);
        answers.none_measured(&RISES, emulated::NEEDS_ROOT);
        answers.none_measured(&AHEAD, emulated::NEEDS_ROOT);
    }
    beside_postgresql(steps, &mut answers, &mut sections)?;
    Ok(Chapter {
        title: "E5: parallel full scans under each I/O scheduler",
        source: "Published 2006: Oracle counting a table of 2 GB on one SCSI disk of 10,000 rpm, by 1 to 80 workers \
                 under four schedulers of Linux 2.6.",
        findings: answers.finish(),
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
    answers: &mut Answers,
    sections: &mut Vec<Section>,
) -> Result<()> {
    const ID: &str = "e5-postgresql";
    let why = match steps.plan.is_quick {
        true => Some("--quick leaves PostgreSQL out"),
        false => emulated::why_no_file_system(),
    };
    if let Some(why) = why {
        answers.not_measured(ID, why);
        return Ok(());
    }
    let done = emulated::with_file_system(steps, DISK, "2g", |steps, folder| {
        postgres::scans(steps, folder, 20_000, "1,2,4,8")
    });
    match done {
        Ok(done) => {
            answers.figure(ID, reversal(&done)?);
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
            answers.not_measured(ID, error.to_string());
        }
    }
    Ok(())
}

/// Both ways under each scheduler. Without the anticipatory relative's own share it would be no
/// reversal: where sharing is worst under it, ranges are best.
fn reversal(done: &PostgresScans) -> Result<Measure> {
    let names = || SCHEDULERS.split(',');
    let all = |step: &LabStep| names().map(|name| seconds(step, name, 8)).collect::<Result<Vec<f64>>>();
    let (shared, ranges) = (all(&done.shared)?, all(&done.ranges)?);
    let at = names().position(|name| name == ANTICIPATORY).context("it is one of them")?;
    let text = |times: &[f64]| {
        let each = names().zip(times).map(|(name, time)| format!("{name} {time:.2}"));
        each.collect::<Vec<_>>().join(", ")
    };
    let here = format!("seconds, sharing: {}; by ranges: {}", text(&shared), text(&ranges));
    let steps = [&done.shared.meanwhile, &done.ranges.meanwhile];
    Ok(Measure::timed(shared[at] / ranges[at], here, &steps))
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
fn linearity(step: &LabStep, answers: &mut Answers) -> Result<()> {
    let median = |kb: u64, dop: u64| -> Result<f64> {
        let is_it = |cell: &&Value| cell["settings"]["read_ahead_kb"] == kb && cell["dop"] == dop;
        let times = sorted(step.lines.iter().filter(is_it));
        median(&times).with_context(|| format!("no scan with read-ahead {kb} by {dop}"))
    };
    for (id, kb) in AHEAD.into_iter().zip([0, 2048]) {
        let (one, five) = (median(kb, 1)?, median(kb, 5)?);
        let words = format!("{:.2}: {five:.2} s against {one:.2}", five / one);
        answers.figure(id, Measure::timed(five / one, words, &[&step.meanwhile]));
    }
    Ok(())
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

fn compare(independent: &LabStep, coordinated: &LabStep, answers: &mut Answers) -> Result<()> {
    let alone = [&independent.meanwhile];
    let rise = |scheduler: &str, dop: u64| -> Result<f64> {
        Ok(seconds(independent, scheduler, dop)? / seconds(independent, scheduler, 1)?)
    };
    let rises: Result<Vec<(&str, f64)>> =
        SCHEDULERS.split(',').map(|name| Ok((name, rise(name, 2)?))).collect();
    let rises = rises?;
    let text: Vec<String> = rises.iter().map(|(name, rise)| format!("{name} {rise:.2}")).collect();
    let anticipatory = rise(ANTICIPATORY, 2)?;
    let sharp = rises.iter().filter(|(name, _)| SHARP.contains(name)).map(|(_, rise)| *rise);
    let least = sharp.fold(f64::INFINITY, f64::min) / anticipatory;
    let words = format!("{least:.2}; from one to two: {}", text.join(", "));
    answers.figure(RISES[0], Measure::timed(least, words, &alone));
    answers.figure(RISES[1], Measure::timed(anticipatory, format!("{anticipatory:.2}"), &alone));
    match rise(ANTICIPATORY, 3) {
        Ok(rise) => answers.figure(RISES[2], Measure::timed(rise, format!("{rise:.2}"), &alone)),
        Err(_) => answers.not_measured(RISES[2], "--quick leaves three workers out"),
    }
    let (range, shared) = (seconds(independent, "none", 8)?, seconds(coordinated, "none", 8)?);
    let words = format!("{:.2}: {shared:.2} s sharing, {range:.2} s with ranges", shared / range);
    let both = [&independent.meanwhile, &coordinated.meanwhile];
    answers.figure(RISES[3], Measure::timed(shared / range, words, &both));
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use snowmelt_lab::report::Report;

    use super::super::finding::circumstance::Circumstance;
    use super::super::finding::{Agreement, Finding};
    use super::*;

    fn step(cells: Vec<Value>) -> LabStep {
        LabStep { report: Report::new("scans"), lines: cells, meanwhile: Circumstance::default() }
    }

    /// Three cells for each scheduler by 8, whose median is `time`.
    fn by_eight(time: impl Fn(&str) -> f64) -> LabStep {
        let cell = |name: &str, seconds: f64| json!({"settings": {"scheduler": {"name": name}}, "dop": 8, "elapsed_s": seconds});
        let names = SCHEDULERS.split(',');
        step(names.flat_map(|name| [9e9, time(name), 0.0].map(|seconds| cell(name, seconds))).collect())
    }

    fn found(fill: impl FnOnce(&mut Answers)) -> impl Fn(&str) -> Finding {
        let mut answers = Answers::to(catalogue::E5);
        fill(&mut answers);
        let findings = answers.finish();
        move |id| findings.iter().find(|of| of.id == id).unwrap().clone()
    }

    #[test]
    fn what_was_not_asked_there_has_no_verdict() {
        let odd = |at: f64| move |name: &str| if name == ANTICIPATORY { at } else { 5.0 };
        for (shared, ranges) in [(8.9, 4.0), (8.9, 6.0), (4.0, 4.0)] {
            let done = PostgresScans { shared: by_eight(odd(shared)), ranges: by_eight(odd(ranges)) };
            let of = found(|answers| answers.figure("e5-postgresql", reversal(&done).unwrap()));
            let finding = of("e5-postgresql");
            assert_eq!(finding.verdict, Agreement::NotPublished);
            assert_eq!(finding.here_value, Some(shared / ranges));
        }
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
        let of = found(|answers| linearity(&step(published.into()), answers).unwrap());
        assert_eq!(of(AHEAD[0]).here, "2.34: 124.00 s against 53.00");
        assert_eq!(of(AHEAD[1]).here, "1.48: 90.00 s against 61.00");
        assert_eq!(AHEAD.map(|id| of(id).verdict), [Agreement::AsPublished; 2]);
        let missing = step(vec![cell(0, 1, 53.0)]);
        assert!(linearity(&missing, &mut Answers::to(catalogue::E5)).is_err(), "no figure is made up");
    }

    /// Scans that take twice as long by two workers, except under the anticipatory relative.
    #[test]
    fn the_rise_under_the_three_is_held_against_the_other() {
        let scans = |sharp: f64, anticipatory: f64| {
            let cell = |name: &str, dop: u64, seconds: f64| json!({"settings": {"scheduler": {"name": name}}, "dop": dop, "elapsed_s": seconds});
            let rise = |name: &str| if name == ANTICIPATORY { anticipatory } else { sharp };
            let cells = |name| [cell(name, 1, 1.0), cell(name, 2, rise(name)), cell(name, 8, 3.0)];
            step(SCHEDULERS.split(',').flat_map(cells).collect())
        };
        let verdicts = |sharp: f64, anticipatory: f64| {
            let scans = scans(sharp, anticipatory);
            let of = found(|answers| compare(&scans, &scans, answers).unwrap());
            RISES.map(|id| of(id).verdict)
        };
        use Agreement::{AsPublished, NotMeasured, NotPublished, Otherwise};
        assert_eq!(verdicts(2.2, 1.5), [AsPublished, AsPublished, NotMeasured, NotPublished]);
        assert_eq!(verdicts(2.2, 1.03), [AsPublished, Otherwise, NotMeasured, NotPublished]);
        assert_eq!(verdicts(1.5, 1.5)[0], Otherwise, "it rises as much under all");
    }
}
