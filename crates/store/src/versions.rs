//! The version table: pages of which some snapshot must see another state than the one on the stripe.
//!
//! Page → versions in the order of their transactions. A reader finds the `versioned` bit in the page's word and asks here; it gets the newest
//! version its snapshot may see, or nothing, which means the page on the stripe. Versions enter by commits of write transactions and leave
//! when the checkpointer has written them back; until those exist, only tests publish any.
//!
//! Invariant: a version is immutable once published, and a page with versions has its bit set before the commit's number is given out.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;

use crate::page::{PageBuf, PageId};

/// Versions of one page, oldest first: the transaction from which on each is seen.
type Chain = Vec<(u64, Arc<PageBuf>)>;

/// The version table.
#[derive(Debug, Default)]
pub(crate) struct Versions {
    pages: RwLock<HashMap<PageId, Chain>>,
}

impl Versions {
    /// Adds the state of `page` as of `txn`, which must be newer than the versions there are.
    pub fn publish(&self, page: PageId, txn: u64, state: Arc<PageBuf>) {
        let mut pages = self.pages.write();
        let chain = pages.entry(page).or_default();
        assert!(chain.last().is_none_or(|(t, _)| *t < txn), "versions of a page are published in order");
        chain.push((txn, state));
    }

    /// What a snapshot as of `txn` sees; `None` is the page on the stripe.
    pub fn see(&self, page: PageId, txn: u64) -> Option<Arc<PageBuf>> {
        let pages = self.pages.read();
        let chain = pages.get(&page)?;
        let seen = chain.partition_point(|(t, _)| *t <= txn);
        Some(chain[seen.checked_sub(1)?].1.clone())
    }

    /// Drops the versions of `page` up to and including `txn`, when they are on the stripe or nobody can see them. True when none is left.
    pub fn forget(&self, page: PageId, txn: u64) -> bool {
        let mut pages = self.pages.write();
        let Some(chain) = pages.get_mut(&page) else { return true };
        chain.retain(|(t, _)| *t > txn);
        let empty = chain.is_empty();
        if empty {
            pages.remove(&page);
        }
        empty
    }
}
