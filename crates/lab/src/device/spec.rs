//! The description of a device to be made.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use snowmelt_io::{DeviceModel, MODEL_NAMES};

use crate::LabError;

/// A device, described; goes to the server as JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// Its name in commands and paths.
    pub name: String,
    /// The model as it was asked for.
    pub model_name: String,
    /// The model.
    pub model: DeviceModel,
    /// Length in bytes.
    pub size_bytes: u64,
    /// Most bytes of memory for what is written, when there is no backing file.
    pub memory_bytes: u64,
    /// The file that holds the bytes.
    pub backing: Option<PathBuf>,
    /// Unsynced writes can be lost.
    pub power_cut: bool,
    /// The kernel's scheduler.
    pub scheduler: String,
    /// Requests the kernel hands to the device at once.
    pub depth: u32,
    /// The kernel's read-ahead, in KiB.
    pub read_ahead_kb: u32,
    /// Seconds the device may take to stand.
    #[serde(default = "default_patience_s")]
    pub patience_s: u32,
}

/// Most requests a loop device hands on at once (its queue's depth is fixed when the kernel
/// starts).
pub const LOOP_DEPTH: u32 = 128;

/// Half as long again as the slowest model may take in the self-test.
pub const fn default_patience_s() -> u32 {
    90
}

impl Spec {
    /// True for a model with an arm.
    pub fn is_disk(model: &DeviceModel) -> bool {
        model.has_arm()
    }

    /// How late answers may be, at the 99th percentile: half a millisecond where an arm takes
    /// many, else 150 µs.
    pub fn lateness_bound_ns(&self) -> u64 {
        let slow = |model: &DeviceModel| match model {
            DeviceModel::Disk(_) => true,
            DeviceModel::Volume(v) => v.latency_us >= 2_000.0,
            DeviceModel::Raid0(_) => false,
        };
        let is_slow = match &self.model {
            DeviceModel::Raid0(raid) => slow(&raid.member),
            model => slow(model),
        };
        if is_slow { 500_000 } else { 150_000 }
    }
}

/// The model of that name as a device on its own, with the seed of its chances.
pub fn model(name: &str, seed: u64) -> Result<DeviceModel, LabError> {
    let model = match name {
        // For a database's queue the caps alone decide; a device that is measured must also
        // take its width at once.
        "wide-slow" => DeviceModel::wide_slow_burst(),
        known if MODEL_NAMES.contains(&known) || known.starts_with("raid0:") => DeviceModel::named(known)?,
        path if Path::new(path).extension().is_some_and(|e| e == "toml") => {
            DeviceModel::from_file(Path::new(path))?
        }
        other => {
            return Err(LabError::Argument(format!(
                "no device model is called {other:?}: there are {}, raid0:MODEL*N, or a file FILE.toml",
                MODEL_NAMES.join(", ")
            )));
        }
    };
    Ok(model.with_seed(seed))
}

/// Names become file names: letters, digits, `-`, `_`, `.`.
pub fn check_name(name: &str) -> Result<(), LabError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let good = !name.is_empty() && name.len() <= 40 && !name.starts_with('.') && name.chars().all(plain);
    match good {
        true => Ok(()),
        false => Err(LabError::Argument(format!(
            "{name:?} cannot be a device's name: use up to 40 letters, digits, -, _ and ."
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_named_or_described_in_a_file() {
        for name in MODEL_NAMES.into_iter().chain(["raid0:ssd*4"]) {
            model(name, 1).expect(name);
        }
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("slow.toml");
        std::fs::write(&path, "kind = \"volume\"\nlatency_us = 5000.0\n").expect("written");
        let DeviceModel::Volume(v) = model(path.to_str().expect("text"), 9).expect("a model") else {
            panic!("a volume")
        };
        assert_eq!((v.latency_us, v.seed), (5000.0, 9));
        let error = model("floppy", 1).expect_err("unknown").to_string();
        assert!(error.contains("floppy") && error.contains("hdd-10k"), "{error}");
        assert!(check_name("disk-1").is_ok());
        for bad in ["", "a/b", "..", ".x", "a b"] {
            assert!(check_name(bad).is_err(), "{bad:?}");
        }
    }
}
