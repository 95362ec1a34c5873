//! Temporary files: batches written in lz4 blocks and read back in order.
//!
//! | bytes | block                              |
//! |-------|------------------------------------|
//! | 4     | rows                               |
//! | 4     | columns                            |
//! | …     | the columns, little-endian, lz4    |
//!
//! An operator has one file, however many runs or partitions it writes: each keeps a list of
//! where its blocks are. So what a spill needs in memory and in descriptors does not grow with
//! it. Files are unlinked as soon as they are open: nothing is left behind, however the process
//! ends.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use snowmelt_graph::TermId;

use super::rows::{append, columns, hash_row};
use super::{Result, Run};
use crate::error::QueryError;
use crate::exec::Batch;

/// Parts of one partitioning; a part that is still too large is an error of the memory share.
const PARTITIONS: usize = 64;

/// Bytes gathered before they are written.
const WRITE_BYTES: usize = 64 << 10;

static NUMBER: AtomicU64 = AtomicU64::new(0);

/// A temporary file.
#[derive(Clone)]
pub(super) struct SpillFile(Arc<Mutex<OpenFile>>);

struct OpenFile {
    path: PathBuf,
    file: File,
    /// bytes written
    end: u64,
    /// bytes behind them that are not
    waiting: Vec<u8>,
}

/// A place in a file.
#[derive(Clone, Copy)]
struct BlockPlace {
    at: u64,
    len: u32,
}

/// A list of batches being written.
pub(super) struct Writer {
    file: SpillFile,
    blocks: Vec<BlockPlace>,
    raw: Vec<u8>,
}

/// A list of batches being read.
pub(super) struct Reader {
    file: SpillFile,
    blocks: Vec<BlockPlace>,
    next: usize,
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> QueryError + '_ {
    |source| QueryError::Spill { path: path.to_owned(), source }
}

impl SpillFile {
    pub fn new(dir: &Path) -> Result<Self> {
        let name = format!("snowmelt-{}-{}.tmp", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let path = dir.join(name);
        let open = || {
            let file = File::options().read(true).write(true).create_new(true).open(&path)?;
            std::fs::remove_file(&path)?;
            Ok(file)
        };
        let file = open().map_err(failed(&path))?;
        Ok(Self(Arc::new(Mutex::new(OpenFile { path, file, end: 0, waiting: Vec::new() }))))
    }

    /// A list of batches in this file.
    pub fn writer(&self) -> Writer {
        Writer { file: self.clone(), blocks: Vec::new(), raw: Vec::new() }
    }
}

impl OpenFile {
    fn append(&mut self, parts: [&[u8]; 2]) -> Result<BlockPlace> {
        let at = self.end + self.waiting.len() as u64;
        parts.iter().for_each(|part| self.waiting.extend_from_slice(part));
        if self.waiting.len() >= WRITE_BYTES {
            self.flush()?;
        }
        Ok(BlockPlace { at, len: parts.iter().map(|part| part.len()).sum::<usize>() as u32 })
    }

    fn flush(&mut self) -> Result<()> {
        self.file.write_all_at(&self.waiting, self.end).map_err(failed(&self.path))?;
        self.end += self.waiting.len() as u64;
        self.waiting.clear();
        self.waiting.shrink_to(WRITE_BYTES);
        Ok(())
    }

    fn read(&mut self, place: BlockPlace) -> Result<Vec<u8>> {
        if place.at + u64::from(place.len) > self.end {
            self.flush()?;
        }
        let mut bytes = vec![0; place.len as usize];
        self.file.read_exact_at(&mut bytes, place.at).map_err(failed(&self.path))?;
        Ok(bytes)
    }
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
        self.raw.shrink_to(WRITE_BYTES);
        let mut head = [0; 8];
        head[..4].copy_from_slice(&(batch.rows as u32).to_le_bytes());
        head[4..].copy_from_slice(&(batch.cols.len() as u32).to_le_bytes());
        self.blocks.push(self.file.0.lock().append([&head, &packed])?);
        Ok(())
    }

    pub fn read(self) -> Reader {
        Reader { file: self.file, blocks: self.blocks, next: 0 }
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
        let block = self.file.0.lock().read(*place)?;
        let number =
            |i: usize| u32::from_le_bytes(block[i * 4..i * 4 + 4].try_into().expect("four bytes")) as usize;
        assert!(place.len >= 8, "a block is written with its head");
        let (rows, width) = (number(0), number(1));
        let raw = lz4_flex::block::decompress(&block[8..], rows * width * 8);
        let raw = raw.map_err(|e| failed(&self.file.0.lock().path)(std::io::Error::other(e)))?;
        if raw.len() != rows * width * 8 {
            return Err(failed(&self.file.0.lock().path)(std::io::Error::other("a block lacks rows")));
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
        let file = SpillFile::new(&run.temp_dir)?;
        Ok(Self {
            writers: (0..PARTITIONS).map(|_| file.writer()).collect(),
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
        let file = SpillFile::new(dir.path()).unwrap();
        let (mut writer, mut other) = (file.writer(), file.writer());
        let a = Batch::from_cols(vec![(0..1000).map(TermId).collect(), (5..1005).map(TermId).collect()]);
        let none = Batch { cols: Vec::new(), rows: 3 };
        writer.write(&a).unwrap();
        other.write(&a).unwrap();
        writer.write(&none).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "the file is unlinked");
        let mut reader = writer.read();
        assert_eq!(reader.next().unwrap().unwrap().cols, a.cols);
        assert_eq!(reader.next().unwrap().unwrap().rows, 3);
        assert!(reader.next().unwrap().is_none());
    }
}
