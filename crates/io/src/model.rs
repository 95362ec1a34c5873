//! What a simulated device is like: its parameters (from a name or a TOML file) and the interface of its model.
//!
//! A model computes on its own time line when each request is over: an operation starts when the mechanism is free or the
//! request arrives, whichever is later, not when somebody looks. So the same model serves virtual time, where completions are
//! events, and real time, where they are delivered when due.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::cost::CostModel;
use crate::error::{IoError, Operation};
use crate::model_bounds::{self, ModelError};
use crate::model_disk::Disk;
use crate::model_volume::Volume;

/// A simulated device, by its parameters. In TOML: `kind = "disk"` or `kind = "volume"`, and any of the fields; what is left out
/// is as in [`DiskModel::default`] (a 7200 rpm disk) or [`VolumeModel::default`] (a capped network volume). Deserialising checks
/// the bounds of all parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", try_from = "Description")]
pub enum DeviceModel {
    /// A disk with an arm.
    Disk(DiskModel),
    /// Something without an arm, wide: a network volume, a flash drive.
    Volume(VolumeModel),
}

/// A model as it is written, not checked yet.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum Description {
    Disk(DiskModel),
    Volume(VolumeModel),
}

impl TryFrom<Description> for DeviceModel {
    type Error = ModelError;

    fn try_from(description: Description) -> Result<DeviceModel, ModelError> {
        let model = match description {
            Description::Disk(disk) => DeviceModel::Disk(disk),
            Description::Volume(volume) => DeviceModel::Volume(volume),
        };
        model.check()?;
        Ok(model)
    }
}

/// A disk: seek curve, rotation, zones, track buffer, native command queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DiskModel {
    /// Capacity in bytes; offset 0 is the outermost track.
    pub capacity_bytes: u64,
    /// Turns per minute.
    pub rpm: u32,
    /// Seek to the next cylinder, in milliseconds.
    pub seek_min_ms: f64,
    /// Seek across the whole disk, in milliseconds; in between with the square root of the distance.
    pub seek_full_ms: f64,
    /// Media rate of the outermost tracks, in bytes per second.
    pub outer_bytes_per_s: f64,
    /// Media rate of the innermost tracks, in bytes per second.
    pub inner_bytes_per_s: f64,
    /// Tracks per cylinder.
    pub heads: u32,
    /// Rate of the interface, for what is in the track buffer, in bytes per second.
    pub interface_bytes_per_s: f64,
    /// Time of the controller per request, in microseconds.
    pub overhead_us: f64,
    /// Requests the disk chooses among.
    pub queue: usize,
    /// A request older than this is served first, in milliseconds.
    pub age_limit_ms: f64,
    /// Segments of the track buffer.
    pub segments: usize,
    /// Bytes per segment: how far the disk reads on by itself.
    pub segment_bytes: u64,
    /// Measured points of the seek curve, (share of the whole way, milliseconds), ascending in both; between them with the
    /// square root of the way. When given, the two `seek_…_ms` are not used.
    pub seek_points: Vec<(f64, f64)>,
    /// What a write waits longer than a read for the arm to settle, in milliseconds.
    pub write_settle_ms: f64,
    /// Bytes of a volatile write cache; 0 for writing through to the media.
    pub write_cache_bytes: u64,
    /// Writes it holds at most, however small: real firmware keeps a flush within the time a kernel gives it.
    pub write_cache_requests: usize,
    /// Cached writes among which the disk chooses what to write to the media next.
    pub write_queue: usize,
}

/// A device that serves many requests at once, each after a latency, under caps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VolumeModel {
    /// From start to end of a request, without its bytes, in microseconds.
    pub latency_us: f64,
    /// Standard deviation of the latency's logarithm; 0 for always the same.
    pub jitter: f64,
    /// Seed of the jitter.
    pub seed: u64,
    /// Requests served at once.
    pub width: usize,
    /// Cap on requests per second.
    pub iops: f64,
    /// A request counts once per so many bytes begun.
    pub io_unit_bytes: u64,
    /// Cap on bytes per second.
    pub bytes_per_s: f64,
    /// Rate at which one request's bytes come, in bytes per second.
    pub line_bytes_per_s: f64,
    /// So much time's worth of requests and bytes may go at once after a pause, in milliseconds.
    pub burst_ms: f64,
}

