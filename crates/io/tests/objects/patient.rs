//! Patience with a store that fails, in virtual time: right bytes or a clear error, and no put that
//! was acknowledged is lost.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use snowmelt_base::random::Random;
use snowmelt_io::*;

use crate::calls::Calls;

const MS: u64 = 1_000_000;
const S: u64 = 1000 * MS;
const ALWAYS: u32 = 1_000_000;

/// A patient store over a faulty one over one in memory.
pub struct Layers {
    pub patient: PatientObjects,
    pub faulty: Arc<FaultyObjects>,
    pub memory: Arc<MemoryObjects>,
    pub clock: Clock,
}

impl Layers {
    pub fn new(clock: &Clock, rates: ObjectFaultRates, patience: Patience) -> Layers {
        let memory = Arc::new(MemoryObjects::new("memory"));
        let faulty = Arc::new(FaultyObjects::new(memory.clone(), rates, patience.seed));
        let patient = PatientObjects::new(faulty.clone(), clock, patience).unwrap();
        Layers { patient, faulty, memory, clock: clock.clone() }
    }

    pub fn calls(&self) -> Calls<'_> {
        Calls(&self.patient, &self.clock)
    }

    /// The store itself, without faults.
    pub fn truth(&self) -> Calls<'_> {
        Calls(&*self.memory, &self.clock)
    }
}

fn none() -> ObjectFaultRates {
    ObjectFaultRates::default()
}

fn counted(store: &PatientObjects) -> ObjectCounters {
    store.counters()
}

/// One writer: the bytes that each object may have. The first are those of the last put that was
/// acknowledged; the others are of puts since whose fate is unknown.
type Possible = BTreeMap<String, Vec<Vec<u8>>>;

/// A put whose condition holds, since there is no other writer.
fn put_rightly(layers: &Layers, random: &mut Random, key: &str, n: u32, possible: &mut Possible) {
    let bytes = [n.to_le_bytes().as_slice(), &vec![7; random.below(50) as usize]].concat();
    let there = layers.truth().get(key, None).ok();
    let only = match &there {
        _ if random.below(3) == 0 => PutIf::Always,
        None => PutIf::Absent,
        Some(it) => PutIf::Is(it.version.clone()),
    };
    match layers.calls().put(key, &bytes, only.clone()) {
        Ok(version) => {
            let now = layers.truth().get(key, None).expect("an acknowledged put");
            assert_eq!((&now.bytes, &now.version), (&bytes, &version), "{key} {only:?}");
            possible.insert(key.to_owned(), vec![bytes]);
        }
        Err(kind) => {
            assert!(kind.is_passing(), "the condition {only:?} of {key} holds: {kind}");
            possible.entry(key.to_owned()).or_default().push(bytes);
        }
    }
}

fn survives(rates: ObjectFaultRates, deadline_s: u64, seed: u64, steps: u32) -> (u64, ObjectCounters) {
    let clock = Clock::virtual_time(1);
    let _here = clock.enter();
    let (attempt, deadline) = (Duration::from_secs(2), Duration::from_secs(deadline_s));
    let patience = Patience { attempt, deadline, seed, ..Patience::default() };
    let layers = Layers::new(&clock, rates, patience);
    let mut random = Random(seed);
    let mut possible = Possible::new();
    let mut failed = 0;
    for n in 0..steps {
        let key = format!("k{}", random.below(6));
        if random.below(2) == 0 {
            put_rightly(&layers, &mut random, &key, n, &mut possible);
            continue;
        }
        let range = (random.below(2) == 0).then_some(1..4);
        match layers.calls().get(&key, range.clone()) {
            Ok(got) => {
                let cut = |bytes: &Vec<u8>| range.clone().map_or(bytes.clone(), |_| bytes[1..4].to_vec());
                let possible = possible.get(&key).into_iter().flatten();
                assert!(possible.map(cut).any(|it| it == got.bytes), "{key} {range:?}: {:?}", got.bytes);
                assert_eq!(got.bytes, cut(&layers.truth().get(&key, None).unwrap().bytes));
            }
            Err(ObjectErrorKind::Missing) => assert!(layers.truth().get(&key, None).is_err()),
            Err(kind) => {
                assert!(kind.is_passing(), "{kind}");
                failed += 1;
            }
        }
    }
    for (key, possible) in &possible {
        if let Ok(it) = layers.truth().get(key, None) {
            assert!(possible.contains(&it.bytes), "{key}");
        }
    }
    (failed, counted(&layers.patient))
}

