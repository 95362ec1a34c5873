//! A log of waits: a line for each time a reader was blocked for a page.
//!
//! Tab-separated, with a line of names at the head:
//!
//! | column | means |
//! |---|---|
//! | `at_ms` | when the wait began, since the log was begun |
//! | `waited_ms` | how long it took; the sum is the activity's `wait_ns` |
//! | `class` | of the read: demand, planned, speculative; journal for a version that only it has |
//! | `tree`, `page` | what was waited for |
//! | `pages` | asked for together with it; 1 when it was read alone |
//! | `stripe`, `offset` | its place: number of the stripe, or of the journal's file, and byte |
//!
//! The threads of a query write into one log. Lines come when a wait ends. A log that cannot be
//! written disturbs no query: [`WaitLog::finish`] tells.

use std::io::{self, Write};

use parking_lot::Mutex;
use snowmelt_io::{Class, Clock};

const HEAD: &str = "at_ms\twaited_ms\tclass\ttree\tpage\tpages\tstripe\toffset";

/// See the head of the file.
pub struct WaitLog {
    clock: Clock,
    begun_ns: u64,
    out: Mutex<Lines>,
}

struct Lines {
    to: Box<dyn Write + Send>,
    failed: Option<io::Error>,
}

/// A wait that has ended.
pub(crate) struct Wait<'a> {
    pub begun_ns: u64,
    pub ns: u64,
    pub class: Class,
    pub tree: &'a str,
    pub page: u64,
    pub pages: u32,
    /// Number of the stripe, or of the journal's file.
    pub file: u64,
    pub offset: u64,
}

impl WaitLog {
    /// A log that begins now, by the clock of the store whose readers write into it.
    pub fn new(clock: &Clock, to: Box<dyn Write + Send>) -> WaitLog {
        let log = WaitLog {
            clock: clock.clone(),
            begun_ns: clock.now_ns(),
            out: Mutex::new(Lines { to, failed: None }),
        };
        log.line(HEAD);
        log
    }

    pub(crate) fn note(&self, wait: &Wait<'_>) {
        let Wait { begun_ns, ns, class, tree, page, pages, file, offset } = wait;
        let at = ms(begun_ns.saturating_sub(self.begun_ns));
        let (waited, class) = (ms(*ns), class.name());
        self.line(&format!("{at}\t{waited}\t{class}\t{tree}\t{page}\t{pages}\t{file}\t{offset}"));
    }

    fn line(&self, line: &str) {
        let mut out = self.out.lock();
        if out.failed.is_none()
            && let Err(error) = writeln!(out.to, "{line}")
        {
            out.failed = Some(error);
        }
    }

    /// Writes out what is buffered.
    ///
    /// # Errors
    /// The first failure to write; lines after it are missing.
    pub fn finish(&self) -> io::Result<()> {
        let mut out = self.out.lock();
        match out.failed.take() {
            Some(error) => Err(error),
            None => out.to.flush(),
        }
    }
}

impl std::fmt::Debug for WaitLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "WaitLog(since {} ns, now {})", self.begun_ns, self.clock.now_ns())
    }
}

/// Nanoseconds as milliseconds, exactly.
fn ms(ns: u64) -> String {
    format!("{}.{:06}", ns / 1_000_000, ns % 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_are_exact() {
        assert_eq!(["0.000001", "1.000000", "12.345678"], [1, 1_000_000, 12_345_678].map(ms));
    }

    #[test]
    fn a_log_that_cannot_be_written_says_so_at_the_end() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let log = WaitLog::new(&Clock::real(), Box::new(Full));
        log.line("more");
        assert_eq!(log.finish().unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
