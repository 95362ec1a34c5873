//! Reading the journal back at open: all files from the first needed one on, checked, record by record, in order.
//!
//! 1. the heads say which slot holds which file; files before the first needed one are free;
//! 2. chunks of all needed files are read by several threads at once, a window ahead of the one that checks them;
//! 3. records are followed along the chain. Where it ends: if any sound record anywhere says that the missing one was durable, the journal is
//!    damaged there, an error that names the place; else a write was cut short there, and that is the end.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};
use snowmelt_io::AlignedBuf;

use super::End;
use super::file::JournalFile;
use super::record::{self, ALIGN, FILE_HEAD, FileHead, Head};
use crate::config::{Salvage, StoreConfig};
use crate::error::{Result, StoreError};

/// Bytes of one read.
const CHUNK: u64 = 1 << 20;
/// Threads that read.
const READERS: usize = 16;
/// Chunks read ahead of the check.
const WINDOW: usize = 64;

/// What the journal holds.
pub(crate) struct Found {
    /// Files from the first needed one on, with the highest transaction in each.
    pub used: BTreeMap<u64, (Arc<JournalFile>, u64)>,
    /// Sequence and checksum of the record before the first one of each.
    pub before: BTreeMap<u64, (u64, u64)>,
    pub free: Vec<Arc<JournalFile>>,
    pub end: End,
    /// Bytes of sound records.
    pub bytes: u64,
    pub records: u64,
    /// Requests made and how many at a time.
    pub requests: u64,
    pub concurrency: usize,
    pub read_bytes: u64,
}

/// The super-block's view of the journal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Needed {
    pub identity: u64,
    /// Number of the first file that may be needed.
    pub first: u64,
    /// Sequence and checksum of the record before its first one.
    pub before: (u64, u64),
    /// Records up to this sequence must be there.
    pub synced: u64,
    /// Slots that were made.
    pub slots: u32,
}

/// What is told of each record: head, place, stored payload.
pub(crate) type OnRecord<'a> = dyn FnMut(&Head, u64, &[u8]) -> Result<()> + 'a;

/// What is told of each file: its place in the order, its bytes, the requests they took.
type OnFile<'a> = dyn FnMut(usize, &[u8], u64) -> Result<()> + 'a;

/// Reads the journal of the database in `dir`.
pub(crate) fn scan(
    dir: &Path,
    config: &StoreConfig,
    needed: Needed,
    on_record: &mut OnRecord<'_>,
) -> Result<Found> {
    let slots = JournalFile::open_all(dir, config)?;
    if slots.len() < needed.slots as usize {
        let path = dir.join(format!("journal-{}", slots.len()));
        let why = "the file is missing, and with it perhaps commits";
        return Err(StoreError::JournalDamaged { file: path, offset: 0, why: why.into() });
    }
    let mut files = BTreeMap::new();
    let (mut free, mut headless, mut first_records) = (Vec::new(), Vec::new(), Vec::new());
    for file in slots {
        let file = Arc::new(file);
        let (head, first_record) = file.begin()?;
        first_records.extend(first_record);
        match head.filter(|h| h.identity == needed.identity || h.file == 0) {
            Some(head) if head.file >= needed.first => drop(files.insert(head.file, (head, file))),
            Some(_) => free.push(file),
            None if begins_with_zeros(&file)? => free.push(file),
            None => headless.push(file),
        }
    }
    let found = Found {
        used: BTreeMap::new(),
        before: BTreeMap::new(),
        free,
        end: End { number: needed.first - 1, sequence: needed.before.0, previous: needed.before.1 },
        bytes: 0,
        records: 0,
        requests: 0,
        concurrency: 1,
        read_bytes: 0,
    };
    let mut scan = Scan { needed, found, stop: None, on_record, salvage: config.journal.salvage };
    // Those without a head come last: they can only show that something is missing.
    let order: Vec<Arc<JournalFile>> =
        files.values().map(|(_, f)| f.clone()).chain(headless.iter().cloned()).collect();
    let heads: Vec<Option<FileHead>> =
        files.values().map(|(h, _)| Some(*h)).chain(headless.iter().map(|_| None)).collect();
    let readers = if config.runs_threads() && config.files.is_none() { READERS } else { 1 };
    scan.found.concurrency = readers;
    let total: u64 = order.iter().map(|f| f.bytes).sum();
    let mut progress =
        Progress { config, total, begun_ns: config.clock.now_ns(), said_ns: config.clock.now_ns() };
    read_in_order(&order, readers, &mut |i, bytes, requests| {
        progress.say(dir, scan.found.read_bytes);
        scan.found.requests += requests;
        scan.found.read_bytes += bytes.len() as u64;
        scan.file(&order[i], heads[i].as_ref(), bytes)
    })?;
    scan.check_synced(dir)?;
    let highest = heads.iter().flatten().map(|h| h.file).max().unwrap_or(0);
    let highest = scan.found.end.number.max(highest);
    // A file whose head was lost, but not its first record: a new head of the same number before it would make it real again.
    let possible = |file: &u64| *file <= highest + order.len() as u64 + scan.found.free.len() as u64;
    let highest = first_records.into_iter().filter(possible).max().map_or(highest, |lost| highest.max(lost));
    scan.found.end.number = highest;
    Ok(scan.found)
}

