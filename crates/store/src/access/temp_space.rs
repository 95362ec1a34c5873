//! Temporary space: bytes that a query puts aside because they do not fit into its memory.
//!
//! 1. The bytes lie in extents of the stripes that no map mentions, as those of a build do. After
//!    a crash they are free, because nothing says that they are not.
//! 2. They go through the stripes' queues, in classes of their own. So a sort does not delay a
//!    lookup, and its reads and writes are counted apart.
//! 3. Bytes are gathered and written 64 KiB at a time, in whole pages, as O_DIRECT demands. They
//!    are read back in any order, the pages around them with them.
//! 4. Offsets begin at 0. Byte `b` lies in the `b div extent`-th extent that was taken.
//! 5. The checksum of each page stays in memory, and is compared when the page is read.
//!
//! A database that is only read, or that lies in memory, has no room for such bytes: a file in
//! the system's directory of temporary files stands in, unlinked as soon as it is open.
//!
//! Invariant: dropping the space gives every extent back.

use std::fs::File;
use std::ops::{Deref, Range};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use snowmelt_io::{AlignedBuf, Class};
use twox_hash::XxHash3_64;

use crate::error::{Result, StoreError};
use crate::files::PRIVATE_FILE;
use crate::page::PAGE_BYTES;
use crate::page::geometry::{ExtentId, Place};
use crate::settings::opener::FileOpener;
use crate::store::Store;

/// Bytes that are written at a time.
const WRITE_BYTES: usize = 8 * PAGE_BYTES;

/// Extents for which the stripes are lengthened at a time.
const EXTENTS_AHEAD: u64 = 8;

/// See the head of the file. Shared by all that read and write it.
pub struct TempSpace {
    backing: Backing,
    /// Bytes that are on the device: whole pages.
    written: AtomicU64,
    /// Lower halves of the checksums of these pages.
    checksums: RwLock<Vec<u32>>,
    gathered: Mutex<Gathered>,
}

/// Bytes that follow those on the device.
struct Gathered {
    buffer: AlignedBuf,
    len: usize,
}

/// Bytes read from temporary space.
pub struct TempBytes {
    pages: AlignedBuf,
    range: Range<usize>,
}

impl Deref for TempBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.pages[self.range.clone()]
    }
}

enum Backing {
    Extents { store: Arc<Store>, taken: RwLock<Vec<ExtentId>> },
    File { path: PathBuf, file: File },
}

impl Store {
    /// Temporary space of nothing yet.
    ///
    /// # Errors
    /// The file that stands in for extents cannot be made.
    pub fn temp_space(self: &Arc<Self>) -> Result<TempSpace> {
        let in_memory = self.config.seams.files.as_ref().is_some_and(FileOpener::keeps_in_memory);
        let backing = match in_memory || self.config.is_read_only() {
            true => Backing::unlinked_file()?,
            false => Backing::Extents { store: self.clone(), taken: RwLock::default() },
        };
        Ok(TempSpace::from_backing(backing))
    }
}

impl Backing {
    fn unlinked_file() -> Result<Backing> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("snowmelt-{}-{number}.tmp", std::process::id()));
        let open = || {
            let mut options = File::options();
            options.read(true).write(true).create_new(true).mode(PRIVATE_FILE);
            let file = options.open(&path)?;
            std::fs::remove_file(&path)?;
            Ok(file)
        };
        let file = open().map_err(StoreError::file(&path, "make the temporary file"))?;
        Ok(Backing::File { path, file })
    }
}

impl TempSpace {
    /// Bytes of memory that a space takes.
    pub const BUFFER_BYTES: usize = WRITE_BYTES;

    fn from_backing(backing: Backing) -> TempSpace {
        let gathered = Gathered { buffer: AlignedBuf::new(0), len: 0 };
        TempSpace {
            backing,
            written: AtomicU64::new(0),
            checksums: RwLock::default(),
            gathered: Mutex::new(gathered),
        }
    }

    /// Appends bytes, given in parts, and returns where they begin.
    ///
    /// # Errors
    /// No room on the device, or a failed write; what was appended before stays.
    pub fn append(&self, parts: &[&[u8]]) -> Result<u64> {
        let mut gathered = self.gathered.lock();
        let begins = self.written.load(Ordering::Acquire) + gathered.len as u64;
        for part in parts {
            let mut rest = *part;
            while !rest.is_empty() {
                if gathered.buffer.is_empty() {
                    gathered.buffer = AlignedBuf::new(WRITE_BYTES);
                }
                let (from, room) = (gathered.len, WRITE_BYTES - gathered.len);
                let (now, later) = rest.split_at(rest.len().min(room));
                gathered.buffer[from..][..now.len()].copy_from_slice(now);
                gathered.len += now.len();
                rest = later;
                if gathered.len == WRITE_BYTES {
                    self.write_gathered(&mut gathered)?;
                }
            }
        }
        Ok(begins)
    }

