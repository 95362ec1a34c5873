//! POSIX AIO takes control blocks for all queues of the process from one stock.

#[path = "../../io/tests/support/mod.rs"]
mod support;

use std::sync::Arc;

use snowmelt_io::*;
use snowmelt_io_experiments::POSIX_AIO;
use support::*;

#[test]
fn posix_aio_keeps_many_outstanding() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), pattern(1 << 20)).unwrap();
    let device: Arc<dyn Device> = Arc::new(FileDevice::open(file.path(), Access::ReadWrite, false).unwrap());
    let clock = Clock::real();
    let engines = |depth: u32, n: usize| -> Vec<&'static str> {
        let config = QueueConfig { engine: POSIX_AIO, depth: Some(depth), ..Default::default() };
        let open = || DeviceQueue::open(device.clone(), config.clone(), clock.clone(), Remember::new(&clock));
        let queues: Vec<_> = (0..n).map(|_| open().unwrap()).collect();
        queues.iter().map(|queue| queue.engine()).collect()
    };
    // More queues than the C library has threads by default: each keeps one busy even when
    // nothing is read.
    assert_eq!(engines(4, 30), ["posix-aio"; 30]);
    // Too many together: the last one is served by threads, and says so.
    assert_eq!(engines(700, 2), ["posix-aio", "threads"]);
}
