//! A directory that is kept open. Its files are found from its descriptor and not by its path, so
//! they stay the same ones wherever the directory is moved and whatever is put at its old path.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, Mode, OFlags, StatxFlags, makedev};
use rustix::io::{Errno, retry_on_intr};

/// Tells a file from all others of the machine, as long as it is open somewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// That of a name in a directory, or of the descriptor itself with an empty name.
    ///
    /// Asks only for the inode number. Since Linux 6.13 a file whose times were asked for gets a
    /// new time with its next write, and so a changed inode, which the next sync has to write.
    fn at(dir: BorrowedFd<'_>, name: &Path, flags: AtFlags) -> rustix::io::Result<FileId> {
        match retry_on_intr(|| rustix::fs::statx(dir, name, flags, StatxFlags::INO)) {
            Ok(it) => Ok(FileId { device: makedev(it.stx_dev_major, it.stx_dev_minor), inode: it.stx_ino }),
            // Kernels before 4.11, and containers that do not know the call.
            Err(Errno::NOSYS) => {
                let it = retry_on_intr(|| rustix::fs::statat(dir, name, flags))?;
                Ok(FileId { device: it.st_dev, inode: it.st_ino })
            }
            Err(e) => Err(e),
        }
    }

    /// That of an open file.
    ///
    /// # Errors
    /// The system does not say.
    pub fn of_file(file: impl AsFd) -> io::Result<FileId> {
        Ok(FileId::at(file.as_fd(), Path::new(""), AtFlags::EMPTY_PATH)?)
    }
}

/// See the head of the file.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    handle: File,
}

impl Folder {
    /// Opens the directory that is at `path` now.
    ///
    /// # Errors
    /// There is none, or it may not be opened.
    pub fn open(path: &Path) -> io::Result<Folder> {
        Ok(Folder { path: path.to_path_buf(), handle: open_at(rustix::fs::CWD, path, OFlags::DIRECTORY)? })
    }

    /// Where it was when it was opened: for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a file in it, making it when `flags` say so. The name may be a path below it; an
    /// absolute path is itself.
    ///
    /// # Errors
    /// Those of the system.
    pub fn open_file(&self, name: &Path, flags: OFlags) -> io::Result<File> {
        open_at(self.handle.as_fd(), name, flags)
    }