    /// The `len` bytes from `at` on, which were appended.
    ///
    /// # Errors
    /// A failed read, or one that gives back other bytes than were written; a failed write, where
    /// the bytes were not on the device yet.
    pub fn read(&self, at: u64, len: usize) -> Result<TempBytes> {
        let end = at + len as u64;
        if end > self.written.load(Ordering::Acquire) {
            self.write_gathered(&mut self.gathered.lock())?;
        }
        assert!(end <= self.written.load(Ordering::Acquire), "what is read was appended");
        let page = PAGE_BYTES as u64;
        let (from, to) = (at / page * page, end.next_multiple_of(page));
        let mut pages = AlignedBuf::new((to - from) as usize);
        self.read_pages(from, &mut pages)?;
        self.compare(from, &pages)?;
        let begins = (at - from) as usize;
        Ok(TempBytes { pages, range: begins..begins + len })
    }

    /// Writes what is gathered, and zeros up to the end of its last page. What follows begins on
    /// a new page.
    fn write_gathered(&self, gathered: &mut Gathered) -> Result<()> {
        let len = gathered.len.next_multiple_of(PAGE_BYTES);
        if len == 0 {
            return Ok(());
        }
        let used = gathered.len;
        gathered.buffer[used..len].fill(0);
        let at = self.written.load(Ordering::Acquire);
        self.write_pages(at, &gathered.buffer[..len])?;
        gathered.len = 0;
        let mut checksums = self.checksums.write();
        assert_eq!(checksums.len() as u64 * PAGE_BYTES as u64, at, "a checksum for each page written");
        checksums.extend(gathered.buffer[..len].chunks_exact(PAGE_BYTES).map(checksum));
        drop(checksums);
        self.written.store(at + len as u64, Ordering::Release);
        Ok(())
    }

    /// An error where a page that was read is not as it was written.
    fn compare(&self, at: u64, pages: &[u8]) -> Result<()> {
        let first = (at / PAGE_BYTES as u64) as usize;
        let checksums = self.checksums.read();
        let mut known = pages.chunks_exact(PAGE_BYTES).zip(&checksums[first..]);
        match known.position(|(page, known)| checksum(page) != *known) {
            None => Ok(()),
            Some(page) => {
                let path = match &self.backing {
                    Backing::Extents { store, .. } => store.dir().to_owned(),
                    Backing::File { path, .. } => path.clone(),
                };
                Err(StoreError::TempChanged { path, offset: at + (page * PAGE_BYTES) as u64 })
            }
        }
    }

    fn write_pages(&self, at: u64, pages: &[u8]) -> Result<()> {
        match &self.backing {
            Backing::File { path, file } => {
                file.write_all_at(pages, at).map_err(StoreError::file(path, "write the temporary file"))
            }
            Backing::Extents { store, taken } => {
                self.reach(at + pages.len() as u64)?;
                let write = |place: Place, part| store.fetch.stripes.spill(place, &pages[part]);
                each_piece(store, &taken.read(), at, pages.len(), Class::SpillWrite, write)
            }
        }
    }

    fn read_pages(&self, at: u64, pages: &mut [u8]) -> Result<()> {
        match &self.backing {
            Backing::File { path, file } => {
                file.read_exact_at(pages, at).map_err(StoreError::file(path, "read the temporary file"))
            }
            Backing::Extents { store, taken } => {
                let len = pages.len();
                let read = |place: Place, part| store.fetch.stripes.read_spilled(place, &mut pages[part]);
                each_piece(store, &taken.read(), at, len, Class::SpillRead, read)
            }
        }
    }

    /// Takes extents for the bytes before `end`, with room for them on the stripes.
    fn reach(&self, end: u64) -> Result<()> {
        let Backing::Extents { store, taken } = &self.backing else { return Ok(()) };
        let wanted = end.div_ceil(store.geometry.extent_bytes()) as usize;
        let mut taken = taken.write();
        while taken.len() < wanted {
            let extent = store.fetch.core.space.write().allocate(1);
            // It is given back with the others, whatever comes of it.
            taken.push(extent);
            let ahead = (extent + 1).next_multiple_of(EXTENTS_AHEAD);
            store.commits.lengthen(extent + 1, ahead)?;
        }
        Ok(())
    }
}

