//! `lab repeat`: each published experiment that the laboratory grew from, repeated by commands of
//! this program, with one page that holds its findings against what was published.
//!
//! 1. `steps`: runs the commands one after the other, each in a folder of the run, and reads their
//!    figures back.
//! 2. `emulated`: a device for some of them, taken down even when they fail.
//! 3. `finding`: published findings as rows of data, our figures, and the verdict on each.
//! 4. `e1` to `e5`: the experiments. `server`: an engine that is killed and started again.
//! 5. The page: findings, then the figures of each command, then the commands themselves.

mod e1;
mod e2;
mod e3;
mod e4;
mod e5;
mod emulated;
mod finding;
mod room;
mod server;
mod steps;

use std::path::{Path, PathBuf};

use anyhow::Result;
use snowmelt_lab::Run;
use snowmelt_lab::report::{Figure, Report, Section};
use snowmelt_lab::signals::Stop;
use snowmelt_lab::undo::Undo;

use finding::Finding;
use steps::Steps;

/// The published experiments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Experiment {
    /// Warming a database from cold (Virtuoso, BSBM, 2011)
    E1,
    /// The work that BSBM Explore makes, and how it grows (Virtuoso, 2011)
    E2,
    /// Restart after a crash on wide but slow storage (RavenDB)
    E3,
    /// The device beneath PostgreSQL's index scan (TPC-H, 2012)
    E4,
    /// Parallel full scans under each I/O scheduler (Oracle, 2006)
    E5,
}

/// How an experiment is repeated.
#[derive(Clone)]
pub struct RepeatPlan {
    /// Which.
    pub experiment: Experiment,
    /// Small, in minutes, without other systems.
    pub is_quick: bool,
    /// This program.
    pub program: PathBuf,
    /// That of the database.
    pub snowmelt: PathBuf,
    /// Keep the databases and files of the steps.
    pub keeps: bool,
}

/// An experiment that was repeated.
struct Chapter {
    title: &'static str,
    /// The publication and its machine.
    source: &'static str,
    findings: Vec<Finding>,
    /// Differences between there and here that bear on the findings.
    differs: Vec<String>,
    sections: Vec<Section>,
}

/// Repeats an experiment in a run folder; the path of its page.
///
/// # Errors
/// A step failed, with the end of what it said; an interruption. What was set up is taken down.
pub fn repeat(plan: &RepeatPlan, run: Run, stop: &Stop, tell: &dyn Fn(&str)) -> Result<PathBuf> {
    let instead = "name a folder on another disk with --out";
    snowmelt_lab::room::check(run.path(), room::needed(plan.experiment, plan.is_quick), instead)?;
    let undo = Undo::open("repeat")?;
    let stop = stop.shared();
    let mut steps = Steps::new(plan, run.path(), &stop, &undo, tell)?;
    let chapter = match plan.experiment {
        Experiment::E1 => e1::repeat(&mut steps),
        Experiment::E2 => e2::repeat(&mut steps),
        Experiment::E3 => e3::repeat(&mut steps),
        Experiment::E4 => e4::repeat(&mut steps),
        Experiment::E5 => e5::repeat(&mut steps),
    };
    let commands = steps.table();
    let doubts = steps.doubts();
    drop(steps);
    undo.undo()?;
    write(chapter?, commands, doubts, run)
}

/// The findings of runs as tables of the book, in Markdown.
///
/// # Errors
/// A folder is no run of an experiment.
pub fn findings_for_book<P: AsRef<Path>>(runs: &[P]) -> Result<String> {
    finding::page::book(runs)
}

fn write(chapter: Chapter, commands: Figure, doubts: Vec<String>, mut run: Run) -> Result<PathBuf> {
    // Steps were judged one by one.
    run.untimed();
    run.show_by("findings", &["id"], &["verdict", "here"]);
    doubts.into_iter().for_each(|doubt| run.doubt(doubt));
    let mut lines = run.lines("findings")?;
    chapter.findings.iter().try_for_each(|finding| lines.write(finding))?;
    let mut report = Report::new(chapter.title);
    report.summary = finding::page::summary(&chapter.findings);
    report.summary.push(chapter.source.to_owned());
    let findings = Section::new("Published, and here", vec![finding::page::table(&chapter.findings)]);
    report.sections.push(chapter.differs.into_iter().fold(findings, Section::with_text));
    report.sections.extend(chapter.sections);
    let text = "Each can be run by itself. %RUN stands for the folder of this run.";
    report.sections.push(Section::new("The commands", vec![commands]).with_text(text));
    Ok(run.finish(report)?)
}
