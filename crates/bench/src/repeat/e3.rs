//! E3: restart after a crash on a volume that is wide but slow.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;
use snowmelt_lab::report::{Bar, Bars, Figure, Section, Unit};

use super::Chapter;
use super::emulated::{self, Emulated};
use super::finding::Finding;
use super::server::{self, Restart, TRIPLES};
use super::steps::Steps;

/// The volume, as a model.
const VOLUME: &str = "e3";
/// The volume's ways of writing that were tried there.
const WAYS: &str = "mmap, write, asynchronous, unbuffered, completion ports: none beat 3 MB/s";

pub fn repeat(steps: &mut Steps<'_>) -> Result<Chapter> {
    let mut sections = Vec::new();
    let mut findings = journal(steps, &mut sections)?;
    if emulated::is_possible() {
        let done = Emulated::with(steps, VOLUME, "1g", scattered)?;
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
            "The volume is the model e3: reads of 0.7 ms, 128 at once, 700 writes per second. The scattered writes \
             are fewer than the 256,000 in 45 GB, and as far from each other."
                .to_owned(),
            "The files of the journal are read as the database reads them, and beside that in serial pieces of \
             32 KiB, as was done there before the first fix."
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
        "read",
        &file,
        "--model",
        VOLUME,
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
    let step = steps.lab("a journal of 64 MiB read by pieces", "journal-read", "cells", &args)?;
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

/// Scattered writes by each way, with each time of syncing. The places are as far apart as 256,000
/// in 45 GB: of closer ones more would be neighbours, which the kernel writes by one request.
fn scattered(steps: &mut Steps<'_>, device: &str) -> Result<(Vec<Finding>, Section)> {
    let (writes, runtime) = if steps.plan.is_quick { ("1024", "4") } else { ("6400", "30") };
    let args = [
        "write",
        device,
        "--destroy",
        "--writes",
        writes,
        "--runtime",
        runtime,
        "--engine",
        "inline,mmap,threads,uring,vectored,posix-aio",
        "--sync",
        "journal,end",
        "--prefetch",
        "off,on",
    ];
    let step = steps.lab("scattered writes by each way", "writes", "rungs", &args)?;
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

/// Crashes with changes in the journal, and the time to the first right answer: ours on the disk
/// as it is and on a simulated volume, then all engines on the volume as a device.
fn restarts(steps: &mut Steps<'_>, sections: &mut Vec<Section>) -> Result<Vec<Finding>> {
    let changes = if steps.plan.is_quick { 500 } else { 3000 };
    let mut restarts = Restarts::default();
    let folder = std::path::PathBuf::from(steps.path("engines"));
    let slow: &[&str] = &["--checkpoint", "held", "--device", "sim:e3"];
    let plain = server::killed(steps, "snowmelt", &folder, HELD, changes)?;
    restarts.keep("Snowmelt, the disk as it is", &plain);
    steps.remove("engines");
    let simulated = server::killed(steps, "snowmelt", &folder, slow, changes)?;
    restarts.keep("Snowmelt, the volume simulated within", &simulated);
    steps.remove("engines");
    let what = "How long from the start after a crash to the first right answer?";
    let published =
        "minutes, while a data file of 45 GB was synced; then at once, when it was synced in the background";
    let mut here = format!(
        "{:.2} s, on the volume simulated within {:.2} s, with {changes} transactions in the journal",
        plain.seconds, simulated.seconds
    );
    let mut ours = simulated.seconds;
    let mut others = Vec::new();
    if steps.plan.is_quick {
        others = OTHERS.map(|other| other.left_out("--quick leaves other systems out")).into();
    } else if let Some(why) = emulated::why_no_file_system() {
        steps.skip("other systems on a slow volume", why);
        others = OTHERS.map(|other| other.left_out(why)).into();
    } else {
        ours = emulated::with_file_system(steps, VOLUME, "8g", |steps, folder| {
            let volume = server::killed(steps, "snowmelt", folder, HELD, changes)?;
            restarts.keep("Snowmelt, on the volume", &volume);
            for other in OTHERS {
                others.push(other.restart(steps, folder, changes, volume.seconds, &mut restarts)?);
            }
            Ok(volume.seconds)
        })?;
        here += &format!(", on the volume as a device {ours:.2} s");
    }
    let mut findings = vec![Finding::measured(what, published, here, ours < 5.0)];
    findings.extend(others);
    sections.push(restarts.section(changes));
    Ok(findings)
}

/// Nothing is written back before the crash: all of it is in the journal.
const HELD: &[&str] = &["--checkpoint", "held"];

/// Restarts so far, for the pictures.
#[derive(Default)]
struct Restarts {
    seconds: Vec<Bar>,
    changes: Vec<Bar>,
}

impl Restarts {
    fn keep(&mut self, name: &str, restart: &Restart) {
        let bar = |value| Bar { name: name.into(), value, ..Bar::default() };
        self.seconds.push(bar(restart.seconds));
        self.changes.push(bar(restart.changes as f64 / restart.changes_s));
    }

    fn section(self, changes: usize) -> Section {
        let seconds = Bars {
            title: "From the start to the first right answer".into(),
            label: "time".into(),
            unit: Unit::Seconds,
            bars: self.seconds,
            ..Bars::default()
        };
        let rates = Bars {
            title: format!(
                "Transactions of {TRIPLES} triples per second, one after the other, before the crash"
            ),
            label: "transactions per second".into(),
            bars: self.changes,
            ..Bars::default()
        };
        let text = format!(
            "After {changes} transactions, kill -9, and with none of its files in the page cache. Each transaction \
             is committed before the next begins; an engine that does not sync its journal at a commit is faster \
             there, and would lose the last ones with the power."
        );
        Section::new("Restarts after kill -9", vec![Figure::Bars(seconds), Figure::Bars(rates)])
            .with_text(text)
    }
}

/// Another system, and what was known of it.
struct Other {
    name: &'static str,
    what: &'static str,
    published: &'static str,
    /// arguments of its start
    more: &'static [&'static str],
}

const OTHERS: [Other; 2] = [
    Other {
        name: "postgresql",
        what: "PostgreSQL, the same changes as rows?",
        published: "not asked there; its journal is read serially, and its pages one by one",
        more: &["-c", "checkpoint_timeout=1d"],
    },
    Other {
        name: "virtuoso",
        what: "Virtuoso, the same changes?",
        published: "23 to 49 s for 300,000 triples in the log, measured here before",
        more: &[],
    },
];

impl Other {
    fn left_out(&self, why: &str) -> Finding {
        Finding::unmeasured(self.what, self.published, why)
    }

    /// Its restart on the volume; ours took `ours_s` there.
    fn restart(
        &self,
        steps: &mut Steps<'_>,
        folder: &Path,
        changes: usize,
        ours_s: f64,
        restarts: &mut Restarts,
    ) -> Result<Finding> {
        match server::killed(steps, self.name, folder, self.more, changes) {
            Ok(restart) => {
                restarts.keep(&format!("{}, on the volume", self.name), &restart);
                let here = format!("{:.1} s; Snowmelt {ours_s:.2} s", restart.seconds);
                Ok(Finding::measured(self.what, self.published, here, restart.seconds > ours_s))
            }
            Err(error) => {
                steps.check_stop()?;
                steps.skip(self.name, &error.to_string());
                Ok(self.left_out(&error.to_string()))
            }
        }
    }
}
