//! The outstanding requests of a simulated device, and their delivery when the mechanics say
//! so.
//!
//! In virtual time a completion is an event of the clock. In real time one thread moves the
//! bytes of each request as soon as it can, and delivers the request when it is due. The delay
//! after that moment is recorded.
//!
//! Invariant: the mechanics hear of requests in the order of their arrival times, under the
//! host's lock.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use hdrhistogram::Histogram;
use parking_lot::{Condvar, Mutex};

use crate::device::Device;
use crate::device::simulated::activity::Activity;
use crate::device::simulated::mechanics::Mechanics;
use crate::device::timed::{TimedDevice, TimedTask, Transfer};
use crate::latency::histogram;
use crate::time::clock::Clock;
use crate::time::event_count::EventCount;
use crate::time::virtual_time::Timer;

/// The model with what is outstanding in it.
pub(crate) struct Host {
    pub(crate) inner: Arc<dyn Device>,
    pub(crate) clock: Clock,
    /// Real time: the delivering thread is awake this long before something is due.
    awake_ns: u64,
    /// Requests from outside were on their way for so long, and will be on the way back.
    pub(crate) way_ns: AtomicU64,
    pub(crate) state: Mutex<HostState>,
    /// Real time: wakes the delivering thread.
    arrived: Condvar,
}

pub(crate) struct HostState {
    pub(crate) mechanics: Box<dyn Mechanics>,
    jobs: Vec<Option<Outstanding>>,
    free: Vec<usize>,
    /// Virtual time: when the earliest event set will fire.
    armed: Option<u64>,
    /// Real time: ids whose bytes are still to be fetched.
    to_fetch: VecDeque<usize>,
    /// Real time: what is to be done when.
    alarms: Vec<(u64, Arc<dyn Timer>)>,
    /// Real time: until when the delivering thread sleeps, if it does. It is not woken for what is
    /// due later, since that costs more than the request.
    asleep_until_ns: Option<u64>,
    stopping: bool,
    last_arrival: u64,
    pub(crate) lateness: Histogram<u64>,
    pub(crate) activity: Activity,
}

/// About what the kernel takes to wake a thread, on a virtual machine too: an urgent thread
/// wakes that much earlier and spins.
const AWAKE_NS: u64 = 80_000;

pub(crate) enum Outstanding {
    /// A request of a queue.
    Queued { task: Box<dyn TimedTask>, moved: bool },
    /// A thread waits that moves the bytes itself.
    Awaited(Arc<Waiter>),
    /// A caller from outside moves the bytes, and is called.
    Called(Box<dyn FnOnce() + Send>),
    /// Its bytes are being fetched.
    Fetching,
}

pub(crate) struct Waiter {
    over: AtomicBool,
    event: EventCount,
}

