//! Names of files by the numbers that events have of them.
//!
//! 1. The files that a process has open, as /proc/PID/fd names them, asked while it runs.
//! 2. The words of its command line that are paths, also behind a `=`: a short program has ended
//!    before anything else can be asked.
//! 3. At the end, the other files in the folders of those known by then.
//!
//! The files of a btrfs have another device number in events than for programs, which see one for
//! each subvolume: of such a file system the number is found by the mount of the file.

use std::collections::{HashMap, HashSet};
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

use super::device_number::{of_dev, of_mount, parted};

/// A file, as events name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId {
    /// Device of its file system: major · 2^20 + minor.
    pub dev: u32,
    /// Its number there; 0 is the device itself.
    pub ino: u64,
}

impl FileId {
    /// Of a file or block device; of nothing else.
    fn of(meta: &Metadata) -> Option<FileId> {
        let kind = meta.file_type();
        if kind.is_block_device() {
            return Some(FileId { dev: of_dev(meta.rdev()), ino: 0 });
        }
        kind.is_file().then(|| FileId { dev: of_dev(meta.dev()), ino: meta.ino() })
    }
}

/// Names known so far.
#[derive(Debug, Default)]
pub struct FileNames {
    names: HashMap<FileId, String>,
    /// Processes whose command line was read.
    read: HashSet<u32>,
    /// File systems with numbers of their own.
    file_systems: HashSet<u32>,
    /// Numbers of the file systems by their mounts, where there are such.
    mounts: HashMap<u64, u32>,
}

/// Names that are kept.
const MOST_NAMES: usize = 1 << 18;

/// Entries of folders that are looked through for a name at the end.
const MOST_ENTRIES: usize = 20_000;

impl FileNames {
    /// The name of a file, if it is known.
    pub fn get(&self, file: FileId) -> Option<&str> {
        self.names.get(&file).map(String::as_str)
    }

    /// A file system has this number in events.
    pub fn add_file_system(&mut self, dev: u32) {
        self.file_systems.insert(dev);
    }

    /// The number of a process is another's from now on.
    pub fn forget(&mut self, pid: u32) {
        self.read.remove(&pid);
    }

    /// Learns the files that process `pid` has open, and those its command line names; answers
    /// those that are open for writing.
    pub fn look(&mut self, pid: u32) -> Vec<FileId> {
        let proc = PathBuf::from(format!("/proc/{pid}"));
        if self.read.insert(pid) {
            self.look_at_words(&proc);
        }
        let mut writable = Vec::new();
        for entry in fs::read_dir(proc.join("fd")).into_iter().flatten().flatten() {
            let Some(file) = self.number(&entry.path()) else { continue };
            if let (false, Ok(name)) = (self.names.contains_key(&file), fs::read_link(entry.path())) {
                self.insert(file, name.to_string_lossy().into_owned());
            }
            // The link itself has the rights that the file was opened with.
            let is_writable = entry.metadata().is_ok_and(|link| link.mode() & 0o200 != 0);
            writable.extend(Some(file).filter(|_| is_writable));
        }
        writable
    }

    /// The file at `path`, as events name it.
    fn number(&mut self, path: &Path) -> Option<FileId> {
        let file = FileId::of(&fs::metadata(path).ok()?)?;
        let has_own = parted(file.dev).0 == 0 && !self.file_systems.is_empty();
        let dev = if has_own { self.number_by_mount(path) } else { None };
        Some(FileId { dev: dev.unwrap_or(file.dev), ..file })
    }

