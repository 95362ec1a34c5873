//! A queue on a ring whose kernel is short of memory.

#![allow(unsafe_code)]

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::{Condvar, Mutex};

use crate::device::file::{Access, FileDevice};
use crate::device_queue::DeviceQueue;
use crate::engine::uring::refusals;
use crate::error::IoError;
use crate::memory::buffer::{AlignedBuf, RawBuf};
use crate::queue::config::{Engine, QueueConfig};
use crate::queue::request::{Class, Request, Sink};
use crate::time::clock::Clock;

#[derive(Default)]
struct Ended(Mutex<Vec<(u64, Result<(), IoError>)>>, Condvar);

impl Sink for Ended {
    fn complete(&self, tag: u64, result: Result<(), IoError>) {
        self.0.lock().push((tag, result));
        self.1.notify_all();
    }
}

/// ENOMEM once ended the process.
#[test]
fn requests_wait_while_the_kernel_is_short_of_memory() {
    let mut file = tempfile::NamedTempFile::new().expect("room for a file");
    file.write_all(&[7; 4 * 4096]).expect("room for a file");
    let device = FileDevice::open(file.path(), Access::Read, false).expect("just made");
    let ended = Arc::new(Ended::default());
    let config = QueueConfig { engine: Engine::Uring, ..QueueConfig::default() };
    let queue = DeviceQueue::open(Arc::new(device), config, Clock::real(), ended.clone()).expect("a queue");
    if queue.engine() != "uring" {
        eprintln!("skipped: no io_uring here");
        return;
    }
    let mut bufs: Vec<AlignedBuf> = (0..4).map(|_| AlignedBuf::new(4096)).collect();
    refusals::LEFT.store(9, Ordering::SeqCst);
    let request = |(i, buf): (usize, &mut AlignedBuf)| {
        // SAFETY: the buffers live until all four are over.
        let buf = unsafe { RawBuf::read_into(buf.as_mut_ptr(), buf.len()) };
        Request { offset: 4096 * i as u64, buf, class: Class::Demand, tag: i as u64 }
    };
    queue.submit(&mut bufs.iter_mut().enumerate().map(request).collect());
    let mut all = ended.0.lock();
    while all.len() < 4 {
        ended.1.wait(&mut all);
    }
    assert!(all.iter().all(|(_, result)| result.is_ok()), "{all:?}");
    assert_eq!(refusals::LEFT.load(Ordering::SeqCst), 0, "the kernel was short of memory");
    assert!(bufs.iter().all(|buf| buf.iter().all(|b| *b == 7)));
}
