//! Chooses the next request, and those that are merged with it.
//!
//! Requests wait in one lane per class. The first non-empty lane in order of priority is
//! served, unless a lower one has been passed over `patience` times. Inside a lane the policy
//! decides (`order`); a policy that holds the device still for a moment holds it for the
//! lanes below too, never for those above.
//!
//! The requests that follow the chosen one are merged with it while they are of the same direction,
//! at most a gap away (reads), and the whole stays within `max_bytes`. Requests that overlap are
//! never merged, and never ordered against each other.

#[doc(hidden)]
pub mod bench;

use std::collections::VecDeque;

use crate::device::IOV_MAX;
use crate::queue::background::{APART, Background};
use crate::queue::costs::DeviceCosts;
use crate::queue::device_load::DeviceLoad;
use crate::queue::device_request::{DeviceRequest, Pending, SCRATCH_BYTES};
use crate::queue::order::{Choice, ClassOrder, Policy, Rules};
use crate::queue::request::Class;

/// The numbers a schedule obeys.
#[derive(Clone, Copy)]
pub struct ScheduleLimits {
    /// The rules of the orders.
    pub rules: Rules,
    /// Longest gap read through, in bytes.
    pub gap_bytes: u64,
    /// Longest merged device request, in bytes.
    pub max_bytes: u64,
    /// Offsets and lengths must be multiples of this for a gap to be read.
    pub(crate) unit: u64,
    pub(crate) patience: u32,
    /// Device requests outstanding, all classes; where the device has caps, without the background.
    pub depth: usize,
    /// True while the depth is low so that lone reads are measured. Writes that are out already,
    /// and may take long, do not count against that depth.
    pub(crate) is_few: bool,
    pub background: Background,
}

/// The settings that a queue's limits are made of. `None` means: as the costs say.
pub(crate) struct ScheduleSettings {
    pub(crate) policy: Policy,
    /// Newcomers one sweep of the elevator takes.
    pub(crate) fairness: usize,
    pub(crate) depth: Option<u32>,
    pub(crate) gap_bytes: Option<u64>,
    pub(crate) max_request_bytes: u64,
    pub(crate) patience: u32,
    /// See [`ScheduleLimits::unit`].
    pub(crate) unit: u64,
    /// Most device requests outstanding, whatever is learned.
    pub(crate) most_depth: usize,
}

impl ScheduleSettings {
    /// Most device requests outstanding, those apart included.
    pub(crate) fn most_outstanding(&self) -> usize {
        self.most_depth + APART
    }

    /// The limits that follow from these costs, where the settings say nothing else.
    pub(crate) fn limits(&self, costs: &DeviceCosts) -> ScheduleLimits {
        let cost = costs.reads;
        let depth = self.depth.unwrap_or_else(|| cost.best_depth()).max(1) as usize;
        let depth = depth.min(self.most_depth);
        let mut background = Background::new(costs, depth, self.max_request_bytes);
        if self.depth.is_some() {
            background.apart = 0;
        }
        ScheduleLimits {
            rules: Rules { fairness: self.fairness, cost, max_request_bytes: self.max_request_bytes },
            gap_bytes: self.gap_bytes.unwrap_or_else(|| cost.gap_bytes()),
            max_bytes: self.max_request_bytes,
            unit: self.unit,
            patience: self.patience,
            depth,
            is_few: self.depth.is_none() && cost.has_caps() && background.apart == 0,
            background,
        }
    }
}

/// Answer of a schedule to the question for the next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// It was filled in.
    Begun,
    /// None before something arrives or is over.
    Nothing,
    /// None before this time, unless something arrives or is over.
    NotBefore(u64),
}

pub(crate) struct Schedule {
    limits: ScheduleLimits,
    lanes: [Lane; Class::COUNT],
    waiting: usize,
    arrivals: u64,
}

