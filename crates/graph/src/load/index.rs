//! Second half of a load: trees from sorted runs, one after the other.
//!
//! ```text
//! quads ─merge─► PSOG tree                one thread merges, one builds the tree; what other orders need is
//!         ├────► POSG sorter              sorted by further threads meanwhile
//!         └────► SP sorter (distinct)
//! POSG sorter ─► POSG tree, OP sorter     SP sorter ─► SP tree, GS sorter     …
//! ```
//!
//! The merge of PSOG removes duplicate quads, so everything behind it is counted once. Trees
//! are built one at a time, because the place of their extents must not depend on which thread
//! was faster.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded};
use snowmelt_store::{Build, TupleTreeBuilder};

use super::dictionary::{HashSorters, RECORD_KIND};
use super::options::Sizes;
use super::progress::{Phase, Teller};
use super::read::{GraphsSeen, spawn};
use super::runs::RunStore;
use super::sorter::{Batch, Merge, Sorter};
use crate::Index;
use crate::dict::Tree;
use crate::index::statistics::IndexCounter;
use crate::index::triple::TripleIndex;
use crate::index::value_counts::ValueCounts;
use crate::input::cancelled;
use crate::input::error::LoadError;

/// Rows handed from thread to thread in one step.
const STEP_ROWS: usize = 8192;
/// Steps buffered between two threads.
const STEPS: usize = 4;

/// Sorted rows on their way from the merge.
type Step<const N: usize> = Arc<Vec<[u64; N]>>;

/// Inputs of a tree build.
pub(super) struct Indexer<'a, 'b> {
    pub(super) build: &'a Build,
    pub(super) sizes: Sizes,
    pub(super) threads: usize,
    /// A run store of the given name.
    pub(super) store: &'a dyn Fn(&'static str) -> Arc<RunStore>,
    pub(super) cancel: &'a AtomicBool,
    pub(super) teller: &'a mut Teller<'b>,
}

impl Indexer<'_, '_> {
    /// Writes the hash trees.
    pub(super) fn hashes(&mut self, sorters: &HashSorters, terms: u64) -> Result<(), LoadError> {
        self.teller.phase(Phase::Hashes, Some(terms));
        let mut done = self.tree(Tree::Iri.hash_name(), sorters.iri.merge()?, 0, &[])?;
        done += self.tree(Tree::Literal.hash_name(), sorters.literal.merge()?, done, &[])?;
        done += self.tree(Tree::Text.hash_name(), sorters.text.merge()?, done, &[])?;
        assert_eq!(done, terms, "one hash per string");
        Ok(())
    }

    /// Writes all quad indexes; returns the number of distinct quads. `rows` counts the rows in
    /// the sorter.
    pub(super) fn quads(
        &mut self,
        psog: Arc<Sorter<4>>,
        rows: u64,
        graphs: GraphsSeen,
    ) -> Result<u64, LoadError> {
        let posg = self.sorter::<4>("posg");
        let sp = self.sorter::<2>("sp");
        let gs = self.sorter::<2>("gs");
        let op = self.sorter::<2>("op");
        self.teller.phase(Phase::Index(Index::Psog), Some(rows));
        let feed = |steps: Receiver<Step<4>>| {
            let (mut posg, mut sp, mut gs) = (posg.batch(), sp.batch(), gs.batch());
            for step in steps {
                turn(&step, &mut posg)?;
                pairs(step.iter().map(|&[p, s, _, _]| [s, p]), &mut sp)?;
                if graphs == GraphsSeen::Many {
                    pairs(step.iter().map(|&[_, s, _, g]| [g, s]), &mut gs)?;
                }
            }
            posg.finish()?;
            sp.finish()?;
            gs.finish()
        };
        let feeders: Vec<Feed<4>> = (0..self.threads.max(1)).map(|_| &feed as Feed<4>).collect();
        let quads = self.tree(Index::Psog.name(), psog.merge()?, 0, &feeders)?;
        drop(psog);

        self.teller.phase(Phase::Index(Index::Posg), Some(quads));
        let feed = |steps: Receiver<Step<4>>| {
            let mut op = op.batch();
            for step in steps {
                pairs(step.iter().map(|&[p, o, _, _]| [o, p]), &mut op)?;
            }
            op.finish()
        };
        let turned = self.tree(Index::Posg.name(), posg.merge()?, 0, &[&feed])?;
        assert_eq!(turned, quads, "POSG has the quads of PSOG");

        self.teller.phase(Phase::Index(Index::Sp), Some(quads));
        let feed = |steps: Receiver<Step<2>>| {
            let mut gs = gs.batch();
            for step in steps {
                if let GraphsSeen::One(graph) = graphs {
                    pairs(step.iter().map(|&[s, _]| [graph, s]), &mut gs)?;
                }
            }
            gs.finish()
        };
        let subjects = self.tree(Index::Sp.name(), sp.merge()?, 0, &[&feed])?;
        self.teller.phase(Phase::Index(Index::Op), Some(quads));
        let objects = self.tree(Index::Op.name(), op.merge()?, 0, &[])?;
        self.teller.phase(Phase::Index(Index::Gs), Some(quads));
        let graphs = self.tree(Index::Gs.name(), gs.merge()?, 0, &[])?;
        for pairs in [subjects, objects, graphs] {
            assert!(pairs <= quads && (pairs == 0) == (quads == 0), "distinct pairs of the quads");
        }
        Ok(quads)
    }

