//! The work of a block device over a time, by its own counters.

use serde::{Deserialize, Serialize};

use crate::machine::diskstats::DiskCounts;
use crate::machine::program::ProcessIo;

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
    /// The part of it that this process asked for, by a trace; null without one.
    #[serde(default)]
    pub own: Option<OwnWork>,
    /// Bytes that it did not ask for: of other programs, or the file system's own. By the trace,
    /// else by /proc/self/io.
    #[serde(default)]
    pub others_bytes: u64,
}

/// Requests for this process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnWork {
    /// Read requests that are over.
    pub reads: u64,
    /// Their bytes.
    pub read_bytes: u64,
    /// Write requests that are over, write-back of the files it made dirty included.
    pub writes: u64,
    /// Their bytes.
    pub write_bytes: u64,
}

/// The device and this process at one moment.
#[derive(Debug, Clone, Copy)]
pub struct DeviceClock {
    counts: DiskCounts,
    own: ProcessIo,
}

impl DeviceClock {
    /// Now; nothing for what is not in /proc/diskstats.
    pub fn now(device: &str) -> Option<DeviceClock> {
        Some(DeviceClock { counts: DiskCounts::now(device)?, own: ProcessIo::own() })
    }

    /// The work until `later`, `seconds` after it.
    pub fn until(&self, later: &DeviceClock, seconds: f64) -> DeviceWork {
        let work = DeviceWork::between(&self.counts, &later.counts, seconds);
        let own = later.own.since(self.own);
        let others_bytes =
            (work.read_bytes + work.write_bytes).saturating_sub(own.read_bytes + own.write_bytes);
        DeviceWork { others_bytes, ..work }
    }
}

/// Share of others' bytes above which requests of all programs say nothing of the measured one.
const OTHERS_COUNT: f64 = 0.02;

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
            own: None,
            others_bytes: 0,
        }
    }

    /// With what a trace says of this process.
    pub fn with_own(self, own: OwnWork) -> DeviceWork {
        let all = self.read_bytes + self.write_bytes;
        let others_bytes = all.saturating_sub(own.read_bytes + own.write_bytes);
        DeviceWork { own: Some(own), others_bytes, ..self }
    }

    /// Reads for this process and their bytes: by the trace; else all, where others have no part
    /// in them. The bytes alone are known without.
    pub fn own_reads(&self) -> (Option<u64>, u64) {
        match self.own {
            Some(own) => (Some(own.reads), own.read_bytes),
            None => self.without_others(self.reads, self.read_bytes),
        }
    }

    /// As [`own_reads`](Self::own_reads), of writes.
    pub fn own_writes(&self) -> (Option<u64>, u64) {
        match self.own {
            Some(own) => (Some(own.writes), own.write_bytes),
            None => self.without_others(self.writes, self.write_bytes),
        }
    }

    fn without_others(&self, requests: u64, bytes: u64) -> (Option<u64>, u64) {
        let all = (self.read_bytes + self.write_bytes).max(1);
        let alone = self.others_bytes as f64 <= OTHERS_COUNT * all as f64;
        // Those who disturb a direction have at most what it moved.
        (alone.then_some(requests), if alone { bytes } else { bytes.saturating_sub(self.others_bytes) })
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
        let own = OwnWork { reads: 40, read_bytes: 300 * 512, writes: 0, write_bytes: 0 };
        let traced = work.with_own(own);
        assert_eq!((traced.own_reads(), traced.others_bytes), ((Some(40), 300 * 512), 108 * 512));
    }

    #[test]
    fn requests_of_all_say_nothing_where_others_have_a_part() {
        let clock = |reads: u64, sectors: u64, own: u64| DeviceClock {
            counts: DiskCounts { reads, read_sectors: sectors, ..DiskCounts::default() },
            own: ProcessIo { read_bytes: own, ..ProcessIo::default() },
        };
        let alone = clock(0, 0, 0).until(&clock(100, 800, 790 * 512), 1.0);
        assert_eq!((alone.own_reads(), alone.others_bytes), ((Some(100), 800 * 512), 10 * 512));
        let beside = clock(0, 0, 0).until(&clock(150, 1200, 800 * 512), 1.0);
        assert_eq!((beside.own_reads(), beside.others_bytes), ((None, 800 * 512), 400 * 512));
        let untraced = serde_json::to_value(beside).unwrap();
        assert!(untraced["own"].is_null() && untraced["others_bytes"] == 400 * 512, "{untraced}");
    }
}
