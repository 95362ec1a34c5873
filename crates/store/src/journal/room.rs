//! Room in the journal: free files, and the making of new ones.
//!
//! A file is made in short steps: 1. opened, 2. filled with zeros, a piece per step, 3. synced, and
//! its directory, 4. *published*: only now its slot counts, and the super-block may be told of it.
//! Background work does a step at a time ([`Journal::prepare`]); a commit that needs room now does
//! those that are left ([`Journal::reserve`]). Background work fills in pieces, with pauses that
//! leave the device to commits; the nearer the end of the file in use, the shorter the pauses. One
//! file is made at a time, so slots are counted without a hole, and what a failure or a crash
//! leaves is the last slot's file, which no super-block mentions: it is made again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use snowmelt_io::{AlignedBuf, Haste, WriteCost};

use super::file::{BLOCK, JournalFile};
use super::record::{FILE_HEAD, Packed};
use super::{Journal, Room};
use crate::error::{Result, StoreError};
use crate::settings::config::Plant;
use crate::sync::long_lock::LongLock;

/// Bytes of the first file of a database: small, because many databases never need more.
const FIRST_FILE_BYTES: u64 = 1 << 20;
/// Most bytes that one step fills.
const PIECE_BYTES: u64 = 1 << 20;
/// Least length of a file that a commit waits for, and the time in which it is filled.
const AWAITED_BYTES: u64 = 256 << 10;
const AWAITED_NS: u64 = 50_000_000;
/// It has at least this part of what the journal has, so that a long journal has few files.
const AWAITED_PART: u64 = 32;
/// Pause after a file could not be made, before it is tried again ahead of need.
const AGAIN_NS: u64 = 1_000_000_000;

/// The file that is being made, and when to try again after a failure.
pub(super) struct Maker {
    making: LongLock<Option<Making>>,
    not_before_ns: AtomicU64,
}

/// How far a file is.
struct Making {
    file: JournalFile,
    /// Length it had, and will have.
    before: u64,
    bytes: u64,
    /// Filled so far.
    at: u64,
    /// When background work may go on.
    not_before_ns: u64,
    synced: bool,
    /// The slot's old file, which is too small: free again if this fails.
    small: Option<Arc<JournalFile>>,
}

/// How long a new file is to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Length {
    /// As configured; the first ones of a database are shorter.
    Usual,
    /// As `Usual`, but shorter where that would take long: a commit waits for it.
    Awaited,
    /// As short as will do.
    Least,
}

/// Whether making a file goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Made {
    /// There are steps left: the next in so many nanoseconds.
    Partly(u64),
    /// Nothing is under way.
    Wholly,
}

impl Maker {
    pub fn new(clock: &snowmelt_io::Clock) -> Maker {
        Maker {
            making: LongLock::new("the making of a journal file", None, clock),
            not_before_ns: AtomicU64::new(0),
        }
    }
}

impl Journal {
    /// Makes sure that these records can be appended. Only the writer whose turn it is may call
    /// this and append.
    ///
    /// Errors: the disk is full and no file is free; nothing has happened then.
    pub fn reserve(&self, records: &[Packed]) -> Result<Room> {
        let (mut position, mut bytes) = {
            let tail = self.tail.lock();
            (tail.position, tail.file.as_ref().map_or(0, |f| f.bytes))
        };
        let mut room = Room(Vec::new());
        for r in records {
            let need = r.record_bytes() as u64;
            if position + need > bytes {
                let file = match self.next_file(FILE_HEAD as u64 + need) {
                    Ok(file) => file,
                    Err(e) => {
                        self.give_back(room);
                        return Err(e);
                    }
                };
                (position, bytes) = (FILE_HEAD as u64, file.bytes);
                room.0.push(file);
            }
            assert!(position + need <= bytes, "a file takes the record it was made for");
            position += need;
        }
        Ok(room)
    }

    /// Gives back room that is not used.
    pub fn give_back(&self, room: Room) {
        self.files.lock().free.extend(room.0);
    }

    /// Cuts free files to nothing, the largest first, until those that are left have no more
    /// than `most` bytes together. Nothing in a free file is needed, so a crash may leave any
    /// length of it. What cannot be cut stays as it is: it is only longer than it need be.
    pub fn shrink(&self, most: u64) {
        loop {
            let mut files = self.files.lock();
            let free: u64 = files.free.iter().map(|f| f.bytes).sum();
            if free <= most {
                return;
            }
            let largest = (0..files.free.len()).max_by_key(|i| files.free[*i].bytes);
            let file = files.free.swap_remove(largest.expect("some bytes are of some file"));
            drop(files);
            let emptied = file.emptied();
            let failed = emptied.is_err();
            self.files.lock().free.push(emptied.map_or(file, Arc::new));
            if failed {
                return;
            }
        }
    }

