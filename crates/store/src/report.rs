//! All meters of a store at one moment, and how they are shown.
//!
//! 1. [`Report`]: the numbers. [`Store::report`] takes them.
//! 2. `registry`: what each number is called, its unit, whether it grows. It turns a report into
//!    a list of [`Sample`](sample::Sample)s, and is the one place that knows names of meters.
//! 3. `reset`: counting anew.
//! 4. Views of the list: `json`, `table`, `prometheus`, and `interval` for the difference of two.
//!    They need no store: the samples of a server are shown by the process that asked for them.

pub(crate) mod interval;
pub(crate) mod json;
pub(crate) mod prometheus;
mod registry;
pub(crate) mod reset;
pub(crate) mod sample;
pub(crate) mod table;

use std::collections::HashMap;
use std::fmt;

use serde_json::Value;
use snowmelt_io::{Class, DeviceCounters};

use crate::journal::meters::JournalStats;
use crate::page::{PAGE_BYTES, TreeId};
use crate::pool::rule::Rule;
use crate::read::activity::Activity;
use crate::read::system_statistics::SystemStatistics;
use crate::read::tree_meter::{AheadStats, TreeStats};
use crate::read::waits::WaitStats;
use crate::recovery::RecoveryTrace;
use crate::report::sample::Sample;
use crate::store::Store;
use crate::sync::waits::WaitTimes;

/// All meters of a store at one moment.
///
/// Sums agree when nothing is under way: a reader adds its activity when it is flushed.
#[derive(Clone, Debug)]
pub struct Report {
    /// The activity of all accounts together.
    pub activity: Activity,
    /// The activity by account.
    pub accounts: Vec<AccountStats>,
    /// Tree by tree, most reads first.
    pub trees: Vec<TreeStats>,
    /// Stripe by stripe.
    pub devices: Vec<DeviceStats>,
    /// The pool and the memory budget.
    pub pool: PoolStats,
    /// Commits, journal, versions and checkpoints.
    pub journal: JournalStats,
    /// Waits for memory of the budget.
    pub memory_waits: WaitTimes,
    /// Waits for a turn to parse.
    pub parsing_waits: WaitTimes,
    /// Waits of queries and updates for endpoints elsewhere.
    pub endpoint_waits: WaitTimes,
    /// How long readers waited for versions that only the journal has.
    pub journal_waits: WaitStats,
    /// Reads of the journal at opening.
    pub recovery: RecoveryTrace,
}

/// Activity on behalf of a named account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountStats {
    /// Its name.
    pub name: String,
    /// Its activity.
    pub activity: Activity,
}

/// A stripe's device.
#[derive(Clone, Debug)]
pub struct DeviceStats {
    /// Requests, by class.
    pub counters: DeviceCounters,
    /// How long readers waited for pages of it, in the order of [`Class::ALL`].
    pub waits: [WaitStats; Class::COUNT],
    /// Times of its reads, as the optimiser knows them.
    pub statistics: SystemStatistics,
}

/// The pool and the memory budget.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PoolStats {
    /// Frames, all stores together that share them.
    pub frames: u64,
    /// Those never used so far.
    pub fresh_frames: u64,
    /// Pages of this store in them.
    pub resident: u64,
    /// The share of the pages that had to leave and were wanted again soon.
    pub regret: f64,
    /// Pages that were used and had to leave, since the pool was made.
    pub left: u64,
    /// Those of them that were wanted again soon.
    pub wanted_again: u64,
    /// Bytes of the memory budget.
    pub memory_bytes: u64,
    /// Bytes of it that are reserved now, the pool's among them.
    pub memory_used_bytes: u64,
    /// The most that were reserved at once.
    pub memory_peak_bytes: u64,
    /// Bytes of the dictionaries of string trees that are in use.
    pub dictionary_bytes: u64,
}

impl Store {
    /// All meters as they are now. Looks through the version table and takes the counters of
    /// each queue under its lock.
    pub fn report(&self) -> Report {
        let meters = &self.fetch.core.meters;
        let accounts = meters.accounts().into_iter();
        let accounts =
            accounts.map(|a| AccountStats { name: a.name().to_owned(), activity: a.activity() }).collect();
        let trees = self.tree_report();
        let waits = self.fetch.waits.read();
        let devices = self.device_counters().into_iter().zip(waits).zip(self.system_statistics());
        let device = |((counters, waits), statistics)| DeviceStats { counters, waits, statistics };
        Report {
            activity: self.activity(),
            accounts,
            pool: self.pool_stats(trees.iter().map(|tree| tree.resident).sum()),
            trees,
            devices: devices.map(device).collect(),
            journal: self.journal_stats(),
            memory_waits: self.upper_waits().memory.read(),
            parsing_waits: self.upper_waits().parsing.read(),
            endpoint_waits: self.upper_waits().endpoint.read(),
            journal_waits: self.fetch.waits.read_journal(),
            recovery: self.recovery().clone(),
        }
    }

