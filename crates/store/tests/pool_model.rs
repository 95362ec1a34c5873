//! The pool against its model: whatever is read, in any order, by any number of threads,
//! through any engine and with any rule, is what was written; and what was pinned stays as it
//! is while others come and go.

mod support;

use std::sync::Arc;

use snowmelt_io::{CostModel, IoEngine, QueueConfig};
use snowmelt_io_experiments::{ENGINES, PolicyName};
use snowmelt_store::{PageRef, ReadAhead, Seams, Store, StoreConfig, StoreError, WishKind};
use support::{Mood, Random, TestTree, build_tree, config, page, reader, reopen, seed};

/// Random reads, wishes and held pages by one thread.
fn work(store: &Arc<Store>, trees: &[TestTree], seed: u64, steps: usize) {
    let mut random = Random::new(seed);
    let mut r = reader(store);
    let mut held: Vec<(PageRef, u64, u64)> = Vec::new();
    for _ in 0..steps {
        let tree = &trees[random.below(trees.len())];
        match random.below(10) {
            0 => {
                let from = random.below(tree.pages.len());
                let to = (from + 1 + random.below(40)).min(tree.pages.len());
                let mut wish = tree.pages[from..to].to_vec();
                wish.sort_unstable();
                let kind = if random.below(2) == 0 { WishKind::Planned } else { WishKind::Scan };
                r.wish(tree.id, &wish, kind);
            }
            1 => {
                let n = random.below(tree.pages.len());
                held.push((r.page(tree.id, tree.pages[n]).unwrap(), tree.seed, n as u64));
                if held.len() > 4 {
                    let (p, seed, n) = held.swap_remove(random.below(held.len()));
                    assert_eq!(&p[32..], page(seed, n).body(), "a pinned page changed");
                }
            }
            _ => {
                // Some pages are asked for much more often than others.
                let span = if random.below(3) == 0 { tree.pages.len() } else { tree.pages.len() / 8 + 1 };
                tree.check(&mut r, random.below(span));
            }
        }
    }
    assert!(r.meters.spec_disk <= r.meters.disk);
}

fn run(config: StoreConfig, threads: u64) {
    let seed = seed();
    let dir = tempfile::tempdir().unwrap();
    let stripes = [dir.path().join("s0"), dir.path().join("s1"), dir.path().join("s2")];
    let db = dir.path().join("db");
    let store = Store::create(&db, &stripes, config.clone()).unwrap();
    let trees = [build_tree(&store, "a", 1, 300), build_tree(&store, "b", 2, 77)];
    let store = reopen(&db, store, config);
    std::thread::scope(|s| {
        for t in 0..threads {
            let (store, trees) = (&store, &trees);
            s.spawn(move || work(store, trees, seed.wrapping_add(t), 1500));
        }
    });
    let total = store.activity();
    assert!(total.spec_disk <= total.disk, "{total}");
    let stats = store.tree_stats();
    assert_eq!(stats.iter().map(|t| t.reads).sum::<u64>(), total.disk);
    for t in &stats {
        let a = t.ahead_total();
        assert!(a.used + a.evicted_unused <= a.issued, "{t:?}");
        assert!(t.resident <= t.pages, "{t:?}");
    }
    let resident: u64 = stats.iter().map(|t| t.resident).sum();
    assert!(resident <= store.frames() as u64);
}

fn queue(engine: IoEngine, policy: PolicyName) -> QueueConfig {
    QueueConfig { engine, policy: policy.policy(), ..QueueConfig::default() }
}

#[test]
fn tiny_pool_many_threads_all_rules() {
    run(config(64, ReadAhead::all()), 6);
}

#[test]
fn tiny_pool_without_read_ahead() {
    run(config(64, ReadAhead::none()), 4);
}

#[test]
fn tiny_pool_auto() {
    run(config(64, ReadAhead::auto()), 4);
}

#[test]
fn everything_fits() {
    run(config(1000, ReadAhead::all()), 4);
}

#[test]
fn every_engine_and_order() {
    for engine in ENGINES {
        for policy in PolicyName::ALL {
            run(StoreConfig { queue: queue(engine, policy), ..config(100, ReadAhead::all()) }, 2);
        }
    }
}

#[test]
fn buffered_files() {
    run(StoreConfig { direct: false, ..config(64, ReadAhead::all()) }, 3);
}

#[test]
fn extents_of_one_page() {
    run(StoreConfig { extent_pages: 1, ..config(64, ReadAhead::all()) }, 3);
}

