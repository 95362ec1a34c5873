//! Sets of backups: a part is added only to the history that it grew out of, and whatever is wrong
//! with the files of a set is an error that names it.

#[path = "support/rounds.rs"]
mod rounds;
mod support;

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rounds::Pages;
use snowmelt_store::{
    Background, BackupSet, JournalConfig, ReadAhead, RestoreAt, Seams, Store, StoreConfig, StoreError,
};
use support::{Random, seed};

fn config() -> StoreConfig {
    StoreConfig {
        direct: false,
        close_ms: 1_000_000,
        reserve_bytes: Some(0),
        journal: JournalConfig { file_bytes: 1 << 20, ..rounds::small() },
        seams: Seams { background: Background::Caller, ..support::config(64, ReadAhead::none()).seams },
        ..support::config(64, ReadAhead::none())
    }
}

fn go_on<T>(_: T) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Adds the newest state; the name of the part, if there is one.
fn add(set: &Path, store: &Store) -> Result<Option<String>, StoreError> {
    let added = BackupSet::read(set)?.add(store, go_on)?;
    Ok(added.map(|(part, _)| part.name))
}

fn restore(set: &Path, at: RestoreAt, to: &Path) -> Result<Arc<Store>, StoreError> {
    let _ = fs::remove_dir_all(to);
    BackupSet::read(set)?.restore(at, to, &[], &config(), go_on)?;
    Store::open(to, config())
}

fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

/// Copies of one database that live on their own, and what each committed, in order.
struct World {
    dir: tempfile::TempDir,
    pages: Pages,
    random: Random,
    live: Vec<Life>,
    /// Numbers of rounds, which no two commits share.
    rounds: u64,
    /// The states of the parts.
    parts: Vec<Vec<u64>>,
    forks: u64,
}

#[derive(Clone)]
struct Life {
    path: PathBuf,
    store: Option<Arc<Store>>,
    commits: Vec<u64>,
    /// It was restored from a set: a database of its own.
    is_another: bool,
}

impl World {
    fn new(seed: u64) -> World {
        snowmelt_io::set_notice(|_| {});
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("db-0");
        let store = Store::create(&path, &[], config()).unwrap();
        let pages = Pages::create(&store, 12);
        pages.write(&store, 1).unwrap();
        let first = Life { path, store: Some(store), commits: vec![1], is_another: false };
        World { dir, pages, random: Random::new(seed), live: vec![first], rounds: 1, parts: vec![], forks: 0 }
    }

    fn set(&self) -> PathBuf {
        self.dir.path().join("set")
    }

    fn open(&mut self, n: usize) -> Arc<Store> {
        let life = &mut self.live[n];
        let path = &life.path;
        life.store.get_or_insert_with(|| Store::open(path, config()).unwrap()).clone()
    }

    fn write(&mut self, n: usize) {
        let store = self.open(n);
        for _ in 0..1 + self.random.below(3) {
            if self.random.below(4) == 0 {
                // A number that is used up and no commit: it spills, and is dropped.
                let mut txn = store.begin().unwrap();
                for page in &self.pages.list {
                    txn.page_mut(self.pages.tree, *page).unwrap().body_mut()[0] ^= 1;
                }
                let tree = txn.new_tree("dropped");
                (0..30).for_each(|_| {
                    txn.allocate(tree, None).unwrap();
                });
                continue;
            }
            self.rounds += 1;
            self.pages.write(&store, self.rounds).unwrap();
            self.live[n].commits.push(self.rounds);
        }
    }

    /// A copy of a folder: of a closed database, or as a snapshot of its volume would be.
    fn clone_to(&mut self, n: usize, to: Option<usize>) {
        if self.random.below(2) == 0 {
            self.live[n].store = None;
        }
        let path = match to {
            Some(to) => {
                self.live[to].store = None;
                self.live[to].path.clone()
            }
            None => self.dir.path().join(format!("db-{}", self.live.len())),
        };
        copy(&self.live[n].path, &path);
        let life = Life { path, store: None, ..self.live[n].clone() };
        match to {
            Some(to) => self.live[to] = life,
            None => self.live.push(life),
        }
    }

