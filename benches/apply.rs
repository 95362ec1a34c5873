//! Cost of changes: `cargo run --release -p snowmelt-benches --example apply [-- ROWS [BATCHES]]`.
//!
//! Builds the trees of ROWS (default 10 million) quads made up after BSBM's shapes, then adds
//! BATCHES (default 100) batches of 10 000 random quads, each its own transaction, then takes
//! them again. Prints rows a second (processor time of the thread, without the commit), the
//! size of each tree against one built in bulk from the same rows, and the bytes of pages that
//! a single row changes.

mod made_up;

use std::sync::Arc;

use made_up::{Cpu, Random, Row, made_up};
use snowmelt_store::{Changes, PAGE_BYTES, Reader, Store, StoreConfig, TupleTree, TupleTreeBuilder, header};

/// Rows of a batch.
const BATCH: usize = 10_000;

fn main() {
    let mut args = std::env::args().skip(1).map(|a| a.parse::<usize>().expect("a number"));
    let (rows, batches) = (args.next().unwrap_or(10_000_000), args.next().unwrap_or(100));
    let dir = std::env::temp_dir().join(format!("snowmelt-apply-{}", std::process::id()));
    let config = StoreConfig { memory_bytes: 4 << 30, direct: false, ..StoreConfig::default() };
    let store = Store::create(&dir, &[], config).expect("a new store");
    let quads = made_up(rows, 7);
    for (name, arity, order) in [
        ("psog", 4, [0, 1, 2, 3]),
        ("posg", 4, [0, 2, 1, 3]),
        ("sp", 2, [1, 0, 2, 3]),
        ("op", 2, [2, 0, 1, 3]),
    ] {
        one_tree(&store, name, arity, order, &quads, batches);
    }
    drop(store);
    let _ = std::fs::remove_dir_all(&dir);
}

fn one_tree(store: &Arc<Store>, name: &str, arity: usize, order: [usize; 4], quads: &[Row], batches: usize) {
    let project = |q: &Row| -> Row {
        let mut row = order.map(|c| q[c]);
        row[arity..].fill(0);
        row
    };
    let mut rows: Vec<Row> = quads.iter().map(project).collect();
    rows.sort_unstable();
    rows.dedup();
    let mut tree = build(store, name, arity, &rows);
    let (pages, height) = (tree.pages(), tree.height());
    println!("{name}: {} rows in {pages} pages, height {height}", rows.len());
    let mut random = Random(88_172_645_463_325_252);
    let added: Vec<Vec<Row>> = (0..batches)
        .map(|_| {
            let mut batch: Vec<Row> = (0..BATCH).map(|_| project(&near(&mut random, quads))).collect();
            batch.sort_unstable();
            batch.dedup();
            batch
        })
        .collect();
    let (seconds, inserted) = run(store, name, &mut tree, &added, true);
    println!("  adding {inserted} rows: {:.0} k rows/s", inserted as f64 / seconds / 1e3);
    rows.extend(added.iter().flatten());
    rows.sort_unstable();
    rows.dedup();
    let bulk = build(store, "bulk", arity, &rows);
    let factor = tree.pages() as f64 / bulk.pages() as f64;
    println!("  {} pages, {factor:.2} times as many as built in bulk", tree.pages());
    let begun = Cpu::now();
    tree.check(&mut Reader::new(store, store.snapshot())).expect("a sound tree");
    println!("  checked in {:.2} s", begun.seconds());
    single(store, &mut tree, &rows, &mut random);
    let (seconds, deleted) = run(store, name, &mut tree, &added, false);
    println!("  taking {deleted} rows: {:.0} k rows/s", deleted as f64 / seconds / 1e3);
}

/// Applies the batches, and answers the seconds and the effective changes.
fn run(
    store: &Arc<Store>,
    name: &str,
    tree: &mut TupleTree,
    batches: &[Vec<Row>],
    insert: bool,
) -> (f64, u64) {
    let (mut seconds, mut effective) = (0.0, 0);
    for batch in batches {
        let mut changes = Changes::new(tree.arity());
        batch.iter().for_each(|r| changes.push(&r[..tree.arity()], insert));
        let mut txn = store.begin().expect("the writer");
        let begun = Cpu::now();
        let applied = tree.apply(&mut txn, &changes).expect("applied");
        seconds += begun.seconds();
        effective += applied.inserted + applied.deleted;
        txn.put_record(name, 1, &tree.to_bytes());
        txn.commit().expect("committed");
    }
    (seconds, effective)
}

/// Bytes and pages that change when one row is added.
fn single(store: &Arc<Store>, tree: &mut TupleTree, rows: &[Row], random: &mut Random) {
    let (mut bytes, mut pages, mut most) = (0, 0, 0);
    const TIMES: usize = 300;
    for _ in 0..TIMES {
        let mut row = rows[random.below(rows.len() as u64) as usize];
        row[tree.arity() - 1] = row[tree.arity() - 1].wrapping_add(1 + random.below(1000));
        let mut changes = Changes::new(tree.arity());
        changes.push(&row[..tree.arity()], true);
        let mut old = Reader::new(store, store.snapshot());
        let mut txn = store.begin().expect("the writer");
        tree.apply(&mut txn, &changes).expect("applied");
        let number = txn.txn();
        txn.commit().expect("committed");
        let touched = difference(store, &mut old, tree, number);
        bytes += touched.iter().sum::<usize>();
        pages += touched.len();
        most = most.max(touched.iter().sum());
    }
    let (bytes, pages) = (bytes as f64 / TIMES as f64, pages as f64 / TIMES as f64);
    println!("  one row changes {bytes:.0} bytes of {pages:.1} pages on average, at most {most} bytes");
}

/// For each page of the tree that transaction `number` changed: how many bytes differ, its
/// header apart.
fn difference(store: &Arc<Store>, old: &mut Reader, tree: &TupleTree, number: u64) -> Vec<usize> {
    let mut new = Reader::new(store, store.snapshot());
    let mut touched = Vec::new();
    for (extent, e) in store.extents().into_iter().filter(|(_, e)| e.tree == Some(tree.id())) {
        for id in (0..store.geometry().extent_pages).map(|i| store.geometry().page(extent, i)) {
            let Ok(page) = new.page(tree.id(), id) else { continue };
            if header(&page).txn() == number && e.is_allocated(store.geometry().index_of(id)) {
                let was = old.page(tree.id(), id);
                let differs = |i: &usize| was.as_ref().map_or(true, |was| was[*i] != page[*i]);
                touched.push((24..PAGE_BYTES).filter(differs).count());
            }
        }
    }
    touched
}

fn build(store: &Arc<Store>, name: &str, arity: usize, rows: &[Row]) -> TupleTree {
    let build = store.begin_build().expect("no other build");
    let mut builder = TupleTreeBuilder::new(build.new_tree(name), arity);
    rows.iter().for_each(|r| builder.push(&r[..arity]).expect("written"));
    let tree = builder.finish().expect("written");
    build.commit().expect("committed");
    tree
}

/// A quad like those there are.
fn near(random: &mut Random, quads: &[Row]) -> Row {
    let (a, b) = (random.below(quads.len() as u64), random.below(quads.len() as u64));
    let mut quad = quads[a as usize];
    quad[1] = quads[b as usize][1];
    quad
}