impl Default for DiskModel {
    /// A 1 TB disk with 7200 turns per minute: 8.0 ms average seek, 4.17 ms half a turn, 180 to 90 MB/s.
    fn default() -> DiskModel {
        DiskModel {
            capacity_bytes: 1_000_000_000_000,
            rpm: 7200,
            seek_min_ms: 0.6,
            seek_full_ms: 14.5,
            outer_bytes_per_s: 180e6,
            inner_bytes_per_s: 90e6,
            heads: 4,
            interface_bytes_per_s: 550e6,
            overhead_us: 100.0,
            queue: 32,
            age_limit_ms: 500.0,
            segments: 16,
            segment_bytes: 1 << 20,
            seek_points: Vec::new(),
            write_settle_ms: 0.0,
            write_cache_bytes: 0,
            write_cache_requests: 512,
            write_queue: 32,
        }
    }
}

impl Default for VolumeModel {
    /// Wide but slow: 3 ms, 32 at once, 3000 requests and 125 MiB per second.
    fn default() -> VolumeModel {
        VolumeModel {
            latency_us: 3000.0,
            jitter: 0.0,
            seed: 1,
            width: 32,
            iops: 3000.0,
            io_unit_bytes: 256 << 10,
            bytes_per_s: 125.0 * (1 << 20) as f64,
            line_bytes_per_s: 1e9,
            burst_ms: 0.0,
        }
    }
}

impl DeviceModel {
    /// The model called `name` (`hdd`, `hdd-7200`, `hdd-10k`, `gp3`, `wide-slow`, `s3`, `nvme`), or the one in the TOML file of that path.
    pub fn named(name: &str) -> Result<DeviceModel, IoError> {
        match name {
            "hdd" => Ok(Self::hdd()),
            "hdd-7200" => Ok(Self::hdd_7200()),
            "hdd-10k" => Ok(Self::hdd_10k()),
            "gp3" => Ok(Self::gp3()),
            "wide-slow" => Ok(Self::wide_slow()),
            "s3" => Ok(Self::s3()),
            "nvme" => Ok(Self::nvme()),
            path => Self::from_file(Path::new(path)),
        }
    }

    /// The model described in the TOML file `path`.
    pub fn from_file(path: &Path) -> Result<DeviceModel, IoError> {
        let name: Arc<str> = path.display().to_string().into();
        let text = std::fs::read_to_string(path).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => IoError::invalid(
                &name,
                Operation::Open,
                "no such device model: there are hdd, hdd-7200, hdd-10k, gp3, wide-slow, s3, nvme, or the path of a TOML file",
            ),
            _ => IoError::os(&name, Operation::Open, 0, 0, &e),
        })?;
        Self::from_toml(&text).map_err(|why| IoError::invalid(&name, Operation::Open, why.to_string()))
    }

    /// The model described by a TOML text; the error says what is wrong with it.
    pub fn from_toml(text: &str) -> Result<DeviceModel, ModelError> {
        let description: Description = toml::from_str(text).map_err(|e| ModelError::Text(e.to_string()))?;
        description.try_into()
    }

    /// Refuses parameters out of bounds, and those that together make a device too slow (see [`ModelError`]).
    pub fn check(&self) -> Result<(), ModelError> {
        model_bounds::check(self)
    }

    /// The cost model that fits it when what is read lies within the first `span_bytes` (a disk's seeks are shorter there; 0 for
    /// everywhere). A disk's is measured on the model itself.
    pub fn cost(&self, span_bytes: u64) -> CostModel {
        match self {
            DeviceModel::Disk(d) => {
                let span = if span_bytes == 0 { d.capacity_bytes } else { span_bytes.min(d.capacity_bytes) };
                let inward = span as f64 / d.capacity_bytes as f64 / 2.0;
                let rate = d.outer_bytes_per_s + (d.inner_bytes_per_s - d.outer_bytes_per_s) * inward;
                CostModel {
                    latency_ns: self.ns_per_random_read(span, 1),
                    ns_per_request: self.ns_per_random_read(span, d.queue),
                    bytes_per_s: rate as u64,
                    depth: d.queue as u32,
                }
            }
            DeviceModel::Volume(v) => {
                let per_request_ns = (1e9 / v.iops).max(v.latency_us * 1e3 / v.width as f64);
                // Little's law, and half as much again so that a slow answer leaves no hole.
                let depth = (1.5 * v.latency_us * 1e3 / per_request_ns).ceil().clamp(1.0, v.width as f64);
                CostModel {
                    latency_ns: (v.latency_us * 1e3) as u64,
                    ns_per_request: per_request_ns as u64,
                    bytes_per_s: v.bytes_per_s.min(v.line_bytes_per_s * v.width as f64) as u64,
                    depth: depth as u32,
                }
            }
        }
    }

    /// Mean time of sector reads all over `span` with `depth` outstanding.
    fn ns_per_random_read(&self, span: u64, depth: usize) -> u64 {
        const READS: usize = 1000;
        let mut device = self.build().expect("a model that is asked for its cost is in bounds");
        let mut random = 1u64;
        let mut next = || {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let offset = ((u128::from(random) * u128::from(span)) >> 64) as u64;
            Transfer { offset: offset / 512 * 512, len: 512, kind: Kind::Read }
        };
        (0..depth).for_each(|id| device.arrive(id, next(), 0));
        let mut now = 0;
        for _ in 0..READS {
            let (id, over) = device.pop_due(u64::MAX).expect("reads are outstanding");
            now = over;
            device.arrive(id, next(), now);
        }
        now / READS as u64
    }

    pub(crate) fn build(&self) -> Result<Box<dyn Model>, ModelError> {
        Ok(match self {
            DeviceModel::Disk(d) => Box::new(Disk::new(d)?),
            DeviceModel::Volume(v) => Box::new(Volume::new(v)?),
        })
    }

    /// Time of making writes durable, in nanoseconds; for devices whose model does not know what is cached.
    pub(crate) fn sync_ns(&self) -> u64 {
        match self {
            DeviceModel::Disk(d) => 60_000_000_000 / u64::from(d.rpm),
            DeviceModel::Volume(v) => (v.latency_us * 1e3) as u64,
        }
    }

    /// True when written bytes stay in a volatile cache until they are flushed.
    pub fn caches_writes(&self) -> bool {
        matches!(self, DeviceModel::Disk(d) if d.write_cache_bytes > 0)
    }
}

