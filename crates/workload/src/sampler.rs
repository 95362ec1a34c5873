//! Counters second by second: a thread that looks at the counters at equal intervals, and
//! prints a line if asked.
//!
//! A run is *steady* when the last five intervals brought no new best (more than 2 % above the
//! best before them) and lie within 10 % of each other: the benchmark's own ramp-up rule, with
//! a tolerance.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use snowmelt_store::Store;

use super::beliefs::{DeviceState, Look, Watch};
use super::process;

/// One interval. Rates are per second of it; `None` where the target does not tell.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Sample {
    /// Seconds since the process was started, at the end of the interval.
    pub since_exec: f64,
    /// Seconds since sampling began, at the end of the interval.
    pub end_s: f64,
    /// Its length; the last one of a run is cut short.
    pub length_s: f64,
    /// Query mixes per hour.
    pub qmph: f64,
    /// Processors busy for the target.
    pub cpus: Option<f64>,
    /// Device requests per second.
    pub requests: Option<f64>,
    /// Pages whose read was started, per second.
    pub pages: Option<f64>,
    /// Bytes from devices, per second.
    pub bytes: Option<f64>,
    /// Seconds of I/O wait per second.
    pub io_wait: Option<f64>,
    /// Beliefs about the devices at its end, and in the first second of a run every 50 ms.
    pub looks: Vec<Look>,
}

/// Sums at a moment, which only grow; `None` where the target does not tell.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Processor seconds.
    pub cpu_s: Option<f64>,
    /// Device requests.
    pub requests: Option<u64>,
    /// Pages whose read was started.
    pub pages: Option<u64>,
    /// Bytes from devices.
    pub bytes: Option<u64>,
    /// Seconds of I/O wait.
    pub wait_s: Option<f64>,
}

impl Counts {
    /// Sums of a store in this process. Its I/O wait is the time for which readers were blocked.
    pub fn of_store(store: &Store) -> Self {
        let meters = store.report();
        let waits = meters.devices.iter().flat_map(|device| device.waits);
        let wait_ns: u64 = waits.chain([meters.journal_waits]).map(|wait| wait.wait_ns).sum();
        Self {
            cpu_s: Some(process::cpu_seconds()),
            requests: Some(meters.requests()),
            pages: Some(meters.pages_read()),
            bytes: Some(meters.bytes()),
            wait_s: Some(wait_ns as f64 / 1e9),
        }
    }
}

/// A flag that ends some work, and a condition on the samples that sets it.
#[derive(Clone, Copy)]
pub struct End<'a> {
    /// The flag.
    pub flag: &'a AtomicBool,
    /// True for the samples after which it is set.
    pub is_reached: &'a (dyn Fn(&[Sample]) -> bool + Sync),
}

/// Looks at counters while queries run.
pub struct Sampler<'a> {
    /// The counters.
    pub counts: &'a (dyn Fn() -> Counts + Sync),
    /// The devices, of which beliefs are shown; none where the target does not tell.
    pub devices: &'a (dyn Fn() -> Vec<DeviceState> + Sync),
    /// Queries completed so far.
    pub queries: &'a AtomicU64,
    /// Queries in a mix.
    pub queries_per_mix: usize,
    /// Seconds between looks.
    pub interval_s: f64,
    /// Called with each sample, but for the last, cut one.
    pub on_sample: &'a (dyn Fn(&Sample) + Sync),
    /// The end of the work by what the samples say.
    pub ends: Option<End<'a>>,
}

/// Counters at a moment.
struct CountsAt {
    at: Instant,
    queries: u64,
    counts: Counts,
}

