//! Loop devices: a file as a block device (loop(4)).
//!
//! Attaching goes in two steps, so that the caller can write down the name before anything
//! changes: [`loop_free`] names a device that is free, [`loop_attach`] takes it, or fails with
//! `EBUSY` when another process was faster. Needs root, and Linux 5.8 for LOOP_CONFIGURE. Also
//! what block devices alone can be asked for: discard and zeros.

#![allow(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

const LOOP_CTL_GET_FREE: libc::c_ulong = 0x4C82;
const LOOP_CONFIGURE: libc::c_ulong = 0x4C0A;
const BLKDISCARD: libc::c_ulong = 0x1277;
const LOOP_CLR_FD: libc::c_ulong = 0x4C01;

const LO_FLAGS_READ_ONLY: u32 = 1;
const LO_FLAGS_DIRECT_IO: u32 = 16;

/// How a file becomes a loop device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopOptions {
    /// The file is read and written past the page cache, and asynchronously.
    pub direct_io: bool,
    /// Writing is refused.
    pub read_only: bool,
    /// Logical block size in bytes; 0 leaves 512.
    pub block_bytes: u32,
}

impl Default for LoopOptions {
    fn default() -> LoopOptions {
        LoopOptions { direct_io: true, read_only: false, block_bytes: 0 }
    }
}

/// As `struct loop_info64` in linux/loop.h.
#[repr(C)]
#[derive(Clone, Copy)]
struct LoopInfo64 {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

/// As `struct loop_config` in linux/loop.h.
#[repr(C)]
#[derive(Clone, Copy)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo64,
    reserved: [u64; 8],
}

const _: () = assert!(size_of::<LoopInfo64>() == 232 && size_of::<LoopConfig>() == 304);

/// A loop device that is free now; the kernel makes one when none is.
///
/// # Errors
/// There are no loop devices here, or no rights to them.
pub fn loop_free() -> io::Result<PathBuf> {
    let control = OpenOptions::new().read(true).write(true).open("/dev/loop-control")?;
    // SAFETY: the call takes no argument and returns a number.
    let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE as _) };
    match number {
        0.. => Ok(PathBuf::from(format!("/dev/loop{number}"))),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Makes `device` show `backing`. With `direct_io` the kernel must have agreed to it, else the
/// device is given back and the answer is EINVAL: a loop device through the page cache serves
/// one request at a time.
///
/// # Errors
/// The device was taken by another process (`EBUSY`), or the kernel refuses.
pub fn loop_attach(device: &Path, backing: &Path, options: &LoopOptions) -> io::Result<()> {
    let file = OpenOptions::new().read(true).write(!options.read_only).open(backing)?;
    let target = open_device(device, !options.read_only)?;
    let mut flags = 0;
    if options.direct_io {
        flags |= LO_FLAGS_DIRECT_IO;
    }
    if options.read_only {
        flags |= LO_FLAGS_READ_ONLY;
    }
    let info = LoopInfo64 {
        device: 0,
        inode: 0,
        rdevice: 0,
        offset: 0,
        size_limit: 0,
        number: 0,
        encrypt_type: 0,
        encrypt_key_size: 0,
        flags,
        file_name: shown_name(backing),
        crypt_name: [0; 64],
        encrypt_key: [0; 32],
        init: [0; 2],
    };
    let config =
        LoopConfig { fd: file.as_raw_fd() as u32, block_size: options.block_bytes, info, reserved: [0; 8] };
    // SAFETY: `config` is laid out as the kernel's structure and lives through the call, which
    // only reads it.
    let answer = unsafe { libc::ioctl(target.as_raw_fd(), LOOP_CONFIGURE as _, &config) };
    if answer != 0 {
        return Err(io::Error::last_os_error());
    }
    if options.direct_io && !is_direct(device) {
        drop(target);
        loop_detach(device)?;
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    Ok(())
}

/// Frees `device`; an error of ENXIO means that it was free already. A program that still has
/// it open keeps it until closing.
///
/// # Errors
/// The device is free already (`ENXIO`), or the kernel refuses.
pub fn loop_detach(device: &Path) -> io::Result<()> {
    let target = open_device(device, false)?;
    // SAFETY: the call takes no argument.
    let answer = unsafe { libc::ioctl(target.as_raw_fd(), LOOP_CLR_FD as _, 0) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Tells a block device that bytes are not needed any more; an error where it knows no such
/// thing.
///
/// # Errors
/// The device has no discard, or cannot be written.
pub fn block_discard(device: &Path, offset: u64, len: u64) -> io::Result<()> {
    let target = open_device(device, true)?;
    let range = [offset, len];
    // SAFETY: the call reads two numbers, which outlive it.
    let answer = unsafe { libc::ioctl(target.as_raw_fd(), BLKDISCARD as _, range.as_ptr()) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Makes bytes of a block device zeros without writing them; an error where it cannot.
///
/// # Errors
/// The device cannot make zeros, or cannot be written.
pub fn block_zero(device: &Path, offset: u64, len: u64) -> io::Result<()> {
    use rustix::fs::FallocateFlags;
    let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    Ok(rustix::fs::fallocate(open_device(device, true)?, how, offset, len)?)
}

/// The file behind a loop device, or nothing when it is free or no loop device.
pub fn loop_backing(device: &Path) -> Option<PathBuf> {
    let text = std::fs::read_to_string(sysfs(device)?.join("backing_file")).ok()?;
    Some(PathBuf::from(text.trim_end_matches('\n')))
}

fn open_device(device: &Path, write: bool) -> io::Result<File> {
    OpenOptions::new().read(true).write(write).open(device)
}

fn sysfs(device: &Path) -> Option<PathBuf> {
    Some(Path::new("/sys/block").join(device.file_name()?).join("loop"))
}

fn is_direct(device: &Path) -> bool {
    sysfs(device)
        .and_then(|dir| std::fs::read_to_string(dir.join("dio")).ok())
        .is_some_and(|text| text.trim() == "1")
}

/// The start of the name, as far as the structure holds it; shown by losetup only.
fn shown_name(backing: &Path) -> [u8; 64] {
    let mut name = [0; 64];
    let bytes = backing.as_os_str().as_encoded_bytes();
    let len = bytes.len().min(name.len() - 1);
    name[..len].copy_from_slice(&bytes[..len]);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_becomes_a_block_device_and_is_freed() {
        if !rustix::process::geteuid().is_root() || !Path::new("/dev/loop-control").exists() {
            eprintln!("skipped: loop devices need root and /dev/loop-control");
            return;
        }
        let dir = tempfile::tempdir().expect("a folder");
        let backing = dir.path().join("backing");
        std::fs::write(&backing, vec![7u8; 1 << 20]).expect("written");
        let options = LoopOptions { direct_io: false, ..LoopOptions::default() };
        // Another process may take the free one between the two steps.
        let device = (0..20)
            .find_map(|_| {
                let device = loop_free().expect("a loop device");
                loop_attach(&device, &backing, &options).ok().map(|()| device)
            })
            .expect("attached");
        assert_eq!(loop_backing(&device).as_deref(), Some(backing.as_path()));
        let bytes = std::fs::read(&device).expect("readable");
        assert_eq!((bytes.len(), bytes[0]), (1 << 20, 7));
        loop_detach(&device).expect("detached");
        assert_ne!(loop_backing(&device).as_deref(), Some(backing.as_path()));
    }
}
