//! The registry: every meter by its name, with its unit and how it moves.
//!
//! The book's page on meters has a row for each name; a test compares names and units.

use snowmelt_io::{Class, Latency, WriteCost};

use super::sample::{Sample, SampleKind, SampleValue, Samples, number_of};
use super::{DeviceStats, Report};
use crate::page::PAGE_BYTES;
use crate::pool::rule::Rule;
use crate::read::activity::Activity;
use crate::read::system_statistics::SystemStatistics;
use crate::read::tree_meter::{AheadStats, TreeStats};
use crate::read::waits::WaitStats;
use crate::sync::waits::WaitTimes;

/// How a derived meter is made of two others with the same labels.
struct Formula {
    name: &'static str,
    of: &'static str,
    by: &'static str,
    way: Way,
}

/// Ways to make a value of two.
#[derive(Clone, Copy)]
enum Way {
    /// One by the other; 0 where that is 0.
    Quotient,
    /// floor(100 · reads ÷ (touches + 1)).
    Percent,
}

const fn quotient(name: &'static str, of: &'static str, by: &'static str) -> Formula {
    Formula { name, of, by, way: Way::Quotient }
}

/// All of them.
const FORMULAS: [Formula; 11] = [
    quotient("reads.ahead_share", "reads.ahead", "reads.pages"),
    quotient("reads.used_share", "reads.ahead_used", "reads.ahead_issued"),
    quotient("reads.request_bytes", "reads.bytes", "reads.requests"),
    quotient("reads.mean_depth", "reads.depth_ns", "reads.busy_ns"),
    quotient("reads.amplification", "reads.bytes", "reads.used_bytes"),
    Formula { name: "trees[].read_percent", of: "trees[].reads", by: "trees[].touches", way: Way::Percent },
    quotient("devices[].mean_depth", "devices[].depth_ns", "devices[].busy_ns"),
    quotient(
        "devices[].classes[].latency.mean_ns",
        "devices[].classes[].latency_ns",
        "devices[].classes[].latency.count",
    ),
    quotient("journal.group_size", "journal.synced_records", "journal.syncs"),
    quotient("journal.bytes_per_commit", "journal.appended_bytes", "journal.commits"),
    quotient(
        "journal.last_recovery.request_bytes",
        "journal.last_recovery.read_bytes",
        "journal.last_recovery.requests",
    ),
];

/// Fills in the samples that are made of others.
pub(super) fn derive(samples: &mut [Sample]) {
    for at in 0..samples.len() {
        if samples[at].kind != SampleKind::Derived {
            continue;
        }
        let Some(formula) = FORMULAS.iter().find(|formula| samples[at].name == formula.name) else {
            debug_assert!(false, "{} has a formula", samples[at].name);
            continue;
        };
        let labels = &samples[at].labels;
        let (of, by) = (number_of(samples, formula.of, labels), number_of(samples, formula.by, labels));
        samples[at].value = match formula.way {
            Way::Quotient if by == 0.0 => SampleValue::Real(0.0),
            Way::Quotient => SampleValue::Real(of / by),
            Way::Percent => SampleValue::Whole((100.0 * of / (by + 1.0)) as u64),
        };
    }
}

/// The samples of a report.
pub(super) fn samples(report: &Report) -> Vec<Sample> {
    let mut out = Samples::default();
    activity(&mut out, "activity", &report.activity);
    for account in &report.accounts {
        out.labelled("account", &account.name, |out| activity(out, "accounts[]", &account.activity));
    }
    reads(&mut out, report);
    for tree in &report.trees {
        out.labelled("tree", &tree.name, |out| of_tree(out, tree));
    }
    for device in &report.devices {
        out.labelled("device", &device.counters.device, |out| of_device(out, device));
    }
    pool(&mut out, report);
    journal(&mut out, report);
    versions_and_checkpoints(&mut out, report);
    last_recovery(&mut out, report);
    let mut list = out.into_list();
    derive(&mut list);
    list
}

fn activity(out: &mut Samples, prefix: &str, activity: &Activity) {
    for (name, unit, value) in activity.named() {
        out.count(format!("{prefix}.{name}"), unit, value);
    }
}

