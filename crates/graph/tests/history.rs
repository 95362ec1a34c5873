//! Snapshot isolation, checked on histories of concurrent readers and writers.
//!
//! Registers are quads `<register> <value> N`, each written together with a twin in another
//! graph. A writer reads some registers in its transaction, writes some, and notes what it saw
//! and the time when its commit was acknowledged. A reader takes a session and reads all registers,
//! slowly, through different indexes. The checker knows the order of the commits (their numbers)
//! and requires of every history:
//!
//! 1. a session saw exactly the state after some commit: not part of one, not a mixture of two;
//! 2. that commit is not older than any that was acknowledged before the session began, and not
//!    newer than any that had begun when it ended;
//! 3. a transaction saw exactly the state before its own commit.
//!
//! The checker must also find the fault of a reader that takes a new session for each register, and
//! of one whose session is older than an acknowledged commit.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use snowmelt_database::OpenOptions;
use snowmelt_graph::{
    BlankNodes, Columns, GraphDatabase, Index, QuadBatch, Session, TermId, TermRef, from_integer,
};

const REGISTERS: usize = 12;
const WRITERS: usize = 4;
const READERS: usize = 4;
/// Commits of each writer, and the least number of reads of all readers together.
const COMMITS: u64 = 60;
const READS: usize = 200;

/// Values of all registers.
type Values = Vec<i64>;

/// A commit: its number, the values its transaction read, and those it wrote.
struct Commit {
    txn: u64,
    saw: Values,
    wrote: BTreeMap<usize, i64>,
}

/// The state that a session saw, and the commits between which it ran.
struct Read {
    /// the newest commit that was acknowledged when it began
    acknowledged: u64,
    saw: Values,
    /// the newest commit that was acknowledged, or under way, when it ended
    latest: u64,
}

/// All commits and reads, and the acknowledged commit.
#[derive(Default)]
struct History {
    commits: Mutex<Vec<Commit>>,
    reads: Mutex<Vec<Read>>,
    acknowledged: AtomicU64,
    begun: AtomicU64,
}

/// Behaviour of a reader.
#[derive(Clone, Copy, PartialEq)]
enum Reader {
    /// one session for all
    Right,
    /// a session for each register: not a snapshot
    Torn,
    /// an old session
    Stale,
}

struct Registers {
    db: Arc<GraphDatabase>,
    names: Vec<TermId>,
    value: TermId,
    graph: TermId,
    _dir: tempfile::TempDir,
}

impl Registers {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options =
            OpenOptions { memory_bytes: 64 << 20, direct: false, extent_pages: 8, ..OpenOptions::default() };
        let db = GraphDatabase::create(dir.path(), &[], &options).unwrap();
        let mut txn = db.begin().unwrap();
        let mut batch = QuadBatch::new(0);
        for register in 0..REGISTERS {
            let subject = batch.term(TermRef::Iri(&format!("urn:register:{register}")));
            let (value, graph) =
                (batch.term(TermRef::Iri("urn:value")), batch.term(TermRef::Iri("urn:graph")));
            let (zero, default) = (batch.id(number(0)), batch.id(TermId::DEFAULT_GRAPH));
            batch.push([subject, value, zero, default]);
            batch.push([subject, value, zero, graph]);
        }
        txn.insert(&batch, &mut BlankNodes::default()).unwrap();
        let id = |session: &mut Session, iri: &str| session.resolve_one(TermRef::Iri(iri)).unwrap().unwrap();
        txn.commit().unwrap();
        let mut session = db.session().unwrap();
        let names = (0..REGISTERS).map(|r| id(&mut session, &format!("urn:register:{r}"))).collect();
        let (value, graph) = (id(&mut session, "urn:value"), id(&mut session, "urn:graph"));
        Registers { db, names, value, graph, _dir: dir }
    }

    /// A register's value, or -1 if its twin does not agree.
    fn read(&self, session: &mut Session, register: usize) -> i64 {
        let mut scan = session.scan(Index::Psog, &[self.value, self.names[register]], None);
        let mut rows = Columns::new(4);
        while scan.next(session, &mut rows, 64).unwrap() {}
        let graphs = [TermId::DEFAULT_GRAPH.0, self.graph.0];
        match (&rows.cols[2][..], &rows.cols[3][..]) {
            ([a, b], of) if a == b && of == graphs => {
                // The other order must agree, too.
                let prefix = [self.value, TermId(*a), self.names[register]];
                let there = session.count(Index::Posg, &prefix, None).unwrap() == 2;
                if there { TermId(*a).integer() } else { -1 }
            }
            _ => -1,
        }
    }

    fn write(&self, history: &History, writer: usize, round: u64) {
        let mut txn = self.db.begin().unwrap();
        history.begun.fetch_max(txn.number(), Ordering::SeqCst);
        let mut session = txn.session();
        let saw: Values = (0..REGISTERS).map(|register| self.read(&mut session, register)).collect();
        drop(session);
        let first = (writer * 5 + round as usize * 7) % REGISTERS;
        let registers = [first, (first + 1 + round as usize % 5) % REGISTERS];
        let new = (round as i64 + 1) * 100 + writer as i64;
        let mut delete = Vec::new();
        let mut batch = QuadBatch::new(0);
        for register in registers {
            for graph in [TermId::DEFAULT_GRAPH, self.graph] {
                delete.push([self.names[register], self.value, number(saw[register]), graph]);
                batch.push([self.names[register], self.value, number(new), graph].map(|id| batch.id(id)));
            }
        }
        txn.change(&delete, &batch, &mut BlankNodes::default()).unwrap();
        let txn = txn.commit().unwrap().txn;
        history.acknowledged.fetch_max(txn, Ordering::SeqCst);
        let wrote = registers.into_iter().map(|register| (register, new)).collect();
        history.commits.lock().unwrap().push(Commit { txn, saw, wrote });
    }

    fn read_all(&self, history: &History, how: Reader, old: &mut Session) {
        let mut session = match how {
            Reader::Stale => std::mem::replace(old, self.db.session().unwrap()),
            _ => old.sibling(),
        };
        let acknowledged = history.acknowledged.load(Ordering::SeqCst);
        if how != Reader::Stale {
            session = self.db.session().unwrap();
        }
        let mut saw = Values::new();
        for register in 0..REGISTERS {
            if how == Reader::Torn {
                session = self.db.session().unwrap();
            }
            saw.push(self.read(&mut session, register));
            thread::yield_now();
        }
        let latest = history.begun.load(Ordering::SeqCst);
        history.reads.lock().unwrap().push(Read { acknowledged, saw, latest });
    }
}

