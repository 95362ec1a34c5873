//! Damage to a database by a disk, a file system or another process is a typed error with the
//! place, never a panic, never a wrong page.

mod support;

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use snowmelt_io::CostModel;
use snowmelt_store::{Damage, ReadAhead, Seams, Store, StoreConfig, StoreError, WishKind, superblock};
use support::{Mood, Random, TestTree, build_tree, config, page, reader, reopen, seed, try_build_tree};

fn plain() -> StoreConfig {
    config(64, ReadAhead::none())
}

fn made(dir: &Path) -> TestTree {
    let store = Store::create(dir, &[], plain()).unwrap();
    build_tree(&store, "t", 1, 40)
}

fn stripe(dir: &Path) -> std::fs::File {
    std::fs::OpenOptions::new().read(true).write(true).open(dir.join("stripe-0")).unwrap()
}

/// Opens and reads page `n`; the error names the file and the page's byte.
fn damage(dir: &Path, tree: &TestTree, n: usize, c: StoreConfig) -> Damage {
    let store = Store::open(dir, c).unwrap();
    let mut r = reader(&store);
    let offset = tree.pages[n].0 * 8192;
    match r.page(tree.id, tree.pages[n]).unwrap_err() {
        StoreError::Damaged { file, offset: o, page, why } => {
            assert_eq!((file, o, page), (dir.join("stripe-0"), offset, tree.pages[n]));
            why
        }
        other => panic!("{other}"),
    }
}

#[test]
fn flipped_bits_are_found_and_named() {
    let dir = tempfile::tempdir().unwrap();
    let tree = made(dir.path());
    for (byte, n) in [(0, 3), (8, 4), (31, 9), (5000, 17)] {
        let at = tree.pages[n].0 * 8192 + byte;
        let mut b = [0];
        stripe(dir.path()).read_exact_at(&mut b, at).unwrap();
        stripe(dir.path()).write_all_at(&[b[0] ^ 1], at).unwrap();
        for direct in [true, false] {
            let why = damage(dir.path(), &tree, n, StoreConfig { direct, ..plain() });
            assert!(matches!(why, Damage::Checksum { .. }), "{why}");
        }
    }
    // A damaged page that was wished for, or came with its extent, is an error, too; the others are
    // not hurt.
    for rules in [ReadAhead::all(), ReadAhead { planned: true, ..ReadAhead::none() }] {
        let store = Store::open(dir.path(), config(64, rules)).unwrap();
        let mut r = reader(&store);
        r.wish(tree.id, &tree.pages[..16], WishKind::Planned);
        for n in 0..40 {
            match n {
                3 | 4 | 9 | 17 => assert!(r.page(tree.id, tree.pages[n]).unwrap_err().is_damage()),
                _ => tree.check(&mut r, n),
            }
        }
    }
    let store = Store::open(dir.path(), plain()).unwrap();
    let mut found = Vec::new();
    let end = store.check_pages(|e| found.push(e.to_string()), |_| {});
    assert_eq!((found.len(), end.errors), (4, 4), "{found:?}");
    assert!(end.pages > 40 && found[0].contains("page 3 at byte 24576"), "{found:?}");
}

