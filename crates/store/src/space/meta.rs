//! Reading and writing the meta run: the catalog, whole, and the directory of the extent map,
//! whose segments lie in pages of their own.
//!
//! A checkpoint writes the run and the segments that changed, always to pages that the durable
//! state does not use ([`MetaPages`]); then the super-block names the run. Until that is
//! durable the state before it is untouched.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use parking_lot::{Mutex, RwLock};
use snowmelt_io::{AlignedBuf, Clock, Haste, IoError, WriteCost};
use twox_hash::XxHash3_64;

use crate::error::{Result, StoreError};
use crate::files::resolve;
use crate::files::stripes::Stripes;
use crate::format::catalog::{self, Catalog};
use crate::format::cursor::Cursor;
use crate::page::geometry::{ExtentId, Geometry, Place};
use crate::page::{self, BODY_BYTES, Damage, HEADER_BYTES, PAGE_BYTES, PageId, TreeId};
use crate::space::Space;
use crate::space::extent::Extent;
use crate::space::extent::SEGMENT;
use crate::space::meta_pages::{MetaPages, MetaPlacing, MetaState};
use crate::space::segment::{self, SegmentPlace};
use crate::superblock::{FILE_NAME, MetaForm, MetaRun, SuperBlock};

/// Bytes of one write of the run: a reader waits behind few of them.
const PIECE_BYTES: usize = 256 << 10;

/// Content of the meta run.
pub(crate) struct Meta {
    pub catalog: Catalog,
    pub extents: Vec<Extent>,
    pub state: MetaState,
}

/// Fills bytes from a place on the stripes.
pub(crate) type ReadPlace<'a> = dyn Fn(Place, &mut [u8]) -> std::result::Result<(), IoError> + 'a;

/// Reads and checks the meta run and the extent map.
pub(crate) fn read_meta(
    dir: &Path,
    block: &SuperBlock,
    geometry: Geometry,
    read: &ReadPlace<'_>,
) -> Result<Meta> {
    let Some(run) = block.meta else {
        let catalog = Catalog { next_tree: 1, ..Default::default() };
        return Ok(Meta { catalog, extents: Vec::new(), state: MetaState::default() });
    };
    let reader = MetaReader { dir, block, geometry, read };
    let bytes = reader.pages(run.first, run.bytes)?;
    if XxHash3_64::oneshot(&bytes) != run.checksum {
        return Err(reader.stale(run.first, "the meta run is not the one that the super-block names"));
    }
    let corrupt = |why: &'static str| reader.corrupt(why);
    let mut r = Cursor { bytes: &bytes };
    let catalog = catalog::decode(&mut r).map_err(corrupt)?;
    let (extents, segments) = match block.meta_form {
        MetaForm::Whole => {
            (segment::decode_whole_map(&mut r, block.extent_pages).map_err(corrupt)?, Vec::new())
        }
        MetaForm::Segments => {
            let (extents, segments) = segment::decode_directory(&mut r).map_err(corrupt)?;
            (reader.map(extents, &segments)?, segments)
        }
    };
    if extents.len() as u64 != block.extents {
        return Err(corrupt("super-block and extent map disagree"));
    }
    Ok(Meta { catalog, extents, state: MetaState { run: Some(run), segments, ..Default::default() } })
}

struct MetaReader<'a> {
    dir: &'a Path,
    block: &'a SuperBlock,
    geometry: Geometry,
    read: &'a ReadPlace<'a>,
}

