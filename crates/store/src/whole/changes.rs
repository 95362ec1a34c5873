//! The changes of a database since a copy of it, in one file; and the head that says which state
//! of which database a copy is.
//!
//! | offset | bytes | field         | meaning                                                    |
//! |--------|-------|---------------|------------------------------------------------------------|
//! | 0      | 8     | checksum      | XXH3-64 of bytes 8..8192                                   |
//! | 8      | 8     | magic         | `SNOWCOPY`                                                 |
//! | 16     | 4     | form          | 2                                                          |
//! | 20     | 4     | extent_pages  | pages in an extent                                         |
//! | 24     | 8     | identity      | of the database that was copied                            |
//! | 32     | 8     | base          | seal of the part this builds on                            |
//! | 40     | 8     | txn           | the state is as of this transaction                        |
//! | 48     | 8     | unix_s        | when it was made, seconds since 1970                       |
//! | 56     | 8     | pages         | pages that follow at byte 8192                             |
//! | 64     | 8     | tail_bytes    | bytes of the tail after them                               |
//! | 72     | 8     | tail_checksum | XXH3-64 of the tail                                        |
//! | 80     | 8     | lineage       | of the state                                               |
//! | 88     | 8     | base_lineage  | of the state this builds on                                |
//! | 96     | 8     | base_txn      | that state is as of this transaction                       |
//! | 104    | 8     | set           | random number of the set                                   |
//! | 112    | 8     | number        | of the part in the set, from 1                             |
//! | 120    | 8072  | reserved      | 0                                                          |
//!
//! The tail has the id of each page (u64, ascending), the catalog, the number of extents (u64)
//! and the segments of the extent map as a checkpoint writes them, each after its length (u32).
//! A copy that is whole is a database. In sets of form 1, which had no manifest, it has such a head
//! without pages in a file beside it, and the fields from byte 80 on are 0.
//!
//! Which pages changed is known without reading them: map and version table say which
//! transaction each was written with, and so does the map of the copy before. Extents in which
//! nothing changed are not read. The head is written last, so that what a cut leaves is none.

use std::fmt::Display;
use std::io::{IoSlice, IoSliceMut};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use snowmelt_io::{Access, AlignedBuf, Device, FileDevice};
use twox_hash::XxHash3_64;

use crate::error::{Result, StoreError};
use crate::format::catalog::{self, Catalog};
use crate::format::cursor::Cursor;
use crate::format::lineage::StateName;
use crate::format::written_by::WrittenBy;
use crate::history::snapshot::Snapshot;
use crate::page::geometry::ExtentId;
use crate::page::{PAGE_BYTES, PageId, TreeId, header};
use crate::space::extent::{Extent, SEGMENT};
use crate::space::segment;
use crate::store::Store;
use crate::whole::backup::CopyProgress;

const MAGIC: [u8; 8] = *b"SNOWCOPY";
const FORM: u32 = 2;
/// That of sets without a manifest.
const FORM_1: u32 = 1;
const HEAD_BYTES: usize = 8192;
/// Bytes written at once.
const PIECE_BYTES: usize = 1 << 20;

/// Which state of which database a copy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyHead {
    form: u32,
    /// Pages in an extent.
    pub(crate) extent_pages: u32,
    /// Of the database that was copied.
    pub(crate) identity: u64,
    /// Seal of the part it builds on; `None`: it is whole.
    pub(crate) base: Option<u64>,
    /// The state is as of this transaction.
    pub txn: u64,
    /// When it was made, in seconds since 1970.
    pub unix_s: u64,
    /// Pages in it, of changes.
    pub pages: u64,
    tail_bytes: u64,
    tail_checksum: u64,
    /// See there.
    pub(crate) place: PlaceInSet,
}

/// Where in which set a part is, and between which states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PlaceInSet {
    /// Lineage of the state.
    pub lineage: u64,
    /// The state it builds on.
    pub base_lineage: u64,
    pub base_txn: u64,
    /// Random number of the set.
    pub set: u64,
    /// Of the part, from 1.
    pub number: u64,
}

