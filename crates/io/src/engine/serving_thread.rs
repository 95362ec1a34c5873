//! A queue as the one thread sees it that serves it, and sleeps in the kernel meanwhile.
//!
//! One turn of its loop:
//!
//! 1. `turn` takes back the requests that were delivered and gives those that may go out.
//! 2. The thread hands them to the kernel, and sleeps until one is over or it is woken: it has a
//!    read of eight bytes from `wake_descriptor` outstanding.
//! 3. It says that it is awake, asks each result for its meaning (`took`), and delivers.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::engine::serving::{Serving, Taken};
use crate::engine::wake::Wake;
use crate::error::IoErrorKind;
use crate::queue::device_request::{DeviceRequest, Progress};

/// A queue, for the thread that serves it.
pub struct ServingThread {
    serving: Arc<Serving>,
    wake: Arc<Wake>,
}

/// The next move of a serving thread.
pub enum Turn {
    /// Waits, at most until a policy wants to be asked again.
    Serve {
        /// That time, in nanoseconds of the queue's clock.
        not_before: Option<u64>,
    },
    /// The queue is closed and everything is over.
    Over,
}

impl ServingThread {
    pub(crate) fn new(serving: &Arc<Serving>, wake: &Arc<Wake>) -> ServingThread {
        ServingThread { serving: serving.clone(), wake: wake.clone() }
    }

    /// Name of the device.
    pub fn device_name(&self) -> &str {
        self.serving.device.name()
    }

    /// Time of the queue's clock, in nanoseconds.
    pub fn now_ns(&self) -> u64 {
        self.serving.clock.now_ns()
    }

    /// Most device requests outstanding, ever.
    pub fn most_outstanding(&self) -> usize {
        self.serving.settings.most_outstanding()
    }

    /// Takes back those that are over, and gives all that may go out to `begin`, which must be
    /// short and must not call the queue. `sleeps` says that the thread is going to sleep next.
    pub fn turn(
        &self,
        over: &mut Vec<DeviceRequest>,
        sleeps: bool,
        mut begin: impl FnMut(DeviceRequest),
    ) -> Turn {
        let now = self.now_ns();
        let mut state = self.serving.state.lock();
        for request in over.drain(..) {
            self.serving.retire(&mut state, request);
        }
        let not_before = loop {
            match self.serving.take(&mut state, now) {
                Taken::Nothing => break None,
                Taken::NotBefore(at) => break Some(at),
                Taken::Request(mut request) => {
                    request.prepare(&self.serving.scratch);
                    begin(request);
                }
            }
        };
        let room = state.outstanding.requests < state.schedule.depth();
        self.wake.asleep.store(sleeps && (room || state.closing), Ordering::Release);
        match state.closing && state.outstanding.requests == 0 && state.schedule.is_empty() {
            true => Turn::Over,
            false => Turn::Serve { not_before },
        }
    }

    /// A read of eight bytes from it ends when the thread is woken.
    pub fn wake_descriptor(&self) -> BorrowedFd<'_> {
        self.wake.descriptor()
    }

    /// The thread does not sleep any more.
    pub fn is_awake(&self) {
        self.wake.asleep.store(false, Ordering::Release);
    }

    /// Has the outstanding read from `wake_descriptor` end.
    pub fn end_wait(&self) {
        self.wake.asleep.store(true, Ordering::Release);
        self.wake.wake();
    }

    /// Meaning of a result of the kernel for a request that is begun: bytes moved, or `errno`.
    pub fn took(&self, request: &mut DeviceRequest, result: Result<u64, i32>) -> Progress {
        request.took(result, self.serving.settings.unit as usize)
    }

    /// Copies what a transfer through one buffer has moved to the buffers of the request.
    ///
    /// # Safety
    /// The request reads, was begun, and is not delivered yet.
    #[allow(unsafe_code)]
    pub unsafe fn scatter(&self, request: &DeviceRequest, bytes: &[u8]) {
        // SAFETY: as the caller says.
        unsafe { request.scatter(bytes, &self.serving.scratch) };
    }

    /// Completes a request that has ended; it is given back in the next turn.
    pub fn deliver(&self, request: &mut DeviceRequest, end: Result<(), IoErrorKind>, now_ns: u64) {
        self.serving.deliver(request, end, now_ns);
    }
}
