//! Counts of a job while it runs, and its result at the end.

#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

/// The result of a job.
#[derive(Debug)]
pub struct JobResult {
    /// Requests completed.
    pub total_ios: u64,
    /// Bytes moved.
    pub io_bytes: u64,
    /// From the first request to the last completion, in ns.
    pub runtime_ns: u64,
    /// Completion latency of every request, in ns, from just before it was given to the kernel.
    pub clat_ns: Histogram<u64>,
    /// Length of the intervals, in ns.
    pub interval_ns: u64,
    /// Requests completed in each interval; the last one may have been cut short.
    pub per_interval: Vec<u64>,
    /// Processor time and faults of the process.
    pub cpu: CpuUse,
    /// The part of the reads.
    pub read: OneWay,
    /// The part of the writes.
    pub write: OneWay,
}

/// Requests of one direction.
#[derive(Debug)]
pub struct OneWay {
    /// Requests completed.
    pub total_ios: u64,
    /// Bytes moved.
    pub io_bytes: u64,
    /// Their latencies, in ns.
    pub clat_ns: Histogram<u64>,
}

impl JobResult {
    /// Requests per second.
    pub fn iops(&self) -> f64 {
        self.total_ios as f64 / (self.runtime_ns.max(1) as f64 / 1e9)
    }

    /// Bytes per second.
    pub fn bw_bytes(&self) -> f64 {
        self.io_bytes as f64 / (self.runtime_ns.max(1) as f64 / 1e9)
    }
}

/// Use of the processor by this process, kernel threads that work for it included:
/// getrusage(2).
#[derive(Debug, Clone, Copy, Default)]
pub struct CpuUse {
    /// Processor time in user mode, in ns.
    pub usr_ns: u64,
    /// Processor time in the kernel, in ns.
    pub sys_ns: u64,
    /// Context switches, voluntary or not.
    pub ctx: u64,
    /// Page faults that needed input.
    pub majf: u64,
    /// Page faults that did not.
    pub minf: u64,
}

impl CpuUse {
    /// So far.
    pub fn now() -> CpuUse {
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the pointer is to a structure of the right type, which the call only fills;
        // all zeros are a valid value of it.
        let usage = unsafe {
            libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
            usage.assume_init()
        };
        let ns = |t: libc::timeval| t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1000;
        CpuUse {
            usr_ns: ns(usage.ru_utime),
            sys_ns: ns(usage.ru_stime),
            ctx: (usage.ru_nvcsw + usage.ru_nivcsw) as u64,
            majf: usage.ru_majflt as u64,
            minf: usage.ru_minflt as u64,
        }
    }

    fn until(self, later: CpuUse) -> CpuUse {
        CpuUse {
            usr_ns: later.usr_ns - self.usr_ns,
            sys_ns: later.sys_ns - self.sys_ns,
            ctx: later.ctx - self.ctx,
            majf: later.majf - self.majf,
            minf: later.minf - self.minf,
        }
    }
}

/// Beginning of a job, common to its threads.
#[derive(Clone, Copy)]
pub(super) struct Start {
    at: Instant,
    cpu: CpuUse,
    interval_ns: u64,
    runtime_ns: u64,
}

/// Counts of one thread of a job.
pub(super) struct JobTally {
    /// Of reads, and of writes: memory that a job of one direction never touches.
    clat_ns: [Histogram<u64>; 2],
    per_interval: Vec<u64>,
    interval_ns: u64,
    /// End of the interval that is counted now.
    interval_end_ns: u64,
    in_interval: u64,
    last_ns: u64,
}

