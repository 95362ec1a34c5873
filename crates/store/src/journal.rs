//! The journal: what makes a commit durable before its pages are on their stripes.
//!
//! 1. a writer packs its changes into records ([`change`], [`record`]), makes sure there is
//!    room ([`Journal::reserve`], see [`room`]) and appends them in memory
//!    ([`Journal::append`]): the next writer may build on them;
//! 2. the first thread that waits becomes the leader, writes everything appended so far with one
//!    request per file and syncs ([`Journal::sync_to`]): the others' commits come along;
//! 3. files are used again when nothing in them is needed any more ([`Journal::recycle`]).
//!
//! Only whole blocks are written; the last one is written again with what follows. A sector
//! that holds synced bytes is only ever overwritten by a sector that begins with the same
//! bytes, so a torn write cannot harm them. After every open a new file is begun, and every
//! record carries the life (opening) that wrote it, so that what a crash left behind the end is
//! never taken for a continuation.

pub(crate) mod change;
pub(crate) mod file;
pub(crate) mod meters;
pub mod record;
pub(crate) mod room;
pub(crate) mod scan;
pub(crate) mod stream;

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use snowmelt_io::{AlignedBuf, CostModel, EventCount, WriteCost, WriteCosts};

use crate::error::{Result, StoreError};
use crate::files::watch::Watch;
use crate::journal::meters::JournalMeters;
use crate::settings::config::{Plant, StoreConfig};
use crate::settings::opener::Directory;
use crate::superblock::TailPlace;
use crate::superblock::current::CurrentBlock;
use file::{BLOCK, JournalFile};
use record::{ALIGN, FILE_HEAD, FileHead, Head, Link, Packed, RecordKind};

/// Where a change is: record and place in its payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Loc {
    pub file: u64,
    pub offset: u64,
    pub at: u32,
}

/// See the head of the file.
pub(crate) struct Journal {
    /// The database's directory.
    dir: Arc<Directory>,
    config: StoreConfig,
    identity: u64,
    /// See [`record`].
    life: u32,
    tail: Mutex<JournalTail>,
    files: Mutex<Files>,
    /// Highest sequence known durable.
    synced: AtomicU64,
    /// Where its record ends.
    synced_place: Mutex<TailPlace>,
    /// Is told of each file that is begun, before anything in it counts as durable.
    block: Arc<CurrentBlock>,
    leading: AtomicBool,
    changed: EventCount,
    /// Files written and not synced; only the leader looks.
    unsynced: Mutex<Vec<Arc<JournalFile>>>,
    /// The store's: set when writing or syncing failed.
    poison: Arc<OnceLock<Arc<StoreError>>>,
    /// Records unpacked lately, for versions that are read back.
    unpacked: Mutex<Vec<Unpacked>>,
    maker: room::Maker,
    /// Costs of writes to its files.
    writes: Mutex<WriteCosts>,
    /// Looks at the super-block and the stripes.
    watch: Watch,
    /// When all files were last looked at.
    looked_ns: AtomicU64,
    pub meters: JournalMeters,
}

/// The end of the journal.
struct JournalTail {
    file: Option<Arc<JournalFile>>,
    number: u64,
    /// Where the next record goes.
    position: u64,
    sequence: u64,
    previous: u64,
    /// The transaction whose parts were appended last, and the file of its first part.
    parts: Parts,
    /// Whole stretches of files before the last one that are not written yet.
    full: Vec<PendingWrite>,
    /// Bytes from `begin` on, a block's begin; what was written already of that block included.
    open: Vec<u8>,
    begin: u64,
    /// Bytes of `open` were appended since they were last written.
    dirty: bool,
}

struct PendingWrite {
    file: Arc<JournalFile>,
    begin: u64,
    bytes: Vec<u8>,
}

#[derive(Default)]
struct Files {
    /// Files in use, by number.
    used: BTreeMap<u64, Arc<JournalFile>>,
    /// Sequence and checksum of the record before the first one of each.
    before: BTreeMap<u64, (u64, u64)>,
    /// Highest *committed* transaction with a record in a file in use. Parts of a transaction
    /// that has not committed count by its pin alone: when it ends without a commit they are
    /// not needed.
    last_txn: BTreeMap<u64, u64>,
    free: Vec<Arc<JournalFile>>,
    /// Files that were made and are durable, with their names.
    slots: u32,
    /// Numbers of files that are still read, with the number of pins on each.
    pinned: BTreeMap<u64, usize>,
}

