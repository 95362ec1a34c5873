//! Samples as text: the activity in a line each, trees and devices as tables.

use std::borrow::Cow;

use snowmelt_base::size;
use snowmelt_base::text_table::TextTable;

use super::sample::{Sample, SampleValue, number_of};
use crate::read::activity::{Activity, Short};

/// A column of a table, and the meter it shows.
struct TableColumn {
    head: &'static str,
    name: &'static str,
    show: fn(&SampleValue) -> String,
}

const fn column(head: &'static str, name: &'static str, show: fn(&SampleValue) -> String) -> TableColumn {
    TableColumn { head, name, show }
}

const TREES: [TableColumn; 9] = [
    column("touches", "trees[].touches", short),
    column("reads", "trees[].reads", short),
    column("read %", "trees[].read_percent", short),
    column("dirty", "trees[].dirty", short),
    column("buffers", "trees[].buffers", short),
    column("ahead", "trees[].ahead.issued", short),
    column("used", "trees[].ahead.used", short),
    column("unused", "trees[].ahead.evicted_unused", short),
    column("pages", "trees[].pages", short),
];

const CLASSES: [TableColumn; 10] = [
    column("wanted", "devices[].classes[].requests", short),
    column("requests", "devices[].classes[].device_requests", short),
    column("merged", "devices[].classes[].merged", short),
    column("MiB", "devices[].classes[].bytes", mib),
    column("gap MiB", "devices[].classes[].gap_bytes", mib),
    column("p50 ms", "devices[].classes[].latency.p50_ns", ms),
    column("p99 ms", "devices[].classes[].latency.p99_ns", ms),
    column("max ms", "devices[].classes[].latency.max_ns", ms),
    column("blocked", "devices[].classes[].blocked", short),
    column("wait ms", "devices[].classes[].wait_ns", ms),
];

/// Columns that trees can be sorted by.
pub const TREE_COLUMNS: [&str; 10] =
    ["tree", "touches", "reads", "read%", "dirty", "buffers", "ahead", "used", "unused", "pages"];

/// Puts the trees into the order of a column, the largest first; by name for `tree`. False when
/// there is no such column.
pub fn sort_trees(samples: &mut [Sample], by: &str) -> bool {
    if !TREE_COLUMNS.contains(&by) {
        return false;
    }
    let column = TREES.iter().find(|column| column.head.replace(' ', "") == by);
    let first = samples.iter().position(is_of_tree).unwrap_or(0);
    let len = samples[first..].iter().take_while(|sample| is_of_tree(sample)).count();
    let trees = &mut samples[first..first + len];
    let all = trees.to_vec();
    trees.sort_by_cached_key(|sample| {
        let of = column.map_or(0.0, |c| number_of(&all, c.name, &sample.labels[..1]));
        (std::cmp::Reverse(of as u64), sample.labels[0].1.clone())
    });
    true
}

fn is_of_tree(sample: &Sample) -> bool {
    sample.name.starts_with("trees[].")
}

/// All of it.
pub fn as_text(samples: &[Sample]) -> String {
    let activity = Activity::of_named(|name| number(samples, &format!("activity.{name}")) as u64);
    let mut out = format!("activity: {activity}\n");
    for (labels, activity) in accounts(samples) {
        out.push_str(&format!("  {labels}: {activity}\n"));
    }
    out.push_str(&format!("{}\n", reads_line(samples)));
    out.push_str(&format!("trees:\n{}", trees(samples)));
    out.push_str(&format!("devices:\n{}", devices(samples)));
    out.push_str(&costs(samples));
    out.push_str(&pool_line(samples));
    out.push_str(&journal_lines(samples));
    out.push_str(&advice_lines(samples));
    out
}

/// Advice of a server, if it gives any.
fn advice_lines(samples: &[Sample]) -> String {
    let line = |sample: &Sample| match &sample.value {
        SampleValue::Text(line) if sample.name == "advice[].text" => Some(format!("  {line}\n")),
        _ => None,
    };
    let lines: String = samples.iter().filter_map(line).collect();
    if lines.is_empty() { lines } else { format!("advice:\n{lines}") }
}

