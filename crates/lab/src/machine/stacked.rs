//! Devices that are made of others, which get their requests once more: md, dm, loop devices over a
//! file or a disk, partitions.

use std::fs;
use std::path::{Path, PathBuf};

use crate::machine::BlockDevice;

/// Of the devices of these names those whose requests others of them have, too: sums leave them
/// out. Names are those of diskstats.
pub(crate) fn counted_elsewhere(names: &[&str]) -> Vec<String> {
    let disk_of = |path: &Path| BlockDevice::find(path).ok().flatten().map(|device| device.name);
    found_in(Path::new("/sys/class/block"), names, &disk_of)
}

fn found_in(class: &Path, names: &[&str], disk_of: &dyn Fn(&Path) -> Option<String>) -> Vec<String> {
    let below = |name: &str| directly_below(class, name, disk_of);
    let (whole, rest): (Vec<&str>, Vec<&str>) =
        names.iter().copied().partition(|name| !is_covered(name, names, &below) && !is_path(class, name));
    // Of a device with only some of those below it, the device itself is counted.
    let parts = whole.iter().filter(|name| whole.iter().any(|above| lies_below(name, above, &below)));
    rest.iter().chain(parts).map(|name| (*name).to_owned()).collect()
}

/// All that a device is made of is among `names`, as it is or as what it is made of.
fn is_covered(name: &str, names: &[&str], below: &dyn Fn(&str) -> Vec<String>) -> bool {
    let parts = below(name);
    let is_counted = |part: &String| names.contains(&part.as_str()) || is_covered(part, names, below);
    !parts.is_empty() && parts.iter().all(is_counted)
}

fn lies_below(name: &str, above: &str, below: &dyn Fn(&str) -> Vec<String>) -> bool {
    below(above).iter().any(|part| part == name || lies_below(name, part, below))
}

/// A path to a disk of NVMe with several: the disk itself has its requests.
fn is_path(class: &Path, name: &str) -> bool {
    fs::read_to_string(class.join(name).join("hidden")).is_ok_and(|hidden| hidden.trim() == "1")
}

fn directly_below(class: &Path, name: &str, disk_of: &dyn Fn(&Path) -> Option<String>) -> Vec<String> {
    let Ok(folder) = fs::canonicalize(class.join(name)) else { return Vec::new() };
    if folder.join("partition").exists() {
        let disk = folder.parent().and_then(Path::file_name);
        return disk.map(|disk| disk.to_string_lossy().into_owned()).into_iter().collect();
    }
    let slaves = fs::read_dir(folder.join("slaves")).into_iter().flatten().flatten();
    let mut below: Vec<String> =
        slaves.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let disk = loop_file(&folder).and_then(|path| disk_of(&path));
    below.extend(disk.filter(|disk| disk != name));
    below
}

/// The file behind a loop device in sysfs, as the kernel shows it.
pub(crate) fn loop_file(folder: &Path) -> Option<PathBuf> {
    let text = fs::read_to_string(folder.join("loop/backing_file")).ok()?;
    Some(PathBuf::from(text.trim_end_matches('\n')))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As sysfs shows them: sda with sda1, sdb, md0 over sda1 and sdb, dm-0 over md0, a loop device
    /// over a file on sdb, one over a file in memory, and a hidden path.
    fn tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let file = |path: &str, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for path in ["sda/size", "sda/sda1/partition", "sdb/size", "md0/slaves/sda1", "md0/slaves/sdb"] {
            file(path, "1\n");
        }
        file("dm-0/slaves/md0", "");
        file("loop0/loop/backing_file", "/on/sdb\n");
        file("loop1/loop/backing_file", "/in/memory\n");
        file("nvme0c0n1/hidden", "1\n");
        std::os::unix::fs::symlink(dir.path().join("sda/sda1"), dir.path().join("sda1")).unwrap();
        dir
    }

    #[test]
    fn requests_of_stacked_devices_are_counted_once() {
        let dir = tree();
        let disk_of = |path: &Path| (path == Path::new("/on/sdb")).then(|| "sdb".to_owned());
        let of = |names: &[&str]| found_in(dir.path(), names, &disk_of);
        assert_eq!(of(&["dm-0", "loop0", "loop1", "md0", "sda", "sdb"]), ["dm-0", "loop0", "md0"]);
        assert_eq!(of(&["loop0", "sda"]), Vec::<String>::new(), "its disk is not watched");
        assert_eq!(of(&["sda", "sda1"]), ["sda1"]);
        assert_eq!(of(&["md0", "sda"]), ["sda"], "the other half is at sdb, which is not watched");
        assert_eq!(of(&["nvme0c0n1", "nvme0n1"]), ["nvme0c0n1"]);
        assert!(of(&["gone"]).is_empty());
    }
}
