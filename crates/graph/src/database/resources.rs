//! Resources for work on a database, their use so far, and the state of its journal.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use snowmelt_store::{Account, Activity, Clock, JournalStats, MemoryBudget, RecoveryTrace, Report};

use super::Database;

impl Database {
    /// The budget that all memory of the database comes from, the pool's included.
    pub fn memory(&self) -> &MemoryBudget {
        self.store().memory()
    }

    /// Bytes of the page pool.
    pub fn pool_bytes(&self) -> u64 {
        self.store().pool_bytes()
    }

    /// Bytes of the longest term that may be stored.
    pub fn longest_term_bytes(&self) -> usize {
        self.store().config().longest_string_bytes
    }

    /// Its folder, as it was opened.
    pub fn dir(&self) -> &Path {
        self.store().dir()
    }

    /// Its folder, wherever that is by now: temporary files of work on it go there.
    pub fn work_dir(&self) -> PathBuf {
        self.store().work_dir()
    }

    /// The newest transaction that readers see.
    pub fn newest(&self) -> u64 {
        self.store().snapshot().txn()
    }

    /// When its files were changed last, as far as the file system tells; now if it does not.
    pub fn changed_at(&self) -> SystemTime {
        let files = std::fs::read_dir(self.work_dir()).into_iter().flatten().flatten();
        let times = files.filter_map(|file| file.metadata().and_then(|meta| meta.modified()).ok());
        times.max().unwrap_or_else(SystemTime::now)
    }

    /// Its clock, which may be virtual: work on it waits by no other.
    pub fn clock(&self) -> &Clock {
        &self.store().config().clock
    }

    /// Reads and time of all that was done on it and has been flushed.
    pub fn activity(&self) -> Activity {
        self.store().activity()
    }

    /// The account of a name, made when first asked for.
    pub fn account(&self, name: &str) -> Arc<Account> {
        self.store().account(name)
    }

    /// All meters as they are now.
    pub fn report(&self) -> Report {
        self.store().report()
    }

    /// Commits, journal, versions and checkpoints since it was opened.
    pub fn journal_stats(&self) -> JournalStats {
        self.store().journal_stats()
    }

    /// Reads of the journal when it was opened.
    pub fn recovery(&self) -> &RecoveryTrace {
        self.store().recovery()
    }
}
