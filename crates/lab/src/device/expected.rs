//! Published figures of the devices that the models stand for, and how to measure them.
//!
//! A figure is right within 10 % of a published value, or inside a published range. Some can
//! only be measured on the model itself: through a block device requests are at most 1 MiB, and
//! no faster than this machine answers.

use snowmelt_io::{IoError, SteadyLoad};

use super::measure::{DeviceLoad, DeviceTarget};

/// How far a measured value may be from the published one.
const TOLERANCE: f64 = 0.10;

/// A published figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Published {
    /// This, within 10 %.
    Value(f64),
    /// Something in between.
    Range(f64, f64),
    /// More than this.
    AtLeast(f64),
    /// Never more than this, and no less than half of it.
    Below(f64),
}

impl Published {
    /// True for a value that agrees.
    pub fn agrees(self, value: f64) -> bool {
        match self {
            Published::Value(v) => (value / v - 1.0).abs() <= TOLERANCE,
            Published::Range(low, high) => (low..=high).contains(&value),
            Published::AtLeast(low) => value >= low,
            Published::Below(high) => (high / 2.0..=high).contains(&value),
        }
    }

    /// In words.
    pub fn show(self) -> String {
        match self {
            Published::Value(v) => number(v),
            Published::Range(low, high) => format!("{} to {}", number(low), number(high)),
            Published::AtLeast(low) => format!("over {}", number(low)),
            Published::Below(high) => format!("up to {}", number(high)),
        }
    }
}

/// Three significant digits.
pub fn number(value: f64) -> String {
    let digits = 2 - value.abs().max(1e-9).log10().floor() as i32;
    format!("{value:.*}", digits.clamp(0, 4) as usize)
}

/// One published figure.
pub struct Expected {
    /// Its subject.
    pub what: &'static str,
    pub unit: &'static str,
    pub published: Published,
    /// Its source.
    pub source: &'static str,
    pub scope: Scope,
    pub measure: fn(&DeviceTarget) -> Result<f64, IoError>,
}

/// Where it can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// On the model only.
    Model,
    /// On a block device too.
    Read,
    /// On a block device too, after the burst credits are gone.
    Spent,
    /// On a block device too, by writing to it.
    Write,
}

const MB: f64 = 1e6;
const MIB: f64 = (1 << 20) as f64;

const MANUAL: &str = "drive's data sheet, as in D. Aldridge's experiments of 2006";
const CURVE: &str = "Cheetah 9LP as extracted for DiskSim, scaled to the three published seeks";
const ST2000: &str = "ST2000DM006 as measured for ublk-disksim";
const PLOTS: &str = "diskplorer's plot of gp3 (r5b, latency below the caps)";
const GP2: &str = "AWS documentation of gp2 volumes";
const GP2_MEAN: &str = "read latency of a database on gp2 until its credits ended (ldaws.com)";
const ST1: &str = "AWS documentation of st1 volumes";
const ST1_LATENCY: &str = "a disk over a network, from memory";
const AZURE: &str = "Azure documentation of disk bursting";
const AZURE_LATENCY: &str = "Azure documentation of premium disks: single-digit milliseconds";
const AWS: &str = "AWS, gp3 as bought";
const RESTART: &str = "the volume of the RavenDB restart experiment";
const RAVEN: &str = "the volume of the RavenDB restart experiment, in kind";
const OBJECTS: &str = "published measurements of object stores (AnyBlob, VLDB 2023; AWS guidelines)";
const EVO: &str = "data sheet of the Samsung 860 EVO (SATA), from memory";
const NVME: &str = "data-centre NVMe drives (Samsung PM9A3 80 µs; Micron 7300 3 GB/s)";

/// The capacity of the disk of E1, in bytes.
const CHEETAH: u64 = 18_200_000_000;

fn reads(
    t: &DeviceTarget,
    depth: u64,
    block: u64,
    few: u64,
    many: u64,
) -> Result<super::measure::Sample, IoError> {
    t.random(DeviceLoad { depth, requests: t.count(few, many), block, write: false }, 3)
}

