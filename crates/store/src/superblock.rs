//! The super-block: the one place that says which state of the database is the current one.
//!
//! File `superblock` in the database's directory: two slots of 8192 bytes. A commit with sequence s writes slot s mod 2 and syncs it, so
//! the state before it survives a torn write. Opening takes the valid slot with the higher sequence. What was committed after `txn` is in the journal.
//!
//! | offset | bytes | field         | meaning                                            |
//! |--------|-------|---------------|----------------------------------------------------|
//! | 0      | 8     | checksum      | XXH3-64 of bytes 8..8192 of the slot               |
//! | 8      | 8     | magic         | `SNOWMELT`                                         |
//! | 16     | 4     | format        | version of the file format                         |
//! | 20     | 4     | page_bytes    | 8192                                               |
//! | 24     | 4     | extent_pages  | pages in an extent                                 |
//! | 28     | 4     | stripes       | number of stripes                                  |
//! | 32     | 8     | sequence      | number of the commit that wrote the slot           |
//! | 40     | 8     | txn           | last transaction the state contains                |
//! | 48     | 8     | extents       | extents in the extent map                          |
//! | 56     | 8     | meta_page     | first page of the meta run                         |
//! | 64     | 8     | meta_bytes    | bytes of the meta run; 0: no run, an empty database|
//! | 72     | 8     | meta_checksum | XXH3-64 of those bytes                             |
//! | 80     | 8     | identity      | random number of the database                      |
//! | 88     | 8     | journal       | first journal file that may be needed              |
//! | 96     | 4     | slots         | journal files that were made                       |
//! | 100    | 4     | reserved      | 0                                                  |
//! | 104    | 8     | before        | sequence of the record before that file's first    |
//! | 112    | 8     | previous      | checksum of that record                            |
//! | 120    | 8     | synced        | records up to this sequence are durable            |
//! | 128    | –     | paths         | for each stripe: u16 length, UTF-8 path            |
//!
//! A relative stripe path is relative to the database's directory, so that a directory can be moved as a whole.

use std::io::{IoSlice, IoSliceMut};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use snowmelt_io::{Access, Device};
use twox_hash::XxHash3_64;

use crate::error::{Result, StoreError};
use crate::opener::{self, Caching, FileOpener};
use crate::page::{PAGE_BYTES, PageId};

/// Name of the file.
pub const FILE_NAME: &str = "superblock";
/// Bytes of a slot.
pub const SLOT_BYTES: usize = 8192;
/// First bytes of each slot after the checksum.
pub const MAGIC: [u8; 8] = *b"SNOWMELT";
/// Version of the file format this program reads and writes.
pub const FORMAT: u32 = 3;

/// Byte offsets of the fields, compared with docs/format.md by a test.
pub mod offset {
    /// XXH3-64 of the rest of the slot.
    pub const CHECKSUM: usize = 0;
    /// `SNOWMELT`.
    pub const MAGIC: usize = 8;
    /// Format version.
    pub const FORMAT: usize = 16;
    /// Bytes in a page.
    pub const PAGE_BYTES: usize = 20;
    /// Pages in an extent.
    pub const EXTENT_PAGES: usize = 24;
    /// Number of stripes.
    pub const STRIPES: usize = 28;
    /// Commit number.
    pub const SEQUENCE: usize = 32;
    /// Last transaction.
    pub const TXN: usize = 40;
    /// Extents in the map.
    pub const EXTENTS: usize = 48;
    /// First page of the meta run.
    pub const META_PAGE: usize = 56;
    /// Bytes of the meta run.
    pub const META_BYTES: usize = 64;
    /// Checksum of the meta run.
    pub const META_CHECKSUM: usize = 72;
    /// Random number of the database.
    pub const IDENTITY: usize = 80;
    /// First journal file needed.
    pub const JOURNAL: usize = 88;
    /// Journal files made.
    pub const SLOTS: usize = 96;
    /// Not used, 0.
    pub const RESERVED: usize = 100;
    /// Sequence of the journal record before the first needed file.
    pub const BEFORE: usize = 104;
    /// Checksum of that record.
    pub const PREVIOUS: usize = 112;
    /// Journal records up to this sequence are durable.
    pub const SYNCED: usize = 120;
    /// Stripe paths.
    pub const PATHS: usize = 128;
}

