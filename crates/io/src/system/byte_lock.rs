//! Locks on single bytes of a file: open file description locks, fcntl(2).
//!
//! Such a lock belongs to the open file, not to the process: two openings of one file exclude each
//! other also within a process, and the kernel drops the locks with the last descriptor, so a
//! killed process leaves none. The bytes need not be there.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use rustix::io::{Errno, retry_on_intr};

/// Takes the exclusive lock on a byte of the file; false while another opening has it. Asking again
/// for a lock that this opening has succeeds.
///
/// # Errors
/// The file system has no locks; those of the system.
pub(crate) fn try_lock_byte(file: &File, byte: u64) -> io::Result<bool> {
    match set(file, byte, libc::F_WRLCK) {
        Ok(()) => Ok(true),
        Err(Errno::AGAIN | Errno::ACCESS) => Ok(false),
        Err(e) => Err(e.into()),
    }
}

/// Gives the lock back; no error without one.
///
/// # Errors
/// Those of the system.
pub(crate) fn unlock_byte(file: &File, byte: u64) -> io::Result<()> {
    Ok(set(file, byte, libc::F_UNLCK)?)
}

fn set(file: &File, byte: u64, kind: libc::c_int) -> rustix::io::Result<()> {
    let start = libc::off_t::try_from(byte).map_err(|_| Errno::OVERFLOW)?;
    let lock = libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: start,
        l_len: 1,
        l_pid: 0, // the call demands it
    };
    retry_on_intr(|| {
        // SAFETY: the descriptor is open, and the call only reads the structure.
        match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) } {
            0 => Ok(()),
            _ => Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openings_exclude_each_other_byte_by_byte() {
        let dir = tempfile::tempdir().unwrap();
        let open = || {
            let options = File::options().read(true).write(true).create(true).truncate(false).clone();
            options.open(dir.path().join("file")).unwrap()
        };
        let (one, other, far) = (open(), open(), (1 << 62) + 7);
        assert!(try_lock_byte(&one, far).unwrap() && try_lock_byte(&one, far).unwrap());
        assert!(!try_lock_byte(&other, far).unwrap(), "it is taken");
        assert!(try_lock_byte(&other, far + 1).unwrap(), "each byte is by itself");
        unlock_byte(&one, far).unwrap();
        assert!(try_lock_byte(&other, far).unwrap());
        assert!(!try_lock_byte(&one, far + 1).unwrap());
        drop(other);
        assert!(try_lock_byte(&one, far + 1).unwrap(), "closing gives all back");
    }
}