macro_rules! expected {
    ($($what:literal, $unit:literal, $published:expr, $source:expr, $scope:ident, $measure:expr;)*) => {
        vec![$(Expected { what: $what, unit: $unit, published: $published, source: $source, scope: Scope::$scope, measure: $measure }),*]
    };
}

use Published::{AtLeast, Below, Range, Value};

/// Figures of the device that `model` stands for; none for models of one's own.
pub fn published(model: &str) -> Vec<Expected> {
    match model {
        "hdd-10k" => hdd_10k(),
        "hdd-7200" => hdd_7200(),
        "gp2-100" => gp2_100(),
        "gp3" => gp3(),
        "st1-500" => st1_500(),
        "azure-p10" => azure_p10(),
        "e3" => e3(),
        "wide-slow" => wide_slow(),
        "s3" => s3(),
        "ssd" => ssd(),
        "nvme" => nvme(),
        _ => Vec::new(),
    }
}

fn hdd_10k() -> Vec<Expected> {
    expected![
        "seek to a neighbouring track", "ms", Value(0.6), MANUAL, Read, |t| seek(t, 1.0 / 6894.0);
        "seek over 6 % of the stroke", "ms", Value(2.69), CURVE, Read, |t| seek(t, 425.0 / 6894.0);
        "seek over 41 % of the stroke", "ms", Value(5.71), CURVE, Read, |t| seek(t, 2800.0 / 6894.0);
        "seek over the full stroke", "ms", Value(10.0), MANUAL, Read, |t| seek(t, 0.998);
        "random read alone (5.2 ms seek, half a turn of 6.0 ms)", "ms", Value(8.2), MANUAL, Read, |t| Ok(reads(t, 1, 4096, 600, 6000)?.mean_ms());
        "gain of 32 at once over one", "×", Value(2.4), "enterprise disks, as measured for ublk-disksim", Read,
            |t| Ok(reads(t, 32, 4096, 1500, 6000)?.per_s() / reads(t, 1, 4096, 600, 6000)?.per_s());
        "sequential, outermost tracks", "MB/s", Value(38.0), "transfer rates of that generation, from memory", Read, |t| Ok(t.sequential(0, t.count(96 << 20, 256 << 20), 1 << 20, false)?.bytes_per_s() / MB);
        "sequential, innermost tracks", "MB/s", Value(30.0), "transfer rates of that generation, from memory", Read, |t| Ok(t.sequential(t.len() - (256 << 20), t.count(96 << 20, 256 << 20), 1 << 20, false)?.bytes_per_s() / MB);
    ]
}

/// Not a number where the buffer had all reads: it agrees with nothing.
fn seek(t: &DeviceTarget, way: f64) -> Result<f64, IoError> {
    Ok(t.seek_ms(way, CHEETAH)?.unwrap_or(f64::NAN))
}

fn hdd_7200() -> Vec<Expected> {
    expected![
        "random read alone", "ms", Value(17.5), ST2000, Read, |t| Ok(reads(t, 1, 4096, 400, 6000)?.mean_ms());
        "random read alone, 99 of 100", "ms", Value(28.7), ST2000, Read, |t| Ok(reads(t, 1, 4096, 400, 6000)?.quantile_ms(0.99));
        "random reads, 32 at once", "per s", Value(94.0), ST2000, Read, |t| Ok(reads(t, 32, 4096, 800, 6000)?.per_s());
        "sequential read in the middle", "MB/s", Value(143.0), ST2000, Read, |t| Ok(t.sequential(t.len() / 2, t.count(256 << 20, 1 << 30), 1 << 20, false)?.bytes_per_s() / MB);
        "sequential write in the middle", "MB/s", Value(132.0), ST2000, Model, |t| Ok(t.sequential(t.len() / 2, 2 << 30, 1 << 20, true)?.bytes_per_s() / MB);
        "random writes, sustained", "per s", Value(124.0), ST2000, Model, sustained_writes;
        "flush after 8 scattered writes", "ms", Value(127.0), ST2000, Write, |t| t.flush_ms(8);
        "flush after 64 scattered writes", "ms", Value(630.0), ST2000, Write, |t| t.flush_ms(64);
    ]
}

