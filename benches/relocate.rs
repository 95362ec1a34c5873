//! Worth of relocation to read-ahead: `cargo run --release -p snowmelt-benches --example relocate
//! [-- ROWS]`.
//!
//! Inserts ROWS (default 4 million) quads made up after BSBM's shapes, but with objects that
//! pack badly, in random order, 10 000 a transaction, into a tree eight times as large as the
//! pool it is read with later. Then the same reads from a cold start, with read-ahead `auto`,
//! on simulated devices in virtual time: of the tree as the inserts left it, after its shuffled
//! subtrees were moved (a rule without the wish for changed leaves, as `snowmelt compact` does
//! it), and of one built in bulk. Prints milliseconds, pages read, how many of them no reader
//! waited for, and the share of these that was used.

use std::path::Path;
use std::sync::Arc;

use made_up::{Cpu, Random, Row, made_up};
use snowmelt_io::{Clock, DeviceModel, SimulatedDevice};
use snowmelt_store::{
    AheadStats, Background, Changes, Columns, DeviceWrap, Keys, Matches, ReadAhead, Reader, Relocation,
    ScanBounds, Seams, Store, StoreConfig, TupleTree, TupleTreeBuilder,
};

mod made_up;

/// Rows of a transaction.
const BATCH: usize = 10_000;
/// Pool of the reads, in pages of the tree.
const POOL_SHARE: u64 = 8;

fn main() {
    let mut args = std::env::args().skip(1).map(|a| a.parse::<usize>().expect("a number"));
    let rows = args.next().unwrap_or(4_000_000);
    let dir = tempfile::tempdir().expect("a directory for the example");
    let mut quads = made_up(rows, 7);
    quads.iter_mut().for_each(|q| q[2] = (q[1] ^ q[2]).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16);
    quads.sort_unstable();
    quads.dedup();
    let store = Store::create(dir.path(), &[], at_leisure()).expect("a new store");
    insert(&store, &quads);
    build(&store, &quads);
    let pages = report(&store, "random");
    drop(store);
    let pool = (pages / POOL_SHARE + 64) * 8192;
    measure(dir.path(), &quads, pool, &[("random inserts", "random")]);
    let store = Store::open(dir.path(), at_leisure()).expect("the store just made");
    relocate(&store);
    report(&store, "random");
    drop(store);
    measure(dir.path(), &quads, pool, &[("relocated", "random"), ("built in bulk", "bulk")]);
}

fn at_leisure() -> StoreConfig {
    StoreConfig { memory_bytes: 1 << 30, ..StoreConfig::default() }
}

/// Inserts the quads in random order.
fn insert(store: &Arc<Store>, quads: &[Row]) {
    let mut shuffled = quads.to_vec();
    let mut random = Random(88_172_645_463_325_252);
    for i in (1..shuffled.len()).rev() {
        shuffled.swap(i, random.below(i as u64 + 1) as usize);
    }
    let mut txn = store.begin().expect("the writer");
    let mut tree = TupleTree::create(&mut txn, "random", 4).expect("a new tree");
    for batch in shuffled.chunks_mut(BATCH) {
        batch.sort_unstable();
        let mut changes = Changes::new(4);
        batch.iter().for_each(|row| changes.push(row, true));
        tree.apply(&mut txn, &changes).expect("applied");
        txn.put_record("random", 1, &tree.to_bytes());
        txn.commit().expect("committed");
        txn = store.begin().expect("the writer");
    }
    drop(txn);
    store.checkpoint().expect("written back");
}

fn build(store: &Arc<Store>, quads: &[Row]) {
    let build = store.begin_build().expect("no other build");
    let mut builder = TupleTreeBuilder::new(build.new_tree("bulk"), 4);
    quads.iter().for_each(|row| builder.push(row).expect("written"));
    build.put_record("bulk", 1, &builder.finish().expect("written").to_bytes());
    build.commit().expect("committed");
}

fn relocate(store: &Arc<Store>) {
    let rule = Relocation { changed: 0.0, most_leaves: 4096, ..Relocation::default() };
    let begun = Cpu::now();
    let before = store.journal_stats().appended_bytes;
    let mut leaves = 0;
    loop {
        let mut txn = store.begin().expect("the writer");
        let mut tree = handle(store, "random");
        let done = tree.relocate(&mut txn, &rule).expect("moved");
        if done.subtrees == 0 {
            break;
        }
        leaves += done.leaves;
        txn.put_record("random", 1, &tree.to_bytes());
        txn.commit().expect("committed");
        store.checkpoint().expect("written back");
    }
    let (seconds, bytes) = (begun.seconds(), store.journal_stats().appended_bytes - before);
    println!("{leaves} leaves moved in {seconds:.2} s of processor time, {} MB of journal", bytes >> 20);
}

fn handle(store: &Store, name: &str) -> TupleTree {
    TupleTree::from_bytes(&store.catalog(name).expect("a tree of the example")).expect("its record")
}

fn report(store: &Arc<Store>, name: &str) -> u64 {
    let mut txn = store.begin().expect("the writer");
    let tree = handle(store, name);
    let disorder = tree.disorder(&mut txn).expect("a sound tree");
    let extents = store.extents().iter().filter(|(_, e)| e.tree == Some(tree.id())).count();
    println!("{} rows, {} pages in {extents} extents, disorder {disorder:.2}", tree.rows(), tree.pages());
    tree.pages()
}

