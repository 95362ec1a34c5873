//! Tuple trees against a sorted vector, under default and hostile sizes.

use crate::announce;
use crate::tests::trees::{Random, Sizes, TestStore, seeds};
use crate::{
    AnyTree, Columns, Keys, Levels, Matches, Reader, ScanBounds, StoreError, TupleTree, TupleTreeBuilder,
};

type Row = [u64; 4];

/// A tree of this many rows is made of random words throughout, and has three levels.
const DEEP: usize = 200_000;

/// Rows like quads of several properties, with ties in every column.
fn rows(random: &mut Random, arity: usize, n: usize) -> Vec<Row> {
    if n == DEEP {
        let mut rows: Vec<Row> =
            (0..n).map(|_| std::array::from_fn(|_| random.word() >> random.below(3))).collect();
        rows.sort_unstable();
        return rows;
    }
    let subjects = 1 + random.below(n as u64 * 2);
    let mut rows: Vec<Row> = (0..n)
        .map(|_| {
            let object = match random.below(5) {
                0 => 6 << 60 | random.word() >> 8,
                1 => 4 << 60 | random.below(20) << 44 | random.below(1 << 22),
                _ => 1 << 60 | random.below(1 << 22),
            };
            let mut row =
                [1 << 60 | random.below(7), 1 << 60 | random.below(subjects), object, random.below(2)];
            if random.below(2) == 0 {
                row.swap(1, 2);
            }
            row[arity..].fill(0);
            row
        })
        .collect();
    rows.sort_unstable();
    rows.dedup();
    rows
}

fn build(store: &TestStore, arity: usize, rows: &[Row], random: &mut Random) -> TupleTree {
    build_as("t", store, arity, rows, random)
}

fn build_as(name: &str, store: &TestStore, arity: usize, rows: &[Row], random: &mut Random) -> TupleTree {
    let build = store.store.begin_build().unwrap();
    let mut builder = TupleTreeBuilder::new(build.new_tree(name), arity);
    let mut done = 0;
    while done < rows.len() {
        let n = (1 + random.below(700) as usize).min(rows.len() - done);
        let part = &rows[done..done + n];
        if n < 20 {
            part.iter().for_each(|r| builder.push(&r[..arity]).unwrap());
        } else {
            let columns: Vec<Vec<u64>> = (0..arity).map(|c| part.iter().map(|r| r[c]).collect()).collect();
            builder.push_columns(&columns.iter().map(|c| &c[..]).collect::<Vec<_>>()).unwrap();
        }
        done += n;
    }
    let tree = builder.finish().unwrap();
    build.put_record(name, 1, &tree.to_bytes());
    build.commit().unwrap();
    let again = TupleTree::from_bytes(&store.store.catalog(name).unwrap()).unwrap();
    assert_eq!(again, tree);
    again
}

/// A key near a row: the row's own prefix, or one off, or random.
fn key(random: &mut Random, rows: &[Row], m: usize) -> Row {
    let mut key = rows[random.below(rows.len() as u64) as usize];
    if m > 0 && random.below(3) == 0 {
        key[m - 1] = key[m - 1].wrapping_add(random.below(5)).wrapping_sub(2);
    }
    if m > 0 && random.below(20) == 0 {
        key[random.below(m as u64) as usize] = random.word();
    }
    key
}

fn check_counts(tree: &TupleTree, rows: &[Row], reader: &mut Reader, random: &mut Random) {
    let arity = tree.arity();
    for _ in 0..60 {
        let (m, n) = (random.below(arity as u64 + 1) as usize, random.below(arity as u64 + 1) as usize);
        let (lo, hi) = (key(random, rows, m), key(random, rows, n));
        let from = rows.partition_point(|r| r[..m] < lo[..m]);
        let to = rows.partition_point(|r| r[..n] <= hi[..n]);
        let count = tree.count(reader, &lo[..m], &hi[..n]).unwrap();
        assert_eq!(count, to.saturating_sub(from) as u64, "{lo:?} {hi:?}");
        let same = rows.iter().filter(|r| r[..m] == lo[..m]).count() as u64;
        assert_eq!(tree.count(reader, &lo[..m], &lo[..m]).unwrap(), same);
    }
}

