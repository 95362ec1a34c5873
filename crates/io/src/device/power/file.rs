//! A file of a disk whose power can be cut, as a device.

use std::io::{IoSlice, IoSliceMut};
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::MutexGuard;

use crate::cost::CostModel;
use crate::device::power::PowerDisk;
use crate::device::power::content::{Change, Content, write};
use crate::device::power::state::PowerState;
use crate::device::{Device, ReadDevice};
use crate::error::{IoError, IoErrorKind, Operation};

/// A file of a [`PowerDisk`].
pub(super) struct PowerFile {
    pub(super) disk: PowerDisk,
    pub(super) path: PathBuf,
    pub(super) name: Arc<str>,
    /// In which it was opened.
    pub(super) epoch: u64,
}

impl PowerFile {
    /// Calls `f` with the file; an error when the power is off, or was since it was opened, or
    /// the file went with it.
    fn with<T>(&self, operation: Operation, f: impl FnOnce(&mut Content) -> T) -> Result<T, IoError> {
        let mut state = self.state(operation)?;
        let off = state.off;
        let file = state.files.get_mut(&self.path).filter(|_| !off);
        file.map(f).ok_or_else(|| self.gone(operation))
    }

    /// The disk, if the power has been on since the file was opened.
    fn state(&self, operation: Operation) -> Result<MutexGuard<'_, PowerState>, IoError> {
        let state = self.disk.state.lock();
        if state.epoch == self.epoch { Ok(state) } else { Err(self.gone(operation)) }
    }

    fn gone(&self, operation: Operation) -> IoError {
        let kind = IoErrorKind::Os { errno: libc::EIO };
        IoError { device: self.name.clone(), operation, offset: 0, len: 0, kind }
    }

    fn full(&self, operation: Operation, offset: u64, len: u64) -> IoError {
        IoError {
            device: self.name.clone(),
            operation,
            offset,
            len,
            kind: IoErrorKind::Os { errno: libc::ENOSPC },
        }
    }

    /// Lets the time of a request pass; an error when the power went meanwhile.
    fn answered(&self, operation: Operation) -> Result<(), IoError> {
        self.disk.pass_time();
        self.with(operation, |_| ())
    }

    fn step(&self, operation: Operation, len: u64) -> Result<(), IoError> {
        self.state(operation)?.step(&self.name, operation, 0, len)
    }
}

impl ReadDevice for PowerFile {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn len(&self) -> Result<u64, IoError> {
        self.with(Operation::Length, |f| f.now.len() as u64)
    }

    fn read_at(&self, bufs: &mut [IoSliceMut<'_>], offset: u64) -> Result<(), IoError> {
        let mut state = self.disk.state.lock();
        state.reads += 1;
        if state.failing_read == Some(state.reads - 1) {
            let (len, kind) =
                (bufs.iter().map(|b| b.len() as u64).sum(), IoErrorKind::Os { errno: libc::EIO });
            return Err(IoError { device: self.name.clone(), operation: Operation::Read, offset, len, kind });
        }
        drop(state);
        self.disk.pass_time();
        self.with(Operation::Read, |f| {
            let asked: usize = bufs.iter().map(|b| b.len()).sum();
            let mut rest = f.now.get(offset as usize..).unwrap_or_default();
            if rest.len() < asked {
                let got = rest.len() as u64;
                return Err(IoError::short(&self.name, Operation::Read, offset, asked as u64, got));
            }
            for buf in bufs {
                let (now, later) = rest.split_at(buf.len());
                buf.copy_from_slice(now);
                rest = later;
            }
            Ok(())
        })?
    }

    fn cost(&self) -> CostModel {
        CostModel::memory()
    }
}

impl Device for PowerFile {
    fn set_len(&self, len: u64) -> Result<(), IoError> {
        if self.len()? == len {
            return Ok(());
        }
        self.step(Operation::Length, len)?;
        if self.disk.state.lock().is_full(&self.path, len) {
            return Err(self.full(Operation::Length, 0, len));
        }
        self.with(Operation::Length, |f| {
            f.now.resize(len as usize, 0);
            f.changes.push(Change::Len(len));
        })?;
        self.answered(Operation::Length)
    }

    fn write_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Result<(), IoError> {
        let bytes = bufs.iter().map(|b| &b[..]).collect::<Vec<_>>().concat();
        let mut state = self.state(Operation::Write)?;
        if state.is_full(&self.path, offset + bytes.len() as u64) {
            return Err(self.full(Operation::Write, offset, bytes.len() as u64));
        }
        let was_off = state.off;
        let stepped = state.step(&self.name, Operation::Write, offset, bytes.len() as u64);
        if stepped.is_ok() && state.loses(&self.path) {
            return Ok(());
        }
        // The write that the cut hits may reach the disk in part.
        if (stepped.is_ok() || (state.off && !was_off))
            && let Some(f) = state.files.get_mut(&self.path)
        {
            write(&mut f.now, offset, &bytes);
            f.changes.push(Change::Write(offset, bytes));
        }
        drop(state);
        stepped?;
        self.answered(Operation::Write)
    }

    fn sync(&self) -> Result<(), IoError> {
        self.step(Operation::Sync, 0)?;
        let made = self.with(Operation::Sync, |f| f.changes_made())?;
        self.disk.pass_time();
        self.with(Operation::Sync, |f| f.sync(made))
    }
}
