//! One device request: adjacent requests, and the gaps between them, as one vectored transfer.
//!
//! The pieces are in order of offset and do not overlap. On a file descriptor gaps are read
//! into a scratch buffer that is never looked at; other devices are asked for each piece by
//! itself, since in memory a gap costs nothing.

#![allow(unsafe_code)]

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::RawFd;

use crate::device::timed::{Transfer, TransferKind};
use crate::device::{Device, IOV_MAX};
use crate::error::IoErrorKind;
use crate::learn::Beside;
use crate::memory::buffer::AlignedBuf;
use crate::queue::request::{Class, Request};

/// Bytes of scratch; longer gaps use it several times over.
pub(crate) const SCRATCH_BYTES: usize = 64 << 10;

/// A request on its way through the queue.
#[derive(Clone, Copy)]
pub struct Pending {
    /// The request.
    pub request: Request,
    /// Time of its arrival, by the queue's clock.
    pub arrived_ns: u64,
    /// Order of arrival.
    pub order: u64,
    /// Must not be merged: it was part of a merge that failed, or is a write that is awaited.
    pub(crate) alone: bool,
    /// It was counted before: it was part of a merge that failed.
    pub(crate) again: bool,
    /// The client that asked.
    pub client: u64,
}

impl Pending {
    pub(crate) fn end(&self) -> u64 {
        self.request.offset + self.request.buf.len() as u64
    }
}

/// Gap bytes land here, from any number of transfers at once; they are never read.
pub(crate) struct Scratch {
    start: *mut u8,
    _memory: AlignedBuf,
}

// SAFETY: the address is only handed to the kernel as a place to write to, and never read.
unsafe impl Send for Scratch {}
// SAFETY: as above.
unsafe impl Sync for Scratch {}

impl Scratch {
    pub(crate) fn new() -> Scratch {
        let mut memory = AlignedBuf::new(SCRATCH_BYTES);
        Scratch { start: memory.as_mut_ptr(), _memory: memory }
    }
}

/// A device request; reused, so that in the steady state none is allocated.
pub struct DeviceRequest {
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) write: bool,
    pub(crate) class: Class,
    /// The client that asked for its last piece.
    pub(crate) client: u64,
    pub(crate) gap_bytes: u64,
    pub(crate) started_ns: u64,
    pub(crate) beside: Beside,
    pub(crate) pieces: Vec<Pending>,
    /// Bytes moved so far, from the start.
    pub(crate) done: u64,
    iov: Vec<libc::iovec>,
    first_iov: usize,
}

// SAFETY: the iovecs point at the pieces' buffers (RawBuf is Send) and at the scratch buffer.
unsafe impl Send for DeviceRequest {}

impl DeviceRequest {
    pub(crate) fn new() -> DeviceRequest {
        DeviceRequest {
            offset: 0,
            len: 0,
            write: false,
            class: Class::Demand,
            client: 0,
            gap_bytes: 0,
            started_ns: 0,
            beside: Beside::default(),
            pieces: Vec::new(),
            done: 0,
            iov: Vec::new(),
            first_iov: 0,
        }
    }

    /// Begins with one piece.
    pub(crate) fn begin(&mut self, first: Pending) {
        self.pieces.clear();
        self.offset = first.request.offset;
        self.len = first.request.buf.len() as u64;
        self.write = first.request.buf.is_write();
        self.class = first.request.class;
        self.client = first.client;
        self.gap_bytes = 0;
        self.done = 0;
        self.pieces.push(first);
    }

    /// Adds a piece at or behind the end.
    pub(crate) fn append(&mut self, piece: Pending) {
        let gap =
            piece.request.offset.checked_sub(self.end()).expect("pieces come in order and do not overlap");
        self.gap_bytes += gap;
        self.client = piece.client;
        self.len += gap + piece.request.buf.len() as u64;
        self.pieces.push(piece);
    }

    /// End of its last piece on the device.
    pub fn end(&self) -> u64 {
        self.offset + self.len
    }

    /// Bytes from its first piece to its end, gaps included.
    pub fn bytes(&self) -> u64 {
        self.len
    }

    /// True when it writes.
    pub fn is_write(&self) -> bool {
        self.write
    }

    /// The client that asked for its last piece.
    pub fn client(&self) -> u64 {
        self.client
    }

    /// First byte on the device that is still to be moved.
    pub fn rest_offset(&self) -> u64 {
        self.offset + self.done
    }

    /// The facts on which its time depends.
    pub(crate) fn transfer(&self) -> Transfer {
        Transfer { offset: self.offset, len: self.len, kind: TransferKind::from_write(self.write) }
    }

    /// Bytes still to be moved.
    pub(crate) fn rest(&self) -> u64 {
        self.len - self.done
    }

