//! Reading the journal back at open: all files from the first needed one on, checked, record by
//! record, in order.
//!
//! 1. the heads say which slot holds which file; files before the first needed one are free;
//! 2. all needed files are read as one stream, by several threads at once and within the memory
//!    budget ([`super::stream`]);
//! 3. records are followed along the chain. Where it ends: if any sound record anywhere says
//!    that the missing one was durable, the journal is damaged there, an error that names the
//!    place; else a write was cut short there, and that is the end.

use std::collections::BTreeMap;
use std::hash::Hasher;
use std::sync::Arc;

use snowmelt_io::AlignedBuf;
use twox_hash::XxHash3_64;

use super::file::{BLOCK, JournalFile};
use super::record::{self, ALIGN, FILE_HEAD, FileHead, Head, RecordKind};
use super::stream::{FileStream, Reading, Stretch, Threads, read_in_order};
use super::{End, Parts};
use crate::error::{Result, StoreError};
use crate::settings::config::{Salvage, StoreConfig};
use crate::settings::opener::Directory;
use crate::superblock::TailPlace;

/// Bytes of a file made ahead that are looked at.
const FRONT: u64 = 1 << 20;
/// The most that is read of a file that does not say how long it is: more than any has.
const MOST_HEADLESS: u64 = 1 << 30;

/// Contents of the journal.
pub(crate) struct Found {
    /// Files from the first needed one on, with the highest committed transaction in each.
    pub used: BTreeMap<u64, (Arc<JournalFile>, u64)>,
    /// Sequence and checksum of the record before the first one of each.
    pub before: BTreeMap<u64, (u64, u64)>,
    pub free: Vec<Arc<JournalFile>>,
    /// Slots that count.
    pub slots: u32,
    pub end: End,
    /// Where the last record ends.
    pub place: TailPlace,
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
    /// Up to here the journal must be there.
    pub tail: TailPlace,
    /// Slots that were made.
    pub slots: u32,
}

/// Is called with each record: head, file and place in it, stored payload.
pub(crate) type OnRecord<'a> = dyn FnMut(&Head, &Arc<JournalFile>, u64, &[u8]) -> Result<()> + 'a;

/// Reads the journal of the database in `dir`.
pub(crate) fn scan(
    dir: &Arc<Directory>,
    config: &StoreConfig,
    needed: Needed,
    on_record: &mut OnRecord<'_>,
) -> Result<Found> {
    let Slots { files, free, headless, first_records } = Slots::open(dir, config, needed)?;
    let found = Found::nothing(needed, free);
    let mut scan = Scan {
        needed,
        found,
        stop: None,
        claim: None,
        on_record,
        salvage: config.journal.salvage,
        parts: Parts::default(),
    };
    // Those without a head come last: they can only show that something is missing.
    let order: Vec<Stretch> = (files.values().map(|(_, f)| f).chain(&headless))
        .map(|file| Stretch { bytes: file.bytes, file: file.clone() })
        .collect();
    let heads: Vec<Option<FileHead>> =
        files.values().map(|(h, _)| Some(*h)).chain(headless.iter().map(|_| None)).collect();
    let several = config.runs_threads() && config.seams.files.is_none();
    let reading =
        Reading::within(config.recovery_bytes(), if several { Threads::Several } else { Threads::One });
    scan.found.concurrency = reading.readers;
    let total: u64 = order.iter().map(|f| f.bytes).sum();
    let mut progress = Progress {
        config,
        total,
        begun_ns: config.seams.clock.now_ns(),
        said_ns: config.seams.clock.now_ns(),
    };
    read_in_order(&order, reading, &mut |i, stream| {
        progress.say(dir, scan.found.read_bytes);
        scan.found.requests += stream.bytes().div_ceil(reading.chunk);
        scan.found.read_bytes += stream.bytes();
        scan.file(heads[i].as_ref(), stream)
    })?;
    scan.check_synced(dir)?;
    let highest = heads.iter().flatten().map(|h| h.file).max().unwrap_or(0);
    let highest = scan.found.end.number.max(highest);
    // A file whose head was lost, but not its first record: a new head of the same number
    // before it would make it real again.
    let possible = |file: &u64| *file <= highest + order.len() as u64 + scan.found.free.len() as u64;
    let highest = first_records.into_iter().filter(possible).max().map_or(highest, |lost| highest.max(lost));
    scan.found.end.number = highest;
    scan.found.leave_unfinished();
    Ok(scan.found)
}

