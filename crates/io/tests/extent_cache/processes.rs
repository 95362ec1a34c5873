//! Several processes over one folder: children that are this program again. Their fetches are lines
//! of a log, which they append to: `begin` or `end`, the process, the object.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use snowmelt_base::random::Random;
use snowmelt_base::test_seed;
use snowmelt_io::{ExtentCache, KillAt};

use crate::failures::quiet;
use crate::{CountingStore, SLOT_BYTES, bytes_for, key, object, open, read_part};

/// Folder and plan of a child: set when this program is one.
const FOLDER: &str = "SNOWMELT_TEST_CACHE_FOLDER";
const PLAN: &str = "SNOWMELT_TEST_CACHE_PLAN";

/// The doings of a child.
#[derive(Clone, Copy)]
pub struct ChildPlan {
    pub slots: u64,
    pub keys: u64,
    pub gets: u64,
    pub seed: u64,
    /// Whether fetches are logged.
    pub logs: bool,
}

pub fn child(dir: &Path, plan: &ChildPlan) -> Command {
    let ChildPlan { slots, keys, gets, seed, logs } = plan;
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "processes::one_of_many", "--test-threads=1"]);
    command.env(FOLDER, dir).env(PLAN, format!("{slots} {keys} {gets} {seed} {}", u64::from(*logs)));
    command
}

/// Not a test by itself: the child.
#[test]
fn one_of_many() {
    let Some(dir) = std::env::var_os(FOLDER).map(std::path::PathBuf::from) else { return };
    let plan = std::env::var(PLAN).unwrap();
    let plan: Vec<u64> = plan.split(' ').map(|word| word.parse().unwrap()).collect();
    let [slots, keys, gets, seed, logs] = plan[..] else { panic!("{plan:?}") };
    let cache = match ExtentCache::open_with_slots(&dir.join("cache"), bytes_for(slots), SLOT_BYTES) {
        Ok(cache) => cache,
        Err(e) => return println!("refused: {e}"),
    };
    let log = (logs == 1).then(|| File::options().append(true).create(true).open(dir.join("log")).unwrap());
    let note = |what: &str, number: u64| {
        if let Some(mut log) = log.as_ref() {
            log.write_all(format!("{what} {} {number}\n", std::process::id()).as_bytes()).unwrap();
        }
    };
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (cache, note) = (&cache, &note);
            let act = move || {
                let mut random = Random(seed + thread);
                for _ in 0..gets {
                    let number = random.below(keys);
                    read_part(cache, random.below(keys), &mut random);
                    let right = object(number);
                    let fetch = || {
                        note("begin", number);
                        std::thread::yield_now();
                        note("end", number);
                        Ok::<_, ()>(right.clone())
                    };
                    let got = cache.get(&key(number), right.len() as u64, fetch).unwrap();
                    assert!(*got == *right, "object {number}");
                }
            };
            // Calls are counted from one thread, so that each number is always the same call.
            if logs == 1 { drop(scope.spawn(act)) } else { act() }
        }
    });
    assert_eq!(cache.counters().damaged, 0);
}

/// The fetches of each object in order: the process, and whether another was at it when it began.
fn fetches(dir: &Path) -> BTreeMap<u64, Vec<(u32, Option<u32>)>> {
    let mut found: BTreeMap<u64, Vec<(u32, Option<u32>)>> = BTreeMap::new();
    let mut at_it: BTreeMap<u64, u32> = BTreeMap::new();
    for line in fs::read_to_string(dir.join("log")).unwrap().lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let (process, number) = (words[1].parse().unwrap(), words[2].parse().unwrap());
        if words[0] == "begin" {
            found.entry(number).or_default().push((process, at_it.insert(number, process)));
        } else {
            at_it.remove(&number);
        }
    }
    found
}

fn start(dir: &Path, plan: &ChildPlan) -> Child {
    child(dir, plan).stdout(Stdio::null()).spawn().unwrap()
}

