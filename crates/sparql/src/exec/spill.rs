//! Temporary space: batches written in lz4 blocks and read back in order.
//!
//! | bytes | block                              |
//! |-------|------------------------------------|
//! | 4     | rows                               |
//! | 4     | columns                            |
//! | …     | the columns, little-endian, lz4    |
//!
//! An operator has one space, however many runs or partitions it writes: each keeps a list of
//! where its blocks are. So what a spill needs in memory does not grow with it. The space is given
//! back when the operator ends, however it ends.

use std::sync::Arc;

use snowmelt_graph::{Database, GraphError, TempSpace, TermId};

use super::rows::{append, columns, hash_row};
use super::{Result, Run};
use crate::error::QueryError;
use crate::exec::Batch;

/// Parts of one partitioning; a part that is still too large is an error of the memory share.
const PARTITIONS: usize = 64;

/// Bytes of a block that a writer keeps memory for.
const BLOCK_BYTES: usize = 64 << 10;

/// Temporary space of one operator.
#[derive(Clone)]
pub(super) struct SpillSpace(Arc<TempSpace>);

/// A place in it.
#[derive(Clone, Copy)]
struct BlockPlace {
    at: u64,
    len: u32,
}

/// A list of batches being written.
pub(super) struct Writer {
    space: SpillSpace,
    blocks: Vec<BlockPlace>,
    raw: Vec<u8>,
}

/// A list of batches being read.
pub(super) struct Reader {
    space: SpillSpace,
    blocks: Vec<BlockPlace>,
    next: usize,
}

impl SpillSpace {
    pub fn new(database: &Database) -> Result<Self> {
        Ok(Self(Arc::new(database.temp_space()?)))
    }

    /// A list of batches in this space.
    pub fn writer(&self) -> Writer {
        Writer { space: self.clone(), blocks: Vec::new(), raw: Vec::new() }
    }

    fn append(&self, head: [u8; 8], packed: &[u8]) -> Result<BlockPlace> {
        let at = self.0.append(&[&head, packed]).map_err(GraphError::from)?;
        Ok(BlockPlace { at, len: (head.len() + packed.len()) as u32 })
    }
}

/// A block that does not say what was written.
fn damaged(what: impl std::fmt::Display) -> QueryError {
    QueryError::Spill { what: what.to_string() }
}

impl Writer {
    pub fn write(&mut self, batch: &Batch) -> Result<()> {
        batch.check();
        assert!(u32::try_from(batch.rows).is_ok(), "a block has fewer than 2^32 rows");
        self.raw.clear();
        for col in &batch.cols {
            col.iter().for_each(|id| self.raw.extend(id.0.to_le_bytes()));
        }
        let packed = lz4_flex::block::compress(&self.raw);
        self.raw.shrink_to(BLOCK_BYTES);
        let mut head = [0; 8];
        head[..4].copy_from_slice(&(batch.rows as u32).to_le_bytes());
        head[4..].copy_from_slice(&(batch.cols.len() as u32).to_le_bytes());
        self.blocks.push(self.space.append(head, &packed)?);
        Ok(())
    }

    pub fn read(self) -> Reader {
        Reader { space: self.space, blocks: self.blocks, next: 0 }
    }
}

impl Reader {
    /// Back to the first batch.
    pub fn rewind(&mut self) {
        self.next = 0;
    }

    pub fn next(&mut self) -> Result<Option<Batch>> {
        let Some(place) = self.blocks.get(self.next) else { return Ok(None) };
        self.next += 1;
        let block = self.space.0.read(place.at, place.len as usize).map_err(GraphError::from)?;
        let number =
            |i: usize| u32::from_le_bytes(block[i * 4..i * 4 + 4].try_into().expect("four bytes")) as usize;
        assert!(place.len >= 8, "a block is written with its head");
        let (rows, width) = (number(0), number(1));
        let raw = lz4_flex::block::decompress(&block[8..], rows * width * 8);
        let raw = raw.map_err(damaged)?;
        if raw.len() != rows * width * 8 {
            return Err(damaged("a block lacks rows"));
        }
        let col = |c: usize| {
            let bytes = &raw[c * rows * 8..(c + 1) * rows * 8];
            bytes
                .chunks_exact(8)
                .map(|b| TermId(u64::from_le_bytes(b.try_into().expect("eight bytes"))))
                .collect()
        };
        Ok(Some(Batch { cols: (0..width).map(col).collect(), rows }))
    }
}

