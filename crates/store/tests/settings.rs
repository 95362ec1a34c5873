//! Each setting of I/O changes the behaviour it is called after: by counts, on a simulated volume
//! in virtual time.

mod support;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use snowmelt_io::{Class, Clock, DeviceModel, InPlace, QueueConfig, SimulatedDevice};
use snowmelt_store::{
    Background, DeviceWrap, PageId, ReadAhead, Reader, Rule, Seams, Store, StoreConfig, StoreError,
    TreeStats, Waited, WishKind,
};
use support::{TestTree, build_tree, config, disk, reader};

/// A tree of 200 pages in 25 extents.
struct Bed {
    dir: tempfile::TempDir,
    tree: TestTree,
}

/// It, opened with an empty pool on a simulated device.
struct Opened {
    store: Arc<Store>,
    device: Arc<SimulatedDevice>,
    clock: Clock,
}

impl Bed {
    fn new() -> Bed {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::create(dir.path(), &[], config(64, ReadAhead::none())).unwrap();
        let tree = build_tree(&store, "t", 1, 200);
        Bed { dir, tree }
    }

    fn open(&self, model: DeviceModel, change: impl FnOnce(&mut StoreConfig)) -> Opened {
        let clock = Clock::virtual_time(2);
        let (in_time_of, made) = (clock.clone(), Arc::new(Mutex::new(None)));
        let keep = made.clone();
        let mut c = StoreConfig {
            seams: Seams {
                devices: Some(DeviceWrap::new(move |_, file| {
                    let device = Arc::new(SimulatedDevice::new(model.clone(), file, &in_time_of));
                    *keep.lock().unwrap() = Some(device.clone());
                    Ok(device)
                })),
                background: Background::Caller,
                clock: clock.clone(),
                ..Seams::default()
            },
            ..config(128, ReadAhead::none())
        };
        change(&mut c);
        let store = Store::open(self.dir.path(), c).unwrap();
        let device = made.lock().unwrap().take().unwrap();
        device.reset_counters();
        store.reset_meters();
        Opened { store, device, clock }
    }

    fn pages(&self, numbers: impl IntoIterator<Item = usize>) -> Vec<PageId> {
        numbers.into_iter().map(|n| self.tree.pages[n]).collect()
    }
}

impl Opened {
    fn stats(&self) -> TreeStats {
        self.store.tree_stats().into_iter().find(|t| t.name == "t").unwrap()
    }

    fn issued(&self, rule: Rule) -> u64 {
        self.stats().ahead[rule.index()].issued
    }

    /// Waits until reads under way have arrived.
    fn settle(&self) {
        let _in_time = self.clock.enter();
        self.clock.sleep_ns(10_000_000_000);
        assert_eq!(self.stats().resident, self.stats().reads);
    }

    fn reader(&self) -> Reader {
        reader(&self.store)
    }
}

fn only(f: impl FnOnce(&mut ReadAhead)) -> ReadAhead {
    let mut r = ReadAhead::none();
    f(&mut r);
    r
}

#[test]
fn as_many_misses_as_are_asked_for_bring_the_rest_of_an_extent() {
    let bed = Bed::new();
    for misses in [1, 2, 3] {
        let rules = only(|r| (r.extent, r.extent_misses) = (true, misses));
        let opened = bed.open(DeviceModel::wide_slow(), |c| c.read_ahead = rules);
        let mut r = opened.reader();
        for n in 0..misses {
            assert_eq!(opened.issued(Rule::Extent), 0, "{n} of {misses} misses");
            bed.tree.check(&mut r, 8 + n as usize);
        }
        assert_eq!(opened.issued(Rule::Extent), u64::from(8 - misses));
    }
}

#[test]
fn misses_count_within_their_window() {
    let bed = Bed::new();
    for (window_ms, issued) in [(1_000, 0), (3_000, 6)] {
        let rules = only(|r| (r.extent, r.extent_window_ms) = (true, window_ms));
        let opened = bed.open(DeviceModel::wide_slow(), |c| c.read_ahead = rules);
        let mut r = opened.reader();
        bed.tree.check(&mut r, 8);
        {
            let _in_time = opened.clock.enter();
            opened.clock.sleep_ns(2_000_000_000);
        }
        bed.tree.check(&mut r, 9);
        assert_eq!(opened.issued(Rule::Extent), issued, "two seconds apart, in {window_ms} ms");
    }
}

/// Visits `leaves` pages in order as a scan does; pages read ahead after each.
fn scanned(bed: &Bed, rules: ReadAhead, leaves: usize) -> Vec<u64> {
    let opened = bed.open(DeviceModel::wide_slow(), |c| c.read_ahead = rules);
    let mut r = opened.reader();
    let mut ahead = r.scan_ahead();
    let mut to_come: VecDeque<PageId> = bed.tree.pages.iter().copied().collect();
    let visit = |n| {
        let waits = r.meters.waits;
        let leaf = to_come.pop_front().unwrap();
        ahead.advanced();
        bed.tree.check(&mut r, n);
        ahead.visited(leaf, if r.meters.waits == waits { Waited::No } else { Waited::Yes });
        r.wish(bed.tree.id, &ahead.wishes(&to_come), WishKind::Scan);
        opened.issued(Rule::Scan)
    };
    (0..leaves).map(visit).collect()
}