/// The contents of a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuperBlock {
    /// Pages in an extent.
    pub extent_pages: u32,
    /// Number of the commit that wrote this state.
    pub sequence: u64,
    /// Last transaction this state contains.
    pub txn: u64,
    /// Extents in the map.
    pub extents: u64,
    /// Where the meta run is; `None` in an empty database.
    pub meta: Option<MetaRun>,
    /// Random number of the database: its journal carries it too.
    pub identity: u64,
    /// Number of the first journal file that may be needed.
    pub journal: u64,
    /// The record before the first one of that file: its sequence and checksum.
    pub before: (u64, u64),
    /// Records up to this sequence were durable when the state was written.
    pub synced: u64,
    /// Journal files that were made.
    pub slots: u32,
    /// Stripe files, relative to the database's directory or absolute.
    pub stripes: Vec<PathBuf>,
}

/// Where the meta run (trees, extent map, catalog) is: consecutive pages of consecutive extents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetaRun {
    /// First page.
    pub first: PageId,
    /// Bytes, over the bodies of the pages.
    pub bytes: u64,
    /// XXH3-64 of the bytes.
    pub checksum: u64,
}

impl SuperBlock {
    /// The slot's bytes. Fails when the stripe paths do not fit.
    pub fn encode(&self) -> Result<[u8; SLOT_BYTES]> {
        let mut s = [0; SLOT_BYTES];
        let meta = self.meta.unwrap_or(MetaRun { first: PageId(0), bytes: 0, checksum: 0 });
        s[offset::MAGIC..offset::MAGIC + 8].copy_from_slice(&MAGIC);
        put32(&mut s, offset::FORMAT, FORMAT);
        put32(&mut s, offset::PAGE_BYTES, PAGE_BYTES as u32);
        put32(&mut s, offset::EXTENT_PAGES, self.extent_pages);
        put32(&mut s, offset::STRIPES, self.stripes.len() as u32);
        put64(&mut s, offset::SEQUENCE, self.sequence);
        put64(&mut s, offset::TXN, self.txn);
        put64(&mut s, offset::EXTENTS, self.extents);
        put64(&mut s, offset::META_PAGE, meta.first.0);
        put64(&mut s, offset::META_BYTES, meta.bytes);
        put64(&mut s, offset::META_CHECKSUM, meta.checksum);
        put64(&mut s, offset::IDENTITY, self.identity);
        put64(&mut s, offset::JOURNAL, self.journal);
        put32(&mut s, offset::SLOTS, self.slots);
        put64(&mut s, offset::BEFORE, self.before.0);
        put64(&mut s, offset::PREVIOUS, self.before.1);
        put64(&mut s, offset::SYNCED, self.synced);
        let mut at = offset::PATHS;
        for path in &self.stripes {
            let text = path
                .to_str()
                .ok_or_else(|| StoreError::Config(format!("stripe path {} is not UTF-8", path.display())))?;
            if at + 2 + text.len() > SLOT_BYTES {
                return Err(StoreError::Config("the stripe paths are too long together".into()));
            }
            s[at..at + 2].copy_from_slice(&(text.len() as u16).to_le_bytes());
            s[at + 2..at + 2 + text.len()].copy_from_slice(text.as_bytes());
            at += 2 + text.len();
        }
        let sum = XxHash3_64::oneshot(&s[offset::MAGIC..]);
        put64(&mut s, offset::CHECKSUM, sum);
        Ok(s)
    }

    /// Reads a slot whatever its checksum, which is made right: for fuzzing.
    pub(crate) fn decode_unsealed(s: &mut [u8; SLOT_BYTES]) -> Option<SuperBlock> {
        let sum = XxHash3_64::oneshot(&s[offset::MAGIC..]);
        put64(s, offset::CHECKSUM, sum);
        Self::decode(s).ok()
    }

