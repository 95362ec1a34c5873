//! One process and thread: each hit, miss and eviction is that of a clock in memory.

use snowmelt_base::random::Random;
use snowmelt_base::test_seed;

use crate::{CountingStore, key, object, open, read_part};

/// Second chance: a read marks the slot, the hand takes the mark away or the slot.
struct ModelClock {
    slots: Vec<Option<(u64, bool)>>,
    hand: usize,
    evictions: u64,
}

impl ModelClock {
    fn new(slots: usize) -> ModelClock {
        ModelClock { slots: vec![None; slots], hand: 0, evictions: 0 }
    }

    fn has(&self, number: u64) -> bool {
        self.slots.iter().flatten().any(|(held, _)| *held == number)
    }

    fn read(&mut self, number: u64) -> bool {
        let slot = self.slots.iter_mut().flatten().find(|(held, _)| *held == number);
        slot.map(|slot| slot.1 = true).is_some()
    }

    fn keep(&mut self, number: u64) {
        loop {
            let hand = self.hand;
            self.hand = (hand + 1) % self.slots.len();
            match &mut self.slots[hand] {
                Some((_, marked)) if *marked => *marked = false,
                slot => {
                    self.evictions += u64::from(slot.is_some());
                    *slot = Some((number, false));
                    return;
                }
            }
        }
    }
}

#[test]
fn hits_and_evictions_are_those_of_a_clock() {
    let mut random = Random(test_seed(11));
    for slots in [1, 3, 8, 100] {
        let dir = tempfile::tempdir().unwrap();
        let mut cache = open(dir.path(), slots);
        let (store, mut clock) = (CountingStore::default(), ModelClock::new(slots as usize));
        let (mut misses, mut evictions) = (0, 0);
        for _ in 0..400 {
            let number = random.below(slots * 2);
            match random.below(10) {
                0 => assert_eq!(cache.peek(&key(number)), clock.has(number)),
                1..=3 => assert_eq!(read_part(&cache, number, &mut random), clock.read(number)),
                4 if random.below(8) == 0 => {
                    // After a restart objects are there, marks and hand included.
                    evictions += cache.counters().evictions;
                    drop(cache);
                    cache = open(dir.path(), slots);
                }
                _ => {
                    let hit = clock.read(number);
                    if !hit {
                        clock.keep(number);
                        misses += 1;
                    }
                    store.get(&cache, number);
                    assert_eq!(store.take_fetches(), u64::from(!hit), "object {number}");
                }
            }
        }
        let totals = cache.machine_totals();
        assert_eq!(evictions + cache.counters().evictions, clock.evictions);
        assert_eq!((totals.evictions, totals.fetched), (clock.evictions, misses));
        assert_eq!(totals.objects, clock.slots.iter().flatten().count() as u64);
        assert_eq!((totals.slots, totals.damaged, cache.counters().damaged), (slots, 0, 0));
    }
}

#[test]
fn counters_count() {
    let dir = tempfile::tempdir().unwrap();
    let cache = open(dir.path(), 4);
    let store = CountingStore::default();
    let bytes = object(1).len() as u64;
    (0..3).for_each(|_| store.get(&cache, 1));
    assert!(cache.read(&key(1), 0, &mut [0; 7]));
    assert!(!cache.read(&key(1), bytes - 6, &mut [0; 7]), "it ends before");
    assert!(!cache.read(&key(1), u64::MAX, &mut [0; 7]));
    assert!(!cache.read(&key(2), 0, &mut [0; 7]));
    // Longer than a slot, or not as long as it should be: given on, and not kept.
    for (len, found) in [(u64::MAX, 9), (cache.slot_bytes() + 1, 70_000), (5, 6)] {
        let got = cache.get("extents/odd", len, || Ok::<_, ()>(vec![1; found])).unwrap();
        assert_eq!((got.len(), cache.peek("extents/odd")), (found, false));
        assert_eq!(got.into_vec(), vec![1; found]);
    }
    let counted = cache.counters();
    assert_eq!((counted.hits, counted.hit_bytes), (3, 2 * bytes + 7));
    assert_eq!((counted.misses, counted.passed, counted.waits), (2, 3, 0));
    assert_eq!(counted.fetched_bytes, bytes + 9 + 70_000 + 6);
    let failed = cache.get("extents/fails", 8, || Err::<Vec<u8>, _>("no such object"));
    assert_eq!(failed.unwrap_err(), "no such object");
}
