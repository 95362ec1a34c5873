//! A device whose bytes come from another one (a file, memory, a faulty device) and whose times come from a model.
//!
//! In virtual time a completion is an event of the clock. In real time one thread per device fetches the bytes of what
//! arrived, as soon as it can, and delivers each request when it is due; how late it was is recorded. Both need no
//! privileges, and queues with any engine work on it.
//!
//! Invariant: the model hears of requests in the order of their arrival times, under the host's lock.

use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use hdrhistogram::Histogram;
use parking_lot::{Condvar, Mutex};
use serde::{Deserialize, Serialize};

use crate::clock::Clock;
use crate::cost::CostModel;
use crate::counters::{Latency, histogram};
use crate::device::{Alignment, Device};
use crate::error::{IoError, IoErrorKind};
use crate::event_count::EventCount;
use crate::model::{DeviceModel, Kind, Model, Transfer, TransferKind};
use crate::model_bounds::ModelError;
use crate::operation::{DeviceRequest, Scratch};
use crate::virtual_time::Timer;

/// A simulated device.
pub struct SimulatedDevice {
    name: Arc<str>,
    model: DeviceModel,
    host: Arc<Host>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// The model with what is outstanding in it.
pub(crate) struct Host {
    inner: Arc<dyn Device>,
    clock: Clock,
    /// Real time: the delivering thread is awake this long before something is due.
    awake_ns: u64,
    /// Requests from outside were on their way for so long, and will be on the way back.
    way_ns: AtomicU64,
    scratch: Scratch,
    state: Mutex<HostState>,
    /// Real time: wakes the delivering thread.
    arrived: Condvar,
}

struct HostState {
    model: Box<dyn Model>,
    jobs: Vec<Option<Job>>,
    free: Vec<usize>,
    /// Virtual time: when the earliest event set will fire.
    armed: Option<u64>,
    /// Real time: ids whose bytes are still to be fetched.
    to_fetch: VecDeque<usize>,
    /// Real time: what is to be done when.
    alarms: Vec<(u64, Arc<dyn Timer>)>,
    /// Real time: until when the delivering thread sleeps, if it does. To wake it for what is due later costs more than the request.
    asleep_until_ns: Option<u64>,
    stopping: bool,
    last_arrival: u64,
    lateness: Histogram<u64>,
    activity: Activity,
}

/// About what the kernel takes to wake a thread, on a virtual machine too: an urgent thread wakes that much earlier and spins.
const AWAKE_NS: u64 = 80_000;

/// What a simulated device was asked since it was made, or since the counts were reset.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Activity {
    /// Reads that arrived.
    pub reads: u64,
    /// Writes that arrived.
    pub writes: u64,
    /// Flushes that arrived.
    pub flushes: u64,
    /// Bytes of the reads.
    pub read_bytes: u64,
    /// Bytes of the writes.
    pub written_bytes: u64,
    /// Requests at the device now.
    pub outstanding: u64,
    /// The most there were at once.
    pub most_outstanding: u64,
}

impl Activity {
    fn arrived(&mut self, transfer: &Transfer) {
        match transfer.kind {
            Kind::Read => (self.reads, self.read_bytes) = (self.reads + 1, self.read_bytes + transfer.len),
            Kind::Write => {
                (self.writes, self.written_bytes) = (self.writes + 1, self.written_bytes + transfer.len)
            }
            Kind::Flush => self.flushes += 1,
        }
        self.outstanding += 1;
        self.most_outstanding = self.most_outstanding.max(self.outstanding);
    }
}

enum Job {
    /// A request of a queue, with its result once its bytes were moved.
    Queued(Box<DeviceRequest>, Option<Result<(), IoErrorKind>>, Arc<dyn Owner>),
    /// Somebody waits who moves the bytes itself.
    Awaited(Arc<Waiter>),
    /// Somebody outside moves the bytes, and is called.
    Called(Box<dyn FnOnce() + Send>),
    /// Its bytes are being fetched.
    Fetching,
}

/// Whose requests a host carries out.
pub(crate) trait Owner: Send + Sync {
    /// The request is over.
    fn over(self: Arc<Self>, host: &Arc<Host>, request: DeviceRequest, end: Result<(), IoErrorKind>);
}

struct Waiter {
    over: AtomicBool,
    event: EventCount,
}