impl MetaReader<'_> {
    fn corrupt(&self, why: &str) -> StoreError {
        StoreError::Corrupt { path: self.dir.join(FILE_NAME), why: why.into() }
    }

    fn file(&self, page: PageId) -> PathBuf {
        resolve(self.dir, &self.block.stripes[self.geometry.place(page).stripe])
    }

    fn damaged(&self, page: PageId, why: Damage) -> StoreError {
        let offset = self.geometry.place(page).offset;
        StoreError::Damaged { file: self.file(page), offset, page, why }
    }

    /// Sound pages, but not those that were written last.
    fn stale(&self, page: PageId, what: &str) -> StoreError {
        self.damaged(page, Damage::Content(format!("{what}: a write was lost")))
    }

    /// The bodies of the pages from `first` on, cut to `bytes`.
    fn pages(&self, first: PageId, bytes: u64) -> Result<Vec<u8>> {
        let geometry = self.geometry;
        let end = first.0.saturating_add(bytes.div_ceil(BODY_BYTES as u64));
        if end > self.block.extents.saturating_mul(u64::from(geometry.extent_pages)) {
            return Err(self.corrupt("the meta run lies beyond the end of the database"));
        }
        let mut bodies = Vec::with_capacity((end - first.0) as usize * BODY_BYTES);
        let mut buf =
            AlignedBuf::huge((geometry.extent_bytes()).min((end - first.0) * PAGE_BYTES as u64) as usize);
        let mut at = first;
        while at.0 < end {
            let to = geometry.page(geometry.extent_of(at) + 1, 0).0.min(end);
            let part = &mut buf[..(to - at.0) as usize * PAGE_BYTES];
            let read = (self.read)(geometry.place(at), part);
            read.map_err(StoreError::device(&self.file(at), "read the meta run"))?;
            for (page, id) in part.chunks_exact(PAGE_BYTES).zip((at.0..to).map(PageId)) {
                page::verify(page, id, TreeId::META).map_err(|why| self.damaged(id, why))?;
                bodies.extend_from_slice(&page[HEADER_BYTES..]);
            }
            at = PageId(to);
        }
        bodies.truncate(bytes as usize);
        Ok(bodies)
    }

    /// The extent map: the segments in the order of their places, so that neighbours are read
    /// together by the device.
    fn map(&self, extents: u64, segments: &[SegmentPlace]) -> Result<Vec<Extent>> {
        let extent_pages = self.geometry.extent_pages;
        let mut map = vec![Extent::free(extent_pages); segments.len() * SEGMENT];
        let mut order: Vec<usize> = (0..segments.len()).filter(|s| segments[*s].bytes > 0).collect();
        order.sort_unstable_by_key(|s| segments[*s].first);
        for s in order {
            let place = &segments[s];
            let bytes = self.pages(place.first, place.bytes.into())?;
            if !place.holds(&bytes) {
                return Err(self.stale(place.first, "this part of the extent map is not the newest one"));
            }
            let part = segment::decode(&bytes, extent_pages).map_err(|why| self.corrupt(why))?;
            map[s * SEGMENT..][..SEGMENT].clone_from_slice(&part);
        }
        // Extents beyond were given up by a commit that the journal has.
        map.truncate(extents as usize);
        Ok(map)
    }
}

/// A meta run that is to be written, with the segments of the map that changed.
pub(crate) struct NewMeta {
    state: MetaState,
    /// Extents in the map.
    pub extents: u64,
    /// First pages and bytes of the segments to write, then of the run.
    writes: Vec<(PageId, Vec<u8>)>,
    /// Segments that were taken from the space.
    taken: Vec<usize>,
    placing: MetaPlacing,
}

impl NewMeta {
    /// Takes the changed segments of the map, and pages for them. The space is locked for one
    /// segment at a time, so that no other thread waits for all. Changes of commits meanwhile may
    /// be included or not, extent by extent: a recovery makes them again and gets the same map.
    /// They must be durable before the run is.
    pub fn take(
        space: &RwLock<Space>,
        catalog: &Catalog,
        durable: &Mutex<MetaState>,
        placing: MetaPlacing,
    ) -> NewMeta {
        let before = match placing {
            MetaPlacing::Reuse => BTreeSet::new(),
            MetaPlacing::Front => {
                let durable = durable.lock();
                space.write().change_segments(0..durable.segments.len());
                durable.extents.clone()
            }
        };
        let catalog = catalog::encode(catalog);
        let geometry = space.read().geometry();
        let mut parts: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
        loop {
            let changed = space.read().changed_segments();
            for s in changed {
                let extents = space.write().take_segment(s);
                parts.insert(s, segment::encode(&extents));
            }
            let extents = space.read().durable_len();
            let state = durable.lock().clone();
            match NewMeta::place(state, geometry, extents, &catalog, &parts, &before) {
                Ok(new) => return NewMeta { placing, ..new },
                // Taking extents changes the map.
                Err(wanted) => {
                    let taken = space.write().take_for_meta(wanted);
                    durable.lock().extents.extend(taken);
                }
            }
        }
    }

