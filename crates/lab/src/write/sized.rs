//! The files of a ladder: one that is there, or some of several sizes to be made.
//!
//! Files are made whole, all bytes written, as long as the disk has room for them and for what the
//! rungs write. One that is larger is made sparse: its length is as asked, and only the places that
//! a rung writes take room. Then finding that room is part of what is measured.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

use crate::target::{Target, data_file};
use crate::undo::Undo;
use crate::{LabError, room, size};

/// A file or device that rungs write to.
#[derive(Debug)]
pub struct SizedTarget {
    /// As it is measured.
    pub target: Target,
    /// Its size, where that tells rungs apart.
    pub size: Option<u64>,
    /// Emptied before each rung.
    pub sparse: bool,
}

impl SizedTarget {
    /// Refuses to write `bytes` into the holes of a file that was there where they find no room:
    /// one that is mapped would end by a signal.
    ///
    /// # Errors
    /// There is no room.
    pub fn check_holes(&self, bytes: u64) -> Result<(), LabError> {
        let path = &self.target.path;
        if self.sparse || !path.is_file() {
            return Ok(()); // there was room for it when it was made, or a device has no holes
        }
        let holes = self.target.len.saturating_sub(room::bytes_of(path));
        room::check_more(path, bytes.min(holes), "make less of --writes, or name a file without holes")
    }

    /// Takes out of a sparse file what the rung before has written.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn empty(&self) -> Result<(), LabError> {
        let path = &self.target.path;
        let file = OpenOptions::new().write(true).open(path).map_err(|e| LabError::file("open", path, e))?;
        data_file::make_holes(&file, path, self.target.len)
    }
}

/// A file to be made.
#[derive(Debug, PartialEq, Eq)]
struct ToMake {
    bytes: u64,
    sparse: bool,
}

/// Decides for each size (ascending) whether its file is whole, and refuses what finds no room in
/// either way. A rung writes up to `rung_bytes`.
fn decide(sizes: &[u64], all_sparse: bool, room: u64, rung_bytes: u64) -> Result<Vec<ToMake>, u64> {
    let mut needed = 0;
    let sparse_takes = |bytes: u64| rung_bytes.min(bytes);
    // Those that come after must find room for their rungs at least.
    let mut rest: u64 = sizes.iter().map(|bytes| sparse_takes(*bytes)).sum();
    let mut files = Vec::new();
    for bytes in sizes {
        rest -= sparse_takes(*bytes);
        let sparse = all_sparse || needed + bytes + rest > room;
        needed += if sparse { sparse_takes(*bytes) } else { *bytes };
        files.push(ToMake { bytes: *bytes, sparse });
    }
    if needed > room { Err(needed) } else { Ok(files) }
}

/// Makes a file of each size, removed at the end. Several have their sizes behind the name.
///
/// # Errors
/// A file is there already, or there is no room.
pub fn make(
    path: &Path,
    sizes: &[u64],
    all_sparse: bool,
    rung_bytes: u64,
    seed: u64,
    undo: &Undo,
) -> Result<Vec<SizedTarget>, LabError> {
    let mut sizes = sizes.to_vec();
    sizes.sort_unstable();
    sizes.dedup();
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let free = room::bytes_free(folder)?.unwrap_or(u64::MAX);
    let room = free.saturating_sub(room::RESERVE);
    let files = decide(&sizes, all_sparse, room, rung_bytes)
        .map_err(|needed| room::too_little(path, needed, free, "make less of --size or --writes"))?;
    let several = files.len() > 1;
    let make = |file: &ToMake| {
        let path = match several {
            true => PathBuf::from(format!("{}-{}", path.display(), size::exact(file.bytes))),
            false => path.to_path_buf(),
        };
        match file.sparse {
            true => data_file::make_sparse(&path, file.bytes, undo)?,
            false => data_file::make(&path, file.bytes, seed, undo)?,
        }
        let target = Target::look(&path)?;
        let size = (several || file.sparse).then_some(file.bytes);
        Ok(SizedTarget { target, size, sparse: file.sparse })
    };
    files.iter().map(make).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn a_file_beyond_the_room_is_sparse_and_the_others_are_whole() {
        let sparse = |sizes: &[u64], all: bool, room: u64| {
            let files = decide(sizes, all, room, GIB / 10)?;
            Ok(files.iter().map(|file| file.sparse).collect::<Vec<_>>())
        };
        assert_eq!(sparse(&[GIB, 8 * GIB, 45 * GIB], false, 100 * GIB), Ok(vec![false, false, false]));
        assert_eq!(sparse(&[GIB, 8 * GIB, 45 * GIB], false, 20 * GIB), Ok(vec![false, false, true]));
        assert_eq!(sparse(&[GIB, 8 * GIB, 45 * GIB], true, 100 * GIB), Ok(vec![true, true, true]));
        // Of nine, one and eight would fit, but the third could write nothing then.
        assert_eq!(sparse(&[GIB, 8 * GIB, 45 * GIB], false, 9 * GIB), Ok(vec![false, true, true]));
        assert_eq!(sparse(&[45 * GIB], false, GIB / 20), Err(GIB / 10));
    }
}
