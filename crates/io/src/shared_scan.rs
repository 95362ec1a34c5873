//! Scans that share what they read, in the order the device likes.
//!
//! A table is a list of pieces on one or more devices. Whoever scans it *joins* at the place where the scan is now, is handed every
//! piece once, in the scan's order, and is through when it comes round to where it joined. A piece is read once for all that have
//! joined, through the device's own queue, a few pieces ahead; the many workers of one query take the pieces one after the other from
//! the same place. So the device sees one sequential stream per table, however many workers and queries there are.
//!
//! ```text
//! sequence numbers    base ─────────────── issued ─────►      piece = number mod pieces
//! window              [ready][ready][in flight][in flight]
//! scan A                  ▲ next, until its end = first + pieces
//! scan B              ▲ next: it holds the window back, so nobody runs away from it
//! ```
//!
//! A piece that arrives wakes one worker of each scan that waits for it, and whoever takes a piece wakes the next when there is another:
//! with all woken each time, 80 workers spend 35 times the context switches of one.

#![allow(unsafe_code)]

use std::collections::{HashMap, VecDeque};
use std::ops::Deref;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::buffer::{AlignedBuf, RawBuf};
use crate::clock::Clock;
use crate::device::Device;
use crate::error::IoError;
use crate::event_count::EventCount;
use crate::queue::{Class, DeviceQueue, QueueConfig, Request, Sink};

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
    shared: Arc<Shared>,
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
    /// Which piece it is.
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

struct Shared {
    state: Mutex<State>,
    /// Who drops a scan waits here for what is in flight.
    arrived: EventCount,
    clock: Clock,
}

#[derive(Default)]
struct State {
    tables: HashMap<u64, Table>,
    next_id: u64,
}

struct Table {
    pieces: Vec<Piece>,
    /// Most pieces in flight or waiting to be taken.
    ahead: usize,
    base: u64,
    window: VecDeque<Slot>,
    readers: HashMap<u64, Reader>,
    spare: Arc<Mutex<Vec<AlignedBuf>>>,
    largest: usize,
}

enum Slot {
    InFlight(AlignedBuf),
    Ready(Arc<Recycled>),
    Failed(IoError),
}

struct Reader {
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
    pub fn open(
        devices: Vec<Arc<dyn Device>>,
        config: &QueueConfig,
        clock: &Clock,
    ) -> Result<Arc<ScanDevices>, IoError> {
        let arrived = EventCount::new(clock);
        let shared = Arc::new(Shared { state: Mutex::default(), arrived, clock: clock.clone() });
        let open = |device| {
            let sink: Arc<dyn Sink> = shared.clone();
            DeviceQueue::open(device, config.clone(), clock.clone(), sink)
        };
        let queues = devices.into_iter().map(open).collect::<Result<_, _>>()?;
        Ok(Arc::new(ScanDevices { queues, shared }))
    }

    /// A table of `pieces`, read up to `ahead` pieces ahead of whoever is last.
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
        table.readers.insert(reader, Reader { next: from, end: from + pieces, waiting: waiting.clone() });
        ScanReader { scan: self.clone(), reader, next: waiting }
    }
}

impl Drop for SharedScan {
    fn drop(&mut self) {
        // What is still in flight is waited for; no reader is left who would ask for more.
        let (shared, id) = (&self.devices.shared, self.table);
        let is_over = || {
            let state = shared.state.lock();
            state.tables[&id].window.iter().all(|slot| !matches!(slot, Slot::InFlight(_)))
        };
        shared.arrived.wait_until(is_over);
        shared.state.lock().tables.remove(&id);
    }
}

