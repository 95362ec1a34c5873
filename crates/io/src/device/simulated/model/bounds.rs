//! Bounds of models: a device within them answers every request in time.
//!
//! 1. Every parameter has a least and a most; NaN and the infinities are outside.
//! 2. Parameters that are each in bounds can be too slow together, so the longest wait of any
//!    request is computed: with at most [`OUTSTANDING`] requests of at most [`REQUEST_BYTES`]
//!    at the device, no request waits longer than [`ANSWER_S`].
//!
//! Both are checked where a model is parsed and again where it is built; there is no other way
//! to a model that runs.

use crate::device::simulated::model::parameters::{DiskModel, VolumeModel};

/// A request is answered within so many seconds, by every model.
pub const ANSWER_S: f64 = 60.0;

/// Requests at the device at once for which this is promised: as many as a loop device hands
/// on.
pub const OUTSTANDING: u64 = 128;

/// Bytes of a request for which this is promised: as many as the laboratory's block devices ask
/// for at once.
pub const REQUEST_BYTES: u64 = 1 << 20;

/// Longest time in which burst credits come back.
const REFILL_S: f64 = 1e7;

/// Most points of a seek curve.
const SEEK_POINTS: usize = 1024;

/// Reasons why a description is no device.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// The text is not TOML, or has other fields.
    #[error("{0}")]
    Text(String),
    /// A parameter out of its bounds.
    #[error("{parameter} is {value}; it must be between {least} and {most}")]
    OutOfBounds {
        /// As in the description.
        parameter: &'static str,
        /// Its value.
        value: f64,
        /// The least it may be.
        least: f64,
        /// The most it may be.
        most: f64,
    },
    /// Two parameters that must ascend.
    #[error("{lesser} is {lesser_value}, which is above {greater} ({greater_value})")]
    Order {
        /// Should be the smaller one.
        lesser: &'static str,
        /// Its value.
        lesser_value: f64,
        /// Should be the greater one.
        greater: &'static str,
        /// Its value.
        greater_value: f64,
    },
    /// An array is a member of an array.
    #[error("the member of an array is an array itself: it must be a disk or a volume")]
    Nested,
    /// The seek curve is none.
    #[error(
        "seek_points are at most {SEEK_POINTS} pairs (share of the way from 0 to 1, milliseconds from 0 to 1000), ascending; number {number} is not"
    )]
    SeekPoints {
        /// The first wrong one, from 1.
        number: usize,
    },
    /// Each parameter is in bounds, but the device is too slow.
    #[error(
        "{parameters} together let one of {OUTSTANDING} requests of {REQUEST_BYTES} bytes wait for up to {longest_s:.1} s; {most_s} s are allowed"
    )]
    TooSlow {
        /// The parameters that make it slow.
        parameters: &'static str,
        /// The longest wait.
        longest_s: f64,
        /// The most there may be.
        most_s: f64,
    },
}

/// Checks the parameters of a disk.
pub(crate) fn check_disk(d: &DiskModel) -> Result<(), ModelError> {
    within("capacity_bytes", d.capacity_bytes as f64, 1048576.0, (1u64 << 60) as f64)?;
    within("rpm", f64::from(d.rpm), 60.0, 1e6)?;
    within("seek_min_ms", d.seek_min_ms, 0.0, 1000.0)?;
    within("seek_full_ms", d.seek_full_ms, 0.0, 1000.0)?;
    within("outer_bytes_per_s", d.outer_bytes_per_s, 1e5, 1e13)?;
    within("inner_bytes_per_s", d.inner_bytes_per_s, 1e5, 1e13)?;
    within("heads", f64::from(d.heads), 1.0, 1024.0)?;
    within("interface_bytes_per_s", d.interface_bytes_per_s, 1e5, 1e13)?;
    within("overhead_us", d.overhead_us, 0.0, 1e6)?;
    within("queue", d.queue as f64, 1.0, 1024.0)?;
    within("age_limit_ms", d.age_limit_ms, 0.0, 10_000.0)?;
    within("segments", d.segments as f64, 1.0, 1024.0)?;
    within("segment_bytes", d.segment_bytes as f64, 0.0, (1u64 << 30) as f64)?;
    within("write_settle_ms", d.write_settle_ms, 0.0, 1000.0)?;
    within("write_cache_bytes", d.write_cache_bytes as f64, 0.0, (1u64 << 36) as f64)?;
    within("write_cache_requests", d.write_cache_requests as f64, 1.0, 65536.0)?;
    within("write_queue", d.write_queue as f64, 1.0, 1024.0)?;
    if d.seek_min_ms > d.seek_full_ms {
        return Err(ModelError::Order {
            lesser: "seek_min_ms",
            lesser_value: d.seek_min_ms,
            greater: "seek_full_ms",
            greater_value: d.seek_full_ms,
        });
    }
    check_curve(&d.seek_points)?;
    quick_enough("rpm, seeks, rates, overhead_us, queue and age_limit_ms", longest_request_s(d))?;
    quick_enough("rpm, seeks, rates and write_cache_requests", longest_flush_s(d))
}

