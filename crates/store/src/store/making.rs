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
//! A try that was cut short leaves `making` and no `superblock`. The next one, which has the lock,
//! removes what that try has made and begins anew. In the folder it removes names of a database's
//! own, and the stripe that the list says was made. A stripe elsewhere is removed if it is the very
//! file noted, which takes a file system that tells times of birth. It is also removed if it has no
//! byte and nothing says that it is another database's, whose stripes are empty, too, at first.
//! Both happen only if the list still lies in the folder it was written in: in a copy of that
//! folder it speaks of the stripes of another database. Any other file at the name of a stripe is
//! foreign, and the try fails as it would have before; the list never names a stripe that was
//! there.
//!
//! The folder is opened once. A try whose folder was moved goes on and is undone where that is,
//! and never touches what was put at its old path.
//!
//! A block device is not noted: all on it is given up by asking for a new database there
//! (`--destroy`), this time and the next.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use snowmelt_io::Folder;

use crate::error::{Result, StoreError};
use crate::files::known::{LEARNED, NEW_LEARNED, PROFILE, learned_path, profile_path};
use crate::files::lock::{self, Lock};
use crate::files::owner::{self, note_of};
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
    /// The folder that the list is of.
    Of(FileId),
    /// The folder was made, too.
    Folder,
    /// A stripe will be made: by its name in the folder, or by its path elsewhere.
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
    fn from_metadata(file: &std::fs::Metadata) -> FileId {
        let born = file.created().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
        FileId { device: file.dev(), inode: file.ino(), born_ns: born.map(|at| at.as_nanos() as u64) }
    }

    /// True when nothing tells the other one from it.
    fn may_be(&self, other: &FileId) -> bool {
        let is_as_old = self.born_ns.zip(other.born_ns).is_none_or(|(own, other)| own == other);
        is_as_old && (self.device, self.inode) == (other.device, other.inode)
    }

    /// True when the other one is surely the same file.
    fn is_surely(&self, other: &FileId) -> bool {
        self.born_ns.is_some() && self == other
    }
}

/// The making of a database under way; dropped before [`Creation::finish`] it takes everything
/// back.
#[derive(Debug)]
pub(crate) struct Creation {
    dir: Arc<Directory>,
    note: File,
    has_made_folder: bool,
    is_finished: bool,
    /// Held until all is done or undone, after the store has let go of its own.
    lock: Arc<Lock>,
}

impl Creation {
    /// Begins in a folder, which is made where there is none: takes its lock, removes what an
    /// earlier try has left, and says which stripes will be made, as the super-block names them.
    ///
    /// # Errors
    /// There is a database, or one is being made, or files that may be of one.
    pub fn begin(path: &Path, stripes: &[PathBuf]) -> Result<Creation> {
        let was_there = path.exists();
        if path.join(superblock::FILE_NAME).exists() {
            return Err(StoreError::Exists { path: path.to_path_buf() });
        }
        make_dir(path)?;
        let dir = Directory::open(path, None)?;
        let lock = Arc::new(Lock::take(&dir)?);
        // One may have been finished just now.
        if has(&dir, superblock::FILE_NAME)? {
            return Err(StoreError::Exists { path: path.to_path_buf() });
        }
        let earlier = clear(&dir)?;
        refuse_foreign(&dir)?;
        let has_made_folder = !was_there || earlier.contains(&Line::Folder);
        let made = make_file(&dir, Path::new(FILE_NAME));
        let note = made.map_err(StoreError::file(&dir.join(FILE_NAME), "make the list of what is made"))?;
        let this = Creation { dir, note, has_made_folder, is_finished: false, lock };
        stripes.iter().filter(|named| !is_inside(named)).try_for_each(|named| refuse_taken(named))?;
        let of = Line::Of(id_of_folder(&this.dir)?);
        let folder = has_made_folder.then_some(Line::Folder);
        this.write([of].into_iter().chain(folder).chain(stripes.iter().cloned().map(Line::Stripe)))?;
        this.dir.sync()?;
        Ok(this)
    }

