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
//! 5. A *watched* clock ([`watch`](crate::Clock::watch)) fails then: no thread will ever make true
//!    what the others wait for. It also fails when a thread has waited for longer than its
//!    patience, however much happened meanwhile: sleeping in a loop hides nothing. All
//!    participants panic, with a list of the waiters and their events.
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
    /// Called at the moment.
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
    /// The longest that a thread may wait, of a watched clock.
    patience_ns: Option<u64>,
    /// The report of a standstill.
    standstill: Option<Arc<str>>,
}

/// The event that a participant waits for.
#[derive(Clone, Copy)]
pub(crate) struct WaitingFor {
    pub event_count: u64,
    pub what: &'static str,
    pub since_ns: u64,
    pub patience: WaitPatience,
}

/// How long a wait may take.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitPatience {
    /// As long as a watched clock says.
    OfTheClock,
    /// For ever: for work that need not come.
    Endless,
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
    /// Its thread's, for a report.
    name: String,
    awaited: Option<WaitingFor>,
    /// How often it has waited, so that an event of an earlier wait is known as such.
    waits: u64,
    /// The wait ended because its time was over.
    timed_out: bool,
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
    /// Ends this wait of a client if it goes on.
    EndWait(usize, u64),
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
                patience_ns: None,
                standstill: None,
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

    // --- watching ---

    pub(crate) fn watch(&self, patience_ns: u64) {
        self.state.lock().patience_ns = Some(patience_ns);
    }

    pub(crate) fn take_standstill(&self) -> Option<Arc<str>> {
        let mut state = self.state.lock();
        if state.standstill.is_some() {
            // They are giving up; some may not be joined by anybody.
            for _ in 0..10_000 {
                if !state.anybody() {
                    break;
                }
                MutexGuard::unlocked(&mut state, || std::thread::sleep(Duration::from_millis(1)));
            }
            assert!(!state.anybody(), "all participants have left before a report is taken");
            state.events.retain(|Reverse(e)| matches!(e.what, What::Fire(_)));
        }
        state.standstill.take()
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
        state.clients[place].name = std::thread::current().name().unwrap_or("a thread").to_string();
        ENTERED.with_borrow_mut(|all| all.push(Entered { clock: self, place, uncharged_ns: 0 }));
        if state.baton == Baton::OnTheGround {
            self.pass(&mut state);
        }
        let leaves = Leaves(self);
        self.park(state, place);
        std::mem::forget(leaves);
    }

    pub(crate) fn leave(&self) {
        if !std::thread::panicking() && self.state.lock().standstill.is_none() {
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
                let _leaves = Leaves(self);
                f(self.place().expect("just entered"));
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
        if state.standstill.is_some() && std::thread::panicking() {
            return;
        }
        assert!(
            state.baton == Baton::Held || state.standstill.is_some(),
            "only the holder of the baton sleeps; timers never do"
        );
        if !state.anybody_can_go_on() && state.events.peek().is_none_or(|Reverse(e)| e.at > until) {
            self.now.fetch_max(until, Ordering::Relaxed); // nothing happens in between
            return;
        }
        state.add_event(until, What::Wake(place));
        state.clients[place].status = Status::Asleep;
        self.pass(&mut state);
        self.park(state, place);
    }

    /// Waits until the condition is true, or until `until_ns`; returns whether it was true.
    pub(crate) fn wait(
        &self,
        awaited: &WaitingFor,
        until_ns: Option<u64>,
        condition: &mut (dyn FnMut() -> bool + Send),
    ) -> bool {
        self.settle();
        let pointer: *mut (dyn FnMut() -> bool + Send + '_) = condition;
        // SAFETY: only the lifetime is widened. The pointer is removed by `pass` when it picks
        // this thread, and by `park` when it panics, before this function returns and the
        // borrow ends.
        let pointer: *mut (dyn FnMut() -> bool + Send + 'static) = unsafe { std::mem::transmute(pointer) };
        let mut is_true = true;
        if std::thread::panicking() && self.state.lock().standstill.is_some() {
            spin(condition);
            return true;
        }
        self.taking_part(|place| {
            let mut state = self.state.lock();
            assert!(
                state.baton == Baton::Held || state.standstill.is_some(),
                "only the holder of the baton waits; timers never do"
            );
            let client = &mut state.clients[place];
            // Looked at once more after it is registered: a thread outside may notify at any
            // time.
            client.status = Status::Notified(awaited.event_count);
            client.condition = Some(Condition(pointer));
            client.awaited = Some(*awaited);
            client.waits += 1;
            client.timed_out = false;
            let this_wait = client.waits;
            if let Some(until_ns) = until_ns {
                state.add_event(until_ns, What::EndWait(place, this_wait));
            }
            self.pass(&mut state);
            self.park(state, place);
            let mut state = self.state.lock();
            let client = &mut state.clients[place];
            client.awaited = None;
            is_true = !client.timed_out;
        });
        is_true
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
            if let Some(report) = state.standstill.clone() {
                let client = &mut state.clients[place];
                (client.condition, client.status) = (None, Status::Running);
                drop(state);
                assert!(!std::thread::panicking(), "waits while it gives up: {report}");
                std::panic::panic_any(report.to_string());
            }
            let late = called.wait_for(&mut state, Duration::from_secs(20)).timed_out();
            if late && state.baton == Baton::OnTheGround {
                notice(&state.who_waits("virtual time stands still: nothing is due"));
            }
        }
    }

    /// Finds the next holder of the baton and calls it. The caller is no longer running.
    fn pass(&self, state: &mut MutexGuard<'_, VirtualState>) {
        if state.standstill.is_some() {
            return;
        }
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
                if state.patience_ns.is_some() && state.anybody() {
                    state.stand_still("nothing is due");
                }
                return;
            };
            let now = self.now.fetch_max(event.at, Ordering::Relaxed).max(event.at);
            if state.somebody_lost_patience(now) {
                state.baton = Baton::OnTheGround;
                return state.stand_still(&format!("somebody has waited too long at {} ms", now / 1_000_000));
            }
            match event.what {
                What::Wake(place) => state.clients[place].status = Status::Ready,
                What::EndWait(place, wait) => state.end_wait(place, wait),
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
            self.clients.push(Client {
                status,
                condition: None,
                called: Arc::new(Condvar::new()),
                name: String::new(),
                awaited: None,
                waits: 0,
                timed_out: false,
            });
            self.clients.len() - 1
        });
        let client = &mut self.clients[place];
        (client.status, client.awaited) = (status, None);
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

    fn end_wait(&mut self, place: usize, wait: u64) {
        let client = &mut self.clients[place];
        let waits = matches!(client.status, Status::Waiting(_) | Status::Notified(_));
        if waits && client.waits == wait {
            (client.status, client.timed_out) = (Status::Ready, true);
        }
    }

    fn somebody_lost_patience(&self, now_ns: u64) -> bool {
        let Some(patience_ns) = self.patience_ns else { return false };
        let waiting = self.clients.iter().filter(|c| c.status != Status::Free);
        waiting.filter_map(|c| c.awaited.as_ref()).any(|awaited| {
            awaited.patience == WaitPatience::OfTheClock
                && now_ns.saturating_sub(awaited.since_ns) > patience_ns
        })
    }

    /// Has all participants panic.
    fn stand_still(&mut self, why: &str) {
        self.standstill = Some(self.who_waits(&format!("virtual time stands still: {why}")).into());
        self.clients.iter().for_each(|c| {
            c.called.notify_one();
        });
    }

    /// List of waiters and events.
    fn who_waits(&self, why: &str) -> String {
        let there = self.clients.iter().filter(|c| c.status != Status::Free);
        let of_one = |c: &Client| match (&c.status, &c.awaited) {
            (Status::Asleep, _) => format!("{} sleeps", c.name),
            (Status::Waiting(_) | Status::Notified(_), Some(awaited)) => {
                format!("{} waits for {} since {} ms", c.name, awaited.what, awaited.since_ns / 1_000_000)
            }
            _ => format!("{} can go on", c.name),
        };
        format!("{why}: {}", there.map(of_one).collect::<Vec<_>>().join("; "))
    }
}

/// The wait of a thread that unwinds after a standstill, while the others do: they give back what
/// they hold.
fn spin(condition: &mut (dyn FnMut() -> bool + Send)) {
    let is_over = (0..10_000).any(|_| {
        let is_true = condition();
        if !is_true {
            std::thread::sleep(Duration::from_millis(1));
        }
        is_true
    });
    assert!(is_over, "what a thread holds that gives up is given back");
}

/// Lets a thread that takes part for one wait leave again.
struct Leaves<'a>(&'a Virtual);

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}
