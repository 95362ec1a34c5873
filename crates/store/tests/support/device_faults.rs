//! The device-fault campaign: whatever a device does to a file that was written, the database
//! gives a right answer or an error that names the place.
//!
//! 1. A history of one seed: transactions, loads, checkpoints on a disk in memory; all states
//!    are kept, and copies of the disk on the way.
//! 2. Two ends: closed, and crashed (killed, or the power cut) with everything acknowledged.
//! 3. A case: one file of an end is damaged in one way; the database is opened, checked, read
//!    whole and compared with the states.
//! 4. A case that is right goes on: a transaction more, closed, opened, compared again.
//!
//! The one loss that is allowed: in a crashed database whose journal is damaged, commits after
//! the last position that another file names. The super-block is that other file; a commit
//! counts as named when it was acknowledged before an operation in which the super-block
//! changed.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use snowmelt_io::PowerDisk;
use snowmelt_store::{JournalConfig, Store, StoreConfig, StoreError};

use crate::support::{Random, tiny};
use damage::{Damaged, damaged};
use model::{Model, NUMBER};

pub use damage::{FAULTS, Fault};

#[path = "cuts_change.rs"]
mod change;
#[path = "damage.rs"]
mod damage;
#[allow(dead_code, reason = "shared with the power-cut simulator")]
#[path = "cuts_model.rs"]
mod model;

/// How the database was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    Closed,
    Crashed,
}

/// Result of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// the last state, whole
    Right,
    /// an error at open that names the place
    NotOpened,
    /// an error while reading that names the place
    NotRead,
    /// commits are gone that no other file names: the documented window
    InWindow,
}

/// A case that broke a promise.
#[derive(Clone)]
pub struct Broken {
    pub seed: u64,
    pub end: End,
    pub file: String,
    pub fault: Fault,
    pub why: String,
}

impl Broken {
    /// The kind of the damaged file.
    pub fn kind(&self) -> &str {
        kind_of(&self.file)
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Broken { seed, end, file, fault, why } = self;
        write!(f, "seed {seed}, {end:?}, {file}, {fault:?}: {why}")
    }
}

/// Cases by kind of file, fault, end and outcome, and those that broke a promise.
#[derive(Default)]
pub struct Tally {
    pub outcomes: BTreeMap<(String, Fault, End, Outcome), u64>,
    pub broken: Vec<Broken>,
    pub cases: u64,
}

impl Tally {
    pub fn add(&mut self, other: Tally) {
        self.cases += other.cases;
        for (key, n) in other.outcomes {
            *self.outcomes.entry(key).or_default() += n;
        }
        self.broken.extend(other.broken);
    }

    /// Cases of an outcome.
    pub fn count(&self, outcome: Outcome) -> u64 {
        self.outcomes.iter().filter(|((_, _, _, o), _)| *o == outcome).map(|(_, n)| n).sum()
    }

    /// One line for each kind of file and fault.
    pub fn table(&self) -> String {
        let mut lines: BTreeMap<(&str, Fault), [u64; 4]> = BTreeMap::new();
        for ((file, fault, _, outcome), n) in &self.outcomes {
            lines.entry((file, *fault)).or_default()[*outcome as usize] += n;
        }
        let mut text = format!(
            "{:12} {:12} {:>8} {:>10} {:>8} {:>10} {:>8}\n",
            "file", "fault", "right", "not opened", "not read", "in window", "broken"
        );
        for ((file, fault), [right, not_opened, not_read, in_window]) in lines {
            let broken = self.broken.iter().filter(|b| b.kind() == file && b.fault == fault).count();
            let fault = format!("{fault:?}");
            text += &format!(
                "{file:12} {fault:12} {right:8} {not_opened:10} {not_read:8} {in_window:10} {broken:8}\n"
            );
        }
        text
    }
}

/// `journal` for all journal files, `stripe` for all stripes.
fn kind_of(name: &str) -> &str {
    match name {
        "a" | "b" => "stripe",
        _ => name.split('-').next().unwrap_or(name),
    }
}

/// A disk as it was left, and what must be on it.
struct Left {
    end: End,
    disk: PowerDisk,
    /// the last commit that was acknowledged
    last: u64,
    /// the last one of which another file than the journal knows
    named: u64,
}

/// Everything a seed did.
struct History {
    /// the state after each commit, by number
    states: BTreeMap<u64, Model>,
    older: Vec<PowerDisk>,
    left: Vec<Left>,
}