/// The parts of a transaction: they become a commit's only when that commit comes.
#[derive(Clone, Copy, Debug, Default)]
struct Parts {
    txn: u64,
    first_file: u64,
}

impl Parts {
    /// The file of the first record of transaction `txn`, the next one of which is in `file`.
    /// One transaction appends at a time.
    fn first_file(&mut self, txn: u64, file: u64) -> u64 {
        if self.txn != txn {
            *self = Parts { txn, first_file: file };
        }
        self.first_file
    }
}

impl Files {
    /// Notes that a committed transaction has records in these files.
    fn committed(&mut self, txn: u64, files: RangeInclusive<u64>) {
        for file in files {
            let last = self.last_txn.entry(file).or_insert(0);
            *last = txn.max(*last);
        }
    }
}

/// Where an earlier life left the journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct End {
    /// The highest number a file ever had.
    pub number: u64,
    pub sequence: u64,
    pub previous: u64,
}

/// A record's file, offset and payload.
type Unpacked = (u64, u64, Arc<[u8]>);

/// Room for records: files that [`Journal::append`] will go on with.
pub(crate) struct Room(Vec<Arc<JournalFile>>);

/// Where records were put.
pub(crate) struct Appended {
    /// The last one's.
    pub sequence: u64,
    /// File and offset of each.
    pub places: Vec<(u64, u64)>,
}

impl Journal {
    /// The journal as [`scan`] found it: files in use with the highest transaction in each,
    /// those that are free, and the end. Its device is taken for one of that cost at first.
    pub fn new(
        dir: Arc<Directory>,
        config: &StoreConfig,
        block: Arc<CurrentBlock>,
        poison: Arc<OnceLock<Arc<StoreError>>>,
        found: scan::Found,
        watch: Watch,
        cost: CostModel,
    ) -> Journal {
        let end = found.end;
        let unsynced = found.used.values().map(|(f, _)| f.clone()).collect();
        let last_txn = found.used.iter().map(|(n, (_, txn))| (*n, *txn)).collect();
        let before = found.before;
        let files = Files {
            slots: found.slots,
            used: found.used.into_iter().map(|(n, (f, _))| (n, f)).collect(),
            last_txn,
            before,
            free: found.free,
            pinned: BTreeMap::new(),
        };
        let identity = block.lock().identity;
        Journal {
            dir,
            identity,
            life: RandomState::new().hash_one(end.sequence) as u32 >> (32 - record::LIFE_BITS),
            tail: Mutex::new(JournalTail {
                file: None,
                number: end.number,
                position: 0,
                sequence: end.sequence,
                previous: end.previous,
                parts: Parts::default(),
                full: Vec::new(),
                open: Vec::new(),
                begin: 0,
                dirty: false,
            }),
            files: Mutex::new(files),
            // Records that were read back are there, but only the next sync makes sure that they
            // stay.
            synced: AtomicU64::new(end.sequence),
            synced_place: Mutex::new(found.place),
            block,
            leading: AtomicBool::new(false),
            changed: EventCount::named(&config.seams.clock, "a sync of the journal"),
            unsynced: Mutex::new(unsynced),
            poison,
            unpacked: Mutex::default(),
            maker: room::Maker::new(&config.seams.clock),
            writes: Mutex::new(WriteCosts::new(&cost)),
            watch,
            looked_ns: AtomicU64::new(config.seams.clock.now_ns()),
            meters: JournalMeters::new(),
            config: config.clone(),
        }
    }

    /// Files that were made.
    pub fn slots(&self) -> u32 {
        self.files.lock().slots
    }

    /// Ends the file that is being written, so that nothing of it is needed once its transactions
    /// are checkpointed. Only while no thread writes.
    pub fn end_file(&self) {
        let mut tail = self.tail.lock();
        assert!(!tail.dirty && tail.full.is_empty(), "a file ends when all of it is written");
        debug_assert!(!self.leading.load(Ordering::Acquire), "nobody writes while a file is ended");
        (tail.file, tail.position) = (None, 0);
    }

