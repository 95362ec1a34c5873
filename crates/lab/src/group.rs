//! Control groups: the processes of one, its memory, and those of our own with limits.
//!
//! Both versions are known: v1 has a tree of folders for each controller, v2 one for all.

pub(crate) mod caps;
mod limited;
mod seat;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::LabError;
use crate::group::seat::{enable, unified_tree};
use crate::undo::{Undo, processes_in};

pub use limited::{Limited, ProgramLimits};
pub(crate) use seat::{Controller, Members, Seat};

/// Where groups are.
pub(crate) const ROOT: &str = "/sys/fs/cgroup";

/// A group that is watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// A folder with `cgroup.procs`.
    procs: PathBuf,
    /// The folder that knows its memory.
    memory: Option<PathBuf>,
}

/// Memory of a group, page cache included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct GroupMemory {
    /// In use now, bytes.
    pub bytes: u64,
    /// Of these, pages of files.
    pub file_bytes: u64,
    /// The limit; nothing without one.
    pub limit_bytes: Option<u64>,
}

/// The group at the end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct GroupTotal {
    /// Most memory in use, bytes; as the kernel kept it since the group was made.
    pub most_bytes: u64,
    /// Times the limit was hit.
    pub limit_hits: u64,
    /// Processes killed for want of memory.
    pub killed: u64,
}

impl Group {
    /// The group of a systemd unit.
    ///
    /// # Errors
    /// No such unit runs here.
    pub fn of_unit(unit: &str) -> Result<Group, LabError> {
        let name = if unit.contains('.') { unit.to_owned() } else { format!("{unit}.service") };
        let asked = std::process::Command::new("systemctl")
            .args(["show", "--property=ControlGroup", "--value", &name])
            .output();
        let said =
            asked.map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned()).unwrap_or_default();
        let path = if said.is_empty() { find(Path::new(ROOT), &name) } else { Some(PathBuf::from(said)) };
        let path = path.ok_or_else(|| {
            LabError::refused(
                format!("unit {name}"),
                "systemd knows no such unit that runs, and no control group has its name",
                "`systemctl list-units` shows those that run; without systemd use --cgroup or --pid",
            )
        })?;
        Group::of_path(&path)
    }

    /// The group at a path: below /sys/fs/cgroup, or as /proc/PID/cgroup shows it.
    ///
    /// # Errors
    /// There is no such group.
    pub fn of_path(path: &Path) -> Result<Group, LabError> {
        Group::of_path_in(Path::new(ROOT), path)
    }

    fn of_path_in(root: &Path, path: &Path) -> Result<Group, LabError> {
        let (relative, own) = parts(root, path);
        let places: Vec<PathBuf> = hierarchies(root).into_iter().map(|h| h.join(&own)).collect();
        let has = |file: &'static str| move |place: &&PathBuf| place.join(file).exists();
        let direct = root.join(relative);
        let procs = if direct.join("cgroup.procs").exists() {
            Some(direct)
        } else {
            places.iter().find(has("cgroup.procs")).cloned()
        };
        let procs = procs.ok_or_else(|| none_there(root, path))?;
        let memory =
            places.iter().find(|p| has("memory.current")(p) || has("memory.usage_in_bytes")(p)).cloned();
        Ok(Group { procs, memory })
    }

    /// Its processes, and those of the groups below it.
    pub fn pids(&self) -> BTreeSet<u32> {
        let mut pids = BTreeSet::new();
        let mut rest = vec![self.procs.clone()];
        while let Some(folder) = rest.pop() {
            pids.extend(processes_in(&folder).unwrap_or_default());
            let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
            rest.extend(entries.filter(|e| e.file_type().is_ok_and(|t| t.is_dir())).map(|e| e.path()));
        }
        pids
    }

    /// Its memory now; nothing where no controller counts it.
    pub fn memory(&self) -> Option<GroupMemory> {
        let folder = self.memory.as_ref()?;
        let number = |file: &str| fs::read_to_string(folder.join(file)).ok()?.trim().parse::<u64>().ok();
        let bytes = number("memory.current").or_else(|| number("memory.usage_in_bytes"))?;
        let limit = number("memory.max").or_else(|| number("memory.limit_in_bytes"));
        let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
        let file_bytes = value_of(&stat, "file").or_else(|| value_of(&stat, "cache")).unwrap_or(0);
        // v1 says "no limit" with a number near 2^63.
        Some(GroupMemory { bytes, file_bytes, limit_bytes: limit.filter(|limit| *limit < 1 << 60) })
    }

    /// Its memory over all its life.
    pub fn total(&self) -> Option<GroupTotal> {
        let folder = self.memory.as_ref()?;
        let text = |file: &str| fs::read_to_string(folder.join(file)).unwrap_or_default();
        let number = |file: &str| text(file).trim().parse::<u64>().ok();
        let events = text("memory.events");
        Some(GroupTotal {
            most_bytes: number("memory.peak").or_else(|| number("memory.max_usage_in_bytes"))?,
            limit_hits: value_of(&events, "max").or_else(|| number("memory.failcnt")).unwrap_or(0),
            killed: value_of(&events, "oom_kill")
                .or_else(|| value_of(&text("memory.oom_control"), "oom_kill"))
                .unwrap_or(0),
        })
    }
}

