//! How many requests should be outstanding.
//!
//! 1. When the device is the limit, the number that Little's law asks for, and a little more. It is
//!    *reckoned* from the time of a request alone.
//! 2. That time can be wrong: a cache answered in front, or the device has changed. So, while
//!    requests wait, the depth is raised by a half for a moment. When much more is moved, the
//!    higher depth is *proven*; a little more is enough while requests do not wait long for each
//!    other at the device. Of several programs on one device, the one with the greater depth gets
//!    more of it; so the required gain is chosen so that two of them end at about the same depth.
//! 3. A depth that was proven, and is above the reckoned one, is tried with less now and then.
//! 4. When no request was alone for long, or for a while since the device changed, the depth is
//!    lowered for a moment, so that some are alone (as BBR does; Cardwell and others, 2016).

use crate::learn::Learner;
use crate::learn::sums::Sums;

/// Requests outstanding, of what fills the device.
const FILLS: f64 = 2.0;
/// Outstanding beyond what fills the device: what waits for it in the queue is merged.
const MORE: f64 = 2.0;
const DEPTHS: [f64; 2] = [4.0, Learner::MOST_DEPTH as f64];

/// Factor of the depth in a trial; the gain that it must bring; the gain that is enough while
/// requests hardly wait for each other; and the factor over the time alone up to which that holds.
const STEP: f64 = 1.5;
const MUCH: f64 = 1.25;
const SOME: f64 = 1.05;
const LONG: f64 = 4.0;
/// The part that must still be moved at a lower depth.
const KEEPS: f64 = 0.97;
/// Time of a trial, and requests.
const TRIAL_NS: f64 = 30e6;
const TRIAL_REQUESTS: f64 = 48.0;
/// Busy time before the next trial after one without gain: at first, and at most after several. One
/// can fail by chance.
const PAUSE_NS: f64 = 0.25e9;
const LONGEST_PAUSE_NS: f64 = 2e9;

/// With this many answered in the time of one the device may have no arm.
const NO_ARM: f64 = 8.0;

/// Guesses may have at most this many times the reckoned depth outstanding.
const WIDER: f64 = 4.0;

/// A period of low depth: it ends when this many requests were alone, or after this many times the
/// time of one; and its depth.
const ALONE: usize = 8;
const FEW_TIMES: f64 = 4.0;
const FEW: f64 = 2.0;
/// When it begins: no request was alone for this long; or the time alone has been in doubt for this
/// long, which doubles each time that nothing changed.
const OLD_NS: f64 = 10e9;
const DOUBTED_NS: f64 = 0.5e9;
/// The time alone is in doubt when no request was ever alone, or when requests take this many times
/// as long and the device is not the limit.
const DOUBT: f64 = 4.0;
/// Factor from which a longer or shorter time counts as changed.
const CHANGE: f64 = 1.5;

/// The device at a look.
pub(crate) struct Looked<'a> {
    pub(crate) tick: &'a Sums,
    pub(crate) lately: &'a Sums,
    pub(crate) is_limit: bool,
    pub(crate) has_arm: bool,
    /// Requests waited.
    pub(crate) was_full: bool,
    /// True when the device seems to have become another one.
    pub(crate) has_changed: bool,
    /// Requests that were alone, so far.
    pub(crate) alone: usize,
    /// Time of a request of the mean length that is alone, and its share of the device.
    pub(crate) alone_ns: f64,
    pub(crate) request_ns: f64,
}

impl Looked<'_> {
    /// True for an arm, as far as its times show.
    fn is_arm(&self) -> bool {
        self.has_arm && self.alone_ns < NO_ARM * self.request_ns
    }
}

#[derive(Clone)]
enum Trial {
    None,
    /// `depth` outstanding, against what was moved before.
    With {
        depth: f64,
        before: Sums,
        skip_ns: f64,
        sums: Sums,
    },
    Pause {
        ns: f64,
    },
    /// A low depth, until some requests were alone or the time is over.
    Few {
        ns: f64,
        alone: usize,
        alone_ns: f64,
    },
}

#[derive(Clone)]
pub(crate) struct Depth {
    reckoned: f64,
    proven: f64,
    /// Requests that fill the device.
    fills: f64,
    trial: Trial,
    /// The next pause.
    pause_ns: f64,
    /// The next trial is one with less.
    tries_less: bool,
    /// Requests that were alone when some were last, and the busy time since then.
    alone: usize,
    alone_age_ns: f64,
    /// Whether the time alone is in doubt, and for how long it is left so.
    is_doubtful: bool,
    doubted_ns: f64,
}

impl Depth {
    pub(crate) fn new(assumed: u32) -> Depth {
        Depth {
            reckoned: f64::from(assumed).clamp(DEPTHS[0], DEPTHS[1]),
            proven: 0.0,
            fills: DEPTHS[0],
            trial: Trial::None,
            pause_ns: PAUSE_NS,
            tries_less: false,
            alone: 0,
            alone_age_ns: 0.0,
            is_doubtful: false,
            doubted_ns: DOUBTED_NS,
        }
    }

    /// True when few are outstanding on purpose.
    pub(crate) fn are_few(&self) -> bool {
        matches!(self.trial, Trial::Few { .. })
    }

    /// Requests that fill the device.
    pub(crate) fn fills(&self) -> f64 {
        self.fills
    }

    fn usual(&self) -> f64 {
        self.reckoned.max(self.proven)
    }

    /// Requests to keep outstanding now.
    pub(crate) fn now(&self) -> f64 {
        match self.trial {
            Trial::With { depth, .. } => depth,
            Trial::Few { .. } => FEW,
            Trial::None | Trial::Pause { .. } => self.usual(),
        }
    }

