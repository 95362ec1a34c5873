use std::collections::HashMap;

use super::*;
use crate::device::simulated::mechanics::Mechanics;
use crate::device::simulated::model::DeviceModel;
use crate::device::simulated::model::parameters::VolumeModel;
use crate::device::timed::{Transfer, TransferKind};

mod kalman;
mod methods;

const SPAN: u64 = 16 << 30;
const PAGE: u64 = 8192;
const MS: u64 = 1_000_000;

/// A closed load: so many readers of pages, and so many longer reads that want to be outstanding.
#[derive(Clone, Copy, Debug)]
struct TestLoad {
    readers: usize,
    long: usize,
    long_bytes: u64,
}

impl TestLoad {
    const READERS: TestLoad = TestLoad { readers: 16, long: 0, long_bytes: PAGE };
    const MANY: TestLoad = TestLoad { readers: 256, long: 0, long_bytes: PAGE };
    const LONG: TestLoad = TestLoad { readers: 1, long: 64, long_bytes: 256 << 10 };
    const BOTH: TestLoad = TestLoad { readers: 16, long: 16, long_bytes: 256 << 10 };
    const ALL: [TestLoad; 4] = [TestLoad::READERS, TestLoad::MANY, TestLoad::LONG, TestLoad::BOTH];
}

/// Requests and bytes moved in some time.
#[derive(Clone, Copy, Default)]
struct Moved {
    requests: f64,
    bytes: f64,
    ns: f64,
}

impl Moved {
    fn bytes_per_request(&self) -> f64 {
        self.bytes / self.requests
    }

    fn ns_per_request(&self) -> f64 {
        self.ns / self.requests
    }

    /// Requests and bytes per nanosecond.
    fn rates(&self) -> [f64; 2] {
        [self.requests / self.ns, self.bytes / self.ns]
    }
}

/// A device with a load on it, in virtual time.
struct World {
    device: Box<dyn Mechanics>,
    random: snowmelt_base::random::Random,
    now: u64,
    next: usize,
    outstanding: HashMap<usize, Out>,
    /// Readers' and long ones.
    counts: [usize; 2],
    estimator: Estimator,
    /// How far the estimator's clock is ahead of the device's, or behind.
    ahead_ns: i64,
    looks: Vec<Seen>,
    /// Requests and bytes that were moved since the last look.
    unseen: Moved,
}

/// A look, and what the estimator believed after it.
struct Seen {
    now: u64,
    /// The mean length of the requests, and the time of the device for one.
    bytes: f64,
    ns: f64,
    is_limit: bool,
    costs: Costs,
}

struct Out {
    is_long: bool,
    bytes: u64,
    beside: Beside,
    began: u64,
}

impl World {
    fn new(model: &DeviceModel) -> World {
        World::with(model, &CostModel::ssd())
    }

    /// A device of which this is believed at first.
    fn with(model: &DeviceModel, prior: &CostModel) -> World {
        World {
            device: model.build().unwrap(),
            random: snowmelt_base::random::Random(7),
            now: 0,
            next: 0,
            outstanding: HashMap::new(),
            counts: [0, 0],
            estimator: Estimator::new(prior),
            ahead_ns: 0,
            looks: Vec::new(),
            unseen: Moved::default(),
        }
    }

    /// Counts a request; `has_looked` says whether the estimator had a look after it.
    fn note(&mut self, bytes: f64, has_looked: bool) {
        self.unseen.requests += 1.0;
        self.unseen.bytes += bytes;
        if has_looked {
            let before = self.looks.last().map_or(0, |look| look.now);
            self.unseen.ns = (self.now - before) as f64;
            let moved = std::mem::take(&mut self.unseen);
            self.looks.push(Seen {
                now: self.now,
                bytes: moved.bytes_per_request(),
                ns: moved.ns_per_request(),
                is_limit: self.estimator.is_limit,
                costs: self.estimator.costs,
            });
        }
    }

    fn seen(&self, ns: u64) -> u64 {
        ns.saturating_add_signed(self.ahead_ns)
    }

