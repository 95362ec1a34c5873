//! Scans that share what they read, in the order the device likes.
//!
//! A table is a list of pieces on one or more devices. A reader *joins* the scan at the place
//! where the scan is now. It is handed every piece once, in the order of the scan, and is
//! through when the scan comes round to the place where it joined. A piece is read once for all
//! readers, through the queue of its device, a few pieces ahead. The workers of one query take
//! the pieces one after the other from the same place. So the device sees one sequential stream
//! per table, however many workers and queries there are.
//!
//! ```text
//! sequence numbers    base ─────────────── issued ─────►      piece = number mod pieces
//! window              [ready][ready][in flight][in flight]
//! scan A                  ▲ next, until its end = first + pieces
//! scan B              ▲ next: it holds the window back, so no scan runs away from it
//! ```
//!
//! A piece that arrives wakes one worker of each scan that waits for it. The worker that takes
//! a piece wakes the next when there is another. If all were woken each time, 80 workers would
//! spend 35 times the context switches of one.

#![allow(unsafe_code)]

use std::collections::{HashMap, VecDeque};
use std::ops::Deref;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::config::QueueConfig;
use crate::device::Device;
use crate::device_queue::DeviceQueue;
use crate::error::IoError;
use crate::memory::buffer::{AlignedBuf, RawBuf};
use crate::queue::request::{Class, Request, Sink};
use crate::time::clock::Clock;
use crate::time::event_count::EventCount;

/// A part of a table: so many bytes at an offset of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Which of the devices.
    pub device: usize,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub len: usize,
}

/// The devices under shared scans, each with its queue.
pub struct ScanDevices {
    queues: Vec<Arc<DeviceQueue>>,
    shared: Arc<ScanShared>,
}

/// A table that is scanned by many.
pub struct SharedScan {
    devices: Arc<ScanDevices>,
    table: u64,
}

/// One query's scan; its workers share it.
pub struct ScanReader {
    scan: Arc<SharedScan>,
    reader: u64,
    /// Its workers wait here for its next piece.
    next: Arc<EventCount>,
}

/// A piece, read; its memory is used again when the last holder drops it.
pub struct ScannedPiece {
    /// The piece.
    pub piece: Piece,
    bytes: Arc<Recycled>,
}

impl Deref for ScannedPiece {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        let buffer = self.bytes.buffer.as_ref().expect("taken only on drop");
        &buffer[..self.piece.len]
    }
}

/// Tables are told apart in tags by the bits above these.
const SEQUENCE_BITS: u32 = 40;

struct ScanShared {
    state: Mutex<ScanState>,
    /// The thread that drops a scan waits here for the requests in flight.
    arrived: EventCount,
    clock: Clock,
}

#[derive(Default)]
struct ScanState {
    tables: HashMap<u64, Table>,
    next_id: u64,
}

struct Table {
    pieces: Vec<Piece>,
    /// Most pieces in flight or waiting to be taken.
    ahead: usize,
    base: u64,
    window: VecDeque<ScanSlot>,
    readers: HashMap<u64, ScanPosition>,
    spare: Arc<Mutex<Vec<AlignedBuf>>>,
    largest: usize,
}

enum ScanSlot {
    InFlight(AlignedBuf),
    Ready(Arc<Recycled>),
    Failed(IoError),
}

struct ScanPosition {
    next: u64,
    end: u64,
    waiting: Arc<EventCount>,
}

struct Recycled {
    buffer: Option<AlignedBuf>,
    home: Weak<Mutex<Vec<AlignedBuf>>>,
}

impl Drop for Recycled {
    fn drop(&mut self) {
        if let (Some(buffer), Some(home)) = (self.buffer.take(), self.home.upgrade()) {
            home.lock().push(buffer);
        }
    }
}

impl ScanDevices {
    /// Opens a queue in front of each device.
    ///
    /// # Errors
    /// The engine of a queue cannot be started.
    pub fn open(
        devices: Vec<Arc<dyn Device>>,
        config: &QueueConfig,
        clock: &Clock,
    ) -> Result<Arc<ScanDevices>, IoError> {
        let arrived = EventCount::new(clock);
        let shared = Arc::new(ScanShared { state: Mutex::default(), arrived, clock: clock.clone() });
        let open = |device| {
            let sink: Arc<dyn Sink> = shared.clone();
            DeviceQueue::open(device, config.clone(), clock.clone(), sink)
        };
        let queues = devices.into_iter().map(open).collect::<Result<_, _>>()?;
        Ok(Arc::new(ScanDevices { queues, shared }))
    }

