//! The whole engine on devices that change, stall and are unlike each other: query mixes in
//! virtual time, with costs that are learned from nothing.
//!
//! In each run every answer is the one of all other runs, no query waits for ever, and after each
//! change about as many queries are answered as at the best of some fixed depths with the costs
//! known.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock, Mutex};

use snowmelt_bench::ablation::Setting;
use snowmelt_bench::modelled;
use snowmelt_bsbm::{DEFAULT_SEED, UseCase, WordLists, Workload};
use snowmelt_graph::GraphDatabase;
use snowmelt_graph::load::LoadOptions;
use snowmelt_io::{Clock, DeviceModel, QueueConfig, Stalls, Troubles, VolumeModel, test_seed};
use snowmelt_io_experiments::PolicyName;
use snowmelt_sparql::{QueryEngine, QueryOptions};
use snowmelt_store::StoreConfig;
use snowmelt_workload::dataset::generate_and_load;
use snowmelt_workload::drive::{Drive, Mixes, Record, Stream};
use snowmelt_workload::in_process::InProcess;

const PRODUCTS: u32 = 500;
const S: u64 = 1_000_000_000;
/// A pool that holds an eighth of what the queries use.
const SMALL: u64 = 64;

/// Of the queries of the best fixed depth so many are answered: four frames for each of 16 clients
/// are mostly luck.
const USED: f64 = 0.7;

/// A database on one stripe, and one on four.
struct Data {
    _dir: tempfile::TempDir,
    db: PathBuf,
}

fn loaded(stripes: usize) -> Data {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    let store = StoreConfig { memory_bytes: 256 << 20, ..StoreConfig::default() };
    let stripes = (0..stripes).map(|i| dir.path().join(format!("stripe-{i}"))).collect();
    let options = LoadOptions { store, stripes, threads: 2, ..LoadOptions::default() };
    let stop = AtomicBool::new(false);
    generate_and_load(PRODUCTS, WordLists::synthetic(), &db, &options, &(), &stop).unwrap();
    Data { _dir: dir, db }
}

static ONE: LazyLock<Mutex<Data>> = LazyLock::new(|| Mutex::new(loaded(1)));
static FOUR: LazyLock<Mutex<Data>> = LazyLock::new(|| Mutex::new(loaded(4)));

/// Digests of all answers so far, by query.
static ANSWERS: LazyLock<Mutex<HashMap<u64, u64>>> = LazyLock::new(Mutex::default);

/// A device for each stripe.
type Devices = Arc<dyn Fn(usize) -> (DeviceModel, Troubles) + Send + Sync>;

#[derive(Clone)]
struct Case {
    data: &'static Mutex<Data>,
    devices: Devices,
    frames: u64,
    clients: usize,
    ns: u64,
}

impl Case {
    /// All queries of the time.
    fn run(&self, queue: QueueConfig) -> Vec<Record> {
        // One process at a time has a database open.
        let data = self.data.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let clock = Clock::virtual_time(2);
        let devices = self.devices.clone();
        let config = StoreConfig {
            queue,
            read_ahead: Setting::parse("auto -warm-list").unwrap().rules,
            ..modelled::store_config(&clock, self.frames, move |stripe| devices(stripe))
        };
        let database = GraphDatabase::open(&data.db, &config).unwrap();
        let options = QueryOptions { threads: 1, ..QueryOptions::default() };
        let target = InProcess::new(Arc::new(QueryEngine::new(database)), clock.clone(), options);
        let workload = Workload::new(PRODUCTS, DEFAULT_SEED, UseCase::Explore).unwrap();
        let end_ns = clock.now_ns() + self.ns;
        let mixes = Mixes::new(Stream::Drawn(Box::new(workload)), u64::MAX, &[]).until(end_ns);
        let run = Drive::new(&target, &clock, self.clients).run(&mixes).unwrap();
        same_answers(&run.records);
        run.records
    }

    fn learned(&self) -> Vec<Record> {
        self.run(Setting::parse("auto costs=learned").unwrap().turned.queue(PolicyName::Elevator))
    }

    /// A run at each of some fixed depths, with the costs known.
    fn fixed(&self) -> [Vec<Record>; 2] {
        let at = |depth| QueueConfig { learns: false, depth: Some(depth), ..QueueConfig::default() };
        [8, 32].map(|depth| self.run(at(depth)))
    }

    /// Queries per second from some time on, at the best of some fixed depths.
    fn best_rate(&self, from_ns: u64) -> f64 {
        best_rate(&self.fixed(), from_ns, self.ns)
    }
}

fn same_answers(records: &[Record]) {
    let mut answers = ANSWERS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    for record in records {
        let first = *answers.entry(record.text).or_insert(record.digest);
        assert_eq!(first, record.digest, "another answer to query {}", record.number);
        assert!(record.failed.is_none(), "query {} failed", record.number);
    }
}

/// Queries per second that ended between two moments.
fn rate(records: &[Record], from_ns: u64, to_ns: u64) -> f64 {
    let ended = records.iter().filter(|record| (from_ns..to_ns).contains(&record.end_ns)).count();
    ended as f64 / ((to_ns - from_ns) as f64 / S as f64)
}

