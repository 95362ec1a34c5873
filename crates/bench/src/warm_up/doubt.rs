//! Reasons to doubt the figures of a warm-up.

use super::course::{Course, Interval};
use super::{WarmUp, WarmUpFacts, mib, rate_since};

/// Seconds of measured mixes below which their processor use is no plateau.
const SHORT_S: f64 = 2.0;
/// Intervals within which a time is not told well.
const FEW_INTERVALS: usize = 3;

pub(super) fn doubts(warm_up: &WarmUp, warm: &Course, facts: &WarmUpFacts) -> Vec<String> {
    let doubts = [
        not_warm(warm_up),
        warm_late(warm_up),
        no_counters(warm_up),
        short(warm),
        still_warming(warm_up, warm),
        not_busy(warm_up, facts),
        still_reading(warm_up, warm),
        too_quick(warm_up),
        not_semi_warm(warm_up),
        counted_again(warm_up),
        not_counted(warm_up),
        nothing_read(warm_up),
    ];
    doubts.into_iter().flatten().collect()
}

fn not_warm(warm_up: &WarmUp) -> Option<String> {
    let rules: Vec<String> = warm_up.rules.iter().map(|held| held.rule.to_string()).collect();
    warm_up.warm_s.is_none().then(|| {
        format!(
            "not warm by its rule ({}): let the warm-up last longer, or choose a shorter --stretch",
            rules.join("; or ")
        )
    })
}

fn warm_late(warm_up: &WarmUp) -> Option<String> {
    warm_up.warm_s.filter(|warm_s| *warm_s > warm_up.measured_from_s).map(|_| {
        "by its rule it became warm in the measured mixes only: their figures are in part those of the \
         warm-up"
            .to_owned()
    })
}

fn no_counters(warm_up: &WarmUp) -> Option<String> {
    warm_up.plateau_cpus.is_none().then(|| {
        "the server's processor use is not known: no rule by it, nothing is semi-warm; give --server-pid"
            .to_owned()
    })
}

fn short(warm: &Course) -> Option<String> {
    let seconds: f64 = warm.intervals.iter().map(Interval::seconds).sum();
    (seconds < SHORT_S).then(|| {
        format!("the measured mixes took {seconds:.2} s: the plateau is that of a moment; give more --mixes")
    })
}

fn still_warming(warm_up: &WarmUp, warm: &Course) -> Option<String> {
    let (first, second) = warm.done.split_at(warm.done.len() / 2);
    let middle_s = first.last()?.at_s;
    let (first, second) = (rate_since(first, warm_up.measured_from_s), rate_since(second, middle_s));
    (second > 1.05 * first).then(|| {
        format!(
            "the measured mixes were still warming: their second half ran {:.0} % faster than the first",
            100.0 * (second / first - 1.0)
        )
    })
}

fn not_busy(warm_up: &WarmUp, facts: &WarmUpFacts) -> Option<String> {
    let could = facts.clients.min(facts.processors).max(1) as f64;
    warm_up.plateau_cpus.filter(|plateau| *plateau < could / 2.0).map(|plateau| {
        format!(
            "the plateau is {plateau:.2} of {could:.0} processors that {} clients could keep busy: something \
             else limits the warm server (clients, other programs, storage), and a share of it says little",
            facts.clients
        )
    })
}

fn still_reading(warm_up: &WarmUp, warm: &Course) -> Option<String> {
    let seconds: f64 = warm.intervals.iter().map(Interval::seconds).sum();
    let bytes: Option<f64> = warm.intervals.iter().map(|interval| interval.bytes).sum();
    let (bytes, until) = (bytes?, warm_up.read.bytes?);
    (bytes > 0.1 * until).then(|| {
        format!(
            "the measured mixes read {:.1} MiB ({:.1} a second): they are not wholly in memory, or touch new pages",
            mib(bytes),
            mib(bytes) / seconds.max(1e-9)
        )
    })
}

fn too_quick(warm_up: &WarmUp) -> Option<String> {
    let ninety_s = warm_up.reached.iter().find(|share| share.percent == 90)?.seconds?;
    let intervals = warm_up.seconds.iter().filter(|second| second.end_s <= ninety_s).count();
    (intervals < FEW_INTERVALS).then(|| {
        format!(
            "90 % was reached in sample {} of a second each: the data set is small for this device",
            intervals + 1
        )
    })
}

fn not_semi_warm(warm_up: &WarmUp) -> Option<String> {
    let is_none = warm_up.plateau_cpus.is_some() && warm_up.queries.iter().all(|query| query.runs == 0);
    is_none
        .then(|| "no sample with 15 to 45 % of the plateau: nothing is known of queries semi-warm".to_owned())
}

fn counted_again(warm_up: &WarmUp) -> Option<String> {
    warm_up.working_set.filter(|set| !set.is_exact).map(|_| {
        "pages had to leave the memory and were counted again when they came back: the working set is at \
         most what is told; give more --memory"
            .to_owned()
    })
}

fn not_counted(warm_up: &WarmUp) -> Option<String> {
    warm_up.working_set.filter(|set| 20 * set.missing_at_most > set.pages).map(|set| {
        format!(
            "{} pages read ahead were not used before the measured mixes; those that these used are missing \
             in the working set",
            set.missing_at_most
        )
    })
}

fn nothing_read(warm_up: &WarmUp) -> Option<String> {
    warm_up.read.bytes.filter(|bytes| *bytes <= 0.0).map(|_| {
        "the kernel counted no bytes read from storage for the server: was it cold, and is its storage a \
         local block device?"
            .to_owned()
    })
}
