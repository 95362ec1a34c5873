//! File systems whose files have a number that no device has: btrfs.
//!
//! * Events about a file have the number of its file system, which is in the table of mounts.
//! * Events of write-back have a name, `btrfs-1`, which only sysfs tells:
//!   `/sys/fs/btrfs/UUID/bdi` is a link to it, `devices` are those that the file system is on.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use super::device_number::{of_dev, of_folder, of_mount};

/// Those that are mounted from one of these devices, in a table of mounts: the name of their
/// write-back (empty where it is not told), and their number.
pub(super) fn mounted_from(table: &str, devs: &[u32]) -> Vec<(String, u32)> {
    found_in(table, Path::new("/sys/fs/btrfs"), devs, &device_number)
}

fn found_in(
    table: &str,
    sysfs: &Path,
    devs: &[u32],
    number: &dyn Fn(&Path) -> Option<u32>,
) -> Vec<(String, u32)> {
    let known = file_systems(sysfs);
    let mut found: Vec<(String, u32)> = Vec::new();
    for (dev, source) in table.lines().filter_map(mount_of) {
        let Some(source) = number(source).filter(|_| found.iter().all(|(_, other)| *other != dev)) else {
            continue;
        };
        let all = known.iter().find(|of| of.devices.contains(&source));
        let is_here = devs.contains(&source)
            || all.is_some_and(|of| of.devices.iter().any(|device| devs.contains(device)));
        if is_here {
            found.push((all.map_or(String::new(), |of| of.write_back.clone()), dev));
        }
    }
    found
}

/// Number of a btrfs and the device it is mounted from, of a line in the table of mounts.
fn mount_of(line: &str) -> Option<(u32, &Path)> {
    let (mount, source) = line.split_once(" - btrfs ")?;
    Some((of_mount(mount)?, Path::new(source.split(' ').next()?)))
}

/// A btrfs as sysfs shows it.
struct InSysfs {
    write_back: String,
    devices: Vec<u32>,
}

fn file_systems(sysfs: &Path) -> Vec<InSysfs> {
    let of = |folder: &Path| {
        let devices = fs::read_dir(folder.join("devices")).ok()?.flatten();
        let devices = devices.filter_map(|entry| of_folder(&entry.path())).collect();
        let bdi = fs::read_link(folder.join("bdi")).ok();
        let name = bdi.and_then(|bdi| Some(bdi.file_name()?.to_string_lossy().into_owned()));
        Some(InSysfs { write_back: name.unwrap_or_default(), devices })
    };
    let entries = fs::read_dir(sysfs).into_iter().flatten().flatten();
    entries.filter_map(|entry| of(&entry.path())).collect()
}

fn device_number(path: &Path) -> Option<u32> {
    let meta = fs::metadata(path).ok().filter(|meta| meta.file_type().is_block_device())?;
    Some(of_dev(meta.rdev()))
}

#[cfg(test)]
mod tests {
    use super::super::device_number::joined;
    use super::*;

    #[test]
    fn a_btrfs_on_the_device_has_its_number_and_the_name_of_its_write_back() {
        let dir = tempfile::tempdir().unwrap();
        let make = |name: &str, devices: &[(&str, &str)]| {
            let folder = dir.path().join(name);
            for (device, number) in devices {
                fs::create_dir_all(folder.join("devices").join(device)).unwrap();
                fs::write(folder.join("devices").join(device).join("dev"), number).unwrap();
            }
            let bdi = format!("../../../devices/virtual/bdi/btrfs-{name}");
            std::os::unix::fs::symlink(bdi, folder.join("bdi")).unwrap();
        };
        make("1", &[("loop0", "7:0\n"), ("loop1", "7:1\n")]);
        make("2", &[("loop2", "7:2\n")]);
        fs::create_dir(dir.path().join("features")).unwrap();
        let table = "22 1 253:0 / / rw - ext4 /dev/vda rw\n\
                     40 22 0:40 / /mnt/a rw shared:3 - btrfs /dev/loop1 rw,space_cache=v2\n\
                     41 22 0:40 /sub /mnt/b rw - btrfs /dev/loop1 rw\n\
                     42 22 0:41 / /mnt/c rw - btrfs /dev/loop2 rw\n\
                     43 22 0:42 / /mnt/d rw - btrfs /dev/gone rw\n";
        let number = |path: &Path| {
            let minor: u32 = path.to_str()?.strip_prefix("/dev/loop")?.parse().ok()?;
            Some(joined(7, minor))
        };
        let of = |minor: u32| found_in(table, dir.path(), &[joined(7, minor)], &number);
        assert_eq!(of(0), [("btrfs-1".to_owned(), 40)], "also of a device that it is not mounted by");
        assert_eq!(of(1), of(0));
        assert_eq!(of(2), [("btrfs-2".to_owned(), 41)]);
        assert!(of(3).is_empty());
        let untold = found_in(table, Path::new("/nowhere"), &[joined(7, 1)], &number);
        assert_eq!(untold, [(String::new(), 40)], "a kernel that does not tell the name");
    }
}
