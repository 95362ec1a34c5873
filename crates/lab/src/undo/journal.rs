//! The journal on disk: JSON lines, each synced before the change it speaks of.
//!
//! | line | meaning |
//! |---|---|
//! | `{"command":…,"what":…,"pid":…,"boot":…}` | the command that writes; always the first |
//! | `{"id":3,"will":{"set":{…}}}` | the change about to be made |
//! | `{"id":3,"done":true}` | needs no undoing any more |
//! | `{"kept":true}` | left in place on purpose |

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::outcome::Outcome;
use super::process::is_stuck;
use super::{Step, StepId, UndoError, process_start, undo_steps};

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Line {
    Header(Header),
    Will { id: u64, will: Step },
    Done { id: u64, done: bool },
    Kept { kept: bool },
}

#[derive(Debug, Serialize, Deserialize)]
struct Header {
    what: String,
    command: Vec<String>,
    pid: u32,
    /// When the process was started: numbers are used again.
    #[serde(default)]
    start: u64,
    boot: String,
}

/// A journal being written; the lock is held as long as it is open.
pub(super) struct JournalFile {
    file: File,
    path: PathBuf,
}

impl JournalFile {
    pub(super) fn create(dir: &Path, what: &str) -> Result<JournalFile, UndoError> {
        let failed = |path: &Path| {
            let path = path.to_path_buf();
            move |cause: io::Error| UndoError::Journal { path, cause }
        };
        std::fs::create_dir_all(dir).map_err(failed(dir))?;
        let pid = std::process::id();
        let (file, path) = (0..)
            .find_map(|n: u32| {
                let path = dir.join(format!("{what}-{pid}-{n}.journal"));
                match OpenOptions::new().append(true).create_new(true).open(&path) {
                    Err(e) if e.kind() == io::ErrorKind::AlreadyExists => None,
                    other => Some(other.map(|file| (file, path.clone())).map_err(failed(&path))),
                }
            })
            .expect("some number is free")?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|e| failed(&path)(e.into()))?;
        let command = std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect();
        let start = process_start(pid).unwrap_or(0);
        let header = Header { what: what.to_string(), command, pid, start, boot: boot_id() };
        let mut journal = JournalFile { file, path };
        journal.write(&Line::Header(header))?;
        // The name must be as durable as the lines.
        File::open(dir).and_then(|dir| dir.sync_all()).map_err(failed(dir))?;
        Ok(journal)
    }

    fn write(&mut self, line: &Line) -> Result<(), UndoError> {
        let mut text = serde_json::to_string(line).expect("lines are plain data");
        text.push('\n');
        let written = self.file.write_all(text.as_bytes()).and_then(|()| self.file.sync_data());
        written.map_err(|cause| UndoError::Journal { path: self.path.clone(), cause })
    }

    pub(super) fn will(&mut self, id: StepId, step: &Step) -> Result<(), UndoError> {
        self.write(&Line::Will { id: id.0, will: step.clone() })
    }

    pub(super) fn done(&mut self, id: StepId) -> Result<(), UndoError> {
        self.write(&Line::Done { id: id.0, done: true })
    }

    pub(super) fn keep(&mut self) -> Result<(), UndoError> {
        self.write(&Line::Kept { kept: true })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Everything is undone, so the journal is removed.
    pub(super) fn remove(&self) {
        drop(std::fs::remove_file(&self.path)); // one that stays has nothing left to undo
    }
}

/// Leftovers of a command that is gone.
#[derive(Debug)]
pub struct Leftover {
    /// The journal.
    pub path: PathBuf,
    /// The command, as it was typed.
    pub command: Vec<String>,
    /// Its short name (`scan`, `device-disk1`).
    pub what: String,
    /// Left in place on purpose.
    pub kept: bool,
    steps: Vec<(StepId, Step)>,
    /// Held while we look at it, so that two restores do not meet; unless a thread of a dead
    /// owner holds it, then they may, and each step is taken back by one of them.
    _lock: File,
}

