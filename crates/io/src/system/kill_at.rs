//! A process that is killed right before the n-th system call that changes a file system, or of
//! which that call fails.
//!
//! For tests of what a killed process leaves, and of each error that a file system may give:
//! counted, not timed, whatever the program does and on however many threads. The kernel's own
//! tracing finds the calls, so none is missed but those that an io_uring makes: programs under it
//! use another engine.
//!
//! 1. The child asks to be traced (`PTRACE_TRACEME`) and stops at each system call of each of
//!    its threads, before it is made.
//! 2. Calls that change files are counted: those that make, name, cut, sync or write them. A
//!    write to what is no file (a pipe, a socket) does not count.
//! 3. At number n the process gets SIGKILL; or the call is not made, and returns an error. It is
//!    the only one, or each from then on fails too.

#![allow(unsafe_code)]

use std::collections::HashSet;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::thread::JoinHandle;

/// The event at the n-th call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AtCall {
    /// The process is killed.
    #[default]
    Kill,
    /// The call fails with this error number.
    Fail(i32),
    /// It and all calls after it fail.
    FailOn(i32),
    /// It and all calls after it that take room on the disk fail with ENOSPC.
    Full,
}

/// How a traced process ended.
#[derive(Clone, Copy, Debug)]
pub struct Traced {
    /// Calls that were counted, the one it was killed at included.
    pub calls: u64,
    /// Name of the call it was killed at, or of the first that failed; `None` when there was none.
    pub killed_at: Option<&'static str>,
    /// Its exit status.
    pub status: ExitStatus,
}

/// A process that is being traced.
pub struct KillAt {
    shared: Arc<Shared>,
    tracer: JoinHandle<io::Result<Traced>>,
}

#[derive(Default)]
struct Shared {
    calls: AtomicU64,
    /// The number it is killed at; 0: never.
    at: AtomicU64,
    then: AtCall,
    pid: AtomicI32,
}

impl KillAt {
    /// Starts a program that is killed at its `n`th call; 0: it is not, only counted.
    pub fn start(command: Command, n: u64) -> KillAt {
        KillAt::start_to(command, n, AtCall::Kill)
    }

    /// Starts a program to which this happens at its `n`th call.
    pub fn start_to(command: Command, n: u64, then: AtCall) -> KillAt {
        let shared = Arc::new(Shared { at: AtomicU64::new(n), then, ..Default::default() });
        let traced = shared.clone();
        // The thread that starts a process is the only one that may trace it.
        let tracer = std::thread::spawn(move || trace(command, &traced));
        KillAt { shared, tracer }
    }

    /// Begins to count anew: it is killed at the `n`th call from now on.
    pub fn arm(&self, n: u64) {
        self.shared.at.store(0, Ordering::SeqCst);
        self.shared.calls.store(0, Ordering::SeqCst);
        self.shared.at.store(n, Ordering::SeqCst);
    }

    /// Calls counted so far.
    pub fn calls(&self) -> u64 {
        self.shared.calls.load(Ordering::SeqCst)
    }

    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        self.tracer.is_finished()
    }

    /// Its process, once it runs.
    pub fn pid(&self) -> Option<i32> {
        Some(self.shared.pid.load(Ordering::SeqCst)).filter(|pid| *pid > 0)
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// It cannot be started or traced.
    pub fn wait(self) -> io::Result<Traced> {
        self.tracer.join().expect("the tracer does not panic")
    }
}

