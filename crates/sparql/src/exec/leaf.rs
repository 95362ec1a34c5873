//! Leaves without I/O: unit, nothing, seed, context, values; and the list of graph names.

use snowmelt_graph::{Index, TermId};

use super::{Operator, Result, Run};
use crate::algebra::{Const, Var};
use crate::exec::Batch;

/// A batch given beforehand: unit, nothing, values, and the seed of each run.
pub(super) struct Given {
    batch: Option<Batch>,
    /// for leaves other than seeds: the batch that a reset restores
    again: Option<Batch>,
}

impl Given {
    pub fn seed() -> Self {
        Self { batch: None, again: None }
    }

    pub fn new(batch: Batch) -> Self {
        Self { batch: Some(batch.clone()), again: Some(batch) }
    }
}

impl Operator for Given {
    fn next(&mut self, run: &mut Run) -> Result<Option<Batch>> {
        run.check()?;
        Ok(self.batch.take().filter(|b| b.rows > 0))
    }

    fn reset(&mut self, seed: &Batch) {
        self.batch = Some(self.again.as_ref().unwrap_or(seed).clone());
    }
}

/// The context that a right side is evaluated for.
pub(super) struct ContextRows {
    pub row: Var,
    pub cols: Vec<Option<u16>>,
    pub done: bool,
}

impl Operator for ContextRows {
    fn next(&mut self, run: &mut Run) -> Result<Option<Batch>> {
        run.check()?;
        if std::mem::replace(&mut self.done, true) {
            return Ok(None);
        }
        let of = run.contexts.get(&self.row).expect("the operator around has set it");
        let col =
            |c: &Option<u16>| c.map_or_else(|| vec![TermId::UNDEF; of.rows], |c| of.cols[c as usize].clone());
        Ok(Some(Batch { cols: self.cols.iter().map(col).collect(), rows: of.rows }))
    }

    fn reset(&mut self, _: &Batch) {
        self.done = false;
    }
}

/// The rows of VALUES.
pub(super) fn values(run: &mut Run, rows: &[Vec<Option<Const>>], width: usize) -> Given {
    let mut cols = vec![Vec::with_capacity(rows.len()); width];
    assert!(rows.iter().all(|row| row.len() == width), "a row of VALUES has a value for each variable");
    for row in rows {
        for (col, value) in cols.iter_mut().zip(row) {
            col.push(value.map_or(TermId::UNDEF, |c| run.constant_or_local(c)));
        }
    }
    Given::new(Batch { cols, rows: rows.len() })
}

/// The named graphs, by leaps through GS: one visit per graph.
pub(super) struct GraphNames {
    /// a constant: only whether this graph exists; `Some(None)`: no term of the data
    pub graph: Option<Option<TermId>>,
    pub of: Option<Vec<TermId>>,
    pub done: bool,
}

impl Operator for GraphNames {
    fn next(&mut self, run: &mut Run) -> Result<Option<Batch>> {
        if std::mem::replace(&mut self.done, true) {
            return Ok(None);
        }
        let exists = |run: &mut Run, g: TermId| {
            Ok::<_, crate::QueryError>(run.source.count(Index::Gs, &[g], None)? > 0)
        };
        if let Some(graph) = self.graph {
            let Some(graph) = graph else { return Ok(None) };
            let listed = self.of.as_ref().is_none_or(|of| of.contains(&graph));
            return Ok((listed && exists(run, graph)?).then(Batch::unit));
        }
        let names = match &self.of {
            None => run.all_named_graphs()?,
            Some(of) => {
                let mut names = Vec::new();
                for g in of.clone() {
                    if exists(run, g)? {
                        names.push(g);
                    }
                }
                names
            }
        };
        Ok((!names.is_empty()).then(|| Batch::from_cols(vec![names])))
    }

    fn reset(&mut self, _: &Batch) {
        self.done = false;
    }
}
