//! The work of the devices during a cell.

use serde::Serialize;

use super::plan::Setup;
use crate::LabError;
use crate::machine::diskstats::DiskCounts;
use crate::machine::others::Moved;
use crate::machine::program::ProcessIo;
use crate::trace::event::RequestKind;
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
    /// Mean number of requests waiting or under way while there was any: the evidence of
    /// asynchronous reads.
    pub in_flight: f64,
    /// Share of the time with a request under way, mean over the devices.
    #[serde(rename = "%util")]
    pub util: f64,
    /// Requests that did not begin where the one before had ended; by the trace.
    pub seeks: Option<u64>,
    /// Mean number of requests at the device itself; by the trace.
    pub depth: Option<f64>,
    /// Reads for the scan alone; by the trace. Nothing where a server reads for it.
    pub own: Option<Moved>,
    /// Bytes read that the scan did not ask for; by /proc/self/io. Nothing where a server reads.
    pub others_bytes: Option<u64>,
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
    let mut in_flight = 0.0;
    let ms = (elapsed_s * 1e3).max(1e-9);
    for (before, after) in before.iter().zip(after) {
        let one = after.since(before);
        sum.reads += one.reads;
        sum.read_sectors += one.read_sectors;
        sum.read_ms += one.read_ms;
        sum.weighted_ms += one.weighted_ms;
        sum.busy_ms += one.busy_ms;
        // The kernel counts busy time in ticks of its clock, which may add up to more.
        in_flight += one.weighted_ms as f64 / (one.busy_ms as f64).min(ms).max(1.0);
    }
    let reads = sum.reads.max(1) as f64;
    ScanWork {
        reads: sum.reads,
        read_bytes: sum.read_sectors * 512,
        rareq_kib: sum.read_sectors as f64 / 2.0 / reads,
        r_await: sum.read_ms as f64 / reads,
        aqu: sum.weighted_ms as f64 / ms,
        in_flight,
        util: (sum.busy_ms as f64 / ms / before.len().max(1) as f64 * 100.0).min(100.0),
        seeks: None,
        depth: None,
        own: None,
        others_bytes: None,
    }
}

impl ScanWork {
    /// Adds the part of this process and its children, which had `io` meanwhile.
    pub fn with_own(mut self, traces: &[Traced], io: ProcessIo) -> ScanWork {
        let own = |traced: &Traced| traced.tally.own.get(&RequestKind::Read).copied().unwrap_or_default();
        self.own = traces.iter().map(own).reduce(Moved::plus);
        self.others_bytes = Some(self.read_bytes.saturating_sub(io.read_bytes));
        self
    }

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
    let traced: u64 = traces.iter().map(|t| t.tally.counts(RequestKind::Read).completed_sectors * 512).sum();
    // The trace is a little longer than the scan: others' reads at its ends are in it.
    let others = work.others_bytes.unwrap_or(0) as f64 > 0.02 * work.read_bytes as f64;
    if !traces.is_empty()
        && !others
        && traced.abs_diff(work.read_bytes) as f64 > 0.02 * work.read_bytes as f64
    {
        doubts.push(format!("{traced} bytes were read by the trace, {} by /proc/diskstats", work.read_bytes));
    }
    doubts
}

/// Reads that all workers of a cell keep in flight; nothing where they do not read on their own.
pub fn asked_at_once(setup: &Setup, dop: u32) -> Option<u64> {
    setup.reads.map(|reads| u64::from(reads.depth) * u64::from(setup.users) * u64::from(dop))
}

/// Factor by which synchronous workers may exceed it by chance.
const MARGIN: f64 = 1.05;

/// Why it is doubtful that asynchronous reads were: no more were in flight at the device than
/// synchronous ones of as many workers, each in the pieces that the device got, could have been.
pub fn not_at_once(setup: &Setup, dop: u32, bytes: u64, work: &ScanWork) -> Option<String> {
    let reads = setup.reads.filter(|reads| reads.depth > 1)?;
    if work.reads == 0 {
        return None; // no device is seen, or none was asked
    }
    let workers = f64::from(setup.users) * f64::from(dop);
    let asked = (bytes as f64 / setup.chunks.mean()).max(1.0);
    let pieces = work.reads as f64 / asked;
    // Direct reads can be merged only when several are there. Others are made larger by the
    // kernel's read-ahead.
    let pieces = if setup.direct.is_on() { pieces } else { pieces.max(1.0) };
    let most = workers * pieces;
    (work.in_flight <= most * MARGIN).then(|| {
        format!(
            "asynchronous reads were asked for ({reads} for each of {workers} workers) and not seen: {:.1} requests \
             were in flight while the device was busy, and synchronous reads could have had {most:.1}",
            work.in_flight
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::plan::{Beside, Data, Layout, WorkerReads, Workers};
    use super::*;
    use crate::run::arguments::OnOff;

    fn setup(depth: u32) -> Setup {
        Setup {
            scheduler: "as-is".parse().expect("known"),
            read_ahead_kb: None,
            direct: OnOff::On,
            workers: Workers::Independent,
            chunks: "128k".parse().expect("a size"),
            reads: Some(WorkerReads { engine: snowmelt_io::IoEngine::Uring, depth }),
            layout: Layout::Single,
            users: 2,
            data: Data::Same,
            beside: Beside::Nothing,
            queue: None,
        }
    }

    #[test]
    fn asynchronous_reads_are_seen_by_more_in_flight_than_workers_have() {
        let work = |reads, in_flight| ScanWork { reads, in_flight, ..ScanWork::default() };
        let bytes = 100 * (128 << 10);
        assert_eq!((asked_at_once(&setup(8), 3), asked_at_once(&setup(1), 3)), (Some(48), Some(6)));
        assert_eq!(not_at_once(&setup(8), 1, bytes, &work(100, 9.0)), None);
        let doubt = not_at_once(&setup(8), 1, bytes, &work(100, 2.0)).expect("no more than the workers");
        assert!(doubt.contains("uring depth 8") && doubt.contains("2.0 requests"), "{doubt}");
        // Each read reached the device in two pieces, which synchronous ones do, too.
        assert!(not_at_once(&setup(8), 1, bytes, &work(200, 3.9)).is_some());
        assert_eq!(not_at_once(&setup(8), 1, bytes, &work(200, 5.0)), None);
        assert_eq!(not_at_once(&setup(8), 1, bytes, &work(50, 1.9)), None, "two reads in each request");
        let buffered = Setup { direct: OnOff::Off, ..setup(8) };
        assert!(not_at_once(&buffered, 1, bytes, &work(50, 1.9)).is_some(), "that was read-ahead");
        assert_eq!(not_at_once(&setup(1), 1, bytes, &work(100, 1.0)), None, "it was not asked for");
        assert_eq!(not_at_once(&setup(8), 1, bytes, &work(0, 0.0)), None, "nothing is seen");
    }

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
        assert_eq!(work.in_flight, 2000.0 / 900.0);
        assert_eq!((work.reads, work.read_bytes, work.seeks), (100, 13_107_200, None));
    }
}
