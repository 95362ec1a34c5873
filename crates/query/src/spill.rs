//! Spilled blocks: bytes compressed with lz4, in temporary space, read back in order.
//!
//! | bytes | block                                  |
//! |-------|----------------------------------------|
//! | 4     | bytes before compression               |
//! | 8     | what the writer says of the block      |
//! | …     | the bytes, lz4                         |
//!
//! An operator has one space, however many runs or partitions it writes: each keeps a list of where
//! its blocks are. Only these lists stay in memory. The space is given back when the operator ends,
//! however it ends.

use std::sync::Arc;

use snowmelt_store::{StoreError, TempSpace};

/// Bytes of a block that a writer keeps memory for.
const BLOCK_BYTES: usize = 64 << 10;

/// Bytes before those that are compressed.
const HEAD_BYTES: usize = size_of::<u32>() + size_of::<[u8; 8]>();

/// Why a block was not written or read.
#[derive(Debug, thiserror::Error)]
pub enum SpillError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A block differs from what was written.
    #[error("{0}")]
    Damaged(String),
}

/// A block that was read: its head, and its bytes.
pub type Block = ([u8; 8], Vec<u8>);

/// Temporary space of one operator; clones share it.
#[derive(Clone)]
pub struct SpillSpace(Arc<TempSpace>);

/// A place in it.
#[derive(Clone, Copy)]
struct BlockPlace {
    at: u64,
    len: u32,
}

/// A list of blocks being written.
pub struct BlockWriter {
    space: SpillSpace,
    blocks: Vec<BlockPlace>,
    raw: Vec<u8>,
}

/// A list of blocks being read.
pub struct BlockReader {
    space: SpillSpace,
    blocks: Vec<BlockPlace>,
    next: usize,
}

impl From<TempSpace> for SpillSpace {
    fn from(space: TempSpace) -> Self {
        Self(Arc::new(space))
    }
}

impl SpillSpace {
    /// A list of blocks in this space.
    pub fn writer(&self) -> BlockWriter {
        BlockWriter { space: self.clone(), blocks: Vec::new(), raw: Vec::new() }
    }
}

impl BlockWriter {
    /// Writes a block of what `fill` puts into the buffer it gets; `head` comes back with it.
    ///
    /// # Errors
    /// Those of the space.
    pub fn write(&mut self, head: [u8; 8], fill: impl FnOnce(&mut Vec<u8>)) -> Result<(), SpillError> {
        self.raw.clear();
        fill(&mut self.raw);
        let bytes = u32::try_from(self.raw.len()).expect("a block has fewer than 4 GiB");
        let packed = lz4_flex::block::compress(&self.raw);
        self.raw.shrink_to(BLOCK_BYTES);
        let at = self.space.0.append(&[&bytes.to_le_bytes(), &head, &packed])?;
        let len = u32::try_from(HEAD_BYTES + packed.len()).expect("a packed block has fewer than 4 GiB");
        debug_assert!(
            self.blocks.last().is_none_or(|last| last.at + u64::from(last.len) <= at),
            "a space only grows: no block lies on another"
        );
        self.blocks.push(BlockPlace { at, len });
        Ok(())
    }

    /// The blocks, to be read from the first one on.
    pub fn read(self) -> BlockReader {
        BlockReader { space: self.space, blocks: self.blocks, next: 0 }
    }
}

impl BlockReader {
    /// Back to the first block.
    pub fn rewind(&mut self) {
        self.next = 0;
    }

    /// The next block.
    ///
    /// # Errors
    /// Those of the space, or a block that differs from what was written.
    pub fn next_block(&mut self) -> Result<Option<Block>, SpillError> {
        let Some(place) = self.blocks.get(self.next) else { return Ok(None) };
        self.next += 1;
        assert!(place.len as usize >= HEAD_BYTES, "a block is written with its head");
        let block = self.space.0.read(place.at, place.len as usize)?;
        assert_eq!(block.len(), place.len as usize, "a space gives as many bytes as it is asked for");
        let bytes = u32::from_le_bytes(block[..4].try_into().expect("four bytes")) as usize;
        let head = block[4..HEAD_BYTES].try_into().expect("eight bytes");
        let raw = lz4_flex::block::decompress(&block[HEAD_BYTES..], bytes);
        let raw = raw.map_err(|error| SpillError::Damaged(error.to_string()))?;
        match raw.len() == bytes {
            true => Ok(Some((head, raw))),
            false => Err(SpillError::Damaged("a block is too short".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use snowmelt_store::{Store, StoreConfig};

    #[test]
    fn blocks_come_back_as_written_however_lists_are_mixed() {
        let dir = tempfile::tempdir().unwrap();
        let config = StoreConfig { memory_bytes: 8 << 20, ..Default::default() };
        let store = Store::create(dir.path(), &[], config).unwrap();
        let space = SpillSpace::from(store.temp_space().unwrap());
        let (mut one, mut other) = (space.writer(), space.writer());
        let bytes = |n: u8| vec![n; usize::from(n) * 1000];
        for n in 0..100 {
            let list = if n % 3 == 0 { &mut other } else { &mut one };
            list.write([n; 8], |out| out.extend(bytes(n))).unwrap();
        }
        let mut one = one.read();
        for _ in 0..2 {
            for n in (0..100).filter(|n| n % 3 != 0) {
                assert_eq!(one.next_block().unwrap(), Some(([n; 8], bytes(n))));
            }
            assert_eq!(one.next_block().unwrap(), None);
            one.rewind();
        }
    }
}
