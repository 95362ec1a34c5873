//! E3: restart after a crash on a volume that is wide but slow.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::Value;
use snowmelt_lab::report::{Bar, Bars, Figure, Section, Unit};

use super::Chapter;
use super::emulated::{self, Emulated};
use super::finding::answers::{Answers, Measure};
use super::finding::catalogue;
use super::server::{self, Restart, TRIPLES};
use super::steps::{LabStep, Steps};

/// The volume, as a model.
const VOLUME: &str = "e3";
/// Questions to the step of scattered writes.
const WRITES: [&str; 3] = ["e3-scattered", "e3-sync-once", "e3-targets-ahead"];
const COPY: &str = "e3-copy";

pub fn repeat(steps: &mut Steps<'_>) -> Result<Chapter> {
    let mut sections = Vec::new();
    let mut answers = Answers::to(catalogue::E3);
    journal(steps, &mut answers, &mut sections)?;
    if emulated::is_possible() {
        let writes = |steps: &mut Steps<'_>, device: &Emulated| scattered(steps, &device.path, &mut answers);
        sections.push(Emulated::with(steps, VOLUME, "1g", writes)?);
        // Of a device of its own, none of whose pages are cached.
        Emulated::with(steps, VOLUME, "1g", |steps, device| copy(steps, &device.path, &mut answers))?;
    } else {
        steps.skip("scattered writes and a plain copy", emulated::NEEDS_ROOT);
        answers.none_measured(&WRITES, emulated::NEEDS_ROOT);
        answers.not_measured(COPY, emulated::NEEDS_ROOT);
    }
    restarts(steps, &mut answers, &mut sections)?;
    Ok(Chapter {
        title: "E3: restart after a crash on slow storage",
        source: "Published: RavenDB on a cloud volume with more than 0.5 ms per read, wide, and below 3 MB/s for \
                 scattered writes.",
        findings: answers.finish(),
        differs: vec![
            "The volume is the model e3: reads of 0.7 ms, 128 at once, 700 writes per second. That it writes no more \
             is how it was made; that no way of writing gets around it is found. The scattered writes \
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
fn journal(steps: &mut Steps<'_>, answers: &mut Answers, sections: &mut Vec<Section>) -> Result<()> {
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
    let words = format!(
        "32 KiB at a time {:.0} MB/s, 32 at once {:.0}, 32 of 1 MiB at once {:.0}",
        serial / 1e6,
        wide / 1e6,
        large / 1e6
    );
    answers.figure("e3-journal-ahead", Measure::timed(wide / serial, words, &[&step.meanwhile]));
    Ok(())
}

/// Scattered writes by each way, with each time of syncing. The places are as far apart as 256,000
/// in 45 GB: of closer ones more would be neighbours, which the kernel writes by one request.
fn scattered(steps: &mut Steps<'_>, device: &str, answers: &mut Answers) -> Result<Section> {
    // 16 journals, as there of 1 GB: of one journal a sync for each would be a sync for all.
    let (writes, journal, runtime) =
        if steps.plan.is_quick { ("1024", "256k", "4") } else { ("6400", "1600k", "30") };
    let args = [
        "write",
        device,
        "--destroy",
        "--writes",
        writes,
        "--journal",
        journal,
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
    let text = "Until durable. Reading ahead counts as a part of writing.";
    ladder(&step, answers)?;
    Ok(step.section("Scattered writes", text, &[""]))
}

/// Rates of the ways of writing, until durable.
fn ladder(step: &LabStep, answers: &mut Answers) -> Result<()> {
    let speed = |rung: &Value| rung["durable_bytes_per_s"].as_f64().unwrap_or(0.0);
    let rates = step.lines.iter().map(speed).filter(|rate| *rate > 0.0);
    let most = rates.reduce(f64::max).context("no rung has a rate")? / 1e6;
    let timed = |value: f64, words: String| Measure::timed(value, words, &[&step.meanwhile]);
    answers.figure(WRITES[0], timed(most, format!("at best {most:.1} MB/s")));
    // By the way of the publication, through a map.
    let mapped_by = |ahead: bool, sync: &'static str| {
        let is_it =
            |rung: &&Value| rung["ioengine"] == "mmap" && rung["prefetch"] == ahead && rung["sync"] == sync;
        step.lines.iter().find(is_it).with_context(|| format!("no rung of mmap with sync {sync}"))
    };
    let (journal, end) = (mapped_by(false, "journal")?, mapped_by(false, "end")?);
    if journal["syncs"].as_u64() > end["syncs"].as_u64() {
        let (each, once) = (speed(journal), speed(end));
        let words = format!("{:.2} times: {:.2} MB/s against {:.2}", once / each, once / 1e6, each / 1e6);
        answers.figure(WRITES[1], timed(once / each, words));
    } else {
        answers.not_measured(WRITES[1], "all was written before the second sync was due");
    }
    let (plain, ahead) = (speed(end), speed(mapped_by(true, "end")?));
    let words = format!("{:.2} times: {:.2} MB/s against {:.2}", ahead / plain, ahead / 1e6, plain / 1e6);
    answers.figure(WRITES[2], timed(ahead / plain, words));
    Ok(())
}

/// A part of the volume copied to another, as a user would, until durable.
fn copy(steps: &mut Steps<'_>, device: &str, answers: &mut Answers) -> Result<()> {
    let mebibytes = if steps.plan.is_quick { 64 } else { 256 };
    let [from, to, count] = [format!("if={device}"), format!("of={device}"), format!("count={mebibytes}")];
    let begun = Instant::now();
    let args = [&from, &to, "bs=1M", &count, "seek=512", "conv=notrunc,fsync"];
    steps.foreign("a plain copy", "dd", &args)?;
    let rate = f64::from(mebibytes << 20) / begun.elapsed().as_secs_f64() / 1e6;
    answers.figure(COPY, Measure::timed(rate, format!("{rate:.0} MB/s"), &[&steps.last()]));
    Ok(())
}

/// Crashes with changes in the journal, and the time to the first right answer: ours on the disk
/// as it is and on a simulated volume, then all engines on the volume as a device.
fn restarts(steps: &mut Steps<'_>, answers: &mut Answers, sections: &mut Vec<Section>) -> Result<()> {
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
    let mut here = format!(
        "{:.2} s, on the volume simulated within {:.2} s, with {changes} transactions in the journal",
        plain.seconds, simulated.seconds
    );
    let others: Vec<&str> = OTHERS.iter().map(|other| other.id).collect();
    let mut ours = simulated;
    if steps.plan.is_quick {
        answers.none_measured(&others, "--quick leaves other systems out");
    } else if let Some(why) = emulated::why_no_file_system() {
        steps.skip("other systems on a slow volume", why);
        answers.none_measured(&others, why);
    } else {
        ours = emulated::with_file_system(steps, VOLUME, "8g", |steps, folder| {
            let volume = server::killed(steps, "snowmelt", folder, HELD, changes)?;
            restarts.keep("Snowmelt, on the volume", &volume);
            for other in OTHERS {
                other.restart(steps, folder, changes, answers, &mut restarts)?;
            }
            Ok(volume)
        })?;
        here += &format!(", on the volume as a device {:.2} s", ours.seconds);
    }
    answers.figure("e3-restart", Measure::timed(ours.seconds, here, &[&ours.meanwhile]));
    sections.push(restarts.section(changes));
    Ok(())
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

/// Another system.
struct Other {
    name: &'static str,
    /// its question
    id: &'static str,
    /// arguments of its start
    more: &'static [&'static str],
}

const OTHERS: [Other; 2] = [
    Other { name: "postgresql", id: "e3-restart-postgresql", more: &["-c", "checkpoint_timeout=1d"] },
    Other { name: "virtuoso", id: "e3-restart-virtuoso", more: &[] },
];

impl Other {
    /// Its restart on the volume.
    fn restart(
        &self,
        steps: &mut Steps<'_>,
        folder: &Path,
        changes: usize,
        answers: &mut Answers,
        restarts: &mut Restarts,
    ) -> Result<()> {
        match server::killed(steps, self.name, folder, self.more, changes) {
            Ok(restart) => {
                restarts.keep(&format!("{}, on the volume", self.name), &restart);
                let words = format!("{:.1} s", restart.seconds);
                answers.figure(self.id, Measure::timed(restart.seconds, words, &[&restart.meanwhile]));
            }
            Err(error) => {
                steps.check_stop()?;
                steps.skip(self.name, &error.to_string());
                answers.not_measured(self.id, error.to_string());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use snowmelt_lab::report::Report;

    use super::super::finding::circumstance::Circumstance;
    use super::super::finding::{Agreement, Finding};
    use super::*;

    /// Verdicts on rates in MB/s: by threads, and by a map with a sync per journal, with one at the
    /// end, and with its places read ahead.
    fn verdicts(rates: [f64; 4], meanwhile: &Circumstance) -> [Agreement; 3] {
        let rung = |engine: &str, prefetch: bool, sync: &str, rate: f64| {
            let (syncs, rate) = (if sync == "journal" { 16 } else { 1 }, rate * 1e6);
            json!({
                "ioengine": engine, "prefetch": prefetch, "sync": sync, "syncs": syncs, "durable_bytes_per_s": rate,
            })
        };
        let lines = vec![
            rung("threads", false, "end", rates[0]),
            rung("mmap", false, "journal", rates[1]),
            rung("mmap", false, "end", rates[2]),
            rung("mmap", true, "end", rates[3]),
        ];
        let step = LabStep { report: Report::new("writes"), lines, meanwhile: meanwhile.clone() };
        let mut answers = Answers::to(catalogue::E3);
        ladder(&step, &mut answers).unwrap();
        let findings = answers.finish();
        WRITES.map(|id| findings.iter().find(|of: &&Finding| of.id == id).unwrap().verdict)
    }

    #[test]
    fn rates_are_judged_and_only_on_a_quiet_machine() {
        use Agreement::{AsPublished, NotComparable, Otherwise};
        let quiet = Circumstance::default();
        assert_eq!(verdicts([2.8, 1.0, 1.4, 2.8], &quiet), [AsPublished; 3]);
        assert_eq!(verdicts([2.8, 1.4, 1.4, 1.4], &quiet), [AsPublished, Otherwise, Otherwise]);
        assert_eq!(verdicts([3.5, 1.0, 1.4, 2.8], &quiet)[0], Otherwise, "faster than the volume");
        let busy = Circumstance { others: 0.6, ..Circumstance::default() };
        assert_eq!(verdicts([2.8, 1.0, 1.4, 2.8], &busy), [NotComparable; 3]);
    }
}
