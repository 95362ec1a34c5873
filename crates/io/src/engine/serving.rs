//! The state a queue shares with its engine, and the steps of every engine: take, deliver,
//! retire.
//!
//! 1. `take` makes the next device request from the schedule, under the lock.
//! 2. The engine carries it out.
//! 3. `deliver` completes its pieces, without the lock.
//! 4. `retire` gives it back under the lock; pieces of a merge that failed wait again, each
//!    alone.
//!
//! Invariant: a device request that was taken is delivered once and retired once.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::{Condvar, Mutex, MutexGuard, RwLock};

use crate::cost::CostModel;
use crate::device::Device;
use crate::engine::awaited::{AWAITED, Awaited};
use crate::engine::in_place::{InPlaceLoad, urgent};
use crate::error::{IoError, IoErrorKind, Operation};
use crate::learn::{Learned, Learner, Reads};
use crate::notice::notice;
use crate::queue::background::Background;
use crate::queue::costs::DeviceCosts;
use crate::queue::counters::{QueueTally, Seen};
use crate::queue::device_load::DeviceLoad;
use crate::queue::device_request::{DeviceRequest, Pending, Scratch};
use crate::queue::request::{Request, Sink};
use crate::queue::schedule::{Next, Schedule, ScheduleLimits, ScheduleSettings};
use crate::time::clock::Clock;
use crate::time::event_count::EventCount;
use crate::write_cost::WriteCost;

/// State shared by a queue and its engine.
pub(crate) struct Serving {
    pub(crate) device: Arc<dyn Device>,
    pub(crate) clock: Clock,
    pub(crate) settings: ScheduleSettings,
    /// Costs of reads and of writes, as they are believed now.
    costs: RwLock<DeviceCosts>,
    /// The limit of reads was not reached yet.
    is_sought: AtomicBool,
    /// Counts the changes of `costs`.
    changes: AtomicU64,
    pub(crate) scratch: Scratch,
    pub(crate) sink: Arc<dyn Sink>,
    pub(crate) state: Mutex<ServingState>,
    /// Wakes serving threads.
    pub(crate) work: Condvar,
    /// Wakes the timekeeper.
    pub(crate) time: Condvar,
    pub(crate) tally: Mutex<QueueTally>,
    pub(crate) awaited: Awaited,
    /// Notified when the last outstanding request of a closing queue is over.
    pub(crate) drained: EventCount,
    pub(crate) in_place: InPlaceLoad,
    /// Background requests wait until less is outstanding. Set, under the lock, before the bytes
    /// in place are looked at for the last time; read after they have become fewer: so one of
    /// the two sides sees the other.
    pub(crate) is_held: AtomicBool,
    /// The shortest time of a demand read lately, in nanoseconds.
    pub(crate) least_ns: AtomicU64,
    /// Device requests outstanding in the mean, lately, where costs are learned.
    pub(crate) crowd: AtomicUsize,
}

/// The part of it under the lock.
pub(crate) struct ServingState {
    pub(crate) schedule: Schedule,
    /// Device requests outstanding, and their bytes.
    pub(crate) outstanding: DeviceLoad,
    pub(crate) closing: bool,
    /// Serving threads that sleep.
    pub(crate) idle: usize,
    /// True while one more thread sleeps until a policy releases the device.
    pub(crate) timekeeper: bool,
    /// Simulated devices: when the queue will be asked again because a policy holds it.
    pub(crate) alarm_ns: Option<u64>,
    pub(crate) threads: Vec<std::thread::JoinHandle<()>>,
    /// Device requests for reuse.
    spare: Vec<DeviceRequest>,
    /// Changes of the costs that the schedule knows of.
    changes: u64,
}

thread_local! {
    /// This thread is inside a sink: it must not wait for completions.
    static DELIVERING: Cell<bool> = const { Cell::new(false) };
}

/// True inside of a sink.
pub(crate) fn is_delivering() -> bool {
    DELIVERING.get()
}

impl Serving {
    pub(crate) fn new(
        device: Arc<dyn Device>,
        clock: Clock,
        settings: ScheduleSettings,
        cost: CostModel,
        learner: Learner,
        sink: Arc<dyn Sink>,
    ) -> Serving {
        let costs = DeviceCosts::from_reads(cost);
        let limits = settings.limits(&costs);
        Serving {
            costs: RwLock::new(costs),
            is_sought: AtomicBool::new(false),
            changes: AtomicU64::new(0),
            scratch: Scratch::new(),
            sink,
            state: Mutex::new(ServingState {
                schedule: Schedule::new(&settings.policy, limits),
                outstanding: DeviceLoad::default(),
                closing: false,
                idle: 0,
                timekeeper: false,
                alarm_ns: None,
                threads: Vec::new(),
                spare: Vec::new(),
                changes: 0,
            }),
            work: Condvar::new(),
            time: Condvar::new(),
            tally: Mutex::new(QueueTally::new(learner)),
            awaited: Awaited::new(&clock),
            drained: EventCount::new(&clock),
            in_place: InPlaceLoad::default(),
            is_held: AtomicBool::new(false),
            least_ns: AtomicU64::new(0),
            crowd: AtomicUsize::new(0),
            device,
            clock,
            settings,
        }
    }

    /// A place for a device request.
    pub(crate) fn blank(state: &mut ServingState) -> DeviceRequest {
        state.spare.pop().unwrap_or_else(DeviceRequest::new)
    }

