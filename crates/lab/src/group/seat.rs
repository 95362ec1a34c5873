//! The place of a process among the control groups of one controller, and a new group there.
//!
//! v1 has a tree of folders for each controller: a new group is made below the process's own.
//! v2 has one tree for all, in which a group with processes has no others with controllers
//! below it: a new group is made beside the process's own, and the controller is enabled for
//! each folder on the way there.

use std::fs;
use std::path::{Path, PathBuf};

use crate::undo::{Step, Undo, UndoError, has_word};

/// Part of the kernel that limits the processes of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Controller {
    Memory,
    Io,
}

impl Controller {
    /// Its name in v2.
    pub fn name(self) -> &'static str {
        match self {
            Controller::Memory => "memory",
            Controller::Io => "io",
        }
    }

    fn v1_name(self) -> &'static str {
        match self {
            Controller::Memory => "memory",
            Controller::Io => "blkio",
        }
    }

    /// A control file of v1 that only a kernel which can limit has.
    pub(super) fn v1_file(self) -> &'static str {
        match self {
            Controller::Memory => "memory.limit_in_bytes",
            Controller::Io => "blkio.throttle.read_bps_device",
        }
    }
}

/// The group a process is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seat {
    /// Its folder.
    pub home: PathBuf,
    /// The root of its tree.
    pub tree: PathBuf,
    /// It is a tree of v2.
    pub unified: bool,
}

/// Why processes are in a new group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Members {
    /// We start them: they are killed with the group.
    Started,
    /// They ran before: they go back, those without another place to this one.
    Moved {
        /// Folder of the group.
        home: PathBuf,
    },
}

impl Seat {
    /// Reads the text of /proc/PID/cgroup; `None` where `controller` is not available.
    pub fn find(root: &Path, controller: Controller, text: &str) -> Option<Seat> {
        let line = |wanted: &dyn Fn(&str) -> bool| {
            text.lines().find_map(|line| {
                let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
                wanted(controllers).then(|| path.trim_start_matches('/').to_owned())
            })
        };
        // In a container the path may be one that is seen from outside only.
        let below = |tree: &Path, path: &str| {
            let folder = tree.join(path);
            if folder.is_dir() { folder } else { tree.to_path_buf() }
        };
        if let Some(path) = line(&|names| names.split(',').any(|name| name == controller.v1_name())) {
            let tree = root.join(controller.v1_name());
            let home = below(&tree, &path);
            if home.join(controller.v1_file()).exists() {
                return Some(Seat { home, tree, unified: false });
            }
        }
        let tree = unified_tree(root)?;
        let has = fs::read_to_string(tree.join("cgroup.controllers")).ok()?;
        let path = line(&str::is_empty)?;
        has_word(&has, controller.name()).then(|| Seat { home: below(&tree, &path), tree, unified: true })
    }

    /// The folder in which a new group is made.
    pub fn parent(&self) -> &Path {
        match self.home.parent() {
            Some(parent) if self.unified && self.home != self.tree => parent,
            _ => &self.home,
        }
    }

    /// Makes `controller` work in the groups below the parent.
    pub fn enable(&self, controller: Controller, undo: &Undo) -> Result<(), UndoError> {
        if self.unified { enable(&self.tree, self.parent(), controller, undo) } else { Ok(()) }
    }

    /// A new group; its folder.
    pub fn make_group(&self, members: &Members, undo: &Undo) -> Result<PathBuf, UndoError> {
        let free = |n: &u32| {
            let name = format!("snowmelt-lab-{}-{n}", std::process::id());
            Some(self.parent().join(name)).filter(|path| !path.exists())
        };
        let path = (0..).find_map(|n| free(&n)).expect("some number is free");
        let step = match members {
            Members::Started => Step::RemoveGroup { path: path.clone() },
            Members::Moved { home } => Step::ReturnGroup { path: path.clone(), home: home.clone() },
        };
        undo.make(step, || fs::create_dir(&path))?;
        Ok(path)
    }
}

/// Enables a controller of v2 in each folder from the root of the tree down to `parent`.
pub(super) fn enable(
    tree: &Path,
    parent: &Path,
    controller: Controller,
    undo: &Undo,
) -> Result<(), UndoError> {
    let mut way: Vec<&Path> = parent.ancestors().take_while(|folder| folder.starts_with(tree)).collect();
    way.reverse();
    way.into_iter().try_for_each(|folder| undo.enable_controller(folder, controller.name()))
}

/// The tree of v2: all there is, or beside those of v1.
pub(super) fn unified_tree(root: &Path) -> Option<PathBuf> {
    let candidates = [root.to_path_buf(), root.join("unified")];
    candidates.into_iter().find(|tree| tree.join("cgroup.controllers").exists())
}

#[cfg(test)]
mod tests {
    use super::super::tests::file;
    use super::*;

    #[test]
    fn a_new_group_goes_below_our_own_or_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        file(&dir.path().join("memory/a/b/memory.limit_in_bytes"), "1");
        file(&dir.path().join("blkio/c/blkio.throttle.read_bps_device"), "");
        let own = "4:cpu:/x\n3:memory:/a/b\n2:blkio:/c\n0::/\n";
        for (controller, folder) in [(Controller::Memory, "memory/a/b"), (Controller::Io, "blkio/c")] {
            let seat = Seat::find(dir.path(), controller, own).unwrap();
            assert_eq!((seat.parent(), seat.unified), (dir.path().join(folder).as_path(), false));
        }
        let two = dir.path().join("v2");
        file(&two.join("cgroup.controllers"), "cpu io memory pids");
        fs::create_dir_all(two.join("user.slice/session-1.scope")).unwrap();
        let own = "0::/user.slice/session-1.scope\n";
        let seat = Seat::find(&two, Controller::Io, own).unwrap();
        assert_eq!((seat.parent(), seat.unified), (two.join("user.slice").as_path(), true));
        assert_eq!(
            Seat::find(&two, Controller::Io, "0::/\n").unwrap().parent(),
            two,
            "the root has groups below"
        );
        file(&two.join("cgroup.controllers"), "cpu pids");
        assert_eq!(Seat::find(&two, Controller::Memory, own), None);
    }

    #[test]
    fn a_controller_is_enabled_on_the_way_and_disabled_again() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("v2");
        let control = |folder: &str| tree.join(folder).join("cgroup.subtree_control");
        file(&control(""), "cpu io\n");
        file(&control("user.slice"), "cpu\n");
        file(&tree.join("cgroup.controllers"), "cpu io");
        let seat = Seat { home: tree.join("user.slice/a"), tree: tree.clone(), unified: true };
        let undo = Undo::open_in(&dir.path().join("state"), "test").unwrap();
        seat.enable(Controller::Io, &undo).unwrap();
        let text = |folder: &str| fs::read_to_string(control(folder)).unwrap();
        assert_eq!((text("").as_str(), text("user.slice").as_str()), ("cpu io\n", "+io"));
        // A file does not do as the kernel does.
        fs::write(control("user.slice"), "cpu io\n").unwrap();
        let made = seat.make_group(&Members::Moved { home: seat.home.clone() }, &undo).unwrap();
        assert!(made.starts_with(tree.join("user.slice")) && made.is_dir());
        undo.undo().unwrap();
        assert_eq!((text("").as_str(), text("user.slice").as_str()), ("cpu io\n", "-io"));
        assert!(!made.exists());
    }
}
