//! A database that is opened for reading: nothing is written, whatever the journal says.

#[path = "support/rounds.rs"]
mod rounds;
mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::SystemTime;

use rounds::{Pages, on};
use snowmelt_io::PowerDisk;
use snowmelt_store::{Background, Checkpoints, JournalConfig, Mode, Seams, Store, StoreConfig, StoreError};

/// Small, in files of the real file system.
fn config(mode: Mode) -> StoreConfig {
    StoreConfig {
        mode,
        memory_bytes: 8 << 20,
        direct: false,
        journal: JournalConfig {
            file_bytes: 256 << 10,
            checkpoints: Checkpoints::Held,
            ..JournalConfig::default()
        },
        seams: Seams { background: Background::Caller, ..Seams::default() },
        ..StoreConfig::default()
    }
}

/// Names, bytes and times of the files of a directory.
fn contents(dir: &Path) -> BTreeMap<String, (Vec<u8>, SystemTime)> {
    let entry = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.unwrap();
        let modified = entry.metadata().unwrap().modified().unwrap();
        (entry.file_name().into_string().unwrap(), (std::fs::read(entry.path()).unwrap(), modified))
    };
    std::fs::read_dir(dir).unwrap().map(entry).collect()
}

/// A database whose commits are in the journal only, but for some pages that are written back.
fn unfinished(dir: &Path) -> Pages {
    let store = Store::create(dir, &[], config(Mode::ReadWrite)).unwrap();
    let pages = Pages::create(&store, 20);
    pages.write(&store, 1).unwrap();
    store.checkpoint().unwrap();
    for number in 0..50u64 {
        let mut txn = store.begin().unwrap();
        txn.put_record("newest", 0, &number.to_le_bytes());
        txn.commit().unwrap();
    }
    pages
}

#[test]
fn reading_writes_nothing_and_sees_what_the_journal_says() {
    let dir = tempfile::tempdir().unwrap();
    let pages = unfinished(dir.path());
    // Reading needs neither file: the lock only serves an error message.
    ["lock", "reserve"].iter().for_each(|name| std::fs::remove_file(dir.path().join(name)).unwrap());
    let before = contents(dir.path());
    {
        let store = Store::open(dir.path(), config(Mode::ReadOnly)).unwrap();
        assert_eq!(store.recovery().commits, 50);
        assert_eq!(store.catalog("newest"), Some(49u64.to_le_bytes().to_vec()));
        assert!(matches!(store.begin(), Err(StoreError::ReadOnly { .. })));
        assert!(matches!(store.begin_build(), Err(StoreError::ReadOnly { .. })));
        assert!(matches!(store.compact(), Err(StoreError::ReadOnly { .. })));
        assert!(store.poisoned().is_none(), "it is no failure");
        // Pages that were read are what a warm list would have.
        assert_eq!(pages.round(&store).unwrap(), 1);
        store.step();
        // Readers keep writers out, and each other not.
        let other = Store::open(dir.path(), config(Mode::ReadOnly)).unwrap();
        assert_eq!(other.catalog("newest"), store.catalog("newest"));
        let copy = tempfile::tempdir().unwrap();
        store.backup(&copy.path().join("copy"), &[], |_| {}).unwrap();
        let copied = Store::open(&copy.path().join("copy"), config(Mode::ReadOnly)).unwrap();
        assert_eq!(copied.catalog("newest"), store.catalog("newest"));
    }
    assert_eq!(contents(dir.path()), before);
    let store = Store::open(dir.path(), config(Mode::ReadWrite)).unwrap();
    assert_eq!(store.catalog("newest"), Some(49u64.to_le_bytes().to_vec()));
}

/// Not even a sync is asked for: a medium that cannot be written may refuse it.
#[test]
fn a_disk_that_is_read_is_asked_for_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let disk = PowerDisk::new(1);
    let store = Store::create(dir.path(), &[], on(&disk)).unwrap();
    let pages = Pages::create(&store, 20);
    (1..4).for_each(|round| pages.write(&store, round).unwrap());
    drop(store);
    let (steps, reads) = (disk.steps(), disk.reads());
    let store = Store::open(dir.path(), StoreConfig { mode: Mode::ReadOnly, ..on(&disk) }).unwrap();
    assert!(store.recovery().commits > 0, "the journal is needed");
    assert_eq!(pages.round(&store).unwrap(), 3);
    store.step();
    drop(store);
    assert!(disk.reads() > reads);
    assert_eq!(disk.steps(), steps, "files made, written, lengthened or synced");
}

#[test]
fn readers_and_a_writer_keep_each_other_out() {
    let dir = tempfile::tempdir().unwrap();
    unfinished(dir.path());
    let open = |mode| Store::open(dir.path(), config(mode));
    let writer = open(Mode::ReadWrite).unwrap();
    let refused = open(Mode::ReadOnly).unwrap_err();
    let me = std::process::id().to_string();
    assert!(matches!(&refused, StoreError::Locked { holder, .. } if *holder == me), "{refused}");
    drop(writer);
    let reader = open(Mode::ReadOnly).unwrap();
    assert!(matches!(open(Mode::ReadWrite), Err(StoreError::Locked { .. })));
    drop(reader);
    open(Mode::ReadWrite).unwrap();
    let made = Store::create(&dir.path().join("new"), &[], config(Mode::ReadOnly));
    assert!(matches!(made, Err(StoreError::ReadOnly { .. })));
}
