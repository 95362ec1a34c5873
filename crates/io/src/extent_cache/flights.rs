//! Fetches on their way, for the threads of this process: the first that misses an object fetches,
//! the others wait for its bytes. When it fails or panics, one of them takes over.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::key::KeyHash;
use crate::time::clock::Clock;
use crate::time::event_count::EventCount;

/// See the head of the file.
pub(super) struct Flights {
    table: Mutex<HashMap<KeyHash, Arc<Flight>>>,
    landed: EventCount,
    closed: AtomicBool,
}

#[derive(Default)]
struct Flight {
    end: Mutex<Option<FlightEnd>>,
}

#[derive(Clone)]
enum FlightEnd {
    Bytes(Arc<Vec<u8>>),
    Failed,
}

/// The part of a thread in the fetch of an object.
pub(super) enum Joined<'a> {
    /// It fetches.
    First(FlightLead<'a>),
    /// Another thread has fetched these.
    Landed(Arc<Vec<u8>>),
    /// The other thread has failed, or nothing is waited for any more: look again.
    Again,
}

impl Flights {
    pub fn new(clock: &Clock) -> Flights {
        let landed = EventCount::named(clock, "the fetch of an extent");
        Flights { table: Mutex::default(), landed, closed: AtomicBool::new(false) }
    }

    /// From now on nothing is waited for.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.landed.notify_all();
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Takes part in the fetch of an object; returns when it is over, or this thread is to do it.
    pub fn join(&self, key: KeyHash) -> Joined<'_> {
        let flight = match self.table.lock().entry(key) {
            Entry::Occupied(entry) => entry.get().clone(),
            Entry::Vacant(entry) => {
                let flight = entry.insert(Arc::default()).clone();
                return Joined::First(FlightLead { flights: self, key, flight });
            }
        };
        self.landed.wait_until(|| flight.end.lock().is_some() || self.is_closed());
        match &*flight.end.lock() {
            Some(FlightEnd::Bytes(bytes)) => Joined::Landed(bytes.clone()),
            Some(FlightEnd::Failed) | None => Joined::Again,
        }
    }
}

/// The thread that fetches; dropped before it [lands](FlightLead::land), it has failed.
pub(super) struct FlightLead<'a> {
    flights: &'a Flights,
    key: KeyHash,
    flight: Arc<Flight>,
}

impl FlightLead<'_> {
    /// Gives the bytes to those that wait.
    pub fn land(self, bytes: Arc<Vec<u8>>) {
        *self.flight.end.lock() = Some(FlightEnd::Bytes(bytes));
    }
}

impl Drop for FlightLead<'_> {
    fn drop(&mut self) {
        self.flights.table.lock().remove(&self.key);
        self.flight.end.lock().get_or_insert(FlightEnd::Failed);
        self.flights.landed.notify_all();
    }
}
