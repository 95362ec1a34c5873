//! The cells of `lab read` and their results, as lines of `cells.jsonl`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::machine::device_work::DeviceWork;
use crate::machine::others::Parties;
use crate::run::load::LoadFields;
use crate::size;
use crate::stats::{LatencySummary, Spread, percentile_key};
use crate::trace::cell::CellTrace;

/// One combination of settings; names as fio's where it has them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReadCell {
    /// `io_uring`, `threads`, `psync`, `mmap`, or what serves the queue.
    pub ioengine: String,
    /// The queue, the distribution and the priority.
    #[serde(flatten)]
    pub load: LoadFields,
    /// `randread`, `read`, `randrw`, `randwrite`.
    pub rw: String,
    /// So many of 100 requests read, the others write; empty when all read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rwmixread: Option<u8>,
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
    /// Latencies in ns by percentile: `99.900000`.
    #[serde(default)]
    pub percentile: BTreeMap<String, u64>,
    /// How many latencies lie in each power of two, by its lower bound in ns, when that was asked
    /// for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clat_log2_ns: Vec<(u64, u64)>,
    /// The reads of a mix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<OneWayResult>,
    /// The writes of a mix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<OneWayResult>,
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
    /// Percentiles that are shown.
    #[serde(skip)]
    pub shown: Vec<f64>,
}

/// The requests of one direction of a mix; names as fio's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OneWayResult {
    /// Requests per second.
    pub iops: f64,
    /// Bytes per second.
    pub bw_bytes: f64,
    /// Requests.
    pub total_ios: u64,
    /// Bytes asked for.
    pub io_bytes: u64,
    /// Latency from the request to its completion.
    pub clat: LatencySummary,
    /// Latencies in ns by percentile.
    pub percentile: BTreeMap<String, u64>,
    /// How many latencies lie in each power of two, when that was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clat_log2_ns: Vec<(u64, u64)>,
}

impl CellResult {
    /// The shown percentiles: names, and ns.
    pub fn shown_ns(&self) -> Vec<(f64, u64)> {
        let ns = |percent: &f64| self.percentile.get(&percentile_key(*percent)).copied().unwrap_or(0);
        self.shown.iter().map(|percent| (*percent, ns(percent))).collect()
    }
}

/// A cell in a few words.
pub fn name_of(cell: &ReadCell) -> String {
    let mut name = format!("{} {} depth {}", cell.ioengine, size::exact(cell.bs), cell.iodepth);
    for (separator, part) in parts(cell).into_iter().skip(1) {
        if !part.is_empty() {
            name += separator;
            name += &part;
        }
    }
    name
}

/// Parts of a name besides size and depth.
pub const PARTS: usize = 12;

/// The parts of a cell's name besides size and depth, and the separators before them; empty where a
/// part is as usual. The engine is first.
pub fn parts(cell: &ReadCell) -> [(&'static str, String); PARTS] {
    let when = |is: bool, text: String| if is { text } else { String::new() };
    [
        (" ", cell.ioengine.clone()),
        (" ", if cell.direct { "direct" } else { "buffered" }.into()),
        (" ", cell.rwmixread.map_or(String::new(), |reads| format!("rwmixread {reads}"))),
        (" ", when(cell.align != cell.bs, format!("align {}", size::exact(cell.align)))),
        (" ", when(cell.pattern != "random", cell.pattern.clone())),
        (" ", cell.load.random_distribution.clone().unwrap_or_default()),
        (" ", cell.read_ahead_kb.map_or(String::new(), |kb| format!("read-ahead {kb} KiB"))),
        (" ", cell.load.queue_words().unwrap_or_default()),
        (", ", when(cell.prefetch, "prefetch".into())),
        (" ", when(cell.mem == BufferMemory::MmapHuge, "mmaphuge".into())),
        (", ", cell.load.priority_words().unwrap_or_default()),
        (", ", cell.scheduler.as_ref().map_or(String::new(), |name| format!("scheduler {name}"))),
    ]
}
