//! `--device`: the real device, or a model of another one in front of the files; for all stripes or
//! for one.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use snowmelt_io::{Clock, DeviceModel, FileBeside, SimulatedDevice};
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
                Err("use real, sim:hdd, sim:ssd, sim:wide-slow, sim:nvme, sim:raid0:MODEL*N, or sim:FILE \
                         with a model in TOML"
                    .into())
            }
        }
    }
}

/// A device, of one stripe or of all.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceArg {
    /// The number of the stripe.
    stripe: Option<usize>,
    choice: DeviceChoice,
}

impl FromStr for DeviceArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbered = text.split_once('=').and_then(|(n, rest)| Some((n.parse().ok()?, rest)));
        match numbered {
            Some((stripe, rest)) => Ok(Self { stripe: Some(stripe), choice: rest.parse()? }),
            None => Ok(Self { stripe: None, choice: text.parse()? }),
        }
    }
}

/// The devices of the stripes, by their numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StripeDevices {
    /// Of the stripes that are not in `of`.
    all: Option<DeviceChoice>,
    of: BTreeMap<usize, DeviceChoice>,
}

impl StripeDevices {
    /// The given devices, for the stripes in order.
    pub fn from_choices(choices: impl Iterator<Item = Option<DeviceChoice>>) -> Self {
        let of = choices.enumerate().filter_map(|(i, choice)| Some((i, choice?))).collect();
        Self { all: None, of }
    }

    /// These devices; for the other stripes those of the command line, of which the last one that
    /// applies counts.
    pub fn or_as(mut self, args: &[DeviceArg]) -> Self {
        let given = self.of.clone();
        for arg in args {
            match arg.stripe {
                None => self.all = Some(arg.choice.clone()),
                Some(stripe) => drop(self.of.insert(stripe, arg.choice.clone())),
            }
        }
        self.of.extend(given);
        self
    }

    fn choice(&self, stripe: usize) -> &DeviceChoice {
        self.of.get(&stripe).or(self.all.as_ref()).unwrap_or(&DeviceChoice::Real)
    }

    /// Wraps the files of the stripes in their models, and those of the journal in the model of the
    /// first stripe. `None` when all devices are real.
    pub fn wrap(self, clock: &Clock) -> Option<(DeviceWrap, DeviceWrap)> {
        let is_simulated = |choice: &DeviceChoice| matches!(choice, DeviceChoice::Simulated(_));
        if !self.of.values().chain(&self.all).any(is_simulated) {
            return None;
        }
        let least = self.of.keys().next_back().map_or(0, |last| last + 1);
        let (stripe_clock, clock) = (clock.clone(), clock.clone());
        let first: Arc<Mutex<Option<Weak<SimulatedDevice>>>> = Arc::default();
        let shared = first.clone();
        let stripes = DeviceWrap::new(move |stripe, file| {
            let DeviceChoice::Simulated(model) = self.choice(stripe) else { return Ok(file) };
            let device = Arc::new(SimulatedDevice::new(model.clone(), file, &stripe_clock));
            if stripe == 0 {
                *first.lock() = Some(Arc::downgrade(&device));
            }
            Ok(device)
        });
        let journal = DeviceWrap::new(move |slot, file| {
            let Some(device) = &*shared.lock() else { return Ok(file) };
            let device = device.upgrade().expect("stripes are open as long as the journal");
            let begin = JOURNAL_BEGIN + slot as u64 * JOURNAL_ROOM;
            Ok(Arc::new(FileBeside::new(device, file, begin, &clock)))
        });
        Some((stripes.for_stripes(least), journal))
    }
}

/// Where the journal begins on a simulated device, behind the data of most databases, and the room
/// of each of its files.
const JOURNAL_BEGIN: u64 = 1 << 36;
const JOURNAL_ROOM: u64 = 1 << 30;
