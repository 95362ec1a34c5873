//! A tree of which one half is wanted and of the other a few pages, on a small cloud volume in
//! virtual time: whole extents of the wanted half are read, and single pages of the other.

mod support;

use std::collections::HashSet;
use std::sync::Arc;

use snowmelt_io::{Clock, DeviceModel, SimulatedDevice, VolumeModel};
use snowmelt_store::{Background, DeviceWrap, ReadAhead, Rule, Seams, Store, StoreConfig};
use support::{Random, TestTree, build_tree, config, reader};

const EXTENT_PAGES: u32 = 16;
const EXTENTS: usize = 1024;
const PAGES: usize = EXTENTS * EXTENT_PAGES as usize;
/// One of so many wanted pages is of the second half.
const SPARSE: usize = 16;
const WANTED: usize = PAGES;

/// A volume for which the tree is large: all of it takes some 20 seconds.
fn volume() -> DeviceModel {
    let DeviceModel::Volume(gp3) = DeviceModel::gp3() else { unreachable!("gp3 is a volume") };
    DeviceModel::Volume(VolumeModel { iops: gp3.iops / 20.0, bytes_per_s: gp3.bytes_per_s / 20.0, ..gp3 })
}

/// Reads pages of the tree, nearly all of the first half; returns how many there were.
fn run(tree: &TestTree, store: &Arc<Store>, clock: &Clock) -> usize {
    let _in_time = clock.enter();
    let (mut r, mut random) = (reader(store), Random::new(29));
    let mut wanted = HashSet::new();
    for _ in 0..WANTED {
        let in_half = random.below(PAGES / 2);
        let page = if random.below(SPARSE) == 0 { PAGES / 2 + in_half } else { in_half };
        wanted.insert(page);
        tree.check(&mut r, page);
    }
    clock.sleep_ns(1_000_000_000);
    wanted.len()
}

#[test]
fn whole_extents_of_the_wanted_half_and_pages_of_the_other() {
    let dir = tempfile::tempdir().unwrap();
    let config = |read_ahead| StoreConfig {
        extent_pages: EXTENT_PAGES,
        memory_bytes: 1 << 30,
        ..config(2 * PAGES as u64, read_ahead)
    };
    let store = Store::create(dir.path(), &[], config(ReadAhead::none())).unwrap();
    let tree = build_tree(&store, "t", 1, PAGES as u64);
    drop(store);
    let clock = Clock::virtual_time(2);
    let in_time_of = clock.clone();
    let devices =
        DeviceWrap::new(move |_, file| Ok(Arc::new(SimulatedDevice::new(volume(), file, &in_time_of))));
    let read_ahead = ReadAhead { auto: true, start_up: true, extent: true, ..ReadAhead::none() };
    let config = StoreConfig {
        seams: Seams {
            devices: Some(devices),
            background: Background::Caller,
            clock: clock.clone(),
            ..Seams::default()
        },
        ..config(read_ahead)
    };
    let store = Store::open(dir.path(), config).unwrap();
    let wanted = run(&tree, &store, &clock);
    let ahead = store.tree_stats().into_iter().find(|t| t.name == "t").unwrap().ahead[Rule::StartUp.index()];
    println!("{wanted} pages of {PAGES} were wanted: {ahead:?}");
    // By the mean of the tree 9,045 were read, and 28 % of them used.
    assert!(ahead.used * 2 > wanted as u64, "{ahead:?} of {wanted}");
    assert!(ahead.used * 10 > ahead.issued * 7, "{ahead:?} of {wanted}");
}
