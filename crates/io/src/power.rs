//! Files in memory whose power can be cut: for proving that what was acknowledged survives.
//!
//! Every write, change of length, sync and new file counts as a step. At a chosen step the power goes: that step and all later ones
//! fail, and when the power is back each file has what was synced and, of everything since, what the seed decides:
//!
//! * nothing, all of it, or each sector of 512 bytes of each write on its own (so writes are torn and reach the disk in any order);
//! * the old or the new length, or one between;
//! * a file that was never synced may be gone.
//!
//! With a virtual clock every request takes a time that the seed decides, from when it is made until it is answered. So threads on the
//! same disk take turns in an order that the seed decides, and what one of them does comes between any two requests of another. A write
//! that was not answered when the power went may have reached the disk in part; a sync makes durable what was written before it was asked for.

use std::collections::BTreeMap;
use std::io::{IoSlice, IoSliceMut};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use crate::clock::Clock;
use crate::cost::CostModel;
use crate::device::Device;
use crate::error::{IoError, IoErrorKind, Operation};
use crate::file::Access;

/// Smallest part of a write that is all there or not at all.
const SECTOR: usize = 512;

/// A disk full of files; clones are the same disk.
#[derive(Clone)]
pub struct PowerDisk {
    state: Arc<Mutex<State>>,
    /// Virtual, or requests take no time.
    clock: Clock,
}

#[derive(Default)]
struct State {
    files: BTreeMap<PathBuf, File>,
    random: u64,
    /// Decides how long requests take.
    delays: u64,
    steps: u64,
    /// Over everything asked so far.
    digest: u64,
    /// The step at which the power goes.
    cut_at: Option<u64>,
    off: bool,
    /// Times the power came back. Who opened a file before that is a process that is no more.
    epoch: u64,
    /// Steps from which on writes fail, with which error.
    failing: Option<(u64, i32)>,
    /// The file whose steps fail: how its path ends, how many are left before that, and the error.
    failing_file: Option<(String, u64, i32)>,
    /// Bytes of all files together that there is room for.
    capacity: Option<u64>,
    /// Reads done so far, and the one that fails.
    reads: u64,
    failing_read: Option<u64>,
    /// The file one of whose writes gets lost, and how many go well before it.
    losing: Option<(PathBuf, u64)>,
}

#[derive(Default, Clone)]
struct File {
    now: Vec<u8>,
    durable: Vec<u8>,
    /// Since the last sync.
    changes: Vec<Change>,
    /// Changes made durable so far.
    synced: u64,
    synced_once: bool,
}

#[derive(Clone)]
enum Change {
    Write(u64, Vec<u8>),
    Len(u64),
}

impl PowerDisk {
    /// An empty disk; `seed` decides what cuts leave.
    pub fn new(seed: u64) -> PowerDisk {
        PowerDisk::in_time(seed, &Clock::real())
    }

    /// The same; when `clock` is virtual its requests take a time that the seed decides.
    pub fn in_time(seed: u64, clock: &Clock) -> PowerDisk {
        let files = BTreeMap::new();
        let state = State { files, random: seed, delays: !seed, ..State::default() };
        PowerDisk { state: Arc::new(Mutex::new(state)), clock: clock.clone() }
    }

    /// Lets the time of a request pass: usually short, now and then so long that others do much meanwhile.
    fn pass_time(&self) {
        if self.clock.is_virtual() {
            let mut state = self.state.lock();
            let scale = [1, 10, 100, 1000][below(&mut state.delays, 4) as usize];
            let ns = scale * (1 + below(&mut state.delays, 100));
            drop(state);
            self.clock.sleep_ns(ns);
        }
    }

    /// Opens a file of the disk.
    pub fn open(&self, path: &Path, access: Access) -> Result<Arc<dyn Device>, IoError> {
        let name: Arc<str> = path.display().to_string().into();
        let fail = |errno| IoError {
            device: name.clone(),
            operation: Operation::Open,
            offset: 0,
            len: 0,
            kind: IoErrorKind::Os { errno },
        };
        let mut state = self.state.lock();
        let there = state.files.contains_key(path);
        match access {
            Access::Read | Access::ReadWrite if !there => return Err(fail(libc::ENOENT)),
            Access::CreateNew if there => return Err(fail(libc::EEXIST)),
            _ => {}
        }
        if !there {
            state.step(&name, Operation::Open, 0, 0)?;
            state.files.insert(path.to_path_buf(), File::default());
        }
        let epoch = state.epoch;
        drop(state);
        self.pass_time();
        if self.is_off() {
            return Err(fail(libc::EIO));
        }
        Ok(Arc::new(PowerFile { disk: self.clone(), path: path.to_path_buf(), name, epoch }))
    }

