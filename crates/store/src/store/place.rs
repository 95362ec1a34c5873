//! Another name for a database that is closed, and its end. Both are done under the lock, so
//! that it is not opened meanwhile; each is one rename, durable when it returns.

use std::path::{Path, PathBuf};

use crate::error::{Result, StoreError};
use crate::files::lock::Lock;
use crate::files::resolve;
use crate::files::stripes::sync_parent;
use crate::settings::opener::Directory;
use crate::store::Store;
use crate::store::making;
use crate::superblock::SuperBlockFile;

/// Begin and end of the name that a database has while it is removed.
const DROPPED: (&str, &str) = (".", ".dropped");

/// Gives the folder of a database another name beside it.
///
/// # Errors
/// There is none; it is open; something has the name.
pub fn rename_database(dir: &Path, to: &Path) -> Result<()> {
    let _lock = lock_closed(dir)?;
    let is_free = making::is_vacant(to, &[]).map_err(StoreError::file(to, "look at it"))?;
    if !is_free {
        return Err(StoreError::Exists { path: to.to_path_buf() });
    }
    remove_leavings(to)?;
    std::fs::rename(dir, to).map_err(StoreError::file(dir, "rename the database"))?;
    sync_parent(to)
}

/// Removes a database and its files. First it gets a name that no database has: a process that
/// is killed leaves the whole database, or what [`remove_dropped`] removes.
///
/// # Errors
/// There is none; it is open; it has stripes elsewhere.
pub fn remove_database(dir: &Path) -> Result<()> {
    let lock = lock_closed(dir)?;
    if let Some(stripe) = stripe_elsewhere(dir)? {
        let why = format!("{}: it has data elsewhere ({})", dir.display(), stripe.display());
        return Err(StoreError::Config(why));
    }
    let name = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let gone = dir.with_file_name(format!("{}{name}{}", DROPPED.0, DROPPED.1));
    remove_one_dropped(&gone)?;
    std::fs::rename(dir, &gone).map_err(StoreError::file(dir, "rename the database to remove it"))?;
    sync_parent(&gone)?;
    let removed = std::fs::remove_dir_all(&gone).map_err(StoreError::file(&gone, "remove the database"));
    drop(lock);
    removed
}

/// Removes what is left in a folder of databases that were being removed when their process was
/// killed.
///
/// # Errors
/// The folder cannot be read, or what is left not be removed.
pub fn remove_dropped(folder: &Path) -> Result<()> {
    let failed = || StoreError::file(folder, "look for databases that are to be removed");
    for entry in std::fs::read_dir(folder).map_err(failed())? {
        let entry = entry.map_err(failed())?;
        let name = entry.file_name();
        let is_dropped = name.to_str().and_then(|name| name.strip_prefix(DROPPED.0)?.strip_suffix(DROPPED.1));
        if is_dropped.is_some_and(|name| !name.is_empty()) {
            remove_one_dropped(&entry.path())?;
        }
    }
    Ok(())
}

/// The first stripe that is not in the folder of its database.
///
/// # Errors
/// The super-block cannot be read.
pub fn stripe_elsewhere(dir: &Path) -> Result<Option<PathBuf>> {
    let stripes = SuperBlockFile::peek(dir)?.stripes;
    let mut stripes = stripes.iter().map(|stripe| resolve(dir, stripe));
    Ok(stripes.find(|stripe| !lies_in(dir, stripe)))
}

/// Whether a file is in a folder, with links and `..` on its way or not, and is no link. One that
/// is missing is where its folder is.
fn lies_in(dir: &Path, file: &Path) -> bool {
    let there = file.parent().unwrap_or(dir).canonicalize();
    !file.is_symlink() && there.is_ok_and(|there| dir.canonicalize().is_ok_and(|dir| there.starts_with(dir)))
}

/// Removes a folder that was going to be removed, unless another process is at it.
fn remove_one_dropped(gone: &Path) -> Result<()> {
    if !gone.is_dir() {
        return Ok(());
    }
    let _lock = match Directory::open(gone, None).and_then(|gone| Lock::take(&gone)) {
        Err(StoreError::Locked { .. }) => return Ok(()),
        other => other?,
    };
    match std::fs::remove_dir_all(gone) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(StoreError::file(gone, "remove what was left of a database")),
    }
}

/// Empties a folder in which a database could be made.
fn remove_leavings(dir: &Path) -> Result<()> {
    if dir.is_dir() { making::Creation::begin(dir, &[]).map(drop) } else { Ok(()) }
}

/// The lock of a database that is open nowhere.
fn lock_closed(dir: &Path) -> Result<Lock> {
    if !Store::is_at(dir) {
        return Err(StoreError::NotADatabase {
            path: dir.to_path_buf(),
            why: "it has no super-block".into(),
        });
    }
    Lock::take(&*Directory::open(dir, None)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_lies_where_its_way_leads() {
        let dir = tempfile::tempdir().unwrap();
        let (db, link) = (dir.path().join("db"), dir.path().join("link"));
        std::fs::create_dir_all(db.join("sub")).unwrap();
        std::os::unix::fs::symlink(&db, &link).unwrap();
        std::fs::write(dir.path().join("far"), "").unwrap();
        std::os::unix::fs::symlink(dir.path().join("far"), db.join("linked")).unwrap();
        for inside in ["stripe-0", "sub/stripe", "sub/../stripe", "../db/stripe", "../link/sub/stripe"] {
            assert!(lies_in(&db, &db.join(inside)) && lies_in(&link, &db.join(inside)), "{inside}");
        }
        for outside in ["../far", "sub/../../far", "linked", "../none/stripe", "../db2/stripe"] {
            assert!(!lies_in(&db, &db.join(outside)), "{outside}");
        }
    }
}
