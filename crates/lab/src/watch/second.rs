//! One reading of everything, and the line for the time between two.

use std::collections::BTreeMap;
use std::time::Instant;

use serde::Serialize;

use super::iostat::DeviceSecond;
use super::tree::{Tree, TreeCounts};
use crate::group::{Group, GroupMemory};
use crate::machine::cpu::{Cpu, CpuTicks};
use crate::machine::diskstats::DiskCounts;

/// Everything at one moment.
#[derive(Clone)]
pub struct Reading {
    at: Instant,
    cpu: CpuTicks,
    cpus: Vec<CpuTicks>,
    tree: TreeCounts,
    devices: BTreeMap<String, DiskCounts>,
    memory: Memory,
    group: Option<GroupMemory>,
}

/// The machine's memory, in bytes, named as in /proc/meminfo.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// Memory that programs could still have.
    pub available: u64,
    /// The page cache.
    pub cached: u64,
    /// Waiting to be written.
    pub dirty: u64,
    /// Being written.
    pub writeback: u64,
}

impl Memory {
    fn parse(text: &str) -> Memory {
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            let kib = line.and_then(|l| l.split_whitespace().next()?.parse::<u64>().ok());
            kib.unwrap_or(0) * 1024
        };
        Memory {
            available: field("MemAvailable"),
            cached: field("Cached"),
            dirty: field("Dirty"),
            writeback: field("Writeback"),
        }
    }
}

/// The program in one interval: rates, and memory at its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct ProgramSecond {
    /// Processors used in user mode; 1 is a whole one.
    pub user: f64,
    /// Processors used in the kernel.
    pub system: f64,
    /// Read calls per second.
    pub read_calls_per_s: f64,
    /// Bytes they asked for, per second.
    pub read_asked_bytes_per_s: f64,
    /// Bytes fetched from storage for it, per second.
    pub read_storage_bytes_per_s: f64,
    /// Write calls per second.
    pub write_calls_per_s: f64,
    /// Bytes given to them, per second.
    pub write_asked_bytes_per_s: f64,
    /// Bytes it made to be written to storage, per second.
    pub write_storage_bytes_per_s: f64,
    /// Page faults answered from memory, per second.
    pub minor_faults_per_s: f64,
    /// Page faults that waited for storage, per second.
    pub major_faults_per_s: f64,
    /// Its memory at the end, bytes.
    pub rss_bytes: u64,
    /// Its processes at the end.
    pub processes: u64,
    /// Its threads at the end.
    pub threads: u64,
}

/// A line of `seconds.jsonl`.
#[derive(Debug, Clone, Serialize)]
pub struct Second {
    /// End of the interval, seconds since the beginning.
    pub end_s: f64,
    /// Its length.
    pub length_s: f64,
    /// Shares of all processors, in percent.
    pub cpu: Cpu,
    /// Shares of each processor, in percent.
    pub cpus: Vec<Cpu>,
    /// The program.
    pub program: ProgramSecond,
    /// The devices, by name.
    pub devices: BTreeMap<String, DeviceSecond>,
    /// The machine's memory at the end.
    pub memory: Memory,
    /// Memory of the control group at the end, when one is watched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupMemory>,
}

impl Reading {
    /// Reads everything now.
    pub fn now(tree: &mut Tree, devices: &[String]) -> Reading {
        let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let stats = text("/proc/diskstats");
        let counts = |name: &String| Some((name.clone(), DiskCounts::parse(&stats, name)?));
        Reading {
            at: Instant::now(),
            cpu: CpuTicks::now(),
            cpus: CpuTicks::each_now(),
            tree: tree.now(),
            devices: devices.iter().filter_map(counts).collect(),
            memory: Memory::parse(&text("/proc/meminfo")),
            group: tree.group().and_then(Group::memory),
        }
    }

    /// The change since `before`; `begun` is when the watch began.
    pub fn since(&self, before: &Reading, begun: Instant) -> Second {
        let length_s = self.seconds_after(before);
        let devices = self.devices.iter().filter_map(|(name, after)| {
            Some((name.clone(), DeviceSecond::between(before.devices.get(name)?, after, length_s)))
        });
        Second {
            end_s: self.at.duration_since(begun).as_secs_f64(),
            length_s,
            cpu: self.cpu.since(&before.cpu),
            cpus: self.cpus.iter().zip(&before.cpus).map(|(now, then)| now.since(then)).collect(),
            program: program(&before.tree, &self.tree, length_s),
            devices: devices.collect(),
            memory: self.memory,
            group: self.group,
        }
    }

    /// The time between two.
    pub fn seconds_after(&self, before: &Reading) -> f64 {
        self.at.duration_since(before.at).as_secs_f64()
    }

    /// The program's sums.
    pub fn tree(&self) -> &TreeCounts {
        &self.tree
    }
}

fn program(before: &TreeCounts, after: &TreeCounts, seconds: f64) -> ProgramSecond {
    let seconds = seconds.max(1e-9);
    let io = after.io.since(before.io);
    let rate = |n: u64| n as f64 / seconds;
    let growth = |now: f64, then: f64| (now - then).max(0.0) / seconds;
    ProgramSecond {
        user: growth(after.user_s, before.user_s),
        system: growth(after.system_s, before.system_s),
        read_calls_per_s: rate(io.syscr),
        read_asked_bytes_per_s: rate(io.rchar),
        read_storage_bytes_per_s: rate(io.read_bytes),
        write_calls_per_s: rate(io.syscw),
        write_asked_bytes_per_s: rate(io.wchar),
        write_storage_bytes_per_s: rate(io.write_bytes),
        minor_faults_per_s: rate(after.minor_faults.saturating_sub(before.minor_faults)),
        major_faults_per_s: rate(after.major_faults.saturating_sub(before.major_faults)),
        rss_bytes: after.rss_bytes,
        processes: after.processes,
        threads: after.threads,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::program::ProcessIo;

    #[test]
    fn rates_are_per_second_whatever_the_length() {
        let before = TreeCounts { user_s: 1.0, major_faults: 4, ..TreeCounts::default() };
        let io = ProcessIo { syscr: 10, rchar: 8000, read_bytes: 4096, ..ProcessIo::default() };
        let after = TreeCounts { user_s: 2.0, major_faults: 8, rss_bytes: 77, io, ..TreeCounts::default() };
        let second = program(&before, &after, 2.0);
        assert_eq!((second.user, second.major_faults_per_s, second.read_calls_per_s), (0.5, 2.0, 5.0));
        assert_eq!((second.read_asked_bytes_per_s, second.read_storage_bytes_per_s), (4000.0, 2048.0));
        assert_eq!(second.rss_bytes, 77);
    }

    #[test]
    fn memory_is_read_in_bytes() {
        let memory = Memory::parse("MemTotal: 9 kB\nMemAvailable:   5 kB\nCached: 3 kB\nDirty: 2 kB\n");
        assert_eq!((memory.available, memory.cached, memory.dirty, memory.writeback), (5120, 3072, 2048, 0));
    }
}