    /// Appends records, in memory. The room must have been reserved for just these.
    pub fn append(&self, records: &[Packed], room: Room, txn: u64) -> Appended {
        let mut room = room.0.into_iter();
        let mut places = Vec::with_capacity(records.len());
        let synced = self.synced.load(Ordering::Acquire);
        let mut tail = self.tail.lock();
        assert!(synced <= tail.sequence, "what is durable was appended");
        for r in records {
            let need = r.record_bytes() as u64;
            if tail.file.as_ref().is_none_or(|f| tail.position + need > f.bytes) {
                let file = room.next().expect("room was reserved for these records");
                self.begin_file(&mut tail, file, synced);
            }
            assert!(tail.position.is_multiple_of(ALIGN as u64), "records are aligned");
            Self::check_open(&tail);
            tail.sequence += 1;
            let (sequence, previous, file) = (tail.sequence, tail.previous, tail.number);
            let (identity, life) = (self.identity, self.life);
            let link = Link { identity, life, sequence, previous, synced, txn, file };
            tail.previous = record::encode(r, link, &mut tail.open);
            places.push((tail.number, tail.position));
            tail.position += need;
            let end = tail.file.as_ref().map_or(0, |f| f.bytes);
            assert!(tail.position <= end, "a record ends within its file");
            Self::check_open(&tail);
            tail.dirty = true;
            self.meters.appended(need, r.raw.into());
        }
        let (first, number) = (places.first().map_or(tail.number, |p| p.0), tail.number);
        let first = tail.parts.first_file(txn, first);
        assert!(first <= number, "the parts of a transaction come before its end");
        if records.last().is_some_and(|r| r.kind == RecordKind::Commit) {
            self.files.lock().committed(txn, first..=number);
        }
        assert!(room.next().is_none(), "room was reserved for just these records");
        debug_assert!(places.is_sorted(), "records come one after the other");
        Appended { sequence: tail.sequence, places }
    }

    /// Asserts that the bytes in memory reach from the begin of a block to where the next record
    /// goes.
    fn check_open(tail: &JournalTail) {
        assert!(tail.begin.is_multiple_of(BLOCK as u64), "whole blocks are written");
        assert_eq!(tail.begin + tail.open.len() as u64, tail.position, "what is open reaches to the tail");
    }

    fn begin_file(&self, tail: &mut JournalTail, file: Arc<JournalFile>, synced: u64) {
        if let Some(full) = tail.file.take()
            && tail.dirty
        {
            let bytes = std::mem::take(&mut tail.open);
            tail.full.push(PendingWrite { file: full, begin: tail.begin, bytes });
        }
        tail.number += 1;
        let head = FileHead {
            identity: self.identity,
            file: tail.number,
            bytes: file.bytes,
            sequence: tail.sequence + 1,
            previous: tail.previous,
            synced,
        };
        assert!(synced < head.sequence, "a record is durable only after it was appended");
        let mut files = self.files.lock();
        let is_other = |used: &Arc<JournalFile>| used.slot != file.slot;
        assert!(files.used.values().all(is_other), "a file that is needed is not written anew");
        let before = files.used.insert(tail.number, file.clone());
        assert!(before.is_none(), "a number of a file is used once");
        files.before.insert(tail.number, (tail.sequence, tail.previous));
        drop(files);
        tail.open = head.encode().to_vec();
        debug_assert_eq!(FileHead::decode(&tail.open), Some(head), "a head is read as it was written");
        (tail.begin, tail.position, tail.dirty, tail.file) = (0, FILE_HEAD as u64, true, Some(file));
    }

    /// Returns when all records up to `sequence` are durable. The first waiter writes for all.
    pub fn sync_to(&self, sequence: u64) -> Result<()> {
        while self.synced.load(Ordering::Acquire) < sequence {
            self.check_poison()?;
            if !self.leading.swap(true, Ordering::Acquire) {
                let done = if self.synced.load(Ordering::Acquire) < sequence { self.flush() } else { Ok(()) };
                self.leading.store(false, Ordering::Release);
                self.changed.notify_all();
                done?;
            } else {
                self.changed.wait_until(|| {
                    self.synced.load(Ordering::Acquire) >= sequence
                        || !self.leading.load(Ordering::Acquire)
                        || self.poison.get().is_some()
                });
            }
        }
        Ok(())
    }