fn reads(out: &mut Samples, report: &Report) {
    let ahead = report.ahead_total();
    out.count("reads.pages", "pages", report.pages_read());
    out.count("reads.ahead", "pages", report.activity.spec_disk);
    out.count("reads.ahead_issued", "pages", ahead.issued);
    out.count("reads.ahead_used", "pages", ahead.used);
    out.count("reads.used_bytes", "bytes", report.pages_used() * PAGE_BYTES as u64);
    out.count("reads.requests", "requests", report.requests());
    out.count("reads.bytes", "bytes", report.bytes());
    out.count("reads.busy_ns", "ns", report.devices.iter().map(|d| d.counters.busy_ns).sum::<u64>());
    out.count("reads.depth_ns", "ns", report.devices.iter().map(|d| d.counters.depth_ns).sum::<u64>());
    out.derived("reads.ahead_share", "share");
    out.derived("reads.used_share", "share");
    out.derived("reads.request_bytes", "bytes");
    out.derived("reads.mean_depth", "requests");
    out.derived("reads.amplification", "ratio");
}

fn of_tree(out: &mut Samples, tree: &TreeStats) {
    out.count("trees[].touches", "rows", tree.touches);
    out.count("trees[].reads", "pages", tree.reads);
    out.derived("trees[].read_percent", "%");
    out.level("trees[].dirty", "pages", tree.dirty);
    out.level("trees[].buffers", "pages", tree.resident);
    out.level("trees[].pages", "pages", tree.pages);
    let AheadStats { issued, used, evicted_unused } = tree.ahead_total();
    out.count("trees[].ahead.issued", "pages", issued);
    out.count("trees[].ahead.used", "pages", used);
    out.count("trees[].ahead.evicted_unused", "pages", evicted_unused);
    for rule in Rule::ALL {
        let AheadStats { issued, used, evicted_unused } = tree.ahead[rule.index()];
        out.labelled("rule", rule.name(), |out| {
            out.count("trees[].rules.*.issued", "pages", issued);
            out.count("trees[].rules.*.used", "pages", used);
            out.count("trees[].rules.*.evicted_unused", "pages", evicted_unused);
        });
    }
    out.count("trees[].journaled.images", "pages", tree.journaled.images);
    out.count("trees[].journaled.image_bytes", "bytes", tree.journaled.image_bytes);
    out.count("trees[].journaled.diffs", "pages", tree.journaled.diffs);
    out.count("trees[].journaled.diff_bytes", "bytes", tree.journaled.diff_bytes);
}

fn of_device(out: &mut Samples, device: &DeviceStats) {
    let counters = &device.counters;
    out.level("devices[].engine", "text", counters.engine.to_owned());
    out.count("devices[].busy_ns", "ns", counters.busy_ns);
    out.count("devices[].depth_ns", "ns", counters.depth_ns);
    out.derived("devices[].mean_depth", "requests");
    out.count("devices[].service.count", "requests", counters.service.count);
    out.level("devices[].service.mean_ns", "ns", counters.service.mean_ns);
    percentiles(out, "devices[].service", &counters.service);
    let cost = &counters.cost;
    out.level("devices[].costs.latency_ns", "ns", cost.latency_ns);
    out.level("devices[].costs.request_ns", "ns", cost.ns_per_request);
    out.level("devices[].costs.bytes_per_s", "bytes/s", cost.bytes_per_s);
    out.level("devices[].costs.depth", "requests", u64::from(cost.best_depth()));
    out.level("devices[].costs.request_share", "share", cost.request_share());
    let evidence = &counters.evidence;
    out.level("devices[].costs.learned", "times", evidence.looks);
    out.level("devices[].costs.request_confidence", "share", evidence.requests);
    out.level("devices[].costs.bytes_confidence", "share", evidence.bytes);
    out.level("devices[].costs.request_source", "text", evidence.requests_from.as_str().to_owned());
    out.level("devices[].costs.bytes_source", "text", evidence.bytes_from.as_str().to_owned());
    write_costs(out, "devices[].write_costs", &counters.write_cost);
    let SystemStatistics { single, multi, .. } = &device.statistics;
    for (name, time) in [("single", single), ("multi", multi)] {
        let prefix = format!("devices[].read_times.{name}");
        out.level(format!("{prefix}.us"), "us", time.us);
        out.level(format!("{prefix}.pages"), "pages", time.pages);
        out.level(format!("{prefix}.depth"), "requests", time.depth);
        out.level(format!("{prefix}.reads"), "reads", time.reads);
        out.level(format!("{prefix}.source"), "text", time.source.name().to_owned());
    }
    for class in &counters.classes {
        let WaitStats { blocked, wait_ns } = device.waits[class.class as usize];
        out.labelled("class", class.class.name(), |out| {
            out.count("devices[].classes[].requests", "requests", class.requests);
            out.count("devices[].classes[].device_requests", "requests", class.device_requests);
            out.count("devices[].classes[].bytes", "bytes", class.bytes);
            out.count("devices[].classes[].merged", "requests", class.merged);
            out.count("devices[].classes[].gap_bytes", "bytes", class.gap_bytes);
            out.count("devices[].classes[].in_place", "requests", class.in_place);
            out.count("devices[].classes[].errors", "requests", class.errors);
            out.count("devices[].classes[].retried", "requests", class.retried);
            out.count("devices[].classes[].latency.count", "requests", class.latency.count);
            out.count("devices[].classes[].latency_ns", "ns", class.latency_ns);
            out.derived("devices[].classes[].latency.mean_ns", "ns");
            percentiles(out, "devices[].classes[].latency", &class.latency);
            out.count("devices[].classes[].blocked", "times", blocked);
            out.count("devices[].classes[].wait_ns", "ns", wait_ns);
        });
    }
    debug_assert_eq!(counters.classes.len(), Class::COUNT, "every class is counted");
}

