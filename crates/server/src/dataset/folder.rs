//! The databases of a folder: opened when they are asked for, closed when they are idle, made,
//! renamed, dropped and copied by administrators.
//!
//! 1. There is one budget of memory. A database is opened with an even part of it, and not with
//!    less than the floor. When the parts of those that are open leave no room, the one that was
//!    idle longest is closed; when none is idle, the request is refused as busy.
//! 2. Databases are opened and closed one at a time; requests to open ones do not wait for that.
//! 3. A database that is renamed or dropped is closed first; that is refused while a request uses
//!    it.
//! 4. A change that has begun goes on when its client leaves: half of it would leave a wrong list,
//!    or a database that opens while the next request opens it, too.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, RwLock};
use std::time::{Duration, Instant};

use snowmelt_database::{
    Database, StoreError, is_vacant, remove_database, rename_database, stripe_elsewhere,
};
use snowmelt_sparql::QueryEngine;
use tokio::task::AbortHandle;

use super::Dataset;

/// Opens, or makes, a database with so many bytes of memory.
pub type Opener = Arc<dyn Fn(&Path, u64, bool) -> Result<Arc<QueryEngine>, String> + Send + Sync>;

/// Most letters of a name.
const NAME_LETTERS: usize = 64;
/// Checks whether a database that is to be closed is idle, and the pause between two.
const LOOKS: usize = 40;
const PAUSE: Duration = Duration::from_millis(5);
/// Names of resources of the server itself.
pub const RESERVED: [&str; 10] =
    ["sparql", "query", "update", "graphs", "stats", "metrics", "requests", "ready", "health", "datasets"];

/// A folder of databases, and how they are opened.
#[derive(Clone)]
pub struct Folder {
    /// its path
    pub dir: PathBuf,
    /// bytes for all that are open
    pub memory: u64,
    /// the least that one is opened with
    pub floor: u64,
    /// a database that is idle for so long is closed
    pub idle: Duration,
    /// copies are made below this folder; none: they are not made
    pub backups: Option<PathBuf>,
    /// opens them
    pub open: Opener,
}

/// Why a database of the folder is not served, or not changed.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    #[error("there is no dataset {0}: /datasets lists them")]
    Unknown(String),
    #[error("there is a dataset {0}")]
    Exists(String),
    #[error(
        "{0:?} is no name of a dataset: use up to {NAME_LETTERS} letters, digits, '-', '_' and '.', and no word that stands for a resource"
    )]
    Name(String),
    #[error("requests use the dataset {0}: try again")]
    InUse(String),
    #[error("all memory is in use by the datasets {0}: try again")]
    Memory(String),
    #[error("the dataset {name} has data elsewhere ({place}): remove it with the server stopped")]
    Elsewhere { name: String, place: String },
    #[error("copies are made below a folder that the server names with --backup-dir")]
    NoBackups,
    #[error("{0}")]
    Failed(String),
}

struct Opened {
    dataset: Arc<Dataset>,
    bytes: u64,
    used: Instant,
    /// answers commands beside the server
    commands: Option<AbortHandle>,
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.commands.iter().for_each(AbortHandle::abort);
    }
}

/// Begins to answer commands for a database, in its directory, that was opened.
pub type AnswerCommands = Box<dyn Fn(&Arc<Dataset>, &Path) -> Option<AbortHandle> + Send + Sync>;

/// The databases by name; those that are not open have none.
pub struct Datasets {
    folder: Folder,
    known: RwLock<BTreeMap<String, Option<Opened>>>,
    /// held by those that open and close
    turn: tokio::sync::Mutex<()>,
    answer_commands: OnceLock<AnswerCommands>,
}

/// A change of the list.
pub enum DatasetChange {
    Create(String),
    Rename { name: String, to: String },
    Remove(String),
}