impl Leftover {
    /// Steps that would be undone, in that order.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().rev().map(|(_, step)| step)
    }

    /// Undoes everything and removes the journal; `told` is called for each step.
    ///
    /// # Errors
    /// Something could not be undone; it stays in the journal.
    pub fn restore(self, told: &mut dyn FnMut(&Step, &io::Result<Outcome>)) -> Result<(), UndoError> {
        // The owner is dead: what it served is given up first, so that no other step waits for
        // it.
        let (serving, mut steps): (Vec<_>, Vec<_>) =
            self.steps.into_iter().partition(|(_, step)| matches!(step, Step::Serve { .. }));
        steps.extend(serving);
        let (left, failures) = undo_steps(steps, told);
        if !left.is_empty() {
            // The journal stays; what is gone counts as undone next time.
            return Err(UndoError::Left(failures));
        }
        remove_if_there(&self.path).map_err(|cause| UndoError::Journal { path: self.path, cause })
    }
}

/// Another restore may have removed it.
fn remove_if_there(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// The journals in `dir` whose owners are gone, oldest last, so that undoing goes back in time.
///
/// # Errors
/// The folder or a journal cannot be read.
pub fn leftovers(dir: &Path) -> Result<Vec<Leftover>, UndoError> {
    let failed = |cause| UndoError::Journal { path: dir.to_path_buf(), cause };
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(failed(e)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_none_or(|e| e != "journal") {
            continue;
        }
        let Ok(lock) = OpenOptions::new().read(true).append(true).open(&path) else { continue };
        let locked = flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok();
        let age = lock.metadata().and_then(|m| m.modified()).map_err(failed)?;
        if !locked && !owner_is_dead(&path) {
            continue; // its owner lives and undoes by itself
        }
        if let Some(leftover) = read(path, lock).map_err(failed)? {
            found.push((age, leftover));
        }
    }
    found.sort_by_key(|(age, _)| std::cmp::Reverse(*age));
    Ok(found.into_iter().map(|(_, leftover)| leftover).collect())
}

/// A command that still runs, or whose threads do.
#[derive(Debug)]
pub struct Living {
    /// Its short name.
    pub what: String,
    /// Its process.
    pub pid: u32,
    /// When that was started.
    pub start: u64,
    /// False when it was killed and only threads of it are left, which wait in the kernel.
    pub runs: bool,
    /// Steps it would undo, in order of making.
    pub steps: Vec<Step>,
}

/// The commands that hold their journals in `dir`.
///
/// # Errors
/// The folder or a journal cannot be read.
pub fn living(dir: &Path) -> Result<Vec<Living>, UndoError> {
    let failed = |cause| UndoError::Journal { path: dir.to_path_buf(), cause };
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(failed(e)),
    };
    let paths = entries.flatten().map(|entry| entry.path());
    Ok(paths.filter(|path| path.extension().is_some_and(|e| e == "journal")).filter_map(living_of).collect())
}

fn living_of(journal: PathBuf) -> Option<Living> {
    let text = std::fs::read_to_string(journal).ok()?; // removed meanwhile
    let Line::Header(Header { what, pid, start, .. }) = serde_json::from_str(text.lines().next()?).ok()?
    else {
        return None;
    };
    let runs = process_start(pid) == Some(start);
    let steps = || steps_in(&text).into_iter().map(|(_, step)| step).collect();
    (runs || is_stuck(pid, start)).then(|| Living { what, pid, start, runs, steps: steps() })
}

/// The steps a journal's text leaves to be undone.
fn steps_in(text: &str) -> Vec<(StepId, Step)> {
    let mut steps: Vec<(StepId, Step)> = Vec::new();
    for line in text.lines() {
        match serde_json::from_str(line) {
            Ok(Line::Will { id, will }) => steps.push((StepId(id), will)),
            Ok(Line::Done { id, .. }) => steps.retain(|(other, _)| other.0 != id),
            Ok(Line::Header(_) | Line::Kept { .. }) => {}
            Err(_) => break, // torn by a power cut or kill: the change it speaks of was not begun
        }
    }
    steps
}

/// True when the process has ended, although a thread of it, which waits for what it took down
/// with it, still holds the lock.
fn owner_is_dead(path: &Path) -> bool {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    match text.lines().next().and_then(|line| serde_json::from_str(line).ok()) {
        Some(Line::Header(header)) => process_start(header.pid).is_none(),
        _ => false, // it is just being begun, or another restore has removed it
    }
}

