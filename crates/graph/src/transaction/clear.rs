//! Emptying graphs.
//!
//! All graphs at once: the indexes are begun anew, whatever their size. One graph among others: GS
//! gives its subjects, and their quads are deleted part by part. The dictionary keeps its terms.

use std::sync::Arc;

use snowmelt_store::{Columns, TupleTree};

use crate::database::change_log::Change;
use crate::error::{GraphError, Result};
use crate::index::Index;
use crate::interrupt::Interrupt;
use crate::session::Session;
use crate::session::subject_quads::each_quad_of;
use crate::term::TermId;
use crate::transaction::Transaction;
use crate::transaction::quads::Changed;

/// Subjects whose quads are looked up together.
const PART_SUBJECTS: usize = 1 << 12;
/// Quads deleted together.
const PART_QUADS: usize = 1 << 16;

/// Graphs to empty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Graphs {
    /// The default graph, or the graph of this name.
    One(TermId),
    /// All named graphs.
    Named,
    /// All.
    All,
}

impl Transaction {
    /// Removes all quads of some graphs.
    ///
    /// # Errors
    /// Fails with errors of the store, damage included, and with [`GraphError::Stopped`] if
    /// interrupted. Removals so far stay in the transaction, so drop it.
    pub fn clear(&mut self, graphs: Graphs, interrupt: &dyn Interrupt) -> Result<Changed> {
        let quads = self.state.quads();
        let mut session = self.session();
        // Rows decide whether other graphs have quads, not counts: a wrong count in an inner node
        // must not drop a graph that was not named.
        let default = TermId::DEFAULT_GRAPH.0;
        let all = match graphs {
            Graphs::All => true,
            Graphs::Named => !session.any(Index::Gs, 0..=default)?,
            Graphs::One(TermId(graph)) => {
                let below = graph > 0 && session.any(Index::Gs, 0..=graph - 1)?;
                !below && (graph == u64::MAX || !session.any(Index::Gs, graph + 1..=u64::MAX)?)
            }
        };
        if quads == 0 || all {
            drop(session);
            return self.truncate();
        }
        match graphs {
            Graphs::One(graph) => self.clear_range(&session, (graph.0, graph.0), interrupt),
            _ => self.clear_range(&session, (TermId::DEFAULT_GRAPH.0 + 1, u64::MAX), interrupt),
        }
    }

    /// Begins all indexes anew.
    pub(crate) fn truncate(&mut self) -> Result<Changed> {
        let quads = self.state.quads();
        if quads == 0 {
            return Ok(Changed::default());
        }
        self.log(std::iter::once(Change::Cleared));
        let suffix = self.suffix();
        let state = Arc::make_mut(&mut self.state);
        for index in Index::ALL {
            let name = format!("{}{suffix}", index.name());
            state.indexes[index as usize] = Some(TupleTree::create(self.txn.trees(), &name, index.arity())?);
        }
        state.meta.quads = 0;
        state.changed += quads;
        state.statistics = Default::default();
        state.has_new_statistics = true;
        state.values = Default::default();
        state.values_drift = u64::MAX;
        (state.plain, state.meta.plain) = (true.into(), true);
        Ok(Changed { inserted: 0, deleted: quads })
    }

    /// Deletes the quads of a range of graphs. They are read through `session`, whose view does not
    /// change while quads are deleted.
    fn clear_range(
        &mut self,
        session: &Session,
        graphs: (u64, u64),
        interrupt: &dyn Interrupt,
    ) -> Result<Changed> {
        let mut session = session.sibling();
        let mut scan = session.scan(Index::Gs, &[], Some(graphs));
        let mut pairs = Columns::with_wanted(2, 0b10);
        let mut doomed = Vec::new();
        let mut changed = Changed::default();
        while scan.next(&mut session, &mut pairs, PART_SUBJECTS)? {
            let mut subjects = std::mem::take(&mut pairs.cols[1]);
            subjects.sort_unstable();
            subjects.dedup();
            each_quad_of(&mut session, &subjects, |[s, p, o, g]| {
                if (graphs.0..=graphs.1).contains(&g) {
                    doomed.push([s, p, o, g].map(TermId));
                }
                if doomed.len() >= PART_QUADS {
                    go_on(interrupt)?;
                    changed += self.delete(&doomed)?;
                    doomed.clear();
                }
                Ok(())
            })?;
            go_on(interrupt)?;
            changed += self.delete(&doomed)?;
            doomed.clear();
            pairs.clear();
        }
        Ok(changed)
    }
}

fn go_on(interrupt: &dyn Interrupt) -> Result<()> {
    if interrupt.is_set() { Err(GraphError::Stopped) } else { Ok(()) }
}
