//! A few threads for work that blocks: started when there is more work than idle threads, kept
//! until the end, which comes after the work that is waiting.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};

/// See the head of the file.
pub(super) struct FewThreads {
    name: &'static str,
    most: usize,
    work: Arc<WaitingWork>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Default)]
struct WaitingWork {
    state: Mutex<WorkState>,
    arrived: Condvar,
}

#[derive(Default)]
struct WorkState {
    waiting: VecDeque<Box<dyn FnOnce() + Send>>,
    /// Threads that wait for work.
    idle: usize,
    is_over: bool,
}

impl FewThreads {
    /// At most `most` threads called `name`; none yet.
    pub(super) fn new(name: &'static str, most: usize) -> FewThreads {
        FewThreads { name, most, work: Arc::default(), threads: Mutex::default() }
    }

    /// Has `job` done by one of the threads; by this one, where there is none and none can be
    /// started.
    pub(super) fn run(&self, job: impl FnOnce() + Send + 'static) {
        let mut state = self.work.state.lock();
        state.waiting.push_back(Box::new(job));
        let is_one_missing = state.waiting.len() > state.idle;
        drop(state);
        self.work.arrived.notify_one();
        if is_one_missing && !self.start_one() {
            let left = self.work.state.lock().waiting.pop_front();
            left.into_iter().for_each(|job| job());
        }
    }

    /// Starts a thread if there may be another; returns whether there is any.
    fn start_one(&self) -> bool {
        let mut threads = self.threads.lock();
        if threads.len() < self.most {
            let work = self.work.clone();
            let thread = std::thread::Builder::new().name(self.name.into()).spawn(move || work.serve());
            threads.extend(thread.ok());
        }
        !threads.is_empty()
    }
}

impl WaitingWork {
    fn serve(&self) {
        let mut state = self.state.lock();
        loop {
            if let Some(job) = state.waiting.pop_front() {
                drop(state);
                job();
                state = self.state.lock();
            } else if state.is_over {
                return;
            } else {
                state.idle += 1;
                self.arrived.wait(&mut state);
                state.idle -= 1;
            }
        }
    }
}

impl Drop for FewThreads {
    fn drop(&mut self) {
        self.work.state.lock().is_over = true;
        self.work.arrived.notify_all();
        for thread in self.threads.get_mut().drain(..) {
            // The last owner may be a caller that was answered, on one of the threads.
            if thread.thread().id() != std::thread::current().id() {
                thread.join().expect("a thread of the folder does not panic");
            }
        }
    }
}
