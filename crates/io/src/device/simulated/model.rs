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
use snowmelt_base::size;

use crate::device::simulated::model::bounds::ModelError;
use crate::device::simulated::model::parameters::{DiskModel, VolumeModel};
use crate::error::{IoError, Operation};

/// Names of models.
pub const MODEL_NAMES: [&str; 12] = [
    "hdd",
    "hdd-7200",
    "hdd-10k",
    "gp2-100",
    "gp3",
    "st1-500",
    "azure-p10",
    "wide-slow",
    "e3",
    "s3",
    "ssd",
    "nvme",
];

/// A simulated device, by its parameters. In TOML: `kind = "disk"` or `kind = "volume"`, and
/// any of the fields; what is left out is as in [`DiskModel::default`] (a 7200 rpm disk) or
/// [`VolumeModel::default`] (a capped network volume). `kind = "raid0"` has `members`, a number,
/// and `[member]`, a disk or volume. Deserialising checks the bounds of all parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", try_from = "Description")]
pub enum DeviceModel {
    /// A disk with an arm.
    Disk(DiskModel),
    /// Something without an arm, wide: a network volume, a flash drive.
    Volume(VolumeModel),
    /// A RAID 0 of some of either.
    Raid0(RaidModel),
}

/// A RAID 0: members side by side, to which chunks are dealt in turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RaidModel {
    /// Each of its members: no array itself.
    pub member: Box<DeviceModel>,
    /// How many there are.
    pub members: u32,
    /// Bytes of a chunk.
    #[serde(default = "usual_chunk_bytes")]
    pub chunk_bytes: u64,
}

/// As in the array of E4, of eight drives.
const fn usual_chunk_bytes() -> u64 {
    64 << 10
}

/// A model as it is written, not checked yet.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum Description {
    Disk(DiskModel),
    Volume(VolumeModel),
    Raid0(RaidModel),
}

impl TryFrom<Description> for DeviceModel {
    type Error = ModelError;

    fn try_from(description: Description) -> Result<DeviceModel, ModelError> {
        let model = match description {
            Description::Disk(disk) => DeviceModel::Disk(disk),
            Description::Volume(volume) => DeviceModel::Volume(volume),
            Description::Raid0(raid) => DeviceModel::Raid0(raid),
        };
        model.check()?;
        Ok(model)
    }
}

impl RaidModel {
    /// Each member gets at most as many requests as the array, none longer, so the array answers
    /// in time if they do.
    fn check(&self) -> Result<(), ModelError> {
        bounds::within("members", f64::from(self.members), 1.0, 64.0)?;
        bounds::within("chunk_bytes", self.chunk_bytes as f64, 512.0, (1u64 << 30) as f64)?;
        match &*self.member {
            DeviceModel::Raid0(_) => Err(ModelError::Nested),
            member => member.check(),
        }
    }
}

impl DeviceModel {
    /// The model of that name ([`MODEL_NAMES`]), an array of it (`raid0:hdd*4`,
    /// `raid0:ssd*8,chunk=256k`), or the one in the TOML file of that path.
    ///
    /// # Errors
    /// There is no such model and no such file, or the file or array describes no device.
    pub fn named(name: &str) -> Result<DeviceModel, IoError> {
        if let Some(array) = name.strip_prefix("raid0:") {
            return Self::array(array).map_err(|why| IoError::invalid(&name.into(), Operation::Open, why));
        }
        match Self::known(name) {
            Some(model) => Ok(model),
            None => Self::from_file(Path::new(name)),
        }
    }

    fn known(name: &str) -> Option<DeviceModel> {
        Some(match name {
            "hdd" => Self::hdd(),
            "hdd-7200" => Self::hdd_7200(),
            "hdd-10k" => Self::hdd_10k(),
            "gp2-100" => Self::gp2(100),
            "gp3" => Self::gp3(),
            "st1-500" => Self::st1(500),
            "azure-p10" => Self::azure_p10(),
            "e3" => Self::e3(),
            "wide-slow" => Self::wide_slow(),
            "s3" => Self::s3(),
            "ssd" => Self::ssd(),
            "nvme" => Self::nvme(),
            _ => return None,
        })
    }

