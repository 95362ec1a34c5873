//! Many threads of one process, and two openings in one process, which are as two processes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Barrier, mpsc};

use snowmelt_base::random::Random;
use snowmelt_base::test_seed;
use snowmelt_io::ExtentCache;

use crate::{CountingStore, key, object, open, read_part};

const THREADS: u64 = 6;

#[test]
fn each_object_is_fetched_once_by_all_threads_and_openings() {
    let seed = test_seed(12);
    let dir = tempfile::tempdir().unwrap();
    let caches = [open(dir.path(), 64), open(dir.path(), 64)];
    let (store, start) = (CountingStore::default(), Barrier::new(THREADS as usize));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (caches, store, start) = (&caches, &store, &start);
            scope.spawn(move || {
                let mut random = Random(seed + thread);
                start.wait();
                for _ in 0..200 {
                    let (cache, number) = (&caches[thread as usize % 2], random.below(60));
                    store.get(cache, number);
                    assert!(read_part(cache, number, &mut random) && cache.peek(&key(number)));
                }
            });
        }
    });
    let fetches = store.fetches.lock();
    assert!(fetches.values().all(|count| *count == 1), "{fetches:?}");
    let counted = caches.map(|cache| cache.counters());
    assert_eq!(counted[0].misses + counted[1].misses, fetches.len() as u64);
    assert_eq!(counted[0].damaged + counted[1].damaged, 0);
}

#[test]
fn in_a_small_cache_bytes_are_right_and_no_two_fetch_one_object_at_once() {
    let seed = test_seed(13);
    for slots in [1, 5] {
        let dir = tempfile::tempdir().unwrap();
        let caches = [open(dir.path(), slots), open(dir.path(), slots)];
        let fetching: Vec<AtomicU64> = (0..16).map(|_| AtomicU64::new(0)).collect();
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (caches, fetching) = (&caches, &fetching);
                scope.spawn(move || {
                    let mut random = Random(seed + thread);
                    for _ in 0..150 {
                        let (cache, number) = (&caches[thread as usize % 2], random.below(16));
                        read_part(cache, number, &mut random);
                        get_alone(cache, number, &fetching[number as usize]);
                    }
                });
            }
        });
        assert!(caches.iter().all(|cache| cache.counters().damaged == 0));
    }
}

fn get_alone(cache: &ExtentCache, number: u64, fetching: &AtomicU64) {
    let right = object(number);
    let fetch = || {
        assert_eq!(fetching.fetch_add(1, Ordering::SeqCst), 0, "two fetch object {number}");
        std::thread::yield_now();
        let bytes = object(number);
        fetching.fetch_sub(1, Ordering::SeqCst);
        Ok::<_, ()>(bytes)
    };
    let got = cache.get(&key(number), right.len() as u64, fetch).unwrap();
    assert!(*got == *right, "object {number}");
}

/// While an object is being fetched, others are hit, read and fetched.
#[test]
fn a_fetch_is_in_no_other_objects_way() {
    let dir = tempfile::tempdir().unwrap();
    let (cache, store) = (open(dir.path(), 8), CountingStore::default());
    store.get(&cache, 1);
    let (to_fetch, asked) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let (cache, store) = (&cache, &store);
        let fetching = scope.spawn(move || {
            let fetch = || {
                asked.recv().expect("the others are through");
                store.fetch(2)
            };
            cache.get(&key(2), object(2).len() as u64, fetch).unwrap()
        });
        store.get(cache, 1);
        store.get(cache, 3);
        assert!(cache.peek(&key(3)) && cache.read(&key(1), 0, &mut [0; 9]));
        to_fetch.send(()).unwrap();
        assert!(*fetching.join().unwrap() == *object(2));
    });
}

/// One that waits takes over when the fetch fails, or its thread panics: in the same opening, and
/// in another.
#[test]
fn a_failed_fetch_is_taken_over() {
    for (other, panics) in [(0, false), (1, false), (0, true), (1, true)] {
        let dir = tempfile::tempdir().unwrap();
        let caches = [open(dir.path(), 8), open(dir.path(), 8)];
        let store = CountingStore::default();
        let (begun, has_begun) = mpsc::channel::<()>();
        let (fail, failing) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let (caches, store) = (&caches, &store);
            let first = scope.spawn(move || {
                let fetch = || {
                    begun.send(()).unwrap();
                    failing.recv().unwrap();
                    if panics {
                        std::panic::resume_unwind(Box::new("the fetch"))
                    } else {
                        Err::<Vec<u8>, _>(())
                    }
                };
                caches[0].get(&key(1), object(1).len() as u64, fetch).is_err()
            });
            has_begun.recv().unwrap();
            let second = scope.spawn(move || store.get(&caches[other], 1));
            // Whether it waits by then or not: it fetches once the first has failed.
            std::thread::yield_now();
            assert_eq!(store.take_fetches(), 0);
            fail.send(()).unwrap();
            assert_eq!(first.join().ok(), (!panics).then_some(true));
            second.join().unwrap();
        });
        assert_eq!(store.take_fetches(), 1);
        assert!(caches[0].peek(&key(1)));
    }
}

/// Closing ends waits for other threads and for other processes.
#[test]
fn a_closed_cache_waits_for_no_fetch() {
    for other in [0, 1] {
        let dir = tempfile::tempdir().unwrap();
        let caches = [open(dir.path(), 8), open(dir.path(), 8)];
        let store = CountingStore::default();
        let (begun, has_begun) = mpsc::channel::<()>();
        let (end, ending) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let (caches, store) = (&caches, &store);
            let first = scope.spawn(move || {
                let fetch = || {
                    begun.send(()).unwrap();
                    ending.recv().unwrap();
                    store.fetch(1)
                };
                caches[0].get(&key(1), object(1).len() as u64, fetch).map(|bytes| *bytes == *object(1))
            });
            has_begun.recv().unwrap();
            let second = scope.spawn(move || store.get(&caches[other], 1));
            std::thread::yield_now();
            caches[other].close();
            second.join().unwrap();
            end.send(()).unwrap();
            assert_eq!(first.join().unwrap(), Ok(true));
        });
        assert_eq!(store.take_fetches(), 2);
    }
}
