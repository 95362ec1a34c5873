//! Writes that a device acknowledged and lost: an older page that is sound in itself is found
//! at the next read, wherever it lies, and nothing else is taken for one. Also what the table
//! of writes costs, and what it knows.

#[path = "support/rounds.rs"]
mod rounds;
mod support;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use rounds::Pages;
use snowmelt_io::{CostModel, PowerDisk};
use snowmelt_store::{
    Background, Damage, JournalConfig, PageId, ReadAhead, Seams, Store, StoreConfig, StoreError, WishKind,
    page::seal,
};
use support::{Mood, Random, build_tree, config, page, reader, reopen, seed};

/// Settings of a database on a disk in memory that keeps as much of its journal as usual, in
/// small files.
fn on(disk: &PowerDisk) -> StoreConfig {
    let journal = JournalConfig { file_bytes: 64 << 10, ..JournalConfig::default() };
    StoreConfig { journal, ..rounds::on(disk) }
}

/// So many pages, in round 0. No round writes a record: only the chosen pages change.
fn create(store: &Arc<Store>, n: usize) -> Pages {
    let pages = Pages::create(store, n);
    pages.write_chosen(store, 0, |_| true).unwrap();
    pages
}

/// The round of page `i` after [`history`].
fn last_round(i: usize) -> u64 {
    match i % 3 {
        0 => 5,
        1 => 4,
        _ => 3,
    }
}

/// A database that was checkpointed three times, with the changes of two more rounds in its
/// journal.
fn history(at: &Path, disk: &PowerDisk) -> Pages {
    snowmelt_io::set_notice(|_| {});
    let store = Store::create(at, &[], on(disk)).unwrap();
    let pages = create(&store, 90);
    for round in 1..=3 {
        pages.write_chosen(&store, round, |_| true).unwrap();
        assert!(store.checkpoint().unwrap());
    }
    pages.write_chosen(&store, 4, |i| i % 3 < 2).unwrap();
    pages.write_chosen(&store, 5, |i| i % 3 == 0).unwrap();
    pages
}

/// Opens, reads and checks: what is found first.
fn find(at: &Path, disk: &PowerDisk, pages: &Pages) -> Result<(), StoreError> {
    let store = Store::open(at, on(disk))?;
    let read = pages.check(&store, store.snapshot(), last_round);
    let mut found = Vec::new();
    store.check_pages(|e| found.push(e), |_| {});
    if let Err(e) = &read {
        assert!(
            found.iter().any(|f| f.to_string() == e.to_string()),
            "a check finds what a reader finds: {e}"
        );
    }
    found.into_iter().next().map_or(read, Err)
}

#[test]
fn every_lost_write_to_a_stripe_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let (at, disk) = (dir.path(), PowerDisk::new(1));
    let pages = history(at, &disk);
    let stripe = at.join("stripe-0");
    let (mut found, mut stale) = (0, 0);
    for n in 0.. {
        let copy = disk.copy(n);
        let store = Store::open(at, on(&copy)).unwrap();
        copy.lose_write_in(&stripe, n);
        assert!(store.checkpoint().unwrap());
        drop(store);
        if copy.is_losing() {
            break;
        }
        let e = find(at, &copy, &pages).expect_err(&format!("write {n} was lost"));
        assert!(e.is_damage() && e.to_string().contains("stripe-0"), "{e}");
        found += 1;
        stale += u64::from(matches!(e, StoreError::Damaged { why: Damage::Stale { .. }, .. }));
    }
    eprintln!("{found} found, {stale} of them older pages");
    assert!(found >= 10 && stale >= 8);
}

/// Page by page, also the pages of the extent map and of the catalog.
#[test]
fn every_page_as_it_was_before_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let (at, disk) = (dir.path(), PowerDisk::new(2));
    let pages = history(at, &disk);
    let stripe = at.join("stripe-0");
    let before = disk.bytes(&stripe).unwrap();
    let store = Store::open(at, on(&disk)).unwrap();
    assert!(store.checkpoint().unwrap());
    drop(store);
    find(at, &disk, &pages).unwrap();
    let after = disk.bytes(&stripe).unwrap();
    let mut found = 0;
    for (i, (old, new)) in before.chunks(8192).zip(after.chunks(8192)).enumerate() {
        if old == new {
            continue;
        }
        let copy = disk.copy(i as u64);
        let mut bytes = after.clone();
        bytes[i * 8192..][..8192].copy_from_slice(old);
        copy.set_bytes(&stripe, bytes);
        let e = find(at, &copy, &pages).expect_err(&format!("page {i} is as it was before"));
        assert!(e.is_damage() && e.to_string().contains("stripe-0"), "{e}");
        if let StoreError::Damaged { why: Damage::Stale { .. }, page, offset, .. } = &e {
            assert_eq!((page.0, *offset), (i as u64, i as u64 * 8192));
            assert!(e.to_string().contains("a write was lost"), "{e}");
        }
        found += 1;
    }
    assert!(found >= 60, "{found} pages were written");
    eprintln!("{found} pages, each found");
}

