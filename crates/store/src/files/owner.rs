//! The database that a stripe outside of its folder belongs to.
//!
//! A super-block names such a stripe by its path, and so does that of a copy of the folder: two
//! databases, of which each takes the stripe for its own, cuts it to the length that it knows,
//! and writes over the other one's pages. So
//!
//! 1. a stripe that is written to is locked, as the super-block is;
//! 2. the file `STRIPE.of` beside it says in which folder its database is. A database in another
//!    folder is refused while the one that is named there has the same identity and this stripe.
//!    When that is gone the folder was moved, or put back from a copy, and the note is
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
use crate::files::stripes::resolve;
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
        let (stripe, note) = (place.join(name), note_of(&place.join(name)));
        let own = std::fs::canonicalize(dir.reachable()).unwrap_or_else(|_| dir.path().to_path_buf());
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

/// The same name for all of it: what a cut leaves is the note before or the new one.
fn write(note: &Path, own: &Path) -> std::io::Result<()> {
    let mut new = note.as_os_str().to_os_string();
    new.push(".new");
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(PRIVATE_FILE).open(&new)?;
    file.write_all(own.as_os_str().as_bytes())?;
    file.write_all(b"\n")?;
    std::fs::rename(&new, note)
}

/// Whether there is a database in `owner`, another one than in `dir`, that has this stripe.
fn is_of_another(owner: &Path, dir: &Directory, stripe: &Path) -> bool {
    let Ok(there) = Directory::open(owner, None) else { return false };
    let id = |dir: &Directory| dir.folder().and_then(|folder| folder.id_of(Path::new(FILE_NAME)));
    let (there, here) = (id(&there).ok().flatten(), id(dir).ok().flatten());
    let Some(there) = there else { return false };
    let block = SuperBlockFile::peek(owner);
    let is_named = |named: &PathBuf| resolve(owner, named) == stripe;
    Some(there) != here && block.is_ok_and(|block| block.stripes.iter().any(is_named))
}