impl CopyHead {
    /// Of changes since a part with the seal `base` that are written now.
    fn new(store: &Store, base: u64, txn: u64, place: PlaceInSet) -> Self {
        CopyHead {
            form: FORM,
            extent_pages: store.geometry.extent_pages,
            identity: store.identity(),
            base: Some(base),
            txn,
            unix_s: now_s(),
            pages: 0,
            tail_bytes: 0,
            tail_checksum: 0,
            place,
        }
    }

    /// The name of its state.
    pub fn state(&self) -> StateName {
        StateName { lineage: self.place.lineage, txn: self.txn }
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; 8];
        bytes.extend(MAGIC);
        bytes.extend(self.form.to_le_bytes());
        bytes.extend(self.extent_pages.to_le_bytes());
        let place = &self.place;
        for field in [
            self.identity,
            self.base.unwrap_or(0),
            self.txn,
            self.unix_s,
            self.pages,
            self.tail_bytes,
            self.tail_checksum,
            place.lineage,
            place.base_lineage,
            place.base_txn,
            place.set,
            place.number,
        ] {
            bytes.extend(field.to_le_bytes());
        }
        bytes.resize(HEAD_BYTES, 0);
        let checksum = XxHash3_64::oneshot(&bytes[8..]);
        bytes[..8].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> std::result::Result<Self, &'static str> {
        let mut r = Cursor { bytes };
        if r.u64()? != XxHash3_64::oneshot(&bytes[8..]) || r.take(8)? != MAGIC {
            return Err("it is not finished, or damaged");
        }
        let form = r.u32()?;
        if !(FORM_1..=FORM).contains(&form) {
            return Err("a newer program wrote it");
        }
        Ok(CopyHead {
            form,
            extent_pages: r.u32()?,
            identity: r.u64()?,
            base: Some(r.u64()?).filter(|base| *base != 0),
            txn: r.u64()?,
            unix_s: r.u64()?,
            pages: r.u64()?,
            tail_bytes: r.u64()?,
            tail_checksum: r.u64()?,
            place: PlaceInSet {
                lineage: r.u64()?,
                base_lineage: r.u64()?,
                base_txn: r.u64()?,
                set: r.u64()?,
                number: r.u64()?,
            },
        })
    }

    /// Its name in the manifest, and in the part that builds on it.
    pub(crate) fn seal(&self) -> u64 {
        u64::from_le_bytes(self.encode()[..8].try_into().expect("eight bytes"))
    }

    /// Bytes of the file.
    pub(crate) fn file_bytes(&self) -> u64 {
        HEAD_BYTES as u64 + self.pages * PAGE_BYTES as u64 + self.tail_bytes
    }

    /// Reads the head of a file; `None`: it was not finished.
    pub(crate) fn read(path: &Path) -> Result<Option<Self>> {
        let (bytes, _) = read_head(path)?;
        match bytes.iter().all(|b| *b == 0) {
            true => Ok(None),
            false => Self::decode(&bytes).map(Some).map_err(|why| unusable(path, why)),
        }
    }
}

/// Seconds since 1970.
pub(crate) fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// The state that a copy has, without its pages.
pub(crate) struct CopyState {
    pub extents: Vec<Extent>,
}

impl CopyState {
    /// Whether page `index` of an extent is in it, for the same tree, as this transaction left it.
    fn has(&self, id: ExtentId, index: u32, tree: Option<TreeId>, written_by: Option<u32>) -> bool {
        let Some(extent) = self.extents.get(id as usize) else { return false };
        extent.tree == tree
            && extent.is_allocated(index)
            && written_by.is_some()
            && extent.written_by.get(index) == written_by
    }
}

/// A file of changes that is being written.
struct NewChanges<'a> {
    path: &'a Path,
    device: Arc<dyn Device>,
    piece: Vec<u8>,
    at: u64,
    pages: Vec<PageId>,
}