fn check_scans(tree: &TupleTree, rows: &[Row], reader: &mut Reader, random: &mut Random) {
    let arity = tree.arity();
    for _ in 0..25 {
        let m = random.below(arity as u64 + 1) as usize;
        let lo = key(random, rows, m);
        let range = (m < arity && random.below(2) == 0).then(|| {
            let (a, b) = (key(random, rows, arity)[m], key(random, rows, arity)[m]);
            if random.below(8) == 0 { (a, b) } else { (a.min(b), a.max(b)) }
        });
        let fits = |r: &&Row| r[..m] == lo[..m] && range.is_none_or(|(a, b)| (a..=b).contains(&r[m]));
        let expected: Vec<&Row> = rows.iter().filter(fits).collect();
        let most = [1, 7, 100, 5000, usize::MAX][random.below(5) as usize];
        let most = if expected.len() > 3000 { most.max(7) } else { most };
        let wanted = if random.below(3) == 0 { random.below(16) as u8 } else { u8::MAX };
        let mut scan = tree.scan(ScanBounds { prefix: &lo[..m], range });
        let mut out = Columns::with_wanted(arity, wanted);
        let mut before = 0;
        while scan.next(reader, &mut out, most).unwrap() {
            assert!(out.rows > before && out.rows - before <= most);
            before = out.rows;
        }
        assert!(!scan.next(reader, &mut out, most).unwrap());
        assert_eq!(out.rows, expected.len(), "prefix {:?} range {range:?}", &lo[..m]);
        for (c, column) in out.cols.iter().enumerate() {
            let want: Vec<u64> =
                if wanted >> c & 1 == 1 { expected.iter().map(|r| r[c]).collect() } else { vec![] };
            assert_eq!(column, &want);
        }
    }
}

fn check_lookups(tree: &TupleTree, rows: &[Row], reader: &mut Reader, random: &mut Random) {
    let arity = tree.arity();
    for round in 0..25 {
        let m = random.below(arity as u64) as usize + usize::from(round % 5 != 0);
        let n = [1, 2, 30, 1000][random.below(4) as usize];
        let n = if m <= 1 { n.min(20) } else { n };
        let mut keys: Vec<Row> = (0..n).map(|_| key(random, rows, m)).collect();
        if round % 3 == 0 {
            let from = random.below(rows.len() as u64) as usize;
            keys = rows[from..rows.len().min(from + n)].to_vec(); // dense
        }
        keys.iter_mut().for_each(|k| k[m..].fill(0));
        keys.sort_unstable();
        if m == 0 {
            keys.truncate(1);
        }
        let range = (m < arity && random.below(2) == 0).then(|| {
            let (a, b) = (key(random, rows, arity)[m], key(random, rows, arity)[m]);
            (a.min(b), a.max(b))
        });
        let mut expected: Vec<(u32, Row)> = Vec::new();
        for (k, key) in keys.iter().enumerate() {
            let from = rows.partition_point(|r| r[..m] < key[..m]);
            let found = rows[from..].iter().take_while(|r| r[..m] == key[..m]);
            let found = found.filter(|r| range.is_none_or(|(a, b)| (a..=b).contains(&r[m])));
            expected.extend(found.map(|r| (k as u32, *r)));
        }
        let columns: Vec<Vec<u64>> = (0..m).map(|c| keys.iter().map(|k| k[c]).collect()).collect();
        let columns: Vec<&[u64]> = columns.iter().map(|c| &c[..]).collect();
        let most = [1, 3, 1000, usize::MAX][random.below(4) as usize];
        let most = if expected.len() > 2000 { most.max(50) } else { most };
        let mut lookup = tree.lookup(Keys::new(&columns, range));
        let mut out = Matches::new(arity, m);
        let rnd = reader.meters.rnd;
        let mut before = 0;
        while lookup.next(reader, &mut out, most).unwrap() {
            assert!(out.key.len() > before && out.key.len() - before <= most);
            before = out.key.len();
        }
        assert_eq!(reader.meters.rnd - rnd, keys.len() as u64, "each key is one lookup, found or not");
        assert_eq!(out.key, expected.iter().map(|e| e.0).collect::<Vec<_>>());
        for (c, column) in out.cols.iter().enumerate() {
            assert_eq!(column, &expected.iter().map(|e| e.1[m + c]).collect::<Vec<_>>());
        }
    }
}

#[test]
fn agrees_with_a_sorted_vector() {
    for seed in seeds(7) {
        for sizes in Sizes::BOTH {
            let started = std::time::Instant::now();
            let mut random = Random::new(seed);
            let (arity, n) =
                [(4, 60_000), (2, 250_000), (4, 1), (3, 5_000), (1, 100), (4, 300_000), (4, DEEP)]
                    [seed as usize % 7];
            let rows = rows(&mut random, arity, n);
            let store = TestStore::new(sizes);
            let tree = build(&store, arity, &rows, &mut random);
            assert_eq!(tree.rows(), rows.len() as u64);
            for m in 1..=arity {
                let mut prefixes: Vec<&[u64]> = rows.iter().map(|r| &r[..m]).collect();
                prefixes.dedup();
                assert_eq!(tree.distinct(m), prefixes.len() as u64);
            }
            let mut reader = store.reader();
            check_counts(&tree, &rows, &mut reader, &mut random);
            check_lookups(&tree, &rows, &mut reader, &mut random);
            check_scans(&tree, &rows, &mut reader, &mut random);
            // Once more with what is resident by now.
            check_lookups(&tree, &rows, &mut reader, &mut random);
            assert!(reader.meters.spec_disk <= reader.meters.disk);
            assert!(n != DEEP || tree.height() == 3);
            let (rows, took) = (tree.rows(), started.elapsed());
            eprintln!(
                "seed {seed}, {sizes:?}: arity {arity}, {rows} rows, height {}, {took:?}",
                tree.height()
            );
        }
    }
}