/// After the cache has been filled.
fn sustained_writes(t: &DeviceTarget) -> Result<f64, IoError> {
    let writes = |requests, seed| t.random(DeviceLoad { depth: 1, requests, block: 4096, write: true }, seed);
    writes(17_000, 3)?;
    Ok(writes(4_000, 4)?.per_s())
}

/// Scattered reads, more at once than any volume needs.
const SCATTERED: SteadyLoad =
    SteadyLoad { depth: 64, len: 4096, stride: 1 << 21, write: false, rested_s: None };

/// Reads from one end to the other.
const fn scan(len: u64) -> SteadyLoad {
    SteadyLoad { depth: 64, len, stride: len, write: false, rested_s: None }
}

const fn rested(load: SteadyLoad, hours: f64) -> SteadyLoad {
    SteadyLoad { rested_s: Some(hours * 3600.0), ..load }
}

fn gp2_100() -> Vec<Expected> {
    expected![
        "a read alone", "ms", Value(0.5), GP2_MEAN, Read, |t| Ok(reads(t, 1, 4096, 6000, 40_000)?.mean_ms());
        "99 of 100 reads alone are within", "ms", Range(1.0, 9.9), GP2, Read, |t| Ok(reads(t, 1, 4096, 6000, 40_000)?.quantile_ms(0.99));
        "with credits: reads of 16 KiB, 16 at once", "per s", Value(3000.0), GP2, Read, |t| Ok(reads(t, 16, 16384, 12_000, 15_000)?.per_s());
        "with credits: reads of 1 MiB, 8 at once", "MiB/s", Value(128.0), GP2, Read, |t| Ok(reads(t, 8, 1 << 20, 600, 1500)?.bytes_per_s() / MIB);
        "credits gone: reads of 16 KiB, 16 at once", "per s", Value(300.0), GP2, Spent, |t| Ok(reads(t, 16, 16384, 1500, 15_000)?.per_s());
        "full credits last", "s", Value(2000.0), GP2, Model, |t| Ok(t.lasts_s(SCATTERED, 1000.0));
        "half of the 5 hours in which credits come back: they last", "s", Value(1000.0), GP2, Model, |t| Ok(t.lasts_s(rested(SCATTERED, 2.5), 1000.0));
    ]
}

fn st1_500() -> Vec<Expected> {
    expected![
        "a read alone", "ms", Range(10.0, 99.0), ST1_LATENCY, Read, |t| Ok(reads(t, 1, 4096, 200, 4000)?.mean_ms());
        "with credits: reads of 1 MiB, 16 at once", "MiB/s", Value(122.0), ST1, Read, |t| Ok(reads(t, 16, 1 << 20, 700, 3000)?.bytes_per_s() / MIB);
        "with credits: scattered reads of 4 KiB, each a whole MiB", "per s", Value(122.0), ST1, Read, |t| Ok(reads(t, 16, 4096, 700, 3000)?.per_s());
        "credits gone: reads of 1 MiB, 16 at once", "MiB/s", Value(19.5), ST1, Spent, |t| Ok(reads(t, 16, 1 << 20, 120, 1500)?.bytes_per_s() / MIB);
        "credits gone: scan by 128 KiB, merged", "MiB/s", Value(19.5), ST1, Model, |t| Ok(1000.0 / t.takes_s(rested(scan(128 << 10), 0.0), 8000));
        "scan of the whole volume, with credits", "h", Value(1.17), ST1, Model, |t| Ok(t.takes_s(scan(1 << 20), 500 << 10) / 3600.0);
        "its credits of a MiB per MiB last", "h", Value(1.39), ST1, Model, |t| Ok(t.lasts_s(scan(1 << 20), 60.0) / 3600.0);
    ]
}