    /// True when something is appended and not durable.
    pub fn has_unsynced(&self) -> bool {
        self.synced.load(Ordering::Acquire) < self.tail.lock().sequence
    }

    /// The sequence of the last record.
    pub fn last_sequence(&self) -> u64 {
        self.tail.lock().sequence
    }

    /// Up to where the journal is durable.
    pub fn synced_place(&self) -> TailPlace {
        *self.synced_place.lock()
    }

    /// Remembers why nothing may be written any more, and says it once.
    fn poisoned_by(&self, e: &StoreError) {
        if self.poison.set(Arc::new(e.clone())).is_ok() {
            snowmelt_io::notice(&format!("{e}; nothing is written from now on, reads go on"));
        }
    }

    fn check_poison(&self) -> Result<()> {
        match self.poison.get() {
            Some(cause) => Err(StoreError::poisoned(cause)),
            None => Ok(()),
        }
    }

    /// The leader's work. Any failure poisons the store: it is not known what the device has of the
    /// bytes written.
    fn flush(&self) -> Result<()> {
        let (pieces, end) = self.take_pieces();
        let begins = pieces.iter().any(|p| p.begin == 0);
        let mut unsynced = self.unsynced.lock();
        let begun = self.config.seams.clock.now_ns();
        let done = (|| {
            for p in pieces {
                let mut block = AlignedBuf::new(p.bytes.len().next_multiple_of(BLOCK));
                block[..p.bytes.len()].copy_from_slice(&p.bytes);
                if !unsynced.iter().any(|f| Arc::ptr_eq(f, &p.file)) {
                    unsynced.push(p.file.clone());
                }
                self.learn(block.len() as u64, || p.file.write(p.begin, &block))?;
                self.meters.wrote(block.len() as u64);
            }
            for f in &*unsynced {
                if !self.config.is_planted(Plant::SkipJournalSync) {
                    let begun_ns = self.config.seams.clock.now_ns();
                    f.sync()?;
                    let taken_ns = self.config.seams.clock.now_ns().saturating_sub(begun_ns);
                    self.writes.lock().flushed(taken_ns);
                }
            }
            self.look_after(&unsynced)?;
            unsynced.clear();
            {
                let mut place = self.synced_place.lock();
                assert!(place.sequence <= end.sequence, "the place up to which all is durable goes forward");
                *place = end;
            }
            if begins {
                // From now on a file that is not there is missed.
                self.block.switch(&self.meters.block_hold, &self.config.seams.clock, |block| {
                    block.clone().with_tail(end)
                })?;
            }
            let before = self.synced.swap(end.sequence, Ordering::Release);
            assert!(before <= end.sequence, "what is durable grows");
            self.meters.synced(end.sequence - before, self.config.seams.clock.now_ns() - begun);
            Ok(())
        })();
        done.inspect_err(|e| self.poisoned_by(e))
    }

    /// Writes so many bytes by `act`, and learns how long that takes.
    fn learn(&self, bytes: u64, act: impl FnOnce() -> Result<()>) -> Result<()> {
        let clock = &self.config.seams.clock;
        let begun_ns = clock.now_ns();
        let beside = self.writes.lock().started(bytes, begun_ns);
        let done = act();
        let now_ns = clock.now_ns();
        let mut writes = self.writes.lock();
        match &done {
            Ok(()) => drop(writes.finished(bytes, &beside, now_ns.saturating_sub(begun_ns), now_ns)),
            Err(_) => writes.failed(bytes),
        }
        done
    }

    /// Costs of writes to its files, as they are believed now.
    pub fn write_cost(&self) -> WriteCost {
        self.writes.lock().cost()
    }

    /// Notes that the super-block has its name.
    pub fn super_block_is_named(&self) {
        self.watch.super_block_is_named();
    }

    /// Looks whether what was just made durable will be found again: the super-block and the
    /// files that were written; all of them when that was some time ago.
    fn look_after(&self, written: &[Arc<JournalFile>]) -> Result<()> {
        if !self.watch.is_needed() {
            return Ok(());
        }
        if self.is_look_due() {
            return self.look();
        }
        self.watch.look_at_super_block()?;
        written.iter().try_for_each(|file| file.look())
    }

