//! The volatile write cache of a disk: cached writes, writes that wait for room, and flushes.
//!
//! A write is over when its bytes have come through the interface. When the cache is full,
//! writes wait until something has been written out. While a flush is pending no write is let
//! in, and the flush is over with the last write-out.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use crate::device::simulated::model::parameters::DiskModel;
use crate::device::timed::{Transfer, TransferKind};

pub(crate) struct WriteCache {
    capacity: u64,
    /// Writes it holds at most.
    most: usize,
    queue: usize,
    overhead_ns: f64,
    interface_ns_per_byte: f64,
    /// Oldest first; the one the arm is writing out is not among them any more.
    dirty: VecDeque<(u64, Transfer)>,
    /// Where each of the dirty writes ends, by (offset, number).
    places: BTreeMap<(u64, u64), u64>,
    /// Writes let in so far.
    writes: u64,
    /// Bytes of those, and of the one being written out.
    dirty_bytes: u64,
    writing_bytes: u64,
    /// Writes without room and flushes, with their arrivals, in that order.
    waiting: VecDeque<(usize, Transfer, u64)>,
    /// When the interface is free.
    interface_ns: f64,
    /// (over, id).
    over: BinaryHeap<Reverse<(u64, usize)>>,
}

impl WriteCache {
    pub(crate) fn new(d: &DiskModel) -> WriteCache {
        WriteCache {
            capacity: d.write_cache_bytes,
            most: d.write_cache_requests,
            queue: d.write_queue,
            overhead_ns: d.overhead_us * 1e3,
            interface_ns_per_byte: 1e9 / d.interface_bytes_per_s,
            dirty: VecDeque::new(),
            places: BTreeMap::new(),
            writes: 0,
            dirty_bytes: 0,
            writing_bytes: 0,
            waiting: VecDeque::new(),
            interface_ns: 0.0,
            over: BinaryHeap::new(),
        }
    }

    pub(crate) fn arrive(&mut self, id: usize, transfer: Transfer, now_ns: u64) {
        self.waiting.push_back((id, transfer, now_ns));
        self.let_in(now_ns);
    }

    /// Lets in what there is room for; ends flushes that have nothing to wait for.
    fn let_in(&mut self, now_ns: u64) {
        while let Some(&(id, transfer, arrived)) = self.waiting.front() {
            let held = self.dirty_bytes + self.writing_bytes;
            let room = held + transfer.len <= self.capacity && self.dirty.len() < self.most;
            let ready = match transfer.kind {
                TransferKind::Flush => held == 0,
                // A write longer than the cache goes in when the cache is empty.
                _ => room || held == 0,
            };
            if !ready {
                return;
            }
            self.waiting.pop_front();
            let begins = self.interface_ns.max(now_ns.max(arrived) as f64);
            self.interface_ns = begins + transfer.len as f64 * self.interface_ns_per_byte;
            self.over.push(Reverse(((self.interface_ns + self.overhead_ns) as u64, id)));
            if transfer.kind == TransferKind::Write {
                self.dirty_bytes += transfer.len;
                self.writes += 1;
                self.dirty.push_back((self.writes, transfer));
                self.places.insert((transfer.offset, self.writes), transfer.offset + transfer.len);
            }
        }
    }

    /// The arm must write out before it reads.
    pub(crate) fn is_urgent(&self) -> bool {
        let full = self.dirty_bytes > self.capacity / 4 * 3 || self.dirty.len() > self.most / 4 * 3;
        full || !self.waiting.is_empty()
    }

    /// Writes that may be written out next, each with its place.
    pub(crate) fn candidates(&self) -> impl Iterator<Item = (usize, &Transfer)> {
        self.dirty.iter().take(self.queue).map(|(_, transfer)| transfer).enumerate()
    }

    /// The arm writes this one out.
    pub(crate) fn take(&mut self, place: usize) {
        let (number, one) = self.dirty.remove(place).expect("a candidate");
        self.places.remove(&(one.offset, number));
        self.dirty_bytes -= one.len;
        self.writing_bytes = one.len;
    }

    /// The arm has done so.
    pub(crate) fn written_out(&mut self, now_ns: u64) {
        self.writing_bytes = 0;
        self.let_in(now_ns);
    }

    /// All bytes of a read are in one cached write (the last that begins at or before it).
    pub(crate) fn holds(&self, read: &Transfer) -> bool {
        let before = self.places.range(..=(read.offset, u64::MAX)).next_back();
        before.is_some_and(|(_, &end)| read.offset + read.len <= end)
    }

    pub(crate) fn next_due(&self) -> Option<u64> {
        self.over.peek().map(|Reverse((over, _))| *over)
    }

    pub(crate) fn pop_due(&mut self, now_ns: u64) -> Option<(usize, u64)> {
        let due = self.next_due().filter(|due| *due <= now_ns)?;
        self.over.pop().map(|Reverse((_, id))| (id, due))
    }
}
