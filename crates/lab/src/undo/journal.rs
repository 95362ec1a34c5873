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
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

use super::change::Change;
use super::made::MadeId;
use super::outcome::Outcome;
use super::process::is_stuck;
use super::turn::is_at;
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
    /// Where that number is the process's; empty in journals of before, and where it is not known.
    #[serde(default)]
    pid_namespace: String,
}

/// A journal being written; the lock is held as long as it is open.
pub(super) struct JournalFile {
    file: File,
    path: PathBuf,
    /// Bytes of its lines.
    len: u64,
    /// A piece of a line is behind them.
    is_torn: bool,
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
        let what = what.to_string();
        let header = Header { what, command, pid, start, boot: boot_id(), pid_namespace: pid_namespace() };
        let mut journal = JournalFile { file: draft.file, path: draft.path, len: 0, is_torn: false };
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
        let text = serde_json::to_string(line).map_err(io::Error::from);
        let written = text.and_then(|text| self.append(text + "\n"));
        written.map_err(|cause| UndoError::Journal { path: self.path.clone(), cause })
    }

    fn append(&mut self, line: String) -> io::Result<()> {
        self.mend()?;
        self.is_torn = true;
        if let Err(e) = self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data()) {
            drop(self.mend()); // else before the next line
            return Err(e);
        }
        self.is_torn = false;
        self.len += line.len() as u64;
        Ok(())
    }

    /// A piece of a line, where the disk is full, would hide the lines behind it.
    fn mend(&mut self) -> io::Result<()> {
        if self.is_torn {
            self.file.set_len(self.len)?;
            self.is_torn = false;
        }
        Ok(())
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
            // Whatever the umask, only its user writes to it; what root's says is for all to see.
            let mode = if geteuid().is_root() { 0o644 } else { 0o600 };
            match OpenOptions::new().append(true).create_new(true).mode(mode).open(&path) {
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
        let Some(lock) = open(&path, OpenOptions::new().append(true)) else { continue };
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
        let Some(file) = open(&path, &mut OpenOptions::new()) else { continue };
        let free = flock(&file, FlockOperation::NonBlockingLockShared).is_ok();
        let (Ok(text), Ok(age)) = (text_of(&file), file.metadata().and_then(|m| m.modified())) else {
            continue;
        };
        // The lock alone tells: processes of others may be hidden.
        if !free || !is_at(&path, &file) {
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
    let paths = paths.map_err(failed)?;
    paths.iter().filter(|path| has_extension(path, "draft")).for_each(|draft| clear_draft(draft));
    Ok(paths.into_iter().filter(|path| is_journal(path)).collect())
}

/// Removes the draft of a command that was killed before its journal began.
fn clear_draft(path: &Path) {
    const BEGUN: Duration = Duration::from_secs(60);
    let Some(file) = open(path, &mut OpenOptions::new()) else { return };
    let age = file.metadata().and_then(|meta| meta.modified()).map(|at| at.elapsed());
    // It is locked just after it is made.
    let is_left = age.is_ok_and(|age| age.is_ok_and(|age| age > BEGUN))
        && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
    if is_left {
        drop(std::fs::remove_file(path)); // it says nothing, so it may stay
    }
}

fn is_journal(path: &Path) -> bool {
    has_extension(path, "journal")
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|e| e == extension)
}

/// A journal, if it is there still and is a file: a FIFO of that name would be waited for.
fn open(path: &Path, options: &mut OpenOptions) -> Option<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let file = options.read(true).custom_flags(flags.bits() as i32).open(path).ok()?;
    file.metadata().is_ok_and(|meta| meta.is_file()).then_some(file)
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
    let text = text_of(&open(&journal, &mut OpenOptions::new())?).ok()?;
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
        // In another namespace the number is another's, or none's: there the lock alone tells.
        Some(Line::Header(Header { pid, start, pid_namespace: of, .. })) => {
            let is_it = |there: u64| start == 0 || there == start;
            !of.is_empty() && of == pid_namespace() && !process_start(pid).is_some_and(is_it)
        }
        _ => false,
    }
}