    /// True when all files have not been looked at for a while.
    pub fn is_look_due(&self) -> bool {
        /// A look takes microseconds.
        const PAUSE_NS: u64 = 10_000_000;
        let looked_ns = self.looked_ns.load(Ordering::Relaxed);
        self.watch.is_needed() && self.config.seams.clock.now_ns().saturating_sub(looked_ns) >= PAUSE_NS
    }

    /// An error when a file of the database no longer has its name.
    pub fn look(&self) -> Result<()> {
        if !self.watch.is_needed() {
            return Ok(());
        }
        self.watch.look()?;
        let files: Vec<Arc<JournalFile>> = {
            let files = self.files.lock();
            files.used.values().chain(&files.free).cloned().collect()
        };
        files.iter().try_for_each(|file| file.look())?;
        self.look_at_making()?;
        self.looked_ns.store(self.config.seams.clock.now_ns(), Ordering::Relaxed);
        Ok(())
    }

    /// Takes the bytes to be written, and the place at which they end.
    fn take_pieces(&self) -> (Vec<PendingWrite>, TailPlace) {
        let mut tail = self.tail.lock();
        let end = TailPlace { sequence: tail.sequence, file: tail.number, offset: tail.position };
        let mut pieces = std::mem::take(&mut tail.full);
        if tail.dirty
            && let Some(file) = tail.file.clone()
        {
            let keep_from = (tail.position / BLOCK as u64 * BLOCK as u64 - tail.begin) as usize;
            assert!(keep_from <= tail.open.len(), "the last block is in memory");
            Self::check_open(&tail);
            let rest = tail.open[keep_from..].to_vec();
            let bytes = std::mem::replace(&mut tail.open, rest);
            pieces.push(PendingWrite { file, begin: tail.begin, bytes });
            tail.begin += keep_from as u64;
            tail.dirty = false;
        }
        (pieces, end)
    }

    /// The first file that holds a record of a committed transaction after `txn`; beyond the last
    /// if there is none.
    pub fn first_file_after(&self, txn: u64) -> u64 {
        let tail = self.tail.lock();
        // The file that is being written may get such a record at any time.
        let next = if tail.file.is_some() { tail.number } else { tail.number + 1 };
        let files = self.files.lock();
        files.last_txn.iter().find(|(_, last)| **last > txn).map_or(next, |(file, _)| *file)
    }

    /// Sequence and checksum of the record before the first one of a file in use, or of the
    /// next file.
    pub fn before(&self, file: u64) -> (u64, u64) {
        let tail = self.tail.lock();
        let begun = self.files.lock().before.get(&file).copied();
        begun.unwrap_or((tail.sequence, tail.previous))
    }

    /// The first pinned file.
    pub fn first_pinned(&self) -> Option<u64> {
        self.files.lock().pinned.keys().next().copied()
    }

    /// Keeps files from `file` on until the pin is dropped.
    pub fn pin(self: &Arc<Self>, file: u64) -> FilePin {
        *self.files.lock().pinned.entry(file).or_insert(0) += 1;
        FilePin { journal: self.clone(), file }
    }

    /// Lets files before `first` be used again. Everything in them must be on its stripe, and
    /// the durable super-block must say so.
    pub fn recycle(&self, first: u64) {
        let current = {
            let tail = self.tail.lock();
            tail.file.as_ref().map(|_| tail.number)
        };
        let mut files = self.files.lock();
        let done: Vec<u64> =
            files.used.keys().copied().filter(|n| *n < first && Some(*n) != current).collect();
        for number in done {
            files.last_txn.remove(&number);
            files.before.remove(&number);
            let file = files.used.remove(&number).expect("just found");
            // Too small ones were the first of a young journal.
            files.free.push(file);
            self.meters.recycled();
        }
        drop(files);
        self.unpacked.lock().retain(|(file, ..)| *file >= first);
    }

    /// Bytes of the files in use, as far as they are written.
    pub fn bytes_in_use(&self) -> u64 {
        let (number, position, open) = {
            let tail = self.tail.lock();
            (tail.number, tail.position, tail.file.is_some())
        };
        let files = self.files.lock();
        files.used.iter().map(|(n, f)| if open && *n == number { position } else { f.bytes }).sum()
    }

