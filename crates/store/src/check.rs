//! Checking every page: header, checksum, place and owner of all that was ever written, past the pool.

use snowmelt_io::AlignedBuf;

use crate::error::StoreError;
use crate::page::{self, PAGE_BYTES, PageId};
use crate::store::Store;

/// How far a check is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckProgress {
    /// Extents looked at.
    pub extents_done: u64,
    /// Extents there are.
    pub extents: u64,
    /// Pages looked at.
    pub pages: u64,
    /// Errors found.
    pub errors: u64,
}

impl Store {
    /// Reads and verifies every page of the committed state; `on_error` gets each page that is damaged or cannot be read, `progress` is
    /// called after each extent. Answers the final progress.
    pub fn check_pages(
        &self,
        mut on_error: impl FnMut(StoreError),
        mut progress: impl FnMut(CheckProgress),
    ) -> CheckProgress {
        let extents: Vec<_> = self.fetch.core.space.read().iter().map(|(id, e)| (id, e.clone())).collect();
        let mut at = CheckProgress { extents_done: 0, extents: extents.len() as u64, pages: 0, errors: 0 };
        let mut buf = AlignedBuf::huge(self.geometry.extent_bytes() as usize);
        for (id, extent) in extents {
            let mut error = |e: StoreError| {
                at.errors += 1;
                on_error(e);
            };
            if let Some(tree) = extent.tree {
                // Written pages lie at the front of an extent as long as only builds write; holes would be read and skipped.
                let end = (0..self.geometry.extent_pages)
                    .rev()
                    .find(|i| extent.is_written(*i))
                    .map_or(0, |i| i + 1);
                let first = self.geometry.page(id, 0);
                // Pages with versions are on their way to the stripe; what is there now may be older.
                let versions = &self.fetch.core.pool.versions;
                let settled: Vec<bool> = (0..self.geometry.extent_pages)
                    .map(|i| !versions.has(self.geometry.page(id, i)))
                    .collect();
                let lost =
                    |i: &u32| extent.is_allocated(*i) && !extent.is_written(*i) && settled[*i as usize];
                for i in (0..self.geometry.extent_pages).filter(lost) {
                    error(self.fetch.core.damaged(self.geometry.page(id, i), page::Damage::NotAllocated));
                }
                let whole = &mut buf[..end as usize * PAGE_BYTES];
                let read_all = whole.is_empty() || self.fetch.read_past_pool(first, whole).is_ok();
                for i in (0..end).filter(|i| extent.is_written(*i) && extent.is_allocated(*i)) {
                    if !settled[i as usize] {
                        at.pages += 1;
                        continue;
                    }
                    let page = self.geometry.page(id, i);
                    let bytes = &mut whole[i as usize * PAGE_BYTES..][..PAGE_BYTES];
                    if let Err(e) = self.check_page(page, tree, bytes, read_all) {
                        error(e);
                    }
                    at.pages += 1;
                }
            }
            at.extents_done += 1;
            progress(at);
        }
        at
    }

    fn check_page(
        &self,
        page: PageId,
        tree: page::TreeId,
        bytes: &mut [u8],
        already_read: bool,
    ) -> Result<(), StoreError> {
        if !already_read {
            self.fetch.read_past_pool(page, bytes).map_err(|e| self.fetch.core.unreadable(page, e))?;
        }
        let mut damage = page::verify(bytes, page, tree);
        if damage.is_err() && already_read {
            // It may have been written back just while it was read.
            self.fetch.read_past_pool(page, bytes).map_err(|e| self.fetch.core.unreadable(page, e))?;
            damage = page::verify(bytes, page, tree);
        }
        damage.map_err(|why| self.fetch.core.damaged(page, why))
    }
}