/// Reads from a cold start.
#[derive(Clone, Copy)]
enum Work {
    /// All rows in order.
    Scan,
    /// 200 ranges of 2000 rows.
    Ranges,
    /// 40 batches of 250 rows near each other, looked up.
    Lookups,
}

fn measure(dir: &Path, quads: &[Row], pool: u64, trees: &[(&str, &str)]) {
    let devices = [("hdd", DeviceModel::hdd()), ("wide-slow", DeviceModel::wide_slow())];
    let works = [("scan", Work::Scan), ("200 ranges", Work::Ranges), ("40 x 250 lookups", Work::Lookups)];
    println!(
        "{:<10} {:<17} {:<15} {:>8} {:>8} {:>8} {:>7}",
        "device", "work", "tree", "ms", "reads", "ahead", "used %"
    );
    for (device, model) in &devices {
        for (work, what) in works {
            for (title, name) in trees {
                let (ms, reads, ahead) = run(dir, model, pool, name, what, quads);
                let used = 100.0 * ahead.used as f64 / ahead.issued.max(1) as f64;
                println!(
                    "{device:<10} {work:<17} {title:<15} {ms:>8} {reads:>8} {:>8} {used:>7.0}",
                    ahead.issued
                );
            }
        }
    }
}

fn run(
    dir: &Path,
    model: &DeviceModel,
    pool: u64,
    name: &str,
    work: Work,
    quads: &[Row],
) -> (u64, u64, AheadStats) {
    let clock = Clock::virtual_time(2);
    let (device_clock, model) = (clock.clone(), model.clone());
    let wrap = DeviceWrap::new(move |_, inner| {
        Ok(Arc::new(SimulatedDevice::new(model.clone(), inner, &device_clock)))
    });
    let config = StoreConfig {
        memory_bytes: 1 << 30,
        pool_bytes: Some(pool),
        read_ahead: ReadAhead { warm_list: false, ..ReadAhead::auto() },
        seams: Seams {
            devices: Some(wrap),
            background: Background::Caller,
            clock: clock.clone(),
            ..Seams::default()
        },
        ..StoreConfig::default()
    };
    let store = Store::open(dir, config).expect("the store just made");
    let begun = clock.now_ns();
    {
        let _in_time = clock.enter();
        let mut reader = Reader::new(&store, store.snapshot());
        let tree = handle(&store, name);
        let mut random = Random(42);
        match work {
            Work::Scan => assert_eq!(rows(&mut reader, &tree, ScanBounds::default()), quads.len()),
            Work::Ranges => (0..200).for_each(|_| range(&mut reader, &tree, quads, &mut random)),
            Work::Lookups => (0..40).for_each(|_| lookups(&mut reader, &tree, quads, &mut random)),
        }
    }
    let ms = (clock.now_ns() - begun) / 1_000_000;
    let mut ahead = AheadStats::default();
    store.tree_stats().iter().for_each(|t| ahead += t.ahead_total());
    (ms, store.activity().disk, ahead)
}

fn rows(reader: &mut Reader, tree: &TupleTree, bounds: ScanBounds<'_>) -> usize {
    let (mut scan, mut out, mut rows) = (tree.scan(bounds), Columns::new(4), 0);
    while scan.next(reader, &mut out, 4096).expect("a sound tree") {
        rows += out.rows;
        out.clear();
    }
    rows
}

/// The rows of one predicate from one subject to another, about 2000.
fn range(reader: &mut Reader, tree: &TupleTree, quads: &[Row], random: &mut Random) {
    let from = random.below(quads.len() as u64 - 2000) as usize;
    let [p, s, ..] = quads[from];
    let end = quads[from..from + 2000].iter().rfind(|q| q[0] == p).expect("the first one has it")[1];
    let below = |key: [u64; 2], upto: bool| {
        quads.partition_point(|q| [q[0], q[1]] < key || upto && [q[0], q[1]] == key)
    };
    let right = below([p, end], true) - below([p, s], false);
    let found = rows(reader, tree, ScanBounds { prefix: &[p], range: Some((s, end)) });
    assert_eq!(found, right);
}

/// Every eighth row of 2000.
fn lookups(reader: &mut Reader, tree: &TupleTree, quads: &[Row], random: &mut Random) {
    let from = random.below(quads.len() as u64 - 2000) as usize;
    let keys: Vec<Row> = quads[from..from + 2000].iter().step_by(8).copied().collect();
    let columns: Vec<Vec<u64>> = (0..3).map(|c| keys.iter().map(|k| k[c]).collect()).collect();
    let columns: Vec<&[u64]> = columns.iter().map(|c| &c[..]).collect();
    let mut lookup = tree.lookup(Keys::new(&columns, None));
    let (mut out, mut found) = (Matches::new(4, 3), 0);
    while lookup.next(reader, &mut out, 1000).expect("a sound tree") {
        found += out.key.len();
        out.clear();
    }
    assert_eq!(found, keys.len());
}
