//! Write transactions against a model: what each snapshot sees, what a dropped transaction
//! leaves, where new pages lie.

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;

use snowmelt_store::{PageId, PageKind, ReadAhead, Reader, Snapshot, Store, StoreError, Transaction, TreeId};
use support::{Random, build_tree, config, page, reader, seed};

fn store(dir: &tempfile::TempDir) -> Arc<Store> {
    Store::create(&dir.path().join("db"), &[], config(64, ReadAhead::none())).unwrap()
}

/// Fills a private page with the content of test page `n` of `seed`.
fn fill(txn: &mut Transaction, tree: TreeId, id: PageId, seed: u64) {
    let source = page(seed, id.0);
    let p = txn.page_mut(tree, id).unwrap();
    p.set_header(PageKind::TupleLeaf, 0, 1);
    p.body_mut().copy_from_slice(source.body());
}

fn sees(store: &Arc<Store>, snapshot: &Snapshot, tree: TreeId, id: PageId, seed: u64) -> bool {
    let mut r = Reader::new(store, snapshot.clone());
    r.page(tree, id).unwrap()[32..] == *page(seed, id.0).body()
}

#[test]
fn each_snapshot_sees_its_state() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(&dir);
    let built = build_tree(&store, "t", 1, 20);
    let before = store.snapshot();
    let mut t = store.begin().unwrap();
    assert_eq!(t.txn(), 2);
    fill(&mut t, built.id, built.pages[3], 100);
    t.put_record("t", 7, b"new");
    let inside = t.snapshot();
    fill(&mut t, built.id, built.pages[3], 101);
    t.put_record("t", 7, b"newer");
    let inside_later = t.snapshot();
    assert!(inside.is_private() && !before.is_private());
    assert!(sees(&store, &inside, built.id, built.pages[3], 100), "a frozen view does not move");
    assert!(sees(&store, &inside_later, built.id, built.pages[3], 101));
    assert_eq!(inside.record("t").as_deref(), Some(b"new".as_slice()));
    built.check(&mut Reader::new(&store, inside.clone()), 4);
    built.check(&mut reader(&store), 3);
    assert_eq!(t.page(built.id, built.pages[3]).unwrap()[32..], *page(101, built.pages[3].0).body());
    assert_eq!(t.commit().unwrap().txn, 2);
    let after = store.snapshot();
    assert_eq!((before.txn(), after.txn()), (1, 2));
    assert!(sees(&store, &after, built.id, built.pages[3], 101));
    built.check(&mut Reader::new(&store, before.clone()), 3);
    assert_eq!(before.record("t").as_deref(), Some(1u64.to_le_bytes().as_slice()));
    assert_eq!(after.record("t").as_deref(), Some(b"newer".as_slice()));
    assert!(sees(&store, &inside, built.id, built.pages[3], 100), "not by a commit either");
}

#[test]
fn what_is_appended_is_seen_by_the_next_writer_and_not_by_readers() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(&dir);
    let built = build_tree(&store, "t", 1, 20);
    let mut t = store.begin().unwrap();
    fill(&mut t, built.id, built.pages[0], 100);
    let pending = t.append().unwrap();
    built.check(&mut reader(&store), 0);
    let mut next = store.begin().unwrap();
    assert_eq!(next.txn(), 3);
    assert_eq!(next.page(built.id, built.pages[0]).unwrap()[32..], *page(100, built.pages[0].0).body());
    drop(next);
    pending.wait().unwrap();
    assert!(sees(&store, &store.snapshot(), built.id, built.pages[0], 100));
}

#[test]
fn a_dropped_transaction_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(&dir);
    let built = build_tree(&store, "t", 1, 20);
    let extents = store.extents();
    let mut t = store.begin().unwrap();
    let other = t.new_tree("other");
    for _ in 0..30 {
        t.allocate(other, None).unwrap();
    }
    fill(&mut t, built.id, built.pages[3], 100);
    t.allocate(built.id, Some(built.pages[3])).unwrap();
    t.put_record("r", 1, b"x");
    t.drop_tree("t");
    assert!(matches!(t.allocate(built.id, None), Err(StoreError::NoTree { .. })));
    drop(t);
    assert_eq!(store.extents(), extents);
    assert_eq!(store.catalog("r"), None);
    built.check(&mut reader(&store), 3);
    assert!(store.begin().unwrap().txn() >= 2);
}

#[test]
fn pages_lie_near_their_origin() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(&dir);
    let built = build_tree(&store, "t", 1, 20);
    let geometry = store.geometry();
    let extent = |p: PageId| geometry.extent_of(p);
    let mut t = store.begin().unwrap();
    // The third extent has 4 of 8 pages in use.
    let near = t.allocate(built.id, Some(built.pages[17])).unwrap();
    assert_eq!(extent(near), extent(built.pages[17]));
    // The first is full: its overflow extent, which the second shares.
    let a = t.allocate(built.id, Some(built.pages[0])).unwrap();
    let b = t.allocate(built.id, Some(built.pages[9])).unwrap();
    assert_ne!(extent(a), extent(built.pages[0]));
    assert_eq!(extent(a), extent(b));
    t.commit().unwrap();
    // Readers of the stripe do not take new pages for written ones.
    let owner = store.extents().into_iter().find(|(id, _)| *id == extent(a)).unwrap().1;
    assert_eq!((owner.tree, owner.pages()), (Some(built.id), 0));
    let mut t = store.begin().unwrap();
    t.release(built.id, a);
    assert_eq!(t.allocate(built.id, Some(built.pages[1])).unwrap(), a, "a released page is used again");
    assert_eq!(t.page(built.id, a).unwrap()[32..], [0; 8160]);
    t.commit().unwrap();
}

