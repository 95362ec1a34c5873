//! Files and devices that are written to: every command takes them by [`Busy::take`], so that nothing
//! is lost unasked, no other command measures the disk meanwhile, and a device that is in use stays
//! as it is.

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use snowmelt_io::{block_claim, block_mounted_on, is_block_device};

use crate::LabError;
use crate::machine::BlockDevice;
use crate::target::data_file::{disk_below, may_be_written};
use crate::target::held::Busy;
use crate::undo::Undo;

/// A block device that is this command's alone, as of a mount, until it is dropped: others find it
/// in use. Nothing of a file.
#[derive(Debug)]
#[must_use = "others can use the device as soon as it is dropped"]
pub(crate) struct Claim(#[allow(dead_code, reason = "held, not looked at")] Option<File>);

impl Busy {
    /// Takes a file or device to be written to, which may have to be made first: its content may be
    /// lost where `destroy` says so, its disk and those of `beside` are held until `undo` has undone
    /// everything, and nothing else uses it.
    ///
    /// # Errors
    /// It is there and its content is not to be lost, it is in use, or a disk cannot be held.
    pub(crate) fn take(
        self,
        place: &Path,
        destroy: bool,
        beside: &[BlockDevice],
        undo: &Undo,
        stop: &AtomicBool,
    ) -> Result<Claim, LabError> {
        may_be_written(place, destroy)?;
        let mut disks = beside.to_vec();
        disks.extend(disk_below(place)?);
        self.hold(&disks, undo, stop)?;
        // Not before: it may have come into use while another command was waited for.
        Claim::of(place)
    }
}

impl Claim {
    /// Refuses to write to what others use: a mounted device, or one that holds others.
    fn of(place: &Path) -> Result<Claim, LabError> {
        if !is_block_device(place) {
            return Ok(Claim(None));
        }
        let instead = "its data would be destroyed while in use: unmount it first";
        if let Some(mounted) = block_mounted_on(place) {
            return Err(LabError::refused(place.display(), format!("is mounted on {mounted}"), instead));
        }
        // This fails while a mount, swap or another holder has the device or a part of it.
        match block_claim(place) {
            Err(e) if e.kind() == ErrorKind::ResourceBusy => Err(LabError::refused(
                place.display(),
                "is in use (mounted, swap, or held by another device)",
                instead,
            )),
            Err(e) => Err(LabError::file("open", place, e)),
            Ok(claim) => Ok(Claim(Some(claim))),
        }
    }
}

/// True when writing to one may change the other: they are one file, or a disk and a part of it.
pub(crate) fn overlap(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    if real(one).zip(real(other)).is_some_and(|(one, other)| one == other) {
        return true;
    }
    if !(is_block_device(one) && is_block_device(other)) {
        return is_one_file(one, other);
    }
    let (Ok(Some(one)), Ok(Some(other))) = (BlockDevice::find(one), BlockDevice::find(other)) else {
        return false;
    };
    let is_whole = |device: &BlockDevice| {
        let number = std::fs::read_to_string(device.sys().join("dev")).unwrap_or_default();
        number.trim() == format!("{}:{}", device.dev.0, device.dev.1)
    };
    one.name == other.name && (one.dev == other.dev || is_whole(&one) || is_whole(&other))
}

/// By another name: a hard link.
fn is_one_file(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |path: &Path| std::fs::metadata(path).map(|meta| (meta.dev(), meta.ino())).ok();
    id(one).is_some_and(|one| Some(one) == id(other))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;
    use std::path::PathBuf;

    use snowmelt_io::LoopOptions;

    use super::*;

    #[test]
    fn a_mounted_device_is_in_use() {
        let device = BlockDevice::find(Path::new("/")).ok().flatten().and_then(|disk| {
            let path = PathBuf::from(format!("/dev/{}", disk.name));
            let root = std::fs::metadata("/").ok()?.dev();
            std::fs::metadata(&path).is_ok_and(|m| m.rdev() == root).then_some(path)
        });
        let Some(device) = device.filter(|path| File::open(path).is_ok()) else {
            println!("skipped: the root's device cannot be opened here");
            return;
        };
        let message = Claim::of(&device).unwrap_err().to_string();
        assert!(message.contains("is mounted on /") && message.contains("unmount"), "{message}");
    }

    #[test]
    fn a_device_that_is_taken_is_in_use_for_others_until_it_is_given_free() {
        let dir = tempfile::tempdir().unwrap();
        let undo = Undo::open_in(&dir.path().join("state"), "test").unwrap();
        let backing = dir.path().join("backing");
        std::fs::write(&backing, vec![1; 1 << 20]).unwrap();
        let Ok((_, device)) = undo.attach_loop(&backing, &LoopOptions::default()) else {
            return println!("skipped: no loop devices here");
        };
        let stop = AtomicBool::new(false);
        let take = |destroy| Busy::patient().take(&device, destroy, &[], &undo, &stop);
        assert!(take(false).unwrap_err().to_string().contains("would be overwritten"));
        let claim = take(true).unwrap();
        assert!(take(true).unwrap_err().to_string().contains("is in use"));
        drop(claim);
        drop(take(true).unwrap());
        undo.undo().unwrap();
    }

    #[test]
    fn a_file_overlaps_itself_by_any_name() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("a"), "x").unwrap();
        std::fs::write(at("b"), "x").unwrap();
        std::fs::hard_link(at("a"), at("hard")).unwrap();
        std::os::unix::fs::symlink("a", at("soft")).unwrap();
        for name in ["a", "hard", "soft"] {
            assert!(overlap(&at("a"), &at(name)), "{name}");
        }
        assert!(!overlap(&at("a"), &at("b")) && !overlap(&at("a"), &at("none")));
    }
}
