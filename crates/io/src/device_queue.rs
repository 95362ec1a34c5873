//! The queue of one device: requests in, completions out.
//!
//! `submit` puts a batch into the schedule under the queue's one mutex and wakes the engine
//! that serves it:
//!
//! | engine | served by |
//! |---|---|
//! | `uring` | one thread that owns the ring; woken only when it sleeps and could start something |
//! | `threads` | up to `depth` threads, one device request each |
//! | `inline` | the asking thread, before `submit` returns |
//! | (engines of other crates) | one thread of theirs |
//! | (simulated devices, for all but `inline`) | no thread: the model says when a request is over |
//!
//! Every submitted request is completed exactly once, also at shutdown: reads that were not
//! begun then fail with [`Closed`](crate::IoErrorKind::Closed), all others are carried out. No
//! lock is held while the sink is called, and the sink may submit.

use std::io::{IoSlice, IoSliceMut};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::config::{InPlace, IoEngine, QueueConfig};
use crate::cost::{CostModel, CostSource};
use crate::device::Device;
use crate::device::timed::TimedDevice;
use crate::engine::awaited::AWAITED;
use crate::engine::serving::{Locked, Serving, is_delivering};
use crate::engine::wake::Wake;
use crate::engine::{NotStarted, ServedQueue, Started, threads, timed};
use crate::error::IoError;
use crate::learn::{Belief, Learner};
use crate::memory::buffer::RawBuf;
use crate::notice::notice;
use crate::queue::costs::DeviceCosts;
use crate::queue::counters::DeviceCounters;
use crate::queue::device_request::Pending;
use crate::queue::read_times::ReadTimes;
use crate::queue::request::{Class, Request, Sink};
use crate::queue::schedule::ScheduleSettings;
use crate::system::thread_number::thread_number;
use crate::time::clock::Clock;
use crate::write_cost::WriteCost;

/// The queue of one device. Closed when dropped.
pub struct DeviceQueue {
    shared: Arc<Serving>,
    served: Served,
    in_place: InPlace,
    /// The source of the costs that learning began with.
    begin: CostSource,
}

/// The engine that serves, after all fallbacks.
#[derive(Clone)]
enum Served {
    /// An engine with a thread of its own, and its name.
    Thread(Arc<Wake>, &'static str),
    Threads,
    Inline,
    Simulated(Arc<dyn TimedDevice>),
}

impl DeviceQueue {
    /// A queue in front of `device`. Completions go to `sink`, which must not own the queue (or
    /// be told to `close` it).
    ///
    /// # Errors
    /// The engine cannot be started, and there is no fallback.
    pub fn open(
        device: Arc<dyn Device>,
        config: QueueConfig,
        clock: Clock,
        sink: Arc<dyn Sink>,
    ) -> Result<Arc<DeviceQueue>, IoError> {
        let cost = config.cost.unwrap_or_else(|| device.cost());
        let most_depth = match (config.depth, config.learns) {
            (Some(depth), _) => depth.max(1),
            (None, true) => cost.best_depth().max(Learner::MOST_DEPTH),
            (None, false) => cost.best_depth(),
        };
        let begin = if config.cost.is_some() { config.cost_source } else { CostSource::Assumed };
        let learner = if config.learns { Learner::on(&cost) } else { Learner::off() };
        let settings = ScheduleSettings {
            policy: config.policy,
            fairness: config.fairness,
            depth: config.depth,
            gap_bytes: config.gap_bytes,
            max_request_bytes: config.max_request_bytes,
            patience: config.patience,
            unit: device.alignment().offset as u64,
            most_depth: most_depth as usize,
        };
        let shared = Arc::new(Serving::new(device, clock, settings, cost, learner, sink));
        let served = match shared.device.timed() {
            _ if config.engine == IoEngine::Inline => Served::Inline,
            Some(device) => Served::Simulated(device),
            // Without a model, a device takes no virtual time.
            None if shared.clock.is_virtual() => Served::Inline,
            None => start(config.engine, &shared)?,
        };
        Ok(Arc::new(DeviceQueue { shared, served, in_place: config.in_place, begin }))
    }

    /// Submits all of `requests` and leaves the vector empty. Returns at once, except with the
    /// `inline` engine. Every request is completed through the sink, whatever happens. To the
    /// policies that tell clients apart, the client is the calling thread.
    pub fn submit(&self, requests: &mut Vec<Request>) {
        self.submit_for(this_thread(), requests);
    }

