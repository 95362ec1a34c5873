//! Making a database of a whole copy and the changes since: each page from the newest part that has
//! it, verified.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use snowmelt_io::AlignedBuf;

use crate::error::{Result, StoreError};
use crate::page::{self, Damage, PAGE_BYTES, PageId};
use crate::store::Store;
use crate::whole::backup::CopyProgress;
use crate::whole::changes::{ChangesFile, PageChanges, unusable};

/// Where a page of an extent comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PageOrigin {
    /// It is not in use.
    Nowhere,
    /// No change that was looked at has it: the whole copy, in the end.
    Whole,
    /// The changes of this number.
    Part(usize),
}

impl Store {
    /// Makes a database of this whole copy and what changed since, in this order.
    pub(crate) fn restore_with(
        &self,
        changes: &[PathBuf],
        target: &Path,
        stripes: &[PathBuf],
        mut progress: impl FnMut(CopyProgress) -> ControlFlow<()>,
    ) -> Result<CopyProgress> {
        let open = |path: &PathBuf| ChangesFile::open(path)?.changes();
        let changes = changes.iter().map(open).collect::<Result<Vec<PageChanges>>>()?;
        let last = changes.last().expect("changes to a whole copy");
        let map = &last.state.extents;
        let mut at = CopyProgress { extents_done: 0, extents: map.len() as u64, pages: 0, txn: last.txn };
        self.copy_to(target, stripes, |copy: &Arc<Store>| {
            let mut buf = AlignedBuf::huge(self.geometry.extent_bytes() as usize);
            for id in (0..map.len() as u64).filter(|id| map[*id as usize].tree.is_some()) {
                let pages = self.extent_from(id, &changes, &mut buf)?;
                copy.fetch.stripes.write(copy.geometry.extent_place(id), &buf)?;
                at = CopyProgress { extents_done: id + 1, pages: at.pages + pages, ..at };
                if progress(at).is_break() {
                    return Err(StoreError::Stopped);
                }
            }
            copy.adopt(at.txn, last.catalog.clone(), map.clone())?;
            Ok(CopyProgress { extents_done: at.extents, ..at })
        })
    }

    /// Fills `buf` with an extent as the last of the changes has it; returns how many of its
    /// pages are in use.
    fn extent_from(&self, id: u64, changes: &[PageChanges], buf: &mut AlignedBuf) -> Result<u64> {
        let last = changes.last().expect("changes to a whole copy");
        let extent = &last.state.extents[id as usize];
        let tree = extent.tree.expect("an extent in use");
        let used = (0..self.geometry.extent_pages).filter(|i| extent.is_allocated(*i));
        let used: Vec<(u32, PageId)> = used.map(|i| (i, self.geometry.page(id, i))).collect();
        let mut origins = vec![PageOrigin::Nowhere; self.geometry.extent_pages as usize];
        used.iter().for_each(|(i, _)| origins[*i as usize] = PageOrigin::Whole);
        buf.fill(0);
        let pages = self.geometry.page(id, 0)..self.geometry.page(id + 1, 0);
        for (number, part) in changes.iter().enumerate().rev() {
            part.fill(pages.clone(), buf, |i| {
                let origin = &mut origins[i as usize];
                let is_wanted = *origin == PageOrigin::Whole;
                if is_wanted {
                    *origin = PageOrigin::Part(number);
                }
                is_wanted
            })?;
        }
        self.fill_from_whole(id, &origins, buf)?;
        for (i, page) in &used {
            let bytes = &buf[*i as usize * PAGE_BYTES..][..PAGE_BYTES];
            if let Err(why) = page::verify_written(bytes, *page, tree, extent.written_by.get(*i)) {
                let part = match origins[*i as usize] {
                    PageOrigin::Part(number) => changes[number].path(),
                    _ => self.dir(),
                };
                return Err(unusable(part, format!("page {page}, put together from the set: {why}")));
            }
        }
        Ok(used.len() as u64)
    }

    /// Fills in the pages of an extent that no change has.
    fn fill_from_whole(&self, id: u64, origins: &[PageOrigin], buf: &mut AlignedBuf) -> Result<()> {
        let is_wanted = |origin: &PageOrigin| *origin == PageOrigin::Whole;
        let Some(first) = origins.iter().position(is_wanted) else { return Ok(()) };
        let end = origins.iter().rposition(is_wanted).map_or(first, |last| last + 1);
        let page = self.geometry.page(id, first as u32);
        let has = self.fetch.core.space.read().extent(id).is_some_and(|e| e.tree.is_some());
        if !has {
            return Err(self.fetch.core.damaged(page, Damage::NotAllocated));
        }
        let mut read = AlignedBuf::huge((end - first) * PAGE_BYTES);
        self.fetch.read_past_pool(page, &mut read).map_err(|e| self.fetch.core.unreadable(page, e))?;
        for i in (first..end).filter(|i| is_wanted(&origins[*i])) {
            let from = &read[(i - first) * PAGE_BYTES..][..PAGE_BYTES];
            buf[i * PAGE_BYTES..][..PAGE_BYTES].copy_from_slice(from);
        }
        Ok(())
    }
}
