//! A job through a queue: every completion submits the next request, from wherever the engine
//! delivers it. Each slot is a client of its own, as a thread with one request at a time is.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;

use super::buffers::Buffers;
use super::stamp::stamp;
use super::tally::{JobTally, Start};
use super::{Job, JobResult};
use crate::config::{IoEngine, QueueConfig};
use crate::device::Device;
use crate::device_queue::DeviceQueue;
use crate::error::{IoError, Operation};
use crate::memory::buffer::RawBuf;
use crate::queue::request::{Class, Request, Sink};
use crate::time::clock::Clock;
use crate::time::event_count::EventCount;

/// A request in flight; the tag is its place in the list.
struct JobSlot {
    /// Addresses of what is read into, and of what is written from.
    addresses: (usize, usize),
    write: AtomicBool,
    began_ns: AtomicU64,
}

struct JobPump {
    queue: OnceLock<Weak<DeviceQueue>>,
    job: Job,
    slots: Vec<JobSlot>,
    next: AtomicU64,
    start: Start,
    tally: Mutex<JobTally>,
    outstanding: AtomicU64,
    stopped: AtomicBool,
    failed: OnceLock<IoError>,
    over: EventCount,
}

impl JobPump {
    /// The next request of `tag`, or `None` when it is enough.
    fn request(&self, tag: u64, now_ns: u64) -> Option<Request> {
        if self.start.is_over(now_ns) || self.stopped.load(Ordering::Relaxed) {
            return None;
        }
        let i = self.next.fetch_add(1, Ordering::Relaxed);
        if i >= self.job.most {
            return None;
        }
        let (write, offset) = self.job.request(self.job.first + i);
        let slot = &self.slots[tag as usize];
        slot.began_ns.store(now_ns, Ordering::Relaxed);
        slot.write.store(write, Ordering::Relaxed);
        let len = self.job.bs as usize;
        let start = if write { slot.addresses.1 } else { slot.addresses.0 } as *mut u8;
        // SAFETY: the buffers live until the queue is closed, and one request at a time has
        // each: this one, which has not begun.
        let buf = unsafe {
            if let Some(seed) = self.job.verify.filter(|_| write) {
                stamp(std::slice::from_raw_parts_mut(start, len), offset, seed);
            }
            if write { RawBuf::write_from(start, len) } else { RawBuf::read_into(start, len) }
        };
        Some(Request { offset, buf, class: Class::Demand, tag })
    }

    fn completed(&self, tag: u64, result: Result<(), IoError>) -> u64 {
        let now_ns = self.start.elapsed_ns();
        match result {
            Ok(()) => {
                let slot = &self.slots[tag as usize];
                let began_ns = slot.began_ns.load(Ordering::Relaxed);
                let mut tally = self.tally.lock();
                // Another thread's completion may have been counted at a later moment.
                tally.add(slot.write.load(Ordering::Relaxed), began_ns, now_ns.max(began_ns));
            }
            Err(e) => {
                let _ = self.failed.set(e); // the first one is told
                self.stopped.store(true, Ordering::Relaxed);
            }
        }
        now_ns
    }

    fn one_less(&self) {
        self.outstanding.fetch_sub(1, Ordering::SeqCst);
        self.over.notify_all();
    }
}

impl Sink for JobPump {
    fn complete(&self, tag: u64, result: Result<(), IoError>) {
        let now_ns = self.completed(tag, result);
        // Unknown where the engine works inside `submit`: a sink that submits would nest
        // without end, so the asking thread does.
        let Some(queue) = self.queue.get() else { return };
        match queue.upgrade().and_then(|queue| Some((self.request(tag, now_ns)?, queue))) {
            Some((request, queue)) => queue.submit_for(tag, &mut vec![request]),
            None => self.one_less(),
        }
    }
}

pub(super) fn run(
    device: &Arc<dyn Device>,
    job: &Job,
    engine: IoEngine,
    stop: &AtomicBool,
) -> Result<JobResult, IoError> {
    let depth = job.iodepth;
    let clock = Clock::real();
    let mut buffers = Buffers::new(job, depth);
    let slots = buffers.each().map(|mut buffer| JobSlot {
        addresses: (buffer.of(false).as_mut_ptr() as usize, buffer.of(true).as_mut_ptr() as usize),
        write: AtomicBool::new(false),
        began_ns: AtomicU64::new(0),
    });
    let slots = slots.collect();
    let start = Start::now(job.runtime, job.interval);
    let pump = Arc::new(JobPump {
        queue: OnceLock::new(),
        slots,
        job: job.clone(),
        next: AtomicU64::new(0),
        tally: Mutex::new(start.tally()),
        start,
        outstanding: AtomicU64::new(u64::from(depth)),
        stopped: AtomicBool::new(false),
        failed: OnceLock::new(),
        over: EventCount::new(&clock),
    });
    let config = QueueConfig {
        engine,
        policy: job.policy.clone(),
        depth: Some(job.queue_depth.map_or(depth, |most| most.min(depth))),
        gap_bytes: Some(0),
        max_request_bytes: job.bs, // nothing is merged
        ..Default::default()
    };
    let queue = DeviceQueue::open(device.clone(), config, clock, pump.clone())?;
    if engine == IoEngine::Inline {
        pump_inline(&queue, &pump, stop);
    } else {
        pump.queue.set(Arc::downgrade(&queue)).expect("set once");
        let first: Vec<Request> = (0..u64::from(depth)).filter_map(|tag| pump.request(tag, 0)).collect();
        pump.outstanding.fetch_sub(u64::from(depth) - first.len() as u64, Ordering::SeqCst);
        first.into_iter().for_each(|request| queue.submit_for(request.tag, &mut vec![request]));
        await_end(&pump, stop);
    }
    queue.close();
    drop(buffers);
    if let Some(e) = pump.failed.get() {
        return Err(e.clone());
    }
    let tally = std::mem::replace(&mut *pump.tally.lock(), pump.start.tally());
    let result = pump.start.result(job.bs, vec![tally]);
    if result.total_ios == 0 && job.most > 0 && !job.runtime.is_zero() {
        return Err(IoError::invalid(device.name(), Operation::Engine, "not one request was over in time"));
    }
    Ok(result)
}

fn pump_inline(queue: &DeviceQueue, pump: &JobPump, stop: &AtomicBool) {
    let mut requests = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let Some(request) = pump.request(0, pump.start.elapsed_ns()) else { return };
        requests.push(request);
        queue.submit(&mut requests);
    }
}

fn await_end(pump: &JobPump, stop: &AtomicBool) {
    // A signal sets `stop` without a notification, so it is looked at now and then.
    while pump.outstanding.load(Ordering::SeqCst) > 0 {
        if stop.load(Ordering::Relaxed) {
            pump.stopped.store(true, Ordering::Relaxed);
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}
