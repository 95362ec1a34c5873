//! Control groups: the processes of one, its memory, and one of our own with a limit.
//!
//! Both versions are known: v1 has a tree of folders for each controller, v2 one for all.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::LabError;
use crate::undo::{Step, Undo};

/// Where groups are.
const ROOT: &str = "/sys/fs/cgroup";

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
        let relative = path.strip_prefix(root).unwrap_or(path);
        let relative = relative.strip_prefix("/").unwrap_or(relative);
        let mut parts = relative.components();
        // Below the folder of a v1 controller, the rest is the group's own path.
        let own = match parts.next() {
            Some(first) if is_hierarchy(&root.join(first)) && path.starts_with(root) => parts.as_path(),
            _ => relative,
        };
        let places: Vec<PathBuf> = hierarchies(root).into_iter().map(|h| h.join(own)).collect();
        let has = |file: &'static str| move |place: &&PathBuf| place.join(file).exists();
        let direct = root.join(relative);
        let procs = if direct.join("cgroup.procs").exists() {
            Some(direct)
        } else {
            places.iter().find(has("cgroup.procs")).cloned()
        };
        let procs = procs.ok_or_else(|| {
            LabError::refused(
                format!("control group {}", path.display()),
                format!("there is none below {}", root.display()),
                "/proc/PID/cgroup shows the groups of a process",
            )
        })?;
        let memory =
            places.iter().find(|p| has("memory.current")(p) || has("memory.usage_in_bytes")(p)).cloned();
        Ok(Group { procs, memory })
    }

    /// Its processes, and those of the groups below it.
    pub fn pids(&self) -> BTreeSet<u32> {
        let mut pids = BTreeSet::new();
        let mut rest = vec![self.procs.clone()];
        while let Some(folder) = rest.pop() {
            let text = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
            pids.extend(text.lines().filter_map(|line| line.parse::<u32>().ok()));
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

/// A new group with a limit of its memory, for a program to be started in.
pub struct Limited {
    /// The group.
    pub group: Group,
}

impl Limited {
    /// Makes it, below the group we are in (v1) or beside it (v2, where a group with processes
    /// has no others below it). It is removed with the journal, whatever is left in it killed.
    ///
    /// # Errors
    /// There is no memory controller, or it cannot be used without root.
    pub fn make(limit_bytes: u64, undo: &Undo) -> Result<Limited, LabError> {
        let refused = |why: String| {
            LabError::refused(
                format!("a memory limit of {}", crate::size::about(limit_bytes as f64)),
                why,
                "it needs root and the memory controller of control groups; \
                 systemd-run -p MemoryMax=… with --unit is another way",
            )
        };
        if limit_bytes < 1 << 20 {
            return Err(LabError::Argument("--memory-limit must be at least 1m".into()));
        }
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let parent = memory_parent(Path::new(ROOT), &own)
            .ok_or_else(|| refused(format!("no memory controller is mounted below {ROOT}")))?;
        let folder = parent.folder.join(format!("snowmelt-lab-{}", std::process::id()));
        if parent.unified {
            let control = parent.folder.join("cgroup.subtree_control");
            let has =
                fs::read_to_string(&control).is_ok_and(|text| text.split_whitespace().any(|w| w == "memory"));
            if !has {
                fs::write(&control, "+memory").map_err(|e| refused(format!("{}: {e}", control.display())))?;
            }
        }
        let step = Step::RemoveGroup { path: folder.clone() };
        undo.make(step, || fs::create_dir(&folder)).map_err(|e| refused(e.to_string()))?;
        let (limit, swap) = match parent.unified {
            true => ("memory.max", ("memory.swap.max", 0)),
            false => ("memory.limit_in_bytes", ("memory.memsw.limit_in_bytes", limit_bytes)),
        };
        let path = folder.join(limit);
        fs::write(&path, limit_bytes.to_string()).map_err(|e| refused(format!("{}: {e}", path.display())))?;
        // Swap would be memory beyond the limit; a kernel without it lacks the file.
        let _ = fs::write(folder.join(swap.0), swap.1.to_string());
        Ok(Limited { group: Group { procs: folder.clone(), memory: Some(folder) } })
    }

    /// A command that enters the group before it becomes `command`: so all its memory counts.
    pub fn enter(&self, command: &[String]) -> Vec<String> {
        let procs = self.group.procs.join("cgroup.procs").display().to_string();
        let shell = ["sh", "-c", "echo $$ > \"$0\" && exec \"$@\"", &procs].map(String::from);
        shell.into_iter().chain(command.iter().cloned()).collect()
    }
}

struct Parent {
    folder: PathBuf,
    unified: bool,
}

/// The group in which one with a memory limit can be made, by /proc/self/cgroup.
fn memory_parent(root: &Path, own: &str) -> Option<Parent> {
    let line = |wanted: &dyn Fn(&str) -> bool| {
        own.lines().find_map(|line| {
            let (_, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            wanted(controllers).then(|| path.trim_start_matches('/').to_owned())
        })
    };
    if let Some(path) = line(&|controllers| controllers.split(',').any(|c| c == "memory")) {
        let hierarchy = root.join("memory");
        let below = hierarchy.join(path);
        // In a container the path may be one that is seen from outside only.
        let folder = if below.is_dir() { below } else { hierarchy };
        return folder.join("memory.limit_in_bytes").exists().then_some(Parent { folder, unified: false });
    }
    let path = line(&|controllers| controllers.is_empty())?;
    let own = root.join(&path);
    let parent = if path.is_empty() { own } else { own.parent()?.to_path_buf() };
    let controllers = fs::read_to_string(parent.join("cgroup.controllers")).ok()?;
    let has = controllers.split_whitespace().any(|c| c == "memory");
    has.then_some(Parent { folder: parent, unified: true })
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

    fn file(path: &Path, text: &str) {
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
    fn a_limit_goes_below_our_own_group_or_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        file(&dir.path().join("memory/a/b/memory.limit_in_bytes"), "1");
        let parent = memory_parent(dir.path(), "4:cpu:/x\n3:memory:/a/b\n0::/\n").unwrap();
        assert_eq!((parent.folder, parent.unified), (dir.path().join("memory/a/b"), false));
        let two = dir.path().join("v2");
        file(&two.join("user.slice/cgroup.controllers"), "cpu memory pids");
        let parent = memory_parent(&two, "0::/user.slice/session-1.scope\n").unwrap();
        assert_eq!((parent.folder, parent.unified), (two.join("user.slice"), true));
        file(&two.join("user.slice/cgroup.controllers"), "cpu pids");
        assert!(memory_parent(&two, "0::/user.slice/session-1.scope\n").is_none());
    }

    #[test]
    fn a_program_stays_below_its_limit_and_the_group_goes_with_all_that_is_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let undo = Undo::open_in(dir.path(), "test").unwrap();
        let limited = match Limited::make(64 << 20, &undo) {
            Ok(limited) => limited,
            Err(e) => return println!("skipped: {e}"),
        };
        let folder = limited.group.procs.clone();
        let file = dir.path().join("data");
        // 128 MiB through the page cache, then a process that stays.
        let line =
            format!("dd if=/dev/zero of={} bs=1M count=128 status=none; sleep 600 & true", file.display());
        let command = limited.enter(&["sh".into(), "-c".into(), line]);
        assert!(std::process::Command::new(&command[0]).args(&command[1..]).status().unwrap().success());
        let total = limited.group.total().expect("the kernel counts");
        assert!(total.most_bytes <= 64 << 20 && total.most_bytes > 32 << 20, "{total:?}");
        assert_eq!(limited.group.memory().unwrap().limit_bytes, Some(64 << 20));
        let left: Vec<u32> = limited.group.pids().into_iter().collect();
        assert_eq!(left.len(), 1, "sleep is still there");
        undo.undo().unwrap();
        assert!(!folder.exists() && crate::undo::process_start(left[0]).is_none());
        assert!(Limited::make(1000, &undo).is_err());
    }
}