/// Accounts that did something.
fn accounts(samples: &[Sample]) -> Vec<(String, Activity)> {
    let of = |labels: Labels<'_>| {
        let value = |name: &str| number_of(samples, &format!("accounts[].{name}"), labels) as u64;
        (labels[0].1.clone(), Activity::of_named(value))
    };
    let all = rows(samples, "accounts[].rnd").into_iter().map(of);
    all.filter(|(_, activity)| *activity != Activity::default()).collect()
}

/// The reads, by way and cost.
pub(super) fn reads_line(samples: &[Sample]) -> String {
    let of = |name: &str| number(samples, &format!("reads.{name}"));
    format!(
        "{} pages read, {} of them ahead ({:.0} %), of which {:.0} % used; {} requests of {:.1} KiB on average, depth {:.1}",
        Short(of("pages") as u64),
        Short(of("ahead") as u64),
        100.0 * of("ahead_share"),
        100.0 * of("used_share"),
        Short(of("requests") as u64),
        of("request_bytes") / 1024.0,
        of("mean_depth"),
    )
}

/// The trees that have been touched or read, or are in memory.
pub(super) fn trees(samples: &[Sample]) -> String {
    let seen = ["trees[].touches", "trees[].reads", "trees[].buffers", "trees[].dirty"];
    let keep = |labels: Labels<'_>| seen.iter().any(|name| number_of(samples, name, labels) > 0.0);
    table(samples, &["tree"], &TREES, keep, |_, label| label.to_owned())
}

/// The classes of each device that had requests, or a reader waiting.
fn devices(samples: &[Sample]) -> String {
    let seen = ["devices[].classes[].requests", "devices[].classes[].blocked"];
    let keep = |labels: Labels<'_>| seen.iter().any(|name| number_of(samples, name, labels) > 0.0);
    table(samples, &["device", "class"], &CLASSES, keep, |at, label| {
        if at == 0 { short_name(label) } else { label.to_owned() }
    })
}

/// Beliefs about each device.
fn costs(samples: &[Sample]) -> String {
    let line = |labels: Labels<'_>| {
        let of = |name: &str| number_of(samples, &format!("devices[].costs.{name}"), labels);
        let learned = match of("learned") as u64 {
            0 => "not learned yet".to_owned(),
            times => format!("learned in {} looks", Short(times)),
        };
        let sure = |figure: &str| {
            let source = text_of(samples, &format!("devices[].costs.{figure}_source"), labels);
            match of(&format!("{figure}_confidence")) {
                0.0 => source.to_owned(),
                sure => format!("{source}, {:.0} % sure", 100.0 * sure),
            }
        };
        format!(
            "costs of {}: {} requests/s ({}) or {}/s ({}), a lone one {:.3} ms, {} fill it; {learned}\n",
            short_name(&labels[0].1),
            Short((1e9 / of("request_ns").max(1.0)) as u64),
            sure("request"),
            size::precise(of("bytes_per_s") as u64),
            sure("bytes"),
            of("latency_ns") / 1e6,
            of("depth"),
        )
    };
    let all = rows(samples, "devices[].costs.learned").into_iter();
    all.map(|labels| line(labels) + &costs_of_writes(samples, labels)).collect()
}

/// Beliefs about the writes of a device.
fn costs_of_writes(samples: &[Sample], labels: Labels<'_>) -> String {
    let of = |name: &str| number_of(samples, &format!("devices[].write_costs.{name}"), labels);
    let learned = match of("learned") as u64 {
        0 => "not learned yet".to_owned(),
        times => format!("learned in {} looks", Short(times)),
    };
    format!(
        "writes to {}: {}/s or {}/s, a lone one {:.3} ms, a flush {:.3} ms and {:.3} ms for each write before it; \
         {learned}\n",
        short_name(&labels[0].1),
        Short((1e9 / of("request_ns").max(1.0)) as u64),
        size::precise((1e9 * f64::from(1 << 20) / of("mebibyte_ns").max(1.0)) as u64),
        of("latency_ns") / 1e6,
        of("flush_ns") / 1e6,
        of("deferred_ns") / 1e6,
    )
}