    /// Bytes appended since the file `first` began.
    pub fn bytes_since(&self, first: u64) -> u64 {
        let (number, position, open) = {
            let tail = self.tail.lock();
            (tail.number, tail.position, tail.file.is_some())
        };
        let files = self.files.lock();
        files.used.range(first..).map(|(n, f)| if open && *n == number { position } else { f.bytes }).sum()
    }

    /// The files from `first` on that have something durable, with their numbers and its end.
    pub fn durable_files(&self, first: u64) -> Vec<(u64, Arc<JournalFile>, u64)> {
        let place = self.synced_place();
        let files = self.files.lock();
        let durable = files.used.iter().filter(|(n, _)| (first..=place.file).contains(*n));
        let end = |n: u64, file: &JournalFile| if n == place.file { place.offset } else { file.bytes };
        durable.map(|(n, file)| (*n, file.clone(), end(*n, file))).collect()
    }

    /// The unpacked payload of the record at a place.
    pub fn payload(&self, loc: Loc) -> Result<Arc<[u8]>> {
        /// Records kept unpacked.
        const KEPT: usize = 8;
        if let Some((.., payload)) =
            self.unpacked.lock().iter().find(|(f, o, _)| (*f, *o) == (loc.file, loc.offset))
        {
            return Ok(payload.clone());
        }
        let file = self.files.lock().used.get(&loc.file).cloned();
        let file = file.ok_or_else(|| self.damaged(loc.file, loc.offset, "the file is no longer kept"))?;
        let bytes = read_record(&file, loc.offset)?;
        // The file may have been used again since we asked for it: then it has sound records of
        // a later number, at the same places perhaps.
        let payload: Option<Arc<[u8]>> = record::decode(&bytes, self.identity)
            .filter(|(head, _)| head.file == loc.file)
            .and_then(|(head, stored)| record::unpack(&head, stored).map(Into::into));
        let payload = payload.ok_or_else(|| self.damaged(loc.file, loc.offset, "the record is damaged"))?;
        let mut unpacked = self.unpacked.lock();
        if unpacked.len() == KEPT {
            unpacked.remove(0);
        }
        unpacked.push((loc.file, loc.offset, payload.clone()));
        Ok(payload)
    }

    /// The error for a record that is not what it should be.
    pub fn damaged(&self, file: u64, offset: u64, why: &str) -> StoreError {
        let path = self.files.lock().used.get(&file).map(|f| f.path.clone());
        let path = path.unwrap_or_else(|| self.dir.join(format!("journal (file {file})")));
        StoreError::JournalDamaged { file: path, offset, why: why.into(), is_cuttable: false }
    }
}

/// Reads the record at `offset`, whole.
pub(crate) fn read_record(file: &JournalFile, offset: u64) -> Result<Vec<u8>> {
    assert!(offset.is_multiple_of(ALIGN as u64), "records are aligned");
    let begin = offset / BLOCK as u64 * BLOCK as u64;
    let skip = (offset - begin) as usize;
    let read = |blocks: usize| {
        let room = (file.bytes.saturating_sub(begin) as usize) / BLOCK;
        let mut buf = AlignedBuf::new(blocks.min(room) * BLOCK);
        file.read(begin, &mut buf).map(|()| buf)
    };
    let mut buf = read(2)?;
    if let Some(head) = buf.get(skip..).and_then(record::peek)
        && skip + Head::bytes(&head) > buf.len()
    {
        buf = read((skip + head.bytes()).div_ceil(BLOCK))?;
    }
    Ok(buf.get(skip..).unwrap_or_default().to_vec())
}

/// Keeps journal files from being used again.
pub(crate) struct FilePin {
    journal: Arc<Journal>,
    file: u64,
}

impl Drop for FilePin {
    fn drop(&mut self) {
        let mut files = self.journal.files.lock();
        let pins = files.pinned.get_mut(&self.file).expect("a file is pinned while a pin of it lives");
        assert!(*pins > 0, "a file is pinned as often as it is unpinned");
        *pins -= 1;
        if *pins == 0 {
            files.pinned.remove(&self.file);
        }
    }
}

impl std::fmt::Debug for FilePin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FilePin({})", self.file)
    }
}