    /// Another device under the same load, from the next request on.
    fn becomes(&mut self, model: &DeviceModel) {
        while !self.outstanding.is_empty() {
            self.wait();
        }
        self.device = model.build().unwrap();
    }

    fn run(&mut self, load: TestLoad, ms: u64) -> Moved {
        self.run_at(load, ms, None)
    }

    /// Runs a load for `ms` milliseconds; with a depth, so many are outstanding, whatever is
    /// believed.
    fn run_at(&mut self, load: TestLoad, ms: u64, depth: Option<usize>) -> Moved {
        let (from, until) = (self.now, self.now + ms * MS);
        let mut moved = Moved { requests: 0.0, bytes: 0.0, ns: 0.0 };
        while self.now < until {
            self.send(load, depth);
            let (requests, bytes) = self.wait();
            moved.requests += requests;
            moved.bytes += bytes;
        }
        moved.ns = (self.now - from) as f64;
        moved
    }

    fn send(&mut self, load: TestLoad, depth: Option<usize>) {
        let is_apart = depth.is_none();
        let depth = depth.unwrap_or(self.estimator.cost().depth as usize);
        loop {
            let is_long = match self.counts {
                [readers, _] if readers < load.readers && self.outstanding.len() < depth => false,
                [_, long] if long < load.long => true,
                [readers, _] if readers < load.readers => false,
                _ => return,
            };
            // Long ones have some room of their own, as guesses have in a queue.
            let room = if is_long && is_apart && depth >= 4 { depth + 4 } else { depth };
            if self.outstanding.len() >= room {
                self.estimator.is_full();
                return;
            }
            let bytes = if is_long { load.long_bytes } else { PAGE };
            let offset = self.random.below(SPAN / bytes) * bytes;
            let beside = self.estimator.started(bytes, self.seen(self.now));
            self.counts[usize::from(is_long)] += 1;
            self.outstanding.insert(self.next, Out { is_long, bytes, beside, began: self.seen(self.now) });
            self.device.arrive(
                self.next,
                Transfer { offset, len: bytes, kind: TransferKind::Read },
                self.now,
            );
            self.next += 1;
        }
    }

    /// The next completions: requests and bytes.
    fn wait(&mut self) -> (f64, f64) {
        let due = self.device.next_due().expect("requests are outstanding");
        let (mut requests, mut bytes) = (0.0, 0.0);
        while let Some((id, over)) = self.device.pop_due(due) {
            let out = self.outstanding.remove(&id).expect("it was sent");
            self.counts[usize::from(out.is_long)] -= 1;
            let done = Done {
                write: false,
                bytes: out.bytes,
                beside: out.beside,
                taken_ns: self.seen(over).saturating_sub(out.began),
                has_failed: false,
            };
            let is_new = self.estimator.finished(&done, self.seen(over));
            requests += 1.0;
            bytes += out.bytes as f64;
            self.now = self.now.max(over);
            // A first word of the latency is no look.
            self.note(out.bytes as f64, is_new && self.estimator.tick.requests == 0.0);
        }
        self.now = self.now.max(due);
        (requests, bytes)
    }
}

/// The most that is moved under a load, at any depth.
fn best(model: &DeviceModel, load: TestLoad) -> [f64; 2] {
    let at = |depth| {
        let mut world = World::new(model);
        world.run_at(load, 500, Some(depth));
        world.run_at(load, 2_000, Some(depth)).rates()
    };
    let all = [4, 8, 16, 32, 64, 128, 256].map(at);
    all.into_iter().fold([0.0, 0.0], |most, now| [0, 1].map(|i| f64::max(most[i], now[i])))
}

/// Devices without an arm.
const VOLUMES: [&str; 7] = ["wide-slow", "gp3", "gp2-100", "azure-p10", "e3", "ssd", "nvme"];

