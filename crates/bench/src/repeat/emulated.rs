//! An emulated block device for some steps.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result};
use snowmelt_engines::find_program;
use snowmelt_lab::device_server_of;
use snowmelt_lab::undo::{Step, StepId};

use super::steps::Steps;

/// The reason why there is none: only root may make one.
pub const NEEDS_ROOT: &str = "emulating a device needs root, /dev/fuse and loop devices";

/// A device by its name in `lab device`.
pub struct Emulated {
    pub name: String,
    /// the block device
    pub path: String,
    /// its server is stopped if this process is killed
    served: StepId,
    server: u32,
}

/// Whether devices can be made here.
pub fn is_possible() -> bool {
    let is_there = |path: &str| Path::new(path).exists();
    rustix::process::geteuid().is_root() && is_there("/dev/fuse") && is_there("/dev/loop-control")
}

/// Why there can be no file system on an emulated device here, if so.
pub fn why_no_file_system() -> Option<&'static str> {
    if !is_possible() {
        return Some(NEEDS_ROOT);
    }
    let folders = ["/usr/sbin", "/sbin"].map(str::to_owned);
    let found = find_program("mkfs.ext4", &folders);
    found.is_none().then_some("mkfs.ext4 is missing: install e2fsprogs")
}

/// Why requests cannot be traced here, if so.
pub fn why_no_trace() -> Option<&'static str> {
    let known = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let has_trace = known.split_whitespace().any(|word| word == "tracefs");
    (!has_trace).then_some("this kernel has no tracefs to trace requests with")
}

/// The first of the schedulers that a block device does not offer.
pub fn scheduler_missing<'a>(device: &str, wanted: &[&'a str]) -> Option<&'a str> {
    let name = Path::new(device).file_name().unwrap_or_default();
    let path = Path::new("/sys/block").join(name).join("queue/scheduler");
    let offered = fs::read_to_string(path).unwrap_or_default();
    let is_offered =
        |name: &str| offered.split_whitespace().any(|word| word.trim_matches(['[', ']']) == name);
    wanted.iter().copied().find(|name| !is_offered(name))
}

impl Emulated {
    /// Makes one of a model.
    pub fn create(steps: &mut Steps<'_>, model: &str, size: &str) -> Result<Self> {
        let plain: String = model.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let name = format!("repeat-{}-{plain}", std::process::id());
        let args = ["device", "create", &name, "--model", model, "--size", size];
        let printed = steps.run(&format!("a {model} as a block device"), &args)?;
        let path = printed.lines().rfind(|line| line.starts_with('/')).context("the device has no path")?;
        let server = device_server_of(&name)?;
        let served = steps.undo.started(server)?;
        steps.belongs(server);
        Ok(Self { name, path: path.to_owned(), served, server })
    }

    /// Takes it down.
    pub fn remove(self, steps: &mut Steps<'_>) -> Result<()> {
        steps.take_down("the device is taken down", &["device", "remove", &self.name])?;
        steps.ended(self.server);
        Ok(steps.undo.done(self.served)?)
    }

    /// Uses one for some steps, and takes it down even when they fail.
    pub fn with<T>(
        steps: &mut Steps<'_>,
        model: &str,
        size: &str,
        work: impl FnOnce(&mut Steps<'_>, &Self) -> Result<T>,
    ) -> Result<T> {
        let device = Self::create(steps, model, size)?;
        let done = work(steps, &device);
        let removed = device.remove(steps);
        let done = done?;
        removed?;
        Ok(done)
    }
}

/// Uses a file system on an emulated device for some steps; they get the folder where it is
/// mounted, which the account of a database server can enter.
pub fn with_file_system<T>(
    steps: &mut Steps<'_>,
    model: &str,
    size: &str,
    work: impl FnOnce(&mut Steps<'_>, &Path) -> Result<T>,
) -> Result<T> {
    Emulated::with(steps, model, size, |steps, emulated| {
        let device = emulated.path.as_str();
        // A journal of the file system would be part of what is measured.
        let options = ["-q", "-O", "^has_journal", "-E", "lazy_itable_init=0", device];
        steps.foreign("a file system on it", "mkfs.ext4", &options)?;
        let (made, folder) = steps.undo.make_tree(&std::env::temp_dir(), "snowmelt-repeat")?;
        fs::set_permissions(&folder, Permissions::from_mode(0o755))?;
        let target = folder.join("mount");
        fs::create_dir(&target)?;
        let path = target.display().to_string();
        let mounted = steps.undo.will(Step::Unmount { target: target.clone() })?;
        let done =
            steps.foreign("it is mounted", "mount", &[device, &path]).and_then(|_| work(steps, &target));
        steps.undo.undo_one(mounted)?;
        steps.undo.undo_one(made)?;
        done
    })
}