impl SimulatedDevice {
    /// A device like `model` with the bytes of `inner`, in `clock`'s time.
    ///
    /// # Panics
    /// When the model is out of bounds: what was parsed is not, and what is made in code should not be.
    pub fn new(model: DeviceModel, inner: Arc<dyn Device>, clock: &Clock) -> SimulatedDevice {
        let made = SimulatedDevice::with_priority(model, inner, clock, false);
        made.unwrap_or_else(|e| panic!("a model made in code is in bounds: {e}"))
    }

    /// The same; with `urgent` the thread that delivers in real time goes before all ordinary ones, where that is permitted,
    /// and spends processor time to be on time.
    pub fn with_priority(
        model: DeviceModel,
        inner: Arc<dyn Device>,
        clock: &Clock,
        urgent: bool,
    ) -> Result<SimulatedDevice, ModelError> {
        let kind = match &model {
            DeviceModel::Disk(_) => "simulated disk",
            DeviceModel::Volume(_) => "simulated volume",
        };
        let name: Arc<str> = format!("{} ({kind})", inner.name()).into();
        let host = Arc::new(Host {
            inner,
            clock: clock.clone(),
            awake_ns: if urgent { AWAKE_NS } else { 0 },
            way_ns: AtomicU64::new(0),
            scratch: Scratch::new(),
            state: Mutex::new(HostState {
                model: model.build()?,
                jobs: Vec::new(),
                free: Vec::new(),
                armed: None,
                to_fetch: VecDeque::new(),
                alarms: Vec::new(),
                asleep_until_ns: None,
                stopping: false,
                last_arrival: 0,
                lateness: histogram(),
                activity: Activity::default(),
            }),
            arrived: Condvar::new(),
        });
        let thread = (!clock.is_virtual()).then(|| {
            let host = host.clone();
            let deliver = move || {
                precise_wake_ups();
                if urgent {
                    run_urgently(); // where it is refused, answers are late more often, which is recorded
                }
                host.deliver_when_due();
            };
            let thread = std::thread::Builder::new().name("simulated".into()).spawn(deliver);
            thread.expect("a thread for the simulated device")
        });
        Ok(SimulatedDevice { name, model, host, thread })
    }

    /// Its model.
    pub fn model(&self) -> &DeviceModel {
        &self.model
    }

    /// How late requests were delivered after they were due (always 0 in virtual time).
    pub fn lateness(&self) -> Latency {
        Latency::of(&self.host.state.lock().lateness)
    }

    /// Starts counting lateness and activity anew.
    pub fn reset_counters(&self) {
        let mut state = self.host.state.lock();
        state.lateness.reset();
        let outstanding = state.activity.outstanding;
        state.activity = Activity { outstanding, most_outstanding: outstanding, ..Activity::default() };
    }

    /// What it was asked.
    pub fn activity(&self) -> Activity {
        self.host.state.lock().activity
    }

    /// Empties what the device holds for reading (track buffer) and lets its budgets refill, as if it had rested for long.
    pub fn reset_model(&self) {
        self.host.state.lock().model.rest();
    }

    /// Records that a request was answered `ns` later than the model knows, because its bytes came late.
    pub fn record_lateness(&self, ns: u64) {
        self.host.state.lock().lateness.saturating_record(ns);
    }

    /// Says how long requests given to `begin` are on their way to here and back: as much earlier the model hears of them, so
    /// that whoever asked waits for as long as for the real device.
    pub fn set_way_ns(&self, ns: u64) {
        self.host.way_ns.store(ns, Ordering::Relaxed);
    }

    /// Has the model alone serve a request for somebody who moves the bytes himself: `over` is called when it would be
    /// answered, from the delivering thread; it must not wait.
    pub fn begin(&self, kind: TransferKind, offset: u64, len: u64, over: impl FnOnce() + Send + 'static) {
        self.host.arrive(Transfer { offset, len, kind }, Job::Called(Box::new(over)));
    }

    pub(crate) fn host(&self) -> &Arc<Host> {
        &self.host
    }

    /// Carries a request out in this thread, and waits for as long as the device would take.
    pub(crate) fn carry_out(&self, request: &mut DeviceRequest) -> Result<(), IoErrorKind> {
        let transfer = Transfer { offset: request.offset, len: request.len, kind: Kind::of(request.write) };
        self.host.spend(transfer, || request.execute(&*self.host.inner, &self.host.scratch))
    }
}

