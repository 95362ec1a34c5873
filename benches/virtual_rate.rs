//! How much real time virtual time costs: requests simulated per second, in place and by
//! batches through the queue.
//!
//!     virtual_rate [CLIENTS=16]
#![allow(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use snowmelt_base::random::lcg;
use snowmelt_io::*;

/// Counts completions; clients wait for their own.
struct Count {
    done: Vec<AtomicU64>,
    event: EventCount,
}

impl Sink for Count {
    fn complete(&self, tag: u64, result: Result<(), IoError>) {
        result.expect("memory does not fail");
        self.done[tag as usize].fetch_add(1, Ordering::Release);
        self.event.notify_all();
    }
}

fn run(model: DeviceModel, clients: usize, batch: u64, rounds: u64) -> (f64, f64) {
    let clock = Clock::virtual_time(2);
    let memory = Arc::new(MemoryDevice::from_bytes("memory", vec![1; 256 << 20]));
    let device = Arc::new(SimulatedDevice::new(model, memory, &clock));
    let done = (0..clients).map(|_| AtomicU64::new(0)).collect();
    let sink = Arc::new(Count { done, event: EventCount::new(&clock) });
    let queue =
        DeviceQueue::open(device, QueueConfig::default(), clock.clone(), sink.clone()).expect("a queue");
    let began = Instant::now();
    std::thread::scope(|scope| {
        for (i, ticket) in clock.reserve(clients).into_iter().enumerate() {
            let (queue, sink, clock) = (&queue, &sink, &clock);
            scope.spawn(move || {
                let _guard = ticket.enter();
                let mut buf = AlignedBuf::new(8192 * batch as usize);
                let mut x = i as u64;
                let mut requests = Vec::new();
                for round in 1..=rounds {
                    clock.charge_cpu(50_000);
                    for part in 0..batch {
                        let offset = (lcg(&mut x) >> 33) % (32 << 10) * 8192;
                        if batch == 1 {
                            queue.read_now(offset, &mut buf, Class::Demand).expect("memory does not fail");
                            continue;
                        }
                        // SAFETY: each part has its own place in the buffer, which outlives the
                        // wait below.
                        let buf =
                            unsafe { RawBuf::read_into(buf.as_mut_ptr().add(8192 * part as usize), 8192) };
                        requests.push(Request { offset, buf, class: Class::Planned, tag: i as u64 });
                    }
                    queue.submit(&mut requests);
                    if batch > 1 {
                        let mine = &sink.done[i];
                        sink.event.wait_until(|| mine.load(Ordering::Acquire) == round * batch);
                    }
                }
            });
        }
    });
    let requests = clients as u64 * batch * rounds;
    (requests as f64 / began.elapsed().as_secs_f64(), requests as f64 / clock.now_ns() as f64 * 1e9)
}

fn main() {
    let clients = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(16);
    for (name, model) in
        [("hdd", DeviceModel::hdd()), ("wide-slow", DeviceModel::wide_slow()), ("nvme", DeviceModel::nvme())]
    {
        for (batch, rounds) in [(1, 3000), (64, 200)] {
            let (real, simulated) = run(model.clone(), clients, batch, rounds);
            println!(
                "{name:<10} {clients} clients, batches of {batch:>2}: {real:>9.0} per real second, {simulated:>9.0} per simulated second"
            );
        }
    }
}
