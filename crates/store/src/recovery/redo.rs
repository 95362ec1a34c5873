//! Writing pages back before the database opens: only when the journal says more than the
//! memory budget can hold.
//!
//! It is the checkpointer's work done early. Until the next checkpoint's super-block is durable the
//! journal says all of it once more, so a crash at any point loses nothing. No reader needs an
//! earlier state of a page.

use std::path::Path;

use snowmelt_io::AlignedBuf;

use super::replay::Replay;
use crate::error::Result;
use crate::files::stripes::Devices;
use crate::page::geometry::Geometry;
use crate::page::{self, PAGE_BYTES, PageBuf, PageId, header};
use crate::space::extent::Extent;

/// Writes the newest versions of a share's pages to their stripes, in the order of their
/// places; returns how many.
pub(super) fn write_back(
    dir: &Path,
    devices: &Devices,
    geometry: Geometry,
    extents: &mut [Extent],
    replay: &mut Replay,
) -> Result<u64> {
    /// Pages written by one request.
    const BATCH: usize = 64;
    let after = replay.after;
    let mut pages = Vec::with_capacity(replay.ways.len());
    for (page, way) in replay.take_ways() {
        if way.txn > after && super::is_in_use(extents, geometry, page) {
            pages.push((page, way));
        }
    }
    pages.sort_unstable_by_key(|(page, _)| {
        let place = geometry.place(*page);
        (place.stripe, place.offset)
    });
    let mut count = 0;
    let mut batch: Vec<(PageId, PageBuf)> = Vec::new();
    for (id, way) in pages {
        let loc = way.history.last().map(|step| step.loc).unwrap_or_default();
        let txn = way.txn;
        let made = way.waiting.ok_or((loc, "a page has left memory")).and_then(|w| w.into_page(id));
        let mut made = made.map_err(|(loc, why)| super::damaged(dir, loc.file, loc.offset, why))?;
        let tree = header(&made).tree();
        if extents[geometry.extent_of(id) as usize].tree != Some(tree) {
            // Written early by a transaction that did not keep the extent. It has another owner
            // now, a meta run perhaps.
            continue;
        }
        page::seal(&mut made, id, tree, txn);
        let follows = batch.last().is_some_and(|(last, _)| {
            id.0 == last.0 + 1 && geometry.extent_of(id) == geometry.extent_of(*last)
        });
        if !follows || batch.len() == BATCH {
            write(devices, geometry, &batch)?;
            batch.clear();
        }
        batch.push((id, made));
        count += 1;
        let (extent, index) = (geometry.extent_of(id) as usize, geometry.index_of(id));
        extents[extent].written[index as usize / 64] |= 1 << (index % 64);
        extents[extent].written_by.set(index, txn, geometry.extent_pages);
    }
    write(devices, geometry, &batch)?;
    Ok(count)
}

fn write(devices: &Devices, geometry: Geometry, batch: &[(PageId, PageBuf)]) -> Result<()> {
    let Some((first, _)) = batch.first() else { return Ok(()) };
    let mut bytes = AlignedBuf::new(batch.len() * PAGE_BYTES);
    for (to, (_, made)) in bytes.chunks_exact_mut(PAGE_BYTES).zip(batch) {
        to.copy_from_slice(made);
    }
    devices.write(geometry.place(*first), &bytes)
}