/// Opens the cache of a child that is gone, and gets each object: the bytes are right, and there
/// was no damage.
pub fn check_after(dir: &Path, plan: &ChildPlan, when: &str) {
    let (cache, store) = (open(&dir.join("cache"), plan.slots), CountingStore::default());
    (0..plan.keys).for_each(|n| store.get(&cache, n));
    assert_eq!(cache.counters().damaged, 0, "{when}");
    (0..plan.keys).for_each(|n| store.get(&cache, n));
    if plan.slots >= plan.keys {
        assert!(store.fetches.lock().values().all(|count| *count == 1), "{when}");
    }
    assert_eq!(cache.machine_totals().damaged, 0, "{when}");
}

#[test]
fn processes_fetch_each_object_once() {
    let seed = test_seed(17);
    let dir = tempfile::tempdir().unwrap();
    let plan = ChildPlan { slots: 64, keys: 50, gets: 150, seed, logs: true };
    let children: Vec<Child> =
        (0..4).map(|n| start(dir.path(), &ChildPlan { seed: seed + 10 * n, ..plan })).collect();
    assert!(children.into_iter().all(|mut child| child.wait().unwrap().success()));
    let found = fetches(dir.path());
    assert!(found.values().all(|of| of.len() == 1), "{found:?}");
    assert_eq!(found.len(), 50);
    check_after(dir.path(), &plan, "afterwards");
}

/// In a cache that has room for all, an object is fetched again only after its fetcher was killed;
/// in one that has not, no two processes fetch an object at the same time.
#[test]
fn processes_are_killed_at_any_moment() {
    let mut random = Random(test_seed(18));
    for slots in [64, 7] {
        let dir = tempfile::tempdir().unwrap();
        let plan = ChildPlan { slots, keys: 50, gets: 40, seed: 0, logs: true };
        let mut begin = || start(dir.path(), &ChildPlan { seed: random.word() >> 1, ..plan });
        let mut children: Vec<Child> = (0..4).map(|_| begin()).collect();
        let mut killed = BTreeSet::new();
        let mut moment = Random(slots);
        for round in 0..60 {
            std::thread::sleep(std::time::Duration::from_micros(moment.below(30_000)));
            let mut child = children.swap_remove(moment.below(4) as usize);
            child.kill().unwrap();
            let status = child.wait().unwrap();
            assert!(status.code().is_none_or(|code| code == 0), "round {round}: {status}");
            if status.code().is_none() {
                killed.insert(child.id());
            }
            children.push(begin());
        }
        for mut child in children {
            assert!(child.wait().unwrap().success());
        }
        assert!(!killed.is_empty());
        for (number, of) in fetches(dir.path()) {
            let at_once = of.iter().find(|(_, other)| other.is_some_and(|other| !killed.contains(&other)));
            assert!(at_once.is_none(), "two processes fetch object {number}: {of:?}");
            let (_, before) = of.split_last().unwrap();
            let again = before.iter().find(|(process, _)| !killed.contains(process));
            assert!(slots < 50 || again.is_none(), "object {number} is fetched again: {of:?}");
        }
        check_after(dir.path(), &plan, "afterwards");
    }
}

/// At each call that changes a file: in a new folder for each, and again and again in one.
#[test]
fn a_process_killed_at_any_call_leaves_a_sound_cache() {
    let shared = tempfile::tempdir().unwrap();
    let plan = ChildPlan { slots: 3, keys: 5, gets: 8, seed: 1, logs: false };
    let mut n = 1;
    loop {
        let own = tempfile::tempdir().unwrap();
        let traced = [own.path(), shared.path()].map(|dir| {
            let traced = KillAt::start(quiet(child(dir, &plan)), n).wait().unwrap();
            assert!(traced.killed_at.is_some() || traced.status.success(), "call {n}: {}", traced.status);
            check_after(dir, &plan, &format!("killed at call {n}, {:?}", traced.killed_at));
            traced
        });
        if traced.iter().all(|traced| traced.killed_at.is_none()) {
            break;
        }
        n += 1;
    }
    assert!(n > 30, "{n} calls");
}