/// Bits turned and ends cut off in every file there is beside a database and in it, also those
/// that only make it faster.
#[test]
fn damage_in_any_file_is_an_error_or_a_right_answer() {
    let mut random = Random::new(seed());
    snowmelt_io::set_notice(|_| {});
    let dir = tempfile::tempdir().unwrap();
    let (sound, damaged) = (dir.path().join("sound"), dir.path().join("damaged"));
    let c = config(64, ReadAhead { warm_list: true, ..ReadAhead::none() });
    let store = Store::create(&sound, &[], c.clone()).unwrap();
    let tree = build_tree(&store, "t", 1, 40);
    (0..40).for_each(|n| tree.check(&mut reader(&store), n));
    drop(store);
    let profile = snowmelt_store::profile_path(&sound, 0, &sound.join("stripe-0"));
    std::fs::write(&profile, b"{\"cost\": {\"ns_per_request\": 1, \"bytes_per_s\": 2}}").unwrap();
    let stripe = sound.join("stripe-0");
    let disk = snowmelt_io::Hints::find(&snowmelt_io::KernelFiles::real(), &stripe).disk.unwrap_or_default();
    let model = snowmelt_io::KeptModel::new(snowmelt_io::CostModel::ssd(), [1.0; 2], 99, disk);
    let learned = snowmelt_store::learned_path(&sound, 0, &stripe);
    std::fs::write(&learned, model.encode()).unwrap();
    let names: Vec<_> = std::fs::read_dir(&sound).unwrap().map(|f| f.unwrap().file_name()).collect();
    assert!(
        ["warm", "superblock", "stripe-0", "journal-0"].iter().all(|n| names.iter().any(|f| f == n)),
        "{names:?}"
    );
    for name in &names {
        for _ in 0..30 {
            let _ = std::fs::remove_dir_all(&damaged);
            copy(&sound, &damaged);
            let mut bytes = std::fs::read(sound.join(name)).unwrap();
            match random.below(3) {
                _ if bytes.is_empty() => bytes.push(random.next() as u8),
                0 => bytes.truncate(random.below(bytes.len())),
                _ => {
                    let i = random.below(bytes.len());
                    bytes[i] ^= 1 << random.below(8);
                }
            }
            std::fs::write(damaged.join(name), &bytes).unwrap();
            let read_all = || -> Result<(), StoreError> {
                let store = Store::open(&damaged, c.clone())?;
                let mut r = reader(&store);
                for (n, id) in tree.pages.iter().enumerate() {
                    assert_eq!(r.page(tree.id, *id)?[32..], *page(1, n as u64).body(), "page {n}");
                }
                Ok(())
            };
            let Err(e) = read_all() else { continue };
            assert!(e.to_string().contains(&*name.to_string_lossy()), "{name:?} is not named: {e}");
            let is_advice = [&profile, &learned].iter().any(|path| path.file_name() == Some(name));
            let harmless = name == "warm" || name == "lock" || is_advice;
            assert!(!harmless, "{name:?} matters: {e}");
        }
    }
}

#[test]
fn misdirected_and_lost_writes_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let tree = made(dir.path());
    let f = stripe(dir.path());
    let mut p = vec![0; 8192];
    f.read_exact_at(&mut p, tree.pages[5].0 * 8192).unwrap();
    f.write_all_at(&p, tree.pages[6].0 * 8192).unwrap();
    f.write_all_at(&[0; 8192], tree.pages[7].0 * 8192).unwrap();
    assert_eq!(damage(dir.path(), &tree, 6, plain()), Damage::WrongPage { found: tree.pages[5] });
    assert!(matches!(damage(dir.path(), &tree, 7, plain()), Damage::Checksum { .. }));
}

#[test]
fn references_to_nowhere_are_damage() {
    let dir = tempfile::tempdir().unwrap();
    let tree = made(dir.path());
    let store = Store::open(dir.path(), plain()).unwrap();
    let mut r = reader(&store);
    for id in [45, 100_000, u64::MAX / 8192, u64::MAX] {
        let e = r.page(tree.id, snowmelt_store::PageId(id)).unwrap_err();
        assert!(matches!(e, StoreError::Damaged { why: Damage::NotAllocated, .. }), "{id}: {e}");
        assert_eq!(r.wish(tree.id, &[snowmelt_store::PageId(id)], WishKind::Planned), 0);
    }
    let other = snowmelt_store::TreeId(77);
    for _ in 0..2 {
        let e = r.page(other, tree.pages[0]).unwrap_err();
        assert!(
            matches!(e, StoreError::Damaged { why: Damage::WrongTree { found: 1, expected: 77 }, .. }),
            "{e}"
        );
        tree.check(&mut r, 0);
    }
}

#[test]
fn truncated_files_do_not_open() {
    let dir = tempfile::tempdir().unwrap();
    let tree = made(dir.path());
    let len = stripe(dir.path()).metadata().unwrap().len();
    stripe(dir.path()).set_len(len - 8192).unwrap();
    match Store::open(dir.path(), plain()).unwrap_err() {
        StoreError::Truncated { path, found, expected } => {
            assert_eq!((path, found, expected), (dir.path().join("stripe-0"), len - 8192, len));
        }
        e => panic!("{e}"),
    }
    std::fs::remove_file(dir.path().join("stripe-0")).unwrap();
    let e = Store::open(dir.path(), plain()).unwrap_err();
    assert!(matches!(e, StoreError::Device { .. }) && e.to_string().contains("stripe-0"), "{e}");
    drop(tree);
}

