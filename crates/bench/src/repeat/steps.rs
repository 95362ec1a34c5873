//! Runs commands of this program, one after the other, and reads their figures back.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use snowmelt_lab::report::{Column, Figure, Report, Section, Table};
use snowmelt_lab::undo::Undo;

use super::RepeatPlan;

/// Time between two checks whether a command has ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Bytes of its messages that an error quotes.
const QUOTED_BYTES: usize = 2000;

/// The commands of an experiment.
pub struct Steps<'a> {
    pub plan: &'a RepeatPlan,
    pub stop: &'a Arc<AtomicBool>,
    pub undo: &'a Undo,
    tell: &'a dyn Fn(&str),
    folder: PathBuf,
    rows: Vec<Vec<String>>,
    doubts: Vec<String>,
}

/// A command of the laboratory that made a run folder.
pub struct LabStep {
    pub report: Report,
    /// the lines of its measurements
    pub lines: Vec<Value>,
}

impl LabStep {
    /// Its figures below one heading, those whose titles contain a word.
    pub fn section(&self, title: &str, text: &str, wanted: &[&str]) -> Section {
        let figures = self.report.sections.iter().flat_map(|section| &section.figures);
        let is_wanted = |figure: &&Figure| wanted.iter().any(|word| figure.title().contains(word));
        Section::new(title, figures.filter(is_wanted).cloned().collect()).with_text(text)
    }
}

impl<'a> Steps<'a> {
    /// In a folder of the run.
    pub fn new(
        plan: &'a RepeatPlan,
        run: &Path,
        stop: &'a Arc<AtomicBool>,
        undo: &'a Undo,
        tell: &'a dyn Fn(&str),
    ) -> Result<Self> {
        let folder = std::path::absolute(run)?.join("steps");
        fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(Self { plan, stop, undo, tell, folder, rows: Vec::new(), doubts: Vec::new() })
    }