    /// Reads a slot; the error says why it cannot be used.
    fn decode(s: &[u8; SLOT_BYTES]) -> std::result::Result<SuperBlock, Unusable> {
        if s[offset::MAGIC..offset::MAGIC + 8] != MAGIC {
            return Err(Unusable::NoMagic);
        }
        let format = get32(s, offset::FORMAT);
        if format != FORMAT {
            return Err(Unusable::Format(format));
        }
        if get64(s, offset::CHECKSUM) != XxHash3_64::oneshot(&s[offset::MAGIC..]) {
            return Err(Unusable::Checksum);
        }
        let bytes = get64(s, offset::META_BYTES);
        let meta = (bytes > 0).then(|| MetaRun {
            first: PageId(get64(s, offset::META_PAGE)),
            bytes,
            checksum: get64(s, offset::META_CHECKSUM),
        });
        let stripes = decode_paths(s, get32(s, offset::STRIPES)).ok_or(Unusable::Nonsense("stripe paths"))?;
        let extent_pages = get32(s, offset::EXTENT_PAGES);
        if get32(s, offset::PAGE_BYTES) != PAGE_BYTES as u32 || extent_pages == 0 || stripes.is_empty() {
            return Err(Unusable::Nonsense("sizes"));
        }
        Ok(SuperBlock {
            extent_pages,
            sequence: get64(s, offset::SEQUENCE),
            txn: get64(s, offset::TXN),
            extents: get64(s, offset::EXTENTS),
            meta,
            identity: get64(s, offset::IDENTITY),
            journal: get64(s, offset::JOURNAL).max(1),
            slots: get32(s, offset::SLOTS),
            before: (get64(s, offset::BEFORE), get64(s, offset::PREVIOUS)),
            synced: get64(s, offset::SYNCED),
            stripes,
        })
    }
}

/// Why a slot cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unusable {
    NoMagic,
    Format(u32),
    Checksum,
    Nonsense(&'static str),
}

fn decode_paths(s: &[u8; SLOT_BYTES], n: u32) -> Option<Vec<PathBuf>> {
    let mut at = offset::PATHS;
    let mut paths = Vec::new();
    for _ in 0..n {
        let len = u16::from_le_bytes(s.get(at..at + 2)?.try_into().ok()?) as usize;
        let text = std::str::from_utf8(s.get(at + 2..at + 2 + len)?).ok()?;
        paths.push(PathBuf::from(text));
        at += 2 + len;
    }
    Some(paths)
}

fn put32(s: &mut [u8], at: usize, v: u32) {
    s[at..at + 4].copy_from_slice(&v.to_le_bytes());
}
fn put64(s: &mut [u8], at: usize, v: u64) {
    s[at..at + 8].copy_from_slice(&v.to_le_bytes());
}
fn get32(s: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(s[at..at + 4].try_into().expect("four bytes"))
}
fn get64(s: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(s[at..at + 8].try_into().expect("eight bytes"))
}

/// The open super-block file.
pub struct SuperBlockFile {
    path: PathBuf,
    device: Arc<dyn Device>,
}

impl SuperBlockFile {
    /// Makes the file without a state: it becomes a database's with the first [`SuperBlockFile::write`].
    pub fn create(dir: &Path, opener: Option<&FileOpener>) -> Result<Self> {
        let path = dir.join(FILE_NAME);
        let device = match opener::open(opener, &path, Access::CreateNew, Caching::Buffered) {
            Err(e) if e.errno() == Some(libc::EEXIST) => {
                return Err(StoreError::Exists { path: dir.to_path_buf() });
            }
            other => other.map_err(StoreError::device(&path, "create the super-block"))?,
        };
        let this = SuperBlockFile { path, device };
        this.device
            .set_len(2 * SLOT_BYTES as u64)
            .map_err(StoreError::device(&this.path, "extend the super-block"))?;
        Ok(this)
    }

    /// Opens the file and reads the newest valid state. The last value tells what is worth a line in the log.
    pub fn open(dir: &Path, opener: Option<&FileOpener>) -> Result<(Self, SuperBlock, Option<String>)> {
        Self::open_as(dir, Access::ReadWrite, opener)
    }

