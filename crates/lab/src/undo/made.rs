//! The file or folder that a step has made, told from every other one: by the time the step is
//! undone its name may be another's.
//!
//! | at the place | undone |
//! |---|---|
//! | nothing | gone |
//! | what the step has made | taken back |
//! | another file or folder | left alone |
//! | perhaps what it has made: no time of birth, and the command was killed | while nothing is in it |
//! | something, and the command was killed before it noted what it made | while nothing is in it |

use std::fs::{FileType, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::outcome::Outcome;
use super::socket::is_listened_to;

/// A file or folder, whatever its name. The time of birth, where the file system tells it, tells an
/// inode from the one that had its number before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MadeId {
    /// Numbers of devices are given anew by each boot.
    device: Option<u64>,
    inode: u64,
    born_ns: Option<u64>,
    /// The time of birth has to tell: its maker is gone, and the number may be another's since.
    #[serde(skip)]
    by_birth: bool,
}

/// Whether something is what a step has made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Identity {
    Made,
    Another,
    /// The file system keeps no time of birth.
    Unknown,
}

impl MadeId {
    /// Of what is at a path, links not followed.
    ///
    /// # Errors
    /// Nothing is there, or it cannot be looked at.
    pub(super) fn at(path: &Path) -> io::Result<MadeId> {
        std::fs::symlink_metadata(path).map(|meta| MadeId::of(&meta))
    }

    fn of(meta: &Metadata) -> MadeId {
        let born = meta.created().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
        MadeId {
            device: Some(meta.dev()),
            inode: meta.ino(),
            born_ns: born.map(|since| since.as_nanos() as u64),
            by_birth: false,
        }
    }

    /// As it can be compared after another boot.
    pub(super) fn of_another_boot(self) -> MadeId {
        MadeId { device: None, by_birth: true, ..self }
    }

    /// As it can be compared when its maker is gone.
    pub(super) fn of_the_gone(self) -> MadeId {
        MadeId { by_birth: true, ..self }
    }

    fn compare(&self, other: &MadeId) -> Identity {
        let devices = self.device.zip(other.device).map(|(own, other)| own == other);
        let births = self.born_ns.zip(other.born_ns).map(|(own, other)| own == other);
        if self.inode != other.inode || [devices, births].contains(&Some(false)) {
            return Identity::Another;
        }
        // An inode number alone is no proof.
        let proof = if self.by_birth { births } else { births.or(devices) };
        if proof.is_some() { Identity::Made } else { Identity::Unknown }
    }
}

/// Takes back what a step has made at `path`, by `take_back`, if it is that still.
///
/// # Errors
/// It cannot be looked at, or not be taken back.
pub(super) fn take_back_made(
    path: &Path,
    made: Option<&MadeId>,
    take_back: impl FnOnce() -> io::Result<Outcome>,
) -> io::Result<Outcome> {
    let meta = match std::fs::symlink_metadata(path) {
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Outcome::Gone);
        }
        other => other?,
    };
    match made {
        None => remove_bare(path, meta.file_type(), meta.len()),
        Some(made) => match made.compare(&MadeId::of(&meta)) {
            Identity::Made => take_back(),
            Identity::Another => Ok(Outcome::Another),
            Identity::Unknown => match remove_bare(path, meta.file_type(), meta.len())? {
                Outcome::Another => Ok(Outcome::Unknown),
                taken => Ok(taken),
            },
        },
    }
}

/// Removes what has nothing in it, as it was just after it was made. A socket has its process in
/// it: the next one of that name.
fn remove_bare(path: &Path, kind: FileType, len: u64) -> io::Result<Outcome> {
    let removed = if kind.is_dir() {
        std::fs::remove_dir(path)
    } else if kind.is_fifo() || is_left_socket(path, kind) || (kind.is_file() && len == 0) {
        std::fs::remove_file(path)
    } else {
        return Ok(Outcome::Another);
    };
    match removed {
        Ok(()) => Ok(Outcome::Undone),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Outcome::Gone),
        Err(e) if matches!(e.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::ResourceBusy) => {
            Ok(Outcome::Another)
        }
        Err(e) => Err(e),
    }
}

fn is_left_socket(path: &Path, kind: FileType) -> bool {
    kind.is_socket() && is_listened_to(path).is_ok_and(|has_process| !has_process)
}

