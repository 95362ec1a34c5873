//! The rules of advice: signs of an interval in, verdicts out.
//!
//! | topic       | value                                            | limit          | counts from    |
//! |-------------|--------------------------------------------------|----------------|----------------|
//! | poisoned    | a write failed                                   |                |                |
//! | room        | writing back waits for room                      |                |                |
//! | disk errors | requests that failed at a device                 | 1              |                |
//! | pool        | share of the pages that left and were wanted     | 20 %           | 1000 pages     |
//! | read-ahead  | share of the pages read ahead and never used     | 40 %           | 1000 pages     |
//! | journal     | mean time of a sync                              | 20 ms          | 20 syncs       |
//! | recovery    | share of the time for which writers were slowed  | 10 %           | 10 changes     |
//! | readers     | queries given up for the journal                 | 1              |                |
//! | held state  | bytes of journal kept for a reader of an old state | a quarter of the bound | 10 s old |
//! | queries     | share of the time for which queries waited       | 10 %           | 10 of them     |
//! | changes     | the same of changes                              | 10 %           | 10 of them     |
//! | spills      | bytes put aside a minute                         | 512 MiB        |                |
//! | refused     | share of requests answered with an error         | 20 %           | 30 of them     |

use std::time::Duration;

use snowmelt_base::size;

use super::signs::{Signs, Turns};

/// The subject of a line. In the order of their names in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the table at the head of the file says it")]
pub enum Topic {
    Poisoned,
    Room,
    DiskErrors,
    Pool,
    ReadAhead,
    Journal,
    Recovery,
    Readers,
    HeldState,
    Queries,
    Changes,
    Spills,
    Refused,
}

impl Topic {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Poisoned => "poisoned",
            Self::Room => "room",
            Self::DiskErrors => "disk errors",
            Self::Pool => "pool",
            Self::ReadAhead => "read-ahead",
            Self::Journal => "journal",
            Self::Recovery => "recovery",
            Self::Readers => "readers",
            Self::HeldState => "held state",
            Self::Queries => "queries",
            Self::Changes => "changes",
            Self::Spills => "spills",
            Self::Refused => "refused",
        }
    }

    /// Whether something of that name is broken, rather than slow.
    pub fn is_problem_named(name: &str) -> bool {
        [Self::Poisoned, Self::Room, Self::DiskErrors].iter().any(|topic| topic.name() == name)
    }
}

/// A line of advice, and how far the value is beyond its limit: the value by the limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Its subject.
    pub topic: Topic,
    /// From 1 on it is worth a line.
    pub weight: f64,
    /// The fault, and the setting to change.
    pub line: String,
}

/// Weight of what is broken.
const BROKEN: f64 = 1e9;

/// The verdicts about an interval, also light ones. Without a length (zero) rules about time are
/// left out.
pub fn judged(signs: &Signs, interval: Duration) -> Vec<Verdict> {
    let seconds = interval.as_secs_f64();
    let lines = [
        poisoned(signs),
        room(signs),
        disk_errors(signs),
        pool(signs),
        read_ahead(signs),
        journal(signs),
        recovery(signs, seconds),
        readers(signs),
        held_state(signs),
        turns(&signs.queries, seconds, Topic::Queries),
        turns(&signs.changes, seconds, Topic::Changes),
        spills(signs, seconds),
        refused(signs),
    ];
    lines.into_iter().flatten().collect()
}

fn verdict(topic: Topic, weight: f64, line: String) -> Option<Verdict> {
    (weight > 0.0).then_some(Verdict { topic, weight, line })
}

