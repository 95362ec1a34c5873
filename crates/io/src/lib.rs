//! Bytes between memory and devices.
//!
//! A caller submits requests to a [`DeviceQueue`] (one per device). Its *schedule* orders and
//! merges them, its *engine* (io_uring, threads, or the asking thread itself) carries them out on
//! a [`Device`], and its [`Sink`] hears of each request exactly once. A [`CostModel`] gives the
//! cost of requests; the gaps worth reading through, the depth and the length of read-ahead follow
//! from it. [`probe()`] measures it.
//!
//! Layers, bottom to top. A module needs modules of the rows above it only; nothing here knows
//! what a page is.
//!
//! | module         | holds                                                                                  |
//! |----------------|----------------------------------------------------------------------------------------|
//! | `error`, `notice`, `cost`, `write_cost`, `latency` | plain data: errors, one-line notices, costs of requests, distributions |
//! | `system`       | calls of the kernel: devices, open directories, page cache, calls that may hang        |
//! | `hints`        | what is known of a disk before its first request: caps, names, earlier runs            |
//! | `memory`       | mappings, aligned buffers, limits of the heap                                          |
//! | `time`         | the [`Clock`] (real or virtual) and the [`EventCount`], on which everything waits      |
//! | `device`       | the seam [`Device`]: files, memory, faulty ones, power cuts, simulated disks           |
//! | `learn`        | costs of a device, learned from completions                                            |
//! | `queue`        | requests that wait: classes, policies, the schedule, the counters                      |
//! | `engine`       | requests on their way: what is outstanding, and who carries it out                     |
//! | `config`       | the settings of a queue                                                                |
//! | `device_queue` | the front door: opens a queue with its engine, takes requests                          |
//! | `shared_scan`  | scans of many readers that share what they read                                        |
//! | `objects`      | the seam [`Objects`] to object stores; in memory, in folders, slow, faulty and patient |
//! | `extent_cache` | objects on the local disk, shared by the processes of a machine                        |
//! | `measure`      | the probe of a device, and steady loads on one file                                    |
//!
//! Two seams serve tests and demonstrations: the device and the clock. Since everything waits
//! on an [`EventCount`], a whole engine runs in virtual time. Two more serve experiments: the
//! [`Order`] of waiting requests, of which the elevator is one, and [`StartEngine`].

mod config;
mod cost;
mod device;
mod device_queue;
mod engine;
mod error;
mod extent_cache;
mod hints;
mod latency;
mod learn;
mod measure;
mod memory;
mod notice;
mod objects;
mod queue;
mod shared_scan;
mod system;
mod time;
mod write_cost;

pub use config::{InPlace, IoEngine, QueueConfig};
pub use cost::{CostModel, CostSource};
pub use device::faulty::{Fault, FaultKind, FaultRates, FaultyDevice};
pub use device::file::{Access, FileDevice, MOST_DESCRIPTORS};
pub use device::memory::MemoryDevice;
pub use device::power::PowerDisk;
pub use device::read_only::ReadOnly;
pub use device::simulated::SimulatedDevice;
pub use device::simulated::activity::Activity;
pub use device::simulated::beside::FileBeside;
pub use device::simulated::mechanics::steady::{SteadyEnds, SteadyLoad};
pub use device::simulated::model::bounds::{ANSWER_S, ModelError, OUTSTANDING, REQUEST_BYTES};
pub use device::simulated::model::parameters::{DiskModel, VolumeModel};
pub use device::simulated::model::{DeviceModel, MODEL_NAMES, RaidModel};
pub use device::simulated::troubles::{Stalls, TroubledShare, Troubles};
pub use device::simulated::urgent::run_urgently;
pub use device::sparse::SparseMemoryDevice;
pub use device::timed::TransferKind;
pub use device::{Alignment, Device, ReadDevice};
pub use device_queue::DeviceQueue;
pub use engine::{NotStarted, ServedQueue, ServingThread, StartEngine, Started, StartedThread, Turn};
pub use error::{IoError, IoErrorKind, Operation};
pub use extent_cache::{
    CacheCounters, CacheError, CachedBytes, EXTENT_SLOT_BYTES, ExtentCache, MachineTotals,
};
pub use hints::caps::ReadCaps;
pub use hints::disk::DiskIdentity;
pub use hints::kept::{KeptModel, NotKept};
pub use hints::{Hints, Prior};
pub use latency::{Latency, LatencyMeter};
pub use learn::writes::WriteCosts;
pub use learn::{Belief, Beside, Evidence, SeenLoad};
pub use measure::job::{
    CpuUse, FoundInstead, Job, JobDirection, JobEngine, JobFile, JobResult, LEAST_STAMPED, OneWay, Pattern,
    Places, StampFault, check_stamp, run_job, run_job_on, stamp,
};
pub use measure::probe::{ProbeLimits, ProbedReads, Profile, RatePoint, probe};
pub use measure::written::written_bytes;
pub use memory::buffer::{AlignedBuf, BUFFER_ALIGN, RawBuf};
pub use memory::heap::{HeapWatch, bound_heap, trim_heap};
pub use memory::mapping::{HUGE_BYTES, Huge, Mapping};
pub use notice::{notice, set_notice};
pub use objects::faulty::{FaultyObjects, ObjectFault, ObjectFaultKind, ObjectFaultRates};
pub use objects::folder::FolderObjects;
pub use objects::memory::MemoryObjects;
pub use objects::patient::{ObjectCounters, Patience, PatientObjects};
pub use objects::timed::{ObjectTimes, TimedObjects};
pub use objects::{
    Answer, Ask, Done, Listed, ObjectError, ObjectErrorKind, Objects, Ongoing, PutIf, Version, ask, ask_all,
};
pub use queue::counters::{ClassCounters, DeviceCounters};
pub use queue::device_request::{DeviceRequest, Pending, Progress};
pub use queue::order::elevator::Elevator;
pub use queue::order::{Choice, Order, OtherPolicy, Policy, Rules};
pub use queue::read_times::{ReadTimes, RecentReads};
pub use queue::request::{Class, Request, Sink};
#[doc(hidden)]
pub use queue::schedule::{Next, bench as schedule_bench};
pub use shared_scan::{Piece, ScanDevices, ScanReader, ScannedPiece, SharedScan};
pub use snowmelt_base::test_seed;
pub use system::apart::{ApartCall, apart};
pub use system::block_device::{block_claim, block_contents, block_mounted_on, is_block_device};
pub use system::folder::{FileId, Folder};
pub use system::kernel_files::{Controller, KernelFiles, MountPoint};
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[doc(hidden)]
pub use system::kill_at::{AtCall, KillAt, Traced};
pub use system::loop_device::{
    LoopOptions, block_discard, block_zero, loop_attach, loop_backing, loop_detach, loop_free,
};
pub use system::page_cache::cached_pages;
pub use system::priority::IoPriority;
pub use time::clock::{ClientGuard, ClientTicket, Clock};
pub use time::event_count::EventCount;
pub use write_cost::{Haste, WriteCost};
