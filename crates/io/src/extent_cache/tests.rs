//! Slots between their taking and their filling, which no caller sees.

use std::os::unix::fs::FileExt;

use super::*;

const SLOT_BYTES: u32 = 3200;

fn open(dir: &Path, slots: u64) -> Arc<ExtentCache> {
    let bytes = 8192 + 4096 + slots * (u64::from(SLOT_BYTES) + 4096 + 64);
    ExtentCache::open_with_slots(dir, bytes, SLOT_BYTES).unwrap()
}

fn take(cache: &ExtentCache) -> Option<TakenSlot<'_>> {
    cache.in_session(|session, _| session.take()).expect("the index is in reach")
}

fn fill(cache: &ExtentCache, taken: &TakenSlot<'_>) -> bool {
    let object = HeldObject { key: KeyHash::of("a"), len: 9 };
    cache.in_session(|session, _| session.fill(taken, object)).expect("the index is in reach")
}

#[test]
fn a_slot_is_written_by_one_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let (one, other) = (open(dir.path(), 1), open(dir.path(), 1));
    let taken = take(&one).expect("it is free");
    assert!(take(&one).is_none(), "another thread of the process");
    assert!(take(&other).is_none(), "another opening, as of another process");
    drop(taken);
    let taken = take(&other).expect("it is free again");
    assert!(take(&one).is_none());
    assert!(fill(&other, &taken) && !fill(&other, &taken), "once");
}

#[test]
fn a_slot_that_is_lost_meanwhile_is_not_filled() {
    let dir = tempfile::tempdir().unwrap();
    let cache = open(dir.path(), 4);
    let taken = [(); 4].map(|()| take(&cache).expect("it is free"));
    let smaller = open(dir.path(), 2);
    assert_eq!([0, 1, 2, 3].map(|slot| fill(&cache, &taken[slot])), [true, true, false, false]);
    drop(taken);
    // Cut and grown again: the slot is there, and another one's.
    let taken = [(); 2].map(|()| take(&smaller).expect("it is free"));
    let (_, grown) = (open(dir.path(), 1), open(dir.path(), 2));
    assert_eq!([0, 1].map(|slot| fill(&smaller, &taken[slot])), [true, false]);
    drop(taken);
    // Emptied after damage.
    let taken = take(&grown).expect("it is free");
    grown.index.file.write_all_at(&[0xff; 128], 0).unwrap();
    assert!(!fill(&grown, &taken) && grown.counters().damaged == 1);
}

#[test]
fn a_hit_needs_no_lock_of_the_index() {
    let dir = tempfile::tempdir().unwrap();
    let cache = open(dir.path(), 1);
    cache.get("a", 9, || Ok::<_, ()>(vec![7; 9])).unwrap();
    // While another has the index locked.
    let other = open(dir.path(), 1);
    let _session = IndexSession::begin(&other.index).unwrap();
    assert!(cache.read("a", 0, &mut [0; 9]) && cache.peek("a"));
    assert_eq!(*cache.get("a", 9, || Err::<Vec<u8>, _>("not fetched")).unwrap(), [7; 9]);
    assert!(!cache.peek("b"), "nothing has changed, so there is none");
}