/// The folder in which the group at a path, as of [`Group::of_path`], has its caps of I/O. In v2
/// the controller is enabled for it.
///
/// # Errors
/// There is no such group, it is a root, or its I/O cannot be capped.
pub(crate) fn io_folder(root: &Path, path: &Path, undo: &Undo) -> Result<PathBuf, LabError> {
    let (_, own) = parts(root, path);
    let refused = |why: &str, instead: &str| {
        Err(LabError::refused(format!("capping control group {}", path.display()), why, instead))
    };
    if own.as_os_str().is_empty() {
        return refused("it is the root, the group of the whole machine", "name a group below it");
    }
    let mut places = hierarchies(root).into_iter().map(|hierarchy| hierarchy.join(&own));
    if let Some(place) = places.find(|place| place.join(Controller::Io.v1_file()).exists()) {
        return Ok(place);
    }
    let unified = unified_tree(root).map(|tree| (tree.join(&own), tree)).filter(|(place, _)| place.is_dir());
    let Some((place, tree)) = unified else {
        return match hierarchies(root).into_iter().any(|hierarchy| hierarchy.join(&own).is_dir()) {
            true => refused("it is not among the groups of the blkio controller", "use --pid"),
            false => Err(none_there(root, path)),
        };
    };
    if !place.join("io.max").exists() {
        enable(&tree, place.parent().unwrap_or(&tree), Controller::Io, undo)?;
    }
    match place.join("io.max").exists() {
        true => Ok(place),
        false => refused("this kernel does not cap its I/O (there is no io.max)", "try it with --pid"),
    }
}

fn none_there(root: &Path, path: &Path) -> LabError {
    LabError::refused(
        format!("control group {}", path.display()),
        format!("there is none below {}", root.display()),
        "/proc/PID/cgroup shows the groups of a process",
    )
}

/// A path below the root, and without the folder of a v1 controller: the group's own.
fn parts(root: &Path, path: &Path) -> (PathBuf, PathBuf) {
    let relative = path.strip_prefix(root).unwrap_or(path);
    let relative = relative.strip_prefix("/").unwrap_or(relative);
    let mut parts = relative.components();
    let own = match parts.next() {
        Some(first) if is_hierarchy(&root.join(first)) && path.starts_with(root) => {
            // In v2, a folder with processes at the top is a group.
            if root.join("cgroup.controllers").exists() { relative } else { parts.as_path() }
        }
        _ => relative,
    };
    (relative.to_path_buf(), own.to_path_buf())
}

fn value_of(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.trim_start_matches(' ').parse().ok())
}

fn is_hierarchy(path: &Path) -> bool {
    path.join("cgroup.procs").exists()
}

/// The tree of v2, or the trees of v1.
fn hierarchies(root: &Path) -> Vec<PathBuf> {
    if root.join("cgroup.controllers").exists() {
        return vec![root.to_path_buf()];
    }
    let entries = fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> = entries.filter(|path| is_hierarchy(path)).collect();
    found.sort();
    found
}

