//! Rebuilds some quad indexes from known quads, for a repair: the second half of a load.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use snowmelt_store::Build;

use super::account::LoadMemory;
use super::index::Indexer;
use super::options::{LEAST_MEMORY, LoadSizes, Sizes};
use super::progress::{LoadProgress, Teller};
use super::runs::RunStore;
use super::sorter::{Batch, Merge, Sorter};
use super::temp::TempSpace;
use crate::database::GraphDatabase;
use crate::index::Index;
use crate::index::triple::TripleIndex;
use crate::input::cancelled;
use crate::input::error::LoadError;

/// Inputs of a rebuild.
pub(crate) struct Rebuild<'a> {
    pub(crate) database: &'a Arc<GraphDatabase>,
    /// The trees to write.
    pub(crate) indexes: &'a [Index],
    pub(crate) memory_bytes: u64,
    /// Number of quads that must be found.
    pub(crate) expected: u64,
    pub(crate) cancel: &'a AtomicBool,
}

/// Takes a quad `[s, p, o, g]`.
pub(crate) type TakeQuad<'a> = dyn FnMut([u64; 4]) -> Result<(), LoadError> + 'a;

/// Outcome of a rebuild.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rebuilt {
    /// All quads were found, and the trees are committed.
    All,
    /// There are only this many quads: nothing was changed.
    TooFew(u64),
}

/// The sorted rows of a tree to be written.
enum Rows {
    Quads(Arc<Sorter<4>>),
    Pairs(Arc<Sorter<2>>),
}

enum RowBatch {
    Quads(Batch<4>),
    Pairs(Batch<2>),
}

impl Rebuild<'_> {
    /// Writes the trees from the quads of `each_quad`, in one commit. A quad may come twice.
    pub(crate) fn run(
        &self,
        build: Build,
        each_quad: impl FnOnce(&mut TakeQuad<'_>) -> Result<(), LoadError>,
        progress: &dyn LoadProgress,
    ) -> Result<Rebuilt, LoadError> {
        let teller = &mut Teller::new(progress, None);
        let sizes = Sizes::within(self.memory_bytes.max(LEAST_MEMORY), 1, LoadSizes::default());
        let temp = TempSpace::create(&self.database.database().work_dir())?;
        let account = LoadMemory::new(sizes.run_bytes);
        let run_store = |name| RunStore::new(name, &temp, &account);
        let rows = |index: &Index| match index.arity() {
            4 => Rows::Quads(Sorter::new(run_store(index.name()), sizes.batch_rows, sizes.fan_in)),
            _ => Rows::Pairs(Sorter::new(run_store(index.name()), sizes.batch_rows, sizes.fan_in)),
        };
        // Trees of whole quads come first: too few quads are noticed before the pairs are sorted.
        let mut indexes = self.indexes.to_vec();
        indexes.sort_unstable();
        let sorters: Vec<Rows> = indexes.iter().map(rows).collect();
        let mut batches: Vec<RowBatch> = sorters.iter().map(Rows::batch).collect();
        each_quad(&mut |quad| {
            indexes.iter().zip(&mut batches).try_for_each(|(index, batch)| batch.push(index.row(quad)))
        })?;
        batches.into_iter().try_for_each(RowBatch::finish)?;
        let mut indexer =
            Indexer { build: &build, sizes, threads: 1, store: &run_store, cancel: self.cancel, teller };
        for (index, rows) in indexes.iter().zip(sorters) {
            let found = match rows {
                Rows::Quads(rows) => indexer.whole(*index, rows.merge()?)?,
                Rows::Pairs(rows) => indexer.whole(*index, rows.merge()?)?,
            };
            if index.arity() == 4 && found != self.expected {
                return Ok(Rebuilt::TooFew(found));
            }
        }
        cancelled(self.cancel)?;
        build.commit()?;
        Ok(Rebuilt::All)
    }
}

/// Inputs of a rebuild of trees of triple terms.
pub(crate) struct TripleRebuild<'a> {
    pub(crate) database: &'a Arc<GraphDatabase>,
    /// The trees to write.
    pub(crate) orders: &'a [TripleIndex],
    pub(crate) memory_bytes: u64,
    /// Number of triple terms that must be found.
    pub(crate) expected: u64,
    pub(crate) cancel: &'a AtomicBool,
}

impl TripleRebuild<'_> {
    /// Writes the trees from the rows (id, subject, predicate, object) of `each`, in one commit.
    pub(crate) fn run(
        &self,
        build: Build,
        each: impl FnOnce(&mut TakeQuad<'_>) -> Result<(), LoadError>,
        progress: &dyn LoadProgress,
    ) -> Result<Rebuilt, LoadError> {
        let teller = &mut Teller::new(progress, None);
        let sizes = Sizes::within(self.memory_bytes.max(LEAST_MEMORY), 1, LoadSizes::default());
        let temp = TempSpace::create(&self.database.database().work_dir())?;
        let account = LoadMemory::new(sizes.run_bytes);
        let run_store = |name| RunStore::new(name, &temp, &account);
        let sorter =
            |order: &TripleIndex| Sorter::<4>::new(run_store(order.name()), sizes.batch_rows, sizes.fan_in);
        let sorters: Vec<_> = self.orders.iter().map(sorter).collect();
        let mut batches: Vec<_> = sorters.iter().map(Sorter::batch).collect();
        each(&mut |row| {
            self.orders.iter().zip(&mut batches).try_for_each(|(order, batch)| batch.push(order.row(row)))
        })?;
        batches.into_iter().try_for_each(Batch::finish)?;
        let mut indexer =
            Indexer { build: &build, sizes, threads: 1, store: &run_store, cancel: self.cancel, teller };
        for (order, sorter) in self.orders.iter().zip(sorters) {
            indexer.teller.phase(super::Phase::TripleTerms, None);
            let found = indexer.tree(order.name(), sorter.merge()?, 0, &[])?;
            if found != self.expected {
                return Ok(Rebuilt::TooFew(found));
            }
        }
        cancelled(self.cancel)?;
        build.commit()?;
        Ok(Rebuilt::All)
    }
}

impl Indexer<'_, '_> {
    fn whole<const N: usize>(&mut self, index: Index, rows: Merge<N>) -> Result<u64, LoadError> {
        self.teller.phase(super::Phase::Index(index), None);
        self.tree(index.name(), rows, 0, &[])
    }
}

impl Rows {
    fn batch(&self) -> RowBatch {
        match self {
            Rows::Quads(sorter) => RowBatch::Quads(sorter.batch()),
            Rows::Pairs(sorter) => RowBatch::Pairs(sorter.batch()),
        }
    }
}

impl RowBatch {
    fn push(&mut self, row: [u64; 4]) -> Result<(), LoadError> {
        match self {
            RowBatch::Quads(batch) => batch.push(row),
            RowBatch::Pairs(batch) => batch.push([row[0], row[1]]),
        }
    }

    fn finish(self) -> Result<(), LoadError> {
        match self {
            RowBatch::Quads(batch) => batch.finish(),
            RowBatch::Pairs(batch) => batch.finish(),
        }
    }
}
