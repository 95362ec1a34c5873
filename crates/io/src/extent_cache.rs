//! A cache of immutable objects on the local disk: one folder with a data file of fixed slots and a
//! small index, shared by all processes of a machine.
//!
//! A get of an object, in steps:
//!
//! 1. *Hit.* The process's view of the index names a slot; when it does not, and the head of the
//!    index says that records have changed since, the view is brought up to date. The bytes are
//!    read, then the slot's record is read: if it still names the object in the same generation,
//!    the bytes are the object's. No lock is held. Pieces whose checksums this process has not
//!    seen right in this generation are verified; wrong ones give up the slot.
//! 2. *Miss.* The first thread of the process goes on, the others wait for its bytes.
//! 3. It takes the lock of the key, a kernel lock that ends with the process; while another process
//!    has it, that one is fetching, and is waited for. With the lock it looks again, as in 1.
//! 4. It fetches, holding no lock but that of the key.
//! 5. Under the lock of the index the clock's hand finds a slot, whose lock is taken; its record is
//!    emptied under a new generation.
//! 6. The bytes and their checksums are written into the slot.
//! 7. Under the lock of the index again, the record names the object, if the slot is still the
//!    writer's. Then the locks of slot and key are given back.
//!
//! Invariants:
//!
//! * A slot's bytes change only after its record has another generation. So a reader that finds
//!   the record unchanged afterwards has read bytes of its generation.
//! * A record names an object only after all of its bytes are written.
//! * All that is held is held by kernel locks: of a process killed anywhere, an empty slot is left.
//! * No hit waits for a lock that is held during a fetch, a write into a slot, or by another
//!   process.
//! * After a failure of its files the cache stands aside: bytes are fetched and not kept, hits go
//!   on, and nothing fails. On a full disk it goes on with the slots that have their room.
//!
//! Nothing is synced: after a power cut checksums tell which slots are whole.

mod aside;
mod counters;
mod data;
mod error;
mod flights;
mod header;
mod index;
mod index_file;
mod key;
mod locks;
mod making;
mod preamble;
mod record;
mod session;
#[cfg(test)]
mod tests;
mod view;

use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;

pub use self::counters::{CacheCounters, MachineTotals};
pub use self::error::CacheError;

use self::aside::StandAside;
use self::counters::{CacheTally, add};
use self::data::DataFile;
use self::flights::{FlightLead, Flights, Joined};
use self::index::ExtentIndex;
use self::key::KeyHash;
use self::locks::{HeldLock, LockPlace};
use self::making::open_cache;
use self::record::HeldObject;
use self::session::{IndexSession, TakenSlot};
use self::view::{CacheView, FoundSlot};
use crate::time::clock::Clock;
use crate::time::event_count::EventCount;

/// Bytes of the slots of [`ExtentCache::open`]: those of an extent.
pub const EXTENT_SLOT_BYTES: u32 = 2 << 20;

/// The longest wait for another process's fetch. Then the object is fetched a second time.
const FETCH_PATIENCE: Duration = Duration::from_secs(120);
/// How often a waiter looks whether another process has fetched.
const FETCH_POLL: Duration = Duration::from_millis(2);
/// Attempts to read an object that is found, but replaced before it was read.
const ATTEMPTS: usize = 4;

/// A cache of immutable objects on the local disk. A key must name the same bytes for ever.
pub struct ExtentCache {
    folder: PathBuf,
    index: ExtentIndex,
    data: DataFile,
    view: RwLock<CacheView>,
    flights: Flights,
    aside: StandAside,
    tally: CacheTally,
    clock: Clock,
    /// Waiters for other processes, which cannot notify it.
    elsewhere: EventCount,
}

/// The bytes of an object, from the cache or just fetched.
#[derive(Debug, Clone)]
pub struct CachedBytes(Arc<Vec<u8>>);

impl CachedBytes {
    /// The bytes; copied only while another thread that waited for them has them, too.
    pub fn into_vec(self) -> Vec<u8> {
        Arc::unwrap_or_clone(self.0)
    }
}

