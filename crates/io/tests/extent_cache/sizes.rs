//! Caches that are opened with another size than they have, alone and while others use them.

use std::fs;
use std::path::Path;

use snowmelt_base::random::Random;
use snowmelt_base::test_seed;

use crate::{CountingStore, DATA, INDEX, bytes_for, key, open, read_part};

/// Bytes of both files.
fn file_bytes(dir: &Path) -> u64 {
    [INDEX, DATA].iter().map(|name| fs::metadata(dir.join(name)).unwrap().len()).sum()
}

#[test]
fn a_cache_that_grows_keeps_all_and_one_that_is_cut_keeps_what_has_room() {
    let dir = tempfile::tempdir().unwrap();
    let store = CountingStore::default();
    let held = |cache: &snowmelt_io::ExtentCache| (0..20).filter(|n| cache.peek(&key(*n))).count();
    let cache = open(dir.path(), 6);
    (0..6).for_each(|n| store.get(&cache, n));
    drop(cache);
    let cache = open(dir.path(), 10);
    assert_eq!((held(&cache), store.take_fetches()), (6, 6));
    (6..10).for_each(|n| store.get(&cache, n));
    assert_eq!((held(&cache), cache.counters().evictions), (10, 0), "empty slots come first");
    drop(cache);
    let cache = open(dir.path(), 4);
    assert_eq!(held(&cache), 4);
    assert!(file_bytes(dir.path()) <= bytes_for(4));
    (0..10).for_each(|n| store.get(&cache, n));
    assert!(file_bytes(dir.path()) <= bytes_for(4));
    drop(cache);
    let cache = open(dir.path(), 10);
    assert_eq!((held(&cache), cache.counters().damaged), (4, 0), "given up for good");
}

#[test]
fn the_last_to_open_sets_the_size_for_all() {
    let dir = tempfile::tempdir().unwrap();
    let store = CountingStore::default();
    let one = open(dir.path(), 8);
    (0..8).for_each(|n| store.get(&one, n));
    let other = open(dir.path(), 3);
    assert_eq!(store.take_fetches(), 8);
    let kept = (0..8).filter(|n| one.peek(&key(*n))).count();
    assert_eq!((kept, one.machine_totals().slots), (3, 3));
    for n in 0..8 {
        store.get(&one, n);
        store.get(&other, n);
    }
    assert!(file_bytes(dir.path()) <= bytes_for(3));
    let third = open(dir.path(), 12);
    store.take_fetches();
    for cache in [&one, &other, &third] {
        (0..8).for_each(|n| store.get(cache, n));
    }
    assert!(store.take_fetches() <= 8 && one.machine_totals().slots == 12);
    assert!([one, other, third].iter().all(|cache| cache.counters().damaged == 0));
}

/// Threads go on while others open the cache again and again with other sizes.
#[test]
fn a_cache_changes_its_size_while_it_is_used() {
    let seed = test_seed(14);
    let dir = tempfile::tempdir().unwrap();
    let store = CountingStore::default();
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (dir, store) = (dir.path(), &store);
            scope.spawn(move || {
                let mut random = Random(seed + thread);
                let cache = open(dir, 10);
                for _ in 0..300 {
                    read_part(&cache, random.below(20), &mut random);
                    store.get(&cache, random.below(20));
                }
                assert_eq!(cache.counters().damaged, 0);
            });
        }
        let dir = dir.path();
        scope.spawn(move || {
            let mut random = Random(seed + 3);
            for _ in 0..100 {
                let cache = open(dir, 1 + random.below(15));
                read_part(&cache, random.below(20), &mut random);
            }
        });
    });
    drop(open(dir.path(), 4));
    assert!(file_bytes(dir.path()) <= bytes_for(4));
}
