//! Disks that are full, read-only or broken: the cache steps aside, and its callers see nothing.

use std::process::{Command, Stdio};
use std::sync::Arc;

use parking_lot::Mutex;
use snowmelt_io::{AtCall, KillAt, set_notice};

use crate::processes::{self, ChildPlan};
use crate::{CountingStore, SLOT_BYTES, bytes_for, key, open};

#[test]
fn on_a_full_disk_the_cache_keeps_what_has_room() {
    let dir = tempfile::tempdir().unwrap();
    let small = std::ffi::CString::new(format!("size={}", bytes_for(4))).unwrap();
    let flags = rustix::mount::MountFlags::empty();
    if rustix::mount::mount("tmpfs", dir.path(), "tmpfs", flags, small.as_c_str()).is_err() {
        return println!("skipped: mounting needs root");
    }
    let told = Arc::new(Mutex::new(Vec::<String>::new()));
    let (heard, folder) = (told.clone(), dir.path().display().to_string());
    set_notice(move |line| {
        if line.contains(&folder) {
            heard.lock().push(line.to_owned());
        }
    });
    let store = CountingStore::default();
    let cache = open(dir.path(), 40);
    for n in 0..30 {
        store.get(&cache, n % 12);
    }
    let (counted, fetches, totals) = (cache.counters(), store.take_fetches(), cache.machine_totals());
    let full =
        snowmelt_io::ExtentCache::open_with_slots(&dir.path().join("other"), 1 << 40, SLOT_BYTES).err();
    let is_kept = cache.peek(&key(29 % 12));
    drop(cache);
    rustix::mount::unmount(dir.path(), rustix::mount::UnmountFlags::DETACH).unwrap();
    assert!((2..=5).contains(&totals.slots) && totals.objects == totals.slots, "{totals:?}");
    assert!(is_kept, "slots that have their room are used again and again");
    assert_eq!((fetches, counted.misses, counted.hits, counted.passed), (30, 30, 0, 0));
    assert_eq!((totals.fetched, totals.evictions), (29, 29 - totals.slots), "one had no room");
    let told = told.lock();
    assert!(told.len() == 1 && told[0].contains("No space left") && told[0].contains("keeps"), "{told:?}");
    let full = full.expect("its index has no room");
    assert!(matches!(full, snowmelt_io::CacheError::NoRoom { .. }), "{full}");
    assert!(full.to_string().contains("make room there"), "{full}");
}

/// Each system call that changes a file fails once, or from then on: a child gets the right bytes
/// all the same, unless it cannot open the cache, and says so.
#[test]
fn whichever_call_fails_the_bytes_are_right() {
    let plan = ChildPlan { slots: 3, keys: 5, gets: 8, seed: 1, logs: false };
    let events = [
        AtCall::Fail(libc::EIO),
        AtCall::FailOn(libc::EIO),
        AtCall::FailOn(libc::EROFS),
        AtCall::Full,
        AtCall::Fail(libc::EINTR),
    ];
    for event in events {
        let mut n = 1;
        loop {
            let dir = tempfile::tempdir().unwrap();
            let traced =
                KillAt::start_to(quiet(processes::child(dir.path(), &plan)), n, event).wait().unwrap();
            assert!(
                traced.status.success(),
                "{event:?} at call {n}, {:?}: {}",
                traced.killed_at,
                traced.status
            );
            processes::check_after(dir.path(), &plan, &format!("{event:?} at call {n}"));
            if traced.killed_at.is_none() {
                break;
            }
            n += 1;
        }
        assert!(n > 30, "{n} calls");
    }
}

pub fn quiet(mut command: Command) -> Command {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}
