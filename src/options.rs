//! Settings with which a database is opened.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use oxrdf::Term;
use snowmelt_database::OpenOptions;
use snowmelt_graph::GraphDatabase as Graph;
use snowmelt_sparql::CustomFunctions;
use snowmelt_store::{DiskHints, FileOpener, Mode, ReadAhead};
use tempfile::TempDir;

use crate::database::Database;
use crate::error::{Error, Result};
use crate::functions::custom;
use crate::open::Open;

/// How to open or make a database.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("people.db");
/// let db = snowmelt::Database::options().memory(256 << 20).open_or_create(path)?;
/// # Ok::<(), snowmelt::Error>(())
/// ```
#[derive(Clone)]
pub struct Options {
    store: OpenOptions,
    stripes: Vec<PathBuf>,
    functions: CustomFunctions,
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

impl Options {
    /// The defaults: half of the machine's (or cgroup's) memory, reading and writing.
    pub fn new() -> Self {
        Options { store: OpenOptions::default(), stripes: Vec::new(), functions: CustomFunctions::default() }
    }

    /// The memory budget in bytes, for cached pages, queries and loads together. It is a bound,
    /// not a reservation: memory is taken as it is used.
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> Self {
        self.store.memory_bytes = bytes;
        self
    }

    /// Opens for reading only. No file is written, and other processes may read at the same time.
    #[must_use]
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.store.mode = if read_only { Mode::ReadOnly } else { Mode::ReadWrite };
        self
    }

    /// Where a new database keeps its data: files or directories, normally each on another device.
    /// The default is one file in its directory.
    #[must_use]
    pub fn stripes(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        self.stripes = paths.into_iter().collect();
        self
    }

    /// Reads and writes past the page cache (O_DIRECT) where the file system can; the default.
    #[must_use]
    pub fn direct(mut self, direct: bool) -> Self {
        self.store.direct = direct;
        self
    }

    /// Begins with what the system and the last run know of the disks: caps of the own cgroup, the
    /// name that a cloud gave the disk, what was learned before; the default. Without, all of it is
    /// learned anew.
    #[must_use]
    pub fn hints(mut self, hints: bool) -> Self {
        self.store.hints = if hints { DiskHints::Used } else { DiskHints::Hidden };
        self
    }

    /// The read-ahead rules: `auto` (the default), `none`, `all`, or a list of `start-up`,
    /// `extent`, `planned`, `scan`, `warm-list`.
    ///
    /// # Errors
    /// [`Error::Setting`] for an unknown rule.
    pub fn read_ahead(mut self, rules: &str) -> Result<Self> {
        let bad = |message| Error::Setting { name: "read_ahead", message };
        self.store.read_ahead = ReadAhead::parse(rules).map_err(bad)?;
        Ok(self)
    }

    /// Seconds that a restart after a crash may take to read the journal; checkpoints keep up with
    /// that. The default is 5.
    #[must_use]
    pub fn recovery_seconds(mut self, seconds: f64) -> Self {
        self.store.journal.recovery_s = seconds;
        self
    }

    /// Adds a function for all queries and updates of the database: see
    /// [`Prepared::function`](crate::Prepared::function).
    ///
    /// ```
    /// use snowmelt::{Literal, Term};
    /// let half = |args: &[Term]| match args {
    ///     [Term::Literal(n)] => Some(Literal::from(n.value().parse::<f64>().ok()? / 2.0).into()),
    ///     _ => None,
    /// };
    /// let db = snowmelt::Database::options().function("urn:half", half).in_memory()?;
    /// assert!(db.ask("ASK { FILTER(<urn:half>(5) = 2.5) }")?);
    /// # Ok::<(), snowmelt::Error>(())
    /// ```
    #[must_use]
    pub fn function(
        mut self,
        iri: &str,
        function: impl Fn(&[Term]) -> Option<Term> + Send + Sync + 'static,
    ) -> Self {
        self.functions.add(iri, custom(function, true));
        self
    }

    /// Opens the database in a directory.
    ///
    /// # Errors
    /// As [`Database::open`].
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Database> {
        Ok(self.opened(Graph::open(path.as_ref(), &self.store)?, None))
    }

    /// Makes an empty database in a directory.
    ///
    /// # Errors
    /// As [`Database::create`].
    pub fn create(&self, path: impl AsRef<Path>) -> Result<Database> {
        Ok(self.opened(Graph::create(path.as_ref(), &self.stripes, &self.store)?, None))
    }

    /// Opens the database in a directory, or makes one if there is none.
    ///
    /// # Errors
    /// As [`Database::open`], but for [`Error::NotADatabase`].
    pub fn open_or_create(&self, path: impl AsRef<Path>) -> Result<Database> {
        match self.open(&path) {
            Err(Error::NotADatabase { .. }) => self.create(path),
            opened => opened,
        }
    }

    /// Makes an empty database in memory.
    ///
    /// # Errors
    /// As [`Database::in_memory`].
    pub fn in_memory(&self) -> Result<Database> {
        let made = tempfile::Builder::new().prefix("snowmelt-").tempdir();
        let dir = made.map_err(|error| Error::Other(Box::new(error)))?;
        let mut store = self.store.clone();
        store.seams.files = Some(FileOpener::in_memory());
        Ok(self.opened(Graph::create(dir.path(), &[], &store)?, Some(dir)))
    }

    fn opened(&self, graph: Arc<Graph>, in_memory: Option<TempDir>) -> Database {
        Database::from_open(Open::new(graph, Arc::new(self.functions.clone()), in_memory))
    }
}