#[test]
fn a_build_leaves_old_snapshots_alone() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(&dir);
    let old = build_tree(&store, "t", 1, 100);
    let mut t = store.begin().unwrap();
    fill(&mut t, old.id, old.pages[5], 100);
    t.commit().unwrap();
    let before = store.snapshot();
    let new = build_tree(&store, "t", 2, 100);
    let mut t = store.begin().unwrap();
    fill(&mut t, new.id, new.pages[5], 200);
    t.commit().unwrap();
    let mut r = Reader::new(&store, before.clone());
    (6..100).for_each(|n| old.check(&mut r, n));
    assert!(sees(&store, &before, old.id, old.pages[5], 100));
    let mut r = reader(&store);
    (6..100).for_each(|n| new.check(&mut r, n));
    assert!(sees(&store, &store.snapshot(), new.id, new.pages[5], 200));
}

/// Expected view of a snapshot: page → seed of its content, record.
#[derive(Clone, Default)]
struct Model {
    pages: BTreeMap<PageId, (TreeId, u64)>,
    record: Option<Vec<u8>>,
}

#[test]
fn random_transactions_match_the_model() {
    let mut random = Random::new(seed());
    let dir = tempfile::tempdir().unwrap();
    let store = store(&dir);
    let mut now = Model::default();
    let mut kept: Vec<(Snapshot, Model)> = vec![(store.snapshot(), now.clone())];
    for round in 0..300u64 {
        let mut t = store.begin().unwrap();
        let mut next = now.clone();
        for step in 0..random.below(12) {
            let content = round * 100 + step as u64 + 1;
            let any = next.pages.iter().nth(random.below(next.pages.len().max(1))).map(|(p, v)| (*p, v.0));
            match (random.below(10), any) {
                (0, _) => {
                    let name = format!("tree {}", random.below(3));
                    let old: Vec<_> = store
                        .catalog_all()
                        .trees
                        .iter()
                        .filter(|(_, n)| **n == name)
                        .map(|(id, _)| *id)
                        .collect();
                    let id = t.new_tree(&name);
                    next.pages.retain(|_, (tree, _)| !old.contains(tree) && store_has(&t, *tree));
                    let p = t.allocate(id, None).unwrap();
                    fill(&mut t, id, p, content);
                    next.pages.insert(p, (id, content));
                }
                (1..=4, Some((p, tree))) => {
                    fill(&mut t, tree, p, content);
                    next.pages.insert(p, (tree, content));
                }
                (5..=7, Some((p, tree))) => {
                    let fresh = t.allocate(tree, Some(p)).unwrap();
                    fill(&mut t, tree, fresh, content);
                    assert_eq!(next.pages.insert(fresh, (tree, content)), None, "a page is dealt out once");
                }
                (8, Some((p, tree))) => {
                    t.release(tree, p);
                    next.pages.remove(&p);
                }
                _ => {
                    t.put_record("r", 1, &content.to_le_bytes());
                    next.record = Some(content.to_le_bytes().to_vec());
                }
            }
        }
        if random.below(4) == 0 {
            drop(t);
        } else {
            t.commit().unwrap();
            now = next;
        }
        if random.below(3) == 0 {
            kept.push((store.snapshot(), now.clone()));
        }
        if kept.len() > 5 {
            kept.swap_remove(random.below(5));
        }
        for (snapshot, model) in &kept {
            assert_eq!(snapshot.record("r").as_deref(), model.record.as_deref());
            if let Some((p, (tree, content))) = model.pages.iter().nth(random.below(model.pages.len().max(1)))
            {
                assert!(sees(&store, snapshot, *tree, *p, *content), "page {p} in round {round}");
            }
        }
    }
    for (snapshot, model) in &kept {
        for (p, (tree, content)) in &model.pages {
            assert!(sees(&store, snapshot, *tree, *p, *content));
        }
    }
}

/// A damaged node of one tree may lead to a page that the transaction has changed for another.
#[test]
fn a_private_page_is_given_to_its_tree_only() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(&dir);
    let mut txn = store.begin().unwrap();
    let (a, b) = (txn.new_tree("a"), txn.new_tree("b"));
    let page = txn.allocate(a, None).unwrap();
    fill(&mut txn, a, page, 5);
    for refused in [txn.page(b, page).map(drop), txn.page_mut(b, page).map(drop)] {
        assert!(matches!(refused, Err(StoreError::Damaged { .. })), "{refused:?}");
    }
    assert_eq!(txn.page(a, page).unwrap()[32..], *support::page(5, page.0).body());
}

/// True when the transaction still has the tree.
fn store_has(t: &Transaction, tree: TreeId) -> bool {
    t.snapshot().catalog().trees.contains_key(&tree)
}
