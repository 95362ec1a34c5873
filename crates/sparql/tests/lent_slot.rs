//! Slots and memory of queries that wait: what is lent when, in which order it comes back.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use oxrdf::{Literal, Term};
use snowmelt_database::{MemoryBudget, OpenOptions, Reservation};
use snowmelt_graph::GraphDatabase;
use snowmelt_sparql::{
    QueryEngine, QueryError, QueryOptions, QuerySlot, RemoteAnswer, RemoteDocument, RemoteEndpoints,
    RemoteFault, RemotePart, RemoteQuestion, RemoteTotals, RemoteUse, ResultFormat,
};
use tempfile::TempDir;

/// A slot that keeps a list of what happens, and memory that another query has.
#[derive(Debug)]
struct ListedSlot {
    budget: MemoryBudget,
    events: Mutex<Vec<&'static str>>,
    /// gone once the slot is lent so many times
    elsewhere: Mutex<Option<(usize, Reservation)>>,
    /// taken while the query has none
    at_first_lend: Mutex<bool>,
}

impl ListedSlot {
    fn told(&self, event: &'static str) {
        let mut events = self.events.lock().unwrap();
        events.push(event);
        let lent = events.iter().filter(|event| event.starts_with("lent")).count();
        let mut elsewhere = self.elsewhere.lock().unwrap();
        elsewhere.take_if(|(times, _)| *times == lent);
    }

    fn take_all(&self, until_lent: usize) {
        let all = self.budget.reserve("a test", self.budget.free()).unwrap();
        *self.elsewhere.lock().unwrap() = Some((until_lent, all));
    }

    fn events(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.events.lock().unwrap())
    }
}

impl QuerySlot for ListedSlot {
    fn lend(&self) {
        self.told("lent");
    }

    fn lend_for_memory(&self) -> bool {
        self.told("lent for memory");
        true
    }

    fn take_again(&self, _: &dyn Fn() -> bool) -> bool {
        if std::mem::take(&mut *self.at_first_lend.lock().unwrap()) {
            self.take_all(2);
        }
        self.told("taken");
        true
    }
}

/// An endpoint that has a row after so many looks, and notes how much memory is used at each.
#[derive(Clone, Debug)]
struct Late {
    looks: usize,
    budget: MemoryBudget,
    used: Arc<Mutex<Vec<u64>>>,
}

impl RemoteAnswer for Late {
    fn next(&mut self, _: Duration) -> Result<RemotePart, RemoteFault> {
        let mut used = self.used.lock().unwrap();
        used.push(self.budget.used());
        Ok(match used.len() {
            looks if looks <= self.looks => RemotePart::Waiting,
            looks if looks == self.looks + 1 => {
                RemotePart::Rows(vec![vec![Some(Term::from(Literal::from(1)))]])
            }
            _ => RemotePart::End(RemoteUse::default()),
        })
    }
}

impl RemoteEndpoints for Late {
    fn select(&self, _: RemoteQuestion) -> Result<Box<dyn RemoteAnswer>, RemoteFault> {
        Ok(Box::new(self.clone()))
    }

    fn document(&self, _: &str, _: Box<dyn Fn() -> bool + Send>) -> Result<RemoteDocument, RemoteFault> {
        unreachable!("these tests load nothing")
    }

    fn narrowed(&self, _: &[String]) -> Arc<dyn RemoteEndpoints> {
        unreachable!("these tests narrow nothing")
    }

    fn totals(&self) -> Vec<RemoteTotals> {
        Vec::new()
    }
}

struct Asking {
    engine: QueryEngine,
    slot: Arc<ListedSlot>,
    _dir: TempDir,
}

impl Asking {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let open =
            OpenOptions { memory_bytes: 64 << 20, direct: false, extent_pages: 8, ..OpenOptions::default() };
        let db = GraphDatabase::create(&dir.path().join("db"), &[], &open).unwrap();
        let budget = db.database().memory().clone();
        let slot = ListedSlot {
            budget,
            events: Mutex::default(),
            elsewhere: Mutex::default(),
            at_first_lend: Mutex::default(),
        };
        Self { engine: QueryEngine::new(db), slot: Arc::new(slot), _dir: dir }
    }

    fn answer(&self, text: &str, options: QueryOptions) -> Result<String, QueryError> {
        let slot: Arc<dyn QuerySlot> = self.slot.clone();
        let options = QueryOptions { slot: Some(slot), ..options };
        let mut bytes = Vec::new();
        self.engine.query(text, &options)?.write(ResultFormat::Csv, &mut bytes)?;
        Ok(String::from_utf8(bytes).unwrap())
    }

    /// The memory used at each look of a query whose row comes after so many.
    fn asked(&self, looks: usize) -> Vec<u64> {
        let late = Late { looks, budget: self.slot.budget.clone(), used: Arc::default() };
        let options = QueryOptions { remote: Some(Arc::new(late.clone())), ..QueryOptions::default() };
        let answer = self.answer("SELECT ?x { SERVICE <http://e/> { ?x ?y ?z } }", options).unwrap();
        assert_eq!(answer, "x\r\n1\r\n");
        late.used.lock().unwrap().clone()
    }
}

#[test]
fn slot_and_memory_are_lent_after_some_looks() {
    let asking = Asking::new();
    let used = asking.asked(5);
    assert_eq!(asking.slot.events(), [""; 0], "an endpoint that answers soon is waited for with the slot");
    assert!(used.iter().all(|bytes| *bytes == used[0]), "{used:?}");
    let used = asking.asked(40);
    assert_eq!(asking.slot.events(), ["lent", "taken"]);
    let (lent, least) = (used[20], used[0]);
    assert!(lent + (128 << 10) < least, "{lent} of {least} bytes are used while it waits");
    assert_eq!((used[39], used[41]), (lent, least), "its least is its own again before it goes on");
}

/// Another has the memory when the answer comes: that is not waited for with the slot.
#[test]
fn memory_is_waited_for_without_the_slot() {
    let asking = Asking::new();
    *asking.slot.at_first_lend.lock().unwrap() = true;
    let used = asking.asked(40);
    assert_eq!(asking.slot.events(), ["lent", "taken", "lent", "taken"]);
    assert_eq!(used[41], used[0]);
}

#[test]
fn memory_to_begin_is_waited_for_without_the_slot() {
    let asking = Asking::new();
    for text in ["SELECT (1 AS ?x) {}".to_owned(), format!("SELECT (1 AS ?x) {{}} #{}", " ".repeat(5000))] {
        asking.slot.take_all(1);
        assert_eq!(asking.answer(&text, QueryOptions::default()).unwrap(), "x\r\n1\r\n");
        let events = asking.slot.events();
        assert!(events.starts_with(&["lent for memory"]) && events.ends_with(&["taken"]), "{events:?}");
        asking.answer(&text, QueryOptions::default()).unwrap();
        assert_eq!(asking.slot.events(), [""; 0], "there is memory");
    }
}
