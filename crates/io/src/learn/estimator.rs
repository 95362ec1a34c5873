//! Learns the costs of a device's reads from their completions, with a look every [`LOOK_NS`] of
//! busy time.

use crate::cost::{CostModel, Law};
use crate::learn::alone::Alone;
use crate::learn::curve::{Costs, Curve, CurveKind};
use crate::learn::depth::{Depth, Looked};
use crate::learn::elasticity::Elasticity;
use crate::learn::sums::{Passing, Sums};
use crate::learn::{Beside, Done, Reads, SeenLoad};

/// Busy time that the sums reach back.
const REACH_NS: f64 = 120e6;
/// Requests that they reach back at least.
const REACH_REQUESTS: f64 = 16.0;
/// Longer gaps are pauses, which do not count as time without use.
const PAUSE_NS: f64 = 5e6;
/// Busy time between two looks at the sums.
const LOOK_NS: f64 = 10e6;
/// The device is the limit when requests take this many times as long as alone.
const LIMIT: f64 = 1.5;
/// The part of the time, short gaps included, for which the device must have been filled to be the
/// limit; and the confidence that this needs.
const HALF: f64 = 0.5;
const LEAST_SURE: f64 = 0.05;
/// A device has an arm if a lone request takes longer than this and more requests at once hardly
/// raise the rate. With this many answered in the time of one it has none.
const ARM_NS: f64 = 4e6;
const ARM_BYTES: f64 = (128 << 10) as f64;
const ARM_COMPANY: f64 = 8.0;
/// No arm answers sooner, except from a cache.
const NO_ARM_NS: f64 = ARM_NS / 2.0;
const NO_ARM_COMPANY: f64 = 12.0;
/// Looks in a row after which the belief in an arm is dropped, or taken up.
const NO_ARM_LOOKS: u32 = 8;
const ARM_LOOKS: u32 = 3;
/// Length up to which an arm needs longer than a device without one, also for neighbours; and the
/// least part of its believed time that a transfer can take.
const QUICK_BYTES: f64 = (32 << 10) as f64;
const QUICK_NS: f64 = 200e3;
const OUTRUNS: f64 = 0.4;
/// Least depth for an arm. Requests that wait in the queue are merged.
const ARM_DEPTH: f64 = 8.0;

/// Above the latency of flash.
const SLOW_NS: f64 = 250e3;
/// Assumed for slower devices: requests that keep them busy, if the caps allow as many.
const VOLUME_DEPTH: f64 = 9.0;
const VOLUME: CostModel = CostModel::network();
const ARM: CostModel = CostModel::hdd();

/// Factor of the cost of requests, up or down, from which the device counts as another one.
const CHANGE: f64 = 1.5;

/// Factor over the believed latency from which a latency is a surprise.
const SURPRISE: f64 = 2.0;

/// How much steeper the price is than the use.
const STEEP: i32 = 4;
/// The least price of bytes: they take memory, too.
const BYTES: f64 = 0.6;
/// The part of the difference by which prices move with each look.
const PRICE_STEP: f64 = 0.05;

#[derive(Clone)]
pub(crate) struct Estimator {
    alone: Alone,
    curve: Curve,
    elasticity: Elasticity,
    kind: CurveKind,
    /// Looks in a row at which it answered like the other kind.
    unlike: u32,
    tick: Sums,
    lately: Sums,
    outstanding: Beside,
    passing: Passing,
    /// Requests waited because so many were outstanding.
    was_full: bool,
    depth: Depth,
    /// The price of requests: see [`Law::Caps`].
    request_share: f64,
    costs: Costs,
    /// Costs at the last time that the device counted as another one.
    costs_then: Costs,
    is_limit: bool,
    /// Looks so far at which the device was the limit.
    looks: u64,
}

