//! Consolidation: the pages of all trees move towards the begin of the files, in transactions of
//! bounded size, so that free space at the end can be given back. Readers and writers go on.

use std::ops::ControlFlow;
use std::sync::Arc;

use snowmelt_database::LayerState;
use snowmelt_store::{Consolidated, Consolidation, MovableTree, Reader, TreeId, Waiter};

use crate::database::GraphDatabase;
use crate::database::state::GraphState;
use crate::dict::Tree;
use crate::error::{GraphError, Result};
use crate::interrupt::go_on;
use crate::transaction::Transaction;

/// About the most pages moved by one transaction: 32 MiB, which the journal then holds once.
const PART: u64 = 4096;

impl Transaction {
    fn consolidate(&mut self, so_far: &mut Consolidation) -> Result<Consolidated> {
        let state = Arc::make_mut(&mut self.state);
        let strings = state.strings.iter_mut().flatten().map(MovableTree::String);
        let tuples = state.hashes.iter_mut().chain(&mut state.indexes).chain(&mut state.triples);
        let mut trees: Vec<_> = strings.chain(tuples.flatten().map(MovableTree::Tuple)).collect();
        Ok(so_far.run(self.txn.trees(), &mut trees, PART)?)
    }
}

impl GraphDatabase {
    /// Checkpoints, then moves pages towards the begin of the files until there is no free space in
    /// front of them; after each transaction, `moved` receives the number of pages so far. Ends with
    /// [`GraphError::Stopped`](crate::GraphError::Stopped) if `moved` asks for it, and during a
    /// wait if the waiter gives up.
    ///
    /// # Errors
    /// Fails with errors of the store; pages moved so far stay moved.
    pub(crate) fn consolidate_until(
        self: &Arc<Self>,
        mut moved: impl FnMut(u64) -> ControlFlow<()>,
        waiter: &Waiter<'_>,
    ) -> Result<Consolidated> {
        let (mut sum, mut so_far) = (Consolidated::default(), Consolidation::default());
        // Extents that are empty since the last one are free after it.
        self.database().store().checkpoint_while(waiter.go_on)?;
        loop {
            let mut txn = self.begin_for(waiter)?.ok_or(GraphError::Stopped)?;
            txn.txn.trees().use_reserve();
            let done = txn.consolidate(&mut so_far)?;
            if done.extents > 0 {
                txn.commit()?;
                // Lets the next part use the extents that this one freed.
                self.database().store().checkpoint_while(waiter.go_on)?;
            } else {
                drop(txn);
            }
            sum += done;
            go_on(moved(sum.pages))?;
            match so_far.wanted() {
                Some(tree) => self.search_long_values(tree, &mut so_far, waiter)?,
                None if done.extents == 0 => return Ok(sum),
                None => {}
            }
        }
    }

    /// Searches the long values of a tree that lie behind what the files will have.
    fn search_long_values(
        &self,
        tree: TreeId,
        so_far: &mut Consolidation,
        waiter: &Waiter<'_>,
    ) -> Result<()> {
        let store = self.database().store();
        let owned = store.extents().iter().filter(|(_, extent)| extent.tree.is_some()).count() as u64;
        let snapshot = store.snapshot();
        let state = GraphState::read(&snapshot, snapshot.txn())?;
        let mut strings = Tree::ALL.into_iter().filter_map(|tree| state.strings(tree));
        let Some(strings) = strings.find(|strings| strings.id() == tree) else {
            // Another generation has taken its place.
            so_far.take_longs(tree, Default::default());
            return Ok(());
        };
        let mut reader = Reader::new(store, snapshot);
        let places = strings.long_places(&mut reader, owned, waiter.go_on)?;
        so_far.take_longs(tree, places.ok_or(GraphError::Stopped)?);
        Ok(())
    }
}
