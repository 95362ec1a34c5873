//! The queue of one device: requests in, completions out.
//!
//! `submit` puts a batch into the schedule under the queue's one mutex and sees to it that somebody serves it:
//!
//! | engine | who serves |
//! |---|---|
//! | `uring` | one thread that owns the ring; woken only when it sleeps and could start something |
//! | `threads` | up to `depth` threads, one device request each |
//! | `posix-aio` | one thread that lists control blocks for aio(7) and waits for any of them |
//! | `inline` | the asking thread, before `submit` returns |
//! | (simulated devices, for all but `inline`) | nobody: the model says when a request is over |
//!
//! Every request that was submitted is completed exactly once, also at shutdown: reads that were not begun then fail with
//! [`Closed`](crate::IoErrorKind::Closed), everything else is carried out. No lock is held while the sink is called, and
//! the sink may submit.

use std::cell::Cell;
use std::io::{IoSlice, IoSliceMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::awaited::{AWAITED, Awaited};
use crate::buffer::RawBuf;
use crate::clock::Clock;
use crate::cost::CostModel;
use crate::counters::{DeviceCounters, Tally};
use crate::device::Device;
use crate::error::{IoError, IoErrorKind, Operation};
use crate::event_count::EventCount;
use crate::notice::notice;
use crate::operation::{DeviceRequest, Pending, Scratch};
use crate::order::Rules;
use crate::posix_aio;
pub use crate::queue_config::{Class, Engine, Policy, QueueConfig, Tuning};
use crate::schedule::{Limits, Load, Next, Schedule};
use crate::simulated::{Host, Owner};
use crate::threads;
use crate::uring;
use crate::virtual_time::Timer;
use crate::wake::Wake;

/// One request.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// First byte on the device.
    pub offset: u64,
    /// Memory, length and direction.
    pub buf: RawBuf,
    /// What it is for.
    pub class: Class,
    /// Given back at completion; any number below 2^63.
    pub tag: u64,
}

/// Hears of completions.
pub trait Sink: Send + Sync {
    /// The request submitted with `tag` is over, and its memory the caller's again. Called once per request, from any thread,
    /// also from within `submit`; must be short and must not wait.
    fn complete(&self, tag: u64, result: Result<(), IoError>);
}

/// The queue of one device. Closed when dropped.
pub struct DeviceQueue {
    shared: Arc<Shared>,
    served: Served,
}

/// What the queue and whoever serves it share.
pub(crate) struct Shared {
    pub(crate) device: Arc<dyn Device>,
    pub(crate) clock: Clock,
    pub(crate) cost: CostModel,
    pub(crate) limits: Limits,
    pub(crate) scratch: Scratch,
    sink: Arc<dyn Sink>,
    pub(crate) state: Mutex<State>,
    /// Wakes serving threads.
    pub(crate) work: Condvar,
    /// Wakes the timekeeper.
    pub(crate) time: Condvar,
    pub(crate) tally: Mutex<Tally>,
    awaited: Awaited,
    /// Notified when the last outstanding request of a closing queue is over.
    drained: EventCount,
}

/// Who serves, after all fallbacks.
#[derive(Clone)]
enum Served {
    Uring(Arc<Wake>),
    PosixAio(Arc<Wake>),
    Threads,
    Inline,
    Simulated(Arc<Host>),
}

pub(crate) struct State {
    pub(crate) schedule: Schedule,
    /// Device requests outstanding, and their bytes.
    pub(crate) outstanding: Load,
    pub(crate) closing: bool,
    /// Serving threads that sleep.
    pub(crate) idle: usize,
    /// One more sleeps until a policy lets go.
    pub(crate) timekeeper: bool,
    /// Simulated devices: when the queue will be asked again because a policy holds it.
    alarm_ns: Option<u64>,
    pub(crate) threads: Vec<std::thread::JoinHandle<()>>,
    /// Device requests for reuse.
    spare: Vec<DeviceRequest>,
}

thread_local! {
    /// This thread is inside a sink: it must not wait for completions.
    static DELIVERING: Cell<bool> = const { Cell::new(false) };
}

