//! Bytes flipped anywhere, files cut and deleted: the right bytes come, and the damage is counted.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

use snowmelt_base::random::Random;
use snowmelt_base::test_seed;

use crate::{CountingStore, DATA, INDEX, SLOT_BYTES, key, object, open, read_part};

const SLOTS: u64 = 6;

fn flip(path: &Path, at: u64, bits: u8) {
    let file = fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ bits], at).unwrap();
}

/// A full cache: object n is in slot n.
fn full(dir: &Path, store: &CountingStore) {
    let cache = open(dir, SLOTS);
    (0..SLOTS).for_each(|n| store.get(&cache, n));
    assert_eq!(store.take_fetches(), SLOTS);
}

/// Gets all; answers fetches and damage.
fn get_all(dir: &Path, store: &CountingStore) -> (u64, u64) {
    let cache = open(dir, SLOTS);
    (0..SLOTS).for_each(|n| store.get(&cache, n));
    let counted = cache.counters();
    (0..SLOTS).for_each(|n| store.get(&cache, n));
    let fetches = store.take_fetches();
    assert_eq!((fetches, counted.damaged), (counted.misses, cache.counters().damaged), "mended at once");
    (fetches, counted.damaged)
}

/// The byte of the data file where a slot's head is.
fn slot_at(slot: u64) -> u64 {
    4096 + slot * (4096 + u64::from(SLOT_BYTES))
}

#[test]
fn each_kind_of_damage_costs_what_it_hit() {
    let dir = tempfile::tempdir().unwrap();
    let store = CountingStore::default();
    full(dir.path(), &store);
    let (index, data) = (dir.path().join(INDEX), dir.path().join(DATA));
    let last_byte = object(2).len() as u64 - 1;
    for (path, at, costs) in [
        (&data, slot_at(2) + 4096, (1, 1)), // the first byte of an object
        (&data, slot_at(2) + 4096 + last_byte, (1, 1)), // its last
        (&data, slot_at(2) + 3, (1, 1)),    // its key
        (&data, slot_at(2) + 50, (1, 1)),   // a checksum
        (&data, slot_at(2) + 4000, (0, 0)), // nothing
        (&data, 20, (0, 1)),                // the number of the cache
        (&index, 8192 + 64 * 3 + 20, (1, 1)), // a generation
        (&index, 8192 + 64 * 3 + 40, (0, 0)), // a mark
        (&index, 4097, (0, 0)),             // changes of long ago
        (&index, 3, (SLOTS, 1)),            // the magic number
        (&index, 100, (SLOTS, 1)),          // a total
        (&index, 73, (SLOTS, 1)),           // the number of changes
    ] {
        flip(path, at, 0x10);
        assert_eq!(get_all(dir.path(), &store), costs, "byte {at} of {}", path.display());
        assert_eq!(get_all(dir.path(), &store), (0, 0), "after byte {at} of {}", path.display());
    }
}

#[test]
fn bytes_are_right_whatever_is_flipped_or_cut() {
    let mut random = Random(test_seed(15));
    let store = CountingStore::default();
    let mut costs = (0, 0);
    for round in 0..150 {
        let dir = tempfile::tempdir().unwrap();
        full(dir.path(), &store);
        for _ in 0..=random.below(4) {
            let path = dir.path().join(if random.below(2) == 0 { INDEX } else { DATA });
            let Ok(meta) = fs::metadata(&path) else { continue };
            let most = if random.below(2) == 0 { 8192 + 64 * SLOTS } else { u64::MAX };
            let at = random.below(most) % meta.len().max(1);
            match random.below(12) {
                0 => fs::remove_file(&path).unwrap(),
                1 | 2 => fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(at).unwrap(),
                _ if meta.len() > 0 => flip(&path, at, 1 << random.below(8)),
                _ => {}
            }
        }
        let (fetches, damaged) = get_all(dir.path(), &store);
        assert!(
            fetches <= SLOTS && damaged <= SLOTS + 2,
            "round {round}: {fetches} fetches, {damaged} damaged"
        );
        assert_eq!(get_all(dir.path(), &store), (0, 0), "round {round}");
        costs = (costs.0 + fetches, costs.1 + damaged);
    }
    assert!(costs.0 > 100 && costs.1 > 50, "{costs:?}");
}

/// Damage while the cache is open, in what it has not verified yet.
#[test]
fn bytes_are_right_when_files_are_damaged_under_an_open_cache() {
    let mut random = Random(test_seed(16));
    let store = CountingStore::default();
    for round in 0..60 {
        let dir = tempfile::tempdir().unwrap();
        full(dir.path(), &store);
        let cache = open(dir.path(), SLOTS + 2);
        let path = dir.path().join(if random.below(2) == 0 { INDEX } else { DATA });
        let at = random.below(fs::metadata(&path).unwrap().len());
        match random.below(3) {
            0 => fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(at).unwrap(),
            _ => flip(&path, at, 0xff),
        }
        for _ in 0..30 {
            read_part(&cache, random.below(SLOTS + 4), &mut random);
            store.get(&cache, random.below(SLOTS + 4));
        }
        store.take_fetches();
        (0..3).for_each(|n| store.get(&cache, n));
        (0..3).for_each(|n| store.get(&cache, n));
        assert!(store.take_fetches() <= 3 && cache.peek(&key(2)), "round {round}: what is fetched is kept");
    }
}
