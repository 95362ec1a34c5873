//! Numbers of devices and file systems, as the kernel has them in events.

use std::fs;
use std::path::Path;

/// Bits of the minor number.
pub const MINOR_BITS: u32 = 20;

/// Major · 2^20 + minor.
pub fn joined(major: u32, minor: u32) -> u32 {
    (major << MINOR_BITS) | minor
}

/// Major and minor.
pub fn parted(dev: u32) -> (u32, u32) {
    (dev >> MINOR_BITS, dev & ((1 << MINOR_BITS) - 1))
}

/// Of a text like `7:0`.
pub fn parse(text: &str) -> Option<u32> {
    let (major, minor) = text.split_once(':')?;
    Some(joined(major.parse().ok()?, minor.parse().ok()?))
}

/// Of a number as programs see it.
pub fn of_dev(dev: u64) -> u32 {
    joined(rustix::fs::major(dev), rustix::fs::minor(dev))
}

/// Of a device, by its folder in sysfs.
pub fn of_folder(folder: &Path) -> Option<u32> {
    parse(fs::read_to_string(folder.join("dev")).ok()?.trim())
}

/// Of a file system, by its line in the table of mounts.
pub fn of_mount(line: &str) -> Option<u32> {
    parse(line.split(' ').nth(2)?)
}
