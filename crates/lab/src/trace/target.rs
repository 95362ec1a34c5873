//! The target of a trace: a whole disk, or the sectors of a partition; found from a device or
//! from a file on it.

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

use crate::LabError;
use crate::machine::BlockDevice;
use crate::machine::diskstats::DiskCounts;
use crate::trace::btrfs;
use crate::trace::device_number::{joined, of_folder, of_mount, parse, parted};
use crate::trace::event::RemapEvent;
use crate::trace::filter::{any_name, any_number};

/// A device as events name it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TraceTarget {
    /// The device and its queue.
    pub device: BlockDevice,
    /// Its own name in diskstats: of a partition `vda1`, not `vda`.
    pub name: String,
    /// Number of the whole disk in events: major · 2^20 + minor.
    pub dev: u32,
    /// First sector and end, for a partition.
    pub sectors: Option<(u64, u64)>,
    /// It, and the devices on it (partitions, md, dm), whose files lie on it.
    pub devs: Vec<u32>,
    /// The devices it is made of: of md and dm.
    pub below: Vec<LowerDevice>,
    /// File systems on it whose files have numbers of their own (btrfs): the name of their
    /// write-back, and the number.
    pub file_systems: Vec<(String, u32)>,
    /// A file system is mounted from one of [`devs`](Self::devs).
    pub mounted: bool,
}

/// A device below a traced one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LowerDevice {
    /// Number of the whole disk in events.
    pub dev: u32,
    /// Its own name: `sda2`.
    pub name: String,
    /// First sector and end, for a partition.
    pub sectors: Option<(u64, u64)>,
}

impl LowerDevice {
    /// From its folder in sysfs.
    fn at(folder: &Path) -> Option<LowerDevice> {
        let name = folder.file_name()?.to_string_lossy().into_owned();
        let sectors = sectors_of(folder).ok()?;
        let whole = if sectors.is_some() { folder.parent()? } else { folder };
        Some(LowerDevice { dev: of_folder(whole)?, name, sectors })
    }

    /// True for events of this device at this place.
    pub fn takes(&self, dev: u32, sector: u64) -> bool {
        self.dev == dev && self.sectors.is_none_or(|(start, end)| (start..end).contains(&sector))
    }
}

impl TraceTarget {
    /// From a block device, or a file or directory on one.
    ///
    /// # Errors
    /// There is no block device behind the path.
    pub fn find(path: &Path) -> Result<TraceTarget, LabError> {
        let Some(device) = BlockDevice::find(path)? else {
            return Err(LabError::refused(
                format!("tracing below {}", path.display()),
                "no block device is behind it (a file system in memory, over a network, or an overlay)",
                "name the block device itself; `lsblk` lists them",
            ));
        };
        let whole = read(&device.sys().join("dev"))?;
        let dev = parse(&whole).ok_or_else(|| not_understood(&device.name))?;
        let own = format!("/sys/dev/block/{}:{}", device.dev.0, device.dev.1);
        let own = fs::canonicalize(&own).map_err(|e| LabError::file("look at", Path::new(&own), e))?;
        let name = own.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let sectors = sectors_of(&own)?;
        let mut devs = vec![dev];
        if sectors.is_some() {
            devs.push(joined(device.dev.0, device.dev.1));
        } else {
            devs.extend(partitions(&own).iter().filter_map(|part| of_folder(part)));
        }
        devs.extend(holders(&own));
        let below = linked(&own, "slaves").iter().filter_map(|path| LowerDevice::at(path)).collect();
        let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let mounts = btrfs::mounted_from(&table, &devs);
        let mounted = is_mounted(&table, &devs) || !mounts.is_empty();
        Ok(TraceTarget { name, dev, sectors, device, devs, below, file_systems: mounts, mounted })
    }

    /// The filter of its events and of those of the devices below. Of many it lets more through:
    /// see [`is_below`](Self::is_below).
    pub fn filter(&self) -> String {
        const MOST_PARTITIONS: usize = 24;
        if let Some((start, end)) = self.sectors {
            return format!("dev == {} && sector >= {start} && sector < {end}", self.dev);
        }
        let parts: Vec<_> = self.below.iter().filter_map(|of| Some((of.dev, of.sectors?))).collect();
        let is_exact = parts.len() <= MOST_PARTITIONS;
        let whole = self.below.iter().filter(|of| of.sectors.is_none() || !is_exact).map(|of| of.dev);
        let mut any = any_number("dev", &std::iter::once(self.dev).chain(whole).collect::<Vec<_>>());
        any.extend(
            parts
                .iter()
                .filter(|_| is_exact)
                .map(|(dev, (start, end))| format!("(dev == {dev} && sector >= {start} && sector < {end})")),
        );
        any.join(" || ")
    }

