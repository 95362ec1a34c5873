//! Calls of the kernel that the laboratory needs: loop devices, the page cache, calls that may
//! hang.

pub(crate) mod apart;
pub(crate) mod loop_device;
pub(crate) mod page_cache;