#[test]
fn a_scan_reads_ahead_after_some_leaves_and_so_far() {
    let bed = Bed::new();
    for after in [1, 2, 5] {
        let issued = scanned(&bed, only(|r| (r.scan, r.scan_after) = (true, after)), 6);
        let begun = issued.iter().position(|n| *n > 0);
        assert_eq!(begun, Some(after as usize - 1), "{issued:?}");
    }
    for most in [4, 20] {
        let issued = scanned(&bed, only(|r| (r.scan, r.scan_leaves) = (true, most)), 100);
        // Of the leaf visited last, and so many beyond it.
        let farthest = issued.iter().enumerate().map(|(n, issued)| *issued as i64 - n as i64).max();
        assert!(farthest <= Some(i64::from(most)), "{most} leaves: {issued:?}");
    }
    let far = |most| scanned(&bed, only(|r| (r.scan, r.scan_leaves) = (true, most)), 20)[19];
    assert!(far(4) < far(20), "{} and {}", far(4), far(20));
}

#[test]
fn a_gap_up_to_its_length_is_read_through() {
    let bed = Bed::new();
    // One page, then two, then three lie between those that are wanted.
    let wished = bed.pages([0, 2, 5, 9]);
    let of_model = DeviceModel::wide_slow().cost(0).gap_bytes();
    assert_eq!(of_model / 8192, 5);
    let pages = |n: u64| Some(n * 8192);
    for (gap, requests, read_through) in
        [(pages(0), 4, 0), (pages(1), 3, 1), (pages(2), 2, 3), (pages(10), 1, 6), (None, 1, 6)]
    {
        let opened = bed.open(DeviceModel::wide_slow(), |c| {
            c.read_ahead = only(|r| r.planned = true);
            c.queue = QueueConfig { gap_bytes: gap, ..QueueConfig::default() };
        });
        let mut r = opened.reader();
        assert_eq!(r.wish(bed.tree.id, &wished, WishKind::Planned), 4);
        opened.settle();
        let counters = &opened.store.device_counters()[0];
        assert_eq!(counters.class(Class::Planned).device_requests, requests, "gap {gap:?}");
        assert_eq!(counters.gap_bytes(), read_through * 8192, "gap {gap:?}");
    }
}

#[test]
fn lone_reads_go_in_place_or_through_the_queue() {
    let bed = Bed::new();
    for (model, by_itself) in [(disk(), 0), (DeviceModel::nvme(), 3)] {
        for (in_place, expected) in [(InPlace::Auto, by_itself), (InPlace::On, 3), (InPlace::Off, 0)] {
            let opened = bed.open(model.clone(), |c| c.queue.in_place = in_place);
            let mut r = opened.reader();
            [3, 100, 50].iter().for_each(|n| bed.tree.check(&mut r, *n));
            let counters = &opened.store.device_counters()[0];
            let demand = counters.class(Class::Demand);
            assert_eq!((demand.requests, demand.in_place), (3, expected), "{in_place:?} on {model:?}");
            assert_eq!(r.meters.disk, 3);
        }
    }
}

/// The rest of an extent comes along whatever way the demanded page goes.
#[test]
fn the_rest_of_an_extent_comes_along_either_way() {
    let bed = Bed::new();
    for model in [disk(), DeviceModel::nvme()] {
        for in_place in InPlace::ALL {
            let opened = bed.open(model.clone(), |c| {
                c.queue.in_place = in_place;
                c.read_ahead = only(|r| r.start_up = true);
            });
            let mut r = opened.reader();
            bed.tree.check(&mut r, 20);
            opened.settle();
            assert_eq!((r.meters.disk, r.meters.spec_disk), (8, 7), "{in_place:?} on {model:?}");
            (16..24).for_each(|n| bed.tree.check(&mut r, n));
            assert_eq!(r.meters.disk, 8);
        }
    }
}

#[test]
fn the_depth_bounds_what_is_outstanding() {
    let bed = Bed::new();
    for (depth, most) in [(Some(1), 1), (Some(5), 5), (None, 14)] {
        let opened = bed.open(DeviceModel::wide_slow(), |c| {
            c.read_ahead = only(|r| r.planned = true);
            c.queue = QueueConfig { depth, gap_bytes: Some(0), ..QueueConfig::default() };
        });
        let mut r = opened.reader();
        assert_eq!(r.wish(bed.tree.id, &bed.pages((0..20).map(|n| 10 * n)), WishKind::Planned), 20);
        opened.settle();
        assert_eq!(opened.device.activity().most_outstanding, most, "depth {depth:?}");
    }
}

#[test]
fn a_stripe_has_as_many_descriptors_as_are_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let c = StoreConfig {
        seams: Seams { background: Background::Caller, ..Seams::default() },
        ..config(64, ReadAhead::none())
    };
    let store = Store::create(dir.path(), &[], StoreConfig { descriptors: 3, ..c.clone() }).unwrap();
    let stripe = dir.path().join("stripe-0").canonicalize().unwrap();
    let open = || {
        let all = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        all.filter(|fd| std::fs::read_link(fd.path()).is_ok_and(|path| path == stripe)).count()
    };
    assert_eq!(open(), 3);
    let tree = build_tree(&store, "t", 1, 50);
    let mut r = reader(&store);
    (0..50).for_each(|n| tree.check(&mut r, n));
    drop(r);
    drop(store);
    for descriptors in [1, 64] {
        let store = Store::open(dir.path(), StoreConfig { descriptors, ..c.clone() }).unwrap();
        assert_eq!(open(), descriptors as usize);
        drop(store);
    }
    for wrong in [0, 65] {
        let refused = Store::open(dir.path(), StoreConfig { descriptors: wrong, ..c.clone() });
        let Err(StoreError::Config(why)) = refused else { panic!("{wrong} descriptors were taken") };
        assert!(why.contains("1 to 64"), "{why}");
    }
}
