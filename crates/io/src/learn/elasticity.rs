//! How much longer requests take of a device when they are longer.
//!
//! While a device is the limit, what it allows stays the same: so many requests, or so many bytes
//! per second. The mean length of requests varies from look to look, by itself. Where the time of a
//! request does not follow, requests are the limit; where it is in proportion, bytes are. That is
//! the slope of the logarithms, by least squares, of which the latest count most.

/// Looks that the sums reach back.
const REACH: f64 = 40.0;
/// Looks before it is known.
const LEAST: f64 = 8.0;
/// The least spread of the lengths' logarithms that tells something.
const SPREAD: f64 = 0.1;

#[derive(Clone, Default)]
pub(crate) struct Elasticity {
    weight: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
}

impl Elasticity {
    /// Adds a look in which requests of `bytes` took `ns` of the device, both in the mean.
    pub(crate) fn add(&mut self, bytes: f64, ns: f64) {
        let (length, time) = (bytes.ln(), ns.ln());
        let keep = 1.0 - 1.0 / REACH;
        self.weight = keep * self.weight + 1.0;
        let part = 1.0 / self.weight;
        let (dx, dy) = (length - self.x, time - self.y);
        self.x += part * dx;
        self.y += part * dy;
        self.xx = keep * self.xx + (1.0 - part) * dx * dx;
        self.xy = keep * self.xy + (1.0 - part) * dx * dy;
    }

    /// 0 where requests are the limit, 1 where bytes are; none where lengths hardly vary.
    pub(crate) fn get(&self) -> Option<f64> {
        let spread = (self.xx / self.weight.max(1.0)).sqrt();
        (self.weight >= LEAST && spread >= SPREAD).then(|| (self.xy / self.xx).clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks at a device of these caps, at requests of random mean lengths up to `spread` times as
    /// long as others.
    fn learn(request_ns: f64, byte_ns: f64, bytes: f64, spread: f64) -> Option<f64> {
        let mut random = snowmelt_base::random::Random(3);
        let mut elasticity = Elasticity::default();
        for _ in 0..40 {
            let bytes = bytes * spread.powf(random.below(1000) as f64 / 1e3);
            let jitter = 0.95 + random.below(100) as f64 / 1e3;
            elasticity.add(bytes, request_ns.max(byte_ns * bytes) * jitter);
        }
        elasticity.get()
    }

    #[test]
    fn the_limit_shows_in_lengths_that_vary() {
        let (requests, bytes) = (learn(333e3, 7.6, 8192.0, 2.0), learn(333e3, 7.6, 100e3, 2.0));
        assert!(requests.unwrap() < 0.1 && bytes.unwrap() > 0.9, "{requests:?} {bytes:?}");
        let both = learn(333e3, 7.6, 22e3, 4.0).unwrap();
        assert!((0.25..0.75).contains(&both), "{both}");
        assert_eq!(learn(333e3, 7.6, 8192.0, 1.1), None, "they hardly vary");
    }

    #[test]
    fn it_is_known_anew_when_the_limit_changes() {
        let mut elasticity = Elasticity::default();
        for i in 0..400 {
            let bytes = if i % 2 == 0 { 8192.0 } else { 16384.0 };
            elasticity.add(bytes, if i < 200 { 333e3 } else { 100.0 * bytes });
        }
        assert!(elasticity.get().unwrap() > 0.9);
    }
}