    /// Takes the next device request to carry out; the caller must `deliver` and `retire` it.
    pub(crate) fn take(&self, state: &mut ServingState, now_ns: u64) -> Taken {
        let changes = self.changes.load(Ordering::Acquire);
        if changes != state.changes {
            state.changes = changes;
            state.schedule.set_limits(self.limits_now());
        }
        let mut request = Self::blank(state);
        let mut in_place = self.in_place.bytes();
        loop {
            let outstanding = DeviceLoad {
                bytes: state.outstanding.bytes + in_place,
                urgent_bytes: state.outstanding.urgent_bytes + self.in_place.urgent_bytes(),
                least_ns: self.least_ns.load(Ordering::Relaxed),
                ..state.outstanding
            };
            match state.schedule.next(&mut request, outstanding, now_ns) {
                Next::Begun => break,
                Next::Nothing => {
                    if !state.schedule.is_empty() {
                        self.tally.lock().is_full();
                    }
                    let is_held = state.schedule.is_held();
                    self.is_held.store(is_held, Ordering::SeqCst);
                    let fewer = self.in_place.bytes();
                    if is_held && fewer < in_place {
                        in_place = fewer;
                        continue;
                    }
                    state.spare.push(request);
                    return Taken::Nothing;
                }
                Next::NotBefore(at) => {
                    state.spare.push(request);
                    return Taken::NotBefore(at);
                }
            }
        }
        state.outstanding.requests += 1;
        state.outstanding.background += usize::from(Background::includes(request.class as usize));
        state.outstanding.writes += usize::from(request.write);
        state.outstanding.bytes += request.len;
        state.outstanding.urgent_bytes += urgent(request.class, request.len);
        request.started_ns = now_ns;
        self.tally.lock().started(&mut request, now_ns);
        Taken::Request(request)
    }

    /// Completes the pieces of a device request that is over. When a merge failed, the pieces
    /// not reached stay in it, to be tried again alone.
    pub(crate) fn deliver(&self, request: &mut DeviceRequest, end: Result<(), IoErrorKind>, now_ns: u64) {
        let whole = request.complete_pieces();
        let failed = match &end {
            Ok(()) => 0,
            Err(_) if request.pieces.len() == 1 => 1,
            Err(_) => 0,
        };
        let seen = self.tally.lock().finished(request, whole + failed, failed, now_ns);
        self.note(seen);
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
    pub(crate) fn retire(&self, state: &mut ServingState, request: DeviceRequest) {
        state.outstanding.requests -= 1;
        state.outstanding.background -= usize::from(Background::includes(request.class as usize));
        state.outstanding.writes -= usize::from(request.write);
        state.outstanding.bytes -= request.len;
        state.outstanding.urgent_bytes -= urgent(request.class, request.len);
        self.give_back(state, request);
    }

    /// Gives back a device request that is not counted any more; what is left in it waits again.
    pub(crate) fn give_back(&self, state: &mut ServingState, mut request: DeviceRequest) {
        state.schedule.over(&request, &|| self.clock.now_ns());
        for piece in request.pieces.drain(..) {
            state.schedule.push(Pending { alone: true, again: true, ..piece });
        }
        state.spare.push(request);
        if state.closing && state.outstanding.requests == 0 && state.schedule.is_empty() {
            self.drained.notify_all();
        }
    }

    /// Stores what a completion showed.
    pub(crate) fn note(&self, seen: Seen) {
        self.least_ns.store(seen.least_ns, Ordering::Relaxed);
        match seen.learned {
            None => return,
            Some(Learned::Reads(Reads { cost, crowd, is_sought })) => {
                self.is_sought.store(is_sought, Ordering::Relaxed);
                self.crowd.store(crowd.round() as usize, Ordering::Relaxed);
                self.costs.write().reads = cost;
            }
            Some(Learned::Writes(cost)) => return self.note_writes(cost),
        }
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// Stores new costs of writes.
    pub(crate) fn note_writes(&self, cost: WriteCost) {
        self.costs.write().writes = cost;
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// Costs of reads, as they are believed now.
    pub(crate) fn cost(&self) -> CostModel {
        self.costs.read().reads
    }

    /// Costs of writes, as they are believed now.
    pub(crate) fn write_cost(&self) -> WriteCost {
        self.costs.read().writes
    }

    /// The limits that follow from them.
    pub(crate) fn limits_now(&self) -> ScheduleLimits {
        let costs = *self.costs.read();
        let mut limits = self.settings.limits(&costs);
        limits.background.is_sought = self.is_sought.load(Ordering::Relaxed);
        limits
    }

    fn tell(&self, tag: u64, result: Result<(), IoError>) {
        match tag & AWAITED {
            0 => self.sink.complete(tag, result),
            _ => self.awaited.complete(tag, result),
        }
    }

    pub(crate) fn fail_closed(&self, pending: &Pending) {
        let Request { offset, buf, tag, .. } = pending.request;
        let operation = if buf.is_write() { Operation::Write } else { Operation::Read };
        let device = self.device.name().clone();
        let error = IoError { device, operation, offset, len: buf.len() as u64, kind: IoErrorKind::Closed };
        self.tell(tag, Err(error));
    }
}

/// Answer of [`Serving::take`].
pub(crate) enum Taken {
    Request(DeviceRequest),
    Nothing,
    /// Ask again at this time.
    NotBefore(u64),
}

/// Ends the process when a serving thread panics: the kernel may still write to memory that
/// unwinding would free, and all other threads would wait for ever.
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
pub(crate) type Locked<'a> = MutexGuard<'a, ServingState>;
