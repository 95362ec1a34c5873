//! E3: restart after a crash on a volume that is wide but slow.

use anyhow::{Context, Result};
use serde_json::Value;
use snowmelt_lab::report::{Bar, Bars, Figure, Section, Unit};

use super::Chapter;
use super::emulated::{self, Emulated};
use super::finding::Finding;
use super::server;
use super::steps::Steps;

/// The volume's ways of writing that were tried there.
const WAYS: &str = "mmap, write, asynchronous, unbuffered, completion ports: none beat 3 MB/s";

pub fn repeat(steps: &mut Steps<'_>) -> Result<Chapter> {
    let mut sections = Vec::new();
    let mut findings = journal(steps, &mut sections)?;
    if emulated::is_possible() {
        let done = Emulated::with(steps, ("wide-slow", "1g"), scattered)?;
        findings.extend(done.0);
        sections.push(done.1);
    } else {
        steps.skip("scattered writes", emulated::NEEDS_ROOT);
        findings.push(Finding::unmeasured(
            "How fast are scattered writes of 4 KiB?",
            WAYS,
            emulated::NEEDS_ROOT,
        ));
    }
    findings.extend(restarts(steps, &mut sections)?);
    Ok(Chapter {
        title: "E3: restart after a crash on slow storage",
        source: "Published: RavenDB on a cloud volume with more than 0.5 ms per read, wide, and below 3 MB/s for \
                 scattered writes.",
        findings,
        differs: vec![
            "The volume is the model wide-slow. The files of the journal are read as the database reads them, and \
             beside that in serial pieces of 32 KiB, as was done there before the first fix."
                .to_owned(),
        ],
        sections,
    })
}

/// Reading a journal: serial pieces, or all of it ahead.
fn journal(steps: &mut Steps<'_>, sections: &mut Vec<Section>) -> Result<Vec<Finding>> {
    let file = steps.path("journal");
    std::fs::write(&file, vec![0x5A; 64 << 20]).with_context(|| format!("cannot write {file}"))?;
    let args = [
        "lab",
        "read",
        &file,
        "--model",
        "wide-slow",
        "--sizes",
        "32k,1m",
        "--depth",
        "1,32",
        "--direct",
        "on",
        "--pattern",
        "sequential",
        "--once",
    ];
    let step = steps.lab("a journal of 64 MiB read by pieces", ("journal-read", "cells"), &args)?;
    steps.remove("journal");
    let speed = |size: u64, depth: u64| {
        let cell = step.lines.iter().find(|cell| cell["bs"] == size && cell["iodepth"] == depth);
        let cell = cell.with_context(|| format!("no cell of {size} bytes at depth {depth}"))?;
        cell["bw_bytes"].as_f64().context("a cell without its speed")
    };
    let (serial, wide, large) = (speed(32 << 10, 1)?, speed(32 << 10, 32)?, speed(1 << 20, 32)?);
    sections.push(step.section(
        "Reading a journal",
        "Sizes of pieces, and how many are asked for at once.",
        &[""],
    ));
    Ok(vec![Finding::measured(
        "What does it bring to prefetch a journal whole?",
        "the first fix: serial reads of 32 KiB waited for each other",
        format!(
            "32 KiB at a time {:.0} MB/s, 32 at once {:.0}, 32 of 1 MiB at once {:.0}",
            serial / 1e6,
            wide / 1e6,
            large / 1e6
        ),
        wide > 3.0 * serial,
    )])
}

