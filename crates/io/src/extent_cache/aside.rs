//! Standing aside: after a failure of the cache's files a process leaves them as they are for a
//! minute, and then tries again. It says so once.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::notice::notice;
use crate::time::clock::Clock;

/// Seconds for which nothing is written after a failure.
const ASIDE_S: u64 = 60;

/// See the head of the file.
pub(super) struct StandAside {
    clock: Clock,
    /// When it ends; 0: it has not begun.
    until_ns: AtomicU64,
    told: AtomicBool,
}

impl StandAside {
    pub fn new(clock: &Clock) -> StandAside {
        StandAside { clock: clock.clone(), until_ns: AtomicU64::new(0), told: AtomicBool::new(false) }
    }

    pub fn is_aside(&self) -> bool {
        match self.until_ns.load(Ordering::Relaxed) {
            0 => false,
            until_ns => self.clock.now_ns() < until_ns,
        }
    }

    /// Begins, or begins again.
    pub fn begin(&self, folder: &std::path::Path, why: &std::io::Error) {
        self.until_ns.store(self.clock.now_ns() + ASIDE_S * 1_000_000_000, Ordering::Relaxed);
        self.tell_once(&format!(
            "{}: the extent cache stands aside ({why}): extents that it lacks are fetched and not kept; it \
             tries again every {ASIDE_S} s",
            folder.display()
        ));
    }

    /// A notice; the first is the only one of a process.
    pub fn tell_once(&self, line: &str) {
        if !self.told.swap(true, Ordering::Relaxed) {
            notice(line);
        }
    }
}
