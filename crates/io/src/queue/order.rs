//! The order in which the requests of one class go out: the seam [`Order`].
//!
//! All orders have the same four verbs. `choose` decides where to go on, or to hold the device
//! still for a moment. `peek` and `pop` then give the next requests from there, which may be merged
//! with it. `sent` tells which of them became one device request.
//!
//! The engine's own order is the elevator. Others are made by a policy of another crate.

pub(crate) mod elevator;

use std::fmt::Debug;
use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

use crate::cost::CostModel;
use crate::queue::device_request::{DeviceRequest, Pending};
use crate::queue::order::elevator::Elevator;

/// The numbers an order obeys.
#[derive(Clone, Copy)]
pub struct Rules {
    /// Newcomers one sweep of an elevator takes.
    pub fairness: usize,
    /// Costs of requests on the device.
    pub cost: CostModel,
    /// Longest merged device request, in bytes.
    pub max_request_bytes: u64,
}

/// The next move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// `pop` gives the next request.
    Take,
    /// Nothing goes out before this time, or before something arrives or is over.
    HoldUntil(u64),
    /// Nothing goes out before something is over.
    Hold,
}

/// The requests of one class that wait, in the order in which they go out.
pub trait Order: Send {
    /// True when nothing waits.
    fn is_empty(&self) -> bool;

    /// Takes a request in.
    fn push(&mut self, pending: Pending, rules: &Rules);

    /// Where to go on; only when something waits.
    fn choose(&mut self, now_ns: u64, rules: &Rules) -> Choice;

    /// The request that `pop` would give.
    fn peek(&self) -> Option<&Pending>;

    /// Gives the next request from where `choose` decided to go on.
    fn pop(&mut self) -> Option<Pending>;

    /// The requests popped since `choose` go out as this one.
    fn sent(&mut self, request: &DeviceRequest, now_ns: u64, rules: &Rules);

    /// Called when the device is done with a request. The clock is read only where an order needs
    /// it.
    fn over(&mut self, _request: &DeviceRequest, _now_ns: &dyn Fn() -> u64) {}

    /// Takes out the reads that begin within `offsets`. Where requests are sorted it looks at no
    /// others.
    fn take_reads(&mut self, offsets: Range<u64>, into: &mut Vec<Pending>);

    /// Takes out everything, in any order.
    fn drain(&mut self) -> Vec<Pending>;
}

/// Makes orders: a policy of another crate.
pub trait OtherPolicy: Debug + Send + Sync {
    /// An empty order, for the requests of one class.
    fn new_order(&self) -> Box<dyn Order>;
}

/// The order in which waiting requests are served.
#[derive(Debug, Clone, Default)]
pub enum Policy {
    /// Sweeps over the offsets, from low to high.
    #[default]
    Elevator,
    /// One of another crate.
    Other(Arc<dyn OtherPolicy>),
}

/// The order of one class. The elevator is no box: the `inline` engine makes one for each batch.
pub(crate) enum ClassOrder {
    Elevator(Elevator),
    Other(Box<dyn Order>),
}

impl ClassOrder {
    pub(crate) fn new(policy: &Policy) -> ClassOrder {
        match policy {
            Policy::Elevator => ClassOrder::Elevator(Elevator::default()),
            Policy::Other(policy) => ClassOrder::Other(policy.new_order()),
        }
    }
}

impl Deref for ClassOrder {
    type Target = dyn Order;

    fn deref(&self) -> &(dyn Order + 'static) {
        match self {
            ClassOrder::Elevator(order) => order,
            ClassOrder::Other(order) => &**order,
        }
    }
}

impl DerefMut for ClassOrder {
    fn deref_mut(&mut self) -> &mut (dyn Order + 'static) {
        match self {
            ClassOrder::Elevator(order) => order,
            ClassOrder::Other(order) => &mut **order,
        }
    }
}