    fn number_by_mount(&mut self, path: &Path) -> Option<u32> {
        let mount = statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID).ok()?.stx_mnt_id;
        if !self.mounts.contains_key(&mount) {
            self.mounts = numbers_of_mounts(&fs::read_to_string("/proc/self/mountinfo").ok()?);
        }
        self.mounts.get(&mount).copied().filter(|dev| self.file_systems.contains(dev))
    }

    /// The command line of a program that is about to run, or runs.
    fn look_at_words(&mut self, proc: &Path) {
        let Ok(folder) = fs::read_link(proc.join("cwd")) else { return };
        let line = fs::read(proc.join("cmdline")).unwrap_or_default();
        for word in line.split(|byte| *byte == 0).filter(|word| !word.is_empty()) {
            let behind = word.iter().position(|byte| *byte == b'=').map(|at| &word[at + 1..]);
            for path in std::iter::once(word).chain(behind) {
                self.learn(&folder.join(std::ffi::OsStr::from_bytes(path)));
            }
        }
    }

    /// A name that is known otherwise.
    pub fn insert(&mut self, file: FileId, name: String) {
        if self.names.len() < MOST_NAMES {
            self.names.insert(file, name);
        }
    }

    /// Learns the name of the file at `path`, if there is one.
    fn learn(&mut self, path: &Path) {
        if let Some(file) = self.number(path).filter(|file| !self.names.contains_key(file)) {
            self.insert(file, path.to_string_lossy().into_owned());
        }
    }

    /// Looks for `wanted` in the folders of the files that are known.
    pub fn look_around(&mut self, wanted: &HashSet<FileId>) {
        let mut missing = wanted.iter().filter(|file| !self.names.contains_key(file)).count();
        let folders: HashSet<PathBuf> =
            self.names.values().filter_map(|name| Some(Path::new(name).parent()?.to_path_buf())).collect();
        let entries = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
        for entry in entries.take(MOST_ENTRIES) {
            if missing == 0 {
                return;
            }
            // Not through links, which are files of their own.
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            let Some(file) = self.number(&entry.path()).filter(|_| !is_link) else { continue };
            if wanted.contains(&file) && !self.names.contains_key(&file) {
                self.names.insert(file, entry.path().to_string_lossy().into_owned());
                missing -= 1;
            }
        }
    }
}

/// Numbers of the file systems in a table of mounts, by mount.
fn numbers_of_mounts(table: &str) -> HashMap<u64, u32> {
    let of = |line: &str| Some((line.split(' ').next()?.parse().ok()?, of_mount(line)?));
    table.lines().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::super::device_number::joined;
    use super::*;

    #[test]
    fn files_open_for_reading_are_not_written() {
        let dir = tempfile::tempdir().unwrap();
        let [read, written] = ["read", "written"].map(|name| dir.path().join(name));
        let id = |path: &Path| FileId::of(&fs::metadata(path).unwrap()).unwrap();
        fs::write(&read, "x").unwrap();
        let kept = (fs::File::create(&written).unwrap(), fs::File::open(&read).unwrap());
        let mut names = FileNames::default();
        let writable = names.look(std::process::id());
        assert!(writable.contains(&id(&written)) && !writable.contains(&id(&read)), "{writable:?}");
        assert!(names.get(id(&read)).is_some(), "the name of one that is only read is known, too");
        drop(kept);
    }

    #[test]
    fn mounts_have_the_numbers_of_their_file_systems() {
        let table = "22 1 253:0 / / rw - ext4 /dev/vda rw\n\
                     40 22 0:40 /sub /mnt/a\\040b rw shared:3 - btrfs /dev/loop1 rw\n";
        let numbers = numbers_of_mounts(table);
        assert_eq!((numbers[&22], numbers[&40], numbers.len()), (joined(253, 0), 40, 2));
        // By the kernel's own table: the mount of this folder is in it.
        let here = statx(CWD, ".", AtFlags::empty(), StatxFlags::MNT_ID).unwrap().stx_mnt_id;
        assert!(numbers_of_mounts(&fs::read_to_string("/proc/self/mountinfo").unwrap()).contains_key(&here));
    }

    #[test]
    fn files_are_known_by_descriptors_words_and_neighbours() {
        let dir = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let path = dir.path().join(name);
            fs::write(&path, name).unwrap();
            (FileId::of(&fs::metadata(&path).unwrap()).unwrap(), path)
        };
        let [(open, open_path), (named, named_path), (near, near_path)] =
            [make("open"), make("named"), make("near")];
        let input = fs::File::open(&open_path).unwrap();
        let mut child = std::process::Command::new("tail")
            .args(["-f", "/dev/null", "--"])
            .arg(&named_path)
            .stdin(input)
            .stdout(std::process::Stdio::null())
            .spawn()
            .expect("tail is there");
        let mut names = FileNames::default();
        let begun = std::time::Instant::now();
        while names.get(named).is_none() && begun.elapsed().as_secs() < 10 {
            names.read.clear(); // until the child has become tail
            names.look(child.id());
        }
        child.kill().and_then(|()| child.wait()).expect("it ends");
        let path = |path: &Path| Some(path.to_string_lossy().into_owned());
        assert_eq!(names.get(open).map(str::to_owned), path(&open_path));
        assert_eq!(names.get(named).map(str::to_owned), path(&named_path));
        assert_eq!(names.get(near), None);
        names.look_around(&HashSet::from([near]));
        assert_eq!(names.get(near).map(str::to_owned), path(&near_path));
    }
}
