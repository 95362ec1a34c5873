//! The load of the device now.

/// Device requests and bytes that are at the device.
#[derive(Clone, Copy, Default)]
pub(crate) struct DeviceLoad {
    /// Device requests of the queue.
    pub(crate) requests: usize,
    /// Device requests of the background.
    pub(crate) background: usize,
    /// Device requests that write.
    pub(crate) writes: usize,
    /// Bytes, reads in place included.
    pub(crate) bytes: u64,
    /// Bytes of requests that are not of the background.
    pub(crate) urgent_bytes: u64,
    /// The shortest time of a demand read lately, in nanoseconds; 0 when there was none.
    pub(crate) least_ns: u64,
}
