//! The model of a simulated device: from a name, from a TOML file, or made in code; always
//! within bounds.

pub(crate) mod bounds;
#[cfg(test)]
mod bounds_tests;
pub(crate) mod named;
pub(crate) mod parameters;

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::device::simulated::model::bounds::ModelError;
use crate::device::simulated::model::parameters::{DiskModel, VolumeModel};
use crate::error::{IoError, Operation};

/// A simulated device, by its parameters. In TOML: `kind = "disk"` or `kind = "volume"`, and
/// any of the fields; what is left out is as in [`DiskModel::default`] (a 7200 rpm disk) or
/// [`VolumeModel::default`] (a capped network volume). Deserialising checks the bounds of all
/// parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", try_from = "Description")]
pub enum DeviceModel {
    /// A disk with an arm.
    Disk(DiskModel),
    /// Something without an arm, wide: a network volume, a flash drive.
    Volume(VolumeModel),
}

/// A model as it is written, not checked yet.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum Description {
    Disk(DiskModel),
    Volume(VolumeModel),
}

impl TryFrom<Description> for DeviceModel {
    type Error = ModelError;

    fn try_from(description: Description) -> Result<DeviceModel, ModelError> {
        let model = match description {
            Description::Disk(disk) => DeviceModel::Disk(disk),
            Description::Volume(volume) => DeviceModel::Volume(volume),
        };
        model.check()?;
        Ok(model)
    }
}

impl DeviceModel {
    /// The model called `name` (`hdd`, `hdd-7200`, `hdd-10k`, `gp3`, `wide-slow`, `s3`,
    /// `nvme`), or the one in the TOML file of that path.
    ///
    /// # Errors
    /// There is no such model and no such file, or the file describes no device.
    pub fn named(name: &str) -> Result<DeviceModel, IoError> {
        match name {
            "hdd" => Ok(Self::hdd()),
            "hdd-7200" => Ok(Self::hdd_7200()),
            "hdd-10k" => Ok(Self::hdd_10k()),
            "gp3" => Ok(Self::gp3()),
            "wide-slow" => Ok(Self::wide_slow()),
            "s3" => Ok(Self::s3()),
            "nvme" => Ok(Self::nvme()),
            path => Self::from_file(Path::new(path)),
        }
    }

    /// The model described in the TOML file `path`.
    ///
    /// # Errors
    /// The file cannot be read, or describes no device.
    pub fn from_file(path: &Path) -> Result<DeviceModel, IoError> {
        let name: Arc<str> = path.display().to_string().into();
        let text = std::fs::read_to_string(path).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => IoError::invalid(
                &name,
                Operation::Open,
                "no such device model: there are hdd, hdd-7200, hdd-10k, gp3, wide-slow, s3, nvme, or the path of a TOML file",
            ),
            _ => IoError::os(&name, Operation::Open, 0, 0, &e),
        })?;
        Self::from_toml(&text).map_err(|why| IoError::invalid(&name, Operation::Open, why.to_string()))
    }

    /// The model described by a TOML text; the error says what is wrong with it.
    ///
    /// # Errors
    /// The text is not TOML, has other fields, or describes a device out of bounds.
    pub fn from_toml(text: &str) -> Result<DeviceModel, ModelError> {
        let description: Description = toml::from_str(text).map_err(|e| ModelError::Text(e.to_string()))?;
        description.try_into()
    }

    /// Refuses parameters out of bounds, and those that together make a device too slow (see
    /// [`ModelError`]).
    ///
    /// # Errors
    /// A parameter is out of its bounds, or the device would be too slow.
    pub fn check(&self) -> Result<(), ModelError> {
        match self {
            DeviceModel::Disk(disk) => bounds::check_disk(disk),
            DeviceModel::Volume(volume) => bounds::check_volume(volume),
        }
    }

    /// Time of making writes durable, in nanoseconds; for devices whose model does not know
    /// what is cached.
    pub(crate) fn sync_ns(&self) -> u64 {
        match self {
            DeviceModel::Disk(d) => 60_000_000_000 / u64::from(d.rpm),
            DeviceModel::Volume(v) => (v.latency_us * 1e3) as u64,
        }
    }

    /// True when written bytes stay in a volatile cache until they are flushed.
    pub fn caches_writes(&self) -> bool {
        matches!(self, DeviceModel::Disk(d) if d.write_cache_bytes > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_come_from_toml_with_defaults_and_strictly() {
        let disk = DeviceModel::from_toml("kind = \"disk\"\nrpm = 5400\n").unwrap();
        assert_eq!(disk, DeviceModel::Disk(DiskModel { rpm: 5400, ..Default::default() }));
        let text = toml::to_string(&DeviceModel::nvme()).unwrap();
        assert_eq!(DeviceModel::from_toml(&text).unwrap(), DeviceModel::nvme());
        for wrong in [
            "",
            "kind = \"tape\"",
            "kind = \"disk\"\nrpn = 1",
            "kind = \"volume\"\niops = 0.0",
            "kind = \"disk\"\nrpm = 0",
        ] {
            assert!(DeviceModel::from_toml(wrong).is_err(), "{wrong:?} is not a device");
        }
        assert!(DeviceModel::named("no-such-model").unwrap_err().to_string().contains("wide-slow"));
    }
}
