//! Whether io_uring can be had, by trying: the kernel, a sysctl or a seccomp filter may refuse it.

use std::path::Path;
use std::sync::{Arc, Mutex};

use snowmelt_io::{Access, Clock, DeviceQueue, FileDevice, IoEngine, IoError, QueueConfig, Sink, set_notice};

/// Takes completions, of which there are none.
struct NoSink;

impl Sink for NoSink {
    fn complete(&self, _: u64, _: Result<(), IoError>) {}
}

/// An open file that can be read from in the way the store does, as far as the system permits.
pub fn open_direct(path: &Path) -> Result<FileDevice, IoError> {
    // A refusal is a finding, not a line in between.
    set_notice(|_| ());
    FileDevice::open(path, Access::Read, true)
}

/// Opens a ring on a file, as a trial.
///
/// # Errors
/// The refusal of the system as text. A file that cannot be opened refuses nothing.
pub fn open_ring(path: &Path) -> Result<(), String> {
    let Ok(device) = open_direct(path) else { return Ok(()) };
    let said: Arc<Mutex<Vec<String>>> = Arc::default();
    let lines = Arc::clone(&said);
    set_notice(move |line| lines.lock().expect("no holder panics").push(line.to_owned()));
    let config = QueueConfig { engine: IoEngine::Uring, ..QueueConfig::default() };
    let queue = DeviceQueue::open(Arc::new(device), config, Clock::real(), Arc::new(NoSink));
    let is_ring = queue.as_ref().is_ok_and(|queue| queue.counters().engine == "uring");
    drop(queue);
    set_notice(|_| ());
    let said = said.lock().expect("no holder panics").join("; ");
    // The words of the system are in brackets.
    let why = said.split_once('(').and_then(|(_, rest)| rest.split_once(");")).map(|(why, _)| why.to_owned());
    if is_ring { Ok(()) } else { Err(why.unwrap_or_else(|| "the system gives no reason".to_owned())) }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_file_that_is_not_there_refuses_nothing() {
        assert_eq!(super::open_ring(std::path::Path::new("/nowhere/at/all")), Ok(()));
    }
}