impl DeviceQueue {
    /// A queue in front of `device`. Completions go to `sink`, which must not own the queue (or be told to `close` it).
    pub fn open(
        device: Arc<dyn Device>,
        config: QueueConfig,
        clock: Clock,
        sink: Arc<dyn Sink>,
    ) -> Result<Arc<DeviceQueue>, IoError> {
        let cost = config.cost.unwrap_or_else(|| device.cost());
        let depth = config.depth.unwrap_or_else(|| cost.best_depth()).max(1) as usize;
        let quantum_ns =
            config.tuning.quantum_ns.unwrap_or_else(|| cost.request_ns(config.max_request_bytes));
        let limits = Limits {
            policy: config.policy,
            rules: Rules { fairness: config.fairness, tuning: config.tuning, cost, quantum_ns },
            gap_bytes: config.gap_bytes.unwrap_or_else(|| cost.gap_bytes()),
            max_bytes: config.max_request_bytes,
            unit: device.alignment().offset as u64,
            patience: config.patience,
            depth,
            background: Load {
                requests: (depth * 3 / 4).max(1),
                bytes: 2 * cost.bytes_per_latency() + config.max_request_bytes.max(1),
            },
        };
        let shared = Arc::new(Shared {
            cost,
            limits,
            scratch: Scratch::new(),
            sink,
            state: Mutex::new(State {
                schedule: Schedule::new(limits),
                outstanding: Load::default(),
                closing: false,
                idle: 0,
                timekeeper: false,
                alarm_ns: None,
                threads: Vec::new(),
                spare: Vec::new(),
            }),
            work: Condvar::new(),
            time: Condvar::new(),
            tally: Mutex::new(Tally::new()),
            awaited: Awaited::new(&clock),
            drained: EventCount::new(&clock),
            device,
            clock,
        });
        let model = shared.device.simulated().map(|device| device.host().clone());
        let served = match (config.engine, model) {
            (Engine::Inline, _) => Served::Inline,
            (_, Some(host)) => Served::Simulated(host),
            _ if shared.clock.is_virtual() => Served::Inline, // without a model, a device takes no virtual time
            (Engine::Threads, None) => Served::Threads,
            (Engine::Uring, None) => start_uring(&shared)?,
            (Engine::PosixAio, None) => start_posix_aio(&shared)?,
        };
        Ok(Arc::new(DeviceQueue { shared, served }))
    }

    /// Submits all of `requests` and leaves the vector empty. Returns at once, except with the `inline` engine. Every
    /// request is completed through the sink, whatever happens. To the policies that tell clients apart, the client is
    /// the calling thread.
    pub fn submit(&self, requests: &mut Vec<Request>) {
        self.submit_for(this_thread(), requests);
    }

    /// The same for a client of that number (those of threads begin at 2^63).
    pub fn submit_for(&self, client: u64, requests: &mut Vec<Request>) {
        if requests.is_empty() {
            return;
        }
        let shared = &self.shared;
        shared.clock.settle();
        let arrived_ns = shared.clock.now_ns();
        // What is awaited is never merged: of a merge that failed each piece would be tried again, and a failed write must not be.
        let pending = |request: Request| {
            let alone = request.tag == AWAITED;
            Pending { request, arrived_ns, order: 0, alone, client }
        };
        let mut state = shared.state.lock();
        if state.closing {
            drop(state);
            requests.drain(..).for_each(|request| shared.fail_closed(&pending(request)));
            return;
        }
        match &self.served {
            Served::Inline => {
                drop(state);
                shared.serve_inline(requests.drain(..).map(pending));
            }
            Served::Threads => {
                requests.drain(..).for_each(|request| state.schedule.push(pending(request)));
                threads::wake(shared, state);
            }
            Served::Simulated(host) => {
                requests.drain(..).for_each(|request| state.schedule.push(pending(request)));
                drop(state);
                shared.send_what_may(host);
            }
            Served::Uring(wake) | Served::PosixAio(wake) => {
                requests.drain(..).for_each(|request| state.schedule.push(pending(request)));
                drop(state);
                wake.wake();
            }
        }
    }

