//! DESCRIBE: concise bounded descriptions (Stickler, W3C member submission 2005): a resource's triples, and those of the blank
//! nodes they lead to.
//!
//! Level by level: the predicates of all subjects of a level by SP, then their triples by PSOG, both batched.

use crate::batch::Batch;
use crate::error::QueryError;
use crate::exec::Run;
use rustc_hash::FxHashSet;
use snowmelt_graph::{Index, Keys, Kind, Matches, TermId};

/// Resources described already.
pub(super) type Described = FxHashSet<TermId>;

/// The triples that describe what a batch binds and was not described before.
pub(super) fn describe(run: &mut Run, batch: &Batch, described: &mut Described) -> Result<Batch, QueryError> {
    let mut out = Batch::empty(3);
    let is_resource = |id: &TermId| matches!(id.kind(), Kind::Iri | Kind::Blank);
    let mut level: Vec<TermId> = batch.cols.iter().flatten().copied().filter(is_resource).collect();
    while !level.is_empty() {
        run.check()?;
        level.sort_unstable();
        level.dedup();
        level.retain(|id| described.insert(*id));
        let first = out.rows;
        triples(run, &level, &mut out)?;
        level = out.cols[2][first..].iter().copied().filter(|o| o.kind() == Kind::Blank).collect();
    }
    Ok(out)
}

fn triples(run: &mut Run, subjects: &[TermId], out: &mut Batch) -> Result<(), QueryError> {
    let keys: Vec<u64> = subjects.iter().map(|s| s.0).collect();
    let mut pairs = look(run, Index::Sp, &[&keys])?;
    // PSOG wants its keys by predicate first
    let mut by: Vec<(u64, u64)> =
        pairs.key.iter().zip(&pairs.cols[0]).map(|(k, p)| (*p, keys[*k as usize])).collect();
    by.sort_unstable();
    pairs.clear();
    let (ps, ss): (Vec<u64>, Vec<u64>) = by.into_iter().unzip();
    let found = look(run, Index::Psog, &[&ps, &ss])?;
    for (row, k) in found.key.iter().enumerate() {
        let graph = TermId(found.cols[1][row]);
        let visible = match &run.default_graphs {
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

fn look(run: &mut Run, index: Index, keys: &[&[u64]]) -> Result<Matches, QueryError> {
    let mut lookup = run.source.lookup(index, Keys::new(keys, None));
    let mut matches = Matches::new(index.arity(), keys.len());
    while run.source.lookup_next(&mut lookup, &mut matches, 1 << 16)? {
        run.check()?;
    }
    Ok(matches)
}
