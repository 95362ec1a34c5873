//! Record trees against an ordered map, under default and hostile sizes.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::tests::trees::{Random, Sizes, TestStore, seeds};
use crate::{KeyWriter, Reader, RecordChange, RecordTree, RecordTreeBuilder, RecordsApplied, StoreError};

fn build(store: &TestStore, records: &BTreeMap<Vec<u8>, Vec<u8>>) -> RecordTree {
    let build = store.store.begin_build().unwrap();
    let mut builder = RecordTreeBuilder::new(build.new_tree("r"));
    records.iter().for_each(|(k, v)| builder.push(k, v).unwrap());
    let tree = builder.finish().unwrap();
    build.put_record("r", 3, &tree.to_bytes());
    build.commit().unwrap();
    RecordTree::from_bytes(&store.store.catalog("r").unwrap()).unwrap()
}

/// Keys that begin with one of many long parts, which makes trees of three levels.
fn long_key(random: &mut Random) -> Vec<u8> {
    let part = vec![1 + random.below(60) as u8; 900];
    KeyWriter::new().bytes(&part).u64(random.below(3000)).finish()
}

fn key(random: &mut Random) -> Vec<u8> {
    let table = ["lineitem", "orders", "part"][random.below(3) as usize];
    KeyWriter::new().str(table).u64(random.below(40_000)).i64(random.below(3) as i64 - 1).finish()
}

fn value(random: &mut Random) -> Vec<u8> {
    let n = if random.below(300) == 0 { random.below(40_000) } else { random.below(40) };
    (0..n).map(|_| random.below(50) as u8).collect()
}

#[test]
fn agrees_with_an_ordered_map() {
    for seed in seeds(3) {
        for sizes in Sizes::BOTH {
            let mut random = Random::new(seed);
            let n = [60_000, 1, 3_000][seed as usize % 3];
            let records: BTreeMap<_, _> = (0..n).map(|_| (key(&mut random), value(&mut random))).collect();
            let store = TestStore::new(sizes);
            let tree = build(&store, &records);
            assert_eq!(tree.len(), records.len() as u64);
            let mut reader = store.reader();
            let all: Vec<&Vec<u8>> = records.keys().collect();
            let mut found = Vec::new();
            for _ in 0..2000 {
                let k = match random.below(2) {
                    0 => all[random.below(all.len() as u64) as usize].clone(),
                    _ => key(&mut random),
                };
                assert_eq!(
                    tree.get(&mut reader, &k, &mut found).unwrap(),
                    records.contains_key(&k),
                    "seed {seed}"
                );
                if let Some(v) = records.get(&k) {
                    assert_eq!(&found, v);
                }
            }
            for round in 0..20 {
                let (a, b) = (key(&mut random), key(&mut random));
                let (a, b) = (a.clone().min(b.clone()), a.max(b));
                let bounds = match round % 4 {
                    0 => (Bound::Unbounded, Bound::Unbounded),
                    1 => (Bound::Included(&a[..]), Bound::Excluded(&b[..])),
                    2 => (Bound::Excluded(&a[..]), Bound::Included(&b[..])),
                    _ => (Bound::Included(&a[..]), Bound::Included(&a[..])),
                };
                let mut scan = tree.scan(bounds.0, bounds.1);
                let most = if round % 4 == 3 { 1 } else { 1 + random.below(900) as usize };
                let mut expected = records.range::<[u8], _>(bounds);
                while scan
                    .next(&mut reader, most, |k, v| {
                        assert_eq!(expected.next().unwrap(), (&k.to_vec(), &v.to_vec()))
                    })
                    .unwrap()
                {}
                assert_eq!(expected.next(), None, "seed {seed} {bounds:?}");
            }
            let prefix = KeyWriter::new().str("orders").finish();
            let mut n = 0;
            let mut scan = tree.scan_prefix(&prefix);
            while scan
                .next(&mut reader, 500, |k, _| {
                    assert!(k.starts_with(&prefix));
                    n += 1
                })
                .unwrap()
            {}
            assert_eq!(n, records.keys().filter(|k| k.starts_with(&prefix)).count());
            eprintln!("seed {seed}, {sizes:?}: {} records in {} pages", tree.len(), tree.pages());
        }
    }
}

/// Every record, against the model, and the tree as a whole.
fn compare(tree: &RecordTree, model: &BTreeMap<Vec<u8>, Vec<u8>>, reader: &mut Reader) {
    assert_eq!(tree.len(), model.len() as u64);
    tree.check(reader).unwrap();
    let mut expected = model.iter();
    let mut scan = tree.scan(Bound::Unbounded, Bound::Unbounded);
    while scan
        .next(reader, 1000, |k, v| assert!(expected.next().unwrap() == (&k.to_vec(), &v.to_vec())))
        .unwrap()
    {}
    assert_eq!(expected.next(), None);
    let mut value = Vec::new();
    for (k, v) in model.iter().step_by(model.len() / 100 + 1) {
        assert!(tree.get(reader, k, &mut value).unwrap() && value == *v);
    }
}