    /// Makes the file of a stripe, by the name that the super-block gives it.
    ///
    /// # Errors
    /// Something has its name.
    pub fn make_stripe(&self, named: &Path) -> Result<()> {
        let path = self.dir.join(named);
        let made = if is_inside(named) {
            make_file(&self.dir, named)
        } else {
            OpenOptions::new().write(true).create_new(true).mode(PRIVATE_FILE).open(&path)
        };
        let file = made.map_err(StoreError::file(&path, "create the stripe"))?;
        let id = file.metadata().map_err(StoreError::file(&path, "look at the stripe"))?;
        self.write([Line::Made(named.to_path_buf(), FileId::from_metadata(&id))])?;
        if is_inside(named) { self.dir.sync() } else { sync_parent(&path) }
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

    /// The folder, for the store.
    pub fn dir(&self) -> &Arc<Directory> {
        &self.dir
    }

    /// Gives the super-block its name: all that it refers to is durable.
    ///
    /// # Errors
    /// The folder does not take the name; the database is taken back when this is dropped.
    pub fn finish(&mut self) -> Result<()> {
        let path = self.dir.join(superblock::FILE_NAME);
        let folder = self.dir.folder().map_err(StoreError::file(&path, "open the directory"))?;
        let named = folder.rename(Path::new(UNFINISHED_NAME), Path::new(superblock::FILE_NAME));
        named.map_err(StoreError::file(&path, "give the super-block its name"))?;
        // From here on it may be one, whatever comes.
        self.is_finished = true;
        self.dir.sync()?;
        let _ = folder.remove(Path::new(FILE_NAME));
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
        let _ = self.dir.folder().and_then(|folder| folder.remove(Path::new(lock::FILE_NAME)));
        if self.has_made_folder && self.dir.is_at_its_path() {
            let _ = std::fs::remove_dir(self.dir.path());
        }
    }
}

/// Removes what a process that was killed has left in the folder of a database: the caller has
/// the lock. A file that cannot be removed is in no other's way.
pub(crate) fn sweep(dir: &Directory) {
    let is_left = |name: &str| {
        let is_upload = name.starts_with("upload-") && name.ends_with(".tmp");
        let is_new = [FILE_NAME, LOAD_DIR, warm::NEW_NAME].contains(&name) || name.ends_with(NEW_LEARNED);
        is_upload || is_new
    };
    let Ok(folder) = dir.folder() else { return };
    let names = folder.names().unwrap_or_default().into_iter();
    let left = names.filter(|name| name.to_str().is_some_and(is_left));
    left.for_each(|name| drop(folder.remove(Path::new(&name))));
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

/// Removes the leavings of an unfinished try, whose lock the caller has; returns the lines of its
/// list.
fn clear(dir: &Arc<Directory>) -> Result<Vec<Line>> {
    let list = dir.join(FILE_NAME);
    let mut text = Vec::new();
    let folder = dir.folder().map_err(left(dir.path()))?;
    match folder.open_file(Path::new(FILE_NAME), OFlags::RDONLY) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        opened => opened.and_then(|mut file| file.read_to_end(&mut text)).map_err(left(&list))?,
    };
    // A line that was cut is of a stripe that has no byte yet.
    let lines = text.split(|b| *b == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
    let lines: Vec<Line> = lines.collect();
    let own = id_of_folder(dir)?;
    let is_of_this = lines.iter().any(|line| matches!(line, Line::Of(id) if *id == own));
    for line in &lines {
        let (named, id) = match line {
            Line::Of(_) | Line::Folder => continue,
            Line::Stripe(named) => (named, None),
            Line::Made(named, id) => (named, Some(id)),
        };
        match is_inside(named) {
            true => clear_inside(folder, named, id.is_some()).map_err(left(&dir.join(named)))?,
            false if is_of_this => clear_elsewhere(dir, named, id)?,
            false => {}
        }
    }
    for name in folder.names().map_err(left(dir.path()))? {
        if name.to_str().is_some_and(is_own) {
            folder.remove(Path::new(&name)).map_err(left(&dir.join(&name)))?;
        }
    }
    folder.remove(Path::new(FILE_NAME)).map_err(left(&list))?;
    Ok(lines)
}

/// Removes a stripe of a name in the folder if it was made, or has no byte.
fn clear_inside(folder: &Folder, name: &Path, was_made: bool) -> std::io::Result<()> {
    let file = match folder.open_file(name, OFlags::RDONLY | OFlags::NOFOLLOW) {
        Ok(file) => file.metadata()?,
        Err(_) => return Ok(()),
    };
    if file.is_file() && (was_made || file.len() == 0) { folder.remove(name) } else { Ok(()) }
}

/// An error when there is something at the path of a stripe elsewhere. The list does not name it
/// then, and so nothing takes it for a stripe that was made.
fn refuse_taken(path: &Path) -> Result<()> {
    match std::fs::symlink_metadata(path) {
        Err(_) => Ok(()),
        Ok(_) => {
            let taken = std::io::Error::from_raw_os_error(rustix::io::Errno::EXIST.raw_os_error());
            Err(StoreError::file(path, "create the stripe")(taken))
        }
    }
}

/// Removes a stripe elsewhere if it is the one noted, or has no byte and may be.
fn clear_elsewhere(dir: &Directory, path: &Path, id: Option<&FileId>) -> Result<()> {
    let Ok(found) = std::fs::symlink_metadata(path) else { return Ok(()) };
    let is_noted = id.is_some_and(|id| id.is_surely(&FileId::from_metadata(&found)));
    let may_be = || {
        let is_unknown = id.is_none_or(|id| id.may_be(&FileId::from_metadata(&found)));
        found.len() == 0 && is_unknown && !owner::is_claimed(dir, path)
    };
    if found.is_file() && (is_noted || may_be()) {
        // Beside a stripe that is a file, whatever its number and database.
        let [profile, learned] = [profile_path, learned_path].map(|of| of(Path::new(""), 0, path));
        for path in [path, &profile, &learned, &note_of(path)] {
            match std::fs::remove_file(path) {
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                removed => removed.map_err(left(path))?,
            }
        }
    }
    Ok(())
}

/// Refuses a folder that has files with names of a database's own and no list: they are of a
/// database whose super-block was lost, or foreign. Taking back would remove them.
fn refuse_foreign(dir: &Directory) -> Result<()> {
    let names = dir.folder().and_then(Folder::names);
    let names = names.map_err(StoreError::file(dir.path(), "read the directory"))?;
    match names.iter().filter_map(|name| name.to_str()).find(|name| is_own(name)) {
        None => Ok(()),
        Some(name) => Err(StoreError::Config(format!(
            "{}: {name} is there, and no super-block: of a database that was damaged? Move it away, or name another directory",
            dir.path().display()
        ))),
    }
}

/// The error for what cannot be removed.
fn left(path: &Path) -> impl FnOnce(std::io::Error) -> StoreError + '_ {
    StoreError::file(path, "remove what an earlier try has left")
}

/// Whether a stripe that is named so is a file of the folder.
fn is_inside(named: &Path) -> bool {
    named.file_name() == Some(named.as_os_str())
}

fn has(dir: &Directory, name: &str) -> Result<bool> {
    let found = dir.folder().and_then(|folder| folder.has(Path::new(name)));
    found.map_err(StoreError::file(&dir.join(name), "look whether it is there"))
}

/// Makes a file in the folder where nothing has its name.
fn make_file(dir: &Directory, name: &Path) -> std::io::Result<File> {
    dir.folder()?.open_file(name, OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL)
}

fn id_of_folder(dir: &Directory) -> Result<FileId> {
    let found = dir.folder().and_then(|folder| folder.open_file(Path::new("."), OFlags::DIRECTORY));
    let found = found.and_then(|folder| folder.metadata());
    Ok(FileId::from_metadata(&found.map_err(StoreError::file(dir.path(), "look at the directory"))?))
}

/// Names that a database gives to files in its folder, but for its stripe, the lock and the
/// list.
fn is_own(name: &str) -> bool {
    let number = |begin: &str, end: &str| name.strip_prefix(begin).and_then(|rest| rest.strip_suffix(end));
    let is_numbered = |text: Option<&str>| text.is_some_and(|text| text.parse::<u32>().is_ok());
    let own = [UNFINISHED_NAME, reserve::FILE_NAME, warm::FILE_NAME, warm::NEW_NAME, LOAD_DIR];
    let numbered = [
        number("journal-", ""),
        number("stripe-", PROFILE),
        number("stripe-", LEARNED),
        number("stripe-", NEW_LEARNED),
    ];
    own.contains(&name) || numbered.into_iter().any(is_numbered)
}

/// Whether a stripe in the folder of its database cannot have this name.
pub(super) fn is_reserved(name: &str) -> bool {
    let others = [superblock::FILE_NAME, lock::FILE_NAME, FILE_NAME, "server", "control"];
    let is_beside = [PROFILE, LEARNED, NEW_LEARNED].iter().any(|end| name.ends_with(end));
    is_own(name) || others.contains(&name) || is_beside || name.starts_with("upload-")
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

    fn clear_at(path: &Path) -> Vec<Line> {
        clear(&Directory::open(path, None).unwrap()).unwrap()
    }

    #[test]
    fn a_list_comes_back_and_a_cut_line_is_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let (db, own) = (dir.path().join("db"), dir.path().join("a stripe\nof two lines"));
        let making = Creation::begin(&db, std::slice::from_ref(&own)).unwrap();
        let of = Line::Of(id_of_folder(making.dir()).unwrap());
        making.make_stripe(&own).unwrap();
        std::fs::write(&own, "pages").unwrap();
        std::fs::write(db.join("journal-0"), "records").unwrap();
        std::fs::write(db.join("letter"), "not its own").unwrap();
        // As if killed.
        let mut text = std::fs::read_to_string(db.join(FILE_NAME)).unwrap();
        std::mem::forget(making);
        text.truncate(text.len() - 2);
        std::fs::write(db.join(FILE_NAME), &text).unwrap();
        assert_eq!(clear_at(&db), [of, Line::Folder, Line::Stripe(own.clone())]);
        assert!(own.exists(), "the line that says it was made was cut, and it has bytes");
        assert_eq!(names(&db), ["letter", "lock"]);
    }

