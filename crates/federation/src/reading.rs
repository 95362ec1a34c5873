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
use crate::slots::Slot;

/// Bytes of an answer in which there is no whole row.
const MOST_BYTES_OF_A_ROW: u64 = 64 << 20;

/// The parts of an answer that wait to be sent.
pub(crate) struct Outlet<T, M> {
    pub sender: SyncSender<M>,
    pub waiting: Vec<T>,
    pub message: fn(Vec<T>) -> M,
    pub slot: Option<Slot>,
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

impl<T, M> Outlet<T, M> {
    pub fn new(sender: SyncSender<M>, message: fn(Vec<T>) -> M, slot: Slot) -> Rc<RefCell<Self>> {
        Rc::new(RefCell::new(Self {
            sender,
            waiting: Vec::new(),
            message,
            slot: Some(slot),
            since: 0,
            waited: Duration::ZERO,
            bytes: 0,
            parts: 0,
            fault: None,
        }))
    }

    /// Takes a whole part.
    pub fn take(&mut self, part: T) {
        self.waiting.push(part);
        self.parts += 1;
        (self.since, self.waited) = (0, Duration::ZERO);
    }

    /// Sends the parts that wait.
    pub fn flush(&mut self) -> Result<(), Fault> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let message = (self.message)(std::mem::take(&mut self.waiting));
        match self.sender.try_send(message) {
            Ok(()) => Ok(()),
            Err(TrySendError::Disconnected(_)) => Err(Fault::Cancelled),
            Err(TrySendError::Full(message)) => {
                self.slot = None;
                self.sender.send(message).map_err(|_| Fault::Cancelled)
            }
        }
    }
}

/// Bounds of the bytes of an answer.
pub(crate) struct BoundedReader<'a, T, M> {
    pub body: BodyReader<'static>,
    pub outlet: Rc<RefCell<Outlet<T, M>>>,
    pub watch: &'a Watch,
    pub most_bytes: u64,
    pub patience: Duration,
}

impl<T, M> BoundedReader<'_, T, M> {
    fn next(&mut self, buf: &mut [u8]) -> Result<usize, Fault> {
        let mut outlet = self.outlet.borrow_mut();
        outlet.flush()?;
        if outlet.waited >= self.patience {
            return Err(Fault::Late(self.patience));
        }
        let begun = Instant::now();
        let read = self.body.read(buf);
        outlet.waited += begun.elapsed();
        let read = match read {
            Ok(read) => read as u64,
            Err(_) if !self.watch.is_wanted() => return Err(Fault::Cancelled),
            Err(error) => return Err(told(error, self.patience)),
        };
        outlet.bytes += read;
        outlet.since += read;
        if outlet.bytes > self.most_bytes {
            return Err(Fault::TooLong(self.most_bytes));
        }
        if outlet.since > MOST_BYTES_OF_A_ROW {
            let mib = MOST_BYTES_OF_A_ROW >> 20;
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