#[test]
fn truncation_while_open_is_a_read_error() {
    let dir = tempfile::tempdir().unwrap();
    let tree = made(dir.path());
    let store = Store::open(dir.path(), plain()).unwrap();
    stripe(dir.path()).set_len(tree.pages[30].0 * 8192 + 100).unwrap();
    let mut r = reader(&store);
    tree.check(&mut r, 29);
    let e = r.page(tree.id, tree.pages[30]).unwrap_err();
    assert!(matches!(&e, StoreError::Read { page, .. } if *page == tree.pages[30]), "{e}");
    r.wish(tree.id, &tree.pages[28..36], WishKind::Planned);
    assert!(r.page(tree.id, tree.pages[31]).is_err());
}

#[test]
fn what_is_no_database_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let open = |p: &Path| Store::open(p, plain()).unwrap_err();
    assert!(matches!(open(&dir.path().join("nothing")), StoreError::NotADatabase { .. }));
    assert!(matches!(open(dir.path()), StoreError::NotADatabase { .. }));
    assert!(!dir.path().join("lock").exists(), "a failed open leaves nothing behind");
    let db = dir.path().join("db");
    made(&db);
    assert!(matches!(Store::create(&db, &[], plain()), Err(StoreError::Exists { .. })));
    let file = db.join(superblock::FILE_NAME);
    let mut bytes = std::fs::read(&file).unwrap();
    for slot in [0, superblock::SLOT_BYTES] {
        for copy in [0, 65536] {
            let slot = &mut bytes[slot + copy..][..superblock::SLOT_BYTES];
            slot[superblock::offset::FORMAT] = 99;
            let sum = twox_hash::XxHash3_64::oneshot(&slot[8..]);
            slot[..8].copy_from_slice(&sum.to_le_bytes());
        }
    }
    std::fs::write(&file, &bytes).unwrap();
    assert!(matches!(open(&db), StoreError::Format { found: 99, .. }));
}

#[test]
fn one_process_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    made(dir.path());
    let first = Store::open(dir.path(), plain()).unwrap();
    let e = Store::open(dir.path(), plain()).unwrap_err();
    assert!(matches!(&e, StoreError::Locked { .. }) && e.to_string().contains("in use by process"), "{e}");
    // Deleting the lock file lets no process in.
    std::fs::remove_file(dir.path().join("lock")).unwrap();
    let e = Store::open(dir.path(), plain()).unwrap_err();
    let own = format!("in use by process {}", std::process::id());
    assert!(matches!(&e, StoreError::Locked { .. }) && e.to_string().contains(&own), "{e}");
    let e = Store::create(dir.path(), &[], plain()).unwrap_err();
    assert!(matches!(&e, StoreError::Exists { .. } | StoreError::Locked { .. }), "{e}");
    drop(first);
    Store::open(dir.path(), plain()).unwrap();
}

#[test]
fn unwritable_directories_say_so() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    std::fs::create_dir(&db).unwrap();
    std::fs::set_permissions(&db, std::fs::Permissions::from_mode(0o555)).unwrap();
    let made = Store::create(&db, &[], plain());
    if rustix::process::geteuid().is_root() {
        eprintln!("skipped: root may write everywhere");
    } else {
        let e = made.unwrap_err();
        assert!(matches!(&e, StoreError::File { path, .. } if path.starts_with(&db)), "{e}");
    }
    // A file in place of the directory is refused, for root as well.
    let file = dir.path().join("file");
    std::fs::write(&file, b"").unwrap();
    let e = Store::create(&file.join("db"), &[], plain()).unwrap_err();
    assert!(matches!(&e, StoreError::File { .. }) && e.to_string().contains("file/db"), "{e}");
}

#[test]
fn a_torn_super_block_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path(), &[], plain()).unwrap();
    build_tree(&store, "one", 1, 20);
    let before = std::fs::read(dir.path().join(superblock::FILE_NAME)).unwrap();
    let two = build_tree(&store, "one", 2, 20);
    drop(store);
    let after = std::fs::read(dir.path().join(superblock::FILE_NAME)).unwrap();
    // The second commit wrote one slot; put half of what was there before back, in both copies.
    let slot = if before[..8192] == after[..8192] { 8192 } else { 0 };
    let mut torn = after.clone();
    for slot in [slot, slot + 65536] {
        torn[slot + 20..slot + 8192].copy_from_slice(&before[slot + 20..slot + 8192]);
    }
    std::fs::write(dir.path().join(superblock::FILE_NAME), &torn).unwrap();
    let store = Store::open(dir.path(), plain()).unwrap();
    // The state before opens, and the journal has what came after it.
    assert_eq!(store.recovery().commits, 1);
    assert_eq!(store.catalog("one").unwrap(), 2u64.to_le_bytes());
    let mut r = reader(&store);
    (0..20).for_each(|n| two.check(&mut r, n));
}

