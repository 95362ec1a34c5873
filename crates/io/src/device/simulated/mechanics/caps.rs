//! Caps of a volume: token buckets, and the units in which requests are counted.
//!
//! 1. A bucket is a time before which the next request may not start; every request moves it on
//!    by its share. After a pause a request may start up to the bucket's depth before that time:
//!    that many tokens are left. A request may take more tokens than are left; the next one
//!    waits until they are paid back.
//! 2. A cap is a bucket that refills at the base rate. With burst credits that bucket is as deep
//!    as the credits, and a second one keeps to the burst rate.
//! 3. A request counts once per unit begun. Where sequential requests are merged, one that
//!    begins where another of its kind ended first uses up the unit that one began.

use std::collections::VecDeque;

use crate::device::simulated::model::parameters::VolumeModel;
use crate::device::timed::{Transfer, TransferKind};

#[derive(Debug)]
struct Bucket {
    ns_per_unit: f64,
    depth_ns: f64,
    /// Time from which the next request may start, if the bucket had no depth.
    next: f64,
}

impl Bucket {
    fn new(per_s: f64, depth_ns: f64) -> Bucket {
        Bucket { ns_per_unit: 1e9 / per_s, depth_ns, next: 0.0 }
    }

    fn opens(&self) -> f64 {
        self.next - self.depth_ns
    }

    fn take(&mut self, start: f64, units: u64) {
        self.next = self.next.max(start) + units as f64 * self.ns_per_unit;
    }
}

/// A cap on requests or on bytes.
#[derive(Debug)]
pub(crate) struct Cap {
    base: Bucket,
    /// With credits: the rate while there are any.
    burst: Option<Bucket>,
    has_credits: bool,
}

impl Cap {
    fn plain(per_s: f64, burst_ns: f64) -> Cap {
        Cap { base: Bucket::new(per_s, burst_ns), burst: None, has_credits: false }
    }

    fn with_credits(per_s: f64, burst_ns: f64, credits: f64, burst_per_s: Option<f64>) -> Cap {
        if credits == 0.0 {
            return Cap::plain(per_s, burst_ns);
        }
        let base = Bucket::new(per_s, credits / per_s * 1e9);
        let burst = burst_per_s.map(|per_s| Bucket::new(per_s, burst_ns));
        Cap { base, burst, has_credits: true }
    }

    fn opens(&self) -> f64 {
        let base = self.base.opens();
        self.burst.as_ref().map_or(base, |burst| base.max(burst.opens()))
    }

    fn take(&mut self, start: f64, units: u64) {
        self.base.take(start, units);
        if let Some(burst) = &mut self.burst {
            burst.take(start, units);
        }
    }

    fn fill(&mut self) {
        self.base.next = 0.0;
        if let Some(burst) = &mut self.burst {
            burst.next = 0.0;
        }
    }

    fn spend_credits(&mut self, now: f64) {
        if self.has_credits {
            self.base.next = self.base.next.max(now + self.base.depth_ns);
        }
    }

    /// Share of the credits that is left.
    fn credits(&self, now: f64) -> Option<f64> {
        let left = (now - self.base.opens()) / self.base.depth_ns;
        self.has_credits.then(|| left.clamp(0.0, 1.0))
    }
}

/// Caps on requests and on bytes.
#[derive(Debug)]
struct Budget {
    ios: Cap,
    bytes: Cap,
}

impl Budget {
    /// The time from which a request that could start at `at` may start; takes its tokens.
    fn start(&mut self, units: u64, bytes: u64, at: u64) -> f64 {
        // One that goes on with a unit needs no token.
        let opens = if units == 0 { 0.0 } else { self.ios.opens() };
        let start = (at as f64).max(opens).max(self.bytes.opens());
        self.ios.take(start, units);
        self.bytes.take(start, bytes);
        start
    }
}

/// All caps of a volume.
#[derive(Debug)]
pub(crate) struct Caps {
    reads: Budget,
    /// Where writes have a budget of their own; else they use that of reads.
    writes: Option<Budget>,
    units: Units,
}

impl Caps {
    pub(crate) fn new(v: &VolumeModel) -> Caps {
        let burst_ns = v.burst_ms * 1e6;
        let reads = Budget {
            ios: Cap::with_credits(v.iops, burst_ns, v.io_credits, v.burst_iops),
            bytes: Cap::with_credits(v.bytes_per_s, burst_ns, v.byte_credits, v.burst_bytes_per_s),
        };
        let writes = v.write_caps().map(|(iops, bytes_per_s)| Budget {
            ios: Cap::plain(iops, burst_ns),
            bytes: Cap::plain(bytes_per_s, burst_ns),
        });
        let units = Units { bytes: v.io_unit_bytes, streams: v.streams, open: VecDeque::new() };
        Caps { reads, writes, units }
    }

    /// The time from which a transfer that could start at `at` may start; takes its tokens.
    pub(crate) fn start(&mut self, transfer: &Transfer, at: u64) -> f64 {
        let units = self.units.count(transfer);
        let own = self.writes.as_mut().filter(|_| transfer.kind == TransferKind::Write);
        own.unwrap_or(&mut self.reads).start(units, transfer.len, at)
    }

    fn all(&mut self) -> impl Iterator<Item = &mut Cap> {
        let budgets = std::iter::once(&mut self.reads).chain(&mut self.writes);
        budgets.flat_map(|budget| [&mut budget.ios, &mut budget.bytes])
    }

    /// As after a long rest.
    pub(crate) fn fill(&mut self) {
        self.all().for_each(Cap::fill);
        self.units.open.clear();
    }

    pub(crate) fn spend_credits(&mut self, now_ns: u64) {
        self.all().for_each(|cap| cap.spend_credits(now_ns as f64));
    }

    /// The lesser share of credits left, of requests and of bytes; none without credits.
    pub(crate) fn credits(&self, now_ns: u64) -> Option<f64> {
        let caps = [&self.reads.ios, &self.reads.bytes].into_iter();
        caps.filter_map(|cap| cap.credits(now_ns as f64)).reduce(f64::min)
    }
}

/// Counts requests in units.
#[derive(Debug)]
struct Units {
    bytes: u64,
    /// Sequential streams that are recognised.
    streams: usize,
    /// (kind, where its next request begins, bytes left of the unit it has begun), latest first.
    open: VecDeque<(TransferKind, u64, u64)>,
}

impl Units {
    fn count(&mut self, transfer: &Transfer) -> u64 {
        if self.streams == 0 {
            return transfer.len.div_ceil(self.bytes).max(1);
        }
        let goes_on =
            |&(kind, next, _): &(TransferKind, u64, u64)| kind == transfer.kind && next == transfer.offset;
        let stream = self.open.iter().position(goes_on).and_then(|i| self.open.remove(i));
        let left = stream.map_or(0, |(_, _, left)| left);
        let begun = transfer.len.saturating_sub(left).div_ceil(self.bytes);
        let begun = if stream.is_some() { begun } else { begun.max(1) };
        let left = (left.saturating_add(begun.saturating_mul(self.bytes))).saturating_sub(transfer.len);
        self.open.push_front((transfer.kind, transfer.offset.saturating_add(transfer.len), left));
        self.open.truncate(self.streams);
        begun
    }
}
