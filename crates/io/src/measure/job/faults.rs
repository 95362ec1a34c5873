//! Faults of mapped memory that a job survives.
//!
//! The kernel answers an access to a page that it cannot have with SIGBUS: of a hole when the disk
//! is full, of a device that fails, of a file that was cut short. That ends a process, with all
//! that it has yet to set back. So, while a map is watched:
//!
//! 1. The handler finds the map by the address of the fault, and marks it.
//! 2. It puts a page of zeros, which is no part of the file, in the place of the faulty one.
//! 3. The access goes on, and the job, which looks at the mark behind each, fails.
//!
//! Every other SIGBUS goes to the handler of before.

#![allow(unsafe_code)]

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Maps that can be watched at once.
const MOST_MAPS: usize = 64;

/// A place in the table of maps. Its bounds are set before it is in use, and stay as long.
struct Guarded {
    taken: AtomicBool,
    start: AtomicUsize,
    /// Zero while it is in no use.
    end: AtomicUsize,
    faulty: AtomicBool,
}

impl Guarded {
    const fn free() -> Guarded {
        Guarded {
            taken: AtomicBool::new(false),
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            faulty: AtomicBool::new(false),
        }
    }
}

static MAPS: [Guarded; MOST_MAPS] = [const { Guarded::free() }; MOST_MAPS];

static PAGE_BYTES: AtomicUsize = AtomicUsize::new(0);

/// The handler of before, set once it is replaced.
static BEFORE: OnceLock<io::Result<libc::sigaction>> = OnceLock::new();

/// A map whose faults are errors, until it is dropped.
pub(super) struct FaultWatch(&'static Guarded);

impl FaultWatch {
    /// Watches a map, which must be there as long.
    ///
    /// # Errors
    /// SIGBUS cannot be handled, or too many maps are watched.
    pub(super) fn begin(start: *const u8, len: usize) -> io::Result<FaultWatch> {
        PAGE_BYTES.store(rustix::param::page_size(), Ordering::Relaxed);
        if let Err(e) = BEFORE.get_or_init(install) {
            return Err(io::Error::new(e.kind(), e.to_string()));
        }
        let free = |map: &&Guarded| !map.taken.swap(true, Ordering::Acquire);
        let map = MAPS.iter().find(free).ok_or_else(|| io::Error::other("too many files are mapped"))?;
        map.faulty.store(false, Ordering::Relaxed);
        map.start.store(start as usize, Ordering::Relaxed);
        map.end.store(start as usize + len, Ordering::Release);
        Ok(FaultWatch(map))
    }

    /// True once an access to the map did not reach the file.
    pub(super) fn is_faulty(&self) -> bool {
        self.0.faulty.load(Ordering::Relaxed)
    }
}

impl Drop for FaultWatch {
    fn drop(&mut self) {
        self.0.end.store(0, Ordering::Release);
        self.0.taken.store(false, Ordering::Release);
    }
}

fn install() -> io::Result<libc::sigaction> {
    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = heard;
    // SAFETY: an action of zeros is a valid one: the default, with no flags and no signals blocked.
    let (mut action, mut before) = unsafe { (std::mem::zeroed::<libc::sigaction>(), std::mem::zeroed()) };
    action.sa_sigaction = handler as usize;
    // On the stack of its own that threads have: the fault may be the end of the usual one.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: both structures live through the call, and the handler calls what a handler may.
    let answer = unsafe { libc::sigaction(libc::SIGBUS, &action, &mut before) };
    if answer == 0 { Ok(before) } else { Err(io::Error::last_os_error()) }
}

/// The handler: atomics and system calls only.
extern "C" fn heard(_signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel hands over a structure that is valid as long as the handler runs.
    let (address, code) = unsafe { ((*info).si_addr() as usize, (*info).si_code) };
    // A code of a process that sent the signal is not above zero.
    if code > 0 && MAPS.iter().any(|map| replaced(map, address)) {
        return;
    }
    // SAFETY: an action of zeros is the default one.
    let default = unsafe { std::mem::zeroed() };
    let before = match BEFORE.get() {
        Some(Ok(before)) => before,
        _ => &default,
    };
    // SAFETY: the structure lives through the call. A fault comes again when the handler returns,
    // one that was sent is sent once more; either then meets the handler of before.
    unsafe {
        libc::sigaction(libc::SIGBUS, before, std::ptr::null_mut());
        if code <= 0 {
            libc::raise(libc::SIGBUS);
        }
    }
}

/// Puts a page of zeros in the place of a faulty one, if that lies in the map.
fn replaced(map: &Guarded, address: usize) -> bool {
    let end = map.end.load(Ordering::Acquire);
    if !(map.start.load(Ordering::Relaxed)..end).contains(&address) {
        return false;
    }
    let page = PAGE_BYTES.load(Ordering::Relaxed);
    let (protection, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED);
    let place = (address / page * page) as *mut libc::c_void;
    map.faulty.store(true, Ordering::Relaxed);
    // SAFETY: the page belongs to a map that is there as long as it is watched, in which no
    // reference leads, and whose owner unmaps all of it in the end.
    let at = unsafe { libc::mmap(place, page, protection, flags, -1, 0) };
    at == place
}
