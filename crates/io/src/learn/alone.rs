//! The time of a request that has the device to itself.
//!
//! A low quantile of reads beside which at most one other was outstanding. Where there are none,
//! because many are always outstanding, the least time of all lately is a bound from below.

/// Requests with at most so many outstanding, themselves included, count as alone.
const ALONE: u64 = 2;

/// A longer request says more of the transfer than of the wait.
const SHORT_BYTES: u64 = 64 << 10;

/// Requests alone that count, the last ones.
const SAMPLES: usize = 32;
/// The time taken for that of all is exceeded by all but one part in so many.
const LOW: usize = 4;

/// The least time grows by so much with each that is longer: it has doubled after 3,500.
const FORGETS: f64 = 1.0002;

#[derive(Clone)]
pub(crate) struct Alone {
    /// Before anything is measured.
    assumed_ns: f64,
    /// The last of those alone, without their transfer.
    times_ns: [f64; SAMPLES],
    samples: usize,
    /// Transfer of a byte of a request that has the device to itself.
    byte_ns: f64,
    least_ns: Least,
    least_byte_ns: Least,
}

impl Alone {
    pub(crate) fn new(latency_ns: f64, byte_ns: f64) -> Alone {
        Alone {
            assumed_ns: latency_ns,
            times_ns: [0.0; SAMPLES],
            samples: 0,
            byte_ns,
            least_ns: Least::default(),
            least_byte_ns: Least::default(),
        }
    }

    /// A request of `bytes` took `taken_ns`; `beside` were outstanding when it began, itself
    /// included.
    pub(crate) fn add(&mut self, bytes: u64, taken_ns: f64, beside: u64) {
        if bytes > SHORT_BYTES {
            self.least_byte_ns.add((taken_ns - self.latency_ns()).max(0.0) / bytes as f64);
            return;
        }
        let latency_ns = (taken_ns - bytes as f64 * self.byte_ns()).max(1.0);
        self.least_ns.add(latency_ns);
        if beside <= ALONE {
            self.times_ns[self.samples % SAMPLES] = latency_ns;
            self.samples += 1;
        }
    }

    /// The time without the transfer, in nanoseconds: a low quantile, because a device that is
    /// throttled lets even a lone request wait.
    pub(crate) fn latency_ns(&self) -> f64 {
        match self.samples.min(SAMPLES) {
            0 if self.least_ns.count > 0 => self.least_ns.get(),
            0 => self.assumed_ns,
            samples => {
                let mut times = self.times_ns;
                times[..samples].sort_unstable_by(f64::total_cmp);
                times[samples / LOW]
            }
        }
    }

    /// The time that was believed before anything was measured, in nanoseconds.
    pub(crate) fn assumed_ns(&self) -> f64 {
        self.assumed_ns
    }

    /// True when enough was alone to be sure.
    pub(crate) fn is_sure(&self) -> bool {
        self.samples >= SAMPLES
    }

    /// The transfer of a byte, in nanoseconds.
    pub(crate) fn byte_ns(&self) -> f64 {
        if self.least_byte_ns.count > 0 { self.least_byte_ns.get() } else { self.byte_ns }
    }

    /// Time of a request of `bytes`.
    pub(crate) fn ns(&self, bytes: f64) -> f64 {
        self.latency_ns() + bytes * self.byte_ns()
    }
}

/// The least of all, which is forgotten slowly.
#[derive(Clone, Default)]
struct Least {
    count: u64,
    least: f64,
}

impl Least {
    fn add(&mut self, value: f64) {
        self.least = if self.count == 0 { value } else { value.min(self.least * FORGETS) };
        self.count += 1;
    }

    fn get(&self) -> f64 {
        self.least
    }
}