/// A device with an arm gets its demand reads through the queue, whole extents joined to them.
#[test]
fn demand_reads_through_the_queue() {
    let mood = Mood::new();
    run(
        StoreConfig {
            seams: Seams { devices: Some(mood.wrap(CostModel::hdd())), ..Seams::default() },
            ..config(64, ReadAhead::all())
        },
        4,
    );
}

#[test]
fn one_read_serves_all_who_ask() {
    let mood = Mood::new();
    let dir = tempfile::tempdir().unwrap();
    let c = StoreConfig {
        seams: Seams { devices: Some(mood.wrap(CostModel::nvme())), ..Seams::default() },
        ..config(64, ReadAhead::none())
    };
    let store = Store::create(dir.path(), &[], c.clone()).unwrap();
    let tree = build_tree(&store, "a", 1, 10);
    let store = reopen(dir.path(), store, c);
    let before = mood.reads.load(std::sync::atomic::Ordering::SeqCst);
    mood.close_gate();
    std::thread::scope(|s| {
        for _ in 0..5 {
            s.spawn(|| tree.check(&mut reader(&store), 3));
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
        mood.open_gate();
    });
    assert_eq!(mood.reads.load(std::sync::atomic::Ordering::SeqCst) - before, 1);
    // On a busy machine a thread may come so late that it need not wait.
    let total = store.activity();
    assert_eq!((total.disk, total.pages), (1, 5));
    assert!((1..=4).contains(&total.waits), "{}", total.waits);
}

#[test]
fn all_frames_pinned_is_an_error_or_a_wait() {
    let dir = tempfile::tempdir().unwrap();
    let c = StoreConfig { frame_wait_ms: 300, ..config(16, ReadAhead::all()) };
    let store = Store::create(dir.path(), &[], c).unwrap();
    let tree = build_tree(&store, "a", 1, 40);
    let mut r = reader(&store);
    let pin = |r: &mut snowmelt_store::Reader, n: usize| r.page(tree.id, tree.pages[n]).unwrap();
    let mut held: Vec<PageRef> = (0..16).map(|n| pin(&mut r, n)).collect();
    let e = r.page(tree.id, tree.pages[20]).unwrap_err();
    assert!(matches!(e, StoreError::PoolExhausted { frames: 16, .. }), "{e}");
    assert_eq!(r.wish(tree.id, &tree.pages[20..30], WishKind::Planned), 0, "a wish never waits");
    std::thread::scope(|s| {
        let waiter = s.spawn(|| tree.check(&mut reader(&store), 20));
        std::thread::sleep(std::time::Duration::from_millis(50));
        held.pop();
        waiter.join().unwrap();
    });
}

#[test]
fn a_pinned_page_outlives_its_store() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path(), &[], config(64, ReadAhead::none())).unwrap();
    let tree = build_tree(&store, "a", 1, 10);
    let held = reader(&store).page(tree.id, tree.pages[4]).unwrap();
    assert_eq!(Arc::strong_count(&store), 1);
    drop(store);
    assert_eq!(&held[32..], page(1, 4).body());
}

#[test]
fn wishes_are_cut_to_a_quarter_of_the_pool() {
    let dir = tempfile::tempdir().unwrap();
    let only_planned = ReadAhead { planned: true, ..ReadAhead::none() };
    let store = Store::create(dir.path(), &[], config(64, only_planned)).unwrap();
    let tree = build_tree(&store, "a", 1, 100);
    let mut r = reader(&store);
    assert_eq!(r.wish_limit(), 16);
    assert_eq!(r.wish(tree.id, &tree.pages, WishKind::Planned), 16);
    assert_eq!(r.wish(tree.id, &tree.pages[..16], WishKind::Planned), 0, "they are here or on their way");
    (0..16).for_each(|n| tree.check(&mut r, n));
    assert_eq!((r.meters.disk, r.meters.spec_disk), (16, 16));
    assert!(!r.resident(tree.id));
}

#[test]
fn a_tree_that_fits_becomes_resident() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path(), &[], config(64, ReadAhead::none())).unwrap();
    let (a, b) = (build_tree(&store, "a", 1, 20), build_tree(&store, "b", 2, 20));
    let mut r = reader(&store);
    (0..20).for_each(|n| a.check(&mut r, n));
    assert!(r.resident(a.id) && !r.resident(b.id));
    r.touch(a.id, 199);
    let stats = store.tree_stats();
    let a = stats.iter().find(|t| t.name == "a").unwrap();
    assert_eq!((a.reads, a.resident, a.pages, a.touches, a.read_percent()), (20, 20, 20, 199, 10));
}