/// The files of the journal, told apart by their heads.
#[derive(Default)]
struct Slots {
    /// Those that may be needed, by number.
    files: BTreeMap<u64, (FileHead, Arc<JournalFile>)>,
    free: Vec<Arc<JournalFile>>,
    /// Their heads cannot be read.
    headless: Vec<Arc<JournalFile>>,
    /// Numbers that the first records of files name.
    first_records: Vec<u64>,
}

impl Slots {
    fn open(dir: &Arc<Directory>, config: &StoreConfig, needed: Needed) -> Result<Slots> {
        let mut slots = JournalFile::open_all(dir, config)?;
        while slots.len() < needed.slots as usize {
            let path = dir.join(format!("journal-{}", slots.len()));
            let why = "the file is missing, and with it perhaps commits".to_owned();
            let missing = StoreError::JournalDamaged { file: path, offset: 0, why, is_cuttable: true };
            if config.journal.salvage != Salvage::CutJournal || config.is_read_only() {
                return Err(missing);
            }
            snowmelt_io::notice(&format!("{missing}; an empty one takes its place, as asked"));
            JournalFile::create(dir, slots.len() as u32, config)?;
            dir.sync()?;
            // Those behind it may be there.
            slots = JournalFile::open_all(dir, config)?;
        }
        let mut found = Slots::default();
        for mut file in slots {
            let (head, first_record) = file.begin()?;
            found.first_records.extend(first_record);
            // Bytes beyond the length that a file was made with are not the journal's.
            let made_with = head.map_or(MOST_HEADLESS, |h| h.bytes / BLOCK as u64 * BLOCK as u64);
            file.bytes = file.bytes.min(made_with);
            let file = Arc::new(file);
            match head.filter(|h| h.identity == needed.identity || h.file == 0) {
                Some(head) if head.file >= needed.first => drop(found.files.insert(head.file, (head, file))),
                Some(_) => found.free.push(file),
                None if begins_with_zeros(&file)? => found.free.push(file),
                None => found.headless.push(file),
            }
        }
        Ok(found)
    }
}

impl Found {
    /// Before anything was read.
    fn nothing(needed: Needed, free: Vec<Arc<JournalFile>>) -> Found {
        let (sequence, previous) = needed.before;
        Found {
            used: BTreeMap::new(),
            before: BTreeMap::new(),
            free,
            slots: needed.slots,
            end: End { number: needed.first - 1, sequence, previous },
            place: TailPlace { sequence, file: 0, offset: 0 },
            bytes: 0,
            records: 0,
            requests: 0,
            concurrency: 1,
            read_bytes: 0,
        }
    }

    /// Counts a record: when it is a commit, the files since its transaction's first part hold a
    /// committed transaction.
    fn count(&mut self, head: &Head, parts: &mut Parts) {
        let first = parts.first_file(head.txn, head.file);
        if head.kind == RecordKind::Commit {
            for (_, last_txn) in self.used.range_mut(first..=head.file).map(|(_, used)| used) {
                *last_txn = head.txn.max(*last_txn);
            }
        }
    }

    /// Makes durable what was read back, before anything is built on it, and the lengths of free
    /// files. One that was never used is made again: a crash may have come before it was whole.
    pub fn settle(&mut self) -> Result<()> {
        for (file, _) in self.used.values() {
            file.sync()?;
        }
        for file in self.free.iter_mut().filter(|file| file.bytes > 0) {
            if begins_with_zeros(file)? {
                *file = Arc::new(file.emptied()?);
            } else {
                file.sync()?;
            }
        }
        Ok(())
    }

    /// Leaves out the files behind the last slot that counts: no super-block mentions them, since
    /// they were not finished or not durable when the database was last open. They will be made
    /// again.
    fn leave_unfinished(&mut self) {
        let used = self.used.values().map(|(file, _)| file.slot + 1).max().unwrap_or(0);
        self.slots = self.slots.max(used);
        let slots = self.slots;
        self.free.retain(|file| file.slot < slots);
    }
}

