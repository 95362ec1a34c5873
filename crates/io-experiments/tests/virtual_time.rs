//! The purpose of each policy, on simulated devices in virtual time; and a policy that holds a
//! device in real time.

#[path = "../../io/tests/support/mod.rs"]
mod support;

use std::sync::{Arc, Mutex};

use snowmelt_base::random::Random;
use snowmelt_io::*;
use snowmelt_io_experiments::PolicyName;
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

fn simulated(model: DeviceModel, bytes: &[u8], clock: &Clock) -> Arc<dyn Device> {
    let memory = Arc::new(MemoryDevice::from_bytes("memory", bytes.to_vec()));
    Arc::new(SimulatedDevice::new(model, memory, clock))
}

#[test]
fn the_elevator_beats_fifo_on_a_disk() {
    let time = |policy: PolicyName| {
        let bytes = vec![0; 64 << 20];
        let clock = Clock::virtual_time(1);
        let disk = DiskModel { capacity_bytes: 128 << 20, ..DiskModel::default() };
        let device = simulated(DeviceModel::Disk(disk), &bytes, &clock);
        let sink = Remember::new(&clock);
        let config =
            QueueConfig { policy: policy.policy(), gap_bytes: Some(0), depth: Some(1), ..Default::default() };
        let queue = DeviceQueue::open(device, config, clock.clone(), sink.clone()).unwrap();
        let mut random = Random(3);
        let places: Vec<_> = (0..500).map(|_| (random.below(8000) * 8192, 8192)).collect();
        let mut batch = Batch::reads(&places, Class::Planned, 0);
        queue.submit(&mut batch.requests);
        sink.wait_for(500);
        clock.now_ns()
    };
    let (fifo, elevator) = (time(PolicyName::Fifo), time(PolicyName::Elevator));
    assert!(elevator * 5 < fifo * 4, "fifo {fifo} ns, elevator {elevator} ns");
}

/// `clients` each read a run of their own, far from the others', page after page; returns when
/// each was done, in ms.
fn scanners(policy: PolicyName, clients: usize, pages: u64) -> Vec<u64> {
    let bytes = vec![0; 1 << 20];
    let clock = Clock::virtual_time(clients);
    let disk = DiskModel { capacity_bytes: 1 << 40, ..DiskModel::default() };
    let inner = Arc::new(Far(MemoryDevice::from_bytes("memory", bytes)));
    let device: Arc<dyn Device> = Arc::new(SimulatedDevice::new(DeviceModel::Disk(disk), inner, &clock));
    let sink = Remember::new(&clock);
    let config =
        QueueConfig { policy: policy.policy(), gap_bytes: Some(0), depth: Some(1), ..Default::default() };
    let queue = DeviceQueue::open(device, config, clock.clone(), sink.clone()).unwrap();
    let over = Mutex::new(vec![0; clients]);
    participants(&clock, clients, |i| {
        for page in 0..pages {
            clock.charge_cpu(200_000);
            let tag = i as u64 * 1_000_000 + page;
            let place = (i as u64 * (1 << 40) / 64 + page * 8192, 8192);
            let mut batch = Batch::reads(&[place], Class::Demand, tag);
            queue.submit(&mut batch.requests);
            sink.wait_for_all(tag..tag + 1);
        }
        over.lock().unwrap()[i] = clock.now_ns() / MS;
    });
    over.into_inner().unwrap()
}

/// A device of any length whose bytes are all the same few.
struct Far(MemoryDevice);