/// True of a file that was made ahead and never used: files are written from front to back, so nothing follows zeros of this length. It
/// need not be read whole.
fn begins_with_zeros(file: &JournalFile) -> Result<bool> {
    let mut front = AlignedBuf::new(file.bytes.min(CHUNK) as usize);
    file.read(0, &mut front)?;
    Ok(front.iter().all(|b| *b == 0))
}

/// Says once a second how far reading is and how long it will take.
struct Progress<'a> {
    config: &'a StoreConfig,
    total: u64,
    begun_ns: u64,
    said_ns: u64,
}

impl Progress<'_> {
    fn say(&mut self, dir: &Path, done: u64) {
        let now_ns = self.config.clock.now_ns();
        if now_ns - self.said_ns < 1_000_000_000 || done == 0 {
            return;
        }
        self.said_ns = now_ns;
        let seconds = (now_ns - self.begun_ns) as f64 / 1e9;
        let left = seconds * (self.total - done) as f64 / done as f64;
        let (done, total) = (done >> 20, self.total >> 20);
        snowmelt_io::notice(&format!(
            "{}: recovering, {done} of {total} MiB of journal read, {left:.0} s to go",
            dir.display()
        ));
    }
}

struct Scan<'a, 'b> {
    needed: Needed,
    found: Found,
    /// Where the latest file's records end.
    stop: Option<(Arc<JournalFile>, u64)>,
    on_record: &'a mut OnRecord<'b>,
    salvage: Salvage,
}

impl Scan<'_, '_> {
    fn file(&mut self, file: &Arc<JournalFile>, head: Option<&FileHead>, bytes: &[u8]) -> Result<()> {
        let Some(head) = head.filter(|h| self.continues(h)) else {
            self.stop.get_or_insert_with(|| (file.clone(), 0));
            self.look_for_synced(bytes)?;
            self.found.free.push(file.clone());
            return Ok(());
        };
        self.found.before.insert(head.file, (self.found.end.sequence, self.found.end.previous));
        let (stop, last_txn) = self.records(head.file, bytes)?;
        self.found.used.insert(head.file, (file.clone(), last_txn));
        // The next file may go on from here. If this file itself shows that more was durable, none does.
        self.stop = Some((file.clone(), stop as u64));
        self.look_for_synced(&bytes[stop..])
    }

    /// True when the file's head continues the chain. What a crash left of a file that nobody was promised does not.
    fn continues(&self, head: &FileHead) -> bool {
        let end = self.found.end;
        (head.sequence, head.previous) == (end.sequence + 1, end.previous)
    }

    /// Follows the records of a file; answers where they end and the highest transaction.
    fn records(&mut self, number: u64, bytes: &[u8]) -> Result<(usize, u64)> {
        let (mut at, mut last_txn) = (FILE_HEAD, 0);
        while let Some((head, stored)) = bytes.get(at..).and_then(|b| record::decode(b, self.needed.identity))
        {
            let end = &mut self.found.end;
            if (head.file, head.sequence, head.previous) != (number, end.sequence + 1, end.previous) {
                break;
            }
            (end.sequence, end.previous) = (head.sequence, head.checksum);
            last_txn = last_txn.max(head.txn);
            self.found.records += 1;
            self.found.bytes += head.bytes() as u64;
            (self.on_record)(&head, at as u64, stored)?;
            at += head.bytes();
        }
        Ok((at.min(bytes.len()), last_txn))
    }

    /// A sound record in `bytes` that says that what follows the end was durable.
    fn synced_claim(&self, bytes: &[u8]) -> Option<Head> {
        let next = self.found.end.sequence + 1;
        let magic = record::MAGIC;
        (0..bytes.len().saturating_sub(record::HEAD - 1)).step_by(ALIGN).find_map(|at| {
            if bytes[at + record::offset::MAGIC..][..4] != magic {
                return None;
            }
            let (head, _) = record::decode(&bytes[at..], self.needed.identity)?;
            (head.file >= self.needed.first && head.synced >= next).then_some(head)
        })
    }

