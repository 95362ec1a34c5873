//! Names of files by the numbers that events have of them.
//!
//! 1. The files that a process has open, as /proc/PID/fd names them, asked while it runs.
//! 2. The words of its command line that are paths, also behind a `=`: a short program has ended
//!    before anything else can be asked.
//! 3. At the end, the other files in the folders of those known by then.

use std::collections::{HashMap, HashSet};
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::event::MINOR_BITS;

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
            return Some(FileId { dev: kernel_number(meta.rdev()), ino: 0 });
        }
        kind.is_file().then(|| FileId { dev: kernel_number(meta.dev()), ino: meta.ino() })
    }
}

/// The kernel's own form of a device number.
fn kernel_number(dev: u64) -> u32 {
    rustix::fs::major(dev) << MINOR_BITS | rustix::fs::minor(dev)
}

/// Names known so far.
#[derive(Debug, Default)]
pub struct FileNames {
    names: HashMap<FileId, String>,
    /// Processes whose command line was read.
    read: HashSet<u32>,
}

/// Entries of folders that are looked through for a name at the end.
const MOST_ENTRIES: usize = 20_000;

impl FileNames {
    /// The name of a file, if it is known.
    pub fn get(&self, file: FileId) -> Option<&str> {
        self.names.get(&file).map(String::as_str)
    }

    /// Learns the files that process `pid` has open, and those its command line names; answers
    /// the open ones.
    pub fn look(&mut self, pid: u32) -> Vec<FileId> {
        let proc = PathBuf::from(format!("/proc/{pid}"));
        if self.read.insert(pid) {
            self.look_at_words(&proc);
        }
        let mut open = Vec::new();
        for entry in fs::read_dir(proc.join("fd")).into_iter().flatten().flatten() {
            let Some(file) = fs::metadata(entry.path()).ok().and_then(|meta| FileId::of(&meta)) else {
                continue;
            };
            if let (false, Ok(name)) = (self.names.contains_key(&file), fs::read_link(entry.path())) {
                self.names.insert(file, name.to_string_lossy().into_owned());
            }
            open.push(file);
        }
        open
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
        self.names.insert(file, name);
    }

    /// Learns the name of the file at `path`, if there is one.
    fn learn(&mut self, path: &Path) {
        if let Some(file) = fs::metadata(path).ok().and_then(|meta| FileId::of(&meta)) {
            self.names.entry(file).or_insert_with(|| path.to_string_lossy().into_owned());
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
            let Some(file) = entry.metadata().ok().and_then(|meta| FileId::of(&meta)) else { continue };
            if wanted.contains(&file) && !self.names.contains_key(&file) {
                self.names.insert(file, entry.path().to_string_lossy().into_owned());
                missing -= 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert!(names.look(child.id()).contains(&open));
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
