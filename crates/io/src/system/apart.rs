//! System calls that a hung device can hold for ever, made in a child process that can be left
//! behind.
//!
//! A thread in uninterruptible sleep keeps its whole process from ending, also after SIGKILL;
//! so a command that has to end makes such calls apart:
//!
//! 1. Everything the call needs is prepared; then the process forks.
//! 2. The child closes all files but its end of a pipe (locks and terminals are not its own),
//!    makes system calls only, writes the outcome to the pipe, and ends.
//! 3. The parent waits for the outcome until its patience ends; then it kills the child, which
//!    dies as soon as the kernel lets it.

#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// A call to be made apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApartCall<'a> {
    /// Reads a small file (of sysfs): at most 4 KiB.
    Read(&'a Path),
    /// Writes a file (of sysfs) that is there, in one piece.
    Write(&'a Path, &'a str),
    /// Unmounts; fails while it is in use.
    Unmount(&'a Path),
    /// Unmounts, failing the requests of a network or FUSE file system first.
    UnmountByForce(&'a Path),
    /// Detaches a mount, which ends when it is no longer in use.
    UnmountLater(&'a Path),
    /// Mounts the control file system of FUSE.
    MountFuseControl(&'a Path),
    /// Frees a loop device.
    LoopDetach(&'a Path),
}

impl std::fmt::Display for ApartCall<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ApartCall::Read(path) => write!(f, "reading {}", path.display()),
            ApartCall::Write(path, text) => write!(f, "writing {text:?} to {}", path.display()),
            ApartCall::Unmount(path) | ApartCall::UnmountByForce(path) | ApartCall::UnmountLater(path) => {
                write!(f, "unmounting {}", path.display())
            }
            ApartCall::MountFuseControl(path) => write!(f, "mounting fusectl on {}", path.display()),
            ApartCall::LoopDetach(path) => write!(f, "detaching {}", path.display()),
        }
    }
}

/// Most bytes read.
const MOST_BYTES: usize = 4096;

const LOOP_CLR_FD: libc::c_ulong = 0x4C01;

/// Makes the call; returns what was read. An error of kind `TimedOut`, which says what it
/// waited for, when the call has not returned within `patience`: then it may still happen
/// later.
///
/// # Errors
/// The call fails, or did not end within `patience` (`TimedOut`).
pub fn apart(call: ApartCall<'_>, patience: Duration) -> io::Result<Vec<u8>> {
    let prepared = Prepared::new(call)?;
    let (outcome, end) = pipe()?;
    let child = fork(|| prepared.make(end.as_raw_fd()))?;
    drop(end);
    let begun = Instant::now();
    while !readable(&outcome, patience.saturating_sub(begun.elapsed()))? {
        if begun.elapsed() >= patience {
            give_up(child);
            let seconds = patience.as_secs_f64();
            let why =
                format!("{call} has not returned within {seconds} s; process {child} still waits for it");
            return Err(io::Error::new(io::ErrorKind::TimedOut, why));
        }
    }
    let mut bytes = Vec::new();
    let read = std::fs::File::from(outcome).read_to_end(&mut bytes);
    // SAFETY: waits for a child of ours that has nothing left to do.
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    read?;
    let Some((errno, read)) = bytes.split_first_chunk::<4>() else {
        return Err(io::Error::other(format!("{call}: the child process ended without an outcome")));
    };
    match i32::from_ne_bytes(*errno) {
        0 => Ok(read.to_vec()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// Kills the child and, where it dies at once, takes it away; else its next parent
/// does.
fn give_up(child: libc::pid_t) {
    // SAFETY: a signal to a child of ours that was not waited for.
    unsafe { libc::kill(child, libc::SIGKILL) };
    for _ in 0..20 {
        // SAFETY: as above; does not block.
        if unsafe { libc::waitpid(child, std::ptr::null_mut(), libc::WNOHANG) } != 0 {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn readable(pipe: &OwnedFd, within: Duration) -> io::Result<bool> {
    let wait = Timespec { tv_sec: within.as_secs() as i64, tv_nsec: within.subsec_nanos().into() };
    match poll(&mut [PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN)], Some(&wait)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(e) => Err(e.into()),
    }
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: the call fills the two numbers, which are not shared.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}

/// A child that does `act` and ends; it has all signals blocked, so that no handler of this
/// program runs in it.
fn fork(act: impl Fn()) -> io::Result<libc::pid_t> {
    // SAFETY: the signal mask is restored in the parent. The child of a process with threads
    // may make system calls only: `act` does, in memory that was prepared, and ends.
    unsafe {
        let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let child = libc::fork();
        if child == 0 {
            act();
            libc::_exit(0);
        }
        let error = io::Error::last_os_error();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        if child < 0 { Err(error) } else { Ok(child) }
    }
}

/// Inputs of the child, in memory of its own.
struct Prepared<'a> {
    call: ApartCall<'a>,
    path: CString,
}

impl<'a> Prepared<'a> {
    fn new(call: ApartCall<'a>) -> io::Result<Prepared<'a>> {
        let (ApartCall::Read(path)
        | ApartCall::Write(path, _)
        | ApartCall::Unmount(path)
        | ApartCall::UnmountByForce(path)
        | ApartCall::UnmountLater(path)
        | ApartCall::MountFuseControl(path)
        | ApartCall::LoopDetach(path)) = call;
        let path = CString::new(path.as_os_str().as_bytes())?;
        Ok(Prepared { call, path })
    }

    /// In the child: the call, and its outcome to the pipe.
    fn make(&self, end: libc::c_int) {
        let mut bytes = [0u8; 4 + MOST_BYTES];
        // SAFETY: system calls on descriptors and memory of this process.
        unsafe {
            libc::dup2(end, 0);
            libc::syscall(libc::SYS_close_range, 1, u32::MAX, 0);
            let answer = self.carry_out(&mut bytes[4..]);
            let errno = if answer < 0 { *libc::__errno_location() } else { 0 };
            bytes[..4].copy_from_slice(&errno.to_ne_bytes());
            libc::write(0, bytes.as_ptr().cast(), 4 + answer.max(0) as usize);
        }
    }

    /// The number of bytes put into `out`, or less than zero with errno set.
    ///
    /// # Safety
    /// None but that it is called in the child.
    unsafe fn carry_out(&self, out: &mut [u8]) -> isize {
        let path = self.path.as_ptr();
        // SAFETY: `path` ends with a zero, and all memory outlives the calls.
        unsafe {
            match self.call {
                ApartCall::Read(_) => with_file(&self.path, libc::O_RDONLY, |file| {
                    libc::read(file, out.as_mut_ptr().cast(), out.len())
                }),
                ApartCall::Write(_, text) => with_file(&self.path, libc::O_WRONLY | libc::O_TRUNC, |file| {
                    libc::write(file, text.as_ptr().cast(), text.len()).min(0)
                }),
                ApartCall::Unmount(_) => libc::umount2(path, 0) as isize,
                ApartCall::UnmountByForce(_) => libc::umount2(path, libc::MNT_FORCE) as isize,
                ApartCall::UnmountLater(_) => libc::umount2(path, libc::MNT_DETACH) as isize,
                ApartCall::MountFuseControl(_) => {
                    let kind = c"fusectl".as_ptr();
                    libc::mount(kind, path, kind, 0, std::ptr::null()) as isize
                }
                ApartCall::LoopDetach(_) => with_file(&self.path, libc::O_RDONLY, |file| {
                    libc::ioctl(file, LOOP_CLR_FD as _, 0) as isize
                }),
            }
        }
    }
}

/// Opens, acts, closes; keeps the errno of the act.
///
/// # Safety
/// As the calls `act` makes.
unsafe fn with_file(path: &CStr, flags: libc::c_int, act: impl FnOnce(libc::c_int) -> isize) -> isize {
    // SAFETY: plain system calls on a path that ends with a zero.
    unsafe {
        let file = libc::open(path.as_ptr(), flags | libc::O_CLOEXEC);
        if file < 0 {
            return -1;
        }
        let answer = act(file);
        let errno = *libc::__errno_location();
        libc::close(file);
        *libc::__errno_location() = errno;
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(30);

    #[test]
    fn what_returns_answers_as_if_made_here() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("value");
        std::fs::write(&path, "old value\n").expect("written");
        apart(ApartCall::Write(&path, "new"), LONG).expect("written");
        assert_eq!(apart(ApartCall::Read(&path), LONG).expect("read"), b"new");
        let absent = dir.path().join("absent");
        let error = apart(ApartCall::Read(&absent), LONG).expect_err("not there");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        let error = apart(ApartCall::Write(&absent, "x"), LONG).expect_err("not there");
        assert_eq!(error.kind(), io::ErrorKind::NotFound, "nothing is made");
        assert!(apart(ApartCall::Unmount(dir.path()), LONG).is_err(), "nothing is mounted there");
        let error = apart(ApartCall::LoopDetach(&path), LONG).expect_err("no loop device");
        assert_eq!(error.raw_os_error(), Some(libc::ENOTTY));
    }

    #[test]
    fn what_does_not_return_is_left_behind_and_named() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("pipe");
        let name = CString::new(path.as_os_str().as_bytes()).expect("no zero");
        // SAFETY: makes a file.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        let begun = Instant::now();
        let error = apart(ApartCall::Read(&path), Duration::from_millis(200)).expect_err("nobody writes");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let text = error.to_string();
        assert!(text.contains("pipe") && text.contains("0.2 s") && text.contains("process "), "{text}");
        assert!(begun.elapsed() < LONG);
    }
}
