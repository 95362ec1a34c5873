//! Undoing with control groups: a group is removed, with the processes in it killed when we
//! started them, or moved back when they ran before; a controller is disabled.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::outcome::Outcome;
use super::process::{process_start, processes_below};

/// For the processes of a group to leave it.
const PATIENCE: Duration = Duration::from_secs(5);

/// The processes in a group, without those of groups below it.
pub fn processes_in(group: &Path) -> io::Result<Vec<u32>> {
    let text = std::fs::read_to_string(group.join("cgroup.procs"))?;
    Ok(text.lines().filter_map(|line| line.parse().ok()).collect())
}

/// Moves a process, with all its threads; false when it has ended.
///
/// # Errors
/// The group does not take it.
pub fn enter_group(group: &Path, pid: u32) -> io::Result<bool> {
    match std::fs::write(group.join("cgroup.procs"), pid.to_string()) {
        Ok(()) => Ok(true),
        Err(e) if e.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => Ok(false),
        Err(e) => Err(e),
    }
}

/// Kills the processes of a group, which only we made, and removes it.
pub(super) fn remove_group(path: &Path) -> io::Result<Outcome> {
    empty_and_remove(path, |pid| {
        if let Some(pid) = Pid::from_raw(pid as i32) {
            let _ = kill_process(pid, Signal::KILL); // it may have ended by itself
        }
        Ok(())
    })
}

/// Moves the processes of a group to `home` and removes it.
pub(super) fn return_group(path: &Path, home: &Path) -> io::Result<Outcome> {
    empty_and_remove(path, |pid| enter_group(nearest(home), pid).map(drop))
}

/// Moves a process back, with those it has started meanwhile; one that has ended, or that was
/// moved elsewhere by now, stays as it is.
pub(super) fn move_back(pid: u32, start: u64, from: &Path, to: &Path) -> io::Result<Outcome> {
    let inside = match processes_in(to) {
        Ok(inside) => inside,
        Err(e) if is_gone(&e) => return Ok(Outcome::Gone),
        Err(e) => return Err(e),
    };
    if process_start(pid) != Some(start) || !inside.contains(&pid) {
        return Ok(Outcome::Gone);
    }
    enter_group(nearest(from), pid)?;
    // From here on its children are born outside.
    for below in processes_below(pid).into_iter().filter(|below| inside_now(to, *below)) {
        enter_group(nearest(from), below)?;
    }
    Ok(Outcome::Undone)
}

/// Disables a controller for the groups below `folder`, unless another of them has a limit of
/// it by now.
pub(super) fn disable_controller(folder: &Path, name: &str) -> io::Result<Outcome> {
    let control = folder.join("cgroup.subtree_control");
    match std::fs::read_to_string(&control) {
        Ok(text) if !has_word(&text, name) => return Ok(Outcome::Gone),
        Err(e) if is_gone(&e) => return Ok(Outcome::Gone),
        Err(e) => return Err(e),
        Ok(_) => {}
    }
    let entries = std::fs::read_dir(folder)?.flatten();
    let limits =
        entries.filter_map(|entry| std::fs::read_to_string(entry.path().join(format!("{name}.max"))).ok());
    if limits.map(|limit| limit.trim().to_owned()).any(|limit| !limit.is_empty() && limit != "max") {
        return Ok(Outcome::Gone);
    }
    std::fs::write(&control, format!("-{name}")).map(|()| Outcome::Undone)
}

/// True when `word` is one of those of the text.
pub fn has_word(text: &str, word: &str) -> bool {
    text.split_whitespace().any(|one| one == word)
}

fn inside_now(group: &Path, pid: u32) -> bool {
    processes_in(group).is_ok_and(|pids| pids.contains(&pid))
}

/// The group itself, or the nearest one above it that is still there.
fn nearest(group: &Path) -> &Path {
    group.ancestors().find(|path| path.join("cgroup.procs").exists()).unwrap_or(group)
}

fn empty_and_remove(path: &Path, take_out: impl Fn(u32) -> io::Result<()>) -> io::Result<Outcome> {
    let begun = Instant::now();
    loop {
        let emptied = processes_in(path).unwrap_or_default().into_iter().try_for_each(&take_out);
        match std::fs::remove_dir(path) {
            Ok(()) => return Ok(Outcome::Undone),
            Err(e) if is_gone(&e) => return Ok(Outcome::Gone),
            Err(e) if e.kind() == io::ErrorKind::ResourceBusy && begun.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(e) => return Err(emptied.err().unwrap_or(e)),
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
    fn a_controller_stays_while_another_group_has_a_limit_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let control = dir.path().join("cgroup.subtree_control");
        let text = || std::fs::read_to_string(&control).unwrap();
        std::fs::write(&control, "cpu io\n").unwrap();
        let other = dir.path().join("other");
        std::fs::create_dir(&other).unwrap();
        std::fs::write(other.join("io.max"), "8:0 rbps=5 wbps=max riops=max wiops=max\n").unwrap();
        assert_eq!(disable_controller(dir.path(), "io").unwrap(), Outcome::Gone);
        assert_eq!(text(), "cpu io\n");
        std::fs::write(other.join("io.max"), "").unwrap();
        assert_eq!(disable_controller(dir.path(), "io").unwrap(), Outcome::Undone);
        assert_eq!(text(), "-io");
        assert_eq!(disable_controller(&dir.path().join("none"), "io").unwrap(), Outcome::Gone);
    }

    #[test]
    fn a_process_that_is_not_inside_or_is_another_one_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let (home, group) = (dir.path().join("home"), dir.path().join("group"));
        for folder in [&home, &group] {
            std::fs::create_dir(folder).unwrap();
            std::fs::write(folder.join("cgroup.procs"), "").unwrap();
        }
        let own = std::process::id();
        let start = process_start(own).unwrap();
        let moved = || std::fs::read_to_string(home.join("cgroup.procs")).unwrap();
        assert_eq!(move_back(own, start, &home, &group).unwrap(), Outcome::Gone, "not inside");
        std::fs::write(group.join("cgroup.procs"), format!("{own}\n")).unwrap();
        assert_eq!(move_back(own, start + 1, &home, &group).unwrap(), Outcome::Gone, "another");
        assert_eq!(moved(), "");
        assert_eq!(move_back(own, start, &home.join("removed"), &group).unwrap(), Outcome::Undone);
        assert_eq!(moved(), own.to_string(), "into the nearest group above");
    }
}