fn write_costs(out: &mut Samples, prefix: &str, cost: &WriteCost) {
    const MIB: u64 = 1 << 20;
    let mebibyte_ns = (u128::from(MIB) * 1_000_000_000 / u128::from(cost.bytes_per_s.max(1))) as u64;
    for (name, ns) in [
        ("latency_ns", cost.latency_ns),
        ("request_ns", cost.ns_per_request),
        ("mebibyte_ns", mebibyte_ns),
        ("flush_ns", cost.flush_ns),
        ("deferred_ns", cost.deferred_ns),
    ] {
        out.level(format!("{prefix}.{name}"), "ns", ns);
    }
    out.level(format!("{prefix}.learned"), "times", cost.learned);
}

fn percentiles(out: &mut Samples, prefix: &str, latency: &Latency) {
    let Latency { p50_ns, p90_ns, p99_ns, p999_ns, max_ns, .. } = *latency;
    for (name, ns) in
        [("p50_ns", p50_ns), ("p90_ns", p90_ns), ("p99_ns", p99_ns), ("p999_ns", p999_ns), ("max_ns", max_ns)]
    {
        out.level(format!("{prefix}.{name}"), "ns", ns);
    }
}

fn pool(out: &mut Samples, report: &Report) {
    let pool = &report.pool;
    out.level("pool.frames", "frames", pool.frames);
    out.level("pool.fresh_frames", "frames", pool.fresh_frames);
    out.level("pool.resident", "pages", pool.resident);
    out.level("pool.regret", "share", pool.regret);
    out.count("pool.left", "pages", pool.left);
    out.count("pool.wanted_again", "pages", pool.wanted_again);
    out.level("memory.total_bytes", "bytes", pool.memory_bytes);
    out.level("memory.used_bytes", "bytes", pool.memory_used_bytes);
    out.level("memory.peak_bytes", "bytes", pool.memory_peak_bytes);
    out.level("memory.dictionary_bytes", "bytes", pool.dictionary_bytes);
    waits(out, "memory.waits", "requests", &report.memory_waits);
    waits(out, "memory.waits_to_parse", "requests", &report.parsing_waits);
    waits(out, "endpoint_waits", "waits", &report.endpoint_waits);
}