    /// Submits all of `requests` as [`DeviceQueue::submit`] does, for a client of that number
    /// (those of threads begin at 2^63).
    pub fn submit_for(&self, client: u64, requests: &mut Vec<Request>) {
        if requests.is_empty() {
            return;
        }
        let shared = &self.shared;
        shared.clock.settle();
        let arrived_ns = shared.clock.now_ns();
        // An awaited write is never merged: of a merge that failed each piece would be tried
        // again, and a failed write must not be.
        let pending = |request: Request| {
            let alone = request.tag & AWAITED != 0 && request.buf.is_write();
            Pending { request, arrived_ns, order: 0, alone, again: false, client }
        };
        let mut state = shared.state.lock();
        if state.closing {
            drop(state);
            requests.drain(..).for_each(|request| shared.fail_closed(&pending(request)));
            return;
        }
        if let Served::Inline = self.served {
            drop(state);
            shared.serve_inline(requests.drain(..).map(pending));
            return;
        }
        requests.drain(..).for_each(|request| state.schedule.push(pending(request)));
        self.wake(state, usize::MAX);
    }

    /// Called when a reader waits for the reads at these offsets (sorted): guesses among them that
    /// are not at the device yet move to `class`.
    pub fn hurry(&self, offsets: &[u64], class: Class) {
        let mut state = self.shared.state.lock();
        if state.schedule.hurry(offsets, class) > 0 {
            self.wake(state, usize::MAX);
        }
    }

    /// Reads in the asking thread, past the schedule.
    ///
    /// # Errors
    /// The device fails.
    pub fn read_now(&self, offset: u64, buf: &mut [u8], class: Class) -> Result<(), IoError> {
        let len = buf.len() as u64;
        let read = |device: &dyn Device| device.read_at(&mut [IoSliceMut::new(buf)], offset);
        let result = self.shared.in_place(class, false, len, read);
        self.let_go_of_what_was_held();
        result
    }

    /// Writes in the asking thread, past the schedule.
    ///
    /// # Errors
    /// The device fails.
    pub fn write_now(&self, offset: u64, bufs: &[IoSlice<'_>], class: Class) -> Result<(), IoError> {
        let len = bufs.iter().map(|b| b.len() as u64).sum();
        let result = self.shared.in_place(class, true, len, |device| device.write_at(bufs, offset));
        self.let_go_of_what_was_held();
        result
    }

    /// Wakes background requests that waited for the end of a request in place.
    fn let_go_of_what_was_held(&self) {
        if self.shared.is_held.load(Ordering::SeqCst) {
            // One request left room for one.
            self.wake(self.shared.state.lock(), 1);
        }
    }

    /// Wakes the engine to look at the waiting requests; where it has several threads, `most` of
    /// them. Needs the lock, because a serving thread announces under it that it is going to sleep.
    fn wake(&self, state: Locked<'_>, most: usize) {
        match &self.served {
            Served::Inline => {}
            Served::Threads => threads::wake(&self.shared, state, most),
            Served::Simulated(device) => {
                drop(state);
                timed::send_what_may(&self.shared, device);
            }
            Served::Thread(wake, _) => {
                drop(state);
                wake.wake();
            }
        }
    }

    /// Writes all of `parts` (offset, bytes) through the schedule, in this order and behind
    /// what is more urgent than `class`; returns when all are over. None is merged or tried
    /// again. Not to be called from within a sink. The first failure is the answer.
    ///
    /// # Errors
    /// A write failed, or the queue is closed; the first failure is returned.
    #[allow(unsafe_code)]
    pub fn write_awaited(&self, parts: &[(u64, &[u8])], class: Class) -> Result<(), IoError> {
        let tag = self.shared.awaited.begin(parts.len());
        let request = |(offset, bytes): &(u64, &[u8])| {
            // SAFETY: the bytes are borrowed until all requests are over, which is when this
            // returns.
            let buf = unsafe { RawBuf::write_from(bytes.as_ptr(), bytes.len()) };
            Request { offset: *offset, buf, class, tag }
        };
        self.submit(&mut parts.iter().map(request).collect());
        self.shared.awaited.wait(tag)
    }

    /// Fills all of `parts` (offset, buffer) through the schedule, behind what is more urgent
    /// than `class`; returns when all are over. Neighbours may be merged. Not to be called from
    /// within a sink.
    ///
    /// # Errors
    /// A read failed, or the queue is closed; the first failure is returned.
    #[allow(unsafe_code)]
    pub fn read_awaited(&self, parts: &mut [(u64, &mut [u8])], class: Class) -> Result<(), IoError> {
        let tag = self.shared.awaited.begin(parts.len());
        let request = |(offset, bytes): &mut (u64, &mut [u8])| {
            // SAFETY: the buffers are borrowed until all requests are over, which is when this
            // returns, and are not touched meanwhile.
            let buf = unsafe { RawBuf::read_into(bytes.as_mut_ptr(), bytes.len()) };
            Request { offset: *offset, buf, class, tag }
        };
        self.submit(&mut parts.iter_mut().map(request).collect());
        self.shared.awaited.wait(tag)
    }

    /// Returns when everything whose completion was reported before is durable.
    ///
    /// # Errors
    /// The device fails: what was written since the last sync may be lost.
    pub fn sync(&self) -> Result<(), IoError> {
        let shared = &self.shared;
        shared.clock.settle();
        let begun_ns = shared.clock.now_ns();
        shared.device.sync()?;
        let taken_ns = shared.clock.now_ns().saturating_sub(begun_ns);
        let learned = shared.tally.lock().flushed(taken_ns);
        learned.into_iter().for_each(|cost| shared.note_writes(cost));
        Ok(())
    }

    /// The device behind the queue.
    pub fn device(&self) -> &Arc<dyn Device> {
        &self.shared.device
    }

    /// Costs of the device, as the queue believes them now.
    pub fn cost(&self) -> CostModel {
        self.shared.cost()
    }

    /// Costs of writes to the device, as the queue believes them now.
    pub fn write_cost(&self) -> WriteCost {
        self.shared.write_cost()
    }

    /// Longest gap that is read through, in bytes.
    pub fn gap_bytes(&self) -> u64 {
        self.shared.limits_now().gap_bytes
    }

    /// True when a lone read with a waiting reader should be carried out by the thread that
    /// waits ([`DeviceQueue::read_now`]), and not go through the queue.
    pub fn reads_in_place(&self) -> bool {
        match self.in_place {
            InPlace::Auto => self.cost().in_place(),
            InPlace::On => true,
            InPlace::Off => false,
        }
    }

    /// Requests waiting or outstanding now, those in place included.
    pub fn backlog(&self) -> usize {
        let in_place = self.shared.in_place.requests();
        let state = self.shared.state.lock();
        state.schedule.len() + state.outstanding.requests + in_place
    }

    /// Device requests outstanding in the mean, lately; 0 where costs are not learned.
    pub fn crowd(&self) -> usize {
        self.shared.crowd.load(Ordering::Relaxed)
    }

    /// Name of the engine that serves, after fallbacks.
    pub fn engine(&self) -> &'static str {
        match &self.served {
            Served::Thread(_, engine) => engine,
            Served::Threads => IoEngine::Threads.as_str(),
            Served::Inline => IoEngine::Inline.as_str(),
            Served::Simulated(_) => "simulated",
        }
    }

