//! E4: the requests that a device receives beneath buffered and direct reads.

use anyhow::{Context, Result};
use serde_json::Value;
use snowmelt_lab::{device_activity_of, stats};

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
/// Seconds of an index scan of which the first and the last are cut by its ends.
const LEAST_SECONDS: usize = 4;

pub fn repeat(steps: &mut Steps<'_>) -> Result<Chapter> {
    let mut answers = Answers::to(catalogue::E4);
    let mut sections = Vec::new();
    let differs = "There 1 M reads of an array of flash cards, here a few seconds of reads of an emulated SSD. The \
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
        sections.push(odd.section("Reads at multiples of 512 bytes", differs, &[""]));
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
        answers.figure(id, device_reads(step, cell(step, bytes, false)?)?);
    }
    let (direct, buffered) = (cell(odd, 8 << 10, true)?, cell(odd, 8 << 10, false)?);
    let (fast, slow) = (number(&direct["iops"])?, number(&buffered["iops"])?);
    let words = format!("{:.2} times: {fast:.0} and {slow:.0}", fast / slow);
    answers.figure(READS[5], Measure::timed(fast / slow, words, &[&odd.meanwhile]));
    let variation = |cell: &Value| number(&cell["steadiness"]["variation"]);
    let (direct, buffered) = (variation(direct)?, variation(buffered)?);
    let words = format!(
        "{:.1} times: buffered by {:.0} % of the mean, direct by {:.0} %",
        buffered / direct,
        buffered * 100.0,
        direct * 100.0
    );
    answers.figure(READS[6], Measure::timed(buffered / direct, words, &[&odd.meanwhile]));
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
    let rate = |device: &Value, key: &str| device[key].as_f64().unwrap_or(0.0);
    let devices = || phase["devices"].as_object().into_iter().flatten().map(|(_, device)| device);
    let kb: f64 = devices().map(|device| rate(device, "rkb_s")).sum();
    let requests: f64 = devices().map(|device| rate(device, "r_s")).sum();
    let bytes = kb * 1024.0 / requests.max(1e-9);
    let words = format!("{bytes:.0}, of reads of 8192");
    answers.figure(SCAN[0], Measure::new(bytes, words, Basis::Counts, &[&step.meanwhile]));

    let (begin, end) = (rate(phase, "begin_s"), rate(phase, "end_s"));
    let inside = |second: &&Value| {
        rate(second, "end_s") - rate(second, "length_s") >= begin && rate(second, "end_s") <= end
    };
    let of_second = |second: &Value| {
        second["devices"].as_object().into_iter().flatten().map(|(_, device)| rate(device, "rkb_s")).sum()
    };
    let rates: Vec<f64> = seconds.iter().filter(inside).map(of_second).collect();
    let is_direct = |cell: &&Value| cell["direct"] == true && cell["bs"] == 8192 && cell["align"] == 8192;
    let direct = random.iter().find(is_direct).and_then(|cell| cell["steadiness"]["variation"].as_f64());
    match direct.filter(|_| rates.len() >= LEAST_SECONDS) {
        Some(direct) => {
            let varies = stats::spread(&rates).variation;
            let words = format!(
                "{:.1} times: the scan by {:.0} % of its mean, direct reads by {:.0} %",
                varies / direct,
                varies * 100.0,
                direct * 100.0
            );
            answers.figure(SCAN[1], Measure::timed(varies / direct, words, &[&step.meanwhile]));
        }
        None => answers.not_measured(SCAN[1], "the scan took too few seconds"),
    }
    Ok(())
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
            let varies = if direct { 0.05 } else { 0.2 };
            json!({
                "bs": bytes, "direct": direct, "iops": iops, "total_ios": 100, "steadiness": {"variation": varies},
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
        let devices = |kb: f64, requests: f64| json!({"vda": {"rkb_s": kb, "r_s": requests}});
        let scan = |requests: f64| {
            json!({
                "way": "index-scan", "state": "cold", "read_ahead_kb": 0,
                "phase": {"begin_s": 0.0, "end_s": 5.0, "devices": devices(4000.0, requests)},
            })
        };
        let second = |at: f64, kb: f64| json!({"end_s": at, "length_s": 1.0, "devices": devices(kb, 1.0)});
        let rates = [1000.0, 7000.0, 1000.0, 7000.0, 4000.0];
        let seconds: Vec<Value> = (1..).zip(rates).map(|(at, kb)| second(f64::from(at), kb)).collect();
        let random = json!({"direct": true, "bs": 8192, "align": 8192, "steadiness": {"variation": 0.1}});
        let verdicts = |requests: f64, seconds: &[Value]| {
            let step = LabStep { lines: vec![scan(requests)], ..reads_of([1.0, 1.0], 1.0) };
            let mut answers = Answers::to(catalogue::E4);
            index_scan(&step, seconds, std::slice::from_ref(&random), &mut answers).unwrap();
            let findings = answers.finish();
            SCAN.map(|id| findings.iter().find(|of| of.id == id).unwrap().verdict)
        };
        assert_eq!(verdicts(1000.0, &seconds), [Agreement::AsPublished; 2]);
        assert_eq!(verdicts(500.0, &seconds[..2]), [Agreement::Otherwise, Agreement::NotMeasured]);
    }
}
