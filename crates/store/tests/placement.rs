//! Trees on stripes of their own: all their extents lie there, whether a build or a transaction
//! takes them, before and after the database was closed, and in copies.

mod support;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use snowmelt_store::{ReadAhead, Store, StoreConfig, StoreError, TreeId};
use support::{build_tree, config, reader, reopen};

fn placed(text: &str) -> StoreConfig {
    StoreConfig { placement: text.parse().unwrap(), ..config(256, ReadAhead::none()) }
}

fn stripes(dir: &Path, n: usize) -> Vec<PathBuf> {
    (0..n).map(|i| dir.join(format!("stripe-{i}"))).collect()
}

/// The stripes on which a tree has extents.
fn stripes_of(store: &Store, tree: TreeId) -> Vec<usize> {
    let extents = store.extents();
    let own = extents.iter().filter(|(_, e)| e.tree == Some(tree));
    let mut stripes: Vec<usize> = own.map(|(id, _)| store.geometry().extent_place(*id).stripe).collect();
    stripes.sort_unstable();
    stripes.dedup();
    stripes
}

fn tree(store: &Store, name: &str) -> TreeId {
    let catalog = store.catalog_all();
    *catalog.trees.iter().find(|(_, n)| *n == name).unwrap().0
}

/// Makes a tree of many pages, or lengthens it, in a transaction.
fn grow(store: &Arc<Store>, name: &str, pages: u64) {
    let mut txn = store.begin().unwrap();
    let tree = txn.new_tree(name);
    let mut near = None;
    for n in 0..pages {
        let page = txn.allocate(tree, near).unwrap();
        *txn.page_mut(tree, page).unwrap() = support::page(1, n);
        near = Some(page);
    }
    txn.commit().unwrap();
    assert!(store.checkpoint().unwrap());
}

#[test]
fn builds_and_transactions_take_extents_of_the_stripe() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    let store = Store::create(&db, &stripes(dir.path(), 3), placed("a=2,b=0")).unwrap();
    let trees = ["a", "b", "c"].map(|name| build_tree(&store, name, 1, 300));
    assert_eq!(stripes_of(&store, trees[0].id), [2]);
    assert_eq!(stripes_of(&store, trees[1].id), [0]);
    assert_eq!(stripes_of(&store, trees[2].id), [0, 1, 2]);
    // It is kept, and one that is opened without being told so knows it too.
    let store = reopen(&db, store, config(256, ReadAhead::none()));
    let mut r = reader(&store);
    (0..300).for_each(|n| trees.iter().for_each(|tree| tree.check(&mut r, n)));
    drop(r);
    for (name, on) in [("a", vec![2]), ("b", vec![0]), ("c", vec![0, 1, 2])] {
        grow(&store, name, 100);
        assert_eq!(stripes_of(&store, tree(&store, name)), on, "{name}");
    }
    let store = reopen(&db, store, placed("a=2,b=0"));
    assert_eq!(stripes_of(&store, tree(&store, "a")), [2]);
}

#[test]
fn another_placement_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (plain, db) = (dir.path().join("plain"), dir.path().join("db"));
    drop(Store::create(&plain, &[], config(64, ReadAhead::none())).unwrap());
    drop(Store::create(&db, &stripes(dir.path(), 2), placed("a=1")).unwrap());
    for (path, placement, was) in [(&plain, "a=0", "\"\""), (&db, "a=0", "\"a=1\"")] {
        let refused = Store::open(path, placed(placement));
        let Err(StoreError::Config(why)) = refused else { panic!("{placement} was taken") };
        assert!(why.contains(was) && why.contains("a=0"), "{why}");
    }
    let beyond = Store::create(&dir.path().join("new"), &[], placed("a=1"));
    let Err(StoreError::Config(why)) = beyond else { panic!("there is no stripe 1") };
    assert!(why.contains("stripes 0 to 0"), "{why}");
    assert!(!dir.path().join("new/superblock").exists() && !dir.path().join("new/stripe-0").exists());
}

#[test]
fn copies_keep_the_placement_as_far_as_they_have_the_stripes() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    let store = Store::create(&db, &stripes(dir.path(), 2), placed("a=1,b=0")).unwrap();
    ["a", "b"].iter().for_each(|name| drop(build_tree(&store, name, 1, 100)));
    for (n, placement) in [(2, "a=1,b=0"), (1, "b=0")] {
        let (copy, own) = (dir.path().join(format!("copy-{n}")), dir.path().join(format!("of-{n}")));
        std::fs::create_dir(&own).unwrap();
        store.backup(&copy, &stripes(&own, n), |_| {}).unwrap();
        let copy = Store::open(&copy, placed(placement)).unwrap();
        assert_eq!(stripes_of(&copy, tree(&copy, "a")), [n - 1]);
    }
}
