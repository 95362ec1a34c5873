//! The journal on disk: JSON lines, each synced before the change it speaks of.
//!
//! | line | meaning |
//! |---|---|
//! | `{"command":…,"what":…,"pid":…,"boot":…}` | the command that writes; always the first |
//! | `{"id":3,"will":{"set":{…}}}` | the change about to be made |
//! | `{"id":3,"made":{"device":…,"inode":…}}` | the file or folder that it has made |
//! | `{"id":3,"done":true}` | needs no undoing any more |
//! | `{"kept":true}` | left in place on purpose |
//!
//! It is begun under another name, and gets its own when it is locked and has its first line: so
//! a journal that can be locked is one whose owner is gone.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::change::Change;
use super::made::MadeId;
use super::outcome::Outcome;
use super::process::is_stuck;
use super::{Step, StepId, UndoError, process_start, state_dir, undo_steps};

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Line {
    Header(Header),
    Will { id: u64, will: Step },
    Made { id: u64, made: MadeId },
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
        state_dir::make(dir)?;
        let draft = Draft::create(dir, what)?;
        let draft_path = draft.path.clone();
        JournalFile::begin(dir, what, draft).inspect_err(|_| drop(std::fs::remove_file(draft_path)))
    }

    fn begin(dir: &Path, what: &str, draft: Draft) -> Result<JournalFile, UndoError> {
        let failed = |cause: io::Error| UndoError::Journal { path: draft.path.clone(), cause };
        flock(&draft.file, FlockOperation::NonBlockingLockExclusive).map_err(|e| failed(e.into()))?;
        let command = std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect();
        let pid = std::process::id();
        let start = process_start(pid).unwrap_or(0);
        let header = Header { what: what.to_string(), command, pid, start, boot: boot_id() };
        let mut journal = JournalFile { file: draft.file, path: draft.path };
        journal.write(&Line::Header(header))?;
        let failed = |cause: io::Error| UndoError::Journal { path: draft.becomes.clone(), cause };
        std::fs::rename(&journal.path, &draft.becomes).map_err(failed)?;
        // The name must be as durable as the lines.
        File::open(dir).and_then(|dir| dir.sync_all()).map_err(failed)?;
        journal.path = draft.becomes;
        Ok(journal)
    }

    fn write(&mut self, line: &Line) -> Result<(), UndoError> {
        // A path that is no text has no line.
        let written = serde_json::to_string(line).map_err(io::Error::from).and_then(|mut text| {
            text.push('\n');
            self.file.write_all(text.as_bytes()).and_then(|()| self.file.sync_data())
        });
        written.map_err(|cause| UndoError::Journal { path: self.path.clone(), cause })
    }

    pub(super) fn will(&mut self, id: StepId, step: &Step) -> Result<(), UndoError> {
        self.write(&Line::Will { id: id.0, will: step.clone() })
    }

    pub(super) fn made(&mut self, id: StepId, made: MadeId) -> Result<(), UndoError> {
        self.write(&Line::Made { id: id.0, made })
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

/// A journal that is being begun.
struct Draft {
    file: File,
    path: PathBuf,
    /// The journal's own name, which is free as long as the draft is there.
    becomes: PathBuf,
}

impl Draft {
    fn create(dir: &Path, what: &str) -> Result<Draft, UndoError> {
        let pid = std::process::id();
        for n in 0_u64.. {
            let becomes = dir.join(format!("{what}-{pid}-{n}.journal"));
            let path = dir.join(format!(".{what}-{pid}-{n}.draft"));
            match OpenOptions::new().append(true).create_new(true).open(&path) {
                // Of a process that was killed, and had the same number.
                Ok(_) if becomes.exists() => drop(std::fs::remove_file(&path)),
                Ok(file) => return Ok(Draft { file, path, becomes }),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(cause) => return Err(UndoError::Journal { path, cause }),
            }
        }
        unreachable!("some number is free")
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
    steps: Vec<Change>,
    /// Held while we look at it, so that two restores do not meet; unless a thread of a dead
    /// owner holds it, then they may, and each step is taken back by one of them.
    _lock: File,
}

impl Leftover {
    /// Steps that would be undone, in that order.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().rev().map(|change| &change.step)
    }

    /// Undoes everything and removes the journal; `told` is called for each step.
    ///
    /// # Errors
    /// Something could not be undone; it stays in the journal.
    pub fn restore(self, told: &mut dyn FnMut(&Step, &io::Result<Outcome>)) -> Result<(), UndoError> {
        // The owner is dead: what it served is given up first, so that no other step waits for
        // it.
        let (serving, mut steps): (Vec<_>, Vec<_>) =
            self.steps.into_iter().partition(|change| matches!(change.step, Step::Serve { .. }));
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
/// The folder or a journal cannot be read, or others could have put one there.
pub fn leftovers(dir: &Path) -> Result<Vec<Leftover>, UndoError> {
    let failed = |cause| UndoError::Journal { path: dir.to_path_buf(), cause };
    let mut found = Vec::new();
    for path in journals_in(dir)? {
        let Ok(lock) = OpenOptions::new().read(true).append(true).open(&path) else { continue };
        let locked = flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok();
        let text = text_of(&lock).map_err(failed)?;
        // Its owner lives and undoes by itself, or has done so since the folder was read.
        if !(locked || owner_is_dead(&text)) || !is_at(&path, &lock) {
            continue;
        }
        let age = lock.metadata().and_then(|m| m.modified()).map_err(failed)?;
        if let Some(leftover) = cleared(Leftover::parse(path, &text, lock)).map_err(failed)? {
            found.push((age, leftover));
        }
    }
    Ok(newest_first(found))
}

/// Leftovers of killed commands of root, for other users to see. They can be undone by root alone.
pub fn left_by_root() -> Vec<Leftover> {
    match rustix::process::geteuid().is_root() {
        true => Vec::new(),
        false => seen_in(Path::new(state_dir::OF_ROOT)),
    }
}

/// As [`leftovers`], for one who may only look.
fn seen_in(dir: &Path) -> Vec<Leftover> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut found = Vec::new();
    for path in entries.map(|entry| entry.path()).filter(|path| is_journal(path)) {
        let Ok(file) = File::open(&path) else { continue };
        let free = flock(&file, FlockOperation::NonBlockingLockShared).is_ok();
        let (Ok(text), Ok(age)) = (text_of(&file), file.metadata().and_then(|m| m.modified())) else {
            continue;
        };
        if !(free || owner_is_dead(&text)) || !is_at(&path, &file) {
            continue;
        }
        let leftover = Leftover::parse(path, &text, file);
        if !leftover.is_over() {
            found.push((age, leftover));
        }
    }
    newest_first(found)
}

fn newest_first<T: Ord>(mut found: Vec<(T, Leftover)>) -> Vec<Leftover> {
    found.sort_by(|(a, _), (b, _)| b.cmp(a));
    found.into_iter().map(|(_, leftover)| leftover).collect()
}

/// The journals in a folder, none where there is no folder.
fn journals_in(dir: &Path) -> Result<Vec<PathBuf>, UndoError> {
    if !state_dir::check(dir)? {
        return Ok(Vec::new());
    }
    let failed = |cause| UndoError::Journal { path: dir.to_path_buf(), cause };
    let entries = std::fs::read_dir(dir).map_err(failed)?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>();
    Ok(paths.map_err(failed)?.into_iter().filter(|path| is_journal(path)).collect())
}

fn is_journal(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "journal")
}

/// True while the name is that of the open file.
fn is_at(path: &Path, file: &File) -> bool {
    let inode = |meta: io::Result<std::fs::Metadata>| meta.map(|meta| meta.ino()).ok();
    inode(std::fs::metadata(path)).is_some_and(|there| Some(there) == inode(file.metadata()))
}

fn text_of(mut file: &File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
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
    Ok(journals_in(dir)?.into_iter().filter_map(living_of).collect())
}

fn living_of(journal: PathBuf) -> Option<Living> {
    let text = std::fs::read_to_string(journal).ok()?; // removed meanwhile
    let Line::Header(Header { what, pid, start, .. }) = serde_json::from_str(text.lines().next()?).ok()?
    else {
        return None;
    };
    let runs = process_start(pid) == Some(start);
    let steps = || steps_in(&text).into_iter().map(|change| change.step).collect();
    (runs || is_stuck(pid, start)).then(|| Living { what, pid, start, runs, steps: steps() })
}

/// The steps a journal's text leaves to be undone.
fn steps_in(text: &str) -> Vec<Change> {
    let mut steps: Vec<Change> = Vec::new();
    for line in text.lines() {
        match serde_json::from_str(line) {
            Ok(Line::Will { id, will }) => steps.push(Change::new(StepId(id), will)),
            Ok(Line::Made { id, made }) => {
                steps
                    .iter_mut()
                    .filter(|change| change.id.0 == id)
                    .for_each(|change| change.made = Some(made));
            }
            Ok(Line::Done { id, .. }) => steps.retain(|change| change.id.0 != id),
            Ok(Line::Header(_) | Line::Kept { .. }) => {}
            Err(_) => break, // torn by a power cut or kill: the change it speaks of was not begun
        }
    }
    steps
}

/// True when the process has ended, although a thread of it, which waits for what it took down
/// with it, still holds the lock.
fn owner_is_dead(text: &str) -> bool {
    match text.lines().next().and_then(|line| serde_json::from_str(line).ok()) {
        Some(Line::Header(header)) => process_start(header.pid).is_none(),
        _ => false,
    }
}

/// Without those that have nothing to undo: their journals are removed.
fn cleared(leftover: Leftover) -> io::Result<Option<Leftover>> {
    if !leftover.is_over() {
        return Ok(Some(leftover));
    }
    remove_if_there(&leftover.path).map(|()| None)
}

impl Leftover {
    fn parse(path: PathBuf, text: &str, lock: File) -> Leftover {
        let mut leftover = Leftover {
            path,
            command: Vec::new(),
            what: String::new(),
            kept: false,
            steps: steps_in(text),
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
            leftover.steps.retain(|change| change.step.survives_reboot());
            for change in &mut leftover.steps {
                change.made = change.made.map(MadeId::of_another_boot);
            }
        }
        leftover
    }

    fn is_over(&self) -> bool {
        self.steps.is_empty() && !self.kept
    }
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

    #[test]
    fn a_journal_that_is_being_begun_is_no_leftover() {
        let dir = tempfile::tempdir().expect("a folder");
        state_dir::make(dir.path()).expect("made");
        let draft = Draft::create(dir.path(), "t").expect("a draft");
        let path = draft.path.clone();
        // Neither before it is locked nor before its first line.
        assert!(leftovers(dir.path()).expect("read").is_empty() && path.exists());
        let becomes = draft.becomes.clone();
        let journal = JournalFile::begin(dir.path(), "t", draft).expect("begun");
        assert!(becomes.exists() && !path.exists() && journal.path() == becomes);
        assert!(leftovers(dir.path()).expect("read").is_empty() && becomes.exists(), "its owner lives");
    }

    #[test]
    fn a_journal_in_a_folder_of_others_is_not_obeyed() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().expect("a folder");
        let step = Step::RemoveTree { path: dir.path().join("home") };
        let text = header(u32::MAX, &boot_id()) + &line(&Line::Will { id: 1, will: step });
        std::fs::write(dir.path().join("planted.journal"), text).expect("written");
        assert_eq!(leftovers(dir.path()).expect("read").len(), 1);
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).expect("set");
        for error in [leftovers(dir.path()).map(drop), living(dir.path()).map(drop)] {
            let error = error.expect_err("refused").to_string();
            assert!(error.contains("others may write to it"), "{error}");
        }
        let error = JournalFile::create(dir.path(), "t").map(drop).expect_err("refused").to_string();
        assert!(error.contains("others may write to it"), "{error}");
    }

    #[test]
    fn others_see_what_is_left_and_leave_it() {
        let dir = tempfile::tempdir().expect("a folder");
        let step = Step::Set { path: "/sys/x".into(), old: "1".into(), new: "2".into() };
        let will = line(&Line::Will { id: 1, will: step.clone() });
        let write = |name: &str, text: String| std::fs::write(dir.path().join(name), text).expect("written");
        write("dead.journal", header(u32::MAX, &boot_id()) + &will);
        write("over.journal", header(u32::MAX, &boot_id()));
        let living = JournalFile::create(dir.path(), "living").expect("begun");
        let seen = seen_in(dir.path());
        assert_eq!(seen.iter().flat_map(Leftover::steps).cloned().collect::<Vec<_>>(), [step]);
        assert!(dir.path().join("over.journal").exists() && living.path().exists());
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
