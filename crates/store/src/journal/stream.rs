//! Journal files as one stream of bytes, read ahead by several threads in little memory.
//!
//! 1. the stretches of all files that are to be read are cut into chunks, in order;
//! 2. threads read chunks, at most a window of them ahead of the consumer ([`Reading`]: both
//!    follow from the memory budget);
//! 3. the consumer sees one file at a time through a [`FileStream`]: bytes from a position on,
//!    as many as it asks for. It only ever moves forward, so that what lies behind it is
//!    dropped.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};
use snowmelt_io::AlignedBuf;

use super::file::{BLOCK, JournalFile};
use crate::error::Result;

/// Threads that read.
const READERS: usize = 16;

/// How a journal is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    /// Bytes of one request.
    pub chunk: u64,
    /// Chunks that may be in memory.
    pub window: usize,
    /// Threads; 1: the caller.
    pub readers: usize,
}

impl Reading {
    /// Reading with at most a sixteenth of `memory` bytes, by several threads if there may be any.
    pub fn within(memory: u64, threads: Threads) -> Reading {
        const CHUNKS: std::ops::RangeInclusive<u64> = 64 << 10..=1 << 20;
        let most = memory / 16;
        let chunk = (most / 16).clamp(*CHUNKS.start(), *CHUNKS.end());
        let chunk = 1 << chunk.ilog2();
        let window = (most / chunk).clamp(2, 64) as usize;
        let readers = if threads == Threads::Several { READERS.min(window) } else { 1 };
        Reading { chunk, window, readers }
    }
}

/// Whether there may be threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Threads {
    Several,
    One,
}

/// A file and how many of its bytes, from the first on, are to be read; a multiple of [`BLOCK`].
#[derive(Clone, Debug)]
pub(crate) struct Stretch {
    pub file: Arc<JournalFile>,
    pub bytes: u64,
}

/// Is called with each file.
pub(crate) type OnFile<'a> = dyn FnMut(usize, &mut FileStream<'_>) -> Result<()> + 'a;

/// Calls `then` with each file, in order.
pub(crate) fn read_in_order(files: &[Stretch], how: Reading, then: &mut OnFile<'_>) -> Result<()> {
    let chunks: Vec<Chunk> = files
        .iter()
        .enumerate()
        .flat_map(|(file, f)| {
            (0..f.bytes).step_by(how.chunk as usize).map(move |at| {
                let bytes = (f.bytes - at).min(how.chunk) as usize;
                Chunk { file, at, bytes }
            })
        })
        .collect();
    let read = |n: usize, spare: Option<AlignedBuf>| {
        let Chunk { file, at, bytes } = chunks[n];
        debug_assert!(bytes.is_multiple_of(BLOCK), "whole blocks are read");
        // Fresh memory costs more than the rest of a read from a fast device, so buffers are
        // used again.
        let mut buf = spare.filter(|b| b.len() == bytes).unwrap_or_else(|| AlignedBuf::new(bytes));
        files[file].file.read(at, &mut buf).map(|()| buf)
    };
    if how.readers < 2 || chunks.len() < 2 {
        let mut spare = None;
        let mut next = |n: usize, whole: &mut Vec<u8>| {
            let buf = read(n, spare.take())?;
            whole.extend_from_slice(&buf);
            spare = Some(buf);
            Ok(())
        };
        return each_file(files, &chunks, &mut next, then);
    }
    let shared = (Mutex::new(Ahead::default()), Condvar::new());
    std::thread::scope(|scope| {
        for _ in 0..how.readers.min(chunks.len()) {
            scope.spawn(|| read_ahead(&shared, chunks.len(), how.window, read));
        }
        let (ahead, changed) = &shared;
        let mut next = |n: usize, whole: &mut Vec<u8>| {
            let mut a = ahead.lock();
            assert_eq!(a.done, n, "chunks are taken in the order of the files");
            let buf = loop {
                if let Some(buf) = a.ready.remove(&n) {
                    break buf?;
                }
                changed.wait(&mut a);
            };
            drop(a);
            whole.extend_from_slice(&buf);
            let mut a = ahead.lock();
            a.done = n + 1;
            a.spare.push(buf);
            changed.notify_all();
            Ok(())
        };
        let done = each_file(files, &chunks, &mut next, then);
        ahead.lock().stop = true;
        changed.notify_all();
        done
    })
}

