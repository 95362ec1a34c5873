//! Nothing is left behind: a journal of everything a command changes or creates outside its own
//! folder.
//!
//! 1. Before a change, its [`Step`] (with the old value, where there is one) is written to the
//!    journal and synced.
//! 2. The change is made. Of a file or folder it is noted which one that is: its name may be
//!    another's when the step is undone.
//! 3. When the command ends, however it ends, the steps are undone in reverse order: on drop
//!    (return, error, panic), on Ctrl-C, SIGTERM and SIGHUP (see [`signals`]), and,
//!    after kill -9, by `snowmelt-lab restore`.
//!
//! A journal is a file of JSON lines in [`state_dir`]; its owner holds a lock on it while it
//! lives, so the holder of the lock knows that the owner is gone. A journal of an earlier boot
//! has nothing to undo but files: settings, devices and mounts went with the kernel that held
//! them. A torn last line is a change that was never made.

mod change;
mod fuse;
mod groups;
mod journal;
mod limit;
mod made;
mod mounts;
mod outcome;
mod process;
mod reset;
mod setting;
pub mod signals;
mod socket;
mod state_dir;
mod step;
mod turn;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use rustix::fs::{FlockOperation, flock};
use snowmelt_io::LoopOptions;

pub use fuse::abort;
pub use groups::{enter_group, has_word, processes_in};
pub use journal::{Leftover, Living, left_by_root, leftovers, living};
pub use limit::IoLimit;
pub use mounts::mounts_of;
pub use outcome::Outcome;
pub use process::{process_start, processes_below};
pub use socket::is_listened_to;
#[cfg(test)]
pub(crate) use socket::left_at;
pub use state_dir::{check as is_trusted, state_dir, state_dirs};
pub use step::{Step, UNMOUNT_PATIENCE, set_queue_depth};
pub use turn::{locked, turn};

use crate::undo::change::Change;
use crate::undo::journal::JournalFile;
use crate::undo::made::{MadeId, real_place};
use crate::undo::reset::{NR_REQUESTS, is_reset_by, reset_by};
use crate::undo::step::{restore_value, selected};

/// Why a change could not be made or undone.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    /// The journal itself cannot be written: nothing is changed without it.
    #[error("{path}: the journal of changes cannot be written ({cause}); nothing was changed")]
    Journal {
        /// The journal.
        path: PathBuf,
        /// As the system says.
        cause: io::Error,
    },
    /// Others could have put a journal there.
    #[error(
        "{path}: {why}, so journals in it are neither written nor obeyed; {remedy}, or name another place by \
         XDG_RUNTIME_DIR or TMPDIR"
    )]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The reason.
        why: String,
        /// The way to make it good.
        remedy: &'static str,
    },
    /// A setting refused its new value.
    #[error("{path}: cannot be set to {value:?} ({cause}){hint}")]
    Refused {
        /// The control file.
        path: PathBuf,
        /// The value to be written.
        value: String,
        /// As the system says.
        cause: io::Error,
        /// The remedy.
        hint: &'static str,
    },
    /// A setting took the value, and shows another.
    #[error("{path}: was set to {value:?} but reads {got:?}")]
    NotTaken {
        /// The control file.
        path: PathBuf,
        /// The value that was written.
        value: String,
        /// The value it reads now.
        got: String,
    },
    /// Something could not be made; nothing of it is left.
    #[error("cannot {doing} ({cause}){hint}")]
    NotMade {
        /// The change that was to be made.
        doing: String,
        /// As the system says.
        cause: io::Error,
        /// The remedy.
        hint: &'static str,
    },
    /// Some steps could not be undone.
    #[error("{} could not be undone: {}; `snowmelt-lab restore` tries again", .0.len(), .0.join("; "))]
    Left(Vec<String>),
}

/// One step in a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StepId(pub(crate) u64);

/// The changes of one command; a handle that can be cloned. When the last clone is dropped,
/// everything is undone.
#[derive(Clone)]
pub struct Undo(Arc<Owner>);

/// Given while nothing is undone: see [`Undo::standing`].
pub struct Untouched(());

/// Shared by the handles; when the last of them goes, everything is undone.
struct Owner(Arc<Inner>);

