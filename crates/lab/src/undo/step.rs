//! One change, and the way it is taken back.
//!
//! Undoing is careful about identity: a loop device is freed only while it still shows our
//! file, a process is stopped only while its start time is the one recorded, a file or folder is
//! removed only while it is the one that was made (see [`super::made`]). What is gone already
//! counts as undone.
//!
//! Undoing ends: calls that a hung device could hold are made apart (see
//! [`snowmelt_io::apart`]), each with a deadline, and the error says what was waited for.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use snowmelt_io::{ApartCall, apart};

use super::fuse::abort;
use super::groups::{disable_controller, move_back, remove_group, return_group};
use super::limit::IoLimit;
use super::made::real_place;
use super::mounts::mounts_of;
use super::outcome::Outcome;
use super::process::process_start;
use super::setting::{PATIENCE, read_setting, write_setting};

/// For writing out what a file system still holds, which slow devices take long for.
pub const UNMOUNT_PATIENCE: Duration = Duration::from_secs(180);

/// A change that can be undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// A disk is measured, or the caps of a control group are set, by this command alone; free
    /// again with its end.
    Hold {
        /// `/sys/block/NAME`, or the folder of the group.
        disk: PathBuf,
    },
    /// A control file gets a new value; undone by writing the old one.
    Set {
        /// The control file.
        path: PathBuf,
        /// The value it had before.
        old: String,
        /// The value that is written.
        new: String,
    },
    /// A loop device is attached to a file; undone by freeing it.
    LoopDetach {
        /// `/dev/loopN`.
        device: PathBuf,
        /// The file behind it.
        backing: PathBuf,
    },
    /// A block device may be mounted by others; undone by unmounting whatever is mounted from
    /// it.
    UnmountAll {
        /// The block device.
        device: PathBuf,
    },
    /// A block device takes fewer requests at once; undone by raising the number again.
    QueueDepth {
        /// `/sys/block/…/queue`.
        queue: PathBuf,
        /// Requests before.
        old: u32,
        /// Requests now.
        new: u32,
    },
    /// Something is mounted; undone by unmounting.
    Unmount {
        /// Where.
        target: PathBuf,
    },
    /// A FUSE file system of ours is used; undone by failing the requests that wait for an
    /// answer, and all that come. A server that reads what it serves itself, and was killed,
    /// would wait for ever, and what is set on a device above it would wait for its requests.
    Serve {
        /// Where it is mounted.
        target: PathBuf,
    },
    /// An empty directory, a cgroup or a trace instance is made; undone by removing it.
    RemoveDir {
        /// Its path.
        path: PathBuf,
    },
    /// A control group is made and processes are put into it; undone by killing those that are
    /// left and removing it.
    RemoveGroup {
        /// Its folder.
        path: PathBuf,
    },
    /// A control group is made for processes that run already; undone by moving those that are
    /// left in it to `home` and removing it.
    ReturnGroup {
        /// Its folder.
        path: PathBuf,
        /// The group of those that were started meanwhile and have no parent in the group.
        home: PathBuf,
    },
    /// A process is moved to another control group; undone by moving it back, with those that it
    /// has started meanwhile.
    MoveProcess {
        /// Its number.
        pid: u32,
        /// Its start time, as of [`Step::Stop`].
        start: u64,
        /// The group it was in.
        from: PathBuf,
        /// The group it is moved to.
        to: PathBuf,
    },
    /// A control group gets a cap of its I/O on a device; undone by the old one.
    IoCap {
        /// The folder of the group.
        group: PathBuf,
        /// `MAJOR:MINOR` of the device.
        device: String,
        /// The cap.
        limit: IoLimit,
        /// Its value before.
        old: Option<u64>,
        /// Its value now.
        new: u64,
    },
    /// A controller is enabled for the control groups below a folder (v2); undone by disabling
    /// it, unless another of them has a limit of it by then.
    Controller {
        /// The folder.
        folder: PathBuf,
        /// `io`, `memory`.
        name: String,
    },
    /// A file is made; undone by removing it.
    RemoveFile {
        /// Its path.
        path: PathBuf,
    },
    /// A folder of a name that is no other's is made, and filled; undone by removing it with
    /// everything in it.
    RemoveTree {
        /// Its path.
        path: PathBuf,
    },
    /// A process was started; undone by stopping it (SIGTERM, after 3 s SIGKILL).
    Stop {
        /// Its number.
        pid: u32,
        /// Its start time in clock ticks since boot, as in /proc/PID/stat: numbers are used
        /// again.
        start: u64,
    },
}