#[test]
fn volumes_are_known_after_a_second_and_used() {
    for (name, load) in VOLUMES.iter().flat_map(|name| TestLoad::ALL.map(|load| (name, load))) {
        let model = DeviceModel::named(name).unwrap();
        let mut world = World::new(&model);
        world.run(load, 1_000);
        let now = world.run(load, 1_000);
        let believed = world.estimator.costs.ns(now.bytes_per_request()) / now.ns_per_request();
        let what = format!("{name}, {load:?}");
        match world.estimator.is_limit {
            true => assert!((0.95..1.05).contains(&believed), "{what}: {believed} of what it takes"),
            false => assert!(believed < 1.05, "{what}: {believed} of what it takes"),
        }
        let [best, now] = [best(&model, load), now.rates()];
        // Some of both is as good as the most of either.
        let used = now[0] / best[0] + now[1] / best[1];
        assert!(used > 0.9, "{what}: moves {used} of what is possible");
    }
}

/// A volume like gp3 with caps so many times as high.
fn gp3(times: f64) -> DeviceModel {
    let DeviceModel::Volume(v) = DeviceModel::gp3() else { unreachable!("gp3 is a volume") };
    DeviceModel::Volume(VolumeModel { iops: v.iops * times, bytes_per_s: v.bytes_per_s * times, ..v })
}

#[test]
fn a_device_that_changes_is_known_anew_after_two_seconds() {
    for load in TestLoad::ALL {
        let mut world = World::new(&gp3(1.0));
        world.run(load, 2_000);
        for times in [0.5, 2.0, 0.1, 1.0] {
            world.becomes(&gp3(times));
            world.run(load, 1_500);
            let now = world.run(load, 500);
            let believed = world.estimator.costs.ns(now.bytes_per_request()) / now.ns_per_request();
            assert!((0.9..1.1).contains(&believed), "{load:?}, × {times}: {believed} of what it takes");
        }
    }
}

/// The time that a lone page takes of a device, in the mean.
fn alone_ns(model: &DeviceModel) -> f64 {
    let one = TestLoad { readers: 1, long: 0, long_bytes: PAGE };
    World::new(model).run_at(one, 1_000, Some(1)).ns_per_request()
}

