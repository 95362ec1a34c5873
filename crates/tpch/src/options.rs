//! Settings of a measurement, and the checks before anything is made.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use snowmelt_engines::{Adapter, Engine, Settings, Work};
use snowmelt_lab::machine::BlockDevice;
use snowmelt_lab::{LabError, size};

use crate::error::TpchError;

/// Settings of a measurement.
#[derive(Debug, Clone)]
pub struct TpchOptions {
    /// Scale factor.
    pub scale: f64,
    /// Folder of the database: an absolute path on a block device.
    pub dir: PathBuf,
    /// Bytes of memory that PostgreSQL may use.
    pub memory: u64,
    /// Processes of a parallel query beside the first.
    pub threads: usize,
    /// Port of the socket; a free one without.
    pub port: Option<u16>,
    /// Numbers of the queries to run as planned, cold and warm.
    pub queries: Vec<u32>,
    /// Q1 by full scan and by index scan as well.
    pub q1: bool,
    /// With these settings of the device's read-ahead, KiB; `None` is as it is.
    pub read_ahead_kb: Vec<Option<u64>>,
    /// Seconds of each cell of the random reads; 0 for none.
    pub random_s: f64,
    /// Interval of the watch.
    pub interval: Duration,
}

/// The file in the folder that marks a complete load.
const MARKER: &str = "loaded.json";

impl TpchOptions {
    /// PostgreSQL in the folder of these options.
    pub(crate) fn engine(&self, work: Work) -> Result<Engine, TpchError> {
        let settings = Settings {
            folder: self.dir.clone(),
            memory: self.memory,
            threads: self.threads,
            port: self.port,
            engines: self.dir.clone(),
            snowmelt: "snowmelt".into(),
            data: self.dir.clone(),
            parts: self.dir.clone(),
        };
        Ok(Engine::new(Adapter::named("postgresql")?, &settings, work)?)
    }

    /// The device below the folder.
    ///
    /// # Errors
    /// There is none.
    pub fn device(&self) -> Result<BlockDevice, TpchError> {
        let place = nearest(&self.dir);
        BlockDevice::find(place)?.ok_or_else(|| {
            let why = "no block device is behind it (a file system in memory, or over a network)";
            LabError::refused(self.dir.display(), why, "name a folder on a disk with --dir").into()
        })
    }

    /// True when a database of this scale was kept there.
    pub fn is_loaded(&self) -> bool {
        fs::read_to_string(self.dir.join(MARKER)).is_ok_and(|text| text == self.marker())
    }

    pub(crate) fn note_loaded(&self) -> Result<(), TpchError> {
        let path = self.dir.join(MARKER);
        Ok(fs::write(&path, self.marker()).map_err(|e| LabError::file("write", &path, e))?)
    }

    fn marker(&self) -> String {
        json!({ "scale": self.scale, "with": "tpchgen 4, PostgreSQL" }).to_string()
    }

    /// Refuses what cannot work, before anything is made: no root, a folder in use, too little
    /// room.
    ///
    /// # Errors
    /// The refusal.
    pub fn check(&self) -> Result<(), TpchError> {
        if !rustix::process::geteuid().is_root() {
            return Err(LabError::refused(
                "lab tpch",
                "it sets the device's read-ahead and empties the cache of files of another user",
                "run it as root",
            )
            .into());
        }
        // PostgreSQL's limit of a socket's path, and its name there.
        if self.dir.as_os_str().len() > 70 {
            let why = "the path is too long for a socket in it";
            return Err(LabError::refused(self.dir.display(), why, "name a shorter one with --dir").into());
        }
        if self.is_loaded() {
            return Ok(());
        }
        if fs::read_dir(&self.dir).is_ok_and(|mut entries| entries.next().is_some()) {
            return Err(LabError::refused(
                self.dir.display(),
                format!("there is something in it, and no database of scale {} that was kept", self.scale),
                "name another folder with --dir, or empty that one",
            )
            .into());
        }
        let place = nearest(&self.dir);
        let room = rustix::fs::statvfs(place).map_err(|e| LabError::file("look at", place, e))?;
        let (free, needed) = (room.f_bavail * room.f_frsize, needed_bytes(self.scale));
        if free < needed {
            return Err(LabError::refused(
                format!("scale {} in {}", self.scale, self.dir.display()),
                format!("it takes {}, {} are free", size::about(needed as f64), size::about(free as f64)),
                "name a folder on a larger disk with --dir, or a smaller --scale",
            )
            .into());
        }
        Ok(())
    }

    /// The server's user must be able to enter the folder.
    pub(crate) fn reachable(&self) -> Result<(), TpchError> {
        let closed = self
            .dir
            .ancestors()
            .find(|above| fs::metadata(above).is_ok_and(|meta| meta.permissions().mode() & 0o001 == 0));
        closed.map_or(Ok(()), |above| {
            Err(LabError::refused(
                self.dir.display(),
                format!("user postgres cannot enter {}", above.display()),
                "name a folder with --dir that all can reach, such as one below /var/tmp",
            )
            .into())
        })
    }
}

/// Tables and indexes take 2.0 GB per unit of scale, the journal of the load up to as much again
/// and 8 GB at most, sorts the rest.
fn needed_bytes(scale: f64) -> u64 {
    let data = 2.1e9 * scale;
    (data + (2.0e9 * scale).min(9e9) + 0.2e9) as u64
}

/// The path, or the nearest folder above it that is there.
fn nearest(path: &Path) -> &Path {
    path.ancestors().find(|above| above.exists()).unwrap_or(Path::new("/"))
}