fn azure_p10() -> Vec<Expected> {
    expected![
        "a read alone", "ms", Range(1.0, 9.9), AZURE_LATENCY, Read, |t| Ok(reads(t, 1, 4096, 2000, 40_000)?.mean_ms());
        "99 of 100 reads alone are within", "ms", Range(1.0, 9.9), AZURE_LATENCY, Read, |t| Ok(reads(t, 1, 4096, 2000, 40_000)?.quantile_ms(0.99));
        "with credits: reads of 16 KiB, 32 at once", "per s", Value(3500.0), AZURE, Read, |t| Ok(reads(t, 32, 16384, 14_000, 20_000)?.per_s());
        "with credits: reads of 1 MiB, 16 at once", "MB/s", Value(170.0), AZURE, Read, |t| Ok(reads(t, 16, 1 << 20, 800, 3000)?.bytes_per_s() / MB);
        "credits gone: reads of 16 KiB, 32 at once", "per s", Value(500.0), AZURE, Spent, |t| Ok(reads(t, 32, 16384, 2500, 15_000)?.per_s());
        "credits gone: reads of 1 MiB, 16 at once", "MB/s", Value(100.0), AZURE, Spent, |t| Ok(reads(t, 16, 1 << 20, 500, 1500)?.bytes_per_s() / MB);
        "full credits of requests last", "min", Value(30.0), AZURE, Model, |t| Ok(t.lasts_s(SCATTERED, 1000.0) / 60.0);
        "full credits of bytes last", "min", Value(30.0), AZURE, Model, |t| Ok(t.lasts_s(scan(256 << 10), 135e6 / 262_144.0) / 60.0);
        "after an hour's rest (500 per s come back) they last", "min", Value(10.0), AZURE, Model, |t| Ok(t.lasts_s(rested(SCATTERED, 1.0), 1000.0) / 60.0);
    ]
}

fn e3() -> Vec<Expected> {
    expected![
        "a read alone", "ms", AtLeast(0.5), RESTART, Read, |t| Ok(reads(t, 1, 4096, 3000, 10_000)?.mean_ms());
        "16 readers at once, against one", "×", AtLeast(10.0), RESTART, Read,
            |t| Ok(reads(t, 16, 4096, 30_000, 40_000)?.per_s() / reads(t, 1, 4096, 3000, 10_000)?.per_s());
        "scattered writes of 4 KiB, one at a time", "MB/s", Below(3.0), RESTART, Write, |t| scattered_writes(t, 1);
        "scattered writes of 4 KiB, 32 at once", "MB/s", Below(3.0), RESTART, Write, |t| scattered_writes(t, 32);
        "scattered writes of 4 KiB, 128 at once", "MB/s", Below(3.0), RESTART, Write, |t| scattered_writes(t, 128);
        "scattered writes of 4 KiB, each synced", "MB/s", Below(3.0), RESTART, Write, |t| Ok(t.synced_bytes_per_s(t.count(2000, 10_000))? / MB);
        "a copy from one half to the other", "MB/s", Value(10.0), RESTART, Write, |t| Ok(t.copy_bytes_per_s(t.count(64, 400))? / MB);
    ]
}

fn scattered_writes(t: &DeviceTarget, depth: u64) -> Result<f64, IoError> {
    let load = DeviceLoad { depth, requests: t.count(3500, 20_000), block: 4096, write: true };
    Ok(t.random(load, 5)?.bytes_per_s() / MB)
}

fn gp3() -> Vec<Expected> {
    expected![
        "half of the reads alone are within", "ms", Value(0.43), PLOTS, Read, |t| Ok(reads(t, 1, 4096, 3000, 40_000)?.quantile_ms(0.5));
        "95 of 100 reads alone are within", "ms", Value(0.71), PLOTS, Read, |t| Ok(reads(t, 1, 4096, 3000, 40_000)?.quantile_ms(0.95));
        "reads of 16 KiB, 16 at once", "per s", Value(3000.0), AWS, Read, |t| Ok(reads(t, 16, 16384, 12_000, 15_000)?.per_s());
        "reads of 1 MiB, 8 at once", "MiB/s", Value(125.0), AWS, Read, |t| Ok(reads(t, 8, 1 << 20, 600, 1500)?.bytes_per_s() / MIB);
        "behind the cliff (64 at once) half of the reads take", "ms", AtLeast(5.0), PLOTS, Read, |t| Ok(reads(t, 64, 4096, 12_000, 15_000)?.quantile_ms(0.5));
    ]
}

