//! Troubles of a simulated device: it stalls, lies, fails, or becomes another device.
//!
//! They are plain data, and a seed decides what happens to which request, so a run can be repeated.

use std::io::{IoSlice, IoSliceMut};
use std::sync::Arc;

use snowmelt_base::random::mix;

use crate::cost::CostModel;
use crate::device::simulated::model::DeviceModel;
use crate::device::{Alignment, Device, ReadDevice};
use crate::error::{IoError, IoErrorKind, Operation};

/// Places are unwritten or bad in pieces of so many bytes.
const PIECE_BITS: u32 = 21;

/// Ways in which a simulated device is worse than its model. Each is off by default.
#[derive(Debug, Clone, Default)]
pub struct Troubles {
    /// Decides what happens to which request.
    pub seed: u64,
    /// From these moments on, in nanoseconds and ascending, requests go to another device.
    pub becomes: Vec<(u64, DeviceModel)>,
    /// Now and then nothing is answered.
    pub stalls: Option<Stalls>,
    /// Answers come later by up to so many nanoseconds, and so in another order.
    pub scatter_ns: u64,
    /// A share of the requests takes longer, some of them very much.
    pub tail: Option<TroubledShare>,
    /// A cache in front answers a share of the reads.
    pub hits: Option<TroubledShare>,
    /// A share of the places was never written, which a file system knows without the device.
    pub unwritten: Option<TroubledShare>,
    /// Reads of a share of the places fail.
    pub bad: Option<TroubledShare>,
}

/// Periods in which a device answers nothing.
#[derive(Debug, Clone, Copy)]
pub struct Stalls {
    /// From one to the next, at most, in nanoseconds.
    pub pause_ns: u64,
    /// The shortest, in nanoseconds.
    pub least_ns: u64,
    /// The longest, in nanoseconds.
    pub most_ns: u64,
}

/// A share of the requests, and their time.
#[derive(Debug, Clone, Copy)]
pub struct TroubledShare {
    /// From 0 to 1.
    pub share: f64,
    /// Nanoseconds; of a tail in the mean, beside what they take anyway.
    pub ns: u64,
}

impl TroubledShare {
    /// True for places of this share.
    fn has(&self, seed: u64, offset: u64) -> bool {
        let unit = (mix(seed ^ (offset >> PIECE_BITS)) >> 11) as f64 / (1u64 << 53) as f64;
        unit < self.share
    }
}

/// Makes two shares of places independent of each other.
const BAD_SEED: u64 = 0xbad;

impl Troubles {
    /// Time of a read that never reaches the device: its place is bad or unwritten.
    pub(crate) fn answered_without(&self, offset: u64) -> Option<u64> {
        let bad = self.bad.filter(|bad| bad.has(self.seed ^ BAD_SEED, offset));
        let unwritten = || self.unwritten.filter(|unwritten| unwritten.has(self.seed, offset));
        bad.or_else(unwritten).map(|quick| quick.ns)
    }

    /// The bytes beneath, of which those of bad places cannot be read.
    pub(crate) fn bytes(&self, inner: Arc<dyn Device>) -> Arc<dyn Device> {
        match self.bad {
            None => inner,
            Some(bad) => Arc::new(BadPlaces { inner, bad, seed: self.seed ^ BAD_SEED }),
        }
    }
}

/// A device with places that cannot be read.
struct BadPlaces {
    inner: Arc<dyn Device>,
    bad: TroubledShare,
    seed: u64,
}

impl ReadDevice for BadPlaces {
    fn name(&self) -> &Arc<str> {
        self.inner.name()
    }

    fn len(&self) -> Result<u64, IoError> {
        self.inner.len()
    }

    fn read_at(&self, bufs: &mut [IoSliceMut<'_>], offset: u64) -> Result<(), IoError> {
        if !self.bad.has(self.seed, offset) {
            return self.inner.read_at(bufs, offset);
        }
        let len = bufs.iter().map(|b| b.len() as u64).sum();
        let kind = IoErrorKind::Os { errno: libc::EIO };
        Err(IoError { device: self.name().clone(), operation: Operation::Read, offset, len, kind })
    }

    fn alignment(&self) -> Alignment {
        self.inner.alignment()
    }

    fn cost(&self) -> CostModel {
        self.inner.cost()
    }
}

impl Device for BadPlaces {
    fn set_len(&self, len: u64) -> Result<(), IoError> {
        self.inner.set_len(len)
    }

    fn write_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Result<(), IoError> {
        self.inner.write_at(bufs, offset)
    }

    fn sync(&self) -> Result<(), IoError> {
        self.inner.sync()
    }
}