#[test]
fn a_backup_stops_at_a_lost_write() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    let c = StoreConfig {
        seams: Seams { background: Background::Caller, ..Seams::default() },
        ..config(64, ReadAhead::none())
    };
    let store = Store::create(&db, &[], c.clone()).unwrap();
    let pages = create(&store, 30);
    store.checkpoint().unwrap();
    let old = std::fs::read(db.join("stripe-0")).unwrap();
    pages.write_chosen(&store, 1, |_| true).unwrap();
    store.checkpoint().unwrap();
    store.backup(&dir.path().join("sound"), &[], |_| {}).unwrap();
    let store = reopen(&db, store, c.clone());
    let lost = pages.list[7];
    let mut bytes = std::fs::read(db.join("stripe-0")).unwrap();
    let at = lost.0 as usize * 8192;
    bytes[at..at + 8192].copy_from_slice(&old[at..at + 8192]);
    std::fs::write(db.join("stripe-0"), bytes).unwrap();
    let e = store.backup(&dir.path().join("copy"), &[], |_| {}).unwrap_err();
    assert!(
        matches!(&e, StoreError::Damaged { page, why: Damage::Stale { .. }, .. } if *page == lost),
        "{e}"
    );
    // The copy that was made before knows its own writes.
    let copy = Store::open(&dir.path().join("sound"), c).unwrap();
    pages.check(&copy, copy.snapshot(), |_| 1).unwrap();
    let written_by: Vec<PathBuf> = copy.stripe_files().to_vec();
    assert_eq!(written_by.len(), 1);
    let known =
        copy.extents().iter().any(|(_, e)| e.tree == Some(pages.tree) && e.written_by.get(0).is_some());
    assert!(known, "the copy's map says who wrote its pages");
}

/// A read ahead that begins before a page is written back and ends after it brings the older
/// state. That is no lost write: the page's versions are still in the table, and the frame gets
/// the new state.
#[test]
fn a_read_under_way_while_its_page_is_written_back_is_no_lost_write() {
    snowmelt_io::set_notice(|_| {});
    let dir = tempfile::tempdir().unwrap();
    let mood = Mood::new();
    let rules = ReadAhead { planned: true, ..ReadAhead::none() };
    let c = StoreConfig {
        seams: Seams {
            devices: Some(mood.wrap(CostModel::nvme())),
            background: Background::Caller,
            ..Seams::default()
        },
        ..config(64, rules)
    };
    let store = Store::create(dir.path(), &[], c.clone()).unwrap();
    let tree = build_tree(&store, "t", 1, 40);
    let store = reopen(dir.path(), store, c);
    let p = tree.pages[5];
    mood.hold_behind_next();
    assert_eq!(reader(&store).wish(tree.id, &[p], WishKind::Planned), 1);
    mood.wait_held();
    // Now the old bytes are on their way to the pool.
    let mut version = page(9, 5);
    seal(&mut version, p, tree.id, 2);
    store.publish_version(p, 2, version);
    let written_back = |store: &Arc<Store>| {
        let extents = store.extents();
        extents.iter().any(|(id, e)| *id == p.0 / 8 && e.written_by.get((p.0 % 8) as u32) == Some(2))
    };
    std::thread::scope(|s| {
        // Its commit is transaction 2, and a checkpoint follows.
        let other = s.spawn(|| build_tree(&store, "other", 2, 1));
        while !written_back(&store) {
            std::thread::sleep(Duration::from_millis(1));
        }
        mood.open_gate();
        other.join().unwrap();
    });
    let reads = mood.reads.load(SeqCst);
    assert_eq!(reader(&store).page(tree.id, p).unwrap()[32..], *page(9, 5).body());
    assert_eq!(mood.reads.load(SeqCst), reads, "the frame was kept and has the new state");
}

