//! Stores that share one set of frames: each reads and writes as if it were alone, and the frames
//! go to the store that uses them.

mod support;

use std::path::Path;
use std::sync::Arc;

use snowmelt_store::{
    MemoryBudget, PageKind, ReadAhead, Reader, SharedFrames, Store, StoreConfig, StoreError, TreeStats,
    WishKind,
};
use support::{Random, TestTree, build_tree, config, page, reader, reopen, seed};

const FRAMES: u32 = 32;
/// Pages of each store's tree: several times the frames.
const PAGES: usize = 150;

fn frames() -> (Arc<SharedFrames>, MemoryBudget) {
    let budget = MemoryBudget::new(64 << 20);
    (SharedFrames::new(u64::from(FRAMES) * 8192, &budget).unwrap(), budget)
}

fn sharing(frames: &Arc<SharedFrames>, budget: &MemoryBudget, read_ahead: ReadAhead) -> StoreConfig {
    let (shared_frames, budget) = (Some(frames.clone()), Some(budget.clone()));
    StoreConfig { shared_frames, budget, pool_bytes: None, ..config(0, read_ahead) }
}

/// A store and what its pages must hold.
struct Modelled {
    store: Arc<Store>,
    tree: TestTree,
    /// The seed of each page that a transaction has changed.
    changed: Vec<Option<u64>>,
}

impl Modelled {
    fn create(dir: &Path, config: StoreConfig, seed: u64) -> Modelled {
        let store = Store::create(dir, &[], config).unwrap();
        let tree = build_tree(&store, "t", seed, PAGES as u64);
        Modelled { store, tree, changed: vec![None; PAGES] }
    }

    fn check(&self, reader: &mut Reader, n: usize) {
        let Some(seed) = self.changed[n] else { return self.tree.check(reader, n) };
        let id = self.tree.pages[n];
        let got = reader.page(self.tree.id, id).unwrap();
        assert_eq!(got[32..], *page(seed, id.0).body(), "page {n} of {}", self.store.dir().display());
    }

    fn change(&mut self, random: &mut Random) {
        let mut txn = self.store.begin().unwrap();
        for _ in 0..1 + random.below(4) {
            let (n, seed) = (random.below(PAGES), random.next() >> 32);
            let id = self.tree.pages[n];
            let p = txn.page_mut(self.tree.id, id).unwrap();
            p.set_header(PageKind::TupleLeaf, 0, 1);
            p.body_mut().copy_from_slice(page(seed, id.0).body());
            self.changed[n] = Some(seed);
        }
        txn.commit().unwrap();
    }

    /// Random reads, wishes and transactions.
    fn work(&mut self, seed: u64, steps: usize) {
        let mut random = Random::new(seed);
        for _ in 0..steps {
            let mut r = reader(&self.store);
            match random.below(12) {
                0 => self.change(&mut random),
                1 => drop(self.store.checkpoint().unwrap()),
                2 => {
                    let from = random.below(PAGES - 10);
                    let mut wish = self.tree.pages[from..from + 10].to_vec();
                    wish.sort_unstable();
                    r.wish(self.tree.id, &wish, WishKind::Planned);
                }
                _ => (0..8).for_each(|_| self.check(&mut r, random.below(PAGES))),
            }
        }
        assert!(r_is_part(&self.store), "reads ahead are among the reads");
    }

    fn check_all(&self) {
        let mut r = reader(&self.store);
        (0..PAGES).for_each(|n| self.check(&mut r, n));
    }

    fn stats(&self) -> TreeStats {
        self.store.tree_stats().into_iter().find(|t| t.name == "t").unwrap()
    }

    /// Pages of all its trees in the frames.
    fn resident(&self) -> u64 {
        self.store.tree_stats().iter().map(|t| t.resident).sum()
    }

    fn reopen(self, dir: &Path, config: StoreConfig) -> Modelled {
        let store = reopen(dir, self.store, config);
        Modelled { store, ..self }
    }
}

fn r_is_part(store: &Store) -> bool {
    let all = store.activity();
    all.spec_disk <= all.disk
}

#[test]
fn two_stores_with_few_frames_match_their_models() {
    let seed = seed();
    for read_ahead in [ReadAhead::none(), ReadAhead::all()] {
        let dir = tempfile::tempdir().unwrap();
        let paths = [dir.path().join("a"), dir.path().join("b")];
        let (frames, budget) = frames();
        let config = sharing(&frames, &budget, read_ahead);
        let mut stores = [1, 2].map(|i| Modelled::create(&paths[i - 1], config.clone(), i as u64));
        for round in 0..3 {
            std::thread::scope(|s| {
                for (i, store) in stores.iter_mut().enumerate() {
                    s.spawn(move || store.work(seed.wrapping_add(10 * round + i as u64), 150));
                }
            });
            let mut i = 0;
            stores = stores.map(|store| {
                i += 1;
                store.reopen(&paths[i - 1], config.clone())
            });
            stores.iter().for_each(Modelled::check_all);
            let stats = frames.stats();
            assert_eq!((stats.frames, stats.stores), (FRAMES, 2));
            assert!(stats.held <= FRAMES, "{stats:?}");
        }
        drop(stores);
        assert_eq!((frames.stats().held, frames.stats().stores), (0, 0), "who leaves holds nothing");
    }
}

#[test]
fn frames_go_to_the_store_that_uses_them() {
    let dir = tempfile::tempdir().unwrap();
    let (frames, budget) = frames();
    let config = sharing(&frames, &budget, ReadAhead::none());
    let before = budget.used();
    let a = Modelled::create(&dir.path().join("a"), config.clone(), 1);
    let b = Modelled::create(&dir.path().join("b"), config, 2);
    assert_eq!(budget.used(), before, "a store that shares reserves no frames of its own");
    a.check_all();
    assert_eq!((a.resident(), b.resident()), (u64::from(FRAMES), 0));
    (0..10).for_each(|_| b.check_all());
    assert_eq!(a.resident() + b.resident(), u64::from(FRAMES), "each page is counted where it belongs");
    assert_eq!(a.stats().resident, 0, "the pages of a are the oldest");
    // Those of b that are left when it leaves are free for a.
    drop(b);
    assert_eq!(frames.stats().held, 0);
    a.check_all();
    assert_eq!(a.resident(), u64::from(FRAMES));
}

#[test]
fn a_pinned_page_outlives_its_store() {
    let dir = tempfile::tempdir().unwrap();
    let (frames, budget) = frames();
    let config = sharing(&frames, &budget, ReadAhead::none());
    let a = Modelled::create(&dir.path().join("a"), config.clone(), 1);
    let b = Modelled::create(&dir.path().join("b"), config, 2);
    let held = reader(&a.store).page(a.tree.id, a.tree.pages[5]).unwrap();
    drop(a);
    (0..3).for_each(|_| b.check_all());
    assert_eq!(held[32..], *page(1, 5).body(), "a pinned page changed");
    assert_eq!(b.resident(), u64::from(FRAMES) - 1, "the pinned frame is handed out to none");
    drop((b, frames));
    assert_eq!(held[32..], *page(1, 5).body(), "pinned memory was unmapped");
}

#[test]
fn too_few_frames_are_refused() {
    let budget = MemoryBudget::new(1 << 20);
    assert!(matches!(SharedFrames::new(8 * 8192, &budget), Err(StoreError::Config(_))));
    assert!(matches!(SharedFrames::new(2 << 20, &budget), Err(StoreError::Memory { .. })));
}
