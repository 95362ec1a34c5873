//! The disk below a file: its number, what it is, and the disks that it lies on.
//!
//! A partition is its disk. A device of the device mapper, a RAID array and a loop device lie on
//! others, which `/sys` names. A file system without a block device (of the network, or one that
//! manages disks itself) is its source.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use rustix::fs::{major, minor};
use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

use crate::system::kernel_files::KernelFiles;

/// Devices that lie on devices, one below the other, at most.
const MOST_LEVELS: u32 = 8;

/// A block device and those that it lies on.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct BlockDisk {
    /// `major:minor`; of a partition those of the disk.
    pub(crate) number: String,
    pub(crate) name: String,
    /// Its vendor, as SCSI reports it.
    pub(crate) vendor: String,
    pub(crate) model: String,
    pub(crate) serial: String,
    pub(crate) bytes: u64,
    /// True when the kernel takes it for a rotating disk.
    pub(crate) turns: bool,
    pub(crate) below: Vec<BlockDisk>,
}

/// Identity of the disk of a file, from what is cheap to read.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DiskIdentity {
    /// A digest of the machine's number; empty when it has none.
    pub machine: String,
    /// The kernel's name of the disk, or the source of the file system.
    pub name: String,
    /// Maker and model, or the kind of the file system.
    pub model: String,
    /// Its number by its maker, or by a cloud; empty when it has none.
    pub serial: String,
    /// Its size.
    pub bytes: u64,
}

impl DiskIdentity {
    /// The difference of `self`, the disk now, to `then`; `None` when they are the same disk.
    pub fn difference(&self, then: &DiskIdentity) -> Option<&'static str> {
        // Names are dealt out anew at each start of the machine.
        let is_named = !self.serial.is_empty() || self.name == then.name;
        match () {
            () if self.machine != then.machine => Some("it is of another machine"),
            // Two containers without numbers look alike.
            () if self.machine.is_empty() && self.serial.is_empty() => {
                Some("neither the machine nor the disk has a number to be known by")
            }
            () if self.serial != then.serial || self.model != then.model || !is_named => {
                Some("it is of another disk")
            }
            () if self.bytes != then.bytes => Some("the disk had another size"),
            () => None,
        }
    }

    /// A short description on one line, whatever the kernel's files contain.
    pub fn describe(&self) -> String {
        const MOST_CHARS: usize = 60;
        let plain = |text: &str| -> String {
            text.chars().map(|c| if c.is_control() { '?' } else { c }).take(MOST_CHARS).collect()
        };
        match self.model.is_empty() {
            true => plain(&self.name),
            false => format!("{} ({})", plain(&self.name), plain(&self.model)),
        }
    }
}

/// The disk below a file or of a block device; `None` where the file system has none.
pub(crate) fn disk_of(kernel: &KernelFiles, path: &Path) -> Option<BlockDisk> {
    let number = match std::fs::metadata(path) {
        Ok(meta) if meta.file_type().is_block_device() => {
            format!("{}:{}", major(meta.rdev()), minor(meta.rdev()))
        }
        _ => number_of_file(kernel, path)?,
    };
    disk(kernel, &number, MOST_LEVELS)
}

/// The number of the block device that a file's file system is on.
fn number_of_file(kernel: &KernelFiles, path: &Path) -> Option<String> {
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mount = kernel.mount_of(&path)?;
    // Some have a number of their own, and say in words what they are on.
    if mount.device.starts_with("0:") {
        let name = mount.source.strip_prefix("/dev/")?;
        return kernel.text(&format!("sys/class/block/{name}/dev"));
    }
    Some(mount.device)
}

/// The disk with that number, and those below it.
fn disk(kernel: &KernelFiles, number: &str, levels: u32) -> Option<BlockDisk> {
    let own = format!("sys/dev/block/{number}");
    if !kernel.exists(&own) {
        return None;
    }
    let is_part = kernel.exists(&format!("{own}/partition"));
    let own = if is_part { format!("{own}/..") } else { own };
    let text = |file: &str| kernel.text(&format!("{own}/{file}"));
    let first = |files: &[&str]| files.iter().find_map(|file| text(file)).unwrap_or_default();
    let events = first(&["uevent"]);
    let name = events.lines().find_map(|line| line.strip_prefix("DEVNAME=")).unwrap_or(number).to_owned();
    let vendor = first(&["device/vendor"]);
    Some(BlockDisk {
        number: text("dev").unwrap_or_else(|| number.to_owned()),
        // A number stands for the maker where the bus is that of a virtual machine.
        vendor: if vendor.starts_with("0x") { String::new() } else { vendor },
        model: first(&["device/model", "dm/name", "md/level"]),
        serial: first(&["device/serial", "serial", "wwid", "device/wwid", "dm/uuid", "md/uuid"]),
        bytes: kernel.number(&format!("{own}/size")).unwrap_or(0).saturating_mul(512),
        turns: kernel.number(&format!("{own}/queue/rotational")) == Some(1),
        below: if levels == 0 { Vec::new() } else { below(kernel, &own, levels - 1) },
        name,
    })
}

