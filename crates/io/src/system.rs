//! Calls of the kernel about devices (block devices, loop devices, the page cache, priorities,
//! calls that may hang) and open directories; small files below `/proc` and `/sys`; numbers of
//! threads; and, for tests, the system calls of other programs.

pub(crate) mod apart;
pub(crate) mod block_device;
pub(crate) mod byte_lock;
pub(crate) mod folder;
pub(crate) mod kernel_files;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) mod kill_at;
pub(crate) mod loop_device;
pub(crate) mod page_cache;
pub(crate) mod priority;
pub(crate) mod thread_number;