impl Step {
    /// Takes the change back. Of a step that makes a file or folder it must be known to be that
    /// one.
    ///
    /// # Errors
    /// The change could not be taken back.
    pub(super) fn undo(&self) -> io::Result<Outcome> {
        match self {
            Step::Hold { .. } => Ok(Outcome::Gone),
            Step::Set { path, old, .. } => restore_value(path, old),
            Step::LoopDetach { device, backing } => detach(device, backing),
            Step::UnmountAll { device } => unmount_all(device),
            Step::QueueDepth { queue, old, .. } => match queue.exists() {
                true => set_queue_depth(queue, *old).map(|()| Outcome::Undone),
                false => Ok(Outcome::Gone),
            },
            Step::Unmount { target } => unmount(target),
            Step::Serve { target } => abort(target),
            Step::RemoveDir { path } => patiently(|| std::fs::remove_dir(path)),
            Step::RemoveGroup { path } => remove_group(path),
            Step::ReturnGroup { path, home } => return_group(path, home),
            Step::MoveProcess { pid, start, from, to } => move_back(*pid, *start, from, to),
            Step::IoCap { group, device, limit, old, .. } => restore_cap(group, device, *limit, *old),
            Step::Controller { folder, name } => disable_controller(folder, name),
            Step::RemoveFile { path } => patiently(|| std::fs::remove_file(path)),
            Step::RemoveTree { path } => patiently(|| std::fs::remove_dir_all(path)),
            Step::Stop { pid, start } => stop(*pid, *start),
        }
    }

    /// Of a setting that was set back: why it does not have its saved value, if so.
    pub fn differs(&self) -> Option<String> {
        let Step::Set { path, old, .. } = self else { return None };
        let now = selected(&read_setting(path).ok()?);
        (now != *old).then(|| format!("{} was set back to {old:?} but reads {now:?}", path.display()))
    }

    /// The change itself in words; `Display` says how it is taken back.
    pub fn doing(&self) -> String {
        match self {
            Step::Hold { disk } => format!("hold {}", disk.display()),
            Step::Set { path, new, .. } => format!("set {} to {new:?}", path.display()),
            Step::LoopDetach { device, backing } => {
                format!("attach {} to {}", device.display(), backing.display())
            }
            Step::UnmountAll { device } => format!("offer {} for mounting", device.display()),
            Step::QueueDepth { queue, new, .. } => format!("lower the depth of {} to {new}", queue.display()),
            Step::Unmount { target } => format!("mount on {}", target.display()),
            Step::Serve { target } => format!("serve {}", target.display()),
            Step::RemoveDir { path } => format!("make directory {}", path.display()),
            Step::RemoveGroup { path } | Step::ReturnGroup { path, .. } => {
                format!("make control group {}", path.display())
            }
            Step::MoveProcess { pid, to, .. } => format!("move process {pid} to {}", to.display()),
            Step::IoCap { group, device, limit, new, .. } => {
                format!("set {} of {device} to {new} in {}", limit.key(), group.display())
            }
            Step::Controller { folder, name } => {
                format!("enable the {name} controller below {}", folder.display())
            }
            Step::RemoveFile { path } => format!("make file {}", path.display()),
            Step::RemoveTree { path } => format!("make and fill directory {}", path.display()),
            Step::Stop { .. } => "start a process".to_string(),
        }
    }

