//! The super-block: the one place that says which state of the database is the current one.
//!
//! File `superblock` in the database's directory: two slots of 8192 bytes, and a copy of both
//! 64 KiB behind ([`crate::superblock::file`]). A checkpoint with sequence s writes both copies
//! of slot s mod 2. What was committed after `txn` is in the journal.
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
//! | 100    | 4     | meta_form     | how the meta run is laid out ([`MetaForm`])        |
//! | 104    | 8     | before        | sequence of the record before that file's first    |
//! | 112    | 8     | previous      | checksum of that record                            |
//! | 120    | 8     | synced        | records up to this sequence are durable            |
//! | 128    | 8     | tail_file     | journal file that holds record `synced`; 0: unknown|
//! | 136    | 8     | tail_offset   | that file is there up to this byte at least        |
//! | 144    | 112   | reserved      | 0                                                  |
//! | 256    | –     | paths         | for each stripe: u16 length, UTF-8 path            |
//!
//! In format 3 the paths began at byte 128, and byte 100 was 0. A relative stripe path is
//! relative to the database's directory, so that a directory can be moved as a whole.

pub(crate) mod current;
pub(crate) mod file;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use twox_hash::XxHash3_64;

use crate::error::{Result, StoreError};
use crate::page::{PAGE_BYTES, PageId};

pub use crate::format::version::{FORMAT, OLDEST_FORMAT};
pub use crate::superblock::file::SuperBlockFile;

/// Name of the file.
pub const FILE_NAME: &str = "superblock";
/// Its name until the database is whole.
pub(crate) const UNFINISHED_NAME: &str = "superblock.making";
/// Bytes of a slot.
pub const SLOT_BYTES: usize = 8192;
/// First bytes of each slot after the checksum.
pub const MAGIC: [u8; 8] = *b"SNOWMELT";

/// Byte offsets of the fields, compared with docs/src/reference/format.md by a test.
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
    /// Layout of the meta run.
    pub const META_FORM: usize = 100;
    /// Sequence of the journal record before the first needed file.
    pub const BEFORE: usize = 104;
    /// Checksum of that record.
    pub const PREVIOUS: usize = 112;
    /// Journal records up to this sequence are durable.
    pub const SYNCED: usize = 120;
    /// Journal file with the last of these.
    pub const TAIL_FILE: usize = 128;
    /// Bytes that file has at least.
    pub const TAIL_OFFSET: usize = 136;
    /// Not used, 0.
    pub const RESERVED: usize = 144;
    /// Stripe paths.
    pub const PATHS: usize = 256;
    /// Stripe paths in format 3.
    pub const PATHS_3: usize = 128;
}

/// Where a record of the journal ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TailPlace {
    /// Of the record.
    pub sequence: u64,
    /// The file it is in, 0 when that is not known.
    pub file: u64,
    /// Its end in that file.
    pub offset: u64,
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
    /// How it is laid out.
    pub meta_form: MetaForm,
    /// Random number of the database: its journal carries it too.
    pub identity: u64,
    /// Number of the first journal file that may be needed.
    pub journal: u64,
    /// The record before the first one of that file: its sequence and checksum.
    pub before: (u64, u64),
    /// Records up to this sequence were durable when the state was written.
    pub synced: u64,
    /// The journal file that holds the last of them, 0 when that is not known, and up to which
    /// byte it must be there.
    pub tail_file: u64,
    /// See `tail_file`.
    pub tail_offset: u64,
    /// Journal files that were made.
    pub slots: u32,
    /// Stripe files, relative to the database's directory or absolute.
    pub stripes: Vec<PathBuf>,
}

/// How the meta run is laid out. The numbers are the file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum MetaForm {
    /// Catalog and extent map, whole: as format 3 wrote it.
    Whole = 0,
    /// Catalog and a directory of the map's segments, which lie in pages of their own.
    Segments = 1,
}