#[test]
fn changes_agree_with_an_ordered_map() {
    for seed in seeds(6) {
        let sizes = Sizes::BOTH[seed as usize % 2];
        let mut random = Random::new(seed);
        let store = TestStore::new(sizes);
        let n = [0, 8000][seed as usize % 3 % 2];
        let key = if seed % 3 == 0 { long_key } else { key };
        let mut model: BTreeMap<_, _> = (0..n).map(|_| (key(&mut random), value(&mut random))).collect();
        let mut tree = match n {
            0 => {
                let mut txn = store.store.begin().unwrap();
                let tree = RecordTree::create(&mut txn, "r").unwrap();
                txn.put_record("r", 3, &tree.to_bytes());
                txn.commit().unwrap();
                tree
            }
            _ => build(&store, &model),
        };
        let mut kept = Vec::new();
        for round in 0..50 {
            let mut txn = store.store.begin().unwrap();
            let before = (tree.clone(), model.clone());
            let n = [1, 5, 100, 3000][random.below(4) as usize];
            let mut changes: BTreeMap<Vec<u8>, Option<Vec<u8>>> = BTreeMap::new();
            let all: Vec<&Vec<u8>> = model.keys().collect();
            for _ in 0..n {
                let known = random.below(3) > 0 && !all.is_empty();
                let k = if known {
                    all[random.below(all.len() as u64) as usize].clone()
                } else {
                    key(&mut random)
                };
                changes.insert(k, (random.below(5) > 0).then(|| value(&mut random)));
            }
            if round == 30 {
                changes = model.keys().map(|k| (k.clone(), None)).collect();
            }
            let mut expected = RecordsApplied::default();
            for (k, v) in &changes {
                let was = match v {
                    Some(v) => model.insert(k.clone(), v.clone()),
                    None => model.remove(k),
                };
                match (was, v) {
                    (Some(_), Some(_)) => expected.replaced += 1,
                    (Some(_), None) => expected.deleted += 1,
                    (None, Some(_)) => expected.inserted += 1,
                    (None, None) => {}
                }
            }
            let changes: Vec<RecordChange> = changes.iter().map(|(k, v)| (&k[..], v.as_deref())).collect();
            assert_eq!(tree.apply(&mut txn, &changes).unwrap(), expected, "seed {seed}");
            if round == 30 {
                assert_eq!((tree.height, tree.pages()), (0, 0));
            }
            if random.below(6) == 0 {
                compare(&tree, &model, &mut Reader::new(&store.store, txn.snapshot()));
                (tree, model) = before;
                continue;
            }
            txn.put_record("r", 3, &tree.to_bytes());
            txn.commit().unwrap();
            if round % 8 == 0 {
                compare(&tree, &model, &mut store.reader());
                kept.push((store.store.snapshot(), model.clone()));
            }
        }
        for (snapshot, model) in kept {
            let old = RecordTree::from_bytes(&snapshot.record("r").unwrap()).unwrap();
            compare(&old, &model, &mut Reader::new(&store.store, snapshot));
        }
        eprintln!(
            "seed {seed}, {sizes:?}: {} records in {} pages, height {}",
            tree.len(),
            tree.pages(),
            tree.height
        );
    }
}

#[test]
fn one_record_changes_few_bytes() {
    let store = TestStore::new(Sizes::Default);
    let records = (0..3000u64).map(|i| (KeyWriter::new().u64(i * 10).finish(), vec![7; 20])).collect();
    let mut tree = build(&store, &records);
    let mut changed = Vec::new();
    for i in 0..60u64 {
        let key = KeyWriter::new().u64(i * 10 % 300 + 1).finish();
        let mut txn = store.store.begin().unwrap();
        let mut before = store.reader();
        tree.apply(&mut txn, &[(&key, Some(&[9; 20]))]).unwrap();
        txn.commit().unwrap();
        let (mut after, mut bytes) = (store.reader(), 0);
        for page in (0..tree.pages()).map(crate::PageId) {
            let (Ok(a), Ok(b)) = (before.page(tree.id(), page), after.page(tree.id(), page)) else {
                continue;
            };
            bytes += (24..a.len()).filter(|&at| a[at] != b[at]).count();
        }
        changed.push(bytes);
    }
    changed.sort_unstable();
    assert!(changed[30] < 500, "bytes changed by one record: {changed:?}");
}

#[test]
fn an_empty_tree_and_long_keys() {
    let store = TestStore::new(Sizes::Default);
    let tree = build(&store, &BTreeMap::new());
    let mut reader = store.reader();
    assert!(!tree.get(&mut reader, b"x", &mut Vec::new()).unwrap());
    assert!(!tree.scan(Bound::Unbounded, Bound::Unbounded).next(&mut reader, 1, |_, _| ()).unwrap());
    let build = store.store.begin_build().unwrap();
    let mut builder = RecordTreeBuilder::new(build.new_tree("s"));
    assert!(matches!(builder.push(&[1; 3000], b""), Err(StoreError::Config(_))));
}

#[test]
fn a_damaged_record_is_refused() {
    let record = RecordTree::new(crate::TreeId(3), crate::PageId(0), 0, 0, 0).to_bytes();
    assert!(RecordTree::from_bytes(&record).is_ok());
    for cut in 0..record.len() {
        assert!(matches!(RecordTree::from_bytes(&record[..cut]), Err(StoreError::Corrupt { .. })));
    }
}
