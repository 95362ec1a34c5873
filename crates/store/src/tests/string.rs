//! String trees against a vector of strings, under default and hostile sizes.

use crate::tests::string_codec::sentences;
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

/// Strings of words, with some of other kinds among them.
fn wordy(random: &mut Random, bytes: usize) -> Vec<Vec<u8>> {
    let mut all = sentences(3000, bytes);
    let len = all.len() as u64;
    let other = strings(random, all.len() / 10);
    other.into_iter().for_each(|s| all[random.below(len) as usize] = s);
    all
}

fn build(store: &TestStore, strings: &[Vec<u8>]) -> StringTree {
    build_with(store, strings, 300)
}

/// Builds a tree whose codec is chosen from so many strings.
fn build_with(store: &TestStore, strings: &[Vec<u8>], sampled: usize) -> StringTree {
    let build = store.store.begin_build().unwrap();
    let sample: Vec<&[u8]> = strings.iter().take(sampled).map(|s| &s[..]).collect();
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

/// Trees with a dictionary, from a build and from a transaction.
#[test]
fn trees_with_a_dictionary_agree_with_a_vector() {
    for seed in seeds(2) {
        let mut random = Random::new(seed);
        let store = TestStore::new(Sizes::BOTH[seed as usize % 2]);
        let mut model = wordy(&mut random, 400_000);
        let mut record = if seed % 2 == 0 {
            build_with(&store, &model, usize::MAX).to_bytes()
        } else {
            let mut txn = store.store.begin().unwrap();
            let mut tree = StringTree::create(&mut txn, "s").unwrap();
            tree.append(&mut txn, &model.iter().map(|s| &s[..]).collect::<Vec<_>>()).unwrap();
            compare(&tree, &model, &mut txn.reader());
            txn.put_record("s", 2, &tree.to_bytes());
            txn.commit().unwrap();
            tree.to_bytes()
        };
        let checksum = StringTree::from_bytes(&record).unwrap().dictionary;
        assert!(checksum.is_some(), "there are enough words");
        assert_eq!(store.store.codecs.memory_bytes(), 0, "no handle has it");
        for _ in 0..6 {
            let mut tree = StringTree::from_bytes(&record).unwrap();
            compare(&tree, &model, &mut store.reader());
            assert!(store.store.codecs.memory_bytes() > 0);
            let mut txn = store.store.begin().unwrap();
            let new = match random.below(2) {
                0 => strings(&mut random, 300),
                _ => wordy(&mut random, 30_000),
            };
            let values: Vec<&[u8]> = new.iter().map(|s| &s[..]).collect();
            assert_eq!(tree.append(&mut txn, &values).unwrap(), model.len() as u64);
            model.extend(new);
            record = tree.to_bytes();
            txn.put_record("s", 2, &record);
            txn.commit().unwrap();
            compare(&tree, &model, &mut store.reader());
            assert_eq!(tree.dictionary, checksum, "the dictionary stays");
        }
        let tree = StringTree::from_bytes(&record).unwrap();
        eprintln!("seed {seed}: {} bytes in {} pages", tree.bytes(), tree.pages());
        assert!(tree.pages() * 8192 < tree.bytes(), "{} pages for {} bytes", tree.pages(), tree.bytes());
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
    let record = StringTree::new(crate::TreeId(3), None, (crate::PageId(1), None), 0, 0, 0).to_bytes();
    assert!(StringTree::from_bytes(&record).is_ok());
    let with_dictionary = StringTree::new(crate::TreeId(3), None, (crate::PageId(1), Some(7)), 0, 0, 0);
    for record in [record, with_dictionary.to_bytes()] {
        assert_eq!(StringTree::from_bytes(&record).unwrap().to_bytes(), record);
        for cut in 0..record.len() {
            assert!(matches!(StringTree::from_bytes(&record[..cut]), Err(StoreError::Corrupt { .. })));
        }
    }
}