fn wide_slow() -> Vec<Expected> {
    expected![
        "a read alone", "ms", Value(3.0), RAVEN, Read, |t| Ok(reads(t, 1, 8192, 200, 2000)?.mean_ms());
        "32 reads at once, against one", "×", Value(1.0), RAVEN, Read, at_once;
        "reads of 8 KiB, 64 at once", "per s", Value(3000.0), RAVEN, Read, |t| Ok(reads(t, 64, 8192, 12_000, 15_000)?.per_s());
        "reads of 1 MiB, 16 at once", "MiB/s", Value(125.0), RAVEN, Read, |t| Ok(reads(t, 16, 1 << 20, 600, 3000)?.bytes_per_s() / MIB);
    ]
}

/// How much longer 32 reads at once take than one.
fn at_once(t: &DeviceTarget) -> Result<f64, IoError> {
    reads(t, 1, 8192, 100, 100)?; // after the bursts before, the budget is full again
    let one = reads(t, 1, 8192, 50, 50)?.mean_ms();
    let mut shortest = f64::MAX;
    for _ in 0..5 {
        reads(t, 1, 8192, 20, 20)?;
        let many = t.random(DeviceLoad { depth: 32, requests: 32, block: 8192, write: false }, 9)?;
        shortest = shortest.min(many.total_ns as f64 / 1e6);
    }
    Ok(shortest / one)
}

fn s3() -> Vec<Expected> {
    expected![
        "first byte, half of the requests", "ms", Range(10.0, 40.0), OBJECTS, Read, |t| Ok(reads(t, 1, 4096, 200, 4000)?.quantile_ms(0.5));
        "first byte, 99 of 100", "ms", Range(100.0, 200.0), OBJECTS, Model, |t| Ok(reads(t, 1, 4096, 0, 20_000)?.quantile_ms(0.99));
        "one request of 16 MiB", "MB/s", Range(50.0, 90.0), OBJECTS, Model, |t| Ok(reads(t, 1, 16 << 20, 0, 400)?.bytes_per_s() / MB);
        "requests, 256 at once", "per s", Value(5500.0), OBJECTS, Model, |t| Ok(reads(t, 256, 4096, 0, 20_000)?.per_s());
        "requests of 8 MiB, 200 at once", "GB/s", AtLeast(9.0), OBJECTS, Model, |t| Ok(reads(t, 200, 8 << 20, 0, 3000)?.bytes_per_s() / 1e9);
    ]
}

fn ssd() -> Vec<Expected> {
    expected![
        "reads of 4 KiB, one at a time", "per s", Value(10_000.0), EVO, Read, |t| Ok(reads(t, 1, 4096, 5000, 40_000)?.per_s());
        "reads of 4 KiB, 32 at once", "per s", Value(98_000.0), EVO, Model, |t| Ok(reads(t, 32, 4096, 0, 20_000)?.per_s());
        "sequential read", "MB/s", Value(550.0), EVO, Model, |t| Ok(reads(t, 4, 1 << 20, 0, 2000)?.bytes_per_s() / MB);
    ]
}

fn nvme() -> Vec<Expected> {
    expected![
        "a read alone", "ms", Value(0.08), NVME, Read, |t| Ok(reads(t, 1, 4096, 5000, 40_000)?.mean_ms());
        "reads of 4 KiB, 64 at once", "per s", Range(520_000.0, 850_000.0), NVME, Model, |t| Ok(reads(t, 64, 4096, 0, 20_000)?.per_s());
        "reads of 1 MiB, 8 at once", "GB/s", Value(3.0), NVME, Model, |t| Ok(reads(t, 8, 1 << 20, 0, 4000)?.bytes_per_s() / 1e9);
    ]
}
