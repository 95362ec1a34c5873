//! How much at once a patient store asks, in virtual time.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use snowmelt_io::*;

use crate::calls::Calls;
use crate::patient::Layers;

const MS: u64 = 1_000_000;
const S: u64 = 1000 * MS;

/// Notes the requests that reach a store, and the most that were outstanding at once.
struct Noted {
    inner: Arc<dyn Objects>,
    keys: Mutex<Vec<Arc<str>>>,
    now: Arc<AtomicU32>,
    most: AtomicU32,
}

/// A request, outstanding until it is answered or given up.
struct Counted(Arc<AtomicU32>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Noted {
    fn new(inner: Arc<dyn Objects>) -> Noted {
        Noted { inner, keys: Mutex::default(), now: Arc::default(), most: AtomicU32::new(0) }
    }
}

impl Objects for Noted {
    fn name(&self) -> &Arc<str> {
        self.inner.name()
    }

    fn begin(&self, ask: Ask, done: Done) -> Ongoing {
        self.keys.lock().unwrap().push(ask.key().clone());
        let now = self.now.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(now, Ordering::Relaxed);
        let outstanding = Counted(self.now.clone());
        let heard = move |answer| {
            drop(outstanding);
            done(answer);
        };
        self.inner.begin(ask, Box::new(heard))
    }
}

/// Begins `n` gets of the objects `0`, `1`, …, and returns their handles and the count of answers.
fn begin_gets(store: &dyn Objects, n: usize) -> (Vec<Ongoing>, Arc<AtomicU32>) {
    let answers = Arc::new(AtomicU32::new(0));
    let begin = |i: usize| {
        let answers = answers.clone();
        let done = move |_| {
            answers.fetch_add(1, Ordering::Relaxed);
        };
        store.begin(Ask::Get { key: i.to_string().into(), range: None }, Box::new(done))
    };
    ((0..n).map(begin).collect(), answers)
}

#[test]
fn requests_go_in_order_and_no_more_than_the_width_at_once() {
    let clock = Clock::virtual_time(1);
    let _here = clock.enter();
    let memory = Arc::new(MemoryObjects::new("memory"));
    let timed = Arc::new(TimedObjects::new(memory, ObjectTimes::default(), &clock, test_seed(71)));
    let noted = Arc::new(Noted::new(timed));
    let patience = Patience { width: 7, ..Patience::default() };
    let patient = PatientObjects::new(noted.clone(), &clock, patience).unwrap();
    let (handles, answers) = begin_gets(&patient, 500);
    let counters = patient.counters();
    assert_eq!((counters.outstanding, counters.waiting, counters.width), (7, 493, 7));
    clock.sleep_ns(30 * S);
    assert_eq!(answers.load(Ordering::Relaxed), 500);
    assert_eq!(noted.most.load(Ordering::Relaxed), 7);
    let in_order: Vec<Arc<str>> = (0..500).map(|i| i.to_string().into()).collect();
    assert_eq!(*noted.keys.lock().unwrap(), in_order);
    drop(handles);
}

#[test]
fn hedges_count_as_outstanding() {
    for (width, most) in [(1, 1), (2, 2)] {
        let clock = Clock::virtual_time(1);
        let _here = clock.enter();
        let memory = Arc::new(MemoryObjects::new("memory"));
        let timed = Arc::new(TimedObjects::new(memory, ObjectTimes::default(), &clock, test_seed(72)));
        let noted = Arc::new(Noted::new(timed));
        let patience = Patience { width, hedged: 1.0, ..Patience::default() };
        let patient = PatientObjects::new(noted.clone(), &clock, patience).unwrap();
        // Missing objects are no slow answers; so there is one.
        Calls(&patient, &clock).put("0", b"0", PutIf::Always).unwrap();
        for _ in 0..200 {
            assert_eq!(Calls(&patient, &clock).get("0", None).unwrap().bytes, b"0");
        }
        assert_eq!(noted.most.load(Ordering::Relaxed), most);
        assert_eq!(patient.counters().hedges > 0, width > 1);
    }
}

#[test]
fn the_width_halves_and_recovers() {
    let clock = Clock::virtual_time(1);
    let _here = clock.enter();
    let memory = Arc::new(MemoryObjects::new("memory"));
    let rates = ObjectFaultRates { too_often: 1_000_000, ..ObjectFaultRates::default() };
    let faulty = Arc::new(FaultyObjects::new(memory, rates, 1));
    let same = Duration::from_millis(10);
    let times = ObjectTimes { p50: same, p99: same, ..ObjectTimes::default() };
    let timed = Arc::new(TimedObjects::new(faulty.clone(), times, &clock, 1));
    let noted = Arc::new(Noted::new(timed));
    let patient = PatientObjects::new(noted.clone(), &clock, Patience::default()).unwrap();
    let (handles, answers) = begin_gets(&patient, 300);
    // All of the first 64 are refused: that halves the width once.
    clock.sleep_ns(11 * MS);
    let counters = patient.counters();
    assert_eq!((counters.width, counters.throttled), (32, 64));
    clock.sleep_ns(3 * S);
    assert_eq!(patient.counters().width, 1);
    assert_eq!(answers.load(Ordering::Relaxed), 0);
    noted.most.store(0, Ordering::Relaxed);
    faulty.set_rates(ObjectFaultRates::default());
    clock.sleep_ns(20 * MS);
    assert!(noted.most.load(Ordering::Relaxed) <= 3, "it comes back step by step");
    clock.sleep_ns(20 * S);
    let counters = patient.counters();
    assert_eq!((answers.load(Ordering::Relaxed), counters.failures), (300, 300 - 300));
    // 1 + 2 + … + 23 is less than 300 answers.
    assert!((20..=25).contains(&counters.width), "{}", counters.width);
    let (more, answers) = begin_gets(&patient, 3000);
    clock.sleep_ns(20 * S);
    assert_eq!((answers.load(Ordering::Relaxed), patient.counters().width), (3000, 64));
    drop((handles, more));
}

#[test]
fn waiting_requests_are_late_only_when_none_is_answered() {
    let clock = Clock::virtual_time(1);
    let _here = clock.enter();
    let memory = Arc::new(MemoryObjects::new("memory"));
    let second = Duration::from_secs(1);
    let times = ObjectTimes { p50: second, p99: second, ..ObjectTimes::default() };
    let timed = Arc::new(TimedObjects::new(memory, times, &clock, 1));
    let patience = Patience { width: 1, ..Patience::default() };
    let patient = PatientObjects::new(timed, &clock, patience).unwrap();
    let (handles, answers) = begin_gets(&patient, 100);
    clock.sleep_ns(101 * S);
    assert_eq!(answers.load(Ordering::Relaxed), 100);
    assert_eq!(patient.counters().failures, 0);
    drop(handles);
    let silent = ObjectFaultRates { silent: 1_000_000, ..ObjectFaultRates::default() };
    let layers = Layers::new(&clock, silent, patience);
    let (handles, answers) = begin_gets(&layers.patient, 100);
    clock.sleep_ns(29 * S);
    assert_eq!(answers.load(Ordering::Relaxed), 0);
    clock.sleep_ns(2 * S);
    // All but the few that had a turn, and have time from then on.
    assert!(answers.load(Ordering::Relaxed) >= 90, "{}", answers.load(Ordering::Relaxed));
    clock.sleep_ns(30 * S);
    assert_eq!(layers.patient.counters().failures, 100);
    drop(handles);
}

#[test]
fn thousands_that_waited_are_answered_within_one_call() {
    let clock = Clock::virtual_time(1);
    let _here = clock.enter();
    let patience = Patience { width: 1, ..Patience::default() };
    let silent = ObjectFaultRates { silent: 1_000_000, ..ObjectFaultRates::default() };
    let layers = Layers::new(&clock, silent, patience);
    let (handles, answers) = begin_gets(&layers.patient, 50_000);
    assert_eq!(layers.patient.counters().waiting, 49_999);
    layers.faulty.set_rates(ObjectFaultRates::default());
    clock.sleep_ns(11 * S); // an attempt of 10 s, and a pause
    assert_eq!(answers.load(Ordering::Relaxed), 50_000);
    drop(handles);
}