/// Scattered writes by each way, and when they are synced.
fn scattered(steps: &mut Steps<'_>, device: &str) -> Result<(Vec<Finding>, Section)> {
    let (writes, runtime) = if steps.plan.is_quick { ("1024", "4") } else { ("256000", "120") };
    let args = [
        "lab",
        "write",
        device,
        "--destroy",
        "--size",
        "1g",
        "--writes",
        writes,
        "--runtime",
        runtime,
        "--engine",
        "inline,mmap,threads,uring,posix-aio",
        "--sync",
        "journal,end",
        "--prefetch",
        "off,on",
    ];
    let step = steps.lab("scattered writes by each way", ("writes", "rungs"), &args)?;
    let speed = |rung: &Value| rung["durable_bytes_per_s"].as_f64().unwrap_or(0.0);
    let best = step.lines.iter().map(speed).fold(0.0, f64::max);
    let of = |prefetch: bool| {
        let is_it = |rung: &&Value| {
            rung["ioengine"] == "mmap" && rung["prefetch"] == prefetch && rung["sync"] == "end"
        };
        step.lines.iter().find(is_it).map(speed)
    };
    let (plain, ahead) = (of(false).unwrap_or(0.0), of(true).unwrap_or(0.0));
    let findings = vec![
        Finding::measured(
            "How fast are scattered writes of 4 KiB?",
            WAYS,
            format!("at best {:.1} MB/s", best / 1e6),
            best < 3e6,
        ),
        Finding::measured(
            "Does it help to read the places ahead that a memory map is to be changed at?",
            "the third fix: one page fault after the other was the limit",
            format!("{:.2} MB/s until durable without, {:.2} with", plain / 1e6, ahead / 1e6),
            ahead > plain,
        ),
    ];
    let text = "Until durable. Reading ahead counts as a part of writing.";
    Ok((findings, step.section("Scattered writes", text, &[""])))
}

/// Crashes with changes in the journal, and the time to the first right answer.
fn restarts(steps: &mut Steps<'_>, sections: &mut Vec<Section>) -> Result<Vec<Finding>> {
    let changes = if steps.plan.is_quick { 500 } else { 3000 };
    let mut bars = Vec::new();
    let mut keep =
        |name: &str, seconds: f64| bars.push(Bar { name: name.into(), value: seconds, ..Bar::default() });
    let held: &[&str] = &["--checkpoint", "held"];
    let slow: &[&str] = &["--checkpoint", "held", "--device", "sim:wide-slow"];
    let plain = server::killed(steps, "snowmelt", held, changes)?;
    keep("Snowmelt, the disk as it is", plain.seconds);
    steps.remove("engines");
    let volume = server::killed(steps, "snowmelt", slow, changes)?;
    keep("Snowmelt, wide but slow, simulated", volume.seconds);
    steps.remove("engines");
    let what = "How long from the start after a crash to the first right answer?";
    let published =
        "minutes, while a data file of 45 GB was synced; then at once, when it was synced in the background";
    let here = format!(
        "{:.2} s, on the slow volume {:.2} s, with {} transactions in the journal",
        plain.seconds, volume.seconds, volume.changes
    );
    let mut findings = vec![Finding::measured(what, published, here, volume.seconds < 5.0)];
    for name in ["virtuoso"] {
        let what = "Virtuoso, the same changes?";
        let published = "23 to 49 s for 300,000 triples in the log, measured here before";
        if steps.plan.is_quick {
            findings.push(Finding::unmeasured(what, published, "--quick leaves other systems out"));
            continue;
        }
        match server::killed(steps, name, &[], changes) {
            Ok(restart) => {
                keep(name, restart.seconds);
                let here = format!("{:.1} s", restart.seconds);
                findings.push(Finding::measured(what, published, here, restart.seconds > volume.seconds));
            }
            Err(error) => {
                steps.check_stop()?;
                steps.skip(name, &error.to_string());
                findings.push(Finding::unmeasured(what, published, error.to_string()));
            }
        }
        steps.remove("engines");
    }
    let title = "From the start to the first right answer";
    let bars =
        Bars { title: title.into(), label: "time".into(), unit: Unit::Seconds, bars, ..Bars::default() };
    sections.push(Section::new("Restarts after kill -9", vec![Figure::Bars(bars)]));
    Ok(findings)
}