    /// Counts since the queue was opened or last reset.
    pub fn counters(&self) -> DeviceCounters {
        let costs = DeviceCosts { reads: self.cost(), writes: self.write_cost() };
        self.shared.tally.lock().snapshot(self.shared.device.name(), self.engine(), &costs, self.begin)
    }

    /// Costs of reads, and why they are believed: cheap, and not touched by a reset.
    pub fn belief(&self) -> Belief {
        let (evidence, load) = self.shared.tally.lock().evidence(self.begin);
        Belief { cost: self.cost(), evidence, load }
    }

    /// Times of reads lately: cheap, and not touched by a reset of the counters.
    pub fn read_times(&self) -> ReadTimes {
        self.shared.tally.lock().read_times()
    }

    /// Starts counting anew.
    pub fn reset_counters(&self) {
        self.shared.tally.lock().reset(self.shared.clock.now_ns());
    }

    /// Ends the queue: reads that wait fail with `Closed`, writes that wait and all that is
    /// outstanding are carried out. Returns when the last request is completed (from inside a
    /// sink: at once). Later submissions fail with `Closed`.
    pub fn close(&self) {
        let shared = &self.shared;
        let mut state = shared.state.lock();
        state.closing = true;
        let reads = state.schedule.take_reads();
        let threads = std::mem::take(&mut state.threads);
        drop(state);
        shared.work.notify_all();
        shared.time.notify_all();
        if let Served::Thread(wake, _) = &self.served {
            wake.wake();
        }
        reads.iter().for_each(|read| shared.fail_closed(read));
        if is_delivering() {
            return;
        }
        for thread in threads {
            thread.join().expect("serving threads do not panic");
        }
        shared.drained.wait_until(|| {
            let state = shared.state.lock();
            state.outstanding.requests == 0 && state.schedule.is_empty()
        });
    }
}

/// The number of the calling thread as a client.
fn this_thread() -> u64 {
    1 << 63 | thread_number()
}

/// Starts the engine; threads, with a notice, where it is refused.
fn start(engine: IoEngine, shared: &Arc<Serving>) -> Result<Served, IoError> {
    let engine = engine.starter();
    match engine.start(&ServedQueue::new(shared)) {
        Ok(Started::Inline) => Ok(Served::Inline),
        Ok(Started::Threads) => Ok(Served::Threads),
        Ok(Started::Thread(thread)) => {
            shared.state.lock().threads.push(thread.handle);
            Ok(Served::Thread(thread.wake, engine.name()))
        }
        Err(NotStarted::Refused(e)) => {
            let (name, title) = (shared.device.name(), engine.title());
            notice(&format!("{name}: {title} is refused here ({e}); reading with threads instead"));
            Ok(Served::Threads)
        }
        Err(NotStarted::Failed(e)) => Err(e),
    }
}

impl Drop for DeviceQueue {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests;
