//! A folder as a store: its keys, files that others left, and writers that race.

use std::collections::HashSet;
use std::path::Path;
use std::process::Command;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use snowmelt_io::*;

use crate::calls::Calls;

#[test]
fn keys_stay_in_the_folder() {
    let dir = tempfile::tempdir().unwrap();
    let inside = dir.path().join("inside");
    std::fs::create_dir(&inside).unwrap();
    std::fs::write(dir.path().join("outside"), "secret").unwrap();
    std::os::unix::fs::symlink("..", inside.join("up")).unwrap();
    std::os::unix::fs::symlink("../outside", inside.join("link")).unwrap();
    let (folder, clock) = (FolderObjects::open(&inside).unwrap(), Clock::real());
    let calls = Calls(&folder, &clock);
    let long = "x/".repeat(600) + "x";
    for key in ["", "/a", "a/", "a//b", "../outside", "a/../b", ".", "a/.", ".snowmelt/lock", "a\0b", &long] {
        let is_refused = |kind| matches!(kind, ObjectErrorKind::Invalid(_));
        assert!(calls.get(key, None).is_err_and(is_refused), "{key:?}");
        assert!(calls.put(key, b"x", PutIf::Always).is_err_and(is_refused), "{key:?}");
        assert!(calls.delete(key).is_err_and(is_refused), "{key:?}");
    }
    for key in ["link", "up/outside"] {
        assert_eq!(calls.get(key, None).err(), Some(ObjectErrorKind::Missing), "{key}");
        calls.delete(key).unwrap();
    }
    assert!(calls.put("up/new", b"x", PutIf::Always).is_err());
    calls.put("link", b"inside", PutIf::Absent).unwrap(); // takes the name from the link
    assert_eq!(calls.keys("", 10).unwrap(), ["link"]);
    assert_eq!(std::fs::read(dir.path().join("outside")).unwrap(), b"secret");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
}

#[test]
fn a_key_is_no_folder_of_another_one() {
    let dir = tempfile::tempdir().unwrap();
    let (folder, clock) = (FolderObjects::open(dir.path()).unwrap(), Clock::real());
    let calls = Calls(&folder, &clock);
    calls.put("a/b/c", b"1", PutIf::Always).unwrap();
    for key in ["a/b", "a/b/c/d"] {
        let put = calls.put(key, b"2", PutIf::Always);
        assert!(matches!(put, Err(ObjectErrorKind::Unsupported(_))), "{key}: {put:?}");
        assert_eq!(calls.get(key, None).err(), Some(ObjectErrorKind::Missing));
    }
    // The empty folders go with the last of their objects.
    calls.delete("a/b/c").unwrap();
    calls.put("a", b"3", PutIf::Absent).unwrap();
    assert_eq!(calls.keys("", 1).unwrap(), ["a"]);
}

#[test]
fn leftovers_are_not_listed_and_go_when_they_are_old() {
    let dir = tempfile::tempdir().unwrap();
    let (folder, clock) = (FolderObjects::open(dir.path()).unwrap(), Clock::real());
    let calls = Calls(&folder, &clock);
    assert_eq!(calls.keys("", 1).unwrap(), [""; 0]);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "a reader makes nothing");
    let own = dir.path().join(".snowmelt");
    std::fs::create_dir(&own).unwrap();
    for (name, days) in [("put-1-1", 2), ("put-1-2", 0), ("other", 2)] {
        let file = std::fs::File::create(own.join(name)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(days * 24 * 3600)).unwrap();
    }
    calls.put("a", b"x", PutIf::Always).unwrap();
    assert_eq!(calls.put("a", b"y", PutIf::Absent), Err(ObjectErrorKind::Changed));
    assert_eq!(calls.keys("", 9).unwrap(), ["a"]);
    let left = std::fs::read_dir(&own).unwrap().map(|entry| entry.unwrap().file_name());
    let mut left: Vec<_> = left.collect();
    left.sort();
    assert_eq!(left, ["lock", "other", "put-1-2"]);
}