fn config(disk: &PowerDisk) -> StoreConfig {
    let tiny = tiny(disk);
    let journal = JournalConfig { private_pages: Some(24), version_pages: Some(40), ..tiny.journal };
    StoreConfig { journal, ..tiny }
}

/// Runs `cases` cases of one seed; the lock file lies in `dir`.
pub fn run(dir: &Path, seed: u64, cases: u64) -> Tally {
    // The generator takes only every other number for a seed of its own.
    let mut random = Random::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let history = History::new(dir, &mut random, seed);
    let mut tally = Tally::default();
    while tally.cases < cases {
        let left = &history.left[random.below(history.left.len())];
        let fault = FAULTS[random.below(FAULTS.len())];
        let disk = left.disk.copy(random.next());
        let Some(file) = damage(&mut random, fault, &disk, &history.older) else { continue };
        tally.cases += 1;
        let name = file.file_name().expect("it is a file").to_string_lossy().into_owned();
        let judged = catch_unwind(AssertUnwindSafe(|| judge(dir, &mut random, &disk, &history, left, &name)));
        let judged = judged.unwrap_or_else(|panic| Err(format!("panic: {}", text_of(&*panic))));
        match judged {
            Ok(outcome) => {
                let key = (kind_of(&name).to_owned(), fault, left.end, outcome);
                *tally.outcomes.entry(key).or_default() += 1;
            }
            Err(why) => {
                let key = (kind_of(&name).to_owned(), fault, left.end, Outcome::Right);
                tally.outcomes.entry(key).or_default();
                tally.broken.push(Broken { seed, end: left.end, file: name, fault, why });
            }
        }
    }
    tally
}

fn text_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no text").to_owned()
}

impl History {
    fn new(dir: &Path, random: &mut Random, seed: u64) -> History {
        let disk = PowerDisk::new(seed);
        let stripes = [dir.join("a"), dir.join("b")];
        let store = Store::create(dir, &stripes, config(&disk)).expect("a new database");
        disk.sync_names();
        let mut history =
            History { states: [(0, Model::default())].into(), older: Vec::new(), left: Vec::new() };
        let (mut last, mut named) = (0, 0);
        for _ in 0..20 + random.below(60) {
            let before = (superblock(dir, &disk), last);
            history.operate(random, &store, &mut last).expect("nothing is wrong with the disk yet");
            if superblock(dir, &disk) != before.0 {
                named = before.1;
            }
            if random.below(5) == 0 {
                history.older.push(disk.copy(0));
            }
        }
        let crashed = disk.copy(random.next());
        if random.below(2) == 0 {
            crashed.power_on();
        }
        drop(store);
        history.left.push(Left { end: End::Crashed, disk: crashed, last, named });
        history.left.push(Left { end: End::Closed, disk, last, named: last });
        history
    }

    fn operate(&mut self, random: &mut Random, store: &Arc<Store>, last: &mut u64) -> Result<(), StoreError> {
        let mut next = self.states[&*last].clone();
        let number = *last + 1;
        match random.below(16) {
            0 | 1 => drop(store.checkpoint()?),
            2 => drop((0..random.below(8)).map(|_| store.step()).max()),
            3 => {
                let build = store.begin_build()?;
                let Some(build) = change::load(random, build, store, &mut next, number)? else {
                    return Ok(());
                };
                build.commit()?;
                *last = number;
                self.states.insert(number, next);
            }
            size => {
                let mut txn = store.begin()?;
                let changes = if size == 4 { 20 + random.below(100) } else { 1 + random.below(6) };
                for _ in 0..changes {
                    change::change(random, &mut txn, &mut next)?;
                }
                txn.put_record(NUMBER, 1, &change::number(&mut next, number));
                txn.commit()?;
                *last = number;
                self.states.insert(number, next);
            }
        }
        Ok(())
    }
}

fn superblock(dir: &Path, disk: &PowerDisk) -> Option<Vec<u8>> {
    disk.bytes(&dir.join(snowmelt_store::superblock::FILE_NAME))
}

