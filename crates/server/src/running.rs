//! The requests that run now, each with the flag that cancels it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use snowmelt_graph::Account;

use crate::durations::{Durations, RequestKind};

/// All of them.
#[derive(Default)]
pub struct Register {
    /// how long requests took that are over
    pub durations: Arc<Durations>,
    running: Mutex<HashMap<u64, Arc<AtomicBool>>>,
    next: AtomicU64,
}

/// A running request's entry. Dropping it cancels and forgets the request: the client has left,
/// or the answer is over.
pub struct Running {
    register: Arc<Register>,
    number: u64,
    kind: RequestKind,
    begun: Instant,
    pub cancel: Arc<AtomicBool>,
}

/// The asker of a change: its account, and whether it still wants the change.
pub struct Asker {
    pub account: Arc<Account>,
    pub cancel: Arc<AtomicBool>,
}

impl Register {
    /// One whose requests are timed together with those of another.
    pub fn timed_with(other: &Register) -> Self {
        Self { durations: Arc::clone(&other.durations), ..Self::default() }
    }

    /// Enters a request.
    pub fn enter(self: &Arc<Self>, kind: RequestKind) -> Running {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let cancel = Arc::new(AtomicBool::new(false));
        self.running.lock().expect("no holder panics").insert(number, Arc::clone(&cancel));
        Running { register: Arc::clone(self), number, kind, begun: Instant::now(), cancel }
    }

    /// Asks every running request to stop.
    pub fn cancel_all(&self) {
        for cancel in self.running.lock().expect("no holder panics").values() {
            cancel.store(true, Ordering::Relaxed);
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.running.lock().expect("no holder panics").len()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.cancel.store(true, Ordering::Relaxed);
        self.register.durations.add(self.kind, self.begun.elapsed());
        self.register.running.lock().expect("no holder panics").remove(&self.number);
    }
}
