//! Ids for the triple terms of a batch. A term is looked up by the ids of the terms in it, so those
//! of a level are looked up together, from within; those that are not found get the next numbers.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use snowmelt_store::{Changes, TupleTree};

use crate::database::state::GraphState;
use crate::error::{GraphError, Result};
use crate::index::triple::TripleIndex;
use crate::input::intern::{LocalTriple, Need, Parsed, position};
use crate::session::triple_terms::{TripleIds, is_sound};
use crate::term::{MOST_TRIPLE_LEVELS, TermId, TermKind};
use crate::transaction::Transaction;

impl Transaction {
    /// Gives ids to the triple terms of a batch, whose other terms have theirs.
    pub(super) fn triple_ids(&mut self, parsed: &Parsed, found: &mut [Option<TermId>]) -> Result<()> {
        let is_triple = |at: &usize| parsed.terms[*at].need == Need::Number(TermKind::Triple);
        let mut waiting: Vec<usize> = (0..parsed.terms.len()).filter(is_triple).collect();
        while !waiting.is_empty() {
            let (mut ready, mut keys, mut later) = (Vec::new(), Vec::new(), Vec::new());
            for at in waiting {
                match components(parsed.triple(&parsed.terms[at]), found) {
                    Some(key) => {
                        ready.push(at);
                        keys.push(key);
                    }
                    None => later.push(at),
                }
            }
            assert!(!ready.is_empty(), "a triple term comes after the terms in it");
            for (at, id) in ready.into_iter().zip(self.ids_of_triples(&keys)?) {
                found[at] = Some(id);
            }
            waiting = later;
        }
        Ok(())
    }

    /// The ids of triple terms, stored now if they are new.
    fn ids_of_triples(&mut self, keys: &[TripleIds]) -> Result<Vec<TermId>> {
        let known = self.session().find_triples(keys)?;
        let first = self.state.triple_terms();
        let mut fresh: FxHashMap<TripleIds, TermId> = FxHashMap::default();
        let mut rows = Vec::new();
        let mut ids = Vec::with_capacity(keys.len());
        for (key, known) in keys.iter().zip(known) {
            let id = known.unwrap_or_else(|| {
                *fresh.entry(*key).or_insert_with(|| {
                    let id = TermId::triple(first + rows.len() as u64);
                    rows.push([id.0, key[0].0, key[1].0, key[2].0]);
                    id
                })
            });
            ids.push(id);
        }
        if !rows.is_empty() {
            self.check_triples(&rows)?;
            self.insert_triples(&rows)?;
        }
        Ok(ids)
    }

    /// Checks that new triple terms may be stored.
    fn check_triples(&self, rows: &[[u64; 4]]) -> Result<()> {
        let ids = |row: &[u64; 4]| row.map(TermId);
        for [id, s, p, o] in rows.iter().map(ids) {
            if !is_sound(id, [s, p, o]) {
                return Err(GraphError::NoTriple { subject: s, predicate: p, object: o });
            }
        }
        let mut within: Vec<TermId> = rows.iter().map(|row| TermId(row[3])).collect();
        for _ in 0..MOST_TRIPLE_LEVELS {
            within.retain(|id| id.kind() == TermKind::Triple);
            if within.is_empty() {
                return Ok(());
            }
            within.sort_unstable();
            within.dedup();
            within = self.session().triples_of(&within)?.into_iter().map(|[_, _, o]| o).collect();
        }
        Err(GraphError::TooDeep { most: MOST_TRIPLE_LEVELS })
    }

    fn insert_triples(&mut self, rows: &[[u64; 4]]) -> Result<()> {
        let suffix = self.suffix();
        let state: &mut GraphState = Arc::make_mut(&mut self.state);
        state.meta.format = state.meta.format.with_rdf_12();
        for index in TripleIndex::ALL {
            let mut rows: Vec<[u64; 4]> = rows.iter().map(|row| index.row(*row)).collect();
            rows.sort_unstable();
            let changes = Changes {
                cols: (0..TripleIndex::ARITY).map(|c| rows.iter().map(|row| row[c]).collect()).collect(),
                insert: vec![true; rows.len()],
            };
            let slot = &mut state.triples[index as usize];
            let tree = match slot {
                Some(tree) => tree,
                None => {
                    let name = format!("{}{suffix}", index.name());
                    slot.insert(TupleTree::create(self.txn.trees(), &name, TripleIndex::ARITY)?)
                }
            };
            let applied = tree.apply(self.txn.trees(), &changes)?;
            if applied.inserted != rows.len() as u64 {
                let known = rows.len() as u64 - applied.inserted;
                let why = format!("{known} of {} new rows were there before", rows.len());
                return Err(GraphError::record(index.name(), why));
            }
        }
        Ok(())
    }
}

/// Subject, predicate and object of a triple term; `None` if one has no id yet.
fn components(triple: &LocalTriple, found: &[Option<TermId>]) -> Option<TripleIds> {
    let id = |reference: u64| match position(reference) {
        Some(at) => found[at as usize],
        None => Some(TermId(reference)),
    };
    let [s, p, o] = triple.terms.map(id);
    Some([s?, p?, o?])
}