    /// Reads the newest valid state of a database that others may have open.
    pub fn peek(dir: &Path) -> Result<SuperBlock> {
        Ok(Self::open_as(dir, Access::Read, None)?.1)
    }

    fn open_as(
        dir: &Path,
        access: Access,
        opener: Option<&FileOpener>,
    ) -> Result<(Self, SuperBlock, Option<String>)> {
        let path = dir.join(FILE_NAME);
        let device = match opener::open(opener, &path, access, Caching::Buffered) {
            Err(e) if opener::is_missing(&e) => {
                let why = if dir.is_dir() { "it has no super-block" } else { "no such directory" };
                return Err(StoreError::NotADatabase { path: dir.to_path_buf(), why: why.into() });
            }
            other => other.map_err(StoreError::device(&path, "open the super-block"))?,
        };
        let this = SuperBlockFile { path, device };
        let slots = [this.read_slot(0)?, this.read_slot(1)?];
        let (block, notice) = this.choose(&slots)?;
        Ok((this, block, notice))
    }

    /// A slot's bytes; what lies beyond the end of the file reads as zero and so is not valid.
    fn read_slot(&self, slot: u64) -> Result<[u8; SLOT_BYTES]> {
        let mut s = [0; SLOT_BYTES];
        let fail = StoreError::device(&self.path, "read the super-block");
        let begin = slot * SLOT_BYTES as u64;
        let there = match self.device.len() {
            Ok(len) => len.saturating_sub(begin).min(SLOT_BYTES as u64) as usize,
            Err(e) => return Err(fail(e)),
        };
        self.device.read_at(&mut [IoSliceMut::new(&mut s[..there])], begin).map_err(fail)?;
        Ok(s)
    }

    fn choose(&self, slots: &[[u8; SLOT_BYTES]; 2]) -> Result<(SuperBlock, Option<String>)> {
        match (SuperBlock::decode(&slots[0]), SuperBlock::decode(&slots[1])) {
            (Ok(a), Ok(b)) => Ok((if a.sequence > b.sequence { a } else { b }, None)),
            (Ok(a), Err(why)) => Ok((a, self.notice(&slots[1], why))),
            (Err(why), Ok(b)) => Ok((b, self.notice(&slots[0], why))),
            (Err(a), Err(b)) => Err(self.neither(a, b)),
        }
    }

    /// A slot that was never written is all zero and needs no mention.
    fn notice(&self, slot: &[u8; SLOT_BYTES], why: Unusable) -> Option<String> {
        slot.iter().any(|b| *b != 0).then(|| {
            format!(
                "{}: one of the two states is unusable ({why:?}); opened the other one",
                self.path.display()
            )
        })
    }

    fn neither(&self, a: Unusable, b: Unusable) -> StoreError {
        let path = self.path.clone();
        match (a, b) {
            (Unusable::Format(found), _) | (_, Unusable::Format(found)) => {
                StoreError::Format { path, found, expected: FORMAT }
            }
            (Unusable::NoMagic, Unusable::NoMagic) => {
                let why = "it has no state: not a super-block, or of a copy that was not finished";
                StoreError::NotADatabase { path, why: why.into() }
            }
            _ => StoreError::Corrupt { path, why: format!("both states are unusable ({a:?}, {b:?})") },
        }
    }

    /// Writes the state into its slot and syncs it. When this returns, the state is the one that opens.
    pub fn write(&self, block: &SuperBlock) -> Result<()> {
        let slot = block.sequence % 2;
        self.device
            .write_at(&[IoSlice::new(&block.encode()?)], slot * SLOT_BYTES as u64)
            .map_err(StoreError::device(&self.path, "write the super-block"))?;
        self.device.sync().map_err(StoreError::device(&self.path, "sync the super-block"))
    }
}