impl Sampler<'_> {
    /// Runs `work` and samples until it returns.
    pub fn during<T>(&self, work: impl FnOnce() -> T) -> (T, Vec<Sample>) {
        let over = AtomicBool::new(false);
        let samples = Mutex::new(Vec::new());
        let result = thread::scope(|scope| {
            let sampling = scope.spawn(|| self.sample(&over, &samples));
            // A panic of the work must not leave the sampler running.
            let _end = SetOnDrop(&over, sampling.thread().clone());
            work()
        });
        (result, samples.into_inner().expect("the sampler does not panic"))
    }

    fn sample(&self, over: &AtomicBool, samples: &Mutex<Vec<Sample>>) {
        let first = self.look();
        let begun = first.at;
        let (mut watch, prior) = Watch::begin((self.devices)());
        let mut looks = vec![prior];
        let (mut before, mut end_s) = (first, 0.0);
        loop {
            end_s += self.interval_s;
            let is_over = self.watch_until(end_s, begun, over, &mut watch, &mut looks);
            let now = self.look();
            looks.retain(|look| !look.devices.is_empty());
            let sample = Sample { looks: std::mem::take(&mut looks), ..self.between(&before, &now, begun) };
            let mut all = samples.lock().expect("nothing panics with this lock");
            all.push(sample);
            if is_over {
                return;
            }
            (self.on_sample)(&all[all.len() - 1]);
            if let Some(end) = self.ends
                && (end.is_reached)(&all)
            {
                end.flag.store(true, Ordering::Relaxed);
            }
            before = now;
        }
    }

    /// Looks at the devices until `end_s` or the end of the work; true if that has come.
    fn watch_until(
        &self,
        end_s: f64,
        begun: Instant,
        over: &AtomicBool,
        watch: &mut Watch,
        looks: &mut Vec<Look>,
    ) -> bool {
        loop {
            let due_s = watch.next_s(end_s);
            let due = begun + Duration::from_secs_f64(due_s);
            while !over.load(Ordering::Relaxed) && Instant::now() < due {
                thread::park_timeout(due - Instant::now());
            }
            let is_over = over.load(Ordering::Relaxed);
            looks.push(watch.look(begun.elapsed().as_secs_f64(), (self.devices)()));
            if is_over || due_s >= end_s {
                return is_over;
            }
        }
    }

    fn look(&self) -> CountsAt {
        let counts = (self.counts)();
        CountsAt { at: Instant::now(), queries: self.queries.load(Ordering::Relaxed), counts }
    }

    fn between(&self, a: &CountsAt, b: &CountsAt, begun: Instant) -> Sample {
        let seconds = (b.at - a.at).as_secs_f64().max(1e-9);
        let per_s = |from: u64, to: u64| to.saturating_sub(from) as f64 / seconds;
        let count = |of: fn(&Counts) -> Option<u64>| Some(per_s(of(&a.counts)?, of(&b.counts)?));
        let time =
            |of: fn(&Counts) -> Option<f64>| Some((of(&b.counts)? - of(&a.counts)?).max(0.0) / seconds);
        Sample {
            since_exec: process::seconds_since_exec().unwrap_or(0.0),
            end_s: (b.at - begun).as_secs_f64(),
            length_s: (b.at - a.at).as_secs_f64(),
            qmph: per_s(a.queries, b.queries) / self.queries_per_mix as f64 * 3600.0,
            cpus: time(|counts| counts.cpu_s),
            requests: count(|counts| counts.requests),
            pages: count(|counts| counts.pages),
            bytes: count(|counts| counts.bytes),
            io_wait: time(|counts| counts.wait_s),
            looks: Vec::new(),
        }
    }
}

struct SetOnDrop<'a>(&'a AtomicBool, thread::Thread);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        self.1.unpark();
    }
}

/// True for a run that is steady: see the head of the file.
pub fn is_steady(samples: &[Sample]) -> bool {
    const LAST: usize = 5;
    if samples.len() <= LAST {
        return false;
    }
    let (before, last) = samples.split_at(samples.len() - LAST);
    let most = |part: &[Sample]| part.iter().map(|s| s.qmph).fold(0.0, f64::max);
    let least = last.iter().map(|s| s.qmph).fold(f64::INFINITY, f64::min);
    let (old_best, best) = (most(before), most(last));
    least > 0.0 && best <= old_best * 1.02 && best <= least * 1.1
}

