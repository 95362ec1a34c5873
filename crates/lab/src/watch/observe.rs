//! An observation: readings once per interval, and at every mark.
//!
//! [`Observation`] is driven by its owner: the loop of `lab watch`. [`Watcher`] drives one from a
//! thread, for commands that measure something meanwhile and mark its phases.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::phase::Phase;
use super::second::{Reading, Second};
use super::tree::Tree;
use crate::{JsonLines, LabError};

/// Readings so far.
pub struct Observation {
    tree: Tree,
    devices: Vec<String>,
    interval: Duration,
    begun: Instant,
    first: Reading,
    /// Begin and end of the newest interval, which may still grow.
    newest: Option<(Reading, Reading)>,
    seconds: Vec<Second>,
    lines: Option<JsonLines>,
    marks: Vec<(String, Reading)>,
}

/// A finished observation.
pub struct Observed {
    /// The intervals.
    pub seconds: Vec<Second>,
    /// The stretches between marks; none without marks.
    pub phases: Vec<Phase>,
    /// From the beginning to the end.
    pub whole: Second,
    /// The first reading.
    pub first: Reading,
    /// The last.
    pub last: Reading,
    /// When it began.
    pub begun: Instant,
}

impl Observation {
    /// Begins now, with the members of `tree` and the devices of these names in diskstats. Each
    /// interval is written to `lines` as soon as it is over.
    pub fn begin(
        mut tree: Tree,
        devices: Vec<String>,
        interval: Duration,
        lines: Option<JsonLines>,
    ) -> Observation {
        let begun = Instant::now();
        let first = Reading::now(&mut tree, &devices);
        let (newest, seconds, marks) = (None, Vec::new(), Vec::new());
        Observation { tree, devices, interval, begun, first, newest, seconds, lines, marks }
    }

    /// When it began.
    pub fn begun(&self) -> Instant {
        self.begun
    }

    /// Another process whose tree is observed too: a server that was started again.
    pub fn add_root(&mut self, pid: u32) {
        self.tree.add_root(pid);
    }

    /// An interval is over.
    ///
    /// # Errors
    /// Its line cannot be written.
    pub fn tick(&mut self) -> Result<(), LabError> {
        let reading = Reading::now(&mut self.tree, &self.devices);
        self.newest = Some(match self.newest.take() {
            None => (self.first.clone(), reading),
            // Rates over a few milliseconds at the end say nothing.
            Some((begin, end)) if reading.seconds_after(&end) < self.interval.as_secs_f64() / 2.0 => {
                (begin, reading)
            }
            Some((begin, end)) => {
                self.keep(&begin, &end)?;
                (end, reading)
            }
        });
        Ok(())
    }

    fn keep(&mut self, begin: &Reading, end: &Reading) -> Result<(), LabError> {
        let second = end.since(begin, self.begun);
        if let Some(lines) = &mut self.lines {
            lines.write(&second)?;
        }
        self.seconds.push(second);
        Ok(())
    }

    /// A phase of this name begins; the one before ends.
    pub fn mark(&mut self, name: impl Into<String>) {
        self.marks.push((name.into(), Reading::now(&mut self.tree, &self.devices)));
    }

    /// The last reading, and the sums.
    ///
    /// # Errors
    /// A line cannot be written.
    pub fn finish(mut self) -> Result<Observed, LabError> {
        self.tick()?;
        let (begin, last) = self.newest.take().expect("a tick leaves one");
        self.keep(&begin, &last)?;
        let mut phases = Vec::new();
        if let Some((_, at)) = self.marks.first() {
            phases.push(Phase::between("", &self.first, at, self.begun));
        }
        for (i, (name, at)) in self.marks.iter().enumerate() {
            let end = self.marks.get(i + 1).map_or(&last, |(_, end)| end);
            phases.push(Phase::between(name, at, end, self.begun));
        }
        Ok(Observed {
            whole: last.since(&self.first, self.begun),
            seconds: self.seconds,
            phases,
            first: self.first,
            last,
            begun: self.begun,
        })
    }
}

/// An observation driven by a thread of its own.
pub struct Watcher {
    observation: Arc<Mutex<Option<Observation>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), LabError>>>,
}

impl Watcher {
    /// Takes a reading per interval from now on.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(observation: Observation) -> Result<Watcher, LabError> {
        let (interval, mut due) = (observation.interval, observation.begun);
        let observation = Arc::new(Mutex::new(Some(observation)));
        let stop = Arc::new(AtomicBool::new(false));
        let (shared, told) = (observation.clone(), stop.clone());
        let read = move || {
            while !told.load(Ordering::Acquire) {
                due += interval;
                while Instant::now() < due && !told.load(Ordering::Acquire) {
                    let left = due.saturating_duration_since(Instant::now());
                    std::thread::sleep(left.min(Duration::from_millis(10)));
                }
                match shared.lock().as_mut() {
                    Some(observation) if !told.load(Ordering::Acquire) => observation.tick()?,
                    _ => break,
                }
            }
            Ok(())
        };
        let thread = std::thread::Builder::new().name("watch".into()).spawn(read);
        let thread = thread.map_err(|e| LabError::system("start a thread", e))?;
        Ok(Watcher { observation, stop, thread: Some(thread) })
    }

    /// See [`Observation::mark`].
    pub fn mark(&self, name: &str) {
        if let Some(observation) = self.observation.lock().as_mut() {
            observation.mark(name);
        }
    }

    /// See [`Observation::add_root`].
    pub fn add_root(&self, pid: u32) {
        if let Some(observation) = self.observation.lock().as_mut() {
            observation.add_root(pid);
        }
    }

    /// Ends it.
    ///
    /// # Errors
    /// A line could not be written.
    pub fn finish(mut self) -> Result<Observed, LabError> {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the watching thread does not panic")?;
        }
        let observation = self.observation.lock().take().expect("finished once");
        observation.finish()
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_are_the_stretches_between_marks() {
        let tree = Tree::new(std::process::id());
        let observation = Observation::begin(tree, Vec::new(), Duration::from_millis(20), None);
        let watcher = Watcher::start(observation).unwrap();
        std::thread::sleep(Duration::from_millis(30));
        watcher.mark("read");
        let bytes = std::fs::read("/proc/self/status").unwrap().len() as u64;
        watcher.mark("");
        std::thread::sleep(Duration::from_millis(30));
        let observed = watcher.finish().unwrap();
        let names: Vec<&str> = observed.phases.iter().map(|phase| phase.name.as_str()).collect();
        assert_eq!(names, ["", "read", ""]);
        let read = &observed.phases[1];
        assert!(read.io.rchar >= bytes && read.io.syscr >= 1, "{:?}", read.io);
        let length: f64 = observed.phases.iter().map(|phase| phase.seconds).sum();
        assert!((length - observed.whole.length_s).abs() < 1e-9, "they fill the whole time");
        let gap = |two: &[Phase]| (two[0].end_s - two[1].begin_s).abs();
        assert!(observed.phases.windows(2).all(|two| gap(two) < 1e-9), "without a gap");
        assert!(observed.seconds.len() >= 2);
    }
}