struct Lane {
    /// To be tried again alone: first of all.
    alone: VecDeque<Pending>,
    order: ClassOrder,
    passed_over: u32,
    /// Time at which its last request went out, and the length of that request.
    last_ns: u64,
    last_bytes: u64,
}

impl Schedule {
    pub(crate) fn new(policy: &Policy, limits: ScheduleLimits) -> Schedule {
        assert!(
            limits.depth > 0 && limits.background.requests > 0 && limits.background.bytes > 0,
            "a queue without depth moves nothing"
        );
        let lane = |_| Lane {
            alone: VecDeque::new(),
            order: ClassOrder::new(policy),
            passed_over: 0,
            last_ns: 0,
            last_bytes: 0,
        };
        Schedule { limits, lanes: std::array::from_fn(lane), waiting: 0, arrivals: 0 }
    }

    /// The costs of the device have changed.
    pub(crate) fn set_limits(&mut self, limits: ScheduleLimits) {
        self.limits = limits;
    }

    /// Device requests that may be outstanding.
    pub(crate) fn depth(&self) -> usize {
        self.limits.depth + self.limits.background.apart
    }

    /// Outstanding writes that do not count against the depth.
    fn aside(&self, outstanding: &DeviceLoad) -> usize {
        if self.limits.is_few { outstanding.writes } else { 0 }
    }

    /// True when a request that is not of the background may go out.
    fn has_room(&self, outstanding: &DeviceLoad) -> bool {
        let apart = self.limits.background.apart.min(outstanding.background);
        outstanding.requests - apart - self.aside(outstanding) < self.limits.depth
    }