    /// Makes the names of all files durable, as a sync of their directories would.
    pub fn sync_names(&self) {
        self.state.lock().files.values_mut().for_each(|f| f.synced_once = true);
    }

    /// Has the power go at the `n`th step from now (0: the next).
    pub fn cut_in(&self, n: u64) {
        let mut state = self.state.lock();
        state.cut_at = Some(state.steps + n);
    }

    /// Has writes, new files and lengths fail with `errno` from the `n`th step from now on; syncs too unless the disk is full.
    pub fn fail_in(&self, n: u64, errno: i32) {
        let mut state = self.state.lock();
        state.failing = Some((state.steps + n, errno));
    }

    /// Has the steps of the file of this name fail with `errno`, from its `n`th from now on.
    pub fn fail_file_in(&self, name: &str, n: u64, errno: i32) {
        self.state.lock().failing_file = Some((name.to_string(), n, errno));
    }

    /// Has one read fail with EIO, the `n`th from now.
    pub fn fail_read_in(&self, n: u64) {
        let mut state = self.state.lock();
        state.failing_read = Some(state.reads + n);
    }

    /// Loses the `n`th write to a file from now on: it is acknowledged, and the file stays as it was.
    pub fn lose_write_in(&self, path: &Path, n: u64) {
        self.state.lock().losing = Some((path.to_path_buf(), n));
    }

    /// True while the write that is to be lost has not come.
    pub fn is_losing(&self) -> bool {
        self.state.lock().losing.is_some()
    }

    /// Gives it room for so many bytes, all files together: what would make a file longer than fits fails with ENOSPC.
    pub fn set_capacity(&self, bytes: u64) {
        self.state.lock().capacity = Some(bytes);
    }

    /// Bytes of all files together.
    pub fn used(&self) -> u64 {
        self.state.lock().used()
    }

    /// Ends the failing.
    pub fn heal(&self) {
        let mut state = self.state.lock();
        (state.failing, state.failing_read, state.failing_file) = (None, None, None);
    }

    /// Reads done so far.
    pub fn reads(&self) -> u64 {
        self.state.lock().reads
    }

    /// True when the power is off.
    pub fn is_off(&self) -> bool {
        self.state.lock().off
    }

    /// Steps done so far.
    pub fn steps(&self) -> u64 {
        self.state.lock().steps
    }

    /// A number over all steps so far: which file (its last name), what, where, how much. Runs that asked for the same have the same.
    pub fn digest(&self) -> u64 {
        self.state.lock().digest
    }

    /// Removes a file, durably.
    pub fn remove(&self, path: &Path) {
        self.state.lock().files.remove(path);
    }

    /// Cuts the power now, if it is on, and switches it on again: the files have what was durable and some of the rest.
    pub fn power_on(&self) {
        let mut state = self.state.lock();
        state.begin_epoch();
        let keep = match state.below(4) {
            0 => Keep::Nothing,
            1 => Keep::All,
            _ => Keep::Some,
        };
        let State { files, random, .. } = &mut *state;
        files.retain(|_, file| file.synced_once || keep == Keep::All || below(random, 2) == 0);
        files.values_mut().for_each(|file| file.lose(keep, random));
    }

    /// Begins anew after the death of the process alone: what was written stays.
    pub fn restore_power(&self) {
        self.state.lock().begin_epoch();
    }

    /// The bytes of a file, to look at or to damage.
    pub fn bytes(&self, path: &Path) -> Option<Vec<u8>> {
        self.state.lock().files.get(path).map(|f| f.now.clone())
    }

    /// Puts other bytes in place of a file's.
    pub fn set_bytes(&self, path: &Path, bytes: Vec<u8>) {
        let durable = bytes.clone();
        let file = File { durable, now: bytes, synced_once: true, ..File::default() };
        self.state.lock().files.insert(path.to_path_buf(), file);
    }

