//! A second method, to measure the estimator against: an extended Kalman filter (Kalman, 1960),
//! whose residuals are bounded as those of robust regression (Huber, 1964).
//!
//! 1. State: the logarithms of what a request and what a byte cost. They drift, with each look.
//! 2. A look says what a request of a mean length took while the device was the limit. When it was
//!    not, what was let through is a bound.
//! 3. A residual beyond `HUBER` deviations counts only in proportion, so that an outlier moves
//!    little.
//! 4. Some residuals of the same sign beyond `FAR`, one after the other, are no outliers: the
//!    device is another one, and nothing is sure any more.

use super::Seen;

/// Deviation of what is believed at first, and when nothing is sure any more: a factor of ten.
const FIRST: f64 = 2.3;
/// Drift with a look, and the deviation of what a look says. Their ratio is the part of the way
/// that a look moves a belief: as far as the sums of the estimator reach back.
const DRIFT: f64 = 0.015;
const NOISE: f64 = 0.1;
/// A rate let through, where the device was not the limit, says less.
const BOUND_NOISE: f64 = 2.0 * NOISE;
const HUBER: f64 = 1.345;
const FAR: f64 = 3.0;
const CHANGED_LOOKS: u32 = 3;

/// How the costs of requests and of bytes make a time: a norm of the two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Norm(f64);

impl Norm {
    /// Both are paid.
    pub(super) const SUM: Norm = Norm(1.0);
    /// Nearly the longer of the two, smooth enough to say of which a change is.
    pub(super) const CAPS: Norm = Norm(4.0);
}

/// Its beliefs.
#[derive(Clone)]
pub(super) struct Kalman {
    norm: Norm,
    /// The logarithms of nanoseconds for a request and for a byte, and their covariance.
    logs: [f64; 2],
    sure: [[f64; 2]; 2],
    /// Residuals far off with this sign, one after the other.
    far: (f64, u32),
}

impl Kalman {
    pub(super) fn new(norm: Norm, request_ns: f64, byte_ns: f64) -> Kalman {
        Kalman { norm, logs: [request_ns.ln(), byte_ns.ln()], sure: unsure(), far: (0.0, 0) }
    }

    /// Device time of a request of `bytes`.
    pub(super) fn ns(&self, bytes: f64) -> f64 {
        self.predict(bytes).0.exp()
    }

    /// The logarithm of that, and how much of a change of each cost it shows.
    fn predict(&self, bytes: f64) -> (f64, [f64; 2]) {
        let [request, transfer] = [self.logs[0], self.logs[1] + bytes.ln()];
        let longer = request.max(transfer);
        let [request, transfer] = [request, transfer].map(|log| (self.norm.0 * (log - longer)).exp());
        let sum = request + transfer;
        (longer + sum.ln() / self.norm.0, [request / sum, transfer / sum])
    }

    pub(super) fn look(&mut self, seen: &Seen) {
        self.sure[0][0] += DRIFT * DRIFT;
        self.sure[1][1] += DRIFT * DRIFT;
        let (believed, shows) = self.predict(seen.bytes);
        let residual = seen.ns.ln() - believed;
        if !seen.is_limit && residual >= 0.0 {
            return;
        }
        let noise = if seen.is_limit { NOISE } else { BOUND_NOISE };
        self.note_far(residual, noise, shows);
        let part = self.times(shows);
        let said = dot(shows, part);
        let deviations = residual.abs() / (said + noise * noise).sqrt();
        let noise = noise * noise * (deviations / HUBER).max(1.0);
        let gain = part.map(|part| part / (said + noise));
        for ((log, row), gain) in self.logs.iter_mut().zip(&mut self.sure).zip(gain) {
            *log += gain * residual;
            row.iter_mut().zip(part).for_each(|(sure, part)| *sure -= gain * part);
        }
    }

    fn note_far(&mut self, residual: f64, noise: f64, shows: [f64; 2]) {
        let deviation = (dot(shows, self.times(shows)) + noise * noise).sqrt();
        let (sign, count) = self.far;
        self.far = match residual.abs() > FAR * deviation {
            true if sign == residual.signum() => (sign, count + 1),
            true => (residual.signum(), 1),
            false => (0.0, 0),
        };
        if self.far.1 >= CHANGED_LOOKS {
            (self.sure, self.far) = (unsure(), (0.0, 0));
        }
    }

    fn times(&self, shows: [f64; 2]) -> [f64; 2] {
        self.sure.map(|row| dot(row, shows))
    }
}

fn unsure() -> [[f64; 2]; 2] {
    [[FIRST * FIRST, 0.0], [0.0, FIRST * FIRST]]
}

fn dot(a: [f64; 2], b: [f64; 2]) -> f64 {
    a[0] * b[0] + a[1] * b[1]
}