    /// A table of `pieces`, read up to `ahead` pieces ahead of the last reader.
    pub fn table(self: &Arc<Self>, pieces: Vec<Piece>, ahead: usize) -> Arc<SharedScan> {
        assert!(!pieces.is_empty() && ahead > 0, "a table has pieces, and a scan reads ahead");
        let mut state = self.shared.state.lock();
        let id = state.next_id;
        state.next_id += 1;
        let largest = pieces.iter().map(|piece| piece.len).max().unwrap_or(0);
        let table = Table {
            pieces,
            ahead,
            base: 0,
            window: VecDeque::new(),
            readers: HashMap::new(),
            spare: Arc::default(),
            largest,
        };
        state.tables.insert(id, table);
        Arc::new(SharedScan { devices: self.clone(), table: id })
    }

    /// The queues, for their counters.
    pub fn queues(&self) -> &[Arc<DeviceQueue>] {
        &self.queues
    }

    fn submit(&self, requests: Vec<(usize, Request)>) {
        for (device, queue) in self.queues.iter().enumerate() {
            let of_device = requests.iter().filter(|(d, _)| *d == device).map(|(_, request)| *request);
            queue.submit(&mut of_device.collect());
        }
    }
}

impl Drop for ScanDevices {
    fn drop(&mut self) {
        // Buffers in flight belong to the state: nothing may be outstanding when it goes.
        self.queues.iter().for_each(|queue| queue.close());
    }
}

impl SharedScan {
    /// Joins the scan where it is now.
    pub fn join(self: &Arc<Self>) -> ScanReader {
        let mut state = self.devices.shared.state.lock();
        let reader = state.next_id;
        state.next_id += 1;
        let table = state.tables.get_mut(&self.table).expect("the table lives as long as its scan");
        let waiting = Arc::new(EventCount::new(&self.devices.shared.clock));
        let (from, pieces) = (table.base, table.pieces.len() as u64);
        table
            .readers
            .insert(reader, ScanPosition { next: from, end: from + pieces, waiting: waiting.clone() });
        ScanReader { scan: self.clone(), reader, next: waiting }
    }
}

impl Drop for SharedScan {
    fn drop(&mut self) {
        // Reads in flight are waited for; no reader is left who would ask for more.
        let (shared, id) = (&self.devices.shared, self.table);
        let is_over = || {
            let state = shared.state.lock();
            state.tables[&id].window.iter().all(|slot| !matches!(slot, ScanSlot::InFlight(_)))
        };
        shared.arrived.wait_until(is_over);
        shared.state.lock().tables.remove(&id);
    }
}

impl ScanReader {
    /// The next piece that no worker of this reader has had; nothing when all have been handed
    /// out.
    pub fn next(&self) -> Option<Result<ScannedPiece, IoError>> {
        let shared = &self.scan.devices.shared;
        loop {
            let (taken, requests) = shared.state.lock().take(self.scan.table, self.reader);
            self.scan.devices.submit(requests);
            match taken {
                TakenPiece::Piece { piece, then } => {
                    match then {
                        Then::More => self.next.notify_one(),
                        Then::Wait => {}
                        Then::Through => self.next.notify_all(),
                    }
                    return Some(piece);
                }
                TakenPiece::Through => return None,
                TakenPiece::NotYet => {
                    self.next.wait_until(|| shared.state.lock().is_there(self.scan.table, self.reader));
                }
            }
        }
    }
}

impl Drop for ScanReader {
    fn drop(&mut self) {
        let shared = &self.scan.devices.shared;
        let mut state = shared.state.lock();
        let table = state.tables.get_mut(&self.scan.table).expect("the reader holds the scan");
        table.readers.remove(&self.reader);
        table.move_on();
        // The window may have moved: one of each of the others reads on.
        let others: Vec<_> = table.readers.values().map(|reader| reader.waiting.clone()).collect();
        drop(state);
        others.iter().for_each(|waiting| waiting.notify_one());
    }
}

enum TakenPiece {
    Piece { piece: Result<ScannedPiece, IoError>, then: Then },
    NotYet,
    Through,
}

/// The next move of the reader's other workers after a piece was taken.
enum Then {
    /// The next piece is there too.
    More,
    Wait,
    /// That was the last one.
    Through,
}

