//! Databases published to object stores: a reader sees a state that was committed, all of it, and
//! none before the publication; a publication sends what has changed, and nothing twice.

#[path = "support/cuts_change.rs"]
mod change;
#[path = "support/cuts_model.rs"]
mod model;
mod support;

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use std::sync::Arc;
use std::time::Duration;

use model::{Model, NUMBER, number_in};
use parking_lot::Mutex;
use snowmelt_io::{
    Answer, Ask, Clock, Done, ExtentCache, FaultyObjects, MemoryObjects, ObjectError, ObjectErrorKind,
    ObjectFaultRates, ObjectTimes, Objects, Ongoing, Patience, PatientObjects, PowerDisk, PutIf,
    TimedObjects, ask,
};
use snowmelt_store::{PublishProgress, Published, Publisher, Store, StoreError};
use support::{Random, seed, tiny};

/// A database on a small disk, with the model of each of its commits.
struct Written {
    dir: tempfile::TempDir,
    disk: PowerDisk,
    random: Random,
    store: Option<Arc<Store>>,
    states: BTreeMap<u64, Model>,
}

impl Written {
    fn new(seed: u64) -> Written {
        let (dir, disk) = (tempfile::tempdir().unwrap(), PowerDisk::new(seed));
        let store = Store::create(dir.path(), &[], tiny(&disk)).unwrap();
        let states = [(0, Model::default())].into();
        Written { dir, disk, random: Random::new(seed), store: Some(store), states }
    }

    fn store(&self) -> &Arc<Store> {
        self.store.as_ref().unwrap()
    }

    fn newest(&self) -> &Model {
        self.states.values().next_back().unwrap()
    }

    /// Some commits and checkpoints; now and then a load or another opening.
    fn work(&mut self) {
        for _ in 0..1 + self.random.below(6) {
            match self.random.below(12) {
                0 => self.load(),
                1 => drop(self.store().checkpoint().unwrap()),
                2 | 3 => {
                    self.store().step();
                }
                4 => self.reopen(),
                _ => self.commit(),
            }
        }
    }

    fn commit(&mut self) {
        let mut next = self.newest().clone();
        let number = next.number() + 1;
        let store = self.store().clone();
        let mut txn = store.begin().unwrap();
        for _ in 0..1 + self.random.below(8) {
            change::change(&mut self.random, &mut txn, &mut next).unwrap();
        }
        txn.put_record(NUMBER, 1, &change::number(&mut next, number));
        txn.commit().unwrap();
        self.states.insert(number, next);
    }

    fn load(&mut self) {
        let mut next = self.newest().clone();
        let number = next.number() + 1;
        let store = self.store().clone();
        let build = store.begin_build().unwrap();
        if let Some(build) = change::load(&mut self.random, build, &store, &mut next, number).unwrap() {
            build.commit().unwrap();
            self.states.insert(number, next);
        }
    }

    fn reopen(&mut self) {
        drop(self.store.take());
        self.store = Some(Store::open(self.dir.path(), tiny(&self.disk)).unwrap());
    }
}

fn objects() -> Arc<MemoryObjects> {
    Arc::new(MemoryObjects::new("memory://test"))
}

