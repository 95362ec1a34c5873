//! String trees against a vector of strings, under default and hostile sizes.

use crate::tests::trees::{Random, Sizes, TestStore, seeds};
use crate::{Reader, Snapshot, StoreError, StringTree, StringTreeBuilder};

/// Short names, sentences, a few long and very long values, noise that does not compress.
fn strings(random: &mut Random, n: usize) -> Vec<Vec<u8>> {
    const WORDS: [&str; 8] = ["snow", "melt", "ridge", "Product", "review", "http://", "inst", "feature"];
    (0..n)
        .map(|i| match random.below(200) {
            0 => Vec::new(),
            1 => (0..random.below(30_000)).map(|_| random.word() as u8).collect(),
            2 => (0..random.below(9_000)).flat_map(|_| WORDS[random.below(8) as usize].bytes()).collect(),
            3..20 => (0..random.below(60)).flat_map(|_| WORDS[random.below(8) as usize].bytes()).collect(),
            _ => format!("{}{}", WORDS[random.below(8) as usize], i * 7 % 1000).into_bytes(),
        })
        .collect()
}

fn build(store: &TestStore, strings: &[Vec<u8>]) -> StringTree {
    let build = store.store.begin_build().unwrap();
    let sample: Vec<&[u8]> = strings.iter().take(300).map(|s| &s[..]).collect();
    let mut builder = StringTreeBuilder::new(build.new_tree("s"), &sample).unwrap();
    for (i, s) in strings.iter().enumerate() {
        assert_eq!(builder.push(s).unwrap(), i as u64);
    }
    let tree = builder.finish().unwrap();
    build.put_record("s", 2, &tree.to_bytes());
    build.commit().unwrap();
    StringTree::from_bytes(&store.store.catalog("s").unwrap()).unwrap()
}

#[test]
fn agrees_with_a_vector() {
    for seed in seeds(3) {
        for sizes in Sizes::BOTH {
            let mut random = Random::new(seed);
            let n = [20_000, 1, 60_000][seed as usize % 3];
            let strings = strings(&mut random, n);
            let store = TestStore::new(sizes);
            let tree = build(&store, &strings);
            assert_eq!(tree.len(), n as u64);
            assert_eq!(tree.bytes(), strings.iter().map(|s| s.len() as u64).sum::<u64>());
            let mut reader = store.reader();
            for round in 0..30 {
                let m = [1, 10, 2000][round % 3];
                let mut ids: Vec<u64> = (0..m).map(|_| random.below(n as u64)).collect();
                if round % 4 == 0 {
                    let from = random.below(n as u64);
                    ids = (from..(from + m as u64).min(n as u64)).collect();
                }
                ids.sort_unstable();
                let mut seen = vec![0; ids.len()];
                tree.get(&mut reader, &ids, |i, s| {
                    assert_eq!(s, &strings[ids[i] as usize][..], "seed {seed} id {}", ids[i]);
                    seen[i] += 1;
                })
                .unwrap();
                assert!(seen.iter().all(|&s| s == 1), "each id is answered once");
            }
            let wrong = tree.get(&mut reader, &[0, n as u64], |_, _| ());
            assert!(matches!(wrong, Err(StoreError::Damaged { .. })), "{wrong:?}");
            eprintln!(
                "seed {seed}, {sizes:?}: {n} strings of {} bytes in {} pages",
                tree.bytes(),
                tree.pages()
            );
        }
    }
}

/// Every string, against the model, and the tree as a whole.
fn compare(tree: &StringTree, model: &[Vec<u8>], reader: &mut Reader) {
    assert_eq!(tree.len(), model.len() as u64);
    tree.check(reader).unwrap();
    let ids: Vec<u64> = (0..tree.len()).collect();
    let mut seen = 0;
    let each = |i: usize, s: &[u8]| {
        assert!(s == model[i], "string {i}");
        seen += 1;
    };
    tree.get(reader, &ids, each).unwrap();
    assert_eq!(seen, model.len());
}