/// Checks the parameters of a volume.
pub(crate) fn check_volume(v: &VolumeModel) -> Result<(), ModelError> {
    within("latency_us", v.latency_us, 0.001, 1e7)?;
    within("jitter", v.jitter, 0.0, 3.0)?;
    within("width", v.width as f64, 1.0, 65536.0)?;
    within("iops", v.iops, 0.1, 1e9)?;
    within("io_unit_bytes", v.io_unit_bytes as f64, 1.0, (1u64 << 60) as f64)?;
    within("bytes_per_s", v.bytes_per_s, 1e5, 1e13)?;
    within("line_bytes_per_s", v.line_bytes_per_s, 1e5, 1e13)?;
    within("burst_ms", v.burst_ms, 0.0, 1e6)?;
    within("write_latency_us", v.write_latency_us.unwrap_or(1.0), 0.001, 1e7)?;
    within("write_iops", v.write_iops.unwrap_or(1.0), 0.1, 1e9)?;
    within("write_bytes_per_s", v.write_bytes_per_s.unwrap_or(1e6), 1e5, 1e13)?;
    within("streams", v.streams as f64, 0.0, 1024.0)?;
    within("tail_share", v.tail_share, 0.0, 1.0)?;
    within("tail_us", v.tail_us, 0.0, 1e7)?;
    within("tail_jitter", v.tail_jitter, 0.0, 3.0)?;
    check_credits(
        Parameter { name: "io_credits", value: v.io_credits },
        Parameter { name: "iops", value: v.iops },
        Parameter { name: "burst_iops", value: v.burst_iops },
    )?;
    check_credits(
        Parameter { name: "byte_credits", value: v.byte_credits },
        Parameter { name: "bytes_per_s", value: v.bytes_per_s },
        Parameter { name: "burst_bytes_per_s", value: v.burst_bytes_per_s },
    )?;
    quick_enough("latencies, jitters, width, iops, io_unit_bytes and the rates", longest_answer_s(v))
}

/// A parameter of a model.
struct Parameter<T> {
    name: &'static str,
    value: T,
}

/// Credits are back after [`REFILL_S`] at most: beyond that a nanosecond is lost in the sums.
fn check_credits(
    credits: Parameter<f64>,
    base: Parameter<f64>,
    burst: Parameter<Option<f64>>,
) -> Result<(), ModelError> {
    within(credits.name, credits.value, 0.0, REFILL_S * base.value)?;
    let Some(burst_value) = burst.value else { return Ok(()) };
    within(burst.name, burst_value, 0.1, 1e13)?;
    match base.value > burst_value {
        true => Err(ModelError::Order {
            lesser: base.name,
            lesser_value: base.value,
            greater: burst.name,
            greater_value: burst_value,
        }),
        false => Ok(()),
    }
}

/// Refuses a value out of its bounds.
pub(crate) fn within(parameter: &'static str, value: f64, least: f64, most: f64) -> Result<(), ModelError> {
    match (least..=most).contains(&value) {
        true => Ok(()),
        false => Err(ModelError::OutOfBounds { parameter, value, least, most }),
    }
}

