//! Devices with a timing of their own, such as simulated ones: they decide when a request is
//! over.
//!
//! A queue learns from [`Device::timed`](crate::Device::timed) whether its device is one. If so
//! it needs no engine: each request goes to the device as a transfer (the facts its time
//! depends on) and a task (the bytes, and the end).

use std::sync::Arc;

use crate::device::Device;
use crate::time::virtual_time::Timer;

/// The direction of a transfer, or a flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransferKind {
    /// Bytes from the device.
    Read,
    /// Bytes to the device.
    Write,
    /// Everything written before made durable.
    Flush,
}

impl TransferKind {
    /// Of a request that writes or reads.
    pub(crate) fn from_write(write: bool) -> TransferKind {
        if write { TransferKind::Write } else { TransferKind::Read }
    }
}

/// The facts of a request on which its time depends.
#[derive(Debug, Clone, Copy)]
pub struct Transfer {
    /// First byte on the device.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
    /// Read, write or flush.
    pub kind: TransferKind,
}

/// A request at a timed device: the device calls `move_bytes` once, then `over` when the time
/// has come.
pub trait TimedTask: Send {
    /// Moves the bytes, on the device beneath the timed one.
    fn move_bytes(&mut self, beneath: &dyn Device);

    /// The request is over. Must not wait.
    fn over(self: Box<Self>);
}

/// A device that decides when its requests are over.
pub trait TimedDevice: Send + Sync {
    /// Begins a request; its task hears when it is over, from any thread.
    fn begin(self: Arc<Self>, transfer: Transfer, task: Box<dyn TimedTask>);

    /// Moves bytes with `act` on the device beneath, in this thread, and returns when the
    /// request is over.
    fn carry_out(self: Arc<Self>, transfer: Transfer, act: &mut dyn FnMut(&dyn Device));

    /// Fires `timer` at `at_ns` of the device's clock.
    fn alarm(self: Arc<Self>, at_ns: u64, timer: Arc<dyn Timer>);
}
