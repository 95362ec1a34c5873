//! Runs: sequences of packed rows, in memory as long as the account allows, then in a file.
//!
//! A [`RunStore`] belongs to one sorter (or one waiting list). Runs are written once and read once,
//! front to back; a segment's memory is given back as soon as it has been read.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

use super::account::{LoadMemory, Taken};
use super::pack::{self, BLOCK_ROWS};
use super::temp::{TempFile, TempPlace, TempReader, TempSpace};
use crate::input::error::LoadError;

/// Packed bytes per segment, the unit of reading from the file.
const SEGMENT_BYTES: usize = 64 << 10;

/// Where the segments of runs are kept.
#[derive(Debug)]
pub(super) struct RunStore {
    name: &'static str,
    space: Arc<TempSpace>,
    account: Arc<LoadMemory>,
    file: Mutex<Option<TempFile>>,
}

impl RunStore {
    /// A store that keeps at most what `account` grants in memory and the rest in file `name`.
    pub(super) fn new(
        name: &'static str,
        space: &Arc<TempSpace>,
        account: &Arc<LoadMemory>,
    ) -> Arc<RunStore> {
        Arc::new(RunStore {
            name,
            space: Arc::clone(space),
            account: Arc::clone(account),
            file: Mutex::new(None),
        })
    }

    fn put(&self, bytes: &[u8]) -> Result<Segment, LoadError> {
        if let Some(taken) = self.account.take(bytes.len() as u64) {
            let bytes = bytes.to_vec().into_boxed_slice();
            return Ok(Segment::Memory(bytes, taken));
        }
        let mut file = self.file.lock();
        if file.is_none() {
            *file = Some(self.space.file(self.name)?);
        }
        let file = file.as_mut().expect("just created");
        Ok(Segment::File(file.append(bytes)?))
    }
}

#[derive(Debug)]
enum Segment {
    /// The bytes, and their share of the account while they are in memory.
    Memory(Box<[u8]>, #[allow(dead_code)] Taken),
    File(TempPlace),
}

/// One finished run.
#[derive(Debug, Default)]
pub(super) struct Run {
    segments: VecDeque<Segment>,
}

/// Writes one run of N columns.
#[derive(Debug)]
pub(super) struct RunWriter<const N: usize> {
    store: Arc<RunStore>,
    rows: Vec<[u64; N]>,
    bytes: Vec<u8>,
    run: Run,
}

impl<const N: usize> RunWriter<N> {
    pub(super) fn new(store: &Arc<RunStore>) -> Self {
        RunWriter { store: Arc::clone(store), rows: Vec::new(), bytes: Vec::new(), run: Run::default() }
    }

    /// Appends rows, in the order in which they will be read.
    pub(super) fn push(&mut self, mut rows: &[[u64; N]]) -> Result<(), LoadError> {
        if !self.rows.is_empty() {
            let fill = rows.len().min(BLOCK_ROWS - self.rows.len());
            self.rows.extend_from_slice(&rows[..fill]);
            rows = &rows[fill..];
            if self.rows.len() < BLOCK_ROWS {
                return Ok(());
            }
            let full = std::mem::take(&mut self.rows);
            self.block(&full)?;
            self.rows = full;
            self.rows.clear();
        }
        assert!(self.rows.is_empty(), "rows are read in the order in which they were pushed");
        let mut blocks = rows.chunks_exact(BLOCK_ROWS);
        for block in &mut blocks {
            self.block(block)?;
        }
        self.rows.extend_from_slice(blocks.remainder());
        Ok(())
    }

    /// Ends the run.
    pub(super) fn finish(mut self) -> Result<Run, LoadError> {
        if !self.rows.is_empty() {
            let rest = std::mem::take(&mut self.rows);
            self.block(&rest)?;
        }
        if !self.bytes.is_empty() {
            self.run.segments.push_back(self.store.put(&self.bytes)?);
        }
        Ok(self.run)
    }

    fn block(&mut self, rows: &[[u64; N]]) -> Result<(), LoadError> {
        pack::pack(rows, &mut self.bytes);
        if self.bytes.len() >= SEGMENT_BYTES {
            self.run.segments.push_back(self.store.put(&self.bytes)?);
            self.bytes.clear();
        }
        Ok(())
    }
}

/// Reads one run of N columns, block by block.
#[derive(Debug)]
pub(super) struct RunReader<const N: usize> {
    file: Option<TempReader>,
    segments: VecDeque<Segment>,
    current: Option<Segment>,
    buffer: Vec<u8>,
    at: usize,
}

impl<const N: usize> RunReader<N> {
    pub(super) fn new(store: &RunStore, run: Run) -> Result<Self, LoadError> {
        let file = match &*store.file.lock() {
            Some(file) => Some(file.reader()?),
            None => None,
        };
        Ok(RunReader { file, segments: run.segments, current: None, buffer: Vec::new(), at: 0 })
    }

    /// Replaces `rows` by the next block; false at the end.
    pub(super) fn next_block(&mut self, rows: &mut Vec<[u64; N]>) -> Result<bool, LoadError> {
        loop {
            let bytes = match &self.current {
                Some(Segment::Memory(bytes, _)) => &bytes[..],
                Some(Segment::File(_)) => &self.buffer[..],
                None => &[],
            };
            if self.at < bytes.len() {
                self.at += pack::unpack(&bytes[self.at..], rows);
                return Ok(true);
            }
            self.at = 0;
            self.current = self.segments.pop_front();
            match &self.current {
                None => {
                    rows.clear();
                    return Ok(false);
                }
                Some(Segment::Memory(..)) => {}
                Some(Segment::File(place)) => {
                    let file = self.file.as_ref().expect("a file segment has a file");
                    file.read(*place, &mut self.buffer)?;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(n: u64) -> Vec<[u64; 3]> {
        (0..n).map(|i| [i / 7, i * 31 % 1000, i]).collect()
    }

    /// All rows come back in order, wherever the segments went and however they were pushed.
    #[test]
    fn memory_and_file() {
        let db = tempfile::tempdir().unwrap();
        let space = TempSpace::create(db.path()).unwrap();
        let mut spilled = 0;
        for (name, limit, spills) in [("all", 0, true), ("half", 200 << 10, true), ("none", 1 << 30, false)] {
            let account = LoadMemory::new(limit);
            let store = RunStore::new(name, &space, &account);
            let want = rows(200_000);
            let mut writer = RunWriter::<3>::new(&store);
            let mut rest = &want[..];
            let mut step = 1;
            while !rest.is_empty() {
                let (now, later) = rest.split_at(step.min(rest.len()));
                writer.push(now).unwrap();
                rest = later;
                step = step * 3 % 4999 + 1;
            }
            let run = writer.finish().unwrap();
            assert_eq!(space.bytes() > spilled, spills);
            spilled = space.bytes();
            let mut reader = RunReader::<3>::new(&store, run).unwrap();
            let (mut got, mut block) = (Vec::new(), Vec::new());
            while reader.next_block(&mut block).unwrap() {
                got.extend_from_slice(&block);
            }
            assert!(got == want);
            drop(reader);
            assert!(account.take(limit).is_some(), "memory given back");
        }
    }
}
