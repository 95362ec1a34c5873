//! Caps of the I/O that a control group does on one block device.

use std::path::Path;

use serde::Serialize;

use crate::LabError;
use crate::machine::BlockDevice;
use crate::size::about;
use crate::target::held::{all_leftovers, shown_holder};
use crate::undo::{IoLimit, Leftover, Step, Undo};

/// Less than a page per second holds up a program for ever.
const LEAST_BYTES: u64 = 4 << 10;

/// Caps of one group on one device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Caps {
    /// Bytes read per second.
    pub read_bytes_per_s: Option<u64>,
    /// Bytes written per second.
    pub write_bytes_per_s: Option<u64>,
    /// Reads per second.
    pub reads_per_s: Option<u64>,
    /// Writes per second.
    pub writes_per_s: Option<u64>,
}

impl Caps {
    fn get(&self, limit: IoLimit) -> Option<u64> {
        match limit {
            IoLimit::ReadBytes => self.read_bytes_per_s,
            IoLimit::WriteBytes => self.write_bytes_per_s,
            IoLimit::ReadOps => self.reads_per_s,
            IoLimit::WriteOps => self.writes_per_s,
        }
    }

    /// True when nothing is capped.
    pub fn is_empty(&self) -> bool {
        IoLimit::ALL.iter().all(|limit| self.get(*limit).is_none())
    }

    /// True when writing is capped.
    pub fn hold_writes(&self) -> bool {
        self.write_bytes_per_s.is_some() || self.writes_per_s.is_some()
    }

    /// Of a group, as they read now.
    ///
    /// # Errors
    /// A control file cannot be read.
    pub fn read(group: &Path, device: &CapDevice) -> Result<Caps, LabError> {
        let read = |limit: IoLimit| {
            let value = limit.read(group, &device.number);
            value.map_err(|e| LabError::file("read", &limit.file(group), e))
        };
        Ok(Caps {
            read_bytes_per_s: read(IoLimit::ReadBytes)?,
            write_bytes_per_s: read(IoLimit::WriteBytes)?,
            reads_per_s: read(IoLimit::ReadOps)?,
            writes_per_s: read(IoLimit::WriteOps)?,
        })
    }

    /// Sets those asked for in a group, and reads all back. The group is held until all is undone:
    /// of two commands, each would set back what the other one has set.
    ///
    /// # Errors
    /// Another command caps the group, or was killed while it did; a cap is refused, or does not
    /// read back.
    pub fn set(&self, group: &Path, device: &CapDevice, undo: &Undo) -> Result<CapsInForce, LabError> {
        if !undo.hold(group)? {
            return Err(LabError::refused(
                format!("capping control group {}", group.display()),
                format!("{} does it already", shown_holder(group)),
                "wait for its end",
            ));
        }
        refuse_left(group, &all_leftovers()?)?;
        for limit in IoLimit::ALL {
            if let Some(value) = self.get(limit) {
                undo.cap(group, &device.number, limit, value)?;
            }
        }
        CapsInForce::read(group, device)
    }

    /// True when a cap of these is higher in `other`, or is not there.
    pub fn are_loosened_by(&self, other: &Caps) -> bool {
        let looser = |limit: &IoLimit| match (self.get(*limit), other.get(*limit)) {
            (Some(old), Some(new)) => new > old,
            (Some(_), None) => true,
            (None, _) => false,
        };
        IoLimit::ALL.iter().any(looser)
    }
}

/// Refuses a group whose caps are those of a command that was killed.
fn refuse_left(group: &Path, leftovers: &[Leftover]) -> Result<(), LabError> {
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    let is_of = |step: &Step| matches!(step, Step::IoCap { group: of, .. } if real(of) == real(group));
    match leftovers.iter().find(|leftover| !leftover.kept && leftover.steps().any(is_of)) {
        None => Ok(()),
        Some(leftover) => Err(LabError::refused(
            format!("capping control group {}", group.display()),
            format!("`{}` was killed and left its caps", leftover.command.join(" ")),
            "`snowmelt-lab restore` sets the old ones again",
        )),
    }
}