    /// Bytes of the files in use, whole, and of those that are free.
    pub fn file_bytes(&self) -> (u64, u64) {
        let files = self.files.lock();
        (files.used.values().map(|f| f.bytes).sum(), files.free.iter().map(|f| f.bytes).sum())
    }

    /// Looks whether the file that is being made still has its name, unless that goes on just now.
    pub(super) fn look_at_making(&self) -> Result<()> {
        let making = self.maker.making.try_lock();
        let making = making.as_ref().and_then(|making| making.as_ref());
        making.map_or(Ok(()), |making| making.file.look())
    }

    /// Has a free file ready, so that no commit waits for one to be made: does one step of that.
    pub fn prepare(&self) -> Result<Made> {
        let half_full = {
            let tail = self.tail.lock();
            tail.file.as_ref().is_some_and(|f| tail.position > f.bytes / 2)
        };
        if !half_full || self.files.lock().free.iter().any(|f| f.bytes > 0) {
            return Ok(Made::Wholly);
        }
        if self.config.seams.clock.now_ns() < self.maker.not_before_ns.load(Ordering::Relaxed) {
            return Ok(Made::Wholly);
        }
        let mut making = self.maker.making.lock();
        let now_ns = self.config.seams.clock.now_ns();
        if let Some(m) = making.as_ref().filter(|m| m.not_before_ns > now_ns) {
            return Ok(Made::Partly(m.not_before_ns - now_ns));
        }
        let haste = self.making_haste();
        let least = self.config.journal.file_bytes.min(FIRST_FILE_BYTES);
        let made = self.make_step(&mut making, least, Length::Usual, haste)?;
        if let (Made::Partly(pause_ns), Some(m)) = (made, making.as_mut()) {
            m.not_before_ns = self.config.seams.clock.now_ns() + pause_ns;
        }
        Ok(made)
    }

    /// The share of the device's time for a file that is made ahead: all when the one in use is
    /// nearly full.
    fn making_haste(&self) -> Haste {
        if !self.learns() {
            return Haste::All;
        }
        let tail = self.tail.lock();
        let bytes = tail.file.as_ref().map_or(0, |f| f.bytes);
        Haste::to_be_over(1.0, (8 * bytes.saturating_sub(tail.position)) as f64 / bytes.max(1) as f64)
    }

    /// True when the pace at which files are made may follow what is learned of the device; false
    /// on simulated files, where a run follows from its seed alone.
    fn learns(&self) -> bool {
        self.config.seams.files.is_none()
    }

    /// A free file of at least `least` bytes, or a new one: of the usual length, or on a full
    /// disk as short as will do.
    fn next_file(&self, least: u64) -> Result<Arc<JournalFile>> {
        match self.next_file_of(least, Length::Awaited) {
            Err(StoreError::Full { .. }) => self.next_file_of(least, Length::Least),
            other => other,
        }
    }

    fn next_file_of(&self, least: u64, length: Length) -> Result<Arc<JournalFile>> {
        loop {
            if let Some(file) = self.take_free(least) {
                return Ok(file);
            }
            let mut making = self.maker.making.lock();
            // Another thread may have made one while this one waited.
            if let Some(file) = self.take_free(least) {
                return Ok(file);
            }
            while self.make_step(&mut making, least, length, Haste::All)? != Made::Wholly {}
        }
    }

    fn take_free(&self, least: u64) -> Option<Arc<JournalFile>> {
        let mut files = self.files.lock();
        let i = files.free.iter().position(|f| f.bytes >= least)?;
        Some(files.free.swap_remove(i))
    }

    /// The next step of making a file, one of at least `least` bytes if none is under way.
    fn make_step(
        &self,
        making: &mut Option<Making>,
        least: u64,
        length: Length,
        haste: Haste,
    ) -> Result<Made> {
        let step = match making {
            None => self.begin_making(least, length).map(|begun| {
                *making = Some(begun);
                0
            }),
            Some(m) if m.at < m.bytes => self.fill(m, haste),
            Some(m) if !m.synced => m.sync().and_then(|()| self.dir.sync()).map(|()| 0),
            Some(_) => {
                self.publish(making.take().expect("just looked at"));
                return Ok(Made::Wholly);
            }
        };
        match step {
            Ok(pause_ns) => Ok(Made::Partly(pause_ns)),
            Err(e) => {
                if let Some(m) = making.take() {
                    self.give_up(m);
                }
                self.maker
                    .not_before_ns
                    .store(self.config.seams.clock.now_ns() + AGAIN_NS, Ordering::Relaxed);
                if !e.is_passing() {
                    self.poisoned_by(&e);
                }
                Err(e)
            }
        }
    }

