//! A device that fails as devices do: by a seed, at known rates, with a list of the faults.
//!
//! | fault | seen by the caller | on the device |
//! |---|---|---|
//! | `eio` | an error | unchanged (a write: any prefix of its sectors) |
//! | `short` | an error: fewer bytes than asked | a write: that prefix |
//! | `bit_rot` | success | one bit of what was read has changed, for good |
//! | `misdirected` | success | the transfer went to another place |
//! | `torn` | success | only a prefix of the sectors was written |
//! | `lost` | success | nothing was written |
//! | `reordered` | success | the write is held back until `sync`; a power cut keeps any part of what is held |
//!
//! The first two must reach the caller as typed errors. No device layer can see the others:
//! page checksums, ids and the journal must catch them, and the list of faults says which.

use std::io::{IoSlice, IoSliceMut};
use std::sync::Arc;

use parking_lot::Mutex;
use snowmelt_base::random::Random;

use crate::cost::CostModel;
use crate::device::{Alignment, Device, ReadDevice};
use crate::error::{IoError, IoErrorKind, Operation};
use crate::memory::buffer::AlignedBuf;

/// Rates of faults, each per million transfers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FaultRates {
    /// Reads that fail with EIO.
    pub read_eio: u32,
    /// Writes that fail with EIO.
    pub write_eio: u32,
    /// Syncs that fail with EIO.
    pub sync_eio: u32,
    /// Reads and writes that move too little and say so.
    pub short: u32,
    /// Reads that find a bit changed.
    pub bit_rot: u32,
    /// Reads and writes that go to another place.
    pub misdirected: u32,
    /// Writes of which only a prefix arrives.
    pub torn: u32,
    /// Writes of which nothing arrives.
    pub lost: u32,
    /// Writes held back until the next sync.
    pub reordered: u32,
}

/// The kinds of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // explained at the head of the file
pub enum FaultKind {
    ReadEio,
    WriteEio,
    SyncEio,
    Short,
    BitRot,
    /// The transfer went to `to` instead.
    Misdirected {
        to: u64,
    },
    Torn,
    Lost,
    Reordered,
}

/// A fault that was injected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// The kind of fault.
    pub kind: FaultKind,
    /// To the transfer at this offset.
    pub offset: u64,
    /// Of this many bytes.
    pub len: u64,
}

/// Smallest part of a write that is all there or not at all.
const SECTOR: usize = 512;

/// A device that passes transfers on to another one, except when it fails.
pub struct FaultyDevice {
    inner: Arc<dyn Device>,
    state: Mutex<FaultState>,
}

struct FaultState {
    rates: FaultRates,
    random: Random,
    faults: Vec<Fault>,
    /// Writes that were acknowledged and are not on the inner device, in order.
    held: Vec<(u64, Vec<u8>)>,
}

impl FaultyDevice {
    /// Fails as often as `rates` say; which transfers is decided by `seed` and the order of
    /// calls.
    pub fn new(inner: Arc<dyn Device>, rates: FaultRates, seed: u64) -> FaultyDevice {
        FaultyDevice {
            inner,
            state: Mutex::new(FaultState {
                rates,
                random: Random(seed),
                faults: Vec::new(),
                held: Vec::new(),
            }),
        }
    }

    /// Fails as often as `rates` say from now on.
    pub fn set_rates(&self, rates: FaultRates) {
        self.state.lock().rates = rates;
    }

    /// Faults injected so far.
    pub fn faults(&self) -> Vec<Fault> {
        self.state.lock().faults.clone()
    }

    /// Cuts the power: of the writes held back any subset of sectors, in any order, reaches the
    /// device; the rest is gone.
    ///
    /// # Errors
    /// The inner device fails.
    pub fn power_cut(&self) -> Result<(), IoError> {
        let mut state = self.state.lock();
        let mut held = std::mem::take(&mut state.held);
        while !held.is_empty() {
            let (offset, bytes) = held.swap_remove(state.random.below(held.len() as u64) as usize);
            for (i, sector) in bytes.chunks(SECTOR).enumerate() {
                if state.random.below(2) == 0 {
                    patch(&*self.inner, offset + (i * SECTOR) as u64, sector)?;
                }
            }
        }
        Ok(())
    }