/// `read 125 MiB/s, 3000 reads/s`; `no caps` without any.
impl std::fmt::Display for Caps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bytes = |verb: &str, value: Option<u64>| value.map(|v| format!("{verb} {}/s", about(v as f64)));
        let ops = |name: &str, value: Option<u64>| value.map(|v| format!("{v} {name}/s"));
        let words = [
            bytes("read", self.read_bytes_per_s),
            bytes("write", self.write_bytes_per_s),
            ops("reads", self.reads_per_s),
            ops("writes", self.writes_per_s),
        ];
        let words: Vec<String> = words.into_iter().flatten().collect();
        f.write_str(if words.is_empty() { "no caps" } else { "" })?;
        f.write_str(&words.join(", "))
    }
}

/// Bytes per second, at least those of a page.
///
/// # Errors
/// The text is no size, or too small to work with.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let bytes = crate::size::parse(text)?;
    match bytes < LEAST_BYTES {
        true => Err(format!("'{text}' is less than a page per second: write for example 125MiB")),
        false => Ok(bytes),
    }
}

/// Requests per second; the kernel keeps them in 32 bits.
///
/// # Errors
/// The text is no such number.
pub fn parse_ops(text: &str) -> Result<u64, String> {
    match text.parse::<u32>() {
        Ok(ops) if ops > 0 => Ok(ops.into()),
        _ => Err(format!("'{text}' is not a number of requests per second from 1 to {}", u32::MAX)),
    }
}

/// A whole block device, as the kernel's caps name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapDevice {
    /// `vda`.
    pub name: String,
    /// `254:0`.
    pub number: String,
}

impl CapDevice {
    /// From a block device, or a file or folder on one; of a partition, the whole disk.
    ///
    /// # Errors
    /// There is no block device behind the path.
    pub fn find(path: &Path) -> Result<CapDevice, LabError> {
        let refused = |why: &str| {
            let instead = "name the block device itself; `lsblk` lists them";
            LabError::refused(format!("capping the I/O of {}", path.display()), why, instead)
        };
        if !path.exists() {
            return Err(refused("there is no such device or file"));
        }
        let Some(device) = BlockDevice::find(path)? else {
            return Err(refused(
                "no block device can be seen behind it (a file system in memory, over a network, of \
                 several devices, or an overlay)",
            ));
        };
        let number = device.sys().join("dev");
        let number = std::fs::read_to_string(&number).map_err(|e| LabError::file("read", &number, e))?;
        Ok(CapDevice { name: device.name, number: number.trim().into() })
    }
}

/// Caps as the kernel told them after they were set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CapsInForce {
    /// The block device: `vda`.
    pub device: String,
    /// The caps.
    #[serde(flatten)]
    pub caps: Caps,
    /// The version of control groups: 1 or 2.
    pub version: u8,
    /// The kernel counts the group's part of the page cache, so that it can hold the group to
    /// its caps when it writes that back.
    pub writeback: bool,
}

impl CapsInForce {
    /// Reads them from a group.
    ///
    /// # Errors
    /// A control file cannot be read.
    pub fn read(group: &Path, device: &CapDevice) -> Result<CapsInForce, LabError> {
        let unified = group.join("io.max").exists();
        Ok(CapsInForce {
            device: device.name.clone(),
            caps: Caps::read(group, device)?,
            version: if unified { 2 } else { 1 },
            writeback: unified && group.join("memory.current").exists(),
        })
    }

    /// Writes that the caps do not hold, if there are such.
    pub fn doubt(&self) -> Option<String> {
        if self.writeback || !self.caps.hold_writes() {
            return None;
        }
        let why = match self.version {
            1 => "control groups v1 count it to the root group; v2 with the memory controller does it",
            _ => "the group is without the memory controller",
        };
        Some(format!(
            "the caps of writing hold for direct writes and for those a program waits for; the page cache \
             is written back later without them: {why}"
        ))
    }
}

