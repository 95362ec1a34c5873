//! Small files of the kernel, below a root: `/` or a test's tree. Mounts and cgroups are read from
//! them.

use std::path::{Path, PathBuf};

/// The files of `/proc` and `/sys`.
#[derive(Debug, Clone)]
pub struct KernelFiles(PathBuf);

/// A line of the table of mounts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MountPoint {
    /// Where it is.
    pub place: PathBuf,
    /// The kind of file system.
    pub kind: String,
    /// The thing that is mounted: a block device's path, an address, or a word.
    pub source: String,
    /// Options, of the mount and of the file system.
    pub options: Vec<String>,
    /// The number of the device, `major:minor`.
    pub device: String,
}

/// Controllers of cgroups whose limits are read.
#[derive(Clone, Copy, Debug)]
pub enum Controller {
    /// Bytes of memory.
    Memory,
    /// Time of processors.
    Cpu,
    /// Requests to block devices.
    Io,
}

impl KernelFiles {
    /// The files of this machine.
    pub fn real() -> Self {
        Self::below("/")
    }

    /// The files of a tree that stands for a machine.
    pub fn below(root: impl Into<PathBuf>) -> Self {
        Self(root.into())
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.join(path.trim_start_matches('/'))
    }

    /// The text of a file, trimmed; `None` when it cannot be read.
    pub fn text(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.at(path)).ok().map(|text| text.trim().to_owned())
    }

    /// The number that a file is.
    pub fn number(&self, path: &str) -> Option<u64> {
        self.text(path)?.parse().ok()
    }

    /// A value of a file of lines `Name:  value unit`.
    pub fn field(&self, path: &str, name: &str) -> Option<u64> {
        let text = self.text(path)?;
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.split_whitespace().next()?.parse().ok()
    }

    /// True when something is there.
    pub fn exists(&self, path: &str) -> bool {
        self.at(path).exists()
    }

    /// The names in a directory, sorted; none when it cannot be read.
    pub fn names(&self, path: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.at(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort_unstable();
        names
    }

    /// The mount that a path is on: the last one with the longest place.
    pub fn mount_of(&self, path: &Path) -> Option<MountPoint> {
        let table = self.text("proc/self/mountinfo")?;
        let mounts = table.lines().filter_map(mount).filter(|mount| path.starts_with(&mount.place));
        mounts.max_by_key(|mount| mount.place.components().count())
    }

    /// The texts of a limit in the cgroups of a process and in those above: in version 2 of the
    /// file `newer`, in version 1 of `older`.
    pub fn cgroup(&self, process: &str, of: Controller, newer: &str, older: &str) -> Vec<String> {
        let own = self.text(&format!("proc/{process}/cgroup")).unwrap_or_default();
        let (name, folders) = match of {
            Controller::Memory => ("memory", &["memory"][..]),
            Controller::Cpu => ("cpu", &["cpu", "cpu,cpuacct"][..]),
            Controller::Io => ("blkio", &["blkio"][..]),
        };
        let mut found = Vec::new();
        for line in own.lines() {
            let mut fields = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
            let (folders, file) = match controllers {
                "" => (&["", "unified"][..], newer),
                of if of.split(',').any(|c| c == name) => (folders, older),
                _ => continue,
            };
            for folder in folders {
                for above in Path::new(path.trim_start_matches('/')).ancestors() {
                    let place = Path::new("sys/fs/cgroup").join(folder).join(above).join(file);
                    found.extend(self.text(&place.to_string_lossy()).filter(|text| !text.is_empty()));
                }
            }
        }
        found
    }
}

/// A line of `mountinfo`: number, parent, device, root, place, options, …, `-`, kind, source,
/// options of the file system.
fn mount(line: &str) -> Option<MountPoint> {
    let (mount, system) = line.split_once(" - ")?;
    let (mount, system): (Vec<&str>, Vec<&str>) = (mount.split(' ').collect(), system.split(' ').collect());
    let options = [mount.get(5)?, *system.get(2).unwrap_or(&"")].join(",");
    Some(MountPoint {
        place: mount.get(4)?.replace("\\040", " ").into(),
        kind: system.first()?.to_string(),
        source: system.get(1).unwrap_or(&"").replace("\\040", " "),
        options: options.split(',').filter(|option| !option.is_empty()).map(str::to_owned).collect(),
        device: mount.get(2)?.to_string(),
    })
}

/// A tree of files of a test: paths and texts; a text that begins with `->` is a link.
#[cfg(test)]
pub(crate) fn planted(files: &[(&str, &str)]) -> (tempfile::TempDir, KernelFiles) {
    let dir = tempfile::tempdir().expect("a folder");
    for (path, text) in files {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().expect("below the root")).expect("a folder");
        match text.strip_prefix("->") {
            Some(to) => std::os::unix::fs::symlink(dir.path().join(to), path).expect("made"),
            None => std::fs::write(path, format!("{text}\n")).expect("written"),
        }
    }
    let files = KernelFiles::below(dir.path());
    (dir, files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_on_the_innermost_mount() {
        let (_dir, kernel) = planted(&[(
            "proc/self/mountinfo",
            "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n\
             28 27 0:26 / /srv/my\\040data rw,nosuid shared:7 - btrfs /dev/sdb rw,nodatacow",
        )]);
        let on = |path: &str| kernel.mount_of(Path::new(path)).expect("it is on one");
        assert_eq!((on("/var/db").kind.as_str(), on("/srv/my database").device.as_str()), ("ext4", "254:0"));
        let inner = on("/srv/my data/db");
        assert_eq!((inner.kind.as_str(), inner.source.as_str()), ("btrfs", "/dev/sdb"));
        assert_eq!(inner.options, ["rw", "nosuid", "rw", "nodatacow"]);
    }

    #[test]
    fn limits_of_cgroups_are_those_on_the_way_up() {
        let (_dir, kernel) = planted(&[
            ("proc/9/cgroup", "4:memory:/a/b\n2:cpu,cpuacct:/\n0::/x/y"),
            ("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "70"),
            ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "50"),
            ("sys/fs/cgroup/unified/x/memory.max", "max"),
        ]);
        let found = kernel.cgroup("9", Controller::Memory, "memory.max", "memory.limit_in_bytes");
        assert_eq!(found, ["70", "50", "max"]);
        assert!(kernel.cgroup("8", Controller::Memory, "memory.max", "x").is_empty());
    }
}
