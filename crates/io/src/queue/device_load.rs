//! The load of the device now.

/// Device requests and bytes that are at the device.
#[derive(Clone, Copy, Default)]
pub(crate) struct DeviceLoad {
    /// Device requests of the queue.
    pub(crate) requests: usize,
    /// Those of them that are of the background.
    pub(crate) background: usize,
    /// Those of them that write.
    pub(crate) writes: usize,
    /// Bytes, reads in place included.
    pub(crate) bytes: u64,
    /// Those of them that are not of the background.
    pub(crate) urgent_bytes: u64,
    /// The shortest time of a demand read lately, in nanoseconds; 0 when there was none.
    pub(crate) least_ns: u64,
}
