//! Keys as paths: which are allowed, and the folders on their way.
//!
//! A key is parts with `/` between them. It cannot lead out of the folder, since no part is empty,
//! `.` or `..`, and no link is followed.

use std::io;
use std::path::Path;

use crate::objects::ObjectErrorKind;
use crate::system::folder::Folder;

/// The store's own folder, for its lock and for puts that are being written.
pub(super) const OWN: &str = ".snowmelt";

/// Bytes of the longest key: as in other stores.
pub(super) const MOST_KEY_BYTES: usize = 1024;

/// A key that is allowed.
pub(super) struct KeyPath<'a> {
    /// Names of the folders on the way.
    folders: Vec<&'a str>,
    /// The name of the file.
    pub(super) file: &'a Path,
}

/// Folders from the root's child to that of a file; empty for a file in the root.
pub(super) type Way = Vec<Folder>;

impl KeyPath<'_> {
    /// # Errors
    /// [`ObjectErrorKind::Invalid`]: the key is empty or too long, has an empty part, `.` or `..`,
    /// or is the store's own.
    pub(super) fn new(key: &str) -> Result<KeyPath<'_>, ObjectErrorKind> {
        let is_bad = |part: &&str| matches!(*part, "" | "." | "..") || part.contains('\0');
        let mut parts: Vec<&str> = key.split('/').collect();
        if key.len() > MOST_KEY_BYTES || parts.iter().any(is_bad) || parts[0] == OWN {
            return Err(ObjectErrorKind::Invalid(format!("no file of a folder can have the key {key:?}")));
        }
        let file = Path::new(parts.pop().expect("what is split has a part"));
        Ok(KeyPath { folders: parts, file })
    }

    /// Opens the folders on the way.
    ///
    /// # Errors
    /// One is not there, or no folder; others of the system.
    pub(super) fn open(&self, root: &Folder) -> io::Result<Way> {
        self.way(root, |before, name| before.open_folder(name))
    }

    /// Opens the folders on the way, and makes those that are not there.
    ///
    /// # Errors
    /// One is no folder; others of the system.
    pub(super) fn make(&self, root: &Folder) -> io::Result<Way> {
        self.way(root, |before, name| match before.open_folder(name) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => before.make_folder(name),
            opened => opened,
        })
    }

    fn way(&self, root: &Folder, step: impl Fn(&Folder, &Path) -> io::Result<Folder>) -> io::Result<Way> {
        let mut way = Vec::with_capacity(self.folders.len());
        for name in &self.folders {
            way.push(step(end(root, &way), Path::new(name))?);
        }
        Ok(way)
    }

    /// Removes the folders on the way that are empty, as far as there are such.
    pub(super) fn tidy(&self, root: &Folder, way: &[Folder]) {
        for (i, name) in self.folders.iter().enumerate().rev() {
            let removed = rustix::fs::unlinkat(end(root, &way[..i]), *name, rustix::fs::AtFlags::REMOVEDIR);
            if removed.is_err() {
                break; // it is not empty
            }
        }
    }
}

/// The folder that a way leads to.
pub(super) fn end<'a>(root: &'a Folder, way: &'a [Folder]) -> &'a Folder {
    way.last().unwrap_or(root)
}