/// The namespace of this process's number, as `pid:[4026531836]`.
fn pid_namespace() -> String {
    let link = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    link.to_string_lossy().into_owned()
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
        }
        for change in &mut leftover.steps {
            change.made = match change.made {
                Some(made) if boot != boot_id() => Some(made.of_another_boot()),
                Some(made) if change.step.makes_data() => Some(made.of_the_gone()),
                made => made,
            };
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
        header_of(pid, boot, &pid_namespace())
    }

    fn header_of(pid: u32, boot: &str, namespace: &str) -> String {
        let (boot, pid_namespace) = (boot.into(), namespace.into());
        line(&Line::Header(Header { what: "t".into(), command: vec![], pid, start: 0, boot, pid_namespace }))
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
        // Where processes of others are hidden, its owner seems to be gone.
        write("hidden.journal", header(u32::MAX, &boot_id()) + &will);
        let held = File::open(dir.path().join("hidden.journal")).expect("opened");
        flock(&held, FlockOperation::LockExclusive).expect("locked");
        let living = JournalFile::create(dir.path(), "living").expect("begun");
        let seen = seen_in(dir.path());
        assert_eq!(seen.iter().flat_map(Leftover::steps).cloned().collect::<Vec<_>>(), [step]);
        assert!(dir.path().join("over.journal").exists() && living.path().exists());
    }

    #[test]
    fn an_owner_in_another_pid_namespace_lives_while_it_holds_its_journal() {
        let dir = tempfile::tempdir().expect("a folder");
        let will = line(&Line::Will { id: 1, will: Step::RemoveFile { path: dir.path().join("a") } });
        for (name, namespace) in [("other", "pid:[1]"), ("before", "")] {
            let path = dir.path().join(name).with_extension("journal");
            std::fs::write(&path, header_of(u32::MAX, &boot_id(), namespace) + &will).expect("written");
            let held = File::open(&path).expect("opened");
            flock(&held, FlockOperation::LockExclusive).expect("locked");
            assert!(leftovers(dir.path()).expect("read").is_empty() && path.exists(), "{name}");
            drop(held);
            assert_eq!(leftovers(dir.path()).expect("read").len(), 1, "{name}: it is gone");
            std::fs::remove_file(path).expect("removed");
        }
    }

    #[test]
    fn an_owner_whose_number_another_process_has_is_dead() {
        let dir = tempfile::tempdir().expect("a folder");
        let pid = std::process::id();
        let own = process_start(pid).expect("this process runs");
        for (start, dead) in [(own, 0), (own - 1, 1), (0, 0)] {
            let header = line(&Line::Header(Header {
                what: "t".into(),
                command: vec![],
                pid,
                start,
                boot: boot_id(),
                pid_namespace: pid_namespace(),
            }));
            let will = line(&Line::Will { id: 1, will: Step::RemoveFile { path: dir.path().join("a") } });
            let path = dir.path().join("held.journal");
            std::fs::write(&path, header + &will).expect("written");
            let held = File::open(&path).expect("opened");
            flock(&held, FlockOperation::LockExclusive).expect("locked");
            assert_eq!(leftovers(dir.path()).expect("read").len(), dead, "{start} of {own}");
        }
    }

    #[test]
    fn of_a_killed_command_the_birth_of_a_file_tells_that_it_is_ours() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("file");
        std::fs::write(&path, "a user's").expect("written");
        let made = MadeId::at(&path).expect("looked at");
        let journal = |change: fn(String) -> String| {
            let text = header(u32::MAX, &boot_id())
                + &line(&Line::Will { id: 1, will: Step::RemoveFile { path: path.clone() } })
                + &change(line(&Line::Made { id: 1, made }));
            std::fs::write(dir.path().join("dead.journal"), text).expect("written");
            let mut told = Vec::new();
            let leftover = leftovers(dir.path()).expect("read").remove(0);
            leftover.restore(&mut |_, outcome| told.extend(outcome.as_ref().ok().copied())).expect("undone");
            told
        };
        // A bit of the journal has flipped: the time of birth is not there.
        assert_eq!(journal(|made| made.replace("born_ns", "born_nr")), [Outcome::Unknown]);
        assert!(path.exists());
        assert_eq!(journal(|made| made), [Outcome::Undone]);
        assert!(!path.exists());
    }

    #[test]
    fn a_line_that_had_no_room_hides_none_behind_it() {
        let dir = tempfile::tempdir().expect("a folder");
        let small = std::ffi::CString::new("size=8k").expect("text");
        let flags = rustix::mount::MountFlags::empty();
        if rustix::mount::mount("tmpfs", dir.path(), "tmpfs", flags, small.as_c_str()).is_err() {
            return println!("skipped: mounting needs root");
        }
        let (filler, state) = (dir.path().join("filler"), dir.path().join("state"));
        std::fs::write(&filler, [0]).expect("a page of two");
        let mut journal = JournalFile::create(&state, "t").expect("begun");
        let step = |n: u64| Step::RemoveFile { path: dir.path().join(n.to_string()) };
        let most = (1..1000).find(|n| journal.will(StepId(*n), &step(*n)).is_err()).expect("it gets full");
        std::fs::remove_file(filler).expect("removed");
        journal.will(StepId(1000), &step(1000)).expect("there is room again");
        let text = std::fs::read_to_string(journal.path()).expect("read");
        drop(journal);
        rustix::mount::unmount(dir.path(), rustix::mount::UnmountFlags::DETACH).expect("unmounted");
        let steps: Vec<Step> = steps_in(&text).into_iter().map(|change| change.step).collect();
        assert_eq!(steps, (1..most).chain([1000]).map(step).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_no_file_is_no_journal() {
        let dir = tempfile::tempdir().expect("a folder");
        let made = std::process::Command::new("mkfifo").arg(dir.path().join("x.journal")).status();
        if !made.is_ok_and(|status| status.success()) {
            return println!("skipped: no mkfifo here");
        }
        std::os::unix::fs::symlink("/dev/zero", dir.path().join("y.journal")).expect("linked");
        let (told, waits) = std::sync::mpsc::channel();
        let path = dir.path().to_path_buf();
        std::thread::spawn(move || {
            let counts = (leftovers(&path).map(|found| found.len()), living(&path).map(|found| found.len()));
            let _ = told.send((counts.0.ok(), counts.1.ok(), seen_in(&path).len()));
        });
        let seen = waits.recv_timeout(std::time::Duration::from_secs(60)).expect("it does not wait");
        assert_eq!(seen, (Some(0), Some(0), 0));
    }

    #[test]
    fn drafts_of_killed_commands_go() {
        let dir = tempfile::tempdir().expect("a folder");
        state_dir::make(dir.path()).expect("made");
        let drafts = [(); 3].map(|()| Draft::create(dir.path(), "t").expect("a draft"));
        flock(&drafts[0].file, FlockOperation::LockExclusive).expect("locked");
        let hour_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
        for draft in &drafts[..2] {
            draft.file.set_modified(hour_ago).expect("set");
        }
        let there = || drafts.iter().map(|draft| draft.path.exists()).collect::<Vec<_>>();
        leftovers(dir.path()).expect("read");
        assert_eq!(there(), [true, false, true], "held, left, just begun");
    }

    #[test]
    fn journals_are_written_by_their_user_alone() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().expect("a folder");
        let journal = JournalFile::create(dir.path(), "t").expect("begun");
        let mode = std::fs::metadata(journal.path()).expect("looked at").permissions().mode();
        let others = if geteuid().is_root() { 0o044 } else { 0 };
        assert_eq!(mode & 0o077, others, "{mode:o}");
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
