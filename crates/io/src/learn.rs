//! The cost of requests on a device, learned from the completions of the work itself.
//!
//! | part | learns |
//! |---|---|
//! | `alone` | what a request takes when it has the device to itself |
//! | `elasticity` | whether longer requests take longer, and so which limit binds |
//! | `curve` | device time of a request by its length, and the caps that explain it |
//! | `sums` | sums over requests, and the time that counts for them |
//! | `depth` | how many requests should be outstanding |
//! | `estimator` | decides what a completion of a read says, and holds the parts above |
//! | `writes` | an estimator of writes and flushes |
//!
//! A time at the device says little by itself: it is a property of the device only when nothing
//! else is outstanding, or when so much is that the device is the limit. Little's law tells which
//! of the two applies, as in TCP Vegas (Brakmo and Peterson, 1995): where requests take longer than
//! alone and the rate stays, the rate is the device's.
//!
//! Completions are summed up, and the sums evaluated every few milliseconds: that is a *look*.

pub(crate) mod alone;
pub(crate) mod curve;
pub(crate) mod depth;
pub(crate) mod elasticity;
pub(crate) mod estimator;
pub(crate) mod sums;
pub(crate) mod writes;

use serde::Serialize;

use crate::cost::{CostModel, CostSource};
use crate::write_cost::WriteCost;
use estimator::Estimator;
use writes::WriteCosts;

/// Requests of one direction that are outstanding: now, or when one of them began, itself included.
#[derive(Debug, Clone, Copy, Default)]
pub struct Beside {
    /// How many.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Beside {
    /// Counts one more; returns what is outstanding with it.
    pub(crate) fn begin(&mut self, bytes: u64) -> Beside {
        self.requests += 1;
        self.bytes += bytes;
        *self
    }

    /// Counts one less.
    pub(crate) fn end(&mut self, bytes: u64) {
        self.requests -= 1;
        self.bytes -= bytes;
    }
}

/// A request that is over.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Done {
    pub(crate) write: bool,
    pub(crate) bytes: u64,
    pub(crate) beside: Beside,
    pub(crate) taken_ns: u64,
    pub(crate) has_failed: bool,
}

/// New estimates of a device's costs.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Learned {
    Reads(Reads),
    Writes(WriteCost),
}

/// Beliefs about its reads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reads {
    pub(crate) cost: CostModel,
    /// Requests outstanding in the mean, lately.
    pub(crate) crowd: f64,
    /// True until the limit of the device was reached once.
    pub(crate) is_sought: bool,
}

/// Evidence for the costs of a device's reads.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Evidence {
    /// How sure the cost of a request is, 0 to 1: 1 when the device was kept filled with such
    /// requests just now.
    pub requests: f64,
    /// How sure the cost of a byte is, 0 to 1.
    pub bytes: f64,
    /// Source of the cost of a request.
    pub requests_from: CostSource,
    /// Source of the cost of a byte.
    pub bytes_from: CostSource,
    /// Looks so far in which the device was the limit.
    pub looks: u64,
}

/// Reads of a device in the last tenths of a second of its work.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SeenLoad {
    /// Requests that were answered per second.
    pub requests_per_s: f64,
    /// Their mean length.
    pub request_bytes: f64,
    /// The mean time of one.
    pub request_ns: f64,
    /// Requests outstanding, in the mean.
    pub outstanding: f64,
}

/// Beliefs about the reads of a device, and why.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Belief {
    /// The costs.
    pub cost: CostModel,
    /// The evidence for them.
    pub evidence: Evidence,
    /// The latest load.
    pub load: SeenLoad,
}

/// Learns the costs of a device, if it is on.
#[derive(Clone)]
pub(crate) struct Learner {
    of: Option<Directions>,
}

#[derive(Clone)]
struct Directions {
    reads: Estimator,
    writes: WriteCosts,
}

impl Learner {
    /// Most requests outstanding that it tries.
    pub(crate) const MOST_DEPTH: u32 = 256;

    /// Begins with these costs.
    pub(crate) fn on(cost: &CostModel) -> Learner {
        Learner { of: Some(Directions { reads: Estimator::new(cost), writes: WriteCosts::new(cost) }) }
    }

    /// Learns nothing.
    pub(crate) fn off() -> Learner {
        Learner { of: None }
    }

    /// Notes that a request of `bytes` goes out. Returns what is outstanding of its direction with
    /// it.
    pub(crate) fn started(&mut self, write: bool, bytes: u64, now_ns: u64) -> Beside {
        match &mut self.of {
            Some(of) if write => of.writes.started(bytes, now_ns),
            Some(of) => of.reads.started(bytes, now_ns),
            None => Beside::default(),
        }
    }

    /// Notes that reads wait because of the number outstanding.
    pub(crate) fn is_full(&mut self) {
        self.of.iter_mut().for_each(|of| of.reads.is_full());
    }

    /// Looks at the reads when the device was the limit, so far.
    pub(crate) fn looks(&self) -> u64 {
        self.of.as_ref().map_or(0, |of| of.reads.looks())
    }

    /// The evidence for what is believed of reads; `begin` is the source of what that began with.
    pub(crate) fn evidence(&self, begin: CostSource) -> Evidence {
        let [requests, bytes] = self.of.as_ref().map_or([0.0; 2], |of| of.reads.confidence());
        let from = |sure: f64| if sure > 0.0 { CostSource::Learned } else { begin };
        let [requests_from, bytes_from] = [requests, bytes].map(from);
        Evidence { requests, bytes, requests_from, bytes_from, looks: self.looks() }
    }

    /// The reads that were seen last.
    pub(crate) fn load(&self) -> SeenLoad {
        self.of.as_ref().map_or(SeenLoad::default(), |of| of.reads.load())
    }

    /// Beliefs about the writes, if any are learned.
    pub(crate) fn writes(&self) -> Option<WriteCost> {
        self.of.as_ref().map(|of| of.writes.cost())
    }

    /// Takes in the time of a flush.
    pub(crate) fn flushed(&mut self, taken_ns: u64) {
        self.of.iter_mut().for_each(|of| of.writes.flushed(taken_ns));
    }

    /// Notes that a request is over. Returns the estimates of its direction if they were evaluated
    /// anew.
    pub(crate) fn finished(&mut self, done: &Done, now_ns: u64) -> Option<Learned> {
        let Directions { reads, writes } = self.of.as_mut()?;
        match (done.write, done.has_failed) {
            (false, _) => {
                let is_new = reads.finished(done, now_ns);
                is_new.then(|| Learned::Reads(reads.learned()))
            }
            (true, true) => {
                writes.failed(done.bytes);
                None
            }
            (true, false) => {
                let is_new = writes.finished(done.bytes, &done.beside, done.taken_ns, now_ns);
                is_new.then(|| Learned::Writes(writes.cost()))
            }
        }
    }
}
