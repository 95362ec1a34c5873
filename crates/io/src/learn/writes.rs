//! Learns the writes of a device.
//!
//! A completed write says less than a read: caches take it and write it out later, and writes
//! without a waiter are not sent so that they fill the device. So
//!
//! 1. time is divided into *busy periods*: from a write that finds no other outstanding to the next
//!    moment without one. When writes in it take longer than alone, the device was the limit, and
//!    each after the first cost its share of the period. A lone write that had to wait cost the
//!    time since the one before it, because a volume saves up while it is idle;
//! 2. otherwise the rate that was sent is a lower bound of the limit. It is believed only where it
//!    held for long, since volumes let bursts through;
//! 3. the time that a flush takes beyond one with nothing to write out was deferred by the writes
//!    before it, and is a part of their cost.

use crate::cost::CostModel;
use crate::learn::Beside;
use crate::learn::alone::Alone;
use crate::learn::curve::{Costs, Curve, CurveKind};
use crate::write_cost::WriteCost;

/// Busy time and writes between two looks; after much busy time fewer writes are enough.
const LOOK_NS: f64 = 10e6;
const LOOK_WRITES: f64 = 8.0;
const LONG_LOOK_NS: f64 = 100e6;
/// The device is the limit when writes take this many times as long as alone.
const LIMIT: f64 = 1.3;
/// Time after which a rate below the limit is believed.
const SUSTAINED_NS: f64 = 250e6;
/// A device that was idle for longer than this many times its busy time was not at its limit.
const LEFT: f64 = 4.0;
/// Confidence of such a bound, of 1.
const BOUND: f64 = 0.5;

/// Factor by which earlier flushes count less with each new one.
const KEPT: f64 = 0.9;
/// Least variance of the writes per flush, relative to their mean square: flushes after equal
/// numbers of writes say nothing about a single one.
const SPREAD: f64 = 0.02;

#[derive(Clone, Copy, Default)]
struct WriteSums {
    busy_ns: f64,
    /// Idle time before it.
    left_ns: f64,
    service_ns: f64,
    writes: f64,
    bytes: f64,
    /// Time that writes after the first of a period took, and how many there were.
    after_ns: f64,
    after: f64,
}

/// Writes since one that found no other outstanding.
#[derive(Clone, Copy, Default)]
struct Period {
    began_ns: u64,
    /// True of a later part of a long period, which has no write that found no other.
    goes_on: bool,
    /// Time without writes before it.
    left_ns: f64,
    writes: f64,
    service_ns: f64,
    bytes: f64,
}

/// Learns from each write and flush.
#[derive(Clone)]
pub struct WriteCosts {
    alone: Alone,
    curve: Curve,
    kind: CurveKind,
    costs: Costs,
    outstanding: Beside,
    period: Period,
    ended_ns: u64,
    tick: WriteSums,
    /// Sums of the looks without a limit since the last one with a limit.
    free: WriteSums,
    looks: u64,
    flushes: Flushes,
}

impl WriteCosts {
    /// Begins with costs that follow from those of reads.
    pub fn new(prior: &CostModel) -> WriteCosts {
        let kind = if prior.has_arm() { CurveKind::Arm } else { CurveKind::Caps };
        let byte_ns = 1e9 / prior.bytes_per_s.max(1) as f64;
        let costs = Costs { kind, request_ns: prior.ns_per_request.max(1) as f64, byte_ns };
        WriteCosts {
            alone: Alone::new(prior.latency_ns as f64, byte_ns),
            curve: Curve::new(costs),
            kind,
            costs,
            outstanding: Beside::default(),
            period: Period::default(),
            ended_ns: 0,
            tick: WriteSums::default(),
            free: WriteSums::default(),
            looks: 0,
            flushes: Flushes::new(prior.latency_ns as f64),
        }
    }

    /// Notes that a write of `bytes` goes to the device. Returns what is outstanding with it.
    pub fn started(&mut self, bytes: u64, now_ns: u64) -> Beside {
        if self.outstanding.requests == 0 {
            let left_ns = now_ns.saturating_sub(self.ended_ns) as f64;
            self.period = Period { began_ns: now_ns, left_ns, ..Period::default() };
        }
        self.outstanding.begin(bytes)
    }

    /// Notes that a write is over. True when that led to a look.
    pub fn finished(&mut self, bytes: u64, beside: &Beside, taken_ns: u64, now_ns: u64) -> bool {
        self.alone.add(bytes, taken_ns as f64, beside);
        let period = &mut self.period;
        period.writes += 1.0;
        period.service_ns += taken_ns as f64;
        period.bytes += bytes as f64;
        self.flushes.writes += 1.0;
        self.outstanding.end(bytes);
        let lasted_ns = now_ns.saturating_sub(self.period.began_ns) as f64;
        if self.outstanding.requests > 0 && (lasted_ns < LOOK_NS || self.period.writes < LOOK_WRITES) {
            return false;
        }
        self.end_period(lasted_ns);
        self.ended_ns = now_ns;
        self.period = Period { began_ns: now_ns, goes_on: true, ..Period::default() };
        let is_due = (self.tick.busy_ns >= LOOK_NS && self.tick.writes >= LOOK_WRITES)
            || self.tick.busy_ns >= LONG_LOOK_NS;
        if is_due {
            self.look();
        }
        is_due
    }

