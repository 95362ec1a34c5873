//! Learns one direction of a device.

use crate::cost::{CostModel, Law};
use crate::learn::alone::Alone;
use crate::learn::curve::{Costs, Curve, Kind};
use crate::learn::elasticity::Elasticity;
use crate::learn::{Done, Learner};

/// Busy time that the sums reach back.
const REACH_NS: f64 = 120e6;
/// Requests that they reach back at least.
const REACH_REQUESTS: f64 = 16.0;
/// Busy time between two looks at the sums.
const LOOK_NS: f64 = 10e6;
/// The device is the limit when requests take so many times as long as alone.
const LIMIT: f64 = 1.5;
/// The device was not the limit when it was filled for less than this part of the time; and how
/// sure one must be that it was.
const HALF: f64 = 0.5;
const LEAST_SURE: f64 = 0.05;
/// Requests outstanding, of what fills the device.
const FILLS: f64 = 2.0;
const DEPTHS: [f64; 2] = [4.0, Learner::MOST_DEPTH as f64];
/// A device that answers slower than this alone, and hardly faster in company, has an arm.
const ARM_NS: f64 = 4e6;
const ARM_BYTES: f64 = (128 << 10) as f64;
/// An arm knows so many requests at first. Those that wait for it here are merged.
const ARM_DEPTH: f64 = 8.0;
/// Outstanding beyond what fills the device. More would be merged less.
const MORE: f64 = 2.0;

/// Flash answers sooner.
const SLOW_NS: f64 = 250e3;
/// What is assumed of slower ones: so many requests keep it busy, if it allows as many.
const VOLUME_DEPTH: f64 = 9.0;
const VOLUME: CostModel = CostModel::network();
const ARM: CostModel = CostModel::hdd();

/// Steps of the depth upwards, what they must bring, and how long they are tried.
const DEEPER: f64 = 1.5;
const HELPS: f64 = 1.05;
const TRIAL_NS: f64 = 30e6;
/// Busy time before a depth that brought nothing is tried again.
const PAUSE_NS: f64 = 2e9;

/// Prices where requests and bytes are as scarce as each other.
const EVEN: f64 = 0.5;
/// How much steeper the price is than the use.
const STEEP: i32 = 4;
/// The least price of bytes: they take memory, too.
const BYTES: f64 = 0.6;
/// The least price of requests while bytes are plentiful: a gap then costs nothing.
const REQUESTS: f64 = 0.4;
/// The part of the way that prices go with each look.
const PRICE_STEP: f64 = 0.05;

#[derive(Clone, Copy, Default)]
struct Sums {
    busy_ns: f64,
    /// Of that, with as many outstanding as should be.
    full_ns: f64,
    service_ns: f64,
    requests: f64,
    bytes: f64,
}

impl Sums {
    fn add(&mut self, other: &Sums, keep: f64) {
        self.busy_ns = self.busy_ns * keep + other.busy_ns;
        self.full_ns = self.full_ns * keep + other.full_ns;
        self.service_ns = self.service_ns * keep + other.service_ns;
        self.requests = self.requests * keep + other.requests;
        self.bytes = self.bytes * keep + other.bytes;
    }
}

/// Whether more requests outstanding move more.
#[derive(Clone)]
enum Trial {
    None,
    Deeper { from: f64, moved: f64, skip_ns: f64, sums: Sums },
    Pause { ns: f64 },
}

#[derive(Clone)]
pub(crate) struct Estimator {
    alone: Alone,
    curve: Curve,
    elasticity: Elasticity,
    kind: Kind,
    tick: Sums,
    lately: Sums,
    outstanding: u64,
    changed_ns: u64,
    /// Requests waited because so many were outstanding.
    was_full: bool,
    /// So many outstanding fill the device.
    fills: f64,
    depth: f64,
    trial: Trial,
    /// The price of requests: see [`Law::Caps`].
    request_share: f64,
    costs: Costs,
    is_limit: bool,
    /// How often it was, so far.
    looks: u64,
}

impl Estimator {
    pub(crate) fn new(prior: &CostModel) -> Estimator {
        let kind = if prior.has_arm() { Kind::Arm } else { Kind::Caps };
        let byte_ns = 1e9 / prior.bytes_per_s as f64;
        let costs = Costs { kind, request_ns: prior.ns_per_request as f64, byte_ns };
        Estimator {
            alone: Alone::new(prior.latency_ns as f64, byte_ns),
            curve: Curve::new(costs),
            elasticity: Elasticity::default(),
            kind,
            tick: Sums::default(),
            lately: Sums::default(),
            outstanding: 0,
            changed_ns: 0,
            was_full: false,
            fills: DEPTHS[0],
            depth: f64::from(prior.best_depth()),
            trial: Trial::None,
            request_share: EVEN,
            costs,
            is_limit: false,
            looks: 0,
        }
    }

