//! Things to be done at their moments: events of the clock in virtual time; in real time by one
//! thread.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::time::clock::Clock;
use crate::time::virtual_time::Timer;

type Deed = Box<dyn FnOnce() + Send>;

/// See the head of the file.
pub(super) struct Alarms {
    clock: Clock,
    state: Mutex<AlarmState>,
    changed: Condvar,
}

#[derive(Default)]
struct AlarmState {
    /// By their moments, then by the order in which they were set.
    set: BTreeMap<(u64, u64), Deed>,
    count: u64,
    is_over: bool,
}

/// An alarm in virtual time.
struct AlarmEvent(Mutex<Option<Deed>>);

impl Alarms {
    /// None yet. In real time a thread must call [`ring_when_due`](Self::ring_when_due).
    pub(super) fn new(clock: &Clock) -> Alarms {
        Alarms { clock: clock.clone(), state: Mutex::default(), changed: Condvar::new() }
    }

    /// Has `deed` done at `at_ns`; it must not wait.
    pub(super) fn set(&self, at_ns: u64, deed: Deed) {
        if self.clock.is_virtual() {
            return self.clock.schedule(at_ns, Arc::new(AlarmEvent(Mutex::new(Some(deed)))));
        }
        let mut state = self.state.lock();
        let order = state.count;
        state.count += 1;
        state.set.insert((at_ns, order), deed);
        let is_first = state.set.first_key_value().is_some_and(|(key, _)| *key == (at_ns, order));
        drop(state);
        if is_first {
            self.changed.notify_one();
        }
    }

    /// Ends the thread, which does first and at once what is still to be done.
    pub(super) fn end(&self) {
        self.state.lock().is_over = true;
        self.changed.notify_one();
    }

    /// Real time: does everything when it is due, until the end.
    pub(super) fn ring_when_due(&self) {
        let mut state = self.state.lock();
        loop {
            let now_ns = self.clock.now_ns();
            match state.set.first_key_value().map(|((at_ns, _), _)| *at_ns) {
                Some(at_ns) if at_ns <= now_ns || state.is_over => {
                    let (_, deed) = state.set.pop_first().expect("just looked at");
                    drop(state);
                    deed();
                    state = self.state.lock();
                }
                Some(at_ns) => {
                    self.changed.wait_for(&mut state, Duration::from_nanos(at_ns - now_ns));
                }
                None if state.is_over => return,
                None => self.changed.wait(&mut state),
            }
        }
    }
}

impl Timer for AlarmEvent {
    fn fire(self: Arc<Self>, _now_ns: u64) {
        let deed = self.0.lock().take().expect("an event comes once");
        deed();
    }
}
