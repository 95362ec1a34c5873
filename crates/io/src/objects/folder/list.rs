//! Lists keys in their order, of which only as much is read as can hold the keys asked for.
//!
//! A folder is visited as the name with `/` behind it, which is where its keys have their place
//! among those of the files beside it (`a-b`, `a/b`, `a0`).

use std::io;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, OFlags};

use crate::objects::folder::key::{MOST_KEY_BYTES, OWN};
use crate::objects::folder::stamp::time_ms;
use crate::objects::folder::{is_absent, kind_of};
use crate::objects::{Listed, ObjectErrorKind};
use crate::system::folder::Folder;

/// A list that is being made.
struct List<'a> {
    prefix: &'a str,
    after: Option<&'a str>,
    most: usize,
    found: Vec<Listed>,
}

/// # Errors
/// Those of the file system.
pub(super) fn list(
    root: &Folder,
    prefix: &str,
    after: Option<&str>,
    most: usize,
) -> Result<Vec<Listed>, ObjectErrorKind> {
    let mut list = List { prefix, after, most, found: Vec::new() };
    list.visit(root, "").map_err(kind_of)?;
    Ok(list.found)
}

impl List<'_> {
    /// Adds the keys below a folder whose own begins all of them.
    fn visit(&mut self, folder: &Folder, own: &str) -> io::Result<()> {
        for name in sorted(folder)? {
            if self.found.len() >= self.most {
                break;
            }
            let key = format!("{own}{name}");
            match name.strip_suffix('/') {
                Some(_) if !self.may_begin(&key) => {}
                Some(name) => {
                    let inside = folder.open_folder(Path::new(name));
                    match inside.and_then(|inside| self.visit(&inside, &key)) {
                        Err(e) if is_absent(&e) => {} // it was removed meanwhile
                        visited => visited?,
                    }
                }
                None if !self.takes(&key) => {}
                None => self.found.extend(listed(folder, &name, key)?),
            }
        }
        Ok(())
    }

    /// Whether keys that begin so may be among those asked for.
    fn may_begin(&self, key: &str) -> bool {
        let is_before = self.after.is_some_and(|after| key < after && !after.starts_with(key));
        let fits = key.starts_with(self.prefix) || self.prefix.starts_with(key);
        fits && !is_before && key.len() < MOST_KEY_BYTES && !is_own(key)
    }

    fn takes(&self, key: &str) -> bool {
        key.starts_with(self.prefix)
            && self.after.is_none_or(|after| key > after)
            && key.len() <= MOST_KEY_BYTES
            && key != OWN
    }
}

fn is_own(folder: &str) -> bool {
    folder.strip_suffix('/') == Some(OWN)
}

/// Names of the files and folders in a folder, in the order of their keys.
fn sorted(folder: &Folder) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().to_str() else { continue }; // no key is written so
        if matches!(name, "." | "..") {
            continue;
        }
        let mut kind = entry.file_type();
        if kind == FileType::Unknown {
            match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(it) => kind = FileType::from_raw_mode(it.st_mode),
                Err(_) => continue, // it was removed meanwhile
            }
        }
        match kind {
            FileType::Directory => names.push(format!("{name}/")),
            FileType::RegularFile => names.push(name.to_owned()),
            _ => {}
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// A file in a list; `None`: it was removed meanwhile.
fn listed(folder: &Folder, name: &str, key: String) -> io::Result<Option<Listed>> {
    // Opened without reading, so that files that others may not read are listed, too.
    match folder.open_file(Path::new(name), OFlags::PATH | OFlags::NOFOLLOW) {
        Err(e) if is_absent(&e) => Ok(None),
        file => {
            let it = file?.metadata()?;
            Ok(Some(Listed { key: key.into(), bytes: it.len(), written_unix_ms: time_ms(&it) }))
        }
    }
}
