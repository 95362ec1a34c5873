//! A device that is a file or a block device, past the page cache (O_DIRECT) or through it.
//!
//! It may have more descriptors than one: threads are dealt to them by their numbers. The
//! kernel keeps its read-ahead, its position and its lock on that per descriptor. An engine
//! that submits for all ([`Device::fd`]) uses the first.
//!
//! A block device has a length of its own. It is never shorter or longer, so lengths up to its
//! own are as good as set, and what goes beyond has no room.

use std::fs::File;
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{AtFlags, FallocateFlags, OFlags, StatxFlags};
use rustix::io::Errno;

use crate::device::{Alignment, Device, IOV_MAX, ReadDevice};
use crate::error::{IoError, IoErrorKind, Operation};
use crate::memory::buffer::AlignedBuf;
use crate::notice::notice;
use crate::system::folder::{FileId, Folder, open_at};
use crate::system::thread_number::thread_number;

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// An existing file, for reading only.
    Read,
    /// An existing file, for reading and writing.
    ReadWrite,
    /// Reading and writing; made when it is not there, kept as it is when it is.
    Create,
    /// Reading and writing; must not be there yet.
    CreateNew,
}

/// A file, opened with or without O_DIRECT.
pub struct FileDevice {
    name: Arc<str>,
    /// Descriptors of the same file; at least one.
    files: Box<[File]>,
    alignment: Alignment,
    direct: bool,
    is_block: bool,
    id: Option<FileId>,
}

/// Where a file is to be found: from an open directory, and what errors call it.
#[derive(Clone, Copy)]
struct At<'a> {
    dir: BorrowedFd<'a>,
    name: &'a Path,
}

impl At<'_> {
    fn open(&self, access: Access, flags: OFlags) -> std::io::Result<File> {
        open_at(self.dir, self.name, flags_of(access) | flags)
    }
}

/// Most descriptors of a file.
pub const MOST_DESCRIPTORS: u32 = 64;

impl FileDevice {
    /// Opens `path`. With `direct` the page cache is passed by; where the file system refuses
    /// that, the file is opened buffered and one notice says so.
    ///
    /// # Errors
    /// The file cannot be opened as asked; a refused O_DIRECT is not an error.
    pub fn open(path: &Path, access: Access, direct: bool) -> Result<FileDevice, IoError> {
        let name = path.display().to_string().into();
        Self::open_there(At { dir: rustix::fs::CWD, name: path }, name, access, direct)
    }

    /// Opens a file of an open directory, wherever that is by now, as [`FileDevice::open`] does.
    ///
    /// # Errors
    /// As [`FileDevice::open`].
    pub fn open_in(
        folder: &Folder,
        name: &Path,
        access: Access,
        direct: bool,
    ) -> Result<FileDevice, IoError> {
        let shown = folder.path().join(name).display().to_string().into();
        Self::open_there(At { dir: folder.as_fd(), name }, shown, access, direct)
    }

    fn open_there(at: At<'_>, name: Arc<str>, access: Access, direct: bool) -> Result<FileDevice, IoError> {
        let fail = |e: std::io::Error| IoError::os(&name, Operation::Open, 0, 0, &e);
        if direct {
            match open_direct(at, access) {
                Ok((file, alignment)) => return Ok(FileDevice::new(name, file, alignment, true)),
                Err(e)
                    if e.raw_os_error() == Some(libc::EINVAL)
                        || e.raw_os_error() == Some(libc::EOPNOTSUPP) =>
                {
                    notice(&format!(
                        "{name}: O_DIRECT is refused here ({e}); reading through the page cache instead"
                    ));
                }
                Err(e) => return Err(fail(e)),
            }
        }
        // A refused O_DIRECT open may have left the new file behind.
        let access = if direct && access == Access::CreateNew { Access::Create } else { access };
        let file = at.open(access, OFlags::empty()).map_err(fail)?;
        Ok(FileDevice::new(name, file, Alignment::NONE, false))
    }