/// True of a file that was made ahead and never used: files are written from front to back, so
/// nothing follows zeros of this length. It need not be read whole.
fn begins_with_zeros(file: &JournalFile) -> Result<bool> {
    let mut front = AlignedBuf::new(file.bytes.min(FRONT) as usize);
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
    fn say(&mut self, dir: &Directory, done: u64) {
        let now_ns = self.config.seams.clock.now_ns();
        if now_ns - self.said_ns < 1_000_000_000 || done == 0 {
            return;
        }
        self.said_ns = now_ns;
        let seconds = (now_ns - self.begun_ns) as f64 / 1e9;
        let left = seconds * (self.total - done) as f64 / done as f64;
        let (done, total) = (done >> 20, self.total >> 20);
        snowmelt_io::notice(&format!(
            "{}: recovering, {done} of {total} MiB of journal read, {left:.0} s to go",
            dir.path().display()
        ));
    }
}

struct Scan<'a, 'b> {
    needed: Needed,
    found: Found,
    /// Where the latest file's records end.
    stop: Option<(Arc<JournalFile>, u64)>,
    /// The last record that something calls durable, and what that is. Judged when all files are
    /// read: a file with a claim may come before the one that has what is claimed.
    claim: Option<(u64, String)>,
    on_record: &'a mut OnRecord<'b>,
    salvage: Salvage,
    /// Of the transaction whose records come now.
    parts: Parts,
}

impl Scan<'_, '_> {
    fn file(&mut self, head: Option<&FileHead>, stream: &mut FileStream<'_>) -> Result<()> {
        let file = stream.file().clone();
        let Some(head) = head.filter(|h| self.continues(h)) else {
            self.stop.get_or_insert_with(|| (file.clone(), 0));
            if let Some(head) = head {
                self.claims(head.synced, || format!("the head of journal file {}", head.file));
            }
            self.look_for_synced(stream, 0)?;
            self.found.free.push(file);
            return Ok(());
        };
        self.found.before.insert(head.file, (self.found.end.sequence, self.found.end.previous));
        self.found.used.insert(head.file, (file.clone(), 0));
        let stop = self.records(head.file, stream)?;
        if self.found.end.sequence > self.found.place.sequence {
            self.found.place = TailPlace { sequence: self.found.end.sequence, file: head.file, offset: stop };
        }
        // The next file may go on from here. If this file itself shows that more was durable,
        // none does.
        self.stop = Some((file.clone(), stop));
        if file.bytes < head.bytes {
            let why = format!(
                "the file was made with {} bytes and has {}: commits may be lost",
                head.bytes, file.bytes
            );
            self.damaged(StoreError::JournalDamaged {
                file: file.path.clone(),
                offset: file.bytes,
                why,
                is_cuttable: true,
            })?;
        }
        self.look_for_synced(stream, stop)
    }

    /// True when the file's head continues the chain. Remains of a file of which nothing was called
    /// durable do not.
    fn continues(&self, head: &FileHead) -> bool {
        let end = self.found.end;
        (head.sequence, head.previous) == (end.sequence + 1, end.previous)
    }

    /// Follows the records of a file; returns where they end.
    fn records(&mut self, number: u64, stream: &mut FileStream<'_>) -> Result<u64> {
        let mut at = FILE_HEAD as u64;
        let file = stream.file().clone();
        while let Some(head) = record::peek(stream.see(at, record::HEAD as u64)?) {
            let end = &mut self.found.end;
            let bytes = head.bytes() as u64;
            if (head.file, head.sequence, head.previous) != (number, end.sequence + 1, end.previous)
                || (bytes > LARGE && !is_sound(&file, at, &head, self.needed.identity)?)
            {
                break;
            }
            let whole = record::decode(stream.see(at, bytes)?, self.needed.identity);
            let Some((head, stored)) = whole else { break };
            (end.sequence, end.previous) = (head.sequence, head.checksum);
            self.found.count(&head, &mut self.parts);
            self.found.records += 1;
            self.found.bytes += bytes;
            (self.on_record)(&head, &file, at, stored)?;
            at += bytes;
        }
        Ok(at.min(stream.bytes()))
    }