fn journal(out: &mut Samples, report: &Report) {
    let j = &report.journal;
    out.count("journal.commits", "commits", j.commits);
    out.count("journal.records", "records", j.records);
    out.count("journal.synced_records", "records", j.synced_records);
    out.derived("journal.group_size", "records");
    out.count("journal.appended_bytes", "bytes", j.appended_bytes);
    out.derived("journal.bytes_per_commit", "bytes");
    out.count("journal.payload_bytes", "bytes", j.payload_bytes);
    out.count("journal.written_bytes", "bytes", j.written_bytes);
    out.count("journal.syncs", "syncs", j.syncs);
    out.count("journal.sync_latency.count", "syncs", j.sync_latency.count);
    out.level("journal.sync_latency.mean_ns", "ns", j.sync_latency.mean_ns);
    percentiles(out, "journal.sync_latency", &j.sync_latency);
    write_costs(out, "journal.write_costs", &j.write_cost);
    out.count("journal.files_recycled", "files", j.recycled);
    out.count("journal.blocked", "times", report.journal_waits.blocked);
    out.count("journal.wait_ns", "ns", report.journal_waits.wait_ns);
    out.level("journal.newest_transaction", "number", j.newest);
    out.level("journal.oldest_reader", "number", j.oldest_reader);
    out.level("journal.oldest_reader_seconds", "s", j.oldest_reader_ns as f64 / 1e9);
    out.level("journal.oldest_reader_account", "text", j.oldest_reader_account.clone());
    out.level("journal.held_back_bytes", "bytes", j.held_bytes);
    out.level("journal.file_bytes", "bytes", j.file_bytes);
    out.count("journal.cancelled_readers", "readers", j.cancelled_readers);
    out.level("journal.poisoned", "text", j.poisoned.clone());
    out.level("journal.estimated_recovery_seconds", "s", j.recovery_s);
    out.level("journal.recovery_bound_bytes", "bytes", j.bound_bytes);
    out.count("journal.slowed_near_the_bound.transactions", "transactions", j.slowed);
    out.count("journal.slowed_near_the_bound.seconds", "s", j.slowed_ns as f64 / 1e9);
    out.level("journal.slowed_near_the_bound.longest_seconds", "s", j.longest_slowed_ns as f64 / 1e9);
    waits(out, "journal.waits_for_turn", "transactions", &j.turn_waits);
    waits(out, "journal.waits_for_room", "transactions", &j.room_waits);
}

/// Waits of requests, or of the transactions among them.
fn waits(out: &mut Samples, name: &str, who: &'static str, waits: &WaitTimes) {
    out.level(format!("{name}.now"), who, waits.now);
    out.count(format!("{name}.{who}"), who, waits.count);
    out.count(format!("{name}.seconds"), "s", waits.ns as f64 / 1e9);
    out.level(format!("{name}.longest_seconds"), "s", waits.longest_ns as f64 / 1e9);
}

fn versions_and_checkpoints(out: &mut Samples, report: &Report) {
    let j = &report.journal;
    out.level("journal.version_table.pages", "pages", j.versioned_pages);
    out.level("journal.version_table.versions", "versions", j.versions);
    out.level("journal.version_table.in_memory", "versions", j.versions_in_memory);
    out.level("journal.version_table.bytes", "bytes", j.versions_bytes);
    out.count("journal.checkpoints.ended", "checkpoints", j.checkpoints);
    out.count("journal.checkpoints.pages_written_back", "pages", j.written_back);
    out.level("journal.checkpoints.up_to_transaction", "number", j.checkpointed);
    out.level("journal.checkpoints.backlog_bytes", "bytes", j.bytes_to_recover);
    out.level("journal.checkpoints.stalled", "text", j.stalled.clone());
}

fn last_recovery(out: &mut Samples, report: &Report) {
    let r = &report.recovery;
    out.level("journal.last_recovery.journal_files", "files", r.files);
    out.level("journal.last_recovery.read_bytes", "bytes", r.read_bytes);
    out.level("journal.last_recovery.requests", "requests", r.requests);
    out.derived("journal.last_recovery.request_bytes", "bytes");
    out.level("journal.last_recovery.concurrency", "requests", r.concurrency);
    out.level("journal.last_recovery.records", "records", r.records);
    out.level("journal.last_recovery.commits", "commits", r.commits);
    out.level("journal.last_recovery.pages", "pages", r.pages);
    out.level("journal.last_recovery.pages_in_memory", "pages", r.pages_in_memory);
    out.level("journal.last_recovery.newest_commits_in_memory", "commits", r.newest_commits_in_memory);
    out.level("journal.last_recovery.seconds", "s", r.seconds);
}
