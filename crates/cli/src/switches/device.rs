//! `--device`: the real one, or a model of another in front of the files.

use std::io::{IoSlice, IoSliceMut};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use snowmelt_io::{
    Alignment, Clock, CostModel, Device, DeviceModel, EventCount, IoError, SimulatedDevice, TransferKind,
};
use snowmelt_store::DeviceWrap;

/// The device between the queue and the database's files.
#[derive(Clone, Debug, PartialEq)]
pub enum DeviceChoice {
    /// nothing
    Real,
    /// a model of a device, in real time: completions are delivered when that device would have
    /// delivered them
    Simulated(DeviceModel),
}

impl FromStr for DeviceChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("sim:") {
            _ if text == "real" => Ok(Self::Real),
            Some(name) => DeviceModel::named(name).map(Self::Simulated).map_err(|e| e.to_string()),
            None => {
                Err("use real, sim:hdd, sim:wide-slow, sim:nvme, or sim:FILE with a model in TOML".into())
            }
        }
    }
}

impl DeviceChoice {
    /// Puts the model in front of each stripe's file, and the journal's files on the first
    /// stripe's device.
    pub fn wrap(&self, clock: &Clock) -> Option<(DeviceWrap, DeviceWrap)> {
        let Self::Simulated(model) = self else { return None };
        let (model, stripe_clock, clock) = (model.clone(), clock.clone(), clock.clone());
        let first: Arc<Mutex<Weak<SimulatedDevice>>> = Arc::default();
        let shared = first.clone();
        let stripes = DeviceWrap::new(move |stripe, file| {
            let device = Arc::new(SimulatedDevice::new(model.clone(), file, &stripe_clock));
            if stripe == 0 {
                *first.lock() = Arc::downgrade(&device);
            }
            Ok(device)
        });
        let journal = DeviceWrap::new(move |slot, file| {
            let device = shared.lock().upgrade().expect("stripes are opened before the journal");
            let begin = JOURNAL_BEGIN + slot as u64 * JOURNAL_ROOM;
            Ok(Arc::new(OnDevice { device, file, begin, clock: clock.clone() }))
        });
        Some((stripes, journal))
    }
}

/// Where the journal begins on a simulated device, and what each of its files takes there:
/// behind the data of most.
const JOURNAL_BEGIN: u64 = 1 << 36;
const JOURNAL_ROOM: u64 = 1 << 30;

/// A file beside the one a simulated device has the bytes of: its requests take their turn on
/// the same device.
struct OnDevice {
    device: Arc<SimulatedDevice>,
    file: Arc<dyn Device>,
    /// Where the file lies on the device.
    begin: u64,
    clock: Clock,
}

impl OnDevice {
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

impl Device for OnDevice {
    fn name(&self) -> &Arc<str> {
        self.file.name()
    }

    fn len(&self) -> Result<u64, IoError> {
        self.file.len()
    }

    fn set_len(&self, len: u64) -> Result<(), IoError> {
        self.file.set_len(len)
    }

    fn read_at(&self, bufs: &mut [IoSliceMut<'_>], offset: u64) -> Result<(), IoError> {
        let len = bufs.iter().map(|b| b.len() as u64).sum();
        self.spend(TransferKind::Read, offset, len, || self.file.read_at(bufs, offset))
    }

    fn write_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Result<(), IoError> {
        let len = bufs.iter().map(|b| b.len() as u64).sum();
        self.spend(TransferKind::Write, offset, len, || self.file.write_at(bufs, offset))
    }

    fn sync(&self) -> Result<(), IoError> {
        self.spend(TransferKind::Flush, 0, 0, || self.file.sync())
    }

    fn alignment(&self) -> Alignment {
        self.file.alignment()
    }

    fn cost(&self) -> CostModel {
        self.device.cost()
    }
}