    /// Reads in the asking thread, past the schedule.
    pub fn read_now(&self, offset: u64, buf: &mut [u8], class: Class) -> Result<(), IoError> {
        let len = buf.len() as u64;
        self.shared.in_place(class, len, |device| device.read_at(&mut [IoSliceMut::new(buf)], offset))
    }

    /// Writes in the asking thread, past the schedule.
    pub fn write_now(&self, offset: u64, bufs: &[IoSlice<'_>], class: Class) -> Result<(), IoError> {
        let len = bufs.iter().map(|b| b.len() as u64).sum();
        self.shared.in_place(class, len, |device| device.write_at(bufs, offset))
    }

    /// Writes all of `parts` (offset, bytes) through the schedule, in this order and behind what is more urgent than `class`; returns when all are over.
    /// None is merged or tried again. Not to be called from within a sink. The first failure is the answer.
    #[allow(unsafe_code)]
    pub fn write_awaited(&self, parts: &[(u64, &[u8])], class: Class) -> Result<(), IoError> {
        let awaited = &self.shared.awaited;
        let _turn = awaited.turn.lock();
        awaited.begin(parts.len());
        let request = |(offset, bytes): &(u64, &[u8])| {
            // SAFETY: the bytes are borrowed until all requests are over, which is when this returns.
            let buf = unsafe { RawBuf::write_from(bytes.as_ptr(), bytes.len()) };
            Request { offset: *offset, buf, class, tag: AWAITED }
        };
        self.submit(&mut parts.iter().map(request).collect());
        awaited.wait()
    }

    /// Returns when everything whose completion was reported before is durable.
    pub fn sync(&self) -> Result<(), IoError> {
        self.shared.clock.settle();
        self.shared.device.sync()
    }

    /// The device behind the queue.
    pub fn device(&self) -> &Arc<dyn Device> {
        &self.shared.device
    }

    /// What the queue takes the device's costs to be.
    pub fn cost(&self) -> &CostModel {
        &self.shared.cost
    }

    /// Longest gap that is read through, in bytes.
    pub fn gap_bytes(&self) -> u64 {
        self.shared.limits.gap_bytes
    }

    /// Requests waiting or outstanding now.
    pub fn backlog(&self) -> usize {
        let state = self.shared.state.lock();
        state.schedule.len() + state.outstanding.requests
    }

    /// The engine that really serves, after fallbacks.
    pub fn engine(&self) -> &'static str {
        match &self.served {
            Served::Uring(_) => "uring",
            Served::PosixAio(_) => "posix-aio",
            Served::Threads => "threads",
            Served::Inline => "inline",
            Served::Simulated(_) => "simulated",
        }
    }

    /// Counts since the queue was opened or last reset.
    pub fn counters(&self) -> DeviceCounters {
        self.shared.tally.lock().snapshot(self.shared.device.name(), self.engine())
    }

    /// Starts counting anew.
    pub fn reset_counters(&self) {
        self.shared.tally.lock().reset(self.shared.clock.now_ns());
    }