#[test]
fn bytes_are_right_and_no_acknowledged_put_is_lost() {
    let seed = test_seed(61);
    let rate = 60_000;
    let rates = ObjectFaultRates {
        unavailable: rate,
        too_often: rate,
        silent: rate / 4,
        short: 2 * rate,
        lost_answer: 3 * rate,
        failed_put: rate,
        ..none()
    };
    for round in 0..20 {
        let (failed, counters) = survives(rates, 300, seed + round, 300);
        assert_eq!((failed, counters.failures), (0, 0), "patience is enough: {counters:?}");
        assert!(counters.retries > 50 && counters.puts_found > 0 && counters.short_bodies > 0);
    }
    // Where most fails, errors are told; nothing is wrong all the same.
    let worse = ObjectFaultRates {
        unavailable: 600_000,
        silent: 200_000,
        lost_answer: 500_000,
        short: 500_000,
        ..none()
    };
    let failed: u64 = (0..10).map(|round| survives(worse, 20, seed + 100 + round, 100).0).sum();
    assert!(failed > 0);
}

#[test]
fn the_lost_answer_to_a_put_is_found() {
    let clock = Clock::virtual_time(1);
    let _here = clock.enter();
    let rates = ObjectFaultRates { lost_answer: ALWAYS, ..none() };
    let layers = Layers::new(&clock, rates, Patience::default());
    let calls = layers.calls();
    let first = calls.put("a", b"1", PutIf::Absent).unwrap();
    assert_eq!(layers.truth().get("a", None).unwrap().version, first);
    // Of the same bytes, too: the version tells.
    let second = calls.put("a", b"1", PutIf::Is(first.clone())).unwrap();
    assert_ne!(second, first);
    assert_eq!(layers.truth().get("a", None).unwrap().version, second);
    assert_eq!(calls.put("a", b"2", PutIf::Absent), Err(ObjectErrorKind::Changed));
    assert_eq!(calls.put("a", b"2", PutIf::Is(first)), Err(ObjectErrorKind::Changed));
    let counters = counted(&layers.patient);
    assert_eq!((counters.puts, counters.puts_found, counters.failures), (4, 2, 0));
}

#[test]
fn a_put_that_did_not_happen_is_not_taken_for_one_that_did() {
    let clock = Clock::virtual_time(1);
    let _here = clock.enter();
    let layers = Layers::new(&clock, none(), Patience::default());
    let calls = layers.calls();
    let first = calls.put("a", b"1", PutIf::Absent).unwrap();
    layers.faulty.set_rates(ObjectFaultRates { failed_put: ALWAYS, ..none() });
    // The object has the bytes already, of the version that is to be replaced.
    let began_ns = clock.now_ns();
    let put = calls.put("a", b"1", PutIf::Is(first.clone()));
    assert!(matches!(put, Err(ObjectErrorKind::Unavailable(_))), "{put:?}");
    assert!((20 * S..=30 * S).contains(&(clock.now_ns() - began_ns)));
    assert_eq!(layers.truth().get("a", None).unwrap().version, first);
    assert!(calls.put("b", b"1", PutIf::Absent).is_err());
    assert_eq!(layers.truth().keys("", 9).unwrap(), ["a"]);
    assert_eq!(counted(&layers.patient).failures, 2);
}

/// Acts before each request to a store, by its number, and may answer in its place with an error.
struct Before<F> {
    inner: Arc<dyn Objects>,
    asked: AtomicU32,
    act: F,
}

impl<F: Fn(u32) -> Option<ObjectErrorKind> + Send + Sync> Objects for Before<F> {
    fn name(&self) -> &Arc<str> {
        self.inner.name()
    }

    fn begin(&self, ask: Ask, done: Done) -> Ongoing {
        match (self.act)(self.asked.fetch_add(1, Ordering::Relaxed)) {
            None => self.inner.begin(ask, done),
            Some(kind) => {
                done(Err(ObjectError::new(self.name(), &ask, kind)));
                Ongoing::over()
            }
        }
    }
}

