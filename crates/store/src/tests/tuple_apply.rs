//! Changed tuple trees against an ordered set: random transactions, tiny extents, snapshots
//! taken in between.

use std::collections::BTreeSet;

use crate::format::inner::{Child, Inner};
use crate::tests::trees::{Random, Sizes, TestStore, seeds};
use crate::{
    Changes, Columns, Keys, Matches, PageKind, Reader, Relocation, ScanBounds, Snapshot, Transaction,
    TupleTree, TupleTreeBuilder,
};

type Row = [u64; 4];

/// In this world all columns are random words, which makes trees of three levels.
const DEEP: u64 = 1 << 40;

/// A row of a small world, so that changes meet what is there.
fn row(random: &mut Random, arity: usize, world: u64) -> Row {
    let object = match random.below(4) {
        0 => 4 << 60 | random.below(5) << 44 | random.below(world),
        _ => 1 << 60 | random.below(world),
    };
    let mut row = [1 << 60 | random.below(3), 1 << 60 | random.below(world), object, random.below(2)];
    if world == DEEP {
        row = std::array::from_fn(|_| random.word() >> random.below(3));
    }
    if arity == 1 {
        row[0] = random.below(world * 8) * 3;
    }
    row[arity..].fill(0);
    row
}

/// Changes of one kind: scattered, in one place, behind the end, or taking what is there.
fn changes(
    random: &mut Random,
    arity: usize,
    model: &BTreeSet<Row>,
    n: usize,
    world: u64,
) -> BTreeSet<(Row, bool)> {
    let mut by_row = std::collections::BTreeMap::new();
    let kind = random.below(5);
    let base = row(random, arity, world);
    let all: Vec<&Row> = if kind == 3 { model.iter().collect() } else { Vec::new() };
    for i in 0..n as u64 {
        let mut new = row(random, arity, world);
        match kind {
            0 => (0..arity - 1).for_each(|c| new[c] = base[c]),
            1 => new[0] = 9 << 60 | i,
            3 if !all.is_empty() => new = *all[random.below(all.len() as u64) as usize],
            _ => {}
        }
        by_row.insert(new, if kind == 3 { false } else { random.below(4) > 0 });
    }
    by_row.into_iter().collect()
}

fn apply(
    tree: &mut TupleTree,
    txn: &mut Transaction,
    model: &mut BTreeSet<Row>,
    all: &BTreeSet<(Row, bool)>,
) {
    let mut changes = Changes::new(tree.arity());
    let mut expected = Vec::new();
    for (row, insert) in all {
        changes.push(&row[..tree.arity()], *insert);
        expected.push(if *insert { model.insert(*row) } else { model.remove(row) });
    }
    let applied = tree.apply(txn, &changes).unwrap();
    assert_eq!(applied.effective, expected);
    let inserted = all.iter().zip(&expected).filter(|((_, insert), e)| *insert && **e).count() as u64;
    assert_eq!(applied.inserted, inserted);
    assert_eq!(applied.deleted, expected.iter().filter(|e| **e).count() as u64 - inserted);
}

/// Everything a reader can ask, against the model.
fn compare(tree: &TupleTree, model: &BTreeSet<Row>, reader: &mut Reader, random: &mut Random) {
    let arity = tree.arity();
    assert_eq!(tree.rows(), model.len() as u64);
    tree.check(reader).unwrap();
    let rows: Vec<Row> = model.iter().copied().collect();
    let mut out = Columns::new(arity);
    let mut scan = tree.scan(ScanBounds::default());
    let most = [usize::MAX, 1000, 77][random.below(3) as usize];
    while scan.next(reader, &mut out, most).unwrap() {}
    for c in 0..arity {
        assert_eq!(out.cols[c], rows.iter().map(|r| r[c]).collect::<Vec<_>>());
    }
    let Some(top) = (rows.len() as u64).checked_sub(1) else { return };
    for _ in 0..30 {
        let m = random.below(arity as u64 + 1) as usize;
        let (a, b) = (rows[random.below(top + 1) as usize], rows[random.below(top + 1) as usize]);
        let (lo, hi) = (a.min(b), a.max(b));
        let from = rows.partition_point(|r| r[..m] < lo[..m]);
        let to = rows.partition_point(|r| r[..m] <= hi[..m]);
        assert_eq!(tree.count(reader, &lo[..m], &hi[..m]).unwrap(), (to - from) as u64);
        if m > 0 {
            let mut out = Columns::with_wanted(arity, 0b101);
            let (least, most) = (lo[m - 1], lo[m - 1].saturating_add(random.below(40)));
            let mut scan = tree.scan(ScanBounds { prefix: &lo[..m - 1], range: Some((least, most)) });
            while scan.next(reader, &mut out, 50).unwrap() {}
            let fits = |r: &&Row| r[..m - 1] == lo[..m - 1] && (least..=most).contains(&r[m - 1]);
            assert_eq!(out.cols[0], rows.iter().filter(fits).map(|r| r[0]).collect::<Vec<_>>());
            assert_eq!(out.rows, out.cols[0].len());
        }
    }
    let m = 1 + random.below(arity as u64) as usize;
    let mut keys: Vec<Row> = (0..200).map(|_| rows[random.below(top + 1) as usize]).collect();
    keys.extend((0..50).map(|_| row(random, arity, 1000)));
    keys.iter_mut().for_each(|k| k[m..].fill(0));
    keys.sort_unstable();
    if m == 1 {
        keys.dedup();
    }
    let mut expected: Vec<(u32, Row)> = Vec::new();
    for (k, key) in keys.iter().enumerate() {
        let from = rows.partition_point(|r| r[..m] < key[..m]);
        expected.extend(rows[from..].iter().take_while(|r| r[..m] == key[..m]).map(|r| (k as u32, *r)));
    }
    let columns: Vec<Vec<u64>> = (0..m).map(|c| keys.iter().map(|k| k[c]).collect()).collect();
    let columns: Vec<&[u64]> = columns.iter().map(|c| &c[..]).collect();
    let mut lookup = tree.lookup(Keys::new(&columns, None));
    let mut out = Matches::new(arity, m);
    while lookup.next(reader, &mut out, 700).unwrap() {}
    assert_eq!(out.key, expected.iter().map(|e| e.0).collect::<Vec<_>>());
    for (c, column) in out.cols.iter().enumerate() {
        assert_eq!(column, &expected.iter().map(|e| e.1[m + c]).collect::<Vec<_>>());
    }
}