/// An integer's id.
fn number(value: i64) -> TermId {
    from_integer(value).expect("small numbers are inline")
}

trait Integer {
    fn integer(self) -> i64;
}

impl Integer for TermId {
    fn integer(self) -> i64 {
        let mut lexical = snowmelt_graph::Lexical::new();
        lexical.write(self).and_then(|text| text.parse().ok()).unwrap_or(-1)
    }
}

/// Runs writers and readers, and returns their history.
fn history(how: Reader) -> History {
    let registers = Registers::new();
    let history = History::default();
    let first = registers.db.state().unwrap().txn();
    history.acknowledged.store(first, Ordering::SeqCst);
    history.begun.store(first, Ordering::SeqCst);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let (registers, history, over) = (&registers, &history, &over);
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let enough =
                    move |round: u64| round >= COMMITS && history.reads.lock().unwrap().len() >= READS;
                let rounds = (0u64..).take_while(move |round| !enough(*round));
                scope.spawn(move || rounds.for_each(|round| registers.write(history, writer, round)))
            })
            .collect();
        for _ in 0..READERS {
            scope.spawn(move || {
                let mut old = registers.db.session().unwrap();
                while !over.load(Ordering::Relaxed) {
                    registers.read_all(history, how, &mut old);
                }
            });
        }
        let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        over.store(true, Ordering::Relaxed);
        ended.into_iter().for_each(|writer| writer.unwrap());
    });
    let report = registers.db.check(&mut |_| {}).unwrap();
    assert!(report.is_sound(), "{:?}", report.problems);
    history
}

/// The fault of a history, if it has one.
fn judge(history: &History) -> Result<(), String> {
    let mut commits = history.commits.lock().unwrap();
    commits.sort_by_key(|commit| commit.txn);
    let mut state = vec![0; REGISTERS];
    let first = commits.first().map_or(0, |commit| commit.txn - 1);
    let mut states: BTreeMap<u64, Values> = BTreeMap::from([(first, state.clone())]);
    for commit in commits.iter() {
        if commit.saw != state {
            return Err(format!("transaction {} saw {:?} instead of {state:?}", commit.txn, commit.saw));
        }
        commit.wrote.iter().for_each(|(register, value)| state[*register] = *value);
        if states.insert(commit.txn, state.clone()).is_some() {
            return Err(format!("two commits have the number {}", commit.txn));
        }
    }
    for Read { acknowledged, saw, latest } in history.reads.lock().unwrap().iter() {
        // The newest commit up to `acknowledged` is the oldest state that a session may see.
        let oldest = states.range(..=*acknowledged).next_back().map_or(first, |(txn, _)| *txn);
        if !states.range(oldest..=(*latest).max(oldest)).any(|(_, state)| state == saw) {
            return Err(format!(
                "a session begun after commit {acknowledged} saw {saw:?}, no state up to {latest}"
            ));
        }
    }
    Ok(())
}

#[test]
fn readers_and_writers_see_snapshots() {
    let history = history(Reader::Right);
    assert!(history.commits.lock().unwrap().len() as u64 >= WRITERS as u64 * COMMITS);
    assert!(history.reads.lock().unwrap().len() >= READS);
    judge(&history).unwrap();
}

#[test]
fn a_torn_reader_is_found_out() {
    let found = (0..20).any(|_| judge(&history(Reader::Torn)).is_err());
    assert!(found, "reads from many sessions look like one snapshot");
}

#[test]
fn a_stale_reader_is_found_out() {
    let found = (0..20).any(|_| judge(&history(Reader::Stale)).is_err());
    assert!(found, "a session that is older than an acknowledged commit went unnoticed");
}
