//! Damage in the newest journal file, where no later record can tell: the super-block says
//! which file must be there, and how far.

#[path = "support/rounds.rs"]
mod rounds;
mod support;

use std::path::{Path, PathBuf};

use rounds::{Pages, dir, on, with_journal};
use snowmelt_io::PowerDisk;
use snowmelt_store::journal::record::{self, FileHead};
use snowmelt_store::{Salvage, Store, StoreError};

/// The round that the newest file begins with, and commits after it, which no other file names.
const ROUNDS: u64 = 8;
const MARKS: u64 = 3;

/// How the database was left.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Left {
    Closed,
    Crashed,
}

/// A database with several journal files, and the newest of them.
struct Database {
    at: tempfile::TempDir,
    disk: PowerDisk,
    pages: Pages,
    newest: PathBuf,
}

fn mark(store: &std::sync::Arc<Store>, n: u64) {
    let mut txn = store.begin().unwrap();
    txn.put_record("mark", 1, &n.to_le_bytes());
    txn.commit().unwrap();
}

fn marks(store: &Store) -> u64 {
    store.catalog("mark").map_or(0, |b| u64::from_le_bytes(b.try_into().unwrap()))
}

fn head_of(disk: &PowerDisk, path: &Path) -> Option<FileHead> {
    FileHead::decode(&disk.bytes(path)?)
}

fn journal_files(disk: &PowerDisk) -> Vec<PathBuf> {
    disk.paths().into_iter().filter(|p| p.display().to_string().contains("journal-")).collect()
}

fn database(left: Left) -> Database {
    let at = dir();
    let disk = PowerDisk::new(1);
    let pages = with_journal(at.path(), &disk);
    let store = Store::open(at.path(), on(&disk)).unwrap();
    pages.write(&store, ROUNDS).unwrap();
    (1..=MARKS).for_each(|n| mark(&store, n));
    let crashed = disk.copy(1);
    drop(store);
    let disk = if left == Left::Crashed { crashed } else { disk };
    let number = |p: &PathBuf| head_of(&disk, p).map(|h| h.file);
    let newest = journal_files(&disk).into_iter().max_by_key(number).unwrap();
    Database { at, disk, pages, newest }
}

impl Database {
    /// The round and the mark after the newest file was changed.
    fn after(&self, change: impl FnOnce(&mut Vec<u8>)) -> Result<(u64, u64), StoreError> {
        let copy = self.disk.copy(2);
        let mut bytes = copy.bytes(&self.newest).unwrap();
        change(&mut bytes);
        copy.set_bytes(&self.newest, bytes);
        self.open(&copy)
    }

    fn open(&self, disk: &PowerDisk) -> Result<(u64, u64), StoreError> {
        let store = Store::open(self.at.path(), on(disk))?;
        Ok((self.pages.round(&store)?, marks(&store)))
    }

    /// Where the last record of the newest file ends.
    fn end(&self) -> usize {
        let bytes = self.disk.bytes(&self.newest).unwrap();
        let identity = FileHead::decode(&bytes).unwrap().identity;
        let mut at = record::FILE_HEAD;
        while let Some((head, _)) = record::decode(&bytes[at..], identity) {
            at += head.bytes();
        }
        at
    }

    /// The error names the newest file or the one where the chain ends before it.
    fn is_refused(&self, what: &str, result: Result<(u64, u64), StoreError>) {
        let e = result.expect_err(what);
        assert!(matches!(&e, StoreError::JournalDamaged { .. }), "{what}: {e}");
        let text = e.to_string();
        assert!(text.contains("journal-") && text.contains("byte "), "{what}: {text}");
        eprintln!("{what}: {text}");
    }
}