    fn back_up(&mut self, n: usize) {
        let (set, store) = (self.set(), self.open(n));
        let now = self.live[n].commits.clone();
        let done = add(&set, &store);
        let grew = self.parts.last().is_none_or(|last| now.starts_with(last));
        match (&done, self.parts.last()) {
            (Err(StoreError::Backup { why, .. }), Some(_)) if self.live[n].is_another => {
                assert!(why.contains("another database"), "{why}");
            }
            (Err(StoreError::Fork { set, .. }), Some(last)) => {
                assert!(!grew, "a fork is seen where there is none: {now:?} after {last:?}: {done:?}");
                let told = done.as_ref().unwrap_err().to_string();
                assert!(
                    told.contains(&format!("{:016x}", set.lineage)) && told.contains("new set"),
                    "{told}"
                );
                assert!(told.matches("history").count() >= 3, "both histories are named: {told}");
                self.forks += 1;
            }
            (Ok(Some(_)), last) => {
                assert!(grew && last != Some(&now), "{now:?} after {last:?}");
                self.parts.push(now);
            }
            (Ok(None), Some(last)) => assert_eq!(*last, now, "nothing has changed"),
            _ => panic!("{now:?} after {:?}: {done:?}", self.parts.last()),
        }
    }

    fn is_right(&mut self, part: usize) {
        let at = BackupSet::read(&self.set()).unwrap().parts()[part].txn;
        let to = self.dir.path().join("restored");
        let store = restore(&self.set(), RestoreAt::Txn(at), &to).unwrap();
        assert_eq!(self.pages.round(&store).unwrap(), *self.parts[part].last().unwrap());
        store.check_pages(|e| panic!("{e}"), |_| {});
    }

    fn step(&mut self) {
        let n = self.random.below(self.live.len());
        let other = self.random.below(self.live.len());
        match self.random.below(12) {
            0..=4 => self.write(n),
            5 => drop(self.open(n).checkpoint().unwrap()),
            6 => self.live[n].store = None,
            7 if self.live.len() < 4 => self.clone_to(n, None),
            // The folder gets the content of another one, older or newer.
            8 if n != other => self.clone_to(n, Some(other)),
            9 if !self.parts.is_empty() && self.live.len() < 5 => {
                let path = self.dir.path().join(format!("db-{}", self.live.len()));
                let store = restore(&self.set(), RestoreAt::Newest, &path).unwrap();
                let commits = self.parts.last().unwrap().clone();
                self.live.push(Life { path, store: Some(store), commits, is_another: true });
            }
            _ => self.back_up(n),
        }
    }
}