/// A tree begun empty, or built in bulk.
fn begin(store: &TestStore, arity: usize, bulk: &BTreeSet<Row>) -> TupleTree {
    if bulk.is_empty() {
        let mut txn = store.store.begin().unwrap();
        let tree = TupleTree::create(&mut txn, "t", arity).unwrap();
        txn.put_record("t", 1, &tree.to_bytes());
        txn.commit().unwrap();
        return tree;
    }
    let build = store.store.begin_build().unwrap();
    let mut builder = TupleTreeBuilder::new(build.new_tree("t"), arity);
    bulk.iter().for_each(|r| builder.push(&r[..arity]).unwrap());
    let tree = builder.finish().unwrap();
    build.put_record("t", 1, &tree.to_bytes());
    build.commit().unwrap();
    tree
}

struct Kept {
    snapshot: Snapshot,
    model: BTreeSet<Row>,
}

#[test]
fn changes_agree_with_an_ordered_set() {
    for seed in seeds(8) {
        let sizes = Sizes::BOTH[seed as usize % 2];
        let mut random = Random::new(seed);
        let arity = 1 + random.below(4) as usize;
        let world = [300, 5000, 40_000, DEEP][seed as usize / 2 % 4];
        eprintln!("seed {seed}: {sizes:?}, arity {arity}, world {world}");
        let store = TestStore::new(sizes);
        let bulk = if seed % 3 == 0 { 0 } else { [30_000, 150_000][usize::from(world == DEEP)] };
        let mut model: BTreeSet<Row> = (0..bulk).map(|_| row(&mut random, arity, world)).collect();
        let mut tree = begin(&store, arity, &model);
        let mut kept: Vec<Kept> = Vec::new();
        for round in 0..60 {
            let mut txn = store.store.begin().unwrap();
            let dropped = random.below(10) == 0;
            let before = (tree.clone(), model.clone());
            for _ in 0..1 + random.below(3) {
                let n = [1, 3, 30, 400, 6000][random.below(5) as usize];
                let all = changes(&mut random, arity, &model, n, world);
                apply(&mut tree, &mut txn, &mut model, &all);
                if random.below(8) == 0 {
                    compare(&tree, &model, &mut Reader::new(&store.store, txn.snapshot()), &mut random);
                }
            }
            if random.below(4) == 0 {
                let rule = Relocation {
                    disorder: [0.0, 0.3][random.below(2) as usize],
                    changed: 0.0,
                    ..Relocation::default()
                };
                tree.relocate(&mut txn, &rule).unwrap();
            }
            if dropped {
                drop(txn);
                (tree, model) = before;
            } else {
                txn.put_record("t", 1, &tree.to_bytes());
                txn.commit().unwrap();
            }
            if round % 4 == 0 {
                if round % 20 == 0 {
                    let (leaves, height) = (tree.leaves(), tree.height());
                    eprintln!("round {round}: {} rows, {leaves} leaves, height {height}", tree.rows());
                }
                compare(&tree, &model, &mut store.reader(), &mut random);
                kept.push(Kept { snapshot: store.store.snapshot(), model: model.clone() });
            }
            if kept.len() > 3 {
                let old = kept.swap_remove(random.below(4) as usize);
                let as_of = TupleTree::from_bytes(&old.snapshot.record("t").unwrap()).unwrap();
                compare(&as_of, &old.model, &mut Reader::new(&store.store, old.snapshot), &mut random);
            }
        }
        // Everything goes, then something comes back.
        let mut txn = store.store.begin().unwrap();
        let all = model.iter().map(|r| (*r, false)).collect();
        apply(&mut tree, &mut txn, &mut model, &all);
        assert_eq!((tree.rows(), tree.height(), tree.leaves(), tree.pages()), (0, 0, 0, 0));
        let all = changes(&mut random, arity, &model, 500, world);
        apply(&mut tree, &mut txn, &mut model, &all);
        compare(&tree, &model, &mut Reader::new(&store.store, txn.snapshot()), &mut random);
        txn.commit().unwrap();
    }
}

