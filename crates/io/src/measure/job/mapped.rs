//! A job on mapped memory: the device is reached by page faults, and by write-back when the
//! kernel likes.
//!
//! A read copies the block out of the map, a write copies it in. A page that the kernel cannot
//! have, of a device that fails or a hole on a full disk, is an error (see [`super::faults`]),
//! where other programs that map files end by SIGBUS.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering};

use rustix::mm::{MapFlags, ProtFlags};

use super::buffers::Buffers;
use super::faults::FaultWatch;
use super::tally::Start;
use super::{Job, JobFile, JobResult};
use crate::error::{IoError, Operation};

struct Map {
    start: *mut u8,
    len: usize,
}

impl Map {
    fn new(file: &JobFile, write: bool) -> Result<Map, IoError> {
        let len = file.len as usize;
        let protection = if write { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        // SAFETY: a new mapping at an address of the kernel's choice; nothing else knows it.
        let start = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), len, protection, MapFlags::SHARED, &file.file, 0)
        };
        let start = start.map_err(|e| IoError::os(&file.name, Operation::Open, 0, file.len, &e.into()))?;
        Ok(Map { start: start.cast(), len })
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: mapped in `new` with this length, and no reference into it is left.
        let _ = unsafe { rustix::mm::munmap(self.start.cast(), self.len) };
    }
}

const NO_PAGE: &str = "the kernel could not have a page of the map: the disk is full, the device failed, or the \
                       file was cut short";

pub(super) fn run(file: &JobFile, job: &Job, stop: &AtomicBool) -> Result<JobResult, IoError> {
    let map = Map::new(file, job.rw.any_write())?;
    let watch = FaultWatch::begin(map.start, map.len)
        .map_err(|e| IoError::os(&file.name, Operation::Open, 0, file.len, &e))?;
    let mut buffers = Buffers::new(job, 1);
    let mut buffer = buffers.each().next().expect("one was asked for");
    let start = Start::now(job.runtime, job.interval);
    let mut tally = start.tally();
    let mut now_ns = start.elapsed_ns();
    let mut i = 0;
    while i < job.most && !start.is_over(now_ns) && !stop.load(Ordering::Relaxed) {
        let (write, at) = job.request(job.first + i);
        let (buf, offset) = (buffer.begun(job, write, at), at as usize);
        assert!(offset + buf.len() <= map.len, "places lie inside the file");
        // SAFETY: inside the map, as asserted; the buffer is memory of its own. Others may
        // change the file meanwhile, so the bytes are copied, never looked at through a
        // reference.
        unsafe {
            let place = map.start.add(offset);
            match write {
                true => std::ptr::copy_nonoverlapping(buf.as_ptr(), place, buf.len()),
                false => std::ptr::copy_nonoverlapping(place, buf.as_mut_ptr(), buf.len()),
            }
        }
        std::hint::black_box(&*buf);
        if watch.is_faulty() {
            let (operation, len) = (if write { Operation::Write } else { Operation::Read }, buf.len() as u64);
            let why = std::io::Error::other(NO_PAGE);
            return Err(IoError::os(&file.name, operation, at, len, &why));
        }
        let began_ns = now_ns;
        now_ns = start.elapsed_ns();
        tally.add(write, began_ns, now_ns);
        i += 1;
    }
    Ok(start.result(job.bs, vec![tally]))
}