/// Shared with the signals' thread as well.
pub(crate) struct Inner {
    state: Mutex<UndoState>,
    path: PathBuf,
}

struct UndoState {
    journal: JournalFile,
    /// Locks of the disks and groups that are held; shared with commands within this one.
    held: Vec<(PathBuf, Arc<File>)>,
    /// Not undone yet, in order of making.
    open: Vec<Change>,
    next: u64,
    kept: bool,
    /// A signal ended the command. A thread that still wants to change something waits for its
    /// end.
    ended: bool,
}

impl UndoState {
    fn will(&mut self, step: Step) -> Result<StepId, UndoError> {
        let id = StepId(self.next);
        let step = step.at_real_places();
        self.journal.will(id, &step)?;
        self.next += 1;
        self.open.push(Change::new(id, step));
        Ok(id)
    }

    /// Notes which file or folder a step has made.
    fn note(&mut self, id: StepId, made: MadeId) -> Result<(), UndoError> {
        let Some(change) = self.open.iter_mut().find(|change| change.id == id) else { return Ok(()) };
        change.made = Some(made);
        self.journal.made(id, made)
    }

    fn done(&mut self, id: StepId) -> Result<(), UndoError> {
        self.journal.done(id)?;
        self.open.retain(|change| change.id != id);
        Ok(())
    }

    /// True when the value of a setting from before is in the journal.
    fn knows(&self, setting: &Path) -> bool {
        let is_it = |change: &Change| matches!(&change.step, Step::Set { path, .. } if path == setting);
        self.open.iter().any(is_it)
    }

    /// Journals the settings that begin anew when this one is set; undone after it.
    fn keep_reset_by(&mut self, setting: &Path) -> Result<(), UndoError> {
        for path in reset_by(setting) {
            let of_depth = |change: &Change| matches!(&change.step, Step::QueueDepth { queue, .. } if path == queue.join(NR_REQUESTS));
            // Where the depth is lowered, that step sets the number back.
            if self.knows(&path) || self.open.iter().any(of_depth) {
                continue;
            }
            let Ok(text) = std::fs::read_to_string(&path) else { continue };
            let old = selected(&text);
            self.will(Step::Set { path, new: old.clone(), old })?;
        }
        Ok(())
    }

    fn undo(&mut self) -> Result<(), UndoError> {
        if self.kept {
            return Ok(());
        }
        let steps = std::mem::take(&mut self.open);
        let (left, failures) = undo_steps(steps, &mut |_, _| {});
        if left.is_empty() {
            self.held.clear();
            self.journal.remove();
            return Ok(());
        }
        self.open = left;
        Err(UndoError::Left(failures))
    }
}

impl Undo {
    /// A new journal for the command `what` (`scan`, `device-disk1`, …).
    ///
    /// # Errors
    /// The journal cannot be made.
    pub fn open(what: &str) -> Result<Undo, UndoError> {
        Undo::open_in(&state_dir(), what)
    }

    /// As [`Undo::open`], with the journal in `dir`.
    ///
    /// # Errors
    /// The journal cannot be made.
    pub fn open_in(dir: &Path, what: &str) -> Result<Undo, UndoError> {
        Undo::holding(dir, what, Vec::new())
    }

    /// A journal of a command that runs within another one, on disks that that one holds.
    ///
    /// # Errors
    /// The journal cannot be made.
    pub fn open_within(outer: &Undo, what: &str) -> Result<Undo, UndoError> {
        let held = outer.0.0.locked().held.clone();
        let dir = outer.path().parent().unwrap_or(Path::new(".")).to_path_buf();
        Undo::holding(&dir, what, held)
    }

    fn holding(dir: &Path, what: &str, held: Vec<(PathBuf, Arc<File>)>) -> Result<Undo, UndoError> {
        let inner = signals::undo_on_signal(|| {
            let journal = JournalFile::create(dir, what)?;
            let path = journal.path().to_path_buf();
            let state = UndoState { journal, held, open: Vec::new(), next: 1, kept: false, ended: false };
            Ok::<_, UndoError>(Arc::new(Inner { state: Mutex::new(state), path }))
        })?;
        Ok(Undo(Arc::new(Owner(inner))))
    }

