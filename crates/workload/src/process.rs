//! The kernel's figures of this process: its start, and the processor time it has used.

use std::fs;

use rustix::time::{ClockId, clock_gettime};

/// Ticks per second of the times in `/proc`: 100 on every Linux a program meets.
const TICKS: f64 = 100.0;

/// Seconds since this process was started by exec (resolution 10 ms), if the kernel says.
pub fn seconds_since_exec() -> Option<f64> {
    let uptime = fs::read_to_string("/proc/uptime").ok()?;
    let uptime: f64 = uptime.split_whitespace().next()?.parse().ok()?;
    Some((uptime - stat_field(22)? / TICKS).max(0.0))
}

/// Processor seconds this process has used, all threads, user and system.
pub fn cpu_seconds() -> f64 {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}

/// Processor nanoseconds this thread has used, user and system.
pub fn thread_cpu_ns() -> u64 {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    used.tv_sec as u64 * 1_000_000_000 + used.tv_nsec as u64
}

/// Bytes of physical memory in use now, and the most there ever were.
pub fn resident_bytes() -> Option<(u64, u64)> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib << 10)
    };
    Some((line("VmRSS:")?, line("VmHWM:")?))
}

/// A field of `/proc/self/stat`, counted from 1 as in its manual.
fn stat_field(number: usize) -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The second field, the name, is in parentheses and may hold anything.
    let after = &stat[stat.rfind(')')? + 1..];
    after.split_whitespace().nth(number - 3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_is_younger_than_the_machine_and_uses_processors() {
        let before = cpu_seconds();
        let mut x = 1u64;
        while cpu_seconds() < before + 0.03 {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
        assert!(seconds_since_exec().unwrap() >= 0.02);
        assert!(resident_bytes().unwrap().0 > 1 << 20);
    }
}
