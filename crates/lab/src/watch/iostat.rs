//! The work of a device in a second, with the names and units of iostat -x.

use serde::{Deserialize, Serialize};

use crate::machine::diskstats::DiskCounts;

/// One device, one interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceSecond {
    /// Reads completed per second.
    #[serde(rename = "r/s")]
    pub r_s: f64,
    /// KiB read per second.
    #[serde(rename = "rkB/s")]
    pub rkb_s: f64,
    /// Reads merged per second before they were issued.
    #[serde(rename = "rrqm/s")]
    pub rrqm_s: f64,
    /// Share of reads merged.
    #[serde(rename = "%rrqm")]
    pub rrqm: f64,
    /// Mean time of a read, waiting included, ms.
    pub r_await: f64,
    /// Mean size of a read, KiB.
    #[serde(rename = "rareq-sz")]
    pub rareq_sz: f64,
    /// Writes completed per second.
    #[serde(rename = "w/s")]
    pub w_s: f64,
    /// KiB written per second.
    #[serde(rename = "wkB/s")]
    pub wkb_s: f64,
    /// Writes merged per second.
    #[serde(rename = "wrqm/s")]
    pub wrqm_s: f64,
    /// Share of writes merged.
    #[serde(rename = "%wrqm")]
    pub wrqm: f64,
    /// Mean time of a write, ms.
    pub w_await: f64,
    /// Mean size of a write, KiB.
    #[serde(rename = "wareq-sz")]
    pub wareq_sz: f64,
    /// Discards completed per second.
    #[serde(rename = "d/s")]
    pub d_s: f64,
    /// KiB discarded per second.
    #[serde(rename = "dkB/s")]
    pub dkb_s: f64,
    /// Mean time of a discard, ms.
    pub d_await: f64,
    /// Flushes completed per second.
    #[serde(rename = "f/s")]
    pub f_s: f64,
    /// Mean time of a flush, ms.
    pub f_await: f64,
    /// Mean number of requests waiting or under way.
    #[serde(rename = "aqu-sz")]
    pub aqu_sz: f64,
    /// Share of the time with a request under way; says nothing of the limit of a device that
    /// serves many at once.
    #[serde(rename = "%util")]
    pub util: f64,
}

impl DeviceSecond {
    /// Between two moments `seconds` apart.
    pub fn between(before: &DiskCounts, after: &DiskCounts, seconds: f64) -> DeviceSecond {
        let d = after.since(before);
        let seconds = seconds.max(1e-9);
        let rate = |n: u64| n as f64 / seconds;
        let each = |sum: u64, n: u64| if n == 0 { 0.0 } else { sum as f64 / n as f64 };
        let share = |merged: u64, done: u64| each(merged * 100, merged + done);
        DeviceSecond {
            r_s: rate(d.reads),
            rkb_s: rate(d.read_sectors) / 2.0,
            rrqm_s: rate(d.read_merges),
            rrqm: share(d.read_merges, d.reads),
            r_await: each(d.read_ms, d.reads),
            rareq_sz: each(d.read_sectors, d.reads) / 2.0,
            w_s: rate(d.writes),
            wkb_s: rate(d.write_sectors) / 2.0,
            wrqm_s: rate(d.write_merges),
            wrqm: share(d.write_merges, d.writes),
            w_await: each(d.write_ms, d.writes),
            wareq_sz: each(d.write_sectors, d.writes) / 2.0,
            d_s: rate(d.discards),
            dkb_s: rate(d.discard_sectors) / 2.0,
            d_await: each(d.discard_ms, d.discards),
            f_s: rate(d.flushes),
            f_await: each(d.flush_ms, d.flushes),
            aqu_sz: d.weighted_ms as f64 / (seconds * 1e3),
            util: (d.busy_ms as f64 / (seconds * 10.0)).min(100.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_iostat_computes_it() {
        let before = DiskCounts::default();
        let after = DiskCounts {
            reads: 300,
            read_merges: 100,
            read_sectors: 4800,
            read_ms: 600,
            flushes: 4,
            flush_ms: 10,
            busy_ms: 1000,
            weighted_ms: 3000,
            ..before
        };
        let s = DeviceSecond::between(&before, &after, 2.0);
        assert_eq!((s.r_s, s.rkb_s, s.rrqm_s, s.rrqm), (150.0, 1200.0, 50.0, 25.0));
        assert_eq!((s.r_await, s.rareq_sz, s.aqu_sz, s.util), (2.0, 8.0, 1.5, 50.0));
        assert_eq!((s.f_s, s.f_await, s.w_await), (2.0, 2.5, 0.0));
    }
}
