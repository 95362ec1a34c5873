//! E4: the requests that a device receives beneath buffered and direct reads.

use anyhow::{Context, Result};
use serde_json::Value;
use snowmelt_lab::device_activity_of;
use snowmelt_lab::stats::{self, Spread};
use snowmelt_lab::watch::iostat::DeviceSecond;

use super::Chapter;
use super::emulated::{self, Emulated};
use super::finding::answers::{Answers, Measure};
use super::finding::catalogue;
use super::finding::circumstance::{Basis, Circumstance};
use super::steps::{LabStep, Steps};

/// The array of the publication, as a model: eight drives, chunks of 64 KiB.
const ARRAY: &str = "raid0:ssd*8";
/// Questions to the reads of the device.
const READS: [&str; 7] = [
    "e4-buffered-8k-512",
    "e4-buffered-16k-512",
    "e4-buffered-8k",
    "e4-buffered-16k",
    "e4-direct-splits",
    "e4-speed",
    "e4-unsteady",
];
/// Questions to PostgreSQL's index scan.
const SCAN: [&str; 2] = ["e4-index-scan", "e4-index-scan-unsteady"];
/// Fewer intervals say nothing of how a rate varies.
const LEAST_INTERVALS: usize = 8;
/// A rate that varies by less is steady.
const STEADY: f64 = 0.01;

pub fn repeat(steps: &mut Steps<'_>) -> Result<Chapter> {
    let mut answers = Answers::to(catalogue::E4);
    let mut sections = Vec::new();
    let differs = "There 1 M reads of an array of flash cards, here reads of an emulated SSD for half a minute (--quick: 4 s). The \
                   offsets are multiples of 512 bytes, as there, and then of the size of the read.";
    let why = (!emulated::is_possible()).then_some(emulated::NEEDS_ROOT).or_else(emulated::why_no_trace);
    if let Some(why) = why {
        steps.skip("random reads of a device", why);
        answers.none_measured(&READS, why);
    } else {
        let odd = Emulated::with(steps, "ssd", "8g", |steps, device| reads(steps, &device.path, "512"))?;
        let whole = Emulated::with(steps, "ssd", "8g", |steps, device| reads(steps, &device.path, "size"))?;
        pieces(&odd, &whole, &mut answers)?;
        let array = Emulated::with(steps, ARRAY, "8g", |steps, device| split(steps, device, &mut answers))?;
        let text = "Each of a place drawn at random, as there.";
        sections.push(odd.section("Reads at multiples of 512 bytes", text, &[""]));
        sections.push(whole.section("Aligned reads", "The same at multiples of their size.", &[""]));
        let text = "Eight SSDs as RAID 0, emulated: it counts the reads of its drives itself.";
        sections.push(array.section("Direct reads of an array", text, &[""]));
    }
    if steps.plan.is_quick {
        answers.none_measured(&SCAN, "--quick leaves PostgreSQL out");
    } else {
        let step = steps.lab("TPC-H on PostgreSQL", "tpch", "queries", &["tpch", "--scale", "1"])?;
        index_scan(&step, &steps.lines("tpch", "seconds")?, &steps.lines("tpch", "random")?, &mut answers)?;
        sections.push(step.section(
            "TPC-H on PostgreSQL",
            "By snowmelt-lab tpch, which has a page of its own in the folder of the steps.",
            &[""],
        ));
    }
    Ok(Chapter {
        title: "E4: what the device really receives",
        source: "Published 2012: TPC-H at 100 GB on PostgreSQL 9.2, 8 flash cards as RAID 0, each query watched once \
                 a second; then 1 M random reads of the raw device, traced.",
        findings: answers.finish(),
        differs: vec![differs.to_owned()],
        sections,
    })
}

/// Random reads without read-ahead, direct and buffered, traced.
fn reads(steps: &mut Steps<'_>, device: &str, align: &str) -> Result<LabStep> {
    let runtime = if steps.plan.is_quick { "4" } else { "30" };
    let args = [
        "read",
        device,
        "--sizes",
        "8k,16k",
        "--depth",
        "1",
        "--engine",
        "inline",
        "--direct",
        "on,off",
        "--align",
        align,
        "--read-ahead-kb",
        "0",
        "--trace",
        "--runtime",
        runtime,
    ];
    let title = format!("random reads at multiples of {align}, direct and buffered");
    steps.lab(&title, &format!("reads-{align}"), "cells", &args)
}