impl Estimator {
    pub(crate) fn new(prior: &CostModel) -> Estimator {
        let kind = if prior.has_arm() { CurveKind::Arm } else { CurveKind::Caps };
        let byte_ns = 1e9 / prior.bytes_per_s.max(1) as f64;
        let costs = Costs { kind, request_ns: prior.ns_per_request.max(1) as f64, byte_ns };
        Estimator {
            alone: Alone::new(prior.latency_ns.max(1) as f64, byte_ns),
            curve: Curve::new(costs),
            elasticity: Elasticity::default(),
            kind,
            unlike: 0,
            tick: Sums::default(),
            lately: Sums::default(),
            outstanding: Beside::default(),
            passing: Passing::default(),
            was_full: false,
            depth: Depth::new(prior.best_depth()),
            request_share: prior.request_share(),
            costs,
            costs_then: costs,
            is_limit: false,
            looks: 0,
        }
    }

    /// Notes that a request of `bytes` goes to the device. Returns what is outstanding with it.
    pub(crate) fn started(&mut self, bytes: u64, now_ns: u64) -> Beside {
        self.pass(now_ns);
        self.outstanding.begin(bytes)
    }

    /// Notes that requests wait because of the number outstanding.
    pub(crate) fn is_full(&mut self) {
        self.was_full = true;
    }

    /// Notes that a request is over. True when that led to a look.
    pub(crate) fn finished(&mut self, done: &Done, now_ns: u64) -> bool {
        self.pass(now_ns);
        self.outstanding.end(done.bytes);
        let says_something = !done.has_failed && done.bytes > 0;
        let Some(taken_ns) = self.passing.taken(done.taken_ns).filter(|_| says_something) else {
            if self.tick.busy_ns >= LOOK_NS {
                // The device was busy with failures, which say nothing of it.
                self.tick = Sums::default();
            }
            return false;
        };
        let was_known = self.alone.is_known();
        self.alone.add(done.bytes, taken_ns, &done.beside);
        self.tick.service_ns += taken_ns;
        self.tick.requests += 1.0;
        self.tick.bytes += done.bytes as f64;
        if self.tick.busy_ns >= LOOK_NS {
            self.look();
            return true;
        }
        let is_first_word = self.alone.is_known() && !was_known && !self.curve.is_measured();
        if is_first_word {
            self.alone.look();
            self.assume_by_latency();
        }
        is_first_word
    }

    fn pass(&mut self, now_ns: u64) {
        let request_ns = if self.lately.requests > 0.0 { self.lately.busy_per_request() } else { 0.0 };
        let passed_ns = self.passing.to(now_ns, request_ns);
        match self.outstanding.requests {
            0 => self.tick.idle_ns += passed_ns.min(PAUSE_NS),
            _ => self.tick.busy_ns += passed_ns,
        }
        if self.outstanding.requests as f64 >= self.depth.fills() {
            self.tick.full_ns += passed_ns;
        }
    }

    fn look(&mut self) {
        let tick = std::mem::take(&mut self.tick);
        let keep = (-(tick.busy_ns / REACH_NS).min(tick.requests / REACH_REQUESTS)).exp();
        self.lately.add(&tick, keep);
        let sums = self.lately;
        let (bytes, ns) = (sums.mean_bytes(), sums.busy_per_request());
        self.alone.look();
        let alone_ns = self.alone.ns(bytes);
        let sure = ((sums.full_ns / sums.ns() - HALF) / (1.0 - HALF)).max(0.0).powi(2);
        self.is_limit = sure > LEAST_SURE && sums.service_per_request() > LIMIT * alone_ns;
        if self.is_limit {
            self.looks += 1;
            self.elasticity.add(tick.bytes / tick.requests, tick.busy_ns / tick.requests);
            self.curve.set(bytes, ns, sure);
        } else if self.kind == CurveKind::Caps && ns < self.costs.ns(bytes) {
            // An arm is quick where it need not go far; what caps let through they allow.
            self.curve.set(bytes, ns, 0.5);
        }
        if !self.curve.is_measured() {
            self.assume_by_latency();
        }
        self.kind = if self.outruns_an_arm(bytes, ns) { CurveKind::Caps } else { self.kind_now(bytes) };
        self.costs = self.curve.costs(self.kind, bytes, self.elasticity.get());
        debug_assert!(self.costs.request_ns > 0.0 && self.costs.byte_ns > 0.0, "{:?}", self.costs);
        debug_assert!(self.costs.request_ns.is_finite() && self.costs.byte_ns.is_finite());
        if self.kind == CurveKind::Arm {
            self.depth.at_least(ARM_DEPTH);
        }
        let (costs, has_changed) = (self.costs, self.has_changed(bytes));
        let looked = Looked {
            tick: &tick,
            lately: &sums,
            is_limit: self.is_limit,
            has_arm: self.kind == CurveKind::Arm,
            was_full: std::mem::take(&mut self.was_full),
            has_changed,
            alone: self.alone.samples(),
            alone_ns,
            request_ns: costs.ns(bytes),
        };
        let were_few = self.depth.are_few();
        self.depth.look(&looked, |sums| costs.request_ns * sums.requests + costs.byte_ns * sums.bytes);
        match (were_few, self.depth.are_few()) {
            (false, true) => self.alone.begin_few(bytes, sums.service_per_request()),
            (true, false) => self.alone.end_few(),
            _ => {}
        }
        self.set_prices();
    }