fn pool_line(samples: &[Sample]) -> String {
    let of = |name: &str| number(samples, name) as u64;
    format!(
        "pool: {} of {} frames used, {} pages resident; memory: {} of {} reserved\n",
        Short(of("pool.frames") - of("pool.fresh_frames")),
        Short(of("pool.frames")),
        Short(of("pool.resident")),
        size::precise(of("memory.used_bytes")),
        size::precise(of("memory.total_bytes")),
    )
}

fn journal_lines(samples: &[Sample]) -> String {
    let of = |name: &str| number(samples, &format!("journal.{name}"));
    let mut out = format!(
        "journal: {} commits, {} syncs of {:.1} records, p99 {:.3} ms; {} appended, {} written; readers waited {} times, {:.3} ms\n",
        Short(of("commits") as u64),
        Short(of("syncs") as u64),
        of("group_size"),
        of("sync_latency.p99_ns") / 1e6,
        size::precise(of("appended_bytes") as u64),
        size::precise(of("written_bytes") as u64),
        Short(of("blocked") as u64),
        of("wait_ns") / 1e6,
    );
    out.push_str(&format!(
        "checkpoints: {} ended, {} pages written back; {} pages with {} versions wait, {} of journal, {:.2} s of recovery\n",
        Short(of("checkpoints.ended") as u64),
        Short(of("checkpoints.pages_written_back") as u64),
        Short(of("version_table.pages") as u64),
        Short(of("version_table.versions") as u64),
        size::precise(of("checkpoints.backlog_bytes") as u64),
        of("estimated_recovery_seconds"),
    ));
    out
}

type Labels<'a> = &'a [(Cow<'static, str>, String)];

/// The labels of the samples of that name, in their order.
fn rows<'a>(samples: &'a [Sample], name: &str) -> Vec<Labels<'a>> {
    samples.iter().filter(|sample| sample.name == name).map(|sample| &sample.labels[..]).collect()
}

/// The text of a sample; empty when there is none.
fn text_of<'a>(samples: &'a [Sample], name: &str, labels: Labels<'_>) -> &'a str {
    let found = samples.iter().find(|sample| sample.name == name && sample.labels == labels);
    match found.map(|sample| &sample.value) {
        Some(SampleValue::Text(text)) => text,
        _ => "",
    }
}

