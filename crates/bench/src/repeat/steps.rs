//! Runs commands of this program, one after the other, and reads their figures back; with other
//! programs' use of the machine meanwhile.
//!
//! Processes of the experiment are no other programs: those that a command starts, servers that
//! this process started, and the servers of its emulated devices (`belongs`). A command knows of
//! the first only, so what it says of others in its `machine.json` is told without the rest.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use snowmelt_lab::machine::{CpuClock, Disturbance};
use snowmelt_lab::report::{Column, Figure, Report, Section, Table};
use snowmelt_lab::undo::Undo;

use super::RepeatPlan;
use super::finding::circumstance::{Circumstance, percent};

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
    /// Processes that no command starts, and that belong to the experiment.
    kin: Vec<u32>,
    /// Of the step that ended last.
    last: Circumstance,
    /// Share of the processors that processes of the experiment used in it, its command and what
    /// that started left out.
    last_beside: f64,
}

/// A command of the laboratory that made a run folder.
pub struct LabStep {
    pub report: Report,
    /// the lines of its measurements
    pub lines: Vec<Value>,
    /// other programs meanwhile
    pub meanwhile: Circumstance,
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
        Ok(Self {
            plan,
            stop,
            undo,
            tell,
            folder,
            rows: Vec::new(),
            doubts: Vec::new(),
            kin: Vec::new(),
            last: Circumstance::default(),
            last_beside: 0.0,
        })
    }

    /// A process that is no child of ours, and its children, are no other programs.
    pub fn belongs(&mut self, process: u32) {
        self.kin.push(process);
    }

    /// It has ended.
    pub fn ended(&mut self, process: u32) {
        self.kin.retain(|of| *of != process);
    }

    /// A moment from which other programs' use of the processors is counted.
    pub fn clock(&self) -> CpuClock {
        CpuClock::with(&self.kin)
    }

    /// Other programs' use of the processors since then, of a step.
    pub fn since(&self, begun: CpuClock, step: &str) -> Circumstance {
        let Disturbance { steal, others, .. } = begun.until(self.clock());
        Circumstance { step: step.to_owned(), steal, others, ..Circumstance::default() }
    }

    /// Other programs during the command that ended last.
    pub fn last(&self) -> Circumstance {
        self.last.clone()
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
        let (begun, clock, reaped) = (Instant::now(), self.clock(), CpuClock::of_children());
        let mut child = Command::new(program)
            .args(args)
            .stdin(Stdio::null())
            // Else it would hear Ctrl-C twice, by itself and from us, and end at once.
            .process_group(0)
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
        self.last = self.since(clock, title);
        self.last_beside = clock.share_of_ours(self.clock(), CpuClock::of_children() - reaped);
        self.row(title, shown, begun.elapsed(), &self.last.clone());
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

    /// Runs a command that prints JSON. It leaves no folder, so its doubts are ours.
    pub fn json(&mut self, title: &str, args: &[&str]) -> Result<Value> {
        let printed = self.run(title, args)?;
        self.doubts.extend(self.last.doubt());
        serde_json::from_str(&printed).with_context(|| format!("{title} printed no JSON"))
    }

    /// Runs a command of the laboratory in a run folder of the name; `lines` is the name of its
    /// file of measurements.
    pub fn lab(&mut self, title: &str, name: &str, lines: &str, args: &[&str]) -> Result<LabStep> {
        let out = self.path(name);
        self.run(title, &[args, &["--out", &out]].concat())?;
        let report = Report::load(Path::new(&out))?;
        let meanwhile = told(&self.last, self.last_beside, &disturbance_of(Path::new(&out))?);
        self.last = meanwhile.clone();
        let of_cells = report.doubts.iter().filter(|doubt| !is_of_machine(doubt));
        self.doubts.extend(of_cells.map(|doubt| format!("{title}: {doubt}")));
        self.doubts.extend(meanwhile.doubt());
        let lines = self.lines(name, lines)?;
        Ok(LabStep { report, lines, meanwhile })
    }

    /// A file of measurements in the run folder of the name.
    pub fn lines(&self, name: &str, lines: &str) -> Result<Vec<Value>> {
        let path = self.folder.join(name).join(lines).with_extension("jsonl");
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let lines: Result<Vec<Value>, _> = text.lines().map(serde_json::from_str).collect();
        lines.with_context(|| path.display().to_string())
    }

    /// A step that is not a command of its own, which began at this moment; other programs
    /// meanwhile.
    pub fn own(&mut self, title: &str, what: &str, begun: (Instant, CpuClock)) -> Circumstance {
        let meanwhile = self.since(begun.1, title);
        self.row(title, what, begun.0.elapsed(), &meanwhile);
        self.doubts.extend(meanwhile.doubt());
        meanwhile
    }

    /// A step that cannot be run here.
    pub fn skip(&mut self, title: &str, why: &str) {
        (self.tell)(&format!("{title}: skipped, {why}"));
        self.rows.push(vec![title.to_owned(), format!("skipped: {why}"), String::new(), String::new()]);
    }

    /// A doubt about a step of our own.
    pub fn doubt(&mut self, doubt: String) {
        self.doubts.push(doubt);
    }

    /// Reports the progress.
    pub fn say(&self, line: &str) {
        (self.tell)(line);
    }

    fn row(&mut self, title: &str, command: &str, took: Duration, meanwhile: &Circumstance) {
        let took = format!("{:.1} s", took.as_secs_f64());
        self.rows.push(vec![title.to_owned(), command.to_owned(), took, percent(meanwhile.others)]);
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
            columns: vec![
                Column::text("step"),
                Column::text("command"),
                Column::number("took"),
                Column::number("others"),
            ],
            note: "others: processors' time of programs that are no part of the experiment.".into(),
            rows: self.rows.clone(),
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

/// Findings of a command about other programs, from the folder of its run.
fn disturbance_of(run: &Path) -> Result<Value> {
    let path = run.join("machine.json");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let machine: Value = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
    Ok(machine["disturbance"].clone())
}

/// Other programs during a command: by its own clock, which ran while it measured, and by ours.
/// `beside`: the share of the processors that went to processes of the experiment that the command
/// does not know.
fn told(ours: &Circumstance, beside: f64, disturbance: &Value) -> Circumstance {
    let of = |key: &str| disturbance[key].as_f64().unwrap_or(0.0);
    Circumstance {
        step: ours.step.clone(),
        steal: ours.steal.max(of("steal")),
        others: ours.others.max(of("others") - beside),
        ..Circumstance::default()
    }
    .with_disks(disturbance)
}

/// A doubt of a run about the machine, which is told in our own words.
fn is_of_machine(doubt: &str) -> bool {
    doubt.starts_with("other programs used") || doubt.starts_with("the hypervisor took")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ours(others: f64) -> Circumstance {
        Circumstance { step: "a scan".into(), others, ..Circumstance::default() }
    }

    #[test]
    fn servers_of_the_experiment_are_no_others() {
        let says = json!({ "steal": 0.01, "others": 0.61 });
        let near = |found: f64, want: f64| assert!((found - want).abs() < 1e-9, "{found} is not {want}");
        near(told(&ours(0.01), 0.6, &says).others, 0.01);
        near(told(&ours(0.01), 0.1, &says).others, 0.51);
        near(told(&ours(0.7), 0.6, &says).others, 0.7);
        near(told(&ours(0.0), 0.0, &says).steal, 0.01);
    }

    #[test]
    fn a_disk_that_others_used_is_told() {
        let disks = json!({ "loop3": { "others_requests": 0.2, "others_bytes": 0.4 }, "vda": {} });
        let told = told(&ours(0.0), 0.0, &json!({ "disks": disks }));
        assert_eq!(told.disks, [("loop3".to_owned(), Some(0.4)), ("vda".to_owned(), None)].into());
        assert!(told.doubt().is_some_and(|doubt| doubt.contains("loop3")));
    }

    /// A folder of steps whose program is a script.
    fn with_steps<T>(script: &str, work: impl FnOnce(&mut Steps<'_>) -> T) -> T {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("program");
        fs::write(&program, format!("#!/bin/sh\n{script}")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let plan = RepeatPlan {
            experiment: super::super::Experiment::E4,
            is_quick: true,
            snowmelt: program.clone(),
            program,
            keeps: true,
        };
        let undo = Undo::open_in(&dir.path().join("journal"), "test").unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        work(&mut Steps::new(&plan, dir.path(), &stop, &undo, &|_| ()).unwrap())
    }

    /// A command that leaves the folder of a run, whose machine was disturbed so.
    fn disturbed(disturbance: &Value) -> String {
        let report = serde_json::to_string(&Report {
            doubts: vec!["other programs used 61 % of the processors".into(), "a cell: too short".into()],
            ..Report::new("reads")
        });
        let machine = json!({ "disturbance": disturbance });
        format!(
            "while [ $# -gt 1 ]; do shift; done\nmkdir \"$1\" && cd \"$1\" || exit 1\n\
             echo '{}' >report.json\necho '{machine}' >machine.json\necho '{{\"bs\": 1}}' >cells.jsonl\n",
            report.unwrap()
        )
    }

    #[test]
    fn the_disturbance_of_a_command_is_that_of_its_findings() {
        let disks = json!({ "loop0": { "others_requests": 0.3, "others_bytes": 0.1 } });
        // Shares that no machine has: whatever the tests beside this one use, these come from the
        // command's own words, and what the steps take off of them is at most 1.
        let planted = json!({ "seconds": 1.0, "steal": 2.5, "others": 7.5, "disks": disks });
        with_steps(&disturbed(&planted), |steps| {
            let step = steps.lab("reads", "reads", "cells", &["read"]).unwrap();
            let meanwhile = &step.meanwhile;
            assert!((6.5..=7.5).contains(&meanwhile.others), "{meanwhile:?}");
            assert_eq!((meanwhile.steal * 10.0).round(), 25.0, "{meanwhile:?}");
            assert_eq!(meanwhile.disks["loop0"], Some(0.3));
            assert_eq!(step.lines, [json!({ "bs": 1 })]);
            let doubts = steps.doubts();
            assert_eq!(doubts.iter().filter(|doubt| doubt.contains("processors")).count(), 1, "{doubts:?}");
            assert!(doubts.iter().any(|doubt| doubt == "reads: a cell: too short"), "{doubts:?}");
        });
    }

    #[test]
    fn a_command_hears_ctrl_c_from_us_alone() {
        let words = r#"read _ _ _ _ group _ </proc/$$/stat; echo "{\"own\": $$, \"group\": $group}""#;
        with_steps(words, |steps| {
            let told = steps.json("a command", &[]).unwrap();
            assert!(told["own"].is_u64() && told["own"] == told["group"], "{told}");
        });
    }

    #[test]
    fn commands_without_a_folder_tell_of_a_busy_machine_too() {
        with_steps("echo '{}'", |steps| {
            steps.json("a load", &["bsbm"]).unwrap();
            steps.last.others = 0.79;
            let doubt = steps.last().doubt().unwrap();
            assert!(doubt.contains("a load") && doubt.contains("79 %"), "{doubt}");
            let Figure::Table(table) = steps.table() else { panic!("a table") };
            assert_eq!(table.columns.last().unwrap().name, "others");
            assert!(table.rows[0][3].ends_with(" %"), "{:?}", table.rows);
        });
    }

    /// A process that no step started is one of the others, until it is said to belong.
    #[test]
    fn what_belongs_to_the_experiment_is_no_other() {
        with_steps("", |steps| {
            // Its parent ends, so it is no descendant of ours.
            let spin = "(while :; do :; done) >/dev/null 2>&1 & echo $!";
            let shell = Command::new("setsid").args(["sh", "-c", spin]).output().unwrap();
            let spinner: u32 = String::from_utf8_lossy(&shell.stdout).trim().parse().unwrap();
            let (apart, begun) = (steps.clock(), Instant::now());
            steps.belongs(spinner);
            let together = steps.clock();
            // On a busy machine it waits for its share.
            let shares = loop {
                std::thread::sleep(20 * LOOK_EVERY);
                let others = steps.since(together, "a server").others;
                steps.ended(spinner);
                let all = steps.since(apart, "a server").others;
                steps.belongs(spinner);
                if all > others + 0.02 || begun.elapsed() > Duration::from_secs(60) {
                    break (all, others);
                }
            };
            let pid = Pid::from_raw(spinner.cast_signed()).unwrap();
            kill_process(pid, Signal::KILL).unwrap();
            let (all, others) = shares;
            assert!(all > others + 0.02, "{all} with it, {others} without");
        });
    }
}