    /// Requests that wait.
    pub(crate) fn len(&self) -> usize {
        self.waiting
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    pub(crate) fn push(&mut self, mut pending: Pending) {
        pending.order = self.arrivals;
        self.arrivals += 1;
        self.waiting += 1;
        let lane = &mut self.lanes[pending.request.class as usize];
        if pending.alone {
            lane.alone.push_back(pending);
        } else {
            lane.order.push(pending, &self.limits.rules);
        }
    }

    /// Fills `request` with what should go out next, if anything, given how much is
    /// outstanding.
    pub(crate) fn next(&mut self, request: &mut DeviceRequest, outstanding: DeviceLoad, now_ns: u64) -> Next {
        if outstanding.requests - self.aside(&outstanding) >= self.depth() {
            return Next::Nothing;
        }
        let Some(chosen) = self.choose_lane(&outstanding, now_ns) else { return Next::Nothing };
        let max_bytes =
            self.limits.max_bytes.min(self.limits.background.max_bytes(chosen, outstanding.least_ns));
        let limits = ScheduleLimits { max_bytes, ..self.limits };
        let lane = &mut self.lanes[chosen];
        if let Some(alone) = lane.alone.pop_front() {
            request.begin(alone);
        } else {
            match lane.order.choose(now_ns, &limits.rules) {
                Choice::Take => {}
                Choice::Hold => return Next::Nothing,
                Choice::HoldUntil(at) => return Next::NotBefore(at),
            }
            request.begin(lane.order.pop().expect("a chosen lane is not empty"));
            let mut buffers = 1;
            while let Some(then) = lane.order.peek().and_then(|next| limits.fits(request, next, buffers)) {
                request.append(lane.order.pop().expect("just looked at"));
                buffers = then;
            }
            lane.order.sent(request, now_ns, &limits.rules);
        }
        (lane.last_ns, lane.last_bytes) = (now_ns, request.len);
        self.note_passed_over(chosen);
        self.waiting -= request.pieces.len();
        Next::Begun
    }

    /// The device is done with `request`.
    pub(crate) fn over(&mut self, request: &DeviceRequest, now_ns: &dyn Fn() -> u64) {
        self.lanes[request.class as usize].order.over(request, now_ns);
    }

    /// Moves guesses to `class`, because a reader waits for them now: those at these offsets
    /// (sorted), and, where a request costs more than its bytes, those that would be merged with
    /// them. Returns how many. Planned reads stay in their order, since they come soon, and
    /// together.
    pub(crate) fn hurry(&mut self, offsets: &[u64], class: Class) -> usize {
        debug_assert!(offsets.is_sorted(), "neighbours are of one block");
        let guesses = &mut self.lanes[Class::Speculative as usize].order;
        if class >= Class::Speculative || guesses.is_empty() {
            return 0;
        }
        let block = self.limits.background.hurried_bytes();
        let mut hurried = Vec::new();
        for neighbours in offsets.chunk_by(|a, b| a / block == b / block) {
            let begin = neighbours[0] / block * block;
            guesses.take_reads(begin..begin + block, &mut hurried);
        }
        let count = hurried.len();
        for mut pending in hurried {
            pending.request.class = class;
            self.lanes[class as usize].order.push(pending, &self.limits.rules);
        }
        count
    }

    /// True when background requests wait that may go out as soon as less is outstanding.
    pub(crate) fn is_held(&self) -> bool {
        self.lanes.iter().enumerate().any(|(class, lane)| Background::includes(class) && !lane.is_empty())
    }

    fn choose_lane(&self, outstanding: &DeviceLoad, now_ns: u64) -> Option<usize> {
        let startable = |class: usize, lane: &Lane| {
            let since_ns = now_ns.saturating_sub(lane.last_ns);
            match Background::includes(class) {
                true => self.limits.background.has_room(class, outstanding, since_ns, lane.last_bytes),
                false => self.has_room(outstanding),
            }
        };
        let ready = |&class: &usize| {
            let lane = &self.lanes[class];
            !lane.is_empty() && startable(class, lane)
        };
        let first = (0..Class::COUNT).find(ready)?;
        let impatient = (first + 1..Class::COUNT)
            .filter(ready)
            .find(|&class| self.lanes[class].passed_over >= self.limits.patience);
        Some(impatient.unwrap_or(first))
    }

    /// Counts for every lane that waits below one that does not, or that was passed over for
    /// `chosen`.
    fn note_passed_over(&mut self, chosen: usize) {
        let mut above = false;
        for (class, lane) in self.lanes.iter_mut().enumerate() {
            if class == chosen {
                lane.passed_over = 0;
                above = true;
            } else if !lane.is_empty() {
                lane.passed_over += u32::from(above);
                above = true;
            }
        }
    }

    /// Takes out every read that waits (at shutdown; writes are still carried out).
    pub(crate) fn take_reads(&mut self) -> Vec<Pending> {
        let mut reads = Vec::new();
        for lane in &mut self.lanes {
            let all = lane.alone.drain(..).chain(lane.order.drain());
            let (writes, mut gone): (Vec<_>, Vec<_>) = all.partition(|p| p.request.buf.is_write());
            reads.append(&mut gone);
            lane.alone.extend(writes);
        }
        self.waiting -= reads.len();
        reads
    }
}

impl ScheduleLimits {
    /// The buffers that `request` and `next` have together, if they may be merged.
    fn fits(&self, request: &DeviceRequest, next: &Pending, buffers: usize) -> Option<usize> {
        let gap = next.request.offset.checked_sub(request.end())?;
        let same_way = next.request.buf.is_write() == request.write;
        let bridgeable =
            gap == 0 || (!request.write && gap <= self.gap_bytes && gap.is_multiple_of(self.unit));
        let buffers = buffers + 1 + (gap as usize).div_ceil(SCRATCH_BYTES);
        let small = next.end() - request.offset <= self.max_bytes && buffers <= IOV_MAX;
        (same_way && bridgeable && small).then_some(buffers)
    }
}

impl Lane {
    fn is_empty(&self) -> bool {
        self.alone.is_empty() && self.order.is_empty()
    }
}

#[cfg(test)]
mod tests;