    /// Opens a folder in it; not one that a link leads to.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn open_folder(&self, name: &Path) -> io::Result<Folder> {
        let handle = self.open_file(name, OFlags::DIRECTORY | OFlags::NOFOLLOW)?;
        Ok(Folder { path: self.path.join(name), handle })
    }

    /// Makes a folder in it, its owner's alone, and opens that.
    ///
    /// # Errors
    /// Something has the name; those of the system.
    pub fn make_folder(&self, name: &Path) -> io::Result<Folder> {
        rustix::fs::mkdirat(&self.handle, name, Mode::RWXU)?;
        self.open_folder(name)
    }

    /// The file that has this name now; `None`: none has.
    ///
    /// # Errors
    /// The system does not say.
    pub fn id_of(&self, name: &Path) -> io::Result<Option<FileId>> {
        match FileId::at(self.handle.as_fd(), name, AtFlags::empty()) {
            Ok(id) => Ok(Some(id)),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// Whether something in it has this name, if only a link that leads nowhere.
    ///
    /// # Errors
    /// The system does not say.
    pub fn has(&self, name: &Path) -> io::Result<bool> {
        match FileId::at(self.handle.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(e) => Err(e.into()),
        }
    }

    /// The names in it.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.handle)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name != "." && name != ".." {
                names.push(name.to_os_string());
            }
        }
        Ok(names)
    }

    /// Removes a file in it, or a folder with all that is in that. That there is none is no error.
    ///
    /// # Errors
    /// Those of the system.
    pub fn remove(&self, name: &Path) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.handle, name, AtFlags::empty()) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => return Ok(()),
            Err(rustix::io::Errno::ISDIR | rustix::io::Errno::PERM) => {}
            Err(e) => return Err(e.into()),
        }
        let inside = self.open_folder(name)?;
        inside.names()?.iter().try_for_each(|name| inside.remove(Path::new(name)))?;
        Ok(rustix::fs::unlinkat(&self.handle, name, AtFlags::REMOVEDIR)?)
    }

    /// True when it has no name any more.
    ///
    /// # Errors
    /// The system does not say.
    pub fn is_deleted(&self) -> io::Result<bool> {
        Ok(rustix::fs::fstat(&self.handle)?.st_nlink == 0)
    }

    /// True while its path still leads to it.
    pub fn is_at_its_path(&self) -> bool {
        let there = FileId::at(rustix::fs::CWD, &self.path, AtFlags::empty());
        let here = FileId::of_file(&self.handle);
        there.is_ok_and(|there| here.is_ok_and(|here| there == here))
    }

    /// Gives a file in it another name, which may be that of a file that goes.
    ///
    /// # Errors
    /// Those of the system.
    pub fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.handle, from, &self.handle, to)?)
    }

    /// Moves a file in it to another folder, where it may replace one.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn move_to(&self, from: &Path, other: &Folder, to: &Path) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.handle, from, &other.handle, to)?)
    }

    /// Makes the names in it durable.
    ///
    /// # Errors
    /// Those of the device.
    pub fn sync(&self) -> io::Result<()> {
        self.handle.sync_all()
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

/// Opens from a directory; tries again when a signal interrupted the call.
pub(crate) fn open_at(dir: BorrowedFd<'_>, name: &Path, flags: OFlags) -> io::Result<File> {
    // Files that are made are their owner's alone.
    let mode = Mode::RUSR | Mode::WUSR;
    let opened = retry_on_intr(|| rustix::fs::openat(dir, name, flags | OFlags::CLOEXEC, mode))?;
    Ok(File::from(opened))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_where_the_folder_went() {
        let dir = tempfile::tempdir().unwrap();
        let (here, there) = (dir.path().join("here"), dir.path().join("there"));
        std::fs::create_dir(&here).unwrap();
        std::fs::write(here.join("a"), b"first").unwrap();
        let folder = Folder::open(&here).unwrap();
        let id = folder.id_of(Path::new("a")).unwrap().unwrap();
        assert!(folder.is_at_its_path());
        std::fs::rename(&here, &there).unwrap();
        std::fs::create_dir(&here).unwrap();
        std::fs::write(here.join("a"), b"second").unwrap();
        assert!(!folder.is_at_its_path() && !folder.is_deleted().unwrap());
        let file = folder.open_file(Path::new("a"), OFlags::RDONLY).unwrap();
        assert_eq!(FileId::of_file(&file).unwrap(), id);
        assert_eq!(std::io::read_to_string(file).unwrap(), "first");
        folder.open_file(Path::new("b"), OFlags::RDWR | OFlags::CREATE).unwrap();
        folder.rename(Path::new("b"), Path::new("a")).unwrap();
        assert_ne!(folder.id_of(Path::new("a")).unwrap(), Some(id));
        assert!(there.join("a").exists() && !here.join("b").exists());
        std::fs::create_dir_all(there.join("deep/er")).unwrap();
        std::fs::write(there.join("deep/er/file"), b"").unwrap();
        std::os::unix::fs::symlink("nowhere", there.join("link")).unwrap();
        assert!(folder.has(Path::new("link")).unwrap() && !folder.has(Path::new("b")).unwrap());
        for name in ["deep", "link", "none"] {
            folder.remove(Path::new(name)).unwrap();
        }
        assert_eq!(folder.names().unwrap(), ["a"]);
        std::fs::remove_dir_all(&there).unwrap();
        assert!(folder.is_deleted().unwrap() && folder.id_of(Path::new("a")).unwrap().is_none());
    }
}