    /// Writes `step` to the journal, synced, before the thing is done. Prefer [`Undo::make`],
    /// which a signal cannot come between.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn will(&self, step: Step) -> Result<StepId, UndoError> {
        self.0.0.locked().will(step)
    }

    /// Journals `step`, then makes the change, and notes the file or folder that it made. When
    /// making fails there is nothing to undo.
    ///
    /// # Errors
    /// The journal cannot be written, or the change fails.
    pub fn make<T>(
        &self,
        step: Step,
        change: impl FnOnce() -> io::Result<T>,
    ) -> Result<(StepId, T), UndoError> {
        let mut state = self.0.0.locked();
        let doing = step.doing();
        let id = state.will(step)?;
        match change() {
            Ok(made) => {
                let step = state.open.iter().find(|change| change.id == id);
                let there = step.and_then(|change| MadeId::at(change.step.makes()?).ok());
                there.map_or(Ok(()), |there| state.note(id, there))?;
                Ok((id, made))
            }
            Err(cause) => {
                state.done(id)?;
                let hint = refusal_hint(&cause);
                Err(UndoError::NotMade { doing, cause, hint })
            }
        }
    }

    /// Uses what was made while no signal takes it down: not every kernel bears both at once. `act`
    /// may not change anything by this journal.
    pub fn standing<T>(&self, act: impl FnOnce(&Untouched) -> T) -> T {
        let _state = self.0.0.locked();
        act(&Untouched(()))
    }

    /// Gives a file that was made another name, by which it is removed in the end.
    ///
    /// # Errors
    /// It cannot be renamed, or the journal cannot be written.
    pub fn rename(&self, from: &Path, to: &Path) -> Result<StepId, UndoError> {
        let mut state = self.0.0.locked();
        let doing = format!("rename {} to {}", from.display(), to.display());
        let failed = |cause| UndoError::NotMade { doing, cause, hint: "" };
        let made = match MadeId::at(from) {
            Ok(made) => made,
            Err(cause) => return Err(failed(cause)),
        };
        // Noted before: it has something in it already.
        let id = state.will(Step::RemoveFile { path: to.to_path_buf() })?;
        state.note(id, made)?;
        if let Err(cause) = std::fs::rename(from, to) {
            state.done(id)?;
            return Err(failed(cause));
        }
        Ok(id)
    }

    /// The step needs no undoing any more: its thing was never made, or was taken down in the
    /// ordinary way.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn done(&self, id: StepId) -> Result<(), UndoError> {
        self.0.0.locked().done(id)
    }

    /// Undoes one step now.
    ///
    /// # Errors
    /// The step could not be undone.
    pub fn undo_one(&self, id: StepId) -> Result<(), UndoError> {
        let mut state = self.0.0.locked();
        let Some(change) = state.open.iter().find(|change| change.id == id) else { return Ok(()) };
        change.undo().map_err(|e| UndoError::Left(vec![format!("{} ({e})", change.step)]))?;
        state.done(id)
    }

    /// Sets a control file (sysfs, cgroup, tracefs), journals its old value and those of settings
    /// that the kernel resets with it, and checks that it reads back.
    ///
    /// # Errors
    /// The value is refused, reads back otherwise, or cannot be journalled.
    pub fn set(&self, path: &Path, value: &str) -> Result<(), UndoError> {
        let path = &real_place(path);
        let refused = |cause: io::Error| {
            let hint = refusal_hint(&cause);
            UndoError::Refused { path: path.to_path_buf(), value: value.to_string(), cause, hint }
        };
        let mut state = self.0.0.locked();
        let old = selected(&std::fs::read_to_string(path).map_err(refused)?);
        if old == value {
            return Ok(());
        }
        // The first of each path has the value of before.
        if !state.knows(path) {
            state.keep_reset_by(path)?;
            state.will(Step::Set { path: path.to_path_buf(), old, new: value.to_string() })?;
        }
        std::fs::write(path, value).map_err(refused)?;
        let got = selected(&std::fs::read_to_string(path).map_err(refused)?);
        if got != value {
            return Err(UndoError::NotTaken { path: path.to_path_buf(), value: value.to_string(), got });
        }
        Ok(())
    }

    /// Sets the settings that the kernel reset when `scheduler` was set back to their values from
    /// before; they stay in the journal.
    ///
    /// # Errors
    /// A value is refused, or reads back otherwise.
    pub fn set_back_reset_by(&self, scheduler: &Path) -> Result<(), UndoError> {
        let scheduler = &real_place(scheduler);
        let state = self.0.0.locked();
        for change in state.open.iter().rev() {
            let Step::Set { path, old, .. } = &change.step else { continue };
            if !is_reset_by(path, scheduler) {
                continue;
            }
            let (path, value) = (path.clone(), old.clone());
            if let Err(cause) = restore_value(&path, old) {
                let hint = refusal_hint(&cause);
                return Err(UndoError::Refused { path, value, cause, hint });
            }
            // That of another scheduler is not there.
            let now = std::fs::read_to_string(&path).ok().map(|text| selected(&text));
            if let Some(got) = now.filter(|now| now != old) {
                return Err(UndoError::NotTaken { path, value, got });
            }
        }
        Ok(())
    }

    /// Caps the I/O of a control group on the device `MAJOR:MINOR`, journals the old cap, and
    /// checks that it reads back.
    ///
    /// # Errors
    /// The cap is refused, reads back otherwise, or cannot be journalled.
    pub fn cap(&self, group: &Path, device: &str, limit: IoLimit, value: u64) -> Result<(), UndoError> {
        let path = limit.file(group);
        let shown = format!("{device} {}={value}", limit.key());
        let refused = |cause: io::Error| {
            let hint = cap_hint(&cause);
            UndoError::Refused { path: path.clone(), value: shown.clone(), cause, hint }
        };
        let mut state = self.0.0.locked();
        let old = limit.read(group, device).map_err(refused)?;
        let step = Step::IoCap { group: group.into(), device: device.into(), limit, old, new: value };
        state.will(step)?;
        limit.write(group, device, Some(value)).map_err(refused)?;
        let got = limit.read(group, device).map_err(refused)?;
        if got != Some(value) {
            let got = got.map_or("max".into(), |got| got.to_string());
            return Err(UndoError::NotTaken { path, value: shown, got });
        }
        Ok(())
    }

    /// Enables a controller for the control groups below `folder` (v2), if it is not.
    ///
    /// # Errors
    /// It cannot be enabled or journalled.
    pub fn enable_controller(&self, folder: &Path, name: &str) -> Result<(), UndoError> {
        let control = folder.join("cgroup.subtree_control");
        if std::fs::read_to_string(&control).is_ok_and(|text| has_word(&text, name)) {
            return Ok(());
        }
        let step = Step::Controller { folder: folder.into(), name: name.into() };
        self.make(step, || std::fs::write(&control, format!("+{name}"))).map(drop)
    }

    /// Moves a process that runs already to another control group; false when it has ended.
    ///
    /// # Errors
    /// The group does not take it, or it cannot be journalled.
    pub fn move_process(&self, pid: u32, from: &Path, to: &Path) -> Result<bool, UndoError> {
        let Some(start) = process_start(pid) else { return Ok(false) };
        let step = Step::MoveProcess { pid, start, from: from.into(), to: to.into() };
        let (id, moved) = self.make(step, || enter_group(to, pid))?;
        if !moved {
            self.done(id)?;
        }
        Ok(moved)
    }

    /// Holds a disk, `/sys/block/NAME`, or the folder of a control group, until everything is
    /// undone; false while another command holds it.
    ///
    /// # Errors
    /// It is not there, or the journal cannot be written.
    pub fn hold(&self, disk: &Path) -> Result<bool, UndoError> {
        let mut state = self.0.0.locked();
        if state.held.iter().any(|(held, _)| held == disk) {
            return Ok(true);
        }
        let step = Step::Hold { disk: disk.to_path_buf() };
        let failed = |cause| UndoError::NotMade { doing: step.doing(), cause, hint: "" };
        let lock = File::open(disk).map_err(failed)?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(false),
            other => other.map_err(|e| failed(e.into()))?,
        }
        state.will(step)?;
        state.held.push((disk.to_path_buf(), Arc::new(lock)));
        Ok(true)
    }

    /// Makes a directory (cgroup, trace instance, mount point).
    ///
    /// # Errors
    /// The folder cannot be made or journalled.
    pub fn make_dir(&self, path: &Path) -> Result<StepId, UndoError> {
        let step = Step::RemoveDir { path: path.to_path_buf() };
        self.make(step, || std::fs::create_dir(path)).map(|(id, ())| id)
    }

    /// Makes a new folder that is removed with everything in it, of a name that no other has:
    /// `PREFIX-PID-N` in `parent`.
    ///
    /// # Errors
    /// The folder cannot be made or journalled.
    pub fn make_tree(&self, parent: &Path, prefix: &str) -> Result<(StepId, PathBuf), UndoError> {
        for n in 0.. {
            let path = parent.join(format!("{prefix}-{}-{n}", std::process::id()));
            if path.exists() {
                continue;
            }
            let step = Step::RemoveTree { path: path.clone() };
            return self.make(step, || std::fs::create_dir(&path)).map(|(id, ())| (id, path));
        }
        unreachable!("a number is free")
    }

    /// Attaches `backing` to a free loop device and returns its path.
    ///
    /// # Errors
    /// There is no loop device, or attaching fails.
    pub fn attach_loop(&self, backing: &Path, options: &LoopOptions) -> Result<(StepId, PathBuf), UndoError> {
        // As the kernel shows it, by which the device is known to be ours.
        let backing = &std::fs::canonicalize(backing).map_err(|cause| UndoError::NotMade {
            doing: format!("attach a loop device to {}", backing.display()),
            hint: "",
            cause,
        })?;
        let mut attempts = 0;
        loop {
            attempts += 1;
            let free = snowmelt_io::loop_free().map_err(|cause| {
                let hint = refusal_hint(&cause);
                UndoError::NotMade { doing: "find a free loop device".into(), cause, hint }
            })?;
            let kept = self.keep_read_ahead(&free)?;
            let step = Step::LoopDetach { device: free.clone(), backing: backing.to_path_buf() };
            let attached = self.make(step, || snowmelt_io::loop_attach(&free, backing, options));
            if attached.is_err() {
                kept.map_or(Ok(()), |kept| self.done(kept))?;
            }
            match attached {
                Ok((id, ())) => return Ok((id, free)),
                // Another process was faster.
                Err(UndoError::NotMade { cause, .. })
                    if cause.kind() == io::ErrorKind::ResourceBusy && attempts < 100 => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Journals the read-ahead of a loop device while nothing is attached: the kernel computes
    /// it anew whenever another setting changes and when it is freed. Undone after that.
    fn keep_read_ahead(&self, device: &Path) -> Result<Option<StepId>, UndoError> {
        let name = device.file_name().unwrap_or_default();
        let path = Path::new("/sys/block").join(name).join("queue/read_ahead_kb");
        let Ok(now) = std::fs::read_to_string(&path) else { return Ok(None) };
        let old = now.trim().to_string();
        self.will(Step::Set { path, new: old.clone(), old }).map(Some)
    }

    /// Journals a process that was just started, to be stopped with the command.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn started(&self, pid: u32) -> Result<StepId, UndoError> {
        self.will(Step::Stop { pid, start: process_start(pid).unwrap_or(0) })
    }

    /// Undoes everything now, in reverse order. Steps that fail stay in the journal.
    ///
    /// # Errors
    /// Steps failed; they stay in the journal.
    pub fn undo(&self) -> Result<(), UndoError> {
        self.0.0.locked().undo()
    }

    /// Leaves everything as it is, with its journal: [`leftovers`] shows it as kept.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn keep(&self) -> Result<(), UndoError> {
        let mut state = self.0.0.locked();
        state.journal.keep()?;
        state.kept = true;
        Ok(())
    }

    /// The journal.
    pub fn path(&self) -> &Path {
        &self.0.0.path
    }
}