fn below(kernel: &KernelFiles, own: &str, levels: u32) -> Vec<BlockDisk> {
    if let Some(file) = kernel.text(&format!("{own}/loop/backing_file")) {
        let number = number_of_file(kernel, Path::new(&file));
        return number.and_then(|number| disk(kernel, &number, levels)).into_iter().collect();
    }
    let slaves = format!("{own}/slaves");
    let numbers = kernel.names(&slaves).into_iter();
    let numbers = numbers.filter_map(|name| kernel.text(&format!("{slaves}/{name}/dev")));
    numbers.filter_map(|number| disk(kernel, &number, levels)).collect()
}

impl BlockDisk {
    /// The disks that carry the bytes in the end, each once: several layers may lie on one disk, as
    /// the data and the map of a thin volume.
    pub(crate) fn carriers(&self) -> Vec<&BlockDisk> {
        if self.below.is_empty() {
            return vec![self];
        }
        let mut found: Vec<&BlockDisk> = self.below.iter().flat_map(BlockDisk::carriers).collect();
        found.sort_by(|a, b| a.number.cmp(&b.number));
        found.dedup_by(|a, b| a.number == b.number);
        found
    }

    /// The one disk that carries the bytes in the end; `None` where there are several.
    pub(crate) fn carrier(&self) -> Option<&BlockDisk> {
        match self.carriers()[..] {
            [one] => Some(one),
            _ => None,
        }
    }
}

/// Identity of the disk below a file; `None` when the kernel does not say.
pub(crate) fn identity(kernel: &KernelFiles, path: &Path, disk: Option<&BlockDisk>) -> Option<DiskIdentity> {
    let machine = machine(kernel);
    if let Some(disk) = disk {
        let (name, bytes) = (disk.name.clone(), disk.bytes);
        let disk = disk.carrier().unwrap_or(disk);
        let model = format!("{} {}", disk.vendor, disk.model).trim().to_owned();
        return Some(DiskIdentity { machine, name, model, serial: disk.serial.clone(), bytes });
    }
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mount = kernel.mount_of(&path)?;
    Some(DiskIdentity { machine, name: mount.source, model: mount.kind, ..DiskIdentity::default() })
}

