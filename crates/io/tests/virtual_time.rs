//! Virtual time: order, jumps, processors; and simulated devices in virtual and in real time.

mod support;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use snowmelt_base::random::Random;
use snowmelt_io::*;
use snowmelt_io_experiments::{POSIX_AIO, PolicyName};
use support::*;

const MS: u64 = 1_000_000;

/// Runs `n` participants and returns when all are over.
fn participants(clock: &Clock, n: usize, body: impl Fn(usize) + Sync) {
    let tickets = clock.reserve(n);
    std::thread::scope(|scope| {
        for (i, ticket) in tickets.into_iter().enumerate() {
            let body = &body;
            scope.spawn(move || {
                let _guard = ticket.enter();
                body(i);
            });
        }
    });
}

#[test]
fn sleepers_wake_in_order_and_time_jumps() {
    let clock = Clock::virtual_time(1);
    let log = Mutex::new(Vec::new());
    let began = std::time::Instant::now();
    participants(&clock, 3, |i| {
        for turn in 0..3 {
            clock.sleep_ns((10 - i as u64) * 1000 * MS);
            log.lock().unwrap().push((clock.now_ns() / MS, i, turn));
        }
    });
    let log = log.into_inner().unwrap();
    let mut sorted = log.clone();
    sorted.sort();
    assert_eq!(log, sorted);
    assert_eq!(clock.now_ns(), 30_000 * MS);
    assert!(began.elapsed().as_secs() < 5, "virtual time does not pass in reality");
}

#[test]
fn processors_are_shared() {
    for (clients, cores, expected) in [(4, 2, 20), (4, 4, 10), (1, 2, 10), (5, 2, 30)] {
        let clock = Clock::virtual_time(cores);
        participants(&clock, clients, |_| clock.charge_cpu(10 * MS));
        assert_eq!(clock.now_ns(), expected * MS, "{clients} clients on {cores} cores");
    }
}

#[test]
fn small_charges_add_up() {
    let clock = Clock::virtual_time(1);
    participants(&clock, 2, |_| {
        for _ in 0..1000 {
            let before = clock.now_ns();
            clock.charge_cpu(700);
            assert!(clock.now_ns() >= before + 700);
        }
    });
    assert_eq!(clock.now_ns(), 2 * 1000 * 700);
}

#[test]
fn waiters_are_woken_by_their_condition_only() {
    let clock = Clock::virtual_time(1);
    let event = EventCount::new(&clock);
    let turn = AtomicU64::new(0);
    let log = Mutex::new(Vec::new());
    participants(&clock, 5, |i| {
        for round in 0..20 {
            event.wait_until(|| turn.load(Ordering::SeqCst) == round * 5 + i as u64);
            log.lock().unwrap().push(i);
            clock.sleep_ns(MS);
            turn.fetch_add(1, Ordering::SeqCst);
            event.notify_all();
        }
    });
    assert_eq!(log.into_inner().unwrap(), (0..100).map(|i| i % 5).collect::<Vec<_>>());
    assert_eq!(clock.now_ns(), 100 * MS);
}

#[test]
fn a_thread_from_outside_can_wake_participants() {
    let clock = Clock::virtual_time(1);
    let event = EventCount::new(&clock);
    let go = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _guard = clock.enter();
            event.wait_until(|| go.load(Ordering::SeqCst));
        });
        std::thread::sleep(std::time::Duration::from_millis(20));
        go.store(true, Ordering::SeqCst);
        event.notify_all();
    });
}

#[test]
fn real_waiters_miss_nothing() {
    const ROUNDS: u64 = if cfg!(miri) { 50 } else { 5000 };
    let clock = Clock::real();
    let event = EventCount::new(&clock);
    let turn = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for i in 0..4 {
            let (event, turn) = (&event, &turn);
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    event.wait_until(|| turn.load(Ordering::Relaxed) == round * 4 + i);
                    turn.fetch_add(1, Ordering::Relaxed);
                    event.notify_all();
                }
            });
        }
    });
    assert_eq!(turn.load(Ordering::Relaxed), 4 * ROUNDS);
}

