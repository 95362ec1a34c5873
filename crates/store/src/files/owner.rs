//! The database that a file outside of its folder belongs to: a stripe that the super-block names
//! by its path, a stripe or journal file that is a symbolic link in the folder.
//!
//! A copy of the folder names the same file: two databases, of which each takes the file for its
//! own, cuts it to the length that it knows, and writes over the other one's pages. So
//!
//! 1. a file that is written to is locked, as the super-block is;
//! 2. the file `STRIPE.of` beside it, where it really is, says in which folder its database is. A
//!    database in another folder is refused while there is one in the folder named, which has this
//!    file. When that is gone the folder was moved, or put back from a copy, and the note is
//!    written anew.
//!
//! Databases that only read write nothing, and see from the pages that these are not theirs.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use snowmelt_io::Access;

use crate::error::{Result, StoreError};
use crate::files::PRIVATE_FILE;
use crate::files::lock;
use crate::files::resolve;
use crate::settings::opener::Directory;
use crate::superblock::{FILE_NAME, SuperBlockFile};

/// A stripe outside of the folder, held for one database.
#[derive(Debug)]
pub(crate) struct OwnedStripe {
    _lock: Option<File>,
}

impl OwnedStripe {
    /// Takes the stripe `name` in `place` for the database in `dir`, which writes to it, or has
    /// just made it.
    ///
    /// # Errors
    /// Another process has it; it is another database's.
    pub fn take(dir: &Directory, place: &Directory, name: &Path, access: Access) -> Result<OwnedStripe> {
        let lock = lock::hold_stripe(place, name)?;
        let stripe = real(&place.join(name));
        let note = note_of(&stripe);
        let own = own_path(dir);
        let noted = std::fs::read(&note).ok().map(folder_of);
        if noted.as_ref() != Some(&own) {
            let is_new = matches!(access, Access::Create | Access::CreateNew);
            if let Some(owner) = noted.filter(|_| !is_new)
                && is_of_another(&owner, dir, &stripe)
            {
                return Err(StoreError::StripeOf { stripe, owner, copy: dir.path().to_path_buf() });
            }
            // Without a note a copy is not noticed; that is no reason not to open.
            if let Err(e) = write(&note, &own) {
                let note = note.display();
                snowmelt_io::notice(&format!("{note}: {e}; a copy of the database's folder is not noticed"));
            }
        }
        Ok(OwnedStripe { _lock: lock })
    }

    /// Takes the journal files of the database in `dir` that are links.
    ///
    /// # Errors
    /// As for a stripe.
    pub fn take_linked_journal(dir: &Directory) -> Result<Vec<OwnedStripe>> {
        let Ok(names) = dir.folder().and_then(|folder| folder.names()) else { return Ok(Vec::new()) };
        let is_journal = |name: &OsString| name.to_str().is_some_and(|name| name.starts_with("journal-"));
        let linked = names.into_iter().filter(|name| is_journal(name) && dir.join(name).is_symlink());
        linked.map(|name| OwnedStripe::take(dir, dir, Path::new(&name), Access::ReadWrite)).collect()
    }
}

/// The path of a file with no link in it.
fn real(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf())
}

/// Whether anything says that a stripe is that of a database in another folder: a lock that is
/// held, or the note.
pub(crate) fn is_claimed(dir: &Directory, stripe: &Path) -> bool {
    let name = stripe.file_name().map(Path::new);
    let place = Directory::open_parent(stripe, None).ok().zip(name);
    let is_held = place.is_some_and(|(place, name)| lock::hold_stripe(&place.0, name).is_err());
    let noted = std::fs::read(note_of(&real(stripe))).ok().map(folder_of);
    is_held || noted.is_some_and(|noted| noted != own_path(dir))
}

/// The path of a folder that a note names.
fn own_path(dir: &Directory) -> PathBuf {
    std::fs::canonicalize(dir.reachable()).unwrap_or_else(|_| dir.path().to_path_buf())
}

/// The file beside a stripe that says whose it is.
pub(crate) fn note_of(stripe: &Path) -> PathBuf {
    let mut name = stripe.as_os_str().to_os_string();
    name.push(".of");
    PathBuf::from(name)
}

fn folder_of(mut bytes: Vec<u8>) -> PathBuf {
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    PathBuf::from(OsString::from_vec(bytes))
}

/// A cut leaves the note before or the new one: it is written under another name first.
fn write(note: &Path, own: &Path) -> std::io::Result<()> {
    let mut new = note.as_os_str().to_os_string();
    new.push(".new");
    // A link may have the name.
    let _ = std::fs::remove_file(&new);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(PRIVATE_FILE).open(&new)?;
    file.write_all(own.as_os_str().as_bytes())?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    std::fs::rename(&new, note)
}

/// Whether there is a database in `owner`, another one than in `dir`, that has this file.
fn is_of_another(owner: &Path, dir: &Directory, file: &Path) -> bool {
    let Ok(there) = Directory::open(owner, None) else { return false };
    let id = |dir: &Directory| dir.folder().and_then(|folder| folder.id_of(Path::new(FILE_NAME)));
    let (there_id, here) = (id(&there).ok().flatten(), id(dir).ok().flatten());
    if there_id.is_none() || there_id == here {
        return false;
    }
    let links = there.folder().and_then(|folder| folder.names()).unwrap_or_default();
    let links = links.into_iter().map(|name| owner.join(name)).filter(|path| path.is_symlink());
    let block = SuperBlockFile::peek(owner);
    let named = block.into_iter().flat_map(|block| block.stripes).map(|named| resolve(owner, &named));
    links.chain(named).any(|path| real(&path) == *file)
}
