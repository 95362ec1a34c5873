//! Rebuilds some trees of quads or of triple terms from what is known of them, for a repair: the
//! second half of a load.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use snowmelt_store::Build;

use super::account::LoadMemory;
use super::index::Indexer;
use super::options::{LEAST_MEMORY, LoadSizes, Sizes};
use super::progress::{LoadProgress, Phase, Teller};
use super::runs::RunStore;
use super::sorter::{Batch, Merge, Sorter};
use super::temp::TempSpace;
use crate::database::GraphDatabase;
use crate::index::triple::AnyIndex;
use crate::input::cancelled;
use crate::input::error::LoadError;

/// Inputs of a rebuild.
pub(crate) struct Rebuild<'a> {
    pub(crate) database: &'a Arc<GraphDatabase>,
    /// The trees to write: of quads, or of triple terms.
    pub(crate) indexes: &'a [AnyIndex],
    pub(crate) memory_bytes: u64,
    /// Number of quads, or triple terms, that must be found.
    pub(crate) expected: u64,
    pub(crate) cancel: &'a AtomicBool,
}

/// Takes a quad `[s, p, o, g]`, or a triple term `[id, s, p, o]`.
pub(crate) type TakeQuad<'a> = dyn FnMut([u64; 4]) -> Result<(), LoadError> + 'a;

/// Outcome of a rebuild.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rebuilt {
    /// All were found, and the trees are committed.
    All,
    /// There are only this many: nothing was changed.
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
    /// Writes the trees from what `each` gives, in one commit. A quad may come twice.
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
        let rows = |index: &AnyIndex| match index.arity() {
            4 => Rows::Quads(Sorter::new(run_store(index.name()), sizes.batch_rows, sizes.fan_in)),
            _ => Rows::Pairs(Sorter::new(run_store(index.name()), sizes.batch_rows, sizes.fan_in)),
        };
        // Trees of whole quads come first: too few quads are noticed before the pairs are sorted.
        let mut indexes = self.indexes.to_vec();
        indexes.sort_unstable();
        let sorters: Vec<Rows> = indexes.iter().map(rows).collect();
        let mut batches: Vec<RowBatch> = sorters.iter().map(Rows::batch).collect();
        each(&mut |quad| {
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

impl Indexer<'_, '_> {
    fn whole<const N: usize>(&mut self, index: AnyIndex, rows: Merge<N>) -> Result<u64, LoadError> {
        let phase = match index {
            AnyIndex::Quads(index) => Phase::Index(index),
            AnyIndex::Triples(_) => Phase::TripleTerms,
        };
        self.teller.phase(phase, None);
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
