//! Each fault of a store that fails, its list of faults, and that a seed repeats them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use snowmelt_base::random::Random;
use snowmelt_io::*;

use crate::calls::Calls;

const ALWAYS: u32 = 1_000_000;
const NONE: ObjectFaultRates = ObjectFaultRates {
    unavailable: 0,
    too_often: 0,
    silent: 0,
    short: 0,
    bit_flip: 0,
    stale: 0,
    missing: 0,
    lost_answer: 0,
    failed_put: 0,
    lagging_list: 0,
};

fn faulty(seed: u64) -> (Arc<MemoryObjects>, FaultyObjects) {
    let memory = Arc::new(MemoryObjects::new("memory"));
    (memory.clone(), FaultyObjects::new(memory, NONE, seed))
}

fn kinds(store: &FaultyObjects) -> Vec<ObjectFaultKind> {
    store.faults().iter().map(|fault| fault.kind).collect()
}

#[test]
fn errors_leave_the_store_as_it_is() {
    let ((memory, store), clock) = (faulty(1), Clock::real());
    let (calls, truth) = (Calls(&store, &clock), Calls(&*memory, &clock));
    calls.put("a", b"1", PutIf::Always).unwrap();
    assert_eq!(store.faults(), []);
    let unavailable = |kind| matches!(kind, ObjectErrorKind::Unavailable(_));
    store.set_rates(ObjectFaultRates::OUTAGE);
    assert!(calls.get("a", None).is_err_and(unavailable));
    assert!(calls.put("a", b"2", PutIf::Always).is_err_and(unavailable));
    assert!(calls.delete("a").is_err_and(unavailable));
    assert!(calls.list("", None, 1).is_err_and(unavailable));
    store.set_rates(ObjectFaultRates { failed_put: ALWAYS, ..NONE });
    assert!(calls.put("a", b"2", PutIf::Always).is_err_and(unavailable));
    assert_eq!(calls.get("a", None).unwrap().bytes, b"1");
    store.set_rates(ObjectFaultRates { too_often: ALWAYS, ..NONE });
    assert_eq!(calls.put("a", b"2", PutIf::Always), Err(ObjectErrorKind::TooOften));
    assert_eq!(truth.get("a", None).unwrap().bytes, b"1");
    use ObjectFaultKind::*;
    assert_eq!(kinds(&store), [Unavailable, Unavailable, Unavailable, Unavailable, FailedPut, TooOften]);
    let last = store.faults().pop().unwrap();
    assert_eq!((last.ask, &*last.key), ("put", "a"));
}

#[test]
fn bytes_are_spoiled() {
    let ((_, store), clock) = (faulty(test_seed(51)), Clock::real());
    let calls = Calls(&store, &clock);
    let old = calls.put("a", &[1; 100], PutIf::Always).unwrap();
    let new = calls.put("a", &[2; 80], PutIf::Always).unwrap();
    store.set_rates(ObjectFaultRates { short: ALWAYS, ..NONE });
    let short = calls.get("a", Some(10..40)).unwrap();
    assert!(short.bytes.len() < 30 && short.len == 80 && short.version == new);
    store.set_rates(ObjectFaultRates { bit_flip: ALWAYS, ..NONE });
    let flipped = calls.get("a", None).unwrap().bytes;
    let bits: u32 = flipped.iter().map(|byte| (byte ^ 2).count_ones()).sum();
    assert_eq!((flipped.len(), bits), (80, 1));
    store.set_rates(ObjectFaultRates { stale: ALWAYS, ..NONE });
    let stale = calls.get("a", Some(90..100)).unwrap_err();
    assert_eq!(stale, ObjectErrorKind::Short { got: 0, wanted: 10 }, "the present one is asked first");
    let stale = calls.get("a", Some(50..60)).unwrap();
    assert_eq!((stale.bytes, stale.len, stale.version), (vec![1; 10], 100, old));
    store.set_rates(ObjectFaultRates { missing: ALWAYS, ..NONE });
    assert_eq!(calls.get("a", None).err(), Some(ObjectErrorKind::Missing));
    assert_eq!(calls.get("b", None).err(), Some(ObjectErrorKind::Missing));
    use ObjectFaultKind::*;
    assert_eq!(kinds(&store), [Short, BitFlip, Stale, Missing], "b is missing in truth");
}

#[test]
fn answers_are_lost_and_lists_lag() {
    let ((memory, store), clock) = (faulty(test_seed(52)), Clock::real());
    let (calls, truth) = (Calls(&store, &clock), Calls(&*memory, &clock));
    calls.put("a", b"1", PutIf::Always).unwrap();
    store.set_rates(ObjectFaultRates { lost_answer: ALWAYS, ..NONE });
    assert!(calls.put("b", b"2", PutIf::Absent).is_err_and(|kind| kind.is_passing()));
    assert_eq!(truth.get("b", None).unwrap().bytes, b"2");
    assert_eq!(calls.put("b", b"3", PutIf::Absent), Err(ObjectErrorKind::Changed));
    assert!(calls.delete("a").is_err_and(|kind| kind.is_passing()));
    assert_eq!(truth.keys("", 9).unwrap(), ["b"]);
    store.set_rates(ObjectFaultRates { lagging_list: ALWAYS, ..NONE });
    assert_eq!(calls.list("", None, 1).unwrap().len(), 1, "a full page is not an empty one");
    assert_eq!(calls.list("", None, 9).unwrap(), []);
    store.set_rates(NONE);
    assert_eq!(calls.keys("", 9).unwrap(), ["b"]);
    use ObjectFaultKind::*;
    assert_eq!(kinds(&store), [LostAnswer, LostAnswer, LaggingList]);
}

#[test]
fn silence_is_for_ever_and_puts_may_happen_in_it() {
    let ((memory, store), clock) = (faulty(test_seed(53)), Clock::real());
    store.set_rates(ObjectFaultRates { silent: ALWAYS, ..NONE });
    let heard = Arc::new(AtomicBool::new(false));
    for i in 0..40u8 {
        let told = heard.clone();
        let put = Ask::Put { key: format!("{i}").into(), bytes: [i].into(), only: PutIf::Always };
        drop(store.begin(put, Box::new(move |_| told.store(true, Ordering::Relaxed))));
    }
    assert!(!heard.load(Ordering::Relaxed));
    let happened = Calls(&*memory, &clock).keys("", 100).unwrap().len();
    assert!((1..40).contains(&happened), "{happened}");
    assert_eq!(kinds(&store), [ObjectFaultKind::Silent; 40]);
}

#[test]
fn a_seed_repeats_the_faults() {
    let run = |seed: u64| {
        let ((_, store), clock) = (faulty(seed), Clock::real());
        let mut random = Random(9);
        let rate = 100_000;
        store.set_rates(ObjectFaultRates { unavailable: rate, short: rate, lost_answer: rate, ..NONE });
        let calls = Calls(&store, &clock);
        for _ in 0..300 {
            let key = random.below(5).to_string();
            match random.below(2) {
                0 => drop(calls.put(&key, &[1; 10], PutIf::Always)),
                _ => drop(calls.get(&key, None)),
            }
        }
        store.faults()
    };
    let seed = test_seed(54);
    let faults = run(seed);
    assert_eq!(faults, run(seed));
    assert_ne!(faults, run(seed + 1));
    assert!((30..90).contains(&faults.len()), "{}", faults.len());
}
