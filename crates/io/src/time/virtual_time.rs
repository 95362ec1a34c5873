//! Virtual time: real threads that run one at a time, in an order that depends on the program
//! alone.
//!
//! 1. A thread takes part after it entered. Of those, exactly one runs: the holder of the
//!    baton.
//! 2. It gives the baton away when it waits, sleeps, or is charged processor time. Next is the
//!    first thread after it, in order of registration, that can go on; the waiters' conditions
//!    are evaluated by the thread that gives away, so that no thread is woken in vain.
//! 3. When none can go on, time jumps to the earliest event (a sleeper's end, a device's
//!    completion), which is then carried out by the same thread. Events due at the same moment
//!    come in the order they were made.
//! 4. When there is no event either, the baton lies on the ground until a thread from outside
//!    notifies or enters.
//!
//! A thread that waits without having entered takes part for that long, so single-threaded
//! tests need no setup.

#![allow(unsafe_code)]

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::notice::notice;

/// Something to be done at a moment of virtual time. Must not block.
pub trait Timer: Send + Sync {
    /// The moment has come.
    fn fire(self: Arc<Self>, now_ns: u64);
}

/// Short charges of processor time are saved up to this much before they are spent.
const CHARGE_QUANTUM_NS: u64 = 20_000;

/// The state of all participants, and the time.
pub(crate) struct Virtual {
    now: AtomicU64,
    state: Mutex<VirtualState>,
    processor: usize,
}

struct VirtualState {
    clients: Vec<Client>,
    baton: Baton,
    /// The last holder of the baton: the search for the next starts behind it.
    last: usize,
    events: BinaryHeap<Reverse<Event>>,
    events_made: u64,
    /// When each modelled processor is free again.
    cores: Vec<u64>,
}

#[derive(PartialEq, Clone, Copy)]
enum Baton {
    OnTheGround,
    /// A thread is looking for the next holder.
    Passing,
    Held,
}

struct Client {
    status: Status,
    condition: Option<Condition>,
    called: Arc<Condvar>,
}

#[derive(PartialEq, Clone, Copy)]
enum Status {
    Free,
    /// Can go on.
    Ready,
    Running,
    /// Until its event.
    Asleep,
    /// Until its event count is notified.
    Waiting(u64),
    /// Its condition may have become true.
    Notified(u64),
}

/// The condition of a parked thread, on that thread's stack.
struct Condition(*mut (dyn FnMut() -> bool + Send));

// SAFETY: the closure is Send, and only the thread that passes the baton calls it, while its
// owner is parked.
unsafe impl Send for Condition {}

struct Event {
    at: u64,
    order: u64,
    what: What,
}

enum What {
    Wake(usize),
    Fire(Arc<dyn Timer>),
}

