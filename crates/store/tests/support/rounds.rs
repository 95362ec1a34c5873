//! A tree of pages that is written in rounds on a disk in memory: a state is the number of its
//! round.

#![allow(dead_code)]

use std::path::Path;
use std::sync::Arc;

use snowmelt_io::PowerDisk;
use snowmelt_store::{
    Background, FileOpener, JournalConfig, PageId, PageKind, ReadAhead, Reader, Seams, Snapshot, Store,
    StoreConfig, StoreError, Transaction, TreeId,
};

use crate::support::{config, page};

/// Small files, parts and caches.
pub fn small() -> JournalConfig {
    JournalConfig {
        file_bytes: 64 << 10,
        part_bytes: 16 << 10,
        private_pages: Some(16),
        version_pages: Some(16),
        ..JournalConfig::default()
    }
}

/// Settings of a database on a disk in memory, whose background work the test does.
pub fn on(disk: &PowerDisk) -> StoreConfig {
    let disk = disk.clone();
    StoreConfig {
        journal: small(),
        close_ms: 0,
        seams: Seams {
            background: Background::Caller,
            files: Some(FileOpener::new(move |path, access| disk.open(path, access))),
            ..Seams::default()
        },
        ..config(64, ReadAhead::none())
    }
}

/// A tree of pages that say which commit wrote them.
pub struct Pages {
    pub tree: TreeId,
    pub list: Vec<PageId>,
}

impl Pages {
    /// Makes so many pages.
    pub fn create(store: &Arc<Store>, n: usize) -> Pages {
        let mut txn = store.begin().unwrap();
        let tree = txn.new_tree("t");
        let mut list: Vec<PageId> = Vec::new();
        for _ in 0..n {
            list.push(txn.allocate(tree, list.last().copied()).unwrap());
        }
        txn.commit().unwrap();
        Pages { tree, list }
    }

    /// Writes `round` into all pages, and into a record.
    pub fn write(&self, store: &Arc<Store>, round: u64) -> Result<(), StoreError> {
        let mut txn = store.begin()?;
        self.fill(&mut txn, round, |_| true)?;
        txn.put_record("round", 1, &round.to_le_bytes());
        txn.commit().map(drop)
    }

    /// Writes `round` into those pages whose number in the list is chosen, and into no record.
    pub fn write_chosen(
        &self,
        store: &Arc<Store>,
        round: u64,
        chosen: impl Fn(usize) -> bool,
    ) -> Result<(), StoreError> {
        let mut txn = store.begin()?;
        self.fill(&mut txn, round, chosen)?;
        txn.commit().map(drop)
    }

    fn fill(
        &self,
        txn: &mut Transaction,
        round: u64,
        chosen: impl Fn(usize) -> bool,
    ) -> Result<(), StoreError> {
        for (_, p) in self.list.iter().enumerate().filter(|(i, _)| chosen(*i)) {
            let to = txn.page_mut(self.tree, *p)?;
            to.set_header(PageKind::TupleLeaf, 0, 1);
            to.body_mut().copy_from_slice(page(round, p.0).body());
        }
        Ok(())
    }

    /// The round that all pages and the record agree on.
    pub fn round(&self, store: &Arc<Store>) -> Result<u64, StoreError> {
        let snapshot = store.snapshot();
        let round = u64::from_le_bytes((*snapshot.record("round").unwrap()).try_into().unwrap());
        self.check(store, snapshot, |_| round)?;
        Ok(round)
    }

    /// Reads all pages: the first that is not of its round panics, the first error is answered.
    pub fn check(
        &self,
        store: &Arc<Store>,
        snapshot: Snapshot,
        round: impl Fn(usize) -> u64,
    ) -> Result<(), StoreError> {
        let mut r = Reader::new(store, snapshot);
        for (i, p) in self.list.iter().enumerate() {
            let round = round(i);
            assert_eq!(r.page(self.tree, *p)?[32..], *page(round, p.0).body(), "page {p} in round {round}");
        }
        Ok(())
    }
}

/// A directory for the lock file.
pub fn dir() -> tempfile::TempDir {
    snowmelt_io::set_notice(|_| {});
    tempfile::tempdir().unwrap()
}

/// Rounds in the journal, a checkpoint somewhere before, and the disk as it was then.
pub fn with_journal(at: &Path, disk: &PowerDisk) -> Pages {
    let store = Store::create(at, &[], on(disk)).unwrap();
    let pages = Pages::create(&store, 20);
    for round in 1..=3 {
        pages.write(&store, round).unwrap();
    }
    assert!(store.checkpoint().unwrap());
    for round in 4..=8 {
        pages.write(&store, round).unwrap();
    }
    pages
}
