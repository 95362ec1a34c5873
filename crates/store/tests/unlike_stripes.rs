//! Two stripes of unlike devices, a flash drive and a disk, in virtual time: what is decided for
//! a page is decided by the stripe that it lies on.

mod support;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use snowmelt_io::{Class, Clock, DeviceModel, QueueConfig, SimulatedDevice};
use snowmelt_store::{
    Background, DeviceWrap, PageId, ReadAhead, Rule, Seams, Store, StoreConfig, StoreError, TreeStats,
    Waited, WishKind,
};
use support::{TestTree, build_tree, config, disk, reader};

/// The flash drive first: what was decided by the first stripe for all was wrong for the disk.
const FLASH: usize = 0;
const DISK: usize = 1;

/// A tree of 800 pages in 100 extents, dealt to the two in turn.
struct Bed {
    dir: tempfile::TempDir,
    tree: TestTree,
    clock: Clock,
}

impl Bed {
    fn new() -> Bed {
        let dir = tempfile::tempdir().unwrap();
        let stripes: Vec<PathBuf> = ["a", "b"].map(|name| dir.path().join(name)).into();
        let store = Store::create(&dir.path().join("db"), &stripes, config(64, ReadAhead::none())).unwrap();
        let tree = build_tree(&store, "t", 1, 800);
        Bed { dir, tree, clock: Clock::virtual_time(2) }
    }

    fn open(&self, read_ahead: ReadAhead) -> Arc<Store> {
        let clock = self.clock.clone();
        let models = [DeviceModel::nvme(), disk()];
        let devices = DeviceWrap::new(move |stripe, file| {
            Ok(Arc::new(SimulatedDevice::new(models[stripe].clone(), file, &clock)))
        });
        let c = StoreConfig {
            queue: QueueConfig { gap_bytes: Some(0), ..QueueConfig::default() },
            seams: Seams {
                devices: Some(devices),
                background: Background::Caller,
                clock: self.clock.clone(),
                ..Seams::default()
            },
            ..config(1000, read_ahead)
        };
        let store = Store::open(&self.dir.path().join("db"), c).unwrap();
        store.reset_meters();
        store
    }

    /// The pages of the `n`-th extent of a stripe.
    fn extent(&self, stripe: usize, n: usize) -> Vec<PageId> {
        let first = 8 * (2 * n + stripe);
        (first..first + 8).map(|n| self.tree.pages[n]).collect()
    }

    fn settle(&self, store: &Store) {
        let _in_time = self.clock.enter();
        self.clock.sleep_ns(20_000_000_000);
        assert_eq!(stats(store).resident, stats(store).reads);
    }
}

fn stats(store: &Store) -> TreeStats {
    store.tree_stats().into_iter().find(|t| t.name == "t").unwrap()
}

fn only(f: impl FnOnce(&mut ReadAhead)) -> ReadAhead {
    let mut r = ReadAhead::none();
    f(&mut r);
    r
}

/// On the disk a wished page and the rest of its extent are one request of one class; on the
/// flash drive the rest comes behind.
#[test]
fn extents_are_read_as_their_own_device_likes_it() {
    let bed = Bed::new();
    let store = bed.open(only(|r| (r.planned, r.extent, r.extent_misses) = (true, true, 1)));
    let wished: Vec<PageId> = [FLASH, DISK]
        .into_iter()
        .flat_map(|stripe| [bed.extent(stripe, 3)[2], bed.extent(stripe, 7)[5]])
        .collect();
    let mut wished = wished;
    wished.sort_unstable();
    let mut r = reader(&store);
    assert_eq!(r.wish(bed.tree.id, &wished, WishKind::Planned), 4);
    bed.settle(&store);
    assert_eq!(r.meters.disk, 32, "four extents");
    let counters = store.device_counters();
    let requests = |stripe: usize, class| counters[stripe].class(class).requests;
    assert_eq!((requests(DISK, Class::Planned), requests(DISK, Class::Speculative)), (16, 0));
    assert_eq!(counters[DISK].device_requests(), 2, "one for each extent");
    assert_eq!((requests(FLASH, Class::Planned), requests(FLASH, Class::Speculative)), (2, 14));
}