/// The answer to a put of `own` where there was no object, and the object then. Before each
/// attempt, `act` may put bytes in the way, and have it fail.
fn put_amid(
    act: impl Fn(u32) -> (Option<&'static str>, Option<ObjectErrorKind>) + Send + Sync + 'static,
) -> (Result<Version, ObjectErrorKind>, (Vec<u8>, Version)) {
    let clock = Clock::virtual_time(1);
    let _here = clock.enter();
    let memory = Arc::new(MemoryObjects::new("memory"));
    let (truth, other_clock) = (memory.clone(), clock.clone());
    let act = move |n| {
        let (put, error) = act(n);
        let calls = Calls(&*truth, &other_clock);
        put.into_iter().for_each(|bytes| drop(calls.put("a", bytes.as_bytes(), PutIf::Always).unwrap()));
        error
    };
    let before: Arc<dyn Objects> = Arc::new(Before { inner: memory.clone(), asked: AtomicU32::new(0), act });
    let patient = PatientObjects::new(before, &clock, Patience::default()).unwrap();
    let answer = Calls(&patient, &clock).put("a", b"own", PutIf::Absent);
    let there = Calls(&*memory, &clock).get("a", None).unwrap();
    (answer, (there.bytes, there.version))
}

fn unavailable() -> Option<ObjectErrorKind> {
    Some(ObjectErrorKind::Unavailable("for a moment".into()))
}

#[test]
fn another_writer_is_noticed_behind_a_lost_answer() {
    // The first attempt fails; before the get that looks for it, another writer puts its own.
    let (answer, (bytes, _)) = put_amid(|n| match n {
        0 => (None, unavailable()),
        1 => (Some("other"), None),
        _ => (None, None),
    });
    assert_eq!((answer, bytes), (Err(ObjectErrorKind::Changed), b"other".to_vec()));
}

#[test]
fn a_put_that_happens_late_is_found() {
    // The first attempt fails, and is not there yet when it is looked for. It happens before the
    // second attempt, which is refused because of it.
    let (answer, (bytes, version)) = put_amid(|n| match n {
        0 => (None, unavailable()),
        2 => (Some("own"), None),
        _ => (None, None),
    });
    assert_eq!((answer, bytes), (Ok(version), b"own".to_vec()));
    // Or the second one is too much for the store, and the third would be refused.
    let (answer, (bytes, version)) = put_amid(|n| match n {
        0 => (None, unavailable()),
        2 => (Some("own"), Some(ObjectErrorKind::TooOften)),
        _ => (None, None),
    });
    assert_eq!((answer, bytes), (Ok(version), b"own".to_vec()));
}

#[test]
fn a_put_whose_fate_cannot_be_read_stays_unknown() {
    // Objects may be written and not read: the answer is the first failure, not the refusal.
    let (answer, _) = put_amid(|n| match n {
        0 => (Some("own"), unavailable()),
        _ => (None, Some(ObjectErrorKind::Refused("no reading".into()))),
    });
    assert_eq!(answer.err(), unavailable());
    // "Asked too often" would mean that it did not happen.
    let (answer, _) = put_amid(|n| match n {
        0 => (None, unavailable()),
        1 => (None, None),
        2 => (Some("own"), Some(ObjectErrorKind::TooOften)),
        _ => (None, Some(ObjectErrorKind::TooOften)),
    });
    assert_eq!(answer.err(), unavailable());
}

#[test]
fn an_outage_is_waited_out() {
    let clock = Clock::virtual_time(1);
    let _here = clock.enter();
    let layers = Layers::new(&clock, ObjectFaultRates::OUTAGE, Patience::default());
    let answers = Arc::new(AtomicU32::new(0));
    let handles: Vec<Ongoing> = (0..200u8)
        .map(|i| {
            let answers = answers.clone();
            let done = move |answer: Result<Answer, ObjectError>| {
                answer.expect("the outage ends in time");
                answers.fetch_add(1, Ordering::Relaxed);
            };
            let put = Ask::Put { key: format!("{i}").into(), bytes: [i].into(), only: PutIf::Absent };
            layers.patient.begin(put, Box::new(done))
        })
        .collect();
    clock.sleep_ns(15 * S);
    assert_eq!(answers.load(Ordering::Relaxed), 0);
    layers.faulty.set_rates(none());
    clock.sleep_ns(10 * S + MS); // two of the longest pauses: a look for the put, and the put
    assert_eq!(answers.load(Ordering::Relaxed), 200);
    assert_eq!(layers.truth().keys("", 999).unwrap().len(), 200);
    drop(handles);
    // One that does not end is told after the deadline, with its reason.
    layers.faulty.set_rates(ObjectFaultRates::OUTAGE);
    let began_ns = clock.now_ns();
    let get = layers.calls().get("1", None);
    assert!(matches!(get, Err(ObjectErrorKind::Unavailable(_))));
    assert!((20 * S..=30 * S).contains(&(clock.now_ns() - began_ns)));
    let attempts = layers.faulty.faults().iter().rev().take_while(|fault| &*fault.key == "1").count();
    assert!((8..60).contains(&attempts), "{attempts} attempts in 30 s");
}

#[test]
fn silence_ends_with_the_deadline() {
    let clock = Clock::virtual_time(1);
    let _here = clock.enter();
    let layers = Layers::new(&clock, ObjectFaultRates { silent: ALWAYS, ..none() }, Patience::default());
    let late = layers.calls().get("a", None).err();
    assert_eq!(late, Some(ObjectErrorKind::Late { ms: 10_000 }), "the last error: an attempt of 10 s");
    assert_eq!(clock.now_ns(), 30 * S);
    let hasty = Patience { deadline: Duration::from_secs(5), ..Patience::default() };
    let layers = Layers::new(&clock, ObjectFaultRates { silent: ALWAYS, ..none() }, hasty);
    let late = layers.calls().put("a", b"1", PutIf::Absent);
    assert_eq!(late, Err(ObjectErrorKind::Late { ms: 5000 }));
    assert_eq!(clock.now_ns() / MS, 35_000);
    let counters = counted(&layers.patient);
    assert_eq!((counters.failures, counters.outstanding, counters.waiting), (1, 0, 0));
    // Bytes have their time: 20 MB at 1 MB/s.
    let late = layers.calls().put("a", &vec![1; 20_000_000], PutIf::Always);
    assert_eq!(late, Err(ObjectErrorKind::Late { ms: 25_000 }));
    assert_eq!(clock.now_ns() / MS, 60_000);
    let counters = counted(&layers.patient);
    assert_eq!(counters.busy_ns / MS, 30_000);
}

#[test]
fn a_range_beyond_the_end_is_told_soon() {
    let clock = Clock::virtual_time(1);
    let _here = clock.enter();
    let layers = Layers::new(&clock, none(), Patience::default());
    layers.calls().put("a", &[1; 10], PutIf::Always).unwrap();
    let short = layers.calls().get("a", Some(5..20)).err();
    assert_eq!(short, Some(ObjectErrorKind::Short { got: 5, wanted: 15 }));
    assert_eq!(counted(&layers.patient).attempts, 1 + 3);
    assert!(clock.now_ns() < S);
    // A body that is too short each time is no such word of the store, and tried until the end.
    layers.faulty.set_rates(ObjectFaultRates { short: ALWAYS, ..none() });
    let short = layers.calls().get("a", Some(0..1)).err();
    assert_eq!(short, Some(ObjectErrorKind::Short { got: 0, wanted: 1 }));
    assert!(clock.now_ns() > 20 * S);
}

#[test]
fn requests_are_answered_when_the_store_goes() {
    for clock in [Clock::real(), Clock::virtual_time(1)] {
        let _here = clock.enter();
        let patience = Patience { width: 2, ..Patience::default() };
        let layers = Layers::new(&clock, ObjectFaultRates { silent: ALWAYS, ..none() }, patience);
        let (answers, given_up) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let begin = |told: &Arc<AtomicU32>| {
            let told = told.clone();
            let done = move |answer: Result<Answer, ObjectError>| {
                assert!(matches!(answer.unwrap_err().kind, ObjectErrorKind::Unavailable(_)));
                told.fetch_add(1, Ordering::Relaxed);
            };
            layers.patient.begin(Ask::Get { key: "a".into(), range: None }, Box::new(done))
        };
        let mut handles: Vec<_> = (0..5).map(|_| begin(&answers)).collect();
        drop(begin(&given_up));
        let counters = counted(&layers.patient);
        assert_eq!((counters.outstanding, counters.waiting, counters.given_up), (2, 3, 1));
        drop(handles.remove(0)); // its place is taken by the next
        let counters = counted(&layers.patient);
        assert_eq!((counters.outstanding, counters.waiting, counters.given_up), (2, 2, 2));
        drop(layers);
        assert_eq!((answers.load(Ordering::Relaxed), given_up.load(Ordering::Relaxed)), (4, 0));
    }
}

/// Times of gets in virtual nanoseconds, ascending, and the counts.
fn get_times(hedged: f64, seed: u64) -> (Vec<u64>, ObjectCounters) {
    let clock = Clock::virtual_time(1);
    let _here = clock.enter();
    let memory = Arc::new(MemoryObjects::new("memory"));
    let timed = Arc::new(TimedObjects::new(memory, ObjectTimes::default(), &clock, seed));
    let patient = PatientObjects::new(timed, &clock, Patience { hedged, ..Patience::default() }).unwrap();
    let calls = Calls(&patient, &clock);
    calls.put("a", &[3; 10_000], PutIf::Always).unwrap();
    let mut times: Vec<u64> = (0..4000)
        .map(|_| {
            let before_ns = clock.now_ns();
            assert_eq!(calls.get("a", Some(0..5000)).unwrap().bytes, [3; 5000]);
            clock.now_ns() - before_ns
        })
        .collect();
    times.sort_unstable();
    let counters = counted(&patient);
    (times, counters)
}

#[test]
fn hedges_cut_the_tail() {
    let seed = test_seed(62);
    let (plain, without) = get_times(0.0, seed);
    let (hedged, with) = get_times(0.05, seed);
    assert_eq!((without.hedges, without.attempts), (0, 4001));
    assert!((100..=200).contains(&with.hedges), "at most one in twenty: {with:?}");
    assert!(with.hedges_won > with.hedges / 3 && with.hedges_won < with.hedges, "{with:?}");
    assert_eq!(with.attempts, 4001 + with.hedges);
    let p99 = |times: &[u64]| times[3960] / MS;
    let median = |times: &[u64]| times[2000] / MS;
    assert!(p99(&hedged) * 10 < p99(&plain) * 9, "{} ms and {} ms", p99(&hedged), p99(&plain));
    assert!(median(&hedged).abs_diff(median(&plain)) <= 2);
    assert_eq!(with.bytes_in, 4000 * 5000);
    assert!((26 * MS..34 * MS).contains(&with.get_times.p50_ns));
    assert!((80e3..200e3).contains(&with.bytes_per_s()), "5 kB in 43 ms: {}", with.bytes_per_s());
}

#[test]
fn a_hedge_that_fails_leaves_the_first_attempt_to_answer() {
    const FIRST: u32 = 31;
    let clock = Clock::virtual_time(1);
    let _here = clock.enter();
    let same = Duration::from_millis(10);
    let times = ObjectTimes { p50: same, p99: same, ..ObjectTimes::default() };
    let timed = TimedObjects::new(Arc::new(MemoryObjects::new("memory")), times, &clock, 1);
    let faulty = Arc::new(FaultyObjects::new(Arc::new(timed), none(), 1));
    let below = faulty.clone();
    // The first attempt is never answered, and its hedge fails at once.
    let act = move |n| {
        let silent = if n == FIRST { ALWAYS } else { 0 };
        below.set_rates(ObjectFaultRates { silent, ..none() });
        unavailable().filter(|_| n == FIRST + 1)
    };
    let before = Before { inner: faulty, asked: AtomicU32::new(0), act };
    let patience = Patience { hedged: 1.0, ..Patience::default() };
    let patient = PatientObjects::new(Arc::new(before), &clock, patience).unwrap();
    let calls = Calls(&patient, &clock);
    calls.put("a", b"1", PutIf::Always).unwrap();
    (1..FIRST).for_each(|_| drop(calls.get("a", None).unwrap()));
    let (began_ns, before) = (clock.now_ns(), counted(&patient));
    assert_eq!(calls.get("a", None).unwrap().bytes, b"1");
    let (took_ms, after) = ((clock.now_ns() - began_ns) / MS, counted(&patient));
    // The attempt has its 10 s; after a pause comes another one.
    assert!((10_010..10_250).contains(&took_ms), "{took_ms}");
    assert_eq!((after.attempts - before.attempts, after.hedges, after.retries), (3, 1, 1));
}
