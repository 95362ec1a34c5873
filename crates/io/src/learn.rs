//! The cost of requests on a device, learned from the completions of the work itself.
//!
//! | part | learns |
//! |---|---|
//! | `alone` | what a request takes when it has the device to itself |
//! | `curve` | device time of a request by its length, and the caps that explain it |
//! | `estimator` | decides what a completion of a read says, and keeps both |
//! | `writes` | the same of writes and flushes |
//!
//! A time at the device says little by itself: it is a property of the device only when nothing
//! else is outstanding, or when so much is that the device is the limit. Which of the two it is
//! follows from Little's law, as in TCP Vegas (Brakmo and Peterson, 1995): where requests take
//! longer than alone and the rate stays, the rate is the device's.

pub(crate) mod alone;
pub(crate) mod curve;
pub(crate) mod estimator;
pub(crate) mod writes;

use crate::cost::CostModel;
use crate::write_cost::WriteCost;
use estimator::Estimator;
use writes::WriteCosts;

/// A request that is over.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Done {
    pub(crate) write: bool,
    pub(crate) bytes: u64,
    /// Outstanding when it began, itself included.
    pub(crate) beside: u64,
    pub(crate) taken_ns: u64,
    pub(crate) has_failed: bool,
}

/// Beliefs about a device that were looked at anew.
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
}

/// Learns a device; or nothing.
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

    /// A request goes out. Answers how many of its direction are outstanding with it.
    pub(crate) fn started(&mut self, write: bool, now_ns: u64) -> u64 {
        match &mut self.of {
            Some(of) if write => of.writes.started(now_ns),
            Some(of) => of.reads.started(now_ns),
            None => 0,
        }
    }

    /// Reads wait because as many requests are outstanding as may be.
    pub(crate) fn is_full(&mut self) {
        self.of.iter_mut().for_each(|of| of.reads.is_full());
    }

    /// Looks at the reads when the device was the limit, so far.
    pub(crate) fn looks(&self) -> u64 {
        self.of.as_ref().map_or(0, |of| of.reads.looks())
    }

    /// Beliefs about the writes, if any are learned.
    pub(crate) fn writes(&self) -> Option<WriteCost> {
        self.of.as_ref().map(|of| of.writes.cost())
    }

    /// A flush took so long.
    pub(crate) fn flushed(&mut self, taken_ns: u64) {
        self.of.iter_mut().for_each(|of| of.writes.flushed(taken_ns));
    }

    /// A request is over. Answers what is believed of its direction when that was looked at anew.
    pub(crate) fn finished(&mut self, done: &Done, now_ns: u64) -> Option<Learned> {
        let Directions { reads, writes } = self.of.as_mut()?;
        match (done.write, done.has_failed) {
            (false, _) => {
                let is_new = reads.finished(done, now_ns);
                is_new.then(|| Learned::Reads(Reads { cost: reads.cost(), crowd: reads.crowd() }))
            }
            (true, true) => {
                writes.failed();
                None
            }
            (true, false) => {
                let is_new = writes.finished(done.bytes, done.beside, done.taken_ns, now_ns);
                is_new.then(|| Learned::Writes(writes.cost()))
            }
        }
    }
}