impl Deref for CachedBytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl ExtentCache {
    /// Opens the cache in `dir`, or makes folder and cache. Its files take at most `bytes`. A cache
    /// that has another size is grown, or cut, for all processes that have it open.
    ///
    /// # Errors
    /// `bytes` hold no extent; the folder holds something else, a cache of another format, or files
    /// of two caches; it cannot be written, or locked. Damage is no error: what is damaged is given
    /// up, and a notice says so when that is all.
    pub fn open(dir: &Path, bytes: u64) -> Result<Arc<ExtentCache>, CacheError> {
        ExtentCache::open_with_slots(dir, bytes, EXTENT_SLOT_BYTES)
    }

    /// As [`ExtentCache::open`], for objects of at most `slot_bytes`, a multiple of 32: each takes
    /// `slot_bytes` and 4 KiB.
    ///
    /// # Errors
    /// As [`ExtentCache::open`]; the cache that is there has another length of slots.
    pub fn open_with_slots(dir: &Path, bytes: u64, slot_bytes: u32) -> Result<Arc<ExtentCache>, CacheError> {
        let clock = Clock::real();
        let opened = open_cache(dir, bytes, slot_bytes, &clock)?;
        let cache = ExtentCache {
            folder: dir.to_path_buf(),
            index: opened.index,
            data: opened.data,
            view: RwLock::default(),
            flights: Flights::new(&clock),
            aside: StandAside::new(&clock),
            tally: CacheTally::default(),
            elsewhere: EventCount::named(&clock, "another process's fetch of an extent"),
            clock,
        };
        add(&cache.tally.damaged, opened.damaged);
        cache.in_session(|_, _| Ok(()));
        Ok(Arc::new(cache))
    }

