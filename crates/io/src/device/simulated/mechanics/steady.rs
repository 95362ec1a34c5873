//! A steady load on a model alone: without threads, bytes and clock, hours pass in a moment.
//! Burst credits last that long.

use crate::device::simulated::mechanics::Mechanics;
use crate::device::simulated::model::DeviceModel;
use crate::device::simulated::model::bounds::ModelError;
use crate::device::timed::{Transfer, TransferKind};

/// Places a load goes through before it begins anew.
const SPAN: u64 = 1 << 50;

/// A load that does not change.
#[derive(Debug, Clone, Copy)]
pub struct SteadyLoad {
    /// Requests outstanding at all times.
    pub depth: usize,
    /// Bytes of each.
    pub len: u64,
    /// From one request's first byte to the next one's.
    pub stride: u64,
    /// Writes instead of reads.
    pub write: bool,
    /// The device rested for so many seconds after its burst credits were gone; without it, it
    /// begins with all of them.
    pub rested_s: Option<f64>,
}

/// An endless iterator over the ends of a steady load's requests, ascending, in nanoseconds from
/// its start.
pub struct SteadyEnds {
    device: Box<dyn Mechanics>,
    load: SteadyLoad,
    sent: usize,
    begin_ns: u64,
}

impl SteadyLoad {
    /// Puts the load on `model`.
    ///
    /// # Errors
    /// The model is out of bounds.
    pub fn on(self, model: &DeviceModel) -> Result<SteadyEnds, ModelError> {
        let mut device = model.build()?;
        if self.rested_s.is_some() {
            device.spend_credits(0);
        }
        let begin_ns = (self.rested_s.unwrap_or(0.0) * 1e9) as u64;
        let mut ends = SteadyEnds { device, load: self, sent: 0, begin_ns };
        (0..self.depth.max(1)).for_each(|_| ends.send(begin_ns));
        Ok(ends)
    }
}

impl SteadyEnds {
    fn send(&mut self, at_ns: u64) {
        let SteadyLoad { len, stride, write, .. } = self.load;
        let offset = (self.sent as u64).wrapping_mul(stride) % SPAN;
        self.device.arrive(self.sent, Transfer { offset, len, kind: TransferKind::from_write(write) }, at_ns);
        self.sent += 1;
    }
}

impl Iterator for SteadyEnds {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        // Without a request's end, something inside the device has happened.
        let end_ns = loop {
            let due_ns = self.device.next_due().expect("requests are outstanding");
            if let Some((_, end_ns)) = self.device.pop_due(due_ns) {
                break end_ns;
            }
        };
        self.send(end_ns);
        Some(end_ns - self.begin_ns)
    }
}