/// A failed read is told to all who wait for it; afterwards the page is absent and can be read.
#[test]
fn read_errors_reach_every_waiter_and_pass() {
    for cost in [CostModel::nvme(), CostModel::hdd()] {
        for wished in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let mood = Mood::new();
            let rules = ReadAhead { planned: true, ..ReadAhead::none() };
            let c = StoreConfig {
                seams: Seams { devices: Some(mood.wrap(cost)), ..Seams::default() },
                ..config(64, rules)
            };
            let store = Store::create(dir.path(), &[], c.clone()).unwrap();
            let tree = build_tree(&store, "t", 1, 10);
            let store = reopen(dir.path(), store, c);
            let at = tree.pages[4].0 * 8192;
            mood.bad.lock().push(at..at + 1);
            mood.close_gate();
            std::thread::scope(|s| {
                if wished {
                    let mut r = reader(&store);
                    r.wish(tree.id, &tree.pages[3..6], WishKind::Planned);
                }
                let ask = || reader(&store).page(tree.id, tree.pages[4]).map(|_| ());
                let askers: Vec<_> = (0..4).map(|_| s.spawn(ask)).collect();
                std::thread::sleep(std::time::Duration::from_millis(100));
                mood.open_gate();
                for a in askers {
                    let e = a.join().unwrap().unwrap_err();
                    assert!(
                        matches!(&e, StoreError::Read { page, offset, .. } if (*page, *offset) == (tree.pages[4], at)),
                        "{e}"
                    );
                }
            });
            let mut r = reader(&store);
            tree.check(&mut r, 3);
            tree.check(&mut r, 5);
            mood.bad.lock().clear();
            tree.check(&mut r, 4);
        }
    }
}

/// Stops the device at every single write and sync of a build, reopens, and finds the old state
/// or, after the last of them, the new.
#[test]
fn a_build_that_fails_anywhere_leaves_the_old_state() {
    for errno in [libc::EIO, libc::ENOSPC] {
        let mut k = 0;
        loop {
            let dir = tempfile::tempdir().unwrap();
            let mood = Mood::new();
            let c = StoreConfig {
                seams: Seams { devices: Some(mood.wrap(CostModel::nvme())), ..Seams::default() },
                ..plain()
            };
            let store =
                Store::create(dir.path(), &[dir.path().join("a"), dir.path().join("b")], c.clone()).unwrap();
            let old = build_tree(&store, "t", 1, 20);
            mood.errno.store(errno as i64, SeqCst);
            mood.writes_left.store(k, SeqCst);
            let built = try_build_tree(&store, "t", 2, 30);
            let spare = mood.writes_left.swap(-1, SeqCst) > 0;
            if let Err(e) = &built {
                let full = matches!(e, StoreError::Full { .. });
                assert_eq!(full, errno == libc::ENOSPC, "write {k}: {e}");
                // The store that failed to write goes on reading.
                (0..20).for_each(|n| old.check(&mut reader(&store), n));
            }
            let store = reopen(dir.path(), store, c);
            let expected = built.as_ref().unwrap_or(&old);
            assert_eq!(store.catalog("t").unwrap(), expected.seed.to_le_bytes(), "write {k}");
            let mut r = reader(&store);
            (0..expected.pages.len()).for_each(|n| expected.check(&mut r, n));
            drop(r);
            // And it can be built again.
            if built.is_err() {
                let again = build_tree(&store, "t", 3, 30);
                again.check(&mut reader(&store), 29);
            } else if spare {
                assert!(k > 6, "the build wrote and synced more than {k} times");
                break;
            }
            k += 1;
        }
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for f in std::fs::read_dir(from).unwrap() {
        let f: PathBuf = f.unwrap().path();
        std::fs::copy(&f, to.join(f.file_name().unwrap())).unwrap();
    }
}

/// A copy of the files in the middle of a build is what a killed process leaves.
#[test]
fn killed_between_build_and_commit() {
    let dir = tempfile::tempdir().unwrap();
    let (live, dead) = (dir.path().join("live"), dir.path().join("dead"));
    let store = Store::create(&live, &[], plain()).unwrap();
    let old = build_tree(&store, "t", 1, 20);
    let committed = std::fs::metadata(live.join("stripe-0")).unwrap().len();
    let build = store.begin_build().unwrap();
    let mut w = build.new_tree("t");
    for n in 0..50 {
        w.append(&mut page(2, n)).unwrap();
    }
    w.finish().unwrap();
    copy(&live, &dead);
    assert!(std::fs::metadata(dead.join("stripe-0")).unwrap().len() > committed);
    let killed = Store::open(&dead, plain()).unwrap();
    (0..20).for_each(|n| old.check(&mut reader(&killed), n));
    assert_eq!(std::fs::metadata(dead.join("stripe-0")).unwrap().len(), committed, "leftovers are cut off");
    let again = build_tree(&killed, "t", 3, 50);
    again.check(&mut reader(&killed), 49);
    build.commit().unwrap();
}

#[test]
fn small_pools_and_wrong_sizes_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let c = StoreConfig { pool_bytes: Some(4 * 8192), ..plain() };
    assert!(matches!(Store::create(&dir.path().join("a"), &[], c), Err(StoreError::Config(_))));
    let c = StoreConfig { extent_pages: 0, ..plain() };
    assert!(matches!(Store::create(&dir.path().join("b"), &[], c), Err(StoreError::Config(_))));
    let same = dir.path().join("s");
    let e = Store::create(&dir.path().join("c"), &[same.clone(), same], plain()).unwrap_err();
    assert!(e.to_string().contains("twice"), "{e}");
}