impl NewChanges<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        self.write(&self.piece, self.at)?;
        self.at += self.piece.len() as u64;
        self.piece.clear();
        Ok(())
    }

    fn write(&self, bytes: &[u8], at: u64) -> Result<()> {
        let written = self.device.write_at(&[IoSlice::new(bytes)], at);
        written.map_err(StoreError::device(self.path, "write the changes"))
    }

    fn sync(&self) -> Result<()> {
        self.device.sync().map_err(StoreError::device(self.path, "write the changes"))
    }

    /// Writes the tail, and when all is durable the head.
    fn finish(mut self, head: CopyHead, catalog: &Catalog, map: &[Extent]) -> Result<CopyHead> {
        assert!(self.pages.is_sorted_by(|a, b| a < b), "a page of a part is found by bisection");
        let end = self.at + self.piece.len() as u64;
        let bytes = self.pages.len() * PAGE_BYTES;
        assert_eq!(end, (HEAD_BYTES + bytes) as u64, "a page of a part lies where its number says");
        let mut tail: Vec<u8> = self.pages.iter().flat_map(|page| page.0.to_le_bytes()).collect();
        tail.extend(catalog::encode(catalog));
        tail.extend((map.len() as u64).to_le_bytes());
        let mut part = map.to_vec();
        part.resize(map.len().next_multiple_of(SEGMENT), Extent::free(head.extent_pages));
        for extents in part.chunks_exact(SEGMENT) {
            let bytes = segment::encode(extents);
            tail.extend((bytes.len() as u32).to_le_bytes());
            tail.extend(bytes);
        }
        let head = CopyHead {
            pages: self.pages.len() as u64,
            tail_bytes: tail.len() as u64,
            tail_checksum: XxHash3_64::oneshot(&tail),
            ..head
        };
        self.put(&tail)?;
        self.flush()?;
        self.sync()?;
        self.write(&head.encode(), 0)?;
        self.sync()?;
        Ok(head)
    }
}

/// A finished file of changes.
pub(crate) struct ChangesFile {
    pub path: PathBuf,
    pub head: CopyHead,
    device: Arc<dyn Device>,
}

/// The content of a file of changes, but for its pages.
pub(crate) struct PageChanges {
    pub state: CopyState,
    pub txn: u64,
    pub catalog: Catalog,
    /// ascending
    pages: Vec<PageId>,
    file: ChangesFile,
}

/// A part of a backup that cannot be used.
pub(crate) fn unusable(path: &Path, why: impl Display) -> StoreError {
    StoreError::Backup { path: path.to_path_buf(), why: why.to_string() }
}

impl ChangesFile {
    pub fn open(path: &Path) -> Result<Self> {
        let (bytes, device) = read_head(path)?;
        let head = CopyHead::decode(&bytes).map_err(|why| unusable(path, why))?;
        Ok(ChangesFile { path: path.to_path_buf(), head, device })
    }

    /// Reads and checks the tail.
    pub fn changes(self) -> Result<PageChanges> {
        let ChangesFile { path, head, device } = &self;
        let short = || unusable(path, "it is shorter than its head says");
        let at = head.pages.checked_mul(PAGE_BYTES as u64).and_then(|b| b.checked_add(HEAD_BYTES as u64));
        let at = at.ok_or_else(short)?;
        let len = device.len().map_err(StoreError::device(path, "read it"))?;
        if at.checked_add(head.tail_bytes).is_none_or(|end| end > len) {
            return Err(short());
        }
        let mut tail = vec![0; head.tail_bytes as usize];
        let read = device.read_at(&mut [IoSliceMut::new(&mut tail)], at);
        read.map_err(StoreError::device(path, "read its map"))?;
        if XxHash3_64::oneshot(&tail) != head.tail_checksum {
            return Err(unusable(path, "its map is not the one that was written"));
        }
        let (pages, catalog, extents) = decode_tail(&tail, head).map_err(|why| unusable(path, why))?;
        Ok(PageChanges { state: CopyState { extents }, txn: head.txn, catalog, pages, file: self })
    }
}

/// The bytes of a head, zeros for what there is not of it.
fn read_head(path: &Path) -> Result<(Vec<u8>, Arc<dyn Device>)> {
    let device = FileDevice::open(path, Access::Read, false).map_err(StoreError::device(path, "open it"))?;
    let device: Arc<dyn Device> = Arc::new(device);
    let len = device.len().map_err(StoreError::device(path, "read it"))?.min(HEAD_BYTES as u64);
    let mut bytes = vec![0; HEAD_BYTES];
    let read = device.read_at(&mut [IoSliceMut::new(&mut bytes[..len as usize])], 0);
    read.map_err(StoreError::device(path, "read its head"))?;
    Ok((bytes, device))
}