    /// How many pieces are complete when `done` bytes have been moved.
    pub(crate) fn complete_pieces(&self) -> usize {
        let reached = self.offset + self.done;
        self.pieces.iter().take_while(|p| p.end() <= reached).count()
    }

    /// Makes the list of buffers for the kernel.
    pub(crate) fn prepare(&mut self, scratch: &Scratch) {
        self.iov.clear();
        self.first_iov = 0;
        let mut at = self.offset;
        for piece in &self.pieces {
            while at < piece.request.offset {
                let len = (piece.request.offset - at).min(SCRATCH_BYTES as u64) as usize;
                self.iov.push(libc::iovec { iov_base: scratch.start.cast(), iov_len: len });
                at += len as u64;
            }
            let buf = &piece.request.buf;
            self.iov.push(libc::iovec { iov_base: buf.start().cast(), iov_len: buf.len() });
            at = piece.end();
        }
    }

    /// The buffers that are left; stays where it is until the next `advance`.
    pub fn iov(&self) -> &[libc::iovec] {
        let rest = &self.iov[self.first_iov..];
        &rest[..rest.len().min(IOV_MAX)]
    }

    /// Copies what the buffers that are left hold to `bytes`, as one.
    ///
    /// # Safety
    /// The request writes, was begun, and is not delivered yet.
    pub unsafe fn gather(&self, bytes: &mut [u8]) {
        let mut rest = bytes;
        for iov in self.iov() {
            let (now, later) = rest.split_at_mut(iov.iov_len.min(rest.len()));
            // SAFETY: the buffers are valid for reads until completed (RawBuf's contract);
            // writes have no gaps.
            unsafe { std::ptr::copy_nonoverlapping(iov.iov_base.cast(), now.as_mut_ptr(), now.len()) };
            rest = later;
        }
    }

    /// Copies `bytes` to the buffers that are left, gaps excepted.
    ///
    /// # Safety
    /// The request reads, was begun, and is not delivered yet.
    pub(crate) unsafe fn scatter(&self, bytes: &[u8], scratch: &Scratch) {
        let mut rest = bytes;
        for iov in self.iov() {
            let (now, later) = rest.split_at(iov.iov_len.min(rest.len()));
            if iov.iov_base != scratch.start.cast() {
                // SAFETY: the buffers are valid for writes and ours alone until completed
                // (RawBuf's contract).
                unsafe { std::ptr::copy_nonoverlapping(now.as_ptr(), iov.iov_base.cast(), now.len()) };
            }
            rest = later;
        }
    }

    /// Notes that `n` more bytes were moved.
    pub(crate) fn advance(&mut self, n: u64) {
        assert!(n <= self.rest(), "the kernel moved more than it was asked to");
        self.done += n;
        let mut n = n as usize;
        while n > 0 {
            let iov = &mut self.iov[self.first_iov];
            if n < iov.iov_len {
                iov.iov_base = iov.iov_base.wrapping_byte_add(n);
                iov.iov_len -= n;
                return;
            }
            n -= iov.iov_len;
            self.first_iov += 1;
        }
    }

    /// Meaning of a result of the kernel: go on, or the end.
    pub(crate) fn took(&mut self, result: Result<u64, i32>, offset_unit: usize) -> Progress {
        match result {
            Ok(0) => Progress::Ended(Err(IoErrorKind::Short { got: self.done })),
            Ok(n) => {
                self.advance(n);
                if self.rest() == 0 {
                    Progress::Ended(Ok(()))
                } else if self.done.is_multiple_of(offset_unit as u64) {
                    Progress::Again
                } else {
                    // O_DIRECT ends off the grid only at the end of the file.
                    Progress::Ended(Err(IoErrorKind::Short { got: self.done }))
                }
            }
            Err(libc::EINTR | libc::EAGAIN) => Progress::Again,
            Err(errno) => Progress::Ended(Err(IoErrorKind::Os { errno })),
        }
    }

    /// Carries it out in this thread.
    pub(crate) fn execute(&mut self, device: &dyn Device, scratch: &Scratch) -> Result<(), IoErrorKind> {
        if let Some(timed) = device.timed() {
            let mut end = Ok(());
            timed.carry_out(self.transfer(), &mut |beneath| end = self.execute(beneath, scratch));
            return end;
        }
        match device.fd() {
            Some(fd) => self.execute_fd(fd, device.alignment().offset, scratch),
            None => self.execute_pieces(device),
        }
    }

