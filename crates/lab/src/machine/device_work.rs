//! The work of a block device over a time, by its own counters.

use serde::{Deserialize, Serialize};

use crate::machine::diskstats::DiskCounts;

/// The work of a device for all programs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceWork {
    /// Read requests it completed.
    pub reads: u64,
    /// Their bytes.
    pub read_bytes: u64,
    /// Write requests it completed.
    pub writes: u64,
    /// Their bytes.
    pub write_bytes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Mean number of requests queued or in the device (iostat: aqu-sz).
    pub aqu_sz: f64,
}

impl DeviceWork {
    /// The work of `seconds` in which the counts became `later`.
    pub fn between(earlier: &DiskCounts, later: &DiskCounts, seconds: f64) -> DeviceWork {
        let d = later.since(earlier);
        DeviceWork {
            reads: d.reads,
            read_bytes: d.read_sectors * 512,
            writes: d.writes,
            write_bytes: d.write_sectors * 512,
            flushes: d.flushes,
            aqu_sz: d.weighted_ms as f64 / 1e3 / seconds.max(1e-9),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_readings_make_a_difference() {
        let counts = |line: &str| DiskCounts::parse(line, "vda").unwrap();
        let one = counts(" 254 0 vda 100 5 800 10 20 1 160 30 0 40 50 0 0 0 0 7 3\n");
        let two = counts(" 254 0 vda 150 5 1200 10 21 1 168 30 0 40 2050 0 0 0 0 9 3\n");
        let work = DeviceWork::between(&one, &two, 4.0);
        assert_eq!((work.reads, work.read_bytes, work.writes, work.write_bytes), (50, 400 * 512, 1, 8 * 512));
        assert_eq!((work.flushes, work.aqu_sz), (2, 0.5));
    }
}