    /// True for events of a device below.
    pub fn is_below(&self, dev: u32, sector: u64) -> bool {
        self.below.iter().any(|of| of.takes(dev, sector))
    }

    /// True for bios that go on from it, to it, or further down.
    pub fn has_part_in(&self, remap: &RemapEvent) -> bool {
        [remap.dev, remap.old_dev].contains(&self.dev) || self.is_below(remap.dev, remap.sector)
    }

    /// The filter of remaps: from it, to it, and further down.
    pub fn remap_filter(&self) -> String {
        format!("{} || old_dev == {}", self.filter(), self.dev)
    }

    /// The filter of an event about a file, with the names of its fields of device and inode. Of
    /// many devices it lets more through.
    pub fn touch_filter(&self, dev: &str, ino: &str) -> String {
        let mut any = if dev == "name" {
            let names: Vec<&str> = self.file_systems.iter().map(|(name, _)| name.as_str()).collect();
            any_name("name", &self.devs, &names)
        } else {
            let file_systems = self.file_systems.iter().map(|(_, dev)| *dev);
            any_number(dev, &self.devs.iter().copied().chain(file_systems).collect::<Vec<_>>())
        };
        if dev != "name" {
            // The inode of a device lies in no file system, and has the device's number.
            any.extend(any_number(ino, &self.devs));
        }
        any.join(" || ")
    }

    /// Name of a device among it and those below.
    pub fn name_of(&self, dev: u32) -> String {
        if dev == self.dev {
            return self.device.name.clone();
        }
        let below: Vec<&str> =
            self.below.iter().filter(|of| of.dev == dev).map(|of| of.name.as_str()).collect();
        match below.is_empty() {
            true => {
                let (major, minor) = parted(dev);
                format!("{major}:{minor}")
            }
            false => below.join("+"), // partitions of one disk
        }
    }

    /// The kernel's counts of it now.
    ///
    /// # Errors
    /// The kernel shows no counts of the device.
    pub fn counts(&self) -> Result<DiskCounts, LabError> {
        DiskCounts::now(&self.name).ok_or_else(|| {
            LabError::refused(
                format!("counting the requests of {}", self.name),
                "it is not in /proc/diskstats",
                "was it removed?",
            )
        })
    }
}

/// Folders of the partitions of a disk.
fn partitions(disk: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(disk).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| path.join("partition").exists()).collect()
}

/// Numbers of the devices that a disk and its partitions are below.
fn holders(disk: &Path) -> Vec<u32> {
    let parts = partitions(disk);
    let folders = std::iter::once(disk).chain(parts.iter().map(PathBuf::as_path));
    let holders = folders.flat_map(|folder| linked(folder, "holders"));
    holders.filter_map(|holder| of_folder(&holder)).collect()
}

/// The folders that the links in `holders` or `slaves` lead to, and theirs.
fn linked(device: &Path, links: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(device.join(links)).into_iter().flatten().flatten() {
        let Ok(path) = fs::canonicalize(entry.path()) else { continue };
        let further = linked(&path, links);
        found.extend(std::iter::once(path).chain(further));
    }
    found.sort();
    found.dedup(); // by several ways
    found
}

/// First sector and end of a partition; nothing of a whole disk.
fn sectors_of(folder: &Path) -> Result<Option<(u64, u64)>, LabError> {
    if !folder.join("partition").exists() {
        return Ok(None);
    }
    let number =
        |file: &str| read(&folder.join(file))?.parse::<u64>().map_err(|_| not_understood(folder.display()));
    let (start, size) = (number("start")?, number("size")?);
    Ok(Some((start, start.saturating_add(size))))
}

fn is_mounted(table: &str, devs: &[u32]) -> bool {
    table.lines().filter_map(of_mount).any(|dev| devs.contains(&dev))
}

fn not_understood(device: impl Display) -> LabError {
    LabError::refused(device, "its numbers in sysfs are not understood", "name another device")
}