    /// Opens the file of the next slot, or of a slot whose file is too small.
    fn begin_making(&self, least: u64, length: Length) -> Result<Making> {
        let mut files = self.files.lock();
        let small = files.free.iter().position(|f| f.bytes < least);
        let small = small.map(|i| files.free.swap_remove(i));
        let slot = small.as_ref().map_or(files.slots, |f| f.slot);
        assert!(files.used.values().all(|f| f.slot != slot), "a file that is needed is not made again");
        if self.config.is_planted(Plant::CountSlotEarly) {
            files.slots = files.slots.max(slot + 1);
        }
        let largest = files.used.values().map(|f| f.bytes).max().unwrap_or(0);
        drop(files);
        let most = self.config.journal.file_bytes;
        let usual = match length {
            Length::Usual | Length::Awaited => (2 * largest).clamp(most.min(FIRST_FILE_BYTES), most),
            Length::Least => 0,
        };
        let usual = match length {
            Length::Awaited => usual.min(self.awaited_bytes()),
            _ => usual.min(self.ahead_bytes()),
        };
        let bytes = usual.max(least).next_multiple_of(BLOCK as u64);
        // A full disk is noticed before anything is written, and so is that there is no folder.
        let made = self.look().and_then(|()| JournalFile::create(&self.dir, slot, &self.config));
        let made = made.and_then(|file| {
            let before = file.bytes;
            file.lengthen(bytes).inspect_err(|_| drop(file.cut(before)))?;
            Ok((file, before))
        });
        match made {
            Ok((file, before)) => {
                Ok(Making { before, file, bytes, at: 0, not_before_ns: 0, synced: false, small })
            }
            Err(e) => {
                self.files.lock().free.extend(small);
                Err(e)
            }
        }
    }

    /// Length of a file that can be made while the second half of the one in use is written.
    fn ahead_bytes(&self) -> u64 {
        /// Files grow no faster than so many times.
        const GROWS: u64 = 4;
        let tail = self.tail.lock();
        tail.file.as_ref().map_or(u64::MAX, |f| (GROWS * f.bytes).max(FIRST_FILE_BYTES))
    }

    /// Length of a file that a commit waits for.
    fn awaited_bytes(&self) -> u64 {
        let cost = self.writes.lock().cost();
        let filled = match cost.flushes {
            0 => AWAITED_BYTES,
            _ => (u128::from(cost.bytes_per_s) * u128::from(AWAITED_NS) / 1_000_000_000) as u64,
        };
        let (used, _) = self.file_bytes();
        match self.learns() {
            true => filled.max(AWAITED_BYTES).max(used / AWAITED_PART),
            false => u64::MAX,
        }
    }

    /// Fills a piece; returns for how long the device is to be left alone.
    fn fill(&self, m: &mut Making, haste: Haste) -> Result<u64> {
        let clock = &self.config.seams.clock;
        let cost = self.writes.lock().cost();
        let most = match haste {
            Haste::All => PIECE_BYTES,
            Haste::Share(_) => PIECE_BYTES.min(cost.piece_bytes()),
        };
        let begun_ns = clock.now_ns();
        let piece = m.piece_bytes(most);
        self.learn(piece, || m.fill(piece))?;
        let taken_ns = clock.now_ns().saturating_sub(begun_ns);
        Ok(WriteCost::pause_ns(haste, cost.request_ns(piece), taken_ns))
    }

    /// The file is there, whole and durable: from now on its slot counts.
    fn publish(&self, made: Making) {
        assert!(made.synced && made.at == made.bytes, "a file counts when it is whole and durable");
        let Making { mut file, bytes, .. } = made;
        file.bytes = bytes;
        let mut files = self.files.lock();
        let is_other = |f: &Arc<JournalFile>| f.slot != file.slot;
        assert!(files.free.iter().chain(files.used.values()).all(is_other), "a slot has one file");
        files.slots = files.slots.max(file.slot + 1);
        files.free.push(Arc::new(file));
    }

    /// Gives back the room that was taken for a file, as far as the disk lets us.
    fn give_up(&self, making: Making) {
        let _ = making.file.cut(making.before);
        self.files.lock().free.extend(making.small);
    }
}

impl Making {
    /// Bytes of the next piece: several even of small files, so that a test can come between.
    fn piece_bytes(&self, most: u64) -> u64 {
        most.min((self.bytes / 4).next_multiple_of(BLOCK as u64)).min(self.bytes - self.at)
    }

    fn fill(&mut self, bytes: u64) -> Result<()> {
        assert!(self.at < self.bytes, "there is something to fill");
        assert!(self.at + bytes <= self.bytes, "a file is filled up to its length");
        assert!(!self.synced, "what is durable is not filled again");
        self.file.write(self.at, &AlignedBuf::new(bytes as usize))?;
        self.at += bytes;
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        self.file.sync()?;
        self.synced = true;
        Ok(())
    }
}
