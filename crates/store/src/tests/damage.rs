//! Whole trees with damaged pages: bytes changed behind the checksum's back. Every operation
//! answers or gives the typed error.
//!
//! The damaged page is put in place through the door for page versions, so no checksum is in
//! its way.

use crate::tests::string_codec::sentences;
use crate::tests::trees::{Random, Sizes, TestStore, seeds};
use crate::{
    Changes, Columns, Keys, Matches, PAGE_BYTES, PageBuf, PageId, PageKind, Reader, Relocation, Result,
    ScanBounds, StoreError, StringTree, StringTreeBuilder, TreeId, TupleTree, TupleTreeBuilder, header,
};

struct Trees {
    tuples: TupleTree,
    strings: StringTree,
}

/// Trees of rows and of strings; these with symbols, or with a dictionary.
fn build(store: &TestStore, random: &mut Random, has_dictionary: bool) -> Trees {
    let build = store.store.begin_build().unwrap();
    let mut rows: Vec<[u64; 3]> = (0..700_000)
        .map(|_| {
            let kind = [1 << 60, (4 << 60) | random.below(9) << 44, random.word()][random.below(3) as usize];
            [random.below(3), 100 + random.below(30_000), kind | random.below(1 << 22)]
        })
        .collect();
    rows.sort_unstable();
    rows.dedup();
    let mut tuples = TupleTreeBuilder::new(build.new_tree("tuples"), 3);
    rows.iter().for_each(|r| tuples.push(r).unwrap());
    let words = sentences(2000, 200_000).concat();
    let sample: Vec<&[u8]> = match has_dictionary {
        true => words.chunks(100).collect(),
        false => vec![b"some words that come again"],
    };
    let mut strings = StringTreeBuilder::new(build.new_tree("strings"), &sample).unwrap();
    for i in 0..20_000u64 {
        let long = if i % 900 == 0 { 25_000 } else { random.below(40) as usize };
        let at = random.below(100_000) as usize;
        strings.push(&words[at..at + long]).unwrap();
    }
    let trees = Trees { tuples: tuples.finish().unwrap(), strings: strings.finish().unwrap() };
    build.commit().unwrap();
    assert_eq!(trees.strings.dictionary.is_some(), has_dictionary);
    trees
}

/// Every read operation once; returns the first error.
fn use_all(trees: &Trees, reader: &mut Reader, random: &mut Random) -> Result<()> {
    let t = &trees.tuples;
    t.count(reader, &[1], &[1, 5000])?;
    t.count(reader, &[0, 20_000], &[2, 500, 7])?;
    let mut out = Columns::new(3);
    let mut scan = t.scan(ScanBounds { prefix: &[random.below(3)], range: Some((3000, 12_000)) });
    while scan.next(reader, &mut out, 5000)? {}
    let (p, mut s) =
        (vec![random.below(3); 300], (0..300).map(|_| 100 + random.below(30_000)).collect::<Vec<_>>());
    s.sort_unstable();
    let columns: [&[u64]; 2] = [&p, &s];
    let mut lookup = t.lookup(Keys::new(&columns, None));
    let mut found = Matches::new(3, 2);
    while lookup.next(reader, &mut found, 1000)? {}
    let mut ids: Vec<u64> = (0..300).map(|_| random.below(20_000)).collect();
    ids.extend((0..22).map(|i| i * 900));
    ids.sort_unstable();
    trees.strings.get(reader, &ids, |_, _| ())?;
    Ok(())
}

/// The pages of a tree: every id that can be read.
fn pages(reader: &mut Reader, tree: TreeId) -> Vec<PageId> {
    (0..4000).map(PageId).filter(|&id| reader.page(tree, id).is_ok()).collect()
}

#[test]
fn damaged_pages_give_typed_errors() {
    for seed in seeds(4) {
        eprintln!("seed {seed}");
        let mut random = Random::new(seed);
        let store = TestStore::new(if seed % 2 == 0 { Sizes::Hostile } else { Sizes::Default });
        let trees = build(&store, &mut random, seed % 4 < 2);
        let mut reader = store.reader();
        let again = |trees: &Trees| Trees {
            // A handle of its own, so that symbols and dictionary are read again.
            strings: StringTree::from_bytes(&trees.strings.to_bytes()).unwrap(),
            tuples: trees.tuples.clone(),
        };
        use_all(&again(&trees), &mut reader, &mut random).expect("nothing is damaged yet");
        let all: Vec<(TreeId, PageId)> = [trees.tuples.id(), trees.strings.id()]
            .iter()
            .flat_map(|&t| pages(&mut reader, t).into_iter().map(move |p| (t, p)))
            .collect();
        let inner: Vec<_> = all
            .iter()
            .copied()
            .filter(|&(t, p)| {
                let page = reader.page(t, p).expect("it was there");
                header(&page).level() > 0
            })
            .collect();
        assert!(all.len() > 200 && inner.len() >= 3, "{} pages, {} inner nodes", all.len(), inner.len());
        let mut errors = 0;
        for round in 0..200 {
            let from = if round % 3 == 0 { &inner } else { &all };
            let (tree, id) = from[random.below(from.len() as u64) as usize];
            let mut page = PageBuf::new();
            page.copy_from_slice(&reader.page(tree, id).unwrap());
            for _ in 0..1 + random.below(6) {
                let within = [64, 400, PAGE_BYTES as u64][random.below(3) as usize].max(40);
                let at = 28 + random.below(within - 28) as usize;
                page[at] = random.word() as u8;
            }
            let txn = reader.snapshot().txn();
            store.store.publish_version(id, txn, page);
            match use_all(&again(&trees), &mut store.reader(), &mut random) {
                Ok(()) => {}
                Err(StoreError::Damaged { .. }) => errors += 1,
                Err(other) => panic!("seed {seed}: {other}"),
            }
            store.store.forget_versions(id, txn);
        }
        assert!(errors > 10, "damage was never met");
        use_all(&trees, &mut reader, &mut random).expect("nothing is damaged any more");
    }
}

