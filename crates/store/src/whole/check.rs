//! Checking every page: header, checksum, place and owner of all that was ever written, past
//! the pool.

use std::ops::ControlFlow;

use snowmelt_io::AlignedBuf;

use crate::error::StoreError;
use crate::page::geometry::ExtentId;
use crate::page::{self, Damage, PAGE_BYTES, PageId};
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
    /// Reads and verifies every page of the committed state; `on_error` gets each page that is
    /// damaged or cannot be read, `progress` is called after each extent. Returns the final
    /// progress.
    pub fn check_pages(
        &self,
        on_error: impl FnMut(StoreError),
        mut progress: impl FnMut(CheckProgress),
    ) -> CheckProgress {
        self.check_pages_until(on_error, |at| {
            progress(at);
            ControlFlow::Continue(())
        })
    }

    /// As [`Store::check_pages`]; ends when `progress` says so.
    pub fn check_pages_until(
        &self,
        mut on_error: impl FnMut(StoreError),
        mut progress: impl FnMut(CheckProgress) -> ControlFlow<()>,
    ) -> CheckProgress {
        let extents = self.fetch.core.space.read().len();
        let mut at = CheckProgress { extents_done: 0, extents, pages: 0, errors: 0 };
        let mut buf = AlignedBuf::huge(self.geometry.extent_bytes() as usize);
        for id in 0..extents {
            let mut error = |e: StoreError| {
                at.errors += 1;
                on_error(e);
            };
            at.pages += self.check_extent(id, &mut buf, &mut error);
            at.extents_done += 1;
            if progress(at).is_break() {
                break;
            }
        }
        at
    }

    /// Checks the pages in use of an extent as it is now, and returns how many there are.
    fn check_extent(&self, id: ExtentId, buf: &mut AlignedBuf, error: &mut dyn FnMut(StoreError)) -> u64 {
        let core = &self.fetch.core;
        let extent = core.space.read().newest(id).clone();
        let used = (0..self.geometry.extent_pages).filter(|i| extent.is_allocated(*i));
        let used: Vec<(u32, PageId)> = used.map(|i| (i, self.geometry.page(id, i))).collect();
        // Pages with versions are on their way to the stripe; what is there now may be older.
        let settled: Vec<bool> = used.iter().map(|(_, page)| !core.pages.versions.has(*page)).collect();
        let end =
            used.iter().zip(&settled).filter(|(_, settled)| **settled).map(|((i, _), _)| *i as usize + 1);
        let whole = &mut buf[..end.max().unwrap_or(0) * PAGE_BYTES];
        let is_read = whole.is_empty() || self.fetch.read_past_pool(self.geometry.page(id, 0), whole).is_ok();
        for ((i, page), _) in used.iter().zip(settled).filter(|(_, settled)| *settled) {
            let bytes = &mut whole[*i as usize * PAGE_BYTES..][..PAGE_BYTES];
            if let Err(e) = self.check_page(*page, bytes, is_read) {
                error(e);
            }
        }
        used.len() as u64
    }

    /// Checks a page against what the map says of it now. Commits and checkpoints go on: what
    /// is wrong is looked at again before it is said.
    fn check_page(&self, page: PageId, bytes: &mut [u8], mut is_read: bool) -> Result<(), StoreError> {
        /// Looks at a page that keeps changing: each would have to meet a write-back of its own.
        const LOOKS: usize = 4;
        let core = &self.fetch.core;
        let now = || {
            let space = core.space.read();
            let extent = space.newest(self.geometry.extent_of(page));
            extent.is_allocated(self.geometry.index_of(page)).then(|| space.expected(page))
        };
        let mut damage = Damage::NotAllocated;
        for _ in 0..LOOKS {
            let before = now();
            if !is_read {
                self.fetch.read_past_pool(page, bytes).map_err(|e| core.unreadable(page, e))?;
            }
            let after = now();
            damage = match after {
                // Given back since.
                None => return Ok(()),
                Some((Some(tree), expected)) => match page::verify_written(bytes, page, tree, expected) {
                    Ok(()) => return Ok(()),
                    Err(damage) => damage,
                },
                Some((None, _)) => Damage::NotAllocated,
            };
            if core.pages.versions.has(page) {
                // It is on its way to the stripe by now.
                return Ok(());
            }
            if !is_read && before == after {
                break;
            }
            is_read = false;
        }
        Err(core.damaged(page, damage))
    }
}
