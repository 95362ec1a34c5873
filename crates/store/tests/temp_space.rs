//! Temporary space: what is put aside comes back, is counted in classes of its own, and its room
//! is given back.

mod support;

use std::sync::Arc;

use snowmelt_io::{Class, Clock, Device, DeviceModel, SimulatedDevice};
use snowmelt_store::{Background, DeviceWrap, Mode, PAGE_BYTES, Seams, Store, StoreConfig, StoreError};
use support::Random;

/// Extents of 64 KiB, so that a few writes take several.
fn config() -> StoreConfig {
    StoreConfig {
        extent_pages: 8,
        memory_bytes: 4 << 20,
        reserve_bytes: Some(0),
        seams: Seams { background: Background::Caller, ..Seams::default() },
        ..StoreConfig::default()
    }
}

/// A database on two stripes with one commit.
fn database(dir: &std::path::Path) -> Arc<Store> {
    let store = Store::create(dir, &[dir.join("a"), dir.join("b")], config()).unwrap();
    let mut txn = store.begin().unwrap();
    txn.put_record("newest", 0, b"1");
    txn.commit().unwrap();
    store.checkpoint().unwrap();
    store
}

/// Requests and bytes of a class, all stripes together.
fn of_class(store: &Store, class: Class) -> (u64, u64) {
    let counters = store.device_counters();
    let sum = |f: fn(&snowmelt_io::ClassCounters) -> u64| counters.iter().map(|d| f(d.class(class))).sum();
    (sum(|c| c.device_requests), sum(|c| c.bytes))
}

#[test]
fn what_is_put_aside_comes_back_beside_commits_and_checkpoints() {
    let dir = tempfile::tempdir().unwrap();
    let store = database(dir.path());
    let mut random = Random::new(support::seed());
    let spaces = [store.temp_space().unwrap(), store.temp_space().unwrap()];
    let mut parts: Vec<(usize, u64, Vec<u8>)> = Vec::new();
    for round in 0..200u64 {
        let which = random.below(2);
        let bytes: Vec<u8> = (0..random.below(90_000)).map(|_| random.below(256) as u8).collect();
        let (head, body) = bytes.split_at(bytes.len().min(8));
        parts.push((which, spaces[which].append(&[head, body]).unwrap(), bytes));
        let (which, at, bytes) = &parts[random.below(parts.len())];
        assert!(*spaces[*which].read(*at, bytes.len()).unwrap() == bytes[..], "round {round}");
        if round % 10 == 0 {
            let mut txn = store.begin().unwrap();
            txn.put_record("newest", 0, &round.to_le_bytes());
            txn.commit().unwrap();
            store.checkpoint().unwrap();
        }
    }
    for (which, at, bytes) in &parts {
        assert!(*spaces[*which].read(*at, bytes.len()).unwrap() == bytes[..]);
    }
    let mut damage = Vec::new();
    store.check_pages(|e| damage.push(e.to_string()), |_| {});
    assert_eq!(damage, Vec::<String>::new());
}

#[test]
fn its_room_is_given_back() {
    let dir = tempfile::tempdir().unwrap();
    let store = database(dir.path());
    let before = store.stripe_bytes().unwrap();
    let space = store.temp_space().unwrap();
    space.append(&[&vec![1; 3 << 20]]).unwrap();
    assert!(store.stripe_bytes().unwrap() >= before + (3 << 20) - (64 << 10));
    // A killed process leaves its files like this.
    let copy = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(dir.path()).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
    }
    drop(space);
    assert_eq!(store.stripe_bytes().unwrap(), before);
    drop(store);
    for name in ["a", "b"] {
        let path = copy.path().join(name);
        assert!(std::fs::metadata(&path).unwrap().len() > before / 2 + (1 << 20), "the copy has it");
    }
    // The super-block names the stripes by their paths: the copy takes their place.
    std::fs::remove_dir_all(dir.path()).unwrap();
    std::fs::create_dir(dir.path()).unwrap();
    for entry in std::fs::read_dir(copy.path()).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), dir.path().join(entry.file_name())).unwrap();
    }
    let store = Store::open(dir.path(), config()).unwrap();
    assert_eq!(store.stripe_bytes().unwrap(), before);
}

