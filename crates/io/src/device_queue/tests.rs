//! A queue on a ring whose kernel is short of memory; guesses that are held and let go.

#![allow(unsafe_code)]

use std::io::{IoSlice, IoSliceMut, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::config::{IoEngine, QueueConfig};
use crate::cost::CostModel;
use crate::device::file::{Access, FileDevice};
use crate::device::memory::MemoryDevice;
use crate::device::{Device, ReadDevice};
use crate::device_queue::DeviceQueue;
use crate::engine::uring::refusals;
use crate::error::IoError;
use crate::memory::buffer::{AlignedBuf, RawBuf};
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
    let config = QueueConfig { engine: IoEngine::Uring, ..QueueConfig::default() };
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

/// Memory whose long reads take until the gate is opened.
struct Gated {
    memory: MemoryDevice,
    gate: Mutex<Gate>,
    changed: Condvar,
}

#[derive(Default)]
struct Gate {
    is_open: bool,
    waiting: usize,
}

const LONG_BYTES: usize = 32 << 10;

impl Gated {
    fn open_gate(&self) {
        self.gate.lock().is_open = true;
        self.changed.notify_all();
    }

    fn wait_for_a_reader(&self) {
        let mut gate = self.gate.lock();
        self.changed.wait_while(&mut gate, |gate| gate.waiting == 0);
    }
}

impl ReadDevice for Gated {
    fn name(&self) -> &Arc<str> {
        self.memory.name()
    }

    fn len(&self) -> Result<u64, IoError> {
        self.memory.len()
    }

    fn read_at(&self, bufs: &mut [IoSliceMut<'_>], offset: u64) -> Result<(), IoError> {
        if bufs.iter().map(|buf| buf.len()).sum::<usize>() >= LONG_BYTES {
            let mut gate = self.gate.lock();
            gate.waiting += 1;
            self.changed.notify_all();
            self.changed.wait_while(&mut gate, |gate| !gate.is_open);
        }
        self.memory.read_at(bufs, offset)
    }
}

impl Device for Gated {
    fn set_len(&self, len: u64) -> Result<(), IoError> {
        self.memory.set_len(len)
    }

    fn write_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Result<(), IoError> {
        self.memory.write_at(bufs, offset)
    }

    fn sync(&self) -> Result<(), IoError> {
        self.memory.sync()
    }
}

/// On flash a guess leaves the device to a reader; it goes out when the reader is done, or when a
/// reader comes to wait for it.
#[test]
fn a_guess_is_held_and_let_go() {
    const PAGE: usize = 8192;
    // So slow that its turn after so many times its own length does not come.
    let cost = CostModel {
        latency_ns: 1_000_000_000_000,
        ns_per_request: 100_000_000_000,
        bytes_per_s: 100,
        depth: 8,
        law: crate::cost::Law::Sum,
    };
    assert!(cost.is_flash() && !cost.has_arm() && cost.bytes_per_latency() / 4 < LONG_BYTES as u64);
    for hurries in [false, true] {
        let memory = MemoryDevice::from_bytes("memory", vec![7; 1 << 20]);
        let device = Arc::new(Gated { memory, gate: Mutex::default(), changed: Condvar::new() });
        let ended = Arc::new(Ended::default());
        let config = QueueConfig { engine: IoEngine::Threads, cost: Some(cost), ..QueueConfig::default() };
        let queue = DeviceQueue::open(device.clone(), config, Clock::real(), ended.clone()).expect("a queue");
        let mut bufs: Vec<AlignedBuf> = (0..3).map(|_| AlignedBuf::new(PAGE)).collect();
        let mut submit = |tag: u64, class| {
            let buf = &mut bufs[tag as usize];
            // SAFETY: the buffers live until all three are over.
            let buf = unsafe { RawBuf::read_into(buf.as_mut_ptr(), buf.len()) };
            queue.submit(&mut vec![Request { offset: tag * PAGE as u64, buf, class, tag }]);
        };
        let wait_for = |tags: &[u64]| {
            let mut all = ended.0.lock();
            let is_less = |all: &mut Vec<(u64, Result<(), IoError>)>| all.len() < tags.len();
            let late = ended.1.wait_while_for(&mut all, is_less, Duration::from_secs(60)).timed_out();
            let over: Vec<u64> = all.iter().map(|(tag, _)| *tag).collect();
            assert!(!late && over == tags, "hurries: {hurries}: over are {over:?} instead of {tags:?}");
        };
        submit(0, Class::Speculative);
        wait_for(&[0]);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                queue.read_now(1 << 16, &mut [0; LONG_BYTES], Class::Demand).expect("it is memory")
            });
            device.wait_for_a_reader();
            submit(1, Class::Speculative);
            submit(2, Class::Demand);
            wait_for(&[0, 2]);
            if hurries {
                queue.hurry(&[PAGE as u64], Class::Demand);
                wait_for(&[0, 2, 1]);
            }
            device.open_gate();
        });
        wait_for(&[0, 2, 1]);
    }
}

/// Memory whose reads are a bug.
struct Broken(MemoryDevice);

impl ReadDevice for Broken {
    fn name(&self) -> &Arc<str> {
        self.0.name()
    }

    fn len(&self) -> Result<u64, IoError> {
        self.0.len()
    }

    fn read_at(&self, _bufs: &mut [IoSliceMut<'_>], _offset: u64) -> Result<(), IoError> {
        panic!("a bug")
    }
}

impl Device for Broken {
    fn set_len(&self, len: u64) -> Result<(), IoError> {
        self.0.set_len(len)
    }

    fn write_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Result<(), IoError> {
        self.0.write_at(bufs, offset)
    }

    fn sync(&self) -> Result<(), IoError> {
        self.0.sync()
    }
}

/// The thread that panics closes the queue while it unwinds: it once waited for its own batch.
#[test]
fn a_panic_in_the_asking_thread_does_not_hang_the_close() {
    let device = Arc::new(Broken(MemoryDevice::from_bytes("memory", vec![7; 1 << 16])));
    let config = QueueConfig { engine: IoEngine::Inline, ..QueueConfig::default() };
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut buf = AlignedBuf::new(4096);
        let _tell = tell;
        let queue = DeviceQueue::open(device, config, Clock::real(), Arc::new(Ended::default()));
        let queue = queue.expect("a queue");
        // SAFETY: the buffer outlives the queue, which is closed first.
        let buf = unsafe { RawBuf::read_into(buf.as_mut_ptr(), buf.len()) };
        queue.submit(&mut vec![Request { offset: 0, buf, class: Class::Demand, tag: 0 }]);
    });
    let end = told.recv_timeout(Duration::from_secs(30));
    assert_eq!(end, Err::<(), _>(std::sync::mpsc::RecvTimeoutError::Disconnected), "it hangs");
}