fn trace(mut command: Command, shared: &Shared) -> io::Result<Traced> {
    // SAFETY: between fork and exec only this one system call is made, which is allowed there.
    unsafe {
        command.pre_exec(|| match request(libc::PTRACE_TRACEME, 0, 0, 0) {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        });
    }
    let child = command.spawn()?;
    let main = child.id() as libc::pid_t;
    shared.pid.store(main, Ordering::SeqCst);
    let mut killed_at = None;
    let mut has_begun = false;
    // Threads whose call is not made, until they stop at its end.
    let mut failing = HashSet::new();
    loop {
        let mut status = 0;
        // SAFETY: `status` is a valid place for the result.
        let pid = unsafe { libc::waitpid(-1, &mut status, libc::__WALL | libc::__WNOTHREAD) };
        if pid < 0 {
            match io::Error::last_os_error() {
                e if e.kind() == io::ErrorKind::Interrupted => continue,
                e => return Err(e),
            }
        }
        if libc::WIFEXITED(status) || libc::WIFSIGNALED(status) {
            if pid != main {
                continue;
            }
            let calls = shared.calls.load(Ordering::SeqCst);
            return Ok(Traced { calls, killed_at, status: ExitStatus::from_raw(status) });
        }
        let signal = libc::WSTOPSIG(status);
        let mut deliver = 0;
        if signal == libc::SIGTRAP | 0x80 {
            if failing.remove(&pid) {
                set_result(pid, shared.then.errno());
            } else if let Some(name) = changing_call(pid) {
                let n = shared.calls.fetch_add(1, Ordering::SeqCst) + 1;
                let at = shared.at.load(Ordering::SeqCst);
                if shared.then.is_hit(n, at, name) {
                    killed_at.get_or_insert(name);
                    if shared.then == AtCall::Kill {
                        // The call may be that of a process which the program has started.
                        for killed in [main, pid] {
                            // SAFETY: children of this thread, which have not been waited for.
                            unsafe { libc::kill(killed, libc::SIGKILL) };
                        }
                    } else if leave_out(pid) {
                        failing.insert(pid);
                    }
                }
            }
        } else if !has_begun {
            has_begun = true;
            let options = libc::PTRACE_O_TRACESYSGOOD
                | libc::PTRACE_O_TRACECLONE
                | libc::PTRACE_O_TRACEFORK
                | libc::PTRACE_O_TRACEVFORK
                | libc::PTRACE_O_EXITKILL;
            // SAFETY: the child is stopped, and traced by this thread.
            unsafe { request(libc::PTRACE_SETOPTIONS, pid, 0, options as usize) };
        } else if status >> 16 == 0 && ![libc::SIGSTOP, libc::SIGTRAP].contains(&signal) {
            deliver = signal;
        }
        // SAFETY: as above; that it has ended meanwhile is no error.
        unsafe { request(libc::PTRACE_SYSCALL, pid, 0, deliver as usize) };
    }
}

impl AtCall {
    fn is_hit(self, n: u64, at: u64, name: &str) -> bool {
        let is_there = at > 0 && n >= at;
        match self {
            AtCall::Kill | AtCall::Fail(_) => n == at,
            AtCall::FailOn(_) => is_there,
            AtCall::Full => is_there && TAKES_ROOM.contains(&name),
        }
    }

    fn errno(self) -> i32 {
        match self {
            AtCall::Kill => 0,
            AtCall::Fail(errno) | AtCall::FailOn(errno) => errno,
            AtCall::Full => libc::ENOSPC,
        }
    }
}

/// Calls that a full disk refuses.
const TAKES_ROOM: [&str; 14] = [
    "open",
    "openat",
    "creat",
    "mkdir",
    "mkdirat",
    "write",
    "writev",
    "pwrite",
    "pwritev",
    "pwritev2",
    "fallocate",
    "link",
    "linkat",
    "symlinkat",
];

/// Has the kernel skip the call that a thread is about to make; false on architectures where that
/// is not supported.
#[cfg(target_arch = "x86_64")]
fn leave_out(pid: libc::pid_t) -> bool {
    change_registers(pid, |registers| registers.orig_rax = u64::MAX)
}

/// Sets the error that a skipped call returns.
#[cfg(target_arch = "x86_64")]
fn set_result(pid: libc::pid_t, errno: i32) {
    change_registers(pid, |registers| registers.rax = -i64::from(errno) as u64);
}

