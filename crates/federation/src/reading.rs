//! The bytes of an answer on their way to its parser, within bounds, and its parts on their way to
//! the reader.
//!
//! Parts are sent before the thread waits for the endpoint, so that nothing that has come waits
//! for what has not. When the reader is slow, the request gives its place among those under way
//! up: requests that wait for each other's readers would hold all places for good.

use std::cell::RefCell;
use std::io::{self, Read};
use std::rc::Rc;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::{Duration, Instant};

use ureq::BodyReader;

use crate::exchange::Watch;
use crate::fault::Fault;

/// Bytes of an answer before its rows. Parsers keep rows that come before their head, and compare
/// its variables with each other.
const MOST_BYTES_OF_A_HEAD: u64 = 1 << 20;

/// Values of rows that wait to be sent. A few bytes can be a row with thousands of unbound ones.
const MOST_CELLS: usize = 16 << 10;

/// The parts of an answer that wait to be sent.
pub(crate) struct Outlet<'a, T, M> {
    pub sender: SyncSender<M>,
    pub waiting: Vec<T>,
    /// values in those that wait
    pub cells: usize,
    pub message: fn(Vec<T>) -> M,
    pub watch: &'a Watch,
    /// whether the rows have begun
    pub has_head: bool,
    /// bytes since the last whole part
    pub since: u64,
    /// time that was spent waiting for the endpoint since then
    pub waited: Duration,
    /// all bytes
    pub bytes: u64,
    /// parts that were taken
    pub parts: u64,
    /// why the reading ended early
    pub fault: Option<Fault>,
}

impl<'a, T, M> Outlet<'a, T, M> {
    pub fn new(sender: SyncSender<M>, message: fn(Vec<T>) -> M, watch: &'a Watch) -> Rc<RefCell<Self>> {
        Rc::new(RefCell::new(Self {
            sender,
            waiting: Vec::new(),
            cells: 0,
            message,
            watch,
            has_head: false,
            since: 0,
            waited: Duration::ZERO,
            bytes: 0,
            parts: 0,
            fault: None,
        }))
    }

    /// The head has come whole, and rows follow.
    pub fn begin(&mut self) {
        (self.has_head, self.since, self.waited) = (true, 0, Duration::ZERO);
    }

    /// Takes a whole part of so many values.
    pub fn take(&mut self, part: T, cells: usize) -> Result<(), Fault> {
        self.waiting.push(part);
        self.cells += cells;
        self.parts += 1;
        (self.since, self.waited) = (0, Duration::ZERO);
        if self.cells < MOST_CELLS { Ok(()) } else { self.flush() }
    }

    /// Sends the parts that wait.
    pub fn flush(&mut self) -> Result<(), Fault> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        self.cells = 0;
        let message = (self.message)(std::mem::take(&mut self.waiting));
        match self.sender.try_send(message) {
            Ok(()) => Ok(()),
            Err(TrySendError::Disconnected(_)) => Err(Fault::Cancelled),
            Err(TrySendError::Full(message)) => {
                self.watch.free();
                self.sender.send(message).map_err(|_| Fault::Cancelled)
            }
        }
    }
}

/// Bounds of the bytes of an answer.
pub(crate) struct BoundedReader<'a, T, M> {
    pub body: BodyReader<'static>,
    pub outlet: Rc<RefCell<Outlet<'a, T, M>>>,
    pub most_bytes: u64,
    /// bytes in which there is no whole row
    pub most_bytes_of_row: u64,
    pub patience: Duration,
}

impl<T, M> BoundedReader<'_, T, M> {
    fn next(&mut self, buf: &mut [u8]) -> Result<usize, Fault> {
        let mut outlet = self.outlet.borrow_mut();
        // bytes that have come already could keep the parser at work for long
        if !outlet.watch.is_wanted() {
            return Err(Fault::Cancelled);
        }
        outlet.flush()?;
        if outlet.waited >= self.patience {
            return Err(Fault::Late(self.patience));
        }
        let begun = Instant::now();
        let read = self.body.read(buf);
        outlet.waited += begun.elapsed();
        let read = match read {
            Ok(read) => read as u64,
            Err(_) if !outlet.watch.is_wanted() => return Err(Fault::Cancelled),
            Err(error) => return Err(told(error, self.patience)),
        };
        outlet.bytes += read;
        outlet.since += read;
        if outlet.bytes > self.most_bytes {
            return Err(Fault::TooLong(self.most_bytes));
        }
        if !outlet.has_head && outlet.since > MOST_BYTES_OF_A_HEAD {
            let mib = MOST_BYTES_OF_A_HEAD >> 20;
            return Err(Fault::Malformed(format!("more than {mib} MiB of it came before its rows")));
        }
        if outlet.since > self.most_bytes_of_row {
            let mib = self.most_bytes_of_row >> 20;
            return Err(Fault::Malformed(format!("{mib} MiB of it have no whole row")));
        }
        Ok(read as usize)
    }
}

/// The meaning of an error while the body comes.
fn told(error: io::Error, patience: Duration) -> Fault {
    match ureq::Error::from(error) {
        ureq::Error::Timeout(_) => Fault::Late(patience),
        error => Fault::BrokenOff(error.to_string()),
    }
}

impl<T, M> Read for BoundedReader<'_, T, M> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.next(buf).map_err(|fault| {
            let said = fault.to_string();
            self.outlet.borrow_mut().fault = Some(fault);
            io::Error::other(said)
        })
    }
}
