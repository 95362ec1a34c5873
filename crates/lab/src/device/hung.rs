//! Devices that hang: their server lives, or threads of it do, but it does not answer.
//!
//! A program that waits for such a device waits in the kernel, holds locks there, and keeps
//! others waiting: the next device to be made, every program that lists devices. All of that
//! ends at once when the connection to the server is aborted; so `lab restore` does, and
//! `lab device create` looks for them before it begins.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::control::{Answer, Ask, ask_through};
use super::state;
use crate::undo::{Living, Step, UndoError, abort, living, process_start};

/// A server that has not answered for so long hangs: it answers before all ordinary programs,
/// from memory.
const PATIENCE: Duration = Duration::from_secs(5);

/// A server whose connection was aborted takes its things down by itself, and is killed when it
/// has not by then.
const END_PATIENCE: Duration = Duration::from_secs(10);

/// A device that hangs.
#[derive(Debug)]
pub(crate) struct Hung {
    /// Its name.
    pub name: String,
    /// Its server.
    pub pid: u32,
    start: u64,
    mounts: Vec<PathBuf>,
    /// How it was found out.
    pub why: String,
}

/// The devices with journals in `dir` that hang.
pub(crate) fn hung(dir: &Path) -> Result<Vec<Hung>, UndoError> {
    let all = living(dir)?;
    let creators: Vec<&Step> =
        all.iter().filter(|one| one.what == state::CREATOR && one.runs).flat_map(|one| &one.steps).collect();
    let being_made =
        |pid: u32| creators.iter().any(|step| matches!(step, Step::Stop { pid: p, .. } if *p == pid));
    let servers = all.iter().filter(|one| !being_made(one.pid));
    Ok(servers.filter_map(examine).collect())
}

/// None when it is no device's server, or answers, or ends meanwhile.
fn examine(one: &Living) -> Option<Hung> {
    let name = one.what.strip_prefix("device-")?;
    let served = |step: &Step| match step {
        Step::Serve { target } | Step::Unmount { target } => Some(target.clone()),
        _ => None,
    };
    let mut mounts: Vec<PathBuf> = one.steps.iter().filter_map(served).collect();
    mounts.dedup();
    let why = if one.runs {
        answers_within(name, one, PATIENCE)?
    } else {
        "was killed, but threads of it wait in the kernel for the device".to_string()
    };
    Some(Hung { name: name.to_string(), pid: one.pid, start: one.start, mounts, why })
}

/// Why the server does not answer; nothing when it does, or has ended.
fn answers_within(name: &str, one: &Living, patience: Duration) -> Option<String> {
    let begun = Instant::now();
    loop {
        let left = patience.saturating_sub(begun.elapsed()).max(Duration::from_millis(100));
        match ask_through(&state::socket_path(name), Ask::Status, left) {
            Ok(Answer::Status(_)) => return None,
            _ if process_start(one.pid) != Some(one.start) => return None,
            outcome if begun.elapsed() >= patience => {
                let how = outcome.map_or_else(|e| e.to_string(), |answer| format!("{answer:?}"));
                return Some(format!("has not answered within {} s ({how})", patience.as_secs()));
            }
            _ => std::thread::sleep(Duration::from_millis(50)), // it is being made, or goes down
        }
    }
}

impl Hung {
    /// Fails what waits for the device, and ends the server; it is gone, or an error says what
    /// it waits for. Bounded in time.
    pub fn end(&self) -> Result<(), String> {
        let aborted: Vec<_> = self.mounts.iter().map(|mount| abort(mount)).collect();
        let Some(pid) = Pid::from_raw(self.pid as i32) else { return Ok(()) };
        for signals in [&[Signal::TERM, Signal::CONT][..], &[Signal::KILL]] {
            if process_start(self.pid) == Some(self.start) {
                signals.iter().for_each(|signal| kill_process(pid, *signal).unwrap_or(()));
            }
            let begun = Instant::now();
            while begun.elapsed() < END_PATIENCE {
                if process_start(self.pid) != Some(self.start)
                    && !Path::new(&format!("/proc/{}", self.pid)).exists()
                {
                    return Ok(());
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            if process_start(self.pid) != Some(self.start) {
                return Ok(()); // dead; who started it has not taken note
            }
        }
        let failures: Vec<String> =
            aborted.into_iter().filter_map(|a| a.err().map(|e| e.to_string())).collect();
        Err(format!(
            "device {}: process {} has not ended within {} s of SIGKILL (it waits in the kernel: {}){}",
            self.name,
            self.pid,
            END_PATIENCE.as_secs(),
            waits_in(self.pid),
            if failures.is_empty() { String::new() } else { format!("; {}", failures.join("; ")) }
        ))
    }
}

/// The function of the kernel that a process waits in.
pub(crate) fn waits_in(pid: u32) -> String {
    let text = std::fs::read_to_string(format!("/proc/{pid}/wchan")).unwrap_or_default();
    if text.is_empty() || text == "0" { "not known where".into() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_no_servers_of_devices() {
        let dir = tempfile::tempdir().unwrap();
        let undo = crate::undo::Undo::open_in(dir.path(), state::CREATOR).unwrap();
        let checks = crate::undo::Undo::open_in(dir.path(), state::CHECKER).unwrap();
        assert_eq!(hung(dir.path()).unwrap().len(), 0);
        drop((undo, checks));
    }
}
