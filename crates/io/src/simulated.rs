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
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hdrhistogram::Histogram;
use parking_lot::{Condvar, Mutex};

use crate::clock::Clock;
use crate::cost::CostModel;
use crate::counters::{Latency, histogram};
use crate::device::{Alignment, Device};
use crate::error::{IoError, IoErrorKind};
use crate::event_count::EventCount;
use crate::model::{DeviceModel, Model, Transfer};
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
    stopping: bool,
    lateness: Histogram<u64>,
}

enum Job {
    /// A request of a queue, with its result once its bytes were moved.
    Queued(Box<DeviceRequest>, Option<Result<(), IoErrorKind>>, Arc<dyn Owner>),
    /// Somebody waits who moves the bytes itself.
    Awaited(Arc<Waiter>),
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
    pub fn new(model: DeviceModel, inner: Arc<dyn Device>, clock: &Clock) -> SimulatedDevice {
        let kind = match &model {
            DeviceModel::Disk(_) => "simulated disk",
            DeviceModel::Volume(_) => "simulated volume",
        };
        let name: Arc<str> = format!("{} ({kind})", inner.name()).into();
        let host = Arc::new(Host {
            inner,
            clock: clock.clone(),
            scratch: Scratch::new(),
            state: Mutex::new(HostState {
                model: model.build(),
                jobs: Vec::new(),
                free: Vec::new(),
                armed: None,
                to_fetch: VecDeque::new(),
                stopping: false,
                lateness: histogram(),
            }),
            arrived: Condvar::new(),
        });
        let thread = (!clock.is_virtual()).then(|| {
            let host = host.clone();
            let thread =
                std::thread::Builder::new().name("simulated".into()).spawn(move || host.deliver_when_due());
            thread.expect("a thread for the simulated device")
        });
        SimulatedDevice { name, model, host, thread }
    }

    /// Its model.
    pub fn model(&self) -> &DeviceModel {
        &self.model
    }

    /// How late requests were delivered after they were due (always 0 in virtual time).
    pub fn lateness(&self) -> Latency {
        Latency::of(&self.host.state.lock().lateness)
    }

    pub(crate) fn host(&self) -> &Arc<Host> {
        &self.host
    }

    /// Carries a request out in this thread, and waits for as long as the device would take.
    pub(crate) fn carry_out(&self, request: &mut DeviceRequest) -> Result<(), IoErrorKind> {
        let transfer = Transfer { offset: request.offset, len: request.len, write: request.write };
        self.host.spend(transfer, || request.execute(&*self.host.inner, &self.host.scratch))
    }
}

impl Host {
    /// Begins a queue's request; `owner` hears when it is over.
    pub(crate) fn begin(self: &Arc<Self>, request: DeviceRequest, owner: Arc<dyn Owner>) {
        let transfer = Transfer { offset: request.offset, len: request.len, write: request.write };
        self.arrive(transfer, Job::Queued(Box::new(request), None, owner));
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
        let now = self.clock.now_ns();
        state.model.arrive(id, transfer, now);
        if self.clock.is_virtual() {
            let event = state.arm();
            drop(state);
            event.into_iter().for_each(|at| self.clock.schedule(at, self.clone()));
        } else {
            if queued {
                state.to_fetch.push_back(id);
            }
            drop(state);
            self.arrived.notify_one();
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
            Job::Fetching => unreachable!("only the delivering thread fetches, and it is here"),
        }
    }

    /// Real time: fetches bytes early and delivers them when due.
    fn deliver_when_due(self: Arc<Self>) {
        precise_wake_ups();
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
            } else if let Some(due) = state.model.next_due() {
                self.arrived.wait_for(&mut state, Duration::from_nanos(due.saturating_sub(now)));
            } else if state.stopping {
                return;
            } else {
                self.arrived.wait(&mut state);
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
        self.jobs[id].take().expect("the model names what is outstanding")
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

    fn read_at(&self, bufs: &mut [IoSliceMut<'_>], offset: u64) -> Result<(), IoError> {
        let len = bufs.iter().map(|b| b.len() as u64).sum();
        self.host.spend(Transfer { offset, len, write: false }, || self.host.inner.read_at(bufs, offset))
    }

    fn write_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Result<(), IoError> {
        let len = bufs.iter().map(|b| b.len() as u64).sum();
        self.host.spend(Transfer { offset, len, write: true }, || self.host.inner.write_at(bufs, offset))
    }

    fn sync(&self) -> Result<(), IoError> {
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
