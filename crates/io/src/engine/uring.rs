//! The `uring` engine: one thread per queue, which owns the ring, submits, reaps and delivers.
//!
//! One turn of its loop:
//!
//! 1. Under one lock, retire the requests that were delivered and take those that may go out.
//! 2. Enter the kernel once, to submit, and to wait if nothing is over yet.
//! 3. Take a few completions and deliver them.
//!
//! It sleeps in the kernel. A submission that finds it asleep with room for more writes to an
//! event descriptor, on which the ring has a read outstanding. `asleep` is set under the
//! queue's lock after the schedule was found empty, so a submission either is seen there or
//! sees the flag.
//!
//! The ring is made with SINGLE_ISSUER and DEFER_TASKRUN (completions are processed when this
//! thread asks, not by interrupting it), or plain on kernels before 6.1.

#![allow(unsafe_code)]

use std::os::fd::{AsRawFd, RawFd};
use std::sync::mpsc;
use std::time::Duration;

use io_uring::{IoUring, Submitter, cqueue, opcode, squeue, types};

use crate::engine::serving_thread::{ServingThread, Turn};
use crate::engine::start::{NotStarted, ServedQueue, StartEngine, Started};
use crate::error::IoErrorKind;
use crate::notice::notice;
use crate::queue::device_request::{DeviceRequest, Progress};

/// Marks the completion of the read on the event descriptor; other marks are slots.
const WOKEN: u64 = u64::MAX;

/// Most completions taken before what they make room for is submitted: the device should not
/// wait for a long row of them to be delivered. (8 KiB reads at depth 32: 13 % more per second
/// than with all at once.)
const MOST_AT_ONCE: usize = 8;

/// Errors that only end a wait early.
const HARMLESS: [i32; 2] = [libc::EINTR, libc::ETIME];

/// Errors that pass: the kernel is short of memory, or wants completions to be taken first.
const PASSING: [i32; 3] = [libc::EAGAIN, libc::EBUSY, libc::ENOMEM];

/// Pauses while the kernel takes nothing: the first, and the longest.
const FIRST_PAUSE: Duration = Duration::from_micros(100);
/// See [`FIRST_PAUSE`].
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// Registered descriptors: the device is the first.
const DEVICE: types::Fixed = types::Fixed(0);

/// io_uring; refused as io_uring_setup(2) is where it is not permitted.
#[derive(Debug)]
pub(crate) struct Uring;

impl StartEngine for Uring {
    fn name(&self) -> &'static str {
        "uring"
    }

    fn title(&self) -> &'static str {
        "io_uring"
    }

    fn start(&self, queue: &ServedQueue) -> Result<Started, NotStarted> {
        let Some(fd) = queue.descriptor() else { return Ok(Started::Threads) };
        let fd = fd.as_raw_fd();
        let (tell, told) = mpsc::channel();
        // The ring is made there: with SINGLE_ISSUER it belongs to the thread that made it.
        let serve = move |thread: ServingThread| match make_ring(thread.most_outstanding(), fd) {
            Ok(ring) => {
                let _ = tell.send(Ok(()));
                RingServer::serve(&thread, ring);
            }
            Err(e) => drop(tell.send(Err(e))),
        };
        let thread = queue.start_thread("io-uring", serve)?;
        match told.recv().expect("the thread says how it went") {
            Ok(()) => Ok(Started::Thread(thread)),
            Err(e) => {
                thread.join();
                Err(e.into())
            }
        }
    }
}

fn make_ring(depth: usize, fd: RawFd) -> std::io::Result<IoUring> {
    let entries = (depth as u32 + 1).next_power_of_two();
    let modern = IoUring::builder().setup_single_issuer().setup_defer_taskrun().build(entries);
    let ring = match modern {
        Err(e) if e.raw_os_error() == Some(libc::EINVAL) => IoUring::builder().build(entries)?,
        other => other?,
    };
    ring.submitter().register_files(&[fd])?;
    Ok(ring)
}

struct RingServer<'a> {
    thread: &'a ServingThread,
    slots: Vec<Option<DeviceRequest>>,
    free: Vec<usize>,
    /// Over, not yet retired.
    over: Vec<DeviceRequest>,
    /// Where the read on the event descriptor lands.
    woken: Box<u64>,
    /// How long to wait when the kernel takes nothing.
    pause: Duration,
}

