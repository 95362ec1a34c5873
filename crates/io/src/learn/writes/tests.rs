use super::*;
use crate::device::simulated::mechanics::Mechanics;
use crate::device::simulated::model::DeviceModel;
use crate::device::simulated::model::parameters::{DiskModel, VolumeModel};
use crate::device::timed::{Transfer, TransferKind};
use crate::write_cost::Haste;

const PAGE: u64 = 8192;
const SPAN: u64 = 4 << 30;

/// A device that is written to, in virtual time.
struct World {
    device: Box<dyn Mechanics>,
    random: snowmelt_base::random::Random,
    now: u64,
    next: usize,
    learned: WriteCosts,
}

impl World {
    fn new(model: &DeviceModel) -> World {
        World {
            device: model.build().unwrap(),
            random: snowmelt_base::random::Random(7),
            now: 0,
            next: 0,
            learned: WriteCosts::new(&CostModel::ssd()),
        }
    }

    fn until(&mut self, id: usize) -> u64 {
        loop {
            let due = self.device.next_due().expect("it is on its way");
            if let Some((_, over)) = self.device.pop_due(due).filter(|(over, _)| *over == id) {
                self.now = over;
                return over;
            }
        }
    }

    /// Starts a number of writes at once, and waits for the end of all.
    fn batch(&mut self, count: usize, bytes: u64) {
        let began = self.now;
        let mut beside = std::collections::HashMap::new();
        for _ in 0..count {
            let offset = self.random.below(SPAN / bytes) * bytes;
            beside.insert(self.next, self.learned.started(bytes, self.now));
            self.device.arrive(
                self.next,
                Transfer { offset, len: bytes, kind: TransferKind::Write },
                self.now,
            );
            self.next += 1;
        }
        while !beside.is_empty() {
            let due = self.device.next_due().expect("writes are outstanding");
            self.now = self.now.max(due);
            while let Some((id, over)) = self.device.pop_due(due) {
                let beside = beside.remove(&id).expect("it was sent");
                self.learned.finished(bytes, &beside, over - began, over);
            }
        }
    }

    fn flush(&mut self) {
        let began = self.now;
        self.device.arrive(self.next, Transfer { offset: 0, len: 0, kind: TransferKind::Flush }, began);
        self.next += 1;
        let over = self.until(self.next - 1);
        self.learned.flushed(over - began);
    }

    /// Batches with the pauses that they ask for, for so long.
    fn paced(&mut self, ms: u64) {
        let until = self.now + ms * 1_000_000;
        while self.now < until {
            let (began, cost) = (self.now, self.learned.cost());
            let count = (cost.at_once_ns() / cost.request_ns(PAGE)).max(1);
            self.batch(count as usize, PAGE);
            let device_ns = count * self.learned.cost().request_ns(PAGE);
            self.now += WriteCost::pause_ns(Haste::LEISURE, device_ns, self.now - began);
        }
    }

    /// Writes per second, as they are believed.
    fn believed(&self) -> f64 {
        1e9 / self.learned.cost().request_ns(PAGE) as f64
    }
}

/// Devices, and writes of pages per second that each allows.
const DEVICES: [(&str, f64); 5] =
    [("e3", 700.0), ("gp3", 3000.0), ("wide-slow", 3000.0), ("azure-p10", 500.0), ("gp2-100", 300.0)];

#[test]
fn the_rate_of_a_volume_is_learned_where_it_is_filled() {
    for (name, rate) in DEVICES {
        let mut world = World::new(&DeviceModel::named(name).unwrap());
        world.device.spend_credits(0);
        while world.now < 2_000_000_000 {
            world.batch(64, PAGE);
        }
        let believed = world.believed() / rate;
        assert!((0.85..1.15).contains(&believed), "{name}: {believed} of what it allows");
    }
}

/// Paced, the device is not filled: less than it allows may be believed, much more must not be.
#[test]
fn pacing_leaves_a_volume_its_credit() {
    for (name, rate) in DEVICES {
        let mut world = World::new(&DeviceModel::named(name).unwrap());
        world.device.spend_credits(0);
        world.paced(2_000);
        let (before, from) = (world.next, world.now);
        world.paced(2_000);
        let used = (world.next - before) as f64 / ((world.now - from) as f64 / 1e9) / rate;
        assert!((0.05..0.9).contains(&used), "{name}: {used} of what it allows");
    }
}