fn checksum(page: &[u8]) -> u32 {
    XxHash3_64::oneshot(page) as u32
}

/// Moves each part of `len` bytes from `at` on to or from its place, and counts how long that took
/// for the query that waited.
fn each_piece(
    store: &Store,
    taken: &[ExtentId],
    at: u64,
    len: usize,
    class: Class,
    mut moved: impl FnMut(Place, Range<usize>) -> Result<()>,
) -> Result<()> {
    let fetch = &store.fetch;
    for (extent, offset, part) in pieces(store.geometry.extent_bytes(), taken, at, len) {
        let mut place = store.geometry.extent_place(extent);
        place.offset += offset;
        let (begun_ns, resets) = (fetch.clock.now_ns(), fetch.core.meters.resets());
        moved(place, part)?;
        // Most of it may have been before a reset.
        if fetch.core.meters.resets() == resets {
            fetch.waits.of_stripe(place.stripe, class, fetch.clock.now_ns() - begun_ns);
        }
    }
    Ok(())
}

/// The extents that hold `len` bytes from `at` on: offset within the extent, and the bytes' range.
fn pieces(
    extent_bytes: u64,
    taken: &[ExtentId],
    at: u64,
    len: usize,
) -> impl Iterator<Item = (ExtentId, u64, Range<usize>)> {
    let end = at + len as u64;
    let extents = at / extent_bytes..end.div_ceil(extent_bytes);
    extents.map(move |i| {
        let (from, to) = ((i * extent_bytes).max(at), ((i + 1) * extent_bytes).min(end));
        (taken[i as usize], from - i * extent_bytes, (from - at) as usize..(to - at) as usize)
    })
}

impl Drop for TempSpace {
    fn drop(&mut self) {
        let Backing::Extents { store, taken } = &mut self.backing else { return };
        let taken = std::mem::take(taken.get_mut());
        if taken.is_empty() {
            return;
        }
        let mut space = store.fetch.core.space.write();
        taken.into_iter().for_each(|extent| space.release(extent));
        drop(space);
        // Only to give the room back early; a checkpoint and the next open do it too.
        let _ = store.commits.set_lengths();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows that a sort put aside come back as they were, or the query ends with an error.
    #[test]
    fn bytes_that_changed_are_an_error() {
        let space = TempSpace::from_backing(Backing::unlinked_file().unwrap());
        let bytes: Vec<u8> = (0..3 * WRITE_BYTES + 100).map(|i| (i / 7) as u8).collect();
        assert_eq!(space.append(&[&bytes]).unwrap(), 0);
        assert_eq!(&*space.read(0, bytes.len()).unwrap(), &bytes[..]);
        let Backing::File { file, .. } = &space.backing else { unreachable!("made above") };
        let changed = (WRITE_BYTES + PAGE_BYTES) as u64;
        file.write_all_at(&[!bytes[changed as usize + 5]], changed + 5).unwrap();
        assert!(space.read(0, changed as usize).is_ok());
        let offset_of = |at, len| match space.read(at, len) {
            Err(StoreError::TempChanged { offset, .. }) => Some(offset),
            _ => None,
        };
        assert_eq!(offset_of(0, bytes.len()), Some(changed));
        assert_eq!(offset_of(changed + 10, 1), Some(changed));
        assert_eq!(offset_of(changed + PAGE_BYTES as u64, 1), None);
    }

    #[test]
    fn pieces_cover_every_byte_once() {
        let (extent, taken) = (64u64, [7u64, 3, 9, 4]);
        for (at, len) in [(0, 64), (0, 200), (60, 8), (64, 64), (100, 156), (0, 0)] {
            let found: Vec<_> = pieces(extent, &taken, at, len).collect();
            let all: Vec<usize> = found.iter().flat_map(|(_, _, part)| part.clone()).collect();
            assert_eq!(all, (0..len).collect::<Vec<_>>());
            for (id, offset, part) in found {
                let i = (at + part.start as u64) / extent;
                assert_eq!(id, taken[i as usize]);
                assert_eq!(i * extent + offset, at + part.start as u64);
                assert!(offset + part.len() as u64 <= extent);
            }
        }
    }
}
