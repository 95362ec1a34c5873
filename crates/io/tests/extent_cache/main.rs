//! The extent cache: against a model, from many threads and processes, killed and damaged.

mod damage;
mod failures;
mod folders;
mod model;
mod processes;
mod sizes;
mod threads;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use snowmelt_base::random::{Random, fill, mix};
use snowmelt_io::ExtentCache;

/// Bytes of the slots of these tests, of which a piece has 2 KiB.
const SLOT_BYTES: u32 = 64 << 10;
/// Of the index before its records, and of the data file before its slots.
const FIXED_BYTES: u64 = 8192 + 4096;
/// A slot with its head and record.
const EACH_BYTES: u64 = SLOT_BYTES as u64 + 4096 + 64;
const INDEX: &str = "snowmelt-extents.index";
const DATA: &str = "snowmelt-extents.data";

/// The least bytes that have room for so many slots.
fn bytes_for(slots: u64) -> u64 {
    FIXED_BYTES + slots * EACH_BYTES
}

fn open(dir: &Path, slots: u64) -> Arc<ExtentCache> {
    ExtentCache::open_with_slots(dir, bytes_for(slots), SLOT_BYTES).unwrap()
}

/// The name of an object.
fn key(number: u64) -> String {
    format!("extents/{number:016x}-{:016x}", mix(number))
}

/// The bytes of an object: most fill a slot.
fn object(number: u64) -> Vec<u8> {
    let mut state = mix(number) | 1;
    let len = match state % 4 {
        0 => state >> 8 & 0xffff,
        _ => u64::from(SLOT_BYTES),
    };
    let mut bytes = vec![0; len as usize];
    fill(&mut bytes, &mut state);
    bytes
}

/// An object store that counts.
#[derive(Default)]
struct CountingStore {
    fetches: Mutex<BTreeMap<u64, u64>>,
}

impl CountingStore {
    fn fetch(&self, number: u64) -> Result<Vec<u8>, Infallible> {
        *self.fetches.lock().entry(number).or_default() += 1;
        Ok(object(number))
    }

    /// Gets an object through the cache, and looks at its bytes.
    fn get(&self, cache: &ExtentCache, number: u64) {
        let right = object(number);
        let got = cache.get(&key(number), right.len() as u64, || self.fetch(number)).unwrap();
        assert!(*got == *right, "object {number}");
    }

    /// Fetches since the last call.
    fn take_fetches(&self) -> u64 {
        std::mem::take(&mut *self.fetches.lock()).values().sum()
    }
}

/// Reads a random part of an object, if the cache has it, and looks at its bytes.
fn read_part(cache: &ExtentCache, number: u64, random: &mut Random) -> bool {
    let right = object(number);
    let offset = random.below(right.len() as u64 + 1);
    let len = random.below(right.len() as u64 - offset + 1);
    let mut buf = vec![0; len as usize];
    let read = cache.read(&key(number), offset, &mut buf);
    assert!(!read || buf == right[offset as usize..][..len as usize], "object {number}, {len} at {offset}");
    read
}
