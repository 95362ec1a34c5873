//! Spilled blocks: bytes compressed with lz4, in temporary space, read back in order.
//!
//! | bytes | block                                  |
//! |-------|----------------------------------------|
//! | 4     | bytes before compression               |
//! | 8     | what the writer says of the block      |
//! | …     | the bytes, lz4                         |
//!
//! An operator has one space, however many runs or partitions it writes: each keeps a list of
//! where its blocks are, and they share the buffers through which blocks are written. So a spill
//! needs the place of each block in memory, held by the query, and checksums of 4 bytes for 8 KiB,
//! which are not counted. The space is given back when the operator ends, however it ends.

use std::sync::Arc;

use parking_lot::Mutex;
use snowmelt_store::{StoreError, TempSpace};

use crate::exceeded::Exceeded;
use crate::memory::Held;

/// Bytes of a block that a space keeps buffers for.
const BLOCK_BYTES: usize = 64 << 10;

/// Bytes before those that are compressed.
const HEAD_BYTES: usize = size_of::<u32>() + size_of::<[u8; 8]>();

/// Why a block was not written or read.
#[derive(Debug, thiserror::Error)]
pub enum SpillError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The query has no memory for it.
    #[error(transparent)]
    Memory(#[from] Exceeded),
    /// A block differs from what was written.
    #[error("{0}")]
    Damaged(String),
}

/// A block that was read: its head, and its bytes.
pub type Block = ([u8; 8], Vec<u8>);

/// Temporary space of one operator; clones share it.
#[derive(Clone)]
pub struct SpillSpace(Arc<Shared>);

struct Shared {
    space: TempSpace,
    buffers: Mutex<Buffers>,
}

/// A block on its way into the space.
struct Buffers {
    raw: Vec<u8>,
    packed: Vec<u8>,
    /// of these buffers and of the space's own
    held: Held,
}

/// A place in the space.
#[derive(Clone, Copy)]
struct BlockPlace {
    at: u64,
    len: u32,
}

/// Where the blocks of a list are.
struct Places {
    places: Vec<BlockPlace>,
    held: Held,
}

/// A list of blocks being written.
pub struct BlockWriter {
    space: SpillSpace,
    blocks: Places,
}

/// A list of blocks being read.
pub struct BlockReader {
    space: SpillSpace,
    blocks: Places,
    next: usize,
}

impl Buffers {
    /// Holds the buffers, of which `packed` has or gets so many bytes.
    fn hold(&mut self, packed_bytes: usize) -> Result<(), Exceeded> {
        self.held.set(TempSpace::BUFFER_BYTES + self.raw.capacity() + packed_bytes, "blocks put aside")
    }

    /// The bytes of `raw`, compressed.
    fn pack(&mut self) -> Result<&[u8], SpillError> {
        let most = lz4_flex::block::get_maximum_output_size(self.raw.len());
        self.hold(most.max(self.packed.capacity()))?;
        if self.packed.len() < most {
            self.packed.reserve_exact(most - self.packed.len());
            self.packed.resize(most, 0);
        }
        let packed = lz4_flex::block::compress_into(&self.raw, &mut self.packed);
        Ok(&self.packed[..packed.expect("there is room for the worst case")])
    }

    /// Keeps no more than small blocks need.
    fn shrink(&mut self) -> Result<(), Exceeded> {
        let Buffers { raw, packed, .. } = self;
        [raw, packed].into_iter().for_each(|buffer| {
            buffer.truncate(BLOCK_BYTES);
            buffer.shrink_to(BLOCK_BYTES);
        });
        self.hold(self.packed.capacity())
    }
}

impl Places {
    fn push(&mut self, place: BlockPlace) -> Result<(), SpillError> {
        if self.places.len() == self.places.capacity() {
            let more = self.places.capacity().max(4);
            self.held.add(more * size_of::<BlockPlace>(), "places of blocks put aside")?;
            self.places.reserve_exact(more);
        }
        self.places.push(place);
        Ok(())
    }
}

impl SpillSpace {
    /// Spilled blocks in this space; `held` is of the query that spills.
    ///
    /// # Errors
    /// The query has no memory for the buffers.
    pub fn new(space: TempSpace, held: Held) -> Result<Self, SpillError> {
        let mut buffers = Buffers { raw: Vec::new(), packed: Vec::new(), held };
        buffers.hold(0)?;
        Ok(Self(Arc::new(Shared { space, buffers: Mutex::new(buffers) })))
    }

    /// A list of blocks in this space.
    pub fn writer(&self) -> BlockWriter {
        let held = self.0.buffers.lock().held.another();
        BlockWriter { space: self.clone(), blocks: Places { places: Vec::new(), held } }
    }
}

impl BlockWriter {
    /// Writes a block of what `fill` puts into the buffer it gets; `head` comes back with it.
    ///
    /// # Errors
    /// Those of the space, or no memory for the block.
    pub fn write(&mut self, head: [u8; 8], fill: impl FnOnce(&mut Vec<u8>)) -> Result<(), SpillError> {
        let Shared { space, buffers } = &*self.space.0;
        let mut buffers = buffers.lock();
        buffers.raw.clear();
        fill(&mut buffers.raw);
        let bytes = u32::try_from(buffers.raw.len()).expect("a block has fewer than 4 GiB");
        let packed = buffers.pack()?;
        let len = u32::try_from(HEAD_BYTES + packed.len()).expect("a packed block has fewer than 4 GiB");
        let at = space.append(&[&bytes.to_le_bytes(), &head, packed])?;
        buffers.shrink()?;
        drop(buffers);
        debug_assert!(
            self.blocks.places.last().is_none_or(|last| last.at + u64::from(last.len) <= at),
            "a space only grows: no block lies on another"
        );
        self.blocks.push(BlockPlace { at, len })
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
        let Some(place) = self.blocks.places.get(self.next) else { return Ok(None) };
        self.next += 1;
        assert!(place.len as usize >= HEAD_BYTES, "a block is written with its head");
        let block = self.space.0.space.read(place.at, place.len as usize)?;
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
        let space = SpillSpace::new(store.temp_space().unwrap(), Held::default()).unwrap();
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