    /// What the super-block calls durable must be there.
    fn check_synced(&self, dir: &Path) -> Result<()> {
        let (last, synced) = (self.found.end.sequence, self.needed.synced);
        if last >= synced {
            return Ok(());
        }
        let (file, offset) = match &self.stop {
            Some((file, at)) => (file.path.clone(), *at),
            None => (dir.join("journal-0"), 0),
        };
        let why = format!("record {} is missing, but the super-block says that it was durable", last + 1);
        self.damaged(StoreError::JournalDamaged { file, offset, why })
    }

    fn damaged(&self, e: StoreError) -> Result<()> {
        if self.salvage == Salvage::CutJournal {
            snowmelt_io::notice(&format!("{e}; going on with what is before it, as asked"));
            return Ok(());
        }
        Err(e)
    }

    fn look_for_synced(&self, bytes: &[u8]) -> Result<()> {
        let (Some(claim), Some(at)) = (self.synced_claim(bytes), &self.stop) else { return Ok(()) };
        let why = format!(
            "record {} is damaged, but record {} says that it was durable: commits are lost; --salvage opens what is before",
            self.found.end.sequence + 1,
            claim.sequence,
        );
        self.damaged(StoreError::JournalDamaged { file: at.0.path.clone(), offset: at.1, why })
    }
}

/// Calls `then` with the bytes of each file, in order; chunks are read by `readers` threads, a window ahead.
fn read_in_order(files: &[Arc<JournalFile>], readers: usize, then: &mut OnFile<'_>) -> Result<()> {
    let chunks: Vec<(usize, u64)> = files
        .iter()
        .enumerate()
        .flat_map(|(i, f)| (0..f.bytes).step_by(CHUNK as usize).map(move |at| (i, at)))
        .collect();
    // Fresh memory costs more than the rest of a read from a fast device, so buffers are used again.
    let read = |n: usize, spare: Option<AlignedBuf>| {
        let (i, at) = chunks[n];
        let len = (files[i].bytes - at).min(CHUNK) as usize;
        let mut buf = spare.filter(|b| b.len() == len).unwrap_or_else(|| AlignedBuf::new(len));
        files[i].read(at, &mut buf).map(|()| buf)
    };
    if readers < 2 || chunks.len() < 2 {
        let mut spare = None;
        let append = |n: usize, whole: &mut Vec<u8>| {
            let buf = read(n, spare.take())?;
            whole.extend_from_slice(&buf);
            spare = Some(buf);
            Ok(())
        };
        return assemble(files, &chunks, append, then);
    }
    let shared = (Mutex::new(Ahead::default()), Condvar::new());
    std::thread::scope(|scope| {
        for _ in 0..readers.min(chunks.len()) {
            scope.spawn(|| read_ahead(&shared, chunks.len(), read));
        }
        let (ahead, changed) = &shared;
        let append = |n: usize, whole: &mut Vec<u8>| {
            let mut a = ahead.lock();
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
        let done = assemble(files, &chunks, append, then);
        ahead.lock().stop = true;
        changed.notify_all();
        done
    })
}

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
    read: impl Fn(usize, Option<AlignedBuf>) -> Result<AlignedBuf>,
) {
    let (ahead, changed) = shared;
    loop {
        let mut a = ahead.lock();
        while !a.stop && a.next < chunks && a.next >= a.done + WINDOW {
            changed.wait(&mut a);
        }
        if a.stop || a.next >= chunks {
            return;
        }
        let n = a.next;
        a.next += 1;
        let spare = a.spare.pop();
        drop(a);
        let buf = read(n, spare);
        ahead.lock().ready.insert(n, buf);
        changed.notify_all();
    }
}

/// Puts the chunks of each file together and hands them on.
fn assemble(
    files: &[Arc<JournalFile>],
    chunks: &[(usize, u64)],
    mut append: impl FnMut(usize, &mut Vec<u8>) -> Result<()>,
    then: &mut OnFile<'_>,
) -> Result<()> {
    let (mut n, mut whole) = (0, Vec::new());
    for (i, file) in files.iter().enumerate() {
        whole.clear();
        whole.reserve_exact(file.bytes as usize);
        let first = n;
        while n < chunks.len() && chunks[n].0 == i {
            append(n, &mut whole)?;
            n += 1;
        }
        then(i, &whole, (n - first) as u64)?;
    }
    Ok(())
}
