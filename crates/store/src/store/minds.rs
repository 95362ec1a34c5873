//! Beliefs about the disks while a store is open: what was learned is kept beside the stripes, and
//! a line is said when a belief has changed.
//!
//! A change is one of a figure that was learned, by more than a factor, which has lasted. It is
//! said seconds after the opening at the earliest, so a short command says nothing.

use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use snowmelt_base::size;
use snowmelt_io::{Belief, CostModel, CostSource, KeptModel, WriteCost, notice};

use crate::files::known;
use crate::files::stripes::Stripes;
use crate::settings::config::Mode;
use crate::settings::opener::Directory;

/// Time between two looks, in nanoseconds.
const LOOK_NS: u64 = 1_000_000_000;
/// Factor by which a figure must have grown or shrunk to count as changed.
const CHANGED: f64 = 1.5;
/// Time that a change must last.
const LASTS_NS: u64 = 3_000_000_000;
/// Time between two lines about a disk.
const PAUSE_NS: u64 = 10_000_000_000;
/// Looks at a disk that was the limit after which something is known of it.
const ENOUGH: u64 = 4;
/// Flushes that differ by no more are all quick: of those nothing is said.
const QUICK_FLUSH_NS: f64 = 500_000.0;
/// Time between two writings of what has changed.
const KEEP_NS: u64 = 60_000_000_000;

/// The beliefs about all stripes.
pub(crate) struct Minds {
    list: Mutex<Vec<Mind>>,
    mode: Mode,
}

/// Beliefs about a disk that were said, and those that were kept.
struct Mind {
    reads: Told<Figures>,
    writes: Told<WriteFigures>,
    /// Why costs of reads were believed at first, until that was said.
    begin: String,
    kept: Kept,
}

/// A belief that was said last, and whether another one has lasted.
struct Told<F> {
    figures: F,
    at_ns: u64,
    /// Another belief, since when.
    other: Option<(F, u64)>,
}

impl<F: Changing> Told<F> {
    fn new(figures: F, now_ns: u64) -> Told<F> {
        Told { figures, at_ns: now_ns, other: None }
    }

    /// A look at the present belief. When it is to be reported, returns the one that was reported
    /// before.
    fn look(&mut self, now: F, now_ns: u64) -> Option<F> {
        if !now.differs(&self.figures) {
            self.other = None;
            return None;
        }
        let since = match self.other {
            Some((other, since)) if !now.differs(&other) => since,
            _ => {
                self.other = Some((now, now_ns));
                now_ns
            }
        };
        let has_lasted = now_ns.saturating_sub(since) >= LASTS_NS;
        if !has_lasted || now_ns.saturating_sub(self.at_ns) < PAUSE_NS {
            return None;
        }
        (self.at_ns, self.other) = (now_ns, None);
        Some(std::mem::replace(&mut self.figures, now))
    }
}

/// Figures that change.
trait Changing: Copy {
    /// True when one of them is another than it was.
    fn differs(&self, other: &Self) -> bool;
}

/// True of two figures of which one is much more.
fn are_apart(a: f64, b: f64) -> bool {
    a.max(b) > CHANGED * a.min(b)
}

/// The model that was kept last.
struct Kept {
    figures: Figures,
    looks: u64,
    at_ns: u64,
    has_failed: bool,
}

/// Figures of reads, with their sources.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Figures {
    requests_per_s: f64,
    bytes_per_s: f64,
    from: [CostSource; 2],
}

impl Figures {
    fn from_belief(belief: &Belief) -> Figures {
        let CostModel { ns_per_request, bytes_per_s, .. } = belief.cost;
        Figures {
            requests_per_s: 1e9 / ns_per_request.max(1) as f64,
            bytes_per_s: bytes_per_s as f64,
            from: [belief.evidence.requests_from, belief.evidence.bytes_from],
        }
    }

    /// These figures, with those of `now` that were learned in their place.
    fn with_learned(self, now: Figures) -> Figures {
        let [mut requests_per_s, mut bytes_per_s] = [self.requests_per_s, self.bytes_per_s];
        let mut from = self.from;
        if now.from[0] == CostSource::Learned {
            (requests_per_s, from[0]) = (now.requests_per_s, CostSource::Learned);
        }
        if now.from[1] == CostSource::Learned {
            (bytes_per_s, from[1]) = (now.bytes_per_s, CostSource::Learned);
        }
        Figures { requests_per_s, bytes_per_s, from }
    }

