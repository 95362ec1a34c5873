//! Reading and writing the meta run: catalog and extent map, whole, in consecutive pages.

use std::path::Path;

use snowmelt_io::AlignedBuf;
use twox_hash::XxHash3_64;

use crate::catalog::{self, Catalog};
use crate::error::{Result, StoreError};
use crate::fetch::Fetch;
use crate::page::{self, BODY_BYTES, HEADER_BYTES, PAGE_BYTES, PageId, TreeId};
use crate::space::{Extent, ExtentId, Geometry};
use crate::stripes::{self, Devices};
use crate::superblock::{FILE_NAME, MetaRun, SuperBlock};

/// Bytes of one write of the run: a reader waits behind few of them.
const PIECE_BYTES: usize = 256 << 10;

/// Reads and checks the meta run, an extent at a time.
pub(crate) fn read_meta(
    dir: &Path,
    block: &SuperBlock,
    geometry: Geometry,
    devices: &Devices,
) -> Result<(Catalog, Vec<Extent>)> {
    let Some(run) = block.meta else {
        return Ok((Catalog { next_tree: 1, ..Default::default() }, Vec::new()));
    };
    let corrupt = |why: &str| StoreError::Corrupt { path: dir.join(FILE_NAME), why: why.into() };
    let pages = run.bytes.div_ceil(BODY_BYTES as u64);
    let all = block.extents.saturating_mul(geometry.extent_pages as u64);
    if run.first.0.saturating_add(pages) > all || geometry.index_of(run.first) != 0 {
        return Err(corrupt("the meta run lies beyond the end of the database"));
    }
    let mut bytes = Vec::with_capacity(pages as usize * BODY_BYTES);
    let mut buf = AlignedBuf::huge(geometry.extent_bytes() as usize);
    for first in (run.first.0..run.first.0 + pages).step_by(geometry.extent_pages as usize) {
        let place = geometry.place(PageId(first));
        let here = (run.first.0 + pages - first).min(geometry.extent_pages as u64) as usize;
        let file = || stripes::resolve(dir, &block.stripes[place.stripe]);
        let part = &mut buf[..here * PAGE_BYTES];
        devices.read(place, part).map_err(StoreError::device(&file(), "read the meta run"))?;
        for (i, page) in part.chunks_exact(PAGE_BYTES).enumerate() {
            let id = PageId(first + i as u64);
            let offset = geometry.place(id).offset;
            page::verify(page, id, TreeId::META).map_err(|why| StoreError::Damaged {
                file: file(),
                offset,
                page: id,
                why,
            })?;
            bytes.extend_from_slice(&page[HEADER_BYTES..]);
        }
    }
    bytes.truncate(run.bytes as usize);
    if XxHash3_64::oneshot(&bytes) != run.checksum {
        return Err(corrupt("the meta run is not the one this state wrote"));
    }
    let (catalog, extents) = catalog::decode(&bytes, block.extent_pages).map_err(corrupt)?;
    if extents.len() as u64 != block.extents {
        return Err(corrupt("super-block and extent map disagree"));
    }
    Ok((catalog, extents))
}

/// Packs the meta run into sealed pages, whole extents long.
fn meta_pages(bytes: &[u8], first: PageId, geometry: Geometry, txn: u64) -> (MetaRun, AlignedBuf) {
    let run = MetaRun { first, bytes: bytes.len() as u64, checksum: XxHash3_64::oneshot(bytes) };
    let pages = bytes.len().div_ceil(BODY_BYTES).next_multiple_of(geometry.extent_pages as usize);
    let mut buf = AlignedBuf::huge(pages * PAGE_BYTES);
    for (i, part) in bytes.chunks(BODY_BYTES).enumerate() {
        let page = &mut buf[i * PAGE_BYTES..][..PAGE_BYTES];
        page[page::offset::KIND] = page::PageKind::Meta as u8;
        page[HEADER_BYTES..][..part.len()].copy_from_slice(part);
        page::seal(page, PageId(first.0 + i as u64), TreeId::META, txn);
    }
    (run, buf)
}

/// A meta run that is to be written: its extents are taken from the space and not yet part of the map.
pub(crate) struct NewMeta {
    /// The map with the run's own extents in it.
    pub map: Vec<Extent>,
    extents: Vec<ExtentId>,
}

impl NewMeta {
    /// Takes room for a run that holds `catalog` and the map, and copies the map, a piece at a time: nobody waits for the whole. What commits change
    /// meanwhile may be in it or not, extent by extent; made again by a recovery, their changes give the same map. They must be durable before it is.
    pub fn take(fetch: &Fetch, catalog: &Catalog) -> NewMeta {
        /// Extents copied while the map is locked.
        const PIECE: usize = 1024;
        let geometry = fetch.geometry;
        let names = catalog::encode(catalog, &[]).len();
        let entry = catalog::extent_entry_bytes(geometry.extent_pages);
        let per_extent = geometry.extent_pages as usize * BODY_BYTES;
        let (extents, len) = {
            let mut space = fetch.core.space.write();
            // The run lengthens the map that it holds: grow until it fits, counting the worst case of all its extents at the end.
            let mut n = 1;
            while names + (space.len() as usize + n) * entry > n * per_extent {
                n += 1;
            }
            let first = space.allocate(n as u32);
            ((first..first + n as u64).collect::<Vec<ExtentId>>(), space.len() as usize)
        };
        let mut map = Vec::with_capacity(len);
        while map.len() < len {
            let to = (map.len() + PIECE).min(len);
            fetch.core.space.read().copy_durable(map.len()..to, &mut map);
        }
        let last = *extents.last().expect("a run has an extent");
        while map.len() as u64 > last + 1 && map.last().is_some_and(|e| e.tree.is_none()) {
            map.pop();
        }
        let pages = (names + map.len() * entry).div_ceil(BODY_BYTES) as u64;
        for (i, e) in extents.iter().enumerate() {
            let here = pages.saturating_sub(i as u64 * geometry.extent_pages as u64);
            let here = here.min(geometry.extent_pages as u64) as u32;
            map[*e as usize] = Extent::filled(geometry.extent_pages, TreeId::META, here);
        }
        NewMeta { map, extents }
    }

    /// Writes the run.
    pub fn write(&self, fetch: &Fetch, catalog: &Catalog, txn: u64) -> Result<MetaRun> {
        let geometry = fetch.geometry;
        let first = geometry.page(self.extents[0], 0);
        let (run, pages) = meta_pages(&catalog::encode(catalog, &self.map), first, geometry, txn);
        for (extent, bytes) in self.extents.iter().zip(pages.chunks(geometry.extent_bytes() as usize)) {
            let place = geometry.extent_place(*extent);
            for (i, piece) in bytes.chunks(PIECE_BYTES).enumerate() {
                fetch
                    .stripes
                    .write_back(place.stripe, &[(place.offset + (i * PIECE_BYTES) as u64, piece)])?;
            }
        }
        Ok(run)
    }

    /// The super-block names the run: its extents become part of the map, those of the run before are free.
    pub fn settle(self, fetch: &Fetch) {
        let new = self.extents.iter().map(|e| (*e, self.map[*e as usize].clone()));
        fetch.core.space.write().switch_meta(new);
    }

    /// The run is not to be used.
    pub fn give_up(self, fetch: &Fetch) {
        let mut space = fetch.core.space.write();
        // From the end, so that each can be cut off.
        self.extents.iter().rev().for_each(|e| space.release(*e));
    }
}