impl Host {
    /// Begins a queue's request; `owner` hears when it is over.
    pub(crate) fn begin(self: &Arc<Self>, request: DeviceRequest, owner: Arc<dyn Owner>) {
        let transfer = Transfer { offset: request.offset, len: request.len, kind: Kind::of(request.write) };
        self.arrive(transfer, Job::Queued(Box::new(request), None, owner));
    }

    /// Has `timer` fired at `at_ns`.
    pub(crate) fn alarm(self: &Arc<Self>, at_ns: u64, timer: Arc<dyn Timer>) {
        if self.clock.is_virtual() {
            self.clock.schedule(at_ns, timer);
        } else {
            self.state.lock().alarms.push((at_ns, timer));
            self.arrived.notify_one();
        }
    }

    /// Moves bytes with `act` and waits until the model says that it is over.
    fn spend<R>(self: &Arc<Self>, transfer: Transfer, act: impl FnOnce() -> R) -> R {
        let waiter = Arc::new(Waiter { over: AtomicBool::new(false), event: EventCount::new(&self.clock) });
        self.clock.settle();
        self.arrive(transfer, Job::Awaited(waiter.clone()));
        let result = act();
        waiter.event.wait_until(|| waiter.over.load(Ordering::Acquire));
        result
    }

    fn arrive(self: &Arc<Self>, transfer: Transfer, job: Job) {
        let mut state = self.state.lock();
        let queued = matches!(job, Job::Queued(..));
        let id = state.keep(job);
        state.activity.arrived(&transfer);
        let way_ns = if matches!(state.jobs[id], Some(Job::Called(_))) {
            self.way_ns.load(Ordering::Relaxed)
        } else {
            0
        };
        let now = self.clock.now_ns().saturating_sub(way_ns).max(state.last_arrival);
        state.last_arrival = now;
        state.model.arrive(id, transfer, now);
        if self.clock.is_virtual() {
            let event = state.arm();
            drop(state);
            event.into_iter().for_each(|at| self.clock.schedule(at, self.clone()));
        } else {
            if queued {
                state.to_fetch.push_back(id);
            }
            let due = state.next_event().map(|due| due.saturating_sub(self.awake_ns));
            let too_late = state.asleep_until_ns.is_some_and(|until| due.is_some_and(|due| due < until));
            drop(state);
            if queued || too_late {
                self.arrived.notify_one();
            }
        }
    }

    fn finish(self: &Arc<Self>, job: Job) {
        match job {
            Job::Awaited(waiter) => {
                waiter.over.store(true, Ordering::Release);
                waiter.event.notify_all();
            }
            Job::Queued(mut request, end, owner) => {
                let end = end.unwrap_or_else(|| request.execute(&*self.inner, &self.scratch));
                owner.over(self, *request, end);
            }
            Job::Called(over) => over(),
            Job::Fetching => unreachable!("only the delivering thread fetches, and it is here"),
        }
    }

    /// Real time: fetches bytes early and delivers them when due.
    fn deliver_when_due(self: Arc<Self>) {
        let mut state = self.state.lock();
        loop {
            let now = self.clock.now_ns();
            if let Some((id, due)) = state.model.pop_due(now) {
                state.lateness.saturating_record(now - due);
                let job = state.take(id);
                drop(state);
                self.finish(job);
                state = self.state.lock();
            } else if let Some(id) = state.to_fetch.pop_front() {
                // Not any more if it was due before its turn came.
                if !matches!(&state.jobs[id], Some(Job::Queued(_, None, _))) {
                    continue;
                }
                let Some(Job::Queued(mut request, _, owner)) = state.jobs[id].replace(Job::Fetching) else {
                    unreachable!("just looked at")
                };
                drop(state);
                let end = request.execute(&*self.inner, &self.scratch);
                state = self.state.lock();
                state.jobs[id] = Some(Job::Queued(request, Some(end), owner));
            } else if let Some(i) = state.alarms.iter().position(|(at, _)| *at <= now) {
                let (_, timer) = state.alarms.swap_remove(i);
                drop(state);
                timer.fire(now);
                state = self.state.lock();
            } else if let Some(due) = state.next_event() {
                let rest_ns = due.saturating_sub(now);
                if rest_ns <= self.awake_ns {
                    drop(state);
                    while self.clock.now_ns() < due {
                        std::hint::spin_loop();
                    }
                    state = self.state.lock();
                } else {
                    state.asleep_until_ns = Some(due - self.awake_ns);
                    self.arrived.wait_for(&mut state, Duration::from_nanos(rest_ns - self.awake_ns));
                    state.asleep_until_ns = None;
                }
            } else if state.stopping {
                return;
            } else {
                state.asleep_until_ns = Some(u64::MAX);
                self.arrived.wait(&mut state);
                state.asleep_until_ns = None;
            }
        }
    }
}

