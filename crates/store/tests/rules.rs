//! Each read-ahead rule is seen to act when it is on and not when it is off, and is counted.

mod support;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use snowmelt_io::CostModel;
use snowmelt_store::{
    AheadStats, Background, FirstUses, PAGE_BYTES, PageId, ReadAhead, Reader, Rule, Seams, Store,
    StoreConfig, TreeStats, Waited, WishKind,
};
use support::{Mood, TestTree, build_tree, config, reader, reopen};

struct Bed {
    store: Arc<Store>,
    tree: TestTree,
    dir: tempfile::TempDir,
    config: StoreConfig,
}

/// A tree of 200 pages in 25 extents, reopened with an empty pool.
fn bed(frames: u64, read_ahead: ReadAhead) -> Bed {
    bed_on(frames, read_ahead, CostModel::nvme())
}

fn bed_on(frames: u64, read_ahead: ReadAhead, cost: CostModel) -> Bed {
    let dir = tempfile::tempdir().unwrap();
    let c = StoreConfig {
        seams: Seams {
            devices: Some(Mood::new().wrap(cost)),
            background: Background::Caller,
            ..Seams::default()
        },
        ..config(frames, read_ahead)
    };
    let store =
        Store::create(dir.path(), &[], StoreConfig { read_ahead: ReadAhead::none(), ..c.clone() }).unwrap();
    let tree = build_tree(&store, "t", 1, 200);
    let store = reopen(dir.path(), store, c.clone());
    Bed { store, tree, dir, config: c }
}