    /// Processors that engines may use: all.
    pub fn threads(&self) -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }

    /// A path in the folder of the steps.
    pub fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// Removes a file or folder of the steps that only they need.
    pub fn remove(&self, name: &str) {
        let path = self.folder.join(name);
        if !self.plan.keeps {
            // A leftover takes room and does no other harm.
            drop(fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path)));
        }
    }

    /// Runs a command of the database. Returns what it prints.
    pub fn snowmelt(&mut self, title: &str, args: &[&str]) -> Result<String> {
        self.run_other(title, &self.plan.snowmelt, "snowmelt", args)
    }

    /// Runs a command of this program. Returns what it prints.
    pub fn run(&mut self, title: &str, args: &[&str]) -> Result<String> {
        let printed = self.run_heeding(title, args, true);
        self.check_stop()?;
        printed
    }

    /// Runs a command that takes something down, interrupted or not.
    pub fn take_down(&mut self, title: &str, args: &[&str]) -> Result<()> {
        self.run_heeding(title, args, false).map(drop)
    }

    /// Runs another program. Returns what it prints.
    pub fn foreign(&mut self, title: &str, program: &str, args: &[&str]) -> Result<String> {
        self.run_other(title, Path::new(program), program, args)
    }

    fn run_other(&mut self, title: &str, program: &Path, name: &str, args: &[&str]) -> Result<String> {
        let shown = self.shown(name, args);
        let printed = self.run_program(title, program, &shown, args, true);
        self.check_stop()?;
        printed
    }

    fn run_heeding(&mut self, title: &str, args: &[&str], heeds_stop: bool) -> Result<String> {
        let (program, shown) = (self.plan.program.clone(), self.shown("snowmelt-lab", args));
        self.run_program(title, &program, &shown, args, heeds_stop)
    }

    fn run_program(
        &mut self,
        title: &str,
        program: &Path,
        shown: &str,
        args: &[&str],
        heeds_stop: bool,
    ) -> Result<String> {
        (self.tell)(&format!("{title}: {shown}"));
        let number = self.rows.len() + 1;
        let [out, err] = ["out", "err"].map(|kind| self.folder.join(format!("{number:02}.{kind}")));
        let file =
            |path: &Path| File::create(path).with_context(|| format!("cannot write {}", path.display()));
        let begun = Instant::now();
        let mut child = Command::new(program)
            .args(args)
            .stdin(Stdio::null())
            .stdout(file(&out)?)
            .stderr(file(&err)?)
            .spawn()
            .with_context(|| format!("cannot run {}", program.display()))?;
        let started = self.undo.started(child.id())?;
        let mut asked = false;
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if heeds_stop && self.stop.load(Ordering::Relaxed) && !asked {
                // It undoes what it has set, and ends.
                let _ = kill_process(Pid::from_child(&child), Signal::INT);
                asked = true;
            }
            std::thread::sleep(LOOK_EVERY);
        };
        self.undo.done(started)?;
        self.row(title, shown, format!("{:.1} s", begun.elapsed().as_secs_f64()));
        if !status.success() {
            bail!("{title} failed ({status}): {shown}\n{}", end_of(&err));
        }
        fs::read_to_string(&out).with_context(|| format!("cannot read {}", out.display()))
    }

    /// An interruption as an error.
    pub fn check_stop(&self) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) {
            bail!("interrupted");
        }
        Ok(())
    }

    /// Runs a command that prints JSON.
    pub fn json(&mut self, title: &str, args: &[&str]) -> Result<Value> {
        let printed = self.run(title, args)?;
        serde_json::from_str(&printed).with_context(|| format!("{title} printed no JSON"))
    }

    /// Runs a command of the laboratory in a run folder of the name; `lines` is the name of its
    /// file of measurements.
    pub fn lab(&mut self, title: &str, name: &str, lines: &str, args: &[&str]) -> Result<LabStep> {
        let out = self.path(name);
        self.run(title, &[args, &["--out", &out]].concat())?;
        let report = Report::load(Path::new(&out))?;
        let doubts = report.doubts.iter().map(|doubt| format!("{title}: {doubt}"));
        self.doubts.extend(doubts);
        let path = Path::new(&out).join(lines).with_extension("jsonl");
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let lines: Result<Vec<Value>, _> = text.lines().map(serde_json::from_str).collect();
        Ok(LabStep { report, lines: lines.with_context(|| path.display().to_string())? })
    }

    /// A step that is not a command of its own.
    pub fn own(&mut self, title: &str, what: &str, seconds: f64) {
        self.row(title, what, format!("{seconds:.1} s"));
    }

    /// A step that cannot be run here.
    pub fn skip(&mut self, title: &str, why: &str) {
        (self.tell)(&format!("{title}: skipped, {why}"));
        self.row(title, &format!("skipped: {why}"), String::new());
    }

    /// A doubt about a step of our own.
    pub fn doubt(&mut self, doubt: String) {
        self.doubts.push(doubt);
    }

    /// Reports the progress.
    pub fn say(&self, line: &str) {
        (self.tell)(line);
    }

    fn row(&mut self, title: &str, command: &str, took: String) {
        self.rows.push(vec![title.to_owned(), command.to_owned(), took]);
    }

    /// A command as the report shows it.
    fn shown(&self, program: &str, args: &[&str]) -> String {
        let folder = self.folder.display().to_string();
        let word = |arg: &&str| {
            let arg = arg.replace(&folder, "%RUN/steps");
            if arg.contains(' ') { format!("'{arg}'") } else { arg }
        };
        let words: Vec<String> = args.iter().map(word).collect();
        format!("{program} {}", words.join(" "))
    }

    /// All commands.
    pub fn table(&self) -> Figure {
        Figure::Table(Table {
            title: "Commands".into(),
            columns: vec![Column::text("step"), Column::text("command"), Column::number("took")],
            rows: self.rows.clone(),
            ..Table::default()
        })
    }

    /// Doubts of the laboratory about its measurements.
    pub fn doubts(&self) -> Vec<String> {
        self.doubts.clone()
    }
}

/// The end of a file of messages.
fn end_of(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let text = text.trim_end();
    text[text.ceil_char_boundary(text.len().saturating_sub(QUOTED_BYTES))..].to_owned()
}