#[cfg(target_arch = "x86_64")]
fn change_registers(pid: libc::pid_t, change: impl FnOnce(&mut libc::user_regs_struct)) -> bool {
    let mut registers = MaybeUninit::<libc::user_regs_struct>::zeroed();
    // SAFETY: the thread is stopped; the kernel fills in the registers, or says that it did not.
    unsafe {
        if request(libc::PTRACE_GETREGS, pid, 0, registers.as_mut_ptr() as usize) != 0 {
            return false;
        }
        let mut registers = registers.assume_init();
        change(&mut registers);
        request(libc::PTRACE_SETREGS, pid, 0, &raw const registers as usize) == 0
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn leave_out(_: libc::pid_t) -> bool {
    false
}

#[cfg(not(target_arch = "x86_64"))]
fn set_result(_: libc::pid_t, _: i32) {}

/// One request of `ptrace`, with arguments of the sizes that it takes them in.
///
/// # Safety
/// That of the request.
unsafe fn request(what: libc::c_uint, pid: libc::pid_t, address: usize, data: usize) -> libc::c_long {
    // SAFETY: the caller's.
    unsafe { libc::ptrace(what, pid, address as *mut libc::c_void, data as *mut libc::c_void) }
}

/// The name of the call that a stopped thread is about to make, if it changes files.
fn changing_call(pid: libc::pid_t) -> Option<&'static str> {
    let mut info = MaybeUninit::<libc::ptrace_syscall_info>::zeroed();
    let size = size_of::<libc::ptrace_syscall_info>();
    // SAFETY: the kernel writes at most `size` bytes; all bit patterns are valid.
    let (done, info) = unsafe {
        let done = request(libc::PTRACE_GET_SYSCALL_INFO, pid, size, info.as_mut_ptr() as usize);
        (done, info.assume_init())
    };
    if done <= 0 || info.op != libc::PTRACE_SYSCALL_INFO_ENTRY {
        return None;
    }
    // SAFETY: the kernel says that this is the part that counts.
    let entry = unsafe { info.u.entry };
    let number = entry.nr as libc::c_long;
    let makes = (libc::O_CREAT | libc::O_TRUNC) as u64;
    if number == libc::SYS_openat {
        return (entry.args[2] & makes != 0).then_some("openat");
    }
    #[cfg(target_arch = "x86_64")]
    if number == libc::SYS_open {
        return (entry.args[1] & makes != 0).then_some("open");
    }
    if let Some((_, name)) = WRITES.iter().find(|(call, _)| *call == number) {
        return is_file(pid, entry.args[0]).then_some(*name);
    }
    CHANGES.iter().find(|(call, _)| *call == number).map(|(_, name)| *name)
}

/// Whether a descriptor of a process is a file, not a pipe, a socket or a terminal.
fn is_file(pid: libc::pid_t, descriptor: u64) -> bool {
    let link = std::fs::read_link(format!("/proc/{pid}/fd/{descriptor}"));
    link.is_ok_and(|path| {
        let is_device = path.starts_with("/dev") && !path.starts_with("/dev/shm");
        path.is_absolute() && !is_device && !path.starts_with("/proc")
    })
}

const WRITES: [(libc::c_long, &str); 9] = [
    (libc::SYS_write, "write"),
    (libc::SYS_writev, "writev"),
    (libc::SYS_pwrite64, "pwrite"),
    (libc::SYS_pwritev, "pwritev"),
    (libc::SYS_pwritev2, "pwritev2"),
    (libc::SYS_fsync, "fsync"),
    (libc::SYS_fdatasync, "fdatasync"),
    (libc::SYS_ftruncate, "ftruncate"),
    (libc::SYS_fallocate, "fallocate"),
];

#[cfg(target_arch = "x86_64")]
const CHANGES: [(libc::c_long, &str); 19] = [
    (libc::SYS_bind, "bind"),
    (libc::SYS_copy_file_range, "copy_file_range"),
    (libc::SYS_mknodat, "mknodat"),
    (libc::SYS_creat, "creat"),
    (libc::SYS_mkdir, "mkdir"),
    (libc::SYS_mkdirat, "mkdirat"),
    (libc::SYS_rmdir, "rmdir"),
    (libc::SYS_unlink, "unlink"),
    (libc::SYS_unlinkat, "unlinkat"),
    (libc::SYS_rename, "rename"),
    (libc::SYS_renameat, "renameat"),
    (libc::SYS_renameat2, "renameat2"),
    (libc::SYS_link, "link"),
    (libc::SYS_linkat, "linkat"),
    (libc::SYS_symlinkat, "symlinkat"),
    (libc::SYS_truncate, "truncate"),
    (libc::SYS_chmod, "chmod"),
    (libc::SYS_fchmod, "fchmod"),
    (libc::SYS_fchmodat, "fchmodat"),
];

#[cfg(not(target_arch = "x86_64"))]
const CHANGES: [(libc::c_long, &str); 11] = [
    (libc::SYS_bind, "bind"),
    (libc::SYS_copy_file_range, "copy_file_range"),
    (libc::SYS_mknodat, "mknodat"),
    (libc::SYS_mkdirat, "mkdirat"),
    (libc::SYS_unlinkat, "unlinkat"),
    (libc::SYS_renameat2, "renameat2"),
    (libc::SYS_linkat, "linkat"),
    (libc::SYS_symlinkat, "symlinkat"),
    (libc::SYS_truncate, "truncate"),
    (libc::SYS_fchmod, "fchmod"),
    (libc::SYS_fchmodat, "fchmodat"),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// A shell that makes a file, names it and removes it leaves what the number says.
    #[test]
    fn the_nth_call_is_not_made() {
        let script = "exec 3>one; echo x >&3; mv one two; rm two";
        let dir = tempfile::tempdir().unwrap();
        let run = |n| {
            let inside = dir.path().join(format!("{n}"));
            std::fs::create_dir(&inside).unwrap();
            let mut shell = Command::new("sh");
            shell.args(["-c", script]).current_dir(&inside);
            let traced = KillAt::start(shell, n).wait().unwrap();
            let mut left: Vec<_> = std::fs::read_dir(&inside).unwrap().map(|e| e.unwrap()).collect();
            (traced, left.pop().map(|e| (e.file_name(), std::fs::read(e.path()).unwrap())))
        };
        let (whole, left) = run(0);
        assert!(whole.status.success() && whole.killed_at.is_none(), "{whole:?}");
        assert_eq!((whole.calls, left), (4, None), "{whole:?}");
        for (n, name, bytes) in [(1, None, ""), (2, Some("one"), ""), (3, Some("one"), "x\n")] {
            let (traced, left) = run(n);
            assert_eq!(left, name.map(|name| (name.into(), bytes.into())), "{n}: {traced:?}");
        }
    }

    /// A shell is told that a write failed, and goes on.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_nth_call_fails() {
        let dir = tempfile::tempdir().unwrap();
        let run = |n, then| {
            let mut shell = Command::new("sh");
            shell.args(["-c", "echo x >one; echo y >two; true"]).current_dir(&dir);
            shell.stderr(std::process::Stdio::null());
            let traced = KillAt::start_to(shell, n, then).wait().unwrap();
            let read = |name| std::fs::read_to_string(dir.path().join(name)).unwrap_or_default();
            (traced.status.success(), traced.calls, read("one") + &read("two"))
        };
        assert_eq!(run(0, AtCall::Full), (true, 4, "x\ny\n".into()));
        assert_eq!(run(2, AtCall::Fail(libc::EIO)), (true, 4, "y\n".into()));
        std::fs::remove_file(dir.path().join("two")).unwrap();
        assert_eq!(run(3, AtCall::Full), (true, 3, "x\n".into()), "the second file is not opened");
    }
}