fn check_curve(points: &[(f64, f64)]) -> Result<(), ModelError> {
    let inside = |(way, ms): (f64, f64)| (0.0..=1.0).contains(&way) && (0.0..=1000.0).contains(&ms);
    let good = |i: usize| {
        let above = i == 0 || (points[i - 1].0 < points[i].0 && points[i - 1].1 <= points[i].1);
        i < SEEK_POINTS && inside(points[i]) && above
    };
    match (0..points.len()).find(|&i| !good(i)) {
        Some(i) => Err(ModelError::SeekPoints { number: i + 1 }),
        None => Ok(()),
    }
}

fn quick_enough(parameters: &'static str, longest_s: f64) -> Result<(), ModelError> {
    match longest_s <= ANSWER_S {
        true => Ok(()),
        false => Err(ModelError::TooSlow { parameters, longest_s, most_s: ANSWER_S }),
    }
}

/// The arm's way to any place: seek, settle, a whole turn.
fn longest_way_s(d: &DiskModel) -> f64 {
    let seek_ms = d.seek_points.last().map_or(d.seek_full_ms, |&(_, ms)| ms);
    (seek_ms + d.write_settle_ms) / 1e3 + 60.0 / f64::from(d.rpm)
}

fn media_s(d: &DiskModel, bytes: f64) -> f64 {
    bytes / d.outer_bytes_per_s.min(d.inner_bytes_per_s).min(d.interface_bytes_per_s)
}

/// One request of the arm, begun and ended.
fn longest_service_s(d: &DiskModel) -> f64 {
    d.overhead_us / 1e6 + longest_way_s(d) + media_s(d, REQUEST_BYTES as f64)
}

/// Until a request is one of the oldest `queue`, those before it are served, each by then too
/// old to be passed over; then it is too old itself, and the others of the queue go before it
/// at most. While the cache is full every second turn is a write-out's.
fn longest_request_s(d: &DiskModel) -> f64 {
    let turns = if d.write_cache_bytes > 0 { 2.0 } else { 1.0 };
    let ages = OUTSTANDING.div_ceil(d.queue as u64) + 1;
    ages as f64 * d.age_limit_ms / 1e3 + 2.0 * OUTSTANDING as f64 * turns * longest_service_s(d)
}

/// A flush, or a write for which there is no room, waits for all that is in the cache or before
/// it; every second turn is a read's.
fn longest_flush_s(d: &DiskModel) -> f64 {
    if d.write_cache_bytes == 0 {
        return 0.0;
    }
    let writes = (d.write_cache_requests as u64 + OUTSTANDING) as f64;
    let bytes = (d.write_cache_bytes + OUTSTANDING * REQUEST_BYTES) as f64;
    writes * (longest_way_s(d) + longest_service_s(d)) + 2.0 * media_s(d, bytes)
}

/// The wait for one of the `width` places, for the caps without credits, and for the latency at
/// its worst.
fn longest_answer_s(v: &VolumeModel) -> f64 {
    // The chance is a sum of twelve uniform numbers less six: never more than six deviations.
    let worst_s = |mean_us: f64, jitter: f64| mean_us / 1e6 * (6.0 * jitter - jitter * jitter / 2.0).exp();
    let mean_us = v.latency_us.max(v.write_latency_us.unwrap_or(0.0));
    let tail_s = if v.tail_share > 0.0 { worst_s(v.tail_us, v.tail_jitter) } else { 0.0 };
    let latency_s = worst_s(mean_us, v.jitter) + tail_s;
    let rounds = OUTSTANDING.div_ceil(v.width as u64) as f64;
    let ios = REQUEST_BYTES.div_ceil(v.io_unit_bytes) as f64;
    let share_s = |iops: f64, bytes_per_s: f64| (ios / iops).max(REQUEST_BYTES as f64 / bytes_per_s);
    let shares_s = share_s(v.iops, v.bytes_per_s);
    // Reads and writes wait for each other's places, and each may find one request's debt.
    let own_s = v.write_caps().map_or(0.0, |(iops, bytes_per_s)| share_s(iops, bytes_per_s));
    let most_s = OUTSTANDING as f64 * shares_s.max(own_s) + shares_s + own_s;
    rounds * (latency_s + REQUEST_BYTES as f64 / v.line_bytes_per_s) + most_s
}
