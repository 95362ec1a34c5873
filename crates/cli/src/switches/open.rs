//! The switches of every command that opens a database, and what they mean for the store.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use snowmelt_graph::{Database, GraphError, OpenOptions};
use snowmelt_io::{Engine, Policy, QueueConfig};
use snowmelt_store::{Checkpoints, JournalConfig, MemoryBudget, Mode, ReadAhead, StoreConfig, StoreError};

use crate::switches::device::DeviceChoice;
use snowmelt_base::size;
use snowmelt_lab::OnOff;

/// Switches of memory and I/O.
#[derive(Clone, Debug, clap::Args)]
pub struct OpenArgs {
    /// The one memory budget: pool, queries and load; half of the machine's or cgroup's memory
    /// when not given
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub memory: Option<u64>,
    /// The longest term that queries and updates may make and loads may bring: in bytes of its text
    #[arg(long, value_name = "SIZE", value_parser = size::parse, default_value = "16MiB")]
    pub longest_term: u64,
    /// Write pages back from the journal, or hold that back to measure a restart: the journal
    /// then grows without bound
    #[arg(long, value_name = "continuous|held", default_value = "continuous", value_parser = checkpoints, help_heading = "Journal")]
    pub checkpoint: Checkpoints,
    /// Seconds a restart after a crash may take to read the journal: writing back keeps up with
    /// that
    #[arg(long, value_name = "SECONDS", default_value = "5", help_heading = "Journal")]
    pub recovery_seconds: f64,
    /// Switches of I/O
    #[command(flatten)]
    pub io: IoArgs,
}

fn checkpoints(text: &str) -> Result<Checkpoints, String> {
    match text {
        "continuous" => Ok(Checkpoints::Continuous),
        "held" => Ok(Checkpoints::Held),
        _ => Err("use continuous or held".into()),
    }
}

/// Switches of I/O alone, for commands with a memory switch of their own.
#[derive(Clone, Debug, clap::Args)]
pub struct IoArgs {
    /// Engine of the reads: io_uring, a pool of threads, POSIX AIO (lio_listio), or the
    /// thread that asks
    #[arg(
        long,
        value_name = "uring|threads|posix-aio|inline",
        default_value = "uring",
        help_heading = "I/O"
    )]
    pub engine: Engine,
    /// Order of a device's queue
    #[arg(
        long,
        value_name = "fifo|elevator|deadline|anticipatory|fair",
        default_value = "elevator",
        help_heading = "I/O"
    )]
    pub queue: Policy,
    /// Read-ahead rules: auto, none, all, or a list of start-up,extent,planned,scan,warm-list
    #[arg(long, value_name = "RULES", default_value = "auto", value_parser = ReadAhead::parse, help_heading = "I/O")]
    pub read_ahead: ReadAhead,
    /// Read past the page cache (O_DIRECT)
    #[arg(long, value_enum, default_value_t = OnOff::On, help_heading = "I/O")]
    pub direct: OnOff,
    /// The device: real, or simulated in real time: sim:hdd, sim:wide-slow, sim:nvme, sim:FILE.toml
    #[arg(long, value_name = "DEVICE", default_value = "real", help_heading = "I/O")]
    pub device: DeviceChoice,
}

impl OpenArgs {
    /// The store's settings.
    pub fn config(&self) -> StoreConfig {
        let mut config = self.io.config();
        config.journal.checkpoints = self.checkpoint;
        config.journal.recovery_s = self.recovery_seconds;
        if let Some(bytes) = self.memory {
            config.memory_bytes = bytes;
        }
        config.longest_string_bytes = usize::try_from(self.longest_term).unwrap_or(usize::MAX);
        config.budget = Some(MemoryBudget::new(config.memory_bytes));
        config
    }

    /// Opens a database; the error names the path.
    pub fn open(&self, path: &Path) -> anyhow::Result<Arc<Database>> {
        open(path, &self.config())
    }

    /// Opens a database to read it; the error names the path.
    pub fn open_to_read(&self, path: &Path) -> anyhow::Result<Arc<Database>> {
        open_to_read(path, &self.config()).with_context(|| format!("cannot open {}", path.display()))
    }
}

impl IoArgs {
    /// The store's settings with the default memory.
    pub fn config(&self) -> StoreConfig {
        let queue = QueueConfig { engine: self.engine, policy: self.queue, ..QueueConfig::default() };
        let config = StoreConfig::default();
        let (devices, journal_devices) = self.device.wrap(&config.clock).unzip();
        StoreConfig {
            queue,
            devices,
            journal: JournalConfig { devices: journal_devices, ..config.journal },
            direct: self.direct.is_on(),
            read_ahead: self.read_ahead.clone(),
            ..config
        }
    }
}

/// Opens a database without writing anything, unless its journal is too long for the memory:
/// then it is opened as for writing.
pub fn open_to_read(path: &Path, options: &OpenOptions) -> Result<Arc<Database>, GraphError> {
    let reading = OpenOptions { mode: Mode::ReadOnly, ..options.clone() };
    match Database::open(path, &reading) {
        Err(GraphError::Store(StoreError::NeedsWriting { .. })) => Database::open(path, options),
        opened => opened,
    }
}

/// Opens a database; the error names the path and what to do.
pub fn open(path: &Path, options: &OpenOptions) -> anyhow::Result<Arc<Database>> {
    Database::open(path, options).with_context(|| format!("cannot open {}", path.display()))
}

/// Opens a database for a server; makes one where there is nothing: the directory is missing or
/// empty.
pub fn open_or_create(path: &Path, options: &OpenOptions) -> anyhow::Result<Arc<Database>> {
    // what this command itself reads from the directory is no data
    let is_data = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.is_ok_and(|entry| entry.file_name() != super::file::NAME)
    };
    let is_empty = match std::fs::read_dir(path) {
        Ok(mut entries) => !entries.any(is_data),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    };
    if !is_empty {
        return open(path, options);
    }
    let made = Database::create(path, &[], options)
        .with_context(|| format!("cannot make a database in {}", path.display()))?;
    eprintln!("snowmelt: {} is a new, empty database", path.display());
    Ok(made)
}
