//! Record trees against an ordered map, under default and hostile sizes.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::tree_tests::{Random, Sizes, TestStore, seeds};
use crate::{KeyWriter, RecordTree, RecordTreeBuilder, StoreError};

fn build(store: &TestStore, records: &BTreeMap<Vec<u8>, Vec<u8>>) -> RecordTree {
    let build = store.store.begin_build().unwrap();
    let mut builder = RecordTreeBuilder::new(build.new_tree("r"));
    records.iter().for_each(|(k, v)| builder.push(k, v).unwrap());
    let tree = builder.finish().unwrap();
    build.put_record("r", 3, &tree.to_bytes());
    build.commit().unwrap();
    RecordTree::from_bytes(&store.store.catalog("r").unwrap()).unwrap()
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
