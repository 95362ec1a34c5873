//! The `inline` engine: the asking thread carries out its own requests, before the call
//! returns.

use crate::device::Device;
use crate::engine::serving::Serving;
use crate::engine::start::{NotStarted, ServedQueue, StartEngine, Started};
use crate::error::IoError;
use crate::learn::Done;
use crate::queue::device_load::DeviceLoad;
use crate::queue::device_request::Pending;
use crate::queue::request::Class;
use crate::queue::schedule::{Next, Schedule};

/// The asking thread.
#[derive(Debug)]
pub(crate) struct Inline;

impl StartEngine for Inline {
    fn name(&self) -> &'static str {
        "inline"
    }

    fn start(&self, _queue: &ServedQueue) -> Result<Started, NotStarted> {
        Ok(Started::Inline)
    }
}

impl Serving {
    /// Orders, merges and carries out a batch in this thread.
    pub(crate) fn serve_inline(&self, batch: impl Iterator<Item = Pending>) {
        let mut schedule = Schedule::new(&self.settings.policy, self.limits_now());
        batch.for_each(|pending| schedule.push(pending));
        let mut request = Self::blank(&mut self.state.lock());
        let _under_way = UnderWay::new(self);
        // One client's batch: no policy holds it for another client.
        while schedule.next(&mut request, DeviceLoad::default(), self.clock.now_ns()) == Next::Begun {
            request.started_ns = self.clock.now_ns();
            let started_ns = request.started_ns;
            self.tally.lock().started(&mut request, started_ns);
            let end = request.execute(&*self.device, &self.scratch);
            self.deliver(&mut request, end, self.clock.now_ns());
            request
                .pieces
                .drain(..)
                .for_each(|piece| schedule.push(Pending { alone: true, again: true, ..piece }));
        }
        assert!(schedule.is_empty(), "a batch is carried out whole");
        self.give_back(&mut self.state.lock(), request);
    }

    /// Carries out one request past the schedule, and counts it.
    pub(crate) fn in_place(
        &self,
        class: Class,
        write: bool,
        len: u64,
        act: impl FnOnce(&dyn Device) -> Result<(), IoError>,
    ) -> Result<(), IoError> {
        self.clock.settle();
        let began = self.clock.now_ns();
        self.in_place.begin(class, len);
        let beside = self.tally.lock().begin_in_place(class, write, len, began);
        let result = act(&*self.device);
        let now = self.clock.now_ns();
        let taken_ns = now.saturating_sub(began);
        let done = Done { write, bytes: len, beside, taken_ns, has_failed: result.is_err() };
        let seen = self.tally.lock().end_in_place(class, &done, now);
        self.note(seen);
        self.in_place.end(class, len);
        result
    }
}

/// A batch under way. It ends after a panic, too, so that the queue can be closed.
struct UnderWay<'a>(&'a Serving);

impl UnderWay<'_> {
    fn new(serving: &Serving) -> UnderWay<'_> {
        serving.state.lock().outstanding.requests += 1;
        UnderWay(serving)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.outstanding.requests -= 1;
        if state.closing && state.outstanding.requests == 0 {
            self.0.drained.notify_all();
        }
    }
}