fn cell(step: &LabStep, bytes: u64, direct: bool) -> Result<&Value> {
    let is_it = |cell: &&Value| cell["bs"] == bytes && cell["direct"] == direct;
    step.lines.iter().find(is_it).with_context(|| format!("no cell of {bytes} bytes"))
}

fn number(value: &Value) -> Result<f64> {
    value.as_f64().context("a cell without a figure")
}

/// Device reads for each read of a cell: those of the program alone where they were told apart.
fn device_reads(step: &LabStep, cell: &Value) -> Result<Measure> {
    let device = &cell["device"];
    let asked = number(&cell["total_ios"])?.max(1.0);
    if let Some(own) = device["own"]["reads"].as_f64() {
        let each = own / asked;
        return Ok(Measure::new(each, format!("{each:.2}"), Basis::OwnCounts, &[&step.meanwhile]));
    }
    let each = number(&device["reads"])? / asked;
    let mut meanwhile = step.meanwhile.clone();
    let others = device["others_bytes"].as_f64().map(|bytes| bytes / number_or(&device["read_bytes"], bytes));
    let traced = others.or_else(|| others_in_trace(&cell["trace"]));
    if let Some(share) = traced {
        meanwhile.disks.insert("the device".into(), Some(share));
    }
    Ok(Measure::new(each, format!("{each:.2}"), Basis::Counts, &[&meanwhile]))
}

fn number_or(value: &Value, other: f64) -> f64 {
    value.as_f64().filter(|n| *n > 0.0).unwrap_or(other).max(1.0)
}

/// The share of bytes that a trace saw for other programs.
fn others_in_trace(trace: &Value) -> Option<f64> {
    let (own, all) = (trace["own_bio_bytes"].as_f64()?, trace["request_bytes"].as_f64()?);
    Some((1.0 - own / all.max(1.0)).max(0.0))
}

fn pieces(odd: &LabStep, whole: &LabStep, answers: &mut Answers) -> Result<()> {
    for (id, step, bytes) in [
        (READS[0], odd, 8 << 10),
        (READS[1], odd, 16 << 10),
        (READS[2], whole, 8 << 10),
        (READS[3], whole, 16 << 10),
    ] {
        let cell = cell(step, bytes, false)?;
        let measure = device_reads(step, cell)?;
        match cell["trace"]["events_lost"].as_u64() {
            Some(lost @ 1..) => {
                answers.not_comparable(id, measure, format!("the kernel lost {lost} events of the trace"));
            }
            _ => answers.figure(id, measure),
        }
    }
    let (direct, buffered) = (cell(odd, 8 << 10, true)?, cell(odd, 8 << 10, false)?);
    let (fast, slow) = (number(&direct["iops"])?, number(&buffered["iops"])?);
    let words = format!("{:.2} times: {fast:.0} and {slow:.0}", fast / slow);
    answers.figure(READS[5], Measure::timed(fast / slow, words, &[&odd.meanwhile]));
    let buffered = Unsteady { of: "buffered reads", spread: steadiness(buffered)? };
    compare_steadiness(READS[6], &buffered, &steadiness(direct)?, &odd.meanwhile, answers);
    Ok(())
}

/// Direct reads of an array, whose drives' reads are counted.
fn split(steps: &mut Steps<'_>, device: &Emulated, answers: &mut Answers) -> Result<LabStep> {
    let before = device_activity_of(&device.name)?;
    let runtime = if steps.plan.is_quick { "4" } else { "30" };
    let args = [
        "read",
        &device.path,
        "--sizes",
        "8k",
        "--depth",
        "1",
        "--engine",
        "inline",
        "--direct",
        "on",
        "--align",
        "512",
        "--runtime",
        runtime,
    ];
    let step = steps.lab("direct reads of an array", "reads-array", "cells", &args)?;
    let after = device_activity_of(&device.name)?;
    let asked = number(&cell(&step, 8 << 10, true)?["total_ios"])?;
    let (reads, of_drives) = (after.reads - before.reads, after.member_reads - before.member_reads);
    answers.figure(READS[4], splits(&step.meanwhile, asked, reads as f64, of_drives as f64));
    Ok(step)
}