    /// The file or folder that it makes.
    pub(super) fn makes(&self) -> Option<&Path> {
        match self {
            Step::RemoveFile { path }
            | Step::RemoveDir { path }
            | Step::RemoveTree { path }
            | Step::RemoveGroup { path }
            | Step::ReturnGroup { path, .. } => Some(path),
            _ => None,
        }
    }

    /// True when what it makes has bytes that could be a user's: removing it would lose them.
    pub(super) fn makes_data(&self) -> bool {
        matches!(self, Step::RemoveFile { .. } | Step::RemoveTree { .. })
    }

    /// With paths that lead to the same places from any folder.
    pub(super) fn at_real_places(mut self) -> Step {
        for path in self.paths() {
            *path = real_place(path);
        }
        self
    }

    fn paths(&mut self) -> Vec<&mut PathBuf> {
        match self {
            Step::Hold { disk: path }
            | Step::Set { path, .. }
            | Step::UnmountAll { device: path }
            | Step::QueueDepth { queue: path, .. }
            | Step::Unmount { target: path }
            | Step::Serve { target: path }
            | Step::RemoveDir { path }
            | Step::RemoveGroup { path }
            | Step::IoCap { group: path, .. }
            | Step::Controller { folder: path, .. }
            | Step::RemoveFile { path }
            | Step::RemoveTree { path } => vec![path],
            Step::LoopDetach { device, backing } => vec![device, backing],
            Step::ReturnGroup { path, home } => vec![path, home],
            Step::MoveProcess { from, to, .. } => vec![from, to],
            Step::Stop { .. } => Vec::new(),
        }
    }

    /// True when what it is about lies in the mount or directory that `other` is about.
    pub(super) fn lies_below(&self, other: &Step) -> bool {
        let (Step::Unmount { target: above } | Step::RemoveDir { path: above }) = other else { return false };
        match self {
            Step::Set { path, .. }
            | Step::RemoveDir { path }
            | Step::RemoveGroup { path }
            | Step::ReturnGroup { path, .. }
            | Step::MoveProcess { to: path, .. }
            | Step::IoCap { group: path, .. }
            | Step::Controller { folder: path, .. }
            | Step::RemoveFile { path }
            | Step::RemoveTree { path } => path.starts_with(above),
            Step::Unmount { target } | Step::Serve { target } => target.starts_with(above),
            Step::LoopDetach { backing, .. } => backing.starts_with(above),
            Step::Stop { .. } | Step::UnmountAll { .. } | Step::QueueDepth { .. } | Step::Hold { .. } => {
                false
            }
        }
    }

    /// True when it outlives the kernel that made it.
    pub fn survives_reboot(&self) -> bool {
        match self {
            Step::RemoveFile { path } | Step::RemoveDir { path } | Step::RemoveTree { path } => {
                !path.starts_with("/sys") && !path.starts_with("/proc")
            }
            _ => false,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Hold { disk } => write!(f, "give {} free", disk.display()),
            Step::Set { path, old, new } if old == new => write!(f, "set {} back to {old:?}", path.display()),
            Step::Set { path, old, new } => write!(f, "set {} from {new:?} back to {old:?}", path.display()),
            Step::LoopDetach { device, backing } => {
                write!(f, "detach {} from {}", device.display(), backing.display())
            }
            Step::UnmountAll { device } => write!(f, "unmount what is mounted from {}", device.display()),
            Step::QueueDepth { queue, old, .. } => {
                write!(f, "raise the depth of {} to {old} again", queue.display())
            }
            Step::Unmount { target } => write!(f, "unmount {}", target.display()),
            Step::Serve { target } => write!(f, "fail the requests to {}", target.display()),
            Step::RemoveDir { path } => write!(f, "remove directory {}", path.display()),
            Step::RemoveGroup { path } | Step::ReturnGroup { path, .. } => {
                write!(f, "remove control group {}", path.display())
            }
            Step::MoveProcess { pid, from, .. } => {
                write!(f, "move process {pid} back to {}", from.display())
            }
            Step::IoCap { group, device, limit, old, new } => {
                let old = old.map_or("max".into(), |old| old.to_string());
                let key = limit.key();
                write!(f, "set {key} of {device} from {new} back to {old} in {}", group.display())
            }
            Step::Controller { folder, name } => {
                write!(f, "disable the {name} controller below {}", folder.display())
            }
            Step::RemoveFile { path } => write!(f, "remove file {}", path.display()),
            Step::RemoveTree { path } => write!(f, "remove {} with everything in it", path.display()),
            Step::Stop { pid, .. } => write!(f, "stop process {pid}"),
        }
    }
}