impl RingServer<'_> {
    fn serve(thread: &ServingThread, mut ring: IoUring) {
        let depth = thread.most_outstanding();
        let mut server = RingServer {
            thread,
            slots: (0..depth).map(|_| None).collect(),
            free: (0..depth).rev().collect(),
            over: Vec::with_capacity(depth),
            woken: Box::new(0),
            pause: FIRST_PAUSE,
        };
        let (mut submitter, mut entries, mut completions) = ring.split();
        let _ = submitter.register_ring_fd(); // saves a lookup per call, since Linux 5.18
        server.await_wake(&mut entries);
        let at_once = (depth / 8).clamp(1, MOST_AT_ONCE);
        loop {
            let ready = !completions.is_empty();
            let Turn::Serve { not_before } = server.start_what_may(&mut entries, ready) else { return };
            entries.sync(); // hands the entries over
            if !ready || !entries.is_empty() {
                let until = if ready { None } else { not_before };
                let is_one =
                    |e: &std::io::Error, of: &[i32]| e.raw_os_error().is_some_and(|e| of.contains(&e));
                match server.enter(&submitter, usize::from(!ready), until) {
                    Ok(_) => server.pause = FIRST_PAUSE,
                    Err(e) if is_one(&e, &HARMLESS) => {}
                    // Entries that were not taken stay in the submission queue. Completions, if
                    // there are any, make room.
                    Err(e) if is_one(&e, &PASSING) => {
                        completions.sync();
                        if completions.is_empty() {
                            server.pause_for(&e);
                        }
                    }
                    Err(e) => panic!("{}: the ring does not work: {e}", thread.device_name()),
                }
                entries.sync(); // the kernel has taken the entries
            }
            thread.is_awake();
            completions.sync();
            let now = thread.now_ns();
            for completion in (&mut completions).take(at_once) {
                server.completed(&completion, &mut entries, now);
            }
            completions.sync(); // tells the kernel that they were taken
        }
    }

    /// Waits for the kernel to have what it is short of, longer each time.
    fn pause_for(&mut self, cause: &std::io::Error) {
        std::thread::sleep(self.pause);
        let longer = (2 * self.pause).min(LONGEST_PAUSE);
        if longer == LONGEST_PAUSE && self.pause < LONGEST_PAUSE {
            let name = self.thread.device_name();
            notice(&format!(
                "{name}: the kernel takes no requests now ({cause}); trying again until it does"
            ));
        }
        self.pause = longer;
    }

    /// Submits, and waits for `want` completions, or until a time.
    fn enter(&self, submitter: &Submitter<'_>, want: usize, until: Option<u64>) -> std::io::Result<usize> {
        #[cfg(test)]
        refusals::next()?;
        let Some(until) = until else { return submitter.submit_and_wait(want) };
        let rest = std::time::Duration::from_nanos(until.saturating_sub(self.thread.now_ns()));
        let rest = types::Timespec::from(rest);
        submitter.submit_with_args(want, &types::SubmitArgs::new().timespec(&rest))
    }

    /// Puts entries for all that may go out. `ready` says that the thread is not going to
    /// sleep, since completions are there already.
    fn start_what_may(&mut self, entries: &mut squeue::SubmissionQueue<'_>, ready: bool) -> Turn {
        self.thread.turn(&mut self.over, !ready, |request| {
            let slot = self.free.pop().expect("as many slots as the depth");
            push(entries, slot, &request);
            self.slots[slot] = Some(request);
        })
    }

    fn completed(
        &mut self,
        completion: &cqueue::Entry,
        entries: &mut squeue::SubmissionQueue<'_>,
        now_ns: u64,
    ) {
        if completion.user_data() == WOKEN {
            self.await_wake(entries);
            return;
        }
        let slot = completion.user_data() as usize;
        let mut request = self.slots[slot].take().expect("a completion names a busy slot");
        let result = match completion.result() {
            n if n < 0 => Err(-n),
            n => Ok(n as u64),
        };
        match self.thread.took(&mut request, result) {
            Progress::Again => {
                push(entries, slot, &request);
                self.slots[slot] = Some(request);
            }
            Progress::Ended(end) => {
                self.free.push(slot);
                self.deliver(request, end, now_ns);
            }
        }
    }

    fn deliver(&mut self, mut request: DeviceRequest, end: Result<(), IoErrorKind>, now_ns: u64) {
        self.thread.deliver(&mut request, end, now_ns);
        self.over.push(request);
    }

    fn await_wake(&mut self, entries: &mut squeue::SubmissionQueue<'_>) {
        let descriptor = types::Fd(self.thread.wake_descriptor().as_raw_fd());
        let read = opcode::Read::new(descriptor, (&raw mut *self.woken).cast(), 8).build().user_data(WOKEN);
        // SAFETY: the box lives as long as the ring serves, and is not used otherwise.
        unsafe { entries.push(&read) }.expect("there is an entry for every slot and one more");
    }
}

fn push(entries: &mut squeue::SubmissionQueue<'_>, slot: usize, request: &DeviceRequest) {
    let offset = request.rest_offset();
    let prio = request.class.ioprio();
    let entry = match (request.iov(), request.write) {
        ([one], false) => opcode::Read::new(DEVICE, one.iov_base.cast(), one.iov_len as u32)
            .offset(offset)
            .ioprio(prio)
            .build(),
        ([one], true) => opcode::Write::new(DEVICE, one.iov_base.cast(), one.iov_len as u32)
            .offset(offset)
            .ioprio(prio)
            .build(),
        (iov, false) => {
            opcode::Readv::new(DEVICE, iov.as_ptr(), iov.len() as u32).offset(offset).ioprio(prio).build()
        }
        (iov, true) => {
            opcode::Writev::new(DEVICE, iov.as_ptr(), iov.len() as u32).offset(offset).ioprio(prio).build()
        }
    };
    // SAFETY: the pieces' buffers are valid until completed (RawBuf's contract); the list of
    // buffers is on the heap and stays as it is until the completion.
    unsafe { entries.push(&entry.user_data(slot as u64)) }
        .expect("there is an entry for every slot and one more");
}

/// Entries into the kernel that a test has refused.
#[cfg(test)]
pub(crate) mod refusals {
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Number of entries into the kernel that fail, as if it were short of memory.
    pub(crate) static LEFT: AtomicU32 = AtomicU32::new(0);

    pub(super) fn next() -> std::io::Result<()> {
        match LEFT.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)) {
            Ok(n) => {
                Err(std::io::Error::from_raw_os_error(super::PASSING[n as usize % super::PASSING.len()]))
            }
            Err(_) => Ok(()),
        }
    }
}
