//! Learns one direction of a device.

use crate::cost::{CostModel, GUESS_KNEES, Law};
use crate::learn::alone::Alone;
use crate::learn::curve::{Costs, Curve, Kind};
use crate::learn::{Done, Learner, SeenLoad};

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
/// An arm needs longer for short requests, also where they are neighbours; and no transfer takes
/// less than so much of what it is believed to take.
const QUICK_BYTES: f64 = (32 << 10) as f64;
const QUICK_NS: f64 = 200e3;
const OUTRUNS: f64 = 0.4;
/// An arm wants to know at least so many requests.
const ARM_DEPTH: f64 = 32.0;

/// Flash answers sooner; and what keeps a usual volume busy, in requests.
const SLOW_NS: f64 = 400e3;
const VOLUME_DEPTH: f64 = 9.0;

/// Steps of the depth upwards, what they must bring, and how long they are tried.
const DEEPER: f64 = 1.5;
const HELPS: f64 = 1.05;
const TRIAL_NS: f64 = 30e6;
/// Busy time before a depth that brought nothing is tried again.
const PAUSE_NS: f64 = 2e9;

/// A latency is a surprise when it is so many times what was believed.
const SURPRISE: f64 = 2.0;

/// How much steeper the price is than the use.
const STEEP: i32 = 4;
/// The least price of bytes: they take memory, too.
const BYTES: f64 = 0.6;
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
            kind,
            tick: Sums::default(),
            lately: Sums::default(),
            outstanding: 0,
            changed_ns: 0,
            was_full: false,
            fills: DEPTHS[0],
            depth: f64::from(prior.best_depth()),
            trial: Trial::None,
            request_share: prior.request_share(),
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
        self.alone.add(done.bytes, taken_ns, done.beside);
        self.tick.service_ns += taken_ns;
        self.tick.requests += 1.0;
        self.tick.bytes += done.bytes as f64;
        let is_due = self.tick.busy_ns >= LOOK_NS;
        if is_due {
            self.look();
        }
        is_due
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
        self.is_limit = sure > LEAST_SURE && sums.service_ns / sums.requests > LIMIT * alone_ns;
        if self.is_limit {
            self.looks += 1;
            self.curve.set(bytes, ns, sure);
        } else if self.kind == Kind::Caps && ns < self.costs.ns(bytes) {
            // An arm is quick where it need not go far; what caps let through they allow.
            self.curve.set(bytes, ns, 0.5);
        }
        if !self.curve.is_measured() {
            self.assume_by_latency();
        }
        self.kind = if self.outruns_an_arm(bytes, ns) { Kind::Caps } else { self.kind_now(bytes) };
        self.costs = self.curve.costs(self.kind);
        if self.kind == Kind::Arm {
            self.depth = self.depth.max(ARM_DEPTH);
        } else if self.is_limit {
            self.fills = (FILLS * alone_ns / self.costs.ns(bytes) + 1.0).clamp(DEPTHS[0], DEPTHS[1]);
            // While the device moves the bytes of a guess it has time for others.
            self.depth = (self.fills + GUESS_KNEES as f64).min(DEPTHS[1]);
        } else {
            self.try_deeper(&tick);
        }
        self.was_full = false;
        self.set_prices();
    }

    /// Before the device was filled once, its latency says what it is like: one that answers
    /// slower than flash, and than was believed, is taken for a usual volume.
    fn assume_by_latency(&mut self) {
        let (latency_ns, volume) = (self.alone.latency_ns(), CostModel::network());
        let is_slow = self.kind == Kind::Caps
            && latency_ns >= SLOW_NS
            && latency_ns > SURPRISE * self.alone.assumed_ns();
        if is_slow && self.costs.request_ns < 0.5 * latency_ns / VOLUME_DEPTH {
            let byte_ns = self.costs.byte_ns.max(1e9 / volume.bytes_per_s as f64);
            self.costs = Costs { kind: self.kind, request_ns: latency_ns / VOLUME_DEPTH, byte_ns };
            self.curve.assume(self.costs);
            self.depth = FILLS * VOLUME_DEPTH + 1.0 + GUESS_KNEES as f64;
        }
    }

    /// True where an arm is believed in, and a request of `bytes` took only `ns` of the device:
    /// less than any arm takes for short ones, or than the transfer of long ones.
    fn outruns_an_arm(&self, bytes: f64, ns: f64) -> bool {
        let is_quick = bytes <= QUICK_BYTES && ns < QUICK_NS;
        let is_enough = self.lately.requests >= REACH_REQUESTS;
        // Not by what a cache in front of an arm holds: alone its requests would take long.
        let may_be_none = self.kind == Kind::Arm && self.alone.latency_ns() < ARM_NS / 2.0;
        may_be_none && is_enough && (is_quick || ns < OUTRUNS * self.costs.byte_ns * bytes)
    }

    /// An arm shows when short requests alone take long and many at once hardly more in all; that
    /// it is none, when they take less.
    fn kind_now(&self, bytes: f64) -> Kind {
        let latency_ns = self.alone.latency_ns();
        match self.kind {
            Kind::Arm if self.alone.is_sure() && latency_ns < ARM_NS / 2.0 => Kind::Caps,
            Kind::Caps if self.is_limit && bytes <= ARM_BYTES && self.alone.is_sure() => {
                let costs = self.curve.costs(self.kind);
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