impl Sample {
    /// The head of the lines of [`Sample::line`].
    pub const HEAD: &'static str =
        "   since exec        QMpH    CPU   requests/s    pages/s    MiB/s  I/O wait";

    /// The head of a table of lines, with that of the beliefs.
    pub fn head() -> String {
        format!("{}{}", Self::HEAD, Look::HEAD)
    }

    /// The sample as a line, with the beliefs at its end where there are any. The I/O wait is in
    /// seconds per second.
    pub fn line(&self) -> String {
        let number = |value: Option<f64>, decimals: usize| {
            value.map_or("-".to_owned(), |value| format!("{value:.decimals$}"))
        };
        let believed = self.looks.last().map(Look::columns).unwrap_or_default();
        format!(
            "{:>11.1} s {:>11.0} {:>4} % {:>12} {:>10} {:>8} {:>9}{believed}",
            self.since_exec,
            self.qmph,
            number(self.cpus.map(|cpus| 100.0 * cpus), 0),
            number(self.requests, 0),
            number(self.pages, 0),
            number(self.bytes.map(|bytes| bytes / (1 << 20) as f64), 1),
            number(self.io_wait, 2)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steady(qmph: &[f64]) -> bool {
        let sample = |&qmph: &f64| Sample { qmph, ..Sample::default() };
        is_steady(&qmph.iter().map(sample).collect::<Vec<_>>())
    }

    #[test]
    fn steady_is_flat_and_not_rising() {
        assert!(!steady(&[10.0, 20.0, 40.0, 80.0, 90.0, 100.0, 110.0]), "still rising");
        assert!(!steady(&[100.0, 100.0, 60.0, 100.0, 100.0, 100.0]), "a dip among the last five");
        assert!(!steady(&[100.0; 5]), "too short to tell");
        assert!(steady(&[10.0, 100.0, 98.0, 99.0, 97.0, 100.0, 101.0]));
        assert!(!steady(&[0.0; 9]), "nothing happens at all");
    }

    #[test]
    fn lines_fit_their_head() {
        let full = Sample {
            since_exec: 12.3,
            qmph: 301_234.5,
            cpus: Some(1.98),
            requests: Some(2998.0),
            pages: Some(9000.0),
            bytes: Some(1e8),
            io_wait: Some(12.34),
            ..Sample::default()
        };
        assert_eq!(full.line().len(), Sample::HEAD.len());
        let absent = Sample { qmph: 1.0, ..Sample::default() };
        assert_eq!((absent.line().len(), absent.line().matches(" -").count()), (Sample::HEAD.len(), 5));
    }

    #[test]
    fn the_last_interval_is_cut_short_and_none_is_lost() {
        let (queries, bytes) = (AtomicU64::new(0), AtomicU64::new(0));
        let sampler = Sampler {
            devices: &Vec::new,
            counts: &|| Counts { bytes: Some(bytes.load(Ordering::Relaxed)), ..Counts::default() },
            queries: &queries,
            queries_per_mix: 1,
            interval_s: 0.05,
            on_sample: &|_| {},
            ends: None,
        };
        let work = || {
            for _ in 0..13 {
                thread::sleep(Duration::from_millis(10));
                bytes.fetch_add(100, Ordering::Relaxed);
            }
        };
        let ((), samples) = sampler.during(work);
        let sum: f64 = samples.iter().map(|sample| sample.bytes.unwrap() * sample.length_s).sum();
        // The first look comes when the thread has started.
        assert!((1000.0..=1300.01).contains(&sum), "{sum}");
        let lengths: f64 = samples.iter().map(|sample| sample.length_s).sum();
        assert!((lengths - samples.last().unwrap().end_s).abs() < 1e-9, "without a gap");
        assert!(samples.iter().all(|sample| sample.cpus.is_none()), "absent, not zero");
    }
}
