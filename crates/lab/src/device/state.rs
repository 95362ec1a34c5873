//! Records of the devices: `STATE/devices/NAME.json`, made by the server when the device
//! stands, removed with it.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::spec::Spec;
use crate::LabError;
use crate::undo::{process_start, state_dir};

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