fn simulated(model: DeviceModel, bytes: &[u8], clock: &Clock) -> Arc<dyn Device> {
    let memory = Arc::new(MemoryDevice::from_bytes("memory", bytes.to_vec()));
    Arc::new(SimulatedDevice::new(model, memory, clock))
}

/// `clients` threads read random pages, some in place and some through the queue; the log tells
/// who got what when.
fn crowd(model: DeviceModel, policy: PolicyName, clients: usize, seed: u64) -> Vec<(u64, usize, u64)> {
    let bytes = pattern(8 << 20);
    let clock = Clock::virtual_time(2);
    let device = simulated(model, &bytes, &clock);
    let sink = Remember::new(&clock);
    let config = QueueConfig { policy: policy.policy(), ..Default::default() };
    let queue = DeviceQueue::open(device, config, clock.clone(), sink.clone()).unwrap();
    let log = Mutex::new(Vec::new());
    participants(&clock, clients, |i| {
        let mut random = Random(seed + i as u64);
        for round in 0..10u64 {
            clock.charge_cpu(random.below(300_000));
            let page = random.below(1000);
            let mut buf = vec![0; 8192];
            queue.read_now(page * 8192, &mut buf, Class::Demand).unwrap();
            assert!(buf[..] == bytes[page as usize * 8192..][..8192]);
            log.lock().unwrap().push((clock.now_ns(), i, page));
            let places: Vec<_> =
                (0..random.below(20) + 1).map(|_| (random.below(1000) * 8192, 8192)).collect();
            let first = (i as u64 * 10 + round) * 100;
            let mut batch = Batch::reads(&places, Class::Planned, first);
            queue.submit(&mut batch.requests);
            let last = first + places.len() as u64;
            sink.wait_for_all(first..last);
            for (place, buf) in places.iter().zip(&batch.bufs) {
                assert!(buf[..] == bytes[place.0 as usize..][..8192]);
            }
            log.lock().unwrap().push((clock.now_ns(), i, first));
        }
    });
    log.into_inner().unwrap()
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let seed = snowmelt_io::test_seed(11);
    for model in [DeviceModel::hdd(), DeviceModel::wide_slow(), DeviceModel::nvme()] {
        for policy in PolicyName::ALL {
            let first = crowd(model.clone(), policy, 8, seed);
            assert_eq!(first, crowd(model.clone(), policy, 8, seed));
            assert_ne!(first, crowd(model.clone(), policy, 8, seed + 1));
        }
    }
}

#[test]
fn a_capped_volume_gives_its_cap_through_the_queue() {
    let bytes = pattern(16 << 20);
    let clock = Clock::virtual_time(2);
    let device = simulated(DeviceModel::wide_slow(), &bytes, &clock);
    let sink = Remember::new(&clock);
    let queue = DeviceQueue::open(
        device,
        QueueConfig { gap_bytes: Some(0), ..Default::default() },
        clock.clone(),
        sink.clone(),
    );
    let queue = queue.unwrap();
    let places: Vec<_> = (0..900).map(|i| (i * 16384, 8192)).collect();
    let mut batch = Batch::reads(&places, Class::Planned, 0);
    queue.submit(&mut batch.requests);
    sink.wait_for(900);
    let ms = clock.now_ns() / MS;
    assert!((300..306).contains(&ms), "900 pages at 3000 per second took {ms} ms");
    let counters = queue.counters();
    assert_eq!(counters.device_requests(), 900);
    assert!(counters.mean_depth > 8.0 && counters.mean_depth <= 28.0, "{}", counters.mean_depth);
}

#[test]
fn in_real_time_the_same_model_keeps_its_times() {
    let bytes = pattern(8 << 20);
    let clock = Clock::real();
    let device = simulated(DeviceModel::wide_slow(), &bytes, &clock);
    for engine in [IoEngine::Uring, POSIX_AIO, IoEngine::Inline] {
        let sink = Remember::new(&clock);
        let config = QueueConfig { engine, gap_bytes: Some(0), ..Default::default() };
        let queue = DeviceQueue::open(device.clone(), config, clock.clone(), sink.clone()).unwrap();
        let n = if engine == IoEngine::Inline { 30 } else { 300 };
        let places: Vec<_> = (0..n).map(|i| (i * 16384, 8192)).collect();
        let began = clock.now_ns();
        let mut batch = Batch::reads(&places, Class::Planned, 0);
        queue.submit(&mut batch.requests);
        sink.wait_for(n as usize);
        let ms = (clock.now_ns() - began) / MS;
        // Never sooner than the model says; how much later is the machine's business.
        assert!((90..5000).contains(&ms), "{n} pages took {ms} ms");
        for (place, buf) in places.iter().zip(&batch.bufs) {
            assert!(buf[..] == bytes[place.0 as usize..][..8192]);
        }
    }
}