fn read(path: PathBuf, lock: File) -> io::Result<Option<Leftover>> {
    let text = match std::fs::read_to_string(&path) {
        // Another restore was quicker.
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    let mut leftover = Leftover {
        path,
        command: Vec::new(),
        what: String::new(),
        kept: false,
        steps: steps_in(&text),
        _lock: lock,
    };
    let mut boot = String::new();
    for line in text.lines() {
        match serde_json::from_str(line) {
            Ok(Line::Header(h)) => (leftover.what, leftover.command, boot) = (h.what, h.command, h.boot),
            Ok(Line::Kept { kept }) => leftover.kept = kept,
            Ok(_) => {}
            Err(_) => break,
        }
    }
    if boot != boot_id() {
        leftover.steps.retain(|(_, step)| step.survives_reboot());
    }
    if leftover.steps.is_empty() && !leftover.kept {
        remove_if_there(&leftover.path)?;
        return Ok(None);
    }
    Ok(Some(leftover))
}

fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(line: &Line) -> String {
        serde_json::to_string(line).expect("plain data") + "\n"
    }

    fn header(pid: u32, boot: &str) -> String {
        line(&Line::Header(Header { what: "t".into(), command: vec![], pid, start: 0, boot: boot.into() }))
    }

    #[test]
    fn a_torn_line_ends_the_journal_and_other_boots_leave_only_files() {
        let dir = tempfile::tempdir().expect("a folder");
        let step = |name: &str| Step::RemoveFile { path: dir.path().join(name) };
        let set = Step::Set { path: "/sys/x".into(), old: "1".into(), new: "2".into() };
        let body = line(&Line::Will { id: 1, will: step("a") })
            + &line(&Line::Will { id: 2, will: set.clone() })
            + &line(&Line::Will { id: 3, will: step("b") })
            + &line(&Line::Done { id: 1, done: true });
        let torn = &line(&Line::Will { id: 4, will: step("c") })[..20];
        std::fs::write(dir.path().join("now.journal"), header(1, &boot_id()) + &body + torn)
            .expect("written");
        let found = leftovers(dir.path()).expect("read");
        assert_eq!(found[0].steps().cloned().collect::<Vec<_>>(), [step("b"), set]);
        // Another folder: a program that another test is just starting may hold the first
        // journal's lock for a moment.
        let dir_of_old = tempfile::tempdir().expect("a folder");
        std::fs::write(dir_of_old.path().join("old.journal"), header(1, "before") + &body).expect("written");
        let found = leftovers(dir_of_old.path()).expect("read");
        assert_eq!(found[0].steps().cloned().collect::<Vec<_>>(), [step("b")]);
    }

    /// The journal of an owner that has died, while a thread of it still holds the lock:
    /// every restorer finds it, also two at once.
    #[test]
    fn of_a_dead_owner_what_it_served_is_given_up_first_and_two_may_restore() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut owner = std::process::Command::new("true").spawn().expect("true starts");
        let pid = owner.id();
        owner.wait().expect("it ends");
        let served = Step::Serve { target: dir.path().join("mount") };
        let files = ["a", "b"].map(|name| Step::RemoveFile { path: dir.path().join(name) });
        let steps = [files[0].clone(), served.clone(), files[1].clone()];
        let mut text = header(pid, &boot_id());
        for (id, will) in (1..).zip(steps) {
            text += &line(&Line::Will { id, will });
        }
        let path = dir.path().join("dead.journal");
        std::fs::write(&path, text).expect("written");
        std::fs::write(dir.path().join("b"), "").expect("written");
        let held = File::open(&path).expect("opened");
        flock(&held, FlockOperation::LockExclusive).expect("locked");

        let mut found: Vec<Leftover> = (0..2).flat_map(|_| leftovers(dir.path()).expect("read")).collect();
        assert_eq!(found.len(), 2);
        let mut told = Vec::new();
        let mut restore = |leftover: Leftover| {
            leftover
                .restore(&mut |step, outcome| told.push((step.clone(), *outcome.as_ref().expect("undone"))))
        };
        restore(found.remove(0)).expect("all is undone");
        assert!(!path.exists());
        restore(found.remove(0)).expect("there is nothing left to undo");
        let order = [served, files[1].clone(), files[0].clone()];
        let outcomes = [Outcome::Gone, Outcome::Undone].into_iter().chain(std::iter::repeat(Outcome::Gone));
        assert_eq!(told, order.iter().cycle().take(6).cloned().zip(outcomes).collect::<Vec<_>>());
    }
}
