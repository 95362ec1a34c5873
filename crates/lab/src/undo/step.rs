//! One change and how it is taken back.
//!
//! Undoing is careful about identity: a loop device is freed only while it still shows our file, a process is stopped only
//! while its start time is the one recorded. What is gone already counts as undone.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::mount::UnmountFlags;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

use super::mounts::mounts_of;

/// A change that can be undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// A control file gets a new value; undone by writing the old one.
    Set {
        /// The control file.
        path: PathBuf,
        /// What it read before.
        old: String,
        /// What is written.
        new: String,
    },
    /// A loop device is attached to a file; undone by freeing it.
    LoopDetach {
        /// `/dev/loopN`.
        device: PathBuf,
        /// The file behind it.
        backing: PathBuf,
    },
    /// A block device may be mounted by others; undone by unmounting whatever is mounted from it.
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
    /// A FUSE file system of ours is used; undone by failing the requests that wait for an answer, and all that come. A server that reads what it
    /// serves itself, and was killed, would wait for ever, and what is set on a device above it would wait for its requests.
    Serve {
        /// Where it is mounted.
        target: PathBuf,
    },
    /// An empty directory, a cgroup or a trace instance is made; undone by removing it.
    RemoveDir {
        /// Its path.
        path: PathBuf,
    },
    /// A file is made; undone by removing it.
    RemoveFile {
        /// Its path.
        path: PathBuf,
    },
    /// A process was started; undone by stopping it (SIGTERM, after 3 s SIGKILL).
    Stop {
        /// Its number.
        pid: u32,
        /// Its start time in clock ticks since boot, as in /proc/PID/stat: numbers are used again.
        start: u64,
    },
}

/// How undoing went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was taken back.
    Undone,
    /// There was nothing left to take back.
    Gone,
}

impl Step {
    /// Takes the change back.
    pub fn undo(&self) -> io::Result<Outcome> {
        match self {
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
            Step::RemoveFile { path } => patiently(|| std::fs::remove_file(path)),
            Step::Stop { pid, start } => stop(*pid, *start),
        }
    }

    /// The change itself in words; `Display` says how it is taken back.
    pub fn doing(&self) -> String {
        match self {
            Step::Set { path, new, .. } => format!("set {} to {new:?}", path.display()),
            Step::LoopDetach { device, backing } => {
                format!("attach {} to {}", device.display(), backing.display())
            }
            Step::UnmountAll { device } => format!("offer {} for mounting", device.display()),
            Step::QueueDepth { queue, new, .. } => format!("lower the depth of {} to {new}", queue.display()),
            Step::Unmount { target } => format!("mount on {}", target.display()),
            Step::Serve { target } => format!("serve {}", target.display()),
            Step::RemoveDir { path } => format!("make directory {}", path.display()),
            Step::RemoveFile { path } => format!("make file {}", path.display()),
            Step::Stop { .. } => "start a process".to_string(),
        }
    }

    /// True when what it is about lies in the mount or directory that `other` is about.
    pub(super) fn lies_below(&self, other: &Step) -> bool {
        let (Step::Unmount { target: above } | Step::RemoveDir { path: above }) = other else { return false };
        match self {
            Step::Set { path, .. } | Step::RemoveDir { path } | Step::RemoveFile { path } => {
                path.starts_with(above)
            }
            Step::Unmount { target } | Step::Serve { target } => target.starts_with(above),
            Step::LoopDetach { backing, .. } => backing.starts_with(above),
            Step::Stop { .. } | Step::UnmountAll { .. } | Step::QueueDepth { .. } => false,
        }
    }

    /// True when it outlives the kernel that made it.
    pub fn survives_reboot(&self) -> bool {
        match self {
            Step::RemoveFile { path } | Step::RemoveDir { path } => {
                !path.starts_with("/sys") && !path.starts_with("/proc")
            }
            _ => false,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
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
            Step::RemoveFile { path } => write!(f, "remove file {}", path.display()),
            Step::Stop { pid, .. } => write!(f, "stop process {pid}"),
        }
    }
}

/// The value of a control file: the chosen one of a list such as `none [mq-deadline] kyber`, else the text.
pub(crate) fn selected(text: &str) -> String {
    let chosen = text.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    chosen.unwrap_or(text.trim()).to_string()
}

/// When process `pid` was started, in clock ticks since boot; nothing when there is none.
pub fn process_start(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in brackets, may hold anything; the fields behind it are counted from 3.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    if state == "Z" || state == "X" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

fn restore_value(path: &Path, old: &str) -> io::Result<Outcome> {
    match std::fs::read_to_string(path) {
        Ok(now) if selected(&now) == old => Ok(Outcome::Gone),
        Ok(_) => std::fs::write(path, old).map(|()| Outcome::Undone),
        Err(e) if is_gone(&e) => Ok(Outcome::Gone),
        Err(e) => Err(e),
    }
}

fn detach(device: &Path, backing: &Path) -> io::Result<Outcome> {
    let Some(now) = snowmelt_io::loop_backing(device) else { return Ok(Outcome::Gone) };
    // The kernel shows the path as resolved, and marks a file that was removed.
    let shown = now.to_string_lossy();
    let ours = std::fs::canonicalize(backing).unwrap_or_else(|_| backing.to_path_buf());
    if shown.trim_end_matches(" (deleted)") != ours.to_string_lossy() {
        return Ok(Outcome::Gone);
    }
    match snowmelt_io::loop_detach(device) {
        Err(e) if e.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) => Ok(Outcome::Gone),
        other => other.map(|()| Outcome::Undone),
    }
}

/// Sets how many requests a block device itself takes at once: `nr_requests`, written while no scheduler is in front of it.
/// (With a scheduler it is the number of requests the scheduler holds. Without, it shows the device's full depth after every change
/// of scheduler even when the depth is lower, and a number that is shown already is not set: hence the detour by another.)
pub fn set_queue_depth(queue: &Path, depth: u32) -> io::Result<()> {
    let scheduler = queue.join("scheduler");
    let chosen = selected(&std::fs::read_to_string(&scheduler)?);
    std::fs::write(&scheduler, "none")?;
    let requests = queue.join("nr_requests");
    let set = std::fs::write(&requests, (depth - 1).to_string())
        .and_then(|()| std::fs::write(&requests, depth.to_string()));
    std::fs::write(&scheduler, chosen)?;
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
    let attempt = |flags| rustix::mount::unmount(target, flags).map_err(io::Error::from);
    match patiently(|| attempt(UnmountFlags::empty())) {
        // Whoever still uses it keeps it, but nobody finds it any more.
        Err(e) if e.kind() == io::ErrorKind::ResourceBusy => {
            attempt(UnmountFlags::DETACH).map(|()| Outcome::Undone)
        }
        Err(e) if e.kind() == io::ErrorKind::InvalidInput => Ok(Outcome::Gone),
        other => other,
    }
}

/// Aborts the FUSE connection: a forced unmount does so first of all, and fails where the file system is busy.
pub fn abort(target: &Path) -> io::Result<Outcome> {
    match rustix::mount::unmount(target, UnmountFlags::FORCE) {
        Ok(()) | Err(Errno::BUSY) => Ok(Outcome::Undone),
        Err(Errno::INVAL | Errno::NOENT) => Ok(Outcome::Gone),
        Err(e) => Err(e.into()),
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
    Err(io::Error::other("it does not end"))
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
        assert!(own > 0);
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
