//! Knowledge of a disk before the first read: the file that an earlier run has left is what the
//! next begins with, and treated like the profile of a probe by all that copies or removes.

mod support;

use std::path::Path;

use snowmelt_io::{CostModel, CostSource, Evidence, Hints, KeptModel, KernelFiles};
use snowmelt_store::{DiskHints, Mode, ReadAhead, Seams, Store, StoreConfig, StoreError, learned_path};
use support::{build_tree, config, reader};

/// On the real device, of which nothing is set.
fn real() -> StoreConfig {
    StoreConfig { seams: Seams { devices: None, ..Seams::default() }, ..config(128, ReadAhead::none()) }
}

/// A model of the disk below a stripe, of a volume slower than any cap of this machine.
fn keep(dir: &Path) -> CostModel {
    let stripe = dir.join("stripe-0");
    let disk = Hints::find(&KernelFiles::real(), &stripe).disk.expect("every file lies on something");
    let cost = CostModel::capped(50_000_000, 7.0, 9e4);
    let model = KeptModel::new(cost, [1.0, 0.5], 40, disk);
    std::fs::write(learned_path(dir, 0, &stripe), model.encode()).unwrap();
    cost
}

fn believed(store: &Store) -> (CostModel, Evidence) {
    let counters = &store.report().devices[0].counters;
    (counters.cost, counters.evidence)
}

#[test]
fn a_store_begins_with_what_an_earlier_run_has_learned() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    drop(Store::create(&db, &[], real()).unwrap());
    assert!(!learned_path(&db, 0, &db.join("stripe-0")).exists(), "nothing was learned");
    let kept = keep(&db);
    for mode in [Mode::ReadWrite, Mode::ReadOnly] {
        let store = Store::open(&db, StoreConfig { mode, ..real() }).unwrap();
        let (cost, evidence) = believed(&store);
        assert_eq!((cost.ns_per_request, cost.bytes_per_s), (kept.ns_per_request, kept.bytes_per_s));
        assert_eq!((evidence.requests_from, evidence.bytes_from), (CostSource::Kept, CostSource::Kept));
        assert_eq!((evidence.requests, evidence.looks), (0.0, 0), "it was not learned here");
    }
    let hidden = Store::open(&db, StoreConfig { hints: DiskHints::Hidden, ..real() }).unwrap();
    assert_ne!(believed(&hidden).1.requests_from, CostSource::Kept);
    drop(hidden);
    let mut set = real();
    set.queue.cost = Some(CostModel::nvme());
    let (cost, evidence) = believed(&Store::open(&db, set).unwrap());
    assert_eq!((cost, evidence.bytes_from), (CostModel::nvme(), CostSource::Set));
}

#[test]
fn what_was_learned_stays_with_its_disk() {
    let dir = tempfile::tempdir().unwrap();
    let (db, copy) = (dir.path().join("db"), dir.path().join("copy"));
    let store = Store::create(&db, &[], real()).unwrap();
    let tree = build_tree(&store, "t", 1, 40);
    keep(&db);
    std::fs::write(db.join("stripe-0.learned.new"), b"cut").unwrap();
    store.backup(&copy, &[], &mut |_| {}).unwrap();
    let names = |dir: &Path| -> Vec<String> {
        let all = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
        all.map(|name| name.into_string().unwrap()).filter(|name| name.contains("learned")).collect()
    };
    assert_eq!(names(&copy), [""; 0], "a copy may lie on another disk");
    drop(store);
    let store = Store::open(&db, real()).unwrap();
    (0..40).for_each(|n| tree.check(&mut reader(&store), n));
    drop(store);
    assert_eq!(names(&db), ["stripe-0.learned"], "what was cut is swept");
    for name in ["x.learned", "stripe-3.learned.new"] {
        let taken = Store::create(&dir.path().join("new"), &[dir.path().join("new").join(name)], real());
        assert!(matches!(taken, Err(StoreError::Config(why)) if why.contains(name)), "{name}");
    }
}

#[test]
fn what_was_not_finished_leaves_nothing_beside_its_stripes() {
    let dir = tempfile::tempdir().unwrap();
    let (db, elsewhere) = (dir.path().join("db"), dir.path().join("elsewhere"));
    std::fs::create_dir(&elsewhere).unwrap();
    for stripe in [elsewhere.join("data"), db.join("stripe-0")] {
        let new = Store::create_unfinished(&db, std::slice::from_ref(&stripe), real()).unwrap();
        std::fs::write(learned_path(&db, 0, &stripe), b"").unwrap();
        drop(new);
        let left = std::fs::read_dir(&elsewhere).unwrap().count();
        assert_eq!((left, db.exists()), (0, false), "{}", stripe.display());
    }
}
