//! Waits of writers: each has a meter, is shown, and ends; dead journal is given back, and files
//! that are no longer needed are cut. That no wait is for ever is looked for by the power-cut
//! simulator (`power_cut.rs`).

mod support;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use snowmelt_io::{Clock, PowerDisk};
use snowmelt_store::{
    Background, JournalConfig, PageId, Plant, Reader, Seams, Store, StoreConfig, Transaction, TreeId,
    WaitFor, WaitSign, Waiter,
};
use support::{Random, tiny};

/// A database of some pages on `disk`, all written back.
fn create(dir: &Path, config: StoreConfig, disk: &PowerDisk) -> (Arc<Store>, TreeId, Vec<PageId>) {
    snowmelt_io::set_notice(|_| {});
    let store = Store::create(dir, &[], config).unwrap();
    disk.sync_names();
    let mut txn = store.begin().unwrap();
    let tree = txn.new_tree("t");
    let pages = (0..100).map(|_| txn.allocate(tree, None).unwrap()).collect();
    txn.commit().unwrap();
    assert!(store.checkpoint().unwrap());
    (store, tree, pages)
}

fn config(disk: &PowerDisk) -> StoreConfig {
    let tiny = tiny(disk);
    StoreConfig { journal: JournalConfig { private_pages: Some(8), ..tiny.journal }, ..tiny }
}

/// New bytes in all pages, in a transaction that is not committed yet.
fn fill(store: &Arc<Store>, tree: TreeId, pages: &[PageId], seed: u64) -> Transaction {
    let mut txn = store.begin().unwrap();
    support::fill(&mut txn, tree, pages, seed);
    txn
}

fn is_given_back(store: &Store) {
    let (stats, config) = (store.journal_stats(), &store.config().journal);
    assert!(stats.bytes_to_recover <= config.file_bytes, "{stats:?}");
}

#[test]
fn a_dropped_giant_leaves_no_journal() {
    let (dir, disk) = (tempfile::tempdir().unwrap(), PowerDisk::new(1));
    let (store, tree, pages) = create(dir.path(), config(&disk), &disk);
    drop(fill(&store, tree, &pages, 1));
    let stats = store.journal_stats();
    assert!(stats.bytes_to_recover > stats.bound_bytes, "{stats:?}");
    (0..4).for_each(|_| _ = store.step());
    is_given_back(&store);
    // Commits before and after it stay.
    fill(&store, tree, &pages[..3], 2).commit().unwrap();
    drop(fill(&store, tree, &pages, 3));
    fill(&store, tree, &pages[3..5], 4).commit().unwrap();
    disk.cut_in(0);
    drop(store);
    disk.restore_power();
    let store = Store::open(dir.path(), config(&disk)).unwrap();
    let mut reader = Reader::new(&store, store.snapshot());
    for (page, seed) in [(pages[0], 2), (pages[3], 4)] {
        let mut random = Random::new(seed);
        let got = reader.page(tree, page).unwrap();
        assert_eq!(got[32..40], random.next().to_le_bytes());
    }
}

/// New pages that were spilled take extents, which are given back to the file system.
#[test]
fn a_dropped_giant_leaves_the_stripes_as_long_as_they_were() {
    let (dir, disk) = (tempfile::tempdir().unwrap(), PowerDisk::new(8));
    let (store, tree, pages) = create(dir.path(), config(&disk), &disk);
    let before = store.stripe_bytes().unwrap();
    for seed in 0..4 {
        let mut giant = store.begin().unwrap();
        (0..400).for_each(|_| _ = giant.allocate(tree, None).unwrap());
        let most = store.stripe_bytes().unwrap();
        assert!(most > 3 * before, "{most} bytes of {before}");
        drop(giant);
        assert_eq!(store.stripe_bytes().unwrap(), before);
        fill(&store, tree, &pages[..3], seed).commit().unwrap();
    }
    // A committed one stays.
    let mut txn = store.begin().unwrap();
    let last = (0..400).map(|_| txn.allocate(tree, None).unwrap()).last().unwrap();
    txn.commit().unwrap();
    assert!(store.stripe_bytes().unwrap() > 3 * before);
    disk.cut_in(0);
    drop(store);
    disk.restore_power();
    let store = Store::open(dir.path(), config(&disk)).unwrap();
    Reader::new(&store, store.snapshot()).page(tree, last).unwrap();
}

#[test]
fn a_giant_cut_off_leaves_no_journal() {
    let (dir, disk) = (tempfile::tempdir().unwrap(), PowerDisk::new(2));
    let (store, tree, pages) = create(dir.path(), config(&disk), &disk);
    let mut giant = fill(&store, tree, &pages, 1);
    disk.cut_in(0);
    assert!(pages.iter().any(|page| giant.page_mut(tree, *page).is_err()), "the power is off");
    drop((giant, store));
    disk.restore_power();
    let store = Store::open(dir.path(), config(&disk)).unwrap();
    let stats = store.journal_stats();
    assert!(stats.bytes_to_recover > stats.bound_bytes, "{stats:?}");
    store.step();
    is_given_back(&store);
    // A new one finds room at once, and what it commits is there.
    fill(&store, tree, &pages[..2], 5).commit().unwrap();
    assert_eq!(store.journal_stats().room_waits.count, 0);
}

