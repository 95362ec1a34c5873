//! The checkpointer's pace and bound, and what a restart finds when it was held.

mod support;

use std::path::Path;
use std::sync::Arc;

use snowmelt_store::{
    Background, Checkpoints, JournalConfig, PageId, ReadAhead, Reader, Seams, Store, StoreConfig, TreeId,
};
use support::{Random, config};

/// Nothing happens but what the test does, and nothing depends on the time.
fn quiet(journal: JournalConfig) -> StoreConfig {
    StoreConfig {
        journal,
        seams: Seams { background: Background::Caller, ..Seams::default() },
        ..config(64, ReadAhead::none())
    }
}

fn slow_time() -> JournalConfig {
    JournalConfig { file_bytes: 1 << 20, checkpoint_s: 1_000_000, ..JournalConfig::default() }
}

fn create(dir: &Path, c: StoreConfig, pages: usize) -> (Arc<Store>, TreeId, Vec<PageId>) {
    snowmelt_io::set_notice(|_| {});
    let store = Store::create(dir, &[], c).unwrap();
    let mut txn = store.begin().unwrap();
    let tree = txn.new_tree("t");
    let mut list = Vec::new();
    for _ in 0..pages {
        let page = txn.allocate(tree, list.last().copied()).unwrap();
        list.push(page);
    }
    txn.commit().unwrap();
    (store, tree, list)
}

/// New bytes in each of these pages, in one commit.
fn write(store: &Arc<Store>, tree: TreeId, pages: &[PageId], seed: u64) {
    let mut txn = store.begin().unwrap();
    support::fill(&mut txn, tree, pages, seed);
    txn.commit().unwrap();
}

#[test]
fn a_checkpoint_keeps_step_with_the_journal() {
    let at = tempfile::tempdir().unwrap();
    let journal = JournalConfig { checkpoint_bytes: 2 << 20, version_pages: Some(10_000), ..slow_time() };
    let (store, tree, pages) = create(&at.path().join("db"), quiet(journal), 400);
    let steps = || (0..200).for_each(|_| _ = store.step());
    // 3 MiB of images: a checkpoint is due, and begins with nothing.
    write(&store, tree, &pages, 1);
    steps();
    assert_eq!(store.journal_stats().written_back, 0, "no faster than the journal grows");
    // Half of what it is spread over.
    write(&store, tree, &pages[272..], 2);
    steps();
    let half = store.journal_stats().written_back;
    assert!((180..=230).contains(&half), "{half} of 400 pages");
    write(&store, tree, &pages[260..], 3);
    steps();
    // its last requests may take longer on a busy device
    let begun = std::time::Instant::now();
    while store.journal_stats().checkpoints == 0 && begun.elapsed().as_secs() < 20 {
        store.step();
    }
    // Pages that were changed meanwhile are left to the next checkpoint.
    let stats = store.journal_stats();
    assert!(stats.checkpoints >= 1 && stats.written_back >= 250, "{stats:?}");
    assert!(stats.checkpointed > 0);
}

#[test]
fn a_checkpoint_that_is_late_does_not_wait_for_the_journal() {
    let at = tempfile::tempdir().unwrap();
    let journal = JournalConfig { most_bytes: 4 << 20, version_pages: Some(10_000), ..slow_time() };
    let (store, tree, pages) = create(&at.path().join("db"), quiet(journal), 400);
    write(&store, tree, &pages, 1);
    assert!(store.journal_stats().bytes_to_recover > (4 << 20) / 8 * 5);
    (0..200).for_each(|_| _ = store.step());
    let stats = store.journal_stats();
    assert!(stats.checkpoints >= 1 && stats.written_back >= 400, "{stats:?}");
}

#[test]
fn the_bound_follows_the_seconds() {
    let at = tempfile::tempdir().unwrap();
    let bound = |name: &str, recovery_s: f64| {
        let journal = JournalConfig { recovery_s, ..slow_time() };
        let (store, ..) = create(&at.path().join(name), quiet(journal), 1);
        store.journal_stats().bound_bytes
    };
    assert_eq!(bound("none", 0.0), 4 << 20, "a few files at least");
    assert_eq!(bound("long", 1e9), 1 << 30, "no more than writers wait at");
    let (one, two) = (bound("one", 1.0), bound("two", 2.0));
    assert_eq!(two, 2 * one);
}

#[test]
fn held_back_everything_is_found_again_and_the_latest_is_in_memory() {
    let at = tempfile::tempdir().unwrap();
    let path = at.path().join("db");
    let journal = JournalConfig {
        checkpoints: Checkpoints::Held,
        most_bytes: 1 << 20,
        checkpoint_bytes: 1 << 10,
        version_pages: Some(40),
        ..slow_time()
    };
    let c = quiet(journal);
    let (store, tree, pages) = create(&path, c.clone(), 300);
    for round in 0..3 {
        write(&store, tree, &pages, round);
    }
    for seed in 10..20 {
        write(&store, tree, &pages[(seed as usize - 10) * 3..][..3], seed);
    }
    (0..50).for_each(|_| _ = store.step());
    let stats = store.journal_stats();
    assert_eq!((stats.checkpoints, stats.written_back), (0, 0));
    assert!(stats.bytes_to_recover > 6 << 20, "longer than writers would wait at");
    drop(store);
    let store = Store::open(&path, c).unwrap();
    let trace = store.recovery();
    assert_eq!((trace.commits, trace.pages), (14, 300));
    assert!(trace.pages_in_memory <= 40, "{trace:?}");
    assert!(trace.newest_commits_in_memory >= 10, "{trace:?}");
    let mut reader = Reader::new(&store, store.snapshot());
    let mut random = Random::new(19);
    for page in &pages[27..30] {
        let got = reader.page(tree, *page).unwrap();
        got[32..].chunks_exact(8).for_each(|c| assert_eq!(c, random.next().to_le_bytes()));
    }
    // Asked for, it is done.
    assert!(store.checkpoint().unwrap());
    assert_eq!(store.journal_stats().versions, 0);
}

/// A record that frees extents is short, so that the journal alone says nothing of them.
#[test]
fn extents_that_are_freed_are_given_out_again_while_the_store_is_open() {
    let at = tempfile::tempdir().unwrap();
    let path = at.path().join("db");
    let journal = JournalConfig { version_pages: Some(10_000), ..slow_time() };
    let (store, ..) = create(&path, StoreConfig { extent_pages: 256, ..quiet(journal) }, 1);
    let mut bytes = Vec::new();
    for _ in 0..200 {
        let mut txn = store.begin().unwrap();
        let tree = txn.new_tree("t"); // instead of the one before
        txn.allocate(tree, None).unwrap();
        txn.commit().unwrap();
        (0..20).for_each(|_| _ = store.step());
        bytes.push(std::fs::metadata(path.join("stripe-0")).unwrap().len());
    }
    assert!(bytes[199] <= bytes[0] + (100 << 20), "{bytes:?}");
    let stats = store.journal_stats();
    assert!((3..=10).contains(&stats.checkpoints), "{stats:?}");
}
