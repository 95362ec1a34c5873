//! Two layers in one transaction: each counts its own commits in a record, and is told of every
//! end.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use snowmelt_base::random::Random;
use snowmelt_database::{
    Database, Layer, LayerState, OpenOptions, Snapshot, States, StoreError, Transaction, Waiter,
};
use snowmelt_io::{FaultRates, FaultyDevice};
use snowmelt_store::DeviceWrap;

/// A layer that keeps one number in a record.
struct Counter<const N: usize> {
    states: States<Count<N>>,
    /// Calls so far: before a commit was appended, when it was sure, when it failed.
    heard: [AtomicU64; 3],
}

#[derive(Debug, PartialEq)]
struct Count<const N: usize> {
    txn: u64,
    value: u64,
}

const NAMES: [&str; 2] = ["one", "two"];

impl<const N: usize> LayerState for Count<N> {
    type Error = StoreError;

    fn read(snapshot: &Snapshot, txn: u64) -> Result<Self, StoreError> {
        let bytes = snapshot.record(NAMES[N]).map(|bytes| bytes.to_vec());
        let value = bytes.map_or(0, |bytes| u64::from_le_bytes(bytes.try_into().unwrap()));
        Ok(Count { txn, value })
    }

    fn txn(&self) -> u64 {
        self.txn
    }
}

/// Its part of a transaction.
struct Counting<const N: usize> {
    layer: Arc<Counter<N>>,
    state: Arc<Count<N>>,
}

impl<const N: usize> Layer for Counting<N> {
    fn append(&mut self) {
        self.layer.states.append(self.state.clone());
        self.layer.heard[0].fetch_add(1, Ordering::Relaxed);
    }

    fn appended(&mut self) {
        self.layer.heard[1].fetch_add(1, Ordering::Relaxed);
    }

    fn failed(&mut self) {
        self.layer.states.forget(self.state.txn);
        self.layer.heard[2].fetch_add(1, Ordering::Relaxed);
    }
}

impl<const N: usize> Counter<N> {
    fn open(database: &Database) -> Arc<Self> {
        let states = States::open(&database.snapshot()).unwrap();
        Arc::new(Counter { states, heard: Default::default() })
    }

    fn add(self: &Arc<Self>, txn: &mut Transaction, more: u64) {
        let number = txn.number();
        let before = match txn.take::<Counting<N>>() {
            Some(left) => left.state,
            None => self.states.appended(&txn.snapshot(), number - 1).unwrap(),
        };
        let value = before.value + more;
        txn.trees().put_record(NAMES[N], 9, &value.to_le_bytes());
        let state = Arc::new(Count { txn: number, value });
        txn.leave(Box::new(Counting { layer: self.clone(), state }));
    }

    fn value(&self, database: &Database) -> u64 {
        let snapshot = database.snapshot();
        let state = self.states.seen_by(&snapshot).unwrap();
        assert_eq!(*state, Count::read(&snapshot, snapshot.txn()).unwrap(), "{}", NAMES[N]);
        state.value
    }

    fn heard(&self) -> [u64; 3] {
        self.heard.each_ref().map(|count| count.load(Ordering::Relaxed))
    }
}

fn options() -> OpenOptions {
    OpenOptions { extent_pages: 8, memory_bytes: 4 << 20, direct: false, ..OpenOptions::default() }
}

fn begin(database: &Database) -> Transaction {
    database.begin_for(&Waiter::PATIENT).unwrap().unwrap()
}

#[test]
fn what_two_layers_do_in_one_transaction_is_one_commit() {
    let dir = tempfile::tempdir().unwrap();
    let mut database = Database::create(&dir.path().join("db"), &[], &options()).unwrap();
    let mut random = Random(snowmelt_base::test_seed(7));
    let mut expected = [0, 0];
    for _ in 0..6 {
        let (one, two) = (Counter::<0>::open(&database), Counter::<1>::open(&database));
        let mut heard = [0, 0];
        for _ in 0..50 {
            let mut txn = begin(&database);
            let mut done = expected;
            let mut is_here = [false, false];
            // A layer joins as often as it likes, in any order.
            for _ in 0..random.below(4) {
                let (layer, more) = (random.below(2) as usize, 1 + random.below(9));
                match layer {
                    0 => one.add(&mut txn, more),
                    _ => two.add(&mut txn, more),
                }
                done[layer] += more;
                is_here[layer] = true;
            }
            if random.below(3) > 0 {
                txn.commit().unwrap();
                expected = done;
                (0..2).for_each(|layer| heard[layer] += u64::from(is_here[layer]));
            }
            assert_eq!([one.value(&database), two.value(&database)], expected);
        }
        assert_eq!([one.heard(), two.heard()], heard.map(|count| [count, count, 0]));
        drop((one, two));
        drop(database);
        database = reopen(&dir.path().join("db"));
    }
}

fn reopen(path: &Path) -> Database {
    Database::open(path, &options()).unwrap()
}

#[test]
fn both_layers_hear_that_a_commit_was_not_appended() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let device: Arc<Mutex<Vec<Arc<FaultyDevice>>>> = Arc::default();
    let devices = device.clone();
    let mut options = options();
    options.seams.journal_devices = Some(DeviceWrap::new(move |_, file| {
        let faulty = Arc::new(FaultyDevice::new(file, FaultRates::default(), 1));
        devices.lock().unwrap().push(faulty.clone());
        Ok(faulty)
    }));
    let database = Database::create(&path, &[], &options).unwrap();
    let (one, two) = (Counter::<0>::open(&database), Counter::<1>::open(&database));
    let mut txn = begin(&database);
    one.add(&mut txn, 1);
    two.add(&mut txn, 2);
    txn.commit().unwrap();
    let rates = FaultRates { write_eio: 1_000_000, ..FaultRates::default() };
    device.lock().unwrap().iter().for_each(|device| device.set_rates(rates));
    // The first is appended, and found not to be durable while the second is under way.
    let mut first = begin(&database);
    one.add(&mut first, 5);
    let first = first.append().unwrap();
    let mut second = begin(&database);
    two.add(&mut second, 5);
    one.add(&mut second, 5);
    first.wait().unwrap_err();
    second.append().unwrap_err();
    assert_eq!([one.heard(), two.heard()], [[3, 2, 1], [2, 1, 1]]);
    assert_eq!([one.value(&database), two.value(&database)], [1, 2]);
    drop(database);
    let database = reopen(&path);
    let (one, two) = (Counter::<0>::open(&database), Counter::<1>::open(&database));
    assert_eq!([one.value(&database), two.value(&database)], [1, 2]);
}
