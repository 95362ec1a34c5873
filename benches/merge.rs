//! Speed of a merge of sorted keys with a range of a tree, in rows moved over per second of one
//! core: the way of `TupleTree::merge_way`, the plain one (scan, then compare row by row), and
//! lookups.
//!
//!     cargo run --release -p snowmelt-benches --example merge [-- ROWS]
//!
//! ROWS (default 2.6 million) quads in the order PSOG as BSBM's numeric properties of products
//! are: one property, subjects with gaps, values of 11 bits, one graph. Keys are subjects, one in
//! 1 to 10,000. Everything is warm; times are processor time of the one thread, the median of
//! 15 turns; the ways take turns. Answers are compared while they are timed.

#[expect(dead_code, reason = "the quads here are others")]
mod made_up;

use made_up::{Cpu, Random};
use snowmelt_store::{
    Columns, Keys, Matches, MergeKeys, Reader, ScanBounds, Store, StoreConfig, TupleTree, TupleTreeBuilder,
};

const TURNS: usize = 15;
const PROPERTY: u64 = 1 << 60 | 17;

/// Rows put out at a time, as an operator asks for them.
const BATCH: usize = 65_536;

/// Finds the rows of keys; answers how many there are and the sum of their values.
type FindRows = fn(&TupleTree, &mut Reader, &[u64]) -> (u64, u64);

fn main() {
    let rows: u64 = std::env::args().nth(1).map_or(2_600_000, |a| a.parse().expect("ROWS is a number"));
    let dir = std::env::temp_dir().join(format!("snowmelt-merge-{}", std::process::id()));
    let config = StoreConfig { memory_bytes: 1 << 30, direct: false, ..StoreConfig::default() };
    let store = Store::create(&dir, &[], config).expect("a new store");
    let mut random = Random(88_172_645_463_325_252);
    let mut subject = 1 << 60 | 1000;
    let subjects: Vec<u64> = (0..rows)
        .map(|_| {
            subject += 1 + random.below(4);
            subject
        })
        .collect();
    let values: Vec<u64> = (0..rows).map(|_| 7 << 60 | 1 << 59 | (1 + random.below(2000))).collect();
    let build = store.begin_build().expect("no other build");
    let mut builder = TupleTreeBuilder::new(build.new_tree("psog"), 4);
    for (s, o) in subjects.chunks(4096).zip(values.chunks(4096)) {
        let (p, g) = (vec![PROPERTY; s.len()], vec![1; s.len()]);
        builder.push_columns(&[&p, s, o, &g]).expect("written");
    }
    let tree = builder.finish().expect("written");
    build.commit().expect("committed");
    let bytes = tree.pages() * 8192;
    println!("{rows} rows, {:.2} bytes each; million rows a second:", bytes as f64 / rows as f64);
    println!("  one in     keys     merge      scan    lookup");
    let mut reader = Reader::new(&store, store.snapshot());
    for apart in [1, 2, 4, 25, 200, 2000, 10_000] {
        let keys: Vec<u64> = subjects.iter().copied().filter(|_| random.below(apart) == 0).collect();
        one_density(&tree, &mut reader, apart, &keys);
    }
    drop(store);
    let _ = std::fs::remove_dir_all(&dir);
}

fn one_density(tree: &TupleTree, reader: &mut Reader, apart: u64, keys: &[u64]) {
    let ways: [FindRows; 3] = [merged, scanned, looked_up];
    let mut seconds = [const { Vec::new() }; 3];
    let mut answer = None;
    for _ in 0..TURNS {
        for (way, seconds) in ways.iter().zip(&mut seconds) {
            let begun = Cpu::now();
            let found = way(tree, reader, keys);
            seconds.push(begun.seconds());
            assert_eq!(*answer.get_or_insert(found), found, "all ways find the same");
        }
    }
    let speed = seconds.map(|mut turns| {
        turns.sort_by(f64::total_cmp);
        tree.rows() as f64 / turns[TURNS / 2] / 1e6
    });
    let [merge, scan, lookup] = speed;
    println!("  {apart:6}  {:7}  {merge:8.0}  {scan:8.0}  {lookup:8.0}", keys.len());
}

/// Rows found, and a sum over keys and values.
fn sum(out: &Matches) -> (u64, u64) {
    let pairs = out.key.iter().zip(&out.cols[0]);
    (out.key.len() as u64, pairs.fold(0, |sum, (k, o)| sum.wrapping_add(u64::from(*k).wrapping_mul(*o))))
}

fn add(to: &mut (u64, u64), found: (u64, u64)) {
    *to = (to.0 + found.0, to.1.wrapping_add(found.1));
}

fn merged(tree: &TupleTree, reader: &mut Reader, keys: &[u64]) -> (u64, u64) {
    let keys = MergeKeys { before: &[PROPERTY], varying: keys, behind: &[] };
    let mut way = tree.merge_way(&keys);
    let (mut out, mut all) = (Matches::with_wanted(4, 2, 1), (0, 0));
    while way.next(reader, &keys, &mut out, BATCH).expect("read") {
        add(&mut all, sum(&out));
        out.clear();
    }
    all
}

fn scanned(tree: &TupleTree, reader: &mut Reader, keys: &[u64]) -> (u64, u64) {
    let (Some(low), Some(high)) = (keys.first(), keys.last()) else { return (0, 0) };
    let mut scan = tree.scan(ScanBounds { prefix: &[PROPERTY], range: Some((*low, *high)) });
    let (mut columns, mut all, mut k) = (Columns::with_wanted(4, 0b110), (0, 0), 0);
    while scan.next(reader, &mut columns, BATCH).expect("read") {
        let mut out = Matches::with_wanted(4, 2, 1);
        let mut selected: Vec<u32> = Vec::new();
        'rows: for (row, value) in columns.cols[1].iter().enumerate() {
            while keys[k] < *value {
                k += 1;
                if k == keys.len() {
                    break 'rows;
                }
            }
            if keys[k] == *value {
                selected.push(row as u32);
                out.key.push(k as u32);
            }
        }
        k = k.min(keys.len() - 1);
        out.cols[0] = selected.iter().map(|r| columns.cols[2][*r as usize]).collect();
        add(&mut all, sum(&out));
        columns.clear();
    }
    all
}

fn looked_up(tree: &TupleTree, reader: &mut Reader, keys: &[u64]) -> (u64, u64) {
    let property = vec![PROPERTY; keys.len()];
    let columns: &[&[u64]] = &[&property, keys];
    let mut lookup = tree.lookup(Keys::new(columns, None));
    let (mut out, mut all) = (Matches::with_wanted(4, 2, 1), (0, 0));
    while lookup.next(reader, &mut out, BATCH).expect("read") {
        add(&mut all, sum(&out));
        out.clear();
    }
    all
}