type Tail = (Vec<PageId>, Catalog, Vec<Extent>);

fn decode_tail(tail: &[u8], head: &CopyHead) -> std::result::Result<Tail, &'static str> {
    let mut r = Cursor { bytes: tail };
    let pages = (0..head.pages).map(|_| r.u64().map(PageId)).collect::<std::result::Result<Vec<_>, _>>()?;
    if !pages.is_sorted() {
        return Err("its pages are in disorder");
    }
    let catalog = catalog::decode(&mut r)?;
    let len = r.u64()?;
    let mut extents = Vec::new();
    while (extents.len() as u64) < len {
        let bytes = r.u32()? as usize;
        match bytes {
            0 => extents.resize(extents.len() + SEGMENT, Extent::free(head.extent_pages)),
            _ => extents.extend(segment::decode(r.take(bytes)?, head.extent_pages)?),
        }
    }
    extents.truncate(len as usize);
    if r.bytes.is_empty() { Ok((pages, catalog, extents)) } else { Err("its tail is too long") }
}

impl PageChanges {
    pub fn path(&self) -> &Path {
        &self.file.path
    }

    /// Fills in the pages of an extent that are here, by their index, where `is_wanted`.
    pub fn fill(
        &self,
        pages: std::ops::Range<PageId>,
        buf: &mut AlignedBuf,
        mut is_wanted: impl FnMut(u32) -> bool,
    ) -> Result<()> {
        let first = self.pages.partition_point(|page| *page < pages.start);
        let here = self.pages[first..].iter().take_while(|page| **page < pages.end);
        for (at, page) in here.enumerate() {
            let index = (page.0 - pages.start.0) as u32;
            if is_wanted(index) {
                let bytes = &mut buf[index as usize * PAGE_BYTES..][..PAGE_BYTES];
                let offset = HEAD_BYTES as u64 + (first + at) as u64 * PAGE_BYTES as u64;
                let read = self.file.device.read_at(&mut [IoSliceMut::new(bytes)], offset);
                read.map_err(StoreError::device(self.path(), "read a page"))?;
            }
        }
        Ok(())
    }
}

/// Input of a new file of changes.
pub(crate) struct ChangesSince<'a> {
    /// The state it builds on, and the seal of its part.
    pub base: &'a CopyState,
    pub base_seal: u64,
    /// The state it leads to, and the map that belongs to it.
    pub snapshot: &'a Snapshot,
    pub map: Vec<Extent>,
    pub place: PlaceInSet,
}

impl Store {
    /// Writes what has changed to a new file. Readers and writers go on. What a failure leaves of
    /// the file is removed.
    pub(crate) fn write_changes(
        &self,
        changed: ChangesSince<'_>,
        path: &Path,
        progress: impl FnMut(CopyProgress) -> ControlFlow<()>,
    ) -> Result<(CopyHead, CopyProgress)> {
        let device = FileDevice::open(path, Access::CreateNew, false)
            .map_err(StoreError::device(path, "create the file"))?;
        let device: Arc<dyn Device> = Arc::new(device);
        let new = NewChanges { path, device, piece: Vec::new(), at: HEAD_BYTES as u64, pages: Vec::new() };
        let done = self.changes_into(new, changed, progress);
        if done.is_err() {
            let _ = std::fs::remove_file(path);
        }
        done
    }