    /// Takes in what the sound records from `from` on call durable.
    fn look_for_synced(&mut self, stream: &mut FileStream<'_>, from: u64) -> Result<()> {
        /// Bytes searched at a time.
        const PIECE: u64 = 64 << 10;
        for begin in (from..stream.bytes()).step_by(PIECE as usize) {
            let piece = stream.see(begin, PIECE + record::HEAD as u64)?;
            let head_at = |i: u64| Some((begin + i, record::peek(piece.get(i as usize..)?)?));
            let heads: Vec<(u64, Head)> = (0..PIECE).step_by(ALIGN).filter_map(head_at).collect();
            for (at, head) in heads {
                if head.file >= self.needed.first
                    && self.is_new_claim(head.synced)
                    && is_sound(stream.file(), at, &head, self.needed.identity)?
                {
                    self.claims(head.synced, || format!("record {}", head.sequence));
                }
            }
        }
        Ok(())
    }

    /// True when nothing that was read has or claims as much.
    fn is_new_claim(&self, synced: u64) -> bool {
        synced > self.found.end.sequence && self.claim.as_ref().is_none_or(|(most, _)| synced > *most)
    }

    fn claims(&mut self, synced: u64, who: impl FnOnce() -> String) {
        if self.is_new_claim(synced) {
            self.claim = Some((synced, who()));
        }
    }

    /// Checks that all that was called durable is there: by records and heads, and by the
    /// super-block, which names a file and a place in it.
    fn check_synced(&mut self, dir: &Directory) -> Result<()> {
        if let Some((synced, who)) = self.claim.take().filter(|(most, _)| *most > self.found.end.sequence) {
            self.missing(&who, synced)?;
        }
        let TailPlace { sequence, file, offset } = self.needed.tail;
        if self.found.end.sequence >= sequence {
            return Ok(());
        }
        if self.stop.is_none() {
            // Not even the first file that is needed was found.
            let first = JournalFile::nameless(dir, self.needed.first);
            let why = format!("no file of the journal begins with the head of file {}", self.needed.first);
            return self.damaged(StoreError::JournalDamaged {
                file: first,
                offset: 0,
                why: format!("{why}, but the super-block says that records up to {sequence} are durable"),
                is_cuttable: true,
            });
        }
        let place =
            if file == 0 { String::new() } else { format!(" (byte {offset} of journal file {file})") };
        self.missing(&format!("the super-block{place}"), sequence)
    }

    /// Damage where the chain ends: `who` says that records up to `synced` are durable.
    fn missing(&self, who: &str, synced: u64) -> Result<()> {
        let (file, offset) = self.stop.as_ref().expect("the chain has ended");
        let why = format!(
            "record {} is missing or damaged, but {who} says that records up to {synced} are durable: commits are lost",
            self.found.end.sequence + 1,
        );
        self.damaged(StoreError::JournalDamaged {
            file: file.path.clone(),
            offset: *offset,
            why,
            is_cuttable: true,
        })
    }

    fn damaged(&self, e: StoreError) -> Result<()> {
        if self.salvage == Salvage::CutJournal {
            snowmelt_io::notice(&format!("{e}; going on with what is before it, as asked"));
            return Ok(());
        }
        Err(e)
    }
}

/// Records longer than this are checked before they are taken into memory whole: their length
/// may be what is damaged.
const LARGE: u64 = 2 << 20;

/// True of a record whose bytes have the checksum that its head says. Reads them a piece at a time.
fn is_sound(file: &JournalFile, at: u64, head: &Head, identity: u64) -> Result<bool> {
    const PIECE: u64 = 64 << 10;
    let (begin, end) = (at + 8, at + (record::HEAD as u64) + u64::from(head.stored));
    if end > file.bytes {
        return Ok(false);
    }
    let mut sum = XxHash3_64::with_seed(identity);
    for piece in (begin / PIECE * PIECE..end).step_by(PIECE as usize) {
        let mut buf = AlignedBuf::new((file.bytes - piece).min(PIECE) as usize);
        file.read(piece, &mut buf)?;
        let (from, to) = (begin.max(piece) - piece, end.min(piece + PIECE) - piece);
        sum.write(&buf[from as usize..to as usize]);
    }
    Ok(sum.finish() == head.checksum)
}
