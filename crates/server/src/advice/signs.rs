//! The numbers that advice is made of, read from meters in their JSON form: that of `/stats`, of
//! `stats --meters`, and of a report in this process.

use std::collections::BTreeMap;

use serde_json::Value;

/// See the head of the file. Counts are since the beginning, or of an interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Signs {
    /// The failure after which nothing is written.
    pub poisoned: Option<String>,
    /// Why writing back waits.
    pub stalled: Option<String>,
    /// Bytes of the memory budget.
    pub memory_bytes: u64,
    /// Pages that were used and had to leave the pool, and those of them wanted again soon.
    pub left: u64,
    /// See `left`.
    pub wanted_again: u64,
    /// Read-ahead by rule.
    pub ahead: BTreeMap<String, Ahead>,
    /// Syncs of the journal, and how long they took in all.
    pub syncs: Wear,
    /// Transactions that were slowed, and by how long in all.
    pub slowed: Wear,
    /// Readers that were given up because they held the journal back.
    pub cancelled_readers: u64,
    /// The oldest state that is read, as of now.
    pub held: HeldBack,
    /// Bytes that queries put aside.
    pub spilled_bytes: u64,
    /// Requests that failed at a device.
    pub device_errors: u64,
    /// Requests to the server that were answered as asked.
    pub answered: u64,
    /// Requests that were answered with an error.
    pub refused: u64,
    /// Queries that waited for their turn.
    pub queries: Turns,
    /// Changes that did.
    pub changes: Turns,
}

/// The oldest state that is read, and what is kept for it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeldBack {
    /// Its age.
    pub seconds: f64,
    /// Name of the account that reads it.
    pub account: String,
    /// Bytes of journal that are kept for it.
    pub bytes: u64,
    /// Bytes that the journal is kept within.
    pub bound_bytes: u64,
}

/// Pages read ahead by a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ahead {
    /// Read ahead.
    pub issued: u64,
    /// Driven out without use.
    pub unused: u64,
}

/// Events, and how long they took together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wear {
    /// How many.
    pub count: u64,
    /// Seconds, all together.
    pub seconds: f64,
}

/// Waits for a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Turns {
    /// Turns at the same time.
    pub all: u64,
    /// Requests that had to wait, and their time.
    pub waited: Wear,
}

impl Wear {
    fn since(self, earlier: Self) -> Self {
        let seconds = if self.count < earlier.count { self.seconds } else { self.seconds - earlier.seconds };
        Self { count: grown(self.count, earlier.count), seconds: seconds.max(0.0) }
    }

    /// Of one event; 0 when there was none.
    pub fn mean(self) -> f64 {
        if self.count == 0 { 0.0 } else { self.seconds / self.count as f64 }
    }
}

/// The growth of a count; what came after, when it was reset meanwhile.
fn grown(now: u64, earlier: u64) -> u64 {
    now.checked_sub(earlier).unwrap_or(now)
}

impl Signs {
    /// From meters as JSON. What is not there counts as 0.
    pub fn from_meters(meters: &Value) -> Self {
        let number = |path: &str| meters.pointer(path).and_then(Value::as_f64).unwrap_or(0.0);
        let count = |path: &str| number(path) as u64;
        let text = |path: &str| meters.pointer(path).and_then(Value::as_str).map(str::to_owned);
        let turns = |of: &str| Turns {
            all: count(&format!("/turns/{of}/all")),
            waited: Wear {
                count: count(&format!("/turns/{of}/waited")),
                seconds: number(&format!("/turns/{of}/waited_s")),
            },
        };
        let syncs = count("/journal/sync_latency/count");
        let of_spills = |class: &&Value| class["class"] == "spill-write";
        Self {
            poisoned: text("/journal/poisoned"),
            stalled: text("/journal/checkpoints/stalled"),
            memory_bytes: count("/memory/total_bytes"),
            left: count("/pool/left"),
            wanted_again: count("/pool/wanted_again"),
            ahead: ahead(meters),
            syncs: Wear {
                count: syncs,
                seconds: syncs as f64 * number("/journal/sync_latency/mean_ns") / 1e9,
            },
            slowed: Wear {
                count: count("/journal/slowed_near_the_bound/transactions"),
                seconds: number("/journal/slowed_near_the_bound/seconds"),
            },
            cancelled_readers: count("/journal/cancelled_readers"),
            held: HeldBack {
                seconds: number("/journal/oldest_reader_seconds"),
                account: text("/journal/oldest_reader_account").unwrap_or_default(),
                bytes: count("/journal/held_back_bytes"),
                bound_bytes: count("/journal/recovery_bound_bytes"),
            },
            spilled_bytes: classes(meters).filter(of_spills).map(|class| whole(&class["bytes"])).sum(),
            device_errors: classes(meters).map(|class| whole(&class["errors"])).sum(),
            answered: count("/answered"),
            refused: count("/refused"),
            queries: turns("queries"),
            changes: turns("changes"),
        }
    }

    /// The change since an earlier look; states are as of now.
    pub fn since(&self, earlier: &Self) -> Self {
        let turns = |now: Turns, earlier: Turns| Turns { waited: now.waited.since(earlier.waited), ..now };
        let ahead = |(rule, now): (&String, &Ahead)| {
            let earlier = earlier.ahead.get(rule).copied().unwrap_or_default();
            let unused = grown(now.unused, earlier.unused);
            (rule.clone(), Ahead { issued: grown(now.issued, earlier.issued), unused })
        };
        Self {
            poisoned: self.poisoned.clone(),
            stalled: self.stalled.clone(),
            memory_bytes: self.memory_bytes,
            left: grown(self.left, earlier.left),
            wanted_again: grown(self.wanted_again, earlier.wanted_again),
            ahead: self.ahead.iter().map(ahead).collect(),
            syncs: self.syncs.since(earlier.syncs),
            slowed: self.slowed.since(earlier.slowed),
            cancelled_readers: grown(self.cancelled_readers, earlier.cancelled_readers),
            held: self.held.clone(),
            spilled_bytes: grown(self.spilled_bytes, earlier.spilled_bytes),
            device_errors: grown(self.device_errors, earlier.device_errors),
            answered: grown(self.answered, earlier.answered),
            refused: grown(self.refused, earlier.refused),
            queries: turns(self.queries, earlier.queries),
            changes: turns(self.changes, earlier.changes),
        }
    }
}

fn whole(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

fn list<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value[name].as_array().into_iter().flatten()
}

/// The classes of all devices.
fn classes(meters: &Value) -> impl Iterator<Item = &Value> {
    list(meters, "devices").flat_map(|device| list(device, "classes"))
}

/// Read-ahead by rule, all trees together.
fn ahead(meters: &Value) -> BTreeMap<String, Ahead> {
    let mut rules: BTreeMap<String, Ahead> = BTreeMap::new();
    for tree in list(meters, "trees") {
        for (rule, of) in tree["rules"].as_object().into_iter().flatten() {
            let sum = rules.entry(rule.clone()).or_default();
            sum.issued += whole(&of["issued"]);
            sum.unused += whole(&of["evicted_unused"]);
        }
    }
    rules
}
