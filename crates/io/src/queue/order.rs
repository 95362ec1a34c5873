//! The order in which the requests of one class go out: one small structure per
//! [`Policy`](crate::Policy).
//!
//! All have the same four verbs. `choose` decides where to go on, or to hold the device still
//! for a moment. `peek` and `pop` then give the next requests from there, which may travel
//! along. `sent` tells which of them became one device request.

pub(crate) mod anticipatory;
pub(crate) mod deadline;
pub(crate) mod elevator;
pub(crate) mod fair;

use std::collections::VecDeque;
use std::ops::Range;

use crate::cost::CostModel;
use crate::queue::config::{Policy, Tuning};
use crate::queue::device_request::{DeviceRequest, Pending};
use crate::queue::order::anticipatory::Anticipatory;
use crate::queue::order::deadline::Deadline;
use crate::queue::order::elevator::Elevator;
use crate::queue::order::fair::Fair;

/// The numbers an order obeys.
#[derive(Clone, Copy)]
pub(crate) struct Rules {
    /// Newcomers one sweep takes.
    pub(crate) fairness: usize,
    pub(crate) tuning: Tuning,
    /// Costs of requests on the device.
    pub(crate) cost: CostModel,
    /// Device time a client may use in its turn, in nanoseconds.
    pub(crate) quantum_ns: u64,
}

/// The next move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    /// `pop` gives the next request.
    Take,
    /// Nothing goes out before this time, or before something arrives or is over.
    HoldUntil(u64),
    /// Nothing goes out before something is over.
    Hold,
}

pub(crate) enum Order {
    Fifo(VecDeque<Pending>),
    Elevator(Elevator),
    Deadline(Deadline),
    Anticipatory(Anticipatory),
    Fair(Fair),
}

impl Order {
    pub(crate) fn new(policy: Policy) -> Order {
        match policy {
            Policy::Fifo => Order::Fifo(VecDeque::new()),
            Policy::Elevator => Order::Elevator(Elevator::default()),
            Policy::Deadline => Order::Deadline(Deadline::default()),
            Policy::Anticipatory => Order::Anticipatory(Anticipatory::default()),
            Policy::Fair => Order::Fair(Fair::default()),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Order::Fifo(queue) => queue.is_empty(),
            Order::Elevator(order) => order.is_empty(),
            Order::Deadline(order) => order.is_empty(),
            Order::Anticipatory(order) => order.is_empty(),
            Order::Fair(order) => order.is_empty(),
        }
    }

    pub(crate) fn push(&mut self, pending: Pending, rules: &Rules) {
        match self {
            Order::Fifo(queue) => queue.push_back(pending),
            Order::Elevator(order) => order.push(pending, rules.fairness),
            Order::Deadline(order) => order.push(pending),
            Order::Anticipatory(order) => order.push(pending, rules),
            Order::Fair(order) => order.push(pending, rules.fairness),
        }
    }

    /// Where to go on; only when something waits.
    pub(crate) fn choose(&mut self, now_ns: u64, rules: &Rules) -> Choice {
        match self {
            Order::Fifo(_) => {}
            Order::Elevator(order) => order.choose(),
            Order::Deadline(order) => order.choose(now_ns, &rules.tuning),
            Order::Anticipatory(order) => return order.choose(now_ns, rules),
            Order::Fair(order) => order.choose(rules.quantum_ns),
        }
        Choice::Take
    }

    pub(crate) fn peek(&self) -> Option<&Pending> {
        match self {
            Order::Fifo(queue) => queue.front(),
            Order::Elevator(order) => order.peek(),
            Order::Deadline(order) => order.peek(),
            Order::Anticipatory(order) => order.elevator.peek(),
            Order::Fair(order) => order.peek(),
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Pending> {
        match self {
            Order::Fifo(queue) => queue.pop_front(),
            Order::Elevator(order) => order.pop(),
            Order::Deadline(order) => order.pop(),
            Order::Anticipatory(order) => order.elevator.pop(),
            Order::Fair(order) => order.pop(),
        }
    }

    /// The requests popped since `choose` go out as this one.
    pub(crate) fn sent(&mut self, request: &DeviceRequest, now_ns: u64, rules: &Rules) {
        match self {
            Order::Fifo(_) => {}
            Order::Elevator(order) => order.sent(request.end()),
            Order::Deadline(order) => order.sent(request.end()),
            Order::Anticipatory(order) => order.sent(request, now_ns),
            Order::Fair(order) => order.sent(request, &rules.cost),
        }
    }

    /// The device is done with what was sent.
    pub(crate) fn over(&mut self, request: &DeviceRequest, now_ns: u64) {
        if let Order::Anticipatory(order) = self {
            order.over(request, now_ns);
        }
    }

    /// Takes out the reads that begin within `offsets`. Where requests are sorted it looks at no
    /// others.
    pub(crate) fn take_reads(&mut self, offsets: Range<u64>, into: &mut Vec<Pending>) {
        match self {
            Order::Fifo(queue) => queue.retain(|pending| {
                let is_wanted = !pending.request.buf.is_write() && offsets.contains(&pending.request.offset);
                into.extend(is_wanted.then_some(*pending));
                !is_wanted
            }),
            Order::Elevator(order) => order.take_reads(offsets, into),
            Order::Deadline(order) => order.take_reads(offsets, into),
            Order::Anticipatory(order) => order.elevator.take_reads(offsets, into),
            Order::Fair(order) => order.take_reads(offsets, into),
        }
    }

    /// Takes out everything, in any order.
    pub(crate) fn drain(&mut self) -> Vec<Pending> {
        match self {
            Order::Fifo(queue) => queue.drain(..).collect(),
            Order::Elevator(order) => order.drain(),
            Order::Deadline(order) => order.drain(),
            Order::Anticipatory(order) => order.elevator.drain(),
            Order::Fair(order) => order.drain(),
        }
    }
}