impl MetaForm {
    fn from_number(number: u32) -> Option<MetaForm> {
        [MetaForm::Whole, MetaForm::Segments].into_iter().find(|f| *f as u32 == number)
    }
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
        put32(&mut s, offset::META_FORM, self.meta_form as u32);
        put64(&mut s, offset::BEFORE, self.before.0);
        put64(&mut s, offset::PREVIOUS, self.before.1);
        put64(&mut s, offset::SYNCED, self.synced);
        put64(&mut s, offset::TAIL_FILE, self.tail_file);
        put64(&mut s, offset::TAIL_OFFSET, self.tail_offset);
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
    pub(crate) fn decode(s: &[u8; SLOT_BYTES]) -> std::result::Result<SuperBlock, Unusable> {
        if s[offset::MAGIC..offset::MAGIC + 8] != MAGIC {
            return Err(if s.iter().all(|b| *b == 0) { Unusable::Empty } else { Unusable::NoMagic });
        }
        // Before the format: a flipped bit there does not make another version.
        if get64(s, offset::CHECKSUM) != XxHash3_64::oneshot(&s[offset::MAGIC..]) {
            return Err(Unusable::Checksum);
        }
        let format = get32(s, offset::FORMAT);
        if !(OLDEST_FORMAT..=FORMAT).contains(&format) {
            return Err(Unusable::Format(format));
        }
        let old = format == 3;
        let later = |at| if old { 0 } else { get64(s, at) };
        let bytes = get64(s, offset::META_BYTES);
        let meta = (bytes > 0).then(|| MetaRun {
            first: PageId(get64(s, offset::META_PAGE)),
            bytes,
            checksum: get64(s, offset::META_CHECKSUM),
        });
        let paths = if old { offset::PATHS_3 } else { offset::PATHS };
        let stripes =
            decode_paths(s, paths, get32(s, offset::STRIPES)).ok_or(Unusable::Nonsense("stripe paths"))?;
        let extent_pages = get32(s, offset::EXTENT_PAGES);
        if get32(s, offset::PAGE_BYTES) != PAGE_BYTES as u32 || extent_pages == 0 || stripes.is_empty() {
            return Err(Unusable::Nonsense("sizes"));
        }
        let meta_form = MetaForm::from_number(get32(s, offset::META_FORM));
        Ok(SuperBlock {
            extent_pages,
            sequence: get64(s, offset::SEQUENCE),
            txn: get64(s, offset::TXN),
            extents: get64(s, offset::EXTENTS),
            meta,
            meta_form: meta_form.ok_or(Unusable::Nonsense("form of the meta run"))?,
            identity: get64(s, offset::IDENTITY),
            journal: get64(s, offset::JOURNAL).max(1),
            slots: get32(s, offset::SLOTS),
            before: (get64(s, offset::BEFORE), get64(s, offset::PREVIOUS)),
            synced: get64(s, offset::SYNCED),
            tail_file: later(offset::TAIL_FILE),
            tail_offset: later(offset::TAIL_OFFSET),
            stripes,
        })
    }
}

impl SuperBlock {
    /// This state, which also says that the journal is there up to `place`. Never moves the tail
    /// backwards.
    pub(crate) fn with_tail(self, place: TailPlace) -> SuperBlock {
        if place.sequence <= self.synced {
            return self;
        }
        SuperBlock { synced: place.sequence, tail_file: place.file, tail_offset: place.offset, ..self }
    }
}

/// The version of the file format that a sound slot was written in.
pub(crate) fn format_of(s: &[u8; SLOT_BYTES]) -> u32 {
    get32(s, offset::FORMAT)
}

/// Why a slot cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unusable {
    #[error("it was never written")]
    Empty,
    #[error("it does not begin as a super-block does")]
    NoMagic,
    #[error("it is of format {0}")]
    Format(u32),
    #[error("its checksum is wrong")]
    Checksum,
    #[error("its {0} make no sense")]
    Nonsense(&'static str),
}

fn decode_paths(s: &[u8; SLOT_BYTES], mut at: usize, n: u32) -> Option<Vec<PathBuf>> {
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