    /// The object `key` of `len` bytes: from the cache, or from `fetch`, whose bytes are then kept.
    /// While another thread or process fetches it, that one is waited for; should it fail or die,
    /// `fetch` is called after all. `fetch` must not ask for the same key.
    ///
    /// Objects longer than a slot are fetched past the cache, as are fetched bytes of a length
    /// other than `len`, which the caller judges.
    ///
    /// # Errors
    /// Those of `fetch`. The cache has none.
    pub fn get<E>(
        &self,
        key: &str,
        len: u64,
        fetch: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<CachedBytes, E> {
        let key = KeyHash::of(key);
        let Some(object) = self.object(key, len) else { return self.pass(fetch) };
        loop {
            if let Some(bytes) = self.hit(object) {
                return Ok(bytes);
            }
            if self.flights.is_closed() {
                return self.pass(fetch);
            }
            match self.flights.join(key) {
                Joined::First(lead) => return self.lead(object, lead, fetch),
                Joined::Landed(bytes) => {
                    add(&self.tally.waits, 1);
                    return Ok(CachedBytes(bytes));
                }
                Joined::Again => {}
            }
        }
    }

    /// Reads bytes of an object from its byte `offset`, if the cache has it: the 64 KiB pieces they
    /// lie in for the first time, later on only these bytes. False, with `buf` in any state: the
    /// cache does not have it, or it ends before.
    pub fn read(&self, key: &str, offset: u64, buf: &mut [u8]) -> bool {
        let Some(end) = offset.checked_add(buf.len() as u64) else { return false };
        let key = KeyHash::of(key);
        let read = self.find_and(key, |found| end <= u64::from(found.object.len), offset, buf);
        if read {
            add(&self.tally.hits, 1);
            add(&self.tally.hit_bytes, buf.len() as u64);
        }
        read
    }

    /// Whether the cache has the object now. It may be gone a moment later.
    pub fn peek(&self, key: &str) -> bool {
        let key = KeyHash::of(key);
        for _ in 0..ATTEMPTS {
            let Some(found) = self.find(key) else { return false };
            match self.index.still_holds(&found) {
                Ok(true) => return true,
                _ => self.view.write().forget(&found),
            }
        }
        false
    }

    /// Ends all waits for the fetches of others: waiters fetch by themselves, and from now on
    /// objects that the cache lacks are fetched past it.
    pub fn close(&self) {
        self.flights.close();
        self.elsewhere.notify_all();
    }

    /// Most bytes of an object that is kept.
    pub fn slot_bytes(&self) -> u64 {
        u64::from(self.data.slot_bytes())
    }

    /// Counts of this process.
    pub fn counters(&self) -> CacheCounters {
        self.tally.counters()
    }

    /// Counts of all processes; zeros while the index is out of reach.
    pub fn machine_totals(&self) -> MachineTotals {
        let totals = self.in_session(|session, view| {
            let header = &session.header;
            Ok(MachineTotals {
                slots: u64::from(header.slots),
                objects: view.objects(),
                fetched: header.fetched,
                fetched_bytes: header.fetched_bytes,
                evictions: header.evictions,
                damaged: header.damaged,
            })
        });
        totals.unwrap_or_default()
    }

    /// The object, if it fits into a slot.
    fn object(&self, key: KeyHash, len: u64) -> Option<HeldObject> {
        let len = u32::try_from(len).ok().filter(|len| *len <= self.data.slot_bytes())?;
        Some(HeldObject { key, len })
    }

    /// Fetches past the cache.
    fn pass<E>(&self, fetch: impl FnOnce() -> Result<Vec<u8>, E>) -> Result<CachedBytes, E> {
        let bytes = fetch()?;
        add(&self.tally.passed, 1);
        add(&self.tally.fetched_bytes, bytes.len() as u64);
        Ok(CachedBytes(Arc::new(bytes)))
    }

    /// The whole object, if the cache has it.
    fn hit(&self, object: HeldObject) -> Option<CachedBytes> {
        let found = self.find(object.key).filter(|found| found.object == object)?;
        let mut bytes = vec![0; found.object.len as usize];
        let read = self.find_and(object.key, |found| found.object == object, 0, &mut bytes);
        read.then(|| {
            add(&self.tally.hits, 1);
            add(&self.tally.hit_bytes, bytes.len() as u64);
            CachedBytes(Arc::new(bytes))
        })
    }

    /// Finds the object, where it is `fit`, and reads bytes of it: step 1.
    fn find_and(&self, key: KeyHash, fit: impl Fn(&FoundSlot) -> bool, offset: u64, buf: &mut [u8]) -> bool {
        for _ in 0..ATTEMPTS {
            let Some(found) = self.find(key).filter(&fit) else { return false };
            let read = self.data.read(&found, offset, buf);
            // After the bytes: see the invariants.
            let holds = self.index.still_holds_for_reader(&found);
            match (read, holds) {
                (Ok(Some(pieces)), Ok(true)) => {
                    self.view.read().verify(&found, pieces);
                    return true;
                }
                (Ok(None) | Err(_), Ok(true)) => self.give_up(&found),
                (_, Ok(false)) => self.view.write().forget(&found),
                (_, Err(e)) => {
                    self.view.write().forget(&found);
                    self.aside.begin(&self.folder, &e);
                }
            }
        }
        false
    }

    /// Looks a key up in the view, and again in a newer one if records have changed since.
    fn find(&self, key: KeyHash) -> Option<FoundSlot> {
        let seen = {
            let view = self.view.read();
            if let Some(found) = view.find(key) {
                return Some(found);
            }
            view.times
        };
        if self.aside.is_aside() || self.index.times().is_ok_and(|now| now == seen) {
            return None;
        }
        self.in_session(|_, view| Ok(view.find(key))).flatten()
    }

    /// Gives up a slot whose bytes are wrong, or cannot be read.
    fn give_up(&self, found: &FoundSlot) {
        // Also when the index is out of reach.
        self.view.write().forget(found);
        if !self.aside.is_aside() {
            self.in_session(|session, view| {
                session.give_up(found)?;
                session.refresh(view)
            });
        } else {
            add(&self.tally.damaged, 1);
        }
    }

    /// Does something under the lock of the index, with a view that is up to date. `None`, and the
    /// cache stands aside, when that fails.
    fn in_session<'a, T>(
        &'a self,
        act: impl FnOnce(&mut IndexSession<'a>, &mut CacheView) -> io::Result<T>,
    ) -> Option<T> {
        let run = || {
            let mut session = IndexSession::begin(&self.index)?;
            let mut view = self.view.write();
            let done = session.refresh(&mut view).and_then(|()| act(&mut session, &mut view));
            add(&self.tally.damaged, session.damaged);
            done
        };
        run().inspect_err(|e| self.aside.begin(&self.folder, e)).ok()
    }

    /// Steps 3 to 7, for the first thread of the process.
    fn lead<E>(
        &self,
        object: HeldObject,
        lead: FlightLead<'_>,
        fetch: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<CachedBytes, E> {
        // Given back before the flight ends, with or without success: the next thread of this
        // process takes the lock on the same opening of the file.
        let (held, waited) = self.hold_key(object.key);
        if let Some(bytes) = self.hit(object) {
            add(&self.tally.waits, u64::from(waited));
            drop(held);
            lead.land(bytes.0.clone());
            return Ok(bytes);
        }
        let bytes = Arc::new(fetch()?);
        add(&self.tally.misses, 1);
        add(&self.tally.fetched_bytes, bytes.len() as u64);
        let is_expected = bytes.len() == object.len as usize;
        if !is_expected || self.aside.is_aside() || self.flights.is_closed() {
            add(&self.tally.passed, 1);
        } else {
            self.keep(object, &bytes);
        }
        drop(held);
        lead.land(bytes.clone());
        Ok(CachedBytes(bytes))
    }

    /// Takes the lock of a key, waiting while another process fetches the object; says whether it
    /// has waited. `None`: without the lock, after all.
    fn hold_key(&self, key: KeyHash) -> (Option<HeldLock<'_>>, bool) {
        let mut taken = HeldLock::try_take(&self.index.file, LockPlace::Key(key));
        if !matches!(taken, Ok(None)) {
            return (taken.ok().flatten(), false);
        }
        let until_ns = self.clock.now_ns() + FETCH_PATIENCE.as_nanos() as u64;
        self.elsewhere.wait_until_looking(FETCH_POLL, || {
            if matches!(taken, Ok(None)) {
                taken = HeldLock::try_take(&self.index.file, LockPlace::Key(key));
            }
            !matches!(taken, Ok(None)) || self.flights.is_closed() || self.clock.now_ns() > until_ns
        });
        (taken.ok().flatten(), true)
    }

    /// Steps 5 to 7. Without a free slot, or after a failure, the object is not kept.
    fn keep(&self, object: HeldObject, bytes: &[u8]) {
        let Some(taken) = self.in_session(|session, _| session.take()).flatten() else { return };
        add(&self.tally.evictions, u64::from(taken.evicts));
        if let Err(e) = self.data.write(taken.written.slot, object, taken.generation, bytes) {
            return self.not_written(&taken, &e);
        }
        self.in_session(|session, view| {
            if session.fill(&taken, object)? {
                session.refresh(view)
            } else {
                self.data.trim(session.header.slots)
            }
        });
    }

    /// On a full disk the cache is cut to the slots that have their room, and goes on with them;
    /// else it stands aside.
    fn not_written(&self, taken: &TakenSlot<'_>, why: &io::Error) {
        let is_full = matches!(why.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG));
        let slots = (is_full && taken.is_new).then(|| {
            self.in_session(|session, view| {
                let cut = session.cut(taken.written.slot)?;
                session.refresh(view)?;
                self.data.trim(session.header.slots)?;
                Ok(cut.then_some(session.header.slots))
            })
        });
        match slots.flatten().flatten() {
            Some(slots) => self.aside.tell_once(&format!(
                "{}: {why}: the extent cache keeps {slots} extents, for which there is room, until it is \
                 opened again",
                self.folder.display()
            )),
            None => self.aside.begin(&self.folder, why),
        }
    }
}