    fn new(name: Arc<str>, file: File, alignment: Alignment, direct: bool) -> FileDevice {
        let is_block = file.metadata().is_ok_and(|meta| meta.file_type().is_block_device());
        let id = FileId::of_file(&file).ok().filter(|_| !is_block);
        FileDevice { name, files: [file].into(), alignment, direct, is_block, id }
    }

    /// Gives the device `count` descriptors, opened through `path` as the first one was: reading
    /// only if `access` is.
    ///
    /// # Errors
    /// There is no descriptor left, or the file is not at `path` any more.
    ///
    /// # Panics
    /// When `count` is not between 1 and [`MOST_DESCRIPTORS`].
    pub fn with_descriptors(self, path: &Path, access: Access, count: u32) -> Result<FileDevice, IoError> {
        self.with_descriptors_there(At { dir: rustix::fs::CWD, name: path }, access, count)
    }

    /// Gives the device of a file in an open directory `count` descriptors.
    ///
    /// # Errors
    /// As [`FileDevice::with_descriptors`].
    ///
    /// # Panics
    /// As [`FileDevice::with_descriptors`].
    pub fn with_descriptors_in(
        self,
        folder: &Folder,
        name: &Path,
        access: Access,
        count: u32,
    ) -> Result<FileDevice, IoError> {
        self.with_descriptors_there(At { dir: folder.as_fd(), name }, access, count)
    }

    fn with_descriptors_there(
        mut self,
        at: At<'_>,
        access: Access,
        count: u32,
    ) -> Result<FileDevice, IoError> {
        assert!((1..=MOST_DESCRIPTORS).contains(&count), "{count} descriptors are out of bounds");
        let access = if access == Access::Read { Access::Read } else { Access::ReadWrite };
        let flags = if self.direct { OFlags::DIRECT } else { OFlags::empty() };
        let mut files = Vec::from(std::mem::take(&mut self.files));
        for _ in 1..count {
            let file = at.open(access, flags);
            let file = file.map_err(|e| IoError::os(&self.name, Operation::Open, 0, 0, &e))?;
            if self.id.is_some() && FileId::of_file(&file).ok() != self.id {
                let why = "another file was put in its place while it was opened".to_owned();
                return Err(IoError::invalid(&self.name, Operation::Open, why));
            }
            files.push(file);
        }
        self.files = files.into();
        Ok(self)
    }

    /// Its descriptors.
    pub fn descriptors(&self) -> usize {
        self.files.len()
    }

    /// The descriptor of the calling thread.
    fn file(&self) -> &File {
        match &*self.files {
            [only] => only,
            many => &many[thread_number() as usize % many.len()],
        }
    }

    /// No room beyond the end of a block device.
    fn full(&self, len: u64) -> IoError {
        self.error(Operation::Length, 0, len, Errno::NOSPC)
    }

    /// True when the page cache is passed by.
    pub fn is_direct(&self) -> bool {
        self.direct
    }

    fn error(&self, operation: Operation, offset: u64, len: u64, errno: Errno) -> IoError {
        let kind = IoErrorKind::Os { errno: errno.raw_os_error() };
        IoError { device: self.name.clone(), operation, offset, len, kind }
    }

    fn is_aligned(&self, offset: u64, mut parts: impl Iterator<Item = (usize, usize)>) -> bool {
        let Alignment { memory, offset: unit } = self.alignment;
        offset.is_multiple_of(unit as u64)
            && parts.all(|(start, len)| start.is_multiple_of(memory) && len.is_multiple_of(unit))
    }

