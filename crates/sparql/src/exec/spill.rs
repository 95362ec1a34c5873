//! Batches put aside in temporary space and read back in order; rows spread over parts by hash.
//!
//! The head of a block is its rows and columns, four bytes each; its bytes are the columns,
//! little-endian.

use snowmelt_graph::{GraphDatabase, TermId};
use snowmelt_query::{BlockReader, BlockWriter, SpillSpace};

use super::rows::{append, columns, hash_row};
use super::{Result, Run};
use crate::bounds::{Held, MemoryShare};
use crate::error::QueryError;
use crate::exec::Batch;

/// Parts of one partitioning; a part that is still too large is an error of the memory share.
const PARTITIONS: usize = 64;

/// Bits of a hash that choose a part.
const PARTITION_BITS: u32 = PARTITIONS.trailing_zeros();

const _: () = assert!(PARTITIONS == 1 << PARTITION_BITS, "some bits of a hash choose among all parts");

/// A list of batches being written.
pub(super) struct Writer(BlockWriter);

/// A list of batches being read.
pub(super) struct Reader(BlockReader);

/// Temporary space of one operator of the query that `memory` is of.
pub(super) fn space(database: &GraphDatabase, memory: &MemoryShare) -> Result<SpillSpace> {
    Ok(SpillSpace::new(database.database().temp_space()?, memory.held())?)
}

impl Writer {
    pub fn new(space: &SpillSpace) -> Self {
        Self(space.writer())
    }

    pub fn write(&mut self, batch: &Batch) -> Result<()> {
        batch.check();
        assert!(u32::try_from(batch.rows).is_ok(), "a block has fewer than 2^32 rows");
        let mut head = [0; 8];
        head[..4].copy_from_slice(&(batch.rows as u32).to_le_bytes());
        head[4..].copy_from_slice(&(batch.cols.len() as u32).to_le_bytes());
        let columns = |raw: &mut Vec<u8>| {
            for col in &batch.cols {
                col.iter().for_each(|id| raw.extend(id.0.to_le_bytes()));
            }
        };
        Ok(self.0.write(head, columns)?)
    }

    pub fn read(self) -> Reader {
        Reader(self.0.read())
    }
}

impl Reader {
    /// Back to the first batch.
    pub fn rewind(&mut self) {
        self.0.rewind();
    }

    pub fn next(&mut self) -> Result<Option<Batch>> {
        let Some((head, raw)) = self.0.next_block()? else { return Ok(None) };
        let number =
            |i: usize| u32::from_le_bytes(head[i * 4..i * 4 + 4].try_into().expect("four bytes")) as usize;
        let (rows, width) = (number(0), number(1));
        if raw.len() != rows * width * 8 {
            return Err(QueryError::Spill { what: "a block lacks rows".to_owned() });
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
    /// of the rows that wait
    held: Held,
    readers: std::vec::IntoIter<Reader>,
}

impl Partitions {
    pub fn new(run: &Run) -> Result<Self> {
        /// Columns that grow have up to twice the memory of their rows.
        const GROWN: usize = 2;
        let space = space(run.source.session.graph(), &run.memory)?;
        let waiting_bytes = (run.memory.worker_bytes() / 8 / PARTITIONS).clamp(1 << 9, 32 << 10);
        let mut held = run.memory.held();
        held.set(GROWN * PARTITIONS * waiting_bytes, "rows spread over parts")?;
        Ok(Self {
            writers: (0..PARTITIONS).map(|_| Writer::new(&space)).collect(),
            waiting: vec![Batch::default(); PARTITIONS],
            waiting_bytes,
            held,
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
            let hash = hash_row(&of, row).wrapping_mul(0xA24B_AED4_963E_E407);
            rows[(hash >> (64 - PARTITION_BITS)) as usize].push(row as u32);
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
        self.held.clear();
        assert!(self.waiting.iter().all(|batch| batch.rows == 0), "all rows are written");
        let readers: Vec<Reader> = self.writers.drain(..).map(Writer::read).collect();
        self.readers = readers.into_iter();
        Ok(())
    }

    pub fn next(&mut self) -> Option<Reader> {
        self.readers.next()
    }

    /// The parts, in order. Equal keys are in parts of the same number in any two partitionings.
    pub fn into_readers(mut self) -> Result<Vec<Reader>> {
        self.flush()?;
        assert_eq!(self.writers.len(), PARTITIONS, "parts are read after all are written, once");
        assert!(self.waiting.iter().all(|batch| batch.rows == 0), "all rows are written");
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
        let space = SpillSpace::new(store.temp_space().unwrap(), Held::default()).unwrap();
        let (mut writer, mut other) = (Writer::new(&space), Writer::new(&space));
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
