//! A device of any length in memory, which holds only the bytes written to it.
//!
//! It consists of chunks of 1 MiB, each under its own lock. A chunk is made when something
//! other than zeros is written to it; the rest reads as zeros. So a disk of 2 TB fits in memory
//! while its written bytes do, and many threads can read and write at once.

use std::collections::HashMap;
use std::io::{IoSlice, IoSliceMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;

use crate::cost::CostModel;
use crate::device::{Device, ReadDevice};
use crate::error::{IoError, IoErrorKind, Operation};

const CHUNK_BYTES: u64 = 1 << 20;

/// Locks of the map from chunk to bytes: chunks are dealt to them by turns.
const SHARDS: usize = 64;

type Shard = RwLock<HashMap<u64, Box<[u8]>>>;

/// Sparse bytes in memory.
pub struct SparseMemoryDevice {
    name: Arc<str>,
    len: AtomicU64,
    /// Most bytes that may really be held.
    limit: u64,
    held: AtomicU64,
    shards: Vec<Shard>,
}

impl SparseMemoryDevice {
    /// `len` zeros called `name`, of which `limit` bytes may become something else; writing
    /// more fails with ENOSPC.
    pub fn new(name: &str, len: u64, limit: u64) -> SparseMemoryDevice {
        SparseMemoryDevice {
            name: name.into(),
            len: AtomicU64::new(len),
            limit,
            held: AtomicU64::new(0),
            shards: (0..SHARDS).map(|_| Shard::default()).collect(),
        }
    }

    /// Bytes of memory really held.
    pub fn held_bytes(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    fn shard(&self, chunk: u64) -> &Shard {
        &self.shards[chunk as usize % SHARDS]
    }

    fn read_part(&self, chunk: u64, start: usize, out: &mut [u8]) {
        match self.shard(chunk).read().get(&chunk) {
            Some(bytes) => out.copy_from_slice(&bytes[start..start + out.len()]),
            None => out.fill(0),
        }
    }

    fn write_part(&self, chunk: u64, start: usize, bytes: &[u8]) -> Result<(), IoErrorKind> {
        let mut shard = self.shard(chunk).write();
        if let Some(held) = shard.get_mut(&chunk) {
            held[start..start + bytes.len()].copy_from_slice(bytes);
            return Ok(());
        }
        if bytes.iter().all(|&b| b == 0) {
            return Ok(());
        }
        if self.held.fetch_add(CHUNK_BYTES, Ordering::Relaxed) + CHUNK_BYTES > self.limit {
            self.held.fetch_sub(CHUNK_BYTES, Ordering::Relaxed);
            return Err(IoErrorKind::Os { errno: libc::ENOSPC });
        }
        let mut held = vec![0; CHUNK_BYTES as usize].into_boxed_slice();
        held[start..start + bytes.len()].copy_from_slice(bytes);
        shard.insert(chunk, held);
        Ok(())
    }

    fn error(&self, operation: Operation, offset: u64, len: u64, kind: IoErrorKind) -> IoError {
        IoError { device: self.name.clone(), operation, offset, len, kind }
    }
}

/// Calls `part` with (chunk, start in it, range of the transfer) for every chunk a transfer
/// touches.
fn parts<E>(
    offset: u64,
    len: usize,
    mut part: impl FnMut(u64, usize, std::ops::Range<usize>) -> Result<(), E>,
) -> Result<(), E> {
    let mut done = 0;
    while done < len {
        let at = offset + done as u64;
        let start = (at % CHUNK_BYTES) as usize;
        let n = (CHUNK_BYTES as usize - start).min(len - done);
        part(at / CHUNK_BYTES, start, done..done + n)?;
        done += n;
    }
    Ok(())
}

impl ReadDevice for SparseMemoryDevice {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn len(&self) -> Result<u64, IoError> {
        Ok(self.len.load(Ordering::Relaxed))
    }

    fn read_at(&self, bufs: &mut [IoSliceMut<'_>], offset: u64) -> Result<(), IoError> {
        let asked: u64 = bufs.iter().map(|b| b.len() as u64).sum();
        let len = self.len.load(Ordering::Relaxed);
        let mut at = offset;
        for buf in bufs {
            let n = (buf.len() as u64).min(len.saturating_sub(at)) as usize;
            let read = parts::<IoErrorKind>(at, n, |chunk, start, range| {
                self.read_part(chunk, start, &mut buf[range]);
                Ok(())
            });
            read.map_err(|kind| self.error(Operation::Read, offset, asked, kind))?;
            at += n as u64;
            if n < buf.len() {
                let kind = IoErrorKind::Short { got: at - offset };
                return Err(self.error(Operation::Read, offset, asked, kind));
            }
        }
        Ok(())
    }

    fn cost(&self) -> CostModel {
        CostModel::memory()
    }
}

impl Device for SparseMemoryDevice {
    fn set_len(&self, len: u64) -> Result<(), IoError> {
        let before = self.len.swap(len, Ordering::Relaxed);
        if len < before {
            for shard in &self.shards {
                let mut shard = shard.write();
                shard.retain(|chunk, _| chunk * CHUNK_BYTES < len);
                if let Some(last) = shard.get_mut(&(len / CHUNK_BYTES)) {
                    last[(len % CHUNK_BYTES) as usize..].fill(0);
                }
            }
            let held: usize = self.shards.iter().map(|shard| shard.read().len()).sum();
            self.held.store(held as u64 * CHUNK_BYTES, Ordering::Relaxed);
        }
        Ok(())
    }

    fn write_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Result<(), IoError> {
        let asked: u64 = bufs.iter().map(|b| b.len() as u64).sum();
        self.len.fetch_max(offset + asked, Ordering::Relaxed);
        let mut at = offset;
        for buf in bufs {
            let written =
                parts(at, buf.len(), |chunk, start, range| self.write_part(chunk, start, &buf[range]));
            written.map_err(|kind| self.error(Operation::Write, offset, asked, kind))?;
            at += buf.len() as u64;
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), IoError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_holds_what_a_plain_device_holds(
            writes in prop::collection::vec((0..5_000_000u64, 1..3_000_000usize, 0..3u8), 1..8),
            cut in 0..6_000_000u64,
        ) {
            let sparse = SparseMemoryDevice::new("sparse", 0, 64 << 20);
            let plain = crate::device::memory::MemoryDevice::new("plain");
            for (offset, len, fill) in writes {
                let bytes = vec![fill; len];
                sparse.write_at(&[IoSlice::new(&bytes)], offset).expect("room");
                plain.write_at(&[IoSlice::new(&bytes)], offset).expect("room");
            }
            sparse.set_len(cut).expect("cut");
            plain.set_len(cut).expect("cut");
            sparse.set_len(cut + 10).expect("grown");
            plain.set_len(cut + 10).expect("grown");
            let mut bytes = vec![9; cut as usize + 10];
            sparse.read_at(&mut [IoSliceMut::new(&mut bytes)], 0).expect("there");
            prop_assert!(bytes == plain.to_vec());
        }
    }

    #[test]
    fn it_is_large_and_light_until_it_is_full() {
        let device = SparseMemoryDevice::new("disk", 2 << 40, 2 << 20);
        let mut bytes = [1; 4096];
        device.read_at(&mut [IoSliceMut::new(&mut bytes)], (2 << 40) - 4096).expect("there");
        assert_eq!(bytes, [0; 4096]);
        device.write_at(&[IoSlice::new(&bytes)], 1 << 40).expect("zeros need no room");
        assert_eq!(device.held_bytes(), 0);
        device.write_at(&[IoSlice::new(&[7; 4096])], 1 << 40).expect("room");
        device.write_at(&[IoSlice::new(&[7; 4096])], 0).expect("room");
        let full = device.write_at(&[IoSlice::new(&[7; 4096])], 8 << 20).expect_err("no room");
        assert_eq!(full.errno(), Some(libc::ENOSPC));
        let beyond =
            device.read_at(&mut [IoSliceMut::new(&mut bytes)], (2 << 40) - 1024).expect_err("the end");
        assert_eq!(beyond.kind, IoErrorKind::Short { got: 1024 });
    }
}
