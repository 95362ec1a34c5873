//! A store whose objects come from another one (in memory, in a folder, a faulty one) and whose
//! times come from a model: for tests, demonstrations and measurements without a cloud.
//!
//! 1. A request whose prefix was asked too often lately is refused after its latency; the other
//!    store does not hear of it.
//! 2. Otherwise the other store is asked at once. Its answer is held back until the request is due:
//!    after a latency, and after its bytes have passed its own bandwidth and the one of all.
//! 3. A request that is given up hears nothing; a put may have happened by then.
//!
//! Latencies have a lognormal distribution, which fits those of cloud stores: a tail several times
//! as long as the median. They are drawn by a seed in the order of requests, so a run in virtual
//! time is repeated exactly. Bytes pass the shared bandwidth in the order of requests, too.

mod alarms;
mod model;

use std::sync::Arc;

use parking_lot::Mutex;

pub use crate::objects::timed::model::ObjectTimes;

use crate::objects::reply::Reply;
use crate::objects::timed::alarms::Alarms;
use crate::objects::timed::model::TimesModel;
use crate::objects::{Answer, Ask, Done, ObjectError, ObjectErrorKind, Objects, Ongoing};
use crate::time::clock::Clock;

/// A store that takes its time.
pub struct TimedObjects {
    name: Arc<str>,
    inner: Arc<dyn Objects>,
    clock: Clock,
    model: Arc<Mutex<TimesModel>>,
    alarms: Arc<Alarms>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl TimedObjects {
    /// The objects of `inner` with `times`, in `clock`'s time; latencies are drawn by `seed`.
    ///
    /// # Panics
    /// When the times are out of bounds, or in real time no thread can be started.
    pub fn new(inner: Arc<dyn Objects>, times: ObjectTimes, clock: &Clock, seed: u64) -> TimedObjects {
        let name = format!("{} (timed)", inner.name()).into();
        let model = Arc::new(Mutex::new(TimesModel::new(times, seed)));
        let alarms = Arc::new(Alarms::new(clock));
        let thread = (!clock.is_virtual()).then(|| {
            let alarms = alarms.clone();
            let thread = std::thread::Builder::new().name("timed-objects".into());
            thread.spawn(move || alarms.ring_when_due()).expect("a thread for the timed store")
        });
        TimedObjects { name, inner, clock: clock.clone(), model, alarms, thread }
    }
}

impl Objects for TimedObjects {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn begin(&self, ask: Ask, done: Done) -> Ongoing {
        let (reply, ongoing) = Reply::new(done);
        // Not locked while an alarm is set, which may let virtual time go on.
        let arrival = self.model.lock().arrive(ask.key(), self.clock.now_ns());
        let arrival = match arrival {
            Ok(arrival) => arrival,
            Err(told_ns) => {
                let error = ObjectError::new(&self.name, &ask, ObjectErrorKind::TooOften);
                self.alarms.set(told_ns, Box::new(move || reply.give(Err(error))));
                return ongoing;
            }
        };
        let sent = if let Ask::Put { bytes, .. } = &ask { bytes.len() as u64 } else { 0 };
        let (model, alarms) = (self.model.clone(), self.alarms.clone());
        let asked = self.inner.begin(
            ask,
            Box::new(move |answer| {
                let due_ns = model.lock().due_ns(&arrival, sent + received(&answer));
                alarms.set(due_ns, Box::new(move || reply.give(answer)));
            }),
        );
        Ongoing::new(move || drop((ongoing, asked)))
    }
}

fn received(answer: &Result<Answer, ObjectError>) -> u64 {
    match answer {
        Ok(Answer::Got { bytes, .. }) => bytes.len() as u64,
        _ => 0,
    }
}

impl Drop for TimedObjects {
    fn drop(&mut self) {
        self.alarms.end();
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            thread.join().expect("the thread of the timed store does not panic");
        }
    }
}
