//! Calls of the kernel about devices (block devices, loop devices, the page cache, calls that
//! may hang) and open directories, and numbers of threads.

pub(crate) mod apart;
pub(crate) mod block_device;
pub(crate) mod folder;
pub(crate) mod loop_device;
pub(crate) mod page_cache;
pub(crate) mod thread_number;
