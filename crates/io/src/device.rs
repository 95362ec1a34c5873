//! The seam at the bottom: something with a length whose bytes can be read, written and made durable.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::RawFd;
use std::sync::Arc;

use crate::cost::CostModel;
use crate::error::IoError;
use crate::simulated::SimulatedDevice;

/// What a device demands of requests, in bytes (powers of two; 1 when it does not care).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alignment {
    /// Addresses of buffers.
    pub memory: usize,
    /// Offsets and lengths.
    pub offset: usize,
}

impl Alignment {
    /// Anything goes.
    pub const NONE: Alignment = Alignment { memory: 1, offset: 1 };
}

/// A device. All calls block and move all bytes or fail; batches and order are the business of
/// [`DeviceQueue`](crate::DeviceQueue).
#[allow(clippy::len_without_is_empty)]
pub trait Device: Send + Sync {
    /// Its name in errors and reports; the path when it is a file.
    fn name(&self) -> &Arc<str>;

    /// Length in bytes.
    fn len(&self) -> Result<u64, IoError>;

    /// Makes it `len` bytes long, cutting or adding zeros.
    fn set_len(&self, len: u64) -> Result<(), IoError>;

    /// Makes it at least `len` bytes long. Where the device can promise it, there is room for all of them: writing there will not find it full.
    fn lengthen(&self, len: u64) -> Result<(), IoError> {
        if self.len()? < len { self.set_len(len) } else { Ok(()) }
    }

    /// Fills all of `bufs` from the bytes at `offset` on; [`Short`](crate::IoErrorKind::Short) at the end of the device.
    fn read_at(&self, bufs: &mut [IoSliceMut<'_>], offset: u64) -> Result<(), IoError>;

    /// Writes all of `bufs` to `offset` on, growing the device if need be.
    fn write_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Result<(), IoError>;

    /// Returns when everything written before is durable.
    fn sync(&self) -> Result<(), IoError>;

    /// A file descriptor on which an engine may read and write directly, where there is one.
    fn fd(&self) -> Option<RawFd> {
        None
    }

    /// What buffers and offsets must be multiples of.
    fn alignment(&self) -> Alignment {
        Alignment::NONE
    }

    /// The simulated device, if it is one: queues then let its model say when requests are over.
    fn simulated(&self) -> Option<&SimulatedDevice> {
        None
    }

    /// What its requests cost, as far as it can say itself.
    fn cost(&self) -> CostModel {
        CostModel::ssd()
    }
}
