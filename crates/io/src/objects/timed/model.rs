//! When a request is answered: latency, bandwidth, and how often a prefix may be asked.

use std::collections::HashMap;
use std::f64::consts::TAU;
use std::sync::Arc;
use std::time::Duration;

use snowmelt_base::random::Random;

/// Times of an object store.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ObjectTimes {
    /// Half of all requests are answered within this, without their bytes.
    pub p50: Duration,
    /// 99 of 100 are; not below the median.
    pub p99: Duration,
    /// Bytes per second of one request; above 0.
    pub request_bytes_per_s: u64,
    /// Bytes per second of all requests together; above 0.
    pub bytes_per_s: u64,
    /// Requests per second of the keys with one prefix (up to their last `/`) above which the store
    /// answers that it is asked too often; a second's worth may come at once. `None`: no limit.
    pub prefix_requests_per_s: Option<u32>,
}

impl Default for ObjectTimes {
    /// About as a large store in the same region, for one machine.
    fn default() -> Self {
        ObjectTimes {
            p50: Duration::from_millis(30),
            p99: Duration::from_millis(200),
            request_bytes_per_s: 80_000_000,
            bytes_per_s: 1_200_000_000,
            prefix_requests_per_s: None,
        }
    }
}

/// The times with what they depend on: earlier requests.
pub(super) struct TimesModel {
    times: ObjectTimes,
    /// Logarithm of the median in nanoseconds, and the standard deviation of logarithms.
    mu: f64,
    sigma: f64,
    random: Random,
    /// When the bytes so far have passed the bandwidth that all share.
    passed_ns: u64,
    /// Requests that each prefix may have now, and when that was so.
    allowed: HashMap<Arc<str>, (f64, u64)>,
}

/// A request that was taken.
pub(super) struct Arrival {
    at_ns: u64,
    latency_ns: u64,
}

impl TimesModel {
    pub(super) fn new(times: ObjectTimes, seed: u64) -> TimesModel {
        /// The 99th percentile of the standard normal distribution.
        const Z99: f64 = 2.326_347_874;
        assert!(times.p50 > Duration::ZERO && times.p99 >= times.p50, "a latency has a median and a tail");
        assert!(times.request_bytes_per_s > 0 && times.bytes_per_s > 0, "bytes pass");
        assert!(times.prefix_requests_per_s != Some(0), "a prefix may be asked");
        let mu = (times.p50.as_nanos() as f64).ln();
        let sigma = ((times.p99.as_nanos() as f64).ln() - mu) / Z99;
        let (random, allowed) = (Random(seed), HashMap::new());
        TimesModel { times, mu, sigma, random, passed_ns: 0, allowed }
    }

    /// Takes a request.
    ///
    /// # Errors
    /// It came too often: the time at which that is told.
    pub(super) fn arrive(&mut self, key: &str, now_ns: u64) -> Result<Arrival, u64> {
        let latency_ns = self.latency_ns();
        let is_allowed = self.is_allowed(key, now_ns);
        let arrival = Arrival { at_ns: now_ns, latency_ns };
        if is_allowed { Ok(arrival) } else { Err(now_ns + latency_ns) }
    }

    /// When a request is answered that moves `bytes`.
    pub(super) fn due_ns(&mut self, arrival: &Arrival, bytes: u64) -> u64 {
        let ns = |bytes_per_s: u64| (u128::from(bytes) * 1_000_000_000 / u128::from(bytes_per_s)) as u64;
        self.passed_ns = self.passed_ns.max(arrival.at_ns) + ns(self.times.bytes_per_s);
        let alone_ns = arrival.at_ns + ns(self.times.request_bytes_per_s);
        arrival.latency_ns + self.passed_ns.max(alone_ns)
    }

    /// Box and Muller, "A note on the generation of random normal deviates", 1958.
    fn latency_ns(&mut self) -> u64 {
        let (u, v) = (1.0 - self.random.unit(), self.random.unit());
        let z = (-2.0 * u.ln()).sqrt() * (TAU * v).cos();
        (self.mu + self.sigma * z).exp().round() as u64
    }

    fn is_allowed(&mut self, key: &str, now_ns: u64) -> bool {
        let Some(limit) = self.times.prefix_requests_per_s.map(f64::from) else { return true };
        let prefix = &key[..key.rfind('/').map_or(0, |at| at + 1)];
        if !self.allowed.contains_key(prefix) {
            self.allowed.insert(prefix.into(), (limit, now_ns));
        }
        let (allowed, at_ns) = self.allowed.get_mut(prefix).expect("just looked for");
        let since_s = now_ns.saturating_sub(*at_ns) as f64 / 1e9;
        *allowed = (*allowed + since_s * limit).min(limit);
        *at_ns = now_ns;
        let is_allowed = *allowed >= 1.0;
        if is_allowed {
            *allowed -= 1.0;
        }
        is_allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn model(times: ObjectTimes) -> TimesModel {
        TimesModel::new(times, snowmelt_base::test_seed(41))
    }

    #[test]
    fn latencies_have_their_median_and_tail() {
        let mut model = model(ObjectTimes::default());
        let mut all: Vec<u64> = (0..100_000).map(|_| model.latency_ns()).collect();
        all.sort_unstable();
        let (p50, p99) = (all[50_000] / MS, all[99_000] / MS);
        assert!((29..=31).contains(&p50) && (190..=210).contains(&p99), "{p50} ms and {p99} ms");
    }

    #[test]
    fn bytes_pass_two_bandwidths() {
        let same = Duration::from_millis(10);
        let times = ObjectTimes { p50: same, p99: same, ..ObjectTimes::default() };
        let mut model =
            model(ObjectTimes { request_bytes_per_s: 1_000_000, bytes_per_s: 4_000_000, ..times });
        // 100 kB take 100 ms of one request, and 25 ms of all.
        let due: Vec<u64> = (0..6)
            .map(|_| {
                let arrival = model.arrive("a", 0).unwrap();
                (model.due_ns(&arrival, 100_000) as f64 / 1e6).round() as u64
            })
            .collect();
        assert_eq!(due, [110, 110, 110, 110, 135, 160]);
        let later = model.arrive("a", 1000 * MS).unwrap();
        assert_eq!((model.due_ns(&later, 100_000) as f64 / 1e6).round(), 1110.0);
    }

    #[test]
    fn a_prefix_is_asked_so_often() {
        let mut model = model(ObjectTimes { prefix_requests_per_s: Some(10), ..ObjectTimes::default() });
        let mut taken =
            |key: &str, at_ms: u64| (0..20).filter(|_| model.arrive(key, at_ms * MS).is_ok()).count();
        assert_eq!([taken("a/x", 0), taken("a/y", 0), taken("b/x", 0), taken("c", 0)], [10, 0, 10, 10]);
        assert_eq!([taken("a/x", 500), taken("a/x", 10_000)], [5, 10]);
    }
}