/// A part of a whole of which there must be some.
fn share(part: u64, whole: u64, least: u64) -> f64 {
    if whole < least { 0.0 } else { (part as f64 / whole as f64).min(1.0) }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

fn poisoned(signs: &Signs) -> Option<Verdict> {
    let why = signs.poisoned.as_ref()?;
    let line = format!("updates fail, queries go on: {why}; mend the disk, then start the server again");
    verdict(Topic::Poisoned, BROKEN, line)
}

fn room(signs: &Signs) -> Option<Verdict> {
    let why = signs.stalled.as_ref()?;
    let line = format!("writing back waits: {why}; make room on the disk, or run snowmelt compact");
    verdict(Topic::Room, BROKEN, line)
}

fn disk_errors(signs: &Signs) -> Option<Verdict> {
    let n = signs.device_errors;
    let line = format!(
        "{n} requests failed at the disk: look into the kernel's log (dmesg), then run snowmelt check"
    );
    verdict(Topic::DiskErrors, if n > 0 { BROKEN } else { 0.0 }, line)
}

fn pool(signs: &Signs) -> Option<Verdict> {
    const LIMIT: f64 = 0.2;
    let share = share(signs.wanted_again, signs.left, 1000);
    let line = format!(
        "the pool is too small: {} of {} pages that had to leave were wanted again soon; raise --memory (now {})",
        percent(share),
        size::count(signs.left),
        size::about(signs.memory_bytes as f64)
    );
    verdict(Topic::Pool, share / LIMIT, line)
}

fn read_ahead(signs: &Signs) -> Option<Verdict> {
    const LIMIT: f64 = 0.4;
    let sum = |of: fn(&super::Ahead) -> u64| signs.ahead.values().map(of).sum::<u64>();
    let (issued, unused) = (sum(|rule| rule.issued), sum(|rule| rule.unused));
    let (worst, of_worst) = signs.ahead.iter().max_by_key(|(_, rule)| rule.unused)?;
    let others: Vec<&str> = signs.ahead.keys().filter(|rule| *rule != worst).map(String::as_str).collect();
    let share = share(unused, issued, 1000);
    let line = format!(
        "read-ahead is wasted: {} of {} pages left unused, {} of them read by the rule {worst}; raise --memory, or try --read-ahead {}",
        percent(share),
        size::count(issued),
        size::count(of_worst.unused),
        others.join(",")
    );
    verdict(Topic::ReadAhead, share / LIMIT, line)
}

fn journal(signs: &Signs) -> Option<Verdict> {
    const LIMIT_S: f64 = 0.020;
    let mean = if signs.syncs.count < 20 { 0.0 } else { signs.syncs.mean() };
    let line = format!(
        "journal syncs take {:.0} ms: put the database on a disk with a protected write cache, or change more in one update",
        1e3 * mean
    );
    verdict(Topic::Journal, mean / LIMIT_S, line)
}

fn recovery(signs: &Signs, seconds: f64) -> Option<Verdict> {
    const LIMIT: f64 = 0.1;
    let slowed = signs.slowed;
    let share = if slowed.count < 10 || seconds <= 0.0 { 0.0 } else { slowed.seconds / seconds };
    let line = format!(
        "{} changes were slowed by {:.1} s in all, so that a restart stays quick: raise --recovery-seconds, or use a faster disk",
        size::count(slowed.count),
        slowed.seconds
    );
    verdict(Topic::Recovery, share / LIMIT, line)
}

fn readers(signs: &Signs) -> Option<Verdict> {
    let n = signs.cancelled_readers;
    let line = format!("{n} queries were given up because they held the journal back: lower --timeout");
    verdict(Topic::Readers, n as f64, line)
}

fn held_state(signs: &Signs) -> Option<Verdict> {
    const LIMIT: f64 = 0.25;
    const LEAST_S: f64 = 10.0;
    let held = &signs.held;
    let share = if held.seconds < LEAST_S { 0.0 } else { held.bytes as f64 / held.bound_bytes.max(1) as f64 };
    let line = format!(
        "a reader ({}) has held an old state for {:.0} s, and {} of journal with it: changes are slower until it ends; lower --timeout, or end it (/requests lists what runs)",
        if held.account.is_empty() { "unnamed" } else { &held.account },
        held.seconds,
        size::about(held.bytes as f64)
    );
    verdict(Topic::HeldState, share / LIMIT, line)
}

fn turns(turns: &Turns, seconds: f64, topic: Topic) -> Option<Verdict> {
    const LIMIT: f64 = 0.1;
    let waited = turns.waited;
    let share = if waited.count < 10 || seconds <= 0.0 { 0.0 } else { waited.seconds / seconds };
    let name = topic.name();
    let line = format!(
        "{name} wait for slots: {} waited for one of {}, {:.1} s on average; raise --{name}, or lower --timeout",
        size::count(waited.count),
        turns.all,
        waited.mean()
    );
    verdict(topic, share / LIMIT, line)
}

fn spills(signs: &Signs, seconds: f64) -> Option<Verdict> {
    const LIMIT: f64 = (512u64 << 20) as f64;
    let bytes = signs.spilled_bytes as f64;
    let a_minute = if seconds <= 0.0 { 0.0 } else { bytes * 60.0 / seconds };
    let line = format!(
        "spills of {}: sorts, groups and joins do not fit into the memory of a query, a quarter of --memory (now {}): raise it",
        size::about(bytes),
        size::about(signs.memory_bytes as f64)
    );
    verdict(Topic::Spills, a_minute / LIMIT, line)
}

fn refused(signs: &Signs) -> Option<Verdict> {
    const LIMIT: f64 = 0.2;
    let all = signs.answered + signs.refused;
    let share = share(signs.refused, all, 30);
    let line = format!(
        "{} of {} requests were answered with an error: --access-log says which",
        size::count(signs.refused),
        size::count(all)
    );
    verdict(Topic::Refused, share / LIMIT, line)
}
