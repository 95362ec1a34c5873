//! Another file on a simulated device: its requests take their turns there with those of the
//! device's own file, as those of a journal on the volume of the data do.

use std::io::{IoSlice, IoSliceMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::cost::CostModel;
use crate::device::simulated::SimulatedDevice;
use crate::device::timed::TransferKind;
use crate::device::{Alignment, Device, ReadDevice};
use crate::error::IoError;
use crate::time::clock::Clock;
use crate::time::event_count::EventCount;

/// See the head of the file.
pub struct FileBeside {
    device: Arc<SimulatedDevice>,
    file: Arc<dyn Device>,
    /// Where the file lies on the device.
    begin: u64,
    clock: Clock,
}

impl FileBeside {
    /// `file`, which lies from `begin` on on `device`.
    pub fn new(device: Arc<SimulatedDevice>, file: Arc<dyn Device>, begin: u64, clock: &Clock) -> FileBeside {
        FileBeside { device, file, begin, clock: clock.clone() }
    }

    /// Moves bytes with `act` and waits until the device would be done.
    fn spend<R>(&self, kind: TransferKind, offset: u64, len: u64, act: impl FnOnce() -> R) -> R {
        let over = Arc::new((AtomicBool::new(false), EventCount::new(&self.clock)));
        let told = over.clone();
        self.device.begin(kind, self.begin + offset, len, move || {
            told.0.store(true, Ordering::Release);
            told.1.notify_all();
        });
        let done = act();
        over.1.wait_until(|| over.0.load(Ordering::Acquire));
        done
    }
}

impl ReadDevice for FileBeside {
    fn name(&self) -> &Arc<str> {
        self.file.name()
    }

    fn len(&self) -> Result<u64, IoError> {
        self.file.len()
    }

    fn read_at(&self, bufs: &mut [IoSliceMut<'_>], offset: u64) -> Result<(), IoError> {
        let len = bufs.iter().map(|b| b.len() as u64).sum();
        self.spend(TransferKind::Read, offset, len, || self.file.read_at(bufs, offset))
    }

    fn alignment(&self) -> Alignment {
        self.file.alignment()
    }

    fn cost(&self) -> CostModel {
        self.device.cost()
    }
}

impl Device for FileBeside {
    fn set_len(&self, len: u64) -> Result<(), IoError> {
        self.file.set_len(len)
    }

    fn write_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Result<(), IoError> {
        let len = bufs.iter().map(|b| b.len() as u64).sum();
        self.spend(TransferKind::Write, offset, len, || self.file.write_at(bufs, offset))
    }

    fn sync(&self) -> Result<(), IoError> {
        self.spend(TransferKind::Flush, 0, 0, || self.file.sync())
    }
}