    /// Finds pages for all that is to be written; `Err` says how many consecutive extents are
    /// wanting.
    fn place(
        mut state: MetaState,
        geometry: Geometry,
        extents: u64,
        catalog: &[u8],
        parts: &BTreeMap<usize, Vec<u8>>,
        before: &BTreeSet<ExtentId>,
    ) -> std::result::Result<NewMeta, u32> {
        let mut pages = MetaPages::from_state(&state, geometry);
        pages.without(before);
        state.segments.resize(extents.div_ceil(SEGMENT as u64) as usize, SegmentPlace::EMPTY);
        let mut writes = Vec::new();
        for (s, bytes) in parts.range(..state.segments.len()) {
            let place = &mut state.segments[*s];
            if place.holds(bytes) && before.is_empty() {
                continue;
            }
            *place = SegmentPlace::EMPTY;
            if !bytes.is_empty() {
                place.bytes = bytes.len() as u32;
                place.checksum = XxHash3_64::oneshot(bytes);
                place.first = pages.take(place.pages())?;
                writes.push((place.first, bytes.clone()));
            }
        }
        let mut run = catalog.to_vec();
        run.reserve_exact(segment::directory_bytes(state.segments.len()));
        segment::encode_directory(&mut run, extents, &state.segments);
        let first = pages.take(run.len().div_ceil(BODY_BYTES) as u32)?;
        assert!(!run.is_empty(), "a run has the catalog at least");
        let checksum = XxHash3_64::oneshot(&run);
        state.run = Some(MetaRun { first, bytes: run.len() as u64, checksum });
        writes.push((first, run));
        let (taken, placing) = (parts.keys().copied().collect(), MetaPlacing::Reuse);
        Ok(NewMeta { state, extents, writes, taken, placing })
    }

    /// Where the run is.
    pub fn run(&self) -> Option<MetaRun> {
        self.state.run
    }

    /// Writes the segments and the run as of a transaction, in pieces that leave the device to
    /// others.
    pub fn write(
        &self,
        geometry: Geometry,
        txn: u64,
        stripes: &Stripes,
        clock: &Clock,
        haste: Haste,
    ) -> Result<()> {
        for (first, bytes) in &self.writes {
            let pages = sealed_pages(bytes, *first, txn);
            let mut at = *first;
            let mut rest = &pages[..];
            while !rest.is_empty() {
                let in_extent = (geometry.extent_pages - geometry.index_of(at)) as usize * PAGE_BYTES;
                let place = geometry.place(at);
                let most = match haste {
                    Haste::All => PIECE_BYTES,
                    Haste::Share(_) => {
                        PIECE_BYTES.min(stripes.write_cost(place.stripe).piece_bytes() as usize)
                    }
                };
                let most = most.next_multiple_of(PAGE_BYTES);
                let (piece, later) = rest.split_at(rest.len().min(in_extent).min(most));
                let begun_ns = clock.now_ns();
                debug_assert!(piece.len().is_multiple_of(PAGE_BYTES), "whole pages are written");
                stripes.write_back(place.stripe, &[(place.offset, piece)])?;
                (at, rest) = (PageId(at.0 + (piece.len() / PAGE_BYTES) as u64), later);
                let device_ns = stripes.write_cost(place.stripe).request_ns(piece.len() as u64);
                let taken_ns = clock.now_ns().saturating_sub(begun_ns);
                clock.sleep_ns(WriteCost::pause_ns(haste, device_ns, taken_ns));
            }
        }
        Ok(())
    }

    /// Called when the super-block names the run: pages that only the state before used are free.
    pub fn settle(self, space: &RwLock<Space>, durable: &Mutex<MetaState>) {
        let mut state = durable.lock();
        let extents = std::mem::take(&mut state.extents);
        *state = MetaState { extents, ..self.state };
        let mut space = space.write();
        let unused = state.settle(space.geometry(), &mut space, self.placing);
        state.extents.retain(|e| !unused.contains(e));
        // From the end, so that each can be cut off.
        unused.iter().rev().for_each(|e| space.release_meta(*e));
    }

    /// Gives up a run that is not to be used.
    pub fn give_up(self, space: &RwLock<Space>) {
        space.write().change_segments(self.taken);
    }
}

/// Packs bytes into sealed pages.
fn sealed_pages(bytes: &[u8], first: PageId, txn: u64) -> AlignedBuf {
    let mut buf = AlignedBuf::huge(bytes.len().div_ceil(BODY_BYTES) * PAGE_BYTES);
    assert!(!bytes.is_empty(), "nothing takes no page");
    for (i, part) in bytes.chunks(BODY_BYTES).enumerate() {
        let page = &mut buf[i * PAGE_BYTES..][..PAGE_BYTES];
        page[page::offset::KIND] = page::PageKind::Meta as u8;
        page[HEADER_BYTES..][..part.len()].copy_from_slice(part);
        page::seal(page, PageId(first.0 + i as u64), TreeId::META, txn);
    }
    buf
}