    /// A try in `db` that was killed, with a stripe inside and one elsewhere.
    fn killed(dir: &Path) -> (PathBuf, PathBuf) {
        let (db, far) = (dir.join("db"), dir.join("far"));
        let making = Creation::begin(&db, &["stripe-0".into(), far.clone()]).unwrap();
        for (named, path) in [(Path::new("stripe-0"), db.join("stripe-0")), (&far, far.clone())] {
            making.make_stripe(named).unwrap();
            std::fs::write(path, "pages").unwrap();
        }
        std::fs::write(db.join(UNFINISHED_NAME), "state").unwrap();
        // A killed process lets go of its lock, too.
        std::fs::remove_file(db.join("lock")).unwrap();
        std::mem::forget(making);
        (db, far)
    }

    fn copy(from: &Path, to: &Path) {
        std::fs::create_dir(to).unwrap();
        for name in names(from) {
            std::fs::copy(from.join(&name), to.join(&name)).unwrap();
        }
    }

    /// The list of a copied folder names the stripes of the database that was copied.
    #[test]
    fn a_copy_of_what_was_not_finished_touches_nothing_of_the_original() {
        let dir = tempfile::tempdir().unwrap();
        let (db, far) = killed(dir.path());
        let copied = dir.path().join("copied");
        copy(&db, &copied);
        let before = names(&db);
        assert_eq!(clear_at(&copied).len(), 6);
        assert_eq!(names(&copied), [] as [&str; 0], "the copy can be made");
        assert_eq!(names(&db), before, "the original is as it was");
        assert!(far.exists(), "as is its stripe");
    }