#[test]
fn a_closed_queue_in_virtual_time_has_completed_everything() {
    for model in [DeviceModel::hdd(), DeviceModel::wide_slow()] {
        let bytes = pattern(8 << 20);
        let clock = Clock::virtual_time(1);
        let sink = Remember::new(&clock);
        let queue = DeviceQueue::open(
            simulated(model, &bytes, &clock),
            QueueConfig::default(),
            clock.clone(),
            sink.clone(),
        )
        .unwrap();
        let places: Vec<_> = (0..500).map(|i| (i * 7 % 1000 * 8192, 8192)).collect();
        let mut batch = Batch::reads(&places, Class::Speculative, 0);
        queue.submit(&mut batch.requests);
        drop(queue);
        assert_eq!(sink.count(), 500);
    }
}

/// Runs participants of a watched clock; the report of its standstill.
fn standstill(clock: &Clock, n: usize, body: impl Fn(usize) + Sync) -> Option<std::sync::Arc<str>> {
    clock.watch(1000 * MS);
    let tickets = clock.reserve(n);
    std::thread::scope(|scope| {
        let threads: Vec<_> = tickets
            .into_iter()
            .enumerate()
            .map(|(i, ticket)| {
                let body = &body;
                let run = move || {
                    let _guard = ticket.enter();
                    body(i);
                };
                std::thread::Builder::new().name(format!("thread {i}")).spawn_scoped(scope, run).unwrap()
            })
            .collect();
        threads.into_iter().for_each(|thread| drop(thread.join()));
    });
    clock.take_standstill()
}

#[test]
fn a_watched_clock_says_who_waits_for_what() {
    let clock = Clock::virtual_time(1);
    let (never, often) =
        (EventCount::named(&clock, "the end of the world"), EventCount::named(&clock, "room"));
    // All wait, and nothing is due.
    let report = standstill(&clock, 2, |_| never.wait_until(|| false)).expect("nobody goes on");
    assert!(report.contains("thread 1 waits for the end of the world since 0 ms"), "{report}");
    // A thread that looks now and then hides nothing, nor does one that sleeps in a loop.
    let looking = |i: usize| match i {
        0 => often.wait_until_looking(std::time::Duration::from_millis(20), || false),
        _ => (0..u64::MAX).for_each(|_| clock.sleep_ns(MS)),
    };
    let report = standstill(&clock, 2, looking).expect("one waits for ever");
    assert!(report.contains("thread 0 waits for room since"), "{report}");
    assert!(report.contains("thread 1 sleeps"), "{report}");
    // The one who waits for work waits for nothing that must come.
    let idle = |i: usize| match i {
        0 => (0..3).for_each(|_| never.wait_for_work(std::time::Duration::from_secs(3600), || false)),
        _ => clock.sleep_ns(MS),
    };
    assert_eq!(standstill(&clock, 2, idle), None);
    assert!(clock.now_ns() >= 3 * 3600 * 1000 * MS);
}

#[test]
fn a_wait_for_work_ends_when_there_is_some() {
    for clock in [Clock::real(), Clock::virtual_time(1)] {
        let (bell, rung) = (EventCount::new(&clock), AtomicBool::new(false));
        let begun = clock.now_ns();
        participants(&clock, 2, |i| match i {
            0 => bell.wait_for_work(std::time::Duration::from_secs(3600), || rung.load(Ordering::SeqCst)),
            _ => {
                clock.sleep_ns(MS);
                rung.store(true, Ordering::SeqCst);
                bell.notify_all();
            }
        });
        assert!(clock.now_ns() - begun < 60_000 * MS);
        bell.wait_for_work(std::time::Duration::from_millis(1), || false);
        assert!(clock.now_ns() - begun >= MS);
    }
}
