//! Decisions about extents, on a store whose device is said to have caps.

use std::sync::Arc;

use snowmelt_io::{CostModel, QueueConfig};

use super::*;
use crate::page::{PageBuf, PageKind};
use crate::{Background, Seams, Store, StoreConfig};

/// Pages of an extent.
const EXTENT: u64 = 8;

struct Bed {
    store: Arc<Store>,
    /// Trees of 3, 20 and 3 pages, whose extents follow each other.
    trees: [(TreeId, Vec<PageId>); 3],
    _dir: tempfile::TempDir,
}

impl Bed {
    fn new(read_ahead: ReadAhead) -> Bed {
        let dir = tempfile::tempdir().unwrap();
        let cost = CostModel::capped(1_000_000, 3_000.0, 131_072_000.0);
        let config = StoreConfig {
            extent_pages: EXTENT as u32,
            memory_bytes: 64 << 20,
            direct: false,
            queue: QueueConfig { cost: Some(cost), learns: false, ..QueueConfig::default() },
            read_ahead,
            seams: Seams { background: Background::Caller, ..Seams::default() },
            ..StoreConfig::default()
        };
        let db = dir.path().join("db");
        let store = Store::create(&db, &[], config.clone()).unwrap();
        let build = store.begin_build().unwrap();
        let trees = [("a", 3), ("b", 20), ("c", 3)].map(|(name, pages)| {
            let mut tree = build.new_tree(name);
            let mut page = PageBuf::new();
            page.set_header(PageKind::TupleLeaf, 0, 1);
            let ids = (0..pages).map(|_| tree.append(&mut page).unwrap()).collect();
            let id = tree.id();
            tree.finish().unwrap();
            (id, ids)
        });
        build.commit().unwrap();
        drop(store);
        Bed { store: Store::open(&db, config).unwrap(), trees, _dir: dir }
    }
}

#[test]
fn a_region_has_the_written_pages_of_its_tree_alone() {
    let bed = Bed::new(ReadAhead::auto());
    let fetch = &bed.store.fetch;
    for (tree, ids) in &bed.trees {
        let in_region = |page: &&PageId| {
            extents_beside(fetch.geometry.extent_of(ids[0])).contains(&fetch.geometry.extent_of(**page))
        };
        let own = ids.iter().filter(in_region).count() as u64;
        let region = fetch.region(*tree, fetch.geometry.extent_of(ids[0]), 1);
        assert_eq!((region.pages, region.wanted), (own, 1), "of tree {tree:?}");
        assert!(own < 4 * EXTENT, "a region of whole extents would have more");
    }
}

#[test]
fn regions_are_not_counted_where_they_are_not_asked_for() {
    for read_ahead in [ReadAhead::none(), ReadAhead { auto: false, ..ReadAhead::all() }] {
        let bed = Bed::new(read_ahead);
        let (tree, ids) = &bed.trees[1];
        let extent = bed.store.fetch.geometry.extent_of(ids[0]);
        bed.store.fetch.want(*tree, extent, 5);
        assert_eq!(bed.store.fetch.regions.with(*tree, extent, 1, EXTENT).wanted, 1);
    }
}

/// The miss of an extent is counted once: the second reader of its page must not lose the rest.
#[test]
fn the_rest_of_an_extent_is_read_also_when_another_reader_was_faster() {
    let bed = Bed::new(ReadAhead { start_up: true, ..ReadAhead::none() });
    let (tree, ids) = &bed.trees[1];
    let fetch = &bed.store.fetch;
    let (page, rest) = (ids[0], &ids[1..EXTENT as usize]);
    let pool = &fetch.core.pages.pool;
    let frame = pool.take_frames(1)[0];
    assert!(pool.start(page, frame, None), "the faster reader");
    let mut meters = Activity::default();
    let demanded = fetch.demand(*tree, page, Priority::default(), &mut meters).unwrap();
    assert!(matches!(demanded, Demand::Taken));
    assert_eq!(meters.spec_disk, rest.len() as u64, "the rest was begun");
    // Its read arrives, so that the store can close.
    fetch.read_in_place(page).unwrap();
}
