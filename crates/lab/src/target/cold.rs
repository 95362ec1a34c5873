//! Cold caches, and the proof of it.

use std::fs::File;
use std::path::Path;

use rustix::fs::Advice;
use snowmelt_io::cached_pages;

use crate::LabError;

/// Throws the file out of the page cache and counts what is left of it there: 0 pages are the
/// proof. What a device, its controller or a hypervisor caches cannot be seen.
pub fn make_cold(file: &File, path: &Path) -> Result<u64, LabError> {
    // Dirty pages stay unless they are written back first.
    rustix::fs::fdatasync(file).map_err(|e| LabError::file("sync", path, e))?;
    let mut left = throw_out(file, path)?;
    // Pages on their way between lists are skipped; a moment later they are not.
    for _ in 0..5 {
        if left == 0 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
        left = throw_out(file, path)?;
    }
    Ok(left)
}

fn throw_out(file: &File, path: &Path) -> Result<u64, LabError> {
    rustix::fs::fadvise(file, 0, None, Advice::DontNeed).map_err(|e| LabError::file("advise on", path, e))?;
    cached_pages(file).map_err(|e| {
        let why = match e.kind() {
            std::io::ErrorKind::PermissionDenied => OTHERS.to_owned(),
            _ => format!("the kernel cannot say what its page cache holds ({e})"),
        };
        LabError::refused(
            path.display(),
            why,
            "cold caches are proven with cachestat(2), since Linux 6.5; --direct on needs no proof",
        )
    })
}

/// To others a page in the cache would tell what its owner has read.
const OTHERS: &str = "the kernel tells what its page cache holds of a file only to its owner, to those who may write \
                      to it, and to root";

/// Why no buffered read of a file can be proven to be cold, if so.
pub fn unproven(file: &File) -> Option<String> {
    match cached_pages(file) {
        Ok(_) => None,
        Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => Some(OTHERS.to_owned()),
        Err(e) => Some(format!("the kernel cannot say what its page cache holds ({e})")),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_file_of_another_is_not_proven_to_be_cold() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(unproven(file.as_file()).is_some(), cached_pages(file.as_file()).is_err());
        // Not even root may write to this one.
        let Ok(other) = File::open("/proc/self/stat") else { return println!("skipped: no /proc here") };
        if !rustix::process::geteuid().is_root() {
            assert!(unproven(&other).is_some_and(|why| why.contains("kernel")));
        }
    }

    #[test]
    fn a_written_file_becomes_cold() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&vec![7; 1 << 20]).unwrap();
        let Ok(warm) = cached_pages(file.as_file()) else {
            println!("skipped: no cachestat here");
            return;
        };
        assert!(warm >= 256);
        assert_eq!(make_cold(file.as_file(), file.path()).unwrap(), 0);
    }
}