    /// Reads what O_DIRECT cannot take as it is, by way of an aligned buffer.
    fn read_bounced(&self, bufs: &mut [IoSliceMut<'_>], offset: u64, len: usize) -> Result<(), IoError> {
        let unit = self.alignment.offset as u64;
        let start = offset / unit * unit;
        let end = (offset + len as u64).next_multiple_of(unit);
        let mut bounce = AlignedBuf::new((end - start) as usize);
        let mut got = 0;
        while got < bounce.len() {
            match self.file().read_at(&mut bounce[got..], start + got as u64) {
                Ok(0) => break,
                Ok(n) => got += n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(IoError::os(&self.name, Operation::Read, offset, len as u64, &e)),
            }
            if !(got as u64).is_multiple_of(unit) {
                break; // only the end of the file ends off the grid
            }
        }
        let mut rest = bounce.get((offset - start) as usize..got).unwrap_or(&[]);
        if rest.len() < len {
            return Err(IoError::short(&self.name, Operation::Read, offset, len as u64, rest.len() as u64));
        }
        for buf in bufs {
            let (now, later) = rest.split_at(buf.len());
            buf.copy_from_slice(now);
            rest = later;
        }
        Ok(())
    }
}

fn flags_of(access: Access) -> OFlags {
    match access {
        Access::Read => OFlags::RDONLY,
        Access::ReadWrite => OFlags::RDWR,
        Access::Create => OFlags::RDWR | OFlags::CREATE,
        Access::CreateNew => OFlags::RDWR | OFlags::CREATE | OFlags::EXCL,
    }
}

/// Opens with O_DIRECT, asks for the alignment, and tries one read: some file systems refuse
/// only then.
fn open_direct(at: At<'_>, access: Access) -> std::io::Result<(File, Alignment)> {
    let file = at.open(access, OFlags::DIRECT)?;
    if let Some(alignment) = dio_alignment(&file)? {
        return Ok((file, alignment));
    }
    // A file system that cannot say may open the file and then refuse every read.
    let alignment = Alignment { memory: 4096, offset: 4096 };
    let mut trial = AlignedBuf::new(alignment.offset);
    match file.read_at(&mut trial, 0) {
        Err(e) if e.raw_os_error() == Some(libc::EINVAL) => Err(e),
        _ => Ok((file, alignment)), // other errors belong to the reads that meet them
    }
}

/// The alignment that O_DIRECT demands; `None` where the file system does not say (FUSE,
/// kernels before 6.1).
fn dio_alignment(file: &File) -> std::io::Result<Option<Alignment>> {
    match rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN) {
        Ok(s) if s.stx_mask & StatxFlags::DIOALIGN.bits() == 0 => Ok(None),
        Ok(s) if s.stx_dio_offset_align == 0 => Err(std::io::Error::from_raw_os_error(libc::EINVAL)),
        Ok(s) => Ok(Some(Alignment {
            memory: s.stx_dio_mem_align as usize,
            offset: s.stx_dio_offset_align as usize,
        })),
        Err(_) => Ok(None),
    }
}

impl ReadDevice for FileDevice {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn len(&self) -> Result<u64, IoError> {
        // Seeking to the end measures block devices too; every transfer here names its offset,
        // so the cursor is free.
        rustix::fs::seek(&self.files[0], rustix::fs::SeekFrom::End(0))
            .map_err(|e| self.error(Operation::Length, 0, 0, e))
    }

    fn read_at(&self, bufs: &mut [IoSliceMut<'_>], offset: u64) -> Result<(), IoError> {
        let len: usize = bufs.iter().map(|b| b.len()).sum();
        if !self.is_aligned(offset, bufs.iter().map(|b| (b.as_ptr() as usize, b.len()))) {
            return self.read_bounced(bufs, offset, len);
        }
        let mut got = 0;
        let mut rest = bufs;
        while got < len {
            let batch = rest.len().min(IOV_MAX);
            match rustix::io::preadv(self.file(), &mut rest[..batch], offset + got as u64) {
                Ok(0) => {
                    return Err(IoError::short(&self.name, Operation::Read, offset, len as u64, got as u64));
                }
                Ok(n) => {
                    got += n;
                    IoSliceMut::advance_slices(&mut rest, n);
                    if !got.is_multiple_of(self.alignment.offset) && got < len {
                        return Err(IoError::short(
                            &self.name,
                            Operation::Read,
                            offset,
                            len as u64,
                            got as u64,
                        ));
                    }
                }
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(e) => return Err(self.error(Operation::Read, offset, len as u64, e)),
            }
        }
        Ok(())
    }

    fn fd(&self) -> Option<RawFd> {
        Some(self.files[0].as_raw_fd())
    }

    fn file_id(&self) -> Option<FileId> {
        self.id
    }

    fn alignment(&self) -> Alignment {
        self.alignment
    }
}

impl Device for FileDevice {
    fn set_len(&self, len: u64) -> Result<(), IoError> {
        if self.is_block {
            return if len <= self.len()? { Ok(()) } else { Err(self.full(len)) };
        }
        self.files[0].set_len(len).map_err(|e| IoError::os(&self.name, Operation::Length, 0, len, &e))
    }

