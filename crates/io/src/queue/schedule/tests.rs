//! The schedule under every policy: nothing lost, nothing done twice, no lane starved; and what
//! each policy is for.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;

use super::*;
use crate::cost::CostModel;
use crate::memory::buffer::RawBuf;
use crate::queue::config::Tuning;
use crate::queue::request::Request;

const PAGE: u64 = 8192;
const MS: u64 = 1_000_000;

fn background(cost: CostModel, depth: usize, max_bytes: u64) -> Background {
    Background::new(&DeviceCosts::from_reads(cost), depth, max_bytes)
}

fn limits(policy: Policy) -> ScheduleLimits {
    ScheduleLimits {
        policy,
        rules: Rules { fairness: 8, tuning: Tuning::default(), cost: CostModel::hdd(), quantum_ns: 20 * MS },
        gap_bytes: 3 * PAGE,
        max_bytes: 16 * PAGE,
        unit: 512,
        patience: 5,
        depth: 4,
        is_few: false,
        background: background(CostModel::hdd(), 4, 16 * PAGE),
    }
}

#[allow(unsafe_code)]
fn pending(page: u64, pages: u64, class: Class, write: bool, tag: u64) -> Pending {
    let (start, len) = (std::ptr::without_provenance_mut(4096), (pages * PAGE) as usize);
    // SAFETY: the schedule never touches the memory, and nothing is carried out.
    let buf = unsafe {
        match write {
            true => RawBuf::write_from(start, len),
            false => RawBuf::read_into(start, len),
        }
    };
    let request = Request { offset: page * PAGE, buf, class, tag };
    Pending { request, arrived_ns: 0, order: 0, alone: false, again: false, client: 0 }
}

fn read(page: u64, tag: u64) -> Pending {
    pending(page, 1, Class::Planned, false, tag)
}

fn tags(request: &DeviceRequest) -> Vec<u64> {
    request.pieces.iter().map(|p| p.request.tag).collect()
}

/// A schedule with its clock and what is at the device.
struct Bench {
    schedule: Schedule,
    limits: ScheduleLimits,
    now: u64,
    at_device: VecDeque<DeviceRequest>,
}

impl Bench {
    fn new(limits: ScheduleLimits) -> Bench {
        Bench { schedule: Schedule::new(limits), limits, now: 0, at_device: VecDeque::new() }
    }

    /// One page per device request, no gaps.
    fn single(policy: Policy) -> Bench {
        Bench::new(ScheduleLimits { gap_bytes: 0, max_bytes: PAGE, ..limits(policy) })
    }

    fn push(&mut self, client: u64, one: Pending) {
        self.schedule.push(Pending { client, arrived_ns: self.now, ..one });
    }

    fn next(&mut self, load: Outstanding) -> Next {
        let mut request = DeviceRequest::new();
        let next = self.schedule.next(&mut request, load, self.now);
        if next == Next::Begun {
            check(&request, &self.limits);
            self.at_device.push_back(request);
        }
        next
    }

    /// The device's oldest request takes `ms`.
    fn finish(&mut self, ms: u64) {
        self.now += ms * MS;
        if let Some(request) = self.at_device.pop_front() {
            self.schedule.over(&request, self.now);
        }
    }

    /// Serves one request, waiting as long as the policy likes: its tags.
    fn serve(&mut self) -> Vec<u64> {
        while let Next::NotBefore(at) = self.next(Outstanding::default()) {
            assert!(at > self.now, "held for no time");
            self.now = at;
        }
        let served = tags(self.at_device.back().expect("nothing goes out and nothing is at the device"));
        self.finish(5);
        served
    }
}

/// Rules of every device request.
fn check(request: &DeviceRequest, limits: &ScheduleLimits) {
    assert!(request.pieces.len() == 1 || request.len <= limits.max_bytes);
    let mut gaps = 0;
    for pair in request.pieces.windows(2) {
        let gap = pair[1].request.offset.checked_sub(pair[0].end()).expect("in order, without overlap");
        assert!(gap <= if request.write { 0 } else { limits.gap_bytes });
        gaps += gap;
    }
    assert_eq!(gaps, request.gap_bytes);
    assert_eq!(request.offset, request.pieces[0].request.offset);
    assert_eq!(request.end(), request.pieces.last().expect("not empty").end());
    assert!(request.pieces.iter().all(|p| p.request.buf.is_write() == request.write));
    assert!(request.pieces.iter().all(|p| p.request.class == request.class));
}