#[test]
fn a_lone_read_is_known_beside_long_ones() {
    let mut wrong = Vec::new();
    let loads = [TestLoad::LONG, TestLoad::BOTH, TestLoad { readers: 4, long: 16, long_bytes: 1 << 20 }];
    for (name, load) in VOLUMES.iter().flat_map(|name| loads.map(|load| (name, load))) {
        let model = DeviceModel::named(name).unwrap();
        let alone_ns = alone_ns(&model);
        let mut world = World::new(&model);
        for second in 1..=25 {
            world.run(load, 1_000);
            let believed = world.estimator.alone.ns(PAGE as f64) / alone_ns;
            if !(0.4..2.5).contains(&believed) {
                wrong.push(format!("{name}, {load:?}, {second} s: {believed:.2} of what it takes alone"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A suspended machine and a clock that is set are not taken for the device.
#[test]
fn a_clock_that_jumps_changes_no_belief() {
    const HOUR_NS: u64 = 3_600 * 1_000 * MS;
    let mut random = snowmelt_base::random::Random(snowmelt_base::test_seed(3));
    for (name, load) in VOLUMES[..5].iter().flat_map(|name| TestLoad::ALL.map(|load| (name, load))) {
        let mut world = World::new(&DeviceModel::named(name).unwrap());
        world.ahead_ns = HOUR_NS as i64;
        world.run(load, 1_000);
        for _ in 0..4 {
            let jump = random.below(2 * HOUR_NS) as i64 - HOUR_NS as i64;
            world.ahead_ns = (world.ahead_ns + jump).max(0);
            world.run(load, 500);
            let now = world.run(load, 500);
            let cost = world.estimator.cost();
            let believed = world.estimator.costs.ns(now.bytes_per_request()) / now.ns_per_request();
            let what = format!("{name}, {load:?}, {} s: {believed} of what it takes", jump / 1_000_000_000);
            assert!(believed < 1.1 && (believed > 0.9 || !world.estimator.is_limit), "{what}");
            assert!(cost.latency_ns > 50_000 && cost.latency_ns < 100 * MS, "{what}: {cost:?}");
        }
    }
}

/// Beliefs to begin with: usual devices, volumes of all sizes, and as learned where one
/// thing alone was scarce.
fn priors() -> Vec<CostModel> {
    let shared = |cost: CostModel, request_share| CostModel { law: Law::Caps { request_share }, ..cost };
    let volumes = [(100.0, 1e6), (3e3, 1.3e8), (2e4, 9e8), (1e6, 1e10), (100.0, 1e10), (1e6, 1e6)];
    let capped = volumes.map(|(requests, bytes)| CostModel::capped(1_000_000, requests, bytes));
    let usual = [CostModel::hdd(), CostModel::ssd(), CostModel::network(), CostModel::nvme()];
    let learned = [0.0, 1.0].map(|share| shared(CostModel::nvme(), share));
    usual.into_iter().chain(capped).chain(learned).collect()
}

/// Devices that do what no disk with an arm can.
fn outruns_arms(name: &str) -> bool {
    ["ssd", "nvme"].contains(&name)
}

#[test]
fn what_was_believed_of_another_device_is_forgotten_within_a_second() {
    let mut wrong = Vec::new();
    for (name, load) in VOLUMES.iter().flat_map(|name| TestLoad::ALL.map(|load| (name, load))) {
        let model = DeviceModel::named(name).unwrap();
        let best = best(&model, load);
        for prior in priors() {
            let mut world = World::with(&model, &prior);
            world.run(load, 1_000);
            let now = world.run(load, 1_000);
            let believed = world.estimator.costs.ns(now.bytes_per_request()) / now.ns_per_request();
            let least = if world.estimator.is_limit { 0.9 } else { 0.0 };
            // Reads of a volume one after the other look like those of an arm that need not go far.
            let may_be_arm = prior.has_arm() && believed >= 1.0 && !outruns_arms(name);
            let now = now.rates();
            let used = now[0] / best[0] + now[1] / best[1];
            let is_known = may_be_arm || (least..1.1).contains(&believed);
            if !is_known || used < 0.9 {
                wrong.push(format!(
                    "{name}, {load:?}, at first {prior:?}: believes {believed:.2} of what a request takes, \
                     moves {used:.2} of what is possible"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_disk_that_is_believed_to_be_one_stays_one_and_other_beliefs_end_alike() {
    for (name, load) in ["hdd", "st1-500"].iter().flat_map(|name| TestLoad::ALL.map(|load| (name, load))) {
        let model = DeviceModel::named(name).unwrap();
        let moved = |prior: &CostModel| {
            let mut world = World::with(&model, prior);
            world.run(load, 1_000);
            (world.run(load, 4_000).rates(), world.estimator.kind)
        };
        let (usual, _) = moved(&CostModel::ssd());
        for prior in priors() {
            let (now, kind) = moved(&prior);
            let what = format!("{name}, {load:?}, at first {prior:?}");
            assert!(!prior.has_arm() || kind == CurveKind::Arm, "{what}");
            // Taken for a volume it gets fewer at once than it could sort.
            let part = (now[0] / usual[0] + now[1] / usual[1]) / 2.0;
            assert!(
                prior.has_arm() || part > 0.7,
                "{what}: {part} of what is moved otherwise, taken for {kind:?}"
            );
        }
    }
}

#[test]
fn no_order_of_reads_makes_a_belief_of_nothing() {
    let mut random = snowmelt_base::random::Random(6);
    for case in 0..3000 {
        let mut figure = |most: u64| 10f64.powf(random.below(16_000) as f64 / 1e3) as u64 % most + 1;
        let prior = CostModel {
            latency_ns: figure(1_000_000_000_000),
            ns_per_request: figure(1_000_000_000_000),
            bytes_per_s: figure(1_000_000_000_000_000),
            depth: figure(1024) as u32,
            law: if case % 2 == 0 { Law::Sum } else { Law::Caps { request_share: 0.5 } },
        };
        assert!(prior.is_possible());
        let mut estimator = Estimator::new(&prior);
        let (mut now, mut out) = (random.below(1 << 40), Vec::new());
        let (longest, bits) = (1 << random.below(37), 1 + random.below(24));
        for _ in 0..random.below(600) {
            now += [0, 1, random.below(1 << 20), random.below(longest)][random.below(4) as usize];
            if random.below(200) == 0 {
                now = now.saturating_sub(random.below(1 << 34));
            }
            if random.below(7) == 0 {
                estimator.is_full();
            }
            if out.len() < estimator.cost().depth as usize && random.below(2) == 0 {
                let bytes = random.below(1 << bits);
                out.push((bytes, estimator.started(bytes, now), now));
            } else if !out.is_empty() {
                let (bytes, beside, began) = out.swap_remove(random.below(out.len() as u64) as usize);
                let has_failed = random.below(8) == 0;
                let taken_ns = now.saturating_sub(began);
                estimator.finished(&Done { write: false, bytes, beside, taken_ns, has_failed }, now);
            }
            let costs = estimator.costs;
            for figure in [costs.request_ns, costs.byte_ns, estimator.alone.latency_ns()] {
                assert!(figure.is_finite() && figure > 0.0, "case {case}: {costs:?}");
            }
            let cost = estimator.cost();
            assert!((1..=256).contains(&cost.depth), "case {case}: {cost:?}");
            assert!((0.0..=1.0).contains(&cost.request_share()), "case {case}: {cost:?}");
        }
    }
}

/// After one look at long reads, short ones alone must not raise the cost of a byte for ever: then
/// no request would ever count as slow again.
#[test]
fn what_is_not_read_any_more_is_not_forgotten_into_nonsense() {
    let mut world = World::new(&DeviceModel::gp3());
    world.run(TestLoad::BOTH, 3_000);
    let byte_ns = world.estimator.alone.byte_ns();
    world.run(TestLoad::READERS, 200_000);
    let after_ns = world.estimator.alone.byte_ns();
    assert!(after_ns < 2.0 * byte_ns, "{byte_ns} ns per byte became {after_ns}");
    world.becomes(&gp3(0.1));
    let moved = world.run(TestLoad::READERS, 12_000);
    let believed = world.estimator.costs.request_ns / moved.ns_per_request();
    assert!((0.9..1.1).contains(&believed), "a slower device is believed at {believed} of its cost");
}

/// Time in which all reads failed counts for none.
#[test]
fn failures_after_a_success_cost_nothing() {
    let mut world = World::new(&DeviceModel::gp3());
    world.run(TestLoad::READERS, 2_000);
    let before = world.estimator.costs.request_ns;
    read_alone(&mut world, &[600]);
    for _ in 0..2_000 {
        let beside = world.estimator.started(PAGE, world.now);
        world.now += 30 * MS;
        let taken_ns = 30 * MS;
        let done = Done { write: false, bytes: PAGE, beside, taken_ns, has_failed: true };
        world.estimator.finished(&done, world.now);
    }
    read_alone(&mut world, &[600; 8]);
    world.run(TestLoad::READERS, 100);
    let ratio = world.estimator.costs.request_ns / before;
    assert!((0.3..2.0).contains(&ratio), "{ratio} times as dear after a minute of failures");
}

/// Lone reads of pages, one after the other, of these times.
fn read_alone(world: &mut World, times_us: &[u64]) {
    for us in times_us {
        let beside = world.estimator.started(PAGE, world.now);
        world.now += us * 1000;
        let done = Done { write: false, bytes: PAGE, beside, taken_ns: us * 1000, has_failed: false };
        world.estimator.finished(&done, world.now);
    }
}

/// A throttle lets the first reads wait, and after them only long ones are read.
#[test]
fn what_answered_at_once_some_time_has_no_arm() {
    let mut world = World::new(&DeviceModel::gp3());
    read_alone(&mut world, &[170, 20_000, 160, 20_000, 20_000, 170, 20_000, 20_000]);
    assert_eq!(world.estimator.kind, CurveKind::Caps, "{:?}", world.estimator.costs);
    for prior in [CostModel::ssd(), CostModel::hdd()] {
        let mut world = World::with(&DeviceModel::gp3(), &prior);
        world.estimator.kind = CurveKind::Arm;
        read_alone(&mut world, &[170, 160, 180, 170, 190]);
        world.run(TestLoad { readers: 0, ..TestLoad::LONG }, 4_000);
        assert_eq!(world.estimator.kind, CurveKind::Caps, "{:?}", world.estimator.costs);
    }
}
