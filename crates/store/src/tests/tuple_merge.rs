//! Merges against a sorted vector, and against a scan whose rows are merged outside: random
//! trees with every encoding of the key's column, tails, keys of every density, cut anywhere.

use crate::format::inner::Inner;
use crate::format::tuple::leaf::Leaf;
use crate::tests::trees::{Random, Sizes, TestStore, seeds};
use crate::{
    Changes, Columns, Matches, MergeKeys, PageKind, Reader, ScanBounds, TupleTree, TupleTreeBuilder,
};

type Row = [u64; 4];

/// Groups of rows with one prefix, each with its own shape of the column that varies.
const GROUPS: u64 = 5;

/// Rows of `arity` columns, of which number `column` ascends within a group.
fn rows(random: &mut Random, arity: usize, column: usize, n: u64) -> Vec<Row> {
    let mut rows = Vec::new();
    for group in 0..GROUPS {
        let mut value = 1 << 60 | random.below(1000);
        for i in 0..n / GROUPS {
            value += match group {
                0 => random.below(4),
                1 => 1,
                2 => random.below(3) * 86_400_000,
                3 => u64::from(random.below(20) == 0) * random.below(50),
                _ if i % 400 < 200 => random.word() >> 20,
                _ => u64::from(i % 60 == 0) << 33 | random.below(9),
            };
            let mut row = [7, random.below(3), 1 << 60 | random.below(2000), random.below(2)];
            (0..column).for_each(|c| row[c] = 10 * group + c as u64);
            row[column] = value;
            row[arity..].fill(0);
            rows.push(row);
        }
    }
    rows.sort_unstable();
    rows.dedup();
    rows
}

fn build(store: &TestStore, arity: usize, rows: &[Row]) -> TupleTree {
    let build = store.store.begin_build().unwrap();
    let mut builder = TupleTreeBuilder::new(build.new_tree("t"), arity);
    rows.iter().for_each(|r| builder.push(&r[..arity]).unwrap());
    let tree = builder.finish().unwrap();
    build.put_record("t", 1, &tree.to_bytes());
    build.commit().unwrap();
    tree
}

/// A few changes for each leaf, so that leaves get tails: rows that go and rows that come.
fn change(
    store: &TestStore,
    tree: &mut TupleTree,
    rows: &mut Vec<Row>,
    random: &mut Random,
    columns: (usize, usize),
) {
    let (arity, column) = columns;
    let mut by_row = std::collections::BTreeMap::new();
    for _ in 0..tree.leaves() * 4 {
        let mut row = rows[random.below(rows.len() as u64) as usize];
        let insert = random.below(2) == 0;
        if insert {
            row[column] = row[column].saturating_add(random.below(5)).saturating_sub(2);
        }
        by_row.insert(row, insert);
    }
    let mut changes = Changes::new(arity);
    for (row, insert) in &by_row {
        changes.push(&row[..arity], *insert);
        match (rows.binary_search(row), insert) {
            (Ok(at), false) => drop(rows.remove(at)),
            (Err(at), true) => rows.insert(at, *row),
            _ => {}
        }
    }
    let mut txn = store.store.begin().unwrap();
    tree.apply(&mut txn, &changes).unwrap();
    txn.put_record("t", 1, &tree.to_bytes());
    txn.commit().unwrap();
}

/// Leaves with a tail, of a tree of two levels.
fn tailed_leaves(tree: &TupleTree, reader: &mut Reader) -> usize {
    assert_eq!(tree.height(), 2);
    let root = reader.page(tree.id(), tree.shape.root).unwrap();
    let children = Inner::parse(&root, PageKind::TupleInner, tree.arity(), 1).unwrap().all(&root).unwrap();
    let tailed = children.iter().filter(|child| {
        let page = reader.page(tree.id(), child.page).unwrap();
        Leaf::parse(&page, tree.arity()).unwrap().tailed
    });
    tailed.count()
}