/// Reads of the drives for each of the array. Whose they were the array does not know: those that
/// were not asked for here are other programs'.
fn splits(meanwhile: &Circumstance, asked: f64, reads: f64, of_drives: f64) -> Measure {
    let mut meanwhile = meanwhile.clone();
    let others = (reads - asked).max(0.0) / reads.max(1.0);
    // A measurement looks at the device before it begins: its size, its first pages.
    let others = if reads - asked <= LOOKS { 0.0 } else { others };
    meanwhile.disks.insert("the array".into(), Some(others));
    let each = of_drives / reads.max(1.0);
    let words = format!("{each:.3}: {of_drives:.0} for {reads:.0}");
    Measure::new(each, words, Basis::Counts, &[&meanwhile])
}

/// Reads by which a device is looked at.
const LOOKS: f64 = 64.0;

/// The index scan of query 1 without read-ahead, beside random reads of the same file.
fn index_scan(step: &LabStep, seconds: &[Value], random: &[Value], answers: &mut Answers) -> Result<()> {
    let is_scan = |run: &&Value| {
        run["way"] == "index-scan"
            && run["state"] == "cold"
            && run["read_ahead_kb"] == 0
            && run["phase"].is_object()
    };
    let Some(scan) = step.lines.iter().find(is_scan) else {
        answers.none_measured(&SCAN, "the index scan was not run without read-ahead");
        return Ok(());
    };
    let phase = &scan["phase"];
    let during = read_in(phase)?;
    if during.r_s > 0.0 {
        let bytes = during.rkb_s * 1024.0 / during.r_s;
        let words = format!("{bytes:.0}, of reads of 8192");
        answers.figure(SCAN[0], Measure::new(bytes, words, Basis::Counts, &[&step.meanwhile]));
    } else {
        answers.not_measured(SCAN[0], "no device was seen to read during the scan");
    }

    let (begin, end) = (number(&phase["begin_s"])?, number(&phase["end_s"])?);
    let mut rates = Vec::new();
    for second in seconds {
        let (until, length) = (number(&second["end_s"])?, number(&second["length_s"])?);
        if until - length >= begin && until <= end {
            rates.push(read_in(second)?.rkb_s);
        }
    }
    let is_direct = |cell: &&Value| cell["direct"] == true && cell["bs"] == 8192 && cell["align"] == 8192;
    let direct = random.iter().find(is_direct).context("no direct reads of the table's file")?;
    let scan = Unsteady { of: "the scan", spread: stats::spread(&rates) };
    compare_steadiness(SCAN[1], &scan, &steadiness(direct)?, &step.meanwhile, answers);
    Ok(())
}

/// Reads of all devices together in a second or a phase.
fn read_in(of: &Value) -> Result<DeviceSecond> {
    let devices = of["devices"].as_object().context("a second without devices")?;
    let mut sum = DeviceSecond::default();
    for (name, device) in devices {
        let device: DeviceSecond = serde_json::from_value(device.clone()).with_context(|| name.clone())?;
        sum.r_s += device.r_s;
        sum.rkb_s += device.rkb_s;
    }
    Ok(sum)
}

/// Rates of intervals one after the other, by their name in a sentence.
struct Unsteady {
    of: &'static str,
    spread: Spread,
}

fn steadiness(cell: &Value) -> Result<Spread> {
    serde_json::from_value(cell["steadiness"].clone()).context("a cell without its steadiness")
}

