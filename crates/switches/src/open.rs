//! The switches of every command that opens a database, and what they mean for the store.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use snowmelt_database::{Database, OpenOptions};
use snowmelt_graph::{GraphDatabase, GraphError};
use snowmelt_store::{Checkpoints, MemoryBudget, Mode, StoreConfig, StoreError, is_vacant};

use crate::create::CreateArgs;
use crate::device::StripeDevices;
use crate::io::IoArgs;
use crate::published::{self, ObjectStoreArgs};
use snowmelt_base::{size, tell};

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
    /// Switches of object stores
    #[command(flatten)]
    pub store: ObjectStoreArgs,
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

impl OpenArgs {
    /// The store's settings.
    pub fn config(&self) -> StoreConfig {
        self.config_on(StripeDevices::default())
    }

    /// The store's settings for a database that may be made.
    pub fn config_to_create(&self, create: &CreateArgs) -> StoreConfig {
        create.applied(self.config_on(create.devices()))
    }

    fn config_on(&self, devices: StripeDevices) -> StoreConfig {
        let mut config = self.io.config(devices);
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
    pub fn open(&self, path: &Path) -> anyhow::Result<Arc<GraphDatabase>> {
        open(path, &self.config())
    }

    /// Opens a database to read it, from a directory or an object store; the error names the path.
    pub fn open_to_read(&self, path: &Path) -> anyhow::Result<Arc<GraphDatabase>> {
        self.read(path, &self.config())
    }

    /// As [`OpenArgs::open_to_read`], with these settings.
    pub fn read(&self, path: &Path, options: &OpenOptions) -> anyhow::Result<Arc<GraphDatabase>> {
        let opened = match published::address(path) {
            Some(address) => self.open_published(address, options),
            None => open_to_read(path, options).map_err(Into::into),
        };
        opened.with_context(|| format!("cannot open {}", path.display()))
    }

    fn open_published(&self, address: &str, options: &OpenOptions) -> anyhow::Result<Arc<GraphDatabase>> {
        let objects = self.store.objects(address, &options.seams.clock)?;
        let database = Database::open_published(objects, self.store.open_cache()?, options)?;
        Ok(GraphDatabase::new(Arc::new(database))?)
    }
}

/// Opens a database without writing anything, unless its journal is too long for the memory:
/// then it is opened as for writing.
pub fn open_to_read(path: &Path, options: &OpenOptions) -> Result<Arc<GraphDatabase>, GraphError> {
    let reading = OpenOptions { mode: Mode::ReadOnly, ..options.clone() };
    match GraphDatabase::open(path, &reading) {
        Err(GraphError::Store(StoreError::NeedsWriting { .. })) => GraphDatabase::open(path, options),
        opened => opened,
    }
}

/// Opens a database; the error names the path and what to do.
pub fn open(path: &Path, options: &OpenOptions) -> anyhow::Result<Arc<GraphDatabase>> {
    published::refuse(path)?;
    GraphDatabase::open(path, options).with_context(|| format!("cannot open {}", path.display()))
}

/// Opens a database for a server; makes one as `create` says where there is nothing: the
/// directory is missing or empty, or has what an earlier try has left that was cut short.
pub fn open_or_create(
    path: &Path,
    create: &CreateArgs,
    options: &OpenOptions,
) -> anyhow::Result<Arc<GraphDatabase>> {
    create.check(path)?;
    // what this command itself reads from the directory is no data
    if !is_vacant(path, &[super::file::NAME]).unwrap_or(false) {
        return open(path, options);
    }
    let made = GraphDatabase::create(path, &create.paths(), options)
        .with_context(|| format!("cannot make a database in {}", path.display()))?;
    tell!("snowmelt: {} is a new, empty database", path.display());
    Ok(made)
}