    fn changes_into(
        &self,
        mut new: NewChanges<'_>,
        changed: ChangesSince<'_>,
        mut progress: impl FnMut(CopyProgress) -> ControlFlow<()>,
    ) -> Result<(CopyHead, CopyProgress)> {
        let ChangesSince { base, base_seal, snapshot, mut map, place } = changed;
        let txn = snapshot.txn();
        let count = self.geometry.extent_pages;
        let mut at = CopyProgress { extents_done: 0, extents: map.len() as u64, pages: 0, txn };
        let mut buf = AlignedBuf::huge(self.geometry.extent_bytes() as usize);
        for (id, extent) in map.iter_mut().enumerate() {
            let id = id as ExtentId;
            if matches!(extent.tree, None | Some(TreeId::META)) {
                *extent = Extent::free(count);
                continue;
            }
            let is_new = |index, written_by| !base.has(id, index, extent.tree, written_by);
            let changed = self.extent_as_of(snapshot, id, extent, is_new, &mut buf)?;
            let mut written_by = match base.extents.get(id as usize) {
                Some(before) if before.tree == extent.tree => before.written_by.clone(),
                _ => WrittenBy::UNKNOWN,
            };
            for index in &changed {
                let bytes = &buf[*index as usize * PAGE_BYTES..][..PAGE_BYTES];
                written_by.set(*index, header(bytes).txn(), count);
                new.pages.push(self.geometry.page(id, *index));
                new.put(bytes)?;
            }
            extent.written_by = written_by;
            at = CopyProgress { extents_done: id + 1, pages: new.pages.len() as u64, ..at };
            if progress(at).is_break() {
                return Err(StoreError::Stopped);
            }
        }
        let head = CopyHead::new(self, base_seal, txn, place);
        let head = new.finish(head, snapshot.catalog(), &map)?;
        at.extents_done = at.extents;
        Ok((head, at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head() -> CopyHead {
        let place = PlaceInSet { lineage: 7, base_lineage: 8, base_txn: 9, set: 10, number: 11 };
        CopyHead {
            form: FORM,
            extent_pages: 4,
            identity: 1,
            base: Some(2),
            txn: 3,
            unix_s: 4,
            pages: 0,
            tail_bytes: 5,
            tail_checksum: 6,
            place,
        }
    }

    #[test]
    fn heads_round_trip_and_any_flipped_bit_is_seen() {
        let bytes = head().encode();
        assert_eq!(CopyHead::decode(&bytes), Ok(head()));
        assert_eq!(CopyHead::decode(&CopyHead { base: None, ..head() }.encode()).unwrap().base, None);
        for at in (0..140).chain([HEAD_BYTES - 1]) {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1;
            assert!(CopyHead::decode(&bytes).is_err(), "byte {at}");
        }
    }

    #[test]
    fn the_head_is_as_documented() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src/reference/format.md");
        let page = std::fs::read_to_string(page).unwrap();
        let (_, table) = page.split_once("<!-- table: copy -->\n").expect("the table is on the page");
        let (bytes, mut end) = (head().encode(), 0);
        for row in table.lines().take_while(|line| line.starts_with('|')).skip(2) {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let [at, len] = [cells[1], cells[2]].map(|n| n.parse::<usize>().unwrap());
            assert_eq!(at, end, "{row}");
            end = at + len;
            let value = match cells[3] {
                "form" => 2,
                "extent_pages" => 4,
                "identity" => 1,
                "base" => 2,
                "txn" => 3,
                "unix_s" => 4,
                "pages" | "reserved" => 0,
                "tail_bytes" => 5,
                "tail_checksum" => 6,
                "lineage" => 7,
                "base_lineage" => 8,
                "base_txn" => 9,
                "set" => 10,
                "number" => 11,
                _ => continue,
            };
            let mut wide = [0; 8];
            let shown = len.min(8);
            wide[..shown].copy_from_slice(&bytes[at..at + shown]);
            assert_eq!(u64::from_le_bytes(wide), value, "{row}");
        }
        assert_eq!(end, HEAD_BYTES);
    }

    #[test]
    fn a_page_is_had_only_as_it_was_written() {
        let extent = Extent::filled(4, TreeId(5), 2).by(9);
        let state = CopyState { extents: vec![extent] };
        let tree = Some(TreeId(5));
        assert!(state.has(0, 1, tree, Some(9)));
        assert!(!state.has(0, 1, tree, Some(10)) && !state.has(0, 1, tree, None));
        assert!(!state.has(0, 2, tree, Some(9)), "not in use");
        assert!(!state.has(0, 1, Some(TreeId(6)), Some(9)) && !state.has(1, 0, tree, Some(9)));
    }
}
