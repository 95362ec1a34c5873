//! Calls of the kernel about devices (block devices, loop devices, the page cache, calls that
//! may hang) and open directories, numbers of threads, and for tests what other programs call.

pub(crate) mod apart;
pub(crate) mod block_device;
pub(crate) mod folder;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) mod kill_at;
pub(crate) mod loop_device;
pub(crate) mod page_cache;
pub(crate) mod thread_number;