    /// True when requests of that length cost so much more or less that the device counts as
    /// another one.
    fn has_changed(&mut self, bytes: f64) -> bool {
        let times = self.costs.ns(bytes) / self.costs_then.ns(bytes);
        let has_changed = !(1.0 / CHANGE..CHANGE).contains(&times);
        if has_changed {
            self.costs_then = self.costs;
        }
        has_changed
    }

    /// Assumes the kind of the device by its latency until it was filled once: flash, a usual
    /// volume, or something with an arm.
    fn assume_by_latency(&mut self) {
        let latency_ns = self.alone.latency_ns();
        let request_ns = (latency_ns / VOLUME_DEPTH).max(VOLUME.ns_per_request as f64);
        if self.kind == CurveKind::Arm {
            return;
        }
        let is_slow = self.alone.median_ns() >= ARM_NS.max(SURPRISE * self.alone.assumed_ns());
        if is_slow && latency_ns >= NO_ARM_NS {
            self.kind = CurveKind::Arm;
            self.assume(&ARM);
            self.depth.begin_with(ARM_DEPTH);
        } else if latency_ns >= SLOW_NS
            && latency_ns > SURPRISE * self.alone.assumed_ns()
            && self.costs.request_ns < 0.5 * request_ns
        {
            self.assume(&CostModel { ns_per_request: request_ns as u64, ..VOLUME });
            self.depth.reckon(latency_ns / request_ns);
        }
    }

    fn assume(&mut self, cost: &CostModel) {
        let (request_ns, byte_ns) = (cost.ns_per_request as f64, 1e9 / cost.bytes_per_s as f64);
        self.costs = Costs { kind: self.kind, request_ns, byte_ns };
        self.curve.assume(self.costs);
    }

    /// True where an arm is believed in, and a request of `bytes` took only `ns` of the device:
    /// less than any arm takes for short ones, or than the transfer of long ones.
    fn outruns_an_arm(&self, bytes: f64, ns: f64) -> bool {
        let is_quick = bytes <= QUICK_BYTES && ns < QUICK_NS;
        let is_enough = self.lately.requests >= REACH_REQUESTS;
        // Not by what a cache in front of an arm holds: alone its requests would take long.
        let may_be_none = self.kind == CurveKind::Arm && self.alone.latency_ns() < NO_ARM_NS;
        may_be_none && is_enough && (is_quick || ns < OUTRUNS * self.costs.byte_ns * bytes)
    }