impl PartialEq for Event {
    fn eq(&self, other: &Event) -> bool {
        (self.at, self.order) == (other.at, other.order)
    }
}
impl Eq for Event {}
impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Event) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Event {
    fn cmp(&self, other: &Event) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

/// State of a thread as a participant of one clock.
struct Entered {
    clock: *const Virtual,
    place: usize,
    uncharged_ns: u64,
}

thread_local! {
    static ENTERED: RefCell<Vec<Entered>> = const { RefCell::new(Vec::new()) };
}

impl Virtual {
    pub(crate) fn new(cores: usize) -> Virtual {
        assert!(cores > 0, "a machine has at least one processor");
        static CLOCKS: AtomicUsize = AtomicUsize::new(0);
        Virtual {
            processor: CLOCKS.fetch_add(1, Ordering::Relaxed),
            now: AtomicU64::new(0),
            state: Mutex::new(VirtualState {
                clients: Vec::new(),
                baton: Baton::OnTheGround,
                last: 0,
                events: BinaryHeap::new(),
                events_made: 0,
                cores: vec![0; cores],
            }),
        }
    }

    fn with_entry<R>(&self, f: impl FnOnce(&mut Entered) -> R) -> Option<R> {
        ENTERED.with_borrow_mut(|all| all.iter_mut().find(|e| std::ptr::eq(e.clock, self)).map(f))
    }

    fn place(&self) -> Option<usize> {
        self.with_entry(|e| e.place)
    }

    pub(crate) fn now_ns(&self) -> u64 {
        self.now.load(Ordering::Relaxed) + self.with_entry(|e| e.uncharged_ns).unwrap_or(0)
    }

    /// Which processor its participants share; clocks take turns.
    pub(crate) fn processor(&self) -> usize {
        self.processor
    }

    // --- taking part ---

    pub(crate) fn reserve(&self) -> usize {
        self.state.lock().take_place(Status::Ready)
    }

    pub(crate) fn abandon(&self, place: usize) {
        let mut state = self.state.lock();
        let held = state.clients[place].status == Status::Running;
        state.clients[place].status = Status::Free;
        if held {
            self.pass(&mut state);
        }
    }

    pub(crate) fn enter(&self, reserved: Option<usize>) {
        assert!(self.place().is_none(), "a thread takes part in a clock once");
        let mut state = self.state.lock();
        let place = reserved.unwrap_or_else(|| state.take_place(Status::Ready));
        ENTERED.with_borrow_mut(|all| all.push(Entered { clock: self, place, uncharged_ns: 0 }));
        if state.baton == Baton::OnTheGround {
            self.pass(&mut state);
        }
        self.park(state, place);
    }

    pub(crate) fn leave(&self) {
        if !std::thread::panicking() {
            self.settle();
        }
        let place = self.place().expect("only a thread that entered leaves");
        ENTERED.with_borrow_mut(|all| all.retain(|e| !std::ptr::eq(e.clock, self)));
        let mut state = self.state.lock();
        state.clients[place].status = Status::Free;
        self.pass(&mut state);
    }

    /// Runs `f` as a participant, entering for that long if the thread has not.
    fn taking_part(&self, f: impl FnOnce(usize)) {
        match self.place() {
            Some(place) => f(place),
            None => {
                self.enter(None);
                f(self.place().expect("just entered"));
                self.leave();
            }
        }
    }

    // --- waiting ---

    pub(crate) fn sleep(&self, ns: u64) {
        self.settle();
        self.taking_part(|place| {
            self.sleep_until(place, self.now.load(Ordering::Relaxed).saturating_add(ns))
        });
    }

    pub(crate) fn charge_cpu(&self, ns: u64) {
        let saved = self.with_entry(|e| {
            e.uncharged_ns += ns;
            e.uncharged_ns
        });
        match saved {
            Some(saved) if saved < CHARGE_QUANTUM_NS => {}
            Some(_) => self.settle(),
            None => self.taking_part(|place| self.spend(place, ns)),
        }
    }

    /// Spends what this thread was charged.
    pub(crate) fn settle(&self) {
        let owed = self.with_entry(|e| (e.place, std::mem::take(&mut e.uncharged_ns)));
        if let Some((place, ns)) = owed.filter(|owed| owed.1 > 0) {
            self.spend(place, ns);
        }
    }

    /// Waits for the first free processor to have worked `ns`.
    fn spend(&self, place: usize, ns: u64) {
        let mut state = self.state.lock();
        let now = self.now.load(Ordering::Relaxed);
        let core = state.cores.iter_mut().min().expect("there is a processor");
        *core = (*core).max(now) + ns;
        let until = *core;
        drop(state);
        self.sleep_until(place, until);
    }

    fn sleep_until(&self, place: usize, until: u64) {
        let mut state = self.state.lock();
        assert!(state.baton == Baton::Held, "only the holder of the baton sleeps; timers never do");
        if !state.anybody_can_go_on() && state.events.peek().is_none_or(|Reverse(e)| e.at > until) {
            self.now.fetch_max(until, Ordering::Relaxed); // nothing happens in between
            return;
        }
        state.add_event(until, What::Wake(place));
        state.clients[place].status = Status::Asleep;
        self.pass(&mut state);
        self.park(state, place);
    }

    pub(crate) fn wait(&self, event_count: u64, condition: &mut (dyn FnMut() -> bool + Send)) {
        self.settle();
        let pointer: *mut (dyn FnMut() -> bool + Send + '_) = condition;
        // SAFETY: only the lifetime is widened. The pointer is removed by `pass` when it picks
        // this thread, before this function returns and the borrow ends.
        let pointer: *mut (dyn FnMut() -> bool + Send + 'static) = unsafe { std::mem::transmute(pointer) };
        self.taking_part(|place| {
            let mut state = self.state.lock();
            assert!(state.baton == Baton::Held, "only the holder of the baton waits; timers never do");
            // Looked at once more after it is registered: a thread outside may notify at any
            // time.
            state.clients[place].status = Status::Notified(event_count);
            state.clients[place].condition = Some(Condition(pointer));
            self.pass(&mut state);
            self.park(state, place);
        });
    }

    pub(crate) fn notify(&self, event_count: u64) {
        let mut state = self.state.lock();
        for client in &mut state.clients {
            if client.status == Status::Waiting(event_count) {
                client.status = Status::Notified(event_count);
            }
        }
        if state.baton == Baton::OnTheGround {
            self.pass(&mut state);
        }
    }

    pub(crate) fn schedule(&self, at: u64, timer: Arc<dyn Timer>) {
        let mut state = self.state.lock();
        state.add_event(at, What::Fire(timer));
        if state.baton == Baton::OnTheGround && state.anybody() {
            self.pass(&mut state);
        }
    }

    fn park(&self, mut state: MutexGuard<'_, VirtualState>, place: usize) {
        let called = state.clients[place].called.clone();
        while state.clients[place].status != Status::Running {
            let late = called.wait_for(&mut state, Duration::from_secs(20)).timed_out();
            if late && state.baton == Baton::OnTheGround {
                let waiting = state.clients.iter().filter(|c| c.status != Status::Free).count();
                notice(&format!("virtual time stands still: {waiting} threads wait and nothing is due"));
            }
        }
    }

    /// Finds the next holder of the baton and calls it. The caller is no longer running.
    fn pass(&self, state: &mut MutexGuard<'_, VirtualState>) {
        state.baton = Baton::Passing;
        loop {
            if let Some(place) = self.find_ready(state) {
                let client = &mut state.clients[place];
                client.status = Status::Running;
                client.condition = None;
                client.called.notify_one();
                state.baton = Baton::Held;
                state.last = place;
                return;
            }
            if state.anybody_can_go_on() {
                // A thread from outside entered or notified while conditions were looked at.
                continue;
            }
            let due = if state.anybody() { state.events.pop() } else { None };
            let Some(Reverse(event)) = due else {
                state.baton = Baton::OnTheGround;
                return;
            };
            let now = self.now.fetch_max(event.at, Ordering::Relaxed).max(event.at);
            match event.what {
                What::Wake(place) => state.clients[place].status = Status::Ready,
                What::Fire(timer) => MutexGuard::unlocked(state, || timer.fire(now)),
            }
        }
    }

    fn find_ready(&self, state: &mut MutexGuard<'_, VirtualState>) -> Option<usize> {
        let n = state.clients.len();
        for place in (state.last + 1..n).chain(0..n.min(state.last + 1)) {
            match state.clients[place].status {
                Status::Ready => return Some(place),
                Status::Notified(event_count) => {
                    state.clients[place].status = Status::Waiting(event_count);
                    let condition =
                        state.clients[place].condition.as_ref().expect("a waiter has a condition").0;
                    // SAFETY: the owner is parked in `wait` until this function's caller calls
                    // it, so the closure is alive; only the thread that passes the baton gets
                    // here, so it is not called twice at once.
                    if MutexGuard::unlocked(state, || unsafe { (*condition)() }) {
                        return Some(place);
                    }
                }
                _ => {}
            }
        }
        None
    }
}

impl VirtualState {
    fn take_place(&mut self, status: Status) -> usize {
        let free = self.clients.iter().position(|c| c.status == Status::Free);
        let place = free.unwrap_or_else(|| {
            self.clients.push(Client { status, condition: None, called: Arc::new(Condvar::new()) });
            self.clients.len() - 1
        });
        self.clients[place].status = status;
        place
    }

    fn add_event(&mut self, at: u64, what: What) {
        self.events_made += 1;
        self.events.push(Reverse(Event { at, order: self.events_made, what }));
    }

    fn anybody_can_go_on(&self) -> bool {
        self.clients.iter().any(|c| matches!(c.status, Status::Ready | Status::Notified(_)))
    }

    fn anybody(&self) -> bool {
        self.clients.iter().any(|c| c.status != Status::Free)
    }
}