fn go_on(_: PublishProgress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Opens what is published, as a reader on another machine.
fn open(objects: &Arc<MemoryObjects>) -> Result<Arc<Store>, StoreError> {
    Published::find(objects.clone(), &Clock::real())?.open(None, tiny(&PowerDisk::new(1)))
}

/// Keys that begin with `prefix`.
fn keys(objects: &MemoryObjects, prefix: &str) -> Vec<String> {
    let list = Ask::List { prefix: prefix.into(), after: None, most: usize::MAX };
    match ask(objects, &Clock::real(), list).unwrap() {
        Answer::Listed(list) => list.iter().map(|listed| listed.key.to_string()).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_reader_sees_a_committed_state_whole() {
    snowmelt_io::set_notice(|_| {});
    let first = seed();
    for seed in first..first + 24 {
        let mut written = Written::new(seed);
        let objects = objects();
        for _ in 0..8 {
            written.work();
            let least = written.newest().number();
            let mut publisher = Publisher::begin(written.store().clone(), objects.clone()).unwrap();
            // Commits and checkpoints go on meanwhile.
            let told = |_| {
                match written.random.below(6) {
                    0 | 1 => written.commit(),
                    2 => drop(written.store().checkpoint().unwrap()),
                    _ => {}
                }
                ControlFlow::Continue(())
            };
            publisher.publish(told).unwrap_or_else(|e| panic!("SNOWMELT_SEED={seed}: {e}"));
            drop(publisher);
            let reader = open(&objects).unwrap_or_else(|e| panic!("SNOWMELT_SEED={seed}: {e}"));
            let snapshot = reader.snapshot();
            let number = number_in(&snapshot);
            assert!(number >= least, "SNOWMELT_SEED={seed}: commit {number}, and {least} was durable before");
            let compared = written.states[&number].compare(&reader, &snapshot);
            compared.unwrap_or_else(|why| panic!("SNOWMELT_SEED={seed}: commit {number}: {why}"));
            assert!(matches!(reader.begin(), Err(StoreError::ReadOnly { .. })));
        }
    }
}

/// Counts the puts of extents that were let through; a shared number of them may pass.
struct Counted {
    inner: MemoryObjects,
    extents: Mutex<Vec<String>>,
    left: Mutex<usize>,
}

impl Counted {
    fn new(left: usize) -> Arc<Counted> {
        let (extents, left) = (Mutex::default(), Mutex::new(left));
        Arc::new(Counted { inner: MemoryObjects::new("memory://counted"), extents, left })
    }

    fn extents(&self) -> usize {
        let mut keys = self.extents.lock().clone();
        let sent = keys.len();
        keys.sort();
        keys.dedup();
        assert_eq!(sent, keys.len(), "an extent is sent once");
        sent
    }
}

impl Objects for Counted {
    fn name(&self) -> &Arc<str> {
        self.inner.name()
    }

    fn begin(&self, ask: Ask, done: Done) -> Ongoing {
        if let Ask::Put { key, .. } = &ask
            && key.starts_with("extents/")
        {
            let mut left = self.left.lock();
            if *left == 0 {
                let kind = ObjectErrorKind::Unavailable("planned".into());
                done(Err(ObjectError { store: self.name().clone(), ask: "put", key: key.clone(), kind }));
                return Ongoing::over();
            }
            *left -= 1;
            self.extents.lock().push(key.to_string());
        }
        self.inner.begin(ask, done)
    }
}

/// A database with a tree of `pages` pages.
fn with_tree(pages: u64) -> (Written, support::TestTree) {
    let written = Written::new(7);
    let tree = support::build_tree(written.store(), "tree", 3, pages);
    (written, tree)
}

fn change_page(written: &Written, tree: &support::TestTree, n: usize, seed: u64) {
    let mut txn = written.store().begin().unwrap();
    support::fill(&mut txn, tree.id, &tree.pages[n..=n], seed);
    txn.commit().unwrap();
}

#[test]
fn a_publication_sends_what_has_changed() {
    let (written, tree) = with_tree(80);
    let objects = Counted::new(usize::MAX);
    let mut publisher = Publisher::begin(written.store().clone(), objects.clone()).unwrap();
    let first = publisher.publish(go_on).unwrap();
    assert_eq!((first.extents_sent, objects.extents()), (10, 10), "{first:?}");
    assert_eq!(publisher.publish(go_on).unwrap().extents_sent, 0);
    change_page(&written, &tree, 33, 1);
    assert_eq!(publisher.publish(go_on).unwrap().extents_sent, 1);
    // A later process knows as much.
    change_page(&written, &tree, 70, 2);
    drop(publisher);
    let mut publisher = Publisher::begin(written.store().clone(), objects.clone()).unwrap();
    let done = publisher.publish(go_on).unwrap();
    assert_eq!((done.extents_sent, objects.extents()), (1, 12), "{done:?}");
}

#[test]
fn a_publication_that_failed_is_gone_on_with() {
    for is_new_process in [false, true] {
        let (written, tree) = with_tree(80);
        let objects = Counted::new(6);
        let mut publisher = Publisher::begin(written.store().clone(), objects.clone()).unwrap();
        let failed = publisher.publish(go_on).unwrap_err();
        assert!(failed.to_string().contains("planned"), "{failed}");
        let none = Published::find(objects.clone(), &Clock::real()).err().expect("nothing is published");
        assert!(none.to_string().contains("no database is published here"), "{none}");
        *objects.left.lock() = usize::MAX;
        if is_new_process {
            publisher = Publisher::begin(written.store().clone(), objects.clone()).unwrap();
        }
        let done = publisher.publish(go_on).unwrap();
        assert_eq!((done.extents_sent, objects.extents()), (4, 10), "{done:?}");
        let reader =
            Published::find(objects, &Clock::real()).unwrap().open(None, tiny(&PowerDisk::new(1))).unwrap();
        let mut reader = support::reader(&reader);
        (0..80).for_each(|n| tree.check(&mut reader, n));
    }
}

#[test]
fn of_two_writers_one_is_refused() {
    let (written, tree) = with_tree(8);
    let objects = objects();
    let begin = || Publisher::begin(written.store().clone(), objects.clone()).unwrap();
    let (mut one, mut other) = (begin(), begin());
    one.publish(go_on).unwrap();
    let refused = other.publish(go_on).unwrap_err();
    assert!(refused.to_string().contains("another writer"), "{refused}");
    let (mut one, mut other) = (begin(), begin());
    change_page(&written, &tree, 3, 1);
    other.publish(go_on).unwrap();
    assert!(one.publish(go_on).is_err());
}

#[test]
fn another_database_or_history_is_refused() {
    let (mut written, tree) = with_tree(8);
    let objects = objects();
    Publisher::begin(written.store().clone(), objects.clone()).unwrap().publish(go_on).unwrap();
    let (other, _) = with_tree(8);
    let refused = Publisher::begin(other.store().clone(), objects.clone()).err().expect("another database");
    assert!(refused.to_string().contains("another database"), "{refused}");
    // A copy of its files, which goes on for itself.
    let copy = written.disk.copy(3);
    change_page(&written, &tree, 3, 1);
    Publisher::begin(written.store().clone(), objects.clone()).unwrap().publish(go_on).unwrap();
    drop(written.store.take());
    let copied = Store::open(written.dir.path(), tiny(&copy)).unwrap();
    let refused = Publisher::begin(copied, objects.clone()).err().expect("an older state");
    assert!(refused.to_string().contains("did not lead to this database"), "{refused}");
}

#[test]
fn a_damaged_object_gives_an_error_and_no_answer() {
    let (written, tree) = with_tree(80);
    let objects = objects();
    Publisher::begin(written.store().clone(), objects.clone()).unwrap().publish(go_on).unwrap();
    for key in keys(&objects, "") {
        let get = Ask::Get { key: key.as_str().into(), range: None };
        let Ok(Answer::Got { bytes, .. }) = ask(&*objects, &Clock::real(), get) else { panic!("{key}") };
        let put = |bytes: Vec<u8>| {
            let key = key.as_str().into();
            let put = Ask::Put { key, bytes: bytes.into(), only: PutIf::Always };
            ask(&*objects, &Clock::real(), put).unwrap();
        };
        let mut damaged = bytes.clone();
        damaged[bytes.len() / 2] ^= 4;
        for wrong in [damaged, bytes[..bytes.len() / 2].to_vec()] {
            put(wrong);
            let failed = match open(&objects) {
                Err(_) => true,
                Ok(store) => {
                    let mut reader = support::reader(&store);
                    (0..80).any(|n| reader.page(tree.id, tree.pages[n]).is_err())
                }
            };
            assert!(failed, "{key}");
        }
        put(bytes);
    }
    let store = open(&objects).unwrap();
    let mut reader = support::reader(&store);
    (0..80).for_each(|n| tree.check(&mut reader, n));
}

/// A store that fails in every way it may, asked with patience.
fn unreliable(seed: u64) -> (Arc<FaultyObjects>, Arc<dyn Objects>) {
    let rates = ObjectFaultRates {
        unavailable: 60_000,
        too_often: 10_000,
        silent: 0,
        short: 30_000,
        bit_flip: 10_000,
        stale: 100_000,
        missing: 30_000,
        lost_answer: 60_000,
        failed_put: 60_000,
        lagging_list: 200_000,
    };
    let faulty = Arc::new(FaultyObjects::new(objects(), rates, seed));
    let patience = Patience {
        first_pause: Duration::from_micros(20),
        longest_pause: Duration::from_micros(200),
        seed,
        ..Patience::default()
    };
    let patient = PatientObjects::new(faulty.clone(), &Clock::real(), patience).unwrap();
    (faulty, Arc::new(patient))
}

#[test]
fn whatever_a_store_does_no_answer_is_wrong() {
    snowmelt_io::set_notice(|_| {});
    let first = seed();
    let (mut published, mut opened, mut refused) = (0, 0, 0);
    for seed in first..first + 40 {
        let mut written = Written::new(seed);
        let (faulty, objects) = unreliable(seed);
        let mut newest = 0;
        for _ in 0..10 {
            written.work();
            // A failure leaves it to the next publication, of this process or of another.
            if let Ok(mut publisher) = Publisher::begin(written.store().clone(), objects.clone()) {
                for _ in 0..1 + written.random.below(3) {
                    let least = written.newest().number();
                    if publisher.publish(go_on).is_ok() {
                        (published, newest) = (published + 1, least);
                    }
                    written.commit();
                }
            }
            let found = Published::find(objects.clone(), &Clock::real());
            let Ok(reader) = found.and_then(|found| found.open(None, tiny(&PowerDisk::new(1)))) else {
                refused += 1;
                continue;
            };
            let snapshot = reader.snapshot();
            match written.states[&number_in(&snapshot)].compare(&reader, &snapshot) {
                Ok(()) => opened += 1,
                Err(why) if why.contains("cannot be read") || why.contains("damaged") => refused += 1,
                Err(why) => panic!("SNOWMELT_SEED={seed}: {why}\n{:?}", faulty.faults()),
            }
        }
        // Once the store is well, what it said was published is there.
        faulty.set_rates(ObjectFaultRates::default());
        if newest > 0 {
            let reader = Published::find(objects, &Clock::real())
                .unwrap_or_else(|e| panic!("SNOWMELT_SEED={seed}: {e}"));
            let reader = reader.open(None, tiny(&PowerDisk::new(1))).unwrap();
            let snapshot = reader.snapshot();
            let number = number_in(&snapshot);
            assert!(number >= newest, "SNOWMELT_SEED={seed}: commit {number}, and {newest} was published");
            let compared = written.states[&number].compare(&reader, &snapshot);
            compared.unwrap_or_else(|why| panic!("SNOWMELT_SEED={seed}: {why}"));
        }
    }
    assert!(published > 100 && opened > 50, "{published} published, {opened} opened, {refused} refused");
}

/// Manifest, then opener and journal: two rounds, whatever is published.
#[test]
fn opening_takes_two_rounds() {
    for pages in [8, 800] {
        let (written, _) = with_tree(pages);
        let inner = objects();
        Publisher::begin(written.store().clone(), inner.clone()).unwrap().publish(go_on).unwrap();
        let clock = Clock::virtual_time(1);
        let latency = Duration::from_millis(30);
        let times = ObjectTimes {
            p50: latency,
            p99: latency,
            request_bytes_per_s: u64::MAX,
            bytes_per_s: u64::MAX,
            prefix_requests_per_s: None,
        };
        let slow = Arc::new(TimedObjects::new(inner, times, &clock, 1));
        let _here = clock.enter();
        let begun_ns = clock.now_ns();
        let published = Published::find(slow, &clock).unwrap();
        let taken_ms = (clock.now_ns() - begun_ns) / 1_000_000;
        assert_eq!(taken_ms, 60, "{pages} pages");
        assert!(published.newest().txn > 0);
    }
}

#[test]
fn readers_of_a_machine_fetch_an_extent_once() {
    let (written, tree) = with_tree(80);
    let objects = Arc::new(Gets { inner: MemoryObjects::new("memory://gets"), extents: Mutex::default() });
    Publisher::begin(written.store().clone(), objects.clone()).unwrap().publish(go_on).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..3 {
        let cache = ExtentCache::open(folder.path(), 64 << 20).unwrap();
        let found = Published::find(objects.clone(), &Clock::real()).unwrap();
        let reader = found.open(Some(cache), tiny(&PowerDisk::new(1))).unwrap();
        let mut reader = support::reader(&reader);
        (0..80).for_each(|n| tree.check(&mut reader, n));
    }
    let mut keys = objects.extents.lock().clone();
    let asked = keys.len();
    keys.sort();
    keys.dedup();
    assert_eq!((asked, keys.len()), (10, 10));
}

/// Keeps the keys of extents that are got.
struct Gets {
    inner: MemoryObjects,
    extents: Mutex<Vec<String>>,
}

impl Objects for Gets {
    fn name(&self) -> &Arc<str> {
        self.inner.name()
    }

    fn begin(&self, ask: Ask, done: Done) -> Ongoing {
        if let Ask::Get { key, .. } = &ask
            && key.starts_with("extents/")
        {
            self.extents.lock().push(key.to_string());
        }
        self.inner.begin(ask, done)
    }
}