#[test]
fn relocation_puts_leaves_in_order() {
    let store = TestStore::new(Sizes::Hostile);
    let mut random = Random::new(11);
    let mut tree = begin(&store, 4, &BTreeSet::new());
    let mut model = BTreeSet::new();
    for _ in 0..40 {
        let mut txn = store.store.begin().unwrap();
        let all = (0..1500).map(|_| (row(&mut random, 4, DEEP), true)).collect();
        apply(&mut tree, &mut txn, &mut model, &all);
        txn.put_record("t", 1, &tree.to_bytes());
        txn.commit().unwrap();
    }
    let old = store.store.snapshot();
    let mut txn = store.store.begin().unwrap();
    let (before, old_tree, extents) =
        (tree.disorder(&mut txn).unwrap(), tree.clone(), store.store.extents().len());
    assert!(before > 0.3, "random inserts leave {before}");
    let unchanged = tree.relocate(&mut txn, &Relocation::default()).unwrap();
    assert_eq!(unchanged.subtrees, 0, "nothing was changed by this transaction");
    let done = tree.relocate(&mut txn, &Relocation { changed: 0.0, ..Relocation::default() }).unwrap();
    assert_eq!(done.leaves, tree.leaves());
    assert_eq!(tree.disorder(&mut txn).unwrap(), 0.0, "from {before}");
    let again = tree.relocate(&mut txn, &Relocation { changed: 0.0, ..Relocation::default() }).unwrap();
    assert_eq!(again.subtrees, 0, "what is in order stays");
    txn.put_record("t", 1, &tree.to_bytes());
    txn.commit().unwrap();
    compare(&tree, &model, &mut store.reader(), &mut random);
    compare(&old_tree, &model, &mut Reader::new(&store.store, old), &mut random);
    eprintln!("{} leaves, disorder {before:.2}, {extents} extents before", tree.leaves());
}

/// The leaves of a tree of two levels, as its root has them.
fn leaves(tree: &TupleTree, txn: &mut Transaction) -> Vec<Child> {
    assert_eq!(tree.height(), 2);
    let root = txn.page(tree.id(), tree.shape.root).unwrap();
    Inner::parse(&root, PageKind::TupleInner, tree.arity(), 1).unwrap().all(&root).unwrap()
}

/// Two full leaves become three. The last one holds rows of the second only, so it stays in
/// that one's page, and the new page comes between: the journal need not repeat what did not
/// move.
#[test]
fn the_first_and_the_last_of_leaves_that_split_keep_their_pages() {
    let store = TestStore::new(Sizes::Default);
    let mut random = Random::new(5);
    let mut model: BTreeSet<Row> = (0..2000).map(|_| row(&mut random, 4, DEEP)).collect();
    let mut tree = begin(&store, 4, &model);
    let mut txn = store.store.begin().unwrap();
    let before = leaves(&tree, &mut txn);
    assert!(before.len() > 3, "the first two of {} leaves are full", before.len());
    // Half as many rows again, all of them for the first leaf: more than its tail takes, less
    // than fills another one.
    let fence = before[1].separator[0];
    let below_fence = |_| {
        let mut new = row(&mut random, 4, DEEP);
        new[0] = random.below(fence);
        (new, true)
    };
    let all = (0..before[0].rows / 2).map(below_fence).collect();
    apply(&mut tree, &mut txn, &mut model, &all);
    let after = leaves(&tree, &mut txn);
    let new = after[1].page;
    assert!(before.iter().all(|leaf| leaf.page != new), "{new:?} is new");
    let mut expected: Vec<_> = before.iter().map(|leaf| leaf.page).collect();
    expected.insert(1, new);
    assert_eq!(after.iter().map(|leaf| leaf.page).collect::<Vec<_>>(), expected);
    let (old, last) = (&before[1], &after[2]);
    assert!(last.separator > old.separator && last.rows < old.rows, "no row has come into the last leaf");
    txn.put_record("t", 1, &tree.to_bytes());
    txn.commit().unwrap();
    compare(&tree, &model, &mut store.reader(), &mut random);
}