#[test]
fn caps_that_change_are_known_anew() {
    let DeviceModel::Volume(gp3) = DeviceModel::gp3() else { unreachable!("gp3 is a volume") };
    let mut world = World::new(&DeviceModel::gp3());
    for times in [1.0, 0.2, 2.0, 1.0] {
        let model = DeviceModel::Volume(VolumeModel { iops: gp3.iops * times, ..gp3.clone() });
        world.device = model.build().unwrap();
        let until = world.now + 3_000_000_000;
        while world.now < until {
            world.batch(64, PAGE);
        }
        let believed = world.believed() / (3000.0 * times);
        assert!((0.85..1.15).contains(&believed), "× {times}: {believed} of what it allows");
    }
}

/// A cache answers at once, and its flush takes what the arm does.
#[test]
fn what_a_cache_defers_is_a_part_of_the_cost() {
    let disk = |write_cache_bytes| DeviceModel::Disk(DiskModel { write_cache_bytes, ..DiskModel::default() });
    let mut world = World::new(&disk(64 << 20));
    for round in 0..50 {
        world.batch(8 + 8 * (round % 2), PAGE);
        world.flush();
    }
    let cost = world.learned.cost();
    let took = world.now as f64 / 600.0;
    let believed = cost.request_ns(PAGE) as f64 / took;
    assert!((0.4..1.3).contains(&believed), "{believed} of what a write takes: {cost:?}");
    assert!(cost.unflushed() < 8, "{cost:?}");
    let mut through = World::new(&disk(0));
    for round in 0..50 {
        through.batch(8 + 8 * (round % 2), PAGE);
        through.flush();
    }
    let cost = through.learned.cost();
    assert!(cost.deferred_ns < cost.latency_ns / 10 && cost.unflushed() > 8, "{cost:?}");
}

/// Costs that no device has a hundred times over, but that may be believed at first.
fn any_cost(random: &mut snowmelt_base::random::Random) -> CostModel {
    let mut figure =
        |most: u64| (1.0 + random.below(1000) as f64 / 1e3).powf(random.below(64) as f64) as u64 % most + 1;
    let cost = CostModel {
        latency_ns: figure(1_000_000_000_000),
        ns_per_request: figure(1_000_000_000_000),
        bytes_per_s: figure(1_000_000_000_000_000),
        ..CostModel::ssd()
    };
    assert!(cost.is_possible());
    cost
}

#[test]
fn no_order_of_writes_and_flushes_makes_a_belief_of_nothing() {
    let mut random = snowmelt_base::random::Random(5);
    for case in 0..2000 {
        let mut learned = WriteCosts::new(&any_cost(&mut random));
        let (mut now, mut out) = (random.below(1 << 40), Vec::new());
        let kinds = [[4, 4, 1], [1, 1, 0], [0, 0, 1], [3, 3, 9]][case % 4];
        for _ in 0..random.below(200) {
            now += [0, 1, random.below(1 << 20), random.below(1 << 36)][random.below(4) as usize];
            let all: u64 = kinds.iter().sum();
            let kind = random.below(all);
            if kind < kinds[0] {
                let bytes = 1 << random.below(24);
                out.push((bytes, learned.started(bytes, now), now));
            } else if kind < kinds[0] + kinds[1] {
                if !out.is_empty() {
                    let (bytes, beside, began) = out.swap_remove(random.below(out.len() as u64) as usize);
                    match random.below(8) {
                        0 => learned.failed(bytes),
                        _ => drop(learned.finished(bytes, &beside, now - began, now)),
                    }
                }
            } else {
                learned.flushed([0, random.below(1 << 24)][random.below(2) as usize]);
            }
            let costs = learned.costs;
            let [flush_ns, deferred_ns] = learned.flushes.costs();
            for figure in [costs.request_ns, costs.byte_ns, learned.alone.latency_ns()] {
                assert!(figure.is_finite() && figure >= 0.0, "case {case}: {costs:?}");
            }
            assert!(
                flush_ns >= 0.0 && deferred_ns >= 0.0,
                "case {case}: a flush {flush_ns}, a write {deferred_ns}"
            );
            assert!(flush_ns.is_finite() && deferred_ns.is_finite());
            let cost = learned.cost();
            assert!(cost.window(PAGE) > 0 && cost.unflushed() > 0 && cost.piece_bytes() > 0);
        }
    }
}