/// `read 125 MiB/s on vda (control groups v1), read back`.
impl std::fmt::Display for CapsInForce {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let CapsInForce { device, caps, version, .. } = self;
        write!(f, "{caps} on {device} (control groups v{version}), read back")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caps_are_parsed_and_said() {
        assert_eq!(parse_bytes("125MiB"), Ok(125 << 20));
        for (text, says) in [("0", "range"), ("125", "125MiB"), ("fast", "not a size")] {
            let error = parse_bytes(text).unwrap_err();
            assert!(error.contains(text) && error.contains(says), "{error}");
        }
        assert_eq!(parse_ops("3000"), Ok(3000));
        for text in ["0", "-1", "3k", "4294967296", ""] {
            assert!(parse_ops(text).unwrap_err().contains("from 1 to 4294967295"), "{text}");
        }
        let none = Caps::default();
        let caps = Caps { read_bytes_per_s: Some(125 << 20), writes_per_s: Some(3000), ..none };
        assert_eq!(caps.to_string(), "read 125 MiB/s, 3000 writes/s");
        assert!(none.is_empty() && !caps.is_empty());
        assert!(caps.are_loosened_by(&none) && !caps.are_loosened_by(&caps) && !none.are_loosened_by(&caps));
    }

    #[test]
    fn caps_of_v2_are_set_in_one_line_read_back_and_restored() {
        let dir = tempfile::tempdir().unwrap();
        let group = dir.path().join("group");
        std::fs::create_dir(&group).unwrap();
        let file = group.join("io.max");
        let before = "254:0 rbps=max wbps=1000000 riops=7 wiops=max";
        std::fs::write(&file, before).unwrap();
        let undo = Undo::open_in(&dir.path().join("state"), "test").unwrap();
        let device = CapDevice { name: "vda".into(), number: "254:0".into() };
        let caps = Caps { read_bytes_per_s: Some(4096), write_bytes_per_s: Some(8192), ..Caps::default() };
        let in_force = caps.set(&group, &device, &undo).unwrap();
        let says = "read 4.00 KiB/s, write 8.00 KiB/s, 7 reads/s on vda (control groups v2), read back";
        assert_eq!(in_force.to_string(), says);
        assert!(in_force.doubt().unwrap().contains("memory controller"));
        std::fs::write(group.join("memory.current"), "0").unwrap();
        assert_eq!(CapsInForce::read(&group, &device).unwrap().doubt(), None);
        undo.undo().unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), before);
    }

    #[test]
    fn a_group_has_the_caps_of_one_command_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let group = dir.path().join("group");
        std::fs::create_dir(&group).unwrap();
        let file = group.join("io.max");
        let before = "254:0 rbps=max wbps=max riops=max wiops=max";
        std::fs::write(&file, before).unwrap();
        let state = dir.path().join("state");
        let [first, second] = ["first", "second"].map(|what| Undo::open_in(&state, what).unwrap());
        let device = CapDevice { name: "vda".into(), number: "254:0".into() };
        let caps = |bytes| Caps { read_bytes_per_s: Some(bytes), ..Caps::default() };
        caps(4096).set(&group, &device, &first).unwrap();
        let refused = caps(8192).set(&group, &device, &second).unwrap_err().to_string();
        assert!(refused.contains("does it already"), "{refused}");
        let text = std::fs::read_to_string(first.path()).unwrap();
        first.undo().unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), before);
        caps(8192).set(&group, &device, &second).unwrap();
        second.undo().unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), before);
        // A command that was killed has given the group free and left its caps.
        let dead = text.replace(&format!("\"pid\":{}", std::process::id()), "\"pid\":4294967295");
        std::fs::write(state.join("dead.journal"), dead).unwrap();
        let left = crate::undo::leftovers(&state).unwrap();
        let refused = refuse_left(&group, &left).unwrap_err().to_string();
        assert!(refused.contains("was killed") && refused.contains("restore"), "{refused}");
        refuse_left(dir.path(), &left).unwrap();
    }

    #[test]
    fn a_device_is_found_by_a_file_on_it_and_without_one_the_message_says_what_to_do() {
        for path in ["/dev/no-such-device", "/proc"] {
            let error = CapDevice::find(Path::new(path)).unwrap_err().to_string();
            assert!(error.contains(path) && error.contains("lsblk"), "{error}");
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        match CapDevice::find(file.path()) {
            Ok(device) => assert!(Path::new("/sys/block").join(&device.name).exists(), "{device:?}"),
            Err(e) => println!("skipped: {e}"),
        }
    }
}
