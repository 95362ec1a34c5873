//! Consolidation against a model: trees with holes between their extents keep their content, and
//! afterwards the files have at most 16/7 of the pages in use and an extent per tree. Readers of
//! older snapshots keep what they see, and a power cut at any write leaves the same content.

#[path = "support/rounds.rs"]
mod rounds;
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use rounds::on;
use snowmelt_io::PowerDisk;
use snowmelt_store::{
    Changes, Columns, Consolidated, Consolidation, MovableTree, ReadAhead, Reader, ScanBounds, Snapshot,
    Store, StoreConfig, StoreError, StringTree, Transaction, TreeId, TupleTree,
};
use support::{Random, config, seed};

/// Trees of rows and of strings.
const TREES: usize = 3;
/// Extents that are in use beside the trees: catalog and map, and what one of a checkpoint before
/// has left.
const OTHERS: u64 = 4;

/// The content of all trees.
#[derive(Clone, Default)]
struct Model {
    rows: BTreeMap<String, BTreeSet<(u64, u64)>>,
    strings: BTreeMap<String, Vec<Vec<u8>>>,
}

fn rows_of(txn: &Transaction, name: &str) -> TupleTree {
    TupleTree::from_bytes(&txn.record(name).expect("the tree is there")).unwrap()
}

/// Inserts or deletes rows.
fn change_rows(random: &mut Random, txn: &mut Transaction, model: &mut Model, name: &str, n: usize) {
    let mut tree = match model.rows.contains_key(name) {
        true => rows_of(txn, name),
        false => TupleTree::create(txn, name, 2).unwrap(),
    };
    let all = model.rows.entry(name.to_owned()).or_default();
    let deletes = random.below(3) == 0 && !all.is_empty();
    let rows: BTreeSet<(u64, u64)> = match deletes {
        true => {
            let from = random.below(all.len());
            all.iter().skip(from).take(n).copied().collect()
        }
        false => (0..n).map(|_| (random.below(5000) as u64, random.next())).collect(),
    };
    let cols = vec![rows.iter().map(|r| r.0).collect(), rows.iter().map(|r| r.1).collect()];
    tree.apply(txn, &Changes { cols, insert: vec![!deletes; rows.len()] }).unwrap();
    match deletes {
        true => all.retain(|row| !rows.contains(row)),
        false => all.extend(rows),
    }
    txn.put_record(name, 1, &tree.to_bytes());
}

/// Adds strings, one in ten of several pages; some trees begin with enough words for a dictionary.
fn add_strings(random: &mut Random, txn: &mut Transaction, model: &mut Model, name: &str, n: usize) {
    let mut tree = match model.strings.contains_key(name) {
        true => StringTree::from_bytes(&txn.record(name).unwrap()).unwrap(),
        false => StringTree::create(txn, name).unwrap(),
    };
    let string = |random: &mut Random| -> Vec<u8> {
        let len = if random.below(10) == 0 { random.below(60_000) } else { random.below(60) };
        // nothing that compresses
        (0..len).map(|_| random.next() as u8).collect()
    };
    let sentence = |random: &mut Random| -> Vec<u8> {
        (0..20).flat_map(|_| format!("word-{} ", random.below(2000) * 7919 % 10_007).into_bytes()).collect()
    };
    let strings: Vec<Vec<u8>> = match tree.is_empty() && random.below(3) == 0 {
        true => (0..1500).map(|_| sentence(random)).collect(),
        false => (0..n).map(|_| string(random)).collect(),
    };
    tree.append(txn, &strings.iter().map(|s| &s[..]).collect::<Vec<_>>()).unwrap();
    model.strings.entry(name.to_owned()).or_default().extend(strings);
    txn.put_record(name, 1, &tree.to_bytes());
}

/// A tree that takes room for a while.
fn fill(random: &mut Random, txn: &mut Transaction, name: &str) {
    let mut tree = TupleTree::create(txn, name, 1).unwrap();
    let rows: BTreeSet<u64> = (0..random.below(40_000)).map(|_| random.next()).collect();
    let insert = vec![true; rows.len()];
    tree.apply(txn, &Changes { cols: vec![rows.into_iter().collect()], insert }).unwrap();
}

/// Commits changes of the trees, whose extents then lie between each other's and those of trees
/// that are dropped at the end.
fn churn(random: &mut Random, store: &Arc<Store>, model: &mut Model) {
    let fillers: Vec<String> = (0..12).map(|round| format!("filler {round}")).collect();
    for filler in &fillers {
        let mut txn = store.begin().unwrap();
        if random.below(2) == 0 {
            fill(random, &mut txn, filler);
        }
        for _ in 0..1 + random.below(3) {
            let n = random.below(TREES);
            match random.below(8) {
                0 => {
                    let (kind, name) = [("rows", n), ("strings", n)][random.below(2)];
                    let name = format!("{kind} {name}");
                    txn.drop_tree(&name);
                    model.rows.remove(&name);
                    model.strings.remove(&name);
                }
                1..=3 => {
                    let count = 1 + random.below(60);
                    add_strings(random, &mut txn, model, &format!("strings {n}"), count);
                }
                _ => {
                    let count = 1 + random.below(6000);
                    change_rows(random, &mut txn, model, &format!("rows {n}"), count);
                }
            }
        }
        txn.commit().unwrap();
        store.checkpoint().unwrap();
    }
    let mut txn = store.begin().unwrap();
    fillers.iter().for_each(|filler| txn.drop_tree(filler));
    txn.commit().unwrap();
    store.checkpoint().unwrap();
}