#[derive(Clone, Copy, Debug)]
struct Chunk {
    file: usize,
    at: u64,
    bytes: usize,
}

/// Shared by the threads: chunks are read in order, into buffers that were used before.
#[derive(Default)]
struct Ahead {
    next: usize,
    done: usize,
    stop: bool,
    ready: BTreeMap<usize, Result<AlignedBuf>>,
    spare: Vec<AlignedBuf>,
}

fn read_ahead(
    shared: &(Mutex<Ahead>, Condvar),
    chunks: usize,
    window: usize,
    read: impl Fn(usize, Option<AlignedBuf>) -> Result<AlignedBuf>,
) {
    let (ahead, changed) = shared;
    loop {
        let mut a = ahead.lock();
        while !a.stop && a.next < chunks && a.next >= a.done + window {
            changed.wait(&mut a);
        }
        if a.stop || a.next >= chunks {
            return;
        }
        let n = a.next;
        assert!(a.done <= n, "a chunk is read before it is taken");
        a.next += 1;
        let spare = a.spare.pop();
        drop(a);
        let buf = read(n, spare);
        ahead.lock().ready.insert(n, buf);
        changed.notify_all();
    }
}

/// Appends the bytes of a chunk. Chunks are asked for in order, each once.
type Next<'a> = dyn FnMut(usize, &mut Vec<u8>) -> Result<()> + 'a;

fn each_file(files: &[Stretch], chunks: &[Chunk], next: &mut Next<'_>, then: &mut OnFile<'_>) -> Result<()> {
    let (mut n, mut buf) = (0, Vec::new());
    for (i, stretch) in files.iter().enumerate() {
        buf.clear();
        let mut stream = FileStream { file: i, stretch, chunks, n, begin: 0, buf, next };
        then(i, &mut stream)?;
        while stream.take_chunk()? {
            stream.buf.clear();
        }
        (n, buf) = (stream.n, stream.buf);
    }
    Ok(())
}

/// One file, from front to back.
pub(crate) struct FileStream<'a> {
    file: usize,
    stretch: &'a Stretch,
    chunks: &'a [Chunk],
    /// The next chunk.
    n: usize,
    /// Where `buf` begins in the file.
    begin: u64,
    buf: Vec<u8>,
    next: &'a mut Next<'a>,
}

impl FileStream<'_> {
    /// Bytes that can be seen.
    pub fn bytes(&self) -> u64 {
        self.stretch.bytes
    }

    /// The file.
    pub fn file(&self) -> &Arc<JournalFile> {
        &self.stretch.file
    }

    /// `bytes` bytes from `at` on, or those up to the end if there are fewer. What lies before
    /// `at` cannot be asked for again.
    pub fn see(&mut self, at: u64, bytes: u64) -> Result<&[u8]> {
        assert!(at >= self.begin, "a file is read from front to back");
        let end = at.saturating_add(bytes).min(self.bytes());
        if end > self.begin + self.buf.len() as u64 {
            let passed = (at - self.begin).min(self.buf.len() as u64);
            self.buf.drain(..passed as usize);
            self.begin += passed;
        }
        while end > self.begin + self.buf.len() as u64 && self.take_chunk()? {
            let passed = at.saturating_sub(self.begin).min(self.buf.len() as u64);
            if passed == self.buf.len() as u64 {
                self.begin += passed;
                self.buf.clear();
            }
        }
        let seen = at.min(end)..end;
        Ok(&self.buf[(seen.start - self.begin) as usize..(seen.end - self.begin) as usize])
    }

    /// Appends the next chunk of the file; false at its end.
    fn take_chunk(&mut self) -> Result<bool> {
        if self.chunks.get(self.n).is_none_or(|c| c.file != self.file) {
            return Ok(false);
        }
        (self.next)(self.n, &mut self.buf)?;
        self.n += 1;
        Ok(true)
    }
}