/// Rows spread over parts by hash.
pub(super) struct Partitions {
    writers: Vec<Writer>,
    /// rows on their way into each part, so that blocks are not tiny
    waiting: Vec<Batch>,
    waiting_bytes: usize,
    readers: std::vec::IntoIter<Reader>,
}

impl Partitions {
    pub fn new(run: &Run) -> Result<Self> {
        let space = SpillSpace::new(run.source.session.database())?;
        Ok(Self {
            writers: (0..PARTITIONS).map(|_| space.writer()).collect(),
            waiting: vec![Batch::default(); PARTITIONS],
            waiting_bytes: (run.memory.least() / 8 / PARTITIONS).clamp(1 << 10, 32 << 10),
            readers: Vec::new().into_iter(),
        })
    }

    /// Writes each row to the part of its hash in these columns.
    pub fn add(&mut self, batch: &Batch, by: &[usize]) -> Result<()> {
        assert_eq!(self.writers.len(), PARTITIONS, "nothing is added to parts that are being read");
        let of = columns(batch, by);
        let mut rows: Vec<Vec<u32>> = vec![Vec::new(); PARTITIONS];
        for row in 0..batch.rows {
            // other bits than the tables in memory use
            rows[(hash_row(&of, row).wrapping_mul(0xA24B_AED4_963E_E407) >> 58) as usize].push(row as u32);
        }
        let all: Vec<u16> = (0..batch.cols.len() as u16).collect();
        for (part, rows) in rows.iter().enumerate().filter(|(_, rows)| !rows.is_empty()) {
            let waiting = &mut self.waiting[part];
            append(waiting, batch.gather(&all, rows));
            if waiting.rows * waiting.cols.len() * 8 >= self.waiting_bytes {
                self.writers[part].write(&std::mem::take(waiting))?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        for (writer, waiting) in self.writers.iter_mut().zip(&mut self.waiting) {
            if waiting.rows > 0 {
                writer.write(&std::mem::take(waiting))?;
            }
        }
        Ok(())
    }

    pub fn finish(&mut self) -> Result<()> {
        self.flush()?;
        assert!(self.waiting.iter().all(|batch| batch.rows == 0), "all rows are written");
        let readers: Vec<Reader> = self.writers.drain(..).map(Writer::read).collect();
        self.readers = readers.into_iter();
        Ok(())
    }

    pub fn next(&mut self) -> Option<Reader> {
        self.readers.next()
    }

    /// The parts, in order; equal keys are in parts of equal place in any two spreads.
    pub fn into_readers(mut self) -> Result<Vec<Reader>> {
        self.flush()?;
        Ok(self.writers.into_iter().map(Writer::read).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_come_back_as_written() {
        let dir = tempfile::tempdir().unwrap();
        let config = snowmelt_store::StoreConfig { memory_bytes: 8 << 20, ..Default::default() };
        let store = snowmelt_store::Store::create(dir.path(), &[], config).unwrap();
        let space = SpillSpace(Arc::new(Arc::new(store).temp_space().unwrap()));
        let (mut writer, mut other) = (space.writer(), space.writer());
        let a = Batch::from_cols(vec![(0..1000).map(TermId).collect(), (5..1005).map(TermId).collect()]);
        let none = Batch { cols: Vec::new(), rows: 3 };
        writer.write(&a).unwrap();
        other.write(&a).unwrap();
        writer.write(&none).unwrap();
        let mut reader = writer.read();
        assert_eq!(reader.next().unwrap().unwrap().cols, a.cols);
        assert_eq!(reader.next().unwrap().unwrap().rows, 3);
        assert!(reader.next().unwrap().is_none());
    }
}
