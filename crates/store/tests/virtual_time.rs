//! The pool on simulated devices in virtual time: planning beats reading on demand where it
//! must, runs repeat exactly, and sixteen clients neither lose a page nor a wake-up.

mod support;

use std::path::Path;
use std::sync::Arc;

use snowmelt_io::{Clock, DeviceModel, IoEngine, QueueConfig, SimulatedDevice};
use snowmelt_io_experiments::PolicyName;
use snowmelt_store::{Activity, DeviceWrap, ReadAhead, Seams, Store, StoreConfig, WishKind};
use support::{Random, TestTree, build_tree, config, reader};

const PAGES: u64 = 2000;

/// A database on disk, made once in real time.
fn database(dir: &Path) -> TestTree {
    let store = Store::create(dir, &[], config(64, ReadAhead::none())).unwrap();
    build_tree(&store, "t", 1, PAGES)
}

fn simulated(
    model: DeviceModel,
    policy: PolicyName,
    frames: u64,
    rules: ReadAhead,
    clock: &Clock,
) -> StoreConfig {
    let device_clock = clock.clone();
    StoreConfig {
        queue: QueueConfig { engine: IoEngine::Uring, policy: policy.policy(), ..QueueConfig::default() },
        seams: Seams {
            devices: Some(DeviceWrap::new(move |_, inner| {
                Ok(Arc::new(SimulatedDevice::new(model.clone(), inner, &device_clock)))
            })),
            clock: clock.clone(),
            ..Seams::default()
        },
        ..config(frames, rules)
    }
}

/// `clients` clients, each reading `batches` batches of 64 random pages; milliseconds of
/// virtual time and what it took.
fn run(dir: &Path, tree: &TestTree, c: StoreConfig, clients: usize, batches: usize) -> (u64, Activity) {
    let clock = c.seams.clock.clone();
    let store = Store::open(dir, c).unwrap();
    let begun = clock.now_ns();
    let tickets = clock.reserve(clients);
    std::thread::scope(|s| {
        for (i, ticket) in tickets.into_iter().enumerate() {
            let store = &store;
            s.spawn(move || {
                let _in_time = ticket.enter();
                let mut random = Random::new(i as u64);
                let mut r = reader(store);
                for _ in 0..batches {
                    let mut batch: Vec<usize> = (0..64).map(|_| random.below(PAGES as usize)).collect();
                    batch.sort_unstable();
                    batch.dedup();
                    let pages: Vec<_> = batch.iter().map(|n| tree.pages[*n]).collect();
                    for (part, ids) in batch.chunks(r.wish_limit()).zip(pages.chunks(r.wish_limit())) {
                        r.wish(tree.id, ids, WishKind::Planned);
                        part.iter().for_each(|n| tree.check(&mut r, *n));
                    }
                }
            });
        }
    });
    ((clock.now_ns() - begun) / 1_000_000, store.activity())
}

fn only_planned() -> ReadAhead {
    ReadAhead { planned: true, ..ReadAhead::none() }
}

#[test]
fn planning_wins_on_a_wide_and_slow_volume() {
    let dir = tempfile::tempdir().unwrap();
    let tree = database(dir.path());
    for (clients, least) in [(1, 8), (16, 1)] {
        let time = |rules| {
            let clock = Clock::virtual_time(2);
            let c = simulated(DeviceModel::wide_slow(), PolicyName::Elevator, 4000, rules, &clock);
            run(dir.path(), &tree, c, clients, 20 / clients.min(10)).0
        };
        let (demand, planned) = (time(ReadAhead::none()), time(only_planned()));
        eprintln!("{clients} clients: on demand {demand} ms, planned {planned} ms");
        // Sixteen clients on demand already keep sixteen requests outstanding; then the
        // volume's 3000 IOPS are the limit, and what planning can still save is what it merges.
        assert!(demand >= least * planned, "{clients} clients: {demand} ms on demand, {planned} ms planned");
    }
}

#[test]
fn extents_win_on_a_disk_while_it_warms() {
    let dir = tempfile::tempdir().unwrap();
    let tree = database(dir.path());
    let time = |rules| {
        let clock = Clock::virtual_time(2);
        let c = simulated(DeviceModel::hdd(), PolicyName::Elevator, 4000, rules, &clock);
        run(dir.path(), &tree, c, 4, 20).0
    };
    let extents = ReadAhead { start_up: true, planned: true, ..ReadAhead::none() };
    let (demand, planned, extent) = (time(ReadAhead::none()), time(only_planned()), time(extents));
    eprintln!("disk: on demand {demand} ms, planned {planned} ms, extents {extent} ms");
    assert!(extent < planned && planned < demand, "{demand} ms, {planned} ms, {extent} ms");
}

#[test]
fn runs_repeat_exactly() {
    let dir = tempfile::tempdir().unwrap();
    let tree = database(dir.path());
    let once = || {
        let clock = Clock::virtual_time(2);
        let c = simulated(DeviceModel::wide_slow(), PolicyName::Elevator, 200, ReadAhead::all(), &clock);
        let (ms, a) = run(dir.path(), &tree, c, 4, 10);
        std::fs::remove_file(dir.path().join("warm")).ok();
        (ms, a)
    };
    assert_eq!(once(), once());
}

#[test]
fn sixteen_clients_on_every_device_with_a_tiny_pool() {
    let dir = tempfile::tempdir().unwrap();
    let tree = database(dir.path());
    for model in [DeviceModel::hdd(), DeviceModel::wide_slow(), DeviceModel::nvme()] {
        for policy in [PolicyName::Fifo, PolicyName::Elevator] {
            for rules in [ReadAhead::none(), ReadAhead::all(), ReadAhead::auto()] {
                let clock = Clock::virtual_time(2);
                let c = simulated(model.clone(), policy, 64, rules, &clock);
                let (_, a) = run(dir.path(), &tree, c, 16, 2);
                assert!(a.spec_disk <= a.disk, "{a}");
            }
        }
    }
}

/// The warm list is read back by a client that plays the background thread, and is there when
/// the others come.
#[test]
fn the_warm_list_in_virtual_time() {
    let dir = tempfile::tempdir().unwrap();
    let tree = database(dir.path());
    let rules = ReadAhead { warm_list: true, planned: true, ..ReadAhead::none() };
    let clock = Clock::virtual_time(2);
    let c = simulated(DeviceModel::wide_slow(), PolicyName::Elevator, 4000, rules, &clock);
    let (cold_ms, cold) = run(dir.path(), &tree, c.clone(), 2, 10);
    let store = Store::open(dir.path(), c).unwrap();
    let begun = clock.now_ns();
    {
        let _in_time = clock.enter();
        while store.step() < 1_000_000_000 {
            clock.sleep_ns(2_000_000);
        }
        clock.sleep_ns(100_000_000);
    }
    let warmed_ms = (clock.now_ns() - begun) / 1_000_000;
    let mut r = reader(&store);
    let mut random = Random::new(0);
    (0..64).for_each(|_| tree.check(&mut r, random.below(PAGES as usize)));
    assert_eq!(r.meters.disk, 0, "what the first client read is back");
    assert!(store.activity().disk <= cold.disk);
    eprintln!("cold {cold_ms} ms, read back in {warmed_ms} ms");
}
