//! A database that is being made, and what is left of one whose making was cut short.
//!
//! 1. The folder is made and locked. The file `making` in it names the stripes that are going to
//!    be made. It is durable before any of them is there.
//! 2. Each stripe is made where nothing has its name, and noted in `making` by what the file
//!    system calls it: device, inode, time of birth.
//! 3. The super-block is written under the name `superblock.making`; the database is filled.
//! 4. When all is durable, `superblock.making` becomes `superblock`, and the folder is synced.
//!    Now it is a database. `making` goes.
//!
//! A try that was cut short leaves `making` and no `superblock`. The next one, which has the
//! lock, removes what that try has made and begins anew. It removes names of a database's own in
//! the folder, and of the stripes those that are the very files noted, or have no byte. Whatever
//! else is at the name of a stripe is foreign, and the try fails as it would have before.
//!
//! A block device is not noted: all on it is given up by asking for a new database there
//! (`--destroy`), this time and the next.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use snowmelt_io::is_block_device;

use crate::error::{Result, StoreError};
use crate::files::lock::{self, Lock};
use crate::files::stripes::sync_parent;
use crate::files::{PRIVATE_DIR, PRIVATE_FILE, reserve};
use crate::read::warm;
use crate::settings::opener::Directory;
use crate::superblock::{self, UNFINISHED_NAME};

/// Name of the list of what is being made.
pub(crate) const FILE_NAME: &str = "making";

/// Folder in that of a database for what fills it: goes with a database that was not finished.
pub const LOAD_DIR: &str = "load.tmp";

/// A line of the list.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Line {
    /// The folder was made, too.
    Folder,
    /// A stripe will be made.
    Stripe(PathBuf),
    /// It was made, and is this file.
    Made(PathBuf, FileId),
}

/// A file, not its name. The time of birth tells an inode that was used again from the old one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FileId {
    device: u64,
    inode: u64,
    born_ns: Option<u64>,
}

impl FileId {
    fn of(file: &std::fs::Metadata) -> FileId {
        let born = file.created().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
        FileId { device: file.dev(), inode: file.ino(), born_ns: born.map(|at| at.as_nanos() as u64) }
    }
}

/// The making of a database under way; dropped before [`Creation::finish`] it takes everything
/// back.
#[derive(Debug)]
pub(crate) struct Creation {
    dir: PathBuf,
    note: File,
    has_made_folder: bool,
    is_finished: bool,
    /// Held until all is done or undone, after the store has let go of its own.
    lock: Arc<Lock>,
}

impl Creation {
    /// Begins in a folder, which is made where there is none: takes its lock, removes what an
    /// earlier try has left, and says which stripes will be made.
    ///
    /// # Errors
    /// There is a database, or one is being made, or files that may be of one.
    pub fn begin(dir: &Path, stripes: &[PathBuf]) -> Result<Creation> {
        let was_there = dir.exists();
        let is_none = || match dir.join(superblock::FILE_NAME).exists() {
            true => Err(StoreError::Exists { path: dir.to_path_buf() }),
            false => Ok(()),
        };
        is_none()?;
        make_dir(dir)?;
        let lock = Arc::new(Lock::take(&*Directory::open(dir, None)?)?);
        // One may have been finished just now.
        is_none()?;
        let earlier = clear(dir)?;
        refuse_foreign(dir)?;
        let has_made_folder = !was_there || earlier.contains(&Line::Folder);
        let path = dir.join(FILE_NAME);
        let made = OpenOptions::new().append(true).create_new(true).mode(PRIVATE_FILE).open(&path);
        let note = made.map_err(StoreError::file(&path, "make the list of what is made"))?;
        let this = Creation { dir: dir.to_path_buf(), note, has_made_folder, is_finished: false, lock };
        let folder = has_made_folder.then_some(Line::Folder);
        let files = stripes.iter().filter(|path| !is_block_device(path));
        this.write(folder.into_iter().chain(files.cloned().map(Line::Stripe)))?;
        sync_parent(&path)?;
        Ok(this)
    }

    /// Makes the file of a stripe.
    ///
    /// # Errors
    /// Something has its name.
    pub fn make_stripe(&self, path: &Path) -> Result<()> {
        let made = OpenOptions::new().write(true).create_new(true).mode(PRIVATE_FILE).open(path);
        let file = made.map_err(StoreError::file(path, "create the stripe"))?;
        let id = file.metadata().map_err(StoreError::file(path, "look at the stripe"))?;
        self.write([Line::Made(path.to_path_buf(), FileId::of(&id))])?;
        sync_parent(path)
    }

