//! Block devices that are to be written to: their contents, and whether they are in use.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Bytes that begin a device and tell what is on it.
const HEAD_BYTES: usize = 1 << 20;

/// Marks of what is found on devices: where, which bytes, and what they mean. The first that
/// fits counts.
const MARKS: [(usize, &[u8], &str); 18] = [
    (0, b"LUKS\xba\xbe", "an encrypted volume (LUKS)"),
    (0, b"XFSB", "an xfs file system"),
    (1080, b"\x53\xef", "an ext2, ext3 or ext4 file system"),
    (65_600, b"_BHRfS_M", "a btrfs file system"),
    (1024, b"\x10\x20\xf5\xf2", "an f2fs file system"),
    (0, b"hsqs", "a squashfs file system"),
    (32_769, b"CD001", "an ISO 9660 file system"),
    (3, b"NTFS    ", "an NTFS file system"),
    (3, b"EXFAT   ", "an exFAT file system"),
    (82, b"FAT32   ", "a FAT file system"),
    (54, b"FAT1", "a FAT file system"),
    (4086, b"SWAPSPACE2", "swap space"),
    (4086, b"SWAP-SPACE", "swap space"),
    (512, b"LABELONE", "a volume of LVM"),
    (536, b"LVM2 001", "a volume of LVM"),
    (4096, b"\xfc\x4e\x2b\xa9", "a member of a RAID array"),
    (512, b"EFI PART", "a partition table"),
    (510, b"\x55\xaa", "a partition table"),
];

/// True when there is a block device at `path`.
pub fn is_block_device(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|meta| meta.file_type().is_block_device())
}

/// The kind of contents of a device's first MiB; `None` when it is all zeros.
///
/// # Errors
/// The device cannot be read.
pub fn block_contents(path: &Path) -> io::Result<Option<&'static str>> {
    let file = File::open(path)?;
    let mut head = vec![0; HEAD_BYTES];
    let mut got = 0;
    while got < head.len() {
        match file.read_at(&mut head[got..], got as u64)? {
            0 => break,
            n => got += n,
        }
    }
    Ok(told(&head[..got]))
}

fn told(head: &[u8]) -> Option<&'static str> {
    let has = |(at, mark, _): &&(usize, &[u8], &str)| head.get(*at..at + mark.len()) == Some(*mark);
    if let Some((.., what)) = MARKS.iter().find(has) {
        return Some(what);
    }
    head.iter().any(|byte| *byte != 0).then_some("data of an unknown kind")
}

/// Takes a block device for this process alone, as a mount does, until the file is dropped: it
/// cannot be mounted meanwhile. It can still be opened and used.
///
/// # Errors
/// `ResourceBusy` when it is taken already: it is mounted, is swap, or is part of another
/// device.
pub fn block_claim(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(path)
}

/// Where a block device is mounted, if it is.
pub fn block_mounted_on(path: &Path) -> Option<String> {
    let device = std::fs::metadata(path).ok()?.rdev();
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    table.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(2);
        let (major, minor) = fields.next()?.split_once(':')?;
        let place = fields.nth(1)?.replace("\\040", " ");
        let mounted = rustix::fs::makedev(major.parse().ok()?, minor.parse().ok()?);
        (mounted == device).then_some(place)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_told_by_their_marks() {
        assert_eq!(told(&[]), None);
        assert_eq!(told(&vec![0; HEAD_BYTES]), None);
        for (at, mark, what) in MARKS {
            let mut head = vec![0; HEAD_BYTES];
            head[at..at + mark.len()].copy_from_slice(mark);
            assert_eq!(told(&head), Some(what));
        }
        assert_eq!(told(&[0, 0, 1]), Some("data of an unknown kind"));
        // A guarded partition table, and an ext4 file system behind a boot sector.
        let mut head = vec![0; HEAD_BYTES];
        head[510..512].copy_from_slice(b"\x55\xaa");
        assert_eq!(told(&head), Some("a partition table"));
        head[1080..1082].copy_from_slice(b"\x53\xef");
        assert_eq!(told(&head), Some("an ext2, ext3 or ext4 file system"));
    }

    #[test]
    fn a_file_is_no_block_device() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(!is_block_device(file.path()) && !is_block_device(Path::new("/nowhere")));
        assert_eq!(block_mounted_on(file.path()), None);
    }
}