/// What a request wants of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransferKind {
    /// Bytes.
    Read,
    /// To give bytes.
    Write,
    /// Everything written before made durable.
    Flush,
}

pub(crate) use TransferKind as Kind;

impl TransferKind {
    pub(crate) fn of(write: bool) -> TransferKind {
        if write { TransferKind::Write } else { TransferKind::Read }
    }
}

/// What a model needs to know of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Transfer {
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) kind: Kind,
}

/// A device's mechanics.
pub(crate) trait Model: Send {
    /// The device gets a request at `now_ns` (never before the last arrival).
    fn arrive(&mut self, id: usize, transfer: Transfer, now_ns: u64);

    /// When something happens next, as far as is known: a request is over, or something inside.
    fn next_due(&self) -> Option<u64>;

    /// Takes a request that is over by `now_ns`: its id and when it was over.
    fn pop_due(&mut self, now_ns: u64) -> Option<(usize, u64)>;

    /// As after a long rest: nothing buffered for reading, all budgets full.
    fn rest(&mut self);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_come_from_toml_with_defaults_and_strictly() {
        let disk = DeviceModel::from_toml("kind = \"disk\"\nrpm = 5400\n").unwrap();
        assert_eq!(disk, DeviceModel::Disk(DiskModel { rpm: 5400, ..Default::default() }));
        let text = toml::to_string(&DeviceModel::nvme()).unwrap();
        assert_eq!(DeviceModel::from_toml(&text).unwrap(), DeviceModel::nvme());
        for wrong in [
            "",
            "kind = \"tape\"",
            "kind = \"disk\"\nrpn = 1",
            "kind = \"volume\"\niops = 0.0",
            "kind = \"disk\"\nrpm = 0",
        ] {
            assert!(DeviceModel::from_toml(wrong).is_err(), "{wrong:?} is not a device");
        }
        assert!(DeviceModel::named("no-such-model").unwrap_err().to_string().contains("wide-slow"));
    }

    #[test]
    fn costs_follow_from_the_parameters() {
        let wide = DeviceModel::wide_slow().cost(0);
        assert_eq!((wide.latency_ns, wide.ns_per_request, wide.depth), (3_000_000, 333_333, 14));
        assert_eq!(wide.bytes_per_s, 125 << 20);
        let (whole, part) = (DeviceModel::hdd().cost(0), DeviceModel::hdd().cost(1 << 30));
        assert_eq!(whole.depth, 32);
        assert!((11_900_000..12_700_000).contains(&whole.latency_ns), "{}", whole.latency_ns);
        assert!((4_500_000..6_500_000).contains(&part.latency_ns), "short seeks: {}", part.latency_ns);
        assert!(part.ns_per_request < part.latency_ns / 2 && part.ns_per_request < whole.ns_per_request / 2);
        assert!(!whole.in_place() && !part.in_place() && wide.in_place());
    }
}