    fn tree_report(&self) -> Vec<TreeStats> {
        let mut dirty: HashMap<TreeId, u64> = HashMap::new();
        let core = &self.fetch.core;
        core.pages.versions.each_page(|pages| {
            let space = core.space.read();
            for tree in pages.into_iter().filter_map(|page| space.owner(page)) {
                *dirty.entry(tree).or_default() += 1;
            }
        });
        let mut trees = self.tree_stats();
        trees.push(core.meters.others(&trees));
        for tree in &mut trees {
            tree.dirty = dirty.remove(&TreeId(tree.tree)).unwrap_or(0);
        }
        if let Some(others) = trees.last_mut() {
            others.dirty = dirty.into_values().sum();
        }
        trees.sort_by_key(|tree| std::cmp::Reverse((tree.reads, tree.touches)));
        trees
    }

    fn pool_stats(&self, resident: u64) -> PoolStats {
        let (pool, memory) = (&self.fetch.core.pages.pool, self.memory());
        let (left, wanted_again) = pool.departures();
        PoolStats {
            frames: u64::from(pool.frame_count()),
            fresh_frames: u64::from(pool.fresh_left()),
            resident,
            regret: pool.regret(),
            left,
            wanted_again,
            memory_bytes: memory.total(),
            memory_used_bytes: memory.used(),
            memory_peak_bytes: memory.peak(),
            dictionary_bytes: self.codecs.memory_bytes(),
        }
    }
}

impl Report {
    /// The samples: see the head of the file.
    pub fn samples(&self) -> Vec<Sample> {
        registry::samples(self)
    }

    /// All of it as text.
    pub fn text(&self) -> String {
        table::as_text(&self.samples())
    }

    /// All of it as JSON.
    pub fn json(&self) -> Value {
        json::as_json(&self.samples())
    }

    /// The reads in a line, by way and cost.
    pub fn reads_line(&self) -> String {
        table::reads_line(&self.samples())
    }

    /// The table of the trees.
    pub fn trees_text(&self) -> String {
        table::trees(&self.samples())
    }

    /// Uses of the pages that one rule read, all trees together.
    pub fn ahead(&self, rule: Rule) -> AheadStats {
        self.trees.iter().fold(AheadStats::default(), |mut sum, tree| {
            sum += tree.ahead[rule.index()];
            sum
        })
    }

    /// Uses of all pages read ahead.
    pub fn ahead_total(&self) -> AheadStats {
        Rule::ALL.iter().fold(AheadStats::default(), |mut sum, rule| {
            sum += self.ahead(*rule);
            sum
        })
    }

    /// Pages whose read was started.
    pub fn pages_read(&self) -> u64 {
        self.trees.iter().map(|tree| tree.reads).sum()
    }

    /// Pages that were read and used: those a reader waited for, and those read ahead that
    /// a reader came to use.
    pub fn pages_used(&self) -> u64 {
        // both of them grow when a read begins: the difference never shrinks
        let ahead = self.ahead_total();
        self.pages_read().saturating_sub(ahead.issued) + ahead.used
    }

    /// Share of pages that came by read-ahead.
    pub fn ahead_share(&self) -> f64 {
        share(self.activity.spec_disk, self.pages_read())
    }

    /// Share of the pages read ahead that were used.
    pub fn used_share(&self) -> f64 {
        let ahead = self.ahead_total();
        share(ahead.used, ahead.issued)
    }

    /// Requests the devices got.
    pub fn requests(&self) -> u64 {
        self.devices.iter().map(|device| device.counters.device_requests()).sum()
    }

    /// Bytes the devices moved, those of gaps included.
    pub fn bytes(&self) -> u64 {
        self.devices.iter().map(|d| d.counters.bytes() + d.counters.gap_bytes()).sum()
    }

    /// Mean number of requests outstanding while a device was busy.
    pub fn depth(&self) -> f64 {
        let sum = |of: fn(&DeviceCounters) -> u64| self.devices.iter().map(|d| of(&d.counters)).sum();
        share(sum(|d| d.depth_ns), sum(|d| d.busy_ns))
    }

    /// Bytes moved ÷ bytes of the pages really used.
    pub fn amplification(&self) -> f64 {
        self.bytes() as f64 / (self.pages_used().max(1) * PAGE_BYTES as u64) as f64
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
