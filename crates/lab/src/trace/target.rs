//! The target of a trace: a whole disk, or the sectors of a partition; found from a device or
//! from a file on it.

use std::fs;
use std::path::Path;

use crate::LabError;
use crate::machine::BlockDevice;
use crate::machine::diskstats::DiskCounts;

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
        Ok(TraceTarget { name, dev: (major << 20) | minor, sectors, device })
    }

    /// The filter of its events.
    pub fn filter(&self) -> String {
        match self.sectors {
            None => format!("dev == {}", self.dev),
            Some((start, end)) => format!("dev == {} && sector >= {start} && sector < {end}", self.dev),
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
        };
        assert_eq!(target.filter(), "dev == 266338304 && sector >= 2048 && sector < 4096");
    }
}
