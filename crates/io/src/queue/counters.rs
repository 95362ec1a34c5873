//! Counts and latencies of the requests of one queue, per class.

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::cost::{CostModel, CostSource};
use crate::latency::{Latency, histogram};
use crate::learn::sums::BACK_NS;
use crate::learn::{Beside, Done, Evidence, Learned, Learner, SeenLoad};
use crate::queue::costs::DeviceCosts;
use crate::queue::device_request::DeviceRequest;
use crate::queue::read_times::{LeastTime, ReadTimes};
use crate::queue::request::Class;
use crate::write_cost::WriteCost;

/// Counts of one class of requests.
#[derive(Debug, Clone, Serialize)]
pub struct ClassCounters {
    /// The class.
    pub class: Class,
    /// Requests that were submitted or done in place.
    pub requests: u64,
    /// Requests the device got for them.
    pub device_requests: u64,
    /// Bytes asked for.
    pub bytes: u64,
    /// Requests that travelled along with another.
    pub merged: u64,
    /// Bytes read only because they lay between two requests.
    pub gap_bytes: u64,
    /// Requests done in the asking thread.
    pub in_place: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Requests of a failed merge that were tried again alone.
    pub retried: u64,
    /// From submission to completion.
    pub latency: Latency,
    /// The sum of the latencies, in nanoseconds.
    pub latency_ns: u64,
}

/// Counts of one device.
#[derive(Debug, Clone, Serialize)]
pub struct DeviceCounters {
    /// Its name.
    pub device: String,
    /// The engine that serves it.
    pub engine: &'static str,
    /// One entry per class, in order of priority.
    pub classes: Vec<ClassCounters>,
    /// Time with at least one device request outstanding, in nanoseconds.
    pub busy_ns: u64,
    /// Device requests outstanding, summed over the nanoseconds of that time.
    pub depth_ns: u64,
    /// Mean number of device requests outstanding while busy.
    pub mean_depth: f64,
    /// From start to end of a device request.
    pub service: Latency,
    /// Costs of reads, as they are believed now.
    pub cost: CostModel,
    /// The evidence for these; not reset.
    pub evidence: Evidence,
    /// Costs of writes, as they are believed now.
    pub write_cost: WriteCost,
}

impl DeviceCounters {
    /// The counts of one class.
    pub fn class(&self, class: Class) -> &ClassCounters {
        &self.classes[class as usize]
    }

    /// Requests of all classes.
    pub fn requests(&self) -> u64 {
        self.classes.iter().map(|c| c.requests).sum()
    }

    /// Device requests of all classes.
    pub fn device_requests(&self) -> u64 {
        self.classes.iter().map(|c| c.device_requests).sum()
    }

    /// Bytes asked for, of all classes.
    pub fn bytes(&self) -> u64 {
        self.classes.iter().map(|c| c.bytes).sum()
    }

    /// Bytes read only because they lay in a gap.
    pub fn gap_bytes(&self) -> u64 {
        self.classes.iter().map(|c| c.gap_bytes).sum()
    }
}

/// Findings about the device in a completion.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    /// The shortest time of a demand read lately, in nanoseconds.
    pub(crate) least_ns: u64,
    /// Beliefs about it, when they were looked at anew.
    pub(crate) learned: Option<Learned>,
}

/// The running counts behind [`DeviceCounters`].
pub(crate) struct QueueTally {
    classes: [ClassTally; Class::COUNT],
    service: Histogram<u64>,
    /// Times of reads lately; not reset with the counts.
    read_times: ReadTimes,
    least: LeastTime,
    learner: Learner,
    outstanding: u64,
    changed_ns: u64,
    busy_ns: u64,
    depth_ns: u64,
    /// Time of the last reset: requests that went out before it are not counted when they end.
    reset_ns: u64,
}

struct ClassTally {
    requests: u64,
    device_requests: u64,
    bytes: u64,
    merged: u64,
    gap_bytes: u64,
    in_place: u64,
    errors: u64,
    retried: u64,
    latency: Histogram<u64>,
    latency_ns: u64,
}

