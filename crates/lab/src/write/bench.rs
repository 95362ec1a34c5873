//! How a rung of the ladder of writes is climbed: the same scattered places, by one method, with
//! one policy of syncing. At the end its blocks can be read back and verified.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use rustix::fs::Advice;
use serde::{Deserialize, Serialize};
use snowmelt_base::random::mix;
use snowmelt_io::{
    Access, FileDevice, Job, JobDirection, JobEngine, JobFile, JobResult, Pattern, Places, run_job,
    run_job_on,
};

use crate::LabError;
use crate::machine::device_work::{DeviceClock, DeviceWork};
use crate::stats::{Latencies, LatencySummary};
use crate::target::Target;
use crate::target::cold::make_cold;
use crate::write::plan::PlannedRung;
use crate::write::rung::{Rung, SyncPolicy};
use crate::write::sized::SizedTarget;
use crate::write::verify::{Verified, verify};

/// The result of a rung.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RungResult {
    /// Its settings.
    #[serde(flatten)]
    pub rung: Rung,
    /// Which turn, from 1.
    pub repeat: u32,
    /// Writes.
    pub total_ios: u64,
    /// Their bytes.
    pub io_bytes: u64,
    /// Seconds until the last write returned, reading ahead and syncs between included.
    pub written_s: f64,
    /// Seconds until everything was durable.
    pub durable_s: f64,
    /// Writes per second of that time.
    pub durable_per_s: f64,
    /// Bytes per second of that time.
    pub durable_bytes_per_s: f64,
    /// Seconds spent on asking for the targets to be read ahead.
    pub prefetch_s: f64,
    /// Latency of the writes.
    pub clat: LatencySummary,
    /// Number of syncs.
    pub syncs: u64,
    /// Seconds in syncs, all together.
    pub sync_s: f64,
    /// The longest of them, in ms.
    pub sync_max_ms: f64,
    /// Processor time in µs per write.
    pub cpu_us_per_io: f64,
    /// The work of the device meanwhile, for all programs, and the bytes that are not this one's.
    pub device: Option<DeviceWork>,
    /// The blocks read back, when they were verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<Verified>,
    /// Reasons to doubt it.
    pub doubts: Vec<String>,
}

/// Settings that all rungs have in common.
pub struct WriteBench<'a> {
    /// The file or device that is written to, and its state before a rung.
    pub target: &'a SizedTarget,
    /// Writes per rung.
    pub writes: u64,
    /// Bytes per portion.
    pub journal_bytes: u64,
    /// Most time for writing.
    pub runtime: Duration,
    /// Seed of the places.
    pub seed: u64,
    /// Set by a signal.
    pub stop: &'a AtomicBool,
}

/// Sums over the portions of a rung.
#[derive(Default)]
struct RungSums {
    latencies: Latencies,
    writes: u64,
    cpu_ns: u64,
    prefetch: Duration,
    syncs: Syncs,
}

#[derive(Default, Clone, Copy)]
struct Syncs {
    count: u64,
    total: Duration,
    longest: Duration,
}

impl Syncs {
    fn sync(&mut self, file: &JobFile, target: &Target) -> Result<(), LabError> {
        let began = Instant::now();
        rustix::fs::fdatasync(file.file()).map_err(|e| LabError::file("sync", &target.path, e))?;
        let took = began.elapsed();
        self.count += 1;
        self.total += took;
        self.longest = self.longest.max(took);
        Ok(())
    }
}

