//! Temporary files: batches written in lz4 blocks and read back in order.
//!
//! | bytes | block                              |
//! |-------|------------------------------------|
//! | 4     | rows                               |
//! | 4     | columns                            |
//! | 4     | compressed length                  |
//! | …     | the columns, little-endian, lz4    |
//!
//! Files are unlinked as soon as they are open: nothing is left behind, however the process ends.

use super::rows::{columns, hash_row};
use super::{Result, Run};
use crate::batch::Batch;
use crate::error::QueryError;
use snowmelt_graph::TermId;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Files of one partitioning; a partition that is still too large is an error of the memory share.
const PARTITIONS: usize = 64;

static NUMBER: AtomicU64 = AtomicU64::new(0);

/// A file being written.
pub(super) struct Writer {
    path: PathBuf,
    file: BufWriter<File>,
    raw: Vec<u8>,
}

/// A file being read.
pub(super) struct Reader {
    path: PathBuf,
    file: BufReader<File>,
    packed: Vec<u8>,
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> QueryError + '_ {
    |source| QueryError::Spill { path: path.to_owned(), source }
}

impl Writer {
    pub fn new(dir: &Path) -> Result<Self> {
        let name = format!("snowmelt-{}-{}.tmp", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let path = dir.join(name);
        let open = || {
            let file = File::options().read(true).write(true).create_new(true).open(&path)?;
            std::fs::remove_file(&path)?;
            Ok(file)
        };
        let file = open().map_err(failed(&path))?;
        Ok(Self { path, file: BufWriter::with_capacity(1 << 16, file), raw: Vec::new() })
    }

    pub fn write(&mut self, batch: &Batch) -> Result<()> {
        self.raw.clear();
        for col in &batch.cols {
            col.iter().for_each(|id| self.raw.extend(id.0.to_le_bytes()));
        }
        let packed = lz4_flex::block::compress(&self.raw);
        let numbers = [batch.rows, batch.cols.len(), packed.len()].map(|n| (n as u32).to_le_bytes());
        let write = |file: &mut BufWriter<File>| {
            numbers.iter().try_for_each(|n| file.write_all(n))?;
            file.write_all(&packed)
        };
        write(&mut self.file).map_err(failed(&self.path))
    }

    pub fn read(self) -> Result<Reader> {
        let path = self.path;
        let mut file = self.file.into_inner().map_err(|e| failed(&path)(e.into_error()))?;
        file.seek(SeekFrom::Start(0)).map_err(failed(&path))?;
        Ok(Reader { path, file: BufReader::with_capacity(1 << 16, file), packed: Vec::new() })
    }
}

impl Reader {
    /// Back to the first batch.
    pub fn rewind(&mut self) -> Result<()> {
        self.file.seek(SeekFrom::Start(0)).map(drop).map_err(failed(&self.path))
    }

    pub fn next(&mut self) -> Result<Option<Batch>> {
        let mut numbers = [0u8; 12];
        let first = self.file.read(&mut numbers).map_err(failed(&self.path))?;
        if first == 0 {
            return Ok(None);
        }
        self.file.read_exact(&mut numbers[first..]).map_err(failed(&self.path))?;
        let number =
            |i: usize| u32::from_le_bytes(numbers[i * 4..i * 4 + 4].try_into().expect("four bytes")) as usize;
        let (rows, width, len) = (number(0), number(1), number(2));
        self.packed.resize(len, 0);
        self.file.read_exact(&mut self.packed).map_err(failed(&self.path))?;
        let raw = lz4_flex::block::decompress(&self.packed, rows * width * 8);
        let raw = raw.map_err(|e| failed(&self.path)(std::io::Error::other(e)))?;
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

/// Rows spread over files by hash.
pub(super) struct Partitions {
    writers: Vec<Writer>,
    readers: std::vec::IntoIter<Reader>,
}

impl Partitions {
    pub fn new(run: &Run) -> Result<Self> {
        let writers = (0..PARTITIONS).map(|_| Writer::new(&run.temp_dir)).collect::<Result<_>>()?;
        Ok(Self { writers, readers: Vec::new().into_iter() })
    }

    /// Writes each row to the file of its hash in these columns.
    pub fn add(&mut self, batch: Batch, by: &[usize]) -> Result<()> {
        let of = columns(&batch, by);
        let mut rows: Vec<Vec<u32>> = vec![Vec::new(); PARTITIONS];
        for row in 0..batch.rows {
            // other bits than the tables in memory use
            rows[(hash_row(&of, row).wrapping_mul(0xA24B_AED4_963E_E407) >> 58) as usize].push(row as u32);
        }
        let all: Vec<u16> = (0..batch.cols.len() as u16).collect();
        for (writer, rows) in self.writers.iter_mut().zip(&rows) {
            if !rows.is_empty() {
                writer.write(&batch.gather(&all, rows))?;
            }
        }
        Ok(())
    }

    pub fn finish(&mut self) -> Result<()> {
        let readers: Vec<Reader> = self.writers.drain(..).map(Writer::read).collect::<Result<_>>()?;
        self.readers = readers.into_iter();
        Ok(())
    }

    pub fn next(&mut self) -> Result<Option<Reader>> {
        Ok(self.readers.next())
    }

    /// The files, in order; equal keys are in files of equal place, whoever wrote them.
    pub fn into_readers(self) -> Result<Vec<Reader>> {
        self.writers.into_iter().map(Writer::read).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_come_back_as_written() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = Writer::new(dir.path()).unwrap();
        let a = Batch::from_cols(vec![(0..1000).map(TermId).collect(), (5..1005).map(TermId).collect()]);
        let none = Batch { cols: Vec::new(), rows: 3 };
        writer.write(&a).unwrap();
        writer.write(&none).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "the file is unlinked");
        let mut reader = writer.read().unwrap();
        assert_eq!(reader.next().unwrap().unwrap().cols, a.cols);
        assert_eq!(reader.next().unwrap().unwrap().rows, 3);
        assert!(reader.next().unwrap().is_none());
    }
}