impl Host {
    /// A host of nothing yet; in real time `run` must be called by the delivering thread.
    pub(crate) fn new(
        mechanics: Box<dyn Mechanics>,
        inner: Arc<dyn Device>,
        clock: &Clock,
        urgent: bool,
    ) -> Host {
        Host {
            inner,
            clock: clock.clone(),
            awake_ns: if urgent { AWAKE_NS } else { 0 },
            way_ns: AtomicU64::new(0),
            state: Mutex::new(HostState {
                mechanics,
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
        }
    }

    /// Has the delivering thread end once nothing is outstanding.
    pub(crate) fn stop(&self) {
        self.state.lock().stopping = true;
        self.arrived.notify_one();
    }

    /// Moves bytes with `act` and waits until the model says that it is over.
    pub(crate) fn spend<R>(self: &Arc<Self>, transfer: Transfer, act: impl FnOnce() -> R) -> R {
        let waiter = Arc::new(Waiter { over: AtomicBool::new(false), event: EventCount::new(&self.clock) });
        self.clock.settle();
        self.arrive(transfer, Outstanding::Awaited(waiter.clone()));
        let result = act();
        waiter.event.wait_until(|| waiter.over.load(Ordering::Acquire));
        result
    }

    pub(crate) fn arrive(self: &Arc<Self>, transfer: Transfer, job: Outstanding) {
        let mut state = self.state.lock();
        let queued = matches!(job, Outstanding::Queued { .. });
        let id = state.keep(job);
        let parts = state.mechanics.parts(&transfer);
        state.activity.arrived(&transfer, parts);
        let way_ns = if matches!(state.jobs[id], Some(Outstanding::Called(_))) {
            self.way_ns.load(Ordering::Relaxed)
        } else {
            0
        };
        let now = self.clock.now_ns().saturating_sub(way_ns).max(state.last_arrival);
        state.last_arrival = now;
        state.mechanics.arrive(id, transfer, now);
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

    fn finish(self: &Arc<Self>, job: Outstanding) {
        match job {
            Outstanding::Awaited(waiter) => {
                waiter.over.store(true, Ordering::Release);
                waiter.event.notify_all();
            }
            Outstanding::Queued { mut task, moved } => {
                if !moved {
                    task.move_bytes(&*self.inner);
                }
                task.over();
            }
            Outstanding::Called(over) => over(),
            Outstanding::Fetching => unreachable!("only the delivering thread fetches, and it is here"),
        }
    }

    /// Real time: fetches bytes early and delivers them when due.
    pub(crate) fn deliver_when_due(self: Arc<Self>) {
        let mut state = self.state.lock();
        loop {
            let now = self.clock.now_ns();
            if let Some((id, due)) = state.mechanics.pop_due(now) {
                state.lateness.saturating_record(now - due);
                let job = state.take(id);
                drop(state);
                self.finish(job);
                state = self.state.lock();
            } else if let Some(id) = state.to_fetch.pop_front() {
                // Not any more if it was due before its turn came.
                if !matches!(&state.jobs[id], Some(Outstanding::Queued { moved: false, .. })) {
                    continue;
                }
                let Some(Outstanding::Queued { mut task, .. }) =
                    state.jobs[id].replace(Outstanding::Fetching)
                else {
                    unreachable!("just looked at")
                };
                drop(state);
                task.move_bytes(&*self.inner);
                state = self.state.lock();
                state.jobs[id] = Some(Outstanding::Queued { task, moved: true });
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

impl TimedDevice for Host {
    fn begin(self: Arc<Self>, transfer: Transfer, task: Box<dyn TimedTask>) {
        self.arrive(transfer, Outstanding::Queued { task, moved: false });
    }

    fn carry_out(self: Arc<Self>, transfer: Transfer, act: &mut dyn FnMut(&dyn Device)) {
        self.spend(transfer, || act(&*self.inner));
    }

    fn alarm(self: Arc<Self>, at_ns: u64, timer: Arc<dyn Timer>) {
        if self.clock.is_virtual() {
            self.clock.schedule(at_ns, timer);
        } else {
            self.state.lock().alarms.push((at_ns, timer));
            self.arrived.notify_one();
        }
    }
}

impl HostState {
    fn keep(&mut self, job: Outstanding) -> usize {
        let id = self.free.pop().unwrap_or_else(|| {
            self.jobs.push(None);
            self.jobs.len() - 1
        });
        self.jobs[id] = Some(job);
        id
    }

    fn take(&mut self, id: usize) -> Outstanding {
        self.free.push(id);
        self.activity.outstanding -= 1;
        self.jobs[id].take().expect("the model names what is outstanding")
    }

    /// When there is something to do next.
    fn next_event(&self) -> Option<u64> {
        self.alarms.iter().map(|(at, _)| *at).chain(self.mechanics.next_due()).min()
    }

    /// Time of the event to set for the next completion; none when an earlier event is set.
    fn arm(&mut self) -> Option<u64> {
        let next = self.mechanics.next_due()?;
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
        while let Some((id, due)) = state.mechanics.pop_due(now_ns) {
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