    /// The files there are.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.state.lock().files.keys().cloned().collect()
    }

    /// Another disk with the same files.
    pub fn copy(&self, seed: u64) -> PowerDisk {
        let copy = PowerDisk::new(seed);
        copy.state.lock().files = self.state.lock().files.clone();
        copy
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    Nothing,
    All,
    Some,
}

impl State {
    fn begin_epoch(&mut self) {
        (self.off, self.cut_at) = (false, None);
        self.epoch += 1;
    }

    /// Counts a step, or fails.
    fn step(&mut self, name: &Arc<str>, operation: Operation, offset: u64, len: u64) -> Result<(), IoError> {
        let fail =
            |errno| IoError { device: name.clone(), operation, offset, len, kind: IoErrorKind::Os { errno } };
        let file = name.rsplit('/').next().expect("a split has a first part");
        let mut hash = digest(self.digest, file.as_bytes());
        for part in [operation as u64, offset, len] {
            hash = digest(hash, &part.to_le_bytes());
        }
        self.digest = hash;
        if self.cut_at.is_some_and(|at| self.steps >= at) {
            self.off = true;
        }
        if self.off {
            return Err(fail(libc::EIO));
        }
        self.steps += 1;
        if let Some((of, left, errno)) = &mut self.failing_file
            && of == file
        {
            if *left == 0 {
                return Err(fail(*errno));
            }
            *left -= 1;
        }
        match self.failing {
            Some((_, libc::ENOSPC)) if operation == Operation::Sync => Ok(()),
            Some((from, errno)) if self.steps > from => Err(fail(errno)),
            _ => Ok(()),
        }
    }

    /// True of the write that is to be lost.
    fn loses(&mut self, path: &Path) -> bool {
        match &mut self.losing {
            Some((file, 0)) if file == path => self.losing.take().is_some(),
            Some((file, left)) if file == path => {
                *left -= 1;
                false
            }
            _ => false,
        }
    }

    fn below(&mut self, n: u64) -> u64 {
        below(&mut self.random, n)
    }

    fn used(&self) -> u64 {
        self.files.values().map(|f| f.now.len() as u64).sum()
    }

    /// True when there is no room for a file to be `len` bytes long.
    fn is_full(&self, path: &Path, len: u64) -> bool {
        let now = self.files.get(path).map_or(0, |f| f.now.len() as u64);
        self.capacity.is_some_and(|most| len > now && self.used() + len - now > most)
    }
}

/// FNV-1a, gone on with.
fn digest(so_far: u64, bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(so_far ^ 0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3))
}

fn below(random: &mut u64, n: u64) -> u64 {
    *random = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *random;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)) % n.max(1)
}

impl File {
    /// What is left of the file after a power cut.
    fn lose(&mut self, keep: Keep, random: &mut u64) {
        let mut left = std::mem::take(&mut self.durable);
        let longest = left.len().max(self.now.len());
        let changes = std::mem::take(&mut self.changes);
        self.synced += changes.len() as u64;
        let shrunk = changes.iter().any(|c| matches!(c, Change::Len(len) if (*len as usize) < left.len()));
        let len = match keep {
            Keep::Nothing => left.len(),
            Keep::All => self.now.len(),
            Keep::Some if shrunk => [left.len(), self.now.len()][below(random, 2) as usize],
            Keep::Some => left.len() + below(random, (longest - left.len() + 1) as u64) as usize,
        };
        left.resize(longest, 0);
        for change in changes {
            let Change::Write(offset, bytes) = change else { continue };
            for (i, sector) in bytes.chunks(SECTOR).enumerate() {
                let at = offset as usize + i * SECTOR;
                let kept = keep == Keep::All || (keep == Keep::Some && below(random, 2) == 0);
                if kept && at + sector.len() <= left.len() {
                    left[at..at + sector.len()].copy_from_slice(sector);
                }
            }
        }
        left.truncate(len);
        left.resize(len, 0);
        self.now = left.clone();
        self.durable = left;
        self.synced_once = true;
    }

    /// Changes made so far.
    fn changes_made(&self) -> u64 {
        self.synced + self.changes.len() as u64
    }

