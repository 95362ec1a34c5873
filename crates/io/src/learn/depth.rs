//! How many requests should be outstanding.
//!
//! 1. When the device is the limit, what Little's law asks for, and a little more. That is
//!    *reckoned*, from the time of a request alone.
//! 2. That time can be wrong: answers of a cache in front, another device than it was measured
//!    on. So, while requests wait, half as many more are let out for a moment. When they move
//!    much more, they are *proven*; a little more is enough while requests do not wait long for
//!    each other at the device. With others on the same device, who more lets out gets more of
//!    it; as much more must be moved for it that two of them end at about the same.
//! 3. A depth that was proven, and is more than reckoned, is tried with less now and then.
//! 4. When no request was alone for long, or for a while since the device changed, few are let
//!    out for a moment, so that some are alone (as BBR does; Cardwell and others, 2016).

use crate::learn::Learner;
use crate::learn::sums::Sums;

/// Requests outstanding, of what fills the device.
const FILLS: f64 = 2.0;
/// Outstanding beyond what fills the device: what waits for it in the queue is merged.
const MORE: f64 = 2.0;
const DEPTHS: [f64; 2] = [4.0, Learner::MOST_DEPTH as f64];

/// Steps of a trial; what it must move for more requests, and for more while they do not wait
/// for each other: while they take at most so many times as long as alone.
const STEP: f64 = 1.5;
const MUCH: f64 = 1.25;
const SOME: f64 = 1.05;
const LONG: f64 = 4.0;
/// With less outstanding nearly as much must be moved.
const KEEPS: f64 = 0.97;
/// Time of a trial, and requests.
const TRIAL_NS: f64 = 30e6;
const TRIAL_REQUESTS: f64 = 48.0;
/// Busy time before there is another one, when it brought nothing: at first, and at most after
/// several. By chance one can bring nothing.
const PAUSE_NS: f64 = 0.25e9;
const LONGEST_PAUSE_NS: f64 = 2e9;

/// With so many answered in the time of one it may be no arm.
const NO_ARM: f64 = 8.0;

/// Guesses have at most so many times as much outstanding as reckoned.
const WIDER: f64 = 4.0;

/// Few requests are outstanding until so many were alone, or for so many times as long as one
/// takes; how many.
const ALONE: usize = 8;
const FEW_TIMES: f64 = 4.0;
const FEW: f64 = 2.0;
/// When it is time for that: no request was alone for so long; or for so long, twice as long when
/// it has changed nothing, since that time was in doubt.
const OLD_NS: f64 = 10e9;
const DOUBTED_NS: f64 = 0.5e9;
/// It is in doubt when none was alone ever, or when requests take so many times as long and the
/// device is not the limit.
const DOUBT: f64 = 4.0;
/// A time that has become so many times as long, or as short, has changed.
const CHANGE: f64 = 1.5;

/// The device at a look.
pub(crate) struct Looked<'a> {
    pub(crate) tick: &'a Sums,
    pub(crate) lately: &'a Sums,
    pub(crate) is_limit: bool,
    pub(crate) has_arm: bool,
    /// Requests waited.
    pub(crate) was_full: bool,
    /// Another device than it was, it seems.
    pub(crate) has_changed: bool,
    /// Requests that were alone, so far.
    pub(crate) alone: usize,
    /// Time of a request of the mean length that is alone, and its share of the device.
    pub(crate) alone_ns: f64,
    pub(crate) request_ns: f64,
}

impl Looked<'_> {
    /// True for an arm that answers like one.
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
    /// Few outstanding, for so long, until so many requests were alone.
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
    /// So many outstanding fill the device.
    fills: f64,
    trial: Trial,
    /// The next pause.
    pause_ns: f64,
    /// The next trial is one with less.
    tries_less: bool,
    /// Requests that were alone when some were last, and the busy time since then.
    alone: usize,
    alone_age_ns: f64,
    /// The time alone is in doubt; for how long it is left so.
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

    /// So many outstanding fill the device.
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

    /// How much more than usual is let out now.
    pub(crate) fn more(&self) -> f64 {
        match self.trial {
            Trial::With { depth, .. } => depth / self.usual(),
            _ => 1.0,
        }
    }

    /// How many times as many as reckoned were proven, where the device is not the limit: what
    /// guesses may have outstanding is reckoned, too.
    pub(crate) fn wider(&self) -> f64 {
        (self.proven / self.reckoned).clamp(1.0, WIDER)
    }

    /// At least so many are wanted.
    pub(crate) fn at_least(&mut self, depth: f64) {
        self.reckoned = self.reckoned.max(depth.min(DEPTHS[1]));
    }

    /// So many at first.
    pub(crate) fn begin_with(&mut self, depth: f64) {
        (self.fills, self.reckoned) = (DEPTHS[0], depth);
    }

    /// By Little's law so many are answered in the time of one.
    pub(crate) fn reckon(&mut self, answered: f64) {
        self.fills = (FILLS * answered + 1.0).clamp(DEPTHS[0], DEPTHS[1]);
        self.reckoned = (self.fills + MORE).min(DEPTHS[1]);
    }

    /// Takes in a look. `work` weighs what was moved: by the costs of now, also what was moved
    /// before a trial, because the trial changes what is believed.
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

    /// A trial is over: `gain` times as much was moved, and requests took `waits` times as long
    /// as alone.
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
