//! Copies of a database, alone and in sets.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use snowmelt_store::{BackupPart, BackupSet, CopyProgress, RestoreAt, StoreConfig, StoreError};

use crate::database::Database;

type Result<T> = std::result::Result<T, StoreError>;

impl Database {
    /// Copies the database as of now into `target`, while readers and writers go on.
    ///
    /// # Errors
    /// Those of the store and of the target's device.
    pub fn backup_until(
        &self,
        target: &Path,
        stripes: &[PathBuf],
        told: impl FnMut(CopyProgress) -> ControlFlow<()>,
    ) -> Result<CopyProgress> {
        self.store().backup_until(target, stripes, told)
    }

    /// Adds the database as of now to the set of backups in a directory: what changed since the
    /// newest there, or all of it. `None`: nothing has changed.
    ///
    /// # Errors
    /// As [`BackupSet::add`].
    pub fn backup_to_set(
        &self,
        set: &Path,
        told: impl FnMut(CopyProgress) -> ControlFlow<()>,
    ) -> Result<Option<(BackupPart, CopyProgress)>> {
        BackupSet::read(set)?.add(self.store(), told)
    }
}

/// Makes a database of a state of a set of backups in a new directory, its data in `stripes`.
///
/// # Errors
/// As [`BackupSet::restore`].
pub fn restore_backup(
    set: &Path,
    at: RestoreAt,
    target: &Path,
    stripes: &[PathBuf],
    config: &StoreConfig,
    told: impl FnMut(CopyProgress) -> ControlFlow<()>,
) -> Result<CopyProgress> {
    BackupSet::read(set)?.restore(at, target, stripes, config, told)
}
