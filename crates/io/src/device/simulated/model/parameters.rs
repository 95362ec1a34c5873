//! Parameters of simulated devices: a disk with an arm, and a device that is wide.
//!
//! A parameter that a TOML file leaves out has its value in `Default`. The bounds are in
//! `bounds.rs`.

use serde::{Deserialize, Serialize};

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
    /// Seek across the whole disk, in milliseconds; in between with the square root of the
    /// distance.
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
    /// Measured points of the seek curve, (share of the whole way, milliseconds), ascending in
    /// both; between them with the square root of the way. When given, the two `seek_…_ms` are
    /// not used.
    pub seek_points: Vec<(f64, f64)>,
    /// Time the arm needs to settle for a write, beyond that for a read, in milliseconds.
    pub write_settle_ms: f64,
    /// Bytes of a volatile write cache; 0 for writing through to the media.
    pub write_cache_bytes: u64,
    /// Writes it holds at most, however small: real firmware keeps a flush within the time a
    /// kernel gives it.
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
    /// Burst after a pause: the requests and bytes of this time may go at once, in milliseconds.
    pub burst_ms: f64,
    /// Latency of writes, where it is another.
    pub write_latency_us: Option<f64>,
    /// Cap on writes per second. This or the next one gives writes a budget of their own, whose
    /// other cap is as that of reads; without both, reads and writes share one.
    pub write_iops: Option<f64>,
    /// Cap on bytes written per second.
    pub write_bytes_per_s: Option<f64>,
    /// Requests that may go beyond `iops` after a long rest. They come back at the rate of
    /// `iops`, less what is used. A budget that writes have of their own knows no credits.
    pub io_credits: f64,
    /// Cap on requests per second while there are such credits; without it there is none.
    pub burst_iops: Option<f64>,
    /// Bytes that may go beyond `bytes_per_s`, in the same way.
    pub byte_credits: f64,
    /// Cap on bytes per second while there are such credits; without it there is none.
    pub burst_bytes_per_s: Option<f64>,
    /// Sequential streams that are recognised: their requests are merged until they fill
    /// `io_unit_bytes`, and count once together. 0 for none.
    pub streams: usize,
    /// Share of requests that take `tail_us` longer.
    pub tail_share: f64,
    /// The mean of that, in microseconds.
    pub tail_us: f64,
    /// Standard deviation of its logarithm; 0 for always the same.
    pub tail_jitter: f64,
}

impl VolumeModel {
    /// Requests per second of a rested volume.
    pub(crate) fn rested_iops(&self) -> f64 {
        self.burst_iops.filter(|_| self.io_credits > 0.0).unwrap_or(self.iops)
    }

    /// Bytes per second of a rested volume.
    pub(crate) fn rested_bytes_per_s(&self) -> f64 {
        self.burst_bytes_per_s.filter(|_| self.byte_credits > 0.0).unwrap_or(self.bytes_per_s)
    }

    /// Writes and bytes written per second, where they have a budget of their own.
    pub(crate) fn write_caps(&self) -> Option<(f64, f64)> {
        match (self.write_iops, self.write_bytes_per_s) {
            (None, None) => None,
            (iops, bytes) => Some((iops.unwrap_or(self.iops), bytes.unwrap_or(self.bytes_per_s))),
        }
    }

    /// Mean latency of a read, with the tail.
    pub(crate) fn mean_latency_us(&self) -> f64 {
        self.latency_us + self.tail_share * self.tail_us
    }
}

impl Default for DiskModel {
    /// A 1 TB disk with 7200 turns per minute: 8.0 ms average seek, 4.17 ms half a turn, 180 to
    /// 90 MB/s.
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
            write_latency_us: None,
            write_iops: None,
            write_bytes_per_s: None,
            io_credits: 0.0,
            burst_iops: None,
            byte_credits: 0.0,
            burst_bytes_per_s: None,
            streams: 0,
            tail_share: 0.0,
            tail_us: 0.0,
            tail_jitter: 0.0,
        }
    }
}
