//! The clock: real, or virtual time that jumps from event to event.
//!
//! Everything in the engine that asks for the time, sleeps or waits does so through a [`Clock`]
//! (and the [`EventCount`](crate::EventCount)s made from it). With a virtual one the same code
//! runs in virtual time: see `virtual_time.rs` for the rules.

use std::sync::Arc;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::time::virtual_time::{Timer, Virtual};

/// A clock; clones are the same clock.
#[derive(Clone, Default)]
pub struct Clock(Option<Arc<Virtual>>);

/// Keeps the thread a participant of virtual time; see [`Clock::enter`].
pub struct ClientGuard {
    entered: Option<Arc<Virtual>>,
    /// Held while the thread takes part.
    _pinned: Option<Pinned>,
    /// The guard belongs to the thread that entered.
    _not_send: std::marker::PhantomData<*const ()>,
}

/// A place in the order of virtual time's participants, given before the thread starts; see
/// [`Clock::reserve`].
pub struct ClientTicket(Option<(Arc<Virtual>, usize)>);

impl Clock {
    /// The machine's monotonic clock.
    pub fn real() -> Clock {
        Clock(None)
    }

    /// A virtual clock at 0, with `cores` modelled processors (see [`Clock::charge_cpu`]).
    pub fn virtual_time(cores: usize) -> Clock {
        Clock(Some(Arc::new(Virtual::new(cores))))
    }

    /// True when time is virtual.
    pub fn is_virtual(&self) -> bool {
        self.0.is_some()
    }

    /// Nanoseconds since an arbitrary moment (virtual: since the clock was made).
    pub fn now_ns(&self) -> u64 {
        match &self.0 {
            Some(v) => v.now_ns(),
            None => real_now_ns(),
        }
    }

    /// Sleeps for `ns` nanoseconds.
    pub fn sleep_ns(&self, ns: u64) {
        match &self.0 {
            Some(v) => v.sleep(ns),
            None => std::thread::sleep(Duration::from_nanos(ns)),
        }
    }

    /// Says that the work just done would have kept a processor busy for `ns`. In virtual time
    /// the caller then waits for a modelled processor to have done it (short charges are saved
    /// up to 20 µs, or to the next wait); otherwise nothing happens.
    pub fn charge_cpu(&self, ns: u64) {
        if let Some(v) = &self.0 {
            v.charge_cpu(ns);
        }
    }

    /// Makes this thread take part in virtual time until the guard is dropped: from now on it
    /// runs only while it holds the baton, and passes it on when it waits, sleeps or charges.
    /// With a real clock, nothing.
    ///
    /// While it takes part, a thread must not block on anything but this clock (join its
    /// helpers by an `EventCount` first), and must hold no lock when it waits.
    pub fn enter(&self) -> ClientGuard {
        ClientGuard::new(self.0.clone(), None)
    }

    /// Watches virtual time: when all participants wait and nothing is due, or one of them has
    /// waited for longer than `patience_ns`, all of them panic with a list of who waits for
    /// what. For tests in which every waiter takes part.
    pub fn watch(&self, patience_ns: u64) {
        self.0.as_ref().expect("only virtual time is watched").watch(patience_ns);
    }

    /// The list of a standstill, after which time goes on. Call it when all participants have left.
    pub fn take_standstill(&self) -> Option<Arc<str>> {
        self.0.as_ref().and_then(|v| v.take_standstill())
    }

    /// Reserves places for `n` threads that are about to start, so that their order does not
    /// depend on which starts first. No participant runs past a reserved place until its thread
    /// has entered (or its ticket is dropped).
    pub fn reserve(&self, n: usize) -> Vec<ClientTicket> {
        (0..n).map(|_| ClientTicket(self.0.as_ref().map(|v| (v.clone(), v.reserve())))).collect()
    }

    pub(crate) fn virtual_clock(&self) -> Option<&Arc<Virtual>> {
        self.0.as_ref()
    }

    /// In virtual time, spends the processor time that this thread was charged and has not spent.
    pub(crate) fn settle(&self) {
        if let Some(v) = &self.0 {
            v.settle();
        }
    }

    /// In virtual time, has `timer` fired at `at_ns` (or now, if that is past).
    pub(crate) fn schedule(&self, at_ns: u64, timer: Arc<dyn Timer>) {
        self.0.as_ref().expect("only virtual time has timers").schedule(at_ns, timer);
    }
}

impl ClientTicket {
    /// Takes the reserved place; call it in the new thread.
    pub fn enter(mut self) -> ClientGuard {
        match self.0.take() {
            Some((v, place)) => ClientGuard::new(Some(v), Some(place)),
            None => ClientGuard::new(None, None),
        }
    }
}

impl ClientGuard {
    fn new(entered: Option<Arc<Virtual>>, place: Option<usize>) -> ClientGuard {
        let pinned = entered.as_ref().and_then(|v| {
            let pinned = Pinned::to(v.processor());
            v.enter(place);
            pinned
        });
        ClientGuard { entered, _pinned: pinned, _not_send: std::marker::PhantomData }
    }
}

/// Keeps a thread on one processor. Of the participants in virtual time one runs at a time, and
/// handing over is five times as fast when nothing has to travel between processors.
struct Pinned(CpuSet);

impl Pinned {
    /// On the `n`th of the processors the thread may use.
    fn to(n: usize) -> Option<Pinned> {
        let before = sched_getaffinity(None).ok()?;
        let allowed: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&cpu| before.is_set(cpu)).collect();
        let mut one = CpuSet::new();
        one.set(*allowed.get(n % allowed.len().max(1))?);
        sched_setaffinity(None, &one).ok()?;
        Some(Pinned(before))
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let _ = sched_setaffinity(None, &self.0); // best left as it is, if that is refused
    }
}

impl Drop for ClientTicket {
    fn drop(&mut self) {
        if let Some((v, place)) = self.0.take() {
            v.abandon(place);
        }
    }
}

impl Drop for ClientGuard {
    fn drop(&mut self) {
        if let Some(v) = self.entered.take() {
            v.leave();
        }
    }
}

fn real_now_ns() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}