#[test]
fn a_part_is_added_only_to_the_history_it_grew_out_of() {
    let rounds = std::env::var("SNOWMELT_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(8);
    let mut forks = 0;
    for n in 0..rounds {
        let seed = seed().wrapping_mul(1000) + n;
        eprintln!("seed {seed}");
        let mut world = World::new(seed);
        (0..50).for_each(|_| world.step());
        (0..world.parts.len()).for_each(|part| world.is_right(part));
        forks += world.forks;
    }
    assert!(forks > 0, "folders were put back");
}

/// The last transactions have the same number, and made different changes.
#[test]
fn equal_numbers_of_two_histories_are_not_the_same_state() {
    let mut world = World::new(3);
    world.live[0].store = None;
    world.clone_to(0, None);
    let (a, b) = (world.open(0), world.open(1));
    world.pages.write(&a, 7).unwrap();
    world.pages.write(&b, 8).unwrap();
    assert_eq!(a.journal_stats().newest, b.journal_stats().newest);
    assert_eq!(add(&world.set(), &a).unwrap().as_deref(), Some("0001-whole"));
    assert_eq!(add(&world.set(), &a).unwrap(), None);
    assert!(matches!(add(&world.set(), &b), Err(StoreError::Fork { .. })));
}

/// A set of four parts with the state of each. In the folder `fork` is a copy of its first three
/// parts with another fourth one, which has the same base and is a later state.
fn filled(seed: u64) -> (World, Vec<(u64, u64)>) {
    let mut world = World::new(seed);
    let mut states = Vec::new();
    let fork = world.dir.path().join("fork");
    for part in 0..4 {
        if part == 3 {
            copy(&world.set(), &fork);
        }
        let store = world.open(0);
        for _ in 0..2 {
            world.rounds += 1;
            let (rounds, chosen) = (world.rounds, world.random.below(12));
            world.pages.write_chosen(&store, rounds, |i| i == chosen).unwrap();
        }
        world.rounds += 1;
        world.pages.write(&store, world.rounds).unwrap();
        add(&world.set(), &store).unwrap().unwrap();
        states.push((store.journal_stats().newest, world.rounds));
    }
    world.rounds += 1;
    let store = world.open(0);
    world.pages.write(&store, world.rounds).unwrap();
    assert_eq!(add(&fork, &store).unwrap().as_deref(), Some("0004-changes"));
    (world, states)
}

/// A change of a file of a set.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Delete,
    Empty,
    CutBy(u64),
    FlipAt(f64),
    /// It and the other file exchange their names.
    Exchange(&'static str),
    /// It is there a second time, under this name.
    Duplicate(&'static str),
    /// A part of another set is in its place.
    Foreign,
    /// One of a copy of the set, made on the same base.
    Fork,
    Longer,
}

const FAULTS: [Fault; 16] = [
    Fault::Delete,
    Fault::Empty,
    Fault::CutBy(1),
    Fault::CutBy(9000),
    Fault::FlipAt(0.0),
    Fault::FlipAt(0.001),
    Fault::FlipAt(0.3),
    Fault::FlipAt(0.9999),
    Fault::Exchange("0002-changes"),
    Fault::Exchange("0004-changes"),
    Fault::Duplicate("0005-changes"),
    Fault::Duplicate("0007-changes"),
    Fault::Duplicate("0003-changes"),
    Fault::Foreign,
    Fault::Fork,
    Fault::Longer,
];

/// The files of a set of four parts.
const FILES: [&str; 6] =
    ["manifest", "manifest.copy", "0001-whole", "0002-changes", "0003-changes", "0004-changes"];

fn remove(path: &Path) {
    let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
}

/// Applies a fault to the file, and returns the names that an error may give; `None`: the fault
/// does not apply.
fn inflict(fault: Fault, set: &Path, other: &Path, name: &str) -> Option<Vec<String>> {
    let path = set.join(name);
    let edit = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = fs::read(&path).unwrap();
        change(&mut bytes);
        fs::write(&path, bytes).unwrap();
    };
    let is_dir = path.is_dir();
    match fault {
        Fault::Delete => remove(&path),
        Fault::Empty if !is_dir => edit(&|bytes| bytes.clear()),
        Fault::CutBy(n) if !is_dir => edit(&|bytes| bytes.truncate(bytes.len().saturating_sub(n as usize))),
        Fault::Longer if !is_dir => edit(&|bytes| bytes.extend([0; 100])),
        Fault::FlipAt(at) if !is_dir => {
            edit(&|bytes| {
                let at = (at * bytes.len() as f64) as usize;
                bytes[at] ^= 8;
            });
        }
        Fault::Exchange(to) if to != name => {
            fs::rename(&path, set.join("aside")).unwrap();
            fs::rename(set.join(to), &path).unwrap();
            fs::rename(set.join("aside"), set.join(to)).unwrap();
            return Some(vec![name.into(), to.into()]);
        }
        Fault::Duplicate(to) if !is_dir && to != name && !name.starts_with("manifest") => {
            fs::copy(&path, set.join(to)).unwrap();
            return Some(vec![to.into()]);
        }
        Fault::Fork if name == "0004-changes" => {
            fs::copy(set.with_file_name("fork").join(name), &path).map(drop).unwrap();
        }
        Fault::Foreign => {
            remove(&path);
            match is_dir {
                true => copy(&other.join(name), &path),
                false => drop(fs::copy(other.join(name), &path).unwrap()),
            }
            // With another set's manifest, all parts are foreign.
            if name == "manifest" {
                return Some(vec!["0001-whole".into()]);
            }
        }
        _ => return None,
    }
    Some(vec![name.into()])
}

#[test]
fn any_fault_of_any_file_of_a_set_is_named() {
    let (mut world, states) = filled(1);
    let (other, _) = filled(2);
    let (set, to) = (world.set(), world.dir.path().join("restored"));
    let sound = world.dir.path().join("sound");
    copy(&set, &sound);
    let store = world.open(0);
    world.pages.write(&store, 99).unwrap();
    let mut restored = BTreeMap::new();
    for name in FILES {
        for fault in FAULTS {
            copy(&sound, &set);
            let what = format!("{name} {fault:?}");
            // There is another manifest.
            let is_twice = name.starts_with("manifest");
            let Some(named) = inflict(fault, &set, &other.set(), name) else { continue };
            let is_named = |e: StoreError| {
                let told = e.to_string();
                assert!(named.iter().any(|name| told.contains(name)), "{what}: {told}");
            };
            match restore(&set, RestoreAt::Newest, &to) {
                Err(e) => is_named(e),
                // A page that a newer part has, too.
                Ok(db) => {
                    assert!(is_twice || matches!(fault, Fault::FlipAt(_)), "{what}: not seen");
                    assert_eq!(world.pages.round(&db).unwrap(), states[3].1, "{what}");
                    *restored.entry(name).or_insert(0) += 1;
                }
            }
            // Whatever comes of an earlier state, it is that state.
            for (txn, round) in &states {
                if let Ok(db) = restore(&set, RestoreAt::Txn(*txn), &to) {
                    assert_eq!(world.pages.round(&db).unwrap(), *round, "{what}");
                }
            }
            match add(&set, &store) {
                Err(e) => is_named(e),
                Ok(_) if is_twice => {
                    let [one, two] =
                        ["manifest", "manifest.copy"].map(|name| fs::read(set.join(name)).unwrap());
                    assert!(one == two, "{what}: both are whole again");
                }
                Ok(_) => assert!(matches!(fault, Fault::FlipAt(at) if at > 0.1), "{what}: added to"),
            }
        }
    }
    assert!(!restored.contains_key("0004-changes"), "the newest part is needed whole");
    // Nothing speaks for a set whose manifests are both damaged.
    for fault in [Fault::Delete, Fault::Empty, Fault::CutBy(1), Fault::FlipAt(0.3), Fault::Longer] {
        copy(&sound, &set);
        for name in ["manifest", "manifest.copy"] {
            inflict(fault, &set, &other.set(), name).unwrap();
        }
        let told = restore(&set, RestoreAt::Newest, &to).unwrap_err().to_string();
        assert!(told.contains("manifest"), "{fault:?}: {told}");
        assert!(add(&set, &store).unwrap_err().to_string().contains("manifest"));
    }
    // Where only a newer part is damaged the older states are there.
    copy(&sound, &set);
    inflict(Fault::Empty, &set, &other.set(), "0004-changes").unwrap();
    assert_eq!(
        world.pages.round(&restore(&set, RestoreAt::Txn(states[2].0), &to).unwrap()).unwrap(),
        states[2].1
    );
    // All is well again when the files are.
    copy(&sound, &set);
    assert_eq!(add(&set, &store).unwrap().as_deref(), Some("0005-changes"));
    assert_eq!(world.pages.round(&restore(&set, RestoreAt::Newest, &to).unwrap()).unwrap(), 99);
}

/// Any files below a folder, sorted.
fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(files_below(&entry.path())),
            false => found.push(entry.path()),
        }
    }
    found.sort();
    found
}

