//! Files in memory whose power can be cut, for tests that acknowledged writes survive.
//!
//! Every write, change of length, sync and new file counts as a step. At a chosen step the
//! power goes: that step and all later ones fail. When the power is back, each file has its
//! synced content. The seed decides what it keeps of everything later:
//!
//! * nothing, all of it, or each sector of 512 bytes of each write on its own (so writes are
//!   torn and reach the disk in any order);
//! * the old or the new length, or one between;
//! * a file that was never synced may be gone.
//!
//! With a virtual clock the seed also decides the time of every request. So threads on the same
//! disk take turns in an order that the seed decides, and requests of one come between any two
//! requests of another. A write that was not answered when the power went may have reached the
//! disk in part. A sync makes durable what was written before it was asked for.

mod content;
mod file;
mod state;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use snowmelt_base::random::Random;

use crate::device::Device;
use crate::device::file::Access;
use crate::device::power::content::{Content, Keep};
use crate::device::power::file::PowerFile;
use crate::device::power::state::PowerState;
use crate::error::{IoError, IoErrorKind, Operation};
use crate::time::clock::Clock;

/// A disk full of files; clones are the same disk.
#[derive(Clone)]
pub struct PowerDisk {
    state: Arc<Mutex<PowerState>>,
    /// Virtual, or requests take no time.
    clock: Clock,
}

impl PowerDisk {
    /// An empty disk; `seed` decides what cuts leave.
    pub fn new(seed: u64) -> PowerDisk {
        PowerDisk::in_time(seed, &Clock::real())
    }

    /// An empty disk in `clock`'s time; when that is virtual its requests take a time that the seed
    /// decides.
    pub fn in_time(seed: u64, clock: &Clock) -> PowerDisk {
        let files = BTreeMap::new();
        let state =
            PowerState { files, random: Random(seed), delays: Random(!seed), ..PowerState::default() };
        PowerDisk { state: Arc::new(Mutex::new(state)), clock: clock.clone() }
    }

    /// Spends the time of a request: usually a short one, now and then one in which other threads
    /// get far.
    fn pass_time(&self) {
        if self.clock.is_virtual() {
            let mut state = self.state.lock();
            let scale = [1, 10, 100, 1000][state.delays.below(4) as usize];
            let ns = scale * (1 + state.delays.below(100));
            drop(state);
            self.clock.sleep_ns(ns);
        }
    }

    /// Opens a file of the disk.
    ///
    /// # Errors
    /// The file is there, or is not, against what `access` asks for; or the power is off.
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
            state.files.insert(path.to_path_buf(), Content::default());
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

    /// Has writes, new files and lengths fail with `errno` from the `n`th step from now on;
    /// syncs too unless the disk is full.
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

    /// Loses the `n`th write to a file from now on: it is acknowledged, and the file stays as
    /// it was.
    pub fn lose_write_in(&self, path: &Path, n: u64) {
        self.state.lock().losing = Some((path.to_path_buf(), n));
    }

    /// True while the write that is to be lost has not come.
    pub fn is_losing(&self) -> bool {
        self.state.lock().losing.is_some()
    }

    /// Gives it room for so many bytes, all files together: what would make a file longer than
    /// fits fails with ENOSPC.
    pub fn set_capacity(&self, bytes: u64) {
        self.state.lock().capacity = Some(bytes);
    }

    /// Bytes of all files together.
    pub fn used(&self) -> u64 {
        self.state.lock().used()
    }

    /// Ends all injected failures.
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

    /// A hash over all steps so far: file name, operation, offset, length. Equal runs have equal
    /// hashes.
    pub fn digest(&self) -> u64 {
        self.state.lock().digest
    }

    /// Removes a file, durably.
    pub fn remove(&self, path: &Path) {
        self.state.lock().files.remove(path);
    }

    /// Cuts the power now, if it is on, and switches it on again: the files have what was
    /// durable and some of the rest.
    pub fn power_on(&self) {
        let mut state = self.state.lock();
        state.begin_epoch();
        let keep = match state.random.below(4) {
            0 => Keep::Nothing,
            1 => Keep::All,
            _ => Keep::Some,
        };
        let PowerState { files, random, .. } = &mut *state;
        files.retain(|_, file| file.synced_once || keep == Keep::All || random.below(2) == 0);
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
        let file = Content { durable, now: bytes, synced_once: true, ..Content::default() };
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
