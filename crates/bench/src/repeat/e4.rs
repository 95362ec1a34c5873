//! E4: the requests that a device receives beneath buffered and direct reads.

use anyhow::{Context, Result};
use serde_json::Value;

use super::Chapter;
use super::emulated::{self, Emulated};
use super::finding::Finding;
use super::steps::{LabStep, Steps};

/// Sizes of reads in bytes, and device reads for each buffered one, as published.
const PUBLISHED: [(u64, &str, f64); 2] = [(8 << 10, "8 KiB", 2.86), (16 << 10, "16 KiB", 4.83)];

pub fn repeat(steps: &mut Steps<'_>) -> Result<Chapter> {
    let mut findings = Vec::new();
    let mut sections = Vec::new();
    let differs = "There 1 M reads of an array of flash cards, here a few seconds of reads of an emulated SSD. The \
                   offsets are multiples of 512 bytes, as there, and then of the size of the read.";
    let why = (!emulated::is_possible()).then_some(emulated::NEEDS_ROOT).or_else(emulated::why_no_trace);
    if let Some(why) = why {
        steps.skip("random reads of a device", why);
        for (_, name, each) in PUBLISHED {
            let what = format!("Device reads for each buffered read of {name}?");
            findings.push(Finding::unmeasured(&what, &format!("{each}"), why));
        }
    } else {
        let odd = Emulated::with(steps, "ssd", "8g", |steps, device| reads(steps, device, "512"))?;
        let whole = Emulated::with(steps, "ssd", "8g", |steps, device| reads(steps, device, "size"))?;
        findings.extend(splits(&odd, &whole)?);
        sections.push(odd.section("Reads at multiples of 512 bytes", differs, &[""]));
        sections.push(whole.section("Aligned reads", "The same at multiples of their size.", &[""]));
    }
    let query = "Query 1 of TPC-H by an index scan of l_shipdate";
    let published = "disturbed from second to second, as are buffered random reads of the device, in pieces of \
                     4 KiB, and direct ones are not: so the cause is the access, not the query";
    if steps.plan.is_quick {
        findings.push(Finding::unmeasured(query, published, "--quick leaves PostgreSQL out"));
    } else {
        let step = steps.lab("TPC-H on PostgreSQL", "tpch", "queries", &["tpch", "--scale", "1"])?;
        findings.push(index_scan(&step, query, published));
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
        findings,
        differs: vec![differs.to_owned()],
        sections,
    })
}

/// The verdict of `lab tpch` on the index scan, and on random reads beside it.
fn index_scan(step: &LabStep, what: &str, published: &str) -> Finding {
    let says: Vec<&str> = step.report.summary.iter().map(String::as_str).collect();
    let of_it: Vec<&str> =
        says.iter().copied().filter(|line| line.contains("index scan") || line.contains("in E4")).collect();
    Finding::measured(what, published, of_it.join(" "), says.iter().any(|line| line.starts_with("As in E4")))
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

fn splits(odd: &LabStep, whole: &LabStep) -> Result<Vec<Finding>> {
    let cell = |step: &LabStep, bytes: u64, direct: bool| -> Result<(f64, f64)> {
        let is_it = |cell: &&Value| cell["bs"] == bytes && cell["direct"] == direct;
        let cell = step.lines.iter().find(is_it).with_context(|| format!("no cell of {bytes} bytes"))?;
        let of = |value: &Value| value.as_f64().context("a cell without a figure");
        Ok((of(&cell["device"]["reads"])? / of(&cell["total_ios"])?, of(&cell["iops"])?))
    };
    let mut findings = Vec::new();
    for (bytes, name, published) in PUBLISHED {
        let here = cell(odd, bytes, false)?.0;
        let aligned = cell(whole, bytes, false)?.0;
        findings.push(Finding::measured(
            &format!("Device reads for each buffered read of {name}?"),
            &format!("{published}: the kernel reads pages of 4 KiB one by one"),
            format!("{here:.2}; aligned {aligned:.2}"),
            (here - published).abs() < 0.1 * published,
        ));
    }
    let direct = cell(odd, 8 << 10, true)?.0;
    findings.push(Finding::measured(
        "Device reads for each direct read of 8 KiB?",
        "1.17: a few are split where a chunk of the array ends",
        format!("{direct:.2}; here is no array"),
        direct < 1.2,
    ));
    let (fast, slow) = (cell(odd, 8 << 10, true)?.1, cell(odd, 8 << 10, false)?.1);
    findings.push(Finding::measured(
        "Reads of 8 KiB per second, direct and buffered?",
        "4578 and 2787, disturbed: 1.64 times",
        format!("{fast:.0} and {slow:.0}: {:.2} times", fast / slow),
        fast > slow,
    ));
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use snowmelt_lab::report::Report;

    use super::super::finding::Agreement;
    use super::*;

    /// Cells with given device reads per 100 buffered reads of 8 and of 16 KiB.
    fn reads_of(buffered: [f64; 2], per_s: f64) -> LabStep {
        let cell = |bytes: u64, direct: bool, each: f64, iops: f64| json!({"bs": bytes, "direct": direct, "iops": iops, "total_ios": 100, "device": {"reads": each * 100.0}});
        let lines = vec![
            cell(8 << 10, true, 1.0, 4578.0),
            cell(16 << 10, true, 1.0, 4000.0),
            cell(8 << 10, false, buffered[0], per_s),
            cell(16 << 10, false, buffered[1], per_s),
        ];
        LabStep { report: Report::new("reads"), lines }
    }

    #[test]
    fn the_index_scan_is_as_published_where_its_page_says_so() {
        let verdict = |line: &str| {
            let mut step = LabStep { report: Report::new("tpch"), lines: Vec::new() };
            step.report.summary = vec!["52 of 52 answers are right".into(), line.into()];
            let finding = index_scan(&step, "", "");
            (finding.here.contains("52 of 52"), finding.verdict)
        };
        assert_eq!(verdict("As in E4, the pieces come from access"), (false, Agreement::Same));
        assert_eq!(verdict("Unlike in E4, the pieces"), (false, Agreement::Otherwise));
        assert_eq!(verdict("The index scan read nothing"), (false, Agreement::Otherwise));
    }

    #[test]
    fn reads_of_the_device_are_held_against_the_published_ones() {
        let verdicts = |odd: LabStep| {
            let findings = splits(&odd, &reads_of([2.0, 4.0], 2787.0)).unwrap();
            findings.iter().map(|finding| finding.verdict).collect::<Vec<_>>()
        };
        assert_eq!(verdicts(reads_of([2.86, 4.83], 2787.0)), [Agreement::Same; 4]);
        let [first, second, direct, speed] = verdicts(reads_of([1.0, 4.83], 5000.0))[..] else {
            panic!("four findings")
        };
        assert_eq!((first, second), (Agreement::Otherwise, Agreement::Same), "8 KiB came whole");
        assert_eq!((direct, speed), (Agreement::Same, Agreement::Otherwise), "buffered reads were faster");
    }
}