/// A table with a row for each entry, its labels first.
fn table(
    samples: &[Sample],
    labels: &[&str],
    columns: &[TableColumn],
    keep: impl Fn(Labels<'_>) -> bool,
    label: impl Fn(usize, &str) -> String,
) -> String {
    let head: Vec<&str> = labels.iter().copied().chain(columns.iter().map(|c| c.head)).collect();
    let mut table = TextTable::new(&head);
    for of in rows(samples, columns[0].name).into_iter().filter(|of| keep(of)) {
        let cell = |column: &TableColumn| {
            let found = samples.iter().find(|s| s.name == column.name && s.labels == of);
            found.map_or_else(String::new, |sample| (column.show)(&sample.value))
        };
        let named = of.iter().enumerate().map(|(at, (_, of))| label(at, of));
        table.row(named.chain(columns.iter().map(cell)).collect());
    }
    table.render()
}

fn number(samples: &[Sample], name: &str) -> f64 {
    number_of(samples, name, &[])
}

fn short(value: &SampleValue) -> String {
    Short(value.count()).to_string()
}

fn mib(value: &SampleValue) -> String {
    format!("{:.1}", value.number() / f64::from(1 << 20))
}

fn ms(value: &SampleValue) -> String {
    format!("{:.3}", value.number() / 1e6)
}

/// The last two parts of a path.
fn short_name(device: &str) -> String {
    let mut parts = device.rsplit('/');
    match (parts.next(), parts.next()) {
        (Some(file), Some(dir)) => format!("{dir}/{file}"),
        _ => device.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::Samples;
    use super::*;

    fn samples() -> Vec<Sample> {
        let mut out = Samples::default();
        out.level("pool.frames", "frames", 9);
        for (tree, touches, reads) in [("psog", 12_345, 7), ("sp", 9, 70), ("gs", 0, 0)] {
            out.labelled("tree", tree, |out| {
                out.count("trees[].touches", "rows", touches);
                out.count("trees[].reads", "pages", reads);
                out.labelled("rule", "scan", |out| out.count("trees[].rules.*.used", "pages", 3));
            });
        }
        out.level("memory.total_bytes", "bytes", 1);
        out.into_list()
    }

    fn order(samples: &[Sample]) -> Vec<&str> {
        rows(samples, "trees[].reads").iter().map(|labels| labels[0].1.as_str()).collect()
    }

    #[test]
    fn trees_are_sorted_by_a_column_with_all_they_have() {
        let mut sorted = samples();
        assert!(sort_trees(&mut sorted, "reads"));
        assert_eq!(order(&sorted), ["sp", "psog", "gs"]);
        assert_eq!(sorted.len(), samples().len());
        let of_sp: Vec<_> = sorted[1..4].iter().map(|s| (&*s.name, &*s.labels[0].1)).collect();
        let names = ["trees[].touches", "trees[].reads", "trees[].rules.*.used"];
        assert_eq!(of_sp, names.map(|name| (name, "sp")));
        assert!(sort_trees(&mut sorted, "tree"));
        assert_eq!(order(&sorted), ["gs", "psog", "sp"]);
        assert!(!sort_trees(&mut sorted, "price"));
    }

    #[test]
    fn costs_of_reads_and_writes_have_a_line_each() {
        let mut out = Samples::default();
        out.labelled("device", "/data/stripe-0", |out| {
            out.level("devices[].costs.learned", "times", 0);
            for (name, ns) in [
                ("request_ns", 4_000_000),
                ("mebibyte_ns", 8_000_000),
                ("latency_ns", 2_000_000),
                ("flush_ns", 5_000_000),
                ("deferred_ns", 250_000),
            ] {
                out.level(format!("devices[].write_costs.{name}"), "ns", ns);
            }
            out.level("devices[].write_costs.learned", "times", 7);
        });
        let costs = costs(&out.into_list());
        let lines: Vec<&str> = costs.lines().collect();
        assert!(lines[0].starts_with("costs of ") && lines[0].ends_with("not learned yet"), "{costs}");
        for part in ["250/s", "125.0 MiB/s", "one 2.000 ms", "a flush 5.000 ms", "0.250 ms", "in 7 looks"] {
            assert!(lines[1].starts_with("writes to ") && lines[1].contains(part), "{part}: {costs}");
        }
    }

    #[test]
    fn every_column_sorts() {
        let heads = TREES.iter().map(|column| column.head.replace(' ', ""));
        let all: Vec<String> = std::iter::once("tree".to_owned()).chain(heads).collect();
        assert_eq!(all, TREE_COLUMNS);
    }

    #[test]
    fn advice_is_at_the_end_if_there_is_any() {
        assert!(!as_text(&samples()).contains("advice"));
        let mut out = Samples::default();
        out.labelled("topic", "pool", |out| out.level("advice[].text", "text", "more".to_owned()));
        let all = [samples(), out.into_list()].concat();
        assert!(as_text(&all).ends_with("recovery\nadvice:\n  more\n"), "{}", as_text(&all));
    }

    #[test]
    fn trees_that_did_nothing_are_left_out() {
        let text = trees(&samples());
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1][..3], ["psog", "12.35K", "7"]);
        assert_eq!(lines[2][..3], ["sp", "9", "70"]);
        assert_eq!(lines.len(), 3);
    }
}