    /// A request goes to the device. Answers how many are outstanding with it.
    pub(crate) fn started(&mut self, now_ns: u64) -> u64 {
        self.pass(now_ns);
        self.outstanding += 1;
        self.outstanding
    }

    /// A request waits because `depth` are outstanding.
    pub(crate) fn is_full(&mut self) {
        self.was_full = true;
    }

    /// A request that was started is over. True when the device was looked at anew.
    pub(crate) fn finished(&mut self, done: &Done, now_ns: u64) -> bool {
        self.pass(now_ns);
        self.outstanding -= 1;
        if done.has_failed {
            return false;
        }
        let taken_ns = done.taken_ns as f64;
        let was_known = self.alone.is_known();
        self.alone.add(done.bytes, taken_ns, done.beside);
        self.tick.service_ns += taken_ns;
        self.tick.requests += 1.0;
        self.tick.bytes += done.bytes as f64;
        if self.tick.busy_ns >= LOOK_NS {
            self.look();
            return true;
        }
        let is_first_word = self.alone.is_known() && !was_known && !self.curve.is_measured();
        if is_first_word {
            self.assume_by_latency();
        }
        is_first_word
    }

    fn pass(&mut self, now_ns: u64) {
        let passed_ns = now_ns.saturating_sub(self.changed_ns) as f64;
        if self.outstanding > 0 {
            self.tick.busy_ns += passed_ns;
        }
        if self.outstanding as f64 >= self.fills {
            self.tick.full_ns += passed_ns;
        }
        self.changed_ns = self.changed_ns.max(now_ns);
    }

    fn look(&mut self) {
        let tick = std::mem::take(&mut self.tick);
        let keep = (-(tick.busy_ns / REACH_NS).min(tick.requests / REACH_REQUESTS)).exp();
        self.lately.add(&tick, keep);
        let sums = self.lately;
        let (bytes, ns) = (sums.bytes / sums.requests, sums.busy_ns / sums.requests);
        let alone_ns = self.alone.ns(bytes);
        let sure = ((sums.full_ns / sums.busy_ns - HALF) / (1.0 - HALF)).max(0.0).powi(2);
        let is_filled = sure > LEAST_SURE;
        self.is_limit = is_filled && sums.service_ns / sums.requests > LIMIT * alone_ns;
        self.kind = self.kind_now(bytes, is_filled);
        if self.is_limit {
            self.looks += 1;
            self.elasticity.add(tick.bytes / tick.requests, tick.busy_ns / tick.requests);
            self.curve.set(bytes, ns, sure);
        } else if self.kind == Kind::Caps && ns < self.costs.ns(bytes) {
            // An arm is quick where it need not go far; what caps let through they allow.
            self.curve.set(bytes, ns, 0.5);
        }
        if !self.curve.is_measured() {
            self.assume_by_latency();
        }
        self.costs = self.curve.costs(self.kind, bytes, self.elasticity.get());
        if self.is_limit && self.kind == Kind::Caps {
            self.set_depth(alone_ns);
        } else {
            // Of an arm it cannot be computed: it depends on how it sorts its requests.
            self.try_deeper(&tick);
        }
        self.was_full = false;
        self.set_prices();
    }

    /// Before the device was filled once, its latency says what it is like: flash, a usual volume,
    /// or something with an arm.
    fn assume_by_latency(&mut self) {
        let latency_ns = self.alone.latency_ns();
        let request_ns = (latency_ns / VOLUME_DEPTH).max(VOLUME.ns_per_request as f64);
        if self.kind == Kind::Arm {
            return;
        }
        if self.alone.median_ns() >= ARM_NS {
            self.kind = Kind::Arm;
            self.assume(&ARM);
            (self.fills, self.depth) = (DEPTHS[0], ARM_DEPTH);
        } else if latency_ns >= SLOW_NS && self.costs.request_ns < 0.5 * request_ns {
            self.assume(&CostModel { ns_per_request: request_ns as u64, ..VOLUME });
            self.set_depth(latency_ns);
        }
    }

