//! Records of the devices: `STATE/devices/NAME.json`, made by the server when the device
//! stands, removed with it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::spec::Spec;
use crate::LabError;
use crate::undo::{locked, process_start, state_dir};

/// A device that stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// As it was asked for.
    pub spec: Spec,
    /// `/dev/loopN`.
    pub device: PathBuf,
    /// Where the server's file system is mounted.
    pub mount: PathBuf,
    /// The server.
    pub pid: u32,
    /// Its start time, in clock ticks since boot.
    pub start: u64,
    /// Requests that reached the model at once in the self-test.
    pub proven_depth: u64,
    /// Time of a request on its way through the kernel and back, which the model makes good, in
    /// nanoseconds.
    #[serde(default)]
    pub way_ns: u64,
}

impl Record {
    /// The server runs.
    pub fn is_alive(&self) -> bool {
        process_start(self.pid) == Some(self.start)
    }
}

/// Of the journals of commands that make a device, and that check one; those of servers are
/// `device-NAME`.
pub const CREATOR: &str = "create-device";
/// See [`CREATOR`].
pub const CHECKER: &str = "check-device";

/// The folder of all devices.
pub fn folder() -> PathBuf {
    state_dir().join("devices")
}

/// The record of device `name`.
pub fn record_path(name: &str) -> PathBuf {
    folder().join(format!("{name}.json"))
}

/// Its socket.
pub fn socket_path(name: &str) -> PathBuf {
    folder().join(format!("{name}.sock"))
}

/// Where its file system is mounted.
pub fn mount_path(name: &str) -> PathBuf {
    folder().join(format!("{name}.mnt"))
}

/// The log of the server.
pub fn log_path(name: &str) -> PathBuf {
    folder().join(format!("{name}.log"))
}

/// The empty log of a device. It is locked as long as the command that makes the device lives, or
/// the server, which writes to it: of two of one name one has it.
///
/// # Errors
/// Another has it (would block), or it cannot be made.
pub fn begin_log(path: &Path) -> io::Result<File> {
    loop {
        let log = locked(path, File::options().append(true).create(true))?;
        // Its last owner may have removed it since it was opened.
        if let Some(log) = log {
            return log.set_len(0).map(|()| log);
        }
    }
}

/// Removes a log that has no owner any more.
pub fn remove_log(name: &str) {
    let path = log_path(name);
    if let Ok(Some(_locked)) = locked(&path, File::options().append(true)) {
        drop(std::fs::remove_file(&path)); // one that stays does no harm
    }
}

/// The record of device `name`; an error that names those there are.
pub fn load(name: &str) -> Result<Record, LabError> {
    let path = record_path(name);
    match std::fs::read(&path) {
        Ok(text) => parse(&path, &text),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            let names: Vec<String> = all()?.into_iter().map(|record| record.spec.name).collect();
            let there = match names.len() {
                0 => "there are none".to_string(),
                1 => format!("there is {}", names[0]),
                _ => format!("there are {}", names.join(", ")),
            };
            Err(LabError::Argument(format!("no device is called {name:?} ({there})")))
        }
        Err(e) => Err(LabError::file("read", &path, e)),
    }
}

/// All records that this version understands, by name; of others a line says that they are
/// there.
pub fn all() -> Result<Vec<Record>, LabError> {
    let folder = folder();
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(LabError::file("list", &folder, e)),
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "json"));
    paths.sort();
    let read = |path: &PathBuf| {
        let text = std::fs::read(path).ok()?; // removed meanwhile
        parse(path, &text).inspect_err(|e| crate::tell!("a device of another version: {e}")).ok()
    };
    Ok(paths.iter().filter_map(read).collect())
}

fn parse(path: &Path, text: &[u8]) -> Result<Record, LabError> {
    let wrong = |e| LabError::file("understand", path, std::io::Error::other(e));
    serde_json::from_slice(text).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Write};
    use std::process::Command;

    use super::*;

    #[test]
    fn the_log_of_a_device_is_taken_by_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("disk.log");
        let mut first = begin_log(&path).unwrap();
        first.write_all(b"said").unwrap();
        assert_eq!(begin_log(&path).unwrap_err().kind(), ErrorKind::WouldBlock);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "said");
        // Its command has ended.
        let mut server = Command::new("sleep").arg("600").stderr(first).spawn().unwrap();
        assert_eq!(begin_log(&path).unwrap_err().kind(), ErrorKind::WouldBlock);
        assert!(locked(&path, File::options().append(true)).is_err(), "nor removed");
        server.kill().unwrap();
        server.wait().unwrap();
        let begun = std::time::Instant::now();
        // A program that another test is just starting may hold it for a moment.
        let anew = loop {
            match begin_log(&path) {
                Err(_) if begun.elapsed() < std::time::Duration::from_secs(60) => {}
                taken => break taken.unwrap(),
            }
        };
        assert_eq!(anew.metadata().unwrap().len(), 0);
    }
}