    /// Ends the queue: reads that wait fail with `Closed`, writes that wait and all that is outstanding are carried out. Returns
    /// when the last request is completed (from inside a sink: at once). Later submissions fail with `Closed`.
    pub fn close(&self) {
        let shared = &self.shared;
        let mut state = shared.state.lock();
        state.closing = true;
        let reads = state.schedule.take_reads();
        let threads = std::mem::take(&mut state.threads);
        drop(state);
        shared.work.notify_all();
        shared.time.notify_all();
        if let Served::Uring(wake) | Served::PosixAio(wake) = &self.served {
            wake.wake();
        }
        reads.iter().for_each(|read| shared.fail_closed(read));
        if DELIVERING.get() {
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

impl Owner for Shared {
    fn over(self: Arc<Self>, host: &Arc<Host>, mut request: DeviceRequest, end: Result<(), IoErrorKind>) {
        self.deliver(&mut request, end, self.clock.now_ns());
        self.retire(&mut self.state.lock(), request);
        self.send_what_may(host);
    }
}

/// A simulated device's queue is asked again: a policy had held it.
impl Timer for Shared {
    fn fire(self: Arc<Self>, _now_ns: u64) {
        self.state.lock().alarm_ns = None;
        let host = self.device.simulated().expect("only simulated devices have alarms").host().clone();
        self.send_what_may(&host);
    }
}

/// The number of the calling thread as a client.
fn this_thread() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1 << 63);
    thread_local! {
        static NUMBER: u64 = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    NUMBER.with(|number| *number)
}

/// The ring's thread; threads where there is no ring (with a notice) or no descriptor to use it on.
fn start_uring(shared: &Arc<Shared>) -> Result<Served, IoError> {
    let Some(fd) = shared.device.fd() else { return Ok(Served::Threads) };
    let name = shared.device.name();
    let wake = Arc::new(Wake::new().map_err(|e| IoError::os(name, Operation::Engine, 0, 0, &e))?);
    match uring::start(shared, &wake, fd) {
        Ok(()) => Ok(Served::Uring(wake)),
        Err(e) => {
            notice(&format!("{name}: io_uring is refused here ({e}); reading with threads instead"));
            Ok(Served::Threads)
        }
    }
}

/// The thread that lists control blocks; threads where that cannot be had.
fn start_posix_aio(shared: &Arc<Shared>) -> Result<Served, IoError> {
    let Some(fd) = shared.device.fd() else { return Ok(Served::Threads) };
    let name = shared.device.name();
    let wake = Arc::new(Wake::new().map_err(|e| IoError::os(name, Operation::Engine, 0, 0, &e))?);
    match posix_aio::start(shared, &wake, fd) {
        Ok(()) => Ok(Served::PosixAio(wake)),
        Err(e) => {
            notice(&format!("{name}: POSIX AIO is not to be had here ({e}); reading with threads instead"));
            Ok(Served::Threads)
        }
    }
}

impl Drop for DeviceQueue {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    /// A place for a device request.
    pub(crate) fn blank(state: &mut State) -> DeviceRequest {
        state.spare.pop().unwrap_or_else(DeviceRequest::new)
    }

    /// Takes the next device request to carry out; the caller must `deliver` and `retire` it.
    pub(crate) fn take(&self, state: &mut State, now_ns: u64) -> Taken {
        let mut request = Self::blank(state);
        match state.schedule.next(&mut request, state.outstanding, now_ns) {
            Next::Begun => {}
            Next::Nothing => {
                state.spare.push(request);
                return Taken::Nothing;
            }
            Next::NotBefore(at) => {
                state.spare.push(request);
                return Taken::NotBefore(at);
            }
        }
        state.outstanding.requests += 1;
        state.outstanding.bytes += request.len;
        request.started_ns = now_ns;
        self.tally.lock().started(&request, now_ns);
        Taken::Request(request)
    }

    /// Completes the pieces of a device request that is over. When a merge failed, the pieces not reached stay in it, to be
    /// tried again alone.
    pub(crate) fn deliver(&self, request: &mut DeviceRequest, end: Result<(), IoErrorKind>, now_ns: u64) {
        let whole = request.complete_pieces();
        let failed = match &end {
            Ok(()) => 0,
            Err(_) if request.pieces.len() == 1 => 1,
            Err(_) => 0,
        };
        self.tally.lock().finished(request, whole + failed, failed, now_ns);
        let outer = DELIVERING.replace(true);
        for piece in request.pieces.drain(..whole) {
            self.tell(piece.request.tag, Ok(()));
        }
        if let (1, Err(kind)) = (failed, end) {
            let piece = request.pieces.pop().expect("the one that failed");
            let operation = if request.write { Operation::Write } else { Operation::Read };
            let (device, offset) = (self.device.name().clone(), piece.request.offset);
            let error = IoError { device, operation, offset, len: request.len, kind };
            self.tell(piece.request.tag, Err(error));
        }
        DELIVERING.set(outer);
    }

    /// Gives a delivered device request back; what is left in it waits again.
    pub(crate) fn retire(&self, state: &mut State, mut request: DeviceRequest) {
        state.outstanding.requests -= 1;
        state.outstanding.bytes -= request.len;
        if self.limits.policy == Policy::Anticipatory {
            state.schedule.over(&request, self.clock.now_ns());
        }
        for piece in request.pieces.drain(..) {
            state.schedule.push(Pending { alone: true, ..piece });
        }
        state.spare.push(request);
        if state.closing && state.outstanding.requests == 0 && state.schedule.is_empty() {
            self.drained.notify_all();
        }
    }

    fn tell(&self, tag: u64, result: Result<(), IoError>) {
        match tag {
            AWAITED => self.awaited.complete(result),
            _ => self.sink.complete(tag, result),
        }
    }

    fn fail_closed(&self, pending: &Pending) {
        let Request { offset, buf, tag, .. } = pending.request;
        let operation = if buf.is_write() { Operation::Write } else { Operation::Read };
        let device = self.device.name().clone();
        let error = IoError { device, operation, offset, len: buf.len() as u64, kind: IoErrorKind::Closed };
        self.tell(tag, Err(error));
    }

    /// Orders, merges and carries out a batch in this thread.
    fn serve_inline(&self, batch: impl Iterator<Item = Pending>) {
        let mut schedule = Schedule::new(self.limits);
        batch.for_each(|pending| schedule.push(pending));
        let mut request = Self::blank(&mut self.state.lock());
        self.state.lock().outstanding.requests += 1;
        // One client's batch: no policy holds it for anybody else.
        while schedule.next(&mut request, Load::default(), self.clock.now_ns()) == Next::Begun {
            request.started_ns = self.clock.now_ns();
            self.tally.lock().started(&request, request.started_ns);
            let end = request.execute(&*self.device, &self.scratch);
            self.deliver(&mut request, end, self.clock.now_ns());
            request.pieces.drain(..).for_each(|piece| schedule.push(Pending { alone: true, ..piece }));
        }
        assert!(schedule.is_empty(), "a batch is carried out whole");
        request.len = 0; // it was not counted
        self.retire(&mut self.state.lock(), request);
    }

    /// Gives a simulated device what may go out. The lock is not held meanwhile: in virtual time the device may answer at once.
    fn send_what_may(self: &Arc<Self>, host: &Arc<Host>) {
        loop {
            let mut state = self.state.lock();
            match self.take(&mut state, self.clock.now_ns()) {
                Taken::Nothing => return,
                Taken::NotBefore(at) => {
                    if state.alarm_ns.is_none_or(|set| at < set) {
                        state.alarm_ns = Some(at);
                        drop(state);
                        host.alarm(at, self.clone());
                    }
                    return;
                }
                Taken::Request(request) => {
                    drop(state);
                    host.begin(request, self.clone());
                }
            }
        }
    }

    fn in_place(
        &self,
        class: Class,
        len: u64,
        act: impl FnOnce(&dyn Device) -> Result<(), IoError>,
    ) -> Result<(), IoError> {
        self.clock.settle();
        let began = self.clock.now_ns();
        self.tally.lock().begin_in_place(class, len, began);
        let result = act(&*self.device);
        self.tally.lock().end_in_place(class, began, self.clock.now_ns(), result.is_err());
        result
    }
}

/// What [`Shared::take`] gives.
pub(crate) enum Taken {
    Request(DeviceRequest),
    Nothing,
    /// Ask again at this time.
    NotBefore(u64),
}

/// Ends the process when a serving thread panics: the kernel may still write to memory that unwinding would free, and
/// everybody else would wait for ever.
pub(crate) struct NoUnwinding;

impl Drop for NoUnwinding {
    fn drop(&mut self) {
        if std::thread::panicking() {
            notice("a thread that serves a device has failed (a bug, or a sink that panicked): giving up");
            std::process::abort();
        }
    }
}

/// The state under its lock, for the engines.
pub(crate) type Locked<'a> = MutexGuard<'a, State>;
