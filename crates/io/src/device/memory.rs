//! A device in memory: for tests, and as the bytes under a simulated one.

use std::io::{IoSlice, IoSliceMut};
use std::sync::Arc;

use parking_lot::RwLock;

use crate::cost::CostModel;
use crate::device::{Device, ReadDevice};
use crate::error::{IoError, Operation};

/// Bytes in memory, growing as they are written.
pub struct MemoryDevice {
    name: Arc<str>,
    bytes: RwLock<Vec<u8>>,
}

impl MemoryDevice {
    /// An empty device called `name`.
    pub fn new(name: &str) -> MemoryDevice {
        MemoryDevice::from_bytes(name, Vec::new())
    }

    /// A device that holds `bytes`.
    pub fn from_bytes(name: &str, bytes: Vec<u8>) -> MemoryDevice {
        MemoryDevice { name: name.into(), bytes: RwLock::new(bytes) }
    }

    /// A copy of all its bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        self.bytes.read().clone()
    }
}

impl ReadDevice for MemoryDevice {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn len(&self) -> Result<u64, IoError> {
        Ok(self.bytes.read().len() as u64)
    }

    fn read_at(&self, bufs: &mut [IoSliceMut<'_>], offset: u64) -> Result<(), IoError> {
        let bytes = self.bytes.read();
        let asked: usize = bufs.iter().map(|b| b.len()).sum();
        let start = bytes.len().min(offset as usize);
        let mut rest = &bytes[start..];
        for buf in bufs {
            let n = buf.len().min(rest.len());
            buf[..n].copy_from_slice(&rest[..n]);
            rest = &rest[n..];
            if n < buf.len() {
                let got = (bytes.len() - start) as u64;
                return Err(IoError::short(&self.name, Operation::Read, offset, asked as u64, got));
            }
        }
        Ok(())
    }

    fn cost(&self) -> CostModel {
        CostModel::memory()
    }
}

impl Device for MemoryDevice {
    fn set_len(&self, len: u64) -> Result<(), IoError> {
        self.bytes.write().resize(len as usize, 0);
        Ok(())
    }

    fn write_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Result<(), IoError> {
        let mut bytes = self.bytes.write();
        let mut at = offset as usize;
        let end = at + bufs.iter().map(|b| b.len()).sum::<usize>();
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        for buf in bufs {
            bytes[at..at + buf.len()].copy_from_slice(buf);
            at += buf.len();
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), IoError> {
        Ok(())
    }
}