impl ClassTally {
    fn took(&mut self, ns: u64) {
        self.latency.saturating_record(ns);
        self.latency_ns += ns;
    }
}

impl QueueTally {
    pub(crate) fn new(learner: Learner) -> QueueTally {
        let class = || ClassTally {
            requests: 0,
            device_requests: 0,
            bytes: 0,
            merged: 0,
            gap_bytes: 0,
            in_place: 0,
            errors: 0,
            retried: 0,
            latency: histogram(),
            latency_ns: 0,
        };
        QueueTally {
            classes: std::array::from_fn(|_| class()),
            service: histogram(),
            read_times: ReadTimes::default(),
            least: LeastTime::default(),
            learner,
            outstanding: 0,
            changed_ns: 0,
            busy_ns: 0,
            depth_ns: 0,
            reset_ns: 0,
        }
    }

    fn outstanding_changes(&mut self, now: u64) {
        let passed = now.saturating_sub(self.changed_ns);
        if self.outstanding > 0 {
            self.busy_ns += passed;
            self.depth_ns += passed * self.outstanding;
        }
        // Threads may come a little out of order; a clock that is far behind was set back.
        let is_set_back = self.changed_ns.saturating_sub(now) > BACK_NS;
        self.changed_ns = if is_set_back { now } else { self.changed_ns.max(now) };
    }

    /// Counts a device request that goes out.
    pub(crate) fn started(&mut self, request: &mut DeviceRequest, now: u64) {
        self.outstanding_changes(now);
        self.outstanding += 1;
        request.beside = self.learner.started(request.write, request.len, now);
        let class = &mut self.classes[request.class as usize];
        class.device_requests += 1;
        class.gap_bytes += request.gap_bytes;
        class.merged += request.pieces.len() as u64 - 1;
        let retried = request.pieces.iter().filter(|p| p.again).count() as u64;
        class.retried += retried;
        class.requests += request.pieces.len() as u64 - retried;
        class.bytes +=
            request.pieces.iter().filter(|p| !p.again).map(|p| p.request.buf.len() as u64).sum::<u64>();
    }

    /// Counts a device request that came back: the first `ended` pieces are over, `failed` of them
    /// with an error.
    pub(crate) fn finished(
        &mut self,
        request: &DeviceRequest,
        ended: usize,
        failed: usize,
        now: u64,
    ) -> Seen {
        self.outstanding_changes(now);
        if failed == 0 && ended == request.pieces.len() {
            self.note_waited(|times, outstanding| times.ended(request, outstanding, now));
        }
        let done = Done {
            write: request.write,
            bytes: request.len,
            beside: request.beside,
            taken_ns: now.saturating_sub(request.started_ns),
            // Of a merge that failed the pieces not reached are tried again.
            has_failed: failed > 0 || ended < request.pieces.len(),
        };
        let learned = self.learner.finished(&done, now);
        self.outstanding -= 1;
        let seen = Seen { least_ns: self.least.ns(), learned };
        if request.started_ns < self.reset_ns {
            return seen;
        }
        self.service.saturating_record(now.saturating_sub(request.started_ns));
        let class = &mut self.classes[request.class as usize];
        class.errors += failed as u64;
        for piece in &request.pieces[..ended] {
            class.took(now.saturating_sub(piece.arrived_ns));
        }
        seen
    }

    fn note_waited(&mut self, ended: impl FnOnce(&mut ReadTimes, u64) -> Option<u64>) {
        if let Some(ns) = ended(&mut self.read_times, self.outstanding) {
            self.least.add(ns);
        }
    }

    /// Notes that a request in place begins. Returns what is outstanding with it.
    pub(crate) fn begin_in_place(&mut self, class: Class, write: bool, bytes: u64, now: u64) -> Beside {
        self.outstanding_changes(now);
        self.outstanding += 1;
        let class = &mut self.classes[class as usize];
        class.requests += 1;
        class.device_requests += 1;
        class.in_place += 1;
        class.bytes += bytes;
        self.learner.started(write, bytes, now)
    }