/// Damages one file, chosen by kind first, so that each kind has its share. `None` when the
/// fault cannot befall it or would change nothing.
fn damage(random: &mut Random, fault: Fault, disk: &PowerDisk, older: &[PowerDisk]) -> Option<PathBuf> {
    let paths = disk.paths();
    let name = |p: &Path| p.file_name().expect("it is a file").to_string_lossy().into_owned();
    let mut kinds: Vec<String> = paths.iter().map(|p| kind_of(&name(p)).to_owned()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let kind = &kinds[random.below(kinds.len())];
    let of_kind: Vec<&PathBuf> = paths.iter().filter(|p| kind_of(&name(p)) == kind).collect();
    let path = of_kind[random.below(of_kind.len())];
    let old = older.get(random.below(older.len().max(1))).and_then(|disk| disk.bytes(path));
    match damaged(random, fault, &disk.bytes(path)?, old.as_deref())? {
        Damaged::Bytes(bytes) => disk.set_bytes(path, bytes),
        Damaged::Gone => disk.remove(path),
    }
    Some(path.clone())
}

/// Opens, checks and reads a damaged database.
fn judge(
    dir: &Path,
    random: &mut Random,
    disk: &PowerDisk,
    history: &History,
    left: &Left,
    file: &str,
) -> Result<Outcome, String> {
    let store = match Store::open(dir, config(disk)) {
        Ok(store) => store,
        Err(e) => return names(&e.to_string(), file).map(|()| Outcome::NotOpened),
    };
    let mut found = Vec::new();
    store.check_pages(|e| found.push(e.to_string()), |_| {});
    found.iter().try_for_each(|e| names(e, file))?;
    let snapshot = store.snapshot();
    let number = snapshot.record(NUMBER).map_or(Ok(0), |b| (*b).try_into().map(u64::from_le_bytes));
    let number = number.map_err(|_| "the number of the state has not eight bytes")?;
    let state = history.states.get(&number).ok_or_else(|| format!("state {number} never was"))?;
    match state.compare(&store, &snapshot) {
        Ok(()) => {}
        Err(why) if is_wrong(&why) => return Err(format!("a wrong answer in state {number}: {why}")),
        // The damage is told although a part of the state may be gone: no caller takes this for the
        // whole.
        Err(why) => return names(&why, file).map(|()| Outcome::NotRead),
    }
    if number < left.last {
        let lost = format!("commits {} to {} are lost without an error", number + 1, left.last);
        let excused = file.starts_with("journal") && left.end == End::Crashed && number >= left.named;
        return if excused {
            Ok(Outcome::InWindow)
        } else {
            Err(format!("{lost}; {} are named", left.named))
        };
    }
    drop(snapshot);
    goes_on(dir, random, disk, store, state.clone(), number, file)
}

/// One more transaction; then the database is closed, opened and compared again.
fn goes_on(
    dir: &Path,
    random: &mut Random,
    disk: &PowerDisk,
    store: Arc<Store>,
    mut state: Model,
    number: u64,
    file: &str,
) -> Result<Outcome, String> {
    let mut write = || -> Result<(), StoreError> {
        let mut txn = store.begin()?;
        for _ in 0..3 {
            change::change(random, &mut txn, &mut state)?;
        }
        txn.put_record(NUMBER, 1, &change::number(&mut state, number + 1));
        txn.commit()?;
        store.checkpoint().map(drop)
    };
    if let Err(e) = write() {
        return names(&e.to_string(), file).map(|()| Outcome::NotRead);
    }
    drop(store);
    let store = match Store::open(dir, config(disk)) {
        Ok(store) => store,
        Err(e) => return names(&e.to_string(), file).map(|()| Outcome::NotOpened),
    };
    match state.compare(&store, &store.snapshot()) {
        Ok(()) => Ok(Outcome::Right),
        Err(why) if is_wrong(&why) => Err(format!("a wrong answer after one more commit: {why}")),
        Err(why) => names(&why, file).map(|()| Outcome::NotRead),
    }
}

/// Whether the comparison found another content, not an error.
fn is_wrong(why: &str) -> bool {
    why.ends_with("has another content") || why.contains("are others") || why.contains("has other records")
}

/// An error names a file of the database: the damaged one, or one whose part in it is missed.
fn names(error: &str, file: &str) -> Result<(), String> {
    let places = ["superblock", "super-block", "journal-", "/a:", "/b:", "/a ", "/b "];
    if error.contains(file) || places.iter().any(|place| error.contains(place)) {
        Ok(())
    } else {
        Err(format!("an error without a place: {error}"))
    }
}