#[derive(Debug, Clone)]
enum Step {
    Push { page: u64, pages: u64, class: usize, write: bool, client: u64 },
    Take { outstanding: usize },
    Finish { ms: u64 },
    Hurry { page: u64, class: usize },
    Close,
}

fn step() -> impl Strategy<Value = Step> {
    let push = (0..600u64, 1..4u64, 0..Class::COUNT, prop::bool::weighted(0.2), 0..4u64);
    let push =
        push.prop_map(|(page, pages, class, write, client)| Step::Push { page, pages, class, write, client });
    prop_oneof![
        30 => push,
        20 => (0..5usize).prop_map(|outstanding| Step::Take { outstanding }),
        15 => (0..600u64).prop_map(|ms| Step::Finish { ms }),
        8 => (0..600u64, 0..Class::COUNT).prop_map(|(page, class)| Step::Hurry { page, class }),
        1 => Just(Step::Close),
    ]
}

/// They go out once each, and no later than those of their class.
fn remove(waiting: &mut BTreeMap<u64, Class>, request: &DeviceRequest) {
    for tag in tags(request) {
        let class = waiting.remove(&tag).unwrap_or_else(|| panic!("{tag} twice"));
        assert!(request.class <= class, "{tag} of {class:?} goes out as {:?}", request.class);
    }
}

proptest! {
    #[test]
    fn nothing_is_lost_or_done_twice_and_merges_are_right(
        steps in prop::collection::vec(step(), 1..200),
        policy in 0..Policy::ALL.len(),
    ) {
        let mut bench = Bench::new(limits(Policy::ALL[policy]));
        let mut waiting = BTreeMap::new();
        let mut pushed = 0;
        for step in steps {
            match step {
                Step::Push { page, pages, class, write, client } => {
                    bench.push(client, pending(page, pages, Class::ALL[class], write, pushed));
                    waiting.insert(pushed, Class::ALL[class]);
                    pushed += 1;
                }
                Step::Take { outstanding } => {
                    let next = bench.next(Outstanding { requests: outstanding, ..Outstanding::default() });
                    prop_assert!(!matches!(next, Next::NotBefore(at) if at <= bench.now), "held for no time");
                    if next == Next::Begun {
                        let request = bench.at_device.back().expect("just begun");
                        prop_assert!(outstanding < bench.limits.depth);
                        // A lone write goes out past the bound after a while.
                        let is_guess = request.class == Class::Speculative;
                        prop_assert!(!is_guess || outstanding < bench.limits.background.requests);
                        remove(&mut waiting, request);
                    }
                }
                Step::Finish { ms } => bench.finish(ms),
                Step::Hurry { page, class } => {
                    bench.schedule.hurry(&[page * PAGE], Class::ALL[class]);
                }
                Step::Close => {
                    for read in bench.schedule.take_reads() {
                        prop_assert!(!read.request.buf.is_write());
                        prop_assert!(waiting.remove(&read.request.tag).is_some());
                    }
                }
            }
            prop_assert_eq!(bench.schedule.len(), waiting.len());
        }
        while !bench.at_device.is_empty() {
            bench.finish(1);
        }
        while !waiting.is_empty() {
            for tag in bench.serve() {
                prop_assert!(waiting.remove(&tag).is_some(), "{} twice", tag);
            }
        }
        prop_assert!(bench.schedule.is_empty());
    }
}

