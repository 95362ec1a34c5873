//! The state that is published: that of a checkpoint, held while its pages are read.
//!
//! 1. A checkpoint is made, and held as soon as it has ended: the super-block names its state, the
//!    stripes have its pages, and no later version of a page takes their place.
//! 2. Catalog and map are read from the stripes, as a reader will read them. The pages they lie in
//!    are kept: a reader needs them first.
//! 3. The journal since then is pinned. Pages that commits added after the checkpoint may be in the
//!    map already. Their bytes are in the journal alone, as after a crash.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use crate::commit::checkpoint::HeldCheckpoint;
use crate::error::{Result, StoreError};
use crate::page::geometry::ExtentId;
use crate::page::{self, PAGE_BYTES, PageBuf, PageId, TreeId, header};
use crate::space::extent::Extent;
use crate::space::meta::read_meta;
use crate::store::Store;

/// See the head of the file.
pub(crate) struct Base {
    pub held: HeldCheckpoint,
    /// Those in use by trees.
    pub extents: Vec<(ExtentId, Extent)>,
    /// Pages of catalog and map.
    pub meta_pages: BTreeMap<PageId, PageBuf>,
}

impl Base {
    /// Makes a checkpoint and holds it.
    ///
    /// # Errors
    /// Those of a checkpoint; a meta run that cannot be read.
    pub fn take(store: &Store) -> Result<Base> {
        let held = hold(store)?;
        let geometry = store.geometry;
        let meta_pages = RefCell::new(BTreeMap::new());
        let meta = read_meta(store.dir(), &held.block, geometry, &|place, buf| {
            let first = geometry.page_at(place);
            store.fetch.read_past_pool(first, buf)?;
            let pages = (first.0..).map(PageId).zip(buf.chunks_exact(PAGE_BYTES).map(PageBuf::copy_of));
            meta_pages.borrow_mut().extend(pages);
            Ok(())
        })?;
        let owned = |e: &Extent| e.tree.is_some_and(|tree| tree != TreeId::META);
        let extents = (0..).zip(meta.extents).filter(|(_, e)| owned(e)).collect();
        Ok(Base { held, extents, meta_pages: meta_pages.into_inner() })
    }

    /// The last transaction of the state.
    pub fn txn(&self) -> u64 {
        self.held.block.txn
    }

    /// The pages of an extent that are on its stripe, verified, with their indexes.
    ///
    /// # Errors
    /// The stripe cannot be read; a page is damaged; the state was given up meanwhile.
    pub fn pages(&self, store: &Store, id: ExtentId, extent: &Extent, buf: &mut [u8]) -> Result<Vec<u32>> {
        let (geometry, core) = (store.geometry, &store.fetch.core);
        let tree = extent.tree.expect("only extents of trees are published");
        let used = (0..geometry.extent_pages).filter(|i| extent.is_allocated(*i) && extent.is_written(*i));
        let used: Vec<u32> = used.collect();
        let end = used.last().map_or(0, |last| *last as usize + 1);
        let first = geometry.page(id, 0);
        let bytes = &mut buf[..end * PAGE_BYTES];
        if end > 0 {
            store.fetch.read_past_pool(first, bytes).map_err(|e| core.unreadable(first, e))?;
        }
        let mut found = Vec::with_capacity(used.len());
        for index in used {
            let page = geometry.page(id, index);
            let bytes = &bytes[index as usize * PAGE_BYTES..][..PAGE_BYTES];
            match page::verify_written(bytes, page, tree, extent.written_by.get(index)) {
                Ok(()) if header(bytes).txn() <= self.txn() => found.push(index),
                // of a commit after the checkpoint, in the journal
                _ if core.pages.versions.has(page) => {}
                Ok(()) => return Err(StoreError::SnapshotTooOld { txn: self.txn() }),
                Err(_) if self.held.snapshot.is_cancelled() => {
                    return Err(StoreError::SnapshotTooOld { txn: self.txn() });
                }
                Err(why) => return Err(core.damaged(page, why)),
            }
        }
        Ok(found)
    }
}

/// Checkpoints until one could be held.
fn hold(store: &Store) -> Result<HeldCheckpoint> {
    /// Others' checkpoints may be under way; each ends.
    const PAUSE: Duration = Duration::from_millis(5);
    loop {
        store.checkpoint()?;
        if let Some(held) = store.commits.hold_checkpoint() {
            return Ok(held);
        }
        store.commits.config.seams.clock.sleep_ns(PAUSE.as_nanos() as u64);
    }
}
