//! Trees built in bulk come back page for page, through pools of every size, and commits are
//! all or nothing.

use std::path::Path;
use std::sync::Arc;

use snowmelt_store::{
    MemoryBudget, PageBuf, PageId, PageKind, ReadAhead, Reader, Store, StoreConfig, StoreError, TreeId,
    WishKind, header,
};

fn config(frames: u64, read_ahead: ReadAhead) -> StoreConfig {
    StoreConfig {
        extent_pages: 8,
        memory_bytes: 64 << 20,
        pool_bytes: Some(frames * 8192),
        read_ahead,
        ..StoreConfig::default()
    }
}

/// A page whose body depends on tree name and number.
fn page(seed: u64, n: u64) -> PageBuf {
    let mut p = PageBuf::new();
    p.set_header(PageKind::TupleLeaf, 0, (n % 1000) as u16);
    let mut x = seed ^ n.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    for word in p.body_mut().chunks_exact_mut(8) {
        word.copy_from_slice(&snowmelt_base::random::xorshift(&mut x).to_le_bytes());
    }
    p
}

fn build_tree(store: &Arc<Store>, name: &str, seed: u64, pages: u64) -> (TreeId, Vec<PageId>) {
    let build = store.begin_build().unwrap();
    let mut w = build.new_tree(name);
    let id = w.id();
    let ids = (0..pages)
        .map(|n| {
            let next = w.next_id();
            let written = w.append(&mut page(seed, n)).unwrap();
            assert_eq!(next, written);
            written
        })
        .collect();
    w.finish().unwrap();
    build.put_record(name, 7, name.as_bytes());
    build.commit().unwrap();
    (id, ids)
}

fn check(reader: &mut Reader, tree: TreeId, ids: &[PageId], seed: u64, n: u64) {
    let got = reader.page(tree, ids[n as usize]).unwrap();
    assert_eq!(&got[32..], page(seed, n).body(), "page {n}");
    assert_eq!(header(&got).tree(), tree);
}

fn reopen(dir: &Path, store: Arc<Store>, config: StoreConfig) -> Arc<Store> {
    drop(store);
    Store::open(dir, config).unwrap()
}

#[test]
fn what_was_built_is_read_after_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let two = [dir.path().join("a"), dir.path().join("b")];
    let store = Store::create(&dir.path().join("db"), &two, config(64, ReadAhead::all())).unwrap();
    let (t1, p1) = build_tree(&store, "one", 1, 100);
    let (t2, p2) = build_tree(&store, "two", 2, 33);
    let store = reopen(&dir.path().join("db"), store, config(64, ReadAhead::all()));
    assert_eq!(store.catalog("one").as_deref(), Some(b"one".as_slice()));
    assert_eq!(store.catalog("none"), None);
    let mut r = Reader::new(&store, store.snapshot());
    r.wish(t1, &p1[..40], WishKind::Planned);
    for n in 0..100 {
        check(&mut r, t1, &p1, 1, n);
    }
    for n in (0..33).rev() {
        check(&mut r, t2, &p2, 2, n);
    }
    assert!(r.meters.spec_disk <= r.meters.disk);
    assert!(r.meters.disk >= 133);
}

#[test]
fn an_abandoned_build_leaves_the_old_state() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path(), &[], config(64, ReadAhead::none())).unwrap();
    let (t1, p1) = build_tree(&store, "one", 1, 20);
    let before = std::fs::metadata(dir.path().join("stripe-0")).unwrap().len();
    let build = store.begin_build().unwrap();
    assert!(matches!(store.begin_build(), Err(StoreError::BuildBusy)));
    let mut w = build.new_tree("one");
    for n in 0..50 {
        w.append(&mut page(9, n)).unwrap();
    }
    w.finish().unwrap();
    drop(build);
    assert_eq!(std::fs::metadata(dir.path().join("stripe-0")).unwrap().len(), before);
    let store = reopen(dir.path(), store, config(64, ReadAhead::none()));
    let mut r = Reader::new(&store, store.snapshot());
    (0..20).for_each(|n| check(&mut r, t1, &p1, 1, n));
}

#[test]
fn an_unfinished_tree_cannot_be_committed() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path(), &[], config(64, ReadAhead::none())).unwrap();
    let build = store.begin_build().unwrap();
    let mut w = build.new_tree("half");
    w.append(&mut page(1, 1)).unwrap();
    drop(w);
    assert!(matches!(build.commit(), Err(StoreError::Unfinished { name }) if name == "half"));
    assert!(store.begin_build().is_ok());
}

#[test]
fn a_replaced_tree_is_still_read_by_those_who_know_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path(), &[], config(64, ReadAhead::none())).unwrap();
    let (t1, p1) = build_tree(&store, "one", 1, 20);
    let (t2, p2) = build_tree(&store, "one", 2, 20);
    assert_ne!(t1, t2);
    let store = reopen(dir.path(), store, config(64, ReadAhead::none()));
    let (t3, p3) = build_tree(&store, "three", 3, 20);
    assert!(p3.iter().any(|p| p1.contains(p)), "the first tree's extents are used again");
    let mut r = Reader::new(&store, store.snapshot());
    (0..20).for_each(|n| check(&mut r, t2, &p2, 2, n));
    (0..20).for_each(|n| check(&mut r, t3, &p3, 3, n));
    assert!(matches!(r.page(t1, p1[0]), Err(StoreError::Damaged { .. })));
}

#[test]
fn databases_of_one_process_share_its_budget() {
    let dir = tempfile::tempdir().unwrap();
    let budget = MemoryBudget::new(8 << 20);
    let config = || StoreConfig {
        budget: Some(budget.clone()),
        pool_bytes: Some(3 << 20),
        ..config(0, ReadAhead::none())
    };
    let a = Store::create(&dir.path().join("a"), &[], config()).unwrap();
    let b = Store::create(&dir.path().join("b"), &[], config()).unwrap();
    assert_eq!(budget.used(), 6 << 20);
    let third = Store::create(&dir.path().join("c"), &[], config());
    assert!(matches!(third, Err(StoreError::Memory { free, .. }) if free == 2 << 20));
    drop((a, b));
    assert_eq!(budget.used(), 0);
}