    /// Writes the trees of triple terms, of which there are so many; where there are none, the
    /// trees of before are dropped.
    pub(super) fn triple_terms(&mut self, by_id: &Sorter<4>, terms: u64) -> Result<(), LoadError> {
        if terms == 0 {
            TripleIndex::ALL.into_iter().for_each(|index| self.build.drop_tree(index.name()));
            return Ok(());
        }
        self.teller.phase(Phase::TripleTerms, Some(terms));
        let orders = [TripleIndex::Spo, TripleIndex::Pos, TripleIndex::Osp];
        let rows = self.sizes.batch_rows.div_ceil(2);
        let sorters =
            orders.map(|order| Sorter::<4>::new((self.store)(order.name()), rows, self.sizes.fan_in));
        let feed = |steps: Receiver<Step<4>>| {
            let mut batches = sorters.each_ref().map(Sorter::batch);
            for step in steps {
                for (order, batch) in orders.iter().zip(&mut batches) {
                    step.iter().try_for_each(|row| batch.push(order.row(*row)))?;
                }
            }
            batches.into_iter().try_for_each(Batch::finish)
        };
        let written = self.tree(TripleIndex::Id.name(), by_id.merge()?, 0, &[&feed])?;
        assert_eq!(written, terms, "one row per triple term");
        for (order, sorter) in orders.into_iter().zip(&sorters) {
            let written = self.tree(order.name(), sorter.merge()?, 0, &[])?;
            assert_eq!(written, terms, "each order has all triple terms");
        }
        Ok(())
    }

    fn sorter<const N: usize>(&self, name: &'static str) -> Arc<Sorter<N>> {
        Sorter::new((self.store)(name), self.sizes.batch_rows, self.sizes.fan_in)
    }

    /// Builds tree `name` from a merge, whose rows also go to the feeders; returns its rows.
    pub(super) fn tree<const N: usize>(
        &mut self,
        name: &'static str,
        merge: Merge<N>,
        done: u64,
        feeders: &[Feed<'_, N>],
    ) -> Result<u64, LoadError> {
        let cancel = self.cancel;
        let mut builder = TupleTreeBuilder::new(self.build.new_tree(name), N);
        let mut rows = 0;
        let mut values = ValueCounts::default();
        let mut counter = IndexCounter::of_index(name);
        let has_values = [Index::Psog.name(), Index::Posg.name()].contains(&name);
        thread::scope(|scope| {
            let (tx, rx) = bounded::<Step<N>>(STEPS);
            let (feed_tx, feed_rx) = bounded::<Step<N>>(STEPS);
            let feed_tx = (!feeders.is_empty()).then_some(feed_tx);
            let fed: Vec<_> = feeders
                .iter()
                .map(|&feed| {
                    let steps = feed_rx.clone();
                    spawn(scope, "load-sort", move || feed(steps))
                })
                .collect();
            drop(feed_rx);
            let merged = spawn(scope, "load-merge", move || pump(merge, tx, feed_tx, cancel));
            let mut columns: [Vec<u64>; N] = std::array::from_fn(|_| Vec::with_capacity(STEP_ROWS));
            let mut built = Ok(());
            for step in rx {
                rows += step.len() as u64;
                for (c, column) in columns.iter_mut().enumerate() {
                    column.clear();
                    column.extend(step.iter().map(|row| row[c]));
                }
                let columns: [&[u64]; N] = std::array::from_fn(|c| &columns[c][..]);
                if has_values {
                    values.add(columns[0], columns[1]);
                }
                if let Some(counter) = &mut counter {
                    counter.add(columns[0], columns[1]);
                }
                built = builder.push_columns(&columns);
                if built.is_err() {
                    break;
                }
                self.teller.done(done + rows);
            }
            // All threads are joined; the first error counts.
            let mut result = built.map_err(LoadError::from);
            for thread in std::iter::once(merged).chain(fed) {
                let ended = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                result = super::read::worse(result, ended);
            }
            result
        })?;
        let tree = builder.finish()?;
        assert_eq!(tree.rows(), rows, "the tree has the rows of the merge");
        self.build.put_record(name, RECORD_KIND, &tree.to_bytes());
        if has_values {
            self.build.put_record(&ValueCounts::record_name(name), RECORD_KIND, &values.to_bytes());
        }
        if let Some((record, bytes)) = counter.map(IndexCounter::into_record) {
            self.build.put_record(record, RECORD_KIND, &bytes);
        }
        Ok(rows)
    }
}

/// Receives steps until there are no more.
type Feed<'f, const N: usize> = &'f (dyn Fn(Receiver<Step<N>>) -> Result<(), LoadError> + Sync);

/// Merges and hands the rows to the builder and to the feeders.
fn pump<const N: usize>(
    mut merge: Merge<N>,
    build: Sender<Step<N>>,
    feed: Option<Sender<Step<N>>>,
    cancel: &AtomicBool,
) -> Result<(), LoadError> {
    loop {
        cancelled(cancel)?;
        let mut rows = Vec::with_capacity(STEP_ROWS);
        if !merge.next(&mut rows, STEP_ROWS)? {
            return Ok(());
        }
        let step = Arc::new(rows);
        // A receiver that is gone has failed, and returns its own error.
        if let Some(feed) = &feed {
            feed.send(Arc::clone(&step)).map_err(|_| LoadError::Cancelled)?;
        }
        build.send(step).map_err(|_| LoadError::Cancelled)?;
    }
}

/// PSOG rows as POSG rows.
fn turn(rows: &[[u64; 4]], posg: &mut Batch<4>) -> Result<(), LoadError> {
    rows.iter().try_for_each(|&[p, s, o, g]| posg.push([p, o, s, g]))
}

/// Pushes pairs, without repeating one that equals its predecessor.
fn pairs(rows: impl Iterator<Item = [u64; 2]>, batch: &mut Batch<2>) -> Result<(), LoadError> {
    let mut last = None;
    for row in rows {
        if last != Some(row) {
            batch.push(row)?;
            last = Some(row);
        }
    }
    Ok(())
}