impl ScanState {
    /// Hands the next piece to a reader, and says what to read now.
    fn take(&mut self, id: u64, reader: u64) -> (TakenPiece, Vec<(usize, Request)>) {
        let table = self.tables.get_mut(&id).expect("the reader holds the scan");
        let ScanPosition { next, end, .. } = table.readers[&reader];
        if next == end {
            return (TakenPiece::Through, Vec::new());
        }
        let place = (next - table.base) as usize;
        let piece = match table.window.get(place) {
            Some(ScanSlot::Ready(bytes)) => {
                let piece = table.pieces[(next % table.pieces.len() as u64) as usize];
                Ok(ScannedPiece { piece, bytes: bytes.clone() })
            }
            Some(ScanSlot::Failed(e)) => Err(e.clone()),
            Some(ScanSlot::InFlight(_)) | None => return (TakenPiece::NotYet, table.read_ahead(id)),
        };
        let then = match table.window.get(place + 1) {
            _ if next + 1 == end => Then::Through,
            Some(ScanSlot::Ready(_) | ScanSlot::Failed(_)) => Then::More,
            Some(ScanSlot::InFlight(_)) | None => Then::Wait,
        };
        table.readers.get_mut(&reader).expect("looked up above").next += 1;
        table.move_on();
        (TakenPiece::Piece { piece, then }, table.read_ahead(id))
    }

    /// True when `take` would return something, or would read.
    fn is_there(&self, id: u64, reader: u64) -> bool {
        let table = &self.tables[&id];
        let at = &table.readers[&reader];
        let slot = table.window.get((at.next - table.base) as usize);
        let may_read = table.window.len() < table.ahead;
        at.next == at.end
            || !matches!(slot, Some(ScanSlot::InFlight(_)) | None)
            || (slot.is_none() && may_read)
    }
}

impl Table {
    /// Drops the pieces that every reader has had.
    fn move_on(&mut self) {
        let last = self.readers.values().filter(|at| at.next < at.end).map(|at| at.next).min();
        let keep_from = last.unwrap_or(self.base + self.window.len() as u64);
        while self.base < keep_from && !matches!(self.window.front(), Some(ScanSlot::InFlight(_)) | None) {
            self.window.pop_front();
            self.base += 1;
        }
    }

    /// The requests for the pieces ahead that a reader will want.
    fn read_ahead(&mut self, id: u64) -> Vec<(usize, Request)> {
        let wanted = self.readers.values().map(|at| at.end).max().unwrap_or(0);
        let mut requests = Vec::new();
        while self.window.len() < self.ahead && self.base + (self.window.len() as u64) < wanted {
            let number = self.base + self.window.len() as u64;
            let piece = self.pieces[(number % self.pieces.len() as u64) as usize];
            let mut buffer = self.spare.lock().pop().unwrap_or_else(|| AlignedBuf::new(self.largest));
            // SAFETY: the buffer stays in the window, untouched, until `complete` turns its
            // slot to ready or failed; queues are closed before the window can go.
            let buf = unsafe { RawBuf::read_into(buffer.as_mut_ptr(), piece.len) };
            let tag = (id << SEQUENCE_BITS) | number;
            requests.push((piece.device, Request { offset: piece.offset, buf, class: Class::Planned, tag }));
            self.window.push_back(ScanSlot::InFlight(buffer));
        }
        requests
    }
}

impl Sink for ScanShared {
    fn complete(&self, tag: u64, result: Result<(), IoError>) {
        let (id, number) = (tag >> SEQUENCE_BITS, tag & ((1 << SEQUENCE_BITS) - 1));
        let mut state = self.state.lock();
        let table = state.tables.get_mut(&id).expect("a table waits for what is in flight");
        let home = Arc::downgrade(&table.spare);
        let slot = &mut table.window[(number - table.base) as usize];
        let arrived = match result {
            Ok(()) => ScanSlot::Ready(Arc::new(Recycled { buffer: None, home })),
            Err(e) => ScanSlot::Failed(e),
        };
        let ScanSlot::InFlight(buffer) = std::mem::replace(slot, arrived) else {
            unreachable!("a request is completed once")
        };
        if let ScanSlot::Ready(bytes) = slot {
            Arc::get_mut(bytes).expect("nobody has it yet").buffer = Some(buffer);
        }
        let waits = |reader: &&ScanPosition| reader.next == number;
        let waiting: Vec<_> = table.readers.values().filter(waits).map(|r| r.waiting.clone()).collect();
        drop(state);
        waiting.iter().for_each(|waiting| waiting.notify_one());
        self.arrived.notify_all();
    }
}

#[cfg(test)]
mod tests;
