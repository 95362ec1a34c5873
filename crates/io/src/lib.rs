//! Bytes between memory and devices.
//!
//! The way of a byte: a caller asks a [`DeviceQueue`] (one per device), whose *scheduler* orders and merges the
//! requests, whose *engine* (io_uring, threads, or the asking thread itself) carries them out on a [`Device`], and whose
//! [`Sink`] hears of each request exactly once. A [`CostModel`] says what requests cost, and from it follow the
//! gaps worth reading through, the depth, and the length of read-ahead; [`probe()`] measures it.
//!
//! Two seams for tests and demonstrations: the device (file, memory, simulated, faulty) and the [`Clock`] (real or
//! virtual). Everything that waits, waits on an [`EventCount`], so that a whole engine runs in virtual time.
//!
//! Nothing here knows what a page means.

mod buffer;
mod clock;
mod cost;
mod counters;
mod device;
mod error;
mod event_count;
mod faulty;
mod file;
mod memory;
mod model;
mod model_disk;
mod model_volume;
mod notice;
mod operation;
mod page_cache;
mod probe;
mod queue;
mod schedule;
mod simulated;
mod threads;
mod uring;
mod virtual_time;

pub use buffer::{AlignedBuf, BUFFER_ALIGN, RawBuf};
pub use clock::{ClientGuard, ClientTicket, Clock};
pub use cost::CostModel;
pub use counters::{ClassCounters, DeviceCounters, Latency};
pub use device::{Alignment, Device};
pub use error::{IoError, IoErrorKind, Operation};
pub use event_count::EventCount;
pub use faulty::{Fault, FaultKind, FaultRates, FaultyDevice};
pub use file::{Access, FileDevice};
pub use memory::MemoryDevice;
pub use model::{DeviceModel, DiskModel, VolumeModel};
pub use notice::{notice, set_notice};
pub use page_cache::cached_pages;
pub use probe::{ProbeLimits, Profile, RatePoint, probe};
pub use queue::{Class, DeviceQueue, Engine, Policy, QueueConfig, Request, Sink};
pub use simulated::SimulatedDevice;
