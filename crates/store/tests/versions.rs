//! The door for updates: versions of pages made by hand are seen by the snapshots that may see
//! them, and by no other.

mod support;

use snowmelt_store::{PageBuf, ReadAhead, Reader, Store, page::seal};
use support::{TestTree, build_tree, config, page, reader};

fn version(tree: &TestTree, n: usize, txn: u64) -> PageBuf {
    let mut p = page(1000 + txn, n as u64);
    seal(&mut p, tree.pages[n], tree.id, txn);
    p
}

fn sees(r: &mut Reader, tree: &TestTree, n: usize) -> u64 {
    let p = r.page(tree.id, tree.pages[n]).unwrap();
    let txn = snowmelt_store::header(&p).txn();
    let body = if txn == 1 { page(tree.seed, n as u64) } else { page(1000 + txn, n as u64) };
    assert_eq!(&p[32..], body.body());
    txn
}

#[test]
fn each_snapshot_sees_its_version() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path(), &[], config(64, ReadAhead::none())).unwrap();
    let tree = build_tree(&store, "t", 1, 100);
    let mut old = reader(&store);
    assert_eq!((old.snapshot().txn(), sees(&mut old, &tree, 5)), (1, 1));
    // Page 5 is resident, page 6 is not; both get versions of transactions to come.
    for txn in [3, 7] {
        store.publish_version(tree.pages[5], txn, version(&tree, 5, txn));
        store.publish_version(tree.pages[6], txn, version(&tree, 6, txn));
    }
    assert_eq!(
        (sees(&mut old, &tree, 5), sees(&mut old, &tree, 6)),
        (1, 1),
        "older snapshots see the stripe"
    );
    // Commits of other trees bring the number of the snapshot past the versions.
    let mut at = Vec::new();
    for n in 2..=8 {
        build_tree(&store, &format!("other {n}"), n, 1);
        at.push(reader(&store));
    }
    let seen: Vec<_> =
        at.iter_mut().map(|r| (r.snapshot().txn(), sees(r, &tree, 5), sees(r, &tree, 6))).collect();
    let expected = [(2, 1, 1), (3, 3, 3), (4, 3, 3), (5, 3, 3), (6, 3, 3), (7, 7, 7), (8, 7, 7)];
    assert_eq!(seen, expected);
    assert_eq!(store.oldest_snapshot(), Some(1));
    // A version held is kept although it is forgotten, and the mark survives eviction.
    let held = at[6].page(tree.id, tree.pages[5]).unwrap();
    (10..100).for_each(|n| tree.check(&mut old, n));
    assert_eq!(sees(&mut at[6], &tree, 5), 7);
    assert_eq!(sees(&mut old, &tree, 5), 1, "read again from the stripe");
    store.forget_versions(tree.pages[5], 3);
    assert_eq!((sees(&mut at[5], &tree, 5), sees(&mut at[1], &tree, 5)), (7, 1));
    store.forget_versions(tree.pages[5], 7);
    assert_eq!(sees(&mut at[6], &tree, 5), 1);
    assert_eq!(&held[32..], page(1007, 5).body());
}
