//! The seam at the bottom: a device has a length and bytes that can be read ([`ReadDevice`]), and
//! mostly also written and made durable ([`Device`]).
//!
//! Every call blocks, and moves all bytes or fails. Order, merging and
//! depth are the business of the queue above.

pub(crate) mod faulty;
pub(crate) mod file;
pub(crate) mod memory;
pub(crate) mod power;
pub(crate) mod read_only;
pub(crate) mod simulated;
pub(crate) mod sparse;
pub(crate) mod timed;

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::RawFd;
use std::sync::Arc;

use crate::cost::CostModel;
use crate::device::timed::TimedDevice;
use crate::error::IoError;
use crate::system::folder::FileId;

/// Most buffers of one vectored transfer.
pub(crate) const IOV_MAX: usize = 1024;

/// Alignment that a device demands of requests, in bytes: powers of two, 1 for none.
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

/// A device that can be read. All calls block, and move all bytes or fail; batches and order are
/// the business of [`DeviceQueue`](crate::DeviceQueue).
#[allow(clippy::len_without_is_empty)]
pub trait ReadDevice: Send + Sync {
    /// Its name in errors and reports; the path when it is a file.
    fn name(&self) -> &Arc<str>;

    /// Length in bytes.
    ///
    /// # Errors
    /// The device fails.
    fn len(&self) -> Result<u64, IoError>;

    /// Fills all of `bufs` from the bytes at `offset` on; [`Short`](crate::IoErrorKind::Short)
    /// at the end of the device.
    ///
    /// # Errors
    /// The device fails, or ends before all of `bufs` is filled.
    fn read_at(&self, bufs: &mut [IoSliceMut<'_>], offset: u64) -> Result<(), IoError>;

    /// A file descriptor on which an engine may read and write directly, where there is one.
    fn fd(&self) -> Option<RawFd> {
        None
    }

    /// The file it is, where it is one that can be deleted or replaced: not of a block device.
    fn file_id(&self) -> Option<FileId> {
        None
    }

    /// Multiples that buffers and offsets must be.
    fn alignment(&self) -> Alignment {
        Alignment::NONE
    }

    /// The device's own timing, where it has one: such a device tells its queue when requests are
    /// over.
    #[doc(hidden)]
    fn timed(&self) -> Option<Arc<dyn TimedDevice>> {
        None
    }

    /// A first guess of the cost of its requests, as far as the device knows it.
    fn cost(&self) -> CostModel {
        CostModel::ssd()
    }
}

/// A device that can also be written. One that cannot is a [`ReadOnly`] for those that want both.
pub trait Device: ReadDevice {
    /// Makes it `len` bytes long, cutting or adding zeros.
    ///
    /// # Errors
    /// The device fails, or has no room.
    fn set_len(&self, len: u64) -> Result<(), IoError>;

    /// Makes it at least `len` bytes long. Where the device can promise it, all of them have
    /// room: a write to them cannot fail for want of space.
    ///
    /// # Errors
    /// The device fails, or has no room.
    fn lengthen(&self, len: u64) -> Result<(), IoError> {
        if self.len()? < len { self.set_len(len) } else { Ok(()) }
    }

    /// Writes all of `bufs` to `offset` on, growing the device if need be.
    ///
    /// # Errors
    /// The device fails, has no room, or cannot take this offset or these buffers.
    fn write_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Result<(), IoError>;

    /// Returns when everything written before is durable.
    ///
    /// # Errors
    /// The device fails: what was written since the last sync may be lost.
    fn sync(&self) -> Result<(), IoError>;
}