    /// Makes the first so many changes durable.
    fn sync(&mut self, made: u64) {
        let n = made.saturating_sub(self.synced).min(self.changes.len() as u64);
        self.synced += n;
        for change in self.changes.drain(..n as usize) {
            match change {
                Change::Len(len) => self.durable.resize(len as usize, 0),
                Change::Write(offset, bytes) => write(&mut self.durable, offset, &bytes),
            }
        }
        self.synced_once = true;
    }
}

fn write(to: &mut Vec<u8>, offset: u64, bytes: &[u8]) {
    let (from, end) = (offset as usize, offset as usize + bytes.len());
    if to.len() < end {
        to.resize(end, 0);
    }
    to[from..end].copy_from_slice(bytes);
}

/// A file of a [`PowerDisk`].
struct PowerFile {
    disk: PowerDisk,
    path: PathBuf,
    name: Arc<str>,
    /// In which it was opened.
    epoch: u64,
}

impl PowerFile {
    /// Calls `f` with the file; an error when the power is off, or was since it was opened, or the
    /// file went with it.
    fn with<T>(&self, operation: Operation, f: impl FnOnce(&mut File) -> T) -> Result<T, IoError> {
        let mut state = self.state(operation)?;
        let off = state.off;
        let file = state.files.get_mut(&self.path).filter(|_| !off);
        file.map(f).ok_or_else(|| self.gone(operation))
    }

    /// The disk, if the power has been on since the file was opened.
    fn state(&self, operation: Operation) -> Result<MutexGuard<'_, State>, IoError> {
        let state = self.disk.state.lock();
        if state.epoch == self.epoch { Ok(state) } else { Err(self.gone(operation)) }
    }

    fn gone(&self, operation: Operation) -> IoError {
        let kind = IoErrorKind::Os { errno: libc::EIO };
        IoError { device: self.name.clone(), operation, offset: 0, len: 0, kind }
    }

    fn full(&self, operation: Operation, offset: u64, len: u64) -> IoError {
        IoError {
            device: self.name.clone(),
            operation,
            offset,
            len,
            kind: IoErrorKind::Os { errno: libc::ENOSPC },
        }
    }

    /// Lets the time of a request pass; an error when the power went meanwhile.
    fn answered(&self, operation: Operation) -> Result<(), IoError> {
        self.disk.pass_time();
        self.with(operation, |_| ())
    }

    fn step(&self, operation: Operation, len: u64) -> Result<(), IoError> {
        self.state(operation)?.step(&self.name, operation, 0, len)
    }
}

impl Device for PowerFile {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn len(&self) -> Result<u64, IoError> {
        self.with(Operation::Length, |f| f.now.len() as u64)
    }

    fn set_len(&self, len: u64) -> Result<(), IoError> {
        if self.len()? == len {
            return Ok(());
        }
        self.step(Operation::Length, len)?;
        if self.disk.state.lock().is_full(&self.path, len) {
            return Err(self.full(Operation::Length, 0, len));
        }
        self.with(Operation::Length, |f| {
            f.now.resize(len as usize, 0);
            f.changes.push(Change::Len(len));
        })?;
        self.answered(Operation::Length)
    }