#[test]
fn what_the_super_block_names_is_missed() {
    for left in [Left::Closed, Left::Crashed] {
        let db = database(left);
        assert_eq!(db.open(&db.disk.copy(2)).unwrap(), (ROUNDS, MARKS));
        let len = db.disk.bytes(&db.newest).unwrap().len();
        let older = journal_files(&db.disk).into_iter().find(|p| *p != db.newest).unwrap();
        let stale = db.disk.bytes(&older).unwrap()[..record::FILE_HEAD].to_vec();
        db.is_refused(&format!("{left:?}, cut to its head"), db.after(|b| b.truncate(4096)));
        db.is_refused(&format!("{left:?}, cut to nothing"), db.after(|b| b.truncate(0)));
        db.is_refused(&format!("{left:?}, a block shorter"), db.after(|b| b.truncate(len - 4096)));
        db.is_refused(&format!("{left:?}, zeros in front"), db.after(|b| b[..len.min(1 << 20)].fill(0)));
        db.is_refused(&format!("{left:?}, no head"), db.after(|b| b[..4096].fill(0)));
        db.is_refused(&format!("{left:?}, a stale head"), db.after(|b| b[..4096].copy_from_slice(&stale)));
        db.is_refused(&format!("{left:?}, zeros for records"), db.after(|b| b[4096..].fill(0)));
        let gone = db.disk.copy(2);
        gone.remove(&db.newest);
        db.is_refused(&format!("{left:?}, deleted"), db.open(&gone));
    }
}

/// Bytes behind a file's length are not the journal's.
#[test]
fn a_longer_file_is_read_to_its_length() {
    for left in [Left::Closed, Left::Crashed] {
        let db = database(left);
        let records = db.disk.bytes(&db.newest).unwrap()[4096..].to_vec();
        let zeros = db.after(|b| b.resize(b.len() + (4 << 20), 0));
        assert_eq!(zeros.unwrap(), (ROUNDS, MARKS));
        let more = db.after(|b| b.extend_from_slice(&records));
        assert_eq!(more.unwrap(), (ROUNDS, MARKS));
    }
}

/// The window: after a crash, what the newest file got since it was begun, when all of it is
/// lost from some place on. Closing leaves none.
#[test]
fn only_what_follows_the_last_claim_can_be_lost() {
    for left in [Left::Closed, Left::Crashed] {
        let db = database(left);
        let (end, mut lost) = (db.end(), 0);
        for from in (record::FILE_HEAD..end).step_by(200) {
            match db.after(|b| b[from..].fill(0)) {
                Ok((round, marks)) => {
                    assert_eq!(round, ROUNDS, "{left:?}, zeros from {from}");
                    lost += MARKS - marks;
                }
                Err(e) => assert!(matches!(&e, StoreError::JournalDamaged { .. }), "{e}"),
            }
        }
        assert_eq!(lost > 0, left == Left::Crashed, "{left:?}: {lost} lost in the window");
    }
}

/// A file that is begun is missed as soon as a commit in it is acknowledged, though no
/// checkpoint has run since.
#[test]
fn a_file_that_was_begun_is_missed() {
    let at = dir();
    let disk = PowerDisk::new(1);
    let store = Store::create(at.path(), &[], on(&disk)).unwrap();
    let pages = Pages::create(&store, 20);
    let mut all = Vec::new();
    for round in 0..6 {
        pages.write(&store, round).unwrap();
        let newest = journal_files(&disk).into_iter().max_by_key(|p| head_of(&disk, p).map(|h| h.file));
        let crashed = disk.copy(2);
        crashed.set_bytes(&newest.unwrap(), vec![0; 64 << 10]);
        all.push(crashed);
    }
    drop(store);
    for crashed in all {
        let e = Store::open(at.path(), on(&crashed)).expect_err("an acknowledged commit was lost");
        assert!(matches!(&e, StoreError::JournalDamaged { .. }), "{e}");
    }
}

/// The part of a journal that was cut off as asked is not missed again.
#[test]
fn salvage_forgets_the_claim() {
    let db = database(Left::Closed);
    let copy = db.disk.copy(2);
    copy.set_bytes(&db.newest, Vec::new());
    let mut c = on(&copy);
    c.journal.salvage = Salvage::CutJournal;
    let store = Store::open(db.at.path(), c).unwrap();
    let round = db.pages.round(&store).unwrap();
    store.settle_salvage().unwrap();
    drop(store);
    assert_eq!(db.open(&copy).unwrap(), (round, 0));
}