/// The path, in its tree, of the first group with this name, few levels deep.
fn find(root: &Path, name: &str) -> Option<PathBuf> {
    for hierarchy in hierarchies(root) {
        let mut rest = vec![(hierarchy.clone(), 0)];
        while let Some((folder, depth)) = rest.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                if !entry.file_type().is_ok_and(|t| t.is_dir()) {
                    continue;
                }
                if entry.file_name().to_str() == Some(name) {
                    return entry.path().strip_prefix(&hierarchy).ok().map(|p| Path::new("/").join(p));
                }
                if depth < 4 {
                    rest.push((entry.path(), depth + 1));
                }
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A control file in a tree made of files.
    pub(super) fn file(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn groups_of_both_versions_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let one = dir.path().join("v1");
        for controller in ["memory", "cpu"] {
            file(&one.join(controller).join("cgroup.procs"), "1\n");
            file(&one.join(controller).join("system.slice/db.service/cgroup.procs"), "12\n13\n");
        }
        let service = one.join("memory/system.slice/db.service");
        file(&service.join("memory.usage_in_bytes"), "4096\n");
        file(&service.join("memory.limit_in_bytes"), "9223372036854771712\n");
        file(&service.join("memory.stat"), "cache 1024\nrss 5\n");
        file(&service.join("below/cgroup.procs"), "14\n");
        assert_eq!(find(&one, "db.service"), Some("/system.slice/db.service".into()));
        let want = Some(GroupMemory { bytes: 4096, file_bytes: 1024, limit_bytes: None });
        for path in ["/system.slice/db.service", &service.display().to_string()] {
            let group = Group::of_path_in(&one, Path::new(path)).unwrap();
            assert_eq!(group.memory(), want, "{path}");
            assert!(group.pids().is_superset(&[12, 13].into()));
        }
        assert_eq!(Group::of_path_in(&one, &service).unwrap().pids(), [12, 13, 14].into());

        let two = dir.path().join("v2");
        file(&two.join("cgroup.controllers"), "cpu memory\n");
        file(&two.join("cgroup.procs"), "");
        file(&two.join("a/cgroup.procs"), "7\n");
        file(&two.join("a/memory.current"), "8192\n");
        file(&two.join("a/memory.max"), "16384\n");
        file(&two.join("a/memory.stat"), "anon 1\nfile 2048\nfile_mapped 9\n");
        let group = Group::of_path_in(&two, Path::new("/a")).unwrap();
        let want = GroupMemory { bytes: 8192, file_bytes: 2048, limit_bytes: Some(16384) };
        assert_eq!((group.pids(), group.memory()), ([7].into(), Some(want)));
        let error = Group::of_path_in(&two, Path::new("/none")).unwrap_err().to_string();
        assert!(error.contains("/none") && error.contains("/proc/PID/cgroup"), "{error}");
    }

    #[test]
    fn the_group_to_cap_is_found_in_both_versions() {
        let dir = tempfile::tempdir().unwrap();
        let undo = Undo::open_in(&dir.path().join("state"), "test").unwrap();
        let one = dir.path().join("v1");
        file(&one.join("memory/cgroup.procs"), "");
        file(&one.join("memory/other/cgroup.procs"), "");
        file(&one.join("blkio/cgroup.procs"), "");
        file(&one.join("blkio/db/blkio.throttle.read_bps_device"), "");
        for path in [Path::new("/db"), &one.join("blkio/db"), &one.join("memory/db")] {
            assert_eq!(io_folder(&one, path, &undo).unwrap(), one.join("blkio/db"));
        }
        let two = dir.path().join("v2");
        file(&two.join("cgroup.controllers"), "io");
        file(&two.join("cgroup.procs"), "");
        file(&two.join("cgroup.subtree_control"), "io");
        file(&two.join("db/io.max"), "");
        file(&two.join("db/cgroup.procs"), "");
        file(&two.join("slice/cgroup.subtree_control"), "cpu");
        file(&two.join("slice/web/cgroup.procs"), "");
        for path in [Path::new("/db"), &two.join("db")] {
            assert_eq!(io_folder(&two, path, &undo).unwrap(), two.join("db"));
        }
        let error =
            |root: &Path, path: &str| io_folder(root, Path::new(path), &undo).unwrap_err().to_string();
        assert!(error(&two, "/slice/web").contains("io.max"), "a file does not do as the kernel does");
        assert_eq!(fs::read_to_string(two.join("slice/cgroup.subtree_control")).unwrap(), "+io");
        for root in [&one, &two] {
            assert!(error(root, "/").contains("whole machine"));
            assert!(error(root, "/none").contains("/none"));
        }
        assert!(error(&one, "/other").contains("--pid"));
    }
}