    /// Leavings are found wherever their folder is by then.
    #[test]
    fn what_was_not_finished_is_taken_away_where_it_was_moved_to() {
        let dir = tempfile::tempdir().unwrap();
        let (db, far) = killed(dir.path());
        let moved = dir.path().join("moved");
        std::fs::rename(&db, &moved).unwrap();
        clear_at(&moved);
        assert_eq!(names(&moved), [] as [&str; 0]);
        assert!(!far.exists());
    }

    /// A try is undone, or finished, where its folder went; another one at its old path is not
    /// touched.
    #[test]
    fn a_try_whose_folder_is_moved_leaves_its_old_path_alone() {
        for is_finished in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let (db, moved) = (dir.path().join("db"), dir.path().join("moved"));
            let begin = |what: &str| {
                let making = Creation::begin(&db, &["stripe-0".into()]).unwrap();
                making.make_stripe(Path::new("stripe-0")).unwrap();
                std::fs::write(db.join(UNFINISHED_NAME), what).unwrap();
                making
            };
            let mut first = begin("first");
            std::fs::rename(&db, &moved).unwrap();
            let second = begin("second");
            let before = names(&db);
            if is_finished {
                first.finish().unwrap();
                assert_eq!(names(&moved), ["lock", "stripe-0", "superblock"]);
            }
            drop(first);
            assert_eq!(names(&db), before, "finished: {is_finished}");
            assert_eq!(names(&moved).is_empty(), !is_finished);
            drop(second);
            assert!(!db.exists());
        }
    }

    /// A stripe of a database without data has no byte. A try that names it, too, fails, whether
    /// it is there before the try begins, appears while that goes on, or after it was killed.
    #[test]
    fn an_empty_stripe_of_another_database_is_left_alone() {
        use crate::settings::config::StoreConfig;
        use crate::store::Store;
        for (when, is_open) in [0, 1, 2].into_iter().flat_map(|when| [(when, false), (when, true)]) {
            let dir = tempfile::tempdir().unwrap();
            let (db, stripe) = (dir.path().join("db"), dir.path().join("stripe"));
            let make_other = || {
                let config = StoreConfig { memory_bytes: 16 << 20, ..StoreConfig::default() };
                let other = Store::create(&dir.path().join("other"), std::slice::from_ref(&stripe), config);
                Some(other.unwrap()).filter(|_| is_open)
            };
            let begin = || Creation::begin(&db, std::slice::from_ref(&stripe));
            let _other = match when {
                0 => {
                    let other = make_other();
                    assert!(begin().is_err());
                    other
                }
                1 => {
                    let making = begin().unwrap();
                    let other = make_other();
                    assert!(making.make_stripe(&stripe).is_err());
                    other
                }
                _ => {
                    let killed = begin().unwrap();
                    std::fs::remove_file(db.join("lock")).unwrap();
                    std::mem::forget(killed);
                    let other = make_other();
                    assert!(begin().is_err());
                    other
                }
            };
            let case = format!("{when}, open: {is_open}");
            assert_eq!(std::fs::metadata(&stripe).map(|file| file.len()).ok(), Some(0), "{case}");
            assert!(note_of(&stripe).exists() && !db.exists(), "{case}");
        }
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
        assert!(Creation::begin(dir.path(), std::slice::from_ref(&stripe)).is_err());
        assert_eq!(names(dir.path()), ["stripe-0"]);
    }
}