/// Changes to trees with a damaged page; returns the first error. Nothing is committed.
fn change_all(trees: &Trees, store: &TestStore, random: &mut Random) -> Result<()> {
    let mut txn = store.store.begin()?;
    let mut rows: Vec<[u64; 3]> =
        (0..300).map(|_| [random.below(3), 100 + random.below(30_000), random.below(1 << 22)]).collect();
    rows.sort_unstable();
    rows.dedup();
    let mut changes = Changes::new(3);
    rows.iter().for_each(|row| changes.push(row, random.below(3) > 0));
    let mut tuples = trees.tuples.clone();
    tuples.apply(&mut txn, &changes)?;
    tuples.relocate(&mut txn, &Relocation { disorder: 0.0, changed: 0.5, most_leaves: 1000 })?;
    let mut strings = StringTree::from_bytes(&trees.strings.to_bytes())?;
    let values: Vec<Vec<u8>> = (0..50).map(|i| vec![b'x'; if i == 7 { 9000 } else { i }]).collect();
    strings.append(&mut txn, &values.iter().map(|v| &v[..]).collect::<Vec<_>>())?;
    Ok(())
}

#[test]
fn changes_to_damaged_pages_give_typed_errors() {
    for seed in seeds(4) {
        eprintln!("seed {seed}");
        let mut random = Random::new(seed);
        let store = TestStore::new(if seed % 2 == 0 { Sizes::Hostile } else { Sizes::Default });
        let trees = build(&store, &mut random, seed % 4 < 2);
        change_all(&trees, &store, &mut random).expect("nothing is damaged yet");
        let mut reader = store.reader();
        let all: Vec<(TreeId, PageId)> = [trees.tuples.id(), trees.strings.id()]
            .iter()
            .flat_map(|&t| pages(&mut reader, t).into_iter().map(move |p| (t, p)))
            .collect();
        let kind = |reader: &mut Reader, (t, p)| header(&reader.page(t, p).unwrap()).kind();
        let is_leaf = |reader: &mut Reader, at| kind(reader, at) == PageKind::StringLeaf as u8;
        let last = all.iter().copied().filter(|&at| is_leaf(&mut reader, at)).max_by_key(|(_, p)| *p);
        // Inner nodes, symbols, and the last leaf of the strings are on the way of every change.
        let leaves = [PageKind::TupleLeaf, PageKind::StringLeaf, PageKind::LongRun].map(|kind| kind as u8);
        let is_on_the_way = |reader: &mut Reader, at| Some(at) == last || !leaves.contains(&kind(reader, at));
        let on_the_way: Vec<_> = all.iter().copied().filter(|&at| is_on_the_way(&mut reader, at)).collect();
        let mut errors = 0;
        for round in 0..150 {
            let from = if round % 3 == 0 { &all } else { &on_the_way };
            let (tree, id) = from[random.below(from.len() as u64) as usize];
            let mut page = PageBuf::copy_of(&reader.page(tree, id).unwrap());
            for _ in 0..1 + random.below(6) {
                let within = [64, 400, PAGE_BYTES as u64][random.below(3) as usize];
                page[28 + random.below(within - 28) as usize] = random.word() as u8;
            }
            let txn = reader.snapshot().txn();
            store.store.publish_version(id, txn, page);
            match change_all(&trees, &store, &mut random) {
                Ok(()) => {}
                Err(StoreError::Damaged { .. }) => errors += 1,
                Err(other) => panic!("seed {seed}, round {round}: {other}"),
            }
            store.store.forget_versions(id, txn);
        }
        assert!(errors > 10, "damage was met {errors} times in {} pages", on_the_way.len());
        change_all(&trees, &store, &mut random).expect("nothing is damaged any more");
    }
}