/// The value of a control file: the chosen one of a list such as `none [mq-deadline] kyber`,
/// else the text.
pub(crate) fn selected(text: &str) -> String {
    let chosen = text.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    chosen.unwrap_or(text.trim()).to_string()
}

pub(super) fn restore_value(path: &Path, old: &str) -> io::Result<Outcome> {
    match read_setting(path) {
        Ok(now) if selected(&now) == old => Ok(Outcome::Gone),
        Ok(_) => write_setting(path, old).map(|()| Outcome::Undone),
        Err(e) if is_gone(&e) => Ok(Outcome::Gone),
        Err(e) => Err(e),
    }
}

fn restore_cap(group: &Path, device: &str, limit: IoLimit, old: Option<u64>) -> io::Result<Outcome> {
    match limit.read(group, device) {
        Ok(now) if now == old => Ok(Outcome::Gone),
        Ok(_) => limit.write(group, device, old).map(|()| Outcome::Undone),
        Err(e) if is_gone(&e) => Ok(Outcome::Gone),
        Err(e) => Err(e),
    }
}

fn detach(device: &Path, backing: &Path) -> io::Result<Outcome> {
    if !shows(device, backing) {
        return Ok(Outcome::Gone);
    }
    match apart(ApartCall::LoopDetach(device), PATIENCE) {
        Err(e) if e.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) => {
            return Ok(Outcome::Gone);
        }
        other => other?,
    };
    // It is freed when the last one closes it; its settings change once more just then.
    let begun = Instant::now();
    while shows(device, backing) && begun.elapsed() < Duration::from_secs(1) {
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(Outcome::Undone)
}

fn shows(device: &Path, backing: &Path) -> bool {
    let Some(now) = snowmelt_io::loop_backing(device) else { return false };
    // The kernel shows the real path, as the journal does, and marks a file that was removed.
    let shown = now.to_string_lossy();
    shown.trim_end_matches(" (deleted)") == backing.to_string_lossy()
}

/// Sets how many requests a block device itself takes at once: `nr_requests`, written while no
/// scheduler is in front of it. (With a scheduler it is the number of requests the scheduler
/// holds. Without, it shows the device's full depth after every change of scheduler even when
/// the depth is lower, and a number that is shown already is not set: hence the detour by
/// another.)
///
/// # Errors
/// A control file of the queue cannot be read or written.
pub fn set_queue_depth(queue: &Path, depth: u32) -> io::Result<()> {
    let scheduler = queue.join("scheduler");
    let chosen = selected(&read_setting(&scheduler)?);
    write_setting(&scheduler, "none")?;
    let requests = queue.join("nr_requests");
    let set = write_setting(&requests, &(depth - 1).to_string())
        .and_then(|()| write_setting(&requests, &depth.to_string()));
    write_setting(&scheduler, &chosen)?;
    set
}

fn unmount_all(device: &Path) -> io::Result<Outcome> {
    let mut outcome = Outcome::Gone;
    for target in mounts_of(device).iter().rev() {
        outcome = unmount(target)?;
    }
    Ok(outcome)
}

