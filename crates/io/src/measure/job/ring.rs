//! A job on a ring: one thread submits, reaps, and submits again.
//!
//! One turn: enter the kernel once, to hand over what is new and to wait for one completion;
//! take up to an eighth of the depth; begin as many again. Taking all that are there would
//! leave the device idle while a long row of completions is handled.

#![allow(unsafe_code)]

use std::ops::Deref;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};

use io_uring::{IoUring, Submitter, cqueue, opcode, squeue, types};

use super::buffers::{Buffers, JobBuffer};
use super::tally::{JobTally, Start};
use super::{Job, JobFile, JobResult, os_error};
use crate::error::{IoError, Operation};

/// Most completions taken in a turn.
const MOST_AT_ONCE: usize = 8;

/// The job's file is the only one registered.
const FILE: types::Fixed = types::Fixed(0);

struct RingSlot<'a> {
    buffer: JobBuffer<'a>,
    write: bool,
    offset: u64,
    began_ns: u64,
    /// Bytes moved by earlier completions of the same request.
    done: u32,
}

struct Driver<'a> {
    file: &'a JobFile,
    job: &'a Job,
    slots: Vec<RingSlot<'a>>,
    next: u64,
    outstanding: usize,
}

pub(super) fn run(file: &JobFile, job: &Job, stop: &AtomicBool) -> Result<JobResult, IoError> {
    let mut buffers = Buffers::new(job, job.iodepth);
    let mut ring = make_ring(file, job.iodepth)?;
    let idle = |buffer| RingSlot { buffer, write: false, offset: 0, began_ns: 0, done: 0 };
    let slots = buffers.each().map(idle).collect();
    let mut driver = Driver { file, job, slots, next: job.first, outstanding: 0 };
    let start = Start::now(job.runtime, job.interval);
    let mut tally = start.tally();
    let result = driver.drive(&mut ring, &start, &mut tally, stop);
    if result.is_err() {
        // The kernel must be done with the buffers before they go.
        drain(&mut ring, driver.outstanding);
    }
    result.map(|()| start.result(job.bs, vec![tally]))
}

fn make_ring(file: &JobFile, depth: u32) -> Result<IoUring, IoError> {
    let entries = depth.next_power_of_two();
    let fail = |e: &std::io::Error| IoError::os(&file.name, Operation::Engine, 0, 0, e);
    let ring = match IoUring::builder().setup_single_issuer().setup_defer_taskrun().build(entries) {
        Err(e) if e.raw_os_error() == Some(libc::EINVAL) => IoUring::new(entries),
        other => other,
    };
    let ring = ring.map_err(|e| fail(&e))?;
    ring.submitter().register_files(&[file.file.as_raw_fd()]).map_err(|e| fail(&e))?;
    Ok(ring)
}

/// A ring that its thread knows by number. It is made unknown again: otherwise the ring, and its
/// file with it, would stay open as long as the thread lives.
struct Registered<'a>(Submitter<'a>);

impl<'a> Registered<'a> {
    fn new(mut submitter: Submitter<'a>) -> Self {
        let _ = submitter.register_ring_fd(); // saves a lookup per call, since Linux 5.18
        Self(submitter)
    }
}

impl<'a> Deref for Registered<'a> {
    type Target = Submitter<'a>;

    fn deref(&self) -> &Submitter<'a> {
        &self.0
    }
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        let _ = self.0.unregister_ring_fd(); // a kernel that has no numbers gave it none
    }
}

impl Driver<'_> {
    fn drive(
        &mut self,
        ring: &mut IoUring,
        start: &Start,
        tally: &mut JobTally,
        stop: &AtomicBool,
    ) -> Result<(), IoError> {
        let at_once = (self.slots.len() / 8).clamp(1, MOST_AT_ONCE);
        let (submitter, mut entries, mut completions) = ring.split();
        let submitter = Registered::new(submitter);
        let now_ns = start.elapsed_ns();
        for slot in 0..self.slots.len() {
            self.begin(&mut entries, slot, now_ns);
        }
        while self.outstanding > 0 {
            entries.sync();
            match submitter.submit_and_wait(1) {
                Ok(_) => {}
                // Interrupted, or the completion queue must be emptied first.
                Err(e) if matches!(e.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY)) => {}
                Err(e) => return Err(IoError::os(&self.file.name, Operation::Engine, 0, 0, &e)),
            }
            entries.sync();
            completions.sync();
            let now_ns = start.elapsed_ns();
            let over = start.is_over(now_ns) || stop.load(Ordering::Relaxed);
            for completion in (&mut completions).take(at_once) {
                let slot = completion.user_data() as usize;
                if self.completed(&completion)? {
                    tally.add(self.slots[slot].write, self.slots[slot].began_ns, now_ns);
                    if !over {
                        self.begin(&mut entries, slot, now_ns);
                    }
                } else {
                    self.push(&mut entries, slot);
                }
            }
            completions.sync();
        }
        Ok(())
    }

    /// Begins the next request, unless there have been enough.
    fn begin(&mut self, entries: &mut squeue::SubmissionQueue<'_>, slot: usize, now_ns: u64) {
        if self.next - self.job.first >= self.job.most {
            return;
        }
        let (write, offset) = self.job.request(self.next);
        self.next += 1;
        let place = &mut self.slots[slot];
        place.buffer.begun(self.job, write, offset);
        (place.write, place.offset, place.began_ns, place.done) = (write, offset, now_ns, 0);
        self.push(entries, slot);
    }

    fn push(&mut self, entries: &mut squeue::SubmissionQueue<'_>, slot: usize) {
        let RingSlot { buffer, write, offset, done, .. } = &mut self.slots[slot];
        let buf = buffer.of(*write);
        let address = buf.as_mut_ptr().wrapping_add(*done as usize);
        let (len, offset) = (buf.len() as u32 - *done, *offset + u64::from(*done));
        let entry = if *write {
            opcode::Write::new(FILE, address, len).offset(offset).build()
        } else {
            opcode::Read::new(FILE, address, len).offset(offset).build()
        };
        // SAFETY: the slot's buffer is used by this request alone, and lives until the ring has
        // completed it: `run` drains on errors.
        unsafe { entries.push(&entry.user_data(slot as u64)) }.expect("as many entries as slots");
        self.outstanding += 1;
    }

    /// True when the request is whole; false when it must go on.
    fn completed(&mut self, completion: &cqueue::Entry) -> Result<bool, IoError> {
        self.outstanding -= 1;
        let slot = &mut self.slots[completion.user_data() as usize];
        let len = self.job.bs;
        let moved = match completion.result() {
            n if n > 0 => n as u32,
            n if n == -libc::EAGAIN || n == -libc::EINTR => 0,
            0 => {
                let operation = if slot.write { Operation::Write } else { Operation::Read };
                let got = u64::from(slot.done);
                return Err(IoError::short(&self.file.name, operation, slot.offset, len, got));
            }
            n => return Err(self.file.error(slot.write, slot.offset, len, &os_error(-n))),
        };
        slot.done += moved;
        Ok(u64::from(slot.done) == len)
    }
}

fn drain(ring: &mut IoUring, mut outstanding: usize) {
    while outstanding > 0 {
        if ring.submit_and_wait(1).is_err_and(|e| e.raw_os_error() != Some(libc::EINTR)) {
            // The ring itself is broken: it is closed next, which cancels and waits.
            return;
        }
        outstanding -= ring.completion().count().min(outstanding);
    }
}