    fn write(&self, lines: impl IntoIterator<Item = Line>) -> Result<()> {
        let mut text = String::new();
        for line in lines {
            text += &serde_json::to_string(&line).expect("paths that a super-block takes are texts");
            text.push('\n');
        }
        let written = (&self.note).write_all(text.as_bytes()).and_then(|()| self.note.sync_all());
        written.map_err(StoreError::file(&self.dir.join(FILE_NAME), "write the list of what is made"))
    }

    /// The lock of the folder, for the store.
    pub fn lock(&self) -> &Arc<Lock> {
        &self.lock
    }

    /// Gives the super-block its name: all that it refers to is durable.
    ///
    /// # Errors
    /// The folder does not take the name; the database is taken back when this is dropped.
    pub fn finish(&mut self) -> Result<()> {
        let path = self.dir.join(superblock::FILE_NAME);
        let named = std::fs::rename(self.dir.join(UNFINISHED_NAME), &path);
        named.map_err(StoreError::file(&path, "give the super-block its name"))?;
        // From here on it may be one, whatever comes.
        self.is_finished = true;
        sync_parent(&path)?;
        forget(&self.dir);
        Ok(())
    }
}

impl Drop for Creation {
    fn drop(&mut self) {
        if self.is_finished {
            return;
        }
        if let Err(error) = clear(&self.dir) {
            snowmelt_io::notice(&format!("{error}; what is left is removed by the next try"));
            return;
        }
        let _ = std::fs::remove_file(self.dir.join(lock::FILE_NAME));
        if self.has_made_folder {
            let _ = std::fs::remove_dir(&self.dir);
        }
    }
}

/// Removes the list from a finished database, whose maker was killed just then.
fn forget(dir: &Path) {
    let _ = std::fs::remove_file(dir.join(FILE_NAME));
}

/// Removes what a process that was killed has left in the folder of a database: the caller has
/// the lock. A file that cannot be removed is in no other's way.
pub(crate) fn sweep(dir: &Path) {
    let is_left = |name: &str| {
        let is_upload = name.starts_with("upload-") && name.ends_with(".tmp");
        is_upload || [FILE_NAME, LOAD_DIR, warm::NEW_NAME].contains(&name)
    };
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let left = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_left));
    left.for_each(|entry| drop(remove(&entry.path())));
}

/// Whether a folder holds what a try that was cut short has left, or one that is under way.
pub(crate) fn is_unfinished(dir: &Path) -> bool {
    dir.join(FILE_NAME).exists() && !dir.join(superblock::FILE_NAME).exists()
}

/// Whether a database can be made in a folder: it is missing, empty but for the names in
/// `besides`, or holds what an earlier try has left.
///
/// # Errors
/// The folder cannot be read.
pub fn is_vacant(dir: &Path, besides: &[&str]) -> std::io::Result<bool> {
    let entries = match std::fs::read_dir(dir) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(true),
        other => other?,
    };
    let entries: Vec<_> = entries.collect::<std::io::Result<_>>()?;
    let names = || entries.iter().map(|entry| entry.file_name());
    if names().any(|name| name == superblock::FILE_NAME) {
        return Ok(false);
    }
    // The lock comes before anything else.
    let is_none =
        |name: std::ffi::OsString| name == lock::FILE_NAME || besides.iter().any(|own| name == *own);
    Ok(names().any(|name| name == FILE_NAME) || names().all(is_none))
}

/// Removes what an unfinished try has left, whose lock the caller has; answers what its list
/// said.
fn clear(dir: &Path) -> Result<Vec<Line>> {
    let list = dir.join(FILE_NAME);
    let lines = match std::fs::read(&list) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(StoreError::file(&list, "read what an earlier try has left"))?,
    };
    // A line that was cut is of a stripe that has no byte yet.
    let lines = lines.split(|b| *b == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
    let lines: Vec<Line> = lines.collect();
    for line in &lines {
        let (path, id) = match line {
            Line::Folder => continue,
            Line::Stripe(path) => (path, None),
            Line::Made(path, id) => (path, Some(*id)),
        };
        let Ok(found) = std::fs::symlink_metadata(path) else { continue };
        if found.is_file() && (found.len() == 0 || id == Some(FileId::of(&found))) {
            remove(path).map_err(left(path))?;
            let profile = crate::files::stripes::profile_path(dir, 0, path);
            remove(&profile).map_err(left(&profile))?;
        }
    }
    let entries = std::fs::read_dir(dir).map_err(left(dir))?;
    let entries: Vec<_> = entries.collect::<std::io::Result<_>>().map_err(left(dir))?;
    for entry in entries {
        if entry.file_name().to_str().is_some_and(is_own) {
            remove(&entry.path()).map_err(left(&entry.path()))?;
        }
    }
    remove(&list).map_err(left(&list))?;
    Ok(lines)
}