/// A line of the list.
#[derive(serde::Serialize)]
pub struct Listed {
    pub name: String,
    pub open: bool,
    /// bytes it was opened with
    pub memory_bytes: u64,
}

pub fn is_name(name: &str) -> bool {
    (1..=NAME_LETTERS).contains(&name.len())
        && !name.starts_with('.')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
        && !RESERVED.contains(&name)
}

impl Datasets {
    pub fn new(folder: Folder) -> std::io::Result<Self> {
        let datasets = Self {
            folder,
            known: RwLock::default(),
            turn: tokio::sync::Mutex::default(),
            answer_commands: OnceLock::new(),
        };
        datasets.look()?;
        Ok(datasets)
    }

    /// Has `answer` begin for each database that is opened from now on.
    pub fn answer_commands(&self, answer: AnswerCommands) {
        let is_first = self.answer_commands.set(answer).is_ok();
        debug_assert!(is_first, "there is one way to answer");
    }

    /// Lists databases that came into the folder by other ways.
    fn look(&self) -> std::io::Result<()> {
        for entry in std::fs::read_dir(&self.folder.dir)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            if is_name(&name) && Database::is_at(&entry.path()) {
                self.known.write().expect("no holder panics").entry(name).or_insert(None);
            }
        }
        Ok(())
    }

    /// Whether there is one of that name.
    pub fn has(&self, name: &str) -> bool {
        self.known.read().expect("no holder panics").contains_key(name) || {
            let is_there = is_name(name) && Database::is_at(&self.folder.dir.join(name));
            if is_there {
                self.known.write().expect("no holder panics").entry(name.to_owned()).or_insert(None);
            }
            is_there
        }
    }

    /// All of them.
    pub fn list(&self) -> Vec<Listed> {
        let _ = self.look();
        let known = self.known.read().expect("no holder panics");
        let listed = |(name, opened): (&String, &Option<Opened>)| Listed {
            name: name.clone(),
            open: opened.is_some(),
            memory_bytes: opened.as_ref().map_or(0, |opened| opened.bytes),
        };
        known.iter().map(listed).collect()
    }

    /// The open datasets.
    pub fn open_ones(&self) -> Vec<Arc<Dataset>> {
        let known = self.known.read().expect("no holder panics");
        known.values().flatten().map(|opened| Arc::clone(&opened.dataset)).collect()
    }

    /// The database of a name, opened if it is not.
    pub async fn get(self: &Arc<Self>, name: &str) -> Result<Arc<Dataset>, DatasetError> {
        if let Some(open) = self.open_one(name) {
            return Ok(open);
        }
        if !self.has(name) {
            return Err(DatasetError::Unknown(name.to_owned()));
        }
        let (of, name) = (Arc::clone(self), name.to_owned());
        to_its_end(async move {
            let _turn = of.turn.lock().await;
            match of.open_one(&name) {
                Some(open) => Ok(open),
                None if of.has(&name) => of.open(&name, false).await,
                None => Err(DatasetError::Unknown(name)),
            }
        })
        .await
    }

    fn open_one(&self, name: &str) -> Option<Arc<Dataset>> {
        {
            let known = self.known.read().expect("no holder panics");
            let opened = known.get(name)?.as_ref()?;
            // Times of use are told apart by seconds: most requests change nothing.
            if opened.used.elapsed() < Duration::from_secs(1) {
                return Some(Arc::clone(&opened.dataset));
            }
        }
        let mut known = self.known.write().expect("no holder panics");
        let opened = known.get_mut(name)?.as_mut()?;
        opened.used = Instant::now();
        Some(Arc::clone(&opened.dataset))
    }

    /// Opens or makes one; it is this task's turn.
    async fn open(&self, name: &str, make: bool) -> Result<Arc<Dataset>, DatasetError> {
        let Folder { dir, memory, floor, open, .. } = self.folder.clone();
        let count = self.known.read().expect("no holder panics").len() as u64 + u64::from(make);
        let bytes = (memory / count.max(1)).max(floor).min(memory);
        self.make_room(bytes).await?;
        let path = dir.join(name);
        let opening = path.clone();
        let engine = tokio::task::spawn_blocking(move || open(&opening, bytes, make)).await;
        let engine = engine.map_err(|error| DatasetError::Failed(error.to_string()))?;
        let engine = engine.map_err(DatasetError::Failed)?;
        let dataset = Arc::new(Dataset::new(name.to_owned(), engine));
        let commands = self.answer_commands.get().and_then(|answer| answer(&dataset, &path));
        let opened = Opened { dataset: Arc::clone(&dataset), bytes, used: Instant::now(), commands };
        self.known.write().expect("no holder panics").insert(name.to_owned(), Some(opened));
        Ok(dataset)
    }

    /// Closes idle ones until there is memory.
    async fn make_room(&self, bytes: u64) -> Result<(), DatasetError> {
        loop {
            let (used, names) = {
                let known = self.known.read().expect("no holder panics");
                let mut open: Vec<(&String, &Opened)> =
                    known.iter().filter_map(|(name, opened)| Some((name, opened.as_ref()?))).collect();
                open.sort_by_key(|(_, opened)| opened.used);
                let used: u64 = open.iter().map(|(_, opened)| opened.bytes).sum();
                (used, open.into_iter().map(|(name, _)| name.clone()).collect::<Vec<_>>())
            };
            if used + bytes <= self.folder.memory {
                return Ok(());
            }
            let mut closed = false;
            for name in &names {
                if self.close(name).await.is_ok() {
                    closed = true;
                    break;
                }
            }
            if !closed {
                return Err(DatasetError::Memory(names.join(", ")));
            }
        }
    }

    /// Closes one that no request uses; it is this task's turn.
    async fn close(&self, name: &str) -> Result<(), DatasetError> {
        let taken = {
            let mut known = self.known.write().expect("no holder panics");
            match known.get_mut(name) {
                Some(opened) => match opened {
                    Some(of) if !of.dataset.is_idle() => {
                        return Err(DatasetError::InUse(name.to_owned()));
                    }
                    _ => opened.take(),
                },
                None => None,
            }
        };
        let Some(taken) = taken else { return Ok(()) };
        let closing = tokio::task::spawn_blocking(move || drop(taken));
        closing.await.map_err(|error| DatasetError::Failed(error.to_string()))
    }

    /// Closes a database. Tries again for a while, since the server itself looks at each now and
    /// then.
    async fn close_soon(&self, name: &str) -> Result<(), DatasetError> {
        for _ in 0..LOOKS {
            match self.close(name).await {
                Err(DatasetError::InUse(_)) => tokio::time::sleep(PAUSE).await,
                done => return done,
            }
        }
        self.close(name).await
    }

    /// Closes those that are idle for long.
    pub async fn close_idle(&self) {
        let long: Vec<String> = {
            let known = self.known.read().expect("no holder panics");
            let is_long = |opened: &Opened| opened.used.elapsed() >= self.folder.idle;
            let idle = known.iter().filter(|(_, opened)| opened.as_ref().is_some_and(is_long));
            idle.map(|(name, _)| name.clone()).collect()
        };
        if long.is_empty() {
            return;
        }
        let _turn = self.turn.lock().await;
        for name in long {
            let _ = self.close(&name).await;
        }
    }

    /// Changes the list; `then` is told when it is done.
    pub async fn change(
        self: &Arc<Self>,
        change: DatasetChange,
        then: impl FnOnce() + Send + 'static,
    ) -> Result<(), DatasetError> {
        let of = Arc::clone(self);
        to_its_end(async move {
            match &change {
                DatasetChange::Create(name) => of.create(name).await?,
                DatasetChange::Rename { name, to } => of.rename(name, to).await?,
                DatasetChange::Remove(name) => of.remove(name).await?,
            }
            then();
            Ok(())
        })
        .await
    }

    /// Makes an empty one.
    async fn create(&self, name: &str) -> Result<(), DatasetError> {
        if !is_name(name) {
            return Err(DatasetError::Name(name.to_owned()));
        }
        let _turn = self.turn.lock().await;
        let dir = self.folder.dir.join(name);
        // Leavings of a server that was killed while it made one are none.
        if self.has(name) || !is_vacant(&dir, &[]).unwrap_or(false) {
            return Err(DatasetError::Exists(name.to_owned()));
        }
        self.open(name, true).await.map(drop)
    }

    /// Gives one another name.
    async fn rename(&self, name: &str, to: &str) -> Result<(), DatasetError> {
        if !is_name(to) {
            return Err(DatasetError::Name(to.to_owned()));
        }
        let _turn = self.turn.lock().await;
        if !self.has(name) {
            return Err(DatasetError::Unknown(name.to_owned()));
        }
        let (from, target) = (self.folder.dir.join(name), self.folder.dir.join(to));
        self.check_place(name)?;
        self.close_soon(name).await?;
        beside(name, move || rename_database(&from, &target)).await.map_err(|e| match e {
            DatasetError::Exists(_) => DatasetError::Exists(to.to_owned()),
            other => other,
        })?;
        let mut known = self.known.write().expect("no holder panics");
        known.remove(name);
        known.insert(to.to_owned(), None);
        Ok(())
    }

    /// Removes one and its data.
    async fn remove(&self, name: &str) -> Result<(), DatasetError> {
        let _turn = self.turn.lock().await;
        if !self.has(name) {
            return Err(DatasetError::Unknown(name.to_owned()));
        }
        self.check_place(name)?;
        self.close_soon(name).await?;
        let dir = self.folder.dir.join(name);
        let removed = beside(name, move || remove_database(&dir)).await;
        if !Database::is_at(&self.folder.dir.join(name)) {
            self.known.write().expect("no holder panics").remove(name);
        }
        removed
    }

    /// Refuses to move or remove one whose data is not all in its directory.
    fn check_place(&self, name: &str) -> Result<(), DatasetError> {
        match stripe_elsewhere(&self.folder.dir.join(name)) {
            Ok(None) => Ok(()),
            Ok(Some(file)) => {
                Err(DatasetError::Elsewhere { name: name.to_owned(), place: file.display().to_string() })
            }
            Err(error) => Err(DatasetError::Failed(error.to_string())),
        }
    }

    /// The folder below which a copy may be made.
    pub fn backup_at(&self, name: &str) -> Result<PathBuf, DatasetError> {
        let dir = self.folder.backups.as_ref().ok_or(DatasetError::NoBackups)?;
        match is_name(name) {
            true => Ok(dir.join(name)),
            false => Err(DatasetError::Name(name.to_owned())),
        }
    }
}

/// Runs on a task of its own, which goes on when the client leaves.
async fn to_its_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, DatasetError>> + Send + 'static,
) -> Result<T, DatasetError> {
    tokio::spawn(work).await.map_err(|error| DatasetError::Failed(error.to_string()))?
}

/// Runs blocking work, and turns its errors into those of datasets.
async fn beside(
    name: &str,
    work: impl FnOnce() -> Result<(), StoreError> + Send + 'static,
) -> Result<(), DatasetError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| DatasetError::Failed(error.to_string()))?.map_err(|error| match error {
        StoreError::Exists { .. } => DatasetError::Exists(name.to_owned()),
        StoreError::Locked { .. } => DatasetError::InUse(name.to_owned()),
        other => DatasetError::Failed(other.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for name in ["a", "wiki-data_2.1", "SPARQL"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", ".", "..", ".a", "a/b", "a b", "é", "sparql", "datasets", &"a".repeat(65)] {
            assert!(!is_name(name), "{name}");
        }
    }
}