#[test]
fn appended_strings_agree_with_a_vector() {
    for seed in seeds(6) {
        let sizes = Sizes::BOTH[seed as usize % 2];
        let mut random = Random::new(seed);
        let store = TestStore::new(sizes);
        let mut model = strings(&mut random, [0, 1, 9000][seed as usize % 3]);
        let mut tree = match model.is_empty() {
            false => build(&store, &model),
            true => {
                let mut txn = store.store.begin().unwrap();
                let tree = StringTree::create(&mut txn, "s").unwrap();
                txn.put_record("s", 2, &tree.to_bytes());
                txn.commit().unwrap();
                tree
            }
        };
        let mut kept: Vec<(Snapshot, usize)> = Vec::new();
        for round in 0..40 {
            let mut txn = store.store.begin().unwrap();
            let before = (tree.clone(), model.len());
            for _ in 0..1 + random.below(3) {
                let n = [1, 2, 20, 3000][random.below(4) as usize];
                let new = strings(&mut random, n);
                let values: Vec<&[u8]> = new.iter().map(|s| &s[..]).collect();
                assert_eq!(tree.append(&mut txn, &values).unwrap(), model.len() as u64);
                model.extend(new);
            }
            if random.below(6) == 0 {
                compare(&tree, &model, &mut Reader::new(&store.store, txn.snapshot()));
                drop(txn);
                tree = before.0;
                model.truncate(before.1);
                continue;
            }
            txn.put_record("s", 2, &tree.to_bytes());
            txn.commit().unwrap();
            if round % 8 == 0 {
                compare(&tree, &model, &mut store.reader());
                kept.push((store.store.snapshot(), model.len()));
            }
        }
        for (snapshot, len) in kept {
            let old = StringTree::from_bytes(&snapshot.record("s").unwrap()).unwrap();
            compare(&old, &model[..len], &mut Reader::new(&store.store, snapshot));
        }
        let (bytes, pages) = (tree.bytes(), tree.pages());
        eprintln!(
            "seed {seed}, {sizes:?}: {} strings of {bytes} bytes in {pages} pages, height {}",
            tree.len(),
            tree.shape.height
        );
    }
}

#[test]
fn a_deep_tree_grows() {
    let store = TestStore::new(Sizes::Hostile);
    let mut random = Random::new(3);
    let mut txn = store.store.begin().unwrap();
    let mut tree = StringTree::create(&mut txn, "s").unwrap();
    let mut model: Vec<Vec<u8>> = Vec::new();
    for _ in 0..26 {
        let new: Vec<Vec<u8>> = (0..500).map(|_| (0..1500).map(|_| random.word() as u8).collect()).collect();
        tree.append(&mut txn, &new.iter().map(|s| &s[..]).collect::<Vec<_>>()).unwrap();
        model.extend(new);
    }
    assert_eq!(tree.shape.height, 3);
    txn.commit().unwrap();
    compare(&tree, &model, &mut store.reader());
}

#[test]
fn no_strings_and_no_sample() {
    let store = TestStore::new(Sizes::Default);
    let tree = build(&store, &[]);
    assert!(tree.is_empty());
    tree.get(&mut store.reader(), &[], |_, _| panic!("no strings")).unwrap();
    assert!(tree.get(&mut store.reader(), &[0], |_, _| ()).is_err());
}

#[test]
fn a_value_of_many_pages_lies_in_pieces() {
    let store = TestStore::new(Sizes::Hostile);
    let mut random = Random::new(5);
    let noise: Vec<u8> = (0..3_000_000).map(|_| random.word() as u8).collect();
    let strings = [b"before".to_vec(), noise, b"behind".to_vec()];
    let tree = build(&store, &strings);
    let mut found = vec![Vec::new(); 3];
    tree.get(&mut store.reader(), &[0, 1, 2], |i, s| found[i] = s.to_vec()).unwrap();
    assert!(found == strings);
}

#[test]
fn a_damaged_record_is_refused() {
    let record = StringTree::new(crate::TreeId(3), None, crate::PageId(1), 0, 0, 0).to_bytes();
    assert!(StringTree::from_bytes(&record).is_ok());
    for cut in 0..record.len() {
        assert!(matches!(StringTree::from_bytes(&record[..cut]), Err(StoreError::Corrupt { .. })));
    }
}
