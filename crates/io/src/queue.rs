//! The queue of one device: requests in, completions out.
//!
//! `submit` puts a batch into the schedule under the queue's one mutex and sees to it that somebody serves it:
//!
//! | engine | who serves |
//! |---|---|
//! | `uring` | one thread that owns the ring; woken only when it sleeps and could start something |
//! | `threads` | up to `depth` threads, one device request each |
//! | `inline` | the asking thread, before `submit` returns |
//! | (simulated devices, for `uring` and `threads`) | nobody: the model says when a request is over |
//!
//! Every request that was submitted is completed exactly once, also at shutdown: reads that were not begun then fail with
//! [`Closed`](crate::IoErrorKind::Closed), everything else is carried out. No lock is held while the sink is called, and
//! the sink may submit.

use std::cell::Cell;
use std::io::{IoSlice, IoSliceMut};
use std::sync::Arc;

use parking_lot::{Condvar, Mutex, MutexGuard};
use serde::{Deserialize, Serialize};

use crate::buffer::RawBuf;
use crate::clock::Clock;
use crate::cost::CostModel;
use crate::counters::{DeviceCounters, Tally};
use crate::device::Device;
use crate::error::{IoError, IoErrorKind, Operation};
use crate::event_count::EventCount;
use crate::notice::notice;
use crate::operation::{DeviceRequest, Pending, Scratch};
use crate::schedule::{Limits, Load, Schedule};
use crate::simulated::{Host, Owner};
use crate::threads;
use crate::uring;

/// What a request is for, in order of priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// The journal: somebody waits for a commit.
    Journal,
    /// Somebody waits for these bytes.
    Demand,
    /// They will certainly be needed.
    Planned,
    /// They may be needed.
    Speculative,
    /// Written back when there is nothing better to do.
    WriteBack,
}

impl Class {
    /// Number of classes.
    pub const COUNT: usize = 5;
    /// All of them, the most urgent first.
    pub const ALL: [Class; Class::COUNT] =
        [Class::Journal, Class::Demand, Class::Planned, Class::Speculative, Class::WriteBack];
}

/// Who carries requests out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// io_uring; falls back to `Threads`, with a notice, where it is not permitted.
    Uring,
    /// A pool of threads.
    Threads,
    /// The asking thread.
    Inline,
}

impl Engine {
    /// As on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Engine::Uring => "uring",
            Engine::Threads => "threads",
            Engine::Inline => "inline",
        }
    }
}

impl std::str::FromStr for Engine {
    type Err = String;
    fn from_str(name: &str) -> Result<Engine, String> {
        match name {
            "uring" => Ok(Engine::Uring),
            "threads" => Ok(Engine::Threads),
            "inline" => Ok(Engine::Inline),
            _ => Err(format!("no engine is called {name:?}: there are uring, threads and inline")),
        }
    }
}

/// The order in which waiting requests are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// First come, first served.
    Fifo,
    /// Sweeps over the offsets, from low to high.
    Elevator,
}

impl std::str::FromStr for Policy {
    type Err = String;
    fn from_str(name: &str) -> Result<Policy, String> {
        match name {
            "fifo" => Ok(Policy::Fifo),
            "elevator" => Ok(Policy::Elevator),
            _ => Err(format!("no queue is called {name:?}: there are fifo and elevator")),
        }
    }
}

/// One request.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// First byte on the device.
    pub offset: u64,
    /// Memory, length and direction.
    pub buf: RawBuf,
    /// What it is for.
    pub class: Class,
    /// Given back at completion; any number.
    pub tag: u64,
}

/// Hears of completions.
pub trait Sink: Send + Sync {
    /// The request submitted with `tag` is over, and its memory the caller's again. Called once per request, from any thread,
    /// also from within `submit`; must be short and must not wait.
    fn complete(&self, tag: u64, result: Result<(), IoError>);
}

/// How a queue works. `None` means: as the cost model says.
#[derive(Debug, Clone)]
pub struct QueueConfig {
    /// Who carries requests out.
    pub engine: Engine,
    /// In which order.
    pub policy: Policy,
    /// Costs of the device; by default what the device says of itself.
    pub cost: Option<CostModel>,
    /// Most device requests outstanding.
    pub depth: Option<u32>,
    /// Longest gap to read through, in bytes.
    pub gap_bytes: Option<u64>,
    /// Longest merged device request, in bytes (default 2 MiB).
    pub max_request_bytes: u64,
    /// Newcomers one sweep of the elevator takes.
    pub fairness: usize,
    /// How often a lower class is passed over before it is served.
    pub patience: u32,
}

impl Default for QueueConfig {
    fn default() -> QueueConfig {
        QueueConfig {
            engine: Engine::Uring,
            policy: Policy::Elevator,
            cost: None,
            depth: None,
            gap_bytes: None,
            max_request_bytes: 2 << 20,
            fairness: 1024,
            patience: 64,
        }
    }
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
    pub(crate) tally: Mutex<Tally>,
    /// Notified when the last outstanding request of a closing queue is over.
    drained: EventCount,
}

