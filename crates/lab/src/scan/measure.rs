//! The work of the devices during a cell.

use serde::Serialize;

use crate::LabError;
use crate::machine::diskstats::DiskCounts;
use crate::trace::event::Kind;
use crate::trace::session::Traced;
use crate::trace::target::TraceTarget;

/// Requests of all devices together during a cell; iostat's names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct ScanWork {
    /// Read requests.
    pub reads: u64,
    /// Bytes read from the devices.
    pub read_bytes: u64,
    /// Mean size of a read request, KiB.
    #[serde(rename = "rareq-sz")]
    pub rareq_kib: f64,
    /// Mean time of a read, ms.
    pub r_await: f64,
    /// Mean number of requests waiting or under way.
    #[serde(rename = "aqu-sz")]
    pub aqu: f64,
    /// Share of the time with a request under way, mean over the devices.
    #[serde(rename = "%util")]
    pub util: f64,
    /// Requests that did not begin where the one before had ended; by the trace.
    pub seeks: Option<u64>,
    /// Mean number of requests at the device itself; by the trace.
    pub depth: Option<f64>,
}

/// The counts of several devices at one moment.
///
/// # Errors
/// The kernel shows no counts of a device.
pub fn counts(targets: &[TraceTarget]) -> Result<Vec<DiskCounts>, LabError> {
    targets.iter().map(TraceTarget::counts).collect()
}

/// The work between two moments `elapsed_s` apart.
pub fn work(before: &[DiskCounts], after: &[DiskCounts], elapsed_s: f64) -> ScanWork {
    let mut sum = DiskCounts::default();
    for (before, after) in before.iter().zip(after) {
        let one = after.since(before);
        sum.reads += one.reads;
        sum.read_sectors += one.read_sectors;
        sum.read_ms += one.read_ms;
        sum.weighted_ms += one.weighted_ms;
        sum.busy_ms += one.busy_ms;
    }
    let ms = (elapsed_s * 1e3).max(1e-9);
    let reads = sum.reads.max(1) as f64;
    ScanWork {
        reads: sum.reads,
        read_bytes: sum.read_sectors * 512,
        rareq_kib: sum.read_sectors as f64 / 2.0 / reads,
        r_await: sum.read_ms as f64 / reads,
        aqu: sum.weighted_ms as f64 / ms,
        util: (sum.busy_ms as f64 / ms / before.len().max(1) as f64 * 100.0).min(100.0),
        seeks: None,
        depth: None,
    }
}

impl ScanWork {
    /// Adds what the traces of the devices know.
    pub fn with_traces(mut self, traces: &[Traced]) -> ScanWork {
        let sum = |of: &dyn Fn(&Traced) -> f64| traces.iter().map(of).sum::<f64>();
        if !traces.is_empty() {
            self.seeks = Some(sum(&|t| t.tally.apart() as f64) as u64);
            self.depth = Some(sum(&|t| t.tally.mean_depth()));
        }
        self
    }
}

/// Why the counts of a cell do not fit together.
pub fn disagreements(traces: &[Traced], work: &ScanWork) -> Vec<String> {
    let mut doubts: Vec<String> = traces.iter().flat_map(Traced::doubts).collect();
    let traced: u64 = traces.iter().map(|t| t.tally.of(Kind::Read).completed_sectors * 512).sum();
    if !traces.is_empty() && traced.abs_diff(work.read_bytes) as f64 > 0.02 * work.read_bytes as f64 {
        doubts.push(format!("{traced} bytes were read by the trace, {} by /proc/diskstats", work.read_bytes));
    }
    doubts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_work_in_the_names_of_iostat() {
        let before = [DiskCounts::default()];
        let after = [DiskCounts {
            reads: 100,
            read_sectors: 25_600,
            read_ms: 400,
            busy_ms: 900,
            weighted_ms: 2000,
            ..DiskCounts::default()
        }];
        let work = work(&before, &after, 1.0);
        assert_eq!((work.rareq_kib, work.r_await, work.aqu, work.util), (128.0, 4.0, 2.0, 90.0));
        assert_eq!((work.reads, work.read_bytes, work.seeks), (100, 13_107_200, None));
    }
}