fn best_rate(fixed: &[Vec<Record>], from_ns: u64, to_ns: u64) -> f64 {
    fixed.iter().map(|records| rate(records, from_ns, to_ns)).fold(0.0, f64::max)
}

fn longest_s(records: &[Record]) -> f64 {
    records.iter().map(Record::seconds).fold(0.0, f64::max)
}

/// A gp3 with so many times the caps.
fn gp3(times: f64) -> DeviceModel {
    let DeviceModel::Volume(v) = DeviceModel::gp3() else { unreachable!("gp3 is a volume") };
    DeviceModel::Volume(VolumeModel { iops: v.iops * times, bytes_per_s: v.bytes_per_s * times, ..v })
}

fn steady(data: &'static Mutex<Data>, model: DeviceModel, frames: u64) -> Case {
    let devices: Devices = Arc::new(move |_| (model.clone(), Troubles::default()));
    Case { data, devices, frames, clients: 16, ns: 5 * S }
}

/// Caps halved, doubled, credits gone, and back, in one run.
#[test]
fn a_device_that_changes_three_times_is_used_two_seconds_after_each() {
    const LASTS: u64 = 4 * S;
    let changes = [("as new", 1.0), ("halved", 0.5), ("doubled", 2.0), ("credits gone", 0.1), ("back", 1.0)];
    let becomes = |(i, (_, times)): (usize, &(&str, f64))| (i as u64 * LASTS, gp3(*times));
    let becomes: Vec<_> = changes.iter().enumerate().skip(1).map(becomes).collect();
    let devices: Devices =
        Arc::new(move |_| (gp3(1.0), Troubles { becomes: becomes.clone(), ..Troubles::default() }));
    let case = Case { devices, ns: 5 * LASTS, ..steady(&ONE, gp3(1.0), SMALL) };
    let records = case.learned();
    assert!(longest_s(&records) < 10.0, "a query took {} s", longest_s(&records));
    // On the same device at the same time: what is asked for is not always as much work.
    let fixed = case.fixed();
    for (i, (what, _)) in changes.into_iter().enumerate() {
        let (from_ns, to_ns) = (i as u64 * LASTS + 2 * S, (i as u64 + 1) * LASTS);
        let (rate, best) = (rate(&records, from_ns, to_ns), best_rate(&fixed, from_ns, to_ns));
        println!("{what}: {rate:.0} queries per second, at a fixed depth {best:.0}");
        assert!(rate > USED * best, "{what}: {rate:.0} queries per second, not {best:.0}");
    }
}

fn is_used_and_nothing_starves(case: &Case) {
    let records = case.learned();
    let (rate, best) = (rate(&records, 2 * S, case.ns), case.best_rate(2 * S));
    println!("{rate:.0} queries per second, at a fixed depth {best:.0}");
    assert!(rate > USED * best, "{rate:.0} queries per second, not {best:.0}");
    assert!(longest_s(&records) < 10.0, "a query took {} s", longest_s(&records));
}

#[test]
fn a_pool_of_64_pages_is_enough() {
    let case = Case { clients: 4, ..steady(&ONE, gp3(1.0), 64) };
    is_used_and_nothing_starves(&case);
}

/// The slow one is the limit, whatever is done; the others are not taken for it.
#[test]
fn one_stripe_of_four_may_be_slow() {
    let slow = |model| match model {
        DeviceModel::Volume(v) => {
            DeviceModel::Volume(VolumeModel { latency_us: 10.0 * v.latency_us, iops: 0.1 * v.iops, ..v })
        }
        other => other,
    };
    let devices: Devices = Arc::new(move |stripe| {
        let model = if stripe == 2 { slow(gp3(1.0)) } else { gp3(1.0) };
        (model, Troubles::default())
    });
    let case = Case { devices, ..steady(&FOUR, gp3(1.0), SMALL) };
    is_used_and_nothing_starves(&case);
}

#[test]
fn a_stall_is_over_when_it_is_over() {
    const MOST: u64 = 5;
    let stalls = Some(Stalls { pause_ns: 4 * S, least_ns: S, most_ns: MOST * S });
    let troubles = Troubles { seed: test_seed(29), stalls, ..Troubles::default() };
    let devices: Devices = Arc::new(move |_| (gp3(1.0), troubles.clone()));
    let case = Case { devices, ns: 20 * S, ..steady(&ONE, gp3(1.0), SMALL) };
    let records = case.learned();
    let (rate, best) = (rate(&records, 2 * S, case.ns), case.best_rate(2 * S));
    println!("{rate:.0} queries per second, at a fixed depth {best:.0}");
    assert!(rate > USED * best, "{rate:.0} queries per second, not {best:.0}");
    // A query reads level by level, and each may meet a stall.
    let most_s = 5.0 * MOST as f64;
    assert!(longest_s(&records) < most_s, "a query took {} s", longest_s(&records));
}
