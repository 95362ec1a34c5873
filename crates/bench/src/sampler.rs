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

use super::process;

/// One interval. Rates are per second of it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Sample {
    /// Seconds since the process was started, at the end of the interval.
    pub since_exec: f64,
    /// Query mixes per hour.
    pub qmph: f64,
    /// Processors busy for this process.
    pub cpus: f64,
    /// Device requests per second.
    pub requests: f64,
    /// Pages whose read was started, per second.
    pub pages: f64,
    /// Bytes from devices, per second.
    pub bytes: f64,
}

/// Looks at a store and the process while queries run.
pub struct Sampler<'a> {
    /// Whose counters.
    pub store: &'a Store,
    /// Queries completed so far.
    pub queries: &'a AtomicU64,
    /// Queries in a mix.
    pub queries_per_mix: usize,
    /// Seconds between looks.
    pub interval_s: f64,
    /// Called with each sample.
    pub on_sample: &'a (dyn Fn(&Sample) + Sync),
    /// Set when the run is steady, if it is to end then.
    pub when_steady: Option<&'a AtomicBool>,
}

/// Counters at a moment.
struct Look {
    at: Instant,
    queries: u64,
    cpu_s: f64,
    requests: u64,
    pages: u64,
    bytes: u64,
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
        let mut before = self.look();
        let mut due = Instant::now();
        loop {
            due += Duration::from_secs_f64(self.interval_s);
            while !over.load(Ordering::Relaxed) && Instant::now() < due {
                thread::park_timeout(due - Instant::now());
            }
            if over.load(Ordering::Relaxed) {
                return;
            }
            let now = self.look();
            let sample = self.between(&before, &now);
            (self.on_sample)(&sample);
            let mut all = samples.lock().expect("nobody panics with this lock");
            all.push(sample);
            if let Some(flag) = self.when_steady.filter(|_| is_steady(&all)) {
                flag.store(true, Ordering::Relaxed);
            }
            before = now;
        }
    }

    fn look(&self) -> Look {
        let meters = self.store.report();
        Look {
            at: Instant::now(),
            queries: self.queries.load(Ordering::Relaxed),
            cpu_s: process::cpu_seconds(),
            requests: meters.requests(),
            pages: meters.pages_read(),
            bytes: meters.bytes(),
        }
    }

    fn between(&self, a: &Look, b: &Look) -> Sample {
        let seconds = (b.at - a.at).as_secs_f64();
        let per_s = |from: u64, to: u64| (to - from) as f64 / seconds;
        Sample {
            since_exec: process::seconds_since_exec().unwrap_or(0.0),
            qmph: per_s(a.queries, b.queries) / self.queries_per_mix as f64 * 3600.0,
            cpus: (b.cpu_s - a.cpu_s) / seconds,
            requests: per_s(a.requests, b.requests),
            pages: per_s(a.pages, b.pages),
            bytes: per_s(a.bytes, b.bytes),
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

fn is_steady(samples: &[Sample]) -> bool {
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
    pub const HEAD: &'static str = "   since exec        QMpH    CPU   requests/s    pages/s    MiB/s";

    /// The sample as a line.
    pub fn line(&self) -> String {
        format!(
            "{:>11.1} s {:>11.0} {:>4.0} % {:>12.0} {:>10.0} {:>8.1}",
            self.since_exec,
            self.qmph,
            100.0 * self.cpus,
            self.requests,
            self.pages,
            self.bytes / (1 << 20) as f64
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steady(qmph: &[f64]) -> bool {
        let sample =
            |&qmph: &f64| Sample { since_exec: 0.0, qmph, cpus: 0.0, requests: 0.0, pages: 0.0, bytes: 0.0 };
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
        let s = Sample {
            since_exec: 12.3,
            qmph: 301_234.5,
            cpus: 1.98,
            requests: 2998.0,
            pages: 9000.0,
            bytes: 1e8,
        };
        assert_eq!(s.line().len(), Sample::HEAD.len());
    }
}
