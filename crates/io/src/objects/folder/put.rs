//! Puts and deletes: all that changes a folder, one at a time under its lock.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rustix::fs::{AtFlags, OFlags};
use rustix::io::Errno;

use crate::objects::folder::get::open;
use crate::objects::folder::key::{KeyPath, OWN, end};
use crate::objects::folder::stamp::{FolderLock, version};
use crate::objects::folder::{is_absent, kind_of};
use crate::objects::{ObjectErrorKind, PutIf, Version};
use crate::system::folder::Folder;

/// A file that is being written for longer was left by a process that is no more.
const LEFT: Duration = Duration::from_secs(24 * 3600);

/// Beginning of the names of files that are being written.
const WRITING: &str = "put-";

/// # Errors
/// The condition does not hold, or the key cannot be one of a folder; others of the file system.
pub(super) fn put(
    root: &Folder,
    is_swept: &AtomicBool,
    key: &str,
    bytes: &[u8],
    only: &PutIf,
) -> Result<Version, ObjectErrorKind> {
    let path = KeyPath::new(key)?;
    let own = own(root).map_err(kind_of)?;
    if !is_swept.swap(true, Ordering::Relaxed) {
        sweep(&own).map_err(kind_of)?;
    }
    let (name, file) = temporary(&own).map_err(kind_of)?;
    let put = write(&own, file, bytes).map_err(kind_of).and_then(|file| {
        take_place(root, &own, &name, &path, only)?;
        file.metadata().map(|it| version(&it)).map_err(kind_of)
    });
    if put.is_err() {
        let _ = own.remove(&name); // it is swept later otherwise; the cause is told
    }
    put
}

/// # Errors
/// The key cannot be one of a folder; others of the file system.
pub(super) fn delete(root: &Folder, key: &str) -> Result<(), ObjectErrorKind> {
    let path = KeyPath::new(key)?;
    if open(root, &path).map_err(kind_of)?.is_none() {
        return Ok(());
    }
    let own = own(root).map_err(kind_of)?;
    let _lock = FolderLock::take(&own).map_err(kind_of)?;
    let way = match path.open(root) {
        Err(e) if is_absent(&e) => return Ok(()), // another one deleted it meanwhile
        way => way.map_err(kind_of)?,
    };
    match rustix::fs::unlinkat(end(root, &way), path.file, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(e) => return Err(kind_of(e.into())),
    }
    end(root, &way).sync().map_err(kind_of)?;
    path.tidy(root, &way);
    Ok(())
}

/// The store's own folder, made where it is not there yet.
fn own(root: &Folder) -> io::Result<Folder> {
    let name = Path::new(OWN);
    match root.open_folder(name) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => match root.make_folder(name) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => root.open_folder(name),
            made => made,
        },
        opened => opened,
    }
}

/// A new file with a name that no other has.
fn temporary(own: &Folder) -> io::Result<(PathBuf, File)> {
    static PUTS: AtomicU64 = AtomicU64::new(0);
    loop {
        // Processes in containers may have the same number: then the next name is tried.
        let n = PUTS.fetch_add(1, Ordering::Relaxed);
        let name = PathBuf::from(format!("{WRITING}{}-{n}", std::process::id()));
        match own.open_file(&name, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|file| (name, file)),
        }
    }
}

/// Writes a file and makes it durable, with a time that makes its version.
fn write(own: &Folder, mut file: File, bytes: &[u8]) -> io::Result<File> {
    file.write_all(bytes)?;
    FolderLock::take(own)?.stamp(&file)?;
    file.sync_all()?;
    Ok(file)
}

/// Gives the file `name` its key if the condition holds, durably.
fn take_place(
    root: &Folder,
    own: &Folder,
    name: &Path,
    path: &KeyPath<'_>,
    only: &PutIf,
) -> Result<(), ObjectErrorKind> {
    let lock = FolderLock::take(own).map_err(kind_of)?;
    if *only != PutIf::Always {
        let there = open(root, path).and_then(|file| file.map(|f| f.metadata()).transpose());
        let before = there.map_err(kind_of)?.map(|it| version(&it));
        let holds = match only {
            PutIf::Is(version) => before.as_ref() == Some(version),
            _ => before.is_none(),
        };
        if !holds {
            return Err(ObjectErrorKind::Changed);
        }
    }
    let way = path.make(root).map_err(|e| in_the_way(e, path))?;
    own.move_to(name, end(root, &way), path.file).map_err(|e| in_the_way(e, path))?;
    drop(lock);
    // All of them: one that was there may have been made by a process that was killed.
    way.iter().rev().chain([root]).try_for_each(Folder::sync).map_err(kind_of)
}

/// The error of a file where a folder should be, or the other way round.
fn in_the_way(error: io::Error, path: &KeyPath<'_>) -> ObjectErrorKind {
    match Errno::from_io_error(&error) {
        Some(Errno::NOTDIR | Errno::ISDIR | Errno::LOOP | Errno::EXIST | Errno::NOTEMPTY) => {
            let file = path.file.display();
            ObjectErrorKind::Unsupported(format!("a file and a folder would have one name, for {file:?}"))
        }
        _ => kind_of(error),
    }
}

/// Removes files that killed processes left.
fn sweep(own: &Folder) -> io::Result<()> {
    for name in own.names()? {
        if !name.as_encoded_bytes().starts_with(WRITING.as_bytes()) {
            continue;
        }
        let path = Path::new(&name);
        let Ok(file) = own.open_file(path, OFlags::RDONLY | OFlags::NOFOLLOW) else { continue };
        let age = file.metadata()?.modified()?.elapsed().unwrap_or_default();
        if age > LEFT {
            own.remove(path)?;
        }
    }
    Ok(())
}
