//! Processes that run already, moved with all they have started into a new group, from which
//! each goes back to its own.
//!
//! The tree is looked at again until nothing new is found: a process that is inside has its
//! children inside, so only those started before it was moved can be outside.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::LabError;
use crate::group::{Controller, Members, Seat};
use crate::undo::{Undo, processes_below, processes_in};

/// The new group.
pub(super) struct Held<'a> {
    root: PathBuf,
    seat: Seat,
    group: PathBuf,
    homes: BTreeSet<PathBuf>,
    count: usize,
    undo: &'a Undo,
}

impl<'a> Held<'a> {
    /// Makes it near the group of process `pid`.
    pub fn make(root: &Path, pid: u32, undo: &'a Undo) -> Result<Held<'a>, LabError> {
        let seat = seat_of(root, pid)?;
        seat.enable(Controller::Io, undo)?;
        let group = seat.make_group(&Members::Moved { home: seat.home.clone() }, undo)?;
        Ok(Held { root: root.into(), seat, group, homes: BTreeSet::new(), count: 0, undo })
    }

    /// Its folder.
    pub fn group(&self) -> &Path {
        &self.group
    }

    /// The groups from which processes were moved.
    pub fn homes(&self) -> &BTreeSet<PathBuf> {
        &self.homes
    }

    /// Number of processes that were moved.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Has v2 count its page cache, so that writing it back is capped too.
    pub fn count_page_cache(&self) {
        let _ = self.seat.enable(Controller::Memory, self.undo); // the doubt says that it is not
    }

    /// Moves process `pid` in, with those below it, but not ourselves: our journal must be
    /// written.
    pub fn take(&mut self, pid: u32) -> Result<(), LabError> {
        loop {
            let inside = processes_in(&self.group).map_err(|e| LabError::file("read", &self.group, e))?;
            let tree = std::iter::once(pid).chain(processes_below(pid));
            let outside = tree.filter(|one| *one != std::process::id() && !inside.contains(one));
            let mut moved = 0;
            for one in outside.collect::<Vec<_>>() {
                moved += usize::from(self.take_one(one)?);
            }
            self.count += moved;
            if moved == 0 {
                break;
            }
        }
        match crate::undo::process_start(pid) {
            Some(_) => Ok(()),
            None => Err(ended(pid)),
        }
    }

    /// False when it has ended.
    fn take_one(&mut self, pid: u32) -> Result<bool, LabError> {
        let home = match seat_of(&self.root, pid) {
            Ok(seat) => seat.home,
            Err(_) if crate::undo::process_start(pid).is_none() => return Ok(false),
            Err(e) => return Err(e),
        };
        if home == self.group {
            return Ok(false); // its parent was moved just before it was started
        }
        let moved = self.undo.move_process(pid, &home, &self.group).map_err(|e| {
            let instead = "threads of the kernel stay where they are: name a program";
            LabError::refused(format!("capping the I/O of process {pid}"), e.to_string(), instead)
        })?;
        if moved {
            self.homes.insert(home);
        }
        Ok(moved)
    }
}

/// The group a process is in, where its I/O can be capped.
fn seat_of(root: &Path, pid: u32) -> Result<Seat, LabError> {
    let refused = |why: String, instead: &str| {
        LabError::refused(format!("capping the I/O of process {pid}"), why, instead)
    };
    let text = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).map_err(|_| ended(pid))?;
    let seat = Seat::find(root, Controller::Io, &text).ok_or_else(|| {
        let why = format!("there is no controller of I/O (blkio in v1, io in v2) below {}", root.display());
        refused(why, "it needs root and a kernel with BLK_CGROUP and BLK_DEV_THROTTLING")
    })?;
    // As seen from another container, the path may lead to another group.
    match processes_in(&seat.home).is_ok_and(|pids| pids.contains(&pid)) {
        true => Ok(seat),
        false if crate::undo::process_start(pid).is_none() => Err(ended(pid)),
        false => {
            let why = format!("its control group cannot be seen from here below {}", root.display());
            Err(refused(why, "run the command outside of the container"))
        }
    }
}

fn ended(pid: u32) -> LabError {
    LabError::Argument(format!("process {pid} has ended; `ps` lists those that run"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In a v2 tree made of plain files, which behave like the kernel's in what is tested here.
    #[test]
    fn in_v2_a_process_is_moved_beside_and_back() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("v2");
        std::fs::create_dir(&tree).unwrap();
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let write = |name: &str, text: &str| std::fs::write(tree.join(name), text).unwrap();
        let read = |name: &str| std::fs::read_to_string(tree.join(name)).unwrap();
        write("cgroup.controllers", "cpu io memory");
        write("cgroup.subtree_control", "cpu");
        write("cgroup.procs", &format!("{}\n", child.id()));
        let undo = Undo::open_in(&dir.path().join("state"), "test").unwrap();
        let mut held = Held::make(&tree, child.id(), &undo).unwrap();
        assert_eq!(
            (read("cgroup.subtree_control").as_str(), held.group().parent()),
            ("+io", Some(tree.as_path()))
        );
        let list = held.group().join("cgroup.procs");
        std::fs::write(&list, "").unwrap();
        assert!(held.take_one(child.id()).unwrap() && held.homes().contains(&tree));
        assert_eq!(std::fs::read_to_string(&list).unwrap(), child.id().to_string());
        write("cgroup.procs", "");
        write("cgroup.subtree_control", "cpu io");
        assert!(undo.undo().is_err(), "a folder with files is not removed");
        assert_eq!(
            (read("cgroup.procs"), read("cgroup.subtree_control")),
            (child.id().to_string(), "-io".into())
        );
        std::fs::remove_file(&list).unwrap();
        undo.undo().unwrap();
        assert!(!list.parent().unwrap().exists());
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_process_that_is_not_there_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let error = seat_of(dir.path(), 4_194_304).unwrap_err().to_string();
        assert!(error.contains("4194304 has ended"), "{error}");
        let error = seat_of(dir.path(), std::process::id()).unwrap_err().to_string();
        assert!(error.contains("no controller of I/O") && error.contains("BLK_DEV_THROTTLING"), "{error}");
    }
}