/// The path of a name in its real folder: it leads there from any folder, and after a link on the
/// way was changed. The name itself is not followed: it may be a link that was made, or be served
/// by a process that does not answer.
pub(super) fn real_place(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let real = match (absolute.parent(), absolute.file_name()) {
        (Some(folder), Some(name)) => std::fs::canonicalize(folder).map(|folder| folder.join(name)),
        _ => std::fs::canonicalize(&absolute),
    };
    real.unwrap_or(absolute)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    fn remove(path: &Path, made: Option<&MadeId>) -> Outcome {
        take_back_made(path, made, || std::fs::remove_file(path).map(|()| Outcome::Undone)).unwrap()
    }

    #[test]
    fn another_file_of_the_name_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "made").unwrap();
        let made = MadeId::at(&path).unwrap();
        // The other one is there before the first goes, so that it cannot have its inode.
        std::fs::write(dir.path().join("new"), "another's").unwrap();
        std::fs::rename(dir.path().join("new"), &path).unwrap();
        assert_eq!(remove(&path, Some(&made)), Outcome::Another);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "another's");
        let own = MadeId::at(&path).unwrap();
        assert_eq!(remove(&path, Some(&own)), Outcome::Undone);
        assert_eq!(remove(&path, Some(&own)), Outcome::Gone);
        assert_eq!(remove(&path.join("below"), None), Outcome::Gone);
    }

    #[test]
    fn an_inode_that_was_used_again_is_another_file() {
        let id = |device, inode, born_ns| MadeId { device, inode, born_ns, by_birth: false };
        let made = id(Some(1), 7, Some(100));
        let same = id(Some(1), 7, Some(100));
        let unborn = id(Some(1), 7, None);
        for other in [same, unborn] {
            assert_eq!(made.compare(&other), Identity::Made, "{other:?}");
        }
        for other in [id(Some(2), 7, Some(100)), id(Some(1), 8, Some(100)), id(Some(1), 7, Some(101))] {
            assert_eq!(made.compare(&other), Identity::Another, "{other:?}");
        }
        // Of a maker that is gone the time of birth has to tell, by both.
        let after = [made.of_the_gone(), made.of_another_boot()];
        assert!(after.iter().all(|made| made.compare(&same) == Identity::Made));
        assert!(after.iter().all(|made| made.compare(&unborn) == Identity::Unknown));
        assert_eq!(unborn.of_the_gone().compare(&same), Identity::Unknown);
        assert_eq!(made.of_the_gone().compare(&id(Some(2), 7, Some(100))), Identity::Another);
        assert_eq!(made.of_another_boot().compare(&id(Some(2), 7, Some(100))), Identity::Made);
    }

    #[test]
    fn a_file_that_may_be_anothers_stays_unless_it_is_empty() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "a user's").unwrap();
        let made = MadeId { born_ns: None, ..MadeId::at(&path).unwrap() }.of_the_gone();
        assert_eq!(remove(&path, Some(&made)), Outcome::Unknown);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a user's");
        std::fs::write(&path, "").unwrap();
        assert_eq!(remove(&path, Some(&made)), Outcome::Undone);
    }

    #[test]
    fn of_what_was_not_noted_only_empty_things_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("empty"), "").unwrap();
        std::fs::write(at("full"), "x").unwrap();
        std::fs::create_dir_all(at("folder/inside")).unwrap();
        std::os::unix::fs::symlink("elsewhere", at("link")).unwrap();
        crate::undo::socket::left_at(&at("left socket"));
        let _server = UnixListener::bind(at("socket")).unwrap();
        for (name, outcome) in [
            ("empty", Outcome::Undone),
            ("full", Outcome::Another),
            ("folder", Outcome::Another),
            ("folder/inside", Outcome::Undone),
            ("link", Outcome::Another),
            ("left socket", Outcome::Undone),
            ("socket", Outcome::Another),
        ] {
            assert_eq!(remove(&at(name), None), outcome, "{name}");
        }
    }

    #[test]
    fn places_are_absolute_and_real() {
        let dir = tempfile::tempdir().unwrap();
        let dir = std::fs::canonicalize(dir.path()).unwrap();
        std::fs::create_dir(dir.join("real")).unwrap();
        std::os::unix::fs::symlink("real", dir.join("link")).unwrap();
        let here = std::env::current_dir().unwrap();
        let up = "../".repeat(here.components().count() - 1);
        let relative = PathBuf::from(up).join(dir.strip_prefix("/").unwrap());
        for typed in ["real/file", "link/file", "link/../real/file"] {
            assert_eq!(real_place(&relative.join(typed)), dir.join("real/file"), "{typed}");
        }
        assert_eq!(real_place(&dir.join("link")), dir.join("link"), "a link may be what was made");
        assert_eq!(real_place(&dir.join("link/..")), dir);
        assert_eq!(real_place(&dir.join("none/file")), dir.join("none/file"));
    }
}
