//! The purpose of each policy, shown on the schedule alone.

use snowmelt_io::schedule_bench::{ScheduleBench, pending, read};
use snowmelt_io::{Class, Next, Policy};
use snowmelt_io_experiments::{PolicyName, TunedPolicy, Tuning};

const PAGE: u64 = 8192;
const MS: u64 = 1_000_000;

/// Fair turns of 20 ms.
fn fair_of_20_ms() -> Policy {
    let tuning = Tuning { quantum_ns: Some(20 * MS), ..Tuning::default() };
    TunedPolicy { policy: PolicyName::Fair, tuning }.policy()
}

#[test]
fn a_deadline_is_a_time_where_the_elevators_bound_is_a_number() {
    // Far ahead one request waits; near the arm newcomers keep coming, each of which takes half
    // a second to serve.
    let waited_ms = |policy| {
        let mut limits = ScheduleBench::single(&Policy::Elevator).limits;
        limits.rules.fairness = 1024;
        let mut bench = ScheduleBench::new(&policy, limits);
        bench.push(0, read(1_000_000, u64::MAX));
        for tag in 0.. {
            bench.push(1, read(tag, tag));
            if bench.serve() == [u64::MAX] {
                break;
            }
            bench.now += 495 * MS;
        }
        bench.now / MS
    };
    let (elevator, deadline) = (waited_ms(Policy::Elevator), waited_ms(PolicyName::Deadline.policy()));
    assert!(deadline <= 500 + 17 * 500, "a batch of 16 was under way: {deadline} ms");
    assert!(elevator > 100_000, "{elevator} ms");
}

#[test]
fn deadline_prefers_reads_but_not_for_ever() {
    let tuning = Tuning { batch: 2, ..Tuning::default() };
    let policy = TunedPolicy { policy: PolicyName::Deadline, tuning }.policy();
    let mut bench = ScheduleBench::single(&policy);
    for i in 0..8 {
        bench.push(0, pending(i, 1, Class::Planned, true, 100 + i));
        bench.push(0, pending(50 + i, 1, Class::Planned, false, i));
    }
    let order: Vec<u64> = (0..10).flat_map(|_| bench.serve()).collect();
    assert_eq!(order, [0, 1, 2, 3, 100, 101, 4, 5, 6, 7], "two batches of reads, one of writes");
}

#[test]
fn anticipation_waits_for_the_reader_it_served_and_for_nobody_who_does_not_come() {
    let mut bench = ScheduleBench::single(&PolicyName::Anticipatory.policy());
    bench.push(1, read(10, 10));
    bench.push(2, read(100_000, 0));
    assert_eq!(bench.serve(), [10]);
    let until = bench.now + Tuning::default().anticipate_ns;
    assert_eq!(bench.next_beside(0, 0), Next::NotBefore(until), "client 1 may go on");
    bench.now += MS;
    bench.push(1, read(11, 11));
    assert_eq!(bench.serve(), [11], "it did");
    // While its own request is at the device there is nothing to wait for but that.
    bench.push(1, read(12, 12));
    assert_eq!(bench.next_beside(0, 0), Next::Begun);
    assert_eq!(bench.next_beside(1, PAGE), Next::Nothing);
    bench.finish(5);
    // It stays away, twice; then it is no longer waited for, until it has once come in time.
    let mut waits = Vec::new();
    for round in 0..5 {
        let before = bench.now;
        assert_eq!(bench.serve(), [round], "the other's");
        waits.push((bench.now - before) / MS - 5);
        bench.now += 100 * MS;
        bench.push(1, read(20 + round, 20));
        assert_eq!(bench.serve(), [20]);
        if round == 3 {
            bench.push(1, read(21 + round, 21));
            assert_eq!(bench.serve(), [21], "at once");
        }
        // The device is never held still after a write.
        bench.push(2, pending(100_000, 1, Class::Planned, true, round + 1));
    }
    assert_eq!(waits, [6, 6, 0, 0, 6]);
}

#[test]
fn fair_gives_a_small_client_its_turn_before_a_crowd_is_served() {
    let served_before = |policy: &Policy| {
        let mut bench = ScheduleBench::single(policy);
        for i in 0..500 {
            bench.push(1, read(i, i));
        }
        assert_eq!(bench.serve().len(), 1);
        bench.push(2, read(9000, u64::MAX));
        (0..).position(|_| bench.serve() == [u64::MAX]).expect("it is served some time")
    };
    // A quantum of 20 ms is three requests of 6 ms and the one that overdraws.
    let fair = fair_of_20_ms();
    assert!(served_before(&fair) <= 4, "{}", served_before(&fair));
    assert!(served_before(&Policy::Elevator) > 400);
}

#[test]
fn fair_divides_device_time_not_requests() {
    let mut limits = ScheduleBench::limits();
    (limits.gap_bytes, limits.max_bytes) = (0, 1);
    let mut bench = ScheduleBench::new(&fair_of_20_ms(), limits);
    for i in 0..400 {
        bench.push(1, pending(i * 2, 1, Class::Planned, false, 1)); // 6.05 ms each
        bench.push(2, pending(100_000 + i * 256, 128, Class::Planned, false, 2)); // 13 ms each
    }
    let mut time = [0; 3];
    for _ in 0..300 {
        let served = bench.serve()[0];
        time[served as usize] +=
            bench.limits.rules.cost.request_ns(if served == 1 { PAGE } else { 128 * PAGE });
    }
    let share = time[1] as f64 / (time[1] + time[2]) as f64;
    assert!((0.47..0.53).contains(&share), "the client of small requests had {share} of the time");
}