#[test]
fn evicted_files_are_out_of_the_page_cache() {
    let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let c = StoreConfig { direct: false, ..plain() };
    let store = Store::create(dir.path(), &[], c).unwrap();
    let tree: Arc<_> = build_tree(&store, "t", 1, 100).into();
    tree.check(&mut reader(&store), 50);
    drop(store);
    match snowmelt_store::cold::cached(dir.path()) {
        Err(e) => return eprintln!("skipped: {e}"),
        Ok(files) => assert!(files.iter().map(|f| f.pages).sum::<u64>() >= 200, "{files:?}"),
    }
    let files = snowmelt_store::cold::evict(dir.path()).unwrap();
    assert!(files.len() >= 2 && files.iter().all(|f| f.pages == 0), "{files:?}");
}

/// When no copy of the newest state is left and the one before it no longer opens, the
/// super-block is blamed, not the file where that shows.
#[test]
fn a_lost_super_block_is_named_and_not_the_stripe() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path(), &[], plain()).unwrap();
    for seed in 1..6 {
        build_tree(&store, "one", seed, 20);
    }
    drop(store);
    let file = dir.path().join(superblock::FILE_NAME);
    let whole = std::fs::read(&file).unwrap();
    let sequence = |slot: usize| u64::from_le_bytes(whole[slot + 32..slot + 40].try_into().unwrap());
    let newest = if sequence(0) > sequence(8192) { 0 } else { 8192 };
    // One copy lost: nothing is.
    for copy in [0, 65536] {
        let mut one = whole.clone();
        one[newest + copy + 100..newest + copy + 612].fill(0xEE);
        std::fs::write(&file, &one).unwrap();
        let store = Store::open(dir.path(), plain()).unwrap();
        assert_eq!(store.catalog("one").unwrap(), 5u64.to_le_bytes());
        drop(store);
        std::fs::write(&file, &whole).unwrap();
    }
    // Both lost, and the journal that would lead from the state before to the newest one.
    let mut both = whole.clone();
    for copy in [0, 65536] {
        both[newest + copy + 100..newest + copy + 612].fill(0xEE);
    }
    std::fs::write(&file, &both).unwrap();
    let stripe = dir.path().join("stripe-0");
    let bytes = std::fs::read(&stripe).unwrap();
    std::fs::write(&stripe, &bytes[..bytes.len() / 4]).unwrap();
    let e = Store::open(dir.path(), plain()).unwrap_err();
    let named = matches!(&e, StoreError::Corrupt { path, .. } if *path == file);
    assert!(named && e.to_string().starts_with(&file.display().to_string()), "{e}");
}
