//! Faults of devices in the files of a graph database's directory: lock, warm list and all others.
//!
//! After a fault, opening gives a state that was committed, or an error. `check` finds all damage
//! that reading finds: a database that it calls sound gives all its quads. The store's campaign
//! covers more cases (`crates/store/examples/device_faults.rs`). `SNOWMELT_ROUNDS=n` makes this one
//! longer.

#[path = "../../store/tests/support/damage.rs"]
mod damage;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use snowmelt_database::OpenOptions;
use snowmelt_graph::{BlankNodes, DumpFormat, GraphDatabase, Index, QuadBatch, TermId, TermRef};
use snowmelt_store::{Background, JournalConfig, Seams};
use support::Random;

use damage::{Damaged, FAULTS, Fault, damaged};

/// The random generator of the damage.
mod support {
    /// splitmix64
    pub struct Random(pub u64);

    impl Random {
        pub fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(snowmelt_base::random::GOLDEN);
            snowmelt_base::random::mix(self.0)
        }
        pub fn below(&mut self, n: usize) -> usize {
            (self.next() % n as u64) as usize
        }
    }
}

/// Lines of N-Quads.
type State = BTreeSet<String>;
/// The files of a directory.
type Files = BTreeMap<String, Vec<u8>>;

/// Kinds of cases known to fail; one that is listed and does not fail makes the test fail.
const UNMENDED: &[(&str, Fault)] = &[];

fn options() -> OpenOptions {
    OpenOptions {
        memory_bytes: 16 << 20,
        direct: false,
        extent_pages: 8,
        journal: JournalConfig {
            file_bytes: 256 << 10,
            checkpoint_bytes: 64 << 10,
            ..JournalConfig::default()
        },
        seams: Seams {
            // A seed must determine the run.
            background: Background::Caller,
            ..Seams::default()
        },
        ..OpenOptions::default()
    }
}

/// Databases on disk at several times, and all states they went through.
struct History {
    states: Vec<State>,
    older: Vec<Files>,
    /// closed, and killed with all commits acknowledged
    left: [Files; 2],
}

fn files(dir: &Path) -> Files {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let plain = entries.filter(|entry| entry.file_type().unwrap().is_file());
    plain.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
}

fn put(dir: &Path, files: &Files) {
    let _ = fs::remove_dir_all(dir);
    fs::create_dir(dir).unwrap();
    files.iter().for_each(|(name, bytes)| fs::write(dir.join(name), bytes).unwrap());
}