    fn describe(&self) -> String {
        let [requests, bytes] = self.from.map(CostSource::as_str);
        let source = if requests == bytes { requests.to_owned() } else { format!("{requests}, {bytes}") };
        let (per_s, rate) = (self.requests_per_s, size::about(self.bytes_per_s));
        format!("{per_s:.0} requests/s and {rate}/s ({source})")
    }
}

impl Changing for Figures {
    fn differs(&self, other: &Figures) -> bool {
        are_apart(self.requests_per_s, other.requests_per_s) || are_apart(self.bytes_per_s, other.bytes_per_s)
    }
}

/// Figures of writes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct WriteFigures {
    write_ns: f64,
    bytes_per_s: f64,
    flush_ns: f64,
}

impl WriteFigures {
    /// Those of `cost`; where it has not learned them, those of `before`.
    fn from_cost(cost: &WriteCost, before: Option<&WriteFigures>) -> WriteFigures {
        let now = WriteFigures {
            write_ns: cost.ns_per_request as f64,
            bytes_per_s: cost.bytes_per_s as f64,
            flush_ns: cost.flush_ns as f64,
        };
        let Some(before) = before else { return now };
        let flush_ns = if cost.flushes >= ENOUGH { now.flush_ns } else { before.flush_ns };
        let learned = if cost.learned >= ENOUGH { &now } else { before };
        WriteFigures { flush_ns, ..*learned }
    }

    fn describe(&self) -> String {
        let (per_s, rate) = (1e9 / self.write_ns.max(1.0), size::about(self.bytes_per_s));
        format!("{per_s:.0}/s and {rate}/s, with {:.2} ms for a flush", self.flush_ns / 1e6)
    }
}

impl Changing for WriteFigures {
    fn differs(&self, other: &WriteFigures) -> bool {
        let of_flush = are_apart(self.flush_ns, other.flush_ns)
            && (self.flush_ns - other.flush_ns).abs() > QUICK_FLUSH_NS;
        of_flush || are_apart(self.write_ns, other.write_ns) || are_apart(self.bytes_per_s, other.bytes_per_s)
    }
}

impl Mind {
    fn new(belief: &Belief, writes: &WriteCost, begin: &str, now_ns: u64) -> Mind {
        let figures = Figures::from_belief(belief);
        Mind {
            reads: Told::new(figures, now_ns),
            writes: Told::new(WriteFigures::from_cost(writes, None), now_ns),
            begin: begin.to_owned(),
            kept: Kept { figures, looks: 0, at_ns: now_ns, has_failed: false },
        }
    }

    /// A look at what is believed of reads; returns the line that is due.
    fn look(&mut self, belief: &Belief, now_ns: u64) -> Option<String> {
        let now = self.reads.figures.with_learned(Figures::from_belief(belief));
        let before = self.reads.look(now, now_ns)?;
        let begin = match std::mem::take(&mut self.begin) {
            why if why.is_empty() => why,
            why => format!(" by {why}"),
        };
        let load = &belief.load;
        Some(format!(
            "reads are believed to cost {} from now on, before {}{begin}: \
             {:.0} of {} were answered per second, each after {:.2} ms, {:.0} at once; a lone one takes {:.2} ms",
            now.describe(),
            before.describe(),
            load.requests_per_s,
            size::about(load.request_bytes),
            load.request_ns / 1e6,
            load.outstanding,
            belief.cost.latency_ns as f64 / 1e6,
        ))
    }

    /// A look at what is believed of writes; returns the line that is due.
    fn look_at_writes(&mut self, cost: &WriteCost, now_ns: u64) -> Option<String> {
        let now = WriteFigures::from_cost(cost, Some(&self.writes.figures));
        let before = self.writes.look(now, now_ns)?;
        Some(format!(
            "writes are believed to be let through at {} from now on, before {}: \
             a lone one takes {:.2} ms, and {:.2} ms of the next flush; \
             the device was the limit in {} looks, {} flushes were seen",
            now.describe(),
            before.describe(),
            cost.latency_ns as f64 / 1e6,
            cost.deferred_ns as f64 / 1e6,
            cost.learned,
            cost.flushes,
        ))
    }