    fn read_at(&self, bufs: &mut [IoSliceMut<'_>], offset: u64) -> Result<(), IoError> {
        let mut state = self.disk.state.lock();
        state.reads += 1;
        if state.failing_read == Some(state.reads - 1) {
            let (len, kind) =
                (bufs.iter().map(|b| b.len() as u64).sum(), IoErrorKind::Os { errno: libc::EIO });
            return Err(IoError { device: self.name.clone(), operation: Operation::Read, offset, len, kind });
        }
        drop(state);
        self.disk.pass_time();
        self.with(Operation::Read, |f| {
            let asked: usize = bufs.iter().map(|b| b.len()).sum();
            let mut rest = f.now.get(offset as usize..).unwrap_or_default();
            if rest.len() < asked {
                let got = rest.len() as u64;
                return Err(IoError::short(&self.name, Operation::Read, offset, asked as u64, got));
            }
            for buf in bufs {
                let (now, later) = rest.split_at(buf.len());
                buf.copy_from_slice(now);
                rest = later;
            }
            Ok(())
        })?
    }

    fn write_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Result<(), IoError> {
        let bytes = bufs.iter().map(|b| &b[..]).collect::<Vec<_>>().concat();
        let mut state = self.state(Operation::Write)?;
        if state.is_full(&self.path, offset + bytes.len() as u64) {
            return Err(self.full(Operation::Write, offset, bytes.len() as u64));
        }
        let was_off = state.off;
        let stepped = state.step(&self.name, Operation::Write, offset, bytes.len() as u64);
        if stepped.is_ok() && state.loses(&self.path) {
            return Ok(());
        }
        // The write that the cut hits may reach the disk in part.
        if (stepped.is_ok() || (state.off && !was_off))
            && let Some(f) = state.files.get_mut(&self.path)
        {
            write(&mut f.now, offset, &bytes);
            f.changes.push(Change::Write(offset, bytes));
        }
        drop(state);
        stepped?;
        self.answered(Operation::Write)
    }

    fn sync(&self) -> Result<(), IoError> {
        self.step(Operation::Sync, 0)?;
        let made = self.with(Operation::Sync, |f| f.changes_made())?;
        self.disk.pass_time();
        self.with(Operation::Sync, |f| f.sync(made))
    }

    fn cost(&self) -> CostModel {
        CostModel::memory()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_write_is_acknowledged() {
        let disk = PowerDisk::new(1);
        let [f, other] = ["f", "g"].map(|n| disk.open(Path::new(n), Access::CreateNew).unwrap());
        put(&*f, 0, 1, 1024).unwrap();
        disk.lose_write_in(Path::new("f"), 1);
        put(&*f, 0, 2, 512).unwrap();
        put(&*other, 0, 2, 512).unwrap();
        assert!(disk.is_losing());
        put(&*f, 512, 3, 512).unwrap();
        assert!(!disk.is_losing());
        f.sync().unwrap();
        let bytes = disk.bytes(Path::new("f")).unwrap();
        assert_eq!((bytes[0], bytes[512], bytes.len()), (2, 1, 1024));
    }

    fn put(d: &dyn Device, offset: u64, byte: u8, n: usize) -> Result<(), IoError> {
        d.write_at(&[IoSlice::new(&vec![byte; n])], offset)
    }

    #[test]
    fn what_was_synced_stays_and_the_rest_may_go() {
        let path = Path::new("f");
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..200 {
            let disk = PowerDisk::new(seed);
            let f = disk.open(path, Access::CreateNew).unwrap();
            put(&*f, 0, 1, 1024).unwrap();
            f.sync().unwrap();
            disk.cut_in(1);
            put(&*f, 512, 2, 1024).unwrap();
            assert!(put(&*f, 0, 3, 512).is_err());
            assert!(f.sync().is_err() && disk.is_off());
            disk.power_on();
            let bytes = disk.bytes(path).unwrap();
            assert!((1024..=1536).contains(&bytes.len()));
            assert!(bytes[0] == 1 || bytes[0] == 3);
            assert!(bytes[512] == 1 || bytes[512] == 2);
            seen.insert((bytes[0], bytes[512], bytes.len() > 1024));
        }
        assert!(seen.len() >= 6, "{seen:?}");
    }

    #[test]
    fn what_was_opened_before_the_power_went_is_dead() {
        let (disk, path) = (PowerDisk::new(1), Path::new("f"));
        for back in [PowerDisk::power_on, PowerDisk::restore_power] {
            let f = disk.open(path, Access::CreateNew).unwrap();
            put(&*f, 0, 1, 512).unwrap();
            f.sync().unwrap();
            back(&disk);
            assert!(put(&*f, 0, 2, 512).is_err() && f.set_len(0).is_err() && f.sync().is_err());
            assert!(f.read_at(&mut [IoSliceMut::new(&mut [0; 512])], 0).is_err());
            assert_eq!(disk.bytes(path).unwrap(), [1; 512]);
            put(&*disk.open(path, Access::ReadWrite).unwrap(), 0, 2, 512).unwrap();
            disk.remove(path);
        }
    }

    #[test]
    fn a_file_never_synced_may_be_gone() {
        let gone = (0..50).filter(|seed| {
            let disk = PowerDisk::new(*seed);
            disk.open(Path::new("f"), Access::CreateNew).unwrap();
            disk.power_on();
            disk.open(Path::new("f"), Access::ReadWrite).is_err()
        });
        assert!((5..45).contains(&gone.count()));
    }
}