    fn lengthen(&self, len: u64) -> Result<(), IoError> {
        let now = self.len()?;
        if now >= len {
            return Ok(());
        }
        if self.is_block {
            return Err(self.full(len));
        }
        match rustix::fs::fallocate(&self.files[0], FallocateFlags::empty(), now, len - now) {
            Ok(()) => Ok(()),
            // The file system cannot promise room.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.set_len(len),
            Err(e) => {
                // Some have lengthened it as far as there was room.
                let _ = self.set_len(now);
                Err(self.error(Operation::Length, now, len - now, e))
            }
        }
    }

    fn write_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Result<(), IoError> {
        let len: usize = bufs.iter().map(|b| b.len()).sum();
        if !self.is_aligned(offset, bufs.iter().map(|b| (b.as_ptr() as usize, b.len()))) {
            let Alignment { memory, offset: unit } = self.alignment;
            let kind = IoErrorKind::Unaligned { memory, offset: unit };
            return Err(IoError {
                device: self.name.clone(),
                operation: Operation::Write,
                offset,
                len: len as u64,
                kind,
            });
        }
        let mut copies: Vec<IoSlice<'_>> = bufs.to_vec();
        let mut rest = &mut copies[..];
        let mut done = 0;
        while done < len {
            let batch = rest.len().min(IOV_MAX);
            match rustix::io::pwritev(self.file(), &rest[..batch], offset + done as u64) {
                Ok(0) => {
                    return Err(IoError::short(
                        &self.name,
                        Operation::Write,
                        offset,
                        len as u64,
                        done as u64,
                    ));
                }
                Ok(n) => {
                    done += n;
                    IoSlice::advance_slices(&mut rest, n);
                }
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(e) => return Err(self.error(Operation::Write, offset, len as u64, e)),
            }
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), IoError> {
        self.files[0].sync_data().map_err(|e| IoError::os(&self.name, Operation::Sync, 0, 0, &e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn threads_are_dealt_to_the_descriptors() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), [7; 4096]).unwrap();
        for (count, used) in [(1, 1), (3, 3)] {
            let device = FileDevice::open(file.path(), Access::ReadWrite, false).unwrap();
            let device = device.with_descriptors(file.path(), Access::ReadWrite, count).unwrap();
            assert_eq!(device.descriptors(), count as usize);
            let of_threads: HashSet<RawFd> = std::thread::scope(|s| {
                let threads: Vec<_> = (0..32)
                    .map(|_| {
                        s.spawn(|| {
                            let mut bytes = [0; 512];
                            device.read_at(&mut [IoSliceMut::new(&mut bytes)], 512).unwrap();
                            device.write_at(&[IoSlice::new(&bytes)], 0).unwrap();
                            assert_eq!(device.file().as_raw_fd(), device.file().as_raw_fd());
                            (bytes == [7; 512]).then(|| device.file().as_raw_fd()).unwrap()
                        })
                    })
                    .collect();
                threads.into_iter().map(|t| t.join().unwrap()).collect()
            });
            assert_eq!(of_threads.len(), used, "{count} descriptors");
        }
    }

    #[test]
    fn more_descriptors_read_only_where_the_first_does() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), [7; 4096]).unwrap();
        let device = FileDevice::open(file.path(), Access::Read, false).unwrap();
        let device = device.with_descriptors(file.path(), Access::Read, 4).unwrap();
        for file in &device.files {
            assert!(file.write_at(&[1], 0).is_err(), "a descriptor that can write");
        }
        let gone = FileDevice::open(file.path(), Access::Read, false).unwrap();
        let path = file.into_temp_path();
        std::fs::remove_file(&path).unwrap();
        assert!(gone.with_descriptors(&path, Access::Read, 2).is_err());
    }
}