/// How many times as much something varies as direct reads do.
fn compare_steadiness(
    id: &str,
    ours: &Unsteady,
    direct: &Spread,
    meanwhile: &Circumstance,
    answers: &mut Answers,
) {
    let Unsteady { of, spread } = ours;
    let fewest = spread.count.min(direct.count);
    if fewest < LEAST_INTERVALS {
        answers.not_measured(id, format!("{of} or direct reads took {fewest} intervals: too few to vary"));
        return;
    }
    // Of two steady series one always varies more.
    let times = spread.variation.max(STEADY) / direct.variation.max(STEADY);
    let [varies, steady] = [spread, direct].map(|of| of.variation * 100.0);
    let words = format!("{times:.1} times: {of} by {varies:.0} % of the mean, direct reads by {steady:.0} %");
    answers.figure(id, Measure::timed(times, words, &[meanwhile]));
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use snowmelt_lab::report::Report;

    use super::super::finding::{Agreement, Finding};
    use super::*;

    /// Cells with given device reads per buffered read of 8 and of 16 KiB, which had so many per
    /// second.
    fn reads_of(buffered: [f64; 2], per_s: f64) -> LabStep {
        let cell = |bytes: u64, direct: bool, each: f64, iops: f64| {
            let steadiness =
                Spread { count: 20, variation: if direct { 0.05 } else { 0.2 }, ..Spread::default() };
            json!({
                "bs": bytes, "direct": direct, "iops": iops, "total_ios": 100, "steadiness": steadiness,
                "device": {"reads": each * 100.0, "read_bytes": bytes * 100},
            })
        };
        let lines = vec![
            cell(8 << 10, true, 1.0, 4578.0),
            cell(16 << 10, true, 1.0, 4000.0),
            cell(8 << 10, false, buffered[0], per_s),
            cell(16 << 10, false, buffered[1], per_s),
        ];
        LabStep { report: Report::new("reads"), lines, meanwhile: Circumstance::default() }
    }

    /// With other programs on the disk, which the cells tell apart or not.
    fn disturbed(mut step: LabStep, others: f64, own: Option<[f64; 2]>) -> LabStep {
        let disks = json!({"disks": {"loop0": {"others_requests": others, "others_bytes": others}}});
        step.meanwhile = step.meanwhile.with_disks(&disks);
        for cell in step.lines.iter_mut().filter(|cell| cell["direct"] == false) {
            let each = own.map(|own| if cell["bs"] == 8 << 10 { own[0] } else { own[1] });
            cell["device"]["own"] = each.map_or(Value::Null, |each| json!({"reads": each * 100.0}));
        }
        step
    }

    fn verdicts(odd: &LabStep, whole: &LabStep) -> impl Fn(&str) -> Agreement + use<> {
        let mut answers = Answers::to(catalogue::E4);
        pieces(odd, whole, &mut answers).unwrap();
        let findings = answers.finish();
        move |id| findings.iter().find(|of: &&Finding| of.id == id).unwrap().verdict
    }

    #[test]
    fn reads_of_the_device_are_held_against_the_published_ones() {
        let whole = reads_of([2.0, 4.0], 2787.0);
        let of = verdicts(&reads_of([2.86, 4.83], 2787.0), &whole);
        for id in READS.iter().filter(|id| **id != "e4-direct-splits") {
            assert_eq!(of(id), Agreement::AsPublished, "{id}");
        }
        let of = verdicts(&reads_of([1.0, 4.83], 500.0), &whole);
        assert_eq!(of(READS[0]), Agreement::Otherwise, "8 KiB came whole");
        assert_eq!(of(READS[1]), Agreement::AsPublished);
        assert_eq!(of("e4-speed"), Agreement::Otherwise, "9.2 times is not 1.64 times");
    }

    #[test]
    fn counts_of_a_disk_that_others_use_are_those_of_the_program_or_none() {
        let odd = || reads_of([2.86, 4.83], 2787.0);
        let whole = reads_of([2.0, 4.0], 2787.0);
        // Others' requests come on top: the sum is another figure.
        let crowded = || reads_of([9.0, 9.0], 2787.0);
        let of = verdicts(&disturbed(crowded(), 0.6, None), &whole);
        assert_eq!([READS[0], READS[1]].map(&of), [Agreement::NotComparable; 2]);
        assert_eq!(["e4-speed", "e4-unsteady"].map(&of), [Agreement::NotComparable; 2]);
        let of = verdicts(&disturbed(crowded(), 0.6, Some([2.86, 4.83])), &whole);
        assert_eq!([READS[0], READS[1]].map(&of), [Agreement::AsPublished; 2]);
        let of = verdicts(&disturbed(odd(), 0.05, None), &whole);
        assert_eq!(of(READS[0]), Agreement::NotComparable, "counts take less than times");
        assert_eq!(of("e4-speed"), Agreement::AsPublished);
    }

    #[test]
    fn a_trace_knows_of_others_where_the_cell_does_not() {
        let mut odd = reads_of([9.0, 4.83], 2787.0);
        odd.lines[2]["trace"] = json!({"own_bio_bytes": 400, "request_bytes": 1000});
        odd.lines[3]["trace"] = json!({"own_bio_bytes": 1000, "request_bytes": 1000});
        let of = verdicts(&odd, &reads_of([2.0, 4.0], 2787.0));
        assert_eq!((of(READS[0]), of(READS[1])), (Agreement::NotComparable, Agreement::AsPublished));
    }

    #[test]
    fn splits_are_compared_where_the_array_had_no_other_reader() {
        let verdict = |asked, reads, of_drives| {
            let mut answers = Answers::to(catalogue::E4);
            answers.figure(READS[4], splits(&Circumstance::default(), asked, reads, of_drives));
            answers.finish().into_iter().find(|of| of.id == READS[4]).unwrap().verdict
        };
        assert_eq!(verdict(10_000.0, 10_000.0, 11_170.0), Agreement::AsPublished);
        assert_eq!(verdict(10_000.0, 10_004.0, 11_174.0), Agreement::AsPublished);
        assert_eq!(verdict(10_000.0, 10_000.0, 10_000.0), Agreement::Otherwise, "none was cut");
        assert_eq!(verdict(10_000.0, 20_000.0, 21_170.0), Agreement::NotComparable);
    }

    #[test]
    fn the_index_scan_is_judged_by_its_requests_and_seconds() {
        let devices =
            |rkb_s: f64, r_s: f64| json!({"vda": DeviceSecond { r_s, rkb_s, ..DeviceSecond::default() }});
        let scan = |requests: f64| {
            json!({
                "way": "index-scan", "state": "cold", "read_ahead_kb": 0,
                "phase": {"begin_s": 0.0, "end_s": 10.0, "devices": devices(4000.0, requests)},
            })
        };
        let second = |at: f64, kb: f64| json!({"end_s": at, "length_s": 1.0, "devices": devices(kb, 1.0)});
        let rates = [1000.0, 7000.0, 1000.0, 7000.0, 4000.0].repeat(2);
        let seconds: Vec<Value> = (1..).zip(rates).map(|(at, kb)| second(f64::from(at), kb)).collect();
        let steadiness = Spread { count: 20, variation: 0.1, ..Spread::default() };
        let random = json!({"direct": true, "bs": 8192, "align": 8192, "steadiness": steadiness});
        let verdicts = |requests: f64, seconds: &[Value]| {
            let step = LabStep { lines: vec![scan(requests)], ..reads_of([1.0, 1.0], 1.0) };
            let mut answers = Answers::to(catalogue::E4);
            index_scan(&step, seconds, std::slice::from_ref(&random), &mut answers).unwrap();
            let findings = answers.finish();
            SCAN.map(|id| findings.iter().find(|of| of.id == id).unwrap().verdict)
        };
        assert_eq!(verdicts(1000.0, &seconds), [Agreement::AsPublished; 2]);
        assert_eq!(verdicts(500.0, &seconds[..2]), [Agreement::Otherwise, Agreement::NotMeasured]);
        assert_eq!(verdicts(0.0, &seconds)[0], Agreement::NotMeasured, "no request has no size");
    }

    #[test]
    fn two_steady_series_are_no_disturbance() {
        let verdict = |buffered: f64, direct: f64, count: usize| {
            let of = |variation| Spread { count, variation, ..Spread::default() };
            let mut answers = Answers::to(catalogue::E4);
            let buffered = Unsteady { of: "buffered reads", spread: of(buffered) };
            compare_steadiness(READS[6], &buffered, &of(direct), &Circumstance::default(), &mut answers);
            answers.finish().into_iter().find(|of| of.id == READS[6]).unwrap().verdict
        };
        assert_eq!(verdict(0.2, 0.05, 20), Agreement::AsPublished);
        assert_eq!(verdict(0.002, 0.001, 20), Agreement::Otherwise);
        assert_eq!(verdict(0.2, 0.0, 20), Agreement::AsPublished);
        assert_eq!(verdict(0.2, 0.05, 4), Agreement::NotMeasured);
    }

    #[test]
    fn counts_of_a_trace_that_lost_events_are_no_counts() {
        let mut odd = reads_of([2.86, 4.83], 2787.0);
        odd.lines[2]["trace"] = json!({"own_bio_bytes": 100, "request_bytes": 100, "events_lost": 7});
        odd.lines[3]["trace"] = json!({"own_bio_bytes": 100, "request_bytes": 100, "events_lost": 0});
        let of = verdicts(&odd, &reads_of([2.0, 4.0], 2787.0));
        assert_eq!((of(READS[0]), of(READS[1])), (Agreement::NotComparable, Agreement::AsPublished));
    }
}