/// Who serves, after all fallbacks.
#[derive(Clone)]
enum Served {
    Uring(Arc<uring::Wake>),
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
        let limits = Limits {
            policy: config.policy,
            gap_bytes: config.gap_bytes.unwrap_or_else(|| cost.gap_bytes()),
            max_bytes: config.max_request_bytes,
            unit: device.alignment().offset as u64,
            fairness: config.fairness,
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
                threads: Vec::new(),
                spare: Vec::new(),
            }),
            work: Condvar::new(),
            tally: Mutex::new(Tally::new()),
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
        };
        Ok(Arc::new(DeviceQueue { shared, served }))
    }

    /// Submits all of `requests` and leaves the vector empty. Returns at once, except with the `inline` engine. Every
    /// request is completed through the sink, whatever happens.
    pub fn submit(&self, requests: &mut Vec<Request>) {
        if requests.is_empty() {
            return;
        }
        let shared = &self.shared;
        shared.clock.settle();
        let arrived_ns = shared.clock.now_ns();
        let pending = |request| Pending { request, arrived_ns, order: 0, alone: false };
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
            Served::Uring(wake) => {
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
        if let Served::Uring(wake) = &self.served {
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

/// The ring's thread; threads where there is no ring (with a notice) or no descriptor to use it on.
fn start_uring(shared: &Arc<Shared>) -> Result<Served, IoError> {
    let Some(fd) = shared.device.fd() else { return Ok(Served::Threads) };
    let name = shared.device.name();
    let wake = uring::Wake::new().map_err(|e| IoError::os(name, Operation::Engine, 0, 0, &e))?;
    let wake = Arc::new(wake);
    match uring::start(shared, &wake, fd) {
        Ok(()) => Ok(Served::Uring(wake)),
        Err(e) => {
            notice(&format!("{name}: io_uring is refused here ({e}); reading with threads instead"));
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
    pub(crate) fn take(&self, state: &mut State, now_ns: u64) -> Option<DeviceRequest> {
        let mut request = Self::blank(state);
        if !state.schedule.next(&mut request, state.outstanding) {
            state.spare.push(request);
            return None;
        }
        state.outstanding.requests += 1;
        state.outstanding.bytes += request.len;
        request.started_ns = now_ns;
        self.tally.lock().started(&request, now_ns);
        Some(request)
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
            self.sink.complete(piece.request.tag, Ok(()));
        }
        if let (1, Err(kind)) = (failed, end) {
            let piece = request.pieces.pop().expect("the one that failed");
            let operation = if request.write { Operation::Write } else { Operation::Read };
            let (device, offset) = (self.device.name().clone(), piece.request.offset);
            let error = IoError { device, operation, offset, len: request.len, kind };
            self.sink.complete(piece.request.tag, Err(error));
        }
        DELIVERING.set(outer);
    }

    /// Gives a delivered device request back; what is left in it waits again.
    pub(crate) fn retire(&self, state: &mut State, mut request: DeviceRequest) {
        state.outstanding.requests -= 1;
        state.outstanding.bytes -= request.len;
        for piece in request.pieces.drain(..) {
            state.schedule.push(Pending { alone: true, ..piece });
        }
        state.spare.push(request);
        if state.closing && state.outstanding.requests == 0 && state.schedule.is_empty() {
            self.drained.notify_all();
        }
    }

    fn fail_closed(&self, pending: &Pending) {
        let Request { offset, buf, tag, .. } = pending.request;
        let operation = if buf.is_write() { Operation::Write } else { Operation::Read };
        let device = self.device.name().clone();
        let error = IoError { device, operation, offset, len: buf.len() as u64, kind: IoErrorKind::Closed };
        self.sink.complete(tag, Err(error));
    }

    /// Orders, merges and carries out a batch in this thread.
    fn serve_inline(&self, batch: impl Iterator<Item = Pending>) {
        let mut schedule = Schedule::new(self.limits);
        batch.for_each(|pending| schedule.push(pending));
        let mut request = Self::blank(&mut self.state.lock());
        self.state.lock().outstanding.requests += 1;
        while schedule.next(&mut request, Load::default()) {
            request.started_ns = self.clock.now_ns();
            self.tally.lock().started(&request, request.started_ns);
            let end = request.execute(&*self.device, &self.scratch);
            self.deliver(&mut request, end, self.clock.now_ns());
            request.pieces.drain(..).for_each(|piece| schedule.push(Pending { alone: true, ..piece }));
        }
        request.len = 0; // it was not counted
        self.retire(&mut self.state.lock(), request);
    }

    /// Gives a simulated device what may go out. The lock is not held meanwhile: in virtual time the device may answer at once.
    fn send_what_may(self: &Arc<Self>, host: &Arc<Host>) {
        loop {
            let Some(request) = self.take(&mut self.state.lock(), self.clock.now_ns()) else { return };
            host.begin(request, self.clone());
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