    /// True when so much was learned since it was kept that it should be again.
    fn is_stale(&self, belief: &Belief, now_ns: u64) -> bool {
        let now = self.kept.figures.with_learned(Figures::from_belief(belief));
        self.is_worth_keeping(belief)
            && now.differs(&self.kept.figures)
            && now_ns.saturating_sub(self.kept.at_ns) >= KEEP_NS
    }

    /// True when something was learned that is not kept.
    fn is_worth_keeping(&self, belief: &Belief) -> bool {
        belief.evidence.looks >= ENOUGH && belief.evidence.looks > self.kept.looks
    }
}

impl Minds {
    /// Those at the opening.
    pub fn new(stripes: &Stripes, mode: Mode, now_ns: u64) -> Minds {
        let list = (0..stripes.len())
            .map(|i| Mind::new(&stripes.belief(i), &stripes.write_cost(i), stripes.begin(i), now_ns));
        Minds { list: Mutex::new(list.collect()), mode }
    }

    /// Says what has changed, and keeps it in the folder of the database or beside the stripe.
    /// Returns when to look again.
    pub fn look(&self, stripes: &Stripes, dir: &Arc<Directory>, now_ns: u64) -> u64 {
        for (stripe, mind) in self.list.lock().iter_mut().enumerate() {
            let belief = stripes.belief(stripe);
            let of_writes = mind.look_at_writes(&stripes.write_cost(stripe), now_ns);
            for line in mind.look(&belief, now_ns).into_iter().chain(of_writes) {
                let disk =
                    stripes.disk(stripe).map_or_else(String::new, |disk| format!(", {}", disk.describe()));
                notice(&format!("{}{disk}: {line}", stripes.path(stripe).display()));
            }
            if self.mode == Mode::ReadWrite && mind.is_stale(&belief, now_ns) {
                mind.keep(stripes, stripe, dir, now_ns);
            }
        }
        now_ns.saturating_add(LOOK_NS)
    }

    /// Keeps all that is worth it, where files may be written.
    pub fn keep(&self, stripes: &Stripes, dir: &Arc<Directory>, now_ns: u64) {
        if self.mode == Mode::ReadOnly {
            return;
        }
        for (stripe, mind) in self.list.lock().iter_mut().enumerate() {
            if mind.is_worth_keeping(&stripes.belief(stripe)) {
                mind.keep(stripes, stripe, dir, now_ns);
            }
        }
    }
}

impl Mind {
    /// Advice only: a full disk or a directory that cannot be written costs one line.
    fn keep(&mut self, stripes: &Stripes, stripe: usize, dir: &Arc<Directory>, now_ns: u64) {
        let Some(disk) = stripes.disk(stripe) else { return };
        let Belief { cost, evidence, .. } = stripes.belief(stripe);
        let sure = [evidence.requests, evidence.bytes];
        let model = KeptModel::new(cost, sure, evidence.looks, disk.clone());
        let of_block = format!("stripe-{stripe}");
        let (folder, name) = match stripes.place(stripe) {
            Some((folder, name)) => (folder, name.as_path()),
            None => (dir, Path::new(&of_block)),
        };
        if let Err(error) = known::keep(folder, name, &model) {
            if !self.kept.has_failed {
                notice(&format!("{error}; going on without"));
            }
            self.kept.has_failed = true;
        }
        let figures = Figures::from_belief(&stripes.belief(stripe));
        self.kept = Kept { figures, looks: evidence.looks, at_ns: now_ns, has_failed: self.kept.has_failed };
    }
}

#[cfg(test)]
mod tests {
    use snowmelt_io::{Evidence, SeenLoad};

    use super::*;

    const S: u64 = 1_000_000_000;

    /// Requests and bytes per second, each learned or not.
    fn belief(requests: f64, bytes: f64, learned: [bool; 2], looks: u64) -> Belief {
        let [requests_from, bytes_from] =
            learned.map(|is| if is { CostSource::Learned } else { CostSource::Assumed });
        let evidence = Evidence { requests: 0.5, bytes: 0.5, requests_from, bytes_from, looks };
        let cost = CostModel::capped(1_000_000, requests, bytes);
        Belief { cost, evidence, load: SeenLoad::default() }
    }

    /// Time of a write and of a flush, after so many looks and flushes.
    fn writes(ns_per_request: u64, flush_ns: u64, [learned, flushes]: [u64; 2]) -> WriteCost {
        let rest = WriteCost { latency_ns: 100_000, bytes_per_s: 500_000_000, ..WriteCost::default() };
        WriteCost { ns_per_request, flush_ns, learned, flushes, ..rest }
    }