/// One to three changes of random files at random places: whatever a set gives afterwards is the
/// state that was asked for, and a part is added only to what gives it.
#[test]
fn random_faults_of_a_set_give_the_state_or_an_error() {
    let rounds = std::env::var("SNOWMELT_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(60);
    let (mut world, states) = filled(8);
    let (other, _) = filled(9);
    let (set, to) = (world.set(), world.dir.path().join("restored"));
    let sound = world.dir.path().join("sound");
    copy(&set, &sound);
    let store = world.open(0);
    world.pages.write(&store, 99).unwrap();
    let (first, mut right, mut refused, mut added) = (seed(), 0, 0, 0);
    for n in 0..rounds {
        let seed = first.wrapping_mul(1_000_000) + n;
        let mut random = Random::new(seed);
        copy(&sound, &set);
        let mut what = Vec::new();
        for _ in 0..1 + random.below(3) {
            let files = files_below(&set);
            let file = &files[random.below(files.len())];
            let mut bytes = fs::read(file).unwrap();
            let at = random.below(bytes.len().max(1));
            let name = file.strip_prefix(&set).unwrap().to_owned();
            what.push((name.clone(), random.below(8), at));
            match what.last().unwrap().1 {
                0 => fs::remove_file(file).unwrap(),
                1 => fs::write(file, &bytes[..at]).unwrap(),
                2 => fs::copy(&files[random.below(files.len())], file).map(drop).unwrap(),
                3 if other.set().join(&name).exists() => {
                    fs::copy(other.set().join(&name), file).map(drop).unwrap();
                }
                3 => fs::copy(set.with_file_name("fork").join("0004-changes"), file).map(drop).unwrap(),
                4 => fs::rename(file, set.join(FILES[random.below(6)])).unwrap_or_default(),
                5 if !bytes.is_empty() => {
                    let end = (at + 512).min(bytes.len());
                    bytes[at..end].fill(0);
                    fs::write(file, bytes).unwrap();
                }
                _ if !bytes.is_empty() => {
                    bytes[at] ^= 1 << random.below(8);
                    fs::write(file, bytes).unwrap();
                }
                _ => {}
            }
        }
        let (txn, round) = states[random.below(4)];
        match restore(&set, RestoreAt::Txn(txn), &to) {
            Ok(db) => {
                assert_eq!(world.pages.round(&db).unwrap(), round, "seed {seed}: {what:?}");
                right += 1;
            }
            Err(_) => refused += 1,
        }
        if add(&set, &store).is_ok() {
            added += 1;
            if let Ok(db) = restore(&set, RestoreAt::Newest, &to) {
                assert_eq!(world.pages.round(&db).unwrap(), 99, "seed {seed}: {what:?}");
            }
        }
    }
    println!("{rounds} sets: {right} gave the state, {refused} an error, {added} were added to");
    assert!(right > 0 && refused > 0, "{right} right, {refused} refused");
}

/// Wherever a backup is cut, the set has the state before or the new one, and the next backup
/// cleans up.
#[test]
fn a_backup_that_is_cut_leaves_the_set_before_or_after() {
    let (mut world, states) = filled(4);
    let (set, to) = (world.set(), world.dir.path().join("restored"));
    let (before, after) = (world.dir.path().join("before"), world.dir.path().join("after"));
    copy(&set, &before);
    let store = world.open(0);
    world.pages.write(&store, 99).unwrap();
    add(&set, &store).unwrap().unwrap();
    copy(&set, &after);
    let part = fs::read(after.join("0005-changes")).unwrap();
    let manifest = fs::read(after.join("manifest")).unwrap();
    let cut = |bytes: &[u8], n: usize| bytes[..bytes.len() * n / 4].to_vec();
    // A part partly written, whole; a manifest partly written, whole; the part without its name.
    for stage in 0..10 {
        copy(&before, &set);
        let has_it = stage == 9;
        fs::write(set.join("0005-changes.new"), cut(&part, stage.min(4))).unwrap();
        if has_it {
            fs::remove_file(set.join("manifest.copy")).unwrap();
        }
        if (5..9).contains(&stage) {
            fs::write(set.join("manifest.new"), cut(&manifest, stage - 4)).unwrap();
        }
        if has_it {
            fs::write(set.join("manifest"), &manifest).unwrap();
        }
        fs::create_dir(set.join("0009-whole.new")).unwrap();
        let round = if has_it { 99 } else { states[3].1 };
        assert_eq!(world.pages.round(&restore(&set, RestoreAt::Newest, &to).unwrap()).unwrap(), round);
        assert_eq!(add(&set, &store).unwrap().is_some(), !has_it, "stage {stage}");
        let names: Vec<String> =
            fs::read_dir(&set).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        assert!(names.iter().all(|name| !name.ends_with(".new")), "stage {stage}: {names:?}");
        let [one, two] = ["manifest", "manifest.copy"].map(|name| fs::read(set.join(name)).unwrap());
        assert!(one == two, "stage {stage}: both manifests");
        assert_eq!(world.pages.round(&restore(&set, RestoreAt::Newest, &to).unwrap()).unwrap(), 99);
    }
    // One that is stopped leaves nothing.
    world.pages.write(&store, 100).unwrap();
    let stopped = BackupSet::read(&set).unwrap().add(&store, |_| ControlFlow::Break(()));
    assert!(matches!(stopped, Err(StoreError::Stopped)));
    assert_eq!(BackupSet::read(&set).unwrap().parts().len(), 5);
    assert!(add(&set, &store).unwrap().is_some());
}

/// Another backup of the same set is under way.
#[test]
fn one_backup_at_a_time_is_added() {
    let (mut world, _) = filled(5);
    let (set, store) = (world.set(), world.open(0));
    world.pages.write(&store, 99).unwrap();
    let mut refused = None;
    let done = BackupSet::read(&set).unwrap().add(&store, |_| {
        refused.get_or_insert_with(|| add(&set, &store).unwrap_err().to_string());
        ControlFlow::Continue(())
    });
    assert!(done.unwrap().is_some());
    assert!(refused.unwrap().contains("another backup is being added"));
}

/// Gives the parts the form in which a release without manifests wrote them: heads of form 1, one
/// of them in a file beside the whole copy.
fn as_before_manifests(set: &Path, whole_txn: u64) {
    let seal = |head: &mut [u8]| {
        let checksum = twox_hash::XxHash3_64::oneshot(&head[8..]);
        head[..8].copy_from_slice(&checksum.to_le_bytes());
        checksum
    };
    fs::remove_file(set.join("manifest")).unwrap();
    fs::remove_file(set.join("manifest.copy")).unwrap();
    let (mut base, mut whole) = (0u64, true);
    for name in ["0002-changes", "0002-changes", "0003-changes", "0004-changes"] {
        let path = set.join(name);
        let mut bytes = fs::read(&path).unwrap();
        let head = &mut bytes[..8192];
        head[16..20].copy_from_slice(&1u32.to_le_bytes());
        head[80..].fill(0);
        head[32..40].copy_from_slice(&base.to_le_bytes());
        if whole {
            head[40..48].copy_from_slice(&whole_txn.to_le_bytes());
            head[56..80].fill(0);
        }
        base = seal(head);
        match std::mem::take(&mut whole) {
            true => fs::write(set.join("0001-whole.head"), head).unwrap(),
            false => fs::write(&path, bytes).unwrap(),
        }
    }
}

#[test]
fn a_set_of_an_earlier_release_is_restored_and_not_added_to() {
    let (mut world, states) = filled(6);
    let (set, to) = (world.set(), world.dir.path().join("restored"));
    as_before_manifests(&set, states[0].0);
    let read = BackupSet::read(&set).unwrap();
    assert!(!read.has_manifest() && read.parts().len() == 4);
    // The heads give the order, not the names.
    fs::rename(set.join("0002-changes"), set.join("0009-changes")).unwrap();
    for (txn, round) in &states {
        let store = restore(&set, RestoreAt::Txn(*txn), &to).unwrap();
        assert_eq!(world.pages.round(&store).unwrap(), *round);
    }
    let store = world.open(0);
    world.pages.write(&store, 99).unwrap();
    let refused = add(&set, &store).unwrap_err().to_string();
    assert!(refused.contains("new set in an empty directory"), "{refused}");
    fs::copy(set.join("0003-changes"), set.join("0005-changes")).unwrap();
    let twice = BackupSet::read(&set).unwrap_err().to_string();
    assert!(twice.contains("-changes") && twice.contains("twice"), "{twice}");
    fs::remove_file(set.join("0005-changes")).unwrap();
    fs::remove_file(set.join("0003-changes")).unwrap();
    let missing = BackupSet::read(&set).unwrap_err().to_string();
    assert!(missing.contains("0004-changes") && missing.contains("not in the set"), "{missing}");
}

/// A clock that was set back between two backups is told.
#[test]
fn times_that_go_back_are_told() {
    let (world, _) = filled(7);
    let set = world.set();
    let text = fs::read_to_string(set.join("manifest")).unwrap();
    let body = text.rsplit_once("end ").unwrap().0;
    let mut lines: Vec<Vec<String>> =
        body.lines().map(|line| line.split(' ').map(str::to_owned).collect()).collect();
    for (line, unix_s) in lines[3..].iter_mut().zip([1000, 2000, 1500, 1800]) {
        line[8] = unix_s.to_string();
    }
    let body: String = lines.iter().map(|line| line.join(" ") + "\n").collect();
    let checksum = twox_hash::XxHash3_64::oneshot(body.as_bytes());
    fs::write(set.join("manifest"), format!("{body}end {checksum:016x}\n")).unwrap();
    let read = BackupSet::read(&set).unwrap();
    let back: Vec<&str> = read.back_in_time().iter().map(|part| part.name.as_str()).collect();
    assert_eq!(back, ["0003-changes", "0004-changes"]);
}