impl ReadDevice for Far {
    fn name(&self) -> &Arc<str> {
        self.0.name()
    }
    fn len(&self) -> Result<u64, IoError> {
        Ok(1 << 40)
    }
    fn read_at(&self, bufs: &mut [std::io::IoSliceMut<'_>], _: u64) -> Result<(), IoError> {
        self.0.read_at(bufs, 0)
    }
}

impl Device for Far {
    fn set_len(&self, _: u64) -> Result<(), IoError> {
        Ok(())
    }
    fn write_at(&self, bufs: &[std::io::IoSlice<'_>], _: u64) -> Result<(), IoError> {
        self.0.write_at(bufs, 0)
    }
    fn sync(&self) -> Result<(), IoError> {
        Ok(())
    }
}

#[test]
fn anticipation_keeps_parallel_scans_sequential() {
    let (alone, pages) = (scanners(PolicyName::Elevator, 1, 800)[0], 800);
    let last = |policy| *scanners(policy, 4, pages / 4).iter().max().unwrap();
    let (fifo, elevator, anticipatory) =
        (last(PolicyName::Fifo), last(PolicyName::Elevator), last(PolicyName::Anticipatory));
    eprintln!("one scan {alone} ms; four: fifo {fifo}, elevator {elevator}, anticipatory {anticipatory} ms");
    assert!(anticipatory * 3 < elevator && anticipatory * 3 < fifo);
    assert!(anticipatory < alone * 3 / 2, "as if one after the other");
}

#[test]
fn deadline_bounds_the_wait_of_a_read_behind_a_flood() {
    let waited = |policy: PolicyName| {
        let bytes = vec![0; 1 << 20];
        let clock = Clock::virtual_time(2);
        let inner = Arc::new(Far(MemoryDevice::from_bytes("memory", bytes)));
        let device: Arc<dyn Device> = Arc::new(SimulatedDevice::new(DeviceModel::hdd(), inner, &clock));
        let sink = Remember::new(&clock);
        let config = QueueConfig {
            policy: policy.policy(),
            gap_bytes: Some(0),
            depth: Some(1),
            fairness: 1 << 30,
            ..Default::default()
        };
        let queue = DeviceQueue::open(device, config, clock.clone(), sink.clone()).unwrap();
        // One request far ahead, and newcomers between it and the arm, 16 at a time.
        let places: Vec<_> = (0..3000u64).map(|i| (i * 100 * 8192, 8192)).collect();
        let mut flood = Batch::reads(&places, Class::Planned, 0);
        let mut far = Batch::reads(&[(1 << 39, 8192)], Class::Planned, FAR);
        const FAR: u64 = 1_000_000;
        queue.submit(&mut flood.requests.drain(..16).collect());
        queue.submit(&mut far.requests);
        for done in 0..2900 {
            sink.wait_for(done + 1);
            if sink.result(FAR).is_some() {
                break;
            }
            queue.submit(&mut flood.requests.drain(..1).collect());
        }
        let waited = clock.now_ns() / MS;
        queue.close();
        waited
    };
    let (elevator, deadline) = (waited(PolicyName::Elevator), waited(PolicyName::Deadline));
    assert!(deadline < 1000 && elevator > 10_000, "deadline {deadline} ms, elevator {elevator} ms");
}

#[test]
fn fair_keeps_a_small_client_quick_beside_a_flood() {
    let mean_ms = |policy: PolicyName| {
        let bytes = vec![0; 1 << 20];
        let clock = Clock::virtual_time(2);
        let inner = Arc::new(Far(MemoryDevice::from_bytes("memory", bytes)));
        let device: Arc<dyn Device> = Arc::new(SimulatedDevice::new(DeviceModel::hdd(), inner, &clock));
        let sink = Remember::new(&clock);
        let config =
            QueueConfig { policy: policy.policy(), gap_bytes: Some(0), depth: Some(1), ..Default::default() };
        let queue = DeviceQueue::open(device, config, clock.clone(), sink.clone()).unwrap();
        let flood: Vec<_> = (0..3000).map(|i| (i * 100 * 8192, 8192)).collect();
        let mut flood = Batch::reads(&flood, Class::Demand, 0);
        queue.submit_for(1, &mut flood.requests);
        let began = clock.now_ns();
        for i in 0..10 {
            let tag = 100_000 + i;
            let mut one = Batch::reads(&[((1 << 38) + i * (1 << 30), 8192)], Class::Demand, tag);
            queue.submit_for(2, &mut one.requests);
            sink.wait_for_all(tag..tag + 1);
        }
        let mean_ms = (clock.now_ns() - began) / 10 / MS;
        queue.close(); // the flood's buffers are still in use
        mean_ms
    };
    let (fifo, elevator, fair) =
        (mean_ms(PolicyName::Fifo), mean_ms(PolicyName::Elevator), mean_ms(PolicyName::Fair));
    assert!(fair < 60, "{fair} ms");
    assert!(elevator > 1000 && fifo > 1000, "elevator {elevator} ms, fifo {fifo} ms");
}

#[test]
fn in_real_time_a_simulated_device_is_held_and_let_go() {
    let bytes = pattern(8 << 20);
    let clock = Clock::real();
    let device = simulated(DeviceModel::nvme(), &bytes, &clock);
    let sink = Remember::new(&clock);
    let cost = CostModel { ns_per_request: 0, ..CostModel::nvme() };
    let config =
        QueueConfig { policy: PolicyName::Anticipatory.policy(), cost: Some(cost), ..Default::default() };
    let queue = DeviceQueue::open(device, config, clock.clone(), sink.clone()).unwrap();
    let mut first = Batch::reads(&[(0, 8192)], Class::Demand, 0);
    let mut second = Batch::reads(&[(4 << 20, 8192)], Class::Demand, 1);
    let began = clock.now_ns();
    queue.submit_for(1, &mut first.requests);
    queue.submit_for(2, &mut second.requests);
    sink.wait_for(2);
    let ms = (clock.now_ns() - began) / MS;
    assert!((6..5000).contains(&ms), "client 1 was waited for: {ms} ms");
}