    fn mind() -> Mind {
        Mind::new(&belief(80e3, 500e6, [false; 2], 0), &writes(12_000, 120_000, [0; 2]), "its name", 0)
    }

    /// The times in seconds at which lines are said, of a belief for each second.
    fn said(mind: &mut Mind, beliefs: impl Iterator<Item = Belief>) -> Vec<usize> {
        let all = beliefs.enumerate();
        all.filter_map(|(at, belief)| mind.look(&belief, at as u64 * S).map(|_| at)).collect()
    }

    #[test]
    fn a_change_that_lasts_is_said_once_with_both_beliefs() {
        let mut mind = mind();
        let learned = belief(3_000.0, 500e6, [true, false], 50);
        let lines: Vec<String> = (0..100).filter_map(|at| mind.look(&learned, at * S)).collect();
        assert_eq!(lines.len(), 1);
        for part in ["3000 requests/s", "80000 requests/s", "(learned, assumed)", "(assumed) by its name"] {
            assert!(lines[0].contains(part), "{part}: {}", lines[0]);
        }
    }

    #[test]
    fn what_is_small_passes_or_was_not_learned_is_not_said() {
        let to = |requests: f64, learned| belief(requests, 500e6, learned, 50);
        let cases: [(&str, Vec<Belief>); 4] = [
            ("small", vec![to(55e3, [true; 2]); 100]),
            ("not learned", vec![to(3e3, [false; 2]); 100]),
            ("of bytes alone", vec![to(3e3, [false, true]); 100]),
            ("passes", (0..100).map(|at| to(if at % 5 < 2 { 3e3 } else { 80e3 }, [true; 2])).collect()),
        ];
        for (what, beliefs) in cases {
            assert_eq!(said(&mut mind(), beliefs.into_iter()), [0usize; 0], "{what}");
        }
    }

    #[test]
    fn a_change_of_writes_is_said_as_one_of_reads() {
        let lines = |cost: &WriteCost| {
            let mut mind = mind();
            (0..100).filter_map(|at| mind.look_at_writes(cost, at * S)).collect::<Vec<_>>()
        };
        let learned = lines(&writes(333_333, 4_000_000, [50, 9]));
        assert_eq!(learned.len(), 1, "{learned:?}");
        for part in ["3000/s", "4.00 ms for a flush", "before 83333/s", "0.12 ms for a flush", "50 looks"] {
            assert!(learned[0].contains(part), "{part}: {}", learned[0]);
        }
        assert_eq!(lines(&writes(12_000, 4_000_000, [0, 9])).len(), 1, "of flushes alone");
        for (what, cost) in [
            ("not learned", writes(333_333, 4_000_000, [0, 0])),
            ("hardly seen", writes(333_333, 4_000_000, [ENOUGH - 1; 2])),
            ("small", writes(17_000, 120_000, [50, 9])),
            ("quick flushes", writes(12_000, 400_000, [50, 9])),
        ] {
            assert_eq!(lines(&cost), [""; 0], "{what}");
        }
    }

    #[test]
    fn lines_come_with_a_pause_and_the_first_after_it() {
        let steps = (0..60).map(|at| belief(1000.0 * f64::powi(2.0, at / 5), 500e6, [true; 2], 50));
        let at = said(&mut mind(), steps);
        assert!(at[0] >= 10 && at.windows(2).all(|pair| pair[1] - pair[0] >= 10), "{at:?}");
        assert!(at.len() >= 4, "{at:?}");
    }

    #[test]
    fn what_was_learned_is_kept_when_it_is_enough_and_new() {
        let mut mind = mind();
        let now = |looks| belief(3_000.0, 500e6, [true; 2], looks);
        assert!(!mind.is_worth_keeping(&now(ENOUGH - 1)) && mind.is_worth_keeping(&now(ENOUGH)));
        assert!(!mind.is_stale(&now(50), 59 * S) && mind.is_stale(&now(50), 60 * S));
        mind.kept =
            Kept { figures: Figures::from_belief(&now(50)), looks: 50, at_ns: 60 * S, has_failed: false };
        assert!(!mind.is_worth_keeping(&now(50)) && mind.is_worth_keeping(&now(51)));
        assert!(!mind.is_stale(&now(51), 500 * S), "it has not changed");
    }
}
