//! The bytes of an emulated device, and whether it has power.

use std::io::{IoSlice, IoSliceMut};
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use snowmelt_io::{Device, IoError};

use super::unsynced::{CutReport, Keep, SECTOR, Unsynced};

/// Most bytes of unsynced writes kept for a cut; older ones count as durable, as with a drive's
/// bounded cache.
const UNSYNCED_BYTES: u64 = 256 << 20;

/// Error number of a device without power.
const EIO: i32 = 5;

/// Requests that the memory or file behind a device refused, since the counts were reset.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Refused {
    pub reads: u64,
    pub writes: u64,
    /// The reason of the latest.
    pub why: String,
}

impl Refused {
    /// In words, if there are any.
    pub fn show(&self) -> Option<String> {
        let count =
            |n: u64, noun: &str| (n > 0).then(|| format!("{n} {noun}{}", if n == 1 { "" } else { "s" }));
        let counts = [count(self.reads, "read"), count(self.writes, "write")];
        let counts = counts.into_iter().flatten().collect::<Vec<_>>().join(" and ");
        (!counts.is_empty()).then(|| format!("{counts} failed, the latest by: {}", self.why))
    }
}

/// Bytes with power.
pub struct Medium {
    backing: Arc<dyn Device>,
    state: Mutex<MediumState>,
    refused: Mutex<Refused>,
}

struct MediumState {
    /// Counted on by every cut; a request that began before it fails.
    epoch: u64,
    on: bool,
    unsynced: Option<Unsynced>,
}

/// A request while the power was on.
#[derive(Debug, Clone, Copy)]
pub struct Begun {
    epoch: u64,
    /// Of a write or flush, its number among the unsynced.
    number: u64,
}

impl Medium {
    /// With `power_cut`, unsynced writes can be lost.
    pub fn new(backing: Arc<dyn Device>, power_cut: bool) -> Medium {
        let unsynced = power_cut.then(|| Unsynced::new(UNSYNCED_BYTES));
        let state = Mutex::new(MediumState { epoch: 0, on: true, unsynced });
        Medium { backing, state, refused: Mutex::default() }
    }

    /// A read begins.
    pub fn begin_read(&self) -> Result<Begun, i32> {
        let state = self.state.lock();
        if state.on { Ok(Begun { epoch: state.epoch, number: 0 }) } else { Err(EIO) }
    }

    /// A write begins: its bytes can be read from now on.
    pub fn begin_write(&self, offset: u64, bytes: &[u8]) -> Result<Begun, i32> {
        let mut state = self.state.lock();
        if !state.on {
            return Err(EIO);
        }
        let epoch = state.epoch;
        let Some(unsynced) = &mut state.unsynced else {
            drop(state);
            self.backing.write_at(&[IoSlice::new(bytes)], offset).map_err(|e| self.write_refused(e))?;
            return Ok(Begun { epoch, number: 0 });
        };
        if !offset.is_multiple_of(SECTOR) || !(bytes.len() as u64).is_multiple_of(SECTOR) {
            return Err(22); // EINVAL: a block device is written in sectors
        }
        let number = unsynced.record(&*self.backing, offset, bytes).map_err(|e| self.write_refused(e))?;
        self.backing.write_at(&[IoSlice::new(bytes)], offset).map_err(|e| self.write_refused(e))?;
        Ok(Begun { epoch, number })
    }

    /// A flush begins.
    pub fn begin_flush(&self) -> Result<Begun, i32> {
        let mut state = self.state.lock();
        if !state.on {
            return Err(EIO);
        }
        let number = state.unsynced.as_mut().map_or(0, Unsynced::flush_begun);
        Ok(Begun { epoch: state.epoch, number })
    }

    /// The bytes of a read.
    pub fn read(&self, offset: u64, len: usize) -> Result<Vec<u8>, i32> {
        let mut bytes = vec![0; len];
        self.backing.read_at(&mut [IoSliceMut::new(&mut bytes)], offset).map_err(|e| self.read_refused(e))?;
        Ok(bytes)
    }

    /// A read is about to be answered.
    pub fn end_read(&self, begun: Begun) -> Result<(), i32> {
        self.still(begun, &self.state.lock())
    }

    /// A write is about to be acknowledged.
    pub fn end_write(&self, begun: Begun) -> Result<(), i32> {
        let mut state = self.state.lock();
        self.still(begun, &state)?;
        if let Some(unsynced) = &mut state.unsynced {
            unsynced.acknowledged(begun.number);
        }
        Ok(())
    }