/// Readers, read-ahead, checks and backups beside commits and checkpoints: nothing is taken for
/// a lost write.
#[test]
fn nothing_else_is_taken_for_a_lost_write() {
    snowmelt_io::set_notice(|_| {});
    let seed = seed();
    let dir = tempfile::tempdir().unwrap();
    let rules = ReadAhead { planned: true, extent: true, ..ReadAhead::none() };
    let c = StoreConfig {
        direct: false,
        seams: Seams { background: Background::Caller, ..Seams::default() },
        ..config(40, rules)
    };
    let store = Store::create(&dir.path().join("db"), &[], c).unwrap();
    let pages = create(&store, 200);
    store.checkpoint().unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|s| {
        let mut others = Vec::new();
        for i in 0..2 {
            let (store, pages, done) = (&store, &pages, &done);
            others.push(s.spawn(move || {
                let mut random = Random::new(seed + i);
                while !done.load(SeqCst) {
                    let mut r = reader(store);
                    let at = random.below(192);
                    r.wish(pages.tree, &pages.list[at..at + 8], WishKind::Planned);
                    (0..20).for_each(|_| drop(r.page(pages.tree, pages.list[random.below(200)]).unwrap()));
                }
            }));
        }
        others.push(s.spawn(|| {
            for n in 0.. {
                if done.load(SeqCst) {
                    return;
                }
                store.check_pages(|e| panic!("{e}"), |_| {});
                if n % 4 == 0 {
                    store.backup(&dir.path().join(format!("copy {n}")), &[], |_| {}).unwrap();
                }
            }
        }));
        let mut random = Random::new(seed + 9);
        for round in 1..150 {
            let which = random.below(7);
            pages.write_chosen(&store, round, |i| i % 7 == which || random_bit(round, i)).unwrap();
            if round % 2 == 0 {
                store.checkpoint().unwrap();
            }
        }
        done.store(true, SeqCst);
        others.into_iter().for_each(|o| o.join().unwrap());
    });
}

fn random_bit(round: u64, i: usize) -> bool {
    Random::new(round << 20 | i as u64).below(5) == 0
}

#[test]
fn a_checkpoint_writes_only_what_changed_of_the_map() {
    let dir = tempfile::tempdir().unwrap();
    let (at, disk) = (dir.path(), PowerDisk::new(3));
    let store = Store::create(at, &[], on(&disk)).unwrap();
    let tree = build_tree(&store, "t", 1, 64 * 8 * 12);
    let stripe = at.join("stripe-0");
    for round in 0..10u64 {
        let before = disk.bytes(&stripe).unwrap();
        let mut txn = store.begin().unwrap();
        txn.page_mut(tree.id, tree.pages[700 + round as usize]).unwrap().body_mut()[0] ^= 1;
        txn.commit().unwrap();
        assert!(store.checkpoint().unwrap());
        let after = disk.bytes(&stripe).unwrap();
        let changed = before.chunks(8192).zip(after.chunks(8192)).filter(|(a, b)| a != b).count();
        assert!(changed <= 4, "{changed} pages: the page, its part of the map, the run, an extent for them");
    }
}

#[test]
fn the_map_knows_what_was_written_since() {
    let dir = tempfile::tempdir().unwrap();
    let (at, disk) = (dir.path(), PowerDisk::new(4));
    let store = Store::create(at, &[], on(&disk)).unwrap();
    let pages = create(&store, 50);
    store.checkpoint().unwrap();
    let mark = store.snapshot().txn();
    let since = |store: &Arc<Store>| -> Vec<PageId> {
        let all = (0..store.extents().len() as u64).flat_map(|e| store.pages_written_since(e, mark));
        let own: Vec<PageId> = all.filter(|p| pages.list.contains(p)).collect();
        own
    };
    assert_eq!(since(&store), []);
    pages.write_chosen(&store, 1, |i| i % 10 == 0).unwrap();
    let mut expected: Vec<PageId> = pages.list.iter().step_by(10).copied().collect();
    expected.sort_unstable();
    assert_eq!(since(&store), expected, "as versions");
    store.checkpoint().unwrap();
    assert_eq!(since(&store), expected, "written back");
    drop(store);
    assert_eq!(since(&Store::open(at, on(&disk)).unwrap()), expected, "kept");
}