    fn assume(&mut self, cost: &CostModel) {
        let (request_ns, byte_ns) = (cost.ns_per_request as f64, 1e9 / cost.bytes_per_s as f64);
        self.costs = Costs { kind: self.kind, request_ns, byte_ns };
        self.curve.assume(self.costs);
    }

    /// By Little's law: a request of the mean length takes `alone_ns` alone.
    fn set_depth(&mut self, alone_ns: f64) {
        let bytes = self.lately.bytes / self.lately.requests.max(1.0);
        self.fills = (FILLS * alone_ns / self.costs.ns(bytes) + 1.0).clamp(DEPTHS[0], DEPTHS[1]);
        self.depth = (self.fills + MORE).min(DEPTHS[1]);
    }

    /// An arm shows when short requests alone take long and many at once hardly more in all; that
    /// it is none, when they take less, or many at once no longer than one.
    fn kind_now(&self, bytes: f64, is_filled: bool) -> Kind {
        let latency_ns = self.alone.median_ns();
        match self.kind {
            Kind::Arm if self.alone.is_sure() && latency_ns < ARM_NS / 2.0 => Kind::Caps,
            Kind::Arm if self.alone.is_known() && is_filled && !self.is_limit => Kind::Caps,
            Kind::Caps if self.is_limit && bytes <= ARM_BYTES && self.alone.is_sure() => {
                let costs = self.curve.costs(self.kind, bytes, self.elasticity.get());
                let is_arm = latency_ns >= ARM_NS && latency_ns < 8.0 * costs.ns(bytes);
                if is_arm { Kind::Arm } else { Kind::Caps }
            }
            kind => kind,
        }
    }

    /// Where requests wait for others and the device does not seem to be the limit, more are let
    /// out; when that does not move more, as many as before.
    fn try_deeper(&mut self, tick: &Sums) {
        let work = |sums: &Sums| {
            (self.costs.request_ns * sums.requests + self.costs.byte_ns * sums.bytes) / sums.busy_ns
        };
        match &mut self.trial {
            Trial::None if self.was_full => {
                self.trial = Trial::Deeper {
                    from: self.depth,
                    moved: work(&self.lately),
                    skip_ns: self.alone.ns(tick.bytes / tick.requests),
                    sums: Sums::default(),
                };
                self.depth = (DEEPER * self.depth).min(DEPTHS[1]);
            }
            Trial::None => {}
            Trial::Deeper { skip_ns, .. } if *skip_ns > 0.0 => *skip_ns -= tick.busy_ns,
            Trial::Deeper { from, moved, sums, .. } => {
                sums.add(tick, 1.0);
                if sums.busy_ns >= TRIAL_NS && sums.requests >= REACH_REQUESTS {
                    let helps = work(sums) >= HELPS * *moved;
                    if !helps {
                        self.depth = *from;
                    }
                    self.trial = if helps { Trial::None } else { Trial::Pause { ns: PAUSE_NS } };
                }
            }
            Trial::Pause { ns } if *ns > 0.0 => *ns -= tick.busy_ns,
            Trial::Pause { .. } => self.trial = Trial::None,
        }
    }

    /// The dearer is that of which the work uses more, of all that the device allows.
    fn set_prices(&mut self) {
        let of_requests = self.costs.request_ns * self.lately.requests;
        let of_bytes = self.costs.byte_ns * self.lately.bytes;
        let price = |used_ns: f64| (used_ns / self.lately.busy_ns).min(1.0).powi(STEEP);
        let bytes = price(of_bytes).max(BYTES);
        let requests = price(of_requests).max(REQUESTS * (1.0 - price(of_bytes)));
        let share = requests / (requests + bytes);
        self.request_share += (share - self.request_share) * PRICE_STEP;
    }

    /// Looks when the device was the limit, so far.
    pub(crate) fn looks(&self) -> u64 {
        self.looks
    }

    /// Requests outstanding in the mean, lately.
    pub(crate) fn crowd(&self) -> f64 {
        self.lately.service_ns / self.lately.busy_ns.max(1.0)
    }

    /// Costs of requests, with the prices of now.
    pub(crate) fn cost(&self) -> CostModel {
        CostModel {
            latency_ns: (self.alone.latency_ns() as u64).max(1),
            ns_per_request: (self.costs.request_ns as u64).max(1),
            bytes_per_s: ((1e9 / self.costs.byte_ns) as u64).max(1),
            depth: self.depth.round() as u32,
            law: match self.kind {
                Kind::Arm => Law::Sum,
                Kind::Caps => Law::Caps { request_share: self.request_share },
            },
        }
    }
}

#[cfg(test)]
mod tests;