    fn eio(&self, operation: Operation, offset: u64, len: u64) -> IoError {
        let kind = IoErrorKind::Os { errno: libc::EIO };
        IoError { device: self.inner.name().clone(), operation, offset, len, kind }
    }

    /// Another place of the device for a transfer of `len`.
    fn elsewhere(&self, state: &mut FaultState, offset: u64, len: u64) -> Result<u64, IoError> {
        let places = self.inner.len()? / len.max(1);
        if places < 2 {
            return Ok(offset);
        }
        Ok((offset / len + 1 + state.random.below(places - 1)) % places * len)
    }
}

impl FaultState {
    fn happens(&mut self, per_million: u32) -> bool {
        per_million > 0 && self.random.below(1_000_000) < u64::from(per_million)
    }

    fn note(&mut self, kind: FaultKind, offset: u64, len: u64) {
        self.faults.push(Fault { kind, offset, len });
    }
}

/// Writes `bytes` into a device of any alignment (read, change, write).
fn patch(device: &dyn Device, offset: u64, bytes: &[u8]) -> Result<(), IoError> {
    let unit = device.alignment().offset.max(SECTOR) as u64;
    let start = offset / unit * unit;
    let end = (offset + bytes.len() as u64).next_multiple_of(unit);
    let mut buf = AlignedBuf::new((end - start) as usize);
    let there = (device.len()?.min(end).saturating_sub(start)) as usize;
    if there > 0 {
        device.read_at(&mut [IoSliceMut::new(&mut buf[..there])], start)?;
    }
    let at = (offset - start) as usize;
    buf[at..at + bytes.len()].copy_from_slice(bytes);
    device.write_at(&[IoSlice::new(&buf)], start)
}