    fn execute_fd(&mut self, fd: RawFd, unit: usize, scratch: &Scratch) -> Result<(), IoErrorKind> {
        self.prepare(scratch);
        loop {
            let iov = self.iov();
            let (start, count, at) = (iov.as_ptr(), iov.len() as i32, (self.offset + self.done) as i64);
            // SAFETY: the iovecs describe the pieces' buffers, valid until completed (RawBuf's
            // contract), and the scratch.
            let n = unsafe {
                match self.write {
                    true => libc::pwritev(fd, start, count, at),
                    false => libc::preadv(fd, start, count, at),
                }
            };
            let errno = || std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
            let result = if n < 0 { Err(errno()) } else { Ok(n as u64) };
            if let Progress::Ended(end) = self.took(result, unit) {
                return end;
            }
        }
    }

    fn execute_pieces(&mut self, device: &dyn Device) -> Result<(), IoErrorKind> {
        for piece in &self.pieces {
            let (buf, offset) = (&piece.request.buf, piece.request.offset);
            let moved = if self.write {
                // SAFETY: valid for reads and unchanged until completed (RawBuf's contract).
                let bytes = unsafe { std::slice::from_raw_parts(buf.start(), buf.len()) };
                device.write_at(&[IoSlice::new(bytes)], offset)
            } else {
                // SAFETY: valid for writes and ours alone until completed (RawBuf's contract).
                let bytes = unsafe { std::slice::from_raw_parts_mut(buf.start(), buf.len()) };
                device.read_at(&mut [IoSliceMut::new(bytes)], offset)
            };
            moved.map_err(|e| e.kind)?;
            self.done = piece.end() - self.offset;
        }
        Ok(())
    }
}

/// Meaning of a result of the kernel.
pub enum Progress {
    /// The rest is to be moved yet.
    Again,
    /// The request is over.
    Ended(Result<(), IoErrorKind>),
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Plays the kernel: moves at most `most` bytes of `device` from where the request stands.
    fn move_some(request: &DeviceRequest, device: &[u8], most: usize) -> u64 {
        let mut at = (request.offset + request.done) as usize;
        let mut left = most.min(device.len().saturating_sub(at));
        let moved = left.min(request.rest() as usize);
        for iov in request.iov() {
            let n = iov.iov_len.min(left);
            // SAFETY: the iovecs describe the buffers of the test, or the scratch.
            unsafe { std::ptr::copy_nonoverlapping(device[at..].as_ptr(), iov.iov_base.cast(), n) };
            (at, left) = (at + n, left - n);
        }
        moved as u64
    }

    proptest! {
        #[test]
        fn short_and_interrupted_transfers_are_continued(
            parts in prop::collection::vec((0..3u64, 1..5usize), 1..12),
            moves in prop::collection::vec(prop::option::weighted(0.8, 1..200usize), 1..60),
            device_units in 1..80usize,
        ) {
            const UNIT: usize = 16;
            let device: Vec<u8> = (0..device_units * UNIT).map(|i| (i * 7 + i / 251) as u8).collect();
            let mut bufs: Vec<Vec<u8>> = parts.iter().map(|(_, units)| vec![0; units * UNIT]).collect();
            let mut request = DeviceRequest::new();
            let mut places = Vec::new();
            let mut at = 0;
            for (i, (gap, units)) in parts.iter().enumerate() {
                at += if i == 0 { 0 } else { gap * UNIT as u64 };
                places.push(at);
                // SAFETY: the buffers outlive the request.
                let buf = unsafe { crate::RawBuf::read_into(bufs[i].as_mut_ptr(), units * UNIT) };
                let one = Request { offset: at, buf, class: Class::Planned, tag: i as u64 };
                let one = Pending { request: one, arrived_ns: 0, order: i as u64, alone: false, again: false, client: 0 };
                if i == 0 { request.begin(one) } else { request.append(one) }
                at += (units * UNIT) as u64;
            }
            let scratch = Scratch::new();
            request.prepare(&scratch);
            let mut moves = moves.into_iter();
            let end = loop {
                // After the given ones, whole units; short ones at the end of the device only.
                let result = match moves.next() {
                    Some(None) => Err(libc::EINTR),
                    Some(Some(most)) => Ok(move_some(&request, &device, most.next_multiple_of(UNIT))),
                    None => Ok(move_some(&request, &device, usize::MAX)),
                };
                if let Progress::Ended(end) = request.took(result, UNIT) {
                    break end;
                }
            };
            let whole = request.complete_pieces();
            for (i, buf) in bufs.iter().enumerate() {
                let there = places[i] as usize + buf.len() <= device.len();
                prop_assert_eq!(i < whole, there);
                prop_assert!(!there || buf[..] == device[places[i] as usize..][..buf.len()]);
            }
            let got = at.min(device.len() as u64);
            prop_assert_eq!(end, if got == at { Ok(()) } else { Err(IoErrorKind::Short { got }) });
        }
    }
}
