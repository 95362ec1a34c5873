//! The caps that a control group can have of its I/O on one block device, as the kernel's files
//! say them.
//!
//! | version | file | a line |
//! |---|---|---|
//! | v1 | `blkio.throttle.read_bps_device` and three more | `254:0 131072000`; without a cap none |
//! | v2 | `io.max` | `254:0 rbps=131072000 wbps=max riops=max wiops=max`; without caps none |
//!
//! In v1, writing 0 takes the cap away; in v2, `max`.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::setting::{read_setting, write_setting};

/// One cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IoLimit {
    /// Bytes read per second.
    ReadBytes,
    /// Bytes written per second.
    WriteBytes,
    /// Reads per second.
    ReadOps,
    /// Writes per second.
    WriteOps,
}

impl IoLimit {
    /// All of them, in the order of v2.
    pub const ALL: [IoLimit; 4] =
        [IoLimit::ReadBytes, IoLimit::WriteBytes, IoLimit::ReadOps, IoLimit::WriteOps];

    /// Its key in the file of v2.
    pub fn key(self) -> &'static str {
        match self {
            IoLimit::ReadBytes => "rbps",
            IoLimit::WriteBytes => "wbps",
            IoLimit::ReadOps => "riops",
            IoLimit::WriteOps => "wiops",
        }
    }

    /// The control file of a group that holds it.
    pub fn file(self, group: &Path) -> PathBuf {
        let unified = group.join("io.max");
        if unified.exists() {
            return unified;
        }
        group.join(match self {
            IoLimit::ReadBytes => "blkio.throttle.read_bps_device",
            IoLimit::WriteBytes => "blkio.throttle.write_bps_device",
            IoLimit::ReadOps => "blkio.throttle.read_iops_device",
            IoLimit::WriteOps => "blkio.throttle.write_iops_device",
        })
    }

    /// Its value in a group, for the device `MAJOR:MINOR`; nothing without a cap.
    ///
    /// # Errors
    /// The control file cannot be read.
    pub fn read(self, group: &Path, device: &str) -> io::Result<Option<u64>> {
        let file = self.file(group);
        let text = read_setting(&file)?;
        Ok(match is_unified(&file) {
            true => self.in_line(&text, device),
            false => rule(&text, device).and_then(|value| value.parse().ok()),
        })
    }

    /// Sets it.
    ///
    /// # Errors
    /// The control file refuses it.
    pub fn write(self, group: &Path, device: &str, value: Option<u64>) -> io::Result<()> {
        let file = self.file(group);
        if !is_unified(&file) {
            return write_setting(&file, &format!("{device} {}", value.unwrap_or(0)));
        }
        let text = read_setting(&file)?;
        let line = IoLimit::ALL.map(|limit| {
            let value = if limit == self { value } else { limit.in_line(&text, device) };
            format!("{}={}", limit.key(), value.map_or("max".into(), |value| value.to_string()))
        });
        write_setting(&file, &format!("{device} {}", line.join(" ")))
    }

    /// Its value in the text of `io.max`.
    fn in_line(self, text: &str, device: &str) -> Option<u64> {
        let mut words = rule(text, device)?.split_whitespace().filter_map(|word| word.split_once('='));
        words.find(|(key, _)| *key == self.key())?.1.parse().ok()
    }
}

fn is_unified(file: &Path) -> bool {
    file.ends_with("io.max")
}

/// The rest of the line that begins with the device.
fn rule<'a>(text: &'a str, device: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(device)?.strip_prefix(' ')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cap_of_one_device_leaves_the_others_alone() {
        let dir = tempfile::tempdir().unwrap();
        let group = dir.path();
        std::fs::write(group.join("io.max"), "8:0 rbps=5 wbps=max riops=max wiops=9\n").unwrap();
        let read = |limit: IoLimit, device: &str| limit.read(group, device).unwrap();
        assert_eq!(IoLimit::ALL.map(|limit| read(limit, "8:0")), [Some(5), None, None, Some(9)]);
        assert_eq!(read(IoLimit::ReadBytes, "8:01"), None, "a number that begins alike is another");
        IoLimit::WriteBytes.write(group, "8:0", Some(7)).unwrap();
        let text = || std::fs::read_to_string(group.join("io.max")).unwrap();
        assert_eq!(text(), "8:0 rbps=5 wbps=7 riops=max wiops=9");
        IoLimit::ReadBytes.write(group, "8:0", None).unwrap();
        assert_eq!(text(), "8:0 rbps=max wbps=7 riops=max wiops=9");
    }

    #[test]
    fn in_v1_each_cap_has_a_file_and_0_takes_it_away() {
        let dir = tempfile::tempdir().unwrap();
        let group = dir.path();
        let file = group.join("blkio.throttle.read_iops_device");
        std::fs::write(&file, "254:0 3000\n8:0 20\n").unwrap();
        assert_eq!(IoLimit::ReadOps.file(group), file);
        assert_eq!(IoLimit::ReadOps.read(group, "8:0").unwrap(), Some(20));
        assert_eq!(IoLimit::ReadOps.read(group, "4:0").unwrap(), None);
        IoLimit::ReadOps.write(group, "254:0", None).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "254:0 0");
        assert!(IoLimit::ReadBytes.read(group, "8:0").is_err(), "there is no such file");
    }
}