impl std::fmt::Debug for SuperBlockFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SuperBlockFile({})", self.path.display())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{File, OpenOptions};
    use std::os::unix::fs::FileExt;

    use super::*;

    fn block(sequence: u64) -> SuperBlock {
        SuperBlock {
            extent_pages: 8,
            sequence,
            txn: sequence * 10,
            extents: 3,
            meta: Some(MetaRun { first: PageId(16), bytes: 100, checksum: 7 }),
            identity: 99,
            journal: sequence + 1,
            slots: 2,
            before: (sequence, 5),
            synced: sequence + 3,
            stripes: vec!["data-0".into(), "/other/disk/data-1".into()],
        }
    }

    fn create(dir: &Path, first: &SuperBlock) -> SuperBlockFile {
        let f = SuperBlockFile::create(dir, None).unwrap();
        f.write(first).unwrap();
        f
    }

    fn raw(dir: &Path) -> File {
        OpenOptions::new().read(true).write(true).open(dir.join(FILE_NAME)).unwrap()
    }

    #[test]
    fn states_alternate_and_the_newest_opens() {
        let dir = tempfile::tempdir().unwrap();
        let f = create(dir.path(), &block(0));
        for s in 1..5 {
            f.write(&block(s)).unwrap();
            let (_, b, notice) = SuperBlockFile::open(dir.path(), None).unwrap();
            assert_eq!((b, notice), (block(s), None));
        }
    }

    #[test]
    fn a_torn_write_at_any_sector_leaves_the_old_state() {
        let dir = tempfile::tempdir().unwrap();
        let long = |s: u64| {
            let name = char::from(b'a' + s as u8).to_string().repeat(SLOT_BYTES - 200);
            SuperBlock { stripes: vec![name.into()], ..block(s) }
        };
        let f = create(dir.path(), &long(0));
        f.write(&long(1)).unwrap();
        let new = long(2).encode().unwrap();
        let old = long(0).encode().unwrap();
        for cut in (512..SLOT_BYTES).step_by(512) {
            let mut torn = old;
            torn[..cut].copy_from_slice(&new[..cut]);
            raw(dir.path()).write_all_at(&torn, 0).unwrap();
            let (_, b, _) = SuperBlockFile::open(dir.path(), None).unwrap();
            assert_eq!(b, long(1), "cut at {cut}");
        }
    }

    #[test]
    fn half_a_new_slot_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let f = create(dir.path(), &block(0));
        f.write(&block(1)).unwrap();
        raw(dir.path()).write_all_at(&block(2).encode().unwrap()[..20], 0).unwrap();
        let (_, b, notice) = SuperBlockFile::open(dir.path(), None).unwrap();
        assert_eq!(b, block(1));
        assert!(notice.unwrap().contains("superblock"));
    }

    #[test]
    fn unusable_files_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let open = || SuperBlockFile::open(dir.path(), None).unwrap_err();
        assert!(matches!(open(), StoreError::NotADatabase { .. }));
        std::fs::write(dir.path().join(FILE_NAME), b"hello").unwrap();
        assert!(matches!(open(), StoreError::NotADatabase { .. }));
        std::fs::remove_file(dir.path().join(FILE_NAME)).unwrap();
        SuperBlockFile::create(dir.path(), None).unwrap();
        assert!(matches!(open(), StoreError::NotADatabase { .. }), "a copy that was not finished");
        std::fs::remove_file(dir.path().join(FILE_NAME)).unwrap();
        create(dir.path(), &block(0));
        raw(dir.path()).write_all_at(&9u32.to_le_bytes(), offset::FORMAT as u64).unwrap();
        assert!(matches!(open(), StoreError::Format { found: 9, expected: FORMAT, .. }));
        raw(dir.path()).write_all_at(&FORMAT.to_le_bytes(), offset::FORMAT as u64).unwrap();
        raw(dir.path()).write_all_at(b"x", 40).unwrap();
        assert!(matches!(open(), StoreError::Corrupt { .. }));
        assert!(matches!(SuperBlockFile::create(dir.path(), None).unwrap_err(), StoreError::Exists { .. }));
    }

    #[test]
    fn paths_that_do_not_fit_are_refused() {
        let mut b = block(0);
        b.stripes = vec!["x".repeat(5000).into(), "y".repeat(4000).into()];
        assert!(matches!(b.encode(), Err(StoreError::Config(_))));
    }
}