    /// A flush is about to be acknowledged.
    pub fn end_flush(&self, begun: Begun) -> Result<(), i32> {
        let mut state = self.state.lock();
        self.still(begun, &state)?;
        if let Some(unsynced) = &mut state.unsynced {
            unsynced.flushed(begun.number);
        }
        Ok(())
    }

    fn still(&self, begun: Begun, state: &MediumState) -> Result<(), i32> {
        if state.on && state.epoch == begun.epoch { Ok(()) } else { Err(EIO) }
    }

    /// Cuts the power; nothing is answered until [`Medium::power_on`]. None when the device was
    /// not made for it.
    pub fn cut(&self, keep: Keep, seed: u64) -> Option<Result<CutReport, IoError>> {
        let mut state = self.state.lock();
        let state = &mut *state;
        let unsynced = state.unsynced.as_mut()?;
        state.on = false;
        state.epoch += 1;
        Some(unsynced.cut(&*self.backing, keep, seed))
    }

    /// Switches on again.
    pub fn power_on(&self) {
        self.state.lock().on = true;
    }

    /// Whether it has power.
    pub fn is_on(&self) -> bool {
        self.state.lock().on
    }

    fn read_refused(&self, error: IoError) -> i32 {
        let mut refused = self.refused.lock();
        (refused.reads, refused.why) = (refused.reads + 1, error.to_string());
        errno(error)
    }

    fn write_refused(&self, error: IoError) -> i32 {
        let mut refused = self.refused.lock();
        (refused.writes, refused.why) = (refused.writes + 1, error.to_string());
        errno(error)
    }

    /// Requests that its bytes' holder refused.
    pub fn refused(&self) -> Refused {
        self.refused.lock().clone()
    }

    /// Starts counting those anew.
    pub fn reset_counters(&self) {
        *self.refused.lock() = Refused::default();
    }

    /// Writes that a cut could lose now.
    pub fn unsynced(&self) -> usize {
        self.state.lock().unsynced.as_ref().map_or(0, Unsynced::len)
    }
}

fn errno(error: IoError) -> i32 {
    error.errno().unwrap_or(EIO)
}

#[cfg(test)]
mod tests {
    use snowmelt_io::MemoryDevice;

    use super::*;

    #[test]
    fn what_the_backing_refuses_is_counted() {
        let backing = Arc::new(snowmelt_io::SparseMemoryDevice::new("full", 1 << 30, 1 << 20));
        let medium = Medium::new(backing, false);
        medium.begin_write(0, &[1; 4096]).expect("there is room");
        assert_eq!(medium.refused(), Refused::default());
        let write = |i: u64| medium.begin_write(i << 20, &[1; 4096]);
        let full = (1..1000).find(|&i| write(i).is_err()).expect("room for less than that");
        assert_eq!(write(full).expect_err("no room"), 28, "ENOSPC");
        assert!(medium.read(1 << 31, 512).is_err(), "beyond the end");
        let refused = medium.refused();
        assert_eq!((refused.reads, refused.writes), (1, 2));
        let text = refused.show().expect("some");
        assert!(text.starts_with("1 read and 2 writes failed, the latest by: "), "{text}");
        medium.reset_counters();
        assert_eq!(medium.refused().show(), None);
    }

    #[test]
    fn without_power_nothing_is_answered_and_what_was_under_way_fails() {
        let backing = Arc::new(MemoryDevice::from_bytes("disk", vec![0; 8192]));
        let medium = Medium::new(backing, true);
        let durable = medium.begin_write(0, &[1; 512]).expect("on");
        medium.end_write(durable).expect("acknowledged");
        let flush = medium.begin_flush().expect("on");
        medium.end_flush(flush).expect("flushed");
        let lost = medium.begin_write(0, &[2; 512]).expect("on");
        let read = medium.begin_read().expect("on");
        let report = medium.cut(Keep::None, 1).expect("made for it").expect("cut");
        assert_eq!((report.unsynced, report.lost), (1, 1));
        assert_eq!((medium.end_write(lost), medium.end_read(read)), (Err(EIO), Err(EIO)));
        assert_eq!(medium.begin_read().err(), Some(EIO));
        assert_eq!(medium.begin_write(0, &[3; 512]).err(), Some(EIO));
        medium.power_on();
        assert_eq!(medium.end_write(lost), Err(EIO), "still of before");
        medium.begin_read().expect("on again");
        assert_eq!(medium.read(0, 512).expect("there"), [1; 512]);
        let plain = Medium::new(Arc::new(MemoryDevice::new("plain")), false);
        assert!(plain.cut(Keep::All, 1).is_none());
    }
}