impl HostState {
    fn keep(&mut self, job: Job) -> usize {
        let id = self.free.pop().unwrap_or_else(|| {
            self.jobs.push(None);
            self.jobs.len() - 1
        });
        self.jobs[id] = Some(job);
        id
    }

    fn take(&mut self, id: usize) -> Job {
        self.free.push(id);
        self.activity.outstanding -= 1;
        self.jobs[id].take().expect("the model names what is outstanding")
    }

    /// When there is something to do next.
    fn next_event(&self) -> Option<u64> {
        self.alarms.iter().map(|(at, _)| *at).chain(self.model.next_due()).min()
    }

    /// When an event must be set so that the next completion is not missed; none when an earlier one is.
    fn arm(&mut self) -> Option<u64> {
        let next = self.model.next_due()?;
        let late = self.armed.is_none_or(|armed| next < armed);
        late.then(|| *self.armed.insert(next))
    }
}

impl Timer for Host {
    fn fire(self: Arc<Self>, now_ns: u64) {
        let mut state = self.state.lock();
        if state.armed.is_some_and(|armed| armed <= now_ns) {
            state.armed = None;
        }
        while let Some((id, due)) = state.model.pop_due(now_ns) {
            state.lateness.saturating_record(now_ns - due);
            let job = state.take(id);
            drop(state);
            self.finish(job);
            state = self.state.lock();
        }
        let event = state.arm();
        drop(state);
        event.into_iter().for_each(|at| self.clock.schedule(at, self.clone()));
    }
}

/// Has the kernel wake this thread to the microsecond rather than with the usual 50 µs of slack.
#[allow(unsafe_code)]
fn precise_wake_ups() {
    // SAFETY: sets one number of the calling thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_000) };
}

/// Puts the calling thread, and those it starts from now on, before all ordinary ones (SCHED_RR); false where that is refused.
/// For threads that stand for a device: the programs on a busy machine must not make it slow.
#[allow(unsafe_code)]
pub fn run_urgently() -> bool {
    let priority = libc::sched_param { sched_priority: 1 };
    // SAFETY: sets the scheduling class of the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_RR, &raw const priority) == 0 }
}

impl Drop for SimulatedDevice {
    fn drop(&mut self) {
        self.host.state.lock().stopping = true;
        self.host.arrived.notify_one();
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            thread.join().expect("the delivering thread does not panic");
        }
    }
}

impl Device for SimulatedDevice {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn len(&self) -> Result<u64, IoError> {
        self.host.inner.len()
    }

    fn set_len(&self, len: u64) -> Result<(), IoError> {
        self.host.inner.set_len(len)
    }

    fn lengthen(&self, len: u64) -> Result<(), IoError> {
        self.host.inner.lengthen(len)
    }

    fn read_at(&self, bufs: &mut [IoSliceMut<'_>], offset: u64) -> Result<(), IoError> {
        let len = bufs.iter().map(|b| b.len() as u64).sum();
        self.host.spend(Transfer { offset, len, kind: Kind::Read }, || self.host.inner.read_at(bufs, offset))
    }

    fn write_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Result<(), IoError> {
        let len = bufs.iter().map(|b| b.len() as u64).sum();
        self.host
            .spend(Transfer { offset, len, kind: Kind::Write }, || self.host.inner.write_at(bufs, offset))
    }

    fn sync(&self) -> Result<(), IoError> {
        if self.model.caches_writes() {
            let flush = Transfer { offset: 0, len: 0, kind: Kind::Flush };
            return self.host.spend(flush, || self.host.inner.sync());
        }
        let result = self.host.inner.sync();
        self.host.clock.sleep_ns(self.model.sync_ns());
        result
    }

    fn alignment(&self) -> Alignment {
        self.host.inner.alignment()
    }

    fn simulated(&self) -> Option<&SimulatedDevice> {
        Some(self)
    }

    fn cost(&self) -> CostModel {
        self.model.cost(self.host.inner.len().unwrap_or(0))
    }
}