    /// The factor of the present depth over the usual one.
    pub(crate) fn more(&self) -> f64 {
        match self.trial {
            Trial::With { depth, .. } => depth / self.usual(),
            _ => 1.0,
        }
    }

    /// The factor of the proven depth over the reckoned one, where the device is not the limit. The
    /// bound on guesses is reckoned as well.
    pub(crate) fn wider(&self) -> f64 {
        (self.proven / self.reckoned).clamp(1.0, WIDER)
    }

    /// Sets the least depth.
    pub(crate) fn at_least(&mut self, depth: f64) {
        self.reckoned = self.reckoned.max(depth.min(DEPTHS[1]));
    }

    /// Sets the first depth.
    pub(crate) fn begin_with(&mut self, depth: f64) {
        (self.fills, self.reckoned) = (DEPTHS[0], depth);
    }

    /// Sets the reckoned depth: the requests answered in the time of one, by Little's law.
    pub(crate) fn reckon(&mut self, answered: f64) {
        self.fills = (FILLS * answered + 1.0).clamp(DEPTHS[0], DEPTHS[1]);
        self.reckoned = (self.fills + MORE).min(DEPTHS[1]);
    }

    /// Takes in a look. `work` weighs what was moved, also before a trial, by the present
    /// costs: the trial itself changes them.
    pub(crate) fn look(&mut self, at: &Looked<'_>, work: impl Fn(&Sums) -> f64) {
        self.note_alone(at);
        if at.is_limit && !at.has_arm {
            self.reckon(at.alone_ns / at.request_ns);
        }
        if self.is_time_for_few() && !at.has_arm {
            let ns = FEW_TIMES * at.lately.service_per_request();
            self.trial = Trial::Few { ns, alone: at.alone + ALONE, alone_ns: at.alone_ns };
            return;
        }
        let moved = |sums: &Sums| work(sums) / sums.busy_ns;
        match &mut self.trial {
            Trial::Few { ns, alone, alone_ns } => {
                *ns -= at.tick.busy_ns;
                if *ns <= 0.0 || at.alone >= *alone {
                    let has_changed = !(1.0 / CHANGE..CHANGE).contains(&(at.alone_ns / *alone_ns));
                    self.doubted_ns =
                        if has_changed { DOUBTED_NS } else { (2.0 * self.doubted_ns).min(OLD_NS) };
                    (self.alone_age_ns, self.is_doubtful) = (0.0, false);
                    self.trial = Trial::None;
                }
            }
            Trial::None if at.was_full => self.begin(at),
            Trial::None => {}
            Trial::With { skip_ns, .. } if *skip_ns > 0.0 => *skip_ns -= at.tick.busy_ns,
            Trial::With { depth, before, sums, .. } => {
                sums.add(at.tick, 1.0);
                if sums.busy_ns >= TRIAL_NS && sums.requests >= TRIAL_REQUESTS {
                    let (depth, gain) = (*depth, moved(sums) / moved(before));
                    // At an arm all wait: it sorts them.
                    let waits = if at.is_arm() { 1.0 } else { sums.service_per_request() / at.alone_ns };
                    self.judge(depth, gain, waits);
                }
            }
            Trial::Pause { .. } if at.has_changed => {
                (self.trial, self.pause_ns) = (Trial::None, PAUSE_NS);
            }
            Trial::Pause { ns } if *ns > 0.0 => *ns -= at.tick.busy_ns,
            Trial::Pause { .. } => self.trial = Trial::None,
        }
    }

    fn note_alone(&mut self, at: &Looked<'_>) {
        self.alone_age_ns += at.tick.busy_ns;
        let waits = at.lately.service_per_request() / at.alone_ns;
        self.is_doubtful |= at.has_changed || at.alone == 0 || (!at.is_limit && waits > DOUBT);
        if at.has_changed {
            self.doubted_ns = DOUBTED_NS;
        }
        if at.alone > self.alone {
            (self.alone_age_ns, self.is_doubtful) = (0.0, false);
        }
        self.alone = at.alone;
    }

    fn is_time_for_few(&self) -> bool {
        let is_usual = matches!(self.trial, Trial::None | Trial::Pause { .. });
        let old_ns = if self.is_doubtful { self.doubted_ns } else { OLD_NS };
        is_usual && self.alone_age_ns >= old_ns
    }

    fn begin(&mut self, at: &Looked<'_>) {
        let usual = self.usual();
        let depth = match self.tries_less && self.proven > self.reckoned {
            true => (usual / STEP).max(self.reckoned),
            false => (usual * STEP).min(DEPTHS[1]),
        };
        self.tries_less = !self.tries_less;
        if depth != usual {
            let skip_ns = at.lately.service_per_request();
            self.trial = Trial::With { depth, before: *at.lately, skip_ns, sums: Sums::default() };
        }
    }

    /// Judges a trial in which `gain` times as much was moved and requests took `waits` times as
    /// long as alone.
    fn judge(&mut self, depth: f64, gain: f64, waits: f64) {
        let usual = self.usual();
        let proven = match depth > usual {
            true if gain >= MUCH => Some(depth),
            true if gain >= SOME && waits <= LONG => Some((usual * gain * SOME).min(depth)),
            false if gain >= KEEPS => Some(depth),
            _ => None,
        };
        match proven {
            Some(proven) => {
                self.proven = proven;
                // The next trial goes on in the same direction.
                self.tries_less = depth < usual;
                (self.trial, self.pause_ns) = (Trial::None, PAUSE_NS);
            }
            None => {
                self.trial = Trial::Pause { ns: self.pause_ns };
                self.pause_ns = (2.0 * self.pause_ns).min(LONGEST_PAUSE_NS);
            }
        }
    }
}