impl WriteBench<'_> {
    /// Climbs a rung, and verifies it if that was asked for.
    ///
    /// # Errors
    /// A write or a sync fails, or a block that is read back is another one.
    pub fn run(&self, planned: &PlannedRung, repeat: u32) -> Result<RungResult, LabError> {
        let job = self.job(planned, repeat)?;
        let mut result = self.climb(planned, &job, repeat)?;
        if !self.stop.load(Ordering::Relaxed) {
            result.verified = verify(self.file(), &planned.rung, &job, result.total_ios, self.stop)?;
        }
        Ok(result)
    }

    fn file(&self) -> &Target {
        &self.target.target
    }

    fn climb(&self, planned: &PlannedRung, job: &Job, repeat: u32) -> Result<RungResult, LabError> {
        let (rung, target) = (&planned.rung, self.file());
        if rung.sparse {
            self.target.empty()?;
        }
        let file = target.open(true, rung.direct)?;
        // A program that knows its places does not want the kernel's guesses.
        let _ = rustix::fs::fadvise(file.file(), 0, None, Advice::Random);
        let left = make_cold(file.file(), &target.path)?;
        let mut doubts = Vec::new();
        if left > 0 {
            doubts.push(format!("{left} pages stayed in the page cache: not cold"));
        }
        let before = DeviceClock::now(&target.device.name);
        let began = Instant::now();
        let mut sums = RungSums::default();
        let written = match rung.sync {
            SyncPolicy::Background => self.with_background_sync(&file, job, rung, &mut sums)?,
            _ => {
                self.portions(&file, job, rung, &mut sums, &mut |sums| match rung.sync {
                    SyncPolicy::Journal | SyncPolicy::Each => sums.syncs.sync(&file, target),
                    _ => Ok(()),
                })?;
                let written = began.elapsed();
                if rung.sync == SyncPolicy::End {
                    sums.syncs.sync(&file, target)?;
                }
                written
            }
        };
        let durable = began.elapsed();
        let device = before
            .zip(DeviceClock::now(&target.device.name))
            .map(|(before, after)| before.until(&after, durable.as_secs_f64()));
        if sums.writes < self.writes && !self.stop.load(Ordering::Relaxed) {
            doubts.push(format!("only {} of {} writes in the time allowed", sums.writes, self.writes));
        }
        Ok(describe(rung, repeat, &sums, written, durable, device, doubts))
    }

    fn job(&self, planned: &PlannedRung, repeat: u32) -> Result<Job, LabError> {
        let (rung, load, target) = (&planned.rung, &planned.load, self.file());
        let seed = self.seed.wrapping_add(u64::from(repeat) << 32);
        let places = Places::new(Pattern::Random, rung.bs, rung.bs, 0, target.len, seed);
        let places = places.ok_or_else(|| {
            LabError::refused(
                target.path.display(),
                format!("has only {} bytes, less than one write of {}", target.len, rung.bs),
                "name a larger file, or smaller --sizes",
            )
        })?;
        Ok(Job {
            engine: planned.engine.0,
            policy: load.job_policy(),
            rw: JobDirection::Write,
            bs: rung.bs,
            huge_pages: false,
            iodepth: rung.iodepth,
            queue_depth: load.queue_depth,
            ioprio: load.ioprio,
            // Of its own for each rung: the blocks of the one before are another run's.
            verify: rung.verify.then(|| mix(seed ^ mix(planned.number))),
            places: load.distribution.of(places),
            first: 0,
            most: 0,
            runtime: self.runtime,
            interval: Duration::from_secs(1),
        })
    }

    /// Writes portion by portion, calling `after` behind each.
    fn portions(
        &self,
        file: &JobFile,
        job: &Job,
        rung: &Rung,
        sums: &mut RungSums,
        after: &mut dyn FnMut(&mut RungSums) -> Result<(), LabError>,
    ) -> Result<(), LabError> {
        let began = Instant::now();
        let portion = match rung.sync {
            SyncPolicy::Each => 1,
            _ => (self.journal_bytes / rung.bs).max(1),
        };
        while sums.writes < self.writes {
            let job = Job {
                first: sums.writes,
                most: portion.min(self.writes - sums.writes),
                runtime: self.runtime.saturating_sub(began.elapsed()),
                iodepth: if portion == 1 { 1 } else { job.iodepth },
                ..job.clone()
            };
            if job.runtime.is_zero() || self.portion(file, &job, rung, sums)?.is_break() {
                break;
            }
            after(sums)?;
        }
        Ok(())
    }

    /// Breaks when the portion was not completed.
    fn portion(
        &self,
        file: &JobFile,
        job: &Job,
        rung: &Rung,
        sums: &mut RungSums,
    ) -> Result<ControlFlow<()>, LabError> {
        if rung.prefetch {
            let began = Instant::now();
            for i in job.first..job.first + job.most {
                let len = std::num::NonZeroU64::new(job.bs);
                let advised = rustix::fs::fadvise(file.file(), job.places.at(i), len, Advice::WillNeed);
                advised.map_err(|e| LabError::file("read ahead in", &self.file().path, e))?;
            }
            sums.prefetch += began.elapsed();
        }
        let result = self.write(file, job, rung.direct)?;
        sums.writes += result.total_ios;
        sums.cpu_ns += result.cpu.usr_ns + result.cpu.sys_ns;
        sums.latencies.merge(&Latencies::from(result.clat_ns));
        let whole = result.total_ios == job.most;
        Ok(if whole { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    }

    fn write(&self, file: &JobFile, job: &Job, direct: bool) -> Result<JobResult, LabError> {
        if let JobEngine::Queue(_) = job.engine {
            let device = FileDevice::open(&self.file().path, Access::ReadWrite, direct)?;
            return Ok(run_job_on(&(Arc::new(device) as _), job, self.stop)?);
        }
        Ok(run_job(file, job, self.stop)?)
    }

    /// Writing goes on while another thread syncs what was written; the time until the last
    /// write returned.
    fn with_background_sync(
        &self,
        file: &JobFile,
        job: &Job,
        rung: &Rung,
        sums: &mut RungSums,
    ) -> Result<Duration, LabError> {
        let began = Instant::now();
        std::thread::scope(|scope| {
            // One may wait: a sync covers everything written before it, so more would do
            // nothing.
            let (tell, told) = sync_channel(1);
            let syncing = scope.spawn(move || sync_when_told(file, self.file(), &told));
            let written = self.portions(file, job, rung, sums, &mut |_| {
                let _ = tell.try_send(());
                Ok(())
            });
            let took = began.elapsed();
            drop(tell);
            sums.syncs = syncing.join().expect("the syncing thread does not panic")?;
            written.map(|()| took)
        })
    }
}

fn sync_when_told(file: &JobFile, target: &Target, told: &Receiver<()>) -> Result<Syncs, LabError> {
    let mut syncs = Syncs::default();
    while told.recv().is_ok() {
        syncs.sync(file, target)?;
    }
    syncs.sync(file, target)?; // what was written since the last one began
    Ok(syncs)
}

fn describe(
    rung: &Rung,
    repeat: u32,
    sums: &RungSums,
    written: Duration,
    durable: Duration,
    device: Option<DeviceWork>,
    doubts: Vec<String>,
) -> RungResult {
    let io_bytes = sums.writes * rung.bs;
    let durable_s = durable.as_secs_f64();
    RungResult {
        rung: rung.clone(),
        repeat,
        total_ios: sums.writes,
        io_bytes,
        written_s: written.as_secs_f64(),
        durable_s,
        durable_per_s: sums.writes as f64 / durable_s.max(1e-9),
        durable_bytes_per_s: io_bytes as f64 / durable_s.max(1e-9),
        prefetch_s: sums.prefetch.as_secs_f64(),
        clat: sums.latencies.summary(),
        syncs: sums.syncs.count,
        sync_s: sums.syncs.total.as_secs_f64(),
        sync_max_ms: sums.syncs.longest.as_secs_f64() * 1e3,
        cpu_us_per_io: sums.cpu_ns as f64 / 1e3 / sums.writes.max(1) as f64,
        device,
        verified: None,
        doubts,
    }
}
