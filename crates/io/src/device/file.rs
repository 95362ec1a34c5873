//! A device that is a file or a block device, past the page cache (O_DIRECT) or through it.

use std::fs::{File, OpenOptions};
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{AtFlags, FallocateFlags, StatxFlags};
use rustix::io::Errno;

use crate::device::{Alignment, Device, IOV_MAX};
use crate::error::{IoError, IoErrorKind, Operation};
use crate::memory::buffer::AlignedBuf;
use crate::notice::notice;

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
    file: File,
    alignment: Alignment,
    direct: bool,
}

impl FileDevice {
    /// Opens `path`. With `direct` the page cache is passed by; where the file system refuses
    /// that, the file is opened buffered and one notice says so.
    ///
    /// # Errors
    /// The file cannot be opened as asked; a refused O_DIRECT is not an error.
    pub fn open(path: &Path, access: Access, direct: bool) -> Result<FileDevice, IoError> {
        let name: Arc<str> = path.display().to_string().into();
        let fail = |e: std::io::Error| IoError::os(&name, Operation::Open, 0, 0, &e);
        if direct {
            match open_direct(path, access) {
                Ok((file, alignment)) => return Ok(FileDevice { name, file, alignment, direct: true }),
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
        let file = options(access, 0).open(path).map_err(fail)?;
        Ok(FileDevice { name, file, alignment: Alignment::NONE, direct: false })
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
            match self.file.read_at(&mut bounce[got..], start + got as u64) {
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

fn options(access: Access, flags: i32) -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(flags);
    match access {
        Access::Read => {}
        Access::ReadWrite => drop(options.write(true)),
        Access::Create => drop(options.write(true).create(true)),
        Access::CreateNew => drop(options.write(true).create_new(true)),
    }
    options
}

/// Opens with O_DIRECT, asks for the alignment, and tries one read: some file systems refuse
/// only then.
fn open_direct(path: &Path, access: Access) -> std::io::Result<(File, Alignment)> {
    let file = options(access, libc::O_DIRECT).open(path)?;
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

impl Device for FileDevice {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn len(&self) -> Result<u64, IoError> {
        // Seeking to the end measures block devices too; every transfer here names its offset,
        // so the cursor is free.
        rustix::fs::seek(&self.file, rustix::fs::SeekFrom::End(0))
            .map_err(|e| self.error(Operation::Length, 0, 0, e))
    }

    fn set_len(&self, len: u64) -> Result<(), IoError> {
        self.file.set_len(len).map_err(|e| IoError::os(&self.name, Operation::Length, 0, len, &e))
    }

    fn lengthen(&self, len: u64) -> Result<(), IoError> {
        let now = self.len()?;
        if now >= len {
            return Ok(());
        }
        match rustix::fs::fallocate(&self.file, FallocateFlags::empty(), now, len - now) {
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

    fn read_at(&self, bufs: &mut [IoSliceMut<'_>], offset: u64) -> Result<(), IoError> {
        let len: usize = bufs.iter().map(|b| b.len()).sum();
        if !self.is_aligned(offset, bufs.iter().map(|b| (b.as_ptr() as usize, b.len()))) {
            return self.read_bounced(bufs, offset, len);
        }
        let mut got = 0;
        let mut rest = bufs;
        while got < len {
            let batch = rest.len().min(IOV_MAX);
            match rustix::io::preadv(&self.file, &mut rest[..batch], offset + got as u64) {
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
            match rustix::io::pwritev(&self.file, &rest[..batch], offset + done as u64) {
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
        self.file.sync_data().map_err(|e| IoError::os(&self.name, Operation::Sync, 0, 0, &e))
    }

    fn fd(&self) -> Option<RawFd> {
        Some(self.file.as_raw_fd())
    }

    fn alignment(&self) -> Alignment {
        self.alignment
    }
}