/// The number itself is not to be shown to others (machine-id(5)).
fn machine(kernel: &KernelFiles) -> String {
    let id = kernel.text("etc/machine-id").unwrap_or_default();
    let digest = XxHash3_64::oneshot(format!("snowmelt {id}").as_bytes());
    if id.is_empty() { id } else { format!("{digest:016x}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::kernel_files::planted;

    /// A partition of an NVMe disk, a volume of two disks on one of which is a partition, a loop
    /// device on a file, and a file system of many disks.
    fn machine_of_test() -> (tempfile::TempDir, KernelFiles) {
        planted(&[
            ("etc/machine-id", "3d12"),
            (
                "proc/self/mountinfo",
                "27 1 259:1 / / rw - ext4 /dev/root rw\n\
                 28 27 0:26 / /pool rw - btrfs /dev/sdb rw\n\
                 29 27 253:0 / /lv rw - xfs /dev/mapper/vg-lv rw\n\
                 30 27 7:0 / /loop rw - ext4 /dev/loop0 rw\n\
                 31 27 0:30 / /net rw - nfs4 host:/export rw",
            ),
            ("sys/devices/nvme0n1/dev", "259:0"),
            ("sys/devices/nvme0n1/uevent", "MAJOR=259\nDEVNAME=nvme0n1"),
            ("sys/devices/nvme0n1/size", "2048"),
            ("sys/devices/nvme0n1/queue/rotational", "0"),
            ("sys/devices/nvme0n1/device/model", "Amazon Elastic Block Store  "),
            ("sys/devices/nvme0n1/device/serial", "vol0546"),
            ("sys/devices/nvme0n1/nvme0n1p1/partition", "1"),
            ("sys/devices/nvme0n1/nvme0n1p1/dev", "259:1"),
            ("sys/dev/block/259:0", "->sys/devices/nvme0n1"),
            ("sys/dev/block/259:1", "->sys/devices/nvme0n1/nvme0n1p1"),
            ("sys/devices/sdb/dev", "8:16"),
            ("sys/devices/sdb/uevent", "DEVNAME=sdb"),
            ("sys/devices/sdb/device/vendor", "ATA"),
            ("sys/devices/sdb/device/model", "WDC WD40"),
            ("sys/devices/sdb/queue/rotational", "1"),
            ("sys/dev/block/8:16", "->sys/devices/sdb"),
            ("sys/class/block/sdb", "->sys/devices/sdb"),
            ("sys/dev/block/253:0/dev", "253:0"),
            ("sys/dev/block/253:0/dm/name", "vg-lv"),
            ("sys/dev/block/253:0/slaves/nvme0n1p1", "->sys/devices/nvme0n1/nvme0n1p1"),
            ("sys/dev/block/253:0/slaves/sdb", "->sys/devices/sdb"),
            ("sys/dev/block/7:0/dev", "7:0"),
            ("sys/dev/block/7:0/loop/backing_file", "/pool/image"),
        ])
    }

    #[test]
    fn files_are_on_whole_disks_through_every_layer() {
        let (_dir, kernel) = machine_of_test();
        let of = |path: &str| disk_of(&kernel, Path::new(path));
        let root = of("/no-such-file").unwrap();
        assert_eq!((root.number.as_str(), root.name.as_str(), root.bytes), ("259:0", "nvme0n1", 1 << 20));
        assert_eq!((root.model.as_str(), root.turns), ("Amazon Elastic Block Store", false));
        let pool = of("/pool/x").unwrap();
        assert!(pool.turns && pool.number == "8:16" && pool.vendor == "ATA");
        let lv = of("/lv/x").unwrap();
        let below: Vec<&str> = lv.below.iter().map(|disk| disk.number.as_str()).collect();
        assert_eq!((lv.number.as_str(), below), ("253:0", vec!["259:0", "8:16"]));
        assert_eq!(lv.carrier(), None);
        assert_eq!(of("/loop/x").unwrap().carrier(), Some(&pool), "by way of the file behind it");
        assert_eq!(of("/net/x"), None);
    }

    #[test]
    fn a_disk_is_known_again_and_told_from_others() {
        let (_dir, kernel) = machine_of_test();
        let of = |path: &str| {
            let path = Path::new(path);
            identity(&kernel, path, disk_of(&kernel, path).as_ref()).unwrap()
        };
        let root = of("/x");
        assert_eq!(root.difference(&root), None);
        assert!(!root.machine.is_empty() && root.machine != "3d12", "a digest");
        let others = [
            DiskIdentity { machine: String::new(), ..root.clone() },
            DiskIdentity { serial: "vol1".into(), ..root.clone() },
            DiskIdentity { model: "nvme_card-pd".into(), ..root.clone() },
            DiskIdentity { bytes: 2 << 20, ..root.clone() },
            of("/pool/x"),
            of("/lv/x"),
            of("/net/x"),
        ];
        for other in others {
            assert!(root.difference(&other).is_some(), "{other:?}");
        }
        let nowhere = DiskIdentity { name: "overlay".into(), ..DiskIdentity::default() };
        assert!(nowhere.difference(&nowhere).is_some(), "two containers look alike");
        let hostile = DiskIdentity { name: "a\nb\x1b[2J".into(), model: "m".repeat(1000), ..root.clone() };
        let told = hostile.describe();
        assert!(told.len() < 200 && !told.contains(char::is_control), "{told:?}");
        let renamed = DiskIdentity { name: "nvme3n1".into(), ..root.clone() };
        assert_eq!(root.difference(&renamed), None, "its number by its maker is the same");
        let pool = of("/pool/x");
        let renamed = DiskIdentity { name: "sdc".into(), ..pool.clone() };
        assert!(pool.difference(&renamed).is_some(), "of one without a number the name counts");
        assert_eq!(of("/net/x").name, "host:/export");
    }
}
