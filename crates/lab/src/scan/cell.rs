//! A measured cell of a scan: a line of `cells.jsonl`, and a line on the screen.

use serde::Serialize;

use super::measure::ScanWork;
use super::plan::Setup;
use crate::machine::cpu::Cpu;
use crate::machine::others::Parties;
use crate::stats::LatencySummary;

/// One measured cell.
#[derive(Debug, Clone, Serialize)]
pub struct ScanCell {
    /// Name of the setup: what differs between them.
    pub setup: String,
    /// Degree of parallelism.
    pub dop: u32,
    /// Which time.
    pub round: usize,
    /// From the common start to the end of the last worker.
    pub elapsed_s: f64,
    /// Bytes handed to workers.
    pub bytes: u64,
    /// Bytes handed to workers per second, in MB.
    pub mb_per_s: f64,
    /// When each user was through.
    pub user_s: Vec<f64>,
    /// Shares of the processors.
    pub cpu: Cpu,
    /// The work of the devices.
    pub device: ScanWork,
    /// The disks that were traced, and whose their requests were.
    #[serde(skip)]
    pub parties: Vec<(String, Parties)>,
    /// Reads that the workers together kept in flight, where they read on their own.
    pub asked_at_once: Option<u64>,
    /// Reads or writes beside the scan.
    pub beside: LatencySummary,
    /// Pages of the table in the page cache before the start; 0 is cold.
    pub cached_pages: u64,
    /// Everything that was set.
    pub settings: Setup,
}

impl ScanCell {
    /// The cell on the screen.
    pub(super) fn line(&self) -> String {
        let seeks = self.device.seeks.map_or(String::new(), |n| format!(", {n} seeks"));
        let beside = match self.beside.count {
            0 => String::new(),
            _ => format!(", beside p50 {:.1} ms", self.beside.p50_ns as f64 / 1e6),
        };
        let at_once = match (self.asked_at_once, self.settings.reads) {
            (Some(asked), Some(reads)) if reads.depth > 1 => {
                format!(", in flight {:.1} of {asked}", self.device.in_flight)
            }
            _ => String::new(),
        };
        format!(
            "{:40} dop {:3} {:8.2} s {:8.1} MB/s, requests {:6.1} KiB, queue {:6.1}{at_once}{seeks}{beside}",
            self.setup, self.dop, self.elapsed_s, self.mb_per_s, self.device.rareq_kib, self.device.aqu
        )
    }
}
