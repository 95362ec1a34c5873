//! An emulated block device for some steps.

use std::path::Path;

use anyhow::{Context, Result};

use super::steps::Steps;

/// Why there is none: it needs a right that not all users have.
pub const NEEDS_ROOT: &str = "emulating a device needs root and /dev/fuse";

/// A device by its name in `lab device`.
pub struct Emulated {
    name: String,
    /// the block device
    pub path: String,
}

/// Whether devices can be made here.
pub fn is_possible() -> bool {
    rustix::process::geteuid().is_root() && Path::new("/dev/fuse").exists()
}

impl Emulated {
    /// Makes one of a model.
    pub fn create(steps: &mut Steps<'_>, model: &str, size: &str) -> Result<Self> {
        let name = format!("repeat-{}-{model}", std::process::id());
        let args = ["lab", "device", "create", &name, "--model", model, "--size", size];
        let printed = steps.run(&format!("a {model} as a block device"), &args)?;
        let path = printed.lines().rfind(|line| line.starts_with('/')).context("the device has no path")?;
        Ok(Self { name, path: path.to_owned() })
    }

    /// Takes it down.
    pub fn remove(self, steps: &mut Steps<'_>) -> Result<()> {
        steps.take_down("the device is taken down", &["lab", "device", "remove", &self.name])
    }

    /// Uses one for some steps, and takes it down whatever happens.
    pub fn with<T>(
        steps: &mut Steps<'_>,
        (model, size): (&str, &str),
        work: impl FnOnce(&mut Steps<'_>, &str) -> Result<T>,
    ) -> Result<T> {
        let device = Self::create(steps, model, size)?;
        let path = device.path.clone();
        let done = work(steps, &path);
        let removed = device.remove(steps);
        let done = done?;
        removed?;
        Ok(done)
    }
}
