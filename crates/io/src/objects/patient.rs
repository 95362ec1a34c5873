//! Patience with a store: errors that pass are waited out, slow answers are asked for twice, and
//! a store that is asked too often is asked less.
//!
//! 1. A request waits for its turn: at most `width` attempts are outstanding (see `width.rs`), and
//!    the request that came first goes first.
//! 2. An attempt that fails, or is not answered for long, is followed by another one after a pause:
//!    exponential backoff with full jitter (Brooker, "Exponential backoff and jitter", 2015), up to
//!    the deadline. Bodies that are too short count as failures.
//! 3. A get that takes longer than 95 of 100 like it is *hedged*: asked for a second time, and the
//!    first answer wins (Dean and Barroso, "The tail at scale", 2013). Hedges are a small part of
//!    all gets, so that they cannot double the load of a store that is slow.
//! 4. A put on a condition that may have happened is looked for before it is tried again (see
//!    `request.rs`).
//!
//! One thread keeps all times of a store. It takes part in virtual time, where callers should have
//! entered the clock as well: time goes on while it alone waits.
//!
//! Invariant: each request is answered once or given up; callers and the store below are called
//! without a lock.

mod counters;
mod patience;
mod request;
mod state;
mod times;
mod turns;
mod width;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;

pub use crate::objects::patient::counters::ObjectCounters;
pub use crate::objects::patient::patience::Patience;

use crate::objects::patient::state::{Act, PatientState};
use crate::objects::patient::turns::in_turn;
use crate::objects::{Answer, Ask, Done, ObjectError, Objects, Ongoing};
use crate::time::clock::{ClientTicket, Clock};
use crate::time::event_count::EventCount;

/// See the head of the file.
pub struct PatientObjects {
    shared: Arc<PatientStore>,
    thread: Option<JoinHandle<()>>,
}

struct PatientStore {
    inner: Arc<dyn Objects>,
    clock: Clock,
    state: Mutex<PatientState>,
    /// When the thread has something to do; it is told when that comes to be earlier.
    next_ns: AtomicU64,
    changed: EventCount,
    is_closed: AtomicBool,
    is_over: AtomicBool,
    over: EventCount,
}

impl PatientObjects {
    /// The objects of `inner`, asked with `patience` in `clock`'s time.
    ///
    /// # Errors
    /// No thread can be started.
    ///
    /// # Panics
    /// When the settings make no sense: see [`Patience`].
    pub fn new(
        inner: Arc<dyn Objects>,
        clock: &Clock,
        patience: Patience,
    ) -> std::io::Result<PatientObjects> {
        let shared = Arc::new(PatientStore {
            state: Mutex::new(PatientState::new(inner.name().clone(), patience)),
            inner,
            clock: clock.clone(),
            next_ns: AtomicU64::new(u64::MAX),
            changed: EventCount::named(clock, "requests to an object store"),
            is_closed: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            over: EventCount::named(clock, "the end of the thread of an object store"),
        });
        let (of_thread, ticket) = (shared.clone(), clock.reserve(1).pop());
        let run = move || {
            let _taking_part = ticket.map(ClientTicket::enter);
            let over = Over(of_thread.clone());
            of_thread.keep_times();
            drop(over);
        };
        let thread = std::thread::Builder::new().name("snowmelt-asks".into()).spawn(run)?;
        Ok(PatientObjects { shared, thread: Some(thread) })
    }

    /// Counts and measurements so far.
    pub fn counters(&self) -> ObjectCounters {
        self.shared.state.lock().counters(self.shared.clock.now_ns())
    }
}

impl Objects for PatientObjects {
    fn name(&self) -> &Arc<str> {
        self.shared.inner.name()
    }

    fn begin(&self, ask: Ask, done: Done) -> Ongoing {
        let mut acts = Vec::new();
        let id = self.shared.change(&mut acts, |state, now_ns, acts| state.begin(ask, done, now_ns, acts));
        let shared = self.shared.clone();
        self.shared.act(acts);
        Ongoing::new(move || {
            let mut acts = Vec::new();
            shared.change(&mut acts, |state, now_ns, acts| state.give_up(id, now_ns, acts));
            shared.act(acts);
        })
    }
}

impl PatientStore {
    /// Changes the state, and tells the thread if it has something to do earlier.
    fn change<R>(
        &self,
        acts: &mut Vec<Act>,
        change: impl FnOnce(&mut PatientState, u64, &mut Vec<Act>) -> R,
    ) -> R {
        let mut state = self.state.lock();
        let result = change(&mut state, self.clock.now_ns(), acts);
        let next_ns = state.next_ns();
        let before_ns = self.next_ns.swap(next_ns, Ordering::AcqRel);
        drop(state);
        if next_ns < before_ns {
            self.changed.notify_all();
        }
        result
    }

    /// Does what a change has led to, without its lock.
    fn act(self: &Arc<Self>, acts: Vec<Act>) {
        for act in acts {
            let shared = self.clone();
            in_turn(Box::new(move || match act {
                Act::Begin { id, attempt, ask } => shared.attempt(id, attempt, ask),
                Act::Answer(done, answer) => done(answer),
                Act::GiveUp(ongoing) => drop(ongoing),
            }));
        }
    }

    fn attempt(self: &Arc<Self>, id: u64, attempt: u64, ask: Ask) {
        if !self.state.lock().is_wanted(id, attempt) {
            return; // given up meanwhile
        }
        let shared = self.clone();
        let heard = move |answer: Result<Answer, ObjectError>| {
            let mut acts = Vec::new();
            shared.change(&mut acts, |state, now_ns, acts| state.heard(id, attempt, answer, now_ns, acts));
            shared.act(acts);
        };
        let ongoing = self.inner.begin(ask, Box::new(heard));
        // Dropped without the lock if the attempt is over.
        let _unused = self.state.lock().keep(id, attempt, ongoing);
    }

    /// Does what is due, when it is due, until the end.
    fn keep_times(self: &Arc<Self>) {
        /// The longest time between two looks.
        const MOST_NS: u64 = 60_000_000_000;
        while !self.is_closed.load(Ordering::Acquire) {
            let mut acts = Vec::new();
            self.change(&mut acts, |state, now_ns, acts| state.look(now_ns, acts));
            self.act(acts);
            let until_ns = self.next_ns.load(Ordering::Acquire);
            let wait_ns = until_ns.saturating_sub(self.clock.now_ns()).min(MOST_NS);
            if wait_ns > 0 {
                self.changed.wait_for_work(Duration::from_nanos(wait_ns), || {
                    self.is_closed.load(Ordering::Acquire) || self.next_ns.load(Ordering::Acquire) < until_ns
                });
            }
        }
    }
}

impl Drop for PatientObjects {
    fn drop(&mut self) {
        let shared = &self.shared;
        shared.is_closed.store(true, Ordering::Release);
        shared.changed.notify_all();
        let thread = self.thread.take().expect("a thread until the end");
        if thread.thread().id() != std::thread::current().id() {
            if shared.clock.is_virtual() {
                if std::thread::panicking() {
                    return;
                }
                // In virtual time a thread is waited for only so.
                shared.over.wait_until(|| shared.is_over.load(Ordering::Acquire));
            }
            let _ = thread.join();
        }
        let mut acts = Vec::new();
        shared.change(&mut acts, |state, _, acts| state.close(acts));
        shared.act(acts);
    }
}

/// Says that the thread is over, also when it panics.
struct Over(Arc<PatientStore>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Release);
        self.0.over.notify_all();
    }
}