fn unmount(target: &Path) -> io::Result<Outcome> {
    let attempt = || apart(ApartCall::Unmount(target), UNMOUNT_PATIENCE).map(drop);
    match patiently(attempt) {
        // A program that still uses it keeps it; it cannot be found any more.
        Err(e) if e.kind() == io::ErrorKind::ResourceBusy => {
            apart(ApartCall::UnmountLater(target), PATIENCE).map(|_| Outcome::Undone)
        }
        Err(e) if e.kind() == io::ErrorKind::InvalidInput => Ok(Outcome::Gone),
        other => other,
    }
}

fn stop(pid: u32, start: u64) -> io::Result<Outcome> {
    if process_start(pid) != Some(start) {
        return Ok(Outcome::Gone);
    }
    let Some(id) = Pid::from_raw(pid as i32) else { return Ok(Outcome::Gone) };
    for (signal, patience) in [(Signal::TERM, Duration::from_secs(3)), (Signal::KILL, Duration::from_secs(5))]
    {
        let _ = kill_process(id, signal); // it may have ended by itself
        let begun = Instant::now();
        while begun.elapsed() < patience {
            if process_start(pid) != Some(start) {
                return Ok(Outcome::Undone);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    Err(io::Error::new(
        io::ErrorKind::TimedOut,
        "it has not ended within 5 s of SIGKILL: it waits in the kernel",
    ))
}

/// Tries again for a second while something is busy; what is gone needs no undoing.
fn patiently(mut attempt: impl FnMut() -> io::Result<()>) -> io::Result<Outcome> {
    let begun = Instant::now();
    loop {
        match attempt() {
            Ok(()) => return Ok(Outcome::Undone),
            Err(e) if is_gone(&e) => return Ok(Outcome::Gone),
            Err(e) if e.kind() == io::ErrorKind::ResourceBusy && begun.elapsed() < Duration::from_secs(1) => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(e) => return Err(e),
        }
    }
}

fn is_gone(e: &io::Error) -> bool {
    e.kind() == io::ErrorKind::NotFound
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chosen_value_of_a_list_counts() {
        assert_eq!(selected("none [mq-deadline] kyber bfq \n"), "mq-deadline");
        assert_eq!(selected("128\n"), "128");
        assert_eq!(selected(""), "");
    }

    #[test]
    fn a_setting_without_its_saved_value_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("scheduler");
        let step = Step::Set { path: path.clone(), old: "none".into(), new: "bfq".into() };
        assert_eq!(step.differs(), None, "the device is gone");
        std::fs::write(&path, "none [bfq]\n").unwrap();
        let told = step.differs().unwrap();
        assert!(told.contains("scheduler") && told.contains("none") && told.contains("bfq"), "{told}");
        std::fs::write(&path, "[none] bfq\n").unwrap();
        assert_eq!(step.differs(), None);
    }

    #[test]
    fn what_lies_in_a_mount_is_known() {
        let mount = Step::Unmount { target: "/run/x/tracefs".into() };
        let instance = Step::RemoveDir { path: "/run/x/tracefs/instances/a".into() };
        let point = Step::RemoveDir { path: "/run/x/tracefs".into() };
        assert!(instance.lies_below(&mount) && instance.lies_below(&point) && mount.lies_below(&point));
        assert!(!mount.lies_below(&instance) && !point.lies_below(&instance));
        let other = Step::RemoveFile { path: "/run/x/tracefs-2/file".into() };
        assert!(!other.lies_below(&mount), "a name that begins alike is another");
    }

    #[test]
    fn a_process_is_known_by_its_start_time() {
        let own = process_start(std::process::id()).expect("this process runs");
        assert_eq!(stop(std::process::id(), own + 1).expect("no error"), Outcome::Gone);
    }

    #[test]
    fn a_started_process_is_stopped() {
        let mut child = std::process::Command::new("sleep").arg("600").spawn().expect("sleep starts");
        let start = process_start(child.id()).expect("it runs");
        assert_eq!(stop(child.id(), start).expect("stopped"), Outcome::Undone);
        assert!(!child.wait().expect("waited").success());
    }
}