#[test]
fn an_empty_tree_answers() {
    let store = TestStore::new(Sizes::Default);
    let tree = build(&store, 3, &[], &mut Random::new(1));
    let mut reader = store.reader();
    assert_eq!(tree.rows(), 0);
    assert_eq!(tree.count(&mut reader, &[1], &[2]).unwrap(), 0);
    assert!(!tree.scan(ScanBounds::default()).next(&mut reader, &mut Columns::new(3), 9).unwrap());
    let keys: &[&[u64]] = &[&[1, 2]];
    assert!(!tree.lookup(Keys::new(keys, None)).next(&mut reader, &mut Matches::new(3, 1), 9).unwrap());
}

#[test]
fn meters_tell_segments_pages_and_parents() {
    let store = TestStore::new(Sizes::Default);
    let rows: Vec<Row> = (0..200_000u64).map(|i| [i, i * i % 1_000_003, 0, 0]).collect();
    let tree = build(&store, 2, &rows, &mut Random::new(3));
    assert!(tree.leaves() > 50 && tree.height() == 2);
    let mut reader = store.reader();
    let all: Vec<u64> = (0..1000).collect();
    let mut out = Matches::new(2, 1);
    while tree.lookup(Keys::new(&[&all], None)).next(&mut reader, &mut out, usize::MAX).unwrap()
        && out.key.len() < 1000
    {}
    let m = reader.meters;
    assert_eq!((m.rnd, m.seq), (1000, 1000));
    assert!(m.same_seg > 980, "{m:?}");
    let apart: Vec<u64> = (0..50).map(|i| i * 4000).collect();
    out.clear();
    assert!(tree.lookup(Keys::new(&[&apart], None)).next(&mut reader, &mut out, usize::MAX).unwrap());
    let m = reader.meters.since(&m);
    assert_eq!((m.rnd, m.same_seg, m.same_par), (50, 0, 49), "{m:?}");
}

#[test]
fn an_announced_star_is_there() {
    let store = TestStore::new(Sizes::Default);
    let rows: Vec<Row> = (0..300_000u64).map(|i| [i, i * i % 1_000_003, 0, 0]).collect();
    let first = build(&store, 2, &rows, &mut Random::new(4));
    let second = build_as("second", &store, 2, &rows[..200_000], &mut Random::new(5));
    let keys: Vec<u64> = (0..40).map(|i| i * 5000).collect();
    let keys: &[&[u64]] = &[&keys];
    let mut reader = store.reader();
    let both =
        [(AnyTree::from(&first), Keys::new(keys, None)), (AnyTree::from(&second), Keys::new(keys, None))];
    announce(&mut reader, &both, Levels::Leaves).unwrap();
    let ahead = reader.meters;
    assert!(ahead.spec_disk > 0);
    for tree in [&first, &second] {
        let mut out = Matches::new(2, 1);
        assert!(tree.lookup(Keys::new(keys, None)).next(&mut reader, &mut out, usize::MAX).unwrap());
        assert_eq!(out.key.len(), 40);
    }
    assert_eq!(reader.meters.since(&ahead).disk, 0, "everything was read or on its way");
}

#[test]
#[should_panic(expected = "ascending order")]
fn unsorted_rows_are_a_bug() {
    let store = TestStore::new(Sizes::Default);
    let build = store.store.begin_build().unwrap();
    let mut builder = TupleTreeBuilder::new(build.new_tree("t"), 2);
    builder.push(&[2, 1]).unwrap();
    let _ = builder.push_columns(&[&[1], &[9]]);
}

#[test]
fn a_damaged_record_is_refused() {
    let record = TupleTree::empty(crate::TreeId(3), 2).to_bytes();
    assert!(TupleTree::from_bytes(&record).is_ok());
    for cut in 0..record.len() {
        assert!(matches!(TupleTree::from_bytes(&record[..cut]), Err(StoreError::Corrupt { .. })));
    }
}
