//! The index file: which object each slot holds, and the changes made last.
//!
//! | byte          | bytes | holds                                                              |
//! |---------------|-------|--------------------------------------------------------------------|
//! | 0             | 128   | head                                                               |
//! | 4096          | 4096  | slots of the last 1024 changes: that of change n at 4 (n mod 1024) |
//! | 8192 + 64 n   | 64    | record of slot n                                                   |
//!
//! It is made, emptied and given another length under its lock.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use super::header::{ChangeTimes, HEADER_BYTES, IndexHeader};
use super::locks::{HeldLock, LockPlace};
use super::preamble::{NoPreamble, Preamble};
use super::record::RECORD_BYTES;
use crate::time::clock::Clock;

/// Where the list of changes is.
pub(super) const LIST_AT: u64 = 4096;
/// Changes in the list. A process killed while it announced one has written over the oldest.
pub(super) const LISTED: u64 = 1024;
const RECORDS_AT: u64 = 8192;

/// The longest wait for the lock of the index, which is held for microseconds: longer only by a
/// process that was stopped meanwhile.
pub(super) const LOCK_PATIENCE: Duration = Duration::from_secs(10);
const LOCK_POLL_NS: u64 = 100_000;

/// Where the record of a slot is.
pub(super) fn record_at(slot: u32) -> u64 {
    RECORDS_AT + RECORD_BYTES as u64 * u64::from(slot)
}

/// Length of an index of so many slots.
pub(super) fn index_bytes(slots: u32) -> u64 {
    record_at(slots)
}

/// Waits for the lock of the index; `None` when patience ends.
pub(super) fn take_index_lock<'a>(file: &'a File, clock: &Clock) -> io::Result<Option<HeldLock<'a>>> {
    let until_ns = clock.now_ns() + LOCK_PATIENCE.as_nanos() as u64;
    loop {
        let held = HeldLock::try_take(file, LockPlace::Index)?;
        if held.is_some() || clock.now_ns() > until_ns {
            return Ok(held);
        }
        clock.sleep_ns(LOCK_POLL_NS);
    }
}

/// Reads the head; the inner error says why it is none.
pub(super) fn read_header(file: &File) -> io::Result<Result<IndexHeader, NoPreamble>> {
    let mut bytes = read_or_zeros(file, 0, HEADER_BYTES)?;
    bytes.truncate(file.metadata()?.len().min(HEADER_BYTES as u64) as usize);
    Ok(IndexHeader::decode(&bytes))
}

/// Makes the index anew, with empty slots; its lock is held.
pub(super) fn empty_index(
    file: &File,
    preamble: Preamble,
    slots: u32,
    damaged: u64,
) -> io::Result<IndexHeader> {
    let header = IndexHeader { damaged, ..IndexHeader::empty(preamble, slots) };
    file.set_len(0)?;
    lengthen(file, index_bytes(slots))?;
    file.write_all_at(&header.encode(), 0)?; // last: until then it is damaged
    Ok(header)
}

/// Gives the index so many slots, keeping those that stay; its lock is held.
pub(super) fn resize_index(file: &File, header: &mut IndexHeader, slots: u32) -> io::Result<()> {
    let before = header.slots;
    if slots < before {
        // The head first: until then all slots are used.
        set_slots(file, header, slots, 0)?;
    }
    // Cuts also records that were left behind by a process killed here.
    let known = index_bytes(before.min(slots));
    if file.metadata()?.len() > known {
        file.set_len(known)?;
    }
    lengthen(file, index_bytes(slots))?;
    if slots > before {
        set_slots(file, header, slots, before)?;
    }
    Ok(())
}

fn set_slots(file: &File, header: &mut IndexHeader, slots: u32, hand: u32) -> io::Result<()> {
    (header.slots, header.hand) = (slots, hand);
    header.times.epoch = ChangeTimes::anew().epoch;
    file.write_all_at(&header.encode(), 0)
}

/// Lengthens a file by zeros that have their room on the disk, where the file system can promise.
fn lengthen(file: &File, len: u64) -> io::Result<()> {
    let now = file.metadata()?.len();
    if now >= len {
        return Ok(());
    }
    match rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), now, len - now) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => file.set_len(len),
        Err(e) => Err(e.into()),
    }
}

/// Bytes of a file; those beyond its end are zeros.
pub(super) fn read_or_zeros(file: &File, at: u64, len: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; len];
    let mut got = 0;
    while got < len {
        match file.read_at(&mut bytes[got..], at + got as u64) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(bytes)
}
