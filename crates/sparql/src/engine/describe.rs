//! DESCRIBE: concise bounded descriptions (Stickler, W3C member submission 2005): a resource's
//! triples, and those of the blank nodes they lead to.
//!
//! Some resources at a time: the predicates of all of them by SP, then their triples by PSOG,
//! both batched; the blank nodes met come next.

use rustc_hash::FxHashSet;
use snowmelt_graph::{Index, Keys, Matches, TermId, TermKind};

use crate::bounds::Held;
use crate::error::QueryError;
use crate::exec::{Batch, Run};

/// Most resources described together.
const MOST: usize = 1024;

/// Terms described, and those still to be.
pub(super) struct Described {
    done: FxHashSet<TermId>,
    open: Vec<TermId>,
    held: Held,
    /// of the batch that was given out last
    given: Held,
}

impl Described {
    pub fn new(held: Held) -> Self {
        Self { done: FxHashSet::default(), open: Vec::new(), given: held.another(), held }
    }

    /// Takes in what a batch binds and was not described before.
    pub fn begin(&mut self, batch: &Batch) -> Result<(), QueryError> {
        self.named(batch.cols.iter().flatten().copied())
    }

    /// Takes in the resources that a query names and that were not described before.
    pub fn named(&mut self, ids: impl Iterator<Item = TermId>) -> Result<(), QueryError> {
        let is_resource = |id: &TermId| matches!(id.kind(), TermKind::Iri | TermKind::Blank);
        self.add(ids.filter(is_resource).collect())
    }

    fn add(&mut self, mut resources: Vec<TermId>) -> Result<(), QueryError> {
        resources.sort_unstable();
        resources.dedup();
        resources.retain(|id| self.done.insert(*id));
        self.open.append(&mut resources);
        Ok(self.held.set(self.done.capacity() * 9 + self.open.capacity() * 8, "described resources")?)
    }

    /// The triples of some of them.
    pub fn next(&mut self, run: &mut Run) -> Result<Option<Batch>, QueryError> {
        while !self.open.is_empty() {
            run.check()?;
            /// Rows' worth of a resource: its way through two trees, and its triples.
            const ROWS: usize = 8;
            let most = (run.query.batch.most / ROWS).clamp(1, MOST);
            let mut some = self.open.split_off(self.open.len().saturating_sub(most));
            some.sort_unstable();
            let mut out = Batch::empty(3);
            self.given.clear();
            triples(run, &some, &mut out, &mut self.given)?;
            self.add(out.cols[2].iter().copied().filter(|o| o.kind() == TermKind::Blank).collect())?;
            if out.rows > 0 {
                return Ok(Some(out));
            }
        }
        Ok(None)
    }
}

fn triples(run: &mut Run, subjects: &[TermId], out: &mut Batch, held: &mut Held) -> Result<(), QueryError> {
    let keys: Vec<u64> = subjects.iter().map(|s| s.0).collect();
    let mut pairs = look(run, Index::Sp, &[&keys], held)?;
    // PSOG wants its keys by predicate first
    let mut by: Vec<(u64, u64)> =
        pairs.key.iter().zip(&pairs.cols[0]).map(|(k, p)| (*p, keys[*k as usize])).collect();
    by.sort_unstable();
    pairs.clear();
    let (ps, ss): (Vec<u64>, Vec<u64>) = by.into_iter().unzip();
    let found = look(run, Index::Psog, &[&ps, &ss], held)?;
    assert_eq!(found.key.len(), found.cols[0].len(), "each match has its object");
    for (row, k) in found.key.iter().enumerate() {
        let graph = TermId(found.cols[1][row]);
        let visible = match &run.query.default_graphs {
            None => graph == TermId::DEFAULT_GRAPH,
            Some(list) => list.contains(&graph),
        };
        if visible {
            let (p, s) = (ps[*k as usize], ss[*k as usize]);
            [s, p, found.cols[0][row]].iter().zip(&mut out.cols).for_each(|(id, col)| col.push(TermId(*id)));
            out.rows += 1;
        }
    }
    Ok(())
}

fn look(run: &mut Run, index: Index, keys: &[&[u64]], held: &mut Held) -> Result<Matches, QueryError> {
    let mut lookup = run.source.lookup(index, Keys::new(keys, None));
    let mut matches = Matches::new(index.arity(), keys.len());
    let before = held.bytes();
    while run.source.lookup_next(&mut lookup, &mut matches, 1 << 16)? {
        run.check()?;
        // and once more as triples
        held.set(before + matches.key.len() * 48, "described resources")?;
    }
    Ok(matches)
}