impl Bed {
    fn stats(&self) -> TreeStats {
        self.store.tree_stats().into_iter().find(|t| t.name == "t").unwrap()
    }
    fn ahead(&self, rule: Rule) -> AheadStats {
        self.stats().ahead[rule.index()]
    }
    /// Waits until reads under way have arrived.
    fn settle(&self) {
        for _ in 0..2000 {
            if self.stats().resident == self.stats().reads {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("reads never arrived: {:?}", self.stats());
    }
}

fn only(f: impl FnOnce(&mut ReadAhead)) -> ReadAhead {
    let mut r = ReadAhead::none();
    f(&mut r);
    r
}

fn spec_is_part_of_disk(r: &Reader) {
    assert!(r.meters.spec_disk <= r.meters.disk, "{}", r.meters);
}

#[test]
fn start_up_reads_whole_extents_until_the_pool_was_full() {
    let b = bed(64, only(|r| r.start_up = true));
    let mut r = reader(&b.store);
    b.tree.check(&mut r, 8);
    b.settle();
    assert_eq!(b.ahead(Rule::StartUp), AheadStats { issued: 7, used: 0, evicted_unused: 0 });
    assert_eq!((r.meters.disk, r.meters.spec_disk), (8, 7));
    (9..16).for_each(|n| b.tree.check(&mut r, n));
    assert_eq!(b.ahead(Rule::StartUp).used, 7);
    assert_eq!(r.meters.disk, 8, "the rest of the extent was there");
    (16..200).for_each(|n| b.tree.check(&mut r, n));
    let issued = b.ahead(Rule::StartUp).issued;
    assert_eq!(issued, 7 * 8, "64 frames take 8 extents, then the rule rests");
    spec_is_part_of_disk(&r);
}

#[test]
fn after_a_reset_only_what_is_read_afterwards_counts() {
    let b = bed(64, only(|r| r.start_up = true));
    let mut r = reader(&b.store);
    b.tree.check(&mut r, 8);
    b.settle();
    b.store.reset_meters();
    (9..16).for_each(|n| b.tree.check(&mut r, n));
    assert_eq!(b.ahead(Rule::StartUp), AheadStats::default(), "these pages were read before");
    b.tree.check(&mut r, 16);
    let stats = (0..2000)
        .map(|_| b.stats())
        .inspect(|_| std::thread::sleep(Duration::from_millis(1)))
        .find(|s| s.resident == 16)
        .expect("the reads arrive");
    assert_eq!((stats.reads, stats.ahead[Rule::StartUp.index()].issued), (8, 7));
    b.tree.check(&mut r, 17);
    assert_eq!(b.ahead(Rule::StartUp), AheadStats { issued: 7, used: 1, evicted_unused: 0 });
    assert_eq!(r.meters.disk, 16, "the reader tells all it did");
    drop(r);
    let all = b.store.activity();
    assert_eq!((all.disk, all.spec_disk), (8, 7), "the store what was done since: {all}");
}

#[test]
fn second_miss_of_an_extent_reads_the_rest() {
    let b = bed(64, only(|r| r.extent = true));
    let mut r = reader(&b.store);
    b.tree.check(&mut r, 8);
    assert_eq!(b.ahead(Rule::Extent).issued, 0);
    b.tree.check(&mut r, 11);
    b.settle();
    assert_eq!(b.ahead(Rule::Extent).issued, 6);
    assert_eq!((r.meters.disk, r.meters.spec_disk), (8, 6));
}

#[test]
fn misses_outside_the_window_do_not_count() {
    let b = bed(
        64,
        only(|r| {
            r.extent = true;
            r.extent_window_ms = 30;
        }),
    );
    let mut r = reader(&b.store);
    b.tree.check(&mut r, 8);
    std::thread::sleep(Duration::from_millis(60));
    b.tree.check(&mut r, 11);
    assert_eq!(b.ahead(Rule::Extent).issued, 0);
    b.tree.check(&mut r, 12);
    b.settle();
    assert_eq!(b.ahead(Rule::Extent).issued, 5);
}

#[test]
fn planned_pages_are_exactly_those_wished_for() {
    let b = bed(64, only(|r| r.planned = true));
    let mut r = reader(&b.store);
    let wish: Vec<_> = [3, 50, 51, 120].iter().map(|n| b.tree.pages[*n]).collect();
    assert_eq!(r.wish(b.tree.id, &wish, WishKind::Scan), 0, "the scan rule is off");
    assert_eq!(r.wish(b.tree.id, &wish, WishKind::Planned), 4);
    b.settle();
    b.tree.check(&mut r, 50);
    b.tree.check(&mut r, 50);
    assert_eq!(b.ahead(Rule::Planned), AheadStats { issued: 4, used: 1, evicted_unused: 0 });
    assert_eq!((r.meters.disk, r.meters.spec_disk), (4, 4));
}

#[test]
fn each_page_that_is_used_is_in_the_record_once_however_it_came() {
    let uses = Arc::new(FirstUses::default());
    let mut b = bed(64, only(|r| (r.planned, r.extent) = (true, true)));
    let c = StoreConfig {
        seams: Seams { first_uses: Some(uses.clone()), ..b.config.clone().seams },
        ..b.config.clone()
    };
    b.store = reopen(b.dir.path(), b.store, c);
    let mut r = reader(&b.store);
    // Planned, and with them the rest of their extent; one that is waited for; one never used.
    let wish: Vec<_> = [16, 18, 50, 120].iter().map(|n| b.tree.pages[*n]).collect();
    r.wish(b.tree.id, &wish, WishKind::Planned);
    b.settle();
    for n in [16, 17, 18, 16] {
        b.tree.check(&mut r, n);
    }
    // Pages that were read before a reset of the meters are used after it.
    b.store.reset_meters();
    for n in [19, 50, 90, 90, 50] {
        b.tree.check(&mut r, n);
    }
    let recorded = uses.take();
    let mut places: Vec<u64> = recorded.iter().map(|u| u.offset / PAGE_BYTES as u64).collect();
    places.sort_unstable();
    let first = places[0];
    let apart: Vec<u64> = places.iter().map(|place| place - first).collect();
    assert_eq!(apart, [0, 1, 2, 3, 34, 74], "pages 16 to 19, 50 and 90");
    assert!(recorded.is_sorted_by_key(|u| u.at_ns) && uses.take().is_empty());
}

#[test]
fn wished_pages_count_as_misses_of_their_extents() {
    for cost in [CostModel::nvme(), CostModel::hdd()] {
        let b = bed_on(64, only(|r| (r.planned, r.extent) = (true, true)), cost);
        let mut r = reader(&b.store);
        let wish = [b.tree.pages[16], b.tree.pages[18], b.tree.pages[30]];
        assert_eq!(r.wish(b.tree.id, &wish, WishKind::Planned), 3);
        b.settle();
        assert_eq!((b.ahead(Rule::Planned).issued, b.ahead(Rule::Extent).issued), (3, 6));
        (16..24).for_each(|n| b.tree.check(&mut r, n));
        assert_eq!(r.meters.disk, 9);
    }
}

#[test]
fn on_a_disk_an_extent_is_one_device_request() {
    let b = bed_on(64, only(|r| r.start_up = true), CostModel::hdd());
    let mut r = reader(&b.store);
    b.tree.check(&mut r, 20);
    b.settle();
    let requests: u64 = b.store.device_counters()[0].classes.iter().map(|c| c.device_requests).sum();
    assert_eq!((r.meters.disk, r.meters.spec_disk, requests), (8, 7, 1));
}

/// Visits the first `leaves` pages in order, reading ahead as scans do.
fn scan(b: &Bed, r: &mut Reader, leaves: usize) {
    let mut ahead = r.scan_ahead();
    let mut to_come: VecDeque<PageId> = b.tree.pages.iter().copied().collect();
    for n in 0..leaves {
        let before = (r.meters.disk - r.meters.spec_disk, r.meters.waits);
        let leaf = to_come.pop_front().unwrap();
        ahead.advanced();
        b.tree.check(r, n);
        let now = (r.meters.disk - r.meters.spec_disk, r.meters.waits);
        ahead.visited(leaf, if before == now { Waited::No } else { Waited::Yes });
        let wishes = ahead.wishes(&to_come);
        r.wish(b.tree.id, &wishes, WishKind::Scan);
    }
}

#[test]
fn a_scan_stays_ahead_of_its_consumer() {
    let b = bed(128, only(|r| r.scan = true));
    let mut r = reader(&b.store);
    scan(&b, &mut r, 200);
    let scan = b.ahead(Rule::Scan);
    assert!(scan.issued >= 190 && scan.used == scan.issued, "{scan:?}");
    assert_eq!(r.meters.disk, 200, "each leaf is read once");
    spec_is_part_of_disk(&r);
}

#[test]
fn without_rules_every_page_is_read_on_demand() {
    let b = bed(64, ReadAhead::none());
    let mut r = reader(&b.store);
    r.wish(b.tree.id, &b.tree.pages[..10], WishKind::Planned);
    r.wish(b.tree.id, &b.tree.pages[..10], WishKind::Scan);
    (0..20).for_each(|n| b.tree.check(&mut r, n));
    assert_eq!((r.meters.disk, r.meters.spec_disk), (20, 0));
    assert_eq!(b.stats().ahead_total(), AheadStats::default());
    assert_eq!(r.scan_ahead().most(), 0);
}

#[test]
fn the_warm_list_brings_back_what_was_used() {
    let b = bed(64, only(|r| r.warm_list = true));
    let mut r = reader(&b.store);
    for n in [5, 77, 78, 150] {
        b.tree.check(&mut r, n);
    }
    drop(r);
    let store = reopen(b.dir.path(), b.store, b.config.clone());
    let b = Bed { store, ..b };
    b.store.step();
    b.settle();
    assert_eq!(b.ahead(Rule::Warm).issued, 4);
    let mut r = reader(&b.store);
    [5, 77, 78, 150].iter().for_each(|n| b.tree.check(&mut r, *n));
    assert_eq!(r.meters.disk, 0);
    assert_eq!(b.ahead(Rule::Warm).used, 4);
    drop(r);
    // Switched off, the list stays unread.
    let off = StoreConfig { read_ahead: ReadAhead::none(), ..b.config.clone() };
    let b = Bed { store: reopen(b.dir.path(), b.store, off), ..b };
    b.store.step();
    assert_eq!(b.stats().reads, 0);
}

#[test]
fn the_warm_list_never_evicts() {
    let b = bed(64, only(|r| r.warm_list = true));
    let mut r = reader(&b.store);
    (0..64).for_each(|n| b.tree.check(&mut r, n));
    drop(r);
    let store = reopen(b.dir.path(), b.store, b.config.clone());
    let mut r = reader(&store);
    (100..164).for_each(|n| b.tree.check(&mut r, n));
    store.step();
    (100..164).for_each(|n| b.tree.check(&mut r, n));
    assert_eq!(r.meters.disk, 64, "what was demanded first stays");
}

#[test]
fn a_thread_does_the_background_work() {
    let mut b = bed(64, only(|r| r.warm_list = true));
    let mut r = reader(&b.store);
    (0..10).for_each(|n| b.tree.check(&mut r, n));
    drop(r);
    b.config.seams.background = Background::Thread;
    let store = reopen(b.dir.path(), b.store, b.config.clone());
    let b = Bed { store, ..b };
    for _ in 0..2000 {
        if b.stats().resident == 10 {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("nothing came: {:?}", b.stats());
}

#[test]
fn dead_guesses_are_counted_and_leave_first() {
    let b = bed(64, only(|r| r.start_up = true));
    let mut r = reader(&b.store);
    // One page of each extent until the pool is full of guesses, then single pages.
    (0..8).for_each(|e| b.tree.check(&mut r, e * 8));
    b.settle();
    assert_eq!(b.stats().resident, 64);
    (8..24).for_each(|e| b.tree.check(&mut r, e * 8));
    assert_eq!(b.ahead(Rule::StartUp).evicted_unused, 16, "guesses leave before what was used");
    let disk = r.meters.disk;
    (0..24).for_each(|e| b.tree.check(&mut r, e * 8));
    assert_eq!(r.meters.disk, disk);
}

/// Pages that `auto` reads on three devices when an extent is missed at start-up, with room for
/// everything.
#[test]
fn auto_reads_extents_where_the_device_likes_it() {
    let issued = |cost| {
        let b = bed_on(1000, ReadAhead { warm_list: false, ..ReadAhead::auto() }, cost);
        let mut r = reader(&b.store);
        b.tree.check(&mut r, 8);
        b.settle();
        b.ahead(Rule::StartUp).issued
    };
    assert_eq!(issued(CostModel::hdd()), 7);
    assert_eq!(issued(CostModel::network()), 7);
    // One client waits alone here: each page that will be wanted saves it a whole latency, also
    // on flash, and nothing has to leave.
    let flash = CostModel { ns_per_request: 100, ..CostModel::nvme() };
    assert_eq!(issued(flash), 7);
}

/// A miss before the list has come to the page's extent takes the extent's listed pages along, and
/// only these.
#[test]
fn a_miss_takes_the_listed_pages_of_its_extent_along() {
    for cost in [CostModel::nvme(), CostModel::hdd()] {
        let b = bed_on(64, only(|r| (r.warm_list, r.start_up) = (true, true)), cost);
        let mut r = reader(&b.store);
        for n in [5, 74, 77, 78, 150] {
            b.tree.check(&mut r, n);
        }
        drop(r);
        let b = Bed { store: reopen(b.dir.path(), b.store, b.config.clone()), ..b };
        let mut r = reader(&b.store);
        b.tree.check(&mut r, 77);
        b.settle();
        assert_eq!((b.ahead(Rule::Warm).issued, b.ahead(Rule::StartUp).issued), (2, 0));
        b.store.step();
        b.settle();
        assert_eq!((b.ahead(Rule::Warm).issued, b.stats().reads), (4, 5));
    }
}

/// Pages that the list brings soon in the device's order do not call an arm away; without an arm
/// nothing is gained by waiting for the list.
#[test]
fn with_an_arm_only_what_is_not_on_the_list_is_planned() {
    for (cost, planned) in [(CostModel::hdd(), 1), (CostModel::nvme(), 2)] {
        let b = bed_on(64, only(|r| (r.warm_list, r.planned) = (true, true)), cost);
        let mut r = reader(&b.store);
        for n in [5, 77, 78, 150] {
            b.tree.check(&mut r, n);
        }
        drop(r);
        let b = Bed { store: reopen(b.dir.path(), b.store, b.config.clone()), ..b };
        let mut r = reader(&b.store);
        let (unlisted, listed) = (b.tree.pages[20], b.tree.pages[77]);
        assert_eq!(r.wish(b.tree.id, &[unlisted, listed], WishKind::Planned), planned);
        b.settle();
        // Planned, 77 takes along what the list has of its extent.
        let along = planned - 1;
        assert_eq!((b.ahead(Rule::Planned).issued, b.ahead(Rule::Warm).issued), (planned, along));
        b.store.step();
        b.settle();
        assert_eq!((b.ahead(Rule::Warm).issued, b.stats().reads), (5 - planned, 5));
        [20, 77].iter().for_each(|n| b.tree.check(&mut r, *n));
        assert_eq!(b.stats().reads, 5, "nothing that was wished for is missed");
    }
}