#[test]
fn a_wait_for_the_turn_is_shown_and_ends() {
    let (dir, disk) = (tempfile::tempdir().unwrap(), PowerDisk::new(3));
    let (store, ..) = create(dir.path(), config(&disk), &disk);
    let (sign, looks) = (WaitSign::default(), AtomicU64::new(0));
    let writer = store.begin().unwrap();
    let go_on = || {
        assert_eq!(sign.read(), Some(WaitFor::Turn));
        assert_eq!(store.journal_stats().turn_waits.now, 1);
        looks.fetch_add(1, Ordering::Relaxed) < 2
    };
    let waiter = Waiter { go_on: &go_on, sign: Some(&sign) };
    assert!(store.begin_for(&waiter).unwrap().is_none(), "it gave up");
    assert!(store.begin_build_for(&waiter).unwrap().is_none(), "and a build, too");
    assert!(!store.is_building());
    let waits = store.journal_stats().turn_waits;
    assert_eq!((waits.now, waits.count, sign.read()), (0, 2, None));
    assert!(waits.longest_ns > 0 && waits.ns >= waits.longest_ns);
    drop(writer);
    assert!(store.begin_for(&Waiter { go_on: &|| false, sign: None }).unwrap().is_some(), "nobody waits");
}

/// A checkpoint that never comes: planted.
#[test]
fn a_wait_for_room_is_shown_and_ends() {
    let clock = Clock::virtual_time(1);
    let _taking_part = clock.enter();
    let (dir, disk) = (tempfile::tempdir().unwrap(), PowerDisk::in_time(4, &clock));
    let config = config(&disk);
    let config = StoreConfig {
        seams: Seams {
            background: Background::Participant,
            plant: Some(Plant::KeepDeadJournal),
            clock: clock.clone(),
            ..config.seams
        },
        ..config
    };
    let (store, tree, pages) = create(dir.path(), config, &disk);
    drop(fill(&store, tree, &pages, 1));
    let (sign, begun) = (WaitSign::default(), clock.now_ns());
    let go_on = || {
        let stats = store.journal_stats();
        if clock.now_ns() > begun {
            assert_eq!((sign.read(), stats.room_waits.now), (Some(WaitFor::Room), 1));
        }
        let waited_s = (clock.now_ns() - begun) / 1_000_000_000;
        assert_eq!((stats.stalled.is_some(), store.unready().is_some()), (waited_s >= 10, waited_s >= 10));
        waited_s < 15
    };
    assert!(store.begin_for(&Waiter { go_on: &go_on, sign: Some(&sign) }).unwrap().is_none());
    let stats = store.journal_stats();
    assert_eq!((stats.room_waits.now, stats.room_waits.count, sign.read()), (0, 1, None));
    assert!(stats.room_waits.longest_ns >= 15_000_000_000 && stats.stalled.is_none());
}

#[test]
fn a_held_state_is_told() {
    let (dir, disk) = (tempfile::tempdir().unwrap(), PowerDisk::new(5));
    let (store, tree, pages) = create(dir.path(), config(&disk), &disk);
    assert_eq!(store.journal_stats().oldest_reader, None);
    fill(&store, tree, &pages[..10], 100).commit().unwrap();
    let mut reader = Reader::new(&store, store.snapshot());
    reader.charge_to(&store.account("export"));
    for seed in 0..20 {
        fill(&store, tree, &pages[..10], seed).commit().unwrap();
    }
    let stats = store.journal_stats();
    assert_eq!(stats.oldest_reader_account, "export");
    assert!(stats.oldest_reader_ns > 0 && stats.held_bytes > 10 * 20 * 8000 / 2, "{stats:?}");
    let mut random = Random::new(100);
    assert_eq!(reader.page(tree, pages[0]).unwrap()[32..40], random.next().to_le_bytes());
    drop(reader);
    let stats = store.journal_stats();
    assert_eq!((stats.oldest_reader, stats.held_bytes), (None, 0));
    // Of each page the state that was held is kept, the newest, and the one that this one was
    // built on; what is between them no reader can see.
    assert!(stats.versions <= 3 * 10, "{stats:?}");
}

/// Bytes of all journal files.
fn journal_bytes(disk: &PowerDisk) -> u64 {
    let is_journal = |path: &&std::path::PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("journal-"))
    };
    disk.paths().iter().filter(is_journal).map(|path| disk.bytes(path).unwrap().len() as u64).sum()
}

#[test]
fn the_files_of_the_journal_shrink_again() {
    let (dir, disk) = (tempfile::tempdir().unwrap(), PowerDisk::new(6));
    let large = |disk: &PowerDisk| {
        let config = config(disk);
        let journal =
            JournalConfig { file_bytes: 1 << 20, most_bytes: 64 << 20, recovery_s: 1e9, ..config.journal };
        StoreConfig { journal, ..config }
    };
    let (store, tree, pages) = create(dir.path(), large(&disk), &disk);
    for seed in 0..20 {
        fill(&store, tree, &pages, seed).commit().unwrap();
    }
    let most = journal_bytes(&disk);
    assert!(most > 12 << 20, "{most}");
    // After a burst the files are cut step by step while little is written.
    for seed in 0..12 {
        assert!(store.checkpoint().unwrap());
        fill(&store, tree, &pages[..2], seed).commit().unwrap();
    }
    let later = journal_bytes(&disk);
    assert!(later <= 3 << 20, "{later} of {most}");
    assert_eq!(store.journal_stats().file_bytes, later);
    for seed in 0..20 {
        fill(&store, tree, &pages, seed).commit().unwrap();
    }
    assert!(journal_bytes(&disk) > 12 << 20);
    drop(store);
    // At the end at once.
    let closed = journal_bytes(&disk);
    assert!(closed <= 4 << 20, "{closed}");
    let store = Store::open(dir.path(), large(&disk)).unwrap();
    let mut reader = Reader::new(&store, store.snapshot());
    let got = reader.page(tree, pages[50]).unwrap();
    let mut random = Random::new(19);
    (0..50 * got[32..].len() / 8).for_each(|_| _ = random.next());
    assert_eq!(got[32..40], random.next().to_le_bytes());
}
