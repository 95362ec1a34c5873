//! Shared by the tests of all trees: stores of default and of hostile size, and a seeded generator.

use std::sync::Arc;

use crate::{Reader, Store, StoreConfig};

/// A store in a directory that goes with it.
pub(crate) struct TestStore {
    pub store: Arc<Store>,
    _dir: tempfile::TempDir,
}

/// Sizes under which every tree test runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Sizes {
    Default,
    /// 8-page extents, a pool of 64 pages.
    Hostile,
}

impl Sizes {
    pub(crate) const BOTH: [Sizes; 2] = [Sizes::Default, Sizes::Hostile];
}

impl TestStore {
    pub(crate) fn new(sizes: Sizes) -> TestStore {
        let dir = tempfile::tempdir().expect("a directory for the test");
        let (extent_pages, pool) = match sizes {
            Sizes::Default => (256, 32 << 20),
            Sizes::Hostile => (8, 64 * 8192),
        };
        let config = StoreConfig {
            extent_pages,
            memory_bytes: 64 << 20,
            pool_bytes: Some(pool),
            direct: false,
            ..StoreConfig::default()
        };
        let store = Store::create(&dir.path().join("db"), &[], config).expect("a new store");
        TestStore { store, _dir: dir }
    }

    pub(crate) fn reader(&self) -> Reader {
        Reader::new(&self.store, self.store.snapshot())
    }
}

/// A small seeded generator (xorshift64*), so that a failing seed can be run again.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        for _ in 0..8 {
            random.word();
        }
        random
    }

    pub(crate) fn word(&mut self) -> u64 {
        snowmelt_base::random::xorshift_star(&mut self.0)
    }

    /// Below `n`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.word()) * u128::from(n)) >> 64) as u64
    }
}

/// Seeds of the random tests: the one in `SNOWMELT_SEED`, else a few fixed ones. Failing tests
/// print theirs.
pub(crate) fn seeds(n: u64) -> Vec<u64> {
    let first = snowmelt_io::test_seed(1);
    if std::env::var_os("SNOWMELT_SEED").is_some() { vec![first] } else { (1..=n).collect() }
}
