//! Shared by readers and arriving reads: pool, space, meters, failures.
//!
//! The device queues hold a share of it (arrivals must find the pool), so it holds no queue itself.
//! Every read, queued or in place, ends in [`Core::arrive`]: there the page is verified once,
//! published or failed.

#![allow(unsafe_code)]

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use snowmelt_io::{IoError, Sink};

use crate::error::StoreError;
use crate::page::{self, Damage, PageId, TreeId};
use crate::pool::{PageRef, Pin};
use crate::read::meters::Meters;
use crate::read::visible::VisiblePages;
use crate::space::Space;

/// See the head of the file.
pub(crate) struct Core {
    pub pages: VisiblePages,
    pub space: RwLock<Space>,
    pub meters: Arc<Meters>,
    /// Stripe files, for errors.
    pub files: Vec<PathBuf>,
    pub failures: Failures,
}

impl Core {
    /// A read of `page` has ended. Verifies what came, publishes or fails the page, remembers
    /// the failure for those who wait.
    pub fn arrive(
        &self,
        page: PageId,
        read: Result<(), IoError>,
        pin: Pin,
    ) -> Result<Option<PageRef>, StoreError> {
        let (owner, verified) = match read {
            Ok(()) => self.check(page),
            Err(cause) => (None, Err(self.unreadable(page, cause))),
        };
        match verified {
            Ok(()) => {
                let tree = owner.expect("a verified page has an owner");
                self.meters.with(tree, |m| m.resident.fetch_add(1, Relaxed));
                Ok(self.pages.pool.publish(page, pin))
            }
            Err(e) => {
                self.failures.remember(page, &e);
                self.pages.pool.fail(page);
                Err(e)
            }
        }
    }

    fn check(&self, page: PageId) -> (Option<TreeId>, Result<(), StoreError>) {
        let (owner, expected) = self.space.read().expected(page);
        let verified = match owner {
            Some(tree) => {
                // SAFETY: the read of this page is complete and we are the one who ends it.
                let arrived = unsafe { self.pages.pool.arrived(page) };
                page::verify_written(arrived, page, tree, expected)
            }
            None => Err(Damage::NotAllocated),
        };
        let verified = match verified {
            // The page was being written back while it was read, or is going to be. Its versions
            // stay in the table until the write and this read have ended (`Pool::renew`), and a
            // reader that sees the stripe may see either state.
            Err(Damage::Stale { .. }) if self.pages.versions.has(page) => Ok(()),
            other => other,
        };
        (owner, verified.map_err(|why| self.damaged(page, why)))
    }

    /// The error for a page that is not what it should be.
    pub fn damaged(&self, page: PageId, why: Damage) -> StoreError {
        let (file, offset) = self.place(page);
        StoreError::Damaged { file, offset, page, why }
    }

    /// The error for a page that a device could not give.
    pub fn unreadable(&self, page: PageId, cause: IoError) -> StoreError {
        let (file, offset) = self.place(page);
        StoreError::Read { file, offset, page, cause: Arc::new(cause) }
    }

    fn place(&self, page: PageId) -> (PathBuf, u64) {
        let place = self.space.read().geometry().place(page);
        (self.files[place.stripe].clone(), place.offset)
    }

    /// Tells the meters how many pages each tree has. The map is locked a piece at a time, so that
    /// no other thread waits for the whole.
    pub fn count_pages(&self) {
        /// Extents looked at while the map is locked.
        const PIECE: usize = 4096;
        let mut pages: HashMap<TreeId, u64> = HashMap::new();
        let mut at = 0;
        loop {
            let space = self.space.read();
            for (_, e) in space.iter().skip(at).take(PIECE) {
                if let Some(tree) = e.tree {
                    *pages.entry(tree).or_default() += e.pages() as u64;
                }
            }
            at += PIECE;
            if at as u64 >= space.len() {
                break;
            }
        }
        for (tree, n) in pages {
            self.meters.with(tree, |m| m.pages.store(n, Relaxed));
        }
    }
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Core({} frames)", self.pages.pool.frame_count())
    }
}

impl Sink for Core {
    fn complete(&self, tag: u64, result: Result<(), IoError>) {
        // Not lost: `arrive` remembers the failure for those who wait; the next reader reads again.
        let _ = self.arrive(PageId(tag), result, Pin::No);
    }
}

/// The latest failed reads, for readers who waited on a read that they had not carried out.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    count: AtomicU64,
    recent: Mutex<VecDeque<(u64, PageId, StoreError)>>,
}

impl Failures {
    /// Failures that are remembered. A waiter whose failure was pushed out by newer ones reads once
    /// more itself.
    const KEPT: usize = 256;

    /// A mark in time, taken before a page is looked at.
    pub fn mark(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    fn remember(&self, page: PageId, error: &StoreError) {
        let mut recent = self.recent.lock();
        let n = self.count.fetch_add(1, Ordering::AcqRel);
        if recent.len() == Self::KEPT {
            recent.pop_front();
        }
        recent.push_back((n, page, error.clone()));
    }

    /// How the read of `page` failed after `mark`, if it did.
    pub fn since(&self, mark: u64, page: PageId) -> Option<StoreError> {
        if self.mark() == mark {
            return None;
        }
        let recent = self.recent.lock();
        recent.iter().rev().find(|(n, p, _)| *n >= mark && *p == page).map(|(_, _, e)| e.clone())
    }
}