#[test]
fn a_read_that_somebody_waits_for_goes_before_those_that_nobody_does() {
    let hurry = |bench: &mut Bench, page: u64| bench.schedule.hurry(&[page * PAGE], Class::Demand);
    for policy in Policy::ALL {
        let mut bench = Bench::single(policy);
        // A request costs nothing but its bytes.
        bench.schedule.limits.background = background(CostModel::nvme(), 4, PAGE);
        for page in 0..20 {
            bench.push(page % 3, pending(page * 50, 1, Class::Speculative, page == 7, page));
        }
        assert_eq!(hurry(&mut bench, 12 * 50), 1, "{policy:?}");
        assert_eq!(hurry(&mut bench, 12 * 50), 0, "it is one of demand already");
        assert_eq!(hurry(&mut bench, 7 * 50), 0, "a write is none");
        assert_eq!(hurry(&mut bench, 25), 0, "there is none");
        assert_eq!(bench.next(Outstanding::default()), Next::Begun);
        let first = bench.at_device.back().expect("just begun");
        assert_eq!((first.class, tags(first)), (Class::Demand, vec![12]), "{policy:?}");
        bench.finish(5);
        let mut others: Vec<u64> = (0..19).flat_map(|_| bench.serve()).collect();
        others.sort_unstable();
        assert_eq!(others, (0..20).filter(|page| *page != 12).collect::<Vec<_>>());
        assert!(bench.schedule.is_empty());
    }
}

#[test]
fn what_goes_along_is_hurried_along() {
    let mut bench = Bench::new(limits(Policy::Elevator));
    let background = background(CostModel::network(), 4, 1 << 20);
    bench.schedule.limits.background = background;
    let block = background.hurried_bytes();
    assert!(block > 10 * PAGE, "a request costs the network as much as {block} bytes");
    // The first and the last of the second block, and those beside it.
    let (first, last) = (block.div_ceil(PAGE), (2 * block - 1) / PAGE);
    for page in [first - 1, first, last, last + 1] {
        bench.push(0, pending(page, 1, Class::Speculative, false, page));
        bench.push(0, pending(page, 1, Class::Planned, false, page));
    }
    let two = [(first + 1) * PAGE, (first + 2) * PAGE];
    assert_eq!(bench.schedule.hurry(&two, Class::Speculative), 0, "they are that already");
    assert_eq!(bench.schedule.hurry(&two, Class::Planned), 2, "the guesses of the block");
    assert_eq!(bench.schedule.hurry(&two, Class::Demand), 0, "planned reads keep their order");
    assert_eq!(bench.schedule.hurry(&[(last + 1) * PAGE], Class::Demand), 1);
}

#[test]
fn a_sweep_goes_up_and_takes_newcomers_ahead_of_it() {
    let mut bench = Bench::new(ScheduleLimits { gap_bytes: 0, ..limits(Policy::Elevator) });
    for page in [50, 10, 30, 11] {
        bench.push(0, read(page, page));
    }
    assert_eq!(bench.serve(), [10, 11]);
    bench.push(0, read(5, 5)); // behind: next sweep
    bench.push(0, read(31, 31)); // ahead: this one
    assert_eq!(bench.serve(), [30, 31]);
    assert_eq!(bench.serve(), [50]);
    assert_eq!(bench.serve(), [5]);
}

#[test]
fn nobody_starves_behind_newcomers_or_classes() {
    let victims = [Class::Demand, Class::Speculative, Class::WriteBack];
    for policy in Policy::ALL {
        for (victim, rival) in victims.iter().flat_map(|&v| [(v, v), (v, Class::Journal)]) {
            let mut bench = Bench::single(policy);
            bench.push(1, pending(1000, 1, victim, false, u64::MAX));
            // Two newcomers for each request served, always just ahead of the sweep.
            let mut served = 0;
            loop {
                for i in 0..2 {
                    bench.push(2 + i, pending(10 + served % 900 + i, 1, rival, false, served * 2 + i));
                }
                if bench.serve() == [u64::MAX] {
                    break;
                }
                served += 1;
                assert!(served < 200, "{policy:?}: {victim:?} starves behind {rival:?}");
            }
        }
    }
}

#[test]
fn classes_go_by_priority_and_background_leaves_room() {
    for policy in Policy::ALL {
        let mut bench = Bench::new(limits(policy));
        for (i, class) in Class::ALL.into_iter().rev().enumerate() {
            bench.push(0, pending(i as u64 * 100, 1, class, false, class as u64));
        }
        for want in 0..Class::Speculative as u64 {
            assert_eq!(bench.serve(), [want], "{policy:?}");
        }
        let load = |requests, bytes| Outstanding { requests, bytes, ..Outstanding::default() };
        assert_eq!(bench.next(load(3, 0)), Next::Nothing);
        assert_eq!(bench.next(load(1, bench.limits.background.bytes)), Next::Nothing);
        assert_eq!(bench.next(load(2, 0)), Next::Begun);
    }
}