/// Refuses a folder that has files with names of a database's own and no list: they are of a
/// database whose super-block was lost, or foreign. Taking back would remove them.
fn refuse_foreign(dir: &Path) -> Result<()> {
    let entries = std::fs::read_dir(dir).map_err(StoreError::file(dir, "read the directory"))?;
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    match names.into_iter().find(|name| is_own(name)) {
        None => Ok(()),
        Some(name) => Err(StoreError::Config(format!(
            "{}: {name} is there, and no super-block: of a database that was damaged? Move it away, or name another directory",
            dir.display()
        ))),
    }
}

/// The error for what cannot be removed.
fn left(path: &Path) -> impl FnOnce(std::io::Error) -> StoreError + '_ {
    StoreError::file(path, "remove what an earlier try has left")
}

/// Names that a database gives to files in its folder, but for its stripe, the lock and the
/// list.
fn is_own(name: &str) -> bool {
    let number = |begin: &str, end: &str| name.strip_prefix(begin).and_then(|rest| rest.strip_suffix(end));
    let is_numbered = |text: Option<&str>| text.is_some_and(|text| text.parse::<u32>().is_ok());
    let own = [UNFINISHED_NAME, reserve::FILE_NAME, warm::FILE_NAME, warm::NEW_NAME, LOAD_DIR];
    let numbered = [number("journal-", ""), number("stripe-", ".profile.json")];
    own.contains(&name) || numbered.into_iter().any(is_numbered)
}

fn remove(path: &Path) -> std::io::Result<()> {
    let is_dir = std::fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    let removed = if is_dir { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    match removed {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Makes a folder for its owner alone, and those above it, durably.
pub(crate) fn make_dir(dir: &Path) -> Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    let missing: Vec<&Path> =
        dir.ancestors().take_while(|d| !d.as_os_str().is_empty() && !d.exists()).collect();
    let failed = || StoreError::file(dir, "make the directory");
    dir.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(failed())?;
    match DirBuilder::new().mode(PRIVATE_DIR).create(dir) {
        Err(e) if e.kind() == ErrorKind::AlreadyExists && dir.is_dir() => {}
        other => other.map_err(failed())?,
    }
    missing.into_iter().try_for_each(sync_parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_list_comes_back_and_a_cut_line_is_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let (db, own) = (dir.path().join("db"), dir.path().join("a stripe\nof two lines"));
        let making = Creation::begin(&db, std::slice::from_ref(&own)).unwrap();
        making.make_stripe(&own).unwrap();
        std::fs::write(&own, "pages").unwrap();
        std::fs::write(db.join("journal-0"), "records").unwrap();
        std::fs::write(db.join("letter"), "not its own").unwrap();
        // As if killed.
        let mut text = std::fs::read_to_string(db.join(FILE_NAME)).unwrap();
        std::mem::forget(making);
        text.truncate(text.len() - 2);
        std::fs::write(db.join(FILE_NAME), &text).unwrap();
        assert_eq!(clear(&db).unwrap(), [Line::Folder, Line::Stripe(own.clone())]);
        assert!(own.exists(), "the line that says it was made was cut, and it has bytes");
        assert_eq!(names(&db), ["letter", "lock"]);
    }

    #[test]
    fn a_stripe_is_known_by_its_inode() {
        let dir = tempfile::tempdir().unwrap();
        let (db, own) = (dir.path().join("db"), dir.path().join("stripe"));
        for is_foreign in [false, true] {
            let making = Creation::begin(&db, std::slice::from_ref(&own)).unwrap();
            making.make_stripe(&own).unwrap();
            std::fs::write(&own, "pages").unwrap();
            if is_foreign {
                std::fs::rename(&own, dir.path().join("moved")).unwrap();
                std::fs::write(&own, "a letter").unwrap();
            }
            drop(making);
            assert_eq!(own.exists(), is_foreign);
            assert!(!db.exists(), "it was made for this");
        }
    }

    /// A database that has lost its super-block does not lose its journal, too.
    #[test]
    fn files_without_a_list_are_left_alone() {
        for name in ["journal-0", "reserve", "warm", UNFINISHED_NAME] {
            let dir = tempfile::tempdir().unwrap();
            std::fs::write(dir.path().join(name), "bytes").unwrap();
            let error = Creation::begin(dir.path(), &[]).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
            assert_eq!(std::fs::read_to_string(dir.path().join(name)).unwrap(), "bytes");
        }
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("stripe-0"), "pages").unwrap();
        let stripe = dir.path().join("stripe-0");
        let making = Creation::begin(dir.path(), std::slice::from_ref(&stripe)).unwrap();
        assert!(making.make_stripe(&stripe).is_err());
        drop(making);
        assert_eq!(names(dir.path()), ["stripe-0"]);
    }
}