#[test]
fn versions_do_not_come_again_when_clocks_go_back() {
    let dir = tempfile::tempdir().unwrap();
    let (folder, clock) = (FolderObjects::open(dir.path()).unwrap(), Clock::real());
    let calls = Calls(&folder, &clock);
    calls.put("a", b"x", PutIf::Always).unwrap();
    // The last time given lies in the future: the clock was set back since.
    let future = SystemTime::now() + Duration::from_secs(1000);
    let future_ns = future.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as u64;
    std::fs::write(dir.path().join(".snowmelt/lock"), future_ns.to_le_bytes()).unwrap();
    let mut versions = HashSet::new();
    for _ in 0..20 {
        // The inode is that of the file before, on many file systems.
        calls.delete("a").unwrap();
        let version = calls.put("a", b"x", PutIf::Absent).unwrap();
        assert!(std::fs::metadata(dir.path().join("a")).unwrap().modified().unwrap() > future);
        let time = version.0.split('-').next().unwrap().to_owned();
        assert!(versions.insert(time), "{version}");
    }
}

/// Puts that race with those of others; returns how many of the first kind were won.
fn race(folder: &FolderObjects, who: &str, rounds: usize, before_each: impl Fn()) -> usize {
    let clock = Clock::real();
    let calls = Calls(folder, &clock);
    let mut won = 0;
    for round in 0..rounds {
        before_each();
        match calls.put(&format!("round/{round}"), who.as_bytes(), PutIf::Absent) {
            Ok(_) => won += 1,
            Err(kind) => assert_eq!(kind, ObjectErrorKind::Changed),
        }
        // A counter loses no step.
        loop {
            let (count, only) = match calls.get("counter", None) {
                Ok(it) => (String::from_utf8(it.bytes).unwrap().parse().unwrap(), PutIf::Is(it.version)),
                Err(ObjectErrorKind::Missing) => (0, PutIf::Absent),
                Err(kind) => panic!("{kind}"),
            };
            let count: u64 = count;
            match calls.put("counter", (count + 1).to_string().as_bytes(), only) {
                Ok(_) => break,
                Err(kind) => assert_eq!(kind, ObjectErrorKind::Changed),
            }
        }
    }
    won
}

fn counter(dir: &Path) -> usize {
    std::fs::read_to_string(dir.join("counter")).unwrap().parse().unwrap()
}

#[test]
fn of_two_puts_on_a_condition_one_wins() {
    const ROUNDS: usize = 60;
    let dir = tempfile::tempdir().unwrap();
    let (start, won) = (Barrier::new(2), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for who in ["one", "two"] {
            let (start, won) = (&start, &won);
            let folder = FolderObjects::open(dir.path()).unwrap();
            scope.spawn(move || {
                let n = race(&folder, who, ROUNDS, || {
                    start.wait();
                });
                won.fetch_add(n as u32, Ordering::Relaxed);
            });
        }
    });
    assert_eq!(won.into_inner() as usize, ROUNDS);
    assert_eq!(counter(dir.path()), 2 * ROUNDS);
}

/// Names the folder to a second process of this test.
const RACE_IN: &str = "SNOWMELT_TEST_RACE_IN";

#[test]
fn processes_share_a_folder() {
    const ROUNDS: usize = 60;
    if let Some(dir) = std::env::var_os(RACE_IN) {
        // The second process: its parent counts.
        let dir = Path::new(&dir);
        let won = race(&FolderObjects::open(dir).unwrap(), "two", ROUNDS, || {});
        return std::fs::write(dir.join("won"), won.to_string()).unwrap();
    }
    let dir = tempfile::tempdir().unwrap();
    let mut other = Command::new(std::env::current_exe().unwrap());
    other.args(["--exact", "folder::processes_share_a_folder"]).env(RACE_IN, dir.path());
    let mut other = other.spawn().unwrap();
    let won = race(&FolderObjects::open(dir.path()).unwrap(), "one", ROUNDS, || {});
    assert!(other.wait().unwrap().success());
    let of_other: usize = std::fs::read_to_string(dir.path().join("won")).unwrap().parse().unwrap();
    assert_eq!(won + of_other, ROUNDS);
    assert_eq!(counter(dir.path()), 2 * ROUNDS);
}

#[test]
fn a_store_that_goes_answers_first() {
    let dir = tempfile::tempdir().unwrap();
    let folder = FolderObjects::open(dir.path()).unwrap();
    let answers = std::sync::Arc::new(AtomicU32::new(0));
    let put = |i: u32| Ask::Put { key: format!("{i}").into(), bytes: [1].into(), only: PutIf::Always };
    let begin = |i| {
        let answers = answers.clone();
        let done = move |_| {
            answers.fetch_add(1, Ordering::Relaxed);
        };
        folder.begin(put(i), Box::new(done))
    };
    let handles: Vec<_> = (0..20).map(begin).collect();
    drop(folder);
    assert_eq!(answers.load(Ordering::Relaxed), 20);
    drop(handles);
}
