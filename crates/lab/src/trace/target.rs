//! The target of a trace: a whole disk, or the sectors of a partition; found from a device or
//! from a file on it.

use std::fs;
use std::path::Path;

use crate::LabError;
use crate::machine::BlockDevice;
use crate::machine::diskstats::DiskCounts;
use crate::trace::event::MINOR_BITS;

/// A device as events name it.
#[derive(Debug, Clone, PartialEq)]
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
    /// The devices it is made of, with their names: of md and dm.
    pub below: Vec<(u32, String)>,
    /// A file system is mounted from one of [`devs`](Self::devs).
    pub mounted: bool,
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
        let (major, minor) = numbers(&whole).ok_or_else(|| not_understood(&device))?;
        let own = format!("/sys/dev/block/{}:{}", device.dev.0, device.dev.1);
        let own = fs::canonicalize(&own).map_err(|e| LabError::file("look at", Path::new(&own), e))?;
        let name = own.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let sectors = if own.join("partition").exists() {
            let number =
                |file: &str| read(&own.join(file))?.parse::<u64>().map_err(|_| not_understood(&device));
            let (start, size) = (number("start")?, number("size")?);
            Some((start, start + size))
        } else {
            None
        };
        let mut devs = vec![(major << MINOR_BITS) | minor];
        if sectors.is_some() {
            devs.push((device.dev.0 << MINOR_BITS) | device.dev.1);
        } else {
            devs.extend(partitions(&own));
        }
        devs.extend(linked(&own, "holders").into_iter().map(|(dev, _)| dev));
        let below = linked(&own, "slaves");
        let mounted = is_mounted(&devs);
        Ok(TraceTarget { name, dev: (major << MINOR_BITS) | minor, sectors, device, devs, below, mounted })
    }

    /// The filter of its events and of those of the devices below.
    pub fn filter(&self) -> String {
        match self.sectors {
            None => std::iter::once(self.dev)
                .chain(self.below.iter().map(|(dev, _)| *dev))
                .map(|dev| format!("dev == {dev}"))
                .collect::<Vec<_>>()
                .join(" || "),
            Some((start, end)) => format!("dev == {} && sector >= {start} && sector < {end}", self.dev),
        }
    }

    /// The filter of remaps: from it, to it, and further down.
    pub fn remap_filter(&self) -> String {
        format!("{} || old_dev == {}", self.filter(), self.dev)
    }

    /// The filter of an event about a file, with the names of its fields of device and inode.
    pub fn touch_filter(&self, dev: &str, ino: &str) -> String {
        let of = |number: &u32| match dev {
            "name" => format!("name == \"{}:{}\"", number >> MINOR_BITS, number & ((1 << MINOR_BITS) - 1)),
            // The inode of a device lies in no file system, and has the device's number.
            _ => format!("{dev} == {number} || {ino} == {number}"),
        };
        self.devs.iter().map(of).collect::<Vec<_>>().join(" || ")
    }

    /// Name of a device among it and those below.
    pub fn name_of(&self, dev: u32) -> String {
        if dev == self.dev {
            return self.device.name.clone();
        }
        let below = self.below.iter().find(|(of, _)| *of == dev);
        let number = || format!("{}:{}", dev >> MINOR_BITS, dev & ((1 << MINOR_BITS) - 1));
        below.map_or_else(number, |(_, name)| name.clone())
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

/// Numbers of the partitions of a disk.
fn partitions(disk: &Path) -> Vec<u32> {
    let entries = fs::read_dir(disk).into_iter().flatten().flatten().map(|entry| entry.path());
    let parts = entries.filter(|path| path.join("partition").exists());
    parts.filter_map(|path| number_of(&path)).collect()
}

/// The devices that the links in `holders` or `slaves` lead to, and theirs.
fn linked(device: &Path, links: &str) -> Vec<(u32, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(device.join(links)).into_iter().flatten().flatten() {
        let Ok(path) = fs::canonicalize(entry.path()) else { continue };
        let Some(dev) = number_of(&path) else { continue };
        found.push((dev, entry.file_name().to_string_lossy().into_owned()));
        found.extend(linked(&path, links));
    }
    found
}

fn number_of(device: &Path) -> Option<u32> {
    let (major, minor) = numbers(fs::read_to_string(device.join("dev")).ok()?.trim())?;
    Some((major << MINOR_BITS) | minor)
}

fn is_mounted(devs: &[u32]) -> bool {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let of =
        |line: &str| numbers(line.split(' ').nth(2)?).map(|(major, minor)| (major << MINOR_BITS) | minor);
    table.lines().filter_map(of).any(|dev| devs.contains(&dev))
}

fn not_understood(device: &BlockDevice) -> LabError {
    LabError::refused(&device.name, "its numbers in sysfs are not understood", "name another device")
}

fn read(path: &Path) -> Result<String, LabError> {
    let text = fs::read_to_string(path).map_err(|e| LabError::file("read", path, e))?;
    Ok(text.trim().to_string())
}

fn numbers(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
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
            devs: vec![254 << 20, (254 << 20) + 1],
            below: Vec::new(),
            mounted: true,
        };
        assert_eq!(target.filter(), "dev == 266338304 && sector >= 2048 && sector < 4096");
        let of_files = target.touch_filter("s_dev", "i_ino");
        assert!(of_files.ends_with("s_dev == 266338305 || i_ino == 266338305"), "{of_files}");
        assert_eq!(target.touch_filter("name", "ino"), r#"name == "254:0" || name == "254:1""#);
        let array = TraceTarget { sectors: None, below: vec![(8 << 20, "sda".into())], ..target };
        assert_eq!(array.filter(), "dev == 266338304 || dev == 8388608");
        assert!(array.remap_filter().ends_with(" || old_dev == 266338304"));
        assert_eq!((array.name_of(8 << 20), array.name_of(9 << 20)), ("sda".into(), "9:0".into()));
    }
}
