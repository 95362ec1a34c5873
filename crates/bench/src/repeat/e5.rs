//! E5: parallel full scans under each scheduler of the kernel.

use anyhow::{Context, Result};
use serde_json::Value;

use super::Chapter;
use super::emulated::{self, Emulated};
use super::finding::Finding;
use super::steps::{LabStep, Steps};

/// Schedulers of today for those of 2006.
const SCHEDULERS: &str = "none,mq-deadline,kyber,bfq,bfq-anticipatory";

pub fn repeat(steps: &mut Steps<'_>) -> Result<Chapter> {
    let mut findings = Vec::new();
    let mut sections = Vec::new();
    if emulated::is_possible() {
        let size = if steps.plan.is_quick { "64m" } else { "2g" };
        let (independent, coordinated) = Emulated::with(steps, ("hdd-10k", "2g"), |steps, device| {
            let range = scans(steps, device, size, "independent")?;
            Ok((range, scans(steps, device, size, "coordinated")?))
        })?;
        findings.extend(compare(&independent, &coordinated)?);
        let text = "Each worker reads a range of its own, as Oracle's did.";
        sections.push(independent.section("Workers with ranges of their own", text, &[""]));
        let text =
            "The workers take pieces of one shared scan, as PostgreSQL's do, through Snowmelt's elevator.";
        sections.push(coordinated.section("Workers that share a scan", text, &[""]));
    } else {
        steps.skip("scans under each scheduler", emulated::NEEDS_ROOT);
        let published = "three schedulers rise sharply from 1 to 2, the anticipatory one far less";
        findings.push(Finding::unmeasured("Two workers instead of one?", published, emulated::NEEDS_ROOT));
    }
    Ok(Chapter {
        title: "E5: parallel full scans under each I/O scheduler",
        source: "Published 2006: Oracle counting a table of 2 GB on one SCSI disk of 10,000 rpm, by 1 to 80 workers \
                 under four schedulers of Linux 2.6.",
        findings,
        differs: vec![
            "The schedulers of 2006 are gone: none stands for noop, mq-deadline for deadline, bfq for CFQ, bfq with \
             slice_idle and low_latency=0 for the anticipatory one; kyber is new. The disk is the model hdd-10k."
                .to_owned(),
        ],
        sections,
    })
}

fn scans(steps: &mut Steps<'_>, device: &str, size: &str, workers: &str) -> Result<LabStep> {
    let (dop, repeat) = if steps.plan.is_quick { ("1,2,8", "1") } else { ("1,2,3,4,5,6,7,8,20,40,80", "3") };
    let schedulers = if workers == "coordinated" { "none,bfq-anticipatory" } else { SCHEDULERS };
    let args = [
        "lab",
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
    steps.lab(&title, (&format!("scan-{workers}"), "cells"), &args)
}

/// The median time of a setup.
fn seconds(step: &LabStep, scheduler: &str, dop: u64) -> Result<f64> {
    let is_it = |cell: &&Value| cell["settings"]["scheduler"]["name"] == scheduler && cell["dop"] == dop;
    let mut all: Vec<f64> =
        step.lines.iter().filter(is_it).filter_map(|cell| cell["elapsed_s"].as_f64()).collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().with_context(|| format!("no scan under {scheduler} by {dop}"))
}

fn compare(independent: &LabStep, coordinated: &LabStep) -> Result<Vec<Finding>> {
    let rise = |scheduler: &str| -> Result<f64> {
        Ok(seconds(independent, scheduler, 2)? / seconds(independent, scheduler, 1)?)
    };
    let rises: Result<Vec<(&str, f64)>> = SCHEDULERS.split(',').map(|name| Ok((name, rise(name)?))).collect();
    let rises = rises?;
    let text: Vec<String> = rises.iter().map(|(name, rise)| format!("{name} {rise:.2}")).collect();
    let anticipatory = rise("bfq-anticipatory")?;
    let others = rises.iter().filter(|(name, _)| *name != "bfq-anticipatory").map(|(_, rise)| *rise);
    let (range, shared) = (seconds(independent, "none", 8)?, seconds(coordinated, "none", 8)?);
    Ok(vec![
        Finding::measured(
            "How does the time grow from one worker to two?",
            "sharply under three schedulers, far less under the anticipatory one",
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