impl Start {
    pub(super) fn now(runtime: Duration, interval: Duration) -> Start {
        let ns = |d: Duration| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX);
        Start {
            cpu: CpuUse::now(),
            interval_ns: ns(interval).max(1),
            runtime_ns: ns(runtime),
            at: Instant::now(),
        }
    }

    /// Nanoseconds since the beginning.
    pub(super) fn elapsed_ns(&self) -> u64 {
        self.at.elapsed().as_nanos() as u64
    }

    /// True when no more requests should begin.
    pub(super) fn is_over(&self, now_ns: u64) -> bool {
        now_ns >= self.runtime_ns
    }

    pub(super) fn tally(&self) -> JobTally {
        JobTally {
            clat_ns: [no_latencies(), no_latencies()],
            per_interval: Vec::new(),
            interval_ns: self.interval_ns,
            interval_end_ns: self.interval_ns,
            in_interval: 0,
            last_ns: 0,
        }
    }

    /// All tallies together.
    pub(super) fn result(&self, bs: u64, tallies: Vec<JobTally>) -> JobResult {
        let cpu = self.cpu.until(CpuUse::now());
        let [mut reads, mut writes] = [no_latencies(), no_latencies()];
        let mut per_interval: Vec<u64> = Vec::new();
        let mut runtime_ns = 0;
        for mut tally in tallies {
            tally.per_interval.push(tally.in_interval);
            for (all, of_one) in [&mut reads, &mut writes].into_iter().zip(&tally.clat_ns) {
                all.add(of_one).expect("all have the same bounds");
            }
            per_interval.resize(per_interval.len().max(tally.per_interval.len()), 0);
            per_interval.iter_mut().zip(&tally.per_interval).for_each(|(sum, n)| *sum += n);
            runtime_ns = runtime_ns.max(tally.last_ns);
        }
        let mut clat_ns = reads.clone();
        clat_ns.add(&writes).expect("all have the same bounds");
        let total_ios = clat_ns.len();
        let one_way = |clat_ns: Histogram<u64>| {
            let total_ios = clat_ns.len();
            OneWay { total_ios, io_bytes: total_ios * bs, clat_ns }
        };
        JobResult {
            total_ios,
            io_bytes: total_ios * bs,
            runtime_ns,
            clat_ns,
            interval_ns: self.interval_ns,
            per_interval,
            cpu,
            read: one_way(reads),
            write: one_way(writes),
        }
    }
}

/// Up to an hour; two digits would be too coarse for medians, four cost cache.
fn no_latencies() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 3_600_000_000_000, 3)
        .expect("1 to an hour at three digits are valid bounds")
}

impl JobTally {
    /// A request begun at `began_ns` is over at `now_ns`, both since the start.
    pub(super) fn add(&mut self, write: bool, began_ns: u64, now_ns: u64) {
        self.clat_ns[usize::from(write)].saturating_record((now_ns - began_ns).max(1));
        while now_ns >= self.interval_end_ns {
            self.per_interval.push(self.in_interval);
            self.in_interval = 0;
            self.interval_end_ns += self.interval_ns;
        }
        self.in_interval += 1;
        self.last_ns = now_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_of_all_threads_are_summed() {
        let start = Start::now(Duration::from_secs(9), Duration::from_nanos(100));
        let (mut one, mut two) = (start.tally(), start.tally());
        [(0, 10), (10, 99), (99, 100), (100, 450)]
            .into_iter()
            .for_each(|(from, to)| one.add(false, from, to));
        two.add(true, 0, 220);
        let result = start.result(512, vec![one, two]);
        assert_eq!(result.per_interval, [2, 1, 1, 0, 1]);
        assert_eq!((result.total_ios, result.io_bytes, result.runtime_ns), (5, 5 * 512, 450));
        assert_eq!((result.clat_ns.max(), result.clat_ns.min()), (350, 1));
        assert_eq!((result.read.total_ios, result.write.total_ios, result.write.io_bytes), (4, 1, 512));
        assert_eq!((result.read.clat_ns.max(), result.write.clat_ns.max()), (350, 220));
    }

    #[test]
    fn the_process_uses_its_processors() {
        let before = CpuUse::now();
        let mut x = 1u64;
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(30) {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
        let used = before.until(CpuUse::now());
        assert!(used.usr_ns + used.sys_ns > 1_000_000, "{used:?}");
    }
}