#[test]
fn a_demanded_page_goes_the_way_of_its_device() {
    let bed = Bed::new();
    let store = bed.open(ReadAhead::none());
    let mut r = reader(&store);
    for n in [0, 8, 17, 25, 33, 40] {
        bed.tree.check(&mut r, n);
    }
    let counters = store.device_counters();
    let demand = |stripe: usize| {
        let class = counters[stripe].class(Class::Demand);
        (class.requests, class.in_place)
    };
    assert_eq!((demand(FLASH), demand(DISK)), ((3, 3), (3, 0)));
}

/// Pages that wait on the warm list of the disk are left to it; the arm is not called away.
/// Those of the flash drive are read at once.
#[test]
fn the_warm_list_of_a_disk_is_left_alone() {
    let bed = Bed::new();
    let rules = only(|r| (r.planned, r.warm_list) = (true, true));
    let store = bed.open(rules.clone());
    let mut r = reader(&store);
    (0..64).for_each(|n| bed.tree.check(&mut r, n));
    drop(r);
    drop(store);
    let store = bed.open(rules);
    let mut r = reader(&store);
    let wished: Vec<PageId> = bed.extent(FLASH, 1).into_iter().chain(bed.extent(DISK, 1)).collect();
    assert_eq!(r.wish(bed.tree.id, &wished, WishKind::Planned), 8, "those of the flash drive");
    let beyond = bed.extent(DISK, 20);
    assert_eq!(r.wish(bed.tree.id, &beyond, WishKind::Planned), 8, "these are on no list");
    bed.settle(&store);
    let counters = store.device_counters();
    assert_eq!([FLASH, DISK].map(|s| counters[s].requests()), [8, 8]);
}

/// A scan is as far ahead on each stripe as its device needs: far on the disk, a few leaves on
/// the flash drive.
#[test]
fn a_scan_is_ahead_as_far_as_each_device_needs() {
    let bed = Bed::new();
    let store = bed.open(only(|r| r.scan = true));
    let geometry = store.geometry();
    let mut r = reader(&store);
    let mut ahead = r.scan_ahead();
    let mut to_come: VecDeque<PageId> = bed.tree.pages.iter().copied().collect();
    let mut farthest = [0, 0];
    let _in_time = bed.clock.enter();
    for n in 0..400 {
        let before = (r.meters.waits, r.meters.disk - r.meters.spec_disk);
        let leaf = to_come.pop_front().unwrap();
        ahead.advanced();
        bed.tree.check(&mut r, n);
        let now = (r.meters.waits, r.meters.disk - r.meters.spec_disk);
        ahead.visited(leaf, if now == before { Waited::No } else { Waited::Yes });
        let wishes = ahead.wishes(&to_come);
        for (stripe, most) in farthest.iter_mut().enumerate() {
            let at = |p: &PageId| bed.tree.pages.iter().position(|q| q == p).unwrap() - n;
            let of_stripe = wishes.iter().filter(|p| geometry.place(**p).stripe == stripe);
            *most = of_stripe.map(at).max().unwrap_or(0).max(*most);
        }
        r.wish(bed.tree.id, &wishes, WishKind::Scan);
        bed.clock.sleep_ns(200_000); // its rows are worked on
    }
    assert!(farthest[DISK] >= 4 * farthest[FLASH], "leaves ahead on flash and disk: {farthest:?}");
    let scan = stats(&store).ahead[Rule::Scan.index()];
    assert!(scan.issued > 380, "{scan:?}");
}

#[test]
fn a_device_for_a_stripe_that_is_not_there_is_refused() {
    let bed = Bed::new();
    let devices = DeviceWrap::new(|_, file| Ok(file)).for_stripes(3);
    let c = StoreConfig {
        seams: Seams { devices: Some(devices), ..Seams::default() },
        ..config(64, ReadAhead::none())
    };
    let refused = Store::open(&bed.dir.path().join("db"), c);
    let Err(StoreError::Config(why)) = refused else { panic!("opened") };
    assert!(why.contains("stripe 2") && why.contains("2: 0 to 1"), "{why}");
}
