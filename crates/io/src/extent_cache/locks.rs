//! The locks by which processes agree. All are on bytes of the index far beyond its end, of one
//! opening for each process, so the kernel drops them with it.
//!
//! | first byte | lock                                    | held for                           |
//! |------------|-----------------------------------------|------------------------------------|
//! | 0          | one byte for each key (60 bits of it)   | the fetch of the object            |
//! | 2^61       | one byte for each slot                  | the writing of its new bytes       |
//! | 2^62       | the index                               | a few reads and writes of its file |
//!
//! The locks of one opening do not exclude each other. Threads of a process agree before: on keys
//! by the table of flights, on the index by a mutex, on slots by the list of those being written.

use std::fs::File;
use std::io;

use super::key::KeyHash;
use crate::system::byte_lock::{try_lock_byte, unlock_byte};

/// See the head of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LockPlace {
    Key(KeyHash),
    Slot(u32),
    Index,
}

impl LockPlace {
    fn byte(self) -> u64 {
        match self {
            LockPlace::Key(key) => key.0 as u64 >> 4,
            LockPlace::Slot(slot) => (1 << 61) + u64::from(slot),
            LockPlace::Index => 1 << 62,
        }
    }
}

/// A lock that is held; dropped, it is given back.
pub(super) struct HeldLock<'a> {
    file: &'a File,
    place: LockPlace,
}

impl HeldLock<'_> {
    /// Takes a lock without waiting; `None`: another opening has it.
    pub fn try_take(file: &File, place: LockPlace) -> io::Result<Option<HeldLock<'_>>> {
        Ok(try_lock_byte(file, place.byte())?.then_some(HeldLock { file, place }))
    }
}

impl Drop for HeldLock<'_> {
    fn drop(&mut self) {
        // It can fail only where taking it would have; then it ends with the process.
        let _ = unlock_byte(self.file, self.place.byte());
    }
}
