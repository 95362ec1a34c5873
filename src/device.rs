//! `--device`: the real one, or a model of another in front of the files.

use std::str::FromStr;
use std::sync::Arc;

use snowmelt_io::{Clock, Device, DeviceModel, SimulatedDevice};
use snowmelt_store::DeviceWrap;

/// What stands between the queue and the database's files.
#[derive(Clone, Debug, PartialEq)]
pub enum DeviceChoice {
    /// nothing
    Real,
    /// a model of a device, in real time: completions are delivered when that device would have delivered them
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
    /// Puts the model in front of each stripe's file.
    pub fn wrap(&self, clock: &Clock) -> Option<DeviceWrap> {
        let Self::Simulated(model) = self else { return None };
        let (model, clock) = (model.clone(), clock.clone());
        Some(DeviceWrap::new(move |_, file| {
            let device: Arc<dyn Device> = Arc::new(SimulatedDevice::new(model.clone(), file, &clock));
            Ok(device)
        }))
    }
}