/// Changes what was read where a held write covers it.
fn overlay(held: &[(u64, Vec<u8>)], bufs: &mut [IoSliceMut<'_>], offset: u64) {
    for (at, bytes) in held {
        let mut start = offset;
        for buf in bufs.iter_mut() {
            let (from, to) = (start.max(*at), (start + buf.len() as u64).min(at + bytes.len() as u64));
            if from < to {
                let source = &bytes[(from - at) as usize..(to - at) as usize];
                buf[(from - start) as usize..(to - start) as usize].copy_from_slice(source);
            }
            start += buf.len() as u64;
        }
    }
}

impl ReadDevice for FaultyDevice {
    fn name(&self) -> &Arc<str> {
        self.inner.name()
    }

    fn len(&self) -> Result<u64, IoError> {
        let held = self.state.lock().held.iter().map(|(at, b)| at + b.len() as u64).max();
        Ok(self.inner.len()?.max(held.unwrap_or(0)))
    }

    fn read_at(&self, bufs: &mut [IoSliceMut<'_>], offset: u64) -> Result<(), IoError> {
        let len: u64 = bufs.iter().map(|b| b.len() as u64).sum();
        let mut state = self.state.lock();
        let rates = state.rates;
        if state.happens(rates.read_eio) {
            state.note(FaultKind::ReadEio, offset, len);
            return Err(self.eio(Operation::Read, offset, len));
        }
        if state.happens(rates.misdirected) {
            let to = self.elsewhere(&mut state, offset, len)?;
            state.note(FaultKind::Misdirected { to }, offset, len);
            return self.inner.read_at(bufs, to);
        }
        if state.happens(rates.bit_rot) {
            let at = offset + state.random.below(len);
            state.note(FaultKind::BitRot, at, 1);
            let mut byte = [0];
            let bit = 1 << state.random.below(8);
            if at < self.inner.len()? {
                let mut whole = AlignedBuf::new(self.alignment().offset.max(SECTOR));
                let start = at / whole.len() as u64 * whole.len() as u64;
                let there = (self.inner.len()? - start).min(whole.len() as u64) as usize;
                self.inner.read_at(&mut [IoSliceMut::new(&mut whole[..there])], start)?;
                byte[0] = whole[(at - start) as usize] ^ bit;
                patch(&*self.inner, at, &byte)?;
            }
        }
        if state.happens(rates.short) {
            let got = state.random.below(len);
            state.note(FaultKind::Short, offset, len);
            return Err(IoError::short(self.inner.name(), Operation::Read, offset, len, got));
        }
        if state.held.is_empty() {
            drop(state);
            return self.inner.read_at(bufs, offset);
        }
        // A held write may lie beyond the end of the inner device.
        let end = state.held.iter().map(|(at, b)| at + b.len() as u64).max().unwrap_or(0);
        if self.inner.len()? < end {
            self.inner.set_len(end)?;
        }
        self.inner.read_at(bufs, offset)?;
        overlay(&state.held, bufs, offset);
        Ok(())
    }

    fn alignment(&self) -> Alignment {
        self.inner.alignment()
    }

    fn cost(&self) -> CostModel {
        self.inner.cost()
    }
}

impl Device for FaultyDevice {
    fn set_len(&self, len: u64) -> Result<(), IoError> {
        self.state.lock().held.retain(|(at, _)| *at < len);
        self.inner.set_len(len)
    }

    fn lengthen(&self, len: u64) -> Result<(), IoError> {
        self.inner.lengthen(len)
    }

    fn write_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Result<(), IoError> {
        let bytes: Vec<u8> = bufs.iter().flat_map(|b| b.iter().copied()).collect();
        let len = bytes.len() as u64;
        let mut state = self.state.lock();
        let rates = state.rates;
        let prefix = state.random.below(len / SECTOR as u64) as usize * SECTOR;
        if state.happens(rates.write_eio) {
            state.note(FaultKind::WriteEio, offset, len);
            patch(&*self.inner, offset, &bytes[..prefix])?;
            return Err(self.eio(Operation::Write, offset, len));
        }
        if state.happens(rates.short) {
            state.note(FaultKind::Short, offset, len);
            patch(&*self.inner, offset, &bytes[..prefix])?;
            return Err(IoError::short(self.inner.name(), Operation::Write, offset, len, prefix as u64));
        }
        if state.happens(rates.lost) {
            state.note(FaultKind::Lost, offset, len);
            return Ok(());
        }
        if state.happens(rates.torn) {
            state.note(FaultKind::Torn, offset, len);
            return patch(&*self.inner, offset, &bytes[..prefix]);
        }
        if state.happens(rates.misdirected) {
            let to = self.elsewhere(&mut state, offset, len)?;
            state.note(FaultKind::Misdirected { to }, offset, len);
            return patch(&*self.inner, to, &bytes);
        }
        // A held write to the same place must come first, or the caller would read its older bytes.
        let overlaps = state.held.iter().any(|(at, b)| *at < offset + len && offset < at + b.len() as u64);
        if overlaps || state.happens(rates.reordered) {
            state.note(FaultKind::Reordered, offset, len);
            state.held.push((offset, bytes));
            return Ok(());
        }
        drop(state);
        self.inner.write_at(bufs, offset)
    }

    fn sync(&self) -> Result<(), IoError> {
        let mut state = self.state.lock();
        let rates = state.rates;
        if state.happens(rates.sync_eio) {
            state.note(FaultKind::SyncEio, 0, 0);
            return Err(self.eio(Operation::Sync, 0, 0));
        }
        for (offset, bytes) in std::mem::take(&mut state.held) {
            patch(&*self.inner, offset, &bytes)?;
        }
        self.inner.sync()
    }
}
