//! The cells of `lab read` and their results, as lines of `cells.jsonl`.

use serde::{Deserialize, Serialize};

use crate::machine::device_work::DeviceWork;
use crate::machine::others::Parties;
use crate::size;
use crate::stats::{LatencySummary, Spread};
use crate::trace::cell::CellTrace;

/// One combination of settings; names as fio's where it has them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReadCell {
    /// `io_uring`, `threads`, `psync`, `mmap`, or what serves the queue.
    pub ioengine: String,
    /// The scheduler's order, when the load goes through a queue of ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// `randread`, `read`, `randwrite` …
    pub rw: String,
    /// Bytes per request.
    pub bs: u64,
    /// Requests outstanding.
    pub iodepth: u32,
    /// Past the page cache.
    pub direct: bool,
    /// Offsets are multiples of this.
    pub align: u64,
    /// `random`, `sequential`, `stride:BYTES`.
    pub pattern: String,
    /// The device's setting while it ran; empty when it was left alone.
    pub read_ahead_kb: Option<u64>,
    /// The kernel was asked for the whole range before it was read.
    #[serde(default)]
    pub prefetch: bool,
    /// The memory of the buffers.
    #[serde(default, skip_serializing_if = "BufferMemory::is_malloc")]
    pub mem: BufferMemory,
    /// The device's scheduler, as asked; empty when it was left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<String>,
}

/// The memory of buffers; fio's names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
#[value(rename_all = "lower")]
pub enum BufferMemory {
    /// Ordinary pages, scattered in memory: a long request has a piece for each of them.
    #[default]
    Malloc,
    /// Transparent huge pages, where the kernel has some left: a long request is in one piece.
    MmapHuge,
}

impl BufferMemory {
    fn is_malloc(&self) -> bool {
        *self == BufferMemory::Malloc
    }
}

/// The result of a cell.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CellResult {
    /// Its settings.
    #[serde(flatten)]
    pub cell: ReadCell,
    /// Which turn, from 1.
    pub repeat: u32,
    /// Requests per second.
    pub iops: f64,
    /// Bytes per second.
    pub bw_bytes: f64,
    /// Requests.
    pub total_ios: u64,
    /// Bytes asked for.
    pub io_bytes: u64,
    /// Milliseconds, asking for the range ahead included.
    pub runtime_ms: f64,
    /// Latency from the request to its completion.
    pub clat: LatencySummary,
    /// Processor time of the process and of kernel threads that work for it, in µs per request.
    pub cpu_us_per_io: f64,
    /// In percent of one processor, user mode.
    pub usr_cpu: f64,
    /// In percent of one processor, kernel.
    pub sys_cpu: f64,
    /// Context switches.
    pub ctx: u64,
    /// Length of the intervals of `iops_series`, in ms.
    pub interval_ms: f64,
    /// Requests per second, interval by interval.
    pub iops_series: Vec<f64>,
    /// How unsteady that series is.
    pub steadiness: Spread,
    /// Pages of the file in the page cache before; 0 is the proof of cold. None where no page
    /// cache is used.
    pub cached_pages_before: Option<u64>,
    /// The work of the device meanwhile, for all programs, and this one's part in it.
    pub device: Option<DeviceWork>,
    /// Pages of 4 KiB that a request touched, on average.
    pub pages_per_io: f64,
    /// Requests the device served per request asked: by the trace, else by its counters where
    /// others have no part in them.
    pub requests_per_io: Option<f64>,
    /// Bytes the device moved for this process per byte asked.
    pub amplification: Option<f64>,
    /// Counts of the block layer, when it was traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<CellTrace>,
    /// The disk, and whose its requests were, when it was traced.
    #[serde(skip)]
    pub parties: Option<(String, Parties)>,
    /// Reasons to doubt this cell.
    pub doubts: Vec<String>,
}

/// A cell in a few words.
pub fn name_of(cell: &ReadCell) -> String {
    let mut name = format!(
        "{} {} depth {} {}",
        cell.ioengine,
        size::exact(cell.bs),
        cell.iodepth,
        if cell.direct { "direct" } else { "buffered" }
    );
    if cell.align != cell.bs {
        name += &format!(" align {}", size::exact(cell.align));
    }
    if cell.pattern != "random" {
        name += &format!(" {}", cell.pattern);
    }
    if let Some(kb) = cell.read_ahead_kb {
        name += &format!(" read-ahead {kb} KiB");
    }
    if let Some(queue) = &cell.queue {
        name += &format!(" {queue}");
    }
    if cell.prefetch {
        name += ", prefetch";
    }
    if cell.mem == BufferMemory::MmapHuge {
        name += " mmaphuge";
    }
    if let Some(scheduler) = &cell.scheduler {
        name += &format!(", scheduler {scheduler}");
    }
    name
}