/// Moves pages until no more move. `most_pages` of a transaction.
fn consolidate(store: &Arc<Store>, most_pages: u64) -> Result<Consolidated, StoreError> {
    let (mut so_far, mut sum) = (Consolidation::default(), Consolidated::default());
    for round in 0.. {
        assert!(round < 10_000, "it goes on and on");
        let mut txn = store.begin()?;
        let (mut rows, mut strings) = trees(&txn.snapshot());
        let movable = rows.values_mut().map(MovableTree::Tuple);
        let mut movable: Vec<_> = movable.chain(strings.values_mut().map(MovableTree::String)).collect();
        let done = so_far.run(&mut txn, &mut movable, most_pages)?;
        if done.extents > 0 {
            rows.iter().for_each(|(name, tree)| txn.put_record(name, 1, &tree.to_bytes()));
            strings.iter().for_each(|(name, tree)| txn.put_record(name, 1, &tree.to_bytes()));
            txn.commit()?;
            store.checkpoint()?;
        } else {
            drop(txn);
        }
        sum += done;
        match so_far.wanted() {
            Some(tree) => search(store, tree, &mut so_far)?,
            None if done.extents == 0 => break,
            None => {}
        }
    }
    store.compact()?;
    Ok(sum)
}

fn search(store: &Arc<Store>, tree: TreeId, so_far: &mut Consolidation) -> Result<(), StoreError> {
    let snapshot = store.snapshot();
    let (_, strings) = trees(&snapshot);
    let strings = strings.values().find(|strings| strings.id() == tree).expect("it is one of these");
    let places = strings.long_places(&mut Reader::new(store, snapshot), 0, &|| true)?;
    so_far.take_longs(tree, places.expect("it was not given up"));
    Ok(())
}

type Trees = (BTreeMap<String, TupleTree>, BTreeMap<String, StringTree>);

fn trees(snapshot: &Snapshot) -> Trees {
    let (mut rows, mut strings) = Trees::default();
    for name in snapshot.catalog().trees.values() {
        let Some(record) = snapshot.record(name) else { continue };
        if name.starts_with("rows") {
            rows.insert(name.clone(), TupleTree::from_bytes(&record).unwrap());
        } else if name.starts_with("strings") {
            strings.insert(name.clone(), StringTree::from_bytes(&record).unwrap());
        }
    }
    (rows, strings)
}

/// Compares the trees with the model; returns the pages that lead to their content.
fn compare(store: &Arc<Store>, snapshot: Snapshot, model: &Model) -> u64 {
    let (rows, strings) = trees(&snapshot);
    assert!(rows.keys().eq(model.rows.keys()) && strings.keys().eq(model.strings.keys()));
    let (mut pages, mut reader) = (0, Reader::new(store, snapshot));
    for (name, tree) in rows {
        tree.check_pages(&mut reader, &mut |_| pages += 1).unwrap();
        let (mut scan, mut out) = (tree.scan(ScanBounds { prefix: &[], range: None }), Columns::new(2));
        while scan.next(&mut reader, &mut out, 1000).unwrap() {}
        let found = out.cols[0].iter().copied().zip(out.cols[1].iter().copied());
        assert!(found.eq(model.rows[&name].iter().copied()), "{name}");
    }
    for (name, tree) in strings {
        tree.check_pages(&mut reader, &mut |_| pages += 1).unwrap();
        let wanted = &model.strings[&name];
        let ids: Vec<u64> = (0..wanted.len() as u64).collect();
        let mut found = vec![Vec::new(); wanted.len()];
        tree.get(&mut reader, &ids, |at, bytes| found[at] = bytes.to_vec()).unwrap();
        assert!(&found == wanted && tree.len() == wanted.len() as u64, "{name}");
    }
    pages
}

/// The most that the files may have: see the head of `tree::consolidate`.
fn bound(store: &Store, pages: u64) -> u64 {
    let extent_pages = u64::from(store.geometry().extent_pages);
    let most = extent_pages - extent_pages / 8;
    ((2 * pages).div_ceil(most) + 2 * TREES as u64 + OTHERS) * store.geometry().extent_bytes()
}

fn sound(store: &Arc<Store>) {
    let used: BTreeSet<u64> =
        store.extents().into_iter().filter(|(_, extent)| extent.tree.is_some()).map(|(id, _)| id).collect();
    let (free, resting) = store.unused_bytes();
    assert_eq!((free, resting), (0, 0), "no extent is free in front of one in use: {used:?}");
}

