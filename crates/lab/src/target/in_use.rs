//! The refusal to write to devices that are in use.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};

use crate::LabError;
use crate::target::Target;

impl Target {
    /// Refuses to write to what others use: a mounted device, or one that holds others.
    pub fn refuse_if_in_use(&self) -> Result<(), LabError> {
        let meta = fs::metadata(&self.path).map_err(|e| LabError::file("look at", &self.path, e))?;
        if !meta.file_type().is_block_device() {
            return Ok(());
        }
        let dev = meta.rdev();
        let instead = "its data would be destroyed while in use: unmount it first";
        if let Some((place, _)) = mounts().into_iter().find(|(_, mounted)| *mounted == dev) {
            return Err(LabError::refused(self.path.display(), format!("is mounted on {place}"), instead));
        }
        // An exclusive open fails while a mount, swap or another holder has the device or a
        // part of it.
        let exclusive = rustix::fs::open(
            &self.path,
            rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::EXCL | rustix::fs::OFlags::CLOEXEC,
            rustix::fs::Mode::empty(),
        );
        match exclusive {
            Err(rustix::io::Errno::BUSY) => Err(LabError::refused(
                self.path.display(),
                "is in use (mounted, swap, or held by another device)",
                instead,
            )),
            Err(e) => Err(LabError::file("open", &self.path, e)),
            Ok(_) => Ok(()),
        }
    }
}

/// Mount point and device number of every mount.
fn mounts() -> Vec<(String, u64)> {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mount = |line: &str| {
        let mut fields = line.split(' ').skip(2);
        let (major, minor) = fields.next()?.split_once(':')?;
        let place = fields.nth(1)?.replace("\\040", " ");
        Some((place, rustix::fs::makedev(major.parse().ok()?, minor.parse().ok()?)))
    };
    table.lines().filter_map(mount).collect()
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::machine::BlockDevice;

    #[test]
    fn a_mounted_device_is_in_use() {
        let root = mounts().into_iter().find(|(place, _)| place == "/");
        let device = root.and_then(|(_, dev)| {
            let path = PathBuf::from(format!("/dev/{}", BlockDevice::find(Path::new("/")).ok()??.name));
            fs::metadata(&path).is_ok_and(|m| m.rdev() == dev).then_some(path)
        });
        let Some(Ok(target)) = device.map(|path| Target::look(&path)) else {
            println!("skipped: the root's device cannot be opened here");
            return;
        };
        let message = target.refuse_if_in_use().unwrap_err().to_string();
        assert!(message.contains("is mounted on /") && message.contains("unmount"), "{message}");
    }
}
