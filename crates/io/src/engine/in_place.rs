//! Requests in place that are under way: past the schedule, and at the device all the same.

use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicU64, AtomicUsize};

use crate::queue::background::Background;
use crate::queue::request::Class;

/// How many there are, and their bytes.
#[derive(Default)]
pub(crate) struct InPlaceLoad {
    requests: AtomicUsize,
    bytes: AtomicU64,
    urgent_bytes: AtomicU64,
}

impl InPlaceLoad {
    pub(crate) fn begin(&self, class: Class, bytes: u64) {
        self.requests.fetch_add(1, SeqCst);
        self.urgent_bytes.fetch_add(urgent(class, bytes), SeqCst);
        self.bytes.fetch_add(bytes, SeqCst);
    }

    /// Bytes are subtracted last: once they have become fewer, so has the number of requests.
    pub(crate) fn end(&self, class: Class, bytes: u64) {
        self.requests.fetch_sub(1, SeqCst);
        self.urgent_bytes.fetch_sub(urgent(class, bytes), SeqCst);
        self.bytes.fetch_sub(bytes, SeqCst);
    }

    pub(crate) fn requests(&self) -> usize {
        self.requests.load(SeqCst)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(SeqCst)
    }

    /// The bytes of requests that are not of the background.
    pub(crate) fn urgent_bytes(&self) -> u64 {
        self.urgent_bytes.load(SeqCst)
    }
}

/// Bytes that are not of the background.
pub(crate) fn urgent(class: Class, bytes: u64) -> u64 {
    if Background::includes(class as usize) { 0 } else { bytes }
}
