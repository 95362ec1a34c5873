//! Pages of a file in the kernel's page cache: cachestat(2), Linux 6.5.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Number of cachestat(2) on the architectures with a common table (x86-64, aarch64, riscv64);
/// libc does not name it everywhere.
const CACHESTAT: libc::c_long = 451;

#[repr(C)]
#[derive(Default)]
struct CacheStatRange {
    offset: u64,
    len: u64,
}

#[repr(C)]
#[derive(Default)]
struct CacheStat {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// Pages of the kernel's size (4096 bytes) of `file` in the page cache; an error where the
/// kernel is older than Linux 6.5.
///
/// # Errors
/// The kernel is older than Linux 6.5.
pub fn cached_pages(file: &File) -> io::Result<u64> {
    let (range, mut stat) = (CacheStatRange::default(), CacheStat::default());
    // SAFETY: the two structures are laid out as the kernel's, live through the call, and the
    // kernel writes only the second. A length of 0 means up to the end of the file.
    let answer = unsafe { libc::syscall(CACHESTAT, file.as_raw_fd(), &range, &mut stat, 0u32) };
    if answer == 0 { Ok(stat.cached) } else { Err(io::Error::last_os_error()) }
}
