//! Backups in the power-cut simulator: a copy is one state, finished or no database, whatever
//! happens to the power meanwhile.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use snowmelt_io::PowerDisk;
use snowmelt_store::{Store, StoreConfig, StoreError};

use super::model::{Model, Wrong, number_in};

/// The latest backup.
pub struct Copy {
    target: PathBuf,
    /// The states it may be of: one of them, whole.
    pub states: Vec<Model>,
    /// It was said to be finished.
    finished: bool,
}

impl Copy {
    /// Begins a backup of one of `states` into `dir`, where no older one is left.
    pub fn new(disk: &PowerDisk, dir: &Path, states: Vec<Model>) -> Copy {
        let target = dir.join("copy");
        disk.paths().iter().filter(|p| p.starts_with(&target)).for_each(|p| disk.remove(p));
        Copy { target, states, finished: false }
    }

    /// Makes the backup, on one stripe or two.
    pub fn make(&mut self, store: &Store, stripes: usize) -> Result<(), StoreError> {
        let names = ["a", "b"].map(|name| self.target.join(name));
        let stripes = if stripes == 1 { &[][..] } else { &names[..] };
        store.backup(&self.target, stripes, |_| {})?;
        self.finished = true;
        Ok(())
    }

    /// Checks the target, with the power on. True when it is a database.
    pub fn check(&self, config: StoreConfig) -> Result<bool, Wrong> {
        let copy = match Store::open(&self.target, config) {
            Ok(copy) => copy,
            Err(_) if !self.finished => return Ok(false),
            Err(e) => return Err(format!("a finished backup does not open: {e}")),
        };
        let snapshot = copy.snapshot();
        let what = if self.finished { "a finished backup" } else { "an unfinished backup that opens" };
        let n = number_in(&snapshot);
        let state = self.states.iter().find(|m| m.number() == n);
        let state = state.ok_or_else(|| format!("{what} is of commit {n}"))?;
        state.compare(&Arc::clone(&copy), &snapshot).map_err(|e| format!("{what}: {e}"))?;
        match copy.recovery().commits {
            0 => Ok(true),
            n => Err(format!("{what} has {n} commits to recover")),
        }
    }
}