#[test]
fn it_is_counted_in_classes_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let store = database(dir.path());
    store.reset_meters();
    let space = store.temp_space().unwrap();
    let at = space.append(&[&vec![7; 10 * (64 << 10)]]).unwrap();
    assert_eq!(of_class(&store, Class::SpillWrite), (10, 10 * (64 << 10)));
    let three = 3 * PAGE_BYTES;
    assert!(space.read(at + 1, three - 1).unwrap().iter().all(|b| *b == 7));
    assert_eq!(of_class(&store, Class::SpillRead), (1, three as u64));
    let waited = |class| store.report().devices.iter().map(|d| d.waits[class as usize].blocked).sum::<u64>();
    assert_eq!([Class::SpillWrite, Class::SpillRead].map(waited), [10, 1]);
    for class in [Class::Demand, Class::Planned, Class::Speculative, Class::WriteBack] {
        assert_eq!(of_class(&store, class), (0, 0), "{class:?}");
    }
}

#[test]
fn a_database_that_is_only_read_is_not_written_to() {
    let dir = tempfile::tempdir().unwrap();
    drop(database(dir.path()));
    let store = Store::open(dir.path(), StoreConfig { mode: Mode::ReadOnly, ..config() }).unwrap();
    let before = store.stripe_bytes().unwrap();
    let space = store.temp_space().unwrap();
    let at = space.append(&[&vec![3; 1 << 20]]).unwrap();
    assert!(space.read(at + 5, 1000).unwrap().iter().all(|b| *b == 3));
    assert_eq!(store.stripe_bytes().unwrap(), before);
    assert_eq!(of_class(&store, Class::SpillWrite), (0, 0));
}

#[test]
fn a_disk_without_room_refuses_and_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let disk = snowmelt_io::PowerDisk::new(1);
    let opened = disk.clone();
    let files = snowmelt_store::FileOpener::new(move |path, access| opened.open(path, access));
    let config = StoreConfig { seams: Seams { files: Some(files), ..config().seams }, ..config() };
    let store = Store::create(dir.path(), &[dir.path().join("a")], config).unwrap();
    let space = store.temp_space().unwrap();
    let at = space.append(&[&vec![9; 64 << 10]]).unwrap();
    disk.set_capacity(disk.used() + (128 << 10));
    let error = space.append(&[&vec![1; 4 << 20]]).unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }), "{error}");
    assert!(space.read(at, 64 << 10).unwrap().iter().all(|b| *b == 9), "what was there stays");
    disk.set_capacity(u64::MAX);
    let mut txn = store.begin().unwrap();
    txn.put_record("newest", 0, b"2");
    txn.commit().unwrap();
    drop(space);
}

/// The queue has it, not the file system: a modelled device takes the time of its requests.
#[test]
fn it_goes_through_the_queue_of_the_device() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Clock::virtual_time(2);
    let wrap_clock = clock.clone();
    let wrap = DeviceWrap::new(move |_, file| {
        Ok(Arc::new(SimulatedDevice::new(DeviceModel::hdd(), file, &wrap_clock)) as Arc<dyn Device>)
    });
    let config = StoreConfig {
        seams: Seams { devices: Some(wrap), clock: clock.clone(), ..config().seams },
        ..config()
    };
    let store = Store::create(dir.path(), &[dir.path().join("a")], config).unwrap();
    let begun = clock.now_ns();
    let space = store.temp_space().unwrap();
    let at = space.append(&[&vec![7; 1 << 20]]).unwrap();
    let written = clock.now_ns();
    assert!(written - begun > (1 << 20) * 1000 / 200, "the model's rate is below 200 MB/s");
    space.read(at, 1 << 20).unwrap();
    assert!(clock.now_ns() > written);
}