/// While few are let out to measure lone reads, writes that hang must not keep all reads back.
#[test]
fn hung_writes_leave_room_for_the_few_reads_that_are_let_out() {
    let volume = CostModel::capped(MS, 3_000.0, 125e6);
    let chosen = Chosen { config: QueueConfig::default(), unit: 512, most_depth: 256 };
    for depth in [2, 4, 8] {
        let cost = CostModel { depth, ..volume };
        let limits = chosen.limits(&DeviceCosts::from_reads(cost));
        let mut bench = Bench::new(limits);
        bench.push(0, read(7, 1));
        let hung =
            Outstanding { requests: 4, background: 4, writes: 4, bytes: 4 * PAGE, ..Outstanding::default() };
        assert_eq!(bench.next(hung), Next::Begun, "with a depth of {depth}");
        bench.push(0, read(8, 2));
        let full = Outstanding { requests: 4 + depth as usize, ..hung };
        assert_eq!(bench.next(full), Next::Nothing, "with a depth of {depth}");
    }
}

#[test]
fn a_deadline_is_a_time_where_the_elevators_bound_is_a_number() {
    // Far ahead one request waits; near the arm newcomers keep coming, each of which takes half
    // a second to serve.
    let waited_ms = |policy| {
        let mut bench = Bench::single(policy);
        bench.limits.rules.fairness = 1024;
        bench.schedule = Schedule::new(bench.limits);
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
    let (elevator, deadline) = (waited_ms(Policy::Elevator), waited_ms(Policy::Deadline));
    assert!(deadline <= 500 + 17 * 500, "a batch of 16 was under way: {deadline} ms");
    assert!(elevator > 100_000, "{elevator} ms");
}

#[test]
fn deadline_prefers_reads_but_not_for_ever() {
    let mut bench = Bench::single(Policy::Deadline);
    bench.limits.rules.tuning.batch = 2;
    bench.schedule = Schedule::new(bench.limits);
    for i in 0..8 {
        bench.push(0, pending(i, 1, Class::Planned, true, 100 + i));
        bench.push(0, pending(50 + i, 1, Class::Planned, false, i));
    }
    let order: Vec<u64> = (0..10).flat_map(|_| bench.serve()).collect();
    assert_eq!(order, [0, 1, 2, 3, 100, 101, 4, 5, 6, 7], "two batches of reads, one of writes");
}

#[test]
fn anticipation_waits_for_the_reader_it_served_and_for_nobody_who_does_not_come() {
    let mut bench = Bench::single(Policy::Anticipatory);
    bench.push(1, read(10, 10));
    bench.push(2, read(100_000, 0));
    assert_eq!(bench.serve(), [10]);
    let until = bench.now + bench.limits.rules.tuning.anticipate_ns;
    assert_eq!(bench.next(Outstanding::default()), Next::NotBefore(until), "client 1 may go on");
    bench.now += MS;
    bench.push(1, read(11, 11));
    assert_eq!(bench.serve(), [11], "it did");
    // While its own request is at the device there is nothing to wait for but that.
    bench.push(1, read(12, 12));
    assert_eq!(bench.next(Outstanding::default()), Next::Begun);
    assert_eq!(bench.next(Outstanding { requests: 1, bytes: PAGE, ..Outstanding::default() }), Next::Nothing);
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
    let served_before = |policy| {
        let mut bench = Bench::single(policy);
        for i in 0..500 {
            bench.push(1, read(i, i));
        }
        assert_eq!(bench.serve().len(), 1);
        bench.push(2, read(9000, u64::MAX));
        (0..).position(|_| bench.serve() == [u64::MAX]).expect("it is served some time")
    };
    // A quantum of 20 ms is three requests of 6 ms and the one that overdraws.
    assert!(served_before(Policy::Fair) <= 4, "{}", served_before(Policy::Fair));
    assert!(served_before(Policy::Elevator) > 400);
}

#[test]
fn fair_divides_device_time_not_requests() {
    let mut bench = Bench::new(ScheduleLimits { gap_bytes: 0, max_bytes: 1, ..limits(Policy::Fair) });
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
