//! Relocation: moves leaves scattered by random inserts into key order, so that scans and extent
//! reads find neighbours together.
//!
//! * After a large batch, a transaction moves those shuffled subtrees of the indexes of which it
//!   has changed most leaves anyway. It leaves the hash trees alone: no query asks for neighbouring
//!   hashes, and a moved leaf is journaled whole.
//! * [`GraphDatabase::relocate`] moves all shuffled subtrees, in transactions of bounded size:
//!   offline, for `snowmelt compact`.
//!
//! String trees grow only at their end, so their leaves are always in order.

use std::ops::ControlFlow;
use std::sync::Arc;

use snowmelt_store::{Relocated, Relocation, Waiter};

use crate::database::GraphDatabase;
use crate::dict::Tree;
use crate::error::{GraphError, Result};
use crate::index::Index;
use crate::interrupt::go_on;
use crate::transaction::Transaction;

/// Least number of quads changed by a transaction for which it looks for subtrees to move.
const LARGE: u64 = 4096;

/// Most leaves moved by one transaction of [`GraphDatabase::relocate`]: 32 MiB, which the journal
/// then holds once.
const PART: u64 = 4096;

/// Trees whose leaves may be moved.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trees {
    Indexes,
    All,
}

/// Whether the files may grow when leaves are moved.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Growth {
    AsNeeded,
    Never,
}

impl Transaction {
    /// After a large batch, moves shuffled subtrees that are written anyway.
    pub(crate) fn relocate_after_batch(&mut self) -> Result<()> {
        if self.state.changed.saturating_sub(self.base().changed) >= LARGE {
            self.relocate(Relocation::default(), Trees::Indexes)?;
        }
        Ok(())
    }

    /// Moves the leaves that the rule selects, at most its number in all tuple trees together.
    fn relocate(&mut self, mut rule: Relocation, which: Trees) -> Result<Relocated> {
        let state = Arc::make_mut(&mut self.state);
        let hashes = if which == Trees::All { &mut state.hashes[..] } else { &mut [] };
        let trees = state.indexes.iter_mut().chain(hashes).flatten();
        let mut sum = Relocated::default();
        for tree in trees {
            let done = tree.relocate(self.txn.trees(), &rule)?;
            rule.most_leaves -= done.leaves;
            sum += done;
        }
        Ok(sum)
    }
}

impl GraphDatabase {
    /// Moves the leaves of all shuffled subtrees into key order, also those changed long ago, part
    /// by part; after each part, `moved` receives the number of leaves so far.
    ///
    /// # Errors
    /// Fails with errors of the store; leaves moved so far stay moved.
    pub fn relocate(self: &Arc<Self>, mut moved: impl FnMut(u64)) -> Result<Relocated> {
        let moved = |leaves| {
            moved(leaves);
            ControlFlow::Continue(())
        };
        self.relocate_until(moved, Growth::AsNeeded, &Waiter::PATIENT)
    }

    /// Moves leaves as [`GraphDatabase::relocate`] does, if requested only within the files as they
    /// are. Ends with [`GraphError::Stopped`](crate::GraphError::Stopped) between two parts if
    /// `moved` asks for it, and during a wait if the waiter gives up.
    ///
    /// # Errors
    /// Fails with errors of the store; leaves moved so far stay moved.
    pub(crate) fn relocate_until(
        self: &Arc<Self>,
        mut moved: impl FnMut(u64) -> ControlFlow<()>,
        growth: Growth,
        waiter: &Waiter<'_>,
    ) -> Result<Relocated> {
        let mut sum = Relocated::default();
        loop {
            let mut txn = self.begin_for(waiter)?.ok_or(GraphError::Stopped)?;
            txn.txn.trees().use_reserve();
            let most_leaves = match growth {
                Growth::AsNeeded => PART,
                Growth::Never => PART.min(self.leaves_for_free_extents()),
            };
            let rule = Relocation { changed: 0.0, most_leaves, ..Relocation::default() };
            let done = txn.relocate(rule, Trees::All)?;
            if done.subtrees == 0 {
                return Ok(sum);
            }
            txn.commit()?;
            // Lets the next part use the extents that this one freed.
            self.database().store().checkpoint_while(waiter.go_on)?;
            sum += done;
            go_on(moved(sum.leaves))?;
        }
    }

    /// Number of leaves that certainly fit into the extents that are free now.
    fn leaves_for_free_extents(&self) -> u64 {
        /// Each tree begins an extent of its own; the catalog and the map take some.
        const BEGUN: u64 = (Tree::ALL.len() + Index::ALL.len() + 2) as u64;
        let geometry = self.database().store().geometry();
        let (free, _) = self.database().store().unused_bytes();
        let extents = (free / geometry.extent_bytes()).saturating_sub(BEGUN);
        // An eighth of each extent stays free.
        extents * u64::from(geometry.extent_pages) * 7 / 8
    }
}