fn dump(db: &Arc<GraphDatabase>) -> Result<State, String> {
    let mut out = Vec::new();
    db.dump(DumpFormat::NQuads, &mut out).map_err(|e| e.to_string())?;
    let text = String::from_utf8(out).map_err(|e| e.to_string())?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// Inserts some quads and deletes some others.
fn change(random: &mut Random, db: &Arc<GraphDatabase>, round: usize) {
    let mut txn = db.begin().unwrap();
    let many = if random.below(4) == 0 { 1500 } else { 1 + random.below(60) };
    let texts: Vec<[String; 3]> = (0..many)
        .map(|i| {
            let text = format!("text {round} {i} {}", "of some length ".repeat(random.below(24)));
            [
                format!("http://e.org/s/{}", random.below(300)),
                format!("http://e.org/p#{}", random.below(5)),
                text,
            ]
        })
        .collect();
    let mut batch = QuadBatch::new(0);
    for [s, p, o] in &texts {
        let (s, p) = (batch.term(TermRef::Iri(s)), batch.term(TermRef::Iri(p)));
        let o = if o.len() % 3 == 0 {
            batch.term(TermRef::Iri("http://e.org/o"))
        } else {
            batch.term(TermRef::string(o))
        };
        let g = batch.id(TermId::DEFAULT_GRAPH);
        batch.push([s, p, o, g]);
    }
    txn.insert(&batch, &mut BlankNodes::default()).unwrap();
    let mut session = txn.session();
    let subject =
        session.resolve_one(TermRef::Iri(&format!("http://e.org/s/{}", random.below(300)))).unwrap();
    let predicate =
        session.resolve_one(TermRef::Iri(&format!("http://e.org/p#{}", random.below(5)))).unwrap();
    let object = session.resolve_one(TermRef::Iri("http://e.org/o")).unwrap();
    drop(session);
    if let (Some(s), Some(p), Some(o)) = (subject, predicate, object) {
        txn.delete(&[[s, p, o, TermId::DEFAULT_GRAPH]]).unwrap();
    }
    txn.commit().unwrap();
}

impl History {
    fn new(random: &mut Random) -> History {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("db");
        let db = GraphDatabase::create(&path, &[], &options()).unwrap();
        let (mut states, mut older) = (Vec::new(), Vec::new());
        for round in 0..24 {
            change(random, &db, round);
            states.push(dump(&db).unwrap());
            if round % 5 == 4 {
                db.database().store().checkpoint().unwrap();
            }
            if round % 4 == 1 {
                older.push(files(&path));
            }
        }
        let killed = files(&path);
        drop(db);
        History { states, older, left: [files(&path), killed] }
    }
}

enum Outcome {
    Right,
    Error,
    /// states only in the journal are lost from a killed database
    InWindow,
}

fn judge(dir: &Path, history: &History, killed: bool, name: &str) -> Result<Outcome, String> {
    let named = |e: String| match e.contains(dir.to_str().unwrap()) || e.contains("super-block") {
        true => Ok(Outcome::Error),
        false => Err(format!("an error without a place: {e}")),
    };
    let db = match GraphDatabase::open(dir, &options()) {
        Ok(db) => db,
        Err(e) => return named(e.to_string()),
    };
    let checked = db.check(&mut |_| {}).map_err(|e| e.to_string());
    let sound = checked.as_ref().is_ok_and(|report| report.is_sound());
    let found = match dump(&db) {
        Err(e) if sound => return Err(format!("check calls it sound, and reading says {e}")),
        Err(e) => return named(e),
        Ok(found) => found,
    };
    let Some(at) = history.states.iter().position(|state| *state == found) else {
        let told = checked.map_or_else(|e| e, |report| report.problems.join("; "));
        return Err(format!("{} quads that never were a state; check says: {told}", found.len()));
    };
    if at + 1 < history.states.len() {
        let lost = history.states.len() - at - 1;
        let excused = killed && name.starts_with("journal");
        return if excused {
            Ok(Outcome::InWindow)
        } else {
            Err(format!("{lost} commits are lost without an error"))
        };
    }
    let mut session = db.session().map_err(|e| e.to_string())?;
    for index in [Index::Psog, Index::Posg] {
        match session.count(index, &[], None) {
            Ok(n) if n == found.len() as u64 => {}
            Ok(n) => return Err(format!("{n} rows are counted in {index:?} of {}", found.len())),
            Err(e) if sound => return Err(format!("check calls it sound, and counting says {e}")),
            Err(e) => return named(e.to_string()),
        }
    }
    Ok(if sound { Outcome::Right } else { Outcome::Error })
}

#[test]
fn faults_of_a_device_are_errors_or_harmless() {
    snowmelt_io::set_notice(|_| {});
    let mut random = Random(snowmelt_io::test_seed(1));
    let rounds = std::env::var("SNOWMELT_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(200);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let (mut counts, mut broken) = ([0; 3], Vec::new());
    let mut history = History::new(&mut random);
    let mut cases = 0;
    while cases < rounds {
        if cases % 400 == 399 {
            history = History::new(&mut random);
        }
        let killed = random.below(2);
        let names: Vec<&String> = history.left[killed].keys().collect();
        let name = names[random.below(names.len())].clone();
        let fault = FAULTS[random.below(FAULTS.len())];
        let old = history.older[random.below(history.older.len())].get(&name);
        let before = &history.left[killed][&name];
        let Some(after) = damaged(&mut random, fault, before, old.map(|old| &old[..])) else { continue };
        cases += 1;
        put(&path, &history.left[killed]);
        match after {
            Damaged::Bytes(bytes) => fs::write(path.join(&name), bytes).unwrap(),
            Damaged::Gone => fs::remove_file(path.join(&name)).unwrap(),
        }
        let judged = catch_unwind(AssertUnwindSafe(|| judge(&path, &history, killed == 1, &name)));
        match judged.unwrap_or_else(|_| Err("panic".into())) {
            Ok(outcome) => counts[outcome as usize] += 1,
            Err(why) => broken.push((name, fault, ["closed", "killed"][killed], why)),
        }
    }
    println!(
        "{cases} cases: {} right, {} errors, {} in the window, {} broken",
        counts[0],
        counts[1],
        counts[2],
        broken.len()
    );
    let is_of = |file: &str, fault: Fault, of: &(&str, Fault)| file.starts_with(of.0) && fault == of.1;
    let stray: Vec<_> = UNMENDED
        .iter()
        .filter(|of| !broken.iter().any(|(file, fault, ..)| is_of(file, *fault, of)))
        .collect();
    assert!(stray.is_empty(), "these hold, and are to be taken off the list: {stray:?}");
    broken.retain(|(file, fault, ..)| !UNMENDED.iter().any(|of| is_of(file, *fault, of)));
    assert!(broken.is_empty(), "{broken:#?}");
    assert!(counts[0] > 20 && counts[1] > 20, "the campaign does something");
}
