//! Bytes between memory and devices.
//!
//! The way of a byte: a caller asks a [`DeviceQueue`] (one per device), whose *scheduler* orders and merges the
//! requests, whose *engine* (io_uring, threads, POSIX AIO, or the asking thread itself) carries them out on a [`Device`], and whose
//! [`Sink`] hears of each request exactly once. A [`CostModel`] says what requests cost, and from it follow the
//! gaps worth reading through, the depth, and the length of read-ahead; [`probe()`] measures it.
//!
//! Two seams for tests and demonstrations: the device (file, memory, simulated, faulty) and the [`Clock`] (real or
//! virtual). Everything that waits, waits on an [`EventCount`], so that a whole engine runs in virtual time.
//!
//! Nothing here knows what a page means.

mod apart;
mod awaited;
mod buffer;
mod clock;
mod cost;
mod counters;
mod device;
mod error;
mod event_count;
mod faulty;
mod file;
mod heap;
mod job;
mod loop_device;
mod mapping;
mod memory;
mod model;
mod model_bounds;
mod model_disk;
mod model_named;
mod model_volume;
mod notice;
mod operation;
mod order;
mod order_anticipatory;
mod order_deadline;
mod order_elevator;
mod order_fair;
mod page_cache;
mod posix_aio;
mod power;
mod probe;
mod queue;
mod queue_config;
mod schedule;
mod shared_scan;
mod simulated;
mod sparse_memory;
mod test_seed;
mod threads;
mod uring;
mod virtual_time;
mod wake;
mod write_cache;

pub use apart::{ApartCall, apart};
pub use buffer::{AlignedBuf, BUFFER_ALIGN, RawBuf};
pub use clock::{ClientGuard, ClientTicket, Clock};
pub use cost::CostModel;
pub use counters::{ClassCounters, DeviceCounters, Latency, LatencyMeter};
pub use device::{Alignment, Device};
pub use error::{IoError, IoErrorKind, Operation};
pub use event_count::EventCount;
pub use faulty::{Fault, FaultKind, FaultRates, FaultyDevice};
pub use file::{Access, FileDevice};
pub use heap::{bound_heap, trim_heap};
pub use job::{CpuUse, Job, JobEngine, JobFile, JobResult, Pattern, Places, run_job, run_job_on};
pub use loop_device::{
    LoopOptions, block_discard, block_zero, loop_attach, loop_backing, loop_detach, loop_free,
};
pub use mapping::{HUGE_BYTES, Huge, Mapping};
pub use memory::MemoryDevice;
pub use model::{DeviceModel, DiskModel, TransferKind, VolumeModel};
pub use model_bounds::{ANSWER_S, ModelError, OUTSTANDING, REQUEST_BYTES};
pub use notice::{notice, set_notice};
pub use page_cache::cached_pages;
pub use power::PowerDisk;
pub use probe::{ProbeLimits, Profile, RatePoint, probe};
pub use queue::{Class, DeviceQueue, Engine, Policy, QueueConfig, Request, Sink, Tuning};
pub use shared_scan::{Piece, ScanDevices, ScanReader, ScannedPiece, SharedScan};
pub use simulated::{Activity, SimulatedDevice, run_urgently};
pub use sparse_memory::SparseMemoryDevice;
pub use test_seed::test_seed;