impl Inner {
    /// The state; not for a thread that would go on changing things after a signal undid them.
    fn locked(&self) -> MutexGuard<'_, UndoState> {
        loop {
            let state = self.state.lock();
            if !state.ended {
                return state;
            }
            drop(state);
            std::thread::sleep(std::time::Duration::from_millis(100)); // the process is ending
        }
    }

    /// Undoes everything; later changes are refused.
    pub(crate) fn end(&self) -> Result<(), UndoError> {
        let mut state = self.state.lock();
        state.ended = true;
        state.undo()
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // A command that fails because a signal takes things down waits here: its end would
        // leave the rest.
        let undone = self.0.locked().undo();
        if let Err(e) = undone {
            crate::tell!("warning: {e}");
        }
        signals::forget(&self.0);
    }
}

/// Undoes `steps` in reverse order; `told` is called for each. Returns those that failed, in order
/// of making, and why.
fn undo_steps(
    mut steps: Vec<Change>,
    told: &mut dyn FnMut(&Step, &io::Result<Outcome>),
) -> (Vec<Change>, Vec<String>) {
    let mut left: Vec<Change> = Vec::new();
    let mut failures = Vec::new();
    // Caps first: a process that waits below one cannot be ended.
    steps.sort_by_key(|change| matches!(change.step, Step::IoCap { .. }));
    let all = steps.iter().map(|change| change.step.clone());
    let settings: Vec<Step> = all.filter(|step| matches!(step, Step::Set { .. })).collect();
    while let Some(change) = steps.pop() {
        // A mount stays while something below it could not be undone: it would not be found
        // again.
        let holds = left.iter().any(|below| below.step.lies_below(&change.step));
        let outcome = if holds { Err(io::ErrorKind::ResourceBusy.into()) } else { change.undo() };
        told(&change.step, &outcome);
        if let Err(e) = outcome {
            failures.push(format!("{} ({e})", change.step));
            left.push(change);
        }
    }
    // One setting may reset another (a new scheduler resets nr_requests, most others the
    // read-ahead), so all are looked at until nothing changes any more.
    for _ in 0..3 {
        let undone = settings.iter().filter(|step| matches!(step.undo(), Ok(Outcome::Undone))).count();
        if undone == 0 {
            break;
        }
    }
    settings.iter().filter_map(Step::differs).for_each(|why| crate::tell!("warning: {why}"));
    left.reverse();
    (left, failures)
}

