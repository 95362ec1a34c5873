//! A store that takes its time, in virtual and in real time.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use snowmelt_io::*;

use crate::calls::Calls;

const MS: u64 = 1_000_000;

fn timed(times: ObjectTimes, clock: &Clock, seed: u64) -> TimedObjects {
    TimedObjects::new(Arc::new(MemoryObjects::new("memory")), times, clock, seed)
}

fn get(key: &str) -> Ask {
    Ask::Get { key: key.into(), range: None }
}

/// The times of 400 requests, one after another, in nanoseconds.
fn times(seed: u64) -> Vec<u64> {
    let clock = Clock::virtual_time(1);
    let _here = clock.enter();
    let store = timed(ObjectTimes::default(), &clock, seed);
    let calls = Calls(&store, &clock);
    let one = |i: u32| {
        let before_ns = clock.now_ns();
        match i % 4 {
            0 => drop(calls.put("a", &[7; 100], PutIf::Always).unwrap()),
            1 => assert_eq!(calls.get("a", Some(10..20)).unwrap().bytes, [7; 10]),
            2 => assert_eq!(calls.keys("", 9).unwrap(), ["a"]),
            _ => calls.delete("b").unwrap(),
        }
        clock.now_ns() - before_ns
    };
    (0..400).map(one).collect()
}

#[test]
fn requests_take_the_times_of_their_model() {
    let seed = test_seed(42);
    let first = times(seed);
    assert_eq!(first, times(seed), "a seed repeats them");
    assert_ne!(first, times(seed + 1));
    // Two of four are one request: puts and deletes. (A list has another that finds the end.)
    let mut of_one: Vec<u64> =
        first.iter().enumerate().filter(|(i, _)| i % 4 != 2).map(|(_, ns)| *ns).collect();
    of_one.sort_unstable();
    let median_ms = of_one[150] / MS;
    assert!((20..45).contains(&median_ms), "{median_ms} ms");
}

#[test]
fn answers_come_when_they_are_due_and_not_to_those_that_gave_up() {
    let clock = Clock::virtual_time(1);
    let _here = clock.enter();
    let same = Duration::from_millis(10);
    let store = timed(
        ObjectTimes { p50: same, p99: same, bytes_per_s: 1_000_000, ..ObjectTimes::default() },
        &clock,
        1,
    );
    Calls(&store, &clock).put("a", &[1; 50_000], PutIf::Always).unwrap();
    assert_eq!(clock.now_ns() / MS, 60, "10 ms and 50 kB at 1 MB/s");
    clock.sleep_ns(1000 * MS);
    let (began_ns, heard) = (clock.now_ns(), Arc::new(Mutex::new(Vec::new())));
    let mut handles: Vec<Ongoing> = (0..4)
        .map(|i| {
            let (heard, clock) = (heard.clone(), clock.clone());
            let done = move |answer: Result<Answer, ObjectError>| {
                assert!(answer.is_ok());
                heard.lock().unwrap().push((i, (clock.now_ns() - began_ns) / MS));
            };
            store.begin(get("a"), Box::new(done))
        })
        .collect();
    drop(handles.remove(1));
    clock.sleep_ns(1000 * MS);
    // Bytes of all pass one after another, also those that are given up.
    assert_eq!(*heard.lock().unwrap(), [(0, 60), (2, 160), (3, 210)]);
}

#[test]
fn a_prefix_is_not_asked_too_often() {
    let clock = Clock::virtual_time(1);
    let _here = clock.enter();
    let times = ObjectTimes { prefix_requests_per_s: Some(5), ..ObjectTimes::default() };
    let store = timed(times, &clock, 2);
    let refused = Arc::new(AtomicU32::new(0));
    let burst = |key: &str| {
        let begin = |_| {
            let refused = refused.clone();
            let done = move |answer: Result<Answer, ObjectError>| {
                let kind = answer.unwrap_err().kind;
                refused.fetch_add(u32::from(kind == ObjectErrorKind::TooOften), Ordering::Relaxed);
            };
            store.begin(get(key), Box::new(done))
        };
        let handles: Vec<_> = (0..8).map(begin).collect();
        clock.sleep_ns(1000 * MS);
        drop(handles);
        refused.swap(0, Ordering::Relaxed)
    };
    assert_eq!([burst("a/1"), burst("a/2"), burst("b/1")], [3, 3, 3]);
}

#[test]
fn a_store_answers_in_real_time_and_first_when_it_goes() {
    let clock = Clock::real();
    let quick = Duration::from_micros(100);
    let store = timed(ObjectTimes { p50: quick, p99: quick, ..ObjectTimes::default() }, &clock, 3);
    let calls = Calls(&store, &clock);
    for i in 0..20 {
        calls.put(&i.to_string(), &[i], PutIf::Absent).unwrap();
        assert_eq!(calls.get(&i.to_string(), None).unwrap().bytes, [i]);
    }
    let hour = Duration::from_secs(3600);
    let store = timed(ObjectTimes { p50: hour, p99: hour, ..ObjectTimes::default() }, &clock, 3);
    let heard = Arc::new(AtomicU32::new(0));
    let told = heard.clone();
    let done = move |_| {
        told.fetch_add(1, Ordering::Relaxed);
    };
    let handle = store.begin(get("a"), Box::new(done));
    drop(store);
    assert_eq!(heard.load(Ordering::Relaxed), 1);
    drop(handle);
}