/// Keys among the values of some rows, about one in `apart`, and some that no row has.
fn keys(random: &mut Random, values: &[u64], apart: u64) -> Vec<u64> {
    let mut keys: Vec<u64> = Vec::new();
    let (mut from, mut to) = (0, values.len());
    if random.below(2) == 0 && to > 0 {
        from = random.below(to as u64) as usize;
        to = from + random.below((to - from) as u64 + 1) as usize;
    }
    for value in &values[from..to] {
        if random.below(apart) == 0 {
            keys.push(*value);
        }
        if random.below(apart * 3) == 0 {
            keys.push(value.wrapping_add(random.below(7)).wrapping_sub(3));
        }
    }
    if random.below(6) == 0 {
        keys.extend([0, u64::MAX, random.word()]);
    }
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// The old way: all rows between the first key and the last, merged one by one.
fn scanned_and_merged(
    tree: &TupleTree,
    reader: &mut Reader,
    keys: &MergeKeys<'_>,
) -> (Vec<u32>, Vec<Vec<u64>>) {
    let (column, first) = (keys.before.len(), keys.columns());
    let (mut found, mut cols) = (Vec::new(), vec![Vec::new(); tree.arity() - first]);
    let (Some(low), Some(high)) = (keys.varying.first(), keys.varying.last()) else { return (found, cols) };
    let mut scan = tree.scan(ScanBounds { prefix: keys.before, range: Some((*low, *high)) });
    let mut out = Columns::new(tree.arity());
    while scan.next(reader, &mut out, 1000).unwrap() {}
    for row in 0..out.rows {
        let behind = keys.behind.iter().zip(&out.cols[column + 1..]).all(|(v, c)| *v == c[row]);
        if let (true, Ok(k)) = (behind, keys.varying.binary_search(&out.cols[column][row])) {
            found.push(k as u32);
            cols.iter_mut().enumerate().for_each(|(c, col)| col.push(out.cols[first + c][row]));
        }
    }
    (found, cols)
}

/// One merge against the model and the old way.
fn check(tree: &TupleTree, rows: &[Row], reader: &mut Reader, random: &mut Random, column: usize) {
    let arity = tree.arity();
    let some = rows[random.below(rows.len() as u64) as usize];
    let group: Vec<&Row> = rows.iter().filter(|r| r[..column] == some[..column]).collect();
    let mut values: Vec<u64> = group.iter().map(|r| r[column]).collect();
    values.dedup();
    let apart = [1, 2, 4, 25, 200, 2000][random.below(6) as usize];
    let varying = keys(random, &values, apart);
    let end = column + 1 + random.below((arity - column) as u64) as usize;
    let keys = MergeKeys { before: &some[..column], varying: &varying, behind: &some[column + 1..end] };
    let wanted = if random.below(3) == 0 { random.below(16) as u8 } else { u8::MAX };
    let expected: Vec<(u32, &Row)> = group
        .iter()
        .filter(|r| r[column + 1..end] == some[column + 1..end])
        .filter_map(|r| varying.binary_search(&r[column]).ok().map(|k| (k as u32, *r)))
        .collect();
    let most = [1, 7, 300, usize::MAX][random.below(4) as usize];
    let most = if expected.len() > 2000 { most.max(50) } else { most };

    let before = reader.meters;
    let mut way = tree.merge_way(&keys);
    let mut out = Matches::with_wanted(arity, end, wanted);
    let mut found = 0;
    while way.next(reader, &keys, &mut out, most).unwrap() {
        assert!(out.key.len() - found <= most);
        found = out.key.len();
    }
    assert!(!way.next(reader, &keys, &mut out, most).unwrap());
    let meters = reader.meters.since(&before);

    let case = || format!("column {column} of {arity}, key of {end}, {} keys", varying.len());
    assert_eq!(out.key, expected.iter().map(|e| e.0).collect::<Vec<_>>(), "{}", case());
    let (old_key, old) = scanned_and_merged(tree, reader, &keys);
    assert_eq!(out.key, old_key);
    for (c, col) in out.cols.iter().enumerate() {
        let is_wanted = wanted >> c & 1 == 1;
        let want: Vec<u64> = expected.iter().filter(|_| is_wanted).map(|e| e.1[end + c]).collect();
        assert_eq!(col, &want, "{}", case());
        assert!(!is_wanted || *col == old[c]);
    }
    let between =
        |v: u64| varying.first().is_some_and(|k| *k <= v) && varying.last().is_some_and(|k| v <= *k);
    let moved = group.iter().filter(|r| between(r[column])).count() as u64;
    assert_eq!(meters.seq, moved, "each row between the first key and the last, {}", case());
    assert_eq!(meters.rnd, u64::from(!varying.is_empty()), "a merge begins once, {}", case());
}

#[test]
fn merges_agree_with_a_sorted_vector_and_with_a_scan() {
    let mut tails = 0;
    for seed in seeds(12) {
        let sizes = Sizes::BOTH[seed as usize % 2];
        let mut random = Random::new(seed);
        let arity = 1 + seed as usize % 4;
        let column = random.below(arity as u64) as usize;
        let n = [30_000, 100_000][seed as usize / 2 % 2];
        eprintln!("seed {seed}: {sizes:?}, column {column} of {arity}, {n} rows");
        let store = TestStore::new(sizes);
        let mut rows = rows(&mut random, arity, column, n);
        let mut tree = build(&store, arity, &rows);
        for round in 0..4 {
            let mut reader = store.reader();
            (0..25).for_each(|_| check(&tree, &rows, &mut reader, &mut random, column));
            if round > 0 {
                tails += tailed_leaves(&tree, &mut reader);
            }
            // what a snapshot sees does not change while the tree does
            let (old, before) = (tree.clone(), rows.clone());
            change(&store, &mut tree, &mut rows, &mut random, (arity, column));
            check(&old, &before, &mut reader, &mut random, column);
        }
    }
    assert!(tails > 50, "{tails} leaves with a tail");
}

#[test]
fn a_merge_without_keys_or_rows_ends_at_once() {
    let store = TestStore::new(Sizes::Default);
    let tree = build(&store, 2, &[[1, 2, 0, 0]]);
    let empty = TupleTree::empty(tree.id(), 2);
    let mut reader = store.reader();
    for (tree, varying, rows) in [(&tree, &[][..], 0), (&empty, &[2][..], 0), (&tree, &[2][..], 1)] {
        let keys = MergeKeys { before: &[1], varying, behind: &[] };
        let (mut way, mut out) = (tree.merge_way(&keys), Matches::new(2, 2));
        while way.next(&mut reader, &keys, &mut out, 9).unwrap() {}
        assert_eq!(out.key.len(), rows);
    }
}

#[test]
fn long_stretches_without_a_match_come_back_to_the_caller() {
    let store = TestStore::new(Sizes::Default);
    let rows: Vec<Row> = (0..1_000_000u64).map(|i| [3, i * 4, 0, 0]).collect();
    let tree = build(&store, 2, &rows);
    let keys = MergeKeys { before: &[3], varying: &[1, 3_999_996], behind: &[] };
    let mut reader = store.reader();
    let (mut way, mut out, mut calls) = (tree.merge_way(&keys), Matches::new(2, 2), 0);
    while way.next(&mut reader, &keys, &mut out, 1 << 20).unwrap() {
        calls += 1;
    }
    assert_eq!(out.key, [1]);
    assert!((3..20).contains(&calls), "{calls} calls for a million rows");
    assert_eq!(reader.meters.seq, 999_999, "all but the first, which is below the first key");
}

#[test]
#[should_panic(expected = "sorted and distinct")]
fn unsorted_keys_are_a_bug() {
    let store = TestStore::new(Sizes::Default);
    build(&store, 1, &[[5, 0, 0, 0]]).merge_way(&MergeKeys { before: &[], varying: &[2, 1], behind: &[] });
}
