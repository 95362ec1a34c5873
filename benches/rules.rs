//! Worth of each read-ahead rule, below the trees: `cargo run --release -p snowmelt-benches
//! --example rules`.
//!
//! Sixteen clients ask queries of three dependent batches of pages (one page, then ten, then
//! eight; partly neighbours, partly random) of a database of 160 MB that starts cold, on
//! simulated devices in virtual time. Prints milliseconds until 300 and 1500 queries are
//! answered, reads per query, and the share of pages read ahead that was used; best settings
//! first.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use snowmelt_io::{Clock, DeviceModel, QueueConfig, SimulatedDevice};
use snowmelt_store::{
    Background, DeviceWrap, PageBuf, PageId, PageKind, ReadAhead, Reader, Seams, Store, StoreConfig, TreeId,
    WishKind,
};

/// Pages of the three trees.
const TREES: [usize; 3] = [2000, 6000, 12_000];
const CLIENTS: usize = 16;
const QUERIES: u64 = 1500;
/// Processor time of a query.
const QUERY_NS: u64 = 100_000;

type Tree = (TreeId, Vec<PageId>);

fn main() {
    let dir = tempfile::tempdir().expect("a directory for the example");
    let trees = build(dir.path());
    for (name, model) in
        [("hdd", DeviceModel::hdd()), ("wide-slow", DeviceModel::wide_slow()), ("nvme", DeviceModel::nvme())]
    {
        for percent in [10, 100] {
            println!("\n{name}, pool {percent} % of the database");
            println!(
                "{:<28} {:>9} {:>9} {:>12} {:>7}",
                "rules", "300 (ms)", "all (ms)", "reads/query", "used %"
            );
            let mut rows: Vec<_> =
                settings().into_iter().map(|s| run(dir.path(), &trees, &model, percent, s)).collect();
            rows.sort_by_key(|r| r.1[1]);
            for (rules, [first, all], reads, used) in rows {
                println!("{rules:<28} {first:>9} {all:>9} {reads:>12.1} {used:>7.0}");
            }
        }
    }
}

fn settings() -> [&'static str; 8] {
    ["none", "planned", "extent", "start-up", "start-up,planned", "extent,planned", "all", "auto"]
}

fn build(dir: &Path) -> Vec<Tree> {
    let config =
        StoreConfig { memory_bytes: 64 << 20, read_ahead: ReadAhead::none(), ..StoreConfig::default() };
    let store = Store::create(dir, &[], config).expect("a new store");
    let build = store.begin_build().expect("nobody else builds");
    let mut page = PageBuf::new();
    page.set_header(PageKind::TupleLeaf, 0, 0);
    let mut tree = |pages: usize| {
        let mut w = build.new_tree(&format!("{pages} pages"));
        let ids = (0..pages).map(|_| w.append(&mut page).expect("room on the device")).collect();
        (w.finish().expect("room on the device"), ids)
    };
    let trees = TREES.map(&mut tree);
    build.commit().expect("room on the device");
    trees.into()
}

fn run(
    dir: &Path,
    trees: &[Tree],
    model: &DeviceModel,
    percent: u64,
    rules: &'static str,
) -> (&'static str, [u64; 2], f64, f64) {
    let clock = Clock::virtual_time(2);
    let (device_clock, model) = (clock.clone(), model.clone());
    let wrap = DeviceWrap::new(move |_, inner| {
        Ok(Arc::new(SimulatedDevice::new(model.clone(), inner, &device_clock)))
    });
    let pages = TREES.iter().sum::<usize>() as u64;
    let config = StoreConfig {
        memory_bytes: 1 << 30,
        pool_bytes: Some((pages * percent / 100 + 64) * 8192),
        read_ahead: ReadAhead { warm_list: false, ..ReadAhead::parse(rules).expect("a list of rules") },
        queue: QueueConfig::default(),
        seams: Seams {
            devices: Some(wrap),
            background: Background::Caller,
            clock: clock.clone(),
            ..Seams::default()
        },
        ..StoreConfig::default()
    };
    let store = Store::open(dir, config).expect("the store just built");
    let (begun, answered, first) = (clock.now_ns(), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|s| {
        for (i, ticket) in clock.reserve(CLIENTS).into_iter().enumerate() {
            let (store, clock, answered, first) = (&store, &clock, &answered, &first);
            s.spawn(move || {
                let _in_time = ticket.enter();
                let mut r = Reader::new(store, store.snapshot());
                let mut random = i as u64 + 1;
                while answered.fetch_add(1, Relaxed) < QUERIES {
                    query(&mut r, trees, &mut random);
                    clock.charge_cpu(QUERY_NS);
                    if answered.load(Relaxed) >= 300 && first.load(Relaxed) == 0 {
                        first.store(clock.now_ns() - begun, Relaxed);
                    }
                }
            });
        }
    });
    let all = clock.now_ns() - begun;
    let mut sum = snowmelt_store::AheadStats::default();
    store.tree_stats().iter().for_each(|t| sum += t.ahead_total());
    let used = 100.0 * sum.used as f64 / sum.issued.max(1) as f64;
    let reads = store.activity().disk as f64 / QUERIES as f64;
    (rules, [first.load(Relaxed) / 1_000_000, all / 1_000_000], reads, used)
}

/// One page of the first tree, ten around and far from the same place of the second, eight of
/// the third.
fn query(r: &mut Reader, trees: &[Tree], random: &mut u64) {
    let mut next = || (snowmelt_base::random::xorshift(random) >> 11) as f64 / (1u64 << 53) as f64;
    let product = next();
    for (tree, (near, far)) in trees.iter().zip([(1, 0), (5, 5), (2, 6)]) {
        let n = tree.1.len();
        let home = (product * n as f64) as usize;
        let mut batch: Vec<usize> = (0..near).map(|i| (home + i) % n).collect();
        batch.extend((0..far).map(|_| (next() * n as f64) as usize));
        batch.sort_unstable();
        batch.dedup();
        let pages: Vec<PageId> = batch.iter().map(|i| tree.1[*i]).collect();
        if !r.resident(tree.0) {
            r.wish(tree.0, &pages, WishKind::Planned);
        }
        for p in pages {
            r.page(tree.0, p).expect("a page of the store just built");
        }
    }
}