impl ScanReader {
    /// The next piece that no worker of this reader has had; nothing when all have been handed out.
    pub fn next(&self) -> Option<Result<ScannedPiece, IoError>> {
        let shared = &self.scan.devices.shared;
        loop {
            let (taken, requests) = shared.state.lock().take(self.scan.table, self.reader);
            self.scan.devices.submit(requests);
            match taken {
                Taken::Piece { piece, then } => {
                    match then {
                        Then::More => self.next.notify_one(),
                        Then::Wait => {}
                        Then::Through => self.next.notify_all(),
                    }
                    return Some(piece);
                }
                Taken::Through => return None,
                Taken::NotYet => {
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

enum Taken {
    Piece { piece: Result<ScannedPiece, IoError>, then: Then },
    NotYet,
    Through,
}

/// What the reader's other workers can do after a piece was taken.
enum Then {
    /// The next piece is there too.
    More,
    Wait,
    /// That was the last one.
    Through,
}

impl State {
    /// Hands the next piece to a reader, and says what to read now.
    fn take(&mut self, id: u64, reader: u64) -> (Taken, Vec<(usize, Request)>) {
        let table = self.tables.get_mut(&id).expect("the reader holds the scan");
        let Reader { next, end, .. } = table.readers[&reader];
        if next == end {
            return (Taken::Through, Vec::new());
        }
        let place = (next - table.base) as usize;
        let piece = match table.window.get(place) {
            Some(Slot::Ready(bytes)) => {
                let piece = table.pieces[(next % table.pieces.len() as u64) as usize];
                Ok(ScannedPiece { piece, bytes: bytes.clone() })
            }
            Some(Slot::Failed(e)) => Err(e.clone()),
            Some(Slot::InFlight(_)) | None => return (Taken::NotYet, table.read_ahead(id)),
        };
        let then = match table.window.get(place + 1) {
            _ if next + 1 == end => Then::Through,
            Some(Slot::Ready(_) | Slot::Failed(_)) => Then::More,
            Some(Slot::InFlight(_)) | None => Then::Wait,
        };
        table.readers.get_mut(&reader).expect("looked up above").next += 1;
        table.move_on();
        (Taken::Piece { piece, then }, table.read_ahead(id))
    }

    /// True when `take` has something to say, or something to read.
    fn is_there(&self, id: u64, reader: u64) -> bool {
        let table = &self.tables[&id];
        let at = &table.readers[&reader];
        let slot = table.window.get((at.next - table.base) as usize);
        let may_read = table.window.len() < table.ahead;
        at.next == at.end || !matches!(slot, Some(Slot::InFlight(_)) | None) || (slot.is_none() && may_read)
    }
}

impl Table {
    /// Lets go of what every reader has had.
    fn move_on(&mut self) {
        let last = self.readers.values().filter(|at| at.next < at.end).map(|at| at.next).min();
        let keep_from = last.unwrap_or(self.base + self.window.len() as u64);
        while self.base < keep_from && !matches!(self.window.front(), Some(Slot::InFlight(_)) | None) {
            self.window.pop_front();
            self.base += 1;
        }
    }

    /// The requests for the pieces ahead that somebody will want.
    fn read_ahead(&mut self, id: u64) -> Vec<(usize, Request)> {
        let wanted = self.readers.values().map(|at| at.end).max().unwrap_or(0);
        let mut requests = Vec::new();
        while self.window.len() < self.ahead && self.base + (self.window.len() as u64) < wanted {
            let number = self.base + self.window.len() as u64;
            let piece = self.pieces[(number % self.pieces.len() as u64) as usize];
            let mut buffer = self.spare.lock().pop().unwrap_or_else(|| AlignedBuf::new(self.largest));
            // SAFETY: the buffer stays in the window, untouched, until `complete` turns its slot to ready or failed; queues are
            // closed before the window can go.
            let buf = unsafe { RawBuf::read_into(buffer.as_mut_ptr(), piece.len) };
            let tag = (id << SEQUENCE_BITS) | number;
            requests.push((piece.device, Request { offset: piece.offset, buf, class: Class::Planned, tag }));
            self.window.push_back(Slot::InFlight(buffer));
        }
        requests
    }
}

impl Sink for Shared {
    fn complete(&self, tag: u64, result: Result<(), IoError>) {
        let (id, number) = (tag >> SEQUENCE_BITS, tag & ((1 << SEQUENCE_BITS) - 1));
        let mut state = self.state.lock();
        let table = state.tables.get_mut(&id).expect("a table waits for what is in flight");
        let home = Arc::downgrade(&table.spare);
        let slot = &mut table.window[(number - table.base) as usize];
        let arrived = match result {
            Ok(()) => Slot::Ready(Arc::new(Recycled { buffer: None, home })),
            Err(e) => Slot::Failed(e),
        };
        let Slot::InFlight(buffer) = std::mem::replace(slot, arrived) else {
            unreachable!("a request is completed once")
        };
        if let Slot::Ready(bytes) = slot {
            Arc::get_mut(bytes).expect("nobody has it yet").buffer = Some(buffer);
        }
        let waits = |reader: &&Reader| reader.next == number;
        let waiting: Vec<_> = table.readers.values().filter(waits).map(|r| r.waiting.clone()).collect();
        drop(state);
        waiting.iter().for_each(|waiting| waiting.notify_one());
        self.arrived.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryDevice;
    use crate::queue::Engine;
    use std::io::IoSlice;

    const PIECE: usize = if cfg!(miri) { 16 } else { 4096 };

    fn devices(engine: Engine, pieces: usize) -> Arc<ScanDevices> {
        let device = MemoryDevice::new("memory");
        for i in 0..pieces {
            let bytes = vec![i as u8; PIECE];
            device.write_at(&[IoSlice::new(&bytes)], (i * PIECE) as u64).expect("memory");
        }
        let config =
            QueueConfig { engine, gap_bytes: Some(0), max_request_bytes: 0, ..QueueConfig::default() };
        ScanDevices::open(vec![Arc::new(device)], &config, &Clock::real()).expect("opened")
    }

    fn pieces(n: usize) -> Vec<Piece> {
        (0..n).map(|i| Piece { device: 0, offset: (i * PIECE) as u64, len: PIECE }).collect()
    }

    /// What the workers of one reader were handed, sorted.
    fn scan(reader: &ScanReader, workers: usize) -> Vec<u8> {
        let all = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| {
                    while let Some(piece) = reader.next() {
                        let piece = piece.expect("readable");
                        assert!(piece.iter().all(|b| *b == piece[0]));
                        assert_eq!(piece.piece.offset as usize / PIECE, piece[0] as usize);
                        all.lock().push(piece[0]);
                    }
                });
            }
        });
        let mut all = all.into_inner();
        all.sort_unstable();
        all
    }

    #[test]
    fn every_reader_is_handed_every_piece_once() {
        let n = if cfg!(miri) { 5 } else { 60 };
        for engine in [Engine::Inline, Engine::Threads] {
            for (readers, workers, ahead) in [(1, 1, 1), (1, 8, 3), (4, 3, 2), (5, 1, 100)] {
                let scan_of = devices(engine, n).table(pieces(n), ahead);
                let whole: Vec<u8> = (0..n as u8).collect();
                let readers: Vec<ScanReader> = (0..readers).map(|_| scan_of.join()).collect();
                std::thread::scope(|scope| {
                    for reader in readers {
                        let whole = &whole;
                        scope.spawn(move || assert_eq!(&scan(&reader, workers), whole));
                    }
                });
            }
        }
    }

    #[test]
    fn who_joins_late_shares_the_rest_and_comes_round() {
        let devices = devices(Engine::Inline, 20);
        let table = devices.table(pieces(20), 2);
        let first = table.join();
        for _ in 0..10 {
            first.next().expect("there are more").expect("readable");
        }
        let second = table.join();
        let whole: Vec<u8> = (0..20).collect();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while first.next().is_some() {}
                drop(first);
            });
            scope.spawn(|| assert_eq!(scan(&second, 1), whole));
        });
        let read: u64 = devices.queues()[0].counters().classes.iter().map(|c| c.requests).sum();
        assert!(
            (20..=31).contains(&read),
            "twice ten alone and ten together are 30 reads or so, not 40: {read}"
        );
    }

    #[test]
    fn leaving_early_and_dropping_everything_is_safe() {
        let devices = devices(Engine::Threads, 50);
        let table = devices.table(pieces(50), 8);
        let reader = table.join();
        reader.next().expect("there are more").expect("readable");
        drop(reader);
        drop(table);
        drop(devices);
    }
}