    /// Notes that a request in place has ended.
    pub(crate) fn end_in_place(&mut self, class: Class, done: &Done, now: u64) -> Seen {
        self.outstanding_changes(now);
        if !done.has_failed {
            self.note_waited(|times, outstanding| {
                times.ended_alone(class, done.taken_ns, done.bytes, outstanding)
            });
        }
        self.outstanding -= 1;
        let seen = Seen { least_ns: self.least.ns(), learned: self.learner.finished(done, now) };
        if now.saturating_sub(done.taken_ns) < self.reset_ns {
            return seen;
        }
        self.service.saturating_record(done.taken_ns);
        let class = &mut self.classes[class as usize];
        class.took(done.taken_ns);
        class.errors += u64::from(done.has_failed);
        seen
    }

    /// Takes in the time of a flush. Returns the costs of writes, where they are learned.
    pub(crate) fn flushed(&mut self, taken_ns: u64) -> Option<WriteCost> {
        self.learner.flushed(taken_ns);
        self.learner.writes()
    }

    /// Notes that requests wait because of the number outstanding.
    pub(crate) fn is_full(&mut self) {
        self.learner.is_full();
    }

    /// The evidence for the costs of reads, and the load that was seen last; `begin` is the source
    /// of the costs that they began with.
    pub(crate) fn evidence(&self, begin: CostSource) -> (Evidence, SeenLoad) {
        (self.learner.evidence(begin), self.learner.load())
    }

    /// All counts, with the costs of reads, and the source of those that they began with.
    pub(crate) fn snapshot(
        &self,
        device: &str,
        engine: &'static str,
        costs: &DeviceCosts,
        begin: CostSource,
    ) -> DeviceCounters {
        let classes = Class::ALL.iter().zip(&self.classes).map(|(&class, t)| ClassCounters {
            class,
            requests: t.requests,
            device_requests: t.device_requests,
            bytes: t.bytes,
            merged: t.merged,
            gap_bytes: t.gap_bytes,
            in_place: t.in_place,
            errors: t.errors,
            retried: t.retried,
            latency: Latency::from_histogram(&t.latency),
            latency_ns: t.latency_ns,
        });
        DeviceCounters {
            device: device.to_string(),
            engine,
            classes: classes.collect(),
            busy_ns: self.busy_ns,
            depth_ns: self.depth_ns,
            mean_depth: self.depth_ns as f64 / self.busy_ns.max(1) as f64,
            service: Latency::from_histogram(&self.service),
            cost: costs.reads,
            evidence: self.learner.evidence(begin),
            write_cost: costs.writes,
        }
    }

    /// Times of reads lately.
    pub(crate) fn read_times(&self) -> ReadTimes {
        self.read_times
    }

    /// Resets the counts. Outstanding requests stay outstanding, and are not counted again; learned
    /// costs are kept.
    pub(crate) fn reset(&mut self, now: u64) {
        let (outstanding, read_times, least) = (self.outstanding, self.read_times, self.least);
        let learner = self.learner.clone();
        *self = QueueTally {
            outstanding,
            read_times,
            least,
            changed_ns: now,
            reset_ns: now,
            ..QueueTally::new(learner)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_began_before_a_reset_is_none_of_the_new_count() {
        let mut tally = QueueTally::new(Learner::off());
        tally.begin_in_place(Class::Demand, false, 8192, 10);
        tally.begin_in_place(Class::Demand, false, 8192, 12);
        tally.reset(20);
        let done =
            Done { write: false, bytes: 8192, beside: Beside::default(), taken_ns: 20, has_failed: true };
        tally.end_in_place(Class::Demand, &done, 30);
        let done = Done { taken_ns: 28, has_failed: false, ..done };
        assert_eq!(tally.end_in_place(Class::Demand, &done, 40).least_ns, 28, "the device is known by it");
        let costs = DeviceCosts::from_reads(CostModel::ssd());
        let counters = tally.snapshot("d", "inline", &costs, CostSource::Set);
        let demand = &counters.classes[Class::Demand as usize];
        assert_eq!((demand.requests, demand.errors, demand.latency.count), (0, 0, 0));
        assert_eq!((counters.service.count, counters.busy_ns), (0, 20));
    }
}