    /// The array that `MODEL*N[,chunk=SIZE]` describes.
    fn array(text: &str) -> Result<DeviceModel, String> {
        let usage = || format!("{text:?} is no array: write MODEL*N or MODEL*N,chunk=64k");
        let (of, chunk) = match text.split_once(",chunk=") {
            Some((of, chunk)) => (of, size::parse(chunk)?),
            None => (text, usual_chunk_bytes()),
        };
        let (member, members) = of.rsplit_once('*').ok_or_else(usage)?;
        let members = members.parse().map_err(|_| usage())?;
        let member = Box::new(Self::named(member).map_err(|e| e.to_string())?);
        let array = DeviceModel::Raid0(RaidModel { member, members, chunk_bytes: chunk });
        array.check().map_err(|e| e.to_string())?;
        Ok(array)
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
                format!(
                    "no such device model: there are {}, raid0:MODEL*N, or the path of a TOML file",
                    MODEL_NAMES.join(", ")
                ),
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
            DeviceModel::Raid0(raid) => raid.check(),
        }
    }

    /// Time of making writes durable, in nanoseconds; for devices whose model does not know
    /// what is cached.
    pub(crate) fn sync_ns(&self) -> u64 {
        match self {
            DeviceModel::Disk(d) => 60_000_000_000 / u64::from(d.rpm),
            DeviceModel::Volume(v) => (v.latency_us * 1e3) as u64,
            DeviceModel::Raid0(raid) => raid.member.sync_ns(),
        }
    }

    /// Its length in bytes, where the model has one.
    pub fn capacity_bytes(&self) -> Option<u64> {
        match self {
            DeviceModel::Disk(d) => Some(d.capacity_bytes),
            DeviceModel::Volume(_) => None,
            DeviceModel::Raid0(raid) => Some(raid.member.capacity_bytes()? * u64::from(raid.members)),
        }
    }

    /// True when requests wait for an arm.
    pub fn has_arm(&self) -> bool {
        match self {
            DeviceModel::Disk(_) => true,
            DeviceModel::Volume(_) => false,
            DeviceModel::Raid0(raid) => raid.member.has_arm(),
        }
    }

    /// The model with another seed of its chances.
    pub fn with_seed(self, seed: u64) -> DeviceModel {
        match self {
            DeviceModel::Disk(_) => self,
            DeviceModel::Volume(v) => DeviceModel::Volume(VolumeModel { seed, ..v }),
            DeviceModel::Raid0(raid) => {
                let member = Box::new(raid.member.with_seed(seed));
                DeviceModel::Raid0(RaidModel { member, ..raid })
            }
        }
    }

    /// The model with a seed that is so much greater.
    pub(crate) fn with_seed_moved(&self, by: u64) -> DeviceModel {
        match self {
            DeviceModel::Volume(v) => self.clone().with_seed(v.seed.wrapping_add(by)),
            other => other.clone(),
        }
    }

    /// True when written bytes stay in a volatile cache until they are flushed.
    pub fn caches_writes(&self) -> bool {
        match self {
            DeviceModel::Disk(d) => d.write_cache_bytes > 0,
            DeviceModel::Volume(_) => false,
            DeviceModel::Raid0(raid) => raid.member.caches_writes(),
        }
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
        for name in MODEL_NAMES {
            assert!(DeviceModel::named(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn arrays_have_members_and_chunks() {
        let array = |member, members, chunk_bytes| {
            DeviceModel::Raid0(RaidModel { member: Box::new(member), members, chunk_bytes })
        };
        let four = array(DeviceModel::hdd(), 4, 64 << 10);
        assert_eq!(DeviceModel::named("raid0:hdd*4").unwrap(), four);
        let ssds = array(DeviceModel::ssd(), 8, 1 << 20);
        assert_eq!(DeviceModel::named("raid0:ssd*8,chunk=1m").unwrap(), ssds);
        assert_eq!(DeviceModel::from_toml(&toml::to_string(&ssds).unwrap()).unwrap(), ssds);
        let text = "kind = \"raid0\"\nmembers = 4\n[member]\nkind = \"disk\"\n";
        assert_eq!(DeviceModel::from_toml(text).unwrap(), four);
        assert_eq!((four.capacity_bytes(), four.has_arm()), (Some(4_000_000_000_000), true));
        for (wrong, part) in [
            ("raid0:hdd", "MODEL*N"),
            ("raid0:hdd*0", "members is 0"),
            ("raid0:hdd*2,chunk=1", "chunk_bytes is 1"),
            ("raid0:raid0:hdd*2*2", "array"),
            ("raid0:floppy*2", "hdd-7200"),
        ] {
            let error = DeviceModel::named(wrong).expect_err(wrong).to_string();
            assert!(error.contains(part), "{wrong}: {error}");
        }
    }
}
