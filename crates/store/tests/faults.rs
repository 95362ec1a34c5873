//! Whatever a device does to the bytes, a reader gets the page that was written or a typed error.

mod support;

use std::sync::Arc;

use parking_lot::Mutex;
use snowmelt_io::{FaultRates, FaultyDevice};
use snowmelt_store::{DeviceWrap, ReadAhead, Seams, Store, StoreConfig, StoreError, WishKind};
use support::{Random, build_tree, config, page, reader, seed, try_build_tree};

type Faulty = Arc<Mutex<Option<Arc<FaultyDevice>>>>;

fn faulty(rates: FaultRates, seed: u64, rules: ReadAhead) -> (StoreConfig, Faulty) {
    let slot: Faulty = Arc::default();
    let shared = slot.clone();
    let wrap = DeviceWrap::new(move |_, inner| {
        let device = Arc::new(FaultyDevice::new(inner, rates, seed));
        *shared.lock() = Some(device.clone());
        Ok(device)
    });
    (StoreConfig { seams: Seams { devices: Some(wrap), ..Seams::default() }, ..config(64, rules) }, slot)
}

#[test]
fn reads_are_right_or_typed_errors() {
    let seed = seed();
    for (i, rules) in [ReadAhead::none(), ReadAhead::all(), ReadAhead::auto()].into_iter().enumerate() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::create(dir.path(), &[], config(64, ReadAhead::none())).unwrap();
        let tree = build_tree(&store, "t", 1, 200);
        drop(store);
        let (c, slot) = faulty(FaultRates::default(), seed + i as u64, rules);
        let store = Store::open(dir.path(), c).unwrap();
        let device = slot.lock().clone().unwrap();
        let often = 30_000;
        device.set_rates(FaultRates {
            read_eio: often,
            short: often,
            bit_rot: often / 4,
            misdirected: often,
            ..Default::default()
        });
        let mut r = reader(&store);
        let mut random = Random::new(seed);
        let (mut right, mut wrong) = (0, 0);
        for _ in 0..1500 {
            let n = random.below(200);
            if random.below(8) == 0 {
                r.wish(tree.id, &tree.pages[n..(n + 10).min(200)], WishKind::Planned);
            }
            match r.page(tree.id, tree.pages[n]) {
                Ok(p) => {
                    assert_eq!(&p[32..], page(1, n as u64).body());
                    right += 1;
                }
                Err(StoreError::Damaged { page, .. } | StoreError::Read { page, .. }) => {
                    assert_eq!(page, tree.pages[n]);
                    wrong += 1;
                }
                Err(e) => panic!("{e}"),
            }
        }
        eprintln!("{right} right, {wrong} errors, {} faults", device.faults().len());
        assert!(right > 100 && wrong > 0);
    }
}

#[test]
fn builds_over_a_faulty_device_are_right_or_typed_errors() {
    let seed = seed();
    for i in 0..20 {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::create(dir.path(), &[], config(64, ReadAhead::none())).unwrap();
        let old = build_tree(&store, "t", 1, 60);
        drop(store);
        let often = 60_000;
        let rates = FaultRates {
            write_eio: often,
            sync_eio: often,
            short: often,
            torn: often,
            lost: often,
            misdirected: often,
            ..Default::default()
        };
        let (c, slot) = faulty(FaultRates::default(), seed + i, ReadAhead::none());
        let store = Store::open(dir.path(), c).unwrap();
        slot.lock().clone().unwrap().set_rates(rates);
        let built = try_build_tree(&store, "t", 2, 60);
        slot.lock().clone().unwrap().set_rates(FaultRates::default());
        drop(store);
        // A fault that says nothing may have hit any extent, the old ones too (misdirected):
        // then their pages say so.
        let store = match Store::open(dir.path(), config(64, ReadAhead::none())) {
            Ok(store) => store,
            Err(StoreError::Damaged { .. } | StoreError::Corrupt { .. } | StoreError::Truncated { .. }) => {
                continue;
            }
            Err(e) => panic!("{e}"),
        };
        let tree = built.as_ref().unwrap_or(&old);
        assert_eq!(store.catalog("t").unwrap(), tree.seed.to_le_bytes());
        let mut r = reader(&store);
        for n in 0..60 {
            match r.page(tree.id, tree.pages[n]) {
                Ok(p) => assert_eq!(&p[32..], page(tree.seed, n as u64).body()),
                Err(e) => assert!(e.is_damage(), "{e}"),
            }
        }
    }
}