fn read(path: &Path) -> Result<String, LabError> {
    let text = fs::read_to_string(path).map_err(|e| LabError::file("read", path, e))?;
    Ok(text.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_in_memory_have_no_device_and_the_message_says_what_to_do() {
        if !Path::new("/dev/shm").is_dir() {
            eprintln!("skipped: no /dev/shm");
            return;
        }
        let error = TraceTarget::find(Path::new("/dev/shm")).expect_err("memory").to_string();
        assert!(error.contains("/dev/shm") && error.contains("lsblk"), "{error}");
    }

    #[test]
    fn a_partition_is_its_sectors() {
        let target = TraceTarget {
            device: BlockDevice::default(),
            name: "vda1".into(),
            dev: 254 << 20,
            sectors: Some((2048, 4096)),
            devs: vec![254 << 20, (254 << 20) + 2],
            mounted: true,
            ..TraceTarget::default()
        };
        assert_eq!(target.filter(), "dev == 266338304 && sector >= 2048 && sector < 4096");
        let of_files = target.touch_filter("s_dev", "i_ino");
        assert!(of_files.ends_with("s_dev == 266338306 || i_ino == 266338304 || i_ino == 266338306"));
        assert_eq!(target.touch_filter("name", "ino"), r#"name == "254:0" || name == "254:2""#);
        let sda = LowerDevice { dev: 8 << 20, name: "sda".into(), sectors: None };
        let array = TraceTarget { sectors: None, below: vec![sda], ..target };
        assert_eq!(array.filter(), "dev == 8388608 || dev == 266338304");
        assert!(array.remap_filter().ends_with(" || old_dev == 266338304"));
        assert_eq!((array.name_of(8 << 20), array.name_of(9 << 20)), ("sda".into(), "9:0".into()));
    }

    /// As sysfs shows a logical volume over the partitions of two disks.
    fn tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let file = |path: &str, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for (disk, number) in [("sda", 0), ("sdb", 16)] {
            file(&format!("{disk}/dev"), &format!("8:{number}\n"));
            for part in 1..=2 {
                let folder = format!("{disk}/{disk}{part}");
                file(&format!("{folder}/dev"), &format!("8:{}\n", number + part));
                file(&format!("{folder}/partition"), &format!("{part}\n"));
                file(&format!("{folder}/start"), &format!("{}\n", part * 2048));
                file(&format!("{folder}/size"), "2048\n");
                fs::create_dir(dir.path().join(&folder).join("holders")).unwrap();
            }
        }
        file("dm-0/dev", "253:0\n");
        fs::create_dir(dir.path().join("dm-0/slaves")).unwrap();
        for part in ["sda/sda2", "sdb/sdb1"] {
            let part = dir.path().join(part);
            std::os::unix::fs::symlink(dir.path().join("dm-0"), part.join("holders/dm-0")).unwrap();
            let link = dir.path().join("dm-0/slaves").join(part.file_name().unwrap());
            std::os::unix::fs::symlink(part, link).unwrap();
        }
        dir
    }

    #[test]
    fn volumes_lie_on_the_partitions_of_a_disk_and_are_made_of_them() {
        let dir = tree();
        assert_eq!(holders(&dir.path().join("sda")), [253 << 20], "its files lie on the disk");
        let slaves = linked(&dir.path().join("dm-0"), "slaves");
        let mut below: Vec<LowerDevice> = slaves.iter().filter_map(|path| LowerDevice::at(path)).collect();
        below.sort_by_key(|of| of.dev);
        // Events have the number of the disk.
        let part = |dev, name: &str, start| LowerDevice {
            dev,
            name: name.into(),
            sectors: Some((start, start + 2048)),
        };
        assert_eq!(below, [part(8 << 20, "sda2", 4096), part((8 << 20) + 16, "sdb1", 2048)]);
        let target = TraceTarget { dev: 253 << 20, below, ..TraceTarget::default() };
        let filter = target.filter();
        assert!(
            filter.starts_with("dev == 265289728 || (dev == 8388608 && sector >= 4096 && sector < 6144)")
        );
        assert!(target.is_below(8 << 20, 4096) && !target.is_below(8 << 20, 2048), "of another partition");
        assert_eq!(target.name_of((8 << 20) + 16), "sdb1");
    }

    #[test]
    fn filters_of_many_devices_are_shorter_than_a_page() {
        let page = 4096;
        for devs in [
            (0..200).map(|n| (259 << 20) + n).collect::<Vec<u32>>(), // partitions
            (0..200).map(|n| (253 << 20) + n * 7).collect(),         // volumes
            (0..200).map(|n| ((8 + n / 16) << 20) + n % 16 * 16).collect(), // disks
        ] {
            let below = |dev: &u32| LowerDevice { dev: *dev, name: "x".into(), sectors: None };
            let part = |dev: &u32| LowerDevice { sectors: Some((1 << 40, 1 << 41)), ..below(dev) };
            let file_systems = (0..50).map(|n| (format!("btrfs-{n}"), n + 40)).collect();
            let target = TraceTarget {
                dev: devs[0],
                below: devs.iter().map(below).collect(),
                file_systems,
                devs: devs.clone(),
                ..TraceTarget::default()
            };
            let parts = TraceTarget { below: devs.iter().map(part).collect(), ..target.clone() };
            for filter in [
                target.touch_filter("s_dev", "i_ino"),
                target.touch_filter("name", "ino"),
                target.remap_filter(),
                parts.remap_filter(),
            ] {
                assert!(filter.len() < page, "{} bytes: {filter}", filter.len());
            }
            let others = (0..400_000_000).step_by(4099).filter(|dev| target.is_below(*dev, 0));
            assert!(others.into_iter().all(|dev| devs.contains(&dev)), "what reads them looks again");
        }
    }
}