fn cap_hint(cause: &io::Error) -> &'static str {
    match cause.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
        Some(rustix::io::Errno::NODEV | rustix::io::Errno::NXIO) => {
            "; the kernel caps whole block devices that are there: `lsblk` lists them"
        }
        Some(rustix::io::Errno::INVAL | rustix::io::Errno::OPNOTSUPP) => {
            "; this kernel cannot cap that device: name the disk below it"
        }
        _ => refusal_hint(cause),
    }
}

fn refusal_hint(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::PermissionDenied => "; this needs root",
        io::ErrorKind::NotFound => "; this kernel or device does not have it",
        io::ErrorKind::InvalidInput => "; this kernel does not offer that value",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_is_used_is_not_taken_down_meanwhile_and_not_used_afterwards() {
        let dir = tempfile::tempdir().unwrap();
        let undo = Undo::open_in(&dir.path().join("state"), "test").unwrap();
        let made = dir.path().join("made");
        undo.make_dir(&made).unwrap();
        let (begun, begins) = channel();
        let (ends, ended) = channel::<()>();
        let user = undo.clone();
        let used = made.clone();
        let using = std::thread::spawn(move || {
            user.standing(|_| {
                begun.send(()).unwrap();
                ended.recv().unwrap();
                std::mem::forget(user.clone()); // the last handle would wait for the process's end
                used.exists()
            })
        });
        begins.recv().unwrap();
        let ending = undo.0.0.clone();
        let signal = std::thread::spawn(move || ending.end());
        std::thread::sleep(Duration::from_millis(100));
        let stands = made.exists();
        ends.send(()).unwrap();
        assert!(stands && using.join().unwrap());
        signal.join().unwrap().unwrap();
        assert!(!made.exists());
        let (late, comes) = channel();
        std::thread::spawn(move || undo.standing(|_| late.send(())));
        assert!(
            comes.recv_timeout(Duration::from_millis(300)).is_err(),
            "it waits for the end of the process"
        );
    }
}
