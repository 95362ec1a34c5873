//! The time of a request that has the device to itself.
//!
//! A low quantile of reads beside which at most one other was outstanding, a short one. Where
//! there are none, because many are always outstanding, the least time of all lately is a bound
//! from below.

use crate::learn::Beside;

/// A request counts as alone with at most this many outstanding, itself included, and with no more
/// bytes beside it than those of a short one: a long one makes others wait.
///
/// While the depth is low on purpose more requests count, because earlier ones may still be
/// outstanding and there may be long ones only. A time that has grown is then believed with care.
const ALONE: u64 = 2;
const FEW: u64 = 6;

/// A longer request shows the transfer rather than the latency.
const SHORT_BYTES: u64 = 64 << 10;

/// Number of the latest lone requests that count.
const SAMPLES: usize = 32;
/// The estimate is the quantile that one in this many requests stays below.
const LOW: usize = 4;

/// The largest part of a request's time that is taken for its transfer, and the largest that is
/// taken for its latency: neither is ever zero, whatever was believed before.
const PART: f64 = 0.75;

/// At a low depth requests take at least this part of their mean time before, if they had not
/// waited for each other.
const GROWS: f64 = 0.85;

/// The least time grows by this factor with each look, unless a request is shorter: it
/// doubles within 1,400.
const FORGETS: f64 = 1.0005;

#[derive(Clone)]
pub(crate) struct Alone {
    assumed_ns: f64,
    /// The time without the transfer, as it is believed: as assumed, before anything is measured.
    latency_ns: f64,
    /// The last of those alone, without their transfer.
    times_ns: [f64; SAMPLES],
    samples: usize,
    /// Number of them that were measured before the depth was lowered on purpose; they no longer
    /// count.
    old: usize,
    /// Set while the depth is low on purpose: mean bytes and time of a request before that.
    few: Option<(f64, f64)>,
    /// Transfer of a byte of a request that has the device to itself.
    byte_ns: f64,
    least_ns: Least,
    least_byte_ns: Least,
}

impl Alone {
    pub(crate) fn new(latency_ns: f64, byte_ns: f64) -> Alone {
        Alone {
            assumed_ns: latency_ns,
            latency_ns,
            times_ns: [0.0; SAMPLES],
            samples: 0,
            old: 0,
            few: None,
            byte_ns,
            least_ns: Least::default(),
            least_byte_ns: Least::default(),
        }
    }

    /// A request of `bytes` took `taken_ns`.
    pub(crate) fn add(&mut self, bytes: u64, taken_ns: f64, beside: &Beside) {
        if bytes > SHORT_BYTES {
            let transfer_ns = (taken_ns - self.latency_ns).max((1.0 - PART) * taken_ns);
            self.least_byte_ns.add(transfer_ns / bytes as f64);
            return;
        }
        let latency_ns = taken_ns - (bytes as f64 * self.byte_ns()).min(PART * taken_ns);
        self.least_ns.add(latency_ns);
        let is_alone = match self.few {
            Some(_) => beside.requests <= FEW,
            None => beside.requests <= ALONE && beside.bytes - bytes <= SHORT_BYTES,
        };
        if is_alone {
            self.times_ns[(self.samples - self.old) % SAMPLES] = latency_ns;
            self.samples += 1;
        }
    }

    /// Begins a period of low depth, before which requests of `bytes` took `before_ns` in the mean.
    pub(crate) fn begin_few(&mut self, bytes: f64, before_ns: f64) {
        self.few = Some((bytes, before_ns));
        self.old = self.samples;
    }

    /// Ends it. A time that has grown is believed when it is close to the mean before: else the
    /// requests may have waited for those of another program.
    pub(crate) fn end_few(&mut self) {
        let Some((bytes, before_ns)) = self.few.take() else { return };
        let believed_ns = self.latency_ns;
        let fresh = &self.times_ns[..self.fresh()];
        let mean_ns = fresh.iter().sum::<f64>() / fresh.len().max(1) as f64;
        self.look();
        if self.latency_ns > believed_ns && mean_ns + bytes * self.byte_ns() < GROWS * before_ns {
            (self.latency_ns, self.old) = (believed_ns, self.samples);
        }
    }

    /// Evaluates the measured times: a low quantile, because a throttled device makes even a lone
    /// request wait.
    pub(crate) fn look(&mut self) {
        self.least_ns.forget();
        self.least_byte_ns.forget();
        let fresh = self.fresh();
        if self.few.is_some() {
            return;
        }
        if fresh >= LOW || (fresh > 0 && self.old == 0) {
            self.latency_ns = self.quantile(fresh, LOW);
        } else if self.samples == 0 && self.least_ns.count > 0 {
            self.latency_ns = self.least_ns.get();
        }
    }

    /// The time without the transfer, in nanoseconds.
    pub(crate) fn latency_ns(&self) -> f64 {
        self.latency_ns
    }

    /// Requests that were alone, so far.
    pub(crate) fn samples(&self) -> usize {
        self.samples
    }

    /// The median of the lone requests; zero before there are any.
    pub(crate) fn median_ns(&self) -> f64 {
        let fresh = self.fresh();
        if !self.is_known() || fresh == 0 {
            return 0.0;
        }
        self.quantile(fresh, 2)
    }

    /// The time that is exceeded by all but one part in `part` of the `fresh` ones.
    fn quantile(&self, fresh: usize, part: usize) -> f64 {
        let mut times = self.times_ns;
        times[..fresh].sort_unstable_by(f64::total_cmp);
        times[fresh / part]
    }

    /// The number of lone requests that count.
    fn fresh(&self) -> usize {
        (self.samples - self.old).min(SAMPLES)
    }

    /// True when some were alone.
    pub(crate) fn is_known(&self) -> bool {
        self.samples >= LOW
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
        self.latency_ns + bytes * self.byte_ns()
    }
}

/// The least time, which grows slowly while others are measured.
#[derive(Clone, Default)]
struct Least {
    count: u64,
    least: f64,
    /// True when a request was measured since the last look.
    is_fresh: bool,
}

impl Least {
    fn add(&mut self, value: f64) {
        self.least = if self.count == 0 { value } else { value.min(self.least) };
        self.count += 1;
        self.is_fresh = true;
    }

    fn forget(&mut self) {
        if std::mem::take(&mut self.is_fresh) {
            self.least *= FORGETS;
        }
    }

    fn get(&self) -> f64 {
        self.least
    }
}