    /// The kind of the device. It has an arm when short requests alone take long and many at once
    /// are hardly faster, and none when they are. This must hold for some time: a track buffer is
    /// quick, too, and while a device changes, the two times are of different devices.
    fn kind_now(&mut self, bytes: f64) -> CurveKind {
        let latency_ns = self.alone.latency_ns();
        // While it is taken for an arm there may be no more of them: few are enough.
        let is_too_soon = self.kind == CurveKind::Arm && self.alone.is_known() && latency_ns < NO_ARM_NS;
        if !self.alone.is_sure() && !is_too_soon {
            return self.kind;
        }
        let is_short = self.is_limit && bytes <= ARM_BYTES;
        let company = latency_ns / self.curve.costs(self.kind, bytes, self.elasticity.get()).ns(bytes);
        let (is_unlike, looks, other) = match self.kind {
            CurveKind::Arm => {
                let least = if latency_ns < ARM_NS { ARM_COMPANY } else { NO_ARM_COMPANY };
                let is_none = latency_ns < NO_ARM_NS || (is_short && company >= least);
                (is_none, NO_ARM_LOOKS, CurveKind::Caps)
            }
            CurveKind::Caps => {
                let is_arm = is_short && latency_ns >= ARM_NS && company < ARM_COMPANY;
                (is_arm, ARM_LOOKS, CurveKind::Arm)
            }
        };
        self.unlike = if is_unlike { self.unlike + 1 } else { 0 };
        if self.unlike < looks {
            return self.kind;
        }
        self.unlike = 0;
        other
    }

    /// Sets the prices: the one of requests and bytes is dearer of which the work uses the larger
    /// part of what the device allows.
    fn set_prices(&mut self) {
        let of_requests = self.costs.request_ns * self.lately.requests;
        let of_bytes = self.costs.byte_ns * self.lately.bytes;
        let price = |used_ns: f64| (used_ns / self.lately.ns()).min(1.0).powi(STEEP);
        let (requests, bytes) = (price(of_requests), price(of_bytes).max(BYTES));
        let share = requests / (requests + bytes);
        self.request_share += (share - self.request_share) * PRICE_STEP;
    }

    /// How sure the costs of requests and of bytes are: see [`Curve::confidence`].
    pub(crate) fn confidence(&self) -> [f64; 2] {
        self.curve.confidence(&self.costs)
    }

    /// The load of the last looks.
    pub(crate) fn load(&self) -> SeenLoad {
        let Sums { busy_ns, service_ns, requests, bytes, .. } = self.lately;
        let requests = requests.max(f64::MIN_POSITIVE);
        SeenLoad {
            requests_per_s: 1e9 * requests / busy_ns.max(1.0),
            request_bytes: bytes / requests,
            request_ns: service_ns / requests,
            outstanding: self.crowd(),
        }
    }

    /// Looks when the device was the limit, so far.
    pub(crate) fn looks(&self) -> u64 {
        self.looks
    }

    /// Requests outstanding in the mean, lately.
    pub(crate) fn crowd(&self) -> f64 {
        self.lately.service_ns / self.lately.busy_ns.max(1.0)
    }

    /// The present beliefs about reads.
    pub(crate) fn learned(&self) -> Reads {
        Reads { cost: self.cost(), crowd: self.crowd(), is_sought: self.looks == 0 }
    }

    /// The present costs and prices of requests. The bound on guesses follows from the bytes that
    /// are moved in the time of a request, so a trial of a higher depth makes bytes seem cheaper,
    /// and a proven one makes requests seem longer.
    pub(crate) fn cost(&self) -> CostModel {
        let more = self.depth.more().max(1.0);
        let wider = if self.is_limit || self.kind == CurveKind::Arm { 1.0 } else { self.depth.wider() };
        CostModel {
            latency_ns: ((wider * self.alone.latency_ns()) as u64).max(1),
            ns_per_request: (self.costs.request_ns as u64).max(1),
            bytes_per_s: ((more * 1e9 / self.costs.byte_ns) as u64).max(1),
            depth: self.depth.now().round() as u32,
            law: match self.kind {
                CurveKind::Arm => Law::Sum,
                CurveKind::Caps => Law::Caps { request_share: self.request_share },
            },
        }
    }
}

#[cfg(test)]
mod tests;
