//! The file system behind an emulated device: one directory with one file, `disk`, as long as
//! the device.
//!
//! At the first message of the kernel the server asks for everything that keeps a deep queue
//! deep: asynchronous direct I/O (or the loop device would wait for each request), many
//! background requests (the default is 12), requests of up to 1 MiB (the default is 128 KiB).
//! Answers come from the delivering thread of the model when they are due.

use std::ffi::OsStr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite,
    Request, WriteFlags,
};
use snowmelt_io::{Clock, SimulatedDevice, TransferKind};

use super::medium::Medium;
use super::self_test::Gate;

/// Name of the one file.
pub const FILE_NAME: &str = "disk";

const ROOT: INodeNo = INodeNo::ROOT;
const DISK: INodeNo = INodeNo(2);

/// Most bytes of one request from the kernel.
const MOST_BYTES: u32 = 1 << 20;

/// Requests the kernel may have outstanding: more than a loop device ever has.
const BACKGROUND: u16 = 1024;

/// How long the kernel may remember names and attributes: they never change.
const FOREVER: Duration = Duration::from_secs(1 << 30);

/// A read's bytes came later than this from the backing file: counted as lateness.
const SLOW_BACKING_NS: u64 = 100_000;

/// See the head of the file.
pub struct DiskFile {
    pub medium: Arc<Medium>,
    pub model: Arc<SimulatedDevice>,
    pub len: u64,
    /// Holds reads back during the self-test.
    pub gate: Arc<Gate>,
    /// The bytes are in a file, and are fetched while the model's time passes.
    pub fetch_early: bool,
}

impl DiskFile {
    fn attributes(&self, inode: INodeNo) -> Option<FileAttr> {
        let (kind, perm, size, nlink) = match inode {
            ROOT => (FileType::Directory, 0o700, 0, 2),
            DISK => (FileType::RegularFile, 0o600, self.len, 1),
            _ => return None,
        };
        let then = SystemTime::UNIX_EPOCH;
        Some(FileAttr {
            ino: inode,
            size,
            blocks: size.div_ceil(512),
            atime: then,
            mtime: then,
            ctime: then,
            crtime: then,
            kind,
            perm,
            nlink,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }
}

impl Filesystem for DiskFile {
    fn init(&mut self, _req: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        let needed = InitFlags::FUSE_ASYNC_DIO | InitFlags::FUSE_MAX_PAGES;
        config.add_capabilities(needed).map_err(|lacking| {
            std::io::Error::other(format!(
                "this kernel's FUSE lacks {lacking:?}, without which a device is one request deep"
            ))
        })?;
        let at_most = |e| std::io::Error::other(format!("this kernel's FUSE allows at most {e}"));
        config.set_max_write(MOST_BYTES).map_err(at_most)?;
        let at_least = |e: u16| std::io::Error::other(format!("this kernel's FUSE wants {e}"));
        config.set_max_background(BACKGROUND).map_err(at_least)?;
        config.set_congestion_threshold(BACKGROUND).map_err(at_least)?;
        Ok(())
    }

    fn lookup(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.attributes(DISK).filter(|_| parent == ROOT && name == FILE_NAME) {
            Some(attributes) => reply.entry(&FOREVER, &attributes, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _req: &Request, inode: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(inode) {
            Some(attributes) => reply.attr(&FOREVER, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn open(&self, _req: &Request, _inode: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        let flags = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
        reply.opened(FileHandle(0), flags);
    }

    fn flush(&self, _req: &Request, _i: INodeNo, _fh: FileHandle, _owner: LockOwner, reply: ReplyEmpty) {
        reply.ok(); // a close, not a flush of the device
    }

    fn read(
        &self,
        _req: &Request,
        _inode: INodeNo,
        _fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let len = u64::from(size).min(self.len.saturating_sub(offset)) as usize;
        let begun = match self.medium.begin_read() {
            Ok(begun) => begun,
            Err(errno) => return reply.error(Errno::from_i32(errno)),
        };
        let early = self.fetch_early.then(|| {
            let clock = Clock::real();
            let began = clock.now_ns();
            let bytes = self.medium.read(offset, len);
            let took = clock.now_ns() - began;
            if took > SLOW_BACKING_NS {
                self.model.record_lateness(took);
            }
            bytes
        });
        let (medium, model) = (self.medium.clone(), self.model.clone());
        let answer = move || {
            let bytes = early.unwrap_or_else(|| medium.read(offset, len));
            match bytes.and_then(|bytes| medium.end_read(begun).map(|()| bytes)) {
                Ok(bytes) => reply.data(&bytes),
                Err(errno) => reply.error(Errno::from_i32(errno)),
            }
        };
        if self.gate.is_direct() {
            return answer();
        }
        self.gate.pass(move || model.begin(TransferKind::Read, offset, len as u64, answer));
    }

    fn write(
        &self,
        _req: &Request,
        _inode: INodeNo,
        _fh: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        if offset + data.len() as u64 > self.len {
            return reply.error(Errno::EFBIG);
        }
        let begun = match self.medium.begin_write(offset, data) {
            Ok(begun) => begun,
            Err(errno) => return reply.error(Errno::from_i32(errno)),
        };
        let (medium, len) = (self.medium.clone(), data.len() as u32);
        let answer = move || match medium.end_write(begun) {
            Ok(()) => reply.written(len),
            Err(errno) => reply.error(Errno::from_i32(errno)),
        };
        if self.gate.is_direct() {
            return answer();
        }
        self.model.begin(TransferKind::Write, offset, u64::from(len), answer);
    }

    fn fsync(&self, _req: &Request, _i: INodeNo, _fh: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        let begun = match self.medium.begin_flush() {
            Ok(begun) => begun,
            Err(errno) => return reply.error(Errno::from_i32(errno)),
        };
        let medium = self.medium.clone();
        let answer = move || match medium.end_flush(begun) {
            Ok(()) => reply.ok(),
            Err(errno) => reply.error(Errno::from_i32(errno)),
        };
        if self.gate.is_direct() {
            return answer();
        }
        self.model.begin(TransferKind::Flush, 0, 0, answer);
    }
}