fn over_seeds(count: u64, one: impl Fn(u64, &Path)) {
    snowmelt_io::set_notice(|_| {});
    for seed in (0..count).map(|i| seed().wrapping_add(i)) {
        eprintln!("SNOWMELT_SEED={seed}");
        one(seed, &tempfile::tempdir().unwrap().path().join("db"));
    }
}

#[test]
fn files_have_what_is_in_use() {
    over_seeds(12, |seed, dir| {
        let mut random = Random::new(seed);
        let store = Store::create(dir, &[], config(64, ReadAhead::none())).unwrap();
        let mut model = Model::default();
        for _ in 0..3 {
            churn(&mut random, &store, &mut model);
            let before = store.stripe_bytes().unwrap();
            let most_pages = [1, 8, 100, 10_000][random.below(4)];
            let done = consolidate(&store, most_pages).unwrap();
            let pages = compare(&store, store.snapshot(), &model);
            let (after, most) = (store.stripe_bytes().unwrap(), bound(&store, pages));
            eprintln!("{before} bytes, {after} after, {} moved, {pages} pages in use", done.pages);
            assert!(after <= most.min(before), "{after} bytes for {pages} pages, of {before}");
            sound(&store);
        }
        drop(store);
        let store = Store::open(dir, config(64, ReadAhead::none())).unwrap();
        compare(&store, store.snapshot(), &model);
    });
}

/// Trees with a stripe of their own stay there.
#[test]
fn placed_trees_keep_their_stripe() {
    over_seeds(6, |seed, dir| {
        let mut random = Random::new(seed);
        let place = "rows 1=1,strings 0=2".parse().unwrap();
        let config = StoreConfig { placement: place, ..config(64, ReadAhead::none()) };
        let stripes = ["a", "b", "c"].map(|name| dir.with_file_name(name));
        let store = Store::create(dir, &stripes, config).unwrap();
        let mut model = Model::default();
        churn(&mut random, &store, &mut model);
        let before = store.stripe_bytes().unwrap();
        consolidate(&store, 100).unwrap();
        compare(&store, store.snapshot(), &model);
        assert!(store.stripe_bytes().unwrap() <= before);
        let catalog = store.catalog_all();
        for (id, extent) in store.extents() {
            let name = extent.tree.and_then(|tree| catalog.trees.get(&tree));
            match name.map(String::as_str) {
                Some("rows 1") => assert_eq!(id % 3, 1),
                Some("strings 0") => assert_eq!(id % 3, 2),
                _ => {}
            }
        }
    });
}

#[test]
fn readers_keep_what_they_see() {
    over_seeds(6, |seed, dir| {
        let mut random = Random::new(seed);
        let store = Store::create(dir, &[], config(64, ReadAhead::none())).unwrap();
        let mut model = Model::default();
        churn(&mut random, &store, &mut model);
        let (old, as_of) = (store.snapshot(), model.clone());
        // readers beside each transaction
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                for _ in 0..3 {
                    compare(&store, old.clone(), &as_of);
                    compare(&store, store.snapshot(), &as_of);
                }
            });
            consolidate(&store, 20).unwrap();
            reader.join().unwrap();
        });
        churn(&mut random, &store, &mut model);
        consolidate(&store, 100).unwrap();
        compare(&store, old, &as_of);
        // what they kept is given back once they have gone
        store.checkpoint().unwrap();
        consolidate(&store, 100).unwrap();
        let pages = compare(&store, store.snapshot(), &model);
        assert!(store.stripe_bytes().unwrap() <= bound(&store, pages));
        sound(&store);
    });
}

#[test]
fn power_cuts_leave_the_content() {
    let all = std::sync::atomic::AtomicU64::new(0);
    over_seeds(4, |seed, dir| {
        let (mut random, disk) = (Random::new(seed), PowerDisk::new(seed));
        std::fs::create_dir_all(dir).unwrap();
        let mut model = Model::default();
        let store = Store::create(dir, &[], on(&disk)).unwrap();
        churn(&mut random, &store, &mut model);
        drop(store);
        disk.sync_names();
        let mut cuts = 0;
        for n in 0.. {
            let disk = disk.copy(seed.wrapping_add(n));
            let store = Store::open(dir, on(&disk)).unwrap();
            disk.cut_in(n + 1);
            let done = consolidate(&store, 2);
            drop(store);
            if !disk.is_off() {
                done.unwrap();
                break;
            }
            cuts += 1;
            disk.power_on();
            let store = Store::open(dir, on(&disk)).unwrap();
            compare(&store, store.snapshot(), &model);
            // and it can be ended
            consolidate(&store, 30).unwrap();
            let pages = compare(&store, store.snapshot(), &model);
            assert!(store.stripe_bytes().unwrap() <= bound(&store, pages), "after cut {n}");
        }
        all.fetch_add(cuts, std::sync::atomic::Ordering::Relaxed);
    });
    let all = all.into_inner();
    eprintln!("{all} cuts");
    assert!(all > 100, "{all}");
}
