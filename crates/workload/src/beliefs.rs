//! Beliefs about the reads of a store's devices over time, beside what the devices let through.
//!
//! 1. [`DeviceState`]: what is believed at a moment, and what was moved until then.
//! 2. [`Watch`]: turns one state after the other into [`Look`]s, with the rates between them.

use serde::Serialize;
use snowmelt_io::{CostModel, CostSource, DeviceCounters, Evidence};
use snowmelt_store::Store;

/// Seconds between looks at first: the costs are known after a few of them.
pub const FINE_S: f64 = 0.05;
/// Seconds for which looks are so frequent.
pub const FINE_FOR_S: f64 = 1.0;

/// Beliefs about the reads of a device.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Believed {
    /// Small requests that it serves per second.
    pub requests_per_s: f64,
    /// Bytes that it moves per second.
    pub bytes_per_s: f64,
    /// Seconds that a small read takes when nothing else is outstanding.
    pub alone_s: f64,
    /// Requests that fill it.
    pub depth: u32,
    /// The price of requests beside that of bytes, 0 to 1; `None` where both are paid in full.
    pub request_share: Option<f64>,
    /// How sure the requests are, 0 to 1.
    pub requests_sure: f64,
    /// How sure the bytes are.
    pub bytes_sure: f64,
    /// Source of the requests.
    pub requests_from: CostSource,
    /// Source of the bytes.
    pub bytes_from: CostSource,
}

impl Believed {
    fn new(cost: &CostModel, evidence: &Evidence) -> Self {
        Self {
            requests_per_s: 1e9 / cost.ns_per_request.max(1) as f64,
            bytes_per_s: cost.bytes_per_s as f64,
            alone_s: cost.latency_ns as f64 / 1e9,
            depth: cost.depth,
            request_share: cost.has_caps().then(|| cost.request_share()),
            requests_sure: evidence.requests,
            bytes_sure: evidence.bytes,
            requests_from: evidence.requests_from,
            bytes_from: evidence.bytes_from,
        }
    }
}

/// A device at a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceState {
    /// Its name.
    pub device: String,
    /// Requests that it has got so far.
    pub requests: u64,
    /// Bytes that were moved so far, gaps included.
    pub bytes: u64,
    /// Beliefs about it.
    pub believed: Believed,
}

impl DeviceState {
    /// The states of all devices of a store, stripe by stripe.
    pub fn of_store(store: &Store) -> Vec<Self> {
        store.device_counters().iter().map(Self::new).collect()
    }

    fn new(counters: &DeviceCounters) -> Self {
        Self {
            device: counters.device.clone(),
            requests: counters.device_requests(),
            bytes: counters.bytes() + counters.gap_bytes(),
            believed: Believed::new(&counters.cost, &counters.evidence),
        }
    }
}

/// A look at a device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceLook {
    /// Its name.
    pub device: String,
    /// Requests that it got since the look before, per second.
    pub requests_per_s: f64,
    /// Bytes that it moved since then, per second.
    pub bytes_per_s: f64,
    /// Beliefs about it at the time of the look.
    pub believed: Believed,
}

/// A look at all devices of a store.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Look {
    /// When, in seconds since the watch began.
    pub at_s: f64,
    /// Stripe by stripe.
    pub devices: Vec<DeviceLook>,
}

/// Looks at devices again and again.
pub struct Watch {
    at_s: f64,
    before: Vec<DeviceState>,
}

impl Watch {
    /// Begins with these states: returns the first look, when nothing was moved.
    pub fn begin(devices: Vec<DeviceState>) -> (Self, Look) {
        let mut watch = Self { at_s: 0.0, before: devices.clone() };
        let first = watch.look(0.0, devices);
        (watch, first)
    }

    /// A look `at_s` seconds after the beginning.
    pub fn look(&mut self, at_s: f64, devices: Vec<DeviceState>) -> Look {
        let seconds = (at_s - self.at_s).max(1e-9);
        let look = |(before, now): (&DeviceState, &DeviceState)| DeviceLook {
            device: now.device.clone(),
            requests_per_s: now.requests.saturating_sub(before.requests) as f64 / seconds,
            bytes_per_s: now.bytes.saturating_sub(before.bytes) as f64 / seconds,
            believed: now.believed,
        };
        let looks = self.before.iter().zip(&devices).map(look).collect();
        (self.at_s, self.before) = (at_s, devices);
        Look { at_s, devices: looks }
    }

    /// When to look next, in seconds since the beginning, if it is before `end_s`.
    pub fn next_s(&self, end_s: f64) -> f64 {
        let next_s = ((self.at_s / FINE_S + 1e-6).floor() + 1.0) * FINE_S;
        if next_s <= FINE_FOR_S + 1e-9 { next_s.min(end_s) } else { end_s }
    }
}

impl Look {
    /// The head of [`Look::columns`].
    pub const HEAD: &'static str = "  believed/s    MiB/s  lone ms   sure";

    /// Beliefs about all devices together as a part of a line: requests and bytes of all, the
    /// slowest lone read, and how sure the requests or the bytes are of the device of which least
    /// is known.
    pub fn columns(&self) -> String {
        let of = |figure: fn(&Believed) -> f64| self.devices.iter().map(move |d| figure(&d.believed));
        format!(
            "{:>12.0} {:>8.1} {:>8.3} {:>4.0} %",
            of(|b| b.requests_per_s).sum::<f64>(),
            of(|b| b.bytes_per_s).sum::<f64>() / f64::from(1 << 20),
            1e3 * of(|b| b.alone_s).fold(0.0, f64::max),
            100.0 * of(|b| b.requests_sure.max(b.bytes_sure)).fold(1.0, f64::min),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rates between looks add up to all that the queue has counted at the end.
    #[test]
    fn rates_between_looks_add_up() {
        let state = |requests, bytes| {
            let believed = Believed::new(
                &CostModel::ssd(),
                &Evidence {
                    requests: 0.5,
                    bytes: 0.0,
                    requests_from: CostSource::Learned,
                    bytes_from: CostSource::Assumed,
                    looks: 4,
                },
            );
            vec![DeviceState { device: "a".into(), requests, bytes, believed }]
        };
        let (mut watch, first) = Watch::begin(state(10, 1_000));
        assert_eq!(first.devices[0].requests_per_s, 0.0, "what was before is not counted");
        let second = watch.look(0.5, state(60, 5_000));
        let third = watch.look(2.5, state(80, 9_000));
        let rates = |look: &Look| (look.devices[0].requests_per_s, look.devices[0].bytes_per_s);
        assert_eq!((rates(&second), rates(&third)), ((100.0, 8_000.0), (10.0, 2_000.0)));
        assert_eq!(third.columns().len(), Look::HEAD.len());
        assert!(third.columns().ends_with(" 50 %"), "{}", third.columns());
    }
}
