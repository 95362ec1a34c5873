//! Reads a file, or a range of it. The open file is one version, whatever becomes of its name.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use rustix::fs::OFlags;

use crate::objects::bounds::wanted;
use crate::objects::folder::key::{KeyPath, end};
use crate::objects::folder::stamp::version;
use crate::objects::folder::{is_absent, kind_of};
use crate::objects::{Answer, ObjectErrorKind};
use crate::system::folder::Folder;

/// # Errors
/// The object is missing or shorter than the range; others of the file system.
pub(super) fn get(root: &Folder, key: &str, range: Option<&Range<u64>>) -> Result<Answer, ObjectErrorKind> {
    let path = KeyPath::new(key)?;
    let file = open(root, &path).map_err(kind_of)?.ok_or(ObjectErrorKind::Missing)?;
    let metadata = file.metadata().map_err(kind_of)?;
    let range = wanted(range, metadata.len())?;
    let mut bytes = vec![0; (range.end - range.start) as usize];
    file.read_exact_at(&mut bytes, range.start).map_err(kind_of)?;
    Ok(Answer::Got { bytes, object_bytes: metadata.len(), version: version(&metadata) })
}

/// The file with a key; `None`: there is none.
///
/// # Errors
/// Those of the system.
pub(super) fn open(root: &Folder, path: &KeyPath<'_>) -> io::Result<Option<File>> {
    // A pipe must not be waited for.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = path.open(root).and_then(|way| end(root, &way).open_file(path.file, flags));
    match opened {
        Ok(file) if file.metadata()?.is_file() => Ok(Some(file)),
        Ok(_) => Ok(None),
        Err(e) if is_absent(&e) => Ok(None),
        Err(e) => Err(e),
    }
}
