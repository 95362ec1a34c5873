//! The file systems that are mounted from a block device.

use std::path::{Path, PathBuf};

/// Where file systems are mounted from block device `device`, innermost last.
pub fn mounts_of(device: &Path) -> Vec<PathBuf> {
    let table = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    mounts_in(&table, device)
}

fn mounts_in(table: &str, device: &Path) -> Vec<PathBuf> {
    let of_device = |line: &str| {
        let mut fields = line.split(' ');
        let (source, target) = (fields.next()?, fields.next()?);
        (Path::new(source) == device).then(|| PathBuf::from(unescape(target)))
    };
    table.lines().filter_map(of_device).collect()
}

/// The mount table writes blanks and the like as octal numbers.
pub(super) fn unescape(text: &str) -> String {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let code = (byte == b'\\' && tail.len() >= 3)
            .then(|| std::str::from_utf8(&tail[..3]).ok().and_then(|t| u8::from_str_radix(t, 8).ok()));
        match code.flatten() {
            Some(code) => {
                out.push(code);
                rest = &tail[3..];
            }
            None => {
                out.push(byte);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mount_table_is_read() {
        let table =
            "/dev/loop1 /mnt/a\\040b ext4 rw 0 0\n/dev/loop10 /x ext4 rw 0 0\nproc /proc proc rw 0 0\n";
        assert_eq!(mounts_in(table, Path::new("/dev/loop1")), [PathBuf::from("/mnt/a b")]);
        assert!(mounts_in(table, Path::new("/dev/loop2")).is_empty());
    }
}