    /// Notes that a write failed; its time does not count.
    pub fn failed(&mut self, bytes: u64) {
        self.outstanding.end(bytes);
    }

    fn end_period(&mut self, lasted_ns: f64) {
        let Period { goes_on, left_ns, writes, service_ns, bytes, .. } = self.period;
        self.alone.look();
        let left_ns = left_ns.min(LEFT * lasted_ns);
        let first_ns = self.alone.ns(bytes / writes).min(lasted_ns);
        let (after_ns, after) = match (goes_on, writes > 1.0) {
            (true, _) => (lasted_ns, writes),
            (false, false) => (lasted_ns + left_ns, 1.0),
            (false, true) => (lasted_ns - first_ns, writes - 1.0),
        };
        let tick = &mut self.tick;
        tick.busy_ns += lasted_ns;
        tick.left_ns += left_ns;
        tick.service_ns += service_ns;
        tick.writes += writes;
        tick.bytes += bytes;
        tick.after_ns += after_ns;
        tick.after += after;
    }

    fn look(&mut self) {
        let tick = std::mem::take(&mut self.tick);
        let bytes = tick.bytes / tick.writes;
        if tick.service_ns / tick.writes > LIMIT * self.alone.ns(bytes) {
            self.looks += 1;
            self.free = WriteSums::default();
            self.curve.set(bytes, tick.after_ns / tick.after, 1.0);
        } else {
            self.free.busy_ns += tick.busy_ns + tick.left_ns;
            self.free.writes += tick.writes;
            self.free.bytes += tick.bytes;
            self.believe_what_was_let_through();
        }
        self.costs = self.curve.costs(self.kind, 0.0, None);
    }

    fn believe_what_was_let_through(&mut self) {
        if self.free.busy_ns < SUSTAINED_NS {
            return;
        }
        let free = std::mem::take(&mut self.free);
        let (bytes, ns) = (free.bytes / free.writes, free.busy_ns / free.writes);
        if ns < self.costs.ns(bytes) {
            self.curve.set(bytes, ns, BOUND);
        }
    }

    /// Takes in the time of a flush.
    pub fn flushed(&mut self, taken_ns: u64) {
        self.flushes.add(taken_ns as f64);
    }

    /// The present beliefs.
    pub fn cost(&self) -> WriteCost {
        let [flush_ns, deferred_ns] = self.flushes.costs();
        WriteCost {
            latency_ns: (self.alone.latency_ns() as u64).max(1),
            ns_per_request: ((self.costs.request_ns + deferred_ns) as u64).max(1),
            bytes_per_s: ((1e9 / self.costs.byte_ns) as u64).max(1),
            flush_ns: flush_ns as u64,
            deferred_ns: deferred_ns as u64,
            flushes: self.flushes.count,
            learned: self.looks,
        }
    }
}

/// The time of a flush by the writes since the one before: a fitted line, in which later flushes
/// count more.
#[derive(Clone)]
struct Flushes {
    /// Before any.
    assumed_ns: f64,
    /// Writes since the last one.
    writes: f64,
    count: u64,
    weight: f64,
    /// Means of writes and times, and of their squares and products.
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
}

impl Flushes {
    fn new(assumed_ns: f64) -> Flushes {
        Flushes { assumed_ns, writes: 0.0, count: 0, weight: 0.0, x: 0.0, y: 0.0, xx: 0.0, xy: 0.0 }
    }

    fn add(&mut self, ns: f64) {
        let x = std::mem::take(&mut self.writes);
        self.count += 1;
        self.weight = KEPT * self.weight + 1.0;
        let step = 1.0 / self.weight;
        for (mean, value) in
            [(&mut self.x, x), (&mut self.y, ns), (&mut self.xx, x * x), (&mut self.xy, x * ns)]
        {
            *mean += step * (value - *mean);
        }
    }

    /// Time of a flush with nothing to write out, and what each write adds.
    fn costs(&self) -> [f64; 2] {
        if self.count == 0 {
            return [self.assumed_ns, 0.0];
        }
        let spread = self.xx - self.x * self.x;
        // Also when there was no write before any of them.
        if spread <= SPREAD * self.xx {
            return [self.y, 0.0];
        }
        let most = self.y / self.x;
        let each_ns = ((self.xy - self.x * self.y) / spread).clamp(0.0, most);
        [(self.y - each_ns * self.x).max(0.0), each_ns]
    }
}

#[cfg(test)]
mod tests;
