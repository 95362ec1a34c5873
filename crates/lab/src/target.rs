//! The file or device that a command works on, if the laboratory can measure it.

pub(crate) mod cold;
pub(crate) mod data_file;
pub(crate) mod held;
pub(crate) mod in_use;

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use snowmelt_io::{IoErrorKind, JobFile, written_bytes};

use crate::LabError;
use crate::machine::BlockDevice;

/// A file or block device that can be measured.
#[derive(Debug)]
pub struct Target {
    /// As given.
    pub path: PathBuf,
    /// Length in bytes.
    pub len: u64,
    /// The block device behind it.
    pub device: BlockDevice,
    /// Reasons to doubt measurements of it.
    pub doubts: Vec<String>,
}

/// Below this, caches of the device may hold all of it.
const SMALL: u64 = 1 << 30;

impl Target {
    /// Looks at `path`; what has no block device behind it is refused.
    pub fn look(path: &Path) -> Result<Target, LabError> {
        let meta = fs::metadata(path).map_err(|e| LabError::file("look at", path, e))?;
        let is_device = meta.file_type().is_block_device();
        if meta.is_dir() {
            let instead = "name a file in it, or the block device it is on";
            return Err(LabError::refused(path.display(), "is a directory", instead));
        }
        if !is_device && !meta.is_file() {
            let instead = "name a file or a block device";
            return Err(LabError::refused(path.display(), "is neither a file nor a block device", instead));
        }
        let Some(device) = BlockDevice::find(path)? else {
            let kind = file_system(meta.dev()).unwrap_or_else(|| "a file system without a device".into());
            let why = format!("is on {kind}, which no block device can be seen behind");
            let instead = "name a file on a disk, or the block device itself; with --model a device is simulated over any file";
            return Err(LabError::refused(path.display(), why, instead));
        };
        let file = JobFile::open(path, false, false)?;
        let mut doubts = Vec::new();
        if file.len() < SMALL {
            doubts.push(format!(
                "only {} long: a cache in the device, its controller or a hypervisor may hold all of it",
                crate::size::about(file.len() as f64)
            ));
        }
        let written = written_bytes(path, file.len()).map_err(|e| LabError::file("look at", path, e))?;
        if written < file.len() / 100 * 99 {
            doubts.push(format!(
                "{} of {} were ever written: the rest, holes and room that is only reserved, is read without the device",
                crate::size::about(written as f64),
                crate::size::about(file.len() as f64)
            ));
        }
        Ok(Target { path: path.into(), len: file.len(), device, doubts })
    }

    /// A file of any kind, for device models: what is behind it does not matter.
    pub fn any(path: &Path) -> Result<Target, LabError> {
        let file = JobFile::open(path, false, false)?;
        let device = BlockDevice::find(path)?.unwrap_or_default();
        Ok(Target { path: path.into(), len: file.len(), device, doubts: Vec::new() })
    }

    /// The part of `range` bytes from the start (all of it when `None`) that is to be used.
    pub fn range(&self, range: Option<u64>) -> Result<u64, LabError> {
        match range {
            Some(wanted) if wanted > self.len => Err(LabError::refused(
                self.path.display(),
                format!("is {} bytes long, less than the {wanted} asked for", self.len),
                "leave --range out to use all of it, or name a larger file",
            )),
            Some(wanted) => Ok(wanted),
            None => Ok(self.len),
        }
    }

    /// Opens it. With `direct` it is O_DIRECT or an error that says what works instead.
    pub fn open(&self, write: bool, direct: bool) -> Result<JobFile, LabError> {
        let refused = |e: &snowmelt_io::IoError| match &e.kind {
            // EINVAL, EOPNOTSUPP.
            IoErrorKind::Os { errno } => direct && (*errno == 22 || *errno == 95),
            IoErrorKind::Invalid(_) => direct,
            _ => false,
        };
        JobFile::open(&self.path, write, direct).map_err(|e| {
            if refused(&e) {
                let why = "its file system has no O_DIRECT";
                LabError::refused(self.path.display(), why, "--direct off measures through the page cache")
            } else {
                LabError::Device(e)
            }
        })
    }
}

/// The kind of the file system with this device number: `tmpfs`.
fn file_system(dev: u64) -> Option<String> {
    let table = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let number = format!("{}:{}", rustix::fs::major(dev), rustix::fs::minor(dev));
    let line = table.lines().find(|line| line.split(' ').nth(2) == Some(&number))?;
    Some(line.split(" - ").nth(1)?.split(' ').next()?.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(path: &Path) -> String {
        Target::look(path).unwrap_err().to_string()
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        assert!(refusal(dir.path()).contains("is a directory; name a file in it"));
        assert!(refusal(Path::new("/dev/null")).contains("neither a file nor a block device"));
        assert!(refusal(&dir.path().join("missing")).contains("No such file"));
        let Ok(memory) = tempfile::NamedTempFile::new_in("/dev/shm") else {
            println!("skipped: no /dev/shm here");
            return;
        };
        let message = refusal(memory.path());
        assert!(message.contains("tmpfs") && message.contains("--model"), "{message}");
    }

    #[test]
    fn a_file_shorter_than_asked_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(1 << 20).unwrap();
        let Ok(target) = Target::look(file.path()) else {
            println!("skipped: temporary files are on no block device here");
            return;
        };
        assert_eq!(target.range(None).unwrap(), 1 << 20);
        assert_eq!(target.range(Some(4096)).unwrap(), 4096);
        let message = target.range(Some(1 << 21)).unwrap_err().to_string();
        assert!(message.contains("1048576") && message.contains("--range"), "{message}");
        assert!(target.doubts.iter().any(|d| d.contains("holes")), "{:?}", target.doubts);
        assert!(target.doubts.iter().any(|d| d.contains("1.00 MiB")));
    }

    #[test]
    fn room_that_is_only_reserved_is_no_data() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let reserved = rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, 4 << 20);
        let doubts = |file: &tempfile::NamedTempFile| Some(Target::look(file.path()).ok()?.doubts);
        let Some(told) = doubts(&file).filter(|_| reserved.is_ok()) else {
            println!("skipped: no block device, or no fallocate, below temporary files here");
            return;
        };
        assert!(told.iter().any(|doubt| doubt.starts_with("0 B of 4.00 MiB were ever written")), "{told:?}");
        std::fs::write(file.path(), vec![1; 4 << 20]).unwrap();
        file.as_file().sync_all().unwrap();
        let told = doubts(&file).unwrap();
        assert!(!told.iter().any(|doubt| doubt.contains("ever written")), "{told:?}");
    }
}
